"""Linear feedback as linear_feedback_controller_msgs/Control, and back.

Layout of the package's versions 1.2 to 4.0: ``feedback_gain`` and ``feedforward`` are Float64MultiArrays of two
dimensions, rows and cols, row by row, the vector as one column; ``initial_state`` is a Sensor with base_pose,
base_twist (in the base frame) and joint_state. The plugin's law is that of ``plans.state_feedback``: rows
go to its command interfaces in their order, columns are Pinocchio's coordinates of its model. It reads
measured joints in the order of that model whatever its parameters are, and permutes them and those of the
message alike by moving_joint_names. So rows, columns and ``joint_state`` are in the model's order here, and
moving_joint_names and chainable_controller.command_interfaces must name the joints in it, too. Readers use the names.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from contact_id_controller.exceptions import StateError
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.ros.command_messages import CommandMessages, Forwarder
from contact_id_controller.ros.packed import read_message, stamp_parts
from contact_id_controller.settings.shared_rows import GREATEST_LOCAL_GAIN

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel

_NANO = 1_000_000_000


class FeedbackMessage:
    """The message Control, of class ``kind``, of one robot, made once and refilled."""

    def __init__(self, robot: RobotModel, kind: type[Any]) -> None:
        self._robot, self._order = robot, robot.model_order
        self.message: Any = kind()
        gain = _matrix(robot.na, 2 * robot.nv, self.message.feedback_gain)
        self._gain = gain.reshape(robot.na, 2 * robot.nv)
        self._effort = _matrix(robot.na, 1, self.message.feedforward)
        state = self.message.initial_state.joint_state
        state.name = [robot.joint_names[place] for place in self._order]

    def fill(self, feedback: StateFeedback) -> None:
        """Write a feedback into the message."""
        message, robot, order = self.message, self._robot, self._order
        self._gain[:] = feedback.gain[order]
        self._effort[:] = feedback.effort[order]
        sensor = message.initial_state
        for header in (message.header, sensor.header):
            header.stamp.sec, header.stamp.nanosec = stamp_parts(round(feedback.time_s * _NANO))
        if robot.floating_base:
            pose, twist = sensor.base_pose, sensor.base_twist
            _put(pose.position, feedback.q[:3])
            _put(pose.orientation, feedback.q[3:7])
            _put(twist.linear, feedback.v[:3])
            _put(twist.angular, feedback.v[3:6])
        joints = sensor.joint_state
        joints.position = array.array("d", robot.joints_of(feedback.q)[order].tolist())
        joints.velocity = array.array("d", feedback.v[robot.actuated][order].tolist())
        joints.effort = array.array("d", feedback.effort[order].tolist())

    def publish(self, publisher: Any) -> None:
        """Publish the message with its present numbers, through the ordinary serialiser."""
        publisher.publish(self.message)


def read_control(message: Any, joint_names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Feed-forward (na,) and gain (na, columns) of a Control, in the order of ``joint_names``.

    The plugin uses its state even where the gain is zero: a number there that is not finite makes the torque not
    finite.

    Raises:
        StateError: other joints, another shape, a number that is not finite, a gain above GREATEST_LOCAL_GAIN.
    """
    names = list(message.initial_state.joint_state.name)
    if sorted(names) != sorted(joint_names):
        raise StateError(f"the message has joints {names}, must have {list(joint_names)}")
    places = _places(names, joint_names)
    effort, gain = _read(message.feedforward), _read(message.feedback_gain)
    rows = len(names)
    if effort.shape != (rows, 1) or len(gain) != rows:
        raise StateError(
            f"feed-forward and gain have shapes {effort.shape} and {gain.shape}, must have {rows} rows"
        )
    columns = gain.shape[1]
    if columns % 2 or columns < 2 * rows:
        raise StateError(
            f"the gain has {columns} columns, must have two for each coordinate of the motion"
        )
    if not (np.isfinite(effort).all() and np.isfinite(gain).all()):
        raise StateError("a number of feed-forward or gain is not finite")
    position, velocity, base = _state_of(message.initial_state)
    if len(position) != rows or len(velocity) != rows:
        raise StateError(f"the state must have {rows} positions and velocities")
    if not all(np.isfinite(part).all() for part in (position, velocity, base)):
        raise StateError("a number of the state is not finite")
    greatest = np.abs(gain).max(initial=0.0)
    if greatest > GREATEST_LOCAL_GAIN:
        raise StateError(f"a gain is {greatest:.3g}, must be at most {GREATEST_LOCAL_GAIN:g}")
    return effort[places, 0], gain[places]


