"""Whether a solution obeys the law that its model's row states, measured from forces and motion.

Nothing of what a solver says of itself is used. Forces count relative to the problem's largest
one, velocities relative to its largest contact velocity, powers relative to the product.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION, effective_friction
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models import ContactModel, Normal, Tangential, row_of
from contact_id_controller.models.coulomb_lcp import NO_SLIP
from contact_id_controller.models.no_slip_qp import unbounded_friction
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

EXACT = None  # in place of the number of edges: the quadratic cone
STANDSTILL_M_S = 1e-9  # the velocity scale is at least this: 1e-6 of it is the rounding of some m/s
SMALLEST_FORCE = (
    1e-6  # the force scale is at least this share of the one that would stop the contacts
)


def friction_bound(
    row: ContactModel, problem: Problem, edges: int, polygon: str
) -> tuple[np.ndarray, int | None]:
    """Coefficients (n,) that bound the model's tangential forces, and the edges of its cone."""
    if row.tangential is Tangential.NO_SLIP:
        return unbounded_friction(problem), 4
    if row.tangential is not Tangential.COULOMB:
        return np.zeros(len(problem)), 4
    mu = effective_friction(problem.contacts.friction, np.inf)
    if row.exact_cone:
        return mu, EXACT
    return mu / (np.cos(np.pi / edges) if polygon == "circumscribed" else 1.0), edges


def violation(friction: str, solver: str, solution: Solution, edges: int, polygon: str) -> float:
    """Largest relative violation of the model's law; infinite when something is not finite.

    edges, polygon: of the friction cone, if the model has these options.
    """
    row = row_of(friction, solver)
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
    if row.tangential is Tangential.VISCOUS:
        return float(
            max(
                _rubbing(problem, z, w, touching, force, speed),
                pull.max(),
                np.maximum(-parting, 0.0).max(),
                np.abs(z[:, 0] * parting).max(),
            )
        )
    mu, edges = friction_bound(row, problem, edges, polygon)
    if row.normal is Normal.HOLDING:
        return _holding(z, w, gap, touching, mu)
    if row.normal is Normal.COMPLEMENTARITY:
        if row.tangential is Tangential.NO_SLIP:
            return _no_slip(z, w, parting, touching)
        return _complementary(z, w, parting, np.minimum(mu, NO_SLIP), edges)
    if row.yields:
        soft = row.defaults.regularisation
        w = w + soft * (inertia or 1.0) * z * force / speed
        parting = w[:, 0] + gap
    return _conic(z, w, parting, mu, edges)


def outside_cone(z: np.ndarray, mu: np.ndarray, edges: int | None) -> float:
    """Distance (n, 3) forces lie beyond the cone's surface, pulling forces included.

    edges: of the pyramid; ``EXACT``: the quadratic cone.
    """
    bounded = np.where(np.isinf(mu), 0.0, mu)
    if edges is EXACT:
        outward, inner = np.hypot(z[:, 1], z[:, 2]), 1.0
    else:
        angle = 2.0 * np.pi * (np.arange(edges) + 0.5) / edges
        outward = (z[:, 1:] @ np.array([np.cos(angle), np.sin(angle)])).max(axis=1)
        inner = np.cos(np.pi / edges)
    bound = bounded * inner * np.maximum(z[:, 0], 0.0)
    over = np.where(np.isinf(mu), -np.inf, (outward - bound) / (1.0 + bounded))
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


def _against(values: np.ndarray, edges: int | None) -> np.ndarray:
    """Speed (n,) of tangential velocities (n, 2) against the cone's most opposed direction."""
    if edges is EXACT:
        return np.hypot(values[:, 0], values[:, 1])
    angle = 2.0 * np.pi * np.arange(edges) / edges
    return -(values @ np.array([np.cos(angle), np.sin(angle)])).min(axis=1)


def _conic(z, w, parting, mu, edges):
    """z in the cone K, w in its dual, orthogonal."""
    bounded = np.where(np.isinf(mu), 0.0, mu)
    slack = parting - bounded * _against(w[:, 1:], edges)
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
    """Normal complementarity; friction dissipates as much as the cone allows."""
    most = _against(w[:, 1:], edges)
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
    """Normal complementarity; no tangential motion where a touching contact holds, and only under load."""
    holds = np.abs(z[:, 1:]).max(axis=1)
    slip = np.abs(w[:, 1:]).max(axis=1)
    free = np.where(touching, 0.0, holds)
    return float(
        max(
            np.maximum(-z[:, 0], 0.0).max(),
            np.maximum(-parting, 0.0).max(),
            np.abs(z[:, 0] * parting).max(),
            free.max(),
            (holds - UNBOUNDED_FRICTION * z[:, 0]).max(),
            (np.abs(z).max(axis=1) * slip * touching).max(),
        )
    )


def _rubbing(problem, z, w, touching, force, speed):
    """Tangential impulses of implicit viscous friction, in the contact velocity at the end."""
    rub = np.where(touching, problem.period * problem.contacts.viscosity, 0.0)[:, None]
    end = w[:, 1:] * speed + problem.keep * problem.speed.reshape(-1, 3)[:, 1:]
    # Error as a force where friction is weak, as a velocity where it is strong.
    return float((np.abs(z[:, 1:] * force + rub * end) / (force + rub * speed)).max())
