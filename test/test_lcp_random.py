"""Random problems against QuantEcon's Lemke, against each other, and by property."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quantecon.optimize import lcp_lemke

from contact_id_controller.lcp import lemke, lemke_friction, ppm, ppm_factored
from experiments.benchmark import lcp_problems as problems


def copositive(rng):
    n = int(rng.integers(1, 20))
    A, B = rng.normal(size=(n, max(1, n // 2))), np.abs(rng.normal(size=(n, n)))
    positive = B * (rng.random((n, n)) < rng.uniform(0.1, 1))
    return A @ A.T * rng.integers(0, 2) + positive, rng.normal(size=n)


def low_rank(rng):
    n = int(rng.integers(1, 20))
    A = rng.normal(size=(n, max(1, n // 3)))
    return A @ A.T, A @ rng.normal(size=A.shape[1]) + (rng.random(n) < 0.5) * rng.random(n)


def degenerate(rng):
    n = int(rng.integers(1, 15))
    A, S = rng.integers(-2, 3, (n, max(1, n // 2))), rng.integers(-1, 2, (n, n))
    return (A @ A.T + S - S.T).astype(float), rng.integers(-3, 4, n).astype(float)


def friction(rng):
    return problems.friction_matrix(
        *problems.standing_robot(
            rng, int(rng.integers(1, 9)), int(rng.integers(3, 6)), rng.choice([0.0, 0.1, 0.6, 2.0])
        )
    )


def certified(M, q, z):
    size = np.abs(q) + np.abs(M) @ np.abs(z)
    w = (M @ z + q) / (size + 1e-5 * size.max(initial=0) + 1e-300)  # rounding alone is no error
    return (
        np.isfinite(z).all()
        and z.min() >= -1e-9
        and w.min() >= -1e-8
        and np.abs(np.minimum(z / (np.abs(z).max() + 1e-300), np.abs(w))).max() < 1e-8
    )


@pytest.mark.parametrize("family", [copositive, low_rank, degenerate, friction])
def test_lemke_solves_whatever_quantecon_solves(family):
    rng = np.random.default_rng(11)
    solved_by_both = 0
    for _ in range(150):
        M, q = family(rng)
        peer, ours = lcp_lemke(M, q, max_iter=20000), lemke(M, q)
        if peer.success and certified(M, q, peer.z):
            assert ours.solved, (family.__name__, M.tolist(), q.tolist())
            solved_by_both += 1
        if ours.status == "solved":
            assert certified(M, q, ours.z)
    assert solved_by_both > 50


def test_struck_towers_are_solved_wherever_quantecon_solves_them():
    solved_by_both = 0
    for seed in range(24):
        problem = problems.struck_tower(np.random.default_rng(seed), 1 + seed % 3)
        M, q = problems.friction_matrix(*problem)
        peer, ours = lcp_lemke(M, q, max_iter=20000), lemke_friction(*problem)
        if peer.success and certified(M, q, peer.z):
            assert ours.status == "solved", seed
            solved_by_both += 1
        if ours.status == "solved":
            z = np.concatenate([ours.z[:, 0], ours.z[:, 1:-1].ravel(), ours.z[:, -1]])
            assert certified(M, q, z), seed
    assert solved_by_both > 5


def test_equal_where_the_solution_is_unique():
    rng = np.random.default_rng(4)
    for _ in range(100):
        n = int(rng.integers(1, 25))
        A = rng.normal(size=(n, n))
        M, q = A @ A.T + 0.1 * np.eye(n), rng.normal(size=n)
        peer = lcp_lemke(M, q)
        L = np.linalg.cholesky(M)
        for result in (lemke(M, q), ppm(M, q), ppm_factored(L, q)):
            assert result.status == "solved"
            np.testing.assert_allclose(result.z, peer.z, atol=1e-8 * (1 + peer.z.max()))


def test_every_friction_problem_of_a_standing_robot_is_solved():
    rng = np.random.default_rng(8)
    for _ in range(300):
        problem = problems.standing_robot(
            rng,
            int(rng.integers(1, 65)),
            int(rng.integers(3, 9)),
            rng.choice([0.0, 0.1, 0.6, 2.0]),
            10 ** rng.uniform(-3, 0),
        )
        result = lemke_friction(*problem)
        assert result.status == "solved" and result.residual < 1e-10


def test_factored_and_dense_friction_agree_on_the_motion_of_one_contact_each():
    rng = np.random.default_rng(9)
    for _ in range(60):  # one contact with full rank: the solution is unique for small friction
        Y = np.eye(3) + 0.1 * rng.normal(size=(3, 3))
        c, mu, edges = rng.normal(size=3), np.array([0.2]), problems.polygon(4)
        z = lemke(*problems.friction_matrix(Y, c, mu, edges)).z
        dense = np.concatenate([z[:1], z[1:5] @ edges])
        np.testing.assert_allclose(lemke_friction(Y, c, mu, edges).impulses[0], dense, atol=1e-10)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 12),
    st.integers(1, 6),
    st.booleans(),
    st.floats(-9, 9),
)
@settings(max_examples=150, deadline=None)
def test_factored_is_always_an_answer(seed, n, r, integers, exponent):
    rng = np.random.default_rng(seed)
    Y, q = rng.normal(size=(n, r)), rng.normal(size=n)
    scale = 10.0**exponent
    if integers:  # degenerate: rounding decides whether there is an answer, so the scale has none
        Y, q, scale = np.round(Y), np.round(2 * q), 2.0 ** round(exponent)
    Y, q = Y * scale, q / scale
    result = ppm_factored(Y, q)
    assert result.status in ("solved", "unsolvable")
    assert np.isfinite(result.z).all() and np.isfinite(result.w).all()
    assert (result.z >= 0).all() and (result.z * result.w == 0).all()
    assert (lemke(Y @ Y.T, q).status == "ray") == (result.status == "unsolvable")


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.floats(-12, 12))
@settings(max_examples=150, deadline=None)
def test_lemke_never_claims_what_is_not_so(seed, n, exponent):
    rng = np.random.default_rng(seed)
    M, q = rng.normal(size=(n, n)), rng.normal(size=n)
    scale = 10.0 ** (exponent * rng.random(n))
    M, q = scale[:, None] * M, scale * q
    result = lemke(M, q)
    assert (result.z >= 0).all() and (result.w >= 0).all() and (result.z * result.w == 0).all()
    if result.status == "solved":
        assert certified(M, q, result.z)
