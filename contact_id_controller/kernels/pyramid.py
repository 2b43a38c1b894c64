"""Polygonal friction cones, contact by contact: generators, pieces, projections.

A contact's forces are (normal, tangent 1, tangent 2); its pyramid has ``edges`` edges, the first
along tangent 1, at distance mu times the normal force.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.inlined import bare_inlined

UNBOUNDED_FRICTION = 1e3  # a coefficient from here on is infinite: nothing slips under load

# What a contact may carry at the chosen motion.
# HOLDING: tangentially only, without load (unbounded friction of a contact that parts).
APART, STICKING, SLIDING, HOLDING = 0, 1, 2, 3
# Which piece of its cone a contact's force lies on: the piece's dimension + 4 (number of its edge).
ZERO, RAY, PLANE, INSIDE = 0, 1, 2, 3


class AdmissibleSets(NamedTuple):
    """Admissible forces of each contact, see ``project_contact``.

    mode (n,), angle, span (n,) rad, mu (n,), directions (edges, 2).
    """

    mode: np.ndarray
    angle: np.ndarray
    span: np.ndarray
    mu: np.ndarray
    directions: np.ndarray


class Pieces(NamedTuple):
    """The piece of its set on which each contact's force lies: number (n,), basis (n, 3, 3).

    first, second (3,): workspace.
    """

    number: np.ndarray
    basis: np.ndarray
    first: np.ndarray
    second: np.ndarray


@kernel
def effective_friction(mu, infinite):
    """Coefficients (n,), those from UNBOUNDED_FRICTION on replaced by ``infinite``."""
    out = np.empty(mu.shape[0])
    for i in range(mu.shape[0]):
        out[i] = mu[i] if mu[i] < UNBOUNDED_FRICTION else infinite
    return out


@bare_kernel
def edge(mu, angle, out):
    """Generator (normal 1, tangents mu cos, mu sin) of a friction pyramid; mu is finite."""
    out[0], out[1], out[2] = 1.0, mu * np.cos(angle), mu * np.sin(angle)


@bare_kernel
def edge_directions(edges, table):
    """Cosine and sine (edges, 2) of every edge's direction."""
    for j in range(edges):
        angle = 2.0 * np.pi * j / edges
        table[j, 0], table[j, 1] = np.cos(angle), np.sin(angle)


@bare_kernel
def _along(mu, direction, out):
    """out (3,): the edge (1, mu d) of a pyramid along the unit tangent d (2,); local axes, normal first."""
    out[0], out[1], out[2] = 1.0, mu * direction[0], mu * direction[1]


@bare_kernel
def project_sector(force, first, second, out, basis):
    """Nearest point of cone(first, second) to ``force``; basis rows span the piece.

    Returns the piece: ZERO, PLANE, RAY along ``first``, or RAY + 4 along ``second``.
    """
    aa = first[0] * first[0] + first[1] * first[1] + first[2] * first[2]
    bb = second[0] * second[0] + second[1] * second[1] + second[2] * second[2]
    ab = first[0] * second[0] + first[1] * second[1] + first[2] * second[2]
    fa = first[0] * force[0] + first[1] * force[1] + first[2] * force[2]
    fb = second[0] * force[0] + second[1] * force[1] + second[2] * force[2]
    determinant = aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb:
        alpha = (bb * fa - ab * fb) / determinant
        beta = (aa * fb - ab * fa) / determinant
        if alpha > 0.0 and beta > 0.0:
            norm = np.sqrt(aa)
            rest = 0.0
            for d in range(3):
                out[d] = alpha * first[d] + beta * second[d]
                basis[0, d] = first[d] / norm
                basis[1, d] = second[d] - ab / aa * first[d]
                rest += basis[1, d] * basis[1, d]
            rest = np.sqrt(rest)
            for d in range(3):
                basis[1, d] /= rest
            return PLANE
    # Off the sector: the better of the two edges.
    along, chosen, square, piece = fa / np.sqrt(aa), first, aa, RAY
    if fb / np.sqrt(bb) > along:
        along, chosen, square, piece = fb / np.sqrt(bb), second, bb, RAY + 4
    if along <= 0.0:
        for d in range(3):
            out[d] = 0.0
        return ZERO
    norm = np.sqrt(square)
    for d in range(3):
        out[d] = along * chosen[d] / norm
        basis[0, d] = chosen[d] / norm
    return piece


@bare_inlined
def project_contact(mode, angle, span, mu, directions, force, out, basis, first, second):
    """Nearest admissible force of one contact; returns the piece of its set on which that lies.

    STICKING: the whole pyramid (a half-space of normals when mu is infinite). SLIDING: the sector
    from ``angle`` to ``angle + span`` of the pyramid's edges. HOLDING: any tangents, mu infinite.
    APART: zero. The piece: its dimension, ZERO to INSIDE, + 4 (number of its edge or first edge).

    Args:
        mode, angle, span, mu, directions: of the contact, as in ``AdmissibleSets``.
        force (3,): normal, tangents.  out (3,), basis (3, 3): the nearest one, rows that span the piece.
        first, second (3,): workspace.
    """
    if mode == APART:
        for d in range(3):
            out[d] = 0.0
        return ZERO
    edges = directions.shape[0]
    width = 2.0 * np.pi / edges
    if mode == SLIDING:
        j = int(np.rint(angle / width)) % edges
        _along(mu, directions[j], first)
        _along(mu, directions[(j + 1) % edges if span > 0.0 else j], second)
        return project_sector(force, first, second, out, basis)
    if np.isinf(mu):
        start = 0
        if force[0] > 0.0 and mode != HOLDING:
            out[0] = force[0]
        else:
            out[0] = 0.0
            start = 1
        out[1], out[2] = force[1], force[2]
        for r in range(3 - start):
            for d in range(3):
                basis[r, d] = 1.0 if d == r + start else 0.0
        return INSIDE - start
    # The pyramid is symmetric, so only the sector that the force points into matters: the edge
    # nearest to the force and its neighbour on the force's side.
    near, most = 0, -np.inf
    for j in range(edges):
        amount = force[1] * directions[j, 0] + force[2] * directions[j, 1]
        if amount > most:
            near, most = j, amount
    if force[0] + mu * most <= 0.0 and mu > 0.0:
        # It pulls against every edge; what many contacts do, so it is found without a root.
        for d in range(3):
            out[d] = 0.0
        return ZERO
    if force[2] * directions[near, 0] - force[1] * directions[near, 1] < 0.0:
        near = (near + edges - 1) % edges
    after = (near + 1) % edges
    outward = 0.5 * (
        force[1] * (directions[near, 0] + directions[after, 0])
        + force[2] * (directions[near, 1] + directions[after, 1])
    )
    # The facet's middle lies at the square of cos(width / 2) = (1 + cos(width)) / 2.
    if outward <= 0.5 * mu * (1.0 + directions[1, 0]) * force[0] and mu > 0.0:
        for d in range(3):
            out[d] = force[d]
            for r in range(3):
                basis[r, d] = 1.0 if r == d else 0.0
        return INSIDE
    _along(mu, directions[near], first)
    _along(mu, directions[after], second)
    piece = project_sector(force, first, second, out, basis)
    if piece == ZERO:
        return ZERO
    return (piece & 3) + 4 * (after if piece == RAY + 4 else near)
