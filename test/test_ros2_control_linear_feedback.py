"""The plugin linear_feedback_controller in a real controller_manager: skipped where it or its messages are missing.

The robot is that of its own URDF; its system is ros2_control's `mock_components/GenericSystem`, which says
the same state for ever.
"""

import importlib.util

import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import CONFIG

pytest.importorskip("rclpy", reason="needs ROS 2")

import rclpy
from ros2_control_hosts import LINEAR_FEEDBACK, RELIABLE, RealHost, mocked, why_no_plugin
from ros_bench import HEIGHT_M, JOINTS, STANDING, VELOCITY
from test_linear_feedback import random_feedback
from test_ros2_control_processes import DAMPING, SOME, in_log, is_controlled, ours

from contact_id_controller.robot import resolve_urdf
from contact_id_controller.ros.command_messages import message_class
from contact_id_controller.ros.linear_feedback_messages import FeedbackMessage
from contact_id_controller.settings.command_interfaces import INTERFACES
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile

ROW = INTERFACES["linear_feedback"]
MISSING = why_no_plugin(package=LINEAR_FEEDBACK)
if not MISSING and importlib.util.find_spec(ROW.package) is None:
    MISSING = f"no {ROW.package}"

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

GROUP = f"/{LINEAR_FEEDBACK}"
TOPIC = ROW.taker.topic_of(GROUP)
TOGETHER = (LINEAR_FEEDBACK, "joint_state_estimator")
FILE = CONFIG / "ros2_control" / "quadruped_linear_feedback.yaml"
UNEVEN = STANDING + 0.1 * np.random.default_rng(5).normal(size=12)
BASE = np.r_[0.1, -0.2, HEIGHT_M, 0.0, 0.1, -0.2, 0.0, 0.3, -0.1, 0.05, -0.4, 0.2, 0.1]
BASE[6] = np.sqrt(1.0 - np.square(BASE[3:6]).sum())
"""Place, m, quaternion (x, y, z, w), and velocities in the frame of the base, m/s and rad/s."""


def bolted(sections, names):
    """The sections of the example for joints of a robot without a base."""
    law = sections[LINEAR_FEEDBACK]["ros__parameters"]
    law |= {"robot_has_free_flyer": False, "moving_joint_names": list(names)}
    law["chainable_controller"] = {"command_interfaces": [f"{name}/effort" for name in names]}
    law |= {name: {"p": 1.0, "d": 0.1 + 0.01 * k} for k, name in enumerate(names)}
    states = [f"{name}/{kind}" for kind in ("position", "velocity", "effort") for name in names]
    sections["joint_state_estimator"]["ros__parameters"] = {
        "state_interfaces": states,
        "command_interfaces": [f"{LINEAR_FEEDBACK}/{state}" for state in states],
    }


class FeedbackHost(RealHost):
    """With the example's sections, as they are for a robot that floats; the description is also a parameter.

    Args:
        file: of the robot's parameters, with changes.  position, velocity: of its joints.
        base: its place, turn and velocities; None: it is bolted.
        order: moving_joint_names, where not that of the robot's model.
    """

    inactive = ()

    def __init__(self, folder, file, position, velocity, base=None, order=None, **changes):
        self.section = ParameterFile(file).section("controller") | changes
        self.section["floating_base"] = base is not None
        settings = ControllerSettings.from_mapping(self.section)
        self.robot, self.position, self.velocity = settings.robot(), position, velocity
        sections = yaml.safe_load(FILE.read_text())
        states = sections["joint_state_estimator"]["ros__parameters"]["state_interfaces"]
        names = [each.removeprefix("base/") for each in states if each.startswith("base/")]
        sensor = ("base", dict(zip(names, base))) if base is not None else ()
        joints = self.robot.joint_names
        tag = mocked(joints[::-1], position[::-1], velocity[::-1], *sensor)
        urdf = resolve_urdf(settings.urdf).read_text().replace("</robot>", f"{tag}</robot>")
        super().__init__(folder, joints, position, velocity, urdf=urdf)
        if base is None:
            bolted(sections, order or [joints[k] for k in self.robot.model_order])
        self.base, self.law = base, sections[LINEAR_FEEDBACK]["ros__parameters"]
        content = yaml.safe_load(self.file.read_text())
        kinds = sections.pop("controller_manager")["ros__parameters"]
        content["controller_manager"]["ros__parameters"] |= {name: kinds[name] for name in TOGETHER}
        self.file.write_text(yaml.safe_dump(content | sections))
        self.describer = rclpy.create_node("robot_state_publisher", context=self.node.context)
        self.describer.declare_parameter("robot_description", urdf)
        self.node.executor.add_node(self.describer)

    def state(self):
        """Configuration and velocity of the robot's model."""
        base = self.base
        q = self.robot.configuration(None if base is None else base[:7], self.position)
        v = np.zeros(self.robot.nv)
        v[self.robot.actuated] = self.velocity
        if base is not None:
            v[:6] = base[7:]
        return q, v

    def close(self):
        super().close()
        self.node.executor.remove_node(self.describer)
        self.describer.destroy_node()


