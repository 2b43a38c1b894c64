"""A controller node in this process, and a peer that plays robot and planner over real topics."""

import itertools
import math

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robots import JOINTS, QUADRUPED_FEET, STANDING
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import (
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
)
from waiting import PATIENCE_S, until

from contact_id_controller.ros.controller import ControllerNode

FEET = QUADRUPED_FEET
HEIGHT_M = 0.162
VELOCITY = 0.01 * np.arange(1, 13)
SETTLING_TURNS = 20
"""Turns of the executor without a command, each of one message, after which none is due."""
_NUMBERS = itertools.count()
RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)


def parameters(**changes):
    """Parameters of a controller that loses no message and does not watch the time."""
    values = {
        "urdf": "package://contact_id_controller/urdf/quadruped.urdf",
        "joints": JOINTS,
        "contact_frames": FEET,
        "contact_radii_m": 0.01,
        "reliable_topics": True,
        "stamp_reference": "stream",
        "state_timeout_s": 10.0,
        "damping_nm_s_rad": 0.5,
        # Commands as they are meant, and time may make steps.
        "start_ramp_s": 0.0,
        "blend_rate_nm_s": float("inf"),
        "recovery_window_s": 60.0,
        "live_models": ["none/pid"],
    }
    values.update(changes)
    return values


def stamp(header, time_s):
    header.stamp.sec, header.stamp.nanosec = divmod(round(time_s * 1e9), 1_000_000_000)


def joint_state(time_s, names=JOINTS, position=STANDING, velocity=VELOCITY):
    message = JointState(
        name=list(names), position=list(map(float, position)), velocity=list(map(float, velocity))
    )
    stamp(message.header, time_s)
    return message


def odometry(time_s, quaternion=(0.0, 0.0, 0.0, 1.0), height_m=HEIGHT_M):
    message = Odometry(child_frame_id="base")
    message.header.frame_id = "world"
    stamp(message.header, time_s)
    message.pose.pose.position.z = float(height_m)
    turn = message.pose.pose.orientation
    turn.x, turn.y, turn.z, turn.w = quaternion
    return message


def joint_trajectory(times_s, positions, names=JOINTS, start_s=0.0, velocities=None):
    message = JointTrajectory(joint_names=list(names))
    stamp(message.header, start_s)
    for k, time_s in enumerate(times_s):
        point = JointTrajectoryPoint(positions=list(map(float, positions[k])))
        if velocities is not None:
            point.velocities = list(map(float, velocities[k]))
        whole = round(time_s * 1e9)
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(whole, 1_000_000_000)
        message.points.append(point)
    return message


