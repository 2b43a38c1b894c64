"""Coulomb friction on pyramids, by two small quadratic programs (first paper, section 6) where nothing slides.

Stage I, on the reduced problem with the friction pyramid's edges e_j as generators of the forces:

    min 1/2 |u|^2   subject to   e_j^T (Y u + c + gap) >= 0   for every edge of every contact

whose multipliers are the edges' impulses: the contact model of eq. 75 as a nearest-point problem
in nu dimensions, however many contacts there are; no regularisation, no n x n matrix.

Its motion lets a contact that slides part at mu |w_T|, which the others pay for: more the more friction there
is, without bound. So where a loaded contact slides or parts, the complementarity problem of the same
pyramids takes stage I's place (``steps.slip``), in which what slides stays on the ground; elsewhere stage I's motion
solves that problem too. Stage II: ``steps.forces``.
"""

from __future__ import annotations

import importlib

import numpy as np

from contact_id_controller.exceptions import MissingExtraError, UnknownModelError
from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED, STEP_LIMIT
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.kernels.views import view
from contact_id_controller.lcp.status import SOLVED as LCP_SOLVED
from contact_id_controller.models.frame_problems import UNTOLD, FramesCall
from contact_id_controller.models.options import BACKENDS, CONES, OBJECTIVES, SLIDINGS
from contact_id_controller.models.steps.compliance import with_compliance
from contact_id_controller.models.steps.finish import (
    RELAXED,
    finished,
    outcome,
    shift_offset,
)
from contact_id_controller.models.steps.forces import distribute
from contact_id_controller.models.steps.forces_exact_cone import widen
from contact_id_controller.models.steps.motion import (
    ENORMOUS,
    MOVES,
    classify,
    classify_stiction,
    stage_one,
)
from contact_id_controller.models.steps.options import (
    CONSISTENCIES,
    DISTRIBUTIONS,
    POLYGONS,
    check_edges,
    check_option,
    once,
    polygon_friction,
)
from contact_id_controller.models.steps.plan import project_plan
from contact_id_controller.models.steps.reduced import (
    Cones,
    Face,
    answer_room,
    begin,
    matrices,
)
from contact_id_controller.models.steps.slip import NO_SLIP, complementary_impulses
from contact_id_controller.models.steps.yielding import ease, tame, with_fallback
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution


def solve_coulomb_qp(
    problem: Problem,
    *,
    warm_start: Solution | None = None,
    edges: int = 4,
    polygon: str = "inscribed",
    objective: str = "contact_velocity",
    distribution: str = "least_torque",
    consistency: str = "project",
    backend: str = "kernel",
    cone: str = "pyramid",
    sliding: str = "coulomb",
) -> Solution:
    """Contact forces and torques under Coulomb friction, both stages.

    Args:
        warm_start: not needed; the forces are unique, so the last period's have no influence.
        edges, polygon: the friction pyramid, ``inscribed`` in the cone or ``circumscribed``.
            Inscribed, friction between two edges is cos(pi / edges) of that along them: 4 edges, the
            first along tangent 1, lose 29 % of it at 45 degrees, 8 lose 8 % at 22.5.
        objective: ``contact_velocity`` (eq. 75) or ``kinetic_energy`` (eq. 69, as in the paper; it
            brakes a walking robot).
        distribution: of the forces with the same effect on the base: ``least_torque`` (stage II),
            ``least_force``, or ``none`` (the solver's vertex).
        consistency: ``project`` replaces a plan that the contacts contradict by the closest one
            that they allow; ``report`` only says so.
        cone: ``exact`` lets stage II use the whole cone of a contact that sticks, not only the
            pyramid; with ``inscribed``, ``least_torque`` and the kernels only.
        backend: ``kernel`` or ``quadprog``, the same two programs by the quadprog library.
        sliding: ``coulomb``: a loaded contact that slides stays on the ground, its friction against the
            slip. ``parting``: it parts at mu times its slip, as in the paper: forces then grow without
            bound with mu. The objective ``kinetic_energy`` and quadprog know the latter only.

    Guarantees: stage I always ends, with the optimum or the proof that the contacts contradict each
    other. What then gives way, and the forces, come from ``steps.yielding``; more than 5 % of the contact
    velocities (or any, with ``report``) is called ``inconsistent``. G may have any rank. What slides is
    found by Lemke's method as in coulomb/lcp, always cold: the answer is a function of the problem.

    Raises:
        UnknownModelError: an option's value that does not exist.

    Source: first paper, eq. 75, sections 6.1 to 6.2; Anitescu (2006).
    """
    _check(edges, polygon, objective, distribution, consistency, backend, cone, sliding)
    mu = polygon_friction(problem.contacts.friction, edges, polygon)
    return solve_cones(
        problem,
        mu,
        edges,
        objective,
        distribution,
        consistency,
        backend,
        cone == "exact",
        sliding == "parting",
    )


