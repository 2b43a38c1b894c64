"""The semismooth cone method against Clarabel and plain numpy."""

import clarabel
import numpy as np
import pytest
from clarabel_programs import settings
from scipy import sparse

from contact_id_controller.kernels.cone_newton import MAX_STEPS, cone_newton, pyramids
from contact_id_controller.kernels.pyramid import APART, SLIDING, STICKING
from contact_id_controller.models.steps.relaxation import elastic


def sets_of(mu, edges, mode=STICKING, angle=0.0, span=0.0):
    n = len(mu)
    return pyramids(np.full(n, mode), np.full(n, angle), np.full(n, span), mu, edges)


def facets(mu, edges):
    """Rows (edges, 3) of one pyramid: facets @ force >= 0."""
    middle = (np.arange(edges) + 0.5) * 2.0 * np.pi / edges
    inner = mu * np.cos(np.pi / edges)
    return np.column_stack([np.full(edges, inner), -np.cos(middle), -np.sin(middle)])


def by_clarabel(W, weight, target, shift, mu, edges, rays=0):
    """z of min 1/2 |z + shift|^2 + 1/2 |W^T z - target|^2_{D^-1}, equal where D is zero; and the objective."""
    size, hard = len(W), weight == 0.0
    soft = W[:, ~hard] / np.sqrt(weight[~hard])
    P = np.eye(size) + soft @ soft.T
    q = -soft @ (target[~hard] / np.sqrt(weight[~hard])) + (shift if len(shift) else 0.0)
    A, b, cones = [W[:, hard].T], [target[hard]], [clarabel.ZeroConeT(hard.sum())]
    for i, coefficient in enumerate(mu):
        at = np.eye(size)[3 * i : 3 * i + 3]
        if edges == 0:
            rows = np.diag([coefficient, 1.0, 1.0]) @ at
            cones.append(clarabel.SecondOrderConeT(3))
        else:
            rows = at[:1] if np.isinf(coefficient) else facets(coefficient, edges) @ at
            cones.append(clarabel.NonnegativeConeT(len(rows)))
        A.append(-rows)
        b.append(np.zeros(len(rows)))
    if rays:
        A.append(-np.eye(size)[3 * len(mu) :])
        b.append(np.zeros(rays))
        cones.append(clarabel.NonnegativeConeT(rays))
    A, b = np.vstack(A), np.concatenate(b)
    program = sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(A), b, cones
    solved = clarabel.DefaultSolver(*program, settings(1e-9)).solve()
    return np.array(solved.x), lambda z: 0.5 * z @ P @ z + q @ z


def outside(force, mu, edges):
    """How far a force is beyond its cone, or its pyramid."""
    if np.isinf(mu):
        return max(-force[0], 0.0)
    if edges == 0:
        return max(np.hypot(force[1], force[2]) - mu * force[0], 0.0)
    return max(-(facets(mu, edges) @ force).min(), 0.0)


def nearest(sets, force):
    """Plain numpy: the point of one pyramid nearest to a force, tried on each of its edges and facets."""
    mu, edges = sets.mu[0], len(sets.directions)
    generators = np.column_stack([np.ones(edges), mu * sets.directions])
    candidates = [np.zeros(3), force]
    for j in range(edges):
        for basis in (generators[[j]], generators[[j, (j + 1) % edges]]):
            candidates.append(basis.T @ np.linalg.lstsq(basis.T, force, rcond=None)[0])
    rows = facets(mu, edges)
    inside = [z for z in candidates if (rows @ z >= -1e-12 * np.abs(force).max()).all()]
    return min(inside, key=lambda z: np.abs(z - force).sum() + np.square(z - force).sum() * 1e6)


