"""Momentum plans: the entry to the interior-point method, its result, and the refusal of infeasible plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contact_id_controller.exceptions import TrajectoryError, choices
from contact_id_controller.kernels.interior_point import method
from contact_id_controller.kernels.riccati import Stages
from contact_id_controller.planning.kinodynamic import centroidal, momentum_kernel
from contact_id_controller.planning.kinodynamic.feasibility import refuse_infeasible
from contact_id_controller.planning.kinodynamic.momentum_problem import (
    CONES,
    EXACT_CONE,
    MomentumProblem,
    centroidal_map,
)

HESSIANS = {
    "gauss_newton": momentum_kernel.GAUSS_NEWTON,
    "difference_of_psd": momentum_kernel.DIFFERENCE_OF_PSD,
    "exact": momentum_kernel.EXACT,
}
"""Curvature of the angular momentum in the cost: none, its positive part as in the paper, all."""

MAX_STEPS = 100
FRICTIONLESS = 1e-9
"""Below this coefficient a corner pushes along its normal only."""

FIRST_MULTIPLIER = 2e-4
"""Of the first iterate, relative to the weights, for coefficients of friction of 1."""

SLIPPERY = 1e-3
"""Least coefficient that the first multipliers look at; they grow with its inverse, squared."""

WARM_BLEND = 0.02
"""Share of the cold start in a warm one, which must be inside the cones."""

REASONS = {
    method.NOT_FINITE: "the iterates are no longer finite",
    method.NOT_CONVEX: "the reduced Hessian is not positive definite",
    method.NOT_CONVERGED: "too many steps",
}


class MomentumError(TrajectoryError):
    """The solver found no momentum plan; the message has the reason."""


@dataclass(frozen=True)
class MomentumPlan:
    """Solution of a momentum problem; index t + 1 is the state at the end of interval t.

    Attributes:
        problem: that was solved.
        times_s: (T + 1,).
        com: (T + 1, 3) m, world.  momentum: linear, (T + 1, 3) kg m/s.
        angular_momentum: about the centre of mass, (T + 1, 3) kg m2/s.
        forces: (T, n, 3) of the ground on the corners, world, N; 0 where not in contact.
        cost: at the solution.  steps: of the method.
        history: (steps + 1, 4), cost, defect of the dynamics, stationarity and gap before each step.
        iterate: unknowns and multipliers, for a warm start.
    """

    problem: MomentumProblem
    times_s: np.ndarray
    com: np.ndarray
    momentum: np.ndarray
    angular_momentum: np.ndarray
    forces: np.ndarray
    cost: float
    steps: int
    history: np.ndarray = field(repr=False)
    iterate: momentum_kernel.Iterate = field(repr=False)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity of the centre of mass, (T + 1, 3) m/s, world."""
        return self.momentum / self.problem.mass_kg

    def local_forces(self) -> np.ndarray:
        """Forces in ground axes, (T, n, 3) N; the third is normal."""
        return np.einsum("tnji,tnj->tni", self.problem.contacts.rotations, self.forces)

    def centres_of_pressure(self) -> np.ndarray:
        """Centre of pressure of each sole, (T, soles, 3) m, world; NaN without contact or load."""
        contacts, normal = self.problem.contacts, self.local_forces()[..., 2]
        soles = range(len(self.problem.contact_plan.soles))
        by_sole = contacts.sole_of_corner == np.array(soles)[:, None]
        load = normal @ by_sole.T.astype(float)
        moment = np.einsum("tn,tnj,sn->tsj", normal, contacts.points, by_sole.astype(float))
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = moment / load[..., None]
        return np.where(load[..., None] > 0, centre, np.nan)

    def residuals(self) -> dict[str, float]:
        """Largest violations, each in SI units.

        Dynamics: recomputed for each interval about the centre of mass; friction and normal: of Coulomb's cone,
        whatever cone was planned with.
        """
        problem, dt = self.problem, self.problem.contacts.time_step_s
        contacts, gravity, mass = problem.contacts, problem.gravity, problem.mass_kg
        total = self.forces.sum(1)
        acceleration = total / mass + gravity
        before, after = slice(None, -1), slice(1, None)
        velocity = self.velocity[before]
        com = self.com[before] + dt * velocity + dt**2 / 2 * acceleration
        path = dt * self.com[before] + dt**2 / 2 * velocity + dt**3 / 6 * acceleration
        torque = np.cross(contacts.points, self.forces).sum(1)
        spin = self.angular_momentum[before] + dt * torque - np.cross(path, total)
        local = self.local_forces()
        slip = np.linalg.norm(local[..., :2], axis=-1) - contacts.friction * local[..., 2]
        defects = {
            "com_m": self.com[after] - com,
            "momentum_kg_m_s": self.momentum[after]
            - self.momentum[before]
            - dt * mass * acceleration,
            "angular_momentum_kg_m2_s": self.angular_momentum[after] - spin,
        }
        return {
            **{name: float(np.abs(defect).max(initial=0.0)) for name, defect in defects.items()},
            "friction_n": float(np.maximum(slip, 0.0).max(initial=0.0)),
            "normal_n": float(np.maximum(-local[..., 2], 0.0).max(initial=0.0)),
            "aloft_n": float(np.abs(self.forces[~contacts.standing]).max(initial=0.0)),
        }


