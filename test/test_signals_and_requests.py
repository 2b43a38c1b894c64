"""What ends or attacks a process of ours, as users run it: signals, requests, bytes. Over real topics."""

import os
import signal

import pytest
import yaml
from node_process import NodeProcess
from paths import ROOT
from robots import QUADRUPED, QUADRUPED_FEET
from ros2_control_hosts import kill_all_of
from waiting import PATIENCE_S

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from nav_msgs.msg import Odometry  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters, SetParametersAtomically  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from ros_peer import RosPeer  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from trajectory_msgs.msg import (  # noqa: E402
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
)

JOINTS = ["hip", "knee", "ankle"]
STANDING = [0.1, 0.8, 1.2, -0.1, -0.8, -1.2, -0.1, -0.8, -1.2, 0.1, 0.8, 1.2]
ROBOT = {"urdf": QUADRUPED, "contact_frames": QUADRUPED_FEET, "contact_radii_m": [0.01]}
SECTIONS = yaml.safe_load((ROOT / "config/quadruped.yaml").read_text())
NODES = {
    "controller": ROBOT,
    "command_watchdog": {"joints": JOINTS, "effort_limits_nm": [5.0]},
    "gait_planner": SECTIONS["gait_planner"]["ros__parameters"],
    "simulated_robot": {**ROBOT, "initial_joint_positions": STANDING, "stop_when_fallen": False},
}
TOPICS = {
    "commands": Float64MultiArray,
    "commands_in": Float64MultiArray,
    "joint_states": JointState,
    "odometry": Odometry,
    "joint_trajectory": JointTrajectory,
    "base_trajectory": MultiDOFJointTrajectory,
}


class Peer(RosPeer):
    """A node that attacks, and the process of a node of ours."""

    def __init__(self, name, folder):
        self.name, self.log = name, folder / "log"
        environment = {**os.environ, "ROS_LOG_DIR": str(folder)}
        with open(self.log, "wb") as output:
            options = {"stdout": output, "env": environment, "start_new_session": True}
            self.process = NodeProcess(name, folder, NODES[name], **options)
        super().__init__("attacker")

    def turn(self):
        assert self.process.poll() is None, self.log.read_text()
        super().turn()

    def services(self):
        # Not by node: the watchdog's reserve has its name and none of these.
        own = f"/{self.name}/"
        names = [name for name, _ in self.node.get_service_names_and_types()]
        return {name.removeprefix(own) for name in names if name.startswith(own)}

    def close(self):
        kill_all_of(self.process)
        self.process.wait()
        super().close()


@pytest.fixture
def peer_of(closing, tmp_path):
    return lambda name: closing(Peer(name, tmp_path))


@pytest.mark.parametrize("name", [name for name in NODES if name != "command_watchdog"])
def test_no_malformed_parameter_request_ends_a_process(peer_of, name):
    """`value.type = 77` ended each of them with a traceback."""
    peer = peer_of(name)
    for kind, service in (
        (SetParameters, "set_parameters"),
        (SetParametersAtomically, "set_parameters_atomically"),
    ):
        client = peer.node.create_client(kind, f"{name}/{service}")
        assert peer.until(client.service_is_ready), peer.log.read_text()
        for value in (
            ParameterValue(type=77),
            ParameterValue(type=3, string_value="x" * 10_000),
            ParameterValue(type=8, double_array_value=[0.0] * 1_000_000),
            ParameterValue(type=9, string_array_value=["x"] * 100_000),
        ):
            for parameter in ("period_s", "", "no_such", "x" * 100_000, "a\0b", "use_sim_time"):
                asked = client.call_async(
                    kind.Request(parameters=[Parameter(name=parameter, value=value)])
                )
                assert peer.until(asked.done), peer.log.read_text()
                answer = asked.result()
                results = answer.results if kind is SetParameters else [answer.result]
                assert not any(result.successful for result in results), (parameter, value.type)
                assert all(result.reason for result in results)
    assert "Traceback" not in peer.log.read_text()
    peer.process.send_signal(signal.SIGTERM)
    assert peer.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("name", NODES)
def test_no_bytes_on_a_topic_end_a_process(peer_of, name):
    peer = peer_of(name)
    last = "emergency_stop" if name in ("controller", "command_watchdog") else "get_parameters"
    assert peer.until(lambda: last in peer.services()), peer.log.read_text()
    publishers = {
        topic: peer.node.create_publisher(kind, topic, 1) for topic, kind in TOPICS.items()
    }
    assert peer.until(
        lambda: (
            name == "controller"
            or any(publisher.get_subscription_count() for publisher in publishers.values())
        )
    )
    for topic, publisher in publishers.items():
        good = serialize_message(TOPICS[topic]())
        for data in (
            b"",
            b"\0",
            b"\0\1\0\0",
            b"\0\1\0\0" + b"\xff" * 100,
            good[: len(good) // 2],
            good + b"\xff" * 1000,
            b"\7\7\7\7" + good[4:],
            serialize_message(JointTrajectory(points=[JointTrajectoryPoint()] * 20_000)),
        ):
            for _ in range(5):
                publisher.publish(data)
                peer.executor.spin_once(timeout_sec=0.002)
    peer.until(lambda: False, 0.5)
    assert peer.process.poll() is None, peer.log.read_text()
    peer.process.send_signal(signal.SIGTERM)
    assert peer.process.wait(PATIENCE_S) == 0, peer.log.read_text()


def test_the_watchdog_cannot_be_asked_for_parameters(peer_of):
    peer = peer_of("command_watchdog")
    assert peer.until(lambda: "reset" in peer.services()), peer.log.read_text()
    assert peer.services() == {"reset", "emergency_stop"}
