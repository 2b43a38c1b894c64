"""Where and when to step: a receding-horizon program in the divergent component of motion.

    xi = c + c'/w,   xi' = w (xi - p)      p: centre of pressure, w = sqrt(g / h)

Phases with a constant p (one group of feet carries) and with p going linearly from one group to the next
(both carry) map xi affinely, so xi three steps ahead is affine in footholds and pressure

    z = (p0, u1, d1, u2, d2, u3)

    min  sum of weighted squares (`Weights`)
    s.t. p0 in the hull of what stands;  d in the sole;  each step in a box: reach, width, no crossing;
         u1 where the foot aloft gets in time;  feet within the legs' reach of c at the landing

A quadratic program in z for each candidate time of landing (e^{w T} makes the whole not convex); the cheapest
one is taken. A group is one foot of a biped, or feet of a quadruped that stand together; u is its middle.

Source: Englsberger et al., Three-dimensional bipedal walking control based on divergent component of motion
(T-RO 2015); Khadiv et al., Walking control based on step timing adaptation (T-RO 2020).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.planning.walking.program_kernels import UNKNOWNS, best_landing
from contact_id_controller.planning.walking.step_rules import Rules, Situation, Weights


class Landing(NamedTuple):
    """The cheapest plan of steps.

    Attributes:
        after_s: time until the next group lands, or with both standing until it lifts.
        pressure (2,): centre of pressure until then.
        footholds (3, 2): u1 to u3; with both standing u1 is where the group that will carry stands.
        cost: of `Weights`.
    """

    after_s: float
    pressure: np.ndarray
    footholds: np.ndarray
    cost: float


def next_landing(
    rules: Rules, weights: Weights, situation: Situation, times_s: np.ndarray
) -> Landing | None:
    """The cheapest landing among candidates (k,), s from now; None: none is feasible.

    Where no candidate keeps the legs' reach, the reach is given up: a late step is better than none.
    """
    for legs in reaches(rules):
        landing = landing_within(legs, rules, weights, situation, times_s)
        if landing is not None:
            return landing
    return None


def reaches(rules: Rules) -> tuple[bool, ...]:
    """Whether the legs' reach counts, as it is tried one after the other."""
    return (True, False) if rules.leg_m < np.inf else (False,)


def landing_within(
    legs: bool, rules: Rules, weights: Weights, situation: Situation, times_s: np.ndarray
) -> Landing | None:
    """The same; legs: whether their reach counts."""
    z = np.empty(2 * UNKNOWNS)
    best, cost = best_landing(tuple(rules), tuple(weights), tuple(situation), times_s, legs, z)
    if best < 0:
        return None
    rows = z.reshape(UNKNOWNS, 2)
    return Landing(float(times_s[best]), rows[0], rows[1::2], cost)
