"""Inverse dynamics without a contact model: references for the comparison of contact models."""

from __future__ import annotations

import numpy as np

from contact_id_controller.exceptions import ContactSetError
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.steps.finish import finish_answer
from contact_id_controller.models.steps.reduced import Answer
from contact_id_controller.problem import Problem
from contact_id_controller.solution import SOLVED, Solution


def solve_no_contact(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Torques for the desired acceleration without contacts; all forces zero."""
    return _answer(problem, np.zeros(3 * len(problem)))


def solve_sensed(problem: Problem, options: Chosen, warm_start: Solution | None = None) -> Solution:
    """Torques for the desired acceleration under measured contact forces ``options.forces`` (n, 3) N, world frame.

    The forces are used as measured, with their delay: nothing is predicted (first paper, section 7.3,
    the controllers ID(t_i-1) and ID(t_i-2)). None: no force was measured yet.

    Raises:
        ContactSetError: forces of another shape or not finite.
    """
    z = np.zeros(3 * len(problem))
    if options.forces is not None:
        forces = np.asarray(options.forces, dtype=float)
        if forces.shape != (len(problem), 3) or not np.isfinite(forces).all():
            raise ContactSetError(
                f"measured forces must be {len(problem)} x 3 finite numbers, got {forces.tolist()}"
            )
        z[:] = problem.period * np.einsum("idk,ik->id", problem.frames, forces).ravel()
    return _answer(problem, z)


def _answer(problem: Problem, z: np.ndarray) -> Solution:
    robot = problem.robot
    torques, velocity, still = np.empty(robot.na), np.empty(robot.nv), np.zeros(robot.na)
    finish_answer(problem, Answer(z, z, still, torques, velocity))  # nothing is moved
    return Solution(problem, SOLVED, torques, z, velocity)