class Bench:
    """Controller and peer; `close` ends both."""

    def __init__(self, **changes):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        overrides = [Parameter(name, value=value) for name, value in parameters(**changes).items()]
        # A namespace of its own: benches may live at the same time.
        names = {"context": self.context, "namespace": f"/bench_{next(_NUMBERS)}"}
        self.node = ControllerNode(parameter_overrides=overrides, **names)
        self.commands, self.diagnostics = [], []
        self.peer = rclpy.create_node("peer", **names)
        publish, listen = self.peer.create_publisher, self.peer.create_subscription
        self._joints = publish(JointState, "joint_states", RELIABLE)
        self._odometry = publish(Odometry, "odometry", RELIABLE)
        self._plans = {
            topic: publish(kind, topic, RELIABLE)
            for topic, kind in (
                ("joint_trajectory", JointTrajectory),
                ("contact_schedule", JointTrajectory),
                ("base_trajectory", MultiDOFJointTrajectory),
            )
        }
        listen(Float64MultiArray, "commands", self._on_command, RELIABLE)
        listen(DiagnosticArray, "/diagnostics", self.diagnostics.append, RELIABLE)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.executor.add_node(self.peer)

    def _on_command(self, message):
        self.commands.append(np.array(message.data))

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.peer.destroy_node()
        rclpy.shutdown(context=self.context)

    def start(self):
        """Configure, activate and wait until both sides know each other."""
        self.configure()
        assert self.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        # A match is announced to one side before the other: the first state may be sent again.
        for attempt in range(100):
            answer = self.answer(1e-3 * (1 + attempt), patience_s=0.1)
            if answer is not None:
                self.settle()  # states that were sent twice are answered twice
                return answer
        raise AssertionError("the controller does not answer")

    def configure(self, start_s=0.0):
        """Configure, wait until both sides know each other, and make the robot's state known."""
        assert self.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert self.until(self.knows_the_node)
        self.make_ready(start_s)

    def activate(self):
        """Make the robot's state known, and activate."""
        self.make_ready()
        return self.node.trigger_activate()

    def make_ready(self, start_s=0.0):
        """Send states until the node knows one, at a time before that of the tests."""
        # Stamps of these tests go on by seconds at once.
        self.node.loop.guard.checks.stamps.passed_s = lambda: math.inf
        for attempt in range(100):
            self.send(start_s + 1e-5 * (1 + attempt))
            if self.until(lambda: not self.node.not_ready, 0.1):
                return
        raise AssertionError(f"never ready: {self.node.not_ready}")

    def settle(self):
        """Spin until nothing that was sent is left, by turns: on a busy machine a time says nothing."""
        count, quiet = len(self.commands), 0
        for _ in range(5 * SETTLING_TURNS):  # where states have stopped, commands come for ever
            self.executor.spin_once(timeout_sec=0.002)
            quiet = quiet + 1 if len(self.commands) == count else 0
            count = len(self.commands)
            if quiet == SETTLING_TURNS:
                break

    def knows_the_node(self):
        """Whether all publishers and subscriptions have met their peers."""
        publishers = [self._odometry, self._joints, *self._plans.values()]
        met = all(publisher.get_subscription_count() for publisher in publishers)
        return met and self.count_publishers() > 0

    def count_publishers(self):
        """How many publish commands here."""
        return self.peer.count_publishers("commands")

    def until(self, condition, patience_s=PATIENCE_S):
        """Spin until a condition holds; whether it does."""
        return until(condition, patience_s, lambda: self.executor.spin_once(timeout_sec=0.02))

    def answer(self, time_s, joints=None, base=None, patience_s=PATIENCE_S):
        """Send a state; the command that answers it, or None. `base` False: no odometry."""
        count = len(self.commands)
        self.send(time_s, joints, base)
        self.until(lambda: len(self.commands) > count, patience_s)
        return self.commands[-1] if len(self.commands) > count else None

    def send(self, time_s, joints=None, base=None):
        """Publish odometry and joint state of one time."""
        if base is not False:
            self._odometry.publish(base or odometry(time_s))
        self._joints.publish(joints or joint_state(time_s))

    def withdraw(self, topic):
        """Send no more plans on a topic."""
        self.peer.destroy_publisher(self._plans.pop(topic))

    @property
    def states_topic(self):
        """Full name of the topic of joint states."""
        return self._joints.topic_name

    def plan(self, topic, message, reason=None):
        """Send a plan and wait until it is taken, or refused as `reason`."""
        refused = self.refusals(reason or topic)
        taken = len(self.taken)
        self._plans[topic].publish(message)
        if reason:
            return self.until(lambda: self.refusals(reason) > refused)
        return self.until(lambda: len(self.taken) > taken)

    @property
    def taken(self):
        """Plans that the controller took; spied on since the first call."""
        if not hasattr(self, "_taken"):
            self._taken = []
            follow = self.node.loop.controller.follow

            def spied(plan, now_s):
                follow(plan, now_s)
                self._taken.extend(plan.parts.values())

            self.node.loop.controller.follow = spied
        return self._taken

    def refusals(self, reason):
        return self.node.loop.monitor.refusals[reason]
