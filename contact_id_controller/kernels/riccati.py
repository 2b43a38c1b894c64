"""Linear-quadratic problems with many inputs that act through a wrench, by Riccati's recursion.

    min sum 1/2 dx' Q dx + q' dx + sum 1/2 du_i' H_i du_i + h_i' du_i
    dx[t + 1] = A[t] dx[t] + E[t] sum_i G_i du_i + defect[t],   dx[0] = 0

where interval t has the inputs i = first[t] .. first[t + 1] - 1, three numbers each: forces, which
act on the momentum through their wrench only. Eliminating them leaves S = sum G_i H_i^-1 G_i', 6 x 6
for any number of them. With S = C C' (of any rank: S is never inverted)

    E'VE + S^-1  becomes  M = I + C' E'VE C = L L',   P = L^-1 C',   V[t] = Q + A' (V - VE P'P E'V) A

and the problem is convex if and only if every M is positive definite. One factorisation serves any
number of right-hand sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.dense import cholesky, semidefinite_cholesky

STATE, WRENCH, FORCE = 9, 6, 3
NO_PIVOT = 1e-14  # pivot of S, relative to its diagonal: no force acts in that direction


class Stages(NamedTuple):
    """The dynamics: A (T, 9, 9), E (T, 9, 6), first (T + 1,), G (m, 6, 3)."""

    A: np.ndarray
    E: np.ndarray
    first: np.ndarray
    G: np.ndarray


class Factor(NamedTuple):
    """Output of ``factor``, input of ``solve``.

    V (T + 1, 9, 9), VE (T, 9, 6), P (T, 6, 6), LD (m, 3, 3) of each H, scratch (4, 9, 9).
    """

    V: np.ndarray
    VE: np.ndarray
    P: np.ndarray
    LD: np.ndarray
    scratch: np.ndarray


class Solution(NamedTuple):
    """Output of ``solve``: dx (T + 1, 9), du (m, 3), value gradients p (T + 1, 9), wrench (T, 6)."""

    dx: np.ndarray
    du: np.ndarray
    p: np.ndarray
    wrench: np.ndarray


def factor_of(intervals: int, inputs: int) -> Factor:
    """Allocate a factorisation."""
    return Factor(
        np.zeros((intervals + 1, STATE, STATE)),
        np.zeros((intervals, STATE, WRENCH)),
        np.zeros((intervals, WRENCH, WRENCH)),
        np.zeros((inputs, FORCE, FORCE)),
        np.zeros((4, STATE, STATE)),
    )


def solution_of(intervals: int, inputs: int) -> Solution:
    """Allocate a solution."""
    return Solution(
        np.zeros((intervals + 1, STATE)),
        np.zeros((inputs, FORCE)),
        np.zeros((intervals + 1, STATE)),
        np.zeros((intervals, WRENCH)),
    )


@bare_kernel
def _factored(H, out):
    """L D L' of a symmetric positive definite 3 x 3 matrix: 1 / D on the diagonal of out, L below.

    Forces are solved for with these factors, not with the inverse: H has entries as different as
    the barrier of an active cone and a small weight, and the product with an inverse would lose the
    residual in the first to rounding of the second.
    """
    d0 = H[0, 0]
    l10, l20 = H[1, 0] / d0, H[2, 0] / d0
    d1 = H[1, 1] - l10 * l10 * d0
    l21 = (H[2, 1] - l20 * l10 * d0) / d1
    d2 = H[2, 2] - l20 * l20 * d0 - l21 * l21 * d1
    out[0, 0], out[1, 1], out[2, 2] = 1.0 / d0, 1.0 / d1, 1.0 / d2
    out[1, 0], out[2, 0], out[2, 1] = l10, l20, l21


@bare_kernel
def _solved(LD, a, b, c):
    """H^-1 (a, b, c)."""
    b -= LD[1, 0] * a
    c -= LD[2, 0] * a + LD[2, 1] * b
    c *= LD[2, 2]
    b = LD[1, 1] * b - LD[2, 1] * c
    return LD[0, 0] * a - LD[1, 0] * b - LD[2, 0] * c, b, c


@bare_kernel
def _add_compliance(G, LD, S, rows):
    """S (6, 6) += G H^-1 G', lower triangle; G (6, 3), LD (3, 3) factors of H, rows (3, 6) workspace."""
    q0, q1, q2 = LD[0, 0], LD[1, 1], LD[2, 2]
    for i in range(WRENCH):
        a = G[i, 0]
        b = G[i, 1] - LD[1, 0] * a
        c = G[i, 2] - LD[2, 0] * a - LD[2, 1] * b
        rows[0, i], rows[1, i], rows[2, i] = a, b, c
        a, b, c = q0 * a, q1 * b, q2 * c
        for j in range(i + 1):
            S[i, j] += a * rows[0, j] + b * rows[1, j] + c * rows[2, j]


