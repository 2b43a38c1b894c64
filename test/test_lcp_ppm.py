"""Principal pivoting, dense and factored: infeasibility, rank, warm starts."""

import numpy as np
import pytest

from contact_id_controller.exceptions import LcpError
from contact_id_controller.lcp import lemke, ppm, ppm_factored
from experiments.benchmark import lcp_problems as problems


def projected_gradient(Y, q, steps=200000):
    """u of min 1/2 |u|^2, Y u + q >= 0 by plain ascent on its dual: the reference."""
    M = Y @ Y.T
    z, step = np.zeros(len(q)), 1.0 / max(np.linalg.norm(M, 2), 1e-300)
    for _ in range(steps):
        after = np.maximum(0.0, z - step * (M @ z + q))
        if np.abs(after - z).max() < 1e-15:
            break
        z = after
    return Y.T @ z


@pytest.mark.parametrize("n", [1, 3, 6, 9])
def test_factored_solves_what_fathi_posed(n):
    L = np.eye(n) + 2.0 * np.tril(np.ones((n, n)), -1)
    np.testing.assert_allclose(ppm_factored(L, problems.fathi(n)[1]).z, np.eye(n)[0], atol=1e-12)


def test_factored_two_by_two():
    L = np.linalg.cholesky([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(ppm_factored(L, [-5.0, -6.0]).z, [4 / 3, 7 / 3], rtol=1e-14)


def test_zero_diagonal_needs_exchange_pivots():
    M, q = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([-1.0, 2.0])
    np.testing.assert_allclose(ppm(M, q).z, [2.0, 1.0], rtol=1e-14)


@pytest.mark.parametrize(
    "M, q",
    [([[0.0]], [-1.0]), ([[1.0, -1.0], [-1.0, 1.0]], [-1.0, 0.5]), (np.zeros((2, 2)), [1.0, -1.0])],
)
def test_unsolvable_is_recognised(M, q):
    assert ppm(M, q).status == "unsolvable"
    assert lemke(M, q).status == "ray"


@pytest.mark.parametrize(
    "Y, q",
    [
        ([[1.0, 0.0], [-1.0, 0.0]], [-1.0, -1.0]),  # squeezed from both sides
        ([[1.0], [0.0]], [-1.0, -1.0]),  # a row that nothing moves
        (np.zeros((2, 0)), [1.0, -1.0]),
        ([[1.0, 0.0], [-0.5, 1.0], [-0.5, -1.0]], [-1.0, -1.0, -1.0]),
    ],
)  # together they block
def test_factored_unsolvable_is_recognised(Y, q):
    result = ppm_factored(Y, q)
    assert result.status == "unsolvable" and (result.z == 0).all()


def test_empty_and_trivial():
    assert ppm(np.zeros((0, 0)), []).status == "solved"
    assert ppm_factored(np.zeros((0, 6)), []).status == "solved"
    for result in (ppm(np.eye(2), [0.0, 1.0]), ppm_factored(np.eye(2), [0.0, 1.0])):
        assert result.status == "solved" and result.pivots == 0


@pytest.mark.parametrize("seed", range(12))
def test_factored_matches_projected_gradient_and_keeps_few_basic(seed):
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(2, 15)), int(rng.integers(1, 4))
    Y = rng.normal(size=(n, r))
    q = Y @ rng.normal(size=r) + (rng.random(n) < 0.5) * rng.random(n)
    result = ppm_factored(Y, q)
    assert result.status == "solved"
    assert result.basis.sum() <= np.linalg.matrix_rank(Y)
    np.testing.assert_allclose(Y.T @ result.z, projected_gradient(Y, q), atol=1e-6)
    np.testing.assert_allclose(result.w, np.maximum(Y @ (Y.T @ result.z) + q, 0), atol=1e-12)


def test_duplicated_and_opposite_rows():
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(6, 3))
    q = Y @ rng.normal(size=3)
    single = ppm_factored(Y, q)
    tripled = ppm_factored(np.tile(Y, (3, 1)), np.tile(q, 3))
    np.testing.assert_allclose(np.tile(Y, (3, 1)).T @ tripled.z, Y.T @ single.z, atol=1e-12)
    pinned = ppm_factored(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), [-1.0, 1.0, -2.0])
    assert pinned.status == "solved"
    np.testing.assert_allclose(pinned.w, 0.0, atol=1e-12)


def test_warm_start_keeps_the_contacts_that_carried():
    # a table on five legs: several sets of legs carry it, the warm start says which
    points = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0.1, 0.2]])
    Y = np.column_stack([np.ones(5), points])
    q = np.full(5, -1.0)
    cold = ppm_factored(Y, q)
    sets = [np.isin(np.arange(5), legs) for legs in ([0, 3], [1, 2])]
    for legs in sets:
        warm = ppm_factored(Y, q, warm_start=legs)
        np.testing.assert_array_equal(warm.basis, legs)
        assert warm.pivots == 2
        np.testing.assert_allclose(Y.T @ warm.z, Y.T @ cold.z, atol=1e-12)
    again = ppm_factored(Y, q * 1.001, warm_start=cold.basis)
    np.testing.assert_array_equal(again.basis, cold.basis)


@pytest.mark.parametrize("spread", [1e-12, 1e-6, 1e6, 1e12])
def test_row_units_do_not_matter(spread):
    rng = np.random.default_rng(2)
    Y = rng.normal(size=(30, 6))
    q = Y @ rng.normal(size=6)
    rows = spread ** rng.uniform(0, 1, 30)
    plain, scaled = ppm_factored(Y, q), ppm_factored(rows[:, None] * Y, rows * q)
    np.testing.assert_array_equal(scaled.basis, plain.basis)
    np.testing.assert_allclose(scaled.z * rows, plain.z, rtol=1e-9, atol=1e-12 * plain.z.max())


def test_row_floor_ignores_rounding_noise():
    Y = np.array([[1.0, 0.0], [1e-17, -2e-17]])
    assert ppm_factored(Y, [-1.0, 1e-3], row_floor=1e-14).status == "solved"
    assert ppm_factored(Y, [-1.0, -1e-3], row_floor=1e-14).status == "unsolvable"


def test_a_thousand_rows_need_few_pivots():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(1000, 6))
    result = ppm_factored(Y, Y @ rng.normal(size=6))
    assert result.status == "solved" and result.pivots < 60 and result.basis.sum() <= 6


@pytest.mark.parametrize(
    "call",
    [
        lambda: ppm(np.eye(2), [1.0]),
        lambda: ppm(np.eye(2), [np.nan, 1.0]),
        lambda: ppm_factored(np.eye(2), [1.0]),
        lambda: ppm_factored(np.eye(2), [1.0, np.inf]),
        lambda: ppm_factored(np.eye(2), [1.0, 1.0], row_floor=-1.0),
        lambda: ppm_factored(np.eye(2), [1.0, 1.0], warm_start=[True]),
    ],
)
def test_bad_input_is_refused_by_name(call):
    with pytest.raises(LcpError):
        call()
