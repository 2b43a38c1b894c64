"""Planned motion of one foot in the world: standing, swinging, standing, ..."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from contact_id_controller.planning.gait.base_motion import Fading
from contact_id_controller.plans.interpolation import segment_coefficients

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Position, velocity, acceleration at p times, (p, 3) each: m, s."""


@dataclasses.dataclass(frozen=True)
class Stance:
    """A foot that stands at `place` from `begin_s` on, or fades to it from where it was."""

    begin_s: float
    place: np.ndarray  # (3,)
    offset: Fading  # arrays (3,)
    landed_s: float
    standing = True

    @classmethod
    def after(cls, swing: Swing) -> Stance:
        """A foot that stands still from the end of a swing on."""
        return cls(swing.end_s, swing.place, Fading(np.zeros(3), np.zeros(3), 1.0), swing.end_s)

    def at(self, times_s: np.ndarray) -> Motion:
        """Motion at the times (p,)."""
        position, velocity, acceleration = self.offset.at(
            np.reshape(times_s, (-1, 1)) - self.begin_s
        )
        return self.place + position, velocity, acceleration


@dataclasses.dataclass(frozen=True)
class Swing:
    """A foot that moves from `start` to `target` between two times.

    With u in [0, 1]: horizontally a clamped cubic (or quintic) from the start, with its velocity,
    to rest at the target; vertically a straight step from start to end height plus a bump of
    `height_m` in the middle. Profile `cubic` makes each coordinate a clamped cubic spline through
    start, middle and end; `quintic` also begins and ends without acceleration. A new target on the
    way adds a smooth shift from then until the end.
    """

    begin_s: float
    end_s: float
    start: np.ndarray  # (3,)
    start_velocity: np.ndarray  # (3,)
    target: np.ndarray  # (3,)
    height_m: float
    profile: str
    shifts: tuple[tuple[float, np.ndarray], ...] = ()
    standing = False
    landed_s = np.inf

    @property
    def place(self) -> np.ndarray:
        """Where the foot lands, shifts included."""
        return self.target + sum((shift for _, shift in self.shifts), np.zeros(3))

    @property
    def middle_s(self) -> float:
        """When the foot is highest."""
        return 0.5 * (self.begin_s + self.end_s)

    @functools.cached_property
    def _level(self) -> np.ndarray:
        """Coefficients (degree + 1, 3) in powers of u of the way without bump and shifts."""
        bends = np.zeros((2, 3)) if self.profile == "quintic" else None
        return segment_coefficients(
            np.array([0.0, self.end_s - self.begin_s]),
            np.array([self.start, self.target]),
            np.array([self.start_velocity, np.zeros(3)]),
            bends,
        )[0]

    def aimed_at(self, now_s: float, place: np.ndarray) -> Swing:
        """The same swing that lands at `place` instead."""
        shift = place - self.place
        if np.max(np.abs(shift)) < 1e-9:
            return self
        return dataclasses.replace(self, shifts=(*self.shifts, (now_s, shift)))

    def at(self, times_s: np.ndarray) -> Motion:
        """Motion at the times (p,)."""
        duration = self.end_s - self.begin_s
        u = (np.ravel(times_s) - self.begin_s) / duration
        bump = _BUMPS[self.profile](u)
        count = len(self._level)
        powers = u[:, None] ** np.arange(count)
        parts = []
        for k, factors in enumerate(_FACTORS[count]):
            part = powers[:, : count - k] @ (factors[k:, None] * self._level[k:])
            part[:, 2] += self.height_m * bump[k]
            parts.append(part / duration**k)
        for begin_s, shift in self.shifts:
            rest = self.end_s - begin_s
            step = _smooth_step(np.clip((np.ravel(times_s) - begin_s) / rest, 0.0, 1.0))
            for k in range(3):
                parts[k] += np.multiply.outer(step[k] / rest**k, shift)
        return tuple(parts)


class FootPath:
    """Segments of one foot in order of time; each holds until the next begins."""

    def __init__(self, segments: list[Stance | Swing]):
        self.segments = segments

    def active(self, t_s: float) -> Stance | Swing:
        """The segment at one time."""
        return self.segments[int(self._indices(t_s))]

    def landed(self, times_s: np.ndarray) -> np.ndarray:
        """When the foot last landed, at each of the times (p,); infinite while it swings."""
        landed = np.array([segment.landed_s for segment in self.segments])
        return landed[self._indices(times_s)]

    def displace(self, t_s: float, position: np.ndarray, velocity: np.ndarray) -> None:
        """Let the swing at one time begin elsewhere, by (3,) m, and faster, by (3,) m/s."""
        k = int(self._indices(t_s))
        swing = self.segments[k]
        self.segments[k] = dataclasses.replace(
            swing, start=swing.start + position, start_velocity=swing.start_velocity + velocity
        )

    def at(
        self, times_s: np.ndarray, pick_s: np.ndarray | None = None
    ) -> tuple[Motion, np.ndarray]:
        """Motion and whether the foot stands (p,) bool.

        `pick_s` (p,): times by which the segment is chosen, where they differ from `times_s`.
        """
        picked = self._indices(times_s if pick_s is None else pick_s)
        parts = tuple(np.empty((len(times_s), 3)) for _ in range(3))
        standing = np.empty(len(times_s), dtype=bool)
        for k in np.unique(picked):
            rows = picked == k
            standing[rows] = self.segments[k].standing
            for part, values in zip(parts, self.segments[k].at(times_s[rows])):
                part[rows] = values
        return parts, standing

    def _indices(self, times_s: np.ndarray) -> np.ndarray:
        begins = [segment.begin_s for segment in self.segments[1:]]
        return np.searchsorted(begins, times_s, side="right")


def swing_shares(profile: str, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of the horizontal way and height of the bump (p,) at parts u (p,) of a swing."""
    level = u**2 * (3.0 - 2.0 * u) if profile == "cubic" else _smooth_step(u)[0]
    return level, _BUMPS[profile](u)[0]


def _factors(degree: int) -> np.ndarray:
    """What k = 0, 1, 2 derivatives make of each power n: n (n - 1) ..., (3, degree + 1)."""
    n = np.arange(degree + 1)
    return np.stack([np.ones(degree + 1), n, n * (n - 1)])


_FACTORS = {degree + 1: _factors(degree) for degree in (3, 5)}


def _smooth_step(u: np.ndarray) -> Motion:
    """Quintic from 0 to 1 without velocity and acceleration at its ends; with derivatives."""
    v = 1.0 - u
    return (
        u**3 * (10.0 - 15.0 * u + 6.0 * u**2),
        30.0 * u**2 * v**2,
        60.0 * u * v * (v - u),
    )


def _cubic_bump(u: np.ndarray) -> Motion:
    """Clamped cubic spline through 0, 1, 0 at u = 0, 1/2, 1; with derivatives."""
    sign = np.where(u < 0.5, 1.0, -1.0)
    w = np.where(u < 0.5, 2.0 * u, 2.0 - 2.0 * u)
    return w**2 * (3.0 - 2.0 * w), sign * 12.0 * w * (1.0 - w), 24.0 * (1.0 - 2.0 * w)


def _quintic_bump(u: np.ndarray) -> Motion:
    """64 u^3 (1 - u)^3; with derivatives."""
    w, slope = u * (1.0 - u), 1.0 - 2.0 * u
    return 64.0 * w**3, 192.0 * w**2 * slope, 384.0 * w * (slope**2 - w)


_BUMPS = {"cubic": _cubic_bump, "quintic": _quintic_bump}
