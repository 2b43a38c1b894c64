"""Arrays that kernels share, in named tuples.

Numba takes ten times as long to unpack a tuple from Python as its arrays, and for each array as long as a hundred
operations. A model therefore passes its compiled entry the problem's store and one array for the answer, and the
entry opens them.
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
    """Friction cones as pyramids, with load shares.

    mu (n,), inf for no slip; edges of each pyramid; load_share (n,) in (0, 1], see ``ContactSet``.
    """

    mu: np.ndarray
    edges: int
    load_share: np.ndarray


class Face(NamedTuple):
    """Mode of each contact at a motion: mode (n,) of ``pyramid``, and the sector of its friction if it slides.

    angle, span (n,): first edge of the sector and its width, rad.
    """

    mode: np.ndarray
    angle: np.ndarray
    span: np.ndarray


class Answer(NamedTuple):
    """Results of a model's kernel.

    moved (3n,) m/s: contact velocities at z = 0 of the changed plan, less what no motion can give; z (3n,) impulses,
    N·s; delta (na,) rad/s change of the planned joint velocities; torques (na,) N·m; velocity (nv,)
    at the period's end.
    """

    moved: np.ndarray
    z: np.ndarray
    delta: np.ndarray
    torques: np.ndarray
    velocity: np.ndarray


def matrices(problem: Problem) -> tuple[Any, ...]:
    """Arguments of ``open_store`` for a problem, in its order."""
    robot = problem.robot
    return problem.store, robot.actuated, robot.unactuated


@lru_cache(maxsize=256)
def room_size(n: int, na: int, nv: int) -> int:
    """Number of elements of an ``Answer`` to n contacts."""
    return 6 * n + 2 * na + nv


def answer_room(problem: Problem) -> np.ndarray:
    """Allocate one array for an ``Answer``, for a compiled entry to open and fill."""
    robot = problem.robot
    return np.empty(room_size(len(problem.contacts.points), robot.na, robot.nv))


@inlined_kernel
def open_answer(room, n, na):
    """Open an answer for n contacts and na joints as views of its array ``room``."""
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
    """Open and initialise the answer: moved = c, z = delta = 0."""
    answer = open_answer(room, reduced.gap_speed.shape[0], reduced.offset.shape[0])
    assign(answer.moved, reduced.c)
    fill(answer.z, 0.0)
    fill(answer.delta, 0.0)
    return answer


def read_answer(problem: Problem, room: np.ndarray) -> Answer:
    """Views of the answer that a compiled entry has written into ``room``."""
    robot = problem.robot
    return Answer(
        *(room[each] for each in answer_places(len(problem.contacts.points), robot.na, robot.nv))
    )


def empty_answer(problem: Problem) -> Answer:
    """Allocate an answer to fill from Python: moved = c, z = delta = 0."""
    answer = read_answer(problem, answer_room(problem))
    answer.moved[:] = problem.c
    answer.z[:] = 0.0
    answer.delta[:] = 0.0
    return answer
