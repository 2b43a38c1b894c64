"""Path of Lemke's method, from the covering variable's ray to a complementary basis.

Of  w - M z - d z_0 = q  only the rows with a non-basic w and the columns of basic z and z_0 need a
factorisation:  K = [M d] there, H = K^-1.  The basic w follow by substitution, so a pivot costs
O(m^2 + n m) for m basic z instead of the O(n^2) of a tableau, and rounding errors stay in H.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.lcp._ratio_test import (
    CHANGE,
    COVERING,
    GOLDEN,
    NOTHING,
    SPREAD,
    VALUE,
    first_blocking,
    raise_cover,
    tie_tolerance,
)
from contact_id_controller.lcp._scaled import (
    COVER,
    LEVEL,
    RIGHT,
    ROW_SCALE,
    SPARE,
    X,
    Y,
    add_columns,
)
from contact_id_controller.lcp.status import PIVOT_LIMIT, PIVOTS, RAY, SOLVED

ROWS, COLUMNS, ROW_AT, COLUMN_AT = 0, 1, 2, 3  # rows of ``integers`` (4, n + 1)
BALANCED = 1024.0  # row scales within this factor: plain ones cover first, otherwise third
RESIDUAL_GOAL = 1e-14  # rows w = 0 are met to this, relative to 1 + the largest basic z
PASSES = 3  # at most, to reach it
REFRESH = 8.0  # pivots between evaluations from the data in the first attempt; later: each one


@kernel
def follow_path(cover, attempt, max_pivots, matrices, vectors, integers, report):
    """Run Lemke's method on the scaled problem M', q' of ``_scaled``; returns (status, number m of basic z).

    On success vectors[X, :m] holds the basic z in the order of integers[COLUMNS].

    Args:
        cover: (n,) covering vector of the first attempt, or (0,) for the default.
        attempt: from 0 on; later ones have other covering vectors and evaluate values from the data at each pivot.
        max_pivots: of this attempt; counted in report[PIVOTS].
        matrices: (2, n + 1, n + 1): Mt and, here, H.  vectors, integers: workspace, see their rows' names.

    Source: Cottle, Pang and Stone (1992), algorithm 4.4.5.
    """
    n = vectors.shape[1] - 1
    Mt, H, level, x, y = matrices[0], matrices[1], vectors[LEVEL:], vectors[X], vectors[Y]
    rows, columns = integers[ROWS], integers[COLUMNS]
    row_at, column_at = integers[ROW_AT], integers[COLUMN_AT]
    _start(cover, attempt, Mt, vectors, integers)
    tie = tie_tolerance(attempt)
    leaving, theta, tilt = raise_cover(level, vectors[COVER], n)
    entering, row, m = n, np.int64(-1), np.int64(0)  # z_0; ``row``: position of an entering w
    level[VALUE, n], level[SPREAD, n] = theta, tilt
    for _ in range(max_pivots):
        report[PIVOTS] += 1.0
        column = column_at[leaving]
        if column < 0:
            _row_times(Mt, H, m, columns, leaving, y)
        m = _update_inverse(H, m, row, column, x, y, level[CHANGE, leaving])
        _update_lists(rows, columns, row_at, column_at, m, row, column, entering, leaving)
        last = leaving == n
        if last or attempt > 0 or report[PIVOTS] % REFRESH == 0.0:
            _values(Mt, H, m, rows, columns, vectors, 0.0 if last else RESIDUAL_GOAL)
        if last:
            return SOLVED, m
        entering = leaving
        row = row_at[entering] if column >= 0 else np.int64(-1)
        _direction(Mt, H, m, rows, columns, row, entering, vectors)
        leaving, theta, tilt = first_blocking(
            level, n, tie, level[VALUE, n], level[SPREAD, n], level[CHANGE, n]
        )
        if leaving == NOTHING:
            return RAY, m
        if leaving == COVERING:
            leaving = n
        for i in range(n + 1):
            level[VALUE, i] += theta * level[CHANGE, i]
            level[SPREAD, i] += tilt * level[CHANGE, i]
        level[VALUE, entering], level[SPREAD, entering] = theta, tilt
    return PIVOT_LIMIT, m


@kernel
def _start(cover, attempt, Mt, vectors, integers):
    """Initialise with all w basic: w = q' + d z_0; d (n,) goes into vectors[COVER] and the last row of Mt.

    d are ones in the caller's rows, or, where these differ much in size (BALANCED), in equilibrated ones; the second
    and third attempt take the other; later ones spread d by multiples of GOLDEN.
    """
    n = vectors.shape[1] - 1
    row_scale, d, level = vectors[ROW_SCALE], vectors[COVER], vectors[LEVEL:]
    small = large = row_scale[0]
    for i in range(n):
        small, large = min(small, row_scale[i]), max(large, row_scale[i])
    given = attempt == 0 and cover.shape[0] == n
    ones = not given and attempt == (0 if large <= BALANCED * small else 2)
    for i in range(n):
        d[i] = 1.0 + GOLDEN * i * max(attempt - 1, 0) % 1.0
        if given:
            d[i] = row_scale[i] * cover[i]
        elif ones:
            d[i] = row_scale[i] / large
        Mt[n, i] = d[i]
        level[VALUE, i] = vectors[RIGHT, i]
        level[CHANGE, i] = d[i]
        level[SPREAD, i] = 1.0 + GOLDEN * (i + 1) % 1.0
    for i in range(n + 1):
        integers[ROW_AT, i] = integers[COLUMN_AT, i] = -1


@kernel
def _row_times(Mt, H, m, columns, row, y):
    """y (m,) = [M d]_row H: the row of a leaving w on the basic columns, times H (m, m)."""
    for b in range(m):
        y[b] = 0.0
    for a in range(m):
        factor = Mt[columns[a], row]
        if factor != 0.0:
            for b in range(m):
                y[b] += factor * H[a, b]


@kernel
def _update_inverse(H, m, row, column, x, y, pivot):
    """Update H in place after a pivot; returns the new size.

    row: position of the row whose w enters, -1 when a z enters (its column is appended).
    column: position of the column whose z leaves, -1 when a w leaves (its row is appended).
    x (m,): change of the basic z.  y (m,): row that is appended times H.  pivot: change of the
    leaving variable.
    """
    inverse = 1.0 / pivot
    if column >= 0:  # eliminate with the row of the leaving z, else with the row times H
        for b in range(m):
            y[b] = H[column, b]
    for a in range(m):
        factor = x[a] * inverse
        if a == column:
            for b in range(m):
                H[a, b] = -y[b] * inverse
        elif factor != 0.0:
            for b in range(m):
                H[a, b] -= factor * y[b]
        if column < 0:
            H[a, m if row < 0 else row] = factor
    if column < 0 and row < 0:
        for b in range(m):
            H[m, b] = -y[b] * inverse
        H[m, m] = inverse
        return m + 1
    if column < 0 or row < 0:
        return m
    for b in range(m):  # one row and one column fall away, the last ones take their places
        H[column, b] = H[m - 1, b]
    for a in range(m - 1):
        H[a, row] = H[a, m - 1]
    return m - 1


@kernel
def _update_lists(rows, columns, row_at, column_at, m, row, column, entering, leaving):
    """Update the lists of basic z and non-basic w to match H (m, m) after ``_update_inverse``.

    columns, rows (m,): basic z, and rows whose w are not basic, in H's order; column_at, row_at (n + 1,): their
    positions, -1 for none. m: the size after the pivot; entering, leaving: numbers of the variables, n for z_0.
    """
    if row < 0:
        if column < 0:
            columns[m - 1], rows[m - 1] = entering, leaving
            column_at[entering], row_at[leaving] = m - 1, m - 1
        else:
            columns[column] = entering
            column_at[leaving], column_at[entering] = -1, column
    elif column < 0:
        rows[row] = leaving
        row_at[entering], row_at[leaving] = -1, row
    else:
        row_at[entering], column_at[leaving] = -1, -1
        if row < m:
            rows[row] = rows[m]
            row_at[rows[row]] = row
        if column < m:
            columns[column] = columns[m]
            column_at[columns[column]] = column


@kernel
def _apply_inverse(H, m, right, x):
    """x (m,) = -H right."""
    for a in range(m):
        p = q = r = s = 0.0
        for b in range(0, m - 3, 4):  # four sums at a time: the processor overlaps them
            p += H[a, b] * right[b]
            q += H[a, b + 1] * right[b + 1]
            r += H[a, b + 2] * right[b + 2]
            s += H[a, b + 3] * right[b + 3]
        for b in range(m - m % 4, m):
            p += H[a, b] * right[b]
        x[a] = -((p + q) + (r + s))


@kernel
def _values(Mt, H, m, rows, columns, vectors, goal):
    """Compute all basic variables from the data: z = -H q' on the rows w = 0, refined; w = q' + M' z + d z_0.

    Into vectors[LEVEL + VALUE] (n + 1,), the z also into vectors[X] (m,). goal: defect of the rows w = 0, relative to 1
    + the largest z, at which refinement ends.
    """
    n = vectors.shape[1] - 1
    right, x, residual, total = vectors[RIGHT], vectors[X], vectors[Y], vectors[SPARE]
    value = vectors[LEVEL + VALUE]
    for i in range(n):
        value[i] = right[i]
    for a in range(m):
        total[a] = 0.0
    for _ in range(PASSES):
        worst, largest = 0.0, 1.0
        for b in range(m):
            residual[b] = value[rows[b]]
            worst, largest = max(worst, abs(residual[b])), max(largest, abs(total[b]))
        if not worst > goal * largest:
            break
        _apply_inverse(H, m, residual, x)
        for a in range(m):
            total[a] += x[a]
        add_columns(Mt, m, columns, x, n, value)
    for a in range(m):
        value[rows[a]] = 0.0
    for a in range(m):
        x[a] = value[columns[a]] = total[a]


@kernel
def _direction(Mt, H, m, rows, columns, row, entering, vectors):
    """Compute the change of all basic variables per unit of the entering variable, into vectors[LEVEL + CHANGE].

    A z: dz = -H M'_entering on the rows w = 0; a w, at position ``row`` (else -1): dz = H[:, row].
    """
    n = vectors.shape[1] - 1
    x, right, change = vectors[X], vectors[Y], vectors[LEVEL + CHANGE]
    if row >= 0:
        for a in range(m):
            x[a] = H[a, row]
        for i in range(n):
            change[i] = 0.0
    else:
        for b in range(m):
            right[b] = Mt[entering, rows[b]]
        _apply_inverse(H, m, right, x)
        for i in range(n):
            change[i] = Mt[entering, i]
    add_columns(Mt, m, columns, x, n, change)
    for a in range(m):
        change[rows[a]] = 0.0
    for a in range(m):
        change[columns[a]] = x[a]
