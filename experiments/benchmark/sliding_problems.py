"""Random problems of a robot that stands, slides, lands, or does all of that, and exact Coulomb's law as judge.

Solo12 on 1 to 40 contacts, friction from .05 to 2, alike or each its own; tilted normals, contacts at the same
place, plans that the contacts contradict and plans made consistent.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.contacts import ContactSet
from contact_id_controller.problem import Problem, build_problem
from contact_id_controller.robot import RobotModel
from experiments.benchmark.speed import SOLO12, stance

KINDS = ("stand", "slide", "land", "mixed")
PERIOD_S = 1e-3
MAX_CONTACTS = 40


class SlidingProblem(NamedTuple):
    """A problem, its kind, and contact velocities (3n,) m/s at z = 0 of its plan or of one made consistent."""

    problem: Problem
    kind: str
    c: NDArray[np.float64]


@cache
def _robot() -> RobotModel:
    return RobotModel.from_urdf(SOLO12)


def sliding_problem(seed: int, number: int) -> SlidingProblem:
    """The problem with this seed and number, always the same."""
    rng = np.random.default_rng([seed, number])
    robot, n = _robot(), int(rng.integers(1, MAX_CONTACTS + 1))
    q, planted = stance(robot, n)
    points, normals = planted.points.copy(), planted.normals.copy()
    kind = KINDS[rng.integers(len(KINDS))]
    if rng.random() < 0.4:
        normals += 0.3 * rng.normal(size=(n, 3))
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    if rng.random() < 0.25 and n > 2:
        copies = int(rng.integers(1, n))
        points[n - copies :] = points[rng.integers(0, n, copies)]
    friction = 10.0 ** rng.uniform(np.log10(0.05), np.log10(2.0), n)
    if rng.random() < 0.4:
        friction[:] = friction[0]
    v = {"stand": 0.01, "slide": 0.3, "land": 0.3, "mixed": 1.0}[kind] * rng.normal(size=robot.nv)
    v[:2] += rng.normal(size=2) * (kind == "slide")
    v[2] -= kind == "land"
    gaps = 1e-4 * rng.random(n) * (rng.random(n) < 0.2) * (kind == "mixed")
    problem = build_problem(
        robot,
        q,
        v,
        rng.normal(size=robot.na) * rng.choice([0.5, 5.0, 30.0]),
        ContactSet(points, normals, planted.frames, friction, gaps),
        PERIOD_S,
        contact_time_constant_s=float(rng.choice([PERIOD_S, 0.05])),
    )
    return SlidingProblem(problem, kind, _consistent(problem) if number % 2 else problem.c.copy())


def _consistent(problem: Problem) -> NDArray[np.float64]:
    """c of the closest plan that lets all contacts rest, as far as there is one."""
    price = 3e-5  # of the joints' change against the contradiction that is left
    nu = problem.robot.nu
    weight = np.concatenate([np.ones(nu), np.full(problem.robot.na, price)])
    rows = np.hstack([problem.Y, -problem.period * problem.T]) * weight
    change = np.linalg.lstsq(rows, -problem.c, rcond=1e-12)[0][nu:] * price
    moved: NDArray[np.float64] = problem.c - problem.period * (problem.T @ change)
    return moved


def exact_law_defect(
    Y: NDArray[np.float64],
    free: NDArray[np.float64],
    mu: NDArray[np.float64],
    z: NDArray[np.float64],
    speed: float = 0.0,
) -> float:
    """How far impulses are from Coulomb's law with complementarity on exact cones, relative.

    The larger of two: of the law as a projection of z - w (Alart and Curnier), and of z - P_K(z - w~) with
    w~ = w + mu |w_T| e_N and the projection on the cone (de Saxce's natural map). In units in which Y's mean
    square row and the largest velocity are 1; where impulses are larger than 1, relative to them. The second is
    divided by mu where that is larger than 1: w~ is w_T times mu.

    Args:
        Y (3n, nu), free (3n,) m/s velocities at z = 0, gaps included, mu (n,) finite, z (3n,) N·s.
        speed: m/s, unit of velocities; 0: the largest of ``free``.
    """
    inertia = np.square(Y).sum() / max(len(free), 1)
    speed = speed or np.abs(free).max(initial=0.0)
    if not (inertia > 0.0 and speed > 0.0):
        return float(np.maximum(-free[::3], 0.0).max(initial=0.0))
    w = ((Y @ (Y.T @ z) + free) / speed).reshape(-1, 3)
    x = (z * inertia / speed).reshape(-1, 3)
    y = x - w
    length = np.hypot(y[:, 1], y[:, 2])
    bound = mu * np.maximum(y[:, 0], 0.0)
    share = np.where(length > bound, bound / np.where(length > 0.0, length, 1.0), 1.0)
    law = np.column_stack([np.maximum(y[:, 0], 0.0), share[:, None] * y[:, 1:]])
    raised = w.copy()
    raised[:, 0] += mu * np.hypot(w[:, 1], w[:, 2])
    cone = project_on_cones(x - raised, mu)
    steep = np.maximum(1.0, mu)[:, None]
    worst = max(np.abs(x - law).max(), (np.abs(x - cone) / steep).max())
    return float(worst / max(1.0, np.abs(x).max()))


def project_on_cones(y: NDArray[np.float64], mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest points (n, 3) of the cones |y_T| <= mu y_N."""
    length = np.hypot(y[:, 1], y[:, 2])
    height = (y[:, 0] + mu * length) / (1.0 + mu**2)
    along = y[:, 1:] / np.where(length > 0.0, length, 1.0)[:, None]
    surface = np.column_stack([height, (mu * height)[:, None] * along])
    within: NDArray[np.float64] = np.where((length <= mu * y[:, 0])[:, None], y, surface)
    # Last: with mu = 0 what lies straight below the tip is on both sides.
    found: NDArray[np.float64] = np.where((mu * length <= -y[:, 0])[:, None], 0.0, within)
    return found
