"""Momentum plans: the interior-point method over a motion's intervals, without allocation.

    min sum_t 1/2 |e_t|^2_w + sum_i 1/2 |u_i - u_ref,i|^2_wf     D_i u_i in K
    x[t + 1] = A x[t] + E sum_i G_i u_i + b     e = (r - r_ref, v - v_ref, k - k_ref), k = k_o - (r - o) x v

K is the positive quadrant (pyramid, four rows) or the second-order cone (three rows). A step's matrix is
factored by Riccati's recursion. The forces stay inside their cones, so s = D u needs no row of its own.
Only the cost is not convex: its Hessian is Gauss-Newton's, or has the curvature of k added in one of two
ways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels import riccati
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.interior_point.method import make_method
from contact_id_controller.kernels.interior_point.second_order_cone import (
    inverse_step,
    nt_scaling,
    product,
    quotient,
    scale,
    unscale,
)

GAUSS_NEWTON, DIFFERENCE_OF_PSD, EXACT = range(3)
PYRAMID, CONE = range(2)
ROWS = 4  # of a contact, at most
BLOCK = 7  # numbers of a contact's scaling, at most
GAP = 1e-7  # sum s'z at the end, relative to the cost
LEAST_GAP = 1e-10  # and for a cost that vanishes, relative to the weights
STATIONARY = 1e-7  # gradient of the Lagrangian, relative to weights and multipliers
ACCEPTED = 10.0  # times as much as these three, where rounding lets the method get no closer
DYNAMICS = 1e-14  # defect before the last roll-out, which moves what depends on it much farther
LEAST_AIM = 0.1  # of the gap that ends: so last steps are whole, and the dynamics have no defect
STATE, FORCE = riccati.STATE, riccati.FORCE


class Program(NamedTuple):
    """The problem as arrays: T intervals, m forces of all intervals.

    A state (9,) is (r - o, v, k_o) of ``centroidal``: CoM from an origin, m; its velocity, m/s; angular momentum about
    the origin / mass, m2/s. References have k, that about the CoM, in its place.

    b (T, 9), reference and weight (T + 1, 9), nominal (m, 3), force_weight (3,), friction (m,) that
    the rows see; cone: PYRAMID or CONE; hessian: GAUSS_NEWTON, DIFFERENCE_OF_PSD or EXACT.
    """

    stages: riccati.Stages
    b: np.ndarray
    reference: np.ndarray
    weight: np.ndarray
    nominal: np.ndarray
    force_weight: np.ndarray
    friction: np.ndarray
    cone: int
    hessian: int


class Iterate(NamedTuple):
    """x (T + 1, 9), u (m, 3) in ground axes, s and z (m, 4): slacks and multipliers of the cones."""

    x: np.ndarray
    u: np.ndarray
    s: np.ndarray
    z: np.ndarray


class Work(NamedTuple):
    """Workspace; degree: of the cones; log (steps + 1, 4): cost, dynamics, stationarity and gap before each step."""

    degree: int
    Q: np.ndarray
    q: np.ndarray
    H: np.ndarray
    h: np.ndarray
    defect: np.ndarray
    adjoint: np.ndarray
    slope: np.ndarray
    nothing: np.ndarray
    blocks: np.ndarray
    centre: np.ndarray
    ds: np.ndarray
    dz: np.ndarray
    factor: riccati.Factor
    step: riccati.Solution
    log: np.ndarray


def work_of(program: Program, steps: int) -> Work:
    """Allocate workspace for a solve of at most ``steps`` steps."""
    intervals, inputs = len(program.b), len(program.nominal)
    return Work(
        degree=max(1, inputs * (1 if program.cone == CONE else ROWS)),
        Q=np.zeros((intervals + 1, STATE, STATE)),
        q=np.zeros((intervals + 1, STATE)),
        H=np.zeros((inputs, FORCE, FORCE)),
        h=np.zeros((inputs, FORCE)),
        defect=np.zeros((intervals, STATE)),
        adjoint=np.zeros((intervals + 1, STATE)),
        slope=np.zeros((inputs, FORCE)),
        nothing=np.zeros((intervals + 1, STATE)),
        blocks=np.zeros((inputs, BLOCK)),
        centre=np.zeros((inputs, ROWS)),
        ds=np.zeros((inputs, ROWS)),
        dz=np.zeros((inputs, ROWS)),
        factor=riccati.factor_of(intervals, inputs),
        step=riccati.solution_of(intervals, inputs),
        log=np.zeros((steps + 1, 4)),
    )


# The cost and its derivatives


@bare_kernel
def _spin_errors(x, reference, weight, out):
    """Write w (k - k_ref) of a knot into out[6:9]; returns its cost 1/2 sum w (k - k_ref)^2.

    k = k_o - (r - o) x v, the angular momentum about the CoM / mass, m2/s; x, reference, weight, out: (9,), see
    ``Program``.
    """
    out[6] = x[6] - (x[1] * x[5] - x[2] * x[4]) - reference[6]
    out[7] = x[7] - (x[2] * x[3] - x[0] * x[5]) - reference[7]
    out[8] = x[8] - (x[0] * x[4] - x[1] * x[3]) - reference[8]
    cost = 0.0
    for i in range(6, 9):
        cost += 0.5 * weight[i] * out[i] * out[i]
        out[i] *= weight[i]
    return cost


@bare_kernel
def _knot_cost(x, reference, weight, q, Q):
    """Return the cost of a knot and write its gradient q (9,) and Gauss-Newton Hessian Q (9, 9), lower triangle."""
    cost = _spin_errors(x, reference, weight, q)
    w0, w1, w2 = weight[6], weight[7], weight[8]
    r0, r1, r2, v0, v1, v2 = x[0], x[1], x[2], x[3], x[4], x[5]
    y0, y1, y2 = q[6], q[7], q[8]
    # Rows of dk / dx: (., -v2, v1, ., r2, -r1, 1..), (v2, ., -v0, -r2, ., r0, .1.), (-v1, v0, ., r1, -r0, ., ..1)
    Q[0, 0], Q[1, 0], Q[2, 0] = w1 * v2 * v2 + w2 * v1 * v1, -w2 * v0 * v1, -w1 * v0 * v2
    Q[1, 1], Q[2, 1] = w0 * v2 * v2 + w2 * v0 * v0, -w0 * v1 * v2
    Q[2, 2] = w0 * v1 * v1 + w1 * v0 * v0
    Q[3, 0], Q[3, 1], Q[3, 2] = -w1 * r2 * v2 - w2 * r1 * v1, w2 * r1 * v0, w1 * r2 * v0
    Q[4, 0], Q[4, 1], Q[4, 2] = w2 * r0 * v1, -w0 * r2 * v2 - w2 * r0 * v0, w0 * r2 * v1
    Q[5, 0], Q[5, 1], Q[5, 2] = w1 * r0 * v2, w0 * r1 * v2, -w0 * r1 * v1 - w1 * r0 * v0
    Q[3, 3], Q[4, 3], Q[5, 3] = w1 * r2 * r2 + w2 * r1 * r1, -w2 * r0 * r1, -w1 * r0 * r2
    Q[4, 4], Q[5, 4] = w0 * r2 * r2 + w2 * r0 * r0, -w0 * r1 * r2
    Q[5, 5] = w0 * r1 * r1 + w1 * r0 * r0
    Q[6, 0], Q[6, 1], Q[6, 2], Q[6, 3], Q[6, 4], Q[6, 5] = (
        0.0,
        -w0 * v2,
        w0 * v1,
        0.0,
        w0 * r2,
        -w0 * r1,
    )
    Q[7, 0], Q[7, 1], Q[7, 2], Q[7, 3], Q[7, 4], Q[7, 5] = (
        w1 * v2,
        0.0,
        -w1 * v0,
        -w1 * r2,
        0.0,
        w1 * r0,
    )
    Q[8, 0], Q[8, 1], Q[8, 2], Q[8, 3], Q[8, 4], Q[8, 5] = (
        -w2 * v1,
        w2 * v0,
        0.0,
        w2 * r1,
        -w2 * r0,
        0.0,
    )
    Q[6, 6], Q[7, 6], Q[7, 7], Q[8, 6], Q[8, 7], Q[8, 8] = w0, 0.0, w1, 0.0, 0.0, w2
    q[0], q[1], q[2] = v2 * y1 - v1 * y2, v0 * y2 - v2 * y0, v1 * y0 - v0 * y1
    q[3], q[4], q[5] = r1 * y2 - r2 * y1, r2 * y0 - r0 * y2, r0 * y1 - r1 * y0
    for i in range(6):
        error = x[i] - reference[i]
        cost += 0.5 * weight[i] * error * error
        q[i] += weight[i] * error
        Q[i, i] += weight[i]
    return cost


@bare_kernel
def _add_curvature(y, hessian, Q):
    """Add the Hessian of -y . (r x v): all of it, or the positive semidefinite part of each product.

    (r x v)_i = 1/4 [(r_j + v_k)^2 + (v_j - r_k)^2] - 1/4 [(r_j - v_k)^2 + (v_j + r_k)^2] (theorem 1);
    which of the two brackets is kept depends on the sign of y_i.
    """
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        Q[3 + k, j] -= y[i]
        Q[3 + j, k] += y[i]
        if hessian == DIFFERENCE_OF_PSD:
            size = 0.5 * abs(y[i])
            Q[j, j] += size
            Q[k, k] += size
            Q[3 + j, 3 + j] += size
            Q[3 + k, 3 + k] += size
            Q[3 + k, j] += 0.5 * y[i]
            Q[3 + j, k] -= 0.5 * y[i]


@bare_kernel
def _linearise(program, x, u, hessian, Q, q):
    """Write the cost's gradients q (T + 1, 9) and Hessians Q (T + 1, 9, 9), lower, at all knots; returns the cost.

    x (T + 1, 9), u (m, 3); hessian: see ``Program``.
    """
    reference, weight, nominal = program.reference, program.weight, program.nominal
    wf, cost = program.force_weight, 0.0
    for t in range(x.shape[0]):
        cost += _knot_cost(x[t], reference[t], weight[t], q[t], Q[t])
        if hessian != GAUSS_NEWTON:
            _add_curvature(q[t, 6:], hessian, Q[t])
    for k in range(u.shape[0]):
        for j in range(FORCE):
            off = u[k, j] - nominal[k, j]
            cost += 0.5 * wf[j] * off * off
    return cost


@bare_kernel
def _arrive(stages, b, t, x, u, wrench, out):
    """out (9,) = A x[t] + E w + b, the state at the end of interval t; w = sum G u into wrench (6,).

    A (T, 9, 9), E (T, 9, 6), b (T, 9), x (T + 1, 9), u (m, 3) forces.
    """
    A, E, first = stages.A, stages.E, stages.first
    riccati.wrench_of(first[t], first[t + 1], stages.G, u, wrench)
    for i in range(STATE):
        total = b[t, i]
        for j in range(STATE):
            total += A[t, i, j] * x[t, j]
        for j in range(riccati.WRENCH):
            total += E[t, i, j] * wrench[j]
        out[i] = total


@bare_kernel
def _defects(stages, b, x, u, wrench, defect):
    """defect (T, 9) = A x + E w + b - x+ of each interval; returns the largest entry. Shapes: ``_arrive``."""
    worst = 0.0
    for t in range(b.shape[0]):
        _arrive(stages, b, t, x, u, wrench[t], defect[t])
        for i in range(STATE):
            defect[t, i] -= x[t + 1, i]
            worst = max(worst, abs(defect[t, i]))
    return worst


@bare_kernel
def _pulled_back(program, u, q, adjoint, pull, slope):
    """Write the reduced gradient of the cost by each force, slope (m, 3); returns the largest multiplier.

    The multipliers ``adjoint`` are those that make the Lagrangian stationary in every state. A step solves
    for their change: with small right-hand sides rounding is small, too.
    """
    stages, nominal, wf = program.stages, program.nominal, program.force_weight
    A, E, first, G = stages.A, stages.E, stages.first, stages.G
    last, largest = A.shape[0], 0.0
    for i in range(STATE):
        adjoint[last, i] = q[last, i]
    for t in range(last - 1, -1, -1):
        for j in range(riccati.WRENCH):
            pull[j] = 0.0
        for i in range(STATE):
            adjoint[t, i] = q[t, i]
        for i in range(STATE):
            amount = adjoint[t + 1, i]
            largest = max(largest, abs(amount))
            for j in range(riccati.WRENCH):
                pull[j] += E[t, i, j] * amount
            for j in range(STATE):
                adjoint[t, j] += A[t, i, j] * amount
        for k in range(first[t], first[t + 1]):
            for j in range(FORCE):
                total = wf[j] * (u[k, j] - nominal[k, j])
                for i in range(riccati.WRENCH):
                    total += G[k, i, j] * pull[i]
                slope[k, j] = total
    return largest


@bare_kernel
def _stationarity(program, slope, z):
    """Largest entry of slope - D' z (m, 3), the Lagrangian's gradient for the forces."""
    worst = 0.0
    for k in range(slope.shape[0]):
        a, b, c = _back(z[k], program.friction[k], program.cone)
        worst = max(worst, abs(slope[k, 0] - a), abs(slope[k, 1] - b), abs(slope[k, 2] - c))
    return worst


# One contact: its rows D, and the cone they lie in


@bare_kernel
def _rows(f, mu, cone, out):
    """out = D f of one force f (3,), local axes, normal last: (mu f_n, f_t) of a cone, or four sides of a pyramid."""
    normal = mu * f[2]
    if cone == CONE:
        out[0], out[1], out[2] = normal, f[0], f[1]
    else:
        out[0], out[1], out[2], out[3] = normal - f[0], normal + f[0], normal - f[1], normal + f[1]


@bare_kernel
def _back(y, mu, cone):
    """D' y of one contact, three numbers; y (3,) of a cone, (4,) of a pyramid, see ``_rows``."""
    if cone == CONE:
        return y[1], y[2], mu * y[0]
    return y[1] - y[0], y[3] - y[2], mu * (y[0] + y[1] + y[2] + y[3])


