"""Compares commands with measurements: delay of the loop, scale of the drives, tracking error by cause."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.signal import correlate

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.even_samples import interpolated
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong
from contact_id_controller.diagnosis.hypotheses import search
from contact_id_controller.identification.smoothing import STILL
from contact_id_controller.logs.log import Array
from contact_id_controller.robot import FRICTION_SPEED

SEARCHED_S = 0.1
ALIKE = 0.8
"""Least correlation of a command with its measurement with which a delay is meaningful."""

DELAY_S, DELAY_PERIODS = 0.005, 1.5
FEWEST = 3
"""Least number of joints that determine a delay of all, or which constant differs."""

SCALE = 0.1
"""Tolerance of the ratio of measured to commanded torque."""

EVEN = 0.25
"""Range of the joints' ratios to their commands, as part of what the middle one is off: a load is not felt by all alike."""

LONGEST_LAG_S = 0.3
"""Longest plausible lag; beyond it commands have the stamps of another clock, or are of another motion."""

LARGE = 0.1
"""Tolerated tracking error as a share of a joint's motion."""


def _driven(case: Case) -> tuple[str, Array, Array] | None:
    """Name, commands and measurements (n, na) at even times, of torques or else currents; None without both."""
    log = case.log
    for name in ("effort", "current"):
        commanded, measured = getattr(log.commands, name), getattr(log, name)
        if commanded is not None and measured is not None:
            return name, interpolated(case.samples, commanded), interpolated(case.samples, measured)
    return None


def _moves(case: Case) -> NDArray[np.bool_]:
    """Joints (na,) that move: at rest dry friction holds any difference to the command."""
    speed = np.sqrt(np.mean(case.samples.velocity[case.samples.good] ** 2, axis=0))
    moves: NDArray[np.bool_] = speed > STILL * speed.max()
    return moves


def loop_delay(case: Case) -> Finding:
    """Delay from command to measured effort or current; a loop delays all following joints, friction only some."""
    name, driven = "loop delay", _driven(case)
    if driven is None:
        return unknown(
            name, "no commands beside efforts or currents", "commanded efforts or currents"
        )
    what, commanded, measured = driven
    good, period = case.samples.good, case.samples.period
    found = [
        _delay(commanded[:, k], measured[:, k], good, period) for k in np.flatnonzero(_moves(case))
    ]
    follow = [(late, correlation) for late, correlation in found if correlation > ALIKE]
    if not follow:
        best = max((correlation for _, correlation in found), default=0.0)
        return unknown(
            name, f"{what}s do not follow the commands (correlation {best:.2f})", "drives that do"
        )
    least, late = np.percentile([each for each, _ in follow], [25.0, 50.0])
    correlation = float(np.median([each for _, each in follow]))
    k = int(np.argmax(np.std(commanded[good], axis=0)))
    lines = {"commanded": commanded[:, k], "measured": measured[:, k]}
    picture = Picture(
        f"{what.capitalize()} of {case.log.joints[k]}", "time, s", case.samples.time, "", lines
    )
    late_all = least > max(DELAY_S, DELAY_PERIODS * period)
    if late_all and len(follow) < FEWEST:
        return unknown(
            name,
            f"{what}s of {len(follow)} joints are {1e3 * late:.0f} ms late, which may also be friction",
            f"a log in which {FEWEST} joints or more move",
        )
    if late_all:
        return wrong(
            name,
            f"{what}s are measured {1e3 * late:.1f} ms after their commands (correlation {correlation:.2f}), likely",
            "look for a queue between controller and drives, or a filter of the measurement",
            gain=float(late / DELAY_S),
            picture=picture,
        )
    quarter_ms, median_ms = (1e3 * max(float(each), 0.0) for each in (least, late))
    return fine(
        name,
        f"{what}s follow their commands within {quarter_ms:.1f} ms in a quarter of the joints, {median_ms:.1f} in half",
        picture,
    )


def _delay(
    wanted: Array, measured: Array, good: NDArray[np.bool_], period: float
) -> tuple[float, float]:
    """Delay of a channel (n,) behind another one, s, and their correlation with it."""
    index = np.arange(len(wanted), dtype=float)
    y = measured[good] - measured[good].mean()

    def mismatch(late_s: float) -> float:
        x = np.interp(index - late_s / period, index, wanted)[good]
        x = x - x.mean()
        return -float(x @ y) / max(float(np.linalg.norm(x) * np.linalg.norm(y)), 1e-12)

    grid = np.arange(-SEARCHED_S, SEARCHED_S + 1e-9, max(period, 2e-3))
    middle = float(grid[int(np.argmin([mismatch(s) for s in grid]))])
    late, least = search(mismatch, middle - 2.0 * period, middle + 2.0 * period)
    return late, -least


