"""The arrays that kernels share, in named tuples.

Numba takes a tuple from Python ten times as slowly as its arrays, and each array as slowly as a
hundred operations. A model therefore hands its compiled entry the problem's store and room for the
answer, one array each, and the entry opens them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import inlined_kernel
from contact_id_controller.kernels.views import view
from contact_id_controller.problem import Problem
from contact_id_controller.solution import answer_places


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


def matrices(problem: Problem) -> tuple[Any, ...]:
    """What ``open_store`` makes the problem's arrays of, in its order."""
    robot = problem.robot
    return problem.store, robot.actuated, robot.unactuated


@lru_cache(maxsize=256)
def room_size(n: int, na: int, nv: int) -> int:
    """Numbers of an ``Answer`` to n contacts."""
    return 6 * n + 2 * na + nv


def answer_room(problem: Problem) -> np.ndarray:
    """Room for an ``Answer``, one array, for a compiled entry to open and fill."""
    robot = problem.robot
    return np.empty(room_size(len(problem.contacts.points), robot.na, robot.nv))


@inlined_kernel
def open_answer(room, n, na):
    """The arrays of an answer, as views of its room."""
    at_delta = 6 * n
    at_torques = at_delta + na
    at_velocity = at_torques + na
    return Answer(
        view(room, 0, (3 * n,)),
        view(room, 3 * n, (3 * n,)),
        view(room, at_delta, (na,)),
        view(room, at_torques, (na,)),
        view(room, at_velocity, (room.shape[0] - at_velocity,)),
    )


@inlined_kernel
def begin(reduced, room):
    """The answer before anything is known: the plan as it is, no impulses, no change."""
    answer = open_answer(room, reduced.gap_speed.shape[0], reduced.offset.shape[0])
    assign(answer.moved, reduced.c)
    fill(answer.z, 0.0)
    fill(answer.delta, 0.0)
    return answer


def read_answer(problem: Problem, room: np.ndarray) -> Answer:
    """The arrays that a compiled entry has filled."""
    robot = problem.robot
    return Answer(
        *(room[each] for each in answer_places(len(problem.contacts.points), robot.na, robot.nv))
    )


def empty_answer(problem: Problem) -> Answer:
    """Arrays to fill from Python: the plan as it is, no impulses, no change."""
    answer = read_answer(problem, answer_room(problem))
    answer.moved[:] = problem.c
    answer.z[:] = 0.0
    answer.delta[:] = 0.0
    return answer
