"""A step of the interior-point method: its matrix, its direction and how far it may go.

With the Nesterov-Todd scaling W of each cone (and 1 x 1 blocks s/x for bounds) the step (dx, dy, ds)
at the defects rd, rp and a share of them satisfies

    (D + W^-2) dx - A^T dy = comp - share rd        A dx + soft dy = share rp
    ds = comp - W^-2 dx                              comp = W^-1 (l \\ (target e - l o l - second order)) - s

so that its Schur complement on the rows is S = soft + A (D + W^-2)^-1 A^T. Nothing here allocates.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.dense import (
    backward_substitute,
    forward_substitute,
    semidefinite_cholesky,
)
from contact_id_controller.kernels.interior_point.newton_parts import dot
from contact_id_controller.kernels.interior_point.second_order_cone import (
    inverse_step,
    nt_scaling,
    product,
    quotient,
    scale,
    unscale,
)

BLOCK = 13  # entries of a cone's block
DEPENDENT = 1e-15  # pivots of rows that depend on the others, relative to the diagonal
NO_SAY = 1e150  # is put in their place: such a row's multiplier is zero
FREE = 1e-8  # weight that keeps a free variable without cost determined
REFINEMENTS = 3  # corrections of a direction against rounding
ROUNDING = 1e-13  # defect of the rows below which a direction needs none


@bare_kernel
def scale_cone(x, s, normal_weight, tangent_weight, block):
    """(D + W^-2)^-1 of one cone into its block; False where x or s lies on the boundary.

    block: eta and w of W (4), the scaled point l (3), three entries of the inverse, e (2), a fourth
    entry. W^-2 has the values 1/(eta^2 rho), rho/eta^2 and 1/eta^2 along (1, e)/sqrt 2, (1, -e)/sqrt 2
    and across, rho = (w0 + |w1|)^2, e = w1/|w1|. There D couples the first two: their 2 x 2 block has a
    determinant of positive terms, so nothing cancels, however close to the boundary.
    """
    if not nt_scaling(x, s, block[0:4], block[4:7]):
        return False
    length = np.sqrt(block[2] * block[2] + block[3] * block[3])
    block[10], block[11] = 1.0, 0.0
    if length > 0.0:
        block[10], block[11] = block[2] / length, block[3] / length
    square, rho = block[0] * block[0], (block[1] + length) * (block[1] + length)
    a, b = square * normal_weight, square * tangent_weight
    mean = 0.5 * (a + b)
    share = square / (1.0 + mean * (rho + 1.0 / rho) + a * b)
    block[7] = share * (rho + mean)
    block[8] = share * (1.0 / rho + mean)
    block[9] = square / (1.0 + b)
    block[12] = 0.5 * share * (b - a)
    return True


@bare_kernel
def apply_inverse(inverse, blocks, v, out):
    """out (N,) = (D + W^-2)^-1 v, block by block; v (N,), inverse (m,), blocks: see ``Work``."""
    boxes = inverse.shape[0]
    for j in range(boxes):
        out[j] = inverse[j] * v[j]
    for i in range(blocks.shape[0]):
        j, h = boxes + 3 * i, blocks[i]
        radial, across = h[10] * v[j + 1] + h[11] * v[j + 2], h[10] * v[j + 2] - h[11] * v[j + 1]
        outward, inward = 0.5 * (v[j] + radial), 0.5 * (v[j] - radial)
        outer = h[7] * outward + h[12] * inward
        inner_part = h[8] * inward + h[12] * outward
        across *= h[9]
        out[j] = outer + inner_part
        out[j + 1] = h[10] * (outer - inner_part) - h[11] * across
        out[j + 2] = h[11] * (outer - inner_part) + h[10] * across


@bare_kernel
def factor_newton(program, point, work):
    """Write the inverse blocks of D + W^-2 and the factor of S = soft + A (D + W^-2)^-1 A^T into ``work``.

    Returns False where a cone's point has reached the boundary.
    """
    weight, At, lower, upper = program.weight, program.At, program.lower, program.upper
    x, s, r = point.x, point.s, point.r
    inverse, blocks, S = work.inverse, work.blocks, work.S
    begin, end = work.extent[0], work.extent[1]
    p, boxes = At.shape[1], lower.shape[0]
    for i in range(p):
        out = S[i]
        for c in range(i):
            out[c] = 0.0
        out[i] = program.soft[i]
    for j in range(boxes):
        total = weight[j] if weight[j] > 0.0 else FREE
        if lower[j] > -np.inf:
            total += s[j] / (x[j] - lower[j])
        if upper[j] < np.inf:
            total += r[j] / (upper[j] - x[j])
        inverse[j] = 1.0 / total
        row = At[j]
        for a in range(begin[j], end[j]):
            if row[a] != 0.0:
                amount = inverse[j] * row[a]
                out = S[a]
                for c in range(begin[j], a + 1):
                    out[c] += amount * row[c]
    for i in range(blocks.shape[0]):
        j = boxes + 3 * i
        block = blocks[i]
        if not scale_cone(x[j : j + 3], s[j : j + 3], weight[j], weight[j + 1], block):
            return False
        _add_cone(At[j], At[j + 1], At[j + 2], block, work.rows, S)
    for i in range(p):
        if S[i, i] == 0.0:  # a row without any variable: impossible, or 0 = 0
            S[i, i] = 1.0
    semidefinite_cholesky(S, p, DEPENDENT, NO_SAY)
    return True


@bare_kernel
def _add_cone(row0, row1, row2, block, rows, S):
    """S (p, p) += A_i B A_i^T of one cone, by the vectors in which its block B is nearly diagonal.

    row0, row1, row2 (p,): its rows of At; rows (3, p): workspace.
    """
    p = row0.shape[0]
    one_row, two_row, three_row = rows[0], rows[1], rows[2]
    outer, middle, across, cross = 0.5 * block[7], 0.5 * block[8], block[9], 0.5 * block[12]
    e1, e2 = block[10], block[11]
    for a in range(p):
        radial = e1 * row1[a] + e2 * row2[a]
        one_row[a], two_row[a] = row0[a] + radial, row0[a] - radial
        three_row[a] = e1 * row2[a] - e2 * row1[a]
    for a in range(p):
        v0 = outer * one_row[a] + cross * two_row[a]
        v1 = middle * two_row[a] + cross * one_row[a]
        v2 = across * three_row[a]
        out = S[a]
        for c in range(a + 1):
            out[c] += v0 * one_row[c] + v1 * two_row[c] + v2 * three_row[c]


@bare_kernel
def aim(program, point, target, share, taken, work):
    """Write the right side of the first equation, work.rhs = comp - r's part - share rd.

        bounds: comp = (target - taken dx ds) / (x - lower) - s,  work.step.r = (target + taken dx dr) / (upper - x) - r
        cones:  comp = W^-1 (l \\ (target e - l o l - taken (W^-1 dx) o (W ds)))

    Args:
        target: complementarity aimed at.
        share: of the dual defect rd that the step removes.
        taken: step length of the predictor, in work.step, whose second-order terms are corrected; 0 for the
            predictor itself.
        work: its comp (N,), rhs (N,), step.r (m,), out.
    """
    lower, upper, blocks, step, rd = program.lower, program.upper, work.blocks, work.step, work.rd
    x, s, r = point.x, point.s, point.r
    dx, ds, dr = step.x, step.s, step.r
    comp, rhs = work.comp, work.rhs
    one, two, three, four = work.threes[0], work.threes[1], work.threes[2], work.threes[3]
    boxes = lower.shape[0]
    for j in range(boxes):
        comp[j] = 0.0
        wanted = -share * rd[j]
        if lower[j] > -np.inf:
            second = taken * dx[j] * ds[j]
            comp[j] = (target - second) / (x[j] - lower[j]) - s[j]
            wanted += comp[j]
        if upper[j] < np.inf:
            second = -taken * dx[j] * dr[j]
            dr[j] = (target - second) / (upper[j] - x[j]) - r[j]
            wanted -= dr[j]
        rhs[j] = wanted
    for i in range(blocks.shape[0]):
        j = boxes + 3 * i
        eta_w, scaled = blocks[i, 0:4], blocks[i, 4:7]
        product(scaled, scaled, three)
        if taken > 0.0:
            unscale(eta_w, dx[j : j + 3], one)
            scale(eta_w, ds[j : j + 3], two)
            product(one, two, four)
            for d in range(3):
                three[d] += taken * four[d]
        for d in range(3):
            three[d] = (target if d == 0 else 0.0) - three[d]
        quotient(scaled, three, three)
        unscale(eta_w, three, comp[j : j + 3])
        for d in range(3):
            rhs[j + d] = comp[j + d] - share * rd[j + d]


@bare_kernel
def solve_newton(program, share, refined, work):
    """Solve the two equations of the module for work.step.x (N,) and work.step.y (p,), by the factor of S.

    share: of the defect rp that the step removes; refined: whether rounding errors of the rows are corrected.
    """
    At, soft = program.At, program.soft
    dx, dy, rp = work.step.x, work.step.y, work.rp
    rhs, pull, pulled, rest = work.rhs, work.pull, work.pulled, work.rest
    begin, end = work.extent[0], work.extent[1]
    N, p = At.shape
    for i in range(p):
        dy[i] = share * rp[i]
    apply_inverse(work.inverse, work.blocks, rhs, dx)
    for j in range(N):
        row, value = At[j], dx[j]
        for i in range(begin[j], end[j]):
            dy[i] -= row[i] * value
    forward_substitute(work.S, p, dy)
    backward_substitute(work.S, p, dy)
    for refinement in range(REFINEMENTS):
        for j in range(N):
            pull[j] = dot(At[j], dy, begin[j], end[j])
            pulled[j] = rhs[j] + pull[j]
        apply_inverse(work.inverse, work.blocks, pulled, dx)
        if not refined or refinement == REFINEMENTS - 1:
            return
        # What rounding left of the rows; most of the time nothing worth a correction.
        for i in range(p):
            rest[i] = share * rp[i] - soft[i] * dy[i]
        for j in range(N):
            row, value = At[j], dx[j]
            for i in range(begin[j], end[j]):
                rest[i] -= row[i] * value
        left = 0.0
        for i in range(p):
            left = max(left, abs(rest[i]))
        if left <= ROUNDING:
            return
        forward_substitute(work.S, p, rest)
        backward_substitute(work.S, p, rest)
        for i in range(p):
            dy[i] += rest[i]


@bare_kernel
def reach(program, point, work, share):
    """Complete the direction by work.step.s (N,) and step.r (m,); returns the longest step inside bounds and cones.

    share: of ``aim``. It is inf if nothing is in the way, 0 if the direction is not finite.
    """
    weight, lower, upper = program.weight, program.lower, program.upper
    x, s, r = point.x, point.s, point.r
    dx, ds, dr = work.step.x, work.step.s, work.step.r
    boxes = lower.shape[0]
    longest, fastest, size = np.inf, 0.0, 0.0
    for j in range(boxes):
        ds[j] = 0.0
        if lower[j] > -np.inf:
            slack = x[j] - lower[j]
            ds[j] = work.comp[j] - s[j] / slack * dx[j]
            if dx[j] < 0.0:
                longest = min(longest, -slack / dx[j])
            if ds[j] < 0.0:
                longest = min(longest, -s[j] / ds[j])
        if upper[j] < np.inf:
            slack = upper[j] - x[j]
            dr[j] += r[j] / slack * dx[j]
            if dx[j] > 0.0:
                longest = min(longest, slack / dx[j])
            if dr[j] < 0.0:
                longest = min(longest, -r[j] / dr[j])
        else:
            dr[j] = 0.0
    for i in range(work.blocks.shape[0]):
        j = boxes + 3 * i
        for d in range(j, j + 3):
            # From the dual equation, not from complementarity: rounding must not add to rd.
            ds[d] = weight[d] * dx[d] - work.pull[d] + share * work.rd[d]
        fastest = max(
            fastest,
            inverse_step(x[j : j + 3], dx[j : j + 3]),
            inverse_step(s[j : j + 3], ds[j : j + 3]),
        )
    for j in range(dx.shape[0]):
        size += abs(dx[j]) + abs(ds[j])
    if not size < np.inf:
        return 0.0
    return min(longest, 1.0 / fastest) if fastest > 0.0 else longest
