"""What RViz needs of the simulated robot: its description over a real topic, its links on /tf."""

import mujoco
import numpy as np
import pytest
from paths import QUADRUPED_URDF

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from ros_peer import RosPeer  # noqa: E402
from stand_in_tf import FakeNode, with_tf  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from test_simulated_robot_node import parameters  # noqa: E402

from contact_id_controller.robot import RobotModel  # noqa: E402
from contact_id_controller.ros import robot_publisher  # noqa: E402
from contact_id_controller.ros.robot_publisher import PERIOD_NS, RobotPublisher  # noqa: E402
from contact_id_controller.ros.simulated_robot import SimulatedRobot  # noqa: E402


@pytest.fixture
def module(monkeypatch):
    """The module where tf2_msgs exists."""
    return with_tf(robot_publisher, monkeypatch)


def test_links_are_where_mujoco_has_them(module):
    robot, node = RobotModel.from_urdf(QUADRUPED_URDF), FakeNode()
    rng = np.random.default_rng(3)
    joints, turn = rng.uniform(-1.0, 1.0, robot.na), rng.normal(size=4)
    q = np.concatenate([[1.0, -2.0, 0.5], turn / np.linalg.norm(turn), joints])
    publisher = module.RobotPublisher(node, robot, QUADRUPED_URDF)
    publisher.publish(7_500_000_001, q)
    (message,) = node.published["/tf"]

    spec = mujoco.MjSpec.from_file(str(QUADRUPED_URDF))
    spec.compiler.fusestatic = False
    model = spec.compile()
    data = mujoco.MjData(model)
    for name, value in zip(robot.joint_names, joints):
        data.joint(name).qpos[:] = value
    mujoco.mj_kinematics(model, data)
    names = {link.child_frame_id for link in message.transforms}
    assert {"base", "LF_FOOT", "RH_FOOT"} <= names and len(names) == len(message.transforms)
    base = matrix(q[6], *q[3:6])
    compared = 0
    for link in message.transforms:
        stamp, to, about = link.header.stamp, link.transform.translation, link.transform.rotation
        assert link.header.frame_id == "world" and (stamp.sec, stamp.nanosec) == (7, 500_000_001)
        if link.child_frame_id == "base":  # MuJoCo's world
            place, turned = q[:3], base
        else:
            body = data.body(link.child_frame_id)
            place, turned = q[:3] + base @ body.xpos, base @ body.xmat.reshape(3, 3)
        assert np.allclose([to.x, to.y, to.z], place, atol=1e-9), link.child_frame_id
        assert np.allclose(matrix(about.w, about.x, about.y, about.z), turned, atol=1e-9)
        compared += 1
    assert compared > 12


def matrix(*quaternion_wxyz):
    """Rotation matrix (3, 3)."""
    out = np.empty(9)
    mujoco.mju_quat2Mat(out, np.array(quaternion_wxyz))
    return out.reshape(3, 3)


def test_a_message_each_fiftieth_of_a_second_and_only_where_somebody_listens(module):
    robot, node = RobotModel.from_urdf(QUADRUPED_URDF), FakeNode()
    publisher = module.RobotPublisher(node, robot, QUADRUPED_URDF)
    q = np.concatenate([np.zeros(6), [1.0], np.zeros(robot.na)])
    node.listeners = 0
    publisher.publish(0, q)
    node.listeners = 1
    for step in range(1, 101):
        publisher.publish(step * 1_000_000, q)
    stamps = [each.transforms[0].header.stamp.nanosec for each in node.published["/tf"]]
    assert len(stamps) == 5 and np.all(np.diff(stamps) == PERIOD_NS)
    publisher.begin_anew()
    publisher.publish(0, q)
    assert len(node.published["/tf"]) == 6


def test_without_tf2_msgs_the_description_alone_is_published():
    robot, node = RobotModel.from_urdf(QUADRUPED_URDF), FakeNode()
    RobotPublisher(node, robot, QUADRUPED_URDF).publish(0, np.zeros(robot.nq))
    (said,) = node.published["/robot_description"]
    assert said.data == QUADRUPED_URDF.read_text(encoding="utf-8")


def test_who_comes_later_gets_the_description_of_the_simulated_robot(closing, node_within):
    node_within(SimulatedRobot, **parameters(publish_robot=True))
    viewer, heard = closing(RosPeer("rviz")), []
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    viewer.node.create_subscription(String, "/robot_description", heard.append, qos)
    assert viewer.until(lambda: heard) and "<robot" in heard[0].data
