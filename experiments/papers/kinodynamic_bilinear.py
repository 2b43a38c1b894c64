"""Kinodynamic paper (Herzog, Schaal, Righetti), III and IV-D: its bilinear form, and what is kept of its curvature.

States are CoM, velocity and angular momentum about the CoM: the angular momentum's constraint
contains r x F, and the Hessian of the Lagrangian is indefinite. The paper drops its negative
semidefinite part, known in closed form from theorem 1; which part that is depends on the pairs that
the products are split into: r and the force of a step, or r and each corner's force.

A plain interior point method over sparse matrices, without line search, for counting steps: nothing
of the package's solver is used. The map from knot to knot is exact, so that its optimum is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csc_array, diags_array, eye_array
from scipy.sparse.linalg import splu

from contact_id_controller.planning.kinodynamic.centroidal import cross_matrix
from contact_id_controller.planning.kinodynamic.momentum_problem import CONES, MomentumProblem

EXACT, PER_STEP, PER_CONTACT, DROPPED = "exact", "per_step", "per_contact", "dropped"
CURVATURES = (EXACT, PER_STEP, PER_CONTACT, DROPPED)
"""What is kept of the curvature of r x F: all, its positive part by step or by corner, nothing."""

DEFECT, STATIONARY, GAP = 1e-9, 1e-8, 1e-7
LEAST_PRODUCT = 1e-13
MAX_STEPS = 60
STATE = 9


@dataclass(frozen=True)
class BilinearSolution:
    """How it went: whether the tolerances were met, steps, and the residuals at the end."""

    solved: bool
    steps: int
    cost: float
    defect: float
    stationarity: float


def solve(problem: MomentumProblem, curvature: str, max_steps: int = MAX_STEPS) -> BilinearSolution:
    """Solve with one of ``CURVATURES``; the problem's cone must be a pyramid."""
    form = _Form(problem)
    x, u, multipliers = form.start()
    slack = form.D @ u
    z = np.full(len(slack), 1e-2 * form.dt)
    for taken in range(max_steps + 1):
        defect, C = form.defect(x, u), form.jacobian(x, u)
        gradient = form.weight * (np.concatenate([x, u]) - form.goal)
        cost = form.fixed_cost + 0.5 * gradient @ (np.concatenate([x, u]) - form.goal)
        residual = gradient + C.T @ multipliers
        residual[len(x) :] -= form.D.T @ z
        product = slack @ z
        worst = np.abs(residual).max() / (1 + np.abs(multipliers).max())
        ends = (np.abs(defect).max() <= DEFECT, worst <= STATIONARY, product <= GAP * cost)
        if all(ends) or taken == max_steps:
            return BilinearSolution(all(ends), taken, cost, np.abs(defect).max(), worst)
        H = diags_array(form.weight) + form.curvature(multipliers, curvature)
        barrier = csc_array(form.D.T @ diags_array(z / slack) @ form.D)
        H = H + form.into_forces(barrier)
        size = H.shape[0]
        zero = -1e-14 * eye_array(len(defect))
        factor = splu(_stacked(H, C, zero))

        def step(aim, ds=0.0, dz=0.0):
            centre = (aim - ds * dz) / slack
            right = -(gradient + C.T @ multipliers)
            right[len(x) :] += form.D.T @ centre
            found = factor.solve(np.concatenate([right, -defect]))
            ds = form.D @ found[len(x) : size]
            return found, ds, centre - z - z / slack * ds

        found, ds, dz = step(0.0)
        length = _length(slack, ds, z, dz)
        after = (slack + length * ds) @ (z + length * dz)
        aim = max((after / product) ** 3 * product / len(z), LEAST_PRODUCT)
        found, ds, dz = step(aim, ds, dz)
        length = min(1.0, 0.995 * _length(slack, ds, z, dz))
        x = x + length * found[: len(x)]
        u = u + length * found[len(x) : size]
        multipliers, z = multipliers + length * found[size:], z + length * dz
        slack = form.D @ u
    raise AssertionError("unreachable")


def _length(slack, ds, z, dz) -> float:
    """The longest step, at most 1 / 0.995, that keeps both positive."""
    return 1.0 / max(0.995, (-ds / slack).max(), (-dz / z).max())


