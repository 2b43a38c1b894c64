"""Small dense matrices against plain numpy, each with an input that is numerically nasty."""

import numpy as np
import pytest

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import (
    LAPACK_FROM,
    SINGULAR,
    append_row,
    backward_substitute,
    cholesky,
    concentrate,
    drop_row,
    forward_substitute,
    independent_rows,
    lu_factor,
    lu_solve,
    no_rows,
    rotate,
    semidefinite_cholesky,
    solve_upper,
)

SIZES = (1, 2, 6, 18, 35, 36, 37, 64, 120)


def hilbert(n):
    """1 / (i + j + 1): condition 1e13 at ten rows."""
    return 1.0 / (1.0 + np.arange(n)[:, None] + np.arange(n))


@kernel
def lu(A, n, tolerance, order, x):
    """Both halves in one, as kernels call them: on the corner of a larger matrix."""
    if not lu_factor(A, n, tolerance, order):
        return False
    lu_solve(A, n, order, x)
    return True


def solved(A, b, tolerance=SINGULAR):
    """x of A x = b, None where A is singular; A stands in the corner of a larger matrix."""
    n = len(b)
    room, x = np.full((n + 3, n + 3), np.nan), b.copy()
    room[:n, :n] = A
    found = lu(room, n, tolerance, np.empty(n, np.int64), x)
    assert np.isnan(room[n:]).all() and np.isnan(room[:, n:]).all()
    return x if found else None


@pytest.mark.parametrize("n", SIZES)
def test_cholesky_and_substitution(n):
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n + 2)), rng.normal(size=n)
    A = A @ A.T
    L, x = np.tril(A), b.copy()
    assert cholesky(L, n, 0.0)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), atol=1e-12 * np.abs(A).max())
    forward_substitute(L, n, x)
    backward_substitute(L, n, x)
    np.testing.assert_allclose(A @ x, b, atol=1e-9 * np.abs(A).max() * np.abs(x).max())


def test_cholesky_of_hilbert_s_matrix_and_of_one_that_is_not_positive():
    A = hilbert(10)
    L, x = A.copy(), A @ np.ones(10)
    assert cholesky(L, 10, 0.0)
    forward_substitute(L, 10, x)
    backward_substitute(L, 10, x)
    np.testing.assert_allclose(A @ x, A @ np.ones(10), atol=1e-14)  # the residual, not the error
    assert not cholesky(hilbert(10), 10, 1e-9)  # its last pivot is 4e-10 of its diagonal
    assert not cholesky(A - 1e-3 * np.eye(10), 10, 0.0)
    assert not cholesky(np.full((2, 2), np.nan), 2, 0.0)


@pytest.mark.parametrize("root", [0.0, 1e150])
def test_semidefinite_cholesky_leaves_dependent_rows_out(root):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(6, 3)) * 10.0 ** np.arange(-4, 2)[:, None]
    rows[4] = rows[1] + rows[2]  # rank 3 of 6, lengths from 1e-4 to 10
    A = rows @ rows.T
    L = np.tril(A)
    semidefinite_cholesky(L, 6, 1e-12, root)
    missing = L.diagonal() == root
    assert missing.sum() == 3
    assert not np.tril(L, -1)[:, missing].any()
    if root == 0.0:
        np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, A, rtol=1e-12, atol=1e-16)
        return
    # What is left of a consistent system is solved by the rows that are not left out.
    x = A @ rng.normal(size=6)
    b = x.copy()
    forward_substitute(L, 6, x)
    backward_substitute(L, 6, x)
    assert np.abs(x[missing]).max() < 1e-100
    np.testing.assert_allclose(A @ x, b, rtol=1e-7, atol=1e-12 * np.abs(b).max())


