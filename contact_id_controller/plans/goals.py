"""Goals of the whole body from a planner: centre of mass, feet, hands or other frames, heading and posture.

They replace planned joints and base. Divergent component of the centre of mass c, height h:

    xi = c + c'/w,   xi' = w (xi - p)   ->   xi(t) = p + e^{w t} (xi0 - p)      w = sqrt(g / h)

with the centre of pressure p constant until the next plan. Source: Englsberger et al., Three-dimensional
bipedal walking control based on divergent component of motion (T-RO 2015).
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import TrajectoryError, choices
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.plans.interpolation import (
    largest_rates,
    polynomial,
    segment_coefficients,
)
from contact_id_controller.plans.points import checked_array, checked_start, checked_times

PLACE = 6
"""Numbers of a foot's place: x, y, z of its ground point, m, its yaw, rad, and slopes of its sole along x and y."""

LEVEL, POINT = 4, 3
"""The same of a foot that stays level, without slopes; of the origin of a frame."""

MOST_FRAMES = 8
"""Largest number of other frames: each adds six rows to the controller's dense problem; with 50 its step took 1.3 ms."""

ROUGHLY_ONE = 1e-2
"""Length of a quaternion within which it is normalised."""

AT_REST = 1e-6
"""Speed, m/s, below which a frame is at rest."""

MOST_GROWN = 50.0
"""Largest exponent w t: what has diverged so far is far beyond any robot, and a number still."""


class FootPath:
    """Path of a swing foot, or of another frame, through points, joined by quintics; world frame.

    A pose is the foot's ground point (middle of a sole; lowest point of a round foot), its yaw, and the slopes of the
    sole's plane, z = slopes (x, y). Before the first point the foot is there at rest; after the last one, the planned
    landing, it continues at that point's velocity, for the duration of the goals.

    Args:
        times_s: (p,), from the plan's start, not negative, increasing.
        positions, velocities, accelerations: (p, 6) of x, y, z, m, yaw, rad, and slopes; (p, 4): of a level foot;
            (p, 3): of the origin of another frame.
        may_land_from_s: from then on a detected contact starts the stance; None: from the landing on.

    Raises:
        TrajectoryError: no points, times not increasing, numbers not finite, wrong lengths.
    """

    def __init__(
        self,
        times_s: ArrayLike,
        positions: ArrayLike,
        velocities: ArrayLike,
        accelerations: ArrayLike,
        may_land_from_s: float | None = None,
    ) -> None:
        self.times_s = checked_times(times_s)
        given = np.shape(positions)[1:]
        columns = given[0] if given in ((PLACE,), (POINT,)) else LEVEL
        self.columns = columns
        shape = (len(self.times_s), columns)
        rows = {"positions": positions, "velocities": velocities, "accelerations": accelerations}
        checked = np.zeros((3, len(self.times_s), PLACE))
        for row, (name, values) in zip(checked, rows.items()):
            if values is None:
                raise TrajectoryError(f"a foot's path has no {name}, must have all three")
            row[:, :columns] = checked_array(f"{name} of a foot's path", values, shape)
        if columns == POINT and np.linalg.norm(checked[1, -1]) < AT_REST:
            checked[1, -1] = 0.0
        self.points = np.ascontiguousarray(checked.transpose(1, 0, 2))
        self.segments = segment_coefficients(self.times_s, *checked)
        self.may_land_from_s = self.landing_s if may_land_from_s is None else float(may_land_from_s)
        if np.isnan(self.may_land_from_s):
            raise TrajectoryError("may_land_from_s of a foot's path is not a number")

    @property
    def landing_s(self) -> float:
        """Planned landing time, s from the plan's start."""
        return float(self.times_s[-1])

    def largest_rates(self) -> dict[str, tuple[float, float]]:
        """Largest speed and acceleration on the path: linear, m/s and m/s^2, of the ground point.

        Angular, of yaw and slopes.
        """
        found, steps_s = {}, np.diff(self.times_s)
        for kind, columns in (("linear", slice(3)), ("angular", slice(3, PLACE))):
            segments = np.ascontiguousarray(self.segments[:, :, columns])
            speed, acceleration = largest_rates(steps_s, segments, vectors=kind == "linear")
            last = float(np.linalg.norm(self.points[-1, 1, columns]))
            found[kind] = max(float(speed[0]), last), float(acceleration[0])
        return found


