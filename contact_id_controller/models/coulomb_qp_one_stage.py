"""The complementarity-free model in one stage, with a regularised Hessian (first paper, section 6.1).

    min 1/2 z^T (G + eps I) z + (c + gap)^T z   over the friction pyramids

is strictly convex: its forces are unique, so no second stage is needed, but their torques are not minimised,
and the contacts yield by eps z. With u = Y^T z it becomes a smooth problem in nu
variables, min 1/2 |u|^2 + 1/(2 eps) |P_K(-(Y u + c + gap))|^2, solved by the semismooth Newton method of
``cone_newton``, warm started from the last period's u.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.exceptions import UnknownModelError
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.steps.consistency import project_plan
from contact_id_controller.models.steps.finish import finish, outcome
from contact_id_controller.models.steps.polygon_friction import polygon_friction
from contact_id_controller.models.steps.reduced import answer_room, begin, matrices
from contact_id_controller.models.steps.relaxation import BALANCED, elastic, mean_diagonal
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

NOT_CONVERGED = 2


def solve_coulomb_qp_one_stage(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces and torques by one regularised program.

    Args:
        warm_start: the last period's solution; its motion is the first guess.
        options: regularisation: eps relative to the mean diagonal of G, in (0, 1].
            edges, polygon, consistency: as for coulomb/qp.

    Load shares are ignored, as there is no stage II.

    A contradictory plan has a solution here too: the contacts yield, with large forces.

    Source: first paper, section 6.1; Todorov (2014).
    """
    mu = polygon_friction(problem.contacts.friction, options.edges, options.polygon)
    return solve_regularised(problem, mu, options.edges, options, warm_start)


def solve_regularised(
    problem: Problem, mu: np.ndarray, edges: int, options: Chosen, warm_start: Solution | None
) -> Solution:
    """Solve the one-stage program for friction coefficients mu (n,) of the pyramids' edges.

    Raises:
        UnknownModelError: a regularisation outside its range.
    """
    regularisation = options.regularisation
    if not 0.0 < regularisation <= 1.0:
        raise UnknownModelError(f"regularisation must lie in (0, 1], got {regularisation}")
    room = answer_room(problem)
    x = np.zeros(problem.robot.nu)
    if (
        warm_start is not None
        and warm_start.memory is not None
        and len(warm_start.memory) == len(x)
    ):
        x[:] = warm_start.memory
    code, steps, contradiction = _solve(
        *matrices(problem),
        mu,
        edges,
        options.consistency == "project",
        regularisation,
        x,
        room,
    )
    return outcome(problem, code, steps, contradiction, room, x)


@kernel
def _solve(store, actuated, unactuated, mu, edges, project, regularisation, x, room):
    """Solve the regularised program; x (nu,): its motion, initial guess in, solution out.

    As ``coulomb_qp._two_stages``.
    """
    reduced = open_store(store, actuated, unactuated)
    answer, mu = begin(reduced, room), effective_friction(mu, np.inf)
    contradiction = 0.0
    steps = 0
    if reduced.gap_speed.shape[0]:
        if project:
            contradiction = project_plan(reduced, mu, True, answer.delta, answer.moved)
        eps = regularisation * mean_diagonal(reduced.Y)
        for k in range(x.shape[0]):
            x[k] /= eps
        steps = elastic(
            reduced.Y,
            answer.moved,
            reduced.gap_speed,
            mu,
            edges,
            eps,
            BALANCED,
            x,
            answer.z,
        )
        for k in range(x.shape[0]):
            x[k] *= eps
    finish(reduced, answer)
    return 0 if steps >= 0 else NOT_CONVERGED, abs(steps), contradiction