@bare_kernel
def _times_input(V, E, VE, EVE):
    """VE = V E (9, 6) and E'VE (6, 6), lower triangle mirrored; V (9, 9), E (9, 6)."""
    for i in range(STATE):
        for j in range(WRENCH):
            total = 0.0
            for k in range(STATE):
                total += V[i, k] * E[k, j]
            VE[i, j] = total
    for i in range(WRENCH):
        for j in range(i + 1):
            total = 0.0
            for k in range(STATE):
                total += E[k, i] * VE[k, j]
            EVE[i, j] = EVE[j, i] = total


@bare_kernel
def _gain(C, EVE, half, M, P):
    """Compute P (6, 6) = L^-1 C' with L L' = I + C' EVE C, so that P' P = C (I + C' EVE C)^-1 C'.

    Returns False, with P unchanged, if I + C' EVE C is not positive definite.

    C (6, 6): factor of the forces' compliance, lower triangle; EVE (6, 6): symmetric, curvature of the cost-to-go along the
    forces; half, M (6, 6): workspace, L in M's lower triangle on return.
    """
    for i in range(WRENCH):
        for j in range(WRENCH):
            total = 0.0
            for k in range(j, WRENCH):
                total += EVE[i, k] * C[k, j]
            half[i, j] = total
    for i in range(WRENCH):
        for j in range(i + 1):
            total = 1.0 if i == j else 0.0
            for k in range(i, WRENCH):
                total += C[k, i] * half[k, j]
            M[i, j] = total
    if not cholesky(M, WRENCH, 0.0):
        return False
    for i in range(WRENCH):
        inverse = 1.0 / M[i, i]
        for j in range(WRENCH):
            total = C[j, i]
            for k in range(i):
                total -= M[i, k] * P[k, j]
            P[i, j] = total * inverse
    return True


@bare_kernel
def _value(V, VE, P, A, Q, half, Z, out):
    """out (9, 9) = Q + A' (V - VE P'P E'V) A, both triangles; VE (9, 6), P (6, 6), half (9, 6), Z (9, 9): workspace."""
    for i in range(STATE):
        for j in range(WRENCH):
            total = 0.0
            for k in range(WRENCH):
                total += VE[i, k] * P[j, k]
            half[i, j] = total
    for i in range(STATE):
        for j in range(i + 1):
            total = V[i, j]
            for k in range(WRENCH):
                total -= half[i, k] * half[j, k]
            Z[i, j] = Z[j, i] = total
    for i in range(STATE):
        for j in range(STATE):
            total = 0.0
            for k in range(STATE):
                total += Z[i, k] * A[k, j]
            half[i, j] = total
    for i in range(STATE):
        for j in range(i + 1):
            total = Q[i, j]
            for k in range(STATE):
                total += A[k, i] * half[k, j]
            out[i, j] = out[j, i] = total


@bare_kernel
def factor(stages, Q, H, into):
    """Riccati's recursion V[t] = Q[t] + A' (V - V E P'P E'V) A, V = V[t + 1], from V[T] = Q[T]; False: not convex.

    P'P = (E'VE + S^-1)^-1 with S = sum G H^-1 G' of the interval's forces.

    Args:
        stages: the dynamics.  Q (T + 1, 9, 9), H (m, 3, 3): of the cost, lower triangles.
        into: the factor, written for ``solve``.
    """
    A, E, first, G = stages.A, stages.E, stages.first, stages.G
    V, VE, P, LD = into.V, into.VE, into.P, into.LD
    S, EVE, half, Z = into.scratch[0], into.scratch[1], into.scratch[2], into.scratch[3]
    last = A.shape[0]
    for i in range(STATE):
        for j in range(i + 1):
            V[last, i, j] = V[last, j, i] = Q[last, i, j]
    for t in range(last - 1, -1, -1):
        for i in range(WRENCH):
            for j in range(WRENCH):
                S[i, j] = 0.0
        for k in range(first[t], first[t + 1]):
            _factored(H[k], LD[k])
            _add_compliance(G[k], LD[k], S, half)
        semidefinite_cholesky(S, WRENCH, NO_PIVOT, 0.0)
        _times_input(V[t + 1], E[t], VE[t], EVE)
        if not _gain(S, EVE, half, Z, P[t]):
            return False
        _value(V[t + 1], VE[t], P[t], A[t], Q[t], half, Z, V[t])
    return True


@bare_kernel
def _projected(P, c, half, out):
    """out = P' P c."""
    for i in range(WRENCH):
        total = 0.0
        for j in range(WRENCH):
            total += P[i, j] * c[j]
        half[i] = total
    for i in range(WRENCH):
        total = 0.0
        for j in range(WRENCH):
            total += P[j, i] * half[j]
        out[i] = total


