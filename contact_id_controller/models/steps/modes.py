"""Contact modes of the Coulomb LCP on a friction polygon: which forces and velocities each allows.

With k edges d_j a contact's impulse z and velocity w obey the LCP of ``coulomb_lcp`` if and only if
they lie in one of 2 + 2k convex cells, of dimension three each, none inside another:

    parts                   z = 0                       w_N >= 0
    sticks                  z in the pyramid            w = 0
    slides on edge j        z on the edge               w_N = 0, d_j the farthest against w_T
    slides between j, j+1   z on the pyramid's face     w_N = 0, w_T along -(d_j + d_j+1)

(without friction: the first, and z_N >= 0 with w_N = 0.) The pyramid and w_N >= 0 hold all of them.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.pyramid import (
    APART,
    SLIDING,
    STICKING,
    edge_directions,
    project_contact,
)

UNDECIDED, PARTS, STICKS, SLIDES = -1, 0, 1, 2  # SLIDES + j: on edge j; SLIDES + k + j: beside it


@kernel
def count_modes(mu, edges):
    """Number of modes of a contact."""
    return 2 if mu == 0.0 else 2 + 2 * edges


@kernel
def nearest_force(mode, mu, edges, target, z, work):
    """The nearest force z (3,) to ``target`` (3,) that a mode allows; work (5, 3)."""
    if mode <= STICKS:
        kind, angle, span = (APART if mode == PARTS else STICKING), 0.0, 0.0
        if mode == UNDECIDED:
            kind = STICKING
    else:
        width = 2.0 * np.pi / edges
        kind, angle = SLIDING, ((mode - SLIDES) % edges) * width
        span = width if mode >= SLIDES + edges else 0.0
    directions = np.empty((edges, 2))
    edge_directions(edges, directions)
    project_contact(kind, angle, span, mu, directions, target, z, work[:3], work[3], work[4])


@kernel
def distance(a, b):
    """Euclidean distance of two vectors (n,)."""
    total = 0.0
    for d in range(a.shape[0]):
        total += (a[d] - b[d]) ** 2
    return np.sqrt(total)


@kernel
def violation(mode, mu, edges, z, w, force_scale, speed_scale, work):
    """Largest violation of a mode's cell by z (3,) and w (3,), in units of force_scale and speed_scale; work (6, 3)."""
    nearest_force(mode, mu, edges, z, work[5], work)
    force = distance(z, work[5]) / force_scale
    if mode == PARTS:
        return max(force, -w[0] / speed_scale)
    speed = abs(w[0])
    if mu > 0.0 and mode == STICKS:
        speed = max(speed, abs(w[1]), abs(w[2]))
    elif mu > 0.0:
        j = (mode - SLIDES) % edges
        width = 2.0 * np.pi / edges
        # Components of w_T across and along the cell's middle direction, d_j or (d_j + d_j+1) / 2.
        middle = (j + (0.5 if mode >= SLIDES + edges else 0.0)) * width
        along = w[1] * np.cos(middle) + w[2] * np.sin(middle)
        across = abs(w[2] * np.cos(middle) - w[1] * np.sin(middle))
        if mode < SLIDES + edges:
            across = across * np.cos(0.5 * width) + along * np.sin(0.5 * width)
        speed = max(speed, across, along)
    return max(force, speed / speed_scale)


@kernel
def fitting_mode(mu, edges, z, w, force_scale, speed_scale, work):
    """Mode whose cell is nearest to force z (3,) and velocity w (3,), and its ``violation``; work (6, 3)."""
    best, least = 0, np.inf
    for mode in range(count_modes(mu, edges)):
        size = violation(mode, mu, edges, z, w, force_scale, speed_scale, work)
        if size < least:
            best, least = mode, size
    return best, least
