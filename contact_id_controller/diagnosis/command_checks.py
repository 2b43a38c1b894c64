"""Commands against what came of them: delay of the loop, scale of the drives, tracking error by cause."""

from __future__ import annotations

import numpy as np
from scipy.signal import correlate

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.even_samples import interpolated
from contact_id_controller.diagnosis.finding import WRONG, Finding, Picture, fine, unknown
from contact_id_controller.diagnosis.hypotheses import search
from contact_id_controller.logs.log import Array
from contact_id_controller.robot import FRICTION_SPEED

SEARCHED_S = 0.1
ALIKE = 0.8
"""Correlation of a command with what was measured, from which its delay is known."""

DELAY_S, DELAY_PERIODS = 0.005, 1.5
SCALE = 0.1
"""Part by which a drive may do more or less than it was commanded."""

LONGEST_LAG_S = 0.3
"""No loop lags by more: commands were stamped by another clock, or are of another motion."""

LARGE = 0.1
"""Part of a joint's motion that its error may be."""


def _driven(case: Case) -> tuple[str, Array, Array] | None:
    """Name, commands and measurements (n, na) at even times, of torques or else currents; None without."""
    log = case.log
    for name in ("effort", "current"):
        wanted, measured = getattr(log.commands, name), getattr(log, name)
        if wanted is not None and measured is not None:
            return name, interpolated(case.samples, wanted), interpolated(case.samples, measured)
    return None


def loop_delay(case: Case) -> Finding:
    """How long after its command an effort or current is measured, over all joints."""
    name, driven = "loop delay", _driven(case)
    if driven is None:
        return unknown(
            name, "no commands beside efforts or currents", "commanded efforts or currents"
        )
    what, wanted, measured = driven
    good, period = case.samples.good, case.samples.period
    index = np.arange(len(wanted), dtype=float)
    x = wanted - wanted.mean(axis=0)
    spread = np.std(x[good], axis=0)

    def mismatch(late_s: float) -> float:
        total = 0.0
        for k in np.flatnonzero(spread > 0.0):
            shifted = np.interp(index - late_s / period, index, x[:, k])[good]
            y = measured[good, k] - measured[good, k].mean()
            norms = float(np.linalg.norm(shifted) * np.linalg.norm(y))
            total -= float(shifted @ y) / max(norms, 1e-12)
        return total / max(1, int((spread > 0.0).sum()))

    grid = np.arange(-SEARCHED_S, SEARCHED_S + 1e-9, max(period, 2e-3))
    middle = float(grid[int(np.argmin([mismatch(s) for s in grid]))])
    late, least = search(mismatch, middle - 2.0 * period, middle + 2.0 * period)
    if -least < ALIKE:
        return unknown(
            name, f"{what}s do not follow the commands (correlation {-least:.2f})", "drives that do"
        )
    k = int(np.argmax(spread))
    lines = {"commanded": wanted[:, k], "measured": measured[:, k]}
    picture = Picture(
        f"{what.capitalize()} of {case.log.joints[k]}", "time, s", case.samples.time, "", lines
    )
    if late > max(DELAY_S, DELAY_PERIODS * period):
        return Finding(
            name,
            WRONG,
            f"{what}s are measured {1e3 * late:.1f} ms after their commands (correlation {-least:.2f}), likely",
            "look for a queue between controller and drives, or a filter of the measurement",
            gain=late / DELAY_S,
            picture=picture,
        )
    return fine(
        name, f"{what}s follow their commands within {1e3 * max(late, 0.0):.1f} ms", picture
    )