class FrameGoal(NamedTuple):
    """Goal of a frame that is no foot, as a hand or a camera: its origin, its rotation, or both; world frame.

    path: of its origin, (p, 3), at rest at its last point, where it stays.  rotation (4,): quaternion x, y, z, w.
    """

    path: FootPath | None = None
    rotation: ArrayLike | None = None


class ComGoal(NamedTuple):
    """Goal of the centre of mass.

    pressure (2,): centre of pressure p, m.  divergent (2,): xi at the plan's start, m; both in the world.
    rate: w, 1/s.  height_m: of the centre of mass above the feet in stance.
    climb (2,): rate, m/s, and acceleration, m/s^2, with which that height changes, as on stairs.
    """

    pressure: ArrayLike
    divergent: ArrayLike
    rate: float
    height_m: float
    climb: ArrayLike = (0.0, 0.0)


class Heading(NamedTuple):
    """Yaw of the base at the plan's start, rad, and its rate, rad/s; roll and pitch are level."""

    yaw: float = 0.0
    rate: float = 0.0


class Posture(NamedTuple):
    """Joint positions, the task of lowest weight.

    names: of all joints, in any order.  positions (na,): rad.  stiffness (na,): acceleration per error, 1/s^2,
    critically damped; None: the controller's.
    """

    names: Sequence[str]
    positions: ArrayLike
    stiffness: ArrayLike | None = None


class Sample(NamedTuple):
    """Arrays for the goals at one time, of f feet.

    com (6,): xi and its rate (both 2), pressure (2).  height (3,): of the centre of mass, m, its rate and acceleration.
    heading (2,): yaw, rate.  feet (f, 3, 6): pose, velocity, acceleration, of the feet and after them of other frames.
    aloft, may_land (f,) bool: has a path; a detected contact starts its stance.
    """

    com: np.ndarray
    height: np.ndarray
    heading: np.ndarray
    feet: np.ndarray
    aloft: np.ndarray
    may_land: np.ndarray

    @classmethod
    def of(cls, feet: int) -> Sample:
        """Allocate for this many feet."""
        flags = np.zeros((2, feet), dtype=bool)
        return cls(
            np.zeros(6), np.zeros(3), np.zeros(2), np.zeros((feet, 3, PLACE)), flags[0], flags[1]
        )


