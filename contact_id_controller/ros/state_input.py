"""Reads JointState and Odometry, and passes them to the checks of `safety.states`."""

from __future__ import annotations

import time
from collections.abc import Sequence

from contact_id_controller.ros.conversions import JointStateReader, OdometryReader
from contact_id_controller.safety.states import (
    CONFIRMS_NS,
    FASTEST,
    FORGETS,
    LONGEST_SILENCE_S,
    JointReading,
    Refusal,
    StateChecks,
)
from contact_id_controller.state import RobotState

AHEAD_NS = 10_000_000
"""Largest increase of the stamps that no time explains: states that arrive together, at 200 Hz two."""


class StampWatch:
    """Distinguishes a jump of the robot's time from a wrong stamp: the state after a jump confirms it.

    Stamps may increase by as much as the wall time that has passed explains (`FASTEST`, `LONGEST_SILENCE_S`): a node
    that was busy meanwhile takes one state alone. Beyond that by `AHEAD_NS`, or twice the largest recent such increase:
    states may be rare and uneven.

    Args:
        jump_ns: least step back of the stamps that is a jump.
    """

    def __init__(self, jump_ns: int) -> None:
        self._least_ns = jump_ns
        self._last_ns: int | None = None
        self._taken_s = 0.0
        self._step_ns = 0.0
        self._jumped_ns: int | None = None

    def believes(self, stamp_ns: int) -> bool:
        """Whether this stamp follows the last one, or confirms a jump."""
        jumped_ns, now_s = self._jumped_ns, time.monotonic()
        step_ns = 0 if self._last_ns is None else stamp_ns - self._last_ns
        passed_ns = round(1e9 * min(FASTEST * (now_s - self._taken_s), LONGEST_SILENCE_S))
        most_ns = max(AHEAD_NS, 2 * self._step_ns) + passed_ns
        goes_on = -self._least_ns <= step_ns <= most_ns
        confirms = jumped_ns is not None and 0 <= stamp_ns - jumped_ns <= CONFIRMS_NS
        if goes_on or confirms:
            if 0 < step_ns <= CONFIRMS_NS:
                self._step_ns = max(step_ns - passed_ns, FORGETS * self._step_ns)
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
