"""Coulomb friction on pyramids, by two small quadratic programs (first paper, section 6) unless a contact slides.

Stage I, on the reduced problem with the friction pyramid's edges e_j as generators of the forces:

    min 1/2 |u|^2   subject to   e_j^T (Y u + c + gap) >= 0   for every edge of every contact

whose multipliers are the edges' impulses: the contact model of eq. 75 as a nearest-point problem
in nu dimensions for any number of contacts; no regularisation, no n x n matrix.

In its motion a sliding contact parts at mu |w_T|, at the cost of larger forces at the others, without bound as mu
grows. So if a loaded contact slides or parts, the complementarity problem of the same pyramids replaces stage I
(``steps.slip``), in which sliding contacts stay on the ground; otherwise stage I's motion solves that problem too.
Stage II: ``steps.force_distribution``.
"""

from __future__ import annotations

from functools import cache, lru_cache, partial

import numpy as np
from numba.experimental import structref

from contact_id_controller.exceptions import UnknownModelError
from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import Kernel, inlined_kernel, kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED, STEP_LIMIT
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.kernels.views import dense, view
from contact_id_controller.lcp.status import SOLVED as LCP_SOLVED
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.frame_problems import TYPES, UNTOLD, FramesCall
from contact_id_controller.models.options import DISTRIBUTIONS
from contact_id_controller.models.steps.compliance import with_compliance
from contact_id_controller.models.steps.consistency import project_plan
from contact_id_controller.models.steps.exact_law import widen
from contact_id_controller.models.steps.finish import (
    RELAXED,
    STATUS_NAMES,
    finished,
    shift_offset,
)
from contact_id_controller.models.steps.force_distribution import distribute
from contact_id_controller.models.steps.motion import (
    ENORMOUS,
    MOVES,
    classify,
    classify_stiction,
    stage_one,
)
from contact_id_controller.models.steps.polygon_friction import polygon_friction
from contact_id_controller.models.steps.reduced import (
    Cones,
    Face,
    begin,
    room_size,
)
from contact_id_controller.models.steps.relaxation import WITH_FORCES, ease, tame, with_fallback
from contact_id_controller.models.steps.slip import NO_SLIP, complementary_impulses
from contact_id_controller.problem import Problem
from contact_id_controller.solution import NOT_CONVERGED, Solution


class Stages(Struct):
    """Options of the two stages.

    Attributes:
        edges: of each pyramid.  distribution: index into ``DISTRIBUTIONS``.
        project: replace a plan that contradicts the contacts.  parts: sliding contacts part.
    """

    edges: int
    distribution: int
    project: bool
    parts: bool


@structref.register
class StagesType(StructType):
    """numba's type of `Stages`."""


_pack = packing(Stages, StagesType)


@kernel
def _packed(values):
    """The struct ``Stages``, from the tuple of its fields' values."""
    return _pack(values)


Stages.packed = staticmethod(_packed)


@lru_cache(maxsize=64)
def stages_of(edges: int, distribution: str, consistency: str, sliding: str) -> Stages:
    """Convert the names of options."""
    return Stages(
        edges=edges,
        distribution=DISTRIBUTIONS.index(distribution),
        project=consistency == "project",
        parts=sliding == "parting",
    )