@bare_kernel
def _scaling(s, z, mu, cone, block, H):
    """The scaling of Nesterov and Todd, and H += D' W^-2 D (lower triangle).

    Cone: block = eta and w of W (4) and the scaled point (3), W^-2 = (2 (J w)(J w)' - J) / eta^2; pyramid: the
    diagonal z / s of W^-2.
    """
    if cone == CONE:
        if not nt_scaling(s, z, block[:4], block[4:]):
            block[0] = np.nan  # on the boundary: no factor
        ratio, w0, w1, w2 = 1.0 / (block[0] * block[0]), block[1], block[2], block[3]
        H[0, 0] += ratio * (2.0 * w1 * w1 + 1.0)
        H[1, 0] += ratio * 2.0 * w1 * w2
        H[1, 1] += ratio * (2.0 * w2 * w2 + 1.0)
        H[2, 0] -= ratio * 2.0 * w0 * w1 * mu
        H[2, 1] -= ratio * 2.0 * w0 * w2 * mu
        H[2, 2] += ratio * (2.0 * w0 * w0 - 1.0) * mu * mu
    else:
        for r in range(4):
            block[r] = z[r] / s[r]
        H[0, 0] += block[0] + block[1]
        H[1, 1] += block[2] + block[3]
        H[2, 0] += mu * (block[1] - block[0])
        H[2, 1] += mu * (block[3] - block[2])
        H[2, 2] += mu * mu * (block[0] + block[1] + block[2] + block[3])