def prepare_frames(
    friction: np.ndarray,
    load_share: np.ndarray,
    *,
    edges: int = 4,
    polygon: str = "inscribed",
    objective: str = "contact_velocity",
    distribution: str = "least_torque",
    consistency: str = "project",
    backend: str = "kernel",
    cone: str = "pyramid",
    sliding: str = "coulomb",
) -> FramesCall | None:
    """What gives the answers of ``solve_coulomb_qp`` to many problems in one compiled call; options as there.

    None where these options need more than that call.
    """
    _check(edges, polygon, objective, distribution, consistency, backend, cone, sliding)
    if (objective, backend, cone) != (OBJECTIVES[0], "kernel", "pyramid"):
        return None
    mu, chosen = polygon_friction(friction, edges, polygon), DISTRIBUTIONS.index(distribution)
    project, parts = consistency == "project", sliding == "parting"

    def call(store, actuated, unactuated, count, room, verdicts):
        return _solve(
            store,
            actuated,
            unactuated,
            mu,
            edges,
            load_share,
            chosen,
            project,
            parts,
            count,
            room,
            verdicts,
        )

    return call


@once
def _check(edges, polygon, objective, distribution, consistency, backend, cone, sliding) -> None:
    """Refuse an option's value that does not exist, or not beside the others."""
    check_option("objective", objective, OBJECTIVES)
    check_option("distribution", distribution, DISTRIBUTIONS)
    check_option("consistency", consistency, CONSISTENCIES)
    check_option("polygon", polygon, POLYGONS)
    check_option("backend", backend, BACKENDS)
    check_option("cone", cone, CONES)
    check_option("sliding", sliding, SLIDINGS)
    check_edges(edges)
    if cone == "exact":
        for name, value, only in (
            ("polygon", polygon, "inscribed"),
            ("objective", objective, OBJECTIVES[0]),
            ("distribution", distribution, "least_torque"),
            ("backend", backend, "kernel"),
        ):
            if value != only:
                raise UnknownModelError(f"cone 'exact' needs {name} {only!r}, got {value!r}")


def solve_cones(
    problem,
    mu,
    edges,
    objective,
    distribution,
    consistency,
    backend,
    exact=False,
    parts=True,
) -> Solution:
    """Both stages for friction coefficients mu (n,), as written.

    exact: the cone of stage II.  parts: what slides, parts.
    """
    # quadprog is loaded only where it is asked for: the kernels need nothing of it.
    if objective == "kinetic_energy" or backend == "quadprog":
        mu = effective_friction(mu, np.inf)
    if objective == "kinetic_energy":
        minimise_kinetic_energy = _from_quadprog("kinetic_energy", "minimise_kinetic_energy")
        return minimise_kinetic_energy(problem, mu, edges, distribution)
    if backend == "quadprog":
        solve_with_quadprog = _from_quadprog("two_stages", "solve_with_quadprog")
        return solve_with_quadprog(problem, mu, edges, distribution, consistency)
    room = answer_room(problem)
    share, chosen = problem.contacts.load_share, DISTRIBUTIONS.index(distribution)
    code, steps, contradiction = _solve(
        *matrices(problem),
        mu,
        edges,
        share,
        chosen,
        consistency == "project",
        parts,
        1,
        room,
        UNTOLD,
    )
    if exact and code in (SOLVED, RELAXED):
        # Its own kernel: who does not ask for it need not compile the interior-point method.
        steps += widen(*matrices(problem), mu, edges, share, parts, room)
    solution = outcome(problem, code, steps, contradiction, room)
    if not parts:
        solution = with_compliance(solution, mu, edges, chosen, consistency == "project")
    return with_fallback(solution, mu, edges)


def _from_quadprog(module: str, function: str):
    """A function of a module that imports quadprog, or one line that says what to install."""
    try:
        return getattr(importlib.import_module(f"{__package__}.quadprog.{module}"), function)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "objective kinetic_energy and backend quadprog need the extra quadprog: "
            "pip install 'contact_id_controller[quadprog]'"
        ) from error