def solve_coulomb_qp(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces and torques under Coulomb friction, both stages.

    Args:
        warm_start: not used; the forces are unique.
        options: edges, polygon: the friction pyramid, ``inscribed`` in the cone or ``circumscribed``.
            Inscribed, friction between two edges is cos(pi / edges) of that along them: 4 edges, the
            first along tangent 1, lose 29 % of it at 45 degrees, 8 lose 8 % at 22.5.
            distribution: of the forces with the same effect on the base: ``least_torque`` (stage II),
            ``least_force``, or ``none`` (the solver's vertex).
            consistency: ``project`` replaces a plan that contradicts the contacts by the closest
            consistent one; ``report`` only reports it.
            cone: ``exact`` allows stage II the exact cone of a sticking contact instead of the
            pyramid; with ``inscribed`` and ``least_torque`` only.
            sliding: ``coulomb``: a loaded contact that slides stays on the ground, its friction against the
            slip. ``parting``: it parts at mu times its slip, as in the paper: forces then grow without
            bound with mu.

    Guarantees: stage I always ends, with the optimum or the proof that the contacts contradict each
    other. Contradictory contacts are relaxed (``steps.relaxation``); a change of more than 5 % of the contact
    velocities (or any, with ``report``) gives status ``inconsistent``. G may have any rank. Sliding is
    solved by Lemke's method as in coulomb/lcp, always cold: the result is a function of the problem.

    Raises:
        UnknownModelError: options that cannot be combined with the exact cone.

    Source: first paper, eq. 75, sections 6.1 to 6.2; Anitescu (2006).
    """
    exact = options.cone == "exact"
    if exact:
        _check_exact_cone(options)
    mu = problem.contacts.friction
    if options.polygon != "inscribed":
        mu = polygon_friction(mu, options.edges, options.polygon)
    stages = stages_of(options.edges, options.distribution, options.consistency, options.sliding)
    return solve_cones(problem, mu, stages, exact)


def prepare_frames(
    friction: np.ndarray, load_share: np.ndarray, options: Chosen
) -> FramesCall | None:
    """Make the compiled call that solves many problems as ``solve_coulomb_qp`` does.

    None if the options need more than that call.
    """
    if options.cone == "exact":
        _check_exact_cone(options)
        return None
    mu = polygon_friction(friction, options.edges, options.polygon)
    stages = stages_of(options.edges, options.distribution, options.consistency, options.sliding)
    fixed = dense(mu), dense(load_share), stages
    return partial(direct(_solve, *fixed, *TYPES), *fixed)


def _check_exact_cone(options: Chosen) -> None:
    """Raise for options that cannot be combined with the exact cone of stage II."""
    for name, only in {"polygon": "inscribed", "distribution": "least_torque"}.items():
        value = getattr(options, name)
        if value != only:
            raise UnknownModelError(f"cone 'exact' needs {name} {only!r}, got {value!r}")


def solve_cones(problem: Problem, mu: np.ndarray, stages: Stages, exact: bool = False) -> Solution:
    """Solve both stages for friction coefficients mu (n,) of the pyramids' edges; exact: exact cones in stage II."""
    edges, project, parts = stages.edges, stages.project, stages.parts
    robot, share = problem.robot, problem.contacts.load_share
    room = np.empty(room_size(share.shape[0], robot.na, robot.nv))
    numbers = problem.store, robot.actuated, robot.unactuated  # as of ``matrices``
    code, steps, contradiction = _entry()(mu, share, stages, *numbers, 1, room, UNTOLD)
    if exact and code in (SOLVED, RELAXED):
        # Its own kernel: who does not ask for it need not compile it.
        steps += widen(*numbers, mu, edges, share, parts, room)
    status = STATUS_NAMES.get(code, NOT_CONVERGED)
    solution = Solution.of_room(problem, status, steps, contradiction, room)
    if solution.status in WITH_FORCES:
        return solution
    if not parts:
        solution = with_compliance(solution, mu, edges, stages.distribution, project)
    return with_fallback(solution, mu, edges)


@kernel
def _solve(mu, load_share, stages, store, actuated, unactuated, frames, room, verdicts):
    """Solve both stages of one problem, or of m (``frames``) stored one after the other.

    All run the same instructions: results do not depend on the other problems of a batch. mu, load_share:
    (m n,). Returns the result of ``_two_stages`` for the last one; verdicts (m, 3) or (0, 3): for each.
    """
    n, numbers, width = mu.shape[0] // frames, store.shape[0] // frames, room.shape[0] // frames
    status, steps, contradiction = SOLVED, 0, 0.0
    for k in range(frames):
        reduced = open_store(view(store, k * numbers, (numbers,)), actuated, unactuated)
        cones = Cones(
            effective_friction(view(mu, k * n, (n,)), np.inf),
            stages.edges,
            view(load_share, k * n, (n,)),
        )
        answer = begin(reduced, view(room, k * width, (width,)))
        status, steps, contradiction = _two_stages(reduced, cones, stages, answer)
        if verdicts.shape[0]:
            verdicts[k, 0], verdicts[k, 1], verdicts[k, 2] = status, steps, contradiction
    return status, steps, contradiction


@cache
def _entry() -> Kernel:
    """Compiled call of `_solve`."""
    return direct(
        _solve,
        *2 * (np.empty(0),),
        Stages(edges=4, distribution=0, project=True, parts=True),
        *TYPES,
    )


@inlined_kernel
def _two_stages(reduced, cones, stages, answer):
    """Stage I (motion), stage II (force distribution) and torques of one problem.

    (status, steps, contradiction m/s).
    """
    n, status, steps, contradiction = reduced.gap_speed.shape[0], SOLVED, 0, 0.0
    if n:
        u, z, delta = np.zeros(reduced.Y.shape[1]), answer.z, answer.delta
        face = Face(np.empty(n, np.int64), np.empty(n), np.empty(n))
        status, cones, eased, steps, contradiction = _find_motion(
            reduced, cones, stages, u, face, answer
        )
        if stages.distribution < 2 or eased:
            shifted = np.empty(delta.shape[0])
            shift_offset(reduced, delta, shifted)
            if status != SOLVED:
                classify(
                    reduced.Y,
                    answer.moved,
                    reduced.gap_speed,
                    cones.mu,
                    cones.edges,
                    stages.parts,
                    u,
                    face,
                )
            weight = 1.0 if stages.distribution == 0 else 0.0
            steps += abs(distribute(reduced.T, shifted, reduced.Y, u, face, cones, weight, z))
    return finished(reduced, answer, status), steps, contradiction


@inlined_kernel
def _find_motion(reduced, cones, stages, u, face, answer):
    """Solve for the motion of the unactuated coordinates, u (nu,), and impulses answer.z that produce it.

    First with the projected plan, then with a plan whose contradictions are all removed, not only those of the size of
    rounding; finally with relaxed contact velocities. u, face: out. Returns (status, cones of the motion, whether
    contacts were relaxed, steps, largest contradiction m/s).
    """
    Y, gap_speed, mu, edges = reduced.Y, reduced.gap_speed, cones.mu, cones.edges
    moved, z, delta = answer.moved, answer.z, answer.delta
    project, parts = stages.project, stages.parts
    status, steps, contradiction = SOLVED, 0, 0.0
    for attempt in range(2):
        if project:
            contradiction = project_plan(reduced, mu, attempt == 0, delta, moved)
        status, steps = stage_one(
            Y, moved, gap_speed, mu, edges, np.empty(0, np.bool_), stages.distribution > 1, u, z
        )
        if status == ENORMOUS:
            status = SOLVED
            if project:
                count, change = tame(reduced, moved, mu, edges, u, z)
                contradiction, steps = max(contradiction, change), steps + count
        status, cones, count = _settle(reduced, moved, cones, status, parts, u, z, face)
        steps += count
        if status == SOLVED or not project:
            break
    if status == SOLVED:
        return status, cones, False, steps, contradiction
    status, count, change = ease(Y, reduced.c, reduced.speed, moved, gap_speed, mu, edges, u, z)
    steps, contradiction = steps + count, max(contradiction, change)
    if status == SOLVED:
        status, cones, count = _settle(reduced, moved, cones, status, parts, u, z, face)
        steps += count
    return status if project else INFEASIBLE, cones, True, steps, contradiction


@inlined_kernel
def _settle(reduced, moved, cones, status, parts, u, z, face):
    """Solve the pyramids' complementarity problem, unless stage I, which ended with ``status``, has solved it.

    u (nu,), z (3n,): of stage I in, of the complementarity problem out.  face: out, contact modes of the solution.
    Returns (status, cones, pivots); the cones are finite unless ``parts``.
    """
    Y, gap_speed, mu, edges = reduced.Y, reduced.gap_speed, cones.mu, cones.edges
    n = gap_speed.shape[0]
    if parts:
        if status == SOLVED:
            classify(Y, moved, gap_speed, mu, edges, True, u, face)
        return status, cones, 0
    finite, pivots, most, unbounded = cones, 0, np.cos(np.pi / edges) * NO_SLIP, False
    for i in range(n):
        unbounded = unbounded or np.isinf(mu[i])
    if unbounded:
        finite = Cones(effective_friction(mu, NO_SLIP), edges, cones.load_share)
    if status == SOLVED:
        verdict = classify_stiction(Y, moved, gap_speed, mu, edges, most, u, z, face)
        if verdict != MOVES and unbounded:
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
