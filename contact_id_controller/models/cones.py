"""Polygonal friction cones, contact by contact: generators, pieces, projections.

A contact's forces are (normal, tangent 1, tangent 2); its pyramid has ``edges`` edges, the first
along tangent 1, at distance mu times the normal force.
"""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel

# What a contact may carry at the chosen motion.
# HOLDING: tangentially only, without load (unbounded friction of a contact that parts).
APART, STICKING, SLIDING, HOLDING = 0, 1, 2, 3
# Which piece of its cone a contact's force lies on; the value is the piece's dimension.
ZERO, RAY, PLANE, INSIDE = 0, 1, 2, 3


@kernel
def edge(mu, angle, out):
    """Generator (normal 1, tangents mu cos, mu sin) of a friction pyramid; mu is finite."""
    out[0], out[1], out[2] = 1.0, mu * np.cos(angle), mu * np.sin(angle)


@kernel
def project_sector(force, first, second, out, basis):
    """Nearest point of cone(first, second) to ``force``; basis rows span the piece; returns its rank."""
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
    along, chosen, square = fa / np.sqrt(aa), first, aa
    if fb / np.sqrt(bb) > along:
        along, chosen, square = fb / np.sqrt(bb), second, bb
    if along <= 0.0:
        for d in range(3):
            out[d] = 0.0
        return ZERO
    norm = np.sqrt(square)
    for d in range(3):
        out[d] = along * chosen[d] / norm
        basis[0, d] = chosen[d] / norm
    return RAY


@kernel
def project_contact(mode, angle, span, mu, edges, force, out, basis, first, second):
    """Nearest admissible force of one contact; fills the piece's orthonormal basis, returns its rank.

    STICKING: the whole pyramid (a half-space of normals when mu is infinite). SLIDING: the sector
    from ``angle`` to ``angle + span`` of the pyramid's edges. HOLDING: any tangents, mu infinite.
    APART: zero.
    """
    if mode == APART:
        for d in range(3):
            out[d] = 0.0
        return ZERO
    if mode == SLIDING:
        edge(mu, angle, first)
        edge(mu, angle + span, second)
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
    width = 2.0 * np.pi / edges
    # The pyramid is symmetric, so only the sector that the force points into matters.
    sector = np.floor(np.arctan2(force[2], force[1]) / width) * width
    middle = sector + 0.5 * width
    outward = force[1] * np.cos(middle) + force[2] * np.sin(middle)
    if outward <= mu * np.cos(0.5 * width) * force[0] and mu > 0.0:
        for d in range(3):
            out[d] = force[d]
            for r in range(3):
                basis[r, d] = 1.0 if r == d else 0.0
        return INSIDE
    edge(mu, sector, first)
    edge(mu, sector + width, second)
    return project_sector(force, first, second, out, basis)
