"""The controller as users run it: a process of its own, met over real topics and services."""

import os
import signal

import numpy as np
import pytest
from node_process import NodeProcess

pytest.importorskip("rclpy", reason="needs ROS 2")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import Odometry
from ros_bench import (
    JOINTS,
    PATIENCE_S,
    RELIABLE,
    VELOCITY,
    joint_state,
    joint_trajectory,
    odometry,
    parameters,
)
from ros_peer import RosPeer
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

PERIOD_S = 0.001
STATES = 300
COMPILING_S = 300.0


class Process(NodeProcess):
    """The controller's process; with its output in a file."""

    def __init__(self, name, folder, values):
        self.log = folder / "controller.log"
        environment = {**os.environ, "ROS_LOG_DIR": str(folder)}
        with open(self.log, "wb") as output:
            super().__init__(name, folder, values, stdout=output, env=environment)

    def finish(self, number=signal.SIGINT):
        if self.is_running():
            self.send_signal(number)
        return self.wait(PATIENCE_S)

    def text(self):
        return self.log.read_text()


@pytest.fixture
def start(node_of):
    return lambda **changes: node_of("controller", parameters(**changes), Process)


@pytest.fixture
def robot(closing):
    return closing(Robot())


class Robot(RosPeer):
    """Plays the robot and the planner."""

    def __init__(self):
        super().__init__("robot")
        self.commands, self.markers = [], []
        self.joints = self.node.create_publisher(JointState, "joint_states", RELIABLE)
        self.odometry = self.node.create_publisher(Odometry, "odometry", RELIABLE)
        self.plans = self.node.create_publisher(JointTrajectory, "joint_trajectory", RELIABLE)
        self.node.create_subscription(Float64MultiArray, "commands", self._on_command, RELIABLE)
        self.lifecycle = self.node.create_client(ChangeState, "controller/change_state")

    def _on_command(self, message):
        self.commands.append(np.array(message.data))

    def meet(self):
        """Wait for the controller, which may be compiling; its first answers are not counted."""
        assert self.until(
            lambda: (
                self.joints.get_subscription_count()
                and self.odometry.get_subscription_count()
                and self.plans.get_subscription_count()
                and self.node.count_publishers("commands")
            ),
            COMPILING_S,
        )
        for attempt in range(1, 200):
            self.send(attempt * 1e-9)
            if self.until(lambda: self.commands, 1.0):
                break
        # Only the answer to this one damps this velocity; all answers before it are then here.
        unique = -VELOCITY[::-1]
        self.odometry.publish(odometry(1e-6, height_m=np.nan))
        self.joints.publish(joint_state(1e-6, velocity=unique))
        assert self.until(lambda: self.commands and np.allclose(self.commands[-1], -0.5 * unique))
        self.commands.clear()

    def activate(self):
        """Send states until the controller knows one and can be activated."""
        for attempt in range(1, 200):
            self.send(attempt * 1e-9)
            if self.change(Transition.TRANSITION_ACTIVATE):
                return True
            self.until(lambda: False, 0.1)
        return False

    def send(self, time_s, joints=None):
        self.odometry.publish(odometry(time_s))
        self.joints.publish(joints or joint_state(time_s))

    def change(self, transition):
        assert self.lifecycle.wait_for_service(PATIENCE_S)
        request = ChangeState.Request(transition=Transition(id=transition))
        future = self.lifecycle.call_async(request)
        assert self.until(future.done, COMPILING_S)
        return future.result().success


