"""Checks values of single channels: at a limit of the sensor or drive, or in coarse steps."""

from __future__ import annotations

import numpy as np

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong
from contact_id_controller.logs.log import Array

HELD = 0.005
"""Least share of samples at the extreme value for it to be a limit."""

RUN = 5
"""Least number of samples in a row at the extreme: noise does not stay there."""


COARSE_RAD = 2.0 * np.pi / 2048.0
"""A step of 11 bits per turn: at 100 Hz the resolution of velocities is .3 rad/s."""

EVEN = 0.9
"""Least share of differences between values that are multiples of a step."""

FEWEST = 4
"""Least number of different values of a joint with which steps can be found."""


def saturation(case: Case) -> Finding:
    """Check efforts, currents and the IMU for a limit: the same extreme value, repeatedly several times in a row."""
    name, log = "saturation", case.log
    channels: list[tuple[str, Array, tuple[str, ...]]] = [
        (kind, values, log.joints)
        for kind, values in (("effort", log.effort), ("current", log.current))
        if values is not None
    ]
    if log.imu is not None:
        axes = ("x", "y", "z")
        channels += [("angular velocity", log.imu.angular_velocity, axes)]
        channels += [("acceleration", log.imu.acceleration, axes)]
    if not channels:
        return unknown(
            name, "neither efforts, currents nor an IMU", "efforts or currents in the log"
        )
    worst = (0.0, "", 0.0, np.zeros(0))
    for kind, values, names in channels:
        for column, own in zip(values.T, names):
            for limit in (column.max(), column.min()):
                share = _held(column, float(limit))
                if share > worst[0]:
                    worst = share, f"{kind} of {own}", float(limit), column
    share, what, limit, column = worst
    if share > HELD:
        return wrong(
            name,
            f"{what} stays at {limit:.4g} for {100 * share:.1f} % of the time, certain",
            "demand less (slower motion, lower gains), or raise the limit of the drive or the range of the sensor",
            picture=Picture(
                f"{what}", "row", np.arange(len(column), dtype=float), "value", {what: column}
            ),
        )
    return fine(name, "no channel stays at an extreme value")


def _held(column: Array, limit: float) -> float:
    """Share of the samples at a limit in runs, while the channel varies otherwise."""
    spread = float(np.std(column))
    if spread == 0.0 or abs(limit - float(np.median(column))) < spread:
        return 0.0
    at = np.isclose(column, limit, rtol=1e-6, atol=1e-9)
    edges = np.diff(np.concatenate([[0], at.astype(int), [0]]))
    lengths = np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0)
    return float(lengths[lengths >= RUN].sum()) / len(column)


def quantisation(case: Case) -> Finding:
    """Check for positions in steps that are larger than the joints' motion between two samples."""
    name, log = "quantisation", case.log
    if log.position is None:
        return unknown(name, "no positions", "positions in the log")
    found = []
    for joint, column in zip(log.joints, log.position.T):
        steps = np.diff(np.unique(np.round(column, 12)))
        if len(steps) < FEWEST:
            continue
        step = float(np.percentile(steps, 10))
        even = float(np.mean(np.abs(steps / step - np.round(steps / step)) < 0.02))
        found.append((step if even > EVEN else 0.0, joint))
    if not found:
        return unknown(name, "no joint moves", "a motion of the joints")
    coarse = [each for each in found if each[0] > COARSE_RAD]
    if coarse:
        step, joint = max(coarse)
        return wrong(
            name,
            f"{len(coarse)} of {len(log.joints)} joints are in coarse steps, {joint} of {step:.3g} rad, certain",
            "log more digits, or encoders before the gears: differences of these positions are noise",
        )
    return fine(name, f"steps of {max(each[0] for each in found):.2g} rad or less")
