"""The same contacts at one state after the other: inverse dynamics with contact and no Python object per step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ContactSetError, UnknownModelError
from contact_id_controller.kernels.nearest_point import SOLVED
from contact_id_controller.kernels.reduction import empty_store
from contact_id_controller.kernels.views import dense
from contact_id_controller.models.frame_problems import UNTOLD
from contact_id_controller.models.registry import row_with, solve
from contact_id_controller.models.steps.reduced import room_size
from contact_id_controller.problem import (
    NO_FORCE,
    build_problem,
    compute_dynamics,
    fill_store,
    kept_velocity,
    vector,
)
from contact_id_controller.robot import RobotModel
from contact_id_controller.solution import Solution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from contact_id_controller.models.names import Friction, Options, Solver


class InverseDynamics:
    """From (q, v, desired acceleration) to torques with everything else made ready before.

    Its torques are, bit for bit, those of ``build_problem`` and ``solve`` without a warm start. Where the
    model has no compiled call for it (``ContactModel.frames``), or a state is no plain case there, these
    two are what it calls.

    Args:
        robot, contacts, period, velocity_product_term, contact_time_constant_s, penetration_gain: see
            ``build_problem``.
        friction, solver, keywords: see ``solve``.

    Not to be shared between threads: it has one room for the numbers of a step. A copy has its own.

    Raises:
        ConfigurationError: period, time constant or gain outside its range.
        UnknownFrameError, UnknownModelError: see ``build_problem`` and ``solve``; where there is no
            compiled call, an option's value that does not exist is refused by the first step.
    """

    def __init__(
        self,
        robot: RobotModel,
        contacts: ContactSet,
        period: float,
        friction: Friction = "coulomb",
        solver: Solver = "qp",
        *,
        velocity_product_term: bool = True,
        contact_time_constant_s: float | None = None,
        penetration_gain: float = 0.0,
        **keywords: Unpack[Options],
    ) -> None:
        row = row_with(friction, solver, keywords)
        if row.feedback_only:
            raise UnknownModelError(f"{row} is feedback alone and solves no problem")
        keep = kept_velocity(period, contact_time_constant_s, penetration_gain)
        self.robot, self.contacts, self.period = robot, contacts, period
        self._model: tuple[Any, Any] = friction, solver
        self._keywords: dict[str, Any] = dict(keywords)
        self._how: dict[str, Any] = {
            "velocity_product_term": velocity_product_term,
            "contact_time_constant_s": contact_time_constant_s,
            "penetration_gain": penetration_gain,
        }
        prepare, n, na = row.prepare_frames, len(contacts), robot.na
        self._call = (
            None if prepare is None else prepare(contacts.friction, contacts.load_share, **keywords)
        )
        self._store = empty_store(n, robot.nu, na)
        self._store[0], self._store[1] = period, keep
        self._room: NDArray[np.float64] = np.empty(room_size(n, na, robot.nv))
        self._torques = self._room[6 * n + na : 6 * n + 2 * na]
        self._links = contacts.links(robot)
        self._places = contacts.points, contacts.normals, contacts.gaps
        self._penetration_gain = penetration_gain
        self._drift_share = 1.0 if velocity_product_term else 0.0

    def torques(
        self,
        q: ArrayLike,
        v: ArrayLike,
        desired_acceleration: ArrayLike,
        points: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """(na,) N·m, in ``robot.joint_names`` order; the next step may overwrite them.

        Args:
            q (nq,), v (nv,), desired_acceleration (na,): see ``build_problem``.
            points: (n, 3) m, world frame, where the contacts are now; None: where they were given.

        Raises:
            StateError: see ``build_problem``.
            ContactSetError: points of another shape.
        """
        if self._call is None:
            return self.solution(q, v, desired_acceleration, points).torques
        robot, places = self.robot, self._places
        if points is not None:
            places = self._at(points), places[1], places[2]
        q = vector("q", q, robot.nq)
        v = vector("v", v, robot.nv)
        acceleration = vector("desired_acceleration", desired_acceleration, robot.na)
        compute_dynamics(robot, q, v)
        fill_store(
            robot,
            v,
            acceleration,
            NO_FORCE,
            self._links,
            places,
            self.contacts.surface_velocities,
            self._penetration_gain,
            self._drift_share,
            self._store,
        )
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
        """All that is known of a step, of which ``torques`` is a part; arguments and errors as there."""
        contacts = self.contacts if points is None else self.contacts.moved(self._at(points).copy())
        problem = build_problem(
            self.robot, q, v, desired_acceleration, contacts, self.period, **self._how
        )
        return solve(problem, *self._model, **self._keywords)

    def __reduce__(self) -> tuple[Any, ...]:
        rebuilt = partial(InverseDynamics, **self._how, **self._keywords)
        return rebuilt, (self.robot, self.contacts, self.period, *self._model)

    def _at(self, points: ArrayLike) -> NDArray[np.float64]:
        given = dense(points)
        if given.shape != (len(self.contacts), 3):
            raise ContactSetError(
                f"points must have shape {(len(self.contacts), 3)}, got {given.shape}"
            )
        return given
