"""The matrices of Newton's method on Coulomb's law, and many bodies that touch, judged by plain numpy."""

import numpy as np
import pytest

from contact_id_controller.kernels.exact_cones import linear
from contact_id_controller.kernels.exact_cones.continuation import SOLVED, coulomb_cones
from experiments.benchmark.sliding_problems import exact_law_defect

PARTS = ((0, 0), (1, 0), (2, 0), (1, 1), (1, 2), (2, 2))


def matrix_of(C, contact):
    """The 3x3 matrix that six coefficients stand for."""
    block = np.zeros((3, 3))
    for value, (row, column) in zip(C[:, contact], PARTS):
        block[row, column] = value
    block[2, 1] = block[1, 2]
    return block


def pile(bodies, contacts, seed):
    """(Y, free velocities) of bodies that each lie on earlier ones or on the ground, and fall on them."""
    rng = np.random.default_rng(seed)
    Y, c = np.zeros((3 * contacts, 6 * bodies)), np.zeros(3 * contacts)
    falling = np.concatenate(
        [rng.normal(0.0, 0.2, (bodies, 3)) - [0, 0, 1], np.zeros((bodies, 3))], 1
    )
    for k in range(contacts):
        upper = k % bodies
        lower = int(rng.integers(-1, upper)) if upper else -1
        normal = rng.normal(size=3) * 0.4 + [0.0, 0.0, 1.5]
        normal /= np.linalg.norm(normal)
        first = np.cross(normal, [1.0, 0.0, 0.0])
        first /= np.linalg.norm(first)
        axes = np.array([normal, first, np.cross(normal, first)])
        for body, sign, below in ((upper, 1.0, -0.5), (lower, -1.0, 0.5)):
            if body >= 0:
                arm = below * normal + 0.2 * rng.normal(size=3)
                turning = np.array([np.cross(arm, axis) for axis in axes])
                Y[3 * k : 3 * k + 3, 6 * body : 6 * body + 6] = sign * np.hstack(
                    [axes, 3.0 * turning]
                )
    for k in range(contacts):
        c[3 * k : 3 * k + 3] = Y[3 * k : 3 * k + 3] @ falling.ravel()
    return Y, c


def by_parts(Y):
    """Y (3n, nu) as the kernels have it: (nu, 3n), all normals first."""
    n = len(Y) // 3
    return np.ascontiguousarray(Y.reshape(n, 3, -1).transpose(2, 1, 0).reshape(-1, 3 * n))


@pytest.mark.parametrize(("nu", "n"), [(1, 1), (2, 3), (7, 5), (18, 40), (33, 100), (130, 300)])
def test_the_matrix_of_newtons_method(nu, n):
    rng = np.random.default_rng(nu)
    Y, C = rng.normal(size=(3 * n, nu)), rng.normal(size=(6, n))
    whole = np.zeros((3 * n, 3 * n))
    for i in range(n):
        whole[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = matrix_of(C, i)
    law = linear.law_of(by_parts(Y), np.zeros(3 * n), np.ones(n))
    assert not len(law.starts)
    A = np.full((nu, nu), np.nan)
    linear.assemble(law, C, np.empty((nu, 3 * n)), A)
    expected = np.eye(nu) + Y.T @ whole @ Y
    np.testing.assert_allclose(A, expected, atol=1e-11 * np.abs(expected).max())


def test_what_is_zero_between_many_bodies_is_left_out():
    Y, c = pile(20, 60, 1)
    n = len(c) // 3
    sparse = linear.law_of(by_parts(Y), np.zeros(3 * n), np.ones(n))
    assert len(sparse.columns) < 0.12 * Y.size / 3
    dense = sparse._replace(starts=sparse.starts[:0])
    rng = np.random.default_rng(2)
    C, z, u = rng.normal(size=(6, n)), rng.normal(size=3 * n), rng.normal(size=Y.shape[1])
    C[:, ::7] = 0.0  # apart
    out = []
    for law in (sparse, dense):
        A, V = np.full((len(u), len(u)), np.nan), np.empty((len(u), 3 * n))
        w, moved = np.empty(3 * n), np.empty(len(u))
        linear.assemble(law, C, V, A)
        linear.velocities(law, z, u, w)
        linear.motion(law, z, moved)
        out.append((A, w, moved))
    for one, other in zip(*out):
        np.testing.assert_allclose(one, other, atol=1e-11)


@pytest.mark.parametrize(
    ("bodies", "contacts", "mu", "seeds", "least"),
    [
        (5, 12, 0.1, 20, 20),
        (5, 12, 1.0, 20, 18),
        (12, 40, 0.1, 10, 10),
        (12, 40, 0.5, 20, 15),  # without growing friction: 7
        (40, 150, 0.1, 2, 2),
        (5, 12, 1e4, 20, 17),  # every third contact does not slip, the others have 1
    ],
)
def test_piles_obey_the_exact_law(bodies, contacts, mu, seeds, least):
    """Each can come apart, so impulses exist; what is called solved is, by plain numpy."""
    solved = 0
    for seed in range(seeds):
        Y, c = pile(bodies, contacts, seed)
        friction, z = np.full(contacts, min(mu, 1.0)), np.zeros(3 * contacts)
        friction[::3] = mu
        status, _, _ = coulomb_cones(Y, c, np.zeros(contacts), friction, 5, z)
        if status == SOLVED:
            assert z[::3].max() > 0.1, "something bears"
            assert exact_law_defect(Y, c, friction, z) < 1e-9, seed
            solved += 1
    assert solved >= least