@pytest.fixture
def host_of(closing, tmp_path):
    def started(
        file=CONFIG / "quadruped.yaml", position=UNEVEN, velocity=VELOCITY, base=None, **changes
    ):
        host = closing(FeedbackHost(tmp_path, file, position, velocity, base, **changes))
        host.start()
        host.spawn_active(*TOGETHER)
        return host

    return started


CHOSEN = {"command_interface": ROW.name, "group_controller": GROUP}


def controller(host, to=f"{ROW.topic}_in", **changes):
    return ours(host, "controller", "-r", f"{ROW.topic}:={to}", **CHOSEN, **changes)


def watchdog(host, **changes):
    return ours(host, "command_watchdog", "-r", f"{ROW.topic}:={TOPIC}", **CHOSEN, **changes)


def is_new(host, before):
    return is_controlled(host) and not np.allclose(host.efforts, before, atol=1e-3)


ROBOTS = {
    "quadruped": {"base": BASE},
    "arm": {
        "file": CONFIG / "arms" / "panda.yaml",
        "joints": [f"panda_joint{k}" for k in range(1, 8)],
        "motor_constant_nm_sqrt_w": [1.0],
        # One finger slides along -y, which the plugin does not take.
        "locked_joints": ["panda_finger_joint1=0.02", "panda_finger_joint2=0.02"],
        "position": np.array([0.3, -0.4, 0.2, -2.0, 0.1, 2.1, 0.7]),
        "velocity": 0.01 * np.arange(1.0, 8.0),
    },
}


@pytest.mark.parametrize("robot", ROBOTS)
def test_it_holds_its_posture_then_applies_our_law(host_of, robot):
    """Left and right apart, and the base moves: each torque is that of its joint, to rounding."""
    host = host_of(**ROBOTS[robot])
    damping = np.array([host.law[name]["d"] for name in host.joints])
    assert host.until(lambda: np.abs(host.efforts + damping * host.velocity).max() < 1e-9)
    robot, (q, v) = host.robot, host.state()
    feedback = random_feedback(robot)
    away = 0.3 * np.random.default_rng(1).normal(size=(2, robot.nv))
    feedback.q[:], feedback.v[:] = pin.integrate(robot.model, q, away[0]), v + away[1]
    expected = feedback.torques(q, v)
    assert np.abs(expected).max() > 1.0
    message = FeedbackMessage(robot, message_class(ROW))
    message.fill(feedback)
    publisher = host.node.create_publisher(message_class(ROW), TOPIC, RELIABLE)
    host.every(0.005, lambda: message.publish(publisher))
    assert host.until(lambda: np.abs(host.efforts - expected).max() < 1e-9), host.efforts - expected


def test_our_controller_holds_the_arm_through_it(host_of):
    host = host_of(**ROBOTS["arm"] | {"velocity": np.zeros(7)})
    robot, (q, _) = host.robot, host.state()
    process = controller(host, TOPIC, **host.section | {"autostart": True})
    held = pin.computeGeneralizedGravity(robot.model, robot.data, q)[robot.actuated]
    assert np.abs(held).max() > 10.0
    assert host.until(lambda: np.allclose(host.efforts, held, atol=1e-3)), host.log()
    assert process.poll() is None and "Traceback" not in host.log()


def test_kill_of_the_controller_is_damped_without_its_gain_and_its_successor_followed(host_of):
    host = host_of()
    guard = watchdog(host)
    for _ in range(2):
        before = host.efforts  # at first the plugin holds the posture, then the watchdog damps
        process = controller(host)
        assert host.until(lambda before=before: is_new(host, before)), host.log()
        process.kill()
        assert host.holds(DAMPING), host.log()
    assert guard.poll() is None and "Traceback" not in host.log()


def test_without_a_watchdog_the_last_command_acts_for_ever_and_again_after_another_controller(
    host_of,
):
    """It has no time-out, its deactivation writes nothing, and its activation forgets nothing."""
    host = host_of()
    before = host.efforts
    process = controller(host, TOPIC)
    assert host.until(lambda: is_new(host, before)), host.log()
    process.kill()
    assert host.hears(20)
    held = host.efforts
    assert host.hears(100) and np.allclose(host.efforts, held)
    assert host.switch([], list(TOGETHER)), host.log()
    assert host.hears(100) and np.allclose(host.efforts, held) and held.any()
    host.spawn("effort_controller")
    assert host.switch(["effort_controller"], [])
    host.send(SOME)
    assert host.holds(SOME)
    assert host.switch(list(TOGETHER), ["effort_controller"]), host.log()
    assert host.holds(held), host.efforts


def test_another_order_is_refused(host_of):
    host = host_of(order=JOINTS)
    assert controller(host).wait(300.0) == 1
    assert in_log(host, "make them the same")