@kernel
def _solve(
    store,
    actuated,
    unactuated,
    mu,
    edges,
    load_share,
    distribution,
    project,
    parts,
    frames,
    room,
    verdicts,
):
    """Opens the arrays for ``_two_stages``, of one problem or of several that lie one behind the other.

    All run the same instructions: nobody's bits depend on the problems beside him. Returns what
    ``_two_stages`` does of the last one; verdicts (frames, 3) or (0, 3): of each.
    """
    n, numbers, width = mu.shape[0] // frames, store.shape[0] // frames, room.shape[0] // frames
    status, steps, contradiction = SOLVED, 0, 0.0
    for k in range(frames):
        reduced = open_store(view(store, k * numbers, (numbers,)), actuated, unactuated)
        status, steps, contradiction = _two_stages(
            reduced,
            Cones(
                effective_friction(view(mu, k * n, (n,)), np.inf),
                edges,
                view(load_share, k * n, (n,)),
            ),
            distribution,
            project,
            parts,
            begin(reduced, view(room, k * width, (width,))),
        )
        if verdicts.shape[0]:
            verdicts[k, 0], verdicts[k, 1], verdicts[k, 2] = status, steps, contradiction
    return status, steps, contradiction


@kernel
def _two_stages(reduced, cones, distribution, project, parts, answer):
    """Both stages and the torques; returns (status, steps, largest contradiction m/s).

    parts: what slides, parts.
    """
    Y, gap_speed, mu, edges = reduced.Y, reduced.gap_speed, cones.mu, cones.edges
    moved, z, delta = answer.moved, answer.z, answer.delta
    n, nu, na = gap_speed.shape[0], Y.shape[1], reduced.T.shape[1]
    contradiction = 0.0
    u = np.zeros(nu)
    status, steps, eased = SOLVED, 0, False
    if n:
        face = Face(np.empty(n, np.int64), np.empty(n), np.empty(n))
        for attempt in range(2):
            if project:
                # First the contradictions that are noise; if that is not enough, all of them.
                contradiction = project_plan(reduced, mu, attempt == 0, delta, moved)
            status, steps = stage_one(Y, moved, gap_speed, mu, edges, np.empty(0, np.bool_), u, z)
            if status == ENORMOUS:
                status = SOLVED
                if project:
                    count, change = tame(reduced, moved, mu, edges, u, z)
                    contradiction, steps = max(contradiction, change), steps + count
            status, cones, count = _settle(reduced, moved, cones, status, parts, u, z, face)
            steps += count
            if status == SOLVED or not project:
                break
        if status != SOLVED:
            eased = True
            status, count, change = ease(
                Y, reduced.c, reduced.speed, moved, gap_speed, mu, edges, u, z
            )
            steps += count
            contradiction = max(contradiction, change)
            if status == SOLVED:
                status, cones, count = _settle(reduced, moved, cones, status, parts, u, z, face)
                steps += count
            if not project:
                status = INFEASIBLE
        if distribution < 2 or eased:
            shifted = np.empty(na)
            shift_offset(reduced, delta, shifted)
            if status != SOLVED:
                classify(Y, moved, gap_speed, cones.mu, edges, parts, u, face)
            weight = 1.0 if distribution == 0 else 0.0
            steps += abs(distribute(reduced.T, shifted, Y, u, face, cones, weight, z))
    return finished(reduced, answer, status), steps, contradiction


@kernel
def _settle(reduced, moved, cones, status, parts, u, z, face):
    """The pyramids' complementarity problem where stage I, which ended with ``status``, does not solve it.

    u (nu,), z (3n,): of stage I in, of the law out.  face: out, at the motion of what is solved.
    Returns (status, cones, pivots); the cones are finite but where what slides parts.
    """
    Y, gap_speed, mu, edges = reduced.Y, reduced.gap_speed, cones.mu, cones.edges
    n = gap_speed.shape[0]
    if parts:
        if status == SOLVED:
            classify(Y, moved, gap_speed, mu, edges, True, u, face)
        return status, cones, 0
    finite, pivots = Cones(effective_friction(mu, NO_SLIP), edges, cones.load_share), 0
    most = np.cos(np.pi / edges) * NO_SLIP
    if status == SOLVED:
        verdict = classify_stiction(Y, moved, gap_speed, mu, edges, most, u, z, face)
        if verdict != MOVES and np.isinf(mu).any():
            verdict = classify_stiction(Y, moved, gap_speed, finite.mu, edges, most, u, z, face)
        if verdict != MOVES:
            return SOLVED, finite, pivots
    basis = np.zeros((n, edges + 2), np.bool_)
    pairs, slacks = np.empty((n, edges + 2)), np.empty((n, edges + 2))
    code, pivots = complementary_impulses(
        Y, moved, gap_speed, finite.mu, edges, basis, pairs, slacks, z
    )
    if code != LCP_SOLVED:
        return INFEASIBLE if status == INFEASIBLE else STEP_LIMIT, cones, pivots
    fill(u, 0.0)
    for r in range(z.shape[0]):
        for k in range(u.shape[0]):
            u[k] += Y[r, k] * z[r]
    classify(Y, moved, gap_speed, finite.mu, edges, False, u, face)
    return SOLVED, finite, pivots
