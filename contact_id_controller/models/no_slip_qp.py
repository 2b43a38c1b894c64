"""Contact without slip and without complementarity (first paper, section 7.3: mu = infinity).

The two stages of coulomb/qp with unbounded friction at every touching contact. With the objective
``contact_velocity`` stage I has the solution of no_slip/lcp, but a contact without load still holds
tangentially.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.models.coulomb_qp import solve_cones
from contact_id_controller.models.coulomb_qp_one_stage import solve_regularised
from contact_id_controller.models.options import BACKENDS, OBJECTIVES
from contact_id_controller.models.steps.options import CONSISTENCIES, DISTRIBUTIONS, check_option
from contact_id_controller.models.steps.plan import TOUCHING_SPEED
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution


def unbounded_friction(problem: Problem) -> np.ndarray:
    """Infinite (n,) where a contact touches, zero where it is still apart."""
    return np.where(problem.gap_speed <= TOUCHING_SPEED, np.inf, 0.0)


def solve_no_slip_qp(
    problem: Problem,
    *,
    warm_start: Solution | None = None,
    objective: str = "contact_velocity",
    distribution: str = "least_torque",
    consistency: str = "project",
    backend: str = "kernel",
) -> Solution:
    """Contact forces and torques when nothing slips, both stages; options as for coulomb/qp."""
    check_option("objective", objective, OBJECTIVES)
    check_option("distribution", distribution, DISTRIBUTIONS)
    check_option("consistency", consistency, CONSISTENCIES)
    check_option("backend", backend, BACKENDS)
    return solve_cones(
        problem, unbounded_friction(problem), 4, objective, distribution, consistency, backend
    )


def solve_no_slip_qp_one_stage(
    problem: Problem,
    *,
    warm_start: Solution | None = None,
    consistency: str = "project",
    regularisation: float = 1e-2,
) -> Solution:
    """The regularised one-stage form; options as for coulomb/qp_one_stage.

    The default yields ten thousand times as much as with friction bounds: without them, feet that
    nearly depend on each other are held with enormous forces otherwise, and the robot falls.
    """
    return solve_regularised(
        problem, unbounded_friction(problem), 4, consistency, regularisation, warm_start
    )
