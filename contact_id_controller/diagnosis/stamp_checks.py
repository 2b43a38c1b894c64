"""Checks stamps: order, gaps, missing messages, repeated samples, drift between clocks."""

from __future__ import annotations

import numpy as np

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.even_samples import BURST, GAP_PERIODS
from contact_id_controller.diagnosis.finding import (
    FINE,
    Finding,
    Picture,
    fine,
    unknown,
    wrong,
)
from contact_id_controller.logs.log import SLOWEST_S, Array

GAP_S = 0.05
"""Least duration of a gap: a shorter one is bridged by nodes that run at 50 Hz and faster."""

MISSING = 0.02
"""Tolerated share of missing messages: derivatives across single holes are still good."""

REPEATED = 0.5
"""Tolerated share of rows of moving joints that repeat the one before: a sensor at half the rate of the log."""

DRIFT = 1e-3
"""Tolerated drift between two clocks: 1 ms per second; that of crystals is below a tenth of it."""

SIMULATED = 0.05
"""Drift of stamps against the recorder's clock from which on the reason is simulated time, not a clock."""


def gaps(case: Case) -> Finding:
    """Check for stamps that go back, and gaps."""
    name, time, period = "stamps", case.log.time, case.log.period
    steps = np.diff(time)
    if period > SLOWEST_S:
        return wrong(
            name,
            f"a row every {period:.4g} s: stamps are in ms, us or ns, or the rate is too low for the checks, certain",
            "set the unit of time to ms, us or ns in --map",
            ends=True,
        )
    picture = Picture(
        "Steps of the stamps", "row", np.arange(len(steps), dtype=float), "s", {"step": steps}
    )
    back = np.flatnonzero(steps < 0.0)
    if back.size:
        return wrong(
            name,
            f"{back.size} stamps go back, first at row {back[0] + 1} by {-steps[back[0]]:.4g} s, certain",
            "record the stamps of the sensors, from one clock that is not set while it runs",
            picture=picture,
            ends=True,
        )
    holes = np.flatnonzero((steps > GAP_PERIODS * period) & (steps > GAP_S))
    if holes.size:
        worst = holes[np.argmax(steps[holes])]
        return wrong(
            name,
            f"{holes.size} gaps, the longest of {steps[worst]:.3g} s at {time[worst]:.2f} s, certain",
            "find what blocked the recorder or the driver then; nothing is computed across it",
            picture=picture,
        )
    repeats = float(np.mean(steps == 0.0))
    jitter = float(np.std(steps))
    text = f"{1.0 / period:.4g} Hz, jitter {1e3 * jitter:.2g} ms rms, longest step {1e3 * steps.max():.3g} ms"
    if repeats > 0.0:
        text += f", {100 * repeats:.2g} % repeat"
    if np.mean(steps < BURST * period) > MISSING:
        text += ", samples came in bursts: the stamps are of arrival and are taken as even"
    return fine(name, text, picture)


def missing(case: Case) -> Finding:
    """Check for dropped messages, and repeated values."""
    name, steps, period = "dropped messages", np.diff(case.log.time), case.log.period
    short = float(np.mean(steps < BURST * period))
    single = steps[(steps > 1.5 * period) & (steps <= max(GAP_S, GAP_PERIODS * period))]
    lost = float(np.sum(np.round(single / period) - 1.0)) / len(case.log.time)
    lost = max(0.0, lost - short)  # a late message leaves a hole and follows it by a short step
    if lost > MISSING:
        return wrong(
            name,
            f"{100 * lost:.1f} % of the messages are missing, one by one, certain",
            "raise the queue of the subscriber or of the recorder, or the bus's share of this message",
        )
    moving, again = _repeated(case.log.position)
    if moving and again > REPEATED:
        return wrong(
            name,
            f"{100 * again:.0f} % of the rows repeat the positions of the row before while joints move, certain",
            "log at the rate at which the sensors are read, or drop the rows that repeat",
        )
    return fine(name, f"{100 * lost:.2g} % missing, {100 * again:.2g} % repeat the row before")


def _repeated(position: Array | None) -> tuple[bool, float]:
    """Whether enough joints move for this check, and the share of rows in which all of them repeat."""
    if position is None:
        return False, 0.0
    moving = np.ptp(position, axis=0) > 0.0
    if not moving.any():
        return False, 0.0
    same = np.all(np.diff(position[:, moving], axis=0) == 0.0, axis=1)
    changes = np.mean(np.abs(np.diff(position[:, moving], axis=0)) > 0.0)
    return bool(changes > 0.1), float(np.mean(same))


def clocks(case: Case) -> Finding:
    """Check the drift between the clocks of joints, IMU and recorder."""
    name, log = "clocks", case.log
    if log.arrival is not None:
        late = log.arrival - log.time
        slope = float(np.polyfit(log.time, late, 1)[0])
        spread = float(np.percentile(late, 99) - np.percentile(late, 1))
        if abs(slope) > SIMULATED:
            return unknown(
                name,
                f"a second of the stamps took {1.0 + slope:.3g} s: time is simulated, or the log was played back",
                "stamps of the clock by which the recorder counts",
            )
        if abs(slope) > DRIFT:
            return wrong(
                name,
                f"the stamps drift by {1e3 * slope:.2g} ms/s against the recorder's clock, certain",
                "synchronise the clocks (PTP, chrony), or stamp on arrival",
            )
        return Finding(
            name,
            FINE,
            f"drift {1e3 * slope:.2g} ms/s, messages travel within {1e3 * spread:.2g} ms of each other",
        )
    if log.imu is None or np.array_equal(log.imu.time, log.time):
        return unknown(
            name, "all channels have the same stamps", "a bag, with stamps and times of arrival"
        )
    difference = float(log.imu.time[-1] - log.time[-1])
    return fine(name, f"IMU and joints end {1e3 * difference:.3g} ms apart")