@bare_kernel
def _down(matrix, x, out):
    """out = matrix' x for a matrix (9, 6)."""
    for j in range(WRENCH):
        out[j] = 0.0
    for i in range(STATE):
        amount = x[i]
        for j in range(WRENCH):
            out[j] += matrix[i, j] * amount


@bare_kernel
def wrench_of(first, last, G, du, wrench):
    """wrench (6,) = sum G du of the inputs first .. last - 1; G (m, 6, 3), du (m, 3)."""
    for i in range(WRENCH):
        wrench[i] = 0.0
    for k in range(first, last):
        a, b, c = du[k, 0], du[k, 1], du[k, 2]
        for i in range(WRENCH):
            wrench[i] += G[k, i, 0] * a + G[k, i, 1] * b + G[k, i, 2] * c


@bare_kernel
def _respond(LD, G, h, c, du):
    """du = -H^-1 (h + G' c)."""
    a, b, d = h[0], h[1], h[2]
    for i in range(WRENCH):
        a += G[i, 0] * c[i]
        b += G[i, 1] * c[i]
        d += G[i, 2] * c[i]
    a, b, d = _solved(LD, a, b, d)
    du[0], du[1], du[2] = -a, -b, -d


@bare_kernel
def _backward(stages, by, q, h, defect, out, rows):
    """Value gradients p, and the optimal inputs for dx = 0 (du, wrench)."""
    A, E, first, G = stages.A, stages.E, stages.first, stages.G
    V, VE, P, LD = by.V, by.VE, by.P, by.LD
    du, p, wrench = out.du, out.p, out.wrench
    total, c, half, part = rows[0], rows[1], rows[2], rows[3]
    last = A.shape[0]
    for i in range(STATE):
        p[last, i] = q[last, i]
    for t in range(last - 1, -1, -1):
        for k in range(first[t], first[t + 1]):
            x, y, z = _solved(LD[k], h[k, 0], h[k, 1], h[k, 2])
            du[k, 0], du[k, 1], du[k, 2] = -x, -y, -z
        wrench_of(first[t], first[t + 1], G, du, wrench[t])
        for i in range(STATE):
            amount = p[t + 1, i]
            for j in range(STATE):
                amount += V[t + 1, i, j] * defect[t, j]
            for j in range(WRENCH):
                amount += VE[t, i, j] * wrench[t, j]
            total[i] = amount
        _down(E[t], total, c)
        _projected(P[t], c, half, part)
        for i in range(STATE):
            amount = total[i]
            for j in range(WRENCH):
                amount -= VE[t, i, j] * part[j]
            total[i] = amount
        for i in range(STATE):
            p[t, i] = q[t, i]
        for j in range(STATE):
            amount = total[j]
            for i in range(STATE):
                p[t, i] += A[t, j, i] * amount


@bare_kernel
def solve(stages, by, q, h, defect, out):
    """Solve for gradients q (T + 1, 9), h (m, 3) and defects (T, 9) with a factorisation ``by``.

    The states are rolled out with the inputs themselves: the dynamics hold to rounding.
    """
    A, E, first, G = stages.A, stages.E, stages.first, stages.G
    VE, P, LD = by.VE, by.P, by.LD
    dx, du, p, wrench = out.dx, out.du, out.p, out.wrench
    rows = by.scratch[0]
    _backward(stages, by, q, h, defect, out, rows)
    free, c, half, part, pull = rows[0], rows[1], rows[2], rows[3], rows[4]
    for i in range(STATE):
        dx[0, i] = 0.0
    for t in range(A.shape[0]):
        for i in range(STATE):
            amount = defect[t, i]
            for j in range(STATE):
                amount += A[t, i, j] * dx[t, j]
            free[i] = amount
            for j in range(WRENCH):
                amount += E[t, i, j] * wrench[t, j]
            dx[t + 1, i] = amount
        _down(E[t], p[t + 1], pull)
        _down(VE[t], dx[t + 1], c)
        for j in range(WRENCH):
            c[j] += pull[j]
        _projected(P[t], c, half, part)
        for i in range(STATE):
            amount = dx[t + 1, i]
            for j in range(WRENCH):
                amount -= E[t, i, j] * part[j]
            dx[t + 1, i] = amount
        _down(VE[t], dx[t + 1], c)
        for j in range(WRENCH):
            c[j] += pull[j]
        for k in range(first[t], first[t + 1]):
            _respond(LD[k], G[k], h[k], c, du[k])
        wrench_of(first[t], first[t + 1], G, du, wrench[t])
        for i in range(STATE):
            amount = free[i]
            for j in range(WRENCH):
                amount += E[t, i, j] * wrench[t, j]
            dx[t + 1, i] = amount
