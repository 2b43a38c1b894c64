"""Friction estimate by slip: a round foot that slips where the model predicts sticking has less friction than configured.

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

    Requires the measured force of that time, see ``disturbance.observe``. Of feet with one contact: a landing jolts the
    sole that stands, it rolls, and what its corners bear meanwhile is no friction.
    """
    settings, forces, carried = period.settings, period.forces, period.carried
    normals, grip, count = period.normals, period.grip, period.grip.shape[0]
    borne, pressing, slip, friction = np.zeros((4, count))
    lasts, loaded, bearing = np.zeros(count, np.bool_), np.zeros(count, np.bool_), 0.0
    for i in range(count):
        k = settings.foot[i]
        for d in range(3):
            borne[i] += forces[i, d] * normals[i, d]
            pressing[i] += carried[i, d] * normals[i, d]
        alone = settings.begins[k + 1] - settings.begins[k] == 1
        lasts[i] = alone and period.contact[i] and period.foreseen[i] < np.inf
        bearing = max(bearing, borne[i])
    slides, bear = True, 0
    for i in range(count):
        loaded[i] = lasts[i] and pressing[i] > LOADED * bearing
        if not loaded[i]:
            continue
        whole, square = 0.0, 0.0
        for d in range(3):
            whole += forces[i, d] * forces[i, d]
            square += carried[i, d] * carried[i, d]
        friction[i] = np.sqrt(max(square - pressing[i] * pressing[i], 0.0)) / pressing[i]
        drawn = np.sqrt(max(whole - borne[i] * borne[i], 0.0))
        now, foreseen = slip_speed(period, i, period.v), period.foreseen[i]
        more = now - foreseen
        slip[i] = more - min(max(more, -NOISE_M_S), NOISE_M_S)
        less = borne[i] > LOADED * bearing and friction[i] * borne[i] < SURE * drawn
        slides = slides and less and now > max(SLIDES_M_S, SURE * foreseen)
        bear += 1
    slides = slides and bear > 1  # a single one may be in the air
    period.slips[0] = False
    for i in range(count):
        if not lasts[i]:
            period.stands_s[i] = period.excess[i] = 0.0
        elif loaded[i]:
            _bound(period, i, slip[i], friction[i], slides)
        else:
            period.excess[i] *= 1.0 - settings.period_s / EVIDENCE_S
        period.slips[0] |= grip[i] < FORGOTTEN


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
        excess[i] = 0.0  # once is enough: it may stand now, and be felt to need little friction
    elif grip[i] < FORGOTTEN:
        grip[i] *= 1.0 + dt / GROWS_S
    else:
        grip[i] = np.inf


def figures(period: Period) -> dict[str, str]:
    """Names and values for the diagnostics."""
    felt = ("-" if math.isinf(bound) else f"{bound:.2g}" for bound in period.grip.tolist())
    return {"friction felt": ", ".join(felt)}
