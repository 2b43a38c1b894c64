"""The path of Lemke's method, from the covering variable's ray to a complementary basis.

Of  w - M z - d z_0 = q  only the rows with a non-basic w and the columns of basic z and z_0 need a
factorisation:  K = [M d] there, H = K^-1.  The basic w follow by substitution, so a pivot costs
O(m^2 + n m) for m basic z instead of the O(n^2) of a tableau, and rounding errors stay in H.
"""

from __future__ import annotations

from ._compile import bare_kernel as kernel
from ._ratio_test import (CHANGE, COVERING, GOLDEN, NOTHING, SPREAD, VALUE, first_blocking, raise_cover,
                          tie_tolerance)
from .status import INACCURATE, PIVOT_LIMIT, PIVOTS, RAY, SOLVED

ROW_SCALE, COLUMN_SCALE, RIGHT, COVER, X, Y, LEVEL = 0, 1, 2, 3, 4, 5, 6  # rows of ``vectors`` (9, n + 1)
ROWS, COLUMNS, ROW_AT, COLUMN_AT = 0, 1, 2, 3  # rows of ``integers`` (4, n + 1)
BALANCED = 1024.0  # row scales within this factor leave the covering vector of ones alone
RESIDUAL_GOAL = 1e-14  # rows w = 0 of the equilibrated problem are met to this, relative to its values
REFINEMENTS = 3  # steps of refinement for that


@kernel
def follow_path(M, q, cover, attempt, eps, max_pivots, matrices, vectors, integers, report):
    """Lemke's method on (M + eps I, q), equilibrated; (status, number of basic z).

    On success matrices[1] is the inverse of the basic block; integers[COLUMNS] lists the variables
    of its rows, integers[ROWS] the rows of its columns; COLUMN_AT and ROW_AT invert these lists.
    """
    n = q.shape[0]
    Mt, H, level, cover_scaled = matrices[0], matrices[1], vectors[LEVEL:], vectors[COVER]
    x, y = vectors[X], vectors[Y]
    rows, columns, row_at, column_at = integers[ROWS], integers[COLUMNS], integers[ROW_AT], integers[COLUMN_AT]
    _fill(M, q, cover, attempt, eps, Mt, vectors, integers)
    tie = tie_tolerance(attempt)
    leaving, _, tilt = raise_cover(level, cover_scaled, n)
    level[CHANGE, :n] = cover_scaled[:n]
    level[SPREAD, n] = tilt
    entering, row = n, n - n - 1  # z_0 enters; ``row``: position of an entering w, -1 for a z
    m = n - n
    for _ in range(max_pivots):
        report[PIVOTS] += 1.0
        column = column_at[leaving]
        if column < 0:
            _row_times(Mt, H, m, columns, leaving, y)
        pivot = level[CHANGE, leaving]
        m = _update_inverse(H, m, row, column, x, y, pivot)
        _update_lists(rows, columns, row_at, column_at, m, row, column, entering, leaving)
        if leaving == n:
            return SOLVED, m
        for i in range(n + 1):
            level[SPREAD, i] += tilt * level[CHANGE, i]
        level[SPREAD, entering] = tilt
        _values(Mt, H, m, rows, columns, vectors, level)
        entering = leaving
        row = row_at[entering] if column >= 0 else n - n - 1
        _direction(Mt, H, m, rows, columns, row, entering, vectors, level)
        leaving, theta, tilt = first_blocking(level, n, tie, level[VALUE, n], level[SPREAD, n],
                                              level[CHANGE, n])
        if leaving == NOTHING:
            return RAY, m
        if leaving == COVERING:
            leaving = n
        level[VALUE, entering] = theta
    return PIVOT_LIMIT, m


@kernel
def _fill(M, q, cover, attempt, eps, Mt, vectors, integers):
    """The equilibrated problem (M transposed, row n the cover) and the basis of all w."""
    n = q.shape[0]
    row_scale, column_scale, right, d = vectors[ROW_SCALE], vectors[COLUMN_SCALE], vectors[RIGHT], vectors[COVER]
    level = vectors[LEVEL:]
    largest, small, large = 0.0, row_scale[0], row_scale[0]
    for i in range(n):
        largest = max(largest, abs(q[i]) * row_scale[i])
        small, large = min(small, row_scale[i]), max(large, row_scale[i])
    for i in range(n):
        for j in range(n):
            Mt[j, i] = row_scale[i] * M[i, j] * column_scale[j]
        Mt[i, i] += eps
        d[i] = 1.0 + GOLDEN * i * max(attempt - 1, 0) % 1.0
        if attempt == 0 and cover.shape[0] == n:
            d[i] = row_scale[i] * cover[i]
        elif attempt == 0 and large <= BALANCED * small:
            d[i] = row_scale[i] / large
        Mt[n, i] = d[i]
        right[i] = q[i] * row_scale[i] / largest
        level[VALUE, i] = right[i]
        level[SPREAD, i] = 1.0 + GOLDEN * (i + 1) % 1.0
    for i in range(n + 1):
        level[CHANGE, i] = 0.0
        integers[ROW_AT, i] = integers[COLUMN_AT, i] = -1


@kernel
def _row_times(Mt, H, m, columns, row, y):
    """y (m,) = row of [M d] on the basic columns, times H."""
    for b in range(m):
        y[b] = 0.0
    for a in range(m):
        factor = Mt[columns[a], row]
        if factor != 0.0:
            for b in range(m):
                y[b] += factor * H[a, b]


@kernel
def _update_inverse(H, m, row, column, x, y, pivot):
    """H after a pivot, in place; the new size.

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
    """Keep the lists of basic z and non-basic w in step with H; m is the size after the pivot."""
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
def _add_columns(Mt, m, columns, x, out):
    """out += [M d] on the basic columns times x (m,)."""
    n = Mt.shape[0] - 1
    for a in range(m):
        factor, j = x[a], columns[a]
        if factor != 0.0:
            for i in range(n):
                out[i] += factor * Mt[j, i]


@kernel
def _values(Mt, H, m, rows, columns, vectors, level):
    """Values of all basic variables from the data, refined until the rows w = 0 hold."""
    right, x, y, value = vectors[RIGHT], vectors[X], vectors[Y], level[VALUE]
    n = Mt.shape[0] - 1
    for i in range(n):
        value[i] = right[i]
    for b in range(m):
        y[b] = right[rows[b]]
        level[VALUE, columns[b]] = 0.0
    ...