class TaskGoals:
    """Goals of the whole body from a start on, until they are replaced.

    The plan's schedule says which feet are in contact; swing feet have a path here.

    Args:
        feet: path of each foot that swings now or later, by its contact frame.
        lasts_s: validity from the start; then the robot stands still where its feet are.
        start_s: time at which they start; None: when the plan arrives.
        frames: goals of other frames by name, each with less weight than the centre of mass and more than the posture.

    Attributes:
        times_s (2,): 0 and the end, as of other parts of a plan.

    Raises:
        TrajectoryError: numbers that are not finite, lengths that differ, a height, rate or duration that is not
            positive, a joint that is named twice, a frame without a goal, more than `MOST_FRAMES` of them.
    """

    def __init__(
        self,
        com: ComGoal,
        posture: Posture,
        feet: Mapping[str, FootPath],
        lasts_s: float,
        heading: Heading = Heading(),  # noqa: B008  (immutable)
        start_s: float | None = None,
        frames: Mapping[str, FrameGoal] = MappingProxyType({}),
    ) -> None:
        self.com = ComGoal(
            _checked("pressure", com.pressure, 2),
            _checked("divergent", com.divergent, 2),
            _positive("rate", com.rate),
            _positive("height_m", com.height_m),
            _checked("climb", com.climb, 2),
        )
        yaw, yaw_rate = _checked("heading", heading, 2).tolist()
        self.heading = Heading(yaw, yaw_rate)
        self.posture = _checked_posture(posture)
        self.feet = dict(feet)
        for name, path in self.feet.items():
            if path.columns == POINT:
                raise TrajectoryError(
                    f"the path of foot {name!r} has rows x, y, z, must have x, y, z, yaw, or slopes too"
                )
        if len(frames) > MOST_FRAMES:
            raise TrajectoryError(
                f"goals lead {len(frames)} frames that are no feet, must be at most {MOST_FRAMES}"
            )
        self.frames = {name: _checked_frame(name, goal) for name, goal in frames.items()}
        self.lasts_s = _positive("lasts_s", lasts_s)
        self.start_s = checked_start(start_s)
        self.times_s = np.array([0.0, self.lasts_s])
        pressure, divergent, rate, height_m, climb = self.com
        self._numbers = np.concatenate([pressure, divergent, (rate, height_m), climb])
        self._turn = np.array(self.heading)
        self._pack(tuple(self.feet.values()))

    @property
    def end_s(self) -> float:
        """Time at which they expire, s."""
        return (self.start_s or 0.0) + self.lasts_s

    @property
    def names(self) -> tuple[str, ...]:
        """The joints, in the order of the posture."""
        return tuple(self.posture.names)

    def in_order(
        self,
        joint_names: Sequence[str],
        frames: Sequence[str],
        locked: Container[str] = (),
        others: Sequence[str] = (),
    ) -> TaskGoals:
        """The same goals with joints and feet in the robot's order.

        Args:
            joint_names (na), frames: of the robot; of a frame listed several times the first counts.
            locked: joints without a motor.  others: frames that are no feet.

        Raises:
            TrajectoryError: an unknown frame; a joint that the robot lacks, that is locked or missing.
        """
        feet = tuple(dict.fromkeys(frames))
        _refuse_unknown("contact frame", self.feet, feet)
        _refuse_unknown("frame", self.frames, others)
        held = [name for name in self.names if name in locked]
        if held:
            raise TrajectoryError(f"goals name joint {held[0]!r}, which is locked: leave it out")
        _refuse_unknown("joint", self.names, joint_names)
        column = {name: k for k, name in enumerate(self.names)}
        missing = [name for name in joint_names if name not in column]
        if missing:
            raise TrajectoryError(f"goals lack joints {choices(missing)}")
        order = [column[name] for name in joint_names]
        _, positions, stiffness = self.posture
        posture = Posture(
            tuple(joint_names),
            np.asarray(positions)[order],
            None if stiffness is None else np.asarray(stiffness)[order],
        )
        goals = TaskGoals(
            self.com, posture, self.feet, self.lasts_s, self.heading, self.start_s, self.frames
        )
        goals._pack([self.feet.get(frame) for frame in feet])
        return goals

    def fill(self, t_s: float, out: Sample) -> bool:
        """Write the goals at time t_s into ``out``, feet in their order, then other frames in theirs.

        Returns whether they have not expired.
        """
        since = t_s if self.start_s is None else t_s - self.start_s
        sample_goals(since, self.lasts_s, self._numbers, self._turn, *self._paths, out)
        return since < self.lasts_s

    def sample(self, t_s: float) -> Sample:
        """Goals at time t_s, feet in their order, then other frames in theirs."""
        out = Sample.of(len(self._paths[0]))
        self.fill(t_s, out)
        return out

    def _pack(self, feet: Sequence[FootPath | None]) -> None:
        """Pack the paths of all feet, in this order, and those of the other frames into arrays of one length."""
        paths = [*feet, *(goal.path for goal in self.frames.values())]
        most = max((len(path.times_s) for path in paths if path is not None), default=1)
        counts = np.zeros(len(paths), dtype=np.int64)
        times, land = np.zeros((len(paths), most)), np.full(len(paths), np.inf)
        points = np.zeros((len(paths), most, 3, PLACE))
        segments = np.zeros((len(paths), max(most - 1, 1), 6, PLACE))
        for k, path in enumerate(paths):
            if path is not None:
                n = counts[k] = len(path.times_s)
                times[k, :n], points[k, :n] = path.times_s, path.points
                segments[k, : n - 1], land[k] = path.segments, path.may_land_from_s
        self._paths = counts, times, points, segments, land


