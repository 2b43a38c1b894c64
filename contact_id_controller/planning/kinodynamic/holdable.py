"""Largest push that can be balanced with the planned footholds (0-step capturability).

After a push the centre of mass is off the plan. On a pendulum of height h, w = sqrt(g / h), only the
part e = (c + c'/w) - (c_p + c_p'/w) of that grows (the divergent component of motion):

    e' = w (e - (p - p_p))        p in S(t), the hull of the soles in contact;  p_p: planned

so that e can be brought back if and only if it lies in a convex set, the weighted mean of the margins

    E(t) = { e : n.e <= H(n)  for all n },   H(n) = int_t^inf w e^{-w (s - t)} max_{p in S(s)} n.(p - p_p(s)) ds

A push changes e by its change of velocity / w. Corners of soles at other heights are projected from the centre of
mass to the planned pivot's height; the planned pivot p_p gives the planned acceleration, c_p'' = w^2 (c_p - p_p).
Neglected: angular momentum, which would allow somewhat more; friction; duration of the push and delay of the motors.

Source: Koolen, de Boer, Rebula, Goswami, Pratt, "Capturability-based analysis and control of legged
locomotion, part 1", International Journal of Robotics Research 31 (2012), N-step capturability with
N = 0 and a support that changes as planned.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline

from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan, corner_point
from contact_id_controller.planning.kinodynamic.momentum import MomentumPlan

STEP_S = 0.01
"""Of the integral."""

AHEAD_S = 3.0
"""How long the integral goes on over the last footholds."""

NORMALS = 72
"""Directions n in which H is computed."""


def holdable_velocity(plan: MomentumPlan, time_s: float, directions_rad: ArrayLike) -> np.ndarray:
    """Largest sudden horizontal change of the CoM's velocity that can be balanced with fixed footholds, m/s.

    Args:
        plan: of the momentum; a whole body's is ``MotionPlan.momentum``.
        time_s: of the push, from the plan's beginning.
        directions_rad: (k,) of the change, about the world's z axis from x on.

    Returns:
        (k,); times the mass it is the impulse, N·s. 0 where the plan itself leaves the soles.
    """
    angles = np.linspace(0.0, 2.0 * np.pi, NORMALS, endpoint=False)
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    contacts, times = plan.problem.contact_plan, plan.times_s
    gravity = float(np.linalg.norm(plan.problem.gravity))
    path = CubicHermiteSpline(times, plan.com, plan.velocity)
    accelerations = np.diff(plan.velocity, axis=0) / np.diff(times)[:, None]
    reach, share, first_rate = np.zeros(NORMALS), 1.0, None
    for now in np.arange(time_s, times[-1] + AHEAD_S, STEP_S):
        inside = min(now, times[-1])
        knot = np.searchsorted(times, inside, side="right") - 1
        acceleration = accelerations[knot] if knot < len(accelerations) else np.zeros(3)
        com, corners = path(inside), _corners(contacts, inside)
        height = com[2] - corners[:, 2].mean()
        square = (gravity + acceleration[2]) / height
        pivot = com[:2] - acceleration[:2] / square
        scale = height / (com[2] - corners[:, 2])
        points = com[:2] + (corners[:, :2] - com[:2]) * scale[:, None]
        rate = np.sqrt(square)
        first_rate = rate if first_rate is None else first_rate
        fade = np.exp(-rate * STEP_S)
        reach += share * (1.0 - fade) * ((points - pivot) @ normals.T).max(axis=0)
        share *= fade
    directions = np.asarray(directions_rad, dtype=float)
    along = np.cos(directions[:, None] - angles)
    limits = np.where(along > 1e-9, reach / np.maximum(along, 1e-9), np.inf)
    return first_rate * np.maximum(limits.min(axis=1), 0.0)


def _corners(plan: ContactPlan, time_s: float) -> np.ndarray:
    """Corners (n, 3), m, world, of the soles in contact at a time of the plan."""
    number = int(np.searchsorted(plan.boundaries_s, time_s, side="right")) - 1
    phase = plan.phases[min(number, len(plan.phases) - 1)]
    return np.array(
        [
            corner_point(foothold, corner)
            for foothold in phase.footholds
            for corner in dataclasses.replace(plan.sole_of(foothold.foot), cop_margin_m=0.0).corners
        ]
    )
