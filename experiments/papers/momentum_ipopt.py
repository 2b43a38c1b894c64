"""IPOPT (CasADi, PyPI ``casadi``) on the momentum problem as the paper poses it: judge and peer.

The states are CoM, velocity and angular momentum about the CoM, and k' = sum (p_i - r) x f_i is
bilinear: a non-convex program in 9 states a knot and 3 forces a corner, built from footholds and
forces alone. Nothing of ``planning.kinodynamic``'s map, normalisation or solver is used, except for
the weights of the cost.
"""

from __future__ import annotations

import importlib.util
import time
from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import MissingExtraError
from contact_id_controller.planning.kinodynamic.momentum_problem import (
    EXACT_CONE,
    OUTER_PYRAMID,
    MomentumProblem,
)


class IpoptPlan(NamedTuple):
    """What IPOPT found.

    com, velocity (T + 1, 3), spin: angular momentum / mass (T + 1, 3), forces (m, 3) of the standing
    corners in ground axes, divided by the weight; cost as in ``MomentumPlan``; CPU times.
    """

    solved: bool
    cost: float
    iterations: int
    solve_s: float
    build_s: float
    com: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray
    forces: np.ndarray


def available() -> bool:
    """Whether CasADi is installed."""
    return importlib.util.find_spec("casadi") is not None


def solve(problem: MomentumProblem, *, tolerance: float = 1e-8) -> IpoptPlan:
    """Solve with IPOPT and MUMPS, exact Hessian, started at the reference.

    Raises:
        MissingExtraError: CasADi is not installed.
    """
    if not available():
        raise MissingExtraError("IPOPT needs the extra 'test': pip install casadi")
    import casadi as ca

    begin = time.process_time()
    program, start = _program(ca, problem)
    options = {
        "ipopt": {"print_level": 0, "tol": tolerance, "max_iter": 500, "sb": "yes"},
        "print_time": 0,
    }
    solver = ca.nlpsol("momentum", "ipopt", program.nlp, options)
    built = time.process_time()
    found = solver(x0=start, lbg=program.lower, ubg=program.upper)
    solve_s = time.process_time() - built
    states, forces = ca.Function("unpacked", [program.nlp["x"]], [program.states, program.forces])(
        found["x"]
    )
    states, status = np.array(states).T, solver.stats()
    return IpoptPlan(
        bool(status["success"]),
        float(found["f"]),
        int(status["iter_count"]),
        solve_s,
        built - begin,
        states[:, :3],
        states[:, 3:6],
        states[:, 6:],
        np.array(forces).T,
    )


class _Program(NamedTuple):
    nlp: dict
    lower: np.ndarray
    upper: np.ndarray
    states: object
    forces: object


def _program(ca, problem: MomentumProblem) -> tuple[_Program, np.ndarray]:
    """The program of all intervals, and where to start."""
    contacts, gravity, weights = problem.contacts, problem.gravity, problem.weights
    mass, reference = problem.mass_kg, problem.reference
    goal = np.hstack([reference.com, reference.momentum / mass, reference.angular_momentum / mass])
    running = contacts.time_step_s * np.hstack([weights.com, weights.velocity, weights.spin])
    force_weight = contacts.time_step_s * np.array(weights.force)
    state = ca.SX(np.hstack([problem.start[0], *(problem.start[1:] / mass)]))
    cost = _squares(ca, running, state - goal[0])
    unknowns, start, rows, states, forces = [], [], _Rows(ca), [state], []
    shares = problem.nominal_forces()
    for t in range(problem.knots):
        standing = np.flatnonzero(contacts.standing[t])
        total, torque = ca.SX.zeros(3), ca.SX.zeros(3)
        for corner in standing:
            nominal = shares[t, corner]
            force = ca.SX.sym(f"f_{t}_{corner}", 3)
            unknowns.append(force)
            forces.append(force)
            start.append(nominal)
            world = ca.mtimes(ca.DM(contacts.rotations[t, corner]), force)
            total += world
            torque += ca.cross(ca.DM(contacts.points[t, corner]), world)
            rows.inside(force, contacts.friction[t, corner], problem.cone)
            cost += _squares(ca, force_weight, force - nominal)
        after = ca.SX.sym(f"x_{t + 1}", 9)
        unknowns.append(after)
        start.append(goal[t + 1])
        rows.equal(after - _next(ca, state, total, torque, contacts.time_step_s, gravity))
        last = t == problem.knots - 1
        cost += _squares(ca, weights.last if last else running, after - goal[t + 1])
        state = after
        states.append(after)
    program = _Program(
        {"x": ca.vertcat(*unknowns), "f": cost, "g": ca.vertcat(*rows.rows)},
        np.hstack(rows.lower),
        np.hstack(rows.upper),
        ca.horzcat(*states),
        ca.horzcat(*forces),
    )
    return program, np.hstack(start)


def _next(ca, state, total, torque, dt, gravity):
    """Forces held over dt: the centre of mass runs along a parabola, under the forces' line of action."""
    g = float(np.linalg.norm(gravity))
    com, velocity, spin = state[:3], state[3:6], state[6:]
    acceleration = g * total + ca.DM(gravity)
    path = dt * com + dt**2 / 2 * velocity + dt**3 / 6 * acceleration
    return ca.vertcat(
        com + dt * velocity + dt**2 / 2 * acceleration,
        velocity + dt * acceleration,
        spin + g * (dt * torque - ca.cross(path, total)),
    )


def _squares(ca, weight, error):
    return 0.5 * ca.dot(ca.DM(np.array(weight, dtype=float)), error * error)


class _Rows:
    """Constraints with their bounds."""

    def __init__(self, ca) -> None:
        self.ca, self.rows, self.lower, self.upper = ca, [], [], []

    def equal(self, vector) -> None:
        self.rows.append(vector)
        self.lower.append(np.zeros(9))
        self.upper.append(np.zeros(9))

    def inside(self, force, friction, cone) -> None:
        """Coulomb's cone, or the pyramid inside or around it."""
        if cone == EXACT_CONE:
            tangential = force[0] * force[0] + force[1] * force[1]
            rows = [force[2], friction**2 * force[2] * force[2] - tangential]
        else:
            limit = (friction if cone == OUTER_PYRAMID else friction / np.sqrt(2.0)) * force[2]
            rows = [limit - force[0], limit + force[0], limit - force[1], limit + force[1]]
        self.rows += rows
        self.lower.append(np.zeros(len(rows)))
        self.upper.append(np.full(len(rows), np.inf))