@bare_kernel
def _centre(s, ds, dz, block, target, second, cone, rows, out):
    r"""out = W^-1 (l \ (target e - second W^-1 ds o W dz)): z + dz at ds = 0."""
    if cone == CONE:
        eta_w, a, b, c = block[:4], rows[0], rows[1], rows[2]
        unscale(eta_w, ds, a)
        scale(eta_w, dz, b)
        product(a, b, c)
        c[0], c[1], c[2] = target - second * c[0], -second * c[1], -second * c[2]
        quotient(block[4:], c, c)
        unscale(eta_w, c, out)
    else:
        for r in range(4):
            out[r] = (target - second * ds[r] * dz[r]) / s[r]


@bare_kernel
def _dual_step(z, ds, centre, block, cone, rows, dz):
    """dz = centre - z - W^-2 ds, since W^-2 s = z."""
    if cone == CONE:
        unscale(block[:4], ds, rows[0])
        unscale(block[:4], rows[0], rows[0])
        for r in range(3):
            dz[r] = centre[r] - z[r] - rows[0, r]
    else:
        for r in range(4):
            dz[r] = centre[r] - z[r] - block[r] * ds[r]


@bare_kernel
def _inverse_length(v, dv, cone):
    """1 / the longest step along dv that stays in the cone, at least 0."""
    if cone == CONE:
        return inverse_step(v, dv)
    longest = 0.0
    for r in range(4):
        longest = max(longest, -dv[r] / v[r])
    return longest