def drive_scale(case: Case) -> Finding:
    """Find wrong torque constants: the ratio of measured to commanded efforts or currents of each joint.

    One joint's constant is wrong if its ratio differs from 1 and from the median joint's: a load that the commands do
    not include changes several ratios. The common constant is wrong if all ratios differ from 1 alike.
    """
    name, driven = "torque constants", _driven(case)
    if driven is None:
        return unknown(
            name, "no commands beside efforts or currents", "commanded efforts or currents"
        )
    what, commanded, measured = driven
    good = case.samples.good
    x, y = (
        commanded[good] - commanded[good].mean(axis=0),
        measured[good] - measured[good].mean(axis=0),
    )
    sizes = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    correlation = np.divide(
        np.sum(x * y, axis=0), sizes, out=np.zeros_like(sizes), where=sizes > 1e-9
    )
    following = np.flatnonzero((correlation > ALIKE) & _moves(case))
    if not following.size:
        return unknown(name, f"{what}s do not follow the commands", "drives that do")
    ratios = np.linalg.norm(y[:, following], axis=0) / np.linalg.norm(x[:, following], axis=0)
    median = float(np.median(ratios)) if len(following) >= FEWEST else 1.0
    # Bound on the error of the ratio's logarithm: the part of the measurement that does not follow the command.
    uncertainty = np.sqrt(1.0 / np.minimum(correlation[following], 1.0) ** 2 - 1.0)
    log_ratios = np.log(ratios), np.log(ratios / median)
    excess = np.where(log_ratios[0] * log_ratios[1] > 0.0, np.minimum(*np.abs(log_ratios)), 0.0)
    k = int(np.argmax(excess - uncertainty))
    ratio, joint = (
        float(np.exp(np.sign(log_ratios[0][k]) * excess[k])),
        case.log.joints[following[k]],
    )
    if excess[k] > np.log(1.0 + SCALE) + uncertainty[k]:
        return wrong(
            name,
            f"{what}s of {joint} are {ratio:.2f} of the commanded ones, likely",
            f"divide the {what}s of {joint} by {ratio:.2f}, or correct the constant of its drive",
            {"correct": {what: {joint: {"times": round(1.0 / ratio, 4)}}}},
            gain=float(excess[k]),
        )
    if abs(math.log(median)) > math.log(1.0 + SCALE):
        certain = uncertainty < EVEN * abs(math.log(median))
        common = np.abs(log_ratios[1]) < uncertainty + EVEN * abs(math.log(median))
        if np.count_nonzero(certain) >= FEWEST and common.all():
            return wrong(
                name,
                f"{what}s of all {len(following)} joints that follow are {median:.2f} of the commanded ones, likely",
                f"divide the {what}s by {median:.2f}, or correct the constant that all drives share",
                {
                    "correct": {
                        what: {
                            joint: {"times": round(1.0 / median, 4)} for joint in case.log.joints
                        }
                    }
                },
                gain=abs(math.log(median)),
            )
        return unknown(
            name,
            f"{what}s are {median:.2f} times the commanded ones (median of the joints): a load, or all constants",
            "a log without load, or with a load that the controller knows",
        )
    return fine(name, f"{what}s are {ratios.min():.2f} to {ratios.max():.2f} of the commanded ones")


def _lag(commanded: Array, measured: Array, period: float) -> float | None:
    """Delay after which commanded positions (n, na) are measured, s; None if they never are."""
    k = int(np.argmax(np.std(measured, axis=0)))
    x, y = commanded[:, k] - commanded[:, k].mean(), measured[:, k] - measured[:, k].mean()
    norms = float(np.linalg.norm(x) * np.linalg.norm(y))
    if norms < 1e-12:
        return None
    together = correlate(y, x, mode="full", method="fft") / norms
    best = int(np.argmax(together))
    return (best - (len(x) - 1)) * period if together[best] > ALIKE else None


def tracking(case: Case) -> Finding:
    """The joints' tracking error by cause: shares due to velocity, friction, acceleration, and constant."""
    name, command = "tracking error", case.log.commands.position
    if command is None:
        return unknown(name, "no commanded positions", "commanded positions")
    samples = case.samples
    good = samples.good
    commanded = interpolated(samples, command)
    lag = _lag(commanded[good], samples.position[good], samples.period)
    if lag is None or abs(lag) > LONGEST_LAG_S:
        seen = (
            "do not correlate with their commands"
            if lag is None
            else f"follow their commands only {lag:+.2f} s later"
        )
        return unknown(name, f"positions {seen}", "commands with the stamps of the joints")
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
    residual = error[:, k] - columns @ values
    residual_without = {
        cause: float(np.sum((residual + columns[:, n] * values[n]) ** 2))
        for n, cause in enumerate(causes)
    }
    cause = max(residual_without, key=lambda each: residual_without[each])
    if float(np.sum(residual**2)) > 0.5 * float(np.sum(error[:, k] ** 2)):
        cause = "none of delay, friction, inertia, offset: the model, a limit or contact"
    joint = case.log.joints[k]
    text = f"{size[k]:.3g} rad rms in {joint}, {100 * share[k]:.0f} % of its motion, most of it by {cause}"
    if cause.startswith("delay"):
        text += f" ({1e3 * values[0]:.0f} ms)"
    lines = {"error": error[:, k]}
    picture = Picture(f"Tracking error of {joint}", "time, s", samples.time[good], "rad", lines)
    if share[k] > LARGE:
        return wrong(
            name,
            text + "; likely",
            "remove this cause first",
            gain=float(share[k]),
            picture=picture,
        )
    return fine(name, text, picture)
