"""The solution of a contact problem, with its residuals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.frozen import draft_of, parts, sealed
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.kernels.views import dense
from contact_id_controller.kernels.world_forces import world_forces
from contact_id_controller.problem import Problem
from contact_id_controller.robot import vector

SOLVED = "solved"
INCONSISTENT = "inconsistent"  # no motion satisfies the contacts; forces are a fallback
RELAXED = "relaxed"  # physics and limits hold; plan or contacts were given up as far as need be
UNHOLDABLE = "unholdable"  # no set of contacts holds under load alone; some hold without
NOT_CONVERGED = "not_converged"  # the solver gave up; forces are a fallback
STATUSES = (SOLVED, RELAXED, INCONSISTENT, UNHOLDABLE, NOT_CONVERGED)


@lru_cache(maxsize=256)
def answer_places(n: int, na: int, nv: int) -> tuple[slice, ...]:
    """Slices of a compiled entry's output array for n contacts.

    ``attainable`` (3n,), ``impulses`` (3n,), ``joint_velocity_change`` (na,), ``torques`` (na,), ``velocity`` (nv,).
    """
    ends = np.cumsum([0, 3 * n, 3 * n, na, na, nv]).tolist()
    return tuple(map(slice, ends[:-1], ends[1:]))


def _vector(name: str, values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Convert to (size,) numbers; compiled code reads them without a look at their shape."""
    array = dense(values)
    if array.shape != (size,):
        raise ContactIdError(f"{name} of a solution must have shape ({size},), got {array.shape}")
    return array


class Certificate(NamedTuple):
    """Quality of an optimum: the objective, its duality gap and the largest KKT residual.

    objective: u^T W u of the program that was solved last, W when W is R/Kt^2. gap: relative to
    it. residual: dimensionless, in the solver's own units.
    """

    objective: float
    gap: float
    residual: float