# Steps over all contacts


@bare_kernel
def _measure(program, iterate, work, count):
    """Gap, least target gap, and the largest defect in units of the tolerance; see ``make_method``."""
    x, u, s, z, log = iterate.x, iterate.u, iterate.s, iterate.z, work.log[count]
    cost = _linearise(program, x, u, program.hessian, work.Q, work.q)
    off = _defects(program.stages, program.b, x, u, work.step.wrench, work.defect)
    pull = work.factor.scratch[1, 0]
    largest = _pulled_back(program, u, work.q, work.adjoint, pull, work.slope)
    gradient, gap, scale_of_weights = _stationarity(program, work.slope, z), 0.0, 0.0
    for i in range(STATE):
        scale_of_weights = max(scale_of_weights, program.weight[0, i])
    for k in range(u.shape[0]):
        for r in range(ROWS):
            gap += s[k, r] * z[k, r]
    log[0], log[1], log[2], log[3] = cost, off, gradient, gap
    allowed = max(GAP * cost, LEAST_GAP * scale_of_weights)
    worst = max(
        off / DYNAMICS, gradient / (STATIONARY * (scale_of_weights + largest)), gap / allowed
    )
    return gap, LEAST_AIM * allowed, worst if abs(cost) < np.inf else np.inf


@bare_kernel
def _excluded(program, iterate, work, final):
    """Always False: there are forces inside every cone, and the motion follows from them."""
    return False