def read_feedback(message: Any, robot: RobotModel) -> StateFeedback:
    """The feedback of a Control for a robot.

    Raises:
        StateError: see ``read_control``; also a quaternion that is not of unit length.
    """
    effort, gain = read_control(message, robot.joint_names)
    feedback = StateFeedback(robot)
    if gain.shape != feedback.gain.shape:
        raise StateError(f"the gain has shape {gain.shape}, must have {feedback.gain.shape}")
    feedback.effort[:], feedback.gain[:] = effort, gain
    stamp = message.header.stamp
    feedback.time_s = stamp.sec + stamp.nanosec / _NANO
    position, velocity, base = _state_of(message.initial_state)
    places = _places(message.initial_state.joint_state.name, robot.joint_names)
    q, v = feedback.q, feedback.v
    robot.put_joints(q, np.array(position)[places])
    v[robot.actuated] = np.array(velocity)[places]
    if robot.floating_base:
        q[:7], v[:6] = base[:7], base[7:]
        norm = np.linalg.norm(q[3:7])
        if not abs(norm - 1.0) <= 1e-3:
            raise StateError(f"the base's quaternion has norm {norm:.6g}, must be 1")
    return feedback


def set_feedback(
    message: Any, joint_names: Sequence[str], effort: np.ndarray, *, keep_gain: bool
) -> None:
    """Replace the feed-forward (na,) of a Control, and zero its gain unless ``keep_gain``."""
    places = _places(joint_names, message.initial_state.joint_state.name)
    message.feedforward.data = array.array("d", effort[places].tolist())
    if not keep_gain:
        message.feedback_gain.data = array.array("d", bytes(8 * len(message.feedback_gain.data)))


class FeedbackForwarder(Forwarder):
    """Forwards the feedback unchanged, and torques within the limits."""

    def __init__(self, joints: Sequence[str], kind: type[Any]) -> None:
        self._joints, self._kind = list(joints), kind
        self._read: Any = None
        self._forwarded: Any = None
        self.prepared = False  # a message tells the size of its gain, which a stop sets to zero

    def read(self, data: bytes) -> np.ndarray:
        """The torques (1, n) of a message; raises as ``read_control``."""
        message = read_message(self._kind, data)
        efforts, _ = read_control(message, self._joints)
        self._read = message
        return efforts[None]

    def keep(self, data: bytes) -> None:
        """Keep a good message as the template of a stop."""
        self.read(data)
        self._forwarded, self.prepared = self._read, True

    def forward(self, publisher: Any, efforts: np.ndarray) -> None:
        set_feedback(self._read, self._joints, efforts[0], keep_gain=True)
        self._forwarded, self.prepared = self._read, True
        publisher.publish(self._forwarded)

    def stop(self, publisher: Any, torques: np.ndarray, position: np.ndarray) -> None:
        """Send torques without feedback; nothing before the first message."""
        if self._forwarded is not None:
            set_feedback(self._forwarded, self._joints, torques, keep_gain=False)
            publisher.publish(self._forwarded)


class FeedbackMessages(CommandMessages):
    """See `CommandMessages`."""

    def writer(self, robot: RobotModel, command: StateFeedback) -> FeedbackMessage:
        return FeedbackMessage(robot, self.kind)

    def reader(self, robot: RobotModel) -> Callable[[bytes], StateFeedback]:
        return lambda data: read_feedback(read_message(self.kind, data), robot)

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        return FeedbackForwarder(joints, self.kind)


def _matrix(rows: int, columns: int, message: Float64MultiArray) -> np.ndarray:
    """Give a message the layout of a matrix; return a view of its numbers, (rows * columns,)."""
    message.layout.data_offset = 0
    message.layout.dim = [
        MultiArrayDimension(label="rows", size=rows, stride=rows * columns),
        MultiArrayDimension(label="cols", size=columns, stride=columns),
    ]
    message.data = array.array("d", bytes(8 * rows * columns))
    return np.frombuffer(message.data)


def _places(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Index of each wanted name among the names."""
    names = list(names)
    return [names.index(name) for name in wanted]


def _read(message: Float64MultiArray) -> np.ndarray:
    dims = [dim.size for dim in message.layout.dim]
    if len(dims) != 2 or dims[0] * dims[1] != len(message.data) or message.layout.data_offset:
        raise StateError(f"a matrix of dimensions {dims} has {len(message.data)} numbers")
    return np.array(message.data).reshape(dims)


def _state_of(sensor: Any) -> tuple[Any, Any, tuple[float, ...]]:
    """Positions and velocities of the joints of a Sensor, and its base's pose and twist (13)."""
    joints = sensor.joint_state
    p, o = sensor.base_pose.position, sensor.base_pose.orientation
    u, w = sensor.base_twist.linear, sensor.base_twist.angular
    base = p.x, p.y, p.z, o.x, o.y, o.z, o.w, u.x, u.y, u.z, w.x, w.y, w.z
    return joints.position, joints.velocity, base


def _put(fields: Any, values: np.ndarray) -> None:
    for name, value in zip("xyzw", values.tolist()):
        setattr(fields, name, value)
