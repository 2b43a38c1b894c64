"""The contact problem of a controller's step: what ``build_problem`` makes, without computing twice.

The step needs joint placements and axes before it knows the contacts; the dynamics that the problem is
made of bring both. So they are computed once, at its beginning, and settings are checked once, not in
each period.
"""

from __future__ import annotations

from math import hypot

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import StateError
from contact_id_controller.kernels.reduction import reduce
from contact_id_controller.problem import UNIT_TOLERANCE, Problem
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings


class StepProblem:
    """Makes the problems of one controller.

    Args:
        robot: the model.  settings: period, time constant, gain and share of Jdot v.
    """

    def __init__(self, robot: RobotModel, settings: ControllerSettings) -> None:
        self._robot, self._period_s = robot, settings.period_s
        time_constant_s = settings.contact_time_constant_s
        same = time_constant_s == settings.period_s
        self._keep = 0.0 if same else 1.0 - settings.period_s / time_constant_s
        self._penetration_gain = settings.penetration_gain
        self._drift_share = float(settings.velocity_product_term)

    def compute_dynamics(self, q: NDArray[np.float64], v: NDArray[np.float64]) -> None:
        """Inertia, joint axes and placements, and bias forces at a state, into the robot's ``data``.

        Raises:
            StateError: a quaternion whose norm is not 1.
        """
        robot = self._robot
        for name, part in robot.unit_parts:
            norm = hypot(*q[part].tolist())
            if not abs(norm - 1.0) <= UNIT_TOLERANCE:
                raise StateError(f"{name} in q has norm {norm:.6g}, must be 1")
        data = robot.data
        pin.crba(robot.model, data, q, pin.Convention.WORLD)  # this convention also fills data.J
        pin.nonLinearEffects(robot.model, data, q, v)

    def at(
        self,
        v: NDArray[np.float64],
        acceleration: NDArray[np.float64],
        contacts: ContactSet,
        external_forces: NDArray[np.float64] | None,
    ) -> Problem:
        """The problem at the state of ``compute_dynamics``; acceleration (na,) desired, rad/s2.

        Raises:
            StateError: as ``build_problem``.
        """
        robot = self._robot
        _, mass_matrix, jacobian, nonlinear_effects = robot.dynamics_views
        bodies, pair = contacts.links(robot)
        problem = Problem(robot, contacts, self._period_s, self._keep, external_forces)
        surface = contacts.surface_velocities
        sound = reduce(
            mass_matrix,
            jacobian,
            nonlinear_effects,
            v,
            acceleration,
            _NO_FORCE if external_forces is None else external_forces,
            robot.actuated,
            robot.unactuated,
            robot.supports,
            robot.coordinate_joint,
            bodies,
            pair,
            contacts.points,
            contacts.normals,
            contacts.gaps,
            _NO_SURFACE if surface is None else surface,
            self._penetration_gain,
            self._drift_share,
            problem.store,
        )
        if not sound:
            raise StateError("state or inertia gives no finite problem: q and v must be finite")
        return problem


_NO_FORCE = np.zeros(0)
_NO_SURFACE = np.zeros((0, 3))
