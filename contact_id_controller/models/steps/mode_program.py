"""Nearest impulses in given contact modes: a convex program of at most 3n unknowns.

Unknown are the coordinates of each contact's force in the span of its mode; the modes' conditions on the velocities
w = Y Y^T z + free are equations and inequalities, those on the forces the facets of cones. ``nearest_point`` solves it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.nearest_point import (
    INFEASIBLE,
    SOLVED,
    STEP_LIMIT,
    nearest_point,
)
from contact_id_controller.models.steps.modes import PARTS, SLIDES, STICKS, UNDECIDED

# Contacts at nearly the same place must not fight with enormous forces for the last digits: what is
# left of a dependent condition may be violated a little.
DEPENDENT = 1e-6  # share of a velocity condition that is left when it depends on the others
AGREES = 1e-9  # velocity, of about 1, by which it may be violated then
NOTHING = 1e-13  # a row this small, with velocities and inertia about 1, asks for nothing


class _Conditions(NamedTuple):
    """Conditions of the modes of n contacts, in arrays of the largest size with separate counts.

    B (3n, 3): columns of forces, each of the contact owner (3n,).  D (n edges, 3): facets of cones, on the
    coordinates from start[:, 0] on, start[:, 1] of them.  E (3n, nu), e (3n,): equations E u + e = 0, decided
    at place (3n,) in the sequence.  H (2n, nu), h (2n,): inequalities H u + h >= 0.
    """

    B: np.ndarray
    owner: np.ndarray
    D: np.ndarray
    start: np.ndarray
    E: np.ndarray
    e: np.ndarray
    place: np.ndarray
    H: np.ndarray
    h: np.ndarray


@kernel
def _velocity_rows(mode, i, Y, free, mu, edges, rows, right):
    """Write the conditions of a mode on u, rows (3, nu) u + right (3,).

    returns (equations, inequalities >= 0 after them).
    """
    nu = Y.shape[1]
    for k in range(nu):
        rows[0, k] = Y[3 * i, k]
    right[0] = free[3 * i]
    if mode in (UNDECIDED, PARTS):
        return 0, 1
    if mu == 0.0:
        return 1, 0
    # Combinations of the tangential rows: both, or those that bound w_T against the edge.
    first = second = np.pi / 2
    equations, inequalities = 3, 0
    if mode == STICKS:
        first = 0.0
    else:
        j = (mode - SLIDES) % edges
        width = 2.0 * np.pi / edges
        if mode < SLIDES + edges:
            # -w_T within half a width of d_j: two half-planes.
            equations, inequalities = 1, 2
            first = (j + 0.5) * width + np.pi / 2
            second = (j - 0.5) * width - np.pi / 2
        else:
            equations, inequalities = 2, 1
            first = (j + 0.5) * width + np.pi / 2
            second = (j + 0.5) * width + np.pi
    for r in range(2):
        angle = first if r == 0 else second
        cosine, sine = np.cos(angle), np.sin(angle)
        right[r + 1] = cosine * free[3 * i + 1] + sine * free[3 * i + 2]
        for k in range(nu):
            rows[r + 1, k] = cosine * Y[3 * i + 1, k] + sine * Y[3 * i + 2, k]
    return equations, inequalities


@kernel
def _force_rows(mode, mu, edges, columns, facets):
    """Write the forces of a mode: orthonormal columns (3, 3), facets (edges, 3) >= 0 on their coordinates.

    Returns (columns, facets).
    """
    for r in range(3):
        fill(columns[r], 0.0)
    if mode == PARTS:
        return 0, 0
    fill(facets[0], 0.0)
    columns[0, 0] = 1.0
    facets[0, 0] = 1.0
    if mu == 0.0:
        return 1, 1
    width = 2.0 * np.pi / edges
    if mode <= STICKS:
        for j in range(edges):
            middle = (j + 0.5) * width
            size = np.sqrt(1.0 + (mu * np.cos(0.5 * width)) ** 2)
            facets[j, 0] = mu * np.cos(0.5 * width) / size
            facets[j, 1], facets[j, 2] = -np.cos(middle) / size, -np.sin(middle) / size
        columns[1, 1] = columns[2, 2] = 1.0
        return 3, edges
    j = (mode - SLIDES) % edges
    if mode < SLIDES + edges:
        size = np.sqrt(1.0 + mu * mu)
        columns[0, 0] = 1.0 / size
        columns[0, 1], columns[0, 2] = mu * np.cos(j * width) / size, mu * np.sin(j * width) / size
        return 1, 1
    # A face of the pyramid: along its middle line, and across.
    middle, half = (j + 0.5) * width, 0.5 * width
    size = np.sqrt(1.0 + (mu * np.cos(half)) ** 2)
    columns[0, 0] = 1.0 / size
    columns[0, 1] = mu * np.cos(half) * np.cos(middle) / size
    columns[0, 2] = mu * np.cos(half) * np.sin(middle) / size
    columns[1, 1], columns[1, 2] = -np.sin(middle), np.cos(middle)
    long = np.sqrt(1.0 + mu * mu)
    for r in range(2):
        facets[r, 0] = mu * np.sin(half) / long
        facets[r, 1] = size / long if r == 0 else -size / long
    return 2, 2


@kernel
def _independent(E, e, place, count):
    """Orthonormalise equations E (count, nu) u + e = 0 in place; returns the number of independent ones.

    Gram-Schmidt with pivoting: equations of a lower ``place`` (count,) first, of equal place the one with the largest
    remaining share; rows after the independent ones hold the others' remainders. In u, not in the impulses, where the
    condition number would be squared.
    """
    nu = E.shape[1]
    length, left = np.empty(count), np.empty(count)
    for r in range(count):
        length[r] = _norm(E[r])
        left[r] = length[r]
    kept = 0
    while kept < count:
        best, share = -1, DEPENDENT
        for r in range(kept, count):
            if left[r] > DEPENDENT * length[r] and (
                best < 0
                or place[r] < place[best]
                or (place[r] == place[best] and left[r] > share * length[r])
            ):
                best, share = r, left[r] / length[r]
        if best < 0:
            break
        for k in range(nu):
            E[kept, k], E[best, k] = E[best, k], E[kept, k]
        e[kept], e[best] = e[best], e[kept]
        place[kept], place[best] = place[best], place[kept]
        length[best], left[best] = length[kept], left[kept]
        for p in range(kept):  # once more: what rounding has left of the rows before
            e[kept] -= _take_away(E[p], E[kept]) * e[p]
        size = _norm(E[kept])
        for k in range(nu):
            E[kept, k] /= size
        e[kept] /= size
        for r in range(kept + 1, count):
            e[r] -= _take_away(E[kept], E[r]) * e[kept]
            left[r] = _norm(E[r])
        kept += 1
    return kept


@kernel
def _norm(row):
    """Euclidean length of a row (n,)."""
    total = 0.0
    for k in range(row.shape[0]):
        total += row[k] * row[k]
    return np.sqrt(total)


@kernel
def _take_away(unit, row):
    """Subtract from a row its component along a unit vector, in place; returns the component."""
    dot = 0.0
    for k in range(row.shape[0]):
        dot += row[k] * unit[k]
    for k in range(row.shape[0]):
        row[k] -= dot * unit[k]
    return dot


@kernel
def _add(condition, constant, YB, A, b, row):
    """Write condition·u + constant >= 0, with u = YB^T x, as row ``row`` of A x + b >= 0.

    condition (nu,); YB (m, nu), x (m,) coordinates of the forces. Divided by max(norm(A[row]), abs(constant)). Returns
    the next free row: ``row`` itself if x has no influence and the condition holds, -1 if it has none and the condition
    fails.
    """
    for a in range(YB.shape[0]):
        A[row, a] = 0.0
        for k in range(YB.shape[1]):
            A[row, a] += YB[a, k] * condition[k]
    size = _norm(A[row])
    if size <= NOTHING:
        return row if constant >= -AGREES else -1
    size = max(size, abs(constant))
    for a in range(YB.shape[0]):
        A[row, a] /= size
    b[row] = constant / size
    return row + 1


@kernel
def _gather(Y, free, mu, edges, modes, sequence, conditions):
    """Collect the modes' conditions of all contacts.

    Returns the numbers of columns, facets, equations, inequalities.
    """
    nu = Y.shape[1]
    m, facets, equations, inequalities = 0, 0, 0, 0
    rows, right = np.empty((3, nu)), np.empty(3)
    for p in range(modes.shape[0]):
        i = sequence[p]
        columns, cone = conditions.B[m : m + 3], conditions.D[facets : facets + edges]
        used, bounds = _force_rows(modes[i], mu[i], edges, columns, cone)
        for a in range(used):
            conditions.owner[m + a] = i
        for r in range(bounds):
            conditions.start[facets + r, 0], conditions.start[facets + r, 1] = m, used
        m += used
        facets += bounds
        equal, unequal = _velocity_rows(modes[i], i, Y, free, mu[i], edges, rows, right)
        for r in range(equal + unequal):
            if r < equal:
                assign(conditions.E[equations], rows[r])
                conditions.e[equations] = right[r]
                conditions.place[equations] = p
                equations += 1
            else:
                assign(conditions.H[inequalities], rows[r])
                conditions.h[inequalities] = right[r]
                inequalities += 1
    return m, facets, equations, inequalities


@kernel
def _write_rows(conditions, counts, relaxed, YB, A, b):
    """Write the conditions A x + b on the forces' coordinates x, equations first.

    Returns (equations, rows); rows are -1 if no force can satisfy them.
    """
    facets, equations, inequalities = counts
    E, e, H, h = conditions.E, conditions.e, conditions.H, conditions.h
    firm = _independent(E, e, conditions.place, equations)
    row, rest = 0, np.empty(E.shape[1])
    for r in range(firm):
        before = row
        row = _add(E[r], e[r], YB, A, b, row)
        if row < 0 or (row == before and e[r] > AGREES):
            return 0, -1
    equal = row
    for r in range(firm, equations):
        row = _add(E[r], e[r] + AGREES, YB, A, b, row)
        if row < 0:
            return 0, -1
        for k in range(E.shape[1]):
            E[r, k] = -E[r, k]
        row = _add(E[r], AGREES - e[r], YB, A, b, row)
        if row < 0:
            return 0, -1
    for r in range(inequalities):
        assign(rest, H[r])
        for p in range(firm):
            _take_away(E[p], rest)
        dependent = _norm(rest) <= DEPENDENT * _norm(H[r])
        row = _add(H[r], h[r] + (AGREES if relaxed or dependent else 0.0), YB, A, b, row)
        if row < 0:
            return 0, -1
    for r in range(facets):
        fill(A[row], 0.0)
        b[row] = 0.0
        for d in range(conditions.start[r, 1]):
            A[row, conditions.start[r, 0] + d] = conditions.D[r, d]
        row += 1
    return equal, row


@kernel
def _nearest(A, b, equal, x):
    """``nearest_point`` from x (m,), repeated from another start if it finds the conditions infeasible."""
    rows, m = A.shape
    preferred = np.empty(0, np.bool_)
    multipliers, active = np.empty(rows), np.empty(m + 1, np.int64)
    Q, R, work = np.empty((m, m)), np.empty((m, m)), np.empty((3, m + 1))
    status, _ = nearest_point(A, b, equal, preferred, x, multipliers, active, Q, R, work)
    if status == INFEASIBLE:
        # Nearly dependent rows can look contradictory: not from everywhere, though.
        fill(x, 1.0)
        again, _ = nearest_point(A, b, equal, preferred, x, multipliers, active, Q, R, work)
        if again != INFEASIBLE:
            status = STEP_LIMIT
    return status


@kernel
def nearest_in_modes(Y, free, mu, edges, modes, sequence, target, z):
    """Nearest impulses z (3n,) to ``target`` (3n,) that the modes (n,) allow; returns a status.

    Y (3n, nu) and free (3n,), gaps included, are scaled to about 1. Status as of ``nearest_point``;
    STEP_LIMIT: allowed impulses, but not the nearest.
    sequence (n,): contacts in the order in which their modes were decided, so that deciding one more only shrinks the
    admissible set: while any is undecided, inequalities may be violated by as much as an equation that replaces them
    later.
    """
    n, nu = mu.shape[0], Y.shape[1]
    conditions = _Conditions(
        B=np.zeros((3 * n, 3)),
        owner=np.empty(3 * n, np.int64),
        D=np.zeros((n * edges, 3)),
        start=np.empty((n * edges, 2), np.int64),
        E=np.empty((3 * n, nu)),
        e=np.empty(3 * n),
        place=np.empty(3 * n, np.int64),
        H=np.empty((2 * n, nu)),
        h=np.empty(2 * n),
    )
    m, facets, equations, inequalities = _gather(Y, free, mu, edges, modes, sequence, conditions)
    relaxed = False
    for i in range(n):
        relaxed = relaxed or modes[i] == UNDECIDED
    B, owner = conditions.B, conditions.owner
    YB, x = np.empty((m, nu)), np.empty(m)
    for a in range(m):
        i = 3 * owner[a]
        for k in range(nu):
            YB[a, k] = B[a, 0] * Y[i, k] + B[a, 1] * Y[i + 1, k] + B[a, 2] * Y[i + 2, k]
        x[a] = B[a, 0] * target[i] + B[a, 1] * target[i + 1] + B[a, 2] * target[i + 2]
    most = 2 * equations + inequalities + facets
    A, b = np.zeros((most, m)), np.zeros(most)
    equal, rows = _write_rows(conditions, (facets, equations, inequalities), relaxed, YB, A, b)
    if rows < 0:
        return INFEASIBLE
    status = _nearest(A[:rows], b[:rows], equal, x) if m else SOLVED
    fill(z, 0.0)
    for a in range(m):
        for d in range(3):
            z[3 * owner[a] + d] += B[a, d] * x[a]
    return status
