"""Scaling and warm basis before the path, certified result in the caller's units after it."""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.lcp._friction_core import CONTACT, MOTION, MOTION_CHANGE, FrictionProblem
from contact_id_controller.lcp._friction_path import place_contact
from contact_id_controller.lcp._ratio_test import VALUE
from contact_id_controller.lcp._scaled import NORM_SHARE
from contact_id_controller.lcp.status import RESIDUAL, SOLVED_RESIDUAL

EXCUSE = 1e2  # rows count as no larger than this times the largest c, however large the impulses
CANCELLED = 1e-3  # weight of edge forces that cancel each other in the size of their row


@kernel
def scaled(Y, c, mu, edges, work):
    """Scale the problem so that the largest entry of Y and c is 1; fills work.normals.

    Separating normal velocities do not count: a gap of any size does not scale the others.
    """
    r, n = work.normals.shape
    largest_Y = largest_c = 0.0
    for a in range(3 * n):
        largest_c = max(largest_c, -c[a] if a % 3 == 0 else abs(c[a]))
        for x in range(r):
            largest_Y = max(largest_Y, abs(Y[a, x]))
    scale_Y = 1.0 / largest_Y if largest_Y > 0.0 else 1.0
    scale_c = 1.0 / largest_c if largest_c > 0.0 else 1.0
    for i in range(n):
        for x in range(r):
            work.normals[x, i] = Y[3 * i, x] * scale_Y
    return FrictionProblem(Y, c, mu, edges, scale_Y, scale_c)


@kernel
def load_basis(problem, basis, work):
    """Put the contacts that carry load in a warm basis (n, p) bool into slots; returns their number."""
    slots = np.int64(0)
    work.cover[:] = 0.0
    for i in range(basis.shape[0]):
        if not basis[i, 0]:
            continue
        place_contact(problem, slots, i, work)
        for j in range(basis.shape[1]):
            work.basic[slots, j] = 1 if basis[i, j] else 0
        slots += 1
    return slots


@kernel
def finish(problem, slots, work, answer, report):
    """Write the result of ``slots`` loaded contacts in the caller's units; returns whether its residual certifies it.

        residual = max |w - (M z + q)| / size,  size about |q| + |M| z of its row   (``_contact_error``)

    answer: out, see ``FrictionAnswer``; report[RESIDUAL]: out.
    """
    Y, edges, basis, z, impulses = problem.Y, problem.edges, answer.basis, answer.z, answer.impulses
    r, n, last = Y.shape[1], problem.mu.shape[0], basis.shape[1] - 1
    to_speed = 1.0 / problem.scale_c
    to_force = problem.scale_Y * problem.scale_Y * to_speed
    u, size = work.vectors[MOTION, :r], work.vectors[MOTION_CHANGE, :r]
    for x in range(r):
        u[x] = size[x] = 0.0
    clear(answer)
    for s in range(slots):
        if work.basic[s, 0] == 0:
            continue
        i, first = work.slot[CONTACT, s], n + s * (last + 1)
        for j in range(last + 1):
            basis[i, j] = work.basic[s, j] == 1
            if basis[i, j]:
                unit = to_force if j < last else to_speed
                z[i, j] = max(work.level[VALUE, first + j], 0.0) * unit
        z[i, 0] /= 1.0 + problem.mu[i]
        _into_cone(z[i], problem.mu[i], basis[i, last])
        impulses[i, 0] = z[i, 0]
        for e in range(1, last):
            impulses[i, 1] += z[i, e] * edges[e - 1, 0]
            impulses[i, 2] += z[i, e] * edges[e - 1, 1]
        for a in range(3):
            # Edge forces that cancel leave their rounding, far below what a wrong one would.
            terms = abs(impulses[i, a])
            for e in range(1, last if a > 0 else 1):
                terms += CANCELLED * z[i, e] * abs(edges[e - 1, a - 1])
            for x in range(r):
                u[x] += Y[3 * i + a, x] * impulses[i, a]
                size[x] += abs(Y[3 * i + a, x]) * terms
    floor = 0.0
    for x in range(r):
        floor += size[x]
    floor = NORM_SHARE * (to_speed + floor / problem.scale_Y)
    worst = 0.0
    for i in range(n):
        worst = max(worst, _contact_error(i, problem, u, size, floor, EXCUSE * to_speed, answer))
    report[RESIDUAL] = worst
    return worst <= SOLVED_RESIDUAL


