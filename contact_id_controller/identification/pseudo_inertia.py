"""Inertial parameters of bodies as positive definite matrices, so that every fit is physically possible.

A body with mass m, first moment h = m c and inertia I about its frame's origin has the pseudo-inertia

    P = [[S, h], [h^T, m]],  S = tr(I) / 2 - I,

which is positive definite exactly if a distribution of positive mass has these moments. With the Cholesky factor L of
the prior's P, every P = L M(x) M(x)^T L^T is positive definite, too: the lower triangle M(x) has ten coordinates x,
the logarithms of its diagonal and its other entries. x = 0 is the prior; |x| is, for small x, the distance in the
metric that does not depend on units or frames.

Source: Wensing, Kim and Slotine, *Linear matrix inequalities for physically consistent inertial parameter
identification*, 2017; Rucker and Wensing, *Smooth parameterization of rigid-body inertia*, 2022; Lee, Wensing and
Park, *Geometric robot dynamic identification*, 2020.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COORDINATES = 10
"""Of a body: its mass, first moment (3) and inertia about its frame (6), or the entries of the triangle."""

TRIANGLE = [(0, 0), (1, 1), (2, 2), (3, 3), (1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
"""Places of the coordinates in M."""

FLOOR = 1e-6
"""Smallest eigenvalue of a prior's pseudo-inertia as a share of its largest one: descriptions state thin rods and
points, which no fit could make thicker."""

LIGHTEST = 1e-3
"""Prior mass of a body without a stated one, as a share of the robot's mean."""


def _moments() -> Array:
    """Matrices B (10, 4, 4) whose inner products <B, P> are the ten parameters in Pinocchio's order."""
    found = np.zeros((COORDINATES, 4, 4))
    found[0, 3, 3] = 1.0
    for k in range(3):
        found[1 + k, k, 3] = found[1 + k, 3, k] = 0.5
    # Ixx, Ixy, Iyy, Ixz, Iyz, Izz; I = tr(S) - S.
    for row, (i, j) in zip(range(4, 10), [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]):
        if i == j:
            found[row, range(3), range(3)] = 1.0
            found[row, i, i] = 0.0
        else:
            found[row, i, j] = found[row, j, i] = -0.5
    return found


MOMENTS = _moments()
FLAT = MOMENTS.reshape(COORDINATES, 16)


def parameters_of(pseudo: Array) -> Array:
    """Ten parameters (..., 10) in Pinocchio's order of pseudo-inertias (..., 4, 4): kg, kg m, kg m²."""
    return pseudo.reshape(*pseudo.shape[:-2], 16) @ FLAT.T


def pseudo_of(parameters: Array) -> Array:
    """Pseudo-inertias (..., 4, 4) of ten parameters (..., 10)."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(parameters, dtype=float), -1, 0)
    half = 0.5 * (xx + yy + zz)
    rows = [
        [half - xx, -xy, -xz, hx],
        [-xy, half - yy, -yz, hy],
        [-xz, -yz, half - zz, hz],
        [hx, hy, hz, m],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def believed(parameters: Array, radius_m: float) -> Array:
    """Positive definite pseudo-inertias (n, 4, 4) nearest to those that a description states: the prior of n bodies.

    Args:
        parameters: (n, 10), also of impossible bodies or bodies without mass.
        radius_m: radius, m, of the ball that stands in for a link without a stated inertia.
    """
    pseudo: Array = pseudo_of(parameters)
    mean = max(float(np.mean(np.abs(pseudo[:, 3, 3]))), 1e-9)
    for body in pseudo:
        body[3, 3] = max(body[3, 3], LIGHTEST * mean)
        centre = body[:3, 3] / body[3, 3]
        about = body[:3, :3] - body[3, 3] * np.outer(centre, centre)
        values, axes = np.linalg.eigh(about)
        least = max(FLOOR * values[-1], FLOOR * body[3, 3] * radius_m**2)
        if values[-1] <= least:  # nothing stated: a ball
            values[:] = 0.2 * body[3, 3] * radius_m**2
        about = (axes * np.maximum(values, least)) @ axes.T
        body[:3, :3] = about + body[3, 3] * np.outer(centre, centre)
    return pseudo


class Bodies:
    """Inertial parameters of n bodies as a smooth function of 10 n coordinates, which are 0 at the prior.

    Attributes:
        factors: (n, 4, 4), Cholesky factors of the prior's pseudo-inertias.
    """

    def __init__(self, pseudo: Array):
        self.factors: Array = np.asarray(np.linalg.cholesky(pseudo), dtype=np.float64)
        self.size = COORDINATES * len(pseudo)

    def pseudo(self, x: Array) -> Array:
        """Pseudo-inertias (n, 4, 4) at coordinates (10 n,)."""
        root = self.factors @ _triangles(x)
        return root @ np.swapaxes(root, -1, -2)

    def parameters(self, x: Array) -> Array:
        """Parameters (10 n,) at coordinates (10 n,)."""
        return parameters_of(self.pseudo(x)).ravel()

    def jacobian(self, x: Array) -> Array:
        """Derivatives of the parameters by the coordinates, (10 n, 10 n), block diagonal."""
        triangles = _triangles(x)
        found = np.zeros((self.size, self.size))
        for n, (factor, triangle) in enumerate(zip(self.factors, triangles)):
            root = factor @ triangle
            change = np.zeros((COORDINATES, 4, 4))
            for k, (i, j) in enumerate(TRIANGLE):
                change[k, i, j] = 0.5 * triangle[i, i] if i == j else np.sqrt(0.5)
            half = factor @ change @ root.T
            block = slice(COORDINATES * n, COORDINATES * (n + 1))
            found[block, block] = parameters_of(half + np.swapaxes(half, -1, -2)).T
        return found


def _triangles(x: Array) -> Array:
    """M (n, 4, 4) at coordinates (10 n,), scaled so that a small |x| is the distance from the prior."""
    rows = np.reshape(x, (-1, COORDINATES))
    found = np.zeros((len(rows), 4, 4))
    for k, (i, j) in enumerate(TRIANGLE):
        found[:, i, j] = np.exp(0.5 * rows[:, k]) if i == j else np.sqrt(0.5) * rows[:, k]
    return found


def shared(found: Array, parts: Sequence[Array]) -> list[Array]:
    """Split a body's identified pseudo-inertia over the parts of the body.

    Each part P becomes A P A^T, with the symmetric positive definite A that maps the sum of the parts to ``found`` (the
    optimal transport between two normal distributions), so that every part is physically possible.

    Args:
        found: (4, 4), positive definite.
        parts: (4, 4) each, positive semidefinite, in the frame of the body; their sum positive definite.
    """
    total = np.sum(parts, axis=0)
    root = _power(total, 0.5)
    inverse = _power(total, -0.5)
    change = inverse @ _power(root @ found @ root, 0.5) @ inverse
    return [change @ part @ change.T for part in parts]


def _power(matrix: Array, exponent: float) -> Array:
    """Power of a symmetric positive semidefinite matrix."""
    values, axes = np.linalg.eigh(matrix)
    return (axes * np.maximum(values, 0.0) ** exponent) @ axes.T
