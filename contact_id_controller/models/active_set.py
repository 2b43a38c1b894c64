"""Active set of a solution: directions in which each contact's motion is fixed and its force can change.

With the active set fixed, the solution is a smooth function of the state; ``control.state_gain`` has its
derivative. A row of the registry names the function here that determines it from a solution.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.pyramid import (
    APART,
    HOLDING,
    SLIDING,
    STICKING,
    UNBOUNDED_FRICTION,
    effective_friction,
)
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.no_slip_qp import EDGES, unbounded_friction
from contact_id_controller.models.steps.motion import (
    CREEPS,
    STICKING_SPEED,
    STILL_M_S,
    classify,
    classify_stiction,
)
from contact_id_controller.models.steps.polygon_friction import polygon_friction
from contact_id_controller.models.steps.reduced import Face
from contact_id_controller.models.steps.slip import NO_SLIP
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

TIGHT = 1e-9
"""A force lies on a facet of its cone where it is nearer than this share of the largest force."""


class ActiveSet(NamedTuple):
    """The active set of one solution, n contacts, in coordinates normal, tangent 1, tangent 2.

    held: for each contact the directions (k, 3), k up to 3, in which its velocity is fixed.
    pulls: the constraint forces (k, 3) of these: the same, but at a sliding contact normal force and friction together.
    free: orthonormal directions (m, 3), m up to 3, in which its force can change.
    grips: (n,) bool, contacts that may have tangential constraints: the plan was projected for them.
    """

    held: list[np.ndarray]
    pulls: list[np.ndarray]
    free: list[np.ndarray]
    grips: np.ndarray

    @property
    def is_whole(self) -> bool:
        """Whether every contact sticks with its force inside the cone, so that no small change alters the set."""
        return all(rows is WHOLE for rows in (*self.held, *self.free))


def of_coulomb_qp(solution: Solution, options: Chosen) -> ActiveSet:
    """Active set of coulomb/qp: edges without slack in stage I, facets of the force pyramid in stage II."""
    problem = solution.problem
    parts = options.sliding == "parting"
    mu = polygon_friction(problem.contacts.friction, options.edges, options.polygon)
    mu = effective_friction(mu, np.inf if parts else NO_SLIP)
    return _of_stages(solution, mu, options.edges, parts)


def of_no_slip_qp(solution: Solution, options: Chosen) -> ActiveSet:
    """Active set of no_slip/qp: as of coulomb/qp with unbounded friction at touching contacts."""
    return _of_stages(solution, unbounded_friction(solution.problem), EDGES, True)


def of_no_slip_lcp(solution: Solution, options: Chosen) -> ActiveSet:
    """Active set of no_slip/lcp: contacts that neither part nor slip are fixed, if possible in their own friction."""
    problem, edges = solution.problem, options.edges
    n, z = len(problem), solution.impulses.reshape(-1, 3)
    moved = problem.c if solution.attainable is None else solution.attainable
    tolerance = STICKING_SPEED * np.abs(moved).max(initial=0.0) + STILL_M_S
    speed = np.abs(solution.contact_velocity + _gaps(problem))
    touches = problem.gap_speed <= TOUCHING_SPEED
    rests = speed[:, 0] <= tolerance
    grips = touches & rests & (speed[:, 1:].max(axis=1, initial=0.0) <= tolerance)
    face = Face(np.where(grips | (rests & ~touches), STICKING, APART), np.zeros(n), np.zeros(n))
    own = np.minimum(problem.contacts.friction, UNBOUNDED_FRICTION)
    mu = np.where(grips, own, 0.0)
    scale = np.abs(z).max(initial=0.0)
    for i in np.flatnonzero(grips):
        if (_facets(mu[i], edges) @ z[i]).min() < -TIGHT * scale:
            mu[i] = UNBOUNDED_FRICTION
    return _carried(solution, face, mu, edges, touches)


def _of_stages(solution: Solution, mu: np.ndarray, edges: int, parts: bool) -> ActiveSet:
    """Active set of a two-stage solution, by the modes of its contact velocities.

    Args:
        mu: (n,) friction coefficients.  edges: number of edges of each pyramid.
        parts: sliding contacts may leave the ground, as in stage I; False: they stay on it, unless ``classify_stiction``
            finds that they creep.
    """
    problem = solution.problem
    n = len(problem)
    face = Face(np.empty(n, np.int64), np.empty(n), np.empty(n))
    moved = problem.c if solution.attainable is None else solution.attainable
    u = problem.Y.T @ solution.impulses
    law = problem.Y, moved, problem.gap_speed, mu, edges
    if parts:
        classify(*law, True, u, face)
    else:
        parts = classify_stiction(*law, np.inf, u, solution.impulses, face) == CREEPS
    return _carried(solution, face, mu, edges, mu > 0.0, parts)


def _carried(
    solution: Solution,
    face: Face,
    mu: np.ndarray,
    edges: int,
    grips: np.ndarray,
    parts: bool = True,
) -> ActiveSet:
    """Active set from the contact modes in ``face``.

    Args:
        mu: (n,) friction.  grips: (n,) bool, see ``ActiveSet``.
        parts: a sliding contact's velocity is fixed along its edges; False: along normal and transverse direction.
    """
    impulses = solution.impulses.reshape(-1, 3)
    tight = TIGHT * np.abs(impulses).max(initial=0.0)
    held, pulls, free = [], [], []
    for mode, angle, span, friction, z in zip(*face, mu, impulses, strict=True):
        if mode == STICKING:
            held.append(WHOLE if friction > 0.0 else WHOLE[:1])
            free.append(_within_cone(friction, edges, z, tight))
        elif mode == HOLDING:
            held.append(WHOLE[1:])
            free.append(WHOLE[1:])
        elif mode == SLIDING:
            sides = [angle] if span == 0.0 else [angle, angle + span]
            rows = np.array([_edge(friction, side) for side in sides])
            held.append(rows if parts else _on_the_ground(rows))
            free.append(_along_edges(rows, z, tight))
            pulls.append(rows)
            continue
        else:
            held.append(WHOLE[:0])
            free.append(WHOLE[:0])
        pulls.append(held[-1])
    return ActiveSet(held, pulls, free, grips)


def _on_the_ground(rows: np.ndarray) -> np.ndarray:
    """Fixed directions of a contact that slides against one edge, rows (1, 3), or between two, rows (2, 3)."""
    if len(rows) == 1:
        return WHOLE[:1]
    between = rows[1] - rows[0]
    return np.array([WHOLE[0], between / np.linalg.norm(between)])


def _within_cone(mu: float, edges: int, z: np.ndarray, tight: float) -> np.ndarray:
    """Directions (m, 3) in which the force z (3,) of a sticking contact can change.

    None at zero force, fewer than three on a facet or an edge of its pyramid. tight: N s, below which a component
    counts as zero.
    """
    if np.abs(z).max() <= tight:
        return WHOLE[:0]
    if mu == 0.0:
        return WHOLE[:1]
    facets = _facets(mu, edges)
    on = facets[facets @ z <= tight]
    if len(on) == 0:
        return WHOLE
    if len(on) > 1:
        return (z / np.linalg.norm(z))[None]
    return np.linalg.svd(on)[2][1:]


def _along_edges(rows: np.ndarray, z: np.ndarray, tight: float) -> np.ndarray:
    """Orthonormal directions (m, 3) of those edges, rows (1 or 2, 3), with a positive component of z (3,)."""
    amounts = np.linalg.lstsq(rows.T, z, rcond=None)[0]
    return np.linalg.qr(rows[amounts > tight].T)[0].T


@lru_cache(maxsize=64)
def _facets(mu: float, edges: int) -> np.ndarray:
    """Inward normals (edges, 3) of the force pyramid's facets; the normal direction alone for unbounded friction."""
    if np.isinf(mu):
        return WHOLE[:1]
    width = 2.0 * np.pi / edges
    middle = (np.arange(edges) + 0.5) * width
    rows = np.empty((edges, 3))
    rows[:, 0] = mu * np.cos(0.5 * width)
    rows[:, 1], rows[:, 2] = -np.cos(middle), -np.sin(middle)
    rows.flags.writeable = False  # kept
    return rows


def _edge(mu: float, angle: float) -> np.ndarray:
    """Generator (3,) of the pyramid at an angle, rad, from tangent 1."""
    return np.array([1.0, mu * np.cos(angle), mu * np.sin(angle)])


def _gaps(problem: Problem) -> np.ndarray:
    """Closing speeds (n, 3) that gaps allow, as they count in the normal velocity."""
    out = np.zeros((len(problem), 3))
    out[:, 0] = problem.gap_speed
    return out


WHOLE = np.eye(3)
"""All directions; a contact that is held in all, or free in all, has this array itself."""
WHOLE.flags.writeable = False
