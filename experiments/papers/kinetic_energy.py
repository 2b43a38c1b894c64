"""coulomb/qp_energy, the paper's literal stage I: least kinetic energy at the period's end (first paper, eq. 69, 98).

    min 1/2 v+^T M v+   subject to   z = sum of non-negative multiples of pyramid edges,  N v+ >= -gap/dt

In reduced coordinates the energy is 1/2 |u + m|^2 with m = L^T p + L^-1 B qd_des, the unactuated
momentum without contact: the objective stops the whole robot, not its contacts. Here so that the
paper's figures can be reproduced; not for control. ``solve`` and the controller know the model only
within ``registered``.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import quadprog

from contact_id_controller.kernels.pyramid import STICKING, effective_friction
from contact_id_controller.models import ROWS, ContactModel, Normal, Tangential, register
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.options import DISTRIBUTION, EDGES, POLYGON
from contact_id_controller.models.steps.finish import finish_answer
from contact_id_controller.models.steps.force_distribution import distribute
from contact_id_controller.models.steps.polygon_friction import polygon_friction
from contact_id_controller.models.steps.reduced import Cones, Face, empty_answer
from contact_id_controller.problem import Problem
from contact_id_controller.solution import INCONSISTENT, SOLVED, Solution
from experiments.benchmark.quadprog_two_stages import edge_matrix

REGULARISATION = 1e-10  # of the singular Hessian, relative to its trace


def minimise_kinetic_energy(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Solve eq. 69 by quadprog in the edges' multipliers, then distribute the forces.

    Args:
        options: edges, polygon, distribution: as of coulomb/qp.  warm_start: not needed.
    """
    n, edges, distribution = len(problem), options.edges, options.distribution
    mu = polygon_friction(problem.contacts.friction, edges, options.polygon)
    mu = effective_friction(mu, np.inf)
    z, status = np.zeros(3 * n), SOLVED
    if n:
        E = edge_matrix(mu, edges)
        Ye = problem.Y.T @ E
        momentum = problem.base + problem.C @ problem.desired_velocity
        H = Ye.T @ Ye
        H += REGULARISATION * np.trace(H) * np.eye(len(H))
        normals = problem.Y[::3] @ Ye
        rows = np.vstack([np.eye(len(H)), normals])
        bounds = np.concatenate([np.zeros(len(H)), -(problem.c[::3] + problem.gap_speed)])
        try:
            weights = quadprog.solve_qp(H, -Ye.T @ momentum, np.ascontiguousarray(rows.T), bounds)[
                0
            ]
            z = E @ np.maximum(weights, 0.0)
        except ValueError:  # quadprog's only way to say that no point satisfies the constraints
            status = INCONSISTENT
        if status == SOLVED and distribution != "none":
            face = Face(np.full(n, STICKING), np.zeros(n), np.zeros(n))
            cones = Cones(mu, edges, problem.contacts.load_share)
            weight = 1.0 if distribution == "least_torque" else 0.0
            u = problem.Y.T @ z
            distribute(problem.T, problem.torque_offset, problem.Y, u, face, cones, weight, z)
    answer = empty_answer(problem)._replace(z=z)
    finish_answer(problem, answer)
    return Solution(problem, status, answer.torques, z, answer.velocity)


MODEL = ContactModel(
    "coulomb",
    "qp_energy",
    "only to reproduce the first paper: it brakes a walking robot",
    # Of this law only what keeps bodies apart holds; the controller treats contacts as with coulomb/qp.
    Normal.COMPLEMENTARITY,
    Tangential.COULOMB,
    options=(EDGES, POLYGON, DISTRIBUTION),
    home=minimise_kinetic_energy,
)

_lock, _blocks = threading.Lock(), 0  # runs on a cluster are threads of one process


@contextlib.contextmanager
def registered() -> Iterator[ContactModel]:
    """``solve`` and the controller know coulomb/qp_energy as long as the block lasts; blocks may nest."""
    global _blocks
    with _lock:
        if _blocks == 0:
            register(MODEL)
        _blocks += 1
    try:
        yield MODEL
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0:
                del ROWS[MODEL.pair]
