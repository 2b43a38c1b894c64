"""Algebra of the cone Q = {(x0, x1, x2): x0 >= |(x1, x2)|} for an interior-point method.

Nesterov-Todd scaling: for x and s inside Q there is one symmetric W with W s = W^-1 x = l,

    W = eta [[w0, w1^T], [w1, I + w1 w1^T / (1 + w0)]],   w^T J w = 1,  J = diag(1, -1, -1)

Vectors are views of three entries; nothing is allocated here.
Source: Nesterov and Todd (1997); Vandenberghe, The CVXOPT linear and quadratic cone program
solvers (2010), section 4.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel


@bare_kernel
def inner(x):
    """x^T J x = x_0^2 - |x_T|^2 of x (3,), positive inside the cone; J = diag(1, -1, -1)."""
    length = np.sqrt(x[1] * x[1] + x[2] * x[2])
    return (x[0] - length) * (x[0] + length)


@bare_kernel
def nt_scaling(x, s, eta_w, point):
    """Write eta and w (4,) of the scaling W s = W^-1 x = l of x and s (3,), and l (3,); False on the boundary."""
    square_x, square_s = inner(x), inner(s)
    if not (square_x > 0.0 and square_s > 0.0 and x[0] > 0.0 and s[0] > 0.0):
        return False
    length_x, length_s = np.sqrt(square_x), np.sqrt(square_s)
    product = (x[0] * s[0] + x[1] * s[1] + x[2] * s[2]) / (length_x * length_s)
    gamma = np.sqrt(0.5 * (1.0 + product))
    w1 = 0.5 * (x[1] / length_x - s[1] / length_s) / gamma
    w2 = 0.5 * (x[2] / length_x - s[2] / length_s) / gamma
    eta_w[0] = np.sqrt(length_x / length_s)
    eta_w[1], eta_w[2], eta_w[3] = np.sqrt(1.0 + w1 * w1 + w2 * w2), w1, w2
    scale(eta_w, s, point)
    return True


@bare_kernel
def scale(eta_w, v, out):
    """out = W v (3,), Nesterov and Todd's scaling of a cone by eta and w (4,); out may be v."""
    eta, w0, w1, w2 = eta_w[0], eta_w[1], eta_w[2], eta_w[3]
    along = w1 * v[1] + w2 * v[2]
    share = v[0] + along / (1.0 + w0)
    out[0] = eta * (w0 * v[0] + along)
    out[1] = eta * (v[1] + share * w1)
    out[2] = eta * (v[2] + share * w2)


@bare_kernel
def unscale(eta_w, v, out):
    """out = W^-1 v (3,), see ``scale``; out may be v."""
    eta, w0, w1, w2 = eta_w[0], eta_w[1], eta_w[2], eta_w[3]
    along = w1 * v[1] + w2 * v[2]
    share = along / (1.0 + w0) - v[0]
    out[0] = (w0 * v[0] - along) / eta
    out[1] = (v[1] + share * w1) / eta
    out[2] = (v[2] + share * w2) / eta


@bare_kernel
def product(a, b, out):
    """out = a o b, the cone's product (a^T b, a0 b1 + b0 a1, ...); out is neither a nor b."""
    out[0] = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    out[1] = a[0] * b[1] + b[0] * a[1]
    out[2] = a[0] * b[2] + b[0] * a[2]


@bare_kernel
def quotient(point, d, out):
    """out (3,) with point o out = d, o the cone's Jordan product; point inside the cone; out may be d."""
    first = (point[0] * d[0] - point[1] * d[1] - point[2] * d[2]) / inner(point)
    out[1] = (d[1] - first * point[1]) / point[0]
    out[2] = (d[2] - first * point[2]) / point[0]
    out[0] = first


@bare_kernel
def inverse_step(x, dx):
    """1 / the largest step with x + step dx still in the cone, 0 if none is too large; x inside."""
    inverse = 1.0 / np.sqrt(inner(x))
    n0, n1, n2 = x[0] * inverse, x[1] * inverse, x[2] * inverse
    along = n0 * dx[0] - n1 * dx[1] - n2 * dx[2]
    share = (along + dx[0]) / (1.0 + n0)
    first, second = dx[1] - share * n1, dx[2] - share * n2
    return max(0.0, (np.sqrt(first * first + second * second) - along) * inverse)


@bare_kernel
def distance(x):
    """Distance of x (3,) from the cone x_0 >= |x_T|, 0 inside."""
    length = np.hypot(x[1], x[2])
    if length <= x[0]:
        return 0.0
    if length <= -x[0]:
        return np.sqrt(x[0] * x[0] + length * length)
    return (length - x[0]) * np.sqrt(0.5)