def _stacked(H, C, corner) -> csc_array:
    from scipy.sparse import block_array

    return csc_array(block_array([[H, C.T], [C, corner]]))


class _Form:
    """The problem as sparse matrices: unknowns x (9 T), u (3 m); constraints 9 T."""

    def __init__(self, problem: MomentumProblem) -> None:
        contacts, weights, mass = problem.contacts, problem.weights, problem.mass_kg
        self.problem, self.knots, self.dt = problem, problem.knots, contacts.time_step_s
        self.g, self.gravity = float(np.linalg.norm(problem.gravity)), problem.gravity
        self.interval, corner = np.nonzero(contacts.standing)
        self.points = contacts.points[self.interval, corner]
        self.rotations = contacts.rotations[self.interval, corner]
        self.nominal = problem.nominal_forces()[contacts.standing].ravel()
        reference = problem.reference
        goal = np.hstack(
            [reference.com, reference.momentum / mass, reference.angular_momentum / mass]
        )
        running = self.dt * np.hstack([weights.com, weights.velocity, weights.spin])
        weight = np.tile(running, (self.knots, 1))
        weight[-1] = weights.last
        self.first = np.concatenate([problem.start[0], *(problem.start[1:] / mass)])
        self.fixed_cost = 0.5 * running @ (self.first - goal[0]) ** 2
        forces = np.tile(self.dt * np.array(weights.force), len(self.interval))
        self.goal = np.concatenate([goal[1:].ravel(), self.nominal])
        self.weight = np.concatenate([weight.ravel(), forces])
        friction = CONES[problem.cone] * contacts.friction[self.interval, corner]
        self.D = self._rows(friction)

    def start(self):
        """At the reference, with nominal forces."""
        states = STATE * self.knots
        return self.goal[:states].copy(), self.nominal.copy(), np.zeros(states)

    def _rows(self, friction) -> csc_array:
        """mu f_z -+ f_x, mu f_z -+ f_y of every force."""
        count = len(friction)
        block = np.tile([[-1.0, 0, 0], [1.0, 0, 0], [0, -1.0, 0], [0, 1.0, 0]], (count, 1, 1))
        block[:, :, 2] = friction[:, None]
        i, r, j = np.indices(block.shape)
        return csc_array(coo_array((block.ravel(), ((4 * i + r).ravel(), (3 * i + j).ravel()))))

    def _knots(self, x):
        """States at the beginning of each interval, (T, 9), and forces' wrenches."""
        return np.vstack([self.first, x.reshape(-1, STATE)[:-1]])

    def _wrench(self, u):
        world = np.einsum("mij,mj->mi", self.rotations, u.reshape(-1, 3))
        total, torque = np.zeros((self.knots, 3)), np.zeros((self.knots, 3))
        np.add.at(total, self.interval, world)
        np.add.at(torque, self.interval, np.cross(self.points, world))
        return total, torque

    def _middle(self, before):
        """Mean position of the CoM over an interval, without the part along the force."""
        return before[:, :3] + self.dt / 2 * before[:, 3:6] + self.dt**2 / 6 * self.gravity

    def defect(self, x, u) -> np.ndarray:
        """x+ - phi(x, u), (9 T,)."""
        before, (total, torque), dt = self._knots(x), self._wrench(u), self.dt
        a = self.g * total + self.gravity
        after = np.hstack(
            [
                before[:, :3] + dt * before[:, 3:6] + dt**2 / 2 * a,
                before[:, 3:6] + dt * a,
                before[:, 6:] + self.g * dt * (torque - np.cross(self._middle(before), total)),
            ]
        )
        return x - after.ravel()

    def jacobian(self, x, u) -> csc_array:
        """Of the defect, (9 T, 9 T + 3 m)."""
        before, (total, _), dt, g = self._knots(x), self._wrench(u), self.dt, self.g
        back = np.tile(np.eye(STATE), (self.knots, 1, 1))
        back[:, :3, 3:6] = dt * np.eye(3)
        arm = g * dt * cross_matrix(total)  # -path x F = F x path
        back[:, 6:, :3], back[:, 6:, 3:6] = arm, dt / 2 * arm
        inputs = np.zeros((len(self.interval), STATE, 3))
        inputs[:, :3], inputs[:, 3:6] = g * dt**2 / 2 * self.rotations, g * dt * self.rotations
        levers = self.points - self._middle(before)[self.interval]
        inputs[:, 6:] = g * dt * cross_matrix(levers) @ self.rotations
        row, column, value = [], [], []

        def put(blocks, rows, columns):
            _, i, j = np.indices(blocks.shape)
            row.append((rows[:, None, None] + i).ravel())
            column.append((columns[:, None, None] + j).ravel())
            value.append(blocks.ravel())

        at = STATE * np.arange(self.knots)
        put(np.tile(np.eye(STATE), (self.knots, 1, 1)), at, at)
        put(-back[1:], at[1:], at[:-1])
        put(-inputs, at[self.interval], STATE * self.knots + 3 * np.arange(len(inputs)))
        size = (STATE * self.knots, STATE * self.knots + u.size)
        entries = np.concatenate(value), (np.concatenate(row), np.concatenate(column))
        return csc_array(coo_array(entries, shape=size))

    def into_forces(self, block) -> csc_array:
        """A matrix of the forces as one of all unknowns."""
        states = STATE * self.knots
        block, size = coo_array(block), states + block.shape[0]
        at = (block.coords[0] + states, block.coords[1] + states)
        return csc_array(coo_array((block.data, at), shape=(size, size)))

    def curvature(self, multipliers, kept: str) -> csc_array:
        """What is kept of the Hessian of multipliers . (g dt r x F), r the mean position.

        In pairs (a, b) of r and a force: sum y_i (a x b)_i = sum |y_i| (Q_i or P_i, by its sign) -
        the other, theorem 1; Q and P are 1/4 the squares (a_j + b_k, a_k - b_j), (a_j - b_k, a_k + b_j).
        """
        size = len(self.goal)
        if kept == DROPPED:
            return csc_array((size, size))
        y = self.g * self.dt * multipliers.reshape(-1, STATE)[:, 6:]
        groups = self.interval if kept != PER_CONTACT else np.arange(len(self.interval))
        row, column, value = [], [], []
        for group in np.unique(groups):
            corners = np.flatnonzero(groups == group)
            t = self.interval[corners[0]]
            if t == 0:
                continue  # r is given there
            block, unknowns = self._block(y[t], corners, t, kept)
            row.append(np.repeat(unknowns, len(unknowns)))
            column.append(np.tile(unknowns, len(unknowns)))
            value.append(block.ravel())
        entries = np.concatenate(value), (np.concatenate(row), np.concatenate(column))
        return csc_array(coo_array(entries, shape=(size, size)))

    def _block(self, y, corners, t, kept):
        """Hessian in (r, v of the knot before, forces of the corners), and where these stand."""
        states = STATE * self.knots
        knot = STATE * (t - 1) + np.arange(6)
        forces = (states + 3 * corners[:, None] + np.arange(3)).ravel()
        to_a = np.zeros((3, 6 + len(forces)))
        to_a[:, :3], to_a[:, 3:6] = np.eye(3), self.dt / 2 * np.eye(3)
        to_b = np.zeros_like(to_a)
        to_b[:, 6:] = np.hstack(list(self.rotations[corners]))
        pair = np.vstack([to_a, to_b])
        if kept == EXACT:
            middle = np.zeros((6, 6))
            middle[:3, 3:] = -cross_matrix(y)  # y . (a x b) = a . (b x y)
            middle[3:, :3] = middle[:3, 3:].T
        else:
            middle = sum(kept_part(i, y[i]) for i in range(3))
        return pair.T @ middle @ pair, np.concatenate([knot, forces])


def kept_part(i: int, y: float) -> np.ndarray:
    """Positive semidefinite part of the Hessian of y (a x b)_i in (a, b), (6, 6) (theorem 1)."""
    j, k = (i + 1) % 3, (i + 2) % 3
    sign, squares = (1.0 if y > 0 else -1.0), np.zeros((2, 6))
    squares[0, [j, 3 + k]] = 1.0, sign
    squares[1, [k, 3 + j]] = 1.0, -sign
    return abs(y) / 2 * squares.T @ squares
