"""The arrays that kernels share, in named tuples.

Numba takes a tuple from Python ten times as slowly as its arrays. A model therefore calls a flat
compiled entry with all arrays, in the tuples' order, and only this entry makes the tuples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.problem import Problem


class Reduced(NamedTuple):
    """The reduced problem (see ``Problem``), n contacts, nu unactuated, na actuated coordinates.

    Y (3n, nu) with G = Y Y^T; c (3n,) contact velocity at z = 0, m/s; gap_speed (n,) m/s; T (3n, na)
    torque per impulse; offset (na,) torque at z = 0, N·m; L (nu, nu), C (nu, na), base (nu,): the
    unactuated motion is L^-T (base - C delta + Y^T z); schur (na, na) inertia of the actuated
    coordinates; desired (na,) rad/s; dt s; actuated (na,), unactuated (nu,) places in v;
    speed (3n,) today's contact velocity, m/s.
    """

    Y: np.ndarray
    c: np.ndarray
    gap_speed: np.ndarray
    T: np.ndarray
    offset: np.ndarray
    L: np.ndarray
    C: np.ndarray
    base: np.ndarray
    schur: np.ndarray
    desired: np.ndarray
    dt: float
    actuated: np.ndarray
    unactuated: np.ndarray
    speed: np.ndarray


class Cones(NamedTuple):
    """Friction cones as pyramids, and how willingly each contact is loaded.

    mu (n,), inf for no slip; edges of each pyramid; load_share (n,) in (0, 1], see ``ContactSet``.
    """

    mu: np.ndarray
    edges: int
    load_share: np.ndarray


class Face(NamedTuple):
    """What each contact may carry at a motion: mode (n,) of ``pyramid``, and the sliding sector.

    angle, span (n,): first edge of the sector and its width, rad.
    """

    mode: np.ndarray
    angle: np.ndarray
    span: np.ndarray


class Answer(NamedTuple):
    """What a model's kernel fills in.

    moved (3n,) m/s: c after the plan was changed and less what no motion can give; z (3n,) impulses,
    N·s; delta (na,) rad/s change of the planned joint velocities; torques (na,) N·m; velocity (nv,)
    at the period's end.
    """

    moved: np.ndarray
    z: np.ndarray
    delta: np.ndarray
    torques: np.ndarray
    velocity: np.ndarray


_new = tuple.__new__  # a third of the time of the named tuple's own constructor


def matrices(problem: Problem) -> Reduced:
    """The problem's arrays in the order in which flat entries take them."""
    robot = problem.robot
    arrays = (
        problem.Y,
        problem.c,
        problem.gap_speed,
        problem.T,
        problem.torque_offset,
        problem.L,
        problem.C,
        problem.base,
        problem.schur,
        problem.desired_velocity,
        problem.period,
        robot.actuated,
        robot.unactuated,
        problem.speed,
    )
    return _new(Reduced, arrays)


def empty_answer(problem: Problem) -> Answer:
    """Arrays for a kernel to fill: the plan as it is, no impulses, no change."""
    robot = problem.robot
    arrays = (
        problem.c.copy(),
        np.zeros(3 * len(problem)),
        np.zeros(robot.na),
        np.empty(robot.na),
        np.empty(robot.nv),
    )
    return _new(Answer, arrays)
