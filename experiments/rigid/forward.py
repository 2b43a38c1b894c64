"""Forward problems: the same contact models with given torques and every coordinate free.

    M (v+ - v) = J^T z + K^T lambda + dt (P^T tau - h + f_ext),    K v+ = b

This is the reduced problem with A = M and no actuated coordinate. Bilateral constraints disappear
by projection: in the coordinates x = L^T v+ of M = L L^T they read W x = b with W = K L^-T, and
with Q an orthonormal basis of the rows of W

    base' = base - Q Q^T base + W^+ b,    Y' = Y - Y Q Q^T,    G' = Y' Y'^T

so the models see a problem of the usual form. With ``step`` it is a time-stepping simulator.

Source: viscous and no-slip paper, section III; first paper, eq. 34 to 37 without eq. 36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.frozen import sealed
from contact_id_controller.problem import How, Problem, build_problem
from contact_id_controller.robot import RobotModel
from contact_id_controller.solution import Solution
from experiments.rigid import constraints as bilateral

if TYPE_CHECKING:
    from typing_extensions import Unpack

RANK = 1e-9  # constraint rows below this singular value, relative to the largest, are redundant

_FREE_ROBOTS: WeakKeyDictionary[RobotModel, RobotModel] = WeakKeyDictionary()


@sealed
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class ForwardProblem(Problem):
    """A ``Problem`` whose nu = nv coordinates are all free (na = 0).

    Attributes besides those of ``Problem``, with m constraint rows:
        W: (m, nv) = K L^-T.  target: (m,) = b, m/s or rad/s.
        constraint_defect: largest part of b, m/s or rad/s, that contradictory rows leave unmet.
        free_base: (nv,) base without constraints.  free_Y: (3n, nv) Y without constraints.
    """

    W: NDArray[np.float64]
    target: NDArray[np.float64]
    constraint_defect: float
    free_base: NDArray[np.float64]
    free_Y: NDArray[np.float64]

    def __new__(cls, *_: Any, **__: Any) -> ForwardProblem:
        return object.__new__(cls)

    def __init__(self, problem: Problem, rows: ArrayLike | None = None, target: ArrayLike = ()):
        """Project rows (m, nv) v+ = target (m,) out of a problem; rows may be redundant.

        Raises:
            ConfigurationError: a problem that has rows already; give all of them at once.
            StateError: rows or target of another shape or not finite.
        """
        if isinstance(problem, ForwardProblem) and len(problem.target):
            raise ConfigurationError(
                f"the problem has {len(problem.target)} constraint rows already; give all at once"
            )
        base, Y = problem.base, problem.Y
        values = {field.name: getattr(problem, field.name) for field in fields(Problem)}
        values.update(free_base=base, free_Y=Y, constraint_defect=0.0)
        values.update(W=np.zeros((0, problem.robot.nv)), target=np.zeros(0))
        values.update(store=problem.store.copy(), _opened=None)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if rows is not None:
            K, b = np.asarray(rows, dtype=float), np.asarray(target, dtype=float)
            if K.shape != (*b.shape, problem.robot.nv) or b.ndim != 1 or not b.size:
                raise StateError(
                    f"constraint rows have shape {K.shape} and their target {b.shape}, must have "
                    f"(m, {problem.robot.nv}) and (m,), m above 0"
                )
            if not (np.isfinite(K).all() and np.isfinite(b).all()):
                raise StateError("rows or target of the constraints are not finite")
            W = solve_triangular(problem.L, K.T, lower=True).T
            left, size, right = np.linalg.svd(W, full_matrices=False)
            kept = size > RANK * size[0] if size[0] > 0.0 else np.zeros(len(size), dtype=bool)
            Q = right[kept]
            x = Q.T @ ((left[:, kept].T @ b) / size[kept])
            for name, value in (
                ("W", W),
                ("target", b),
                ("constraint_defect", float(np.abs(W @ x - b).max())),
            ):
                object.__setattr__(self, name, value)
            self.base[:] = base - Q.T @ (Q @ base) + x
            self.c[:] = problem.c + Y @ (self.base - base)
            self.Y[:] = Y - (Y @ Q.T) @ Q


def build_forward_problem(
    robot: RobotModel,
    q: ArrayLike,
    v: ArrayLike,
    torques: ArrayLike,
    contacts: ContactSet,
    period: float,
    *,
    constraints: Sequence[bilateral.Constraint] = (),
    constraint_gain: float = 0.2,
    external_forces: ArrayLike | None = None,
    **how: Unpack[How],
) -> ForwardProblem:
    """Build the problem of the motion under given torques in one period, for any model's ``solve``.

    The solution's ``velocity`` is v+, its ``torques`` are empty.

    Args:
        q, v: configuration (nq,) and velocity (nv,).
        torques: (na,) N·m in ``robot.joint_names`` order.
        contacts, period: as for ``build_problem``.
        constraints: ``Pin``, ``Weld``, ``Coupling``, or any object with their method ``rows``.
        constraint_gain: share in [0, 1] of a constraint's position error that is corrected within one period;
            velocity errors are corrected completely.
        external_forces: (nv,) generalized forces, N and N·m.
        how: as for ``build_problem``; but ``velocity_product_term``, which keeps dt Jdot v and dt Kdot v, is
            off by default: contacts and constraints then hold with constant Jacobians, as in time stepping of
            first order.

    Raises:
        StateError, ConfigurationError, UnknownFrameError, UnknownJointError: as for
            ``build_problem``; torques or constraint_gain of wrong shape or range.
    """
    if not 0.0 <= constraint_gain <= 1.0:
        raise ConfigurationError(f"constraint_gain must lie in [0, 1], got {constraint_gain}")
    torques = np.asarray(torques, dtype=float)
    if torques.shape != (robot.na,):
        raise StateError(f"torques must have shape ({robot.na},), got {torques.shape}")
    force = np.zeros(robot.nv)
    force[robot.actuated] = torques
    if external_forces is not None:
        external = np.asarray(external_forces, dtype=float)
        if external.shape != force.shape:
            raise StateError(f"external_forces must have shape ({robot.nv},), got {external.shape}")
        force += external
    with_drift = how.setdefault("velocity_product_term", False)
    problem = build_problem(
        free_robot(robot), q, v, np.zeros(0), contacts, period, external_forces=force, **how
    )
    if not constraints:
        return ForwardProblem(problem)
    rows = bilateral.stack(
        robot, np.asarray(q, dtype=float), np.asarray(v, dtype=float), constraints
    )
    target = -constraint_gain / period * rows.error
    if with_drift:
        target -= period * rows.drift
    return ForwardProblem(problem, rows.K, target)


def free_robot(robot: RobotModel) -> RobotModel:
    """The same multi-body without actuated coordinates; cached for each robot."""
    free = _FREE_ROBOTS.get(robot)
    if free is None:
        free = _FREE_ROBOTS[robot] = RobotModel(robot.model, [])
    return free


def constraint_forces(solution: Solution) -> NDArray[np.float64]:
    """Forces (m,) of the bilateral constraints, N or N·m along their rows.

    Forces of redundant rows are not unique; these have the least norm.

    Raises:
        ConfigurationError: the solution of another problem than ``build_forward_problem`` gives.
    """
    problem = solution.problem
    if not isinstance(problem, ForwardProblem):
        raise ConfigurationError(
            f"constraint forces need the solution of a ForwardProblem, got a {type(problem).__name__}"
        )
    if len(problem.target) == 0:
        return np.zeros(0)
    rest = (
        problem.L.T @ solution.velocity - problem.free_base - problem.free_Y.T @ solution.impulses
    )
    return np.asarray(np.linalg.lstsq(problem.W.T, rest, rcond=RANK)[0] / problem.period, float)


def step(solution: Solution, q: ArrayLike) -> NDArray[np.float64]:
    """Configuration (nq,) at the end of the period: q moved along v+ (semi-implicit Euler)."""
    problem = solution.problem
    after: NDArray[np.float64] = pin.integrate(
        problem.robot.model, np.asarray(q, dtype=float), solution.velocity * problem.period
    )
    return after
