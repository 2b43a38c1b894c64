"""Reduced problems of many frames in one array, for models that solve them in one compiled call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.contacts import ContactSet
from contact_id_controller.kernels.reduction import empty_store, reduce
from contact_id_controller.kernels.views import dense
from contact_id_controller.models.steps.reduced import room_size
from contact_id_controller.robot import RobotModel

FramesCall = Callable[..., tuple[int, int, float]]
"""``call(store, actuated, unactuated, count, room, verdicts)``: fills the room and verdicts of ``FrameAnswers``.

It returns the last problem's verdict; verdicts may be ``UNTOLD``.
"""

UNTOLD = np.empty((0, 3))
"""Stands for verdicts that are not read."""

TYPES = np.empty(1), np.empty(1, np.int64), np.empty(1, np.int64), 1, np.empty(1), UNTOLD
"""Arguments of a ``FramesCall``, for their types."""


class FrameAnswers(NamedTuple):
    """Results of a model for m problems with n contacts each.

    room: m times the numbers of an ``Answer``.  verdicts: (m, 3) status of the kernel, steps, and the
    largest contradiction, m/s.
    """

    room: NDArray[np.float64]
    verdicts: NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class FrameProblems:
    """m problems of one robot with the same n contacts, stored one after the other.

    Attributes:
        robot: of all.  store: m times the numbers of a ``Problem``.
        friction, load_share: (m n,), see ``ContactSet``.  count: m.
    """

    robot: RobotModel
    store: NDArray[np.float64]
    friction: NDArray[np.float64]
    load_share: NDArray[np.float64]
    count: int

    def answers(self, prepare: Callable[..., FramesCall | None]) -> FrameAnswers | None:
        """Solve by the call that ``prepare(friction, load_share)`` makes; None if it makes none."""
        call = prepare(self.friction, self.load_share)
        if call is None:
            return None
        answers = self.room()
        call(*self.matrices(), self.count, *answers)
        return answers

    def __len__(self) -> int:
        """Number of problems."""
        return self.count

    def matrices(self) -> tuple[Any, ...]:
        """Arguments of ``open_store``, in its order."""
        return self.store, self.robot.actuated, self.robot.unactuated

    def room(self) -> FrameAnswers:
        """Allocate the answers."""
        robot, n = self.robot, len(self.friction) // self.count
        size = room_size(n, robot.na, robot.nv)
        return FrameAnswers(np.empty(self.count * size), np.empty((self.count, 3)))


class States(NamedTuple):
    """States of m frames: q (m, nq), v (m, nv), desired acceleration (m, na), external forces (m, nv) or None."""

    q: NDArray[np.float64]
    v: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    force: NDArray[np.float64] | None


class Places(NamedTuple):
    """Values of n contacts in m frames: points, normals (m, n, 3), gaps, friction (m, n), surface (m, n, 3) or None."""

    points: NDArray[np.float64]
    normals: NDArray[np.float64]
    gaps: NDArray[np.float64]
    friction: NDArray[np.float64]
    surface: NDArray[np.float64] | None


def reduce_frames(
    robot: RobotModel,
    states: States,
    contacts: ContactSet,
    places: Places,
    how: NDArray[np.float64],
) -> FrameProblems:
    """Build the frames' problems as ``build_problem`` does, up to the first frame that has none.

    Args:
        contacts: the n contacts; their points and values are in ``places``.
        how: (m, 4), ``ProblemMaker.how`` of each frame.
    """
    m, n = len(how), len(contacts)
    model, data, nv = robot.model, robot.data, robot.nv
    inertia, axes, bias = np.empty((m, nv, nv)), np.empty((m, nv, 6)), np.empty((m, nv))
    upright, lengthwise = robot.mass_matrix_view.T, robot.jacobian_view.T
    nonlinear_effects = robot.nonlinear_effects_view
    for q, v, M, J, h in zip(states.q, states.v, inertia, axes, bias):
        pin.crba(model, data, q, pin.Convention.WORLD)
        pin.nonLinearEffects(model, data, q, v)
        M[:], J[:], h[:] = upright, lengthwise, nonlinear_effects
    store = empty_store(n, robot.nu, robot.na, m)
    size = len(store) // m
    bodies, pair = contacts.links(robot)
    sound = reduce(
        how,
        np.zeros(0) if states.force is None else states.force.ravel(),
        bodies,
        pair,
        dense(places.normals.reshape(-1, 3)),
        dense(places.gaps.ravel()),
        np.zeros((0, 3)) if places.surface is None else dense(places.surface.reshape(-1, 3)),
        store,
        robot.mechanism.changed(
            M=inertia.reshape(m * nv, nv).T, J=axes.reshape(m * nv, 6).T, h=bias.ravel()
        ),
        states.v.ravel(),
        states.acceleration.ravel(),
        dense(places.points.reshape(-1, 3)),
    )
    return FrameProblems(
        robot,
        store[: sound * size],
        dense(places.friction.ravel()[: sound * n]),
        np.tile(contacts.load_share, sound),
        sound,
    )
