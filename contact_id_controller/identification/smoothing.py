"""Positions, velocities and accelerations of a log, smoothed without delay.

Every filter runs forwards and backwards, and derivatives are those of a spline through its result, so nothing
is delayed. The cut-off, and whether velocities are the logged ones or derivatives of positions,
are those that explain the measured torques best (`model_fit`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.signal import butter, sosfiltfilt

from contact_id_controller.exceptions import RecordError

Array = NDArray[np.float64]

ORDER = 4
"""Order of the filter, in each direction."""

GAP = 5.0
"""Largest time between rows that a filter joins, in usual periods."""

FEWEST_ROWS = 60
"""Least number of rows of a part that can be filtered."""

HIGHEST, LOWEST_HZ, STEP = 0.2, 0.8, 2.0**0.5
"""Cut-offs that are tried: the highest as a share of the sample rate, the lowest in Hz, and the ratio between two."""

EDGE = 1.0
"""Time left out at the ends of a part, where a filter has data on one side only, times the cut-off."""

STANDS, FEWEST_MOVING, STILL = 0.05, 0.2, 0.01
"""Share of its rms speed below which a joint stands still; share of the rows in which it must move, or all are used;
share of the fastest joint's rms speed below which a joint's speed is noise."""

POSITION, VELOCITY, ACCELERATION = "position", "velocity", "acceleration"
SOURCES = (POSITION, VELOCITY, ACCELERATION)
"""Channels of the log from which accelerations can be made."""


@dataclasses.dataclass(frozen=True)
class Samples:
    """Consecutive rows of a log without a gap, evenly spaced.

    Attributes:
        time (n,) s; q (n, na) rad; v, a (n, na) as logged, or None; torque (n, na): N·m, or A.
    """

    time: Array
    q: Array
    v: Array | None
    a: Array | None
    torque: Array

    @property
    def period(self) -> float:
        """Time between two rows, s."""
        return float((self.time[-1] - self.time[0]) / (len(self.time) - 1))

    def part(self, first: float, last: float) -> Samples:
        """Rows from the time ``first`` on, before ``last``."""
        which = (self.time >= first) & (self.time < last)
        channels = (self.q, self.v, self.a, self.torque)
        q, v, a, torque = (None if each is None else each[which] for each in channels)
        assert q is not None and torque is not None
        return Samples(self.time[which], q, v, a, torque)


@dataclasses.dataclass(frozen=True)
class Motion:
    """A smoothed motion and the torques measured with it: n rows, (n, na) each; ``time`` (n,), s."""

    time: Array
    q: Array
    v: Array
    a: Array
    torque: Array

    def __len__(self) -> int:
        return len(self.time)

    def thinned(self, most: int) -> Motion:
        """Every k-th row, so that at most ``most`` remain."""
        step = -(-len(self) // most)
        return Motion(*(each[::step] for each in (self.time, self.q, self.v, self.a, self.torque)))


def pieces(
    time: Array, q: Array, v: Array | None, a: Array | None, torque: Array
) -> tuple[Samples, ...]:
    """The parts of a log without gaps, each evenly spaced.

    Rows whose stamp does not increase are dropped; if stamps jitter, all channels are interpolated linearly.
    NaN in torques remains; rows without positions are dropped.

    Args:
        time: s, (n,).  q, v, a, torque: (n, na); v, a may be None.

    Raises:
        RecordError: no part has enough rows.
    """
    complete = np.isfinite(time) & np.isfinite(q).all(axis=1)
    for each in (v, a):
        complete &= True if each is None else np.isfinite(each).all(axis=1)
    before = np.concatenate(
        [[-np.inf], np.maximum.accumulate(np.where(complete, time, -np.inf))[:-1]]
    )
    which = np.flatnonzero(complete & (time > before))
    if len(which) < FEWEST_ROWS:
        raise RecordError(
            f"the log has {len(which)} rows with a new stamp and all positions, must have {FEWEST_ROWS} or more"
        )
    t = time[which]
    period = float(np.median(np.diff(t)))
    found = []
    # After a clock was set back another part begins, even if its stamps continue.
    set_back = np.cumsum(np.diff(time, prepend=time[0]) < 0.0)[which]
    apart = (np.diff(t) > GAP * period) | (np.diff(set_back) > 0)
    for rows in np.split(which, np.flatnonzero(apart) + 1):
        if len(rows) >= FEWEST_ROWS:
            channels = (None if each is None else each[rows] for each in (q, v, a, torque))
            found.append(_evened(time[rows], period, *channels))
    if not found:
        raise RecordError(
            f"no part of the log without a gap of {GAP * period:.3g} s has {FEWEST_ROWS} rows or more"
        )
    return tuple(found)


def _evened(time: Array, period: float, *channels: Array | None) -> Samples:
    """All channels evenly spaced, by linear interpolation if stamps jitter by more than a tenth of the period."""
    if np.abs(np.diff(time) - period).max() > 0.1 * period:
        even = np.arange(time[0], time[-1] + 1e-9, period)
        at = np.interp(even, time, np.arange(len(time)))
        low = np.minimum(at.astype(int), len(time) - 2)
        share = (at - low)[:, None]
        channels = tuple(
            None if each is None else (1.0 - share) * each[low] + share * each[low + 1]
            for each in channels
        )
        time = even
    q, v, a, torque = channels
    assert q is not None and torque is not None
    return Samples(time, q, v, a, torque)


def cutoffs_hz(samples: Sequence[Samples]) -> list[float]:
    """Cut-offs to try, Hz, highest first."""
    found = [HIGHEST / samples[0].period]
    while found[-1] / STEP >= LOWEST_HZ:
        found.append(found[-1] / STEP)
    return found


def sources(samples: Sequence[Samples]) -> list[str]:
    """Channels of the log, with any motion, from which accelerations can be made."""
    found = [POSITION]
    for name, channels in (
        (VELOCITY, [each.v for each in samples]),
        (ACCELERATION, [each.a for each in samples]),
    ):
        if all(each is not None and bool(np.any(each)) for each in channels):
            found.append(name)
    return found


def edge_s(cutoff_hz: float) -> float:
    """Time that is left out at either end of a part, s."""
    return EDGE / cutoff_hz


def smoothed(
    samples: Sequence[Samples],
    cutoff_hz: float,
    source: str = POSITION,
    without_s: float | None = None,
) -> Motion:
    """The motion below a cut-off frequency.

    Args:
        samples: parts of a log.  cutoff_hz: of the zero-phase filter.
        source: one of `SOURCES`: derivatives are made from that channel on.
        without_s: left out at either end of each part, s; None: `edge_s`.
    """
    without_s = edge_s(cutoff_hz) if without_s is None else without_s
    rows: list[list[Array]] = []
    for each in samples:
        time = each.time
        q = filtered(each.q, cutoff_hz * each.period)
        if source == POSITION or each.v is None:
            spline = make_interp_spline(time, q, k=5)
            v, a = spline(time, nu=1), spline(time, nu=2)
        else:
            v = filtered(each.v, cutoff_hz * each.period)
            if source == VELOCITY or each.a is None:
                a = make_interp_spline(time, v, k=5)(time, nu=1)
            else:
                a = filtered(each.a, cutoff_hz * each.period)
        edge = round(without_s / each.period)
        kept = slice(edge, max(len(time) - edge, edge))
        rows.append([part[kept] for part in (time, q, v, a, each.torque)])
    return Motion(*(np.concatenate(parts) for parts in zip(*rows)))


def moving(motion: Motion) -> NDArray[np.bool_]:
    """Whether each joint moves, (n, na): at rest it holds any torque within its dry friction, which is no information.

    A joint that hardly ever moves in a log counts as moving throughout.
    """
    speed = np.abs(motion.v)
    found: NDArray[np.bool_] = speed > STANDS * np.sqrt(np.mean(speed**2, axis=0))
    found |= (found.mean(axis=0) < FEWEST_MOVING) | still(motion)
    return found


def still(motion: Motion) -> NDArray[np.bool_]:
    """Joints (na,) that do not move in the whole log."""
    speed = np.sqrt(np.mean(motion.v**2, axis=0))
    found: NDArray[np.bool_] = speed < STILL * speed.max()
    return found


def filtered(values: Array, cutoff: float) -> Array:
    """Channels (n, k) below a cut-off, given as a share of the sample rate, forwards and backwards."""
    sections = butter(ORDER, 2.0 * cutoff, output="sos")
    pad = min(len(values) - 2, max(30, int(1.5 / cutoff)))
    filtered: Array = sosfiltfilt(sections, values, axis=0, padlen=pad)
    return filtered
