"""The basis of Lemke's method as an explicit inverse of its small kernel, updated at each pivot.

Of  w - M z - d z_0 = q  only the rows with a non-basic w and the columns of basic z and z_0 need a
factorisation:  K = [M d] there, H = K^-1.  The basic w follow by substitution, so a pivot costs
O(m^2 + n m) for m basic z instead of the O(n^2) of a tableau, and rounding errors stay in H.
"""

from __future__ import annotations

from ._compile import bare_kernel as kernel

X, Y, SPARE = 0, 1, 2  # rows of the real workspace ``vectors`` (n + 1,)


@kernel
def basic_columns(Mt, cover, columns, m, x, out):
    """out (n,) = [M d] on the basic columns times x (m,); ``columns`` holds n for z_0."""
    n = cover.shape[0]
    for i in range(n):
        out[i] = 0.0
    for a in range(m):
        factor, j = x[a], columns[a]
        if factor == 0.0:
            continue
        if j == n:
            for i in range(n):
                out[i] += factor * cover[i]
        else:
            for i in range(n):
                out[i] += factor * Mt[j, i]


@kernel
def apply_inverse(H, m, right, x):
    """x (m,) = H right."""
    for a in range(m):
        value = 0.0
        for b in range(m):
            value += H[a, b] * right[b]
        x[a] = value


@kernel
def update_inverse(H, m, entering, leaving, x, y, pivot):
    """H after a pivot, in place; the new size.

    entering: position of the row whose w enters, -1 when a z enters (its column is appended).
    leaving: position of the column whose z leaves, -1 when a w leaves (its row is appended).
    x (m,): change of the basic z per unit of the entering variable.  y (m,) = (row that is
    appended) H.  pivot: change of the leaving variable.
    """
    inverse = 1.0 / pivot
    if leaving < 0 and entering < 0:
        for a in range(m):
            factor = x[a] * inverse
            for b in range(m):
                H[a, b] -= factor * y[b]
            H[a, m] = factor
        for b in range(m):
            H[m, b] = -y[b] * inverse
        H[m, m] = inverse
        return m + 1
    if leaving < 0:
        for a in range(m):
            factor = x[a] * inverse
            for b in range(m):
                H[a, b] -= factor * y[b]
            H[a, entering] = factor
        return m
    for b in range(m):
        y[b] = H[leaving, b] * inverse
    for a in range(m):
        factor = x[a]
        if a != leaving and factor != 0.0:
            for b in range(m):
                H[a, b] -= factor * y[b]
    if entering < 0:
        for b in range(m):
            H[leaving, b] = -y[b]
        return m
    for b in range(m):  # row and column leave: the last ones take their places
        H[leaving, b] = H[m - 1, b]
    for a in range(m - 1):
        H[a, entering] = H[a, m - 1]
    return m - 1
