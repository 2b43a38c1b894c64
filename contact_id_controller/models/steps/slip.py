"""From the variables of a friction LCP to forces: contact modes, and the forces chosen at them."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.pyramid import APART, SLIDING, STICKING, edge_directions
from contact_id_controller.lcp._friction_core import friction_workspace
from contact_id_controller.lcp.lemke_friction import lemke_friction_kernel
from contact_id_controller.lcp.status import PIVOTS, REPORT_SIZE
from contact_id_controller.lcp.status import SOLVED as LCP_SOLVED
from contact_id_controller.models.steps.finish import shift_offset
from contact_id_controller.models.steps.force_distribution import distribute
from contact_id_controller.models.steps.motion import STICKING_SPEED, STILL_M_S
from contact_id_controller.models.steps.reduced import Face

NO_SLIP = 1e4  # stands for infinite friction: the polygon needs a finite coefficient


@kernel
def complementary_impulses(Y, moved, gap_speed, mu, edges, basis, pairs, slacks, z):
    """Solve the friction LCP for impulses z (3n,) by Lemke's method; returns (status of ``lcp.status``, pivots).

    mu (n,) finite.  basis (n, edges + 2): bool, initial basis in, that of the solution out.  pairs, slacks
    (n, edges + 2): out, the complementary variables.  On failure z is unchanged.
    """
    n = gap_speed.shape[0]
    directions, free = np.empty((edges, 2)), np.empty(3 * n)
    edge_directions(edges, directions)
    for r in range(3 * n):
        free[r] = moved[r] + (gap_speed[r // 3] if r % 3 == 0 else 0.0)
    real, integer = friction_workspace(n, Y.shape[1], edges)
    impulses, report = np.empty((n, 3)), np.zeros(REPORT_SIZE)
    code = lemke_friction_kernel(
        Y,
        free,
        mu,
        directions,
        50 * n * (edges + 2) + 1000,
        real,
        integer,
        basis,
        pairs,
        slacks,
        impulses,
        report,
    )
    if code == LCP_SOLVED:
        for i in range(n):
            for d in range(3):
                z[3 * i + d] = impulses[i, d]
    return code, int(report[PIVOTS])


@kernel
def classify_slip(z, w, mu, edges, tolerance, face):
    """Write the contacts' modes at the motion of an LCP's solution into ``face``; z, w (n, edges + 2): its pairs.

    tolerance: m/s, of parting and slip speeds; mu (n,). A sliding contact's friction lies on the one or two edges
    without slack.
    """
    mode, angle, span = face
    width = 2.0 * np.pi / edges
    for i in range(mode.shape[0]):
        angle[i], span[i] = 0.0, 0.0
        if w[i, 0] > tolerance:
            mode[i] = APART
        elif z[i, edges + 1] <= tolerance or mu[i] == 0.0:
            mode[i] = STICKING
        else:
            mode[i] = SLIDING
            for j in range(edges):
                if w[i, 1 + j] <= tolerance and w[i, 1 + (j + edges - 1) % edges] > tolerance:
                    angle[i] = j * width
                    span[i] = width if w[i, 1 + (j + 1) % edges] <= tolerance else 0.0
                    break


@kernel
def share_forces(reduced, delta, moved, pairs, slacks, cones, distribution, z):
    """Replace impulses z (3n,) of an LCP by the chosen ones at its motion and slip; returns steps.

    pairs, slacks (n, edges + 2): the complementary z and w. distribution: index into ``options.DISTRIBUTIONS``.
    """
    Y, n, nu = reduced.Y, cones.mu.shape[0], reduced.Y.shape[1]
    if distribution > 1:
        return np.int64(0)
    shifted, u = np.empty(reduced.T.shape[1]), np.empty(nu)
    shift_offset(reduced, delta, shifted)
    face = Face(np.empty(n, np.int64), np.empty(n), np.empty(n))
    scale = 0.0
    fill(u, 0.0)
    for r in range(3 * n):
        scale = max(scale, abs(moved[r]))
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    tolerance = STICKING_SPEED * scale + STILL_M_S
    classify_slip(pairs, slacks, cones.mu, cones.edges, tolerance, face)
    weight = 1.0 if distribution == 0 else 0.0
    return abs(distribute(reduced.T, shifted, Y, u, face, cones, weight, z))


@kernel
def slip_pairs(Y, moved, gap_speed, edges, z, pairs, slacks):
    """Compute slip speeds and slacks of the friction LCP at impulses z (3n,), N·s, for ``classify_slip``.

    Contact velocities w = Y Y^T z + moved, of each contact normal, tangent 1, tangent 2, m/s, with gap_speed (n,) added to
    the normals. Y (3n, nu), moved (3n,): see ``Problem`` and ``Answer``; edges: of the pyramid.
    pairs (n, edges + 2), out: its last column only, the slip speed. slacks (n, edges + 2), out: normal, each edge, and 0
    for the cone, whose slack ``classify_slip`` does not read.
    """
    n, nu = gap_speed.shape[0], Y.shape[1]
    u, w, directions = np.zeros(nu), np.empty(3), np.empty((edges, 2))
    edge_directions(edges, directions)
    for r in range(3 * n):
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    for i in range(n):
        for d in range(3):
            w[d] = moved[3 * i + d] + (gap_speed[i] if d == 0 else 0.0)
            for k in range(nu):
                w[d] += Y[3 * i + d, k] * u[k]
        slip = 0.0
        for j in range(edges):
            slip = max(slip, -(w[1] * directions[j, 0] + w[2] * directions[j, 1]))
        pairs[i, edges + 1], slacks[i, 0], slacks[i, edges + 1] = slip, w[0], 0.0
        for j in range(edges):
            slacks[i, 1 + j] = slip + w[1] * directions[j, 0] + w[2] * directions[j, 1]