@sealed
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Solution:
    """Contact forces and torques of one period; immutable.

    It may be shared between threads, copied and pickled. Its torques, impulses and velocity are as ``dense`` gives them.

    Raises:
        ContactIdError: torques, impulses or velocity of another shape than stated.

    Attributes:
        problem: the problem that was solved.
        status: one of ``STATUSES``.
        torques: (na,) N·m, in ``robot.joint_names`` order.
        impulses: (3n,) N·s, (normal, tangent 1, tangent 2) of each contact.
        velocity: (nv,) generalized velocity at the period's end.
        joint_velocity_change: (na,) rad/s by which a contradictory plan was changed, or None.
        contradiction_m_s: largest contact velocity removed by that change, or by which contacts were relaxed.
        iterations: steps of the solvers.
        attainable: (3n,) m/s, ``problem.c`` after that change and less what no motion can give;
            None if nothing was changed.
        disturbance: (na,) rad/s2, change of the joint acceleration because forces and torques have
            limits; None if the model has none.
        certificate: of the optimum, or None.
        memory: data for the model's warm start, one row a contact; None if it needs none.
    """

    problem: Problem
    status: str
    torques: NDArray[np.float64]
    impulses: NDArray[np.float64]
    velocity: NDArray[np.float64]
    iterations: int
    joint_velocity_change: NDArray[np.float64] | None
    contradiction_m_s: float
    memory: Any
    attainable: NDArray[np.float64] | None
    disturbance: NDArray[np.float64] | None
    certificate: Certificate | None
    _forces: NDArray[np.float64] | None

    def __new__(
        cls,
        problem: Problem,
        status: str,
        torques: NDArray[np.float64],
        impulses: NDArray[np.float64],
        velocity: NDArray[np.float64],
        iterations: int = 0,
        joint_velocity_change: NDArray[np.float64] | None = None,
        contradiction_m_s: float = 0.0,
        memory: Any = None,
        attainable: NDArray[np.float64] | None = None,
        disturbance: NDArray[np.float64] | None = None,
        certificate: Certificate | None = None,
    ) -> Solution:
        solution: Solution = _Draft()
        draft: Any = solution
        draft.problem, draft.status = problem, status
        robot = problem.robot
        draft.torques = _vector("torques", torques, robot.na)
        draft.impulses = _vector("impulses", impulses, 3 * len(problem))
        draft.velocity, draft.iterations = _vector("velocity", velocity, robot.nv), iterations
        draft.joint_velocity_change = joint_velocity_change
        draft.contradiction_m_s = contradiction_m_s
        draft.memory, draft.attainable = memory, attainable
        draft.disturbance, draft.certificate = disturbance, certificate
        draft._forces = None
        draft.__class__ = cls
        return solution

    @classmethod
    def of_room(
        cls,
        problem: Problem,
        status: str,
        iterations: int,
        contradiction_m_s: float,
        room: NDArray[np.float64],
        memory: Any = None,
    ) -> Solution:
        """Make the solution from the array that a compiled entry has written (`answer_places`)."""
        robot = problem.robot
        moved, z, delta, torques, velocity = answer_places(
            len(problem.contacts.points), robot.na, robot.nv
        )
        solution: Solution = _Draft()
        draft: Any = solution
        draft.problem, draft.status, draft.iterations = problem, status, iterations
        draft.torques, draft.impulses, draft.velocity = room[torques], room[z], room[velocity]
        draft.joint_velocity_change, draft.attainable = room[delta], room[moved]
        draft.contradiction_m_s, draft.memory = contradiction_m_s, memory
        draft.disturbance = draft.certificate = draft._forces = None
        draft.__class__ = cls
        return solution

    def __reduce__(self) -> tuple[Any, ...]:
        return parts(self)

    @property
    def forces(self) -> NDArray[np.float64]:
        """Forces (n, 3), N, world frame, on the robot."""
        forces = self._forces
        if forces is None:
            problem, robot = self.problem, self.problem.robot
            forces = np.empty((len(problem), 3))
            matrices = problem.store, robot.actuated, robot.unactuated
            world_forces(*matrices, dense(self.impulses), forces)
            object.__setattr__(self, "_forces", forces)  # computed once, in any thread
        return forces

    @property
    def contact_velocity(self) -> NDArray[np.float64]:
        """Contact velocities (n, 3), m/s, (normal, tangents): J v+ less the share of the present one that may stay.

        At contradictory contacts the part that no motion can give is left out.
        """
        problem = self.problem
        c = problem.c if self.attainable is None else self.attainable
        velocity: NDArray[np.float64] = problem.Y @ (problem.Y.T @ self.impulses) + c
        return velocity.reshape(-1, 3)

    def residuals(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> dict[str, float]:
        """Violations of the contact law and dynamics, in SI units; all zero for an exact solution.

        cone_n: largest force outside its (circular) friction cone; adhesion_n: largest pulling
        force; gap_m_s: largest closing speed beyond what the gap allows; complementarity_w: largest
        normal force times separation speed; given_way_m_s: largest contact velocity that the (changed) plan
        requires and no motion gives, which ``contact_velocity`` leaves out; with the state ``q, v`` also dynamics: the
        largest entry of M (v+ - v)/dt + h - J^T f - P^T tau - f_ext, by Pinocchio's own recursions
        (N·m).
        """
        problem, n = self.problem, len(self.problem)
        result = dict.fromkeys(
            ("cone_n", "adhesion_n", "gap_m_s", "complementarity_w", "given_way_m_s"), 0.0
        )
        if n:
            f = self.impulses.reshape(-1, 3) / problem.period
            slip = np.hypot(f[:, 1], f[:, 2])
            mu = problem.contacts.friction
            bounded = np.where(mu < UNBOUNDED_FRICTION, mu, 0.0)
            bound = np.where(mu < UNBOUNDED_FRICTION, bounded * np.maximum(f[:, 0], 0), np.inf)
            parting = self.contact_velocity[:, 0] + problem.gap_speed
            result["cone_n"] = float(np.maximum(slip - bound, 0.0).max())
            result["adhesion_n"] = float(np.maximum(-f[:, 0], 0.0).max())
            result["gap_m_s"] = float(np.maximum(-parting, 0.0).max())
            result["complementarity_w"] = float(np.abs(f[:, 0] * parting).max())
            result["given_way_m_s"] = self._given_way_m_s()
        if q is not None and v is not None:
            result["dynamics"] = self.dynamics_defect(q, v)
        return result

    def _given_way_m_s(self) -> float:
        problem, change = self.problem, self.joint_velocity_change
        if self.attainable is None:
            return 0.0
        planned = problem.c if change is None else problem.c - problem.period * (problem.T @ change)
        return float(np.abs(self.attainable - planned).max())

    def dynamics_defect(self, q: ArrayLike, v: ArrayLike) -> float:
        """Largest entry of M (v+ - v)/dt + h - J^T f - P^T tau - f_ext (N or N·m), by Pinocchio."""
        problem = self.problem
        robot, contacts = problem.robot, problem.contacts
        q, v = vector("q", q, robot.nq), vector("v", v, robot.nv)
        acceleration = (self.velocity - v) / problem.period
        data = robot.model.createData()
        rest = pin.rnea(robot.model, data, q, v, acceleration)
        pin.computeJointJacobians(robot.model, data, q)
        pin.updateFramePlacements(robot.model, data)
        for i, force in enumerate(self.forces):
            for name, sign in (
                (contacts.frames[i], 1.0),
                (contacts.against[i] if contacts.against else None, -1.0),
            ):
                if name is None:
                    continue
                frame = robot.frame_id(name)
                jacobian = pin.getFrameJacobian(robot.model, data, frame, pin.LOCAL_WORLD_ALIGNED)
                arm = contacts.points[i] - data.oMf[frame].translation
                wrench = np.concatenate([force, np.cross(arm, force)])
                rest = rest - sign * jacobian.T @ wrench
        rest[robot.actuated] -= self.torques
        if problem.external_forces is not None:
            rest -= problem.external_forces
        return float(np.abs(rest).max())


_Draft = draft_of(Solution)
