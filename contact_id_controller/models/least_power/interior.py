"""A least-power task as a cone program, solved by the interior-point method.

    min u^T W u + rho price |d|^2 + tie |z|^2
        u - T^T z - schur d = offset              na rows
        K (Y^T z, d / unit) = k                   rank rows, soft if contacts may yield
        |u| <= limits, z_N >= 0 (unbounded friction), z_i in its cone (the others)

Variables, in this order: u (na,); d (joints,); 3 forces of each contact with unbounded friction; 3 forces of each other
contact, in units in which its cone is x_0 >= |x_T|. The first ``boxes`` of them have bounds, the rest are cones.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.interior_point.barrier import central_path
from contact_id_controller.kernels.interior_point.cone_program import ConeProgram, Point
from contact_id_controller.kernels.interior_point.scaling import (
    equilibrate,
    lift_prices,
    out_of_units,
)
from contact_id_controller.models.least_power.task import (
    cone_price,
    disturbance_price,
    force_price,
    into_rows,
    units_of_cone,
)
from contact_id_controller.models.steps.relaxation import mean_diagonal

LEAST_TIE = 1e-9  # price of forces in the solver's units, where the disturbance costs about one
YIELD = 1e2  # price of a contact that yields against that of the same motion of the joints
YIELDING = 1e-6  # softness of contacts that no joint moves, relative to their inertia
ON_BOUND = 1e-6  # limits and cones closer than this, relatively, are active in the next guess
NARROW = 1e-9  # limits closer to each other than this share of the largest are set apart


@kernel
def solve_by_interior_point(task, yields, optimum):
    """Solve the program above for one ``Task``. Returns (status of ``interior_point.method``, steps).

    yields: whether contacts may yield: then rho is 1, and a contact's velocity costs YIELD times the joints' change
    that gives the same. optimum: out, see ``Optimum``; figures[0], the objective, is left to the caller.
    """
    n, na = task.mu.shape[0], task.T.shape[1]
    forces, bounded = 0, 0
    for i in range(n):
        if task.held[i]:
            forces += 3
            if task.mu[i] < np.inf:
                bounded += 3
    boxes = na + task.joints + forces - bounded
    N, p = boxes + bounded, na + task.rank
    program = ConeProgram(
        np.zeros(N),
        np.zeros(N),
        np.zeros((N, p)),
        np.empty(p),
        np.zeros(p),
        np.empty(boxes),
        np.empty(boxes),
    )
    place = np.empty(n, np.int64)  # of each contact's forces among the variables
    tie = force_price(task.T, task.W)
    _torque_rows(task, program)
    if task.joints:
        _disturbance_columns(task, 1.0 if yields else task.rho, program)
    if yields:
        fill(program.soft[na:], _softness(task, tie))
    _force_columns(task, tie, program, place)
    column, row = np.empty(N), np.empty(p)
    beta, kappa = equilibrate(program, column, row)
    lift_prices(program.weight, na + task.joints, boxes, LEAST_TIE)
    point = Point(np.empty(N), np.empty(p), np.empty(N), np.empty(boxes))
    status, steps, gap, defect = central_path(program, False, point, np.empty((4, max(N, p))))
    optimum.figures[1], optimum.figures[2] = gap, defect
    out_of_units(point, column, row, beta, kappa)
    _hand_out(task, boxes, place, point, optimum)
    return status, steps


@bare_kernel
def _torque_rows(task, program):
    """Write the columns, costs and limits of u, and the right sides offset and k of all rows.

    Joints with limits of (nearly) zero get a narrow interval: the method needs an interior.
    """
    na = task.T.shape[1]
    largest = 0.0
    for j in range(na):
        if task.limits[j] < np.inf:
            largest = max(largest, task.limits[j])
    for j in range(na):
        program.weight[j] = 2.0 * task.W[j]
        program.upper[j] = max(task.limits[j], NARROW * largest)
        program.lower[j] = -program.upper[j]
        program.At[j, j] = 1.0
        program.b[j] = task.offset[j]
    for i in range(task.rank):
        program.b[na + i] = task.k[i]


@bare_kernel
def _disturbance_columns(task, rho, program):
    """Write the columns -schur and K_d of d, unbounded, with cost rho |d|^2 ``disturbance_price``."""
    nu, na = task.Y.shape[1], task.T.shape[1]
    price = rho * disturbance_price(task.schur, task.W)
    for j in range(na):
        program.weight[na + j] = 2.0 * price
        program.lower[na + j], program.upper[na + j] = -np.inf, np.inf
        for i in range(na):
            program.At[na + j, i] = -task.schur[i, j]
        for i in range(task.rank):
            program.At[na + j, na + i] = task.K[i, nu + j] / task.unit


@kernel
def _softness(task, tie):
    """Softness s of the contact rows, |K (y, d) - k|^2 / (2 s), at which contacts yield only where joints cannot.

    With a disturbance: a contact's velocity costs YIELD times the d that gives it, dt^2 T d in the mean; where no joint
    moves a contact: relative to the contacts' mobility and the price of forces, ``tie``.
    """
    lever = 0.0
    for r in range(task.T.shape[0]):
        for j in range(task.joints):
            lever += task.dt * task.dt * task.T[r, j] * task.T[r, j]
    if lever > 0.0:
        lever /= task.T.shape[0] * task.joints
        price = disturbance_price(task.schur, task.W)
        return 0.5 * lever * task.dt * task.dt / (YIELD * price)
    inertia = mean_diagonal(task.Y)
    return YIELDING * inertia * inertia / tie


@bare_kernel
def _force_columns(task, tie, program, place):
    """Write the columns -T and K_y Y of the forces in units of their cones, with cost ``tie``.

    place (n,): out, each contact's first variable, -1 if it is not constrained.
    """
    na = task.T.shape[1]
    box, cone = na + task.joints, program.lower.shape[0]
    for i in range(task.mu.shape[0]):
        place[i] = -1
        if not task.held[i]:
            continue
        bounded = task.mu[i] < np.inf
        at = cone if bounded else box
        place[i] = at
        normal, tangent = units_of_cone(task.mu[i])
        for d in range(3):
            factor = normal if d == 0 else tangent
            program.weight[at + d] = cone_price(tie, normal, d)
            row, column = task.T[3 * i + d], program.At[at + d]
            for j in range(na):
                column[j] = -factor * row[j]
            into_rows(task.K, task.rank, factor, task.Y[3 * i + d], column[na:])
            if not bounded:
                program.lower[at + d] = 0.0 if d == 0 else -np.inf
                program.upper[at + d] = np.inf
        if bounded:
            cone += 3
        else:
            box += 3


@bare_kernel
def _hand_out(task, boxes, place, point, optimum):
    """Convert the solver's point to impulses z (N·s), disturbance d (rad/s2) and the memory of an ``Optimum``.

    Multipliers are kept of limits and cones that are active within ON_BOUND: the active set of the next guess.
    boxes: index of the first cone variable; place (n,): see ``_force_columns``.
    """
    na = task.T.shape[1]
    x, s, r, memory = point.x, point.s, point.r, optimum.memory
    fill(memory, 0.0)
    for j in range(na):
        if task.limits[j] - abs(x[j]) <= ON_BOUND * task.limits[j]:
            memory[j] = r[j] if x[j] > 0.0 else -s[j]
    for j in range(task.joints):
        optimum.disturbance[j] = x[na + j]
    for i in range(place.shape[0]):
        at = place[i]
        if at < 0:
            continue
        normal, tangent = units_of_cone(task.mu[i])
        for d in range(3):
            force = (normal if d == 0 else tangent) * x[at + d]
            optimum.z[3 * i + d] = force
            if at >= boxes:
                memory[na + 4 * i + d] = force
        if at >= boxes and x[at] - np.hypot(x[at + 1], x[at + 2]) <= ON_BOUND * x[at]:
            memory[na + 4 * i + 3] = s[at]
