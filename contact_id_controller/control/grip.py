"""Friction estimate by slip: a foot that slips where the model predicts sticking has less friction than configured.

The solution predicts how fast each contact will slip at the end of a period; the next state shows how fast it does.
The excess, summed over some periods, is evidence; predicted slip, as on known ice, is none, unless all loaded feet
keep their speed with less friction than predicted: where a stance is pressed apart, each period predicts from the
speed that it finds. (A single foot that seems to do so may be in the air, moved by motors other than told.) With
enough evidence the measured force on the foot (``disturbance``) gives its friction, |f_T| / f_N; a share of it bounds
that foot's friction in the model. The bound grows slowly with the foot's time in stance.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control.period import Period
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.spatial import point_column

EXCESS_M_S = 0.05
"""Evidence of a slip: speed in excess of the predicted one, summed over periods, fading over ``EVIDENCE_S``. With .1
the error on ground of a third of the configured friction is up to twice as large."""
SLIDES_M_S = 0.1
"""Speed from which feet that keep it slide: with .05 the noise of an estimated state halves the friction of known
ice."""

EVIDENCE_S = 0.02
NOISE_M_S = 0.01  # of a foot's speed, that is no evidence
LANDED_S = 0.01  # so long after a contact began its speed is that of its landing
LOADED = 0.1  # share of the largest normal force below which a foot bears too little to tell
SURE = 0.85
"""Share of the measured friction that is used: all of it lets feet slip again and again, half costs torque without
benefit. Feet that keep this share of the predicted speed, with less than this share of the predicted friction, slide.
"""

LEAST = 0.05  # friction is not felt to be less
GROWS_S = 10.0
"""Time in stance in which the bound grows e times. Ground changes with the place, and a bound that grows faster lets
feet slip every few steps."""

FORGOTTEN = 10.0  # a bound as high as this is none


def room(contacts: int) -> dict[str, NDArray[np.generic]]:
    """Allocate the arrays of a ``Period`` that only this module uses, by name."""
    return {
        "grip": np.full(contacts, math.inf),
        "excess": np.zeros(contacts),
        "stands_s": np.zeros(contacts),
        "foreseen": np.full(contacts, math.inf),
        "slips": np.zeros(1, dtype=bool),
    }


def forget(period: Period) -> None:
    """Reset the estimate: no foot has slipped."""
    period.grip[:] = period.foreseen[:] = math.inf
    period.excess[:] = period.stands_s[:] = 0.0
    period.slips[:] = False


@kernel
def slip_speed(period, i, velocity):
    """Tangential speed, m/s, of contact i with generalized velocity (nv,)."""
    J, point, normal = period.jacobian, period.points[i], period.normals[i]
    moves = period.settings.supports[period.settings.links[i]]
    x, y, z = 0.0, 0.0, 0.0
    for k in range(velocity.shape[0]):
        if moves[k]:
            a, b, c = point_column(J, k, point)
            x, y, z = x + a * velocity[k], y + b * velocity[k], z + c * velocity[k]
    away = x * normal[0] + y * normal[1] + z * normal[2]
    return np.sqrt(max(x * x + y * y + z * z - away * away, 0.0))


@kernel
def foresee(period, velocity):
    """Store predicted slip speeds of the contacts, by the generalized velocity (nv,) of a solution."""
    for i in range(period.grip.shape[0]):
        period.foreseen[i] = slip_speed(period, i, velocity) if period.contact[i] else np.inf


@kernel
def learn(period):
    """Update ``grip`` from the state of ``period`` and the ``forces`` and ``foreseen`` of the period before.

    Requires the measured force of that time, see ``disturbance.observe``. A sole slips as a unit: slips of its corners
    are weighted by their loads, and its friction is sum |f_T| / sum f_N, also when it turns. Its predicted slip is no
    evidence in any case: a sole that rolls about an edge for some ms moves its corners, too.
    """
    foot, forces = period.settings.foot, period.forces
    normals, carried = period.normals, period.carried
    feet, bearing = period.settings.begins.shape[0] - 1, 0.0
    sums = np.zeros((8, feet))
    borne, pressing, along, slip = sums[0], sums[1], sums[2], sums[3]
    drawn, speed, foreseen, friction = sums[4], sums[5], sums[6], sums[7]
    lasts, loaded = np.ones(feet, np.bool_), np.zeros(feet, np.bool_)
    for i in range(foot.shape[0]):
        k, normal, square, load, whole = foot[i], 0.0, 0.0, 0.0, 0.0
        for d in range(3):
            load += forces[i, d] * normals[i, d]
            whole += forces[i, d] * forces[i, d]
            normal += carried[i, d] * normals[i, d]
            square += carried[i, d] * carried[i, d]
        borne[k] += load
        drawn[k] += np.sqrt(max(whole - load * load, 0.0))
        lasts[k] = lasts[k] and period.contact[i] and period.foreseen[i] < np.inf
        pressing[k] += normal
        along[k] += np.sqrt(max(square - normal * normal, 0.0))
        if lasts[k]:
            now = slip_speed(period, i, period.v)
            speed[k] += max(normal, 0.0) * now
            foreseen[k] += max(normal, 0.0) * period.foreseen[i]
            more = now - period.foreseen[i]
            slip[k] += max(normal, 0.0) * (more - min(max(more, -NOISE_M_S), NOISE_M_S))
    for k in range(feet):
        bearing = max(bearing, borne[k])
    slides, bear = not period.settings.soles, 0
    for k in range(feet):
        loaded[k] = lasts[k] and pressing[k] > LOADED * bearing
        if loaded[k]:
            friction[k] = along[k] / pressing[k]
            less = borne[k] > LOADED * bearing and friction[k] * borne[k] < SURE * drawn[k]
            goes_on = speed[k] > max(SLIDES_M_S * pressing[k], SURE * foreseen[k])
            slides = slides and less and goes_on
            bear += 1
    slides = slides and bear > 1  # a single one may be in the air
    period.slips[0] = False
    for i in range(foot.shape[0]):
        k = foot[i]
        if not lasts[k]:
            period.stands_s[i] = period.excess[i] = 0.0
        elif loaded[k]:
            _bound(period, i, slip[k] / pressing[k], friction[k], slides)
        else:
            period.excess[i] *= 1.0 - period.settings.period_s / EVIDENCE_S
        period.slips[0] |= period.grip[i] < FORGOTTEN


@kernel
def _bound(period, i, slip, friction, slides):
    """Update ``grip`` of contact i, whose foot slipped ``slip``, m/s, faster than predicted at this |f_T| / f_N.

    slides: all loaded feet slip as predicted, with less friction than predicted.
    """
    grip, excess, dt = period.grip, period.excess, period.settings.period_s
    period.stands_s[i] += dt
    if period.stands_s[i] > LANDED_S:
        excess[i] = max(excess[i] * (1.0 - dt / EVIDENCE_S) + slip, 0.0)
    if excess[i] > EXCESS_M_S or (slides and period.stands_s[i] > LANDED_S):
        grip[i] = max(min(grip[i], SURE * friction), LEAST)
        if not period.settings.soles:
            excess[i] = 0.0  # once is enough: it may stand now, and be felt to need little friction
    elif grip[i] < FORGOTTEN:
        grip[i] *= 1.0 + dt / GROWS_S
    else:
        grip[i] = np.inf


def figures(period: Period) -> dict[str, str]:
    """Names and values for the diagnostics."""
    felt = ("-" if math.isinf(bound) else f"{bound:.2g}" for bound in period.grip.tolist())
    return {"friction felt": ", ".join(felt)}
