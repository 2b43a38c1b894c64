"""Planned motion as functions of time: joints, floating base, contacts.

Each plan is checked when it is made and sampled in the control loop. Times of points are relative
to the plan's start. The rules are those of ros2_control's joint_trajectory_controller.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Container, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import TrajectoryError, choices
from contact_id_controller.kernels.views import dense
from contact_id_controller.plans.base_trajectory import BaseReference, BaseTrajectory
from contact_id_controller.plans.interpolation import segment_coefficients
from contact_id_controller.plans.points import checked_array, checked_start, checked_times, started
from contact_id_controller.plans.sampling import find_lift_offs, sample_joints

__all__ = [
    "BaseReference",
    "BaseTrajectory",
    "ContactSchedule",
    "JointTrajectory",
    "PlanSlot",
    "Reference",
]

_AT_REST = 1e-9
"""Largest final joint speed that counts as rest, rad/s."""


class Reference(NamedTuple):
    """Desired joint motion at one time, (na,) each: rad, rad/s, rad/s^2."""

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class JointTrajectory:
    """Joint motion through points, linear, cubic or quintic by the derivatives that the points have.

    Args:
        names: the j joints, in any order.
        times_s: (p,), from `start_s`, not negative, strictly increasing.
        positions, velocities, accelerations: (p, j), rad; positions alone are joined linearly,
            with velocities by cubic and with accelerations too by quintic Hermite polynomials.
        start_s: time at which the clock of the points starts; None: when the plan arrives (`received`).
            Sampled without a start, its times count from 0.
        allow_moving_end: accept a final velocity that is not zero. Meant for planners that
            replace each plan before it ends; the end still holds its position at zero velocity.

    Raises:
        TrajectoryError: no points, times not increasing, wrong lengths, numbers not finite,
            joints named twice, accelerations without velocities, or motion at the end.
    """

    def __init__(
        self,
        names: Sequence[str],
        times_s: ArrayLike,
        positions: ArrayLike | None,
        velocities: ArrayLike | None = None,
        accelerations: ArrayLike | None = None,
        start_s: float | None = None,
        allow_moving_end: bool = False,
    ):
        self.names = tuple(names)
        if len(set(self.names)) != len(self.names):
            raise TrajectoryError(f"trajectory names a joint twice: {list(self.names)}")
        self.times_s = checked_times(times_s)
        shape = (len(self.times_s), len(self.names))
        if positions is None:
            raise TrajectoryError("trajectory points have no positions")
        self.positions = checked_array("positions", positions, shape)
        self.velocities = _checked_or_none("velocities", velocities, shape)
        self.accelerations = _checked_or_none("accelerations", accelerations, shape)
        if self.velocities is None and self.accelerations is not None:
            raise TrajectoryError("trajectory points have accelerations but no velocities")
        self.allow_moving_end = allow_moving_end
        if not allow_moving_end:
            self._refuse_motion_at_the_end()
        self.start_s = checked_start(start_s)
        self._ends_in_motion = self.velocities is not None and bool(
            (np.abs(self.velocities[-1]) > _AT_REST).any()
        )
        self.last_s = float(self.times_s[-1])
        self.segments = segment_coefficients(
            self.times_s, self.positions, self.velocities, self.accelerations
        )
        self.judged: tuple[object, TrajectoryError | None] = (None, None)
        """By which limits its points were judged (`limits.check_joints`), and why they are refused."""
        rates = 1.0 / np.diff(self.times_s)
        self.motion = self.times_s, rates, self.segments, dense(self.positions)

    def sample(self, t_s: float, out: np.ndarray | None = None) -> Reference:
        """Desired motion at time t_s, in the order of `names`.

        Before the first point and after the last one their positions are held at rest.
        `out` (3, j), if given, receives position, velocity and acceleration as its rows.
        """
        if out is None:
            out = np.empty((3, len(self.names)))
        self.fill(t_s, out)
        return Reference(out[0], out[1], out[2])

    def fill(self, t_s: float, out: np.ndarray) -> bool:
        """Write the desired motion at t_s into `out` (3, j); returns whether the last point lies ahead."""
        since = t_s if self.start_s is None else t_s - self.start_s
        sample_joints(*self.motion, since, out)
        return t_s < (self.start_s or 0.0) + self.last_s

    def in_order(self, joint_names: Sequence[str], locked: Container[str] = ()) -> JointTrajectory:
        """The same trajectory with its columns in the robot's order.

        Raises:
            TrajectoryError: a joint that the robot lacks or that is locked, or one of the robot's
                that is missing.
        """
        column = {name: k for k, name in enumerate(self.names)}
        unknown = [name for name in self.names if name not in set(joint_names)]
        held = [name for name in unknown if name in locked]
        if held:
            raise TrajectoryError(
                f"trajectory names joint {held[0]!r}, which is locked: leave it out"
            )
        if unknown:
            raise TrajectoryError(
                f"trajectory names unknown joint {unknown[0]!r}; known are {choices(joint_names)}"
            )
        missing = [name for name in joint_names if name not in column]
        if missing:
            raise TrajectoryError(f"trajectory lacks joints {choices(missing)}")
        if tuple(joint_names) == self.names:
            return self
        order = [column[name] for name in joint_names]
        return self._replaced(
            names=tuple(joint_names),
            positions=self.positions[:, order],
            velocities=None if self.velocities is None else self.velocities[:, order],
            accelerations=None if self.accelerations is None else self.accelerations[:, order],
        )

    def received(
        self,
        now_s: float,
        position: np.ndarray,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
    ) -> JointTrajectory:
        """The trajectory as followed when it arrives at `now_s`.

        One without a start starts now. If its first point lies ahead, the given motion (j,), which is
        the state or the reference at arrival, is put before it, and the approach interpolated.

        Raises:
            TrajectoryError: its last point lies in the past.
        """
        start_s = now_s if self.start_s is None else self.start_s
        if start_s + self.last_s < now_s:
            raise TrajectoryError(
                f"trajectory ends at {start_s + self.last_s:.6f} s, in the past: "
                f"it is {now_s:.6f} s"
            )
        lead_s = start_s + float(self.times_s[0]) - now_s
        if lead_s <= 0.0:
            return started(self, now_s)
        return self._begun(start_s - now_s, now_s, position, velocity, acceleration)

    def _begun(
        self,
        shift_s: float,
        start_s: float,
        position: np.ndarray,
        velocity: np.ndarray | None,
        acceleration: np.ndarray | None,
    ) -> JointTrajectory:
        """The same motion with a point before it, ``shift_s`` before the old start.

        Done in the control loop, so coefficients of the other segments are not computed again.
        """
        rest = np.zeros(len(self.names))
        other = copy.copy(self)
        other.start_s = start_s
        other.times_s = checked_times(np.concatenate([[0.0], self.times_s + shift_s]))
        other.positions = dense(np.vstack([position, self.positions]))
        other.velocities = _prefixed(self.velocities, rest if velocity is None else velocity)
        other.accelerations = _prefixed(
            self.accelerations, rest if acceleration is None else acceleration
        )
        speeds, bends = (
            None if rows is None else rows[:2] for rows in (other.velocities, other.accelerations)
        )
        way = segment_coefficients(other.times_s[:2], other.positions[:2], speeds, bends)
        other.last_s = float(other.times_s[-1])
        _, rates, segments, _ = self.motion
        rates = np.concatenate([1.0 / np.diff(other.times_s[:2]), rates])
        other.motion = other.times_s, rates, np.concatenate([way, segments]), other.positions
        return other

    @property
    def ends_in_motion(self) -> bool:
        """Whether the last point has a velocity: the planner is to replace the plan before its end."""
        return self._ends_in_motion

    def _replaced(self, **changes: Any) -> JointTrajectory:
        """The same trajectory with these fields changed, checked again."""
        same = (
            "names",
            "times_s",
            "positions",
            "velocities",
            "accelerations",
            "start_s",
            "allow_moving_end",
        )
        return JointTrajectory(**{**{name: getattr(self, name) for name in same}, **changes})

    def _refuse_motion_at_the_end(self) -> None:
        """Raise TrajectoryError if the last point has a velocity: a joint cannot be held while it moves."""
        if self.velocities is None:
            return
        moving = np.abs(self.velocities[-1]) > _AT_REST
        if moving.any():
            k = int(np.argmax(moving))
            raise TrajectoryError(
                f"trajectory ends with joint {self.names[k]!r} at {self.velocities[-1, k]:g} "
                f"rad/s, must end at rest"
            )


class ContactSchedule:
    """Planned contacts of the frames; each row is held until the next one's time.

    Args:
        frames: the f contact frames.  times_s: (p,), as in `JointTrajectory`.
        stance: (p, f) bool.  start_s: as in `JointTrajectory`.

    Raises:
        TrajectoryError: as `JointTrajectory`; or a number other than 0 and 1.
    """

    def __init__(
        self,
        frames: Sequence[str],
        times_s: ArrayLike,
        stance: ArrayLike,
        start_s: float | None = None,
    ) -> None:
        self.frames = tuple(frames)
        self.times_s = checked_times(times_s)
        shape = (len(self.times_s), len(self.frames))
        rows = _checked_or_none("contact rows", stance, shape)
        if rows is None or not np.isin(rows, (0.0, 1.0)).all():
            raise TrajectoryError("contact rows must be 0 (swing) or 1 (stance)")
        self.stance = np.ascontiguousarray(rows, dtype=bool)
        self.start_s = checked_start(start_s)
        self._begins_s: list[float] = self.times_s.tolist()  # of rows, looked up each period
        self._leaves = np.empty(shape)
        find_lift_offs(self.times_s, self.stance, self._leaves)

    def in_order(self, frames: Sequence[str]) -> ContactSchedule:
        """The same schedule with a column for each of `frames`; those that it lacks are in contact.

        A frame that the schedule names once has this column at each place among `frames`; one
        that it names several times must occur there as often, and has them one by one.

        Raises:
            TrajectoryError: a frame of the schedule that is not among `frames`, or not as often.
        """
        if tuple(frames) == self.frames:
            return self
        unknown = [name for name in self.frames if name not in frames]
        if unknown:
            raise TrajectoryError(
                f"schedule names unknown contact frame {unknown[0]!r}; known are {choices(frames)}"
            )
        stance = np.ones((len(self.times_s), len(frames)), dtype=bool)
        for name in dict.fromkeys(self.frames):
            own = [k for k, frame in enumerate(self.frames) if frame == name]
            places = [k for k, frame in enumerate(frames) if frame == name]
            if len(own) not in (1, len(places)):
                raise TrajectoryError(
                    f"schedule names contact frame {name!r} {len(own)} times, must name it once or "
                    f"{len(places)} times, once for each of its contacts"
                )
            stance[:, places] = self.stance[:, own]
        return ContactSchedule(frames, self.times_s, stance, self.start_s)

    def sample(self, t_s: float) -> np.ndarray:
        """Planned contacts at time t_s, (f,) bool; before the first row its values."""
        since = t_s if self.start_s is None else t_s - self.start_s
        return self.stance[max(bisect_right(self._begins_s, since) - 1, 0)]

    def leaves_in(self, t_s: float) -> np.ndarray:
        """Time until each frame in contact at t_s lifts off, (f,) s; infinite if never."""
        since = t_s - (self.start_s or 0.0)
        return self._leaves[max(bisect_right(self._begins_s, since) - 1, 0)] - since


class _Plan(Protocol):
    start_s: float | None


Plan = TypeVar("Plan", bound=_Plan)


class PlanSlot(Generic[Plan]):
    """The current plan, the newest one until its start time, and the one before for times before the current one's.

    A new plan replaces everything from its start on, including a waiting one. The first one is sampled
    before its start too, unless ``early`` is False.

    Attributes:
        current: the plan that is sampled.  waiting: the one whose start time has not come.
        before: the one that the current one has replaced at its start; None: it is sampled earlier, too.
    """

    def __init__(self, early: bool = True):
        self._early = early
        self.current: Plan | None = None
        self.waiting: Plan | None = None
        self.before: Plan | None = None

    def replace(self, plan: Plan) -> None:
        """Follow `plan` from its start on; at once if it has none, or there is no plan before it and ``early``."""
        if (self._early and self.current is None) or plan.start_s is None:
            self.current, self.waiting, self.before = plan, None, None
        else:
            self.waiting = plan

    def at(self, t_s: float) -> Plan | None:
        """The newest plan that has begun by t_s, or by an earlier call; None when there is none."""
        if _starts_by(self.waiting, t_s):
            self.before, self.current, self.waiting = self.current, self.waiting, None
        return self.current

    def peek(self, t_s: float) -> Plan | None:
        """The plan for time t_s, also one before the current plan's start, of those received so far; changes nothing."""
        if _starts_by(self.waiting, t_s):
            return self.waiting
        if self.before is None or self.current is None or _starts_by(self.current, t_s):
            return self.current
        return self.before

    def copy(self) -> PlanSlot[Plan]:
        """An independent slot with the same plans."""
        slot: PlanSlot[Plan] = PlanSlot(self._early)
        slot.current, slot.waiting, slot.before = self.current, self.waiting, self.before
        return slot

    def clear(self) -> None:
        """Discard all plans."""
        self.current = self.waiting = self.before = None


def _starts_by(plan: _Plan | None, t_s: float) -> bool:
    """Whether there is a plan that has a start, and it has come."""
    start_s = None if plan is None else plan.start_s
    return start_s is not None and start_s <= t_s


def _checked_or_none(
    name: str, values: ArrayLike | None, shape: tuple[int, int]
) -> np.ndarray | None:
    return None if values is None else checked_array(name, values, shape)


def _prefixed(rows: np.ndarray | None, first: np.ndarray) -> np.ndarray | None:
    return None if rows is None else np.vstack([first, rows])
