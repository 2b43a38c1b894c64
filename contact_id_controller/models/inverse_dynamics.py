"""Inverse dynamics with the same contacts at one state after the other, without Python objects for each step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ContactSetError, RobotDescriptionError, require
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.nearest_point import SOLVED
from contact_id_controller.kernels.reduction import empty_store, reduce
from contact_id_controller.kernels.views import dense
from contact_id_controller.models.frame_problems import UNTOLD
from contact_id_controller.models.registry import parted, solvable
from contact_id_controller.models.steps.reduced import room_size
from contact_id_controller.problem import NO_FORCE, NO_SURFACE, ProblemMaker, compute_dynamics
from contact_id_controller.robot import RobotModel, vector
from contact_id_controller.solution import Solution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from contact_id_controller.models.names import Friction, Solver
    from contact_id_controller.models.registry import DoorOptions


class InverseDynamics:
    """Torques from (q, v, desired acceleration), with all else prepared in advance.

    The torques equal, bit for bit, those of ``build_problem`` and ``solve`` without a warm start; these two are called
    if the model has no compiled call (``ContactModel.frames``), or that call does not handle a state.

    Args:
        robot, contacts, period: see ``build_problem``.  friction, solver: see ``solve``.
        keywords: options of both.

    Not to be shared between threads: it has one workspace. A copy has its own.

    Raises:
        ConfigurationError: period, time constant or gain outside its range.
        UnknownFrameError, UnknownModelError: see ``build_problem`` and ``solve``.
    """

    def __init__(
        self,
        robot: RobotModel,
        contacts: ContactSet,
        period: float,
        friction: Friction = "coulomb",
        solver: Solver = "qp",
        **keywords: Unpack[DoorOptions],
    ) -> None:
        require("robot", robot, RobotModel, RobotDescriptionError)
        require("contacts", contacts, ContactSet, ContactSetError)
        how, given = parted(keywords)
        self._row = row = solvable(friction, solver)
        self._keywords: dict[str, Any] = dict(keywords)
        self._options = row.complete(given)
        self.robot, self.contacts, self.period = robot, contacts, period
        self._problems = ProblemMaker(robot, period, **how)
        prepare, n, na = row.prepare_frames, len(contacts), robot.na
        self._call = (
            None
            if prepare is None
            else prepare(contacts.friction, contacts.load_share, self._options)
        )
        self._store, self._points = empty_store(n, robot.nu, na), dense(contacts.points)
        surface = contacts.surface_velocities
        fixed = (
            self._problems.how,
            NO_FORCE,
            *contacts.links(robot),
            dense(contacts.normals),
            dense(contacts.gaps),
            NO_SURFACE if surface is None else dense(surface),
            self._store,
        )
        numbers = robot.mechanism, NO_FORCE, NO_FORCE, NO_SURFACE
        self._reduce = partial(direct(reduce, *fixed, *numbers), *fixed)
        self._room: NDArray[np.float64] = np.empty(room_size(n, na, robot.nv))
        self._torques = self._room[6 * n + na : 6 * n + 2 * na]

    def torques(
        self,
        q: ArrayLike,
        v: ArrayLike,
        desired_acceleration: ArrayLike,
        points: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Compute the torques (na,), N·m, in ``robot.joint_names`` order; the next step may overwrite them.

        Args:
            q (nq,), v (nv,), desired_acceleration (na,): see ``build_problem``.
            points: (n, 3) m, world frame, present contact points; None: those given at construction.

        Raises:
            StateError: see ``build_problem``.
            ContactSetError: points of another shape.
        """
        if self._call is None:
            return self.solution(q, v, desired_acceleration, points).torques
        robot = self.robot
        places = self._points if points is None else self._at(points)
        q = vector("q", q, robot.nq)
        v = vector("v", v, robot.nv)
        acceleration = vector("desired_acceleration", desired_acceleration, robot.na)
        compute_dynamics(robot, q, v)
        if not self._reduce(robot.mechanism, v, acceleration, places):
            return self.solution(q, v, acceleration, points).torques  # raises
        status, _, _ = self._call(
            self._store, robot.actuated, robot.unactuated, 1, self._room, UNTOLD
        )
        if status != SOLVED:
            return self.solution(q, v, acceleration, points).torques
        return self._torques

    def solution(
        self,
        q: ArrayLike,
        v: ArrayLike,
        desired_acceleration: ArrayLike,
        points: NDArray[np.float64] | None = None,
    ) -> Solution:
        """Compute the complete solution of a step; arguments and errors as of ``torques``."""
        contacts = self.contacts if points is None else self.contacts.moved(np.array(points))
        robot = self.robot
        q, v = vector("q", q, robot.nq), vector("v", v, robot.nv)
        acceleration = vector("desired_acceleration", desired_acceleration, robot.na)
        compute_dynamics(robot, q, v)
        problem = self._problems.at(v, acceleration, contacts)
        found: Solution = self._row.function(problem, self._options, None)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        rebuilt = partial(InverseDynamics, **self._keywords)
        return rebuilt, (self.robot, self.contacts, self.period, *self._row.pair)

    def _at(self, points: ArrayLike) -> NDArray[np.float64]:
        given = dense(points)
        if given.shape != (len(self.contacts), 3):
            raise ContactSetError(
                f"points must have shape {(len(self.contacts), 3)}, got {given.shape}"
            )
        return given