@bare_kernel
def _factored(program, iterate, work):
    """Factor the Newton matrix: Q of the knots, H = diag(wf) + D' W^-2 D of the forces; False if it is not convex.

    If it is not with the Hessian chosen, that of Gauss-Newton replaces it in this step.
    """
    friction, wf, cone, H = program.friction, program.force_weight, program.cone, work.H
    for k in range(H.shape[0]):
        for i in range(FORCE):
            for j in range(FORCE):
                H[k, i, j] = wf[i] if i == j else 0.0
        _scaling(iterate.s[k], iterate.z[k], friction[k], cone, work.blocks[k], H[k])
    if riccati.factor(program.stages, work.Q, H, work.factor):
        return True
    if program.hessian == GAUSS_NEWTON:
        return False
    _linearise(program, iterate.x, iterate.u, GAUSS_NEWTON, work.Q, work.q)
    return riccati.factor(program.stages, work.Q, H, work.factor)


@bare_kernel
def _direction(program, iterate, work, target, share, taken):
    """Compute dx, du towards complementarity ``target``; see ``make_method``.

    For any share the full defect of the dynamics is corrected, and the predictor's full second-order
    terms: a step fewer in ten (forces and multipliers are feasible from the start).
    """
    second = 1.0 if taken > 0.0 else 0.0
    s, ds, dz, slope, h = iterate.s, work.ds, work.dz, work.slope, work.h
    blocks, cone, rows, centre = work.blocks, program.cone, work.factor.scratch[1], work.centre
    for k in range(s.shape[0]):
        _centre(s[k], ds[k], dz[k], blocks[k], target, second, cone, rows, centre[k])
        a, b, c = _back(centre[k], program.friction[k], cone)
        h[k, 0], h[k, 1], h[k, 2] = slope[k, 0] - a, slope[k, 1] - b, slope[k, 2] - c
    riccati.solve(program.stages, work.factor, work.nothing, h, work.defect, work.step)


@bare_kernel
def _reach(program, iterate, work, share):
    """Compute ds = D du and dz = centre - z - W^-2 ds; returns the longest step with s and z in their cones, at most 2.

    share: not used, as in ``_direction``.
    """
    friction, cone, s, z = program.friction, program.cone, iterate.s, iterate.z
    rows, du, ds, dz = work.factor.scratch[1], work.step.du, work.ds, work.dz
    inverse = 0.5  # of the step's length
    for k in range(du.shape[0]):
        _rows(du[k], friction[k], cone, ds[k])
        _dual_step(z[k], ds[k], work.centre[k], work.blocks[k], cone, rows, dz[k])
        inverse = max(
            inverse, _inverse_length(s[k], ds[k], cone), _inverse_length(z[k], dz[k], cone)
        )
    return 1.0 / inverse


@bare_kernel
def _advance(program, iterate, work, length):
    """Move the iterate by ``length``; s is computed from the forces."""
    x, u, s, z, step, dz = iterate.x, iterate.u, iterate.s, iterate.z, work.step, work.dz
    for t in range(x.shape[0]):
        for i in range(STATE):
            x[t, i] += length * step.dx[t, i]
    for k in range(u.shape[0]):
        for j in range(FORCE):
            u[k, j] += length * step.du[k, j]
        for r in range(ROWS):
            z[k, r] += length * dz[k, r]
        _rows(u[k], program.friction[k], program.cone, s[k])


_iterate = make_method(_measure, _excluded, _factored, _direction, _reach, _advance, ACCEPTED)


@bare_kernel
def solve(program, iterate, work, steps):
    """Solve the program of the module; returns (status of ``interior_point.method``, steps taken).

    Args:
        program: ``Program``.
        iterate: ``Iterate``: u strictly inside the friction cones, z inside too, x any states with x[0] the present
            one; out. Its s = D u is computed here.
        work: of ``work_of``, for at least ``steps``; its ``log``, out.
        steps: most Newton steps.

    The states are rolled out at the end, so the dynamics hold to rounding.
    """
    x, u, b = iterate.x, iterate.u, program.b
    for k in range(u.shape[0]):
        _rows(u[k], program.friction[k], program.cone, iterate.s[k])
    status, taken = _iterate(program, iterate, work, steps)
    for t in range(b.shape[0]):
        _arrive(program.stages, b, t, x, u, work.step.wrench[t], x[t + 1])
    return status, taken