@pytest.mark.parametrize("n", SIZES)
def test_lu_solves_as_numpy_does(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        A, b = rng.normal(size=(n, n)), rng.normal(size=n)
        np.testing.assert_allclose(solved(A, b), np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [10, LAPACK_FROM + 4 if LAPACK_FROM < 1000 else 40])
def test_lu_of_matrices_that_need_pivots_and_of_singular_ones(n):
    rng = np.random.default_rng(n)
    b = rng.normal(size=n)
    exchanged = np.eye(n)[::-1] + 1e-18 * rng.normal(
        size=(n, n)
    )  # no pivot where it is looked for first
    np.testing.assert_allclose(solved(exchanged, b), np.linalg.solve(exchanged, b), atol=1e-12)
    scaled = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    x = solved(scaled, b, 0.0)
    assert np.abs(scaled @ x - b).max() <= 1e-12 * (np.abs(scaled) @ np.abs(x)).max()
    twice = rng.normal(size=(n, n))
    twice[3] = twice[1] + twice[2]
    assert solved(twice, b) is None
    assert solved(np.zeros((n, n)), b, 0.0) is None
    twice[0, 0] = np.nan
    assert solved(twice, b) is None


def test_rows_that_come_and_go():
    """Q' R of the active rows after a hundred changes, against the rows themselves; one nearly depends on another."""
    rng = np.random.default_rng(7)
    dim = 6
    stock = rng.normal(size=(20, dim))
    stock[1] = stock[0] + 1e-7 * rng.normal(size=dim)
    Qt, R, active = np.empty((dim, dim)), np.zeros((dim, dim)), []
    no_rows(Qt)
    for k in range(100):
        if len(active) == dim or (active and rng.random() < 0.4):
            position = int(rng.integers(len(active)))
            drop_row(Qt, R, len(active), position)
            active.pop(position)
        else:
            new = int(rng.choice([i for i in range(20) if i not in active])) if k else 0
            append_row(Qt, R, len(active), Qt @ stock[new])
            active.append(new)
        m = len(active)
        np.testing.assert_allclose(Qt @ Qt.T, np.eye(dim), atol=1e-13)
        np.testing.assert_allclose(Qt[:m].T @ np.triu(R[:m, :m]), stock[active].T, atol=1e-13)
        d = rng.normal(size=dim)
        x = d.copy()
        solve_upper(R, m, x, x)
        np.testing.assert_allclose(np.triu(R[:m, :m]) @ x[:m], d[:m], atol=1e-6)


def test_independent_rows_are_as_many_as_the_rank():
    rng = np.random.default_rng(9)
    for rank in (1, 3, 5):
        K = rng.normal(size=(8, rank)) @ rng.normal(size=(rank, 6)) * 1e5
        x = rng.normal(size=6)
        k = K @ x
        k[7] += 2.0  # nothing satisfies that
        least = np.linalg.norm(K @ np.linalg.lstsq(K, k, rcond=None)[0] - k)
        reduced, right = K.copy(), k.copy()
        found, left = independent_rows(reduced, right, 8, np.empty(6, np.int64), np.empty(6))
        assert found == np.linalg.matrix_rank(K) == rank
        np.testing.assert_allclose(left, least, rtol=1e-6)
        y = np.linalg.lstsq(reduced[:found], right[:found], rcond=None)[0]
        np.testing.assert_allclose(np.linalg.norm(K @ y - k), least, rtol=1e-6)


def test_concentrated_rows_say_the_same():
    rng = np.random.default_rng(4)
    At, b = rng.normal(size=(9, 5)) * 10.0 ** rng.uniform(-8, 8, size=(9, 1)), rng.normal(size=5)
    chosen = np.arange(9) % 4 == 1
    turned, right, reflectors = At.copy(), b.copy(), np.empty((2, 5))
    count = concentrate(turned, right, chosen, reflectors)
    assert count == 2 and np.abs(turned[chosen][:, count:]).max() <= 1e-9 * np.abs(At[chosen]).max()
    x, y = rng.normal(size=9), b.copy()
    rotate(reflectors, count, y, False)
    np.testing.assert_allclose(y, right, atol=1e-14)
    rotate(reflectors, count, y, True)
    np.testing.assert_allclose(y, b, atol=1e-14)
    size = np.linalg.norm(At.T @ x - b)
    np.testing.assert_allclose(np.linalg.norm(turned.T @ x - right), size, rtol=1e-12)
