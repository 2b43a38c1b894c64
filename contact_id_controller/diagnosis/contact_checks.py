"""Checks forces of the feet: unit and offset by the weight, and thresholds of contact by the loads."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import binary_erosion

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong

UNIT = 3.0
"""Factor from which forces are in another unit: beyond the error of any robot's mass."""

WEIGHT = 0.06
"""Tolerance of the feet's mean load, as a share of the weight: force sensors and masses together."""

EMPTY = 0.2
"""Tolerated reading of a foot's sensor in the air, as a share of its load."""

LIFTED = 0.6
"""Share of a foot's load below which it was in the air; one that always stands carries more."""

LATE = 0.33
"""Share of a foot's load above which a threshold detects contact late."""

NOISES = 3.0
"""Least ratio of a threshold to the sensors' reading in the air."""


def weight(case: Case) -> Finding:
    """Compare the model's mass with the feet's mean load, which over a walk is the weight."""
    name, samples = "mass and payload", case.samples
    if case.of is None or not samples.loads.shape[1] or len(case.of.feet) != len(samples.feet):
        return unknown(
            name, "no forces of the feet, or none of known feet", "forces of all feet, and --urdf"
        )
    carried, mass = carried_kg(case), case.of.robot.mass
    ratio = carried / mass
    total = samples.loads[samples.good].sum(axis=1)
    picture = Picture(
        "What the feet carry together",
        "time, s",
        samples.time[samples.good],
        "N",
        {"feet": total, "weight of the URDF": np.full(len(total), total.mean() / ratio)},
    )
    if not in_newtons(ratio):
        return unknown(
            name,
            f"together the feet carry {ratio:.3g} times the weight: the sensors do not measure in newtons",
            f"forces in N; if nothing else carries the robot, multiply them by {1.0 / max(ratio, 1e-9):.4g}",
        )
    if abs(ratio - 1.0) > WEIGHT:
        return wrong(
            name,
            f"the feet carry {carried:.2f} kg, the URDF weighs {mass:.2f} kg ({ratio:.3f}); likely",
            f"multiply the masses of the URDF by {ratio:.3f}, or the forces by {1.0 / ratio:.3f}",
            gain=abs(ratio - 1.0) / WEIGHT,
            picture=picture,
        )
    return fine(name, f"the feet carry {ratio:.3f} of the URDF's {mass:.1f} kg", picture)


def in_newtons(ratio: float) -> bool:
    """Whether a mean load of this share of the weight means that sensors report N."""
    return abs(math.log(max(ratio, 1e-9))) < math.log(UNIT)


def carried_kg(case: Case) -> float:
    """The feet's mean load, kg."""
    samples = case.samples
    felt = 9.81
    if samples.accel is not None:
        felt = float(np.linalg.norm(samples.accel[samples.good].mean(axis=0)))
    return float(samples.loads[samples.good].sum(axis=1).mean()) / felt


def sensors(case: Case) -> Finding:
    """Check that each foot's sensor reads a load on the ground, and nearly none in the air."""
    name, samples = "contact sensors", case.samples
    if not samples.loads.shape[1]:
        return unknown(name, "no forces of the feet", "forces of the feet in the log")
    low = np.percentile(samples.loads, 2.0, axis=0)
    top = np.percentile(samples.loads, 95.0, axis=0)
    if np.any(top <= 0.0):
        foot = samples.feet[int(np.argmin(top))]
        return wrong(
            name,
            f"the sensor of {foot} reads nothing, certain",
            "look at its cable",
            gain=1.0,
        )
    lifted = low < LIFTED * top
    share = np.where(lifted, np.abs(low) / top, 0.0)
    worst = int(np.argmax(share))
    if not lifted.any():
        return unknown(name, "no foot leaves the ground", "steps")
    newtons = case.of is not None and in_newtons(carried_kg(case) / case.of.robot.mass)
    if share[worst] > EMPTY and newtons:
        return wrong(
            name,
            f"{samples.feet[worst]} reads {low[worst]:.3g} in the air, {100 * share[worst]:.0f} % of its load on the ground; likely",
            "zero the sensors while the robot hangs",
            gain=0.5,
        )
    return fine(name, f"in the air feet read {100 * share.max():.1f} % of their load or less")


def thresholds(case: Case) -> Finding:
    """Compare the controller's threshold of contact with the feet's loads and the sensors' readings in the air."""
    name, samples = "contact thresholds", case.samples
    settings = None if case.of is None else case.of.settings
    if settings is None or not samples.loads.shape[1]:
        return unknown(
            name, "needs forces of the feet and a parameter file", "--config, forces of the feet"
        )
    if case.of is not None and not in_newtons(carried_kg(case) / case.of.robot.mass):
        return unknown(name, "the sensors do not measure in newtons", "forces in N")
    top = float(np.median(np.percentile(samples.loads, 95.0, axis=0)))
    # Without the ends of each flight: a foot that touches down passes every small load.
    flights = binary_erosion(samples.loads < EMPTY * top, np.ones((3, 1)), samples.width)
    air = samples.loads[flights]
    noise = float(np.percentile(np.abs(air), 99.0)) if air.size else 0.0
    on = settings.contact_force_on_n
    good = max(EMPTY * top, min(NOISES * noise, LATE * top))
    picture = Picture(
        "Loads and the threshold",
        "time, s",
        samples.time,
        "N",
        {
            **{foot: samples.loads[:, k] for k, foot in enumerate(samples.feet)},
            "contact_force_on_n": np.full(len(samples.time), on),
        },
    )
    if on > LATE * top or on < noise:
        why = "contact is found late" if on > LATE * top else "noise counts as contact"
        return wrong(
            name,
            f"contact_force_on_n is {on:.3g} N, {100 * on / top:.0f} % of the {top:.3g} N that a foot carries: {why}; likely",
            f"set contact_force_on_n to {good:.2g}",
            gain=0.5,
            picture=picture,
        )
    return fine(name, f"{on:.3g} N is {100 * on / top:.0f} % of what a foot carries", picture)
