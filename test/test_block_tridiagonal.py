"""Block tridiagonal Cholesky against numpy's dense solution."""

import numpy as np
import pytest

from contact_id_controller.kernels import block_tridiagonal


def system(rng, blocks, n, condition=1.0):
    """A positive definite one: dense (T+1)n matrix and its blocks."""
    size = blocks * n
    factor = np.zeros((size, size))
    for t in range(blocks):
        here = slice(t * n, (t + 1) * n)
        factor[here, here] = rng.standard_normal((n, n)) * np.logspace(0, -np.log10(condition), n)
        if t:
            factor[here, (t - 1) * n : t * n] = rng.standard_normal((n, n))
    dense = factor @ factor.T + 1e-3 * np.eye(size)
    stacked = dense.reshape(blocks, n, blocks, n).swapaxes(1, 2)
    steps = np.arange(blocks)
    return dense, stacked[steps, steps].copy(), stacked[steps[1:], steps[:-1]].copy()


@pytest.mark.parametrize(("blocks", "n"), [(1, 4), (2, 1), (7, 5), (31, 18)])
def test_it_solves_as_numpy_does(blocks, n):
    rng = np.random.default_rng(blocks)
    dense, diagonal, lower = system(rng, blocks, n)
    x = rng.standard_normal((blocks, n))
    right = (dense @ x.ravel()).reshape(blocks, n)
    assert block_tridiagonal.factor(diagonal, lower) == block_tridiagonal.FACTORED
    block_tridiagonal.solve(diagonal, lower, right)
    np.testing.assert_allclose(right, x, rtol=0, atol=1e-9 * np.linalg.cond(dense) ** 0.5)


def test_a_nearly_singular_system_leaves_a_small_residual():
    """Columns over six decades: the solution may be off, what it leaves must not."""
    rng = np.random.default_rng(3)
    dense, diagonal, lower = system(rng, 12, 6, condition=1e6)
    right = rng.standard_normal((12, 6))
    x = right.copy()
    assert block_tridiagonal.factor(diagonal, lower) == block_tridiagonal.FACTORED
    block_tridiagonal.solve(diagonal, lower, x)
    residual = dense @ x.ravel() - right.ravel()
    assert np.abs(residual).max() <= 1e-10 * np.abs(dense).max() * np.abs(x).max()


def test_the_block_that_is_not_positive_is_named():
    _, diagonal, lower = system(np.random.default_rng(4), 6, 3)
    diagonal[4, 1, 1] = -1.0
    assert block_tridiagonal.factor(diagonal, lower) == 4


def test_a_number_that_is_not_finite_is_no_success():
    _, diagonal, lower = system(np.random.default_rng(5), 4, 3)
    lower[1, 0, 0] = np.nan
    assert block_tridiagonal.factor(diagonal, lower) == 2
