"""Contact without slip and without complementarity (first paper, section 7.3: mu = infinity).

The two stages of coulomb/qp with unbounded friction at every touching contact. Stage I has the solution
of no_slip/lcp, but a contact without load still holds tangentially.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.coulomb_qp import solve_cones, stages_of
from contact_id_controller.models.coulomb_qp_one_stage import solve_regularised
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

EDGES = 4  # of pyramids of which none has a bound


def unbounded_friction(problem: Problem) -> np.ndarray:
    """Friction (n,): infinite where a contact touches, zero where it has a gap."""
    return np.where(problem.gap_speed <= TOUCHING_SPEED, np.inf, 0.0)


def solve_no_slip_qp(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces and torques when nothing slips, both stages; options as for coulomb/qp."""
    stages = stages_of(EDGES, options.distribution, options.consistency, "parting")
    return solve_cones(problem, unbounded_friction(problem), stages)


def solve_no_slip_qp_one_stage(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """The regularised one-stage form without slip; options as for coulomb/qp_one_stage.

    The default compliance is ten thousand times that with friction bounds: without them, nearly dependent feet
    would otherwise get enormous forces, and the robot falls.
    """
    return solve_regularised(problem, unbounded_friction(problem), EDGES, options, warm_start)
