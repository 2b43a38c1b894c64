"""Whether a solution obeys its contact model, measured from forces and motion alone.

Nothing of what a solver says of itself is used. Forces count relative to the problem's largest
one, velocities relative to its largest contact velocity, powers relative to the product.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.models.coulomb_lcp import NO_SLIP
from contact_id_controller.models.steps.plan import TOUCHING_SPEED
from contact_id_controller.solution import Solution

REGULARISATION = {"coulomb": 1e-6, "no_slip": 1e-2}  # the defaults of the one-stage models
STANDSTILL_M_S = 1e-9  # the velocity scale is at least this: 1e-6 of it is the rounding of some m/s
SMALLEST_FORCE = (
    1e-6  # the force scale is at least this share of the one that would stop the contacts
)


def violation(friction: str, solver: str, solution: Solution, edges: int, polygon: str) -> float:
    """Largest relative violation of the model's laws; infinite when something is not finite."""
    problem, n = solution.problem, len(solution.problem)
    if not all(
        np.isfinite(x).all() for x in (solution.impulses, solution.torques, solution.velocity)
    ):
        return np.inf
    if n == 0:
        return 0.0
    z, w = solution.impulses.reshape(n, 3), solution.contact_velocity.copy()
    # Bodies that fall together have contact velocities made of rounding alone: no law is in them.
    # A penetration's recovery is a speed of the problem like its contact velocities.
    speed = max(np.abs(problem.c).max(), np.abs(w).max(), -problem.gap_speed.min(), STANDSTILL_M_S)
    inertia = np.square(problem.Y).sum() / (3 * n)
    force = max(np.abs(z).max(), SMALLEST_FORCE * speed / inertia if inertia else 0.0)
    force = force or 1.0
    z, w = z / force, w / speed
    gap = problem.gap_speed / speed
    touching = problem.gap_speed <= TOUCHING_SPEED
    parting = w[:, 0] + gap
    pull = np.maximum(-z[:, 0], 0.0)
    if friction == "viscous":
        return float(
            max(
                _rubbing(problem, z, w, touching, force, speed),
                pull.max(),
                np.maximum(-parting, 0.0).max(),
                np.abs(z[:, 0] * parting).max(),
            )
        )
    if friction == "no_slip":
        mu, edges = np.where(touching, np.inf, 0.0), 4
    else:
        mu = problem.contacts.friction / (
            np.cos(np.pi / edges) if polygon == "circumscribed" else 1.0
        )
    if solver == "qcqp":
        return _holding(z, w, gap, touching, problem.contacts.friction)
    if solver.startswith("lcp"):
        if friction == "coulomb":
            return _complementary(z, w, parting, np.minimum(mu, NO_SLIP), edges)
        return _no_slip(z, w, parting, touching)
    if solver == "qp_one_stage":
        w = w + REGULARISATION[friction] * (inertia or 1.0) * z * force / speed
        parting = w[:, 0] + gap
    return _conic(z, w, parting, mu, edges)


def outside_cone(z: np.ndarray, mu: np.ndarray, edges: int) -> float:
    """Distance (n, 3) forces lie beyond the pyramid's facets, pulling forces included."""
    angle = 2.0 * np.pi * (np.arange(edges) + 0.5) / edges
    outward = (z[:, 1:] @ np.array([np.cos(angle), np.sin(angle)])).max(axis=1)
    bound = np.where(np.isinf(mu), 0.0, mu) * np.cos(np.pi / edges) * np.maximum(z[:, 0], 0.0)
    over = np.where(
        np.isinf(mu), -np.inf, (outward - bound) / (1.0 + np.where(np.isinf(mu), 0.0, mu))
    )
    return float(np.maximum(over, -z[:, 0]).max(initial=0.0))


def _holding(z, w, gap, touching, mu):
    """Forces in their exact cones; a loaded contact neither parts nor, with friction, slips."""
    bounded = np.where(np.isinf(mu), 0.0, mu)
    over = np.where(np.isinf(mu), 0.0, np.hypot(z[:, 1], z[:, 2]) - bounded * z[:, 0]) / (
        1.0 + bounded
    )
    slip = np.where(mu > 0.0, np.hypot(w[:, 1], w[:, 2]), 0.0)
    closing = np.where(touching, -(w[:, 0] + np.maximum(gap, 0.0)), 0.0)
    loaded = np.abs(z).max(axis=1)
    return float(
        max(
            over.max(),
            -z[:, 0].min(),
            closing.max(),
            (loaded * np.hypot(w[:, 0], slip)).max(),
            np.where(touching, 0.0, loaded).max(),
            0.0,
        )
    )


def _along_edges(values: np.ndarray, edges: int) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(edges) / edges
    return values @ np.array([np.cos(angle), np.sin(angle)])


def _conic(z, w, parting, mu, edges):
    """z in the pyramid K, w in its dual, orthogonal."""
    bounded = np.where(np.isinf(mu), 0.0, mu)
    slack = parting + bounded * _along_edges(w[:, 1:], edges).min(axis=1)
    slack = slack / (1.0 + bounded)  # slack of a unit force along the edge
    slip = np.where(np.isinf(mu), np.abs(w[:, 1:]).max(axis=1), 0.0)
    power = z[:, 0] * parting + (z[:, 1:] * w[:, 1:]).sum(axis=1)
    return float(
        max(
            outside_cone(z, mu, edges),
            np.maximum(-slack, 0.0).max(),
            slip.max(),
            np.abs(power).max(),
        )
    )


def _complementary(z, w, parting, mu, edges):
    """Normal complementarity; friction dissipates as much as the polygon allows."""
    most = -_along_edges(w[:, 1:], edges).min(axis=1)
    power = (z[:, 1:] * w[:, 1:]).sum(axis=1) + mu * z[:, 0] * most
    return float(
        max(
            outside_cone(z, mu, edges),
            np.maximum(-parting, 0.0).max(),
            np.abs(z[:, 0] * parting).max(),
            np.abs(power / (1.0 + mu)).max(),
        )
    )


def _no_slip(z, w, parting, touching):
    """Normal complementarity; no tangential motion where a touching contact holds."""
    holds = np.abs(z[:, 1:]).max(axis=1)
    slip = np.abs(w[:, 1:]).max(axis=1)
    free = np.where(touching, 0.0, holds)
    return float(
        max(
            np.maximum(-z[:, 0], 0.0).max(),
            np.maximum(-parting, 0.0).max(),
            np.abs(z[:, 0] * parting).max(),
            free.max(),
            (np.abs(z).max(axis=1) * slip * touching).max(),
        )
    )


def _rubbing(problem, z, w, touching, force, speed):
    """Tangential impulses of implicit viscous friction, in the contact velocity at the end."""
    rub = np.where(touching, problem.period * problem.contacts.viscosity, 0.0)[:, None]
    end = w[:, 1:] * speed + problem.keep * problem.speed.reshape(-1, 3)[:, 1:]
    # Error as a force where friction is weak, as a velocity where it is strong.
    return float((np.abs(z[:, 1:] * force + rub * end) / (force + rub * speed)).max())