@bare_kernel
def sample_goals(since, lasts, com, turn, counts, times, points, segments, land, out):
    """Write the goals at ``since``, s from the start, into a ``Sample``; returns whether they have not expired.

    com (8,): pressure, divergent component, rate, height, its rate and acceleration; turn (2,): yaw, rate; counts (f,),
    times (f, p), points (f, p, 3, 6), segments (f, p - 1, 6, 6), land (f,): of the feet's paths.
    """
    goal, height, heading, feet, aloft, may_land = out
    held = min(max(since, 0.0), lasts)
    grown = np.exp(min(com[4] * held, MOST_GROWN))
    for d in range(2):
        away = grown * (com[2 + d] - com[d])
        goal[d], goal[2 + d], goal[4 + d] = com[d] + away, com[4] * away, com[d]
    height[0] = com[5] + held * (com[6] + 0.5 * held * com[7])
    height[1], height[2] = com[6] + held * com[7], com[7]
    if since >= lasts:
        height[1] = height[2] = 0.0
    heading[0], heading[1] = turn[0] + turn[1] * held, turn[1] if since < lasts else 0.0
    for k in range(counts.shape[0]):
        n = counts[k]
        aloft[k], may_land[k] = n > 0, since >= land[k]
        if n == 0:
            feet[k, :, :] = 0.0
            continue
        last, row = times[k, n - 1], 0
        while row < n - 2 and times[k, row + 1] <= since:
            row += 1
        step = times[k, row + 1] - times[k, row] if n > 1 else 1.0
        for d in range(PLACE):
            if since < times[k, 0]:
                feet[k, 0, d], feet[k, 1, d], feet[k, 2, d] = points[k, 0, 0, d], 0.0, 0.0
            elif since >= last:
                speed = points[k, n - 1, 1, d]
                feet[k, 0, d] = points[k, n - 1, 0, d] + speed * max(min(since, lasts) - last, 0.0)
                feet[k, 1, d], feet[k, 2, d] = speed if since < lasts else 0.0, 0.0
            else:
                u = (since - times[k, row]) / step
                feet[k, 0, d], feet[k, 1, d], feet[k, 2, d] = polynomial(
                    segments[k, row], d, u, 1.0 / step
                )


def _checked(name: str, values: ArrayLike, count: int) -> np.ndarray:
    """Finite numbers (count,)."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TrajectoryError(f"{name} of the goals are not {count} numbers") from error
    if array.shape != (count,):
        raise TrajectoryError(f"{name} of the goals has shape {array.shape}, must have ({count},)")
    if not all(map(math.isfinite, array.tolist())):
        raise TrajectoryError(f"{name} of the goals holds a number that is not finite")
    return array


def _positive(name: str, value: float) -> float:
    number = float(_checked(name, [value], 1)[0])
    if not number > 0.0:
        raise TrajectoryError(f"{name} of the goals is {number:g}, must be positive")
    return number


def _checked_frame(name: str, goal: FrameGoal) -> FrameGoal:
    """The goal with its rotation as a unit quaternion (4,)."""
    path, rotation = goal
    if path is None and rotation is None:
        raise TrajectoryError(f"frame {name!r} of the goals has neither a path nor a rotation")
    if path is not None and path.columns != POINT:
        raise TrajectoryError(
            f"the path of frame {name!r} has rows of {path.columns} numbers, must have x, y, z"
        )
    if path is not None and path.points[-1, 1].any():
        raise TrajectoryError(f"the path of frame {name!r} must end at rest")
    if rotation is None:
        return goal
    rotation = _checked(f"rotation of frame {name!r}", rotation, 4)
    length = float(np.linalg.norm(rotation))
    if not abs(length - 1.0) < ROUGHLY_ONE:
        raise TrajectoryError(
            f"rotation of frame {name!r} of the goals has length {length:.3g}, must be a unit quaternion x, y, z, w"
        )
    return FrameGoal(path, rotation / length)


def _checked_posture(posture: Posture) -> Posture:
    """The posture with its numbers as arrays (na,), checked."""
    names = tuple(posture.names)
    if len(set(names)) != len(names):
        raise TrajectoryError(f"posture names a joint twice: {list(names)}")
    stiffness = posture.stiffness
    if stiffness is not None:
        stiffness = _checked("stiffness", stiffness, len(names))
        if (stiffness < 0.0).any():
            raise TrajectoryError(
                f"stiffness of the goals is {stiffness.min():g}, must not be negative"
            )
    return Posture(names, _checked("posture", posture.positions, len(names)), stiffness)


def _refuse_unknown(
    kind: str, names: Sequence[str] | Mapping[str, object], known: Sequence[str]
) -> None:
    """Raise TrajectoryError for the first unknown name."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TrajectoryError(
            f"goals name unknown {kind} {unknown[0]!r}; known are {choices(known)}"
        )
