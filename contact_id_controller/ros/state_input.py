"""Reads JointState and Odometry, and passes them to the checks of `safety.states`."""

from __future__ import annotations

import time
from collections.abc import Sequence

from contact_id_controller.ros.conversions import JointStateReader, OdometryReader
from contact_id_controller.safety.states import JointReading, Refusal, StateChecks
from contact_id_controller.state import RobotState

JUMP_NS = 1_000_000_000
"""Largest increase of the stamps between two states beyond the wall time that has passed; a larger one is a jump."""

LONGEST_BUSY_S = 60.0
"""Longest wall time for which a planner is busy: a whole-body plan takes seconds, on a full machine several times that.
Who has heard nothing for longer needs a second state to believe that time went on."""


class StampWatch:
    """Distinguishes a jump of the robot's time from a wrong stamp: the state after a jump confirms it.

    Stamps may increase by as much wall time as has passed, up to `LONGEST_BUSY_S`: a node that was busy meanwhile takes
    one state alone.

    Args:
        back_ns: largest decrease of the stamps without a jump.
    """

    def __init__(self, back_ns: int) -> None:
        self._back_ns = back_ns
        self._last_ns: int | None = None
        self._taken_s = 0.0
        self._jumped_ns: int | None = None

    def believes(self, stamp_ns: int) -> bool:
        """Whether this stamp follows the last one, or confirms a jump."""
        last_ns, jumped_ns, now_s = self._last_ns, self._jumped_ns, time.monotonic()
        most_ns = JUMP_NS + round(1e9 * min(now_s - self._taken_s, LONGEST_BUSY_S))
        goes_on = last_ns is None or -self._back_ns <= stamp_ns - last_ns <= most_ns
        confirms = jumped_ns is not None and 0 <= stamp_ns - jumped_ns <= JUMP_NS
        if goes_on or confirms:
            self._last_ns, self._taken_s, self._jumped_ns = stamp_ns, now_s, None
            return True
        self._jumped_ns = stamp_ns
        return False


class StateInput:
    """Reads the messages of one robot's state.

    Args:
        joint_names: the joints that are read from each message.
        checks: checks what was read.
        confirmations: of `OdometryReader`.
    """

    def __init__(
        self, joint_names: Sequence[str], checks: StateChecks, confirmations: int = 0
    ) -> None:
        self.joints = JointStateReader(joint_names)
        self.odometry = OdometryReader(confirmations)
        self.checks = checks

    def take_odometry(self, message: bytes) -> None:
        """Keep the newest odometry; a bad one makes the next state refused."""
        self.checks.take_base(*self.odometry.read(message))

    def read(self, message: bytes) -> JointReading | Refusal:
        """The joints of a JointState, or why it lacks some."""
        return self.joints.read(message)

    def take_joint_state(self, message: bytes, now_ns: int | None) -> RobotState | Refusal:
        """The state of the robot, or why it is refused; see `StateChecks.take`."""
        joints = self.read(message)
        return joints if isinstance(joints, Refusal) else self.checks.take(joints, now_ns)