def solve_momentum(
    problem: MomentumProblem,
    *,
    hessian: str = "gauss_newton",
    warm_start: MomentumPlan | None = None,
    max_steps: int = MAX_STEPS,
) -> MomentumPlan:
    """Solve a momentum problem.

    The dynamics are linear and the cones convex; only the angular momentum in the cost is not convex. A
    solution is a stationary point to 1e-7 and satisfies the dynamics to rounding.

    Args:
        problem: from ``build_momentum_problem``.
        hessian: one of ``HESSIANS``; where the reduced Hessian of the others is not positive
            definite, that step is Gauss-Newton's.
        warm_start: a plan over the same contacts, for instance of the pass before.
        max_steps: of the interior point method.

    Raises:
        InfeasiblePlanError: no motion follows the contact plan; the message names phase, foot and limit.
        MomentumError: not solved, or an option that does not exist.

    Source: Mehrotra (1992), predictor and corrector; Nesterov and Todd's scaling as in Vandenberghe,
    "The CVXOPT linear and quadratic cone program solvers" (2010).
    """
    plan = solve_unjudged(problem, hessian=hessian, warm_start=warm_start, max_steps=max_steps)
    refuse_infeasible(plan)
    return plan


def solve_unjudged(
    problem: MomentumProblem,
    *,
    hessian: str = "gauss_newton",
    warm_start: MomentumPlan | None = None,
    max_steps: int = MAX_STEPS,
) -> MomentumPlan:
    """``solve_momentum`` without the check of feasibility, for intermediate plans of a search."""
    if hessian not in HESSIANS:
        raise MomentumError(f"hessian {hessian!r} does not exist; there are {choices(HESSIANS)}")
    program, standing = program_of(problem, hessian)
    iterate = first_iterate(problem, program)
    if warm_start is not None:
        _take(warm_start, problem, program, iterate)
    work = momentum_kernel.work_of(program, max_steps)
    status, steps = momentum_kernel.solve(program, iterate, work, max_steps)
    plan = _plan(problem, program, standing, iterate, work.log[: steps + 1])
    if status != method.SOLVED:
        last = ", ".join(f"{value:.1e}" for value in plan.history[-1])
        raise MomentumError(
            f"no momentum plan after {steps} steps: {REASONS[status]} (cost, dynamics, stationarity, "
            f"gap: {last})"
        )
    return plan


def multipliers(plan: MomentumPlan) -> np.ndarray:
    """Multipliers of the dynamics that lead to each knot, (T + 1, 9): derivative of the cost by the state x.

    They make the Lagrangian stationary in every state for the given forces.
    """
    problem, (program, _) = plan.problem, program_of(plan.problem, "gauss_newton")
    x, origins = plan.iterate.x, problem.origins
    arm, velocity, spin = x[:, :3], x[:, 3:6], centroidal.about_com(x, origins)[2]
    error = program.weight * (np.concatenate([arm, velocity, spin], axis=1) - program.reference)
    found = error.copy()  # k = k_o - arm x v: dk pulls arm by v x, and v by - arm x
    found[:, :3] -= np.cross(velocity, error[:, 6:])
    found[:, 3:6] += np.cross(arm, error[:, 6:])
    for t in range(problem.knots - 1, -1, -1):
        found[t] += program.stages.A[t].T @ found[t + 1]
    return found


