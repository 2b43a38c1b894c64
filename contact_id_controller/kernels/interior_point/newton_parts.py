"""Parts of the interior-point method besides its step: starting point, defects, certificate.

See ``central_path`` for the program and its arrays. Nothing here allocates.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.interior_point.second_order_cone import distance

EPSILON = 4e-15  # rounding of a defect relative to its terms
SMALLEST = 1e-4  # smallest term of a row against which its defect counts, in scaled units


@bare_kernel
def dot(a, b, start, stop):
    """Sum of a_i b_i from start to stop, a and b (n,); four partial sums at a time, to avoid waiting for one."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    i = start
    while i + 4 <= stop:
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        i += 4
    while i < stop:
        s0 += a[i] * b[i]
        i += 1
    return (s0 + s1) + (s2 + s3)


@bare_kernel
def extent(At, first, last):
    """Write the begin and end of the nonzero entries of each variable's column, into first and last (N,)."""
    p = At.shape[1]
    for j in range(At.shape[0]):
        row = At[j]
        first[j], last[j] = p, 0
        for i in range(p):
            if row[i] != 0.0:
                last[j] = i + 1
                if first[j] == p:
                    first[j] = i


@bare_kernel
def cold_start(program, point):
    """Initialise a point well inside all bounds and cones."""
    lower, upper, x, s, r = program.lower, program.upper, point.x, point.s, point.r
    boxes = lower.shape[0]
    for j in range(boxes):
        # Products of one throughout; the two multipliers of a narrow pair of bounds cancel.
        width = upper[j] - lower[j]
        margin = min(1.0, 0.5 * width)
        x[j] = min(max(0.0, lower[j] + margin), upper[j] - margin)
        s[j] = 1.0 / (x[j] - lower[j]) if lower[j] > -np.inf else 0.0
        r[j] = 1.0 / (upper[j] - x[j]) if upper[j] < np.inf else 0.0
    for j in range(boxes, x.shape[0]):
        x[j] = s[j] = 1.0 if (j - boxes) % 3 == 0 else 0.0
    fill(point.y, 0.0)


@bare_kernel
def residuals(program, point, work):
    """KKT defects; returns (dual, primal, gap, leak, objective).

        rd = D x + g - A^T y - s + r,   rp = b - A x - soft y

    dual and primal are the largest of them relative to their terms; the gap is that of a dual point
    which differs by the leak, |rd^T x|.
    """
    weight, linear, At, b, soft, lower, upper = program
    x, y, s, r = point
    rd, rp, terms, begin, end = work.rd, work.rp, work.rest, work.extent[0], work.extent[1]
    N, p = At.shape
    boxes = lower.shape[0]
    objective, gap, leak, dual, size = 0.0, 0.0, 0.0, 0.0, 1.0
    for i in range(p):
        rp[i] = b[i] - soft[i] * y[i]
        terms[i] = SMALLEST + abs(b[i])
    for j in range(N):
        total = weight[j] * x[j]
        objective += x[j] * (0.5 * total + linear[j])
        total += linear[j] - s[j]
        if j < boxes:
            total += r[j]
            if lower[j] > -np.inf:
                gap += (x[j] - lower[j]) * s[j]
            if upper[j] < np.inf:
                gap += (upper[j] - x[j]) * r[j]
        else:
            gap += x[j] * s[j]
        row, value = At[j], x[j]
        pull = dot(row, y, begin[j], end[j])
        size_of_pull = abs(s[j])
        for i in range(begin[j], end[j]):
            size_of_pull += abs(row[i] * y[i])
            term = row[i] * value
            rp[i] -= term
            terms[i] += abs(term)
        rd[j] = total - pull
        leak += max(abs(rd[j]) - EPSILON * size_of_pull, 0.0) * abs(value)
        dual, size = max(dual, abs(rd[j])), max(size, abs(pull), abs(s[j]))
    primal = 0.0
    for i in range(p):
        primal = max(primal, abs(rp[i]) / terms[i])
        objective += 0.5 * soft[i] * y[i] * y[i]
    return dual / size, primal, gap, leak, objective


@bare_kernel
def excludes(program, point, rd, proof, force):
    """Whether y certifies that every feasible point is larger than ``proof``.

    rd (N,): dual defect, see ``residuals``; force (3,): workspace.
    """
    weight, linear, b, soft = program.weight, program.linear, program.b, program.soft
    lower, upper = program.lower, program.upper
    x, y, s, r = point
    boxes = lower.shape[0]
    value, left = 0.0, 0.0
    for i in range(b.shape[0]):
        value += b[i] * y[i]
        left = max(left, soft[i] * abs(y[i]))
    if not value > 0.0:
        return False
    for j in range(boxes):
        pull = weight[j] * x[j] + linear[j] - s[j] + r[j] - rd[j]  # (A^T y)_j
        bound = upper[j] if pull > 0.0 else lower[j]
        if np.isinf(bound):
            left += abs(pull)
        else:
            value -= bound * pull
    for j in range(boxes, x.shape[0], 3):
        for d in range(3):
            k = j + d
            force[d] = -(weight[k] * x[k] + linear[k] - s[k] - rd[k])
        left += distance(force)
    return value > proof * left


@bare_kernel
def keep_point(point, saved):
    """Copy a point into ``saved`` (4, .)."""
    x, y, s, r = point
    for j in range(x.shape[0]):
        saved[0, j], saved[2, j] = x[j], s[j]
    for i in range(y.shape[0]):
        saved[1, i] = y[i]
    for j in range(r.shape[0]):
        saved[3, j] = r[j]