def test_lockstep_answers_every_state_once_then_ends_safely_with_its_record(start, robot, tmp_path):
    controller = start(mode="lockstep", autostart=True, record_path=str(tmp_path / "record.npz"))
    robot.meet()
    for number in range(1, STATES + 1):
        robot.send(number * PERIOD_S)
        assert robot.until(lambda: len(robot.commands) == number), controller.text()
    assert np.isfinite(robot.commands).all()
    nan = [float("nan")] * 12
    robot.send(0.4, joint_state(0.4, position=nan))
    assert robot.until(lambda: len(robot.commands) == STATES + 1)
    assert np.allclose(robot.commands[-1], -0.5 * VELOCITY)
    robot.plans.publish(joint_trajectory([0.1], [[0.0]], ["tail"]))
    robot.send(0.5)
    assert robot.until(lambda: len(robot.commands) == STATES + 2)
    assert not np.allclose(robot.commands[-1], -0.5 * VELOCITY, atol=1e-3)
    assert controller.finish() == 0
    # The last word is the safe output, even of a process that was interrupted.
    assert robot.until(lambda: len(robot.commands) == STATES + 3)
    assert np.allclose(robot.commands[-1], -0.5 * VELOCITY)
    assert "Traceback" not in controller.text()
    record = np.load(tmp_path / "record.npz")
    assert np.allclose(record["time_s"][-STATES - 1 : -1], PERIOD_S * np.arange(1, STATES + 1))
    assert np.array_equal(record["torques"][-STATES - 1 : -1], robot.commands[:STATES])
    refused = dict(zip(record["refused_reasons"].tolist(), record["refused_counts"].tolist()))
    # From ``meet``: states that were still waiting then meet its odometry, too.
    assert refused.pop("odometry_not_finite") >= 1
    assert refused == {"joint_state_not_finite": 1, "joint_trajectory": 1}


def test_in_lockstep_a_state_before_its_odometry_waits_and_is_answered_when_that_comes(
    start, robot
):
    """As behind an estimator, whose odometry needs the joint state first."""
    controller = start(mode="lockstep", autostart=True)
    robot.meet()
    robot.send(PERIOD_S)
    assert robot.until(lambda: len(robot.commands) == 1), controller.text()
    for number in range(2, 42):
        robot.joints.publish(joint_state(number * PERIOD_S))
        assert not robot.until(lambda: len(robot.commands) == number, 0.01)
        robot.odometry.publish(odometry(number * PERIOD_S))
        assert robot.until(lambda: len(robot.commands) == number), controller.text()
    assert np.isfinite(robot.commands).all()


def test_lifecycle_services_and_markers(start, robot):
    controller = start(mode="lockstep")
    for _ in range(2):
        assert robot.change(Transition.TRANSITION_CONFIGURE), controller.text()
        assert robot.activate(), controller.text()
        robot.commands.clear()
        robot.meet()
        robot.send(PERIOD_S)
        assert robot.until(lambda: len(robot.commands) == 1)
        robot.commands.clear()
        assert robot.change(Transition.TRANSITION_DEACTIVATE)
        assert robot.until(lambda: len(robot.commands) == 1)
        assert np.allclose(robot.commands[-1], -0.5 * VELOCITY)
        assert robot.change(Transition.TRANSITION_CLEANUP)
    assert not robot.change(Transition.TRANSITION_ACTIVATE)
    assert robot.change(Transition.TRANSITION_CONFIGURE)
    assert robot.activate(), controller.text()
    robot.commands.clear()
    robot.meet()
    robot.node.create_subscription(
        MarkerArray, "controller/contact_forces", robot.markers.append, 1
    )
    robot.send(PERIOD_S)
    assert robot.until(lambda: robot.markers)
    assert len(robot.markers[0].markers) == 8
    assert robot.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert controller.wait(PATIENCE_S) == 0


def test_process_that_cannot_start_by_itself_ends_with_one_line(start):
    controller = start(autostart=True, joints=[*JOINTS, "tail"])
    assert controller.wait(PATIENCE_S) == 1
    lines = controller.text().strip().splitlines()
    assert len(lines) == 1
    assert "'tail'" in lines[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_an_idle_process_in_order(start, robot, number):
    controller = start()
    assert robot.lifecycle.wait_for_service(PATIENCE_S)
    assert controller.finish(number) == 0
    assert controller.text().strip() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_an_active_process_leaves_the_safe_output(start, robot, number):
    controller = start(mode="lockstep", autostart=True)
    robot.meet()
    robot.send(PERIOD_S)
    assert robot.until(lambda: len(robot.commands) == 1), controller.text()
    assert not np.allclose(robot.commands[-1], -0.5 * VELOCITY, atol=1e-3)
    assert controller.finish(number) == 0
    assert robot.until(lambda: len(robot.commands) == 2), controller.text()
    assert np.allclose(robot.commands[-1], -0.5 * VELOCITY)
