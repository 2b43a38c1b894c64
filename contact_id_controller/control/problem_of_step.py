"""The contact problem of a controller's step: what ``build_problem`` makes, without computing twice.

The step needs joint placements and axes before it knows the contacts; the dynamics that the problem is
made of bring both. So they are computed once, at its beginning, and settings are checked once, not in
each period.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.contacts import ContactSet
from contact_id_controller.problem import NO_FORCE, Problem, fill_store
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
        problem = Problem(robot, contacts, self._period_s, self._keep, external_forces)
        fill_store(
            robot,
            v,
            acceleration,
            NO_FORCE if external_forces is None else external_forces,
            contacts.links(robot),
            (contacts.points, contacts.normals, contacts.gaps),
            contacts.surface_velocities,
            self._penetration_gain,
            self._drift_share,
            problem.store,
        )
        return problem