def drive_scale(case: Case) -> Finding:
    """Efforts or currents against the commanded ones: a torque constant that drive and log do not share."""
    name, driven = "torque constants", _driven(case)
    if driven is None:
        return unknown(
            name, "no commands beside efforts or currents", "commanded efforts or currents"
        )
    what, wanted, measured = driven
    good = case.samples.good
    x, y = wanted[good] - wanted[good].mean(axis=0), measured[good] - measured[good].mean(axis=0)
    sizes = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    alike = np.divide(np.sum(x * y, axis=0), sizes, out=np.zeros_like(sizes), where=sizes > 1e-9)
    clear = alike > ALIKE
    if not clear.any():
        return unknown(name, f"{what}s do not follow the commands", "drives that do")
    slope = np.ones(len(sizes))
    slope[clear] = np.linalg.norm(y[:, clear], axis=0) / np.linalg.norm(x[:, clear], axis=0)
    # What is not explained may change the ratio by as much.
    doubt = np.sqrt(1.0 / np.maximum(alike, ALIKE) ** 2 - 1.0)
    off = np.abs(np.log(np.maximum(slope, 1e-9)))
    k = int(np.argmax(off - doubt))
    if off[k] > np.log(1.0 + SCALE) + doubt[k]:
        joint = case.log.joints[k]
        return Finding(
            name,
            WRONG,
            f"{what}s of {joint} are {slope[k]:.2f} of the commanded ones, likely",
            f"divide the {what}s of {joint} by {slope[k]:.2f}, or correct the constant of its drive",
            {"correct": {what: {joint: {"times": round(1.0 / float(slope[k]), 4)}}}},
            gain=float(off[k]),
        )
    return fine(name, f"{what}s are {slope.min():.2f} to {slope.max():.2f} of the commanded ones")


def _lag(commanded: Array, measured: Array, period: float) -> float | None:
    """How long after the commands (n, na) the same positions are measured, s; None where they never are."""
    k = int(np.argmax(np.std(measured, axis=0)))
    x, y = commanded[:, k] - commanded[:, k].mean(), measured[:, k] - measured[:, k].mean()
    norms = float(np.linalg.norm(x) * np.linalg.norm(y))
    if norms < 1e-12:
        return None
    together = correlate(y, x, mode="full", method="fft") / norms
    best = int(np.argmax(together))
    return (best - (len(x) - 1)) * period if together[best] > ALIKE else None


def tracking(case: Case) -> Finding:
    """The joints' error by cause: what part of it goes with velocity, friction, acceleration, or is constant."""
    name, wanted = "tracking error", case.log.commands.position
    if wanted is None:
        return unknown(name, "no commanded positions", "commanded positions")
    samples = case.samples
    good = samples.good
    commanded = interpolated(samples, wanted)
    lag = _lag(commanded[good], samples.position[good], samples.period)
    if lag is None or abs(lag) > LONGEST_LAG_S:
        seen = "at no shift" if lag is None else f"only {lag:+.2f} s later"
        return unknown(
            name,
            f"positions go with the commanded ones {seen}",
            "commands with the stamps of the joints",
        )
    error = (commanded - samples.position)[good]
    size = np.sqrt(np.mean(error**2, axis=0))
    motion = np.std(samples.position[good], axis=0)
    share = np.divide(size, motion, out=np.zeros_like(size), where=motion > 1e-3)
    k = int(np.argmax(share))
    v, a = samples.velocity[good, k], samples.acceleration[good, k]
    causes = {
        "delay or damping": v,
        "friction": np.tanh(v / FRICTION_SPEED),
        "inertia": a,
        "a constant (offset or load)": np.ones(len(v)),
    }
    columns = np.column_stack([*causes.values()])
    values = np.linalg.lstsq(columns, error[:, k], rcond=None)[0]
    left = error[:, k] - columns @ values
    without = {
        cause: float(np.sum((left + columns[:, n] * values[n]) ** 2))
        for n, cause in enumerate(causes)
    }
    cause = max(without, key=lambda each: without[each])
    if float(np.sum(left**2)) > 0.5 * float(np.sum(error[:, k] ** 2)):
        cause = "none of delay, friction, inertia, offset: the model, a limit or contact"
    joint = case.log.joints[k]
    text = f"{size[k]:.3g} rad rms in {joint}, {100 * share[k]:.0f} % of its motion, most of it by {cause}"
    if cause.startswith("delay"):
        text += f" ({1e3 * values[0]:.0f} ms)"
    lines = {"error": error[:, k]}
    picture = Picture(f"Tracking error of {joint}", "time, s", samples.time[good], "rad", lines)
    if share[k] > LARGE:
        return Finding(
            name,
            WRONG,
            text + "; likely",
            "mend this cause first",
            gain=float(share[k]),
            picture=picture,
        )
    return fine(name, text, picture)