@kernel
def _into_cone(z, mu, slides):
    """Scale the edge forces z[1:k + 1] so that their sum is at most mu f_N, and exactly that if the contact slips.

    mu f_N = sum f_e was solved for with rounding, which counts where f_N itself is nearly zero. w is computed from
    the scaled forces, so the residual still judges them.
    """
    last = z.shape[0] - 1
    total, limit = 0.0, mu * z[0]
    for e in range(1, last):
        total += z[e]
    if total > limit or (slides and total > 0.0):
        for e in range(1, last):
            z[e] *= limit / total


@kernel
def _contact_error(i, problem, u, u_size, floor, most, answer):
    """Fill contact i's w (and lambda without load); returns its largest error relative to |q| + |M| z.

    Args:
        u, u_size: (r,) sum Y f and the sum of its terms' sizes.
        floor: added to each row's size, m/s, so that a row of rounding only passes.
        most: largest size that counts, m/s, so that huge impulses do not excuse an error.
    """
    Y, c, edges, basis, z, w = problem.Y, problem.c, problem.edges, answer.basis, answer.z, answer.w
    last = z.shape[1] - 1
    normal, s, t = c[3 * i], c[3 * i + 1], c[3 * i + 2]
    normal_size, slide_size = abs(normal) + floor, abs(s) + abs(t) + floor
    for x in range(u.shape[0]):
        normal += Y[3 * i, x] * u[x]
        s += Y[3 * i + 1, x] * u[x]
        t += Y[3 * i + 2, x] * u[x]
        normal_size += abs(Y[3 * i, x]) * u_size[x]
        slide_size += (abs(Y[3 * i + 1, x]) + abs(Y[3 * i + 2, x])) * u_size[x]
    if not normal_size + slide_size < math.inf:
        return math.inf
    normal_size, slide_size = min(normal_size, most), min(slide_size, most)
    if not basis[i, 0]:
        _slide(i, s, t, edges, basis, z)
    slip = z[i, last]
    w[i, 0] = max(normal, 0.0) if not basis[i, 0] else 0.0
    worst = abs(w[i, 0] - normal) / normal_size if normal_size > 0.0 else 0.0
    balance = problem.mu[i] * z[i, 0]
    balance_size = balance
    for e in range(1, last):
        value = edges[e - 1, 0] * s + edges[e - 1, 1] * t + slip
        w[i, e] = max(value, 0.0) if not basis[i, e] else 0.0
        if abs(w[i, e] - value) > worst * (slide_size + slip):
            worst = abs(w[i, e] - value) / (slide_size + slip)
        balance -= z[i, e]
        balance_size += z[i, e]
    w[i, last] = max(balance, 0.0) if not basis[i, last] else 0.0
    if abs(w[i, last] - balance) > worst * balance_size:
        worst = abs(w[i, last] - balance) / balance_size
    return worst


@kernel
def _slide(i, s, t, edges, basis, z):
    """Set lambda and basis of contact i without load, which slides freely: lambda = max_e -(edge_e . (s, t)), >= 0.

    s, t: its velocity along the tangents, m/s.
    """
    last = z.shape[1] - 1
    against, slip = 1, 0.0
    for e in range(1, last):
        speed = -(edges[e - 1, 0] * s + edges[e - 1, 1] * t)
        if speed > slip:
            against, slip = e, speed
    z[i, last] = slip
    basis[i, against] = basis[i, last] = True


@kernel
def clear(answer):
    """Nothing basic, everything zero."""
    for i in range(answer.z.shape[0]):
        for j in range(answer.z.shape[1]):
            answer.basis[i, j] = False
            answer.z[i, j] = answer.w[i, j] = 0.0
        for j in range(3):
            answer.impulses[i, j] = 0.0