def program_of(problem: MomentumProblem, hessian: str) -> tuple[Any, np.ndarray]:
    """Convert the problem to the kernel's arrays; also (T, n) bool: corners in contact, whose forces they hold."""
    contacts, weights, dt = problem.contacts, problem.weights, problem.contacts.time_step_s
    moves, standing = centroidal_map(problem), contacts.standing
    maps = centroidal.wrench_maps(contacts.points, contacts.rotations, problem.origins)[standing]
    friction = contacts.friction[standing] * CONES[problem.cone]
    smooth = friction < FRICTIONLESS
    maps[smooth, :, :2] = 0.0  # its tangential parts push nothing, and rest at zero
    running = dt * np.concatenate([weights.com, weights.velocity, weights.spin])
    weight = np.tile(running, (problem.knots + 1, 1))
    weight[-1] = weights.last
    reference, mass = problem.reference, problem.mass_kg
    goal = np.concatenate(
        [
            reference.com - problem.origins,
            reference.momentum / mass,
            reference.angular_momentum / mass,
        ],
        axis=1,
    )
    stages = Stages(
        moves.A,
        moves.E,
        np.concatenate([[0], np.cumsum(standing.sum(1))]),
        np.ascontiguousarray(maps),
    )
    program = momentum_kernel.Program(
        stages,
        moves.b,
        goal,
        weight,
        problem.nominal_forces()[standing],
        dt * np.array(weights.force, dtype=float),
        np.where(smooth, 1.0, friction),
        momentum_kernel.CONE if problem.cone == EXACT_CONE else momentum_kernel.PYRAMID,
        HESSIANS[hessian],
    )
    return program, standing


def first_iterate(problem: MomentumProblem, program: Any) -> momentum_kernel.Iterate:
    """Initial iterate: nominal forces, the reference's positions, and small multipliers."""
    start, mass = problem.start, problem.mass_kg
    x = np.zeros((problem.knots + 1, centroidal.STATE))
    x[0] = centroidal.about_fixed_points(
        start[0], start[1] / mass, start[2] / mass, problem.origins[0]
    )
    u = program.nominal.copy()
    z = np.zeros((len(u), momentum_kernel.ROWS))
    least = problem.contacts.friction[problem.contacts.standing].min(initial=1.0)
    first = FIRST_MULTIPLIER * program.weight[0].max() / (max(least, SLIPPERY) * program.friction)
    if program.cone == momentum_kernel.CONE:
        z[:, 0] = 2 * first
    else:
        z[:] = first[:, None]
    return momentum_kernel.Iterate(x, u, np.zeros_like(z), z)


def _take(plan: Any, problem: MomentumProblem, program: Any, iterate: Any) -> None:
    """Copy another plan's iterate into ``iterate``, moved off the boundary of the cones."""
    old = plan.iterate
    if (
        old.u.shape != iterate.u.shape
        or old.x.shape != iterate.x.shape
        or plan.problem.cone != problem.cone
    ):
        raise MomentumError(
            f"a warm start needs the same contacts and cone: {len(old.u)} forces ({plan.problem.cone}) "
            f"of {len(old.x) - 1} intervals are not {len(iterate.u)} ({problem.cone}) of {problem.knots}"
        )
    physical = centroidal.about_com(old.x, plan.problem.origins)
    iterate.x[1:] = centroidal.about_fixed_points(*physical, problem.origins)[1:]
    iterate.u[:] = (1 - WARM_BLEND) * old.u + WARM_BLEND * program.nominal
    iterate.z[:] = WARM_BLEND * iterate.z + (1 - WARM_BLEND) * old.z


def _plan(
    problem: MomentumProblem, program: Any, standing: np.ndarray, iterate: Any, log: np.ndarray
) -> MomentumPlan:
    """Convert the solution to SI units and world frame: CoM, momenta about it, forces (T, n, 3) N."""
    x, mass = iterate.x, problem.mass_kg
    com, velocity, spin = centroidal.about_com(x, problem.origins)
    forces = np.zeros((*standing.shape, 3))
    rotations = problem.contacts.rotations[standing]
    forces[standing] = problem.weight_n * np.einsum("mij,mj->mi", rotations, iterate.u)
    return MomentumPlan(
        problem,
        problem.contacts.times_s,
        com,
        mass * velocity,
        mass * spin,
        forces,
        float(log[-1, 0]),
        len(log) - 1,
        log.copy(),
        iterate,
    )
