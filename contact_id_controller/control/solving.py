"""The contact problem of a controller's step, and its solution by the model that the settings name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control.disturbance import rubbed
from contact_id_controller.control.limits import JointLimits
from contact_id_controller.control.period import Period
from contact_id_controller.geometry import FeetOnGround
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.models import Tangential, row_of
from contact_id_controller.models.contact_model import ContactModel
from contact_id_controller.models.steps.consistency import TOUCHING_SPEED
from contact_id_controller.problem import Problem, ProblemMaker
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.solution import Solution

SUPPLIED = ("torque_limits", "weights", "forces")
"""The options of contact models that the controller knows: limits and loss of the motors, and the
measured contact forces."""


def effective_row(settings: ControllerSettings) -> ContactModel:
    """The row of the model with which the settings' problem is solved.

    Where no contact ever slips that is the limit which the model's row names.
    """
    row = row_of(settings.friction, settings.solver)
    unbounded = min(settings.friction_coefficient) >= UNBOUNDED_FRICTION
    return row_of(*row.without_slip) if unbounded and row.without_slip else row


def loss_weights(robot: RobotModel, settings: ControllerSettings) -> NDArray[np.float64] | None:
    """R/Kt^2 (na,) of the motors, W/(N·m)^2; None where they are not known."""
    if not settings.motor_constant_nm_sqrt_w:
        return None
    weights: NDArray[np.float64] = settings.spread("motor_constant_nm_sqrt_w", robot.na) ** -2.0
    return weights


class StepSolver:
    """Makes and solves the problems of one controller.

    Args:
        robot, feet, settings: as for the controller.  row: of the model.  period: of the controller.
        limits: of the motors.

    Attributes:
        options: of the model.  period: of the controller.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: FeetOnGround,
        settings: ControllerSettings,
        row: ContactModel,
        period: Period,
        limits: JointLimits,
    ):
        self._robot, self._feet, self.period, self._row = robot, feet, period, row
        self._period_s = settings.period_s
        self._problems = ProblemMaker(
            robot,
            settings.period_s,
            velocity_product_term=settings.velocity_product_term,
            contact_time_constant_s=settings.contact_time_constant_s,
            penetration_gain=settings.penetration_gain,
        )
        self._pushes = bool(period.settings.push_n.any())
        self._disturbed = bool(period.settings.bounds.any())
        self._rubs = robot.motors.rub
        kp, kd = period.settings.position_gain, period.settings.velocity_gain
        self._pace = np.divide(kp, kd, out=np.zeros(robot.na), where=kd > 0.0)
        self._measured = row.takes("forces")
        self._unbounded = (
            row_of(settings.friction, settings.solver).tangential is Tangential.COULOMB
            and max(settings.friction_coefficient) >= UNBOUNDED_FRICTION
        )
        supplied = limits.effort, loss_weights(robot, settings), None
        self.options = row.complete(
            row.keywords(settings, dict(zip(SUPPLIED, supplied, strict=True)))
        )

    def problem(
        self, acceleration: NDArray[np.float64], share: NDArray[np.float64] | None
    ) -> Problem:
        """The problem of the period's contacts; acceleration (na,) rad/s2; share (n,): of load, None: 1."""
        period = self.period
        contacts = self._feet.select(period.contact, share)
        if self._unbounded:
            # Models without complementarity let it hold without load, here even before it touches.
            parting = contacts.gaps > TOUCHING_SPEED * self._period_s
            friction = contacts.friction
            contacts = contacts.moved(
                friction=np.where((friction >= UNBOUNDED_FRICTION) & parting, 0.0, friction)
            )
        if period.slips[0]:
            felt = period.grip[period.contact]
            contacts = contacts.moved(friction=np.minimum(contacts.friction, felt))
        known = period.external.copy() if self._disturbed else None
        if self._pushes:
            known = self._pushing(known)
        if self._rubs or self._disturbed:
            known = np.zeros(self._robot.nv) if known is None else known
            rub(period, self._pace, known)
        return self._problems.at(period.v, acceleration, contacts, known)

    def solve(
        self,
        problem: Problem,
        warm_start: Solution | None,
        forces: NDArray[np.float64],
    ) -> Solution:
        """Its solution; forces (n, 3) N: measured on all contacts, for models that take them."""
        options = self.options.but(forces=forces) if self._measured else self.options
        solution: Solution = self._row.function(problem, options, warm_start)
        return solution

    def _pushing(self, known: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Known generalized forces (nv,) with those of the ground where it is pushed on as commanded.

        What the contact model adds lies in the cone, and so does the sum.
        """
        period, total = self.period, known
        push, links = period.pressed, period.settings.links
        for i in np.flatnonzero(period.touching & (push > 0.0)):
            force = push[i] * period.normals[i]
            wrench = np.concatenate([force, np.cross(period.points[i], force)])
            row = self._robot.supports[links[i]] * (wrench @ self._robot.jacobian_view)
            total = row if total is None else total + row
        return total


@kernel
def rub(period, pace, known):
    """Take the friction of the joints, as told and as learnt, from known generalized forces (nv,).

    At the speeds at which feedback would rest, pace (na,) 1/s: those of the plan, more where it is not met. They do
    not depend on the measured speed: friction of that one would make torque chatter about rest.
    """
    actuated = period.settings.actuated
    for j in range(actuated.shape[0]):
        speed = period.reference[1, j] + pace[j] * period.error[j]
        known[actuated[j]] -= rubbed(period, j, speed)
