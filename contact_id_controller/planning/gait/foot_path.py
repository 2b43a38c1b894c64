"""Planned motion of one foot in the world: stance and swing in turn."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from functools import cache, cached_property

import numpy as np

from contact_id_controller.planning.gait.base_motion import Fading
from contact_id_controller.planning.gait.path_kernels import (
    CUBIC,
    QUINTIC,
    SHIFT,
    STANCE,
    WIDTH,
    bump,
    sample_path,
    smooth_step,
)

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Position, velocity, acceleration at p times, (p, 3) each: m, s."""

KINDS = {"cubic": CUBIC, "quintic": QUINTIC}
STEEPEST = {"cubic": 1.5, "quintic": 1.875}
"""Largest slope of the share of the horizontal way over the share of the time."""
LIFTING = {"cubic": (3.0, 1.125), "quintic": (3.435, 1.2)}
"""Largest slope of the share of the height, and that of the way at the same time."""
_STILL = Fading(np.zeros(3), np.zeros(3), 1.0)


@dataclasses.dataclass(frozen=True)
class Stance:
    """A foot in stance at `place` from `begin_s` on; an initial offset fades."""

    begin_s: float
    place: np.ndarray  # (3,)
    offset: Fading  # arrays (3,)
    landed_s: float
    standing = True

    @classmethod
    def after(cls, swing: Swing) -> Stance:
        """Stance at rest from the end of a swing on."""
        return cls(swing.end_s, swing.place, _STILL, swing.end_s)

    @cached_property
    def rows(self) -> list[list[float]]:
        """Rows for ``path_kernels``."""
        offset = self.offset
        return [
            [
                STANCE,
                self.begin_s,
                offset.time_constant_s,
                *self.place.tolist(),
                *np.asarray(offset.value).tolist(),
                *np.asarray(offset.rate).tolist(),
                0.0,
                self.landed_s,
            ]
        ]

    def at(self, times_s: np.ndarray) -> Motion:
        """Motion at the times (p,)."""
        return _motion(self.rows, times_s)


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
        """Landing place (3,), m, shifts included."""
        return self.target + sum((shift for _, shift in self.shifts), np.zeros(3))

    @property
    def middle_s(self) -> float:
        """Time of the swing's highest point, s."""
        return 0.5 * (self.begin_s + self.end_s)

    @cached_property
    def rows(self) -> list[list[float]]:
        """Rows for ``path_kernels``."""
        own = [
            KINDS[self.profile],
            self.begin_s,
            self.end_s,
            *self.start.tolist(),
            *self.start_velocity.tolist(),
            *self.target.tolist(),
            self.height_m,
            self.landed_s,
        ]
        shifts = [
            [SHIFT, begin_s, self.end_s, *shift.tolist(), *([0.0] * (WIDTH - 6))]
            for begin_s, shift in self.shifts
        ]
        return [own, *shifts]

    def aimed_at(self, now_s: float, place: np.ndarray) -> Swing:
        """The same swing with its landing moved to `place` from `now_s` on."""
        shift = place - self.place
        if np.max(np.abs(shift)) < 1e-9:
            return self
        return dataclasses.replace(self, shifts=(*self.shifts, (now_s, shift)))

    def at(self, times_s: np.ndarray) -> Motion:
        """Motion at the times (p,)."""
        return _motion(self.rows, times_s)


def _motion(rows: list[list[float]], times_s: np.ndarray) -> Motion:
    """Motion of one segment at the times (p,)."""
    count = len(times_s)
    parts = np.empty((3, count, 1, 3))
    ends = np.empty((count, 1), dtype=bool), np.empty((count, 1))
    sample_path(np.array(rows), times_s, times_s, 0, *parts, *ends)
    position, velocity, acceleration = parts[:, :, 0]
    return position, velocity, acceleration


class FootPath:
    """Segments of one foot in order of time; each is valid until the next begins."""

    def __init__(self, segments: list[Stance | Swing]):
        self.segments = segments

    def active(self, t_s: float) -> Stance | Swing:
        """Segment at one time."""
        return self.segments[self._number(t_s)]

    @property
    def rows(self) -> np.ndarray:
        """Rows (m, WIDTH) for ``path_kernels``."""
        return np.array([row for segment in self.segments for row in segment.rows])

    def displace(self, t_s: float, position: np.ndarray, velocity: np.ndarray) -> None:
        """Shift, in place, the beginning of the swing at t_s by (3,) m, and its initial velocity by (3,) m/s."""
        k = self._number(t_s)
        swing = self.segments[k]
        assert isinstance(swing, Swing)
        self.segments[k] = dataclasses.replace(
            swing, start=swing.start + position, start_velocity=swing.start_velocity + velocity
        )

    def _number(self, t_s: float) -> int:
        return bisect_right([segment.begin_s for segment in self.segments[1:]], t_s)


@cache
def swing_shares(profile: str, parts: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Share of the horizontal way and of the bump's height, (p,) each, at parts (p,) of a swing."""
    level = [u**2 * (3.0 - 2.0 * u) if profile == "cubic" else smooth_step(u)[0] for u in parts]
    heights = [bump(KINDS[profile], u)[0] for u in parts]
    return np.array(level), np.array(heights)