@pytest.mark.parametrize("edges", [0, 3, 4, 8])
def test_random_programs_agree_with_clarabel(edges):
    rng = np.random.default_rng(20261124 + edges)
    for number in range(40):
        n, dim = int(rng.choice([1, 4, 12, 30])), int(rng.choice([6, 18]))
        rays = int(rng.integers(0, 4))
        W = rng.normal(size=(3 * n + rays, dim))
        mu = 10.0 ** rng.uniform(-1.5, 0.5, size=n)
        if edges:
            mu[rng.random(n) < 0.2] = np.inf
        weight = np.where(rng.random(dim) < 0.3, 0.0, 10.0 ** rng.uniform(-3, 0, size=dim))
        shift = rng.normal(size=3 * n + rays) if number % 2 and not rays else np.empty(0)
        feasible = np.abs(rng.normal(size=3 * n + rays))
        for i in range(n):
            feasible[3 * i + 1 : 3 * i + 3] *= 0.3 * min(mu[i], 1.0) * feasible[3 * i] / 3.0
        target = W.T @ feasible + (weight > 0.0) * rng.normal(size=dim)
        x, z = np.zeros(dim), np.empty(3 * n + rays)
        steps = cone_newton(W, weight, target, shift, sets_of(mu, edges), MAX_STEPS, x, z)
        best, cost = by_clarabel(W, weight, target, shift, mu, edges, rays)
        assert steps > 0, number
        # What is feasible and costs no more than Clarabel's is the optimum, whatever Clarabel's accuracy.
        size = 0.5 * np.square(best).sum() + abs(cost(best))
        assert cost(z) <= cost(best) + 1e-6 * size, number
        assert np.abs(weight * x + target - W.T @ z).max() <= 1e-9 * np.abs(target).max(), number
        for force, coefficient in zip(z[: 3 * n].reshape(n, 3), mu):
            assert outside(force, coefficient, edges) <= 1e-12 * np.abs(z).max(), number
        assert (z[3 * n :] >= 0.0).all()


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
def test_one_pyramid_is_the_projection_of_plain_numpy(mu):
    """With so little of W that the second term says nothing, z is the force nearest to -shift."""
    rng = np.random.default_rng(3)
    sets = sets_of(np.array([mu]), 5)
    for _ in range(50):
        shift, x, z = rng.normal(size=3), np.zeros(3), np.empty(3)
        cone_newton(1e-9 * np.eye(3), np.ones(3), np.zeros(3), shift, sets, MAX_STEPS, x, z)
        np.testing.assert_allclose(z, nearest(sets, -shift), atol=1e-9)


def test_equations_that_no_cone_can_meet_are_refused_early():
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = int(rng.integers(1, 12))
        W, weight = rng.normal(size=(3 * n, 6)), np.zeros(6)
        W[::3, 0] = 1.0 + np.abs(W[::3, 0])  # all normals push the same way
        W[1::3, 0] = W[2::3, 0] = 0.0
        target = -np.eye(6)[0]  # and the target asks for the other one
        x, z = np.zeros(6), np.empty(3 * n)
        mu = np.full(n, 0.7)
        steps = cone_newton(W, weight, target, np.empty(0), sets_of(mu, 0), MAX_STEPS, x, z)
        assert -MAX_STEPS < steps < 0


def test_rays_and_slides_are_the_same_forces():
    """A contact that slides along an edge, and the row of its edge as a ray."""
    rng = np.random.default_rng(8)
    n, dim, edges = 6, 6, 4
    mu, W, target = np.full(n, 0.8), rng.normal(size=(3 * n, dim)), rng.normal(size=dim)
    weight, none = np.full(dim, 1e-3), np.empty(0)
    slides, z = sets_of(mu, edges, SLIDING, 0.5 * np.pi), np.empty(3 * n)
    assert cone_newton(W, weight, target, none, slides, MAX_STEPS, np.zeros(dim), z) > 0
    unit = np.array([1.0, 0.0, 0.8]) / np.hypot(1.0, 0.8)
    rays, amounts = np.einsum("d,idk->ik", unit, W.reshape(n, 3, dim)), np.empty(n)
    nothing = sets_of(np.empty(0), 0)
    assert cone_newton(rays, weight, target, none, nothing, MAX_STEPS, np.zeros(dim), amounts) > 0
    np.testing.assert_allclose(z.reshape(n, 3), np.outer(amounts, unit), atol=1e-9)
    apart = sets_of(mu, edges, APART)
    assert cone_newton(W, weight, target, none, apart, MAX_STEPS, np.zeros(dim), z) > 0
    assert not z.any()


@pytest.mark.parametrize("mu, eps", [(0.5, 1e-6), (np.inf, 1e-7), (1e3, 1e-3)])
def test_elastic_contacts_balance_at_any_scale(mu, eps):
    """Duplicated contacts, softness of 1e-7, lengths and speeds of a millionth: u = Y^T z, z on its cones."""
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1.0, 1e3):
        n, nu, edges = 12, 6, 5
        Y, c = scale * rng.normal(size=(3 * n, nu)), rng.normal(size=3 * n)
        Y[:3], c[:3] = Y[3:6] * (1.0 + 1e-9), c[3:6]
        gap = np.zeros(n)
        gap[1] = 1e6
        x, z, coefficients = np.zeros(nu), np.empty(3 * n), np.full(n, mu)
        steps = elastic(Y, c, gap, coefficients, edges, eps * scale**2, 1e-11, x, z)
        assert 0 < steps < MAX_STEPS
        u = eps * scale**2 * x
        np.testing.assert_allclose(u, Y.T @ z, atol=1e-6 * np.abs(u).max())
        c[::3] += gap
        forces = -(Y @ u + c).reshape(n, 3) / (eps * scale**2)
        sets, size = sets_of(coefficients[:1], edges), np.abs(z).max()
        for force, found in zip(forces, z.reshape(n, 3)):
            if np.isinf(mu):
                expected = np.array([max(force[0], 0.0), *force[1:]])
            else:
                expected = nearest(sets, force)
            np.testing.assert_allclose(found, expected, atol=1e-5 * size)
