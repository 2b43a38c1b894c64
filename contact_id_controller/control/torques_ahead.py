"""Torques for a horizon, so that a late computer costs little: contact inverse dynamics on the plan.

Each solution at a measured state begins a trajectory for the robot's own side (`EffortTrajectory`).
Its efforts are those that the same controller finds *on the plan*: planned base, joints and contacts
at knots ``KNOT_S`` apart, solved one after another as time allows. Two corrections begin it where the
robot is, and fade:

    q_set(t) = q_plan(t) - e(t),   e'' + kd e' + (kd/2)^2 e = 0 from the present error on
    effort(t) = effort_plan(t) + (tau - effort_plan(0)) max(0, 1 - t / FADE_S)

The set-points so leave the robot where it is now and come to the plan as fast as the controller's own
joint feedback would bring it there; at the state that was solved the local feedback is zero, and the sum
is the solver's torque. Set-points on the plan itself make the local feedback fight the base's: at 1 kHz
without a late period the joint error is then larger than with solutions at 100 Hz from here.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory, LocalFeedback
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

KNOT_S = 0.01
FADE_S = 0.03
REST_S = 0.05
"""After the horizon the set-points come to rest in this time: nobody is there any more."""

_ON_KNOT = 1e-6


def joint_inertia(robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """Inertia (na,) that each actuated joint moves when the base is free: diag(M_aa - M_au A^-1 M_ua)."""
    upper = np.triu(pin.crba(robot.model, robot.scratch, q))
    M = upper + np.triu(upper, 1).T
    a, u = robot.actuated, robot.unactuated
    coupling = M[np.ix_(a, u)]
    taken = np.einsum("au,ua->a", coupling, np.linalg.solve(M[np.ix_(u, u)], coupling.T))
    return np.diag(M)[a] - taken


def local_gains(
    robot: RobotModel, settings: ControllerSettings, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """K, N·m/rad, and D, N·m·s/rad, (na,), of the local feedback of a robot that stands in q (nq,).

    Those of the settings, else the controller's own gains times the joint inertia.
    """
    na = robot.na
    if settings.local_position_gain:
        return (
            settings.spread("local_position_gain", na),
            settings.spread("local_velocity_gain", na),
        )
    inertia = joint_inertia(robot, q)
    return (
        inertia * settings.spread("joint_position_gain", na),
        inertia * settings.spread("joint_velocity_gain", na),
    )


class TorquesAhead:
    """Steps a controller, and after each solution has the trajectory that leads on from it.

    Every ``solve_every``-th state is solved; the others get the torques that the robot's own side
    would give, along the last trajectory and within the controller's limits.

    Args:
        controller: that solves. A second one of its kind solves ahead.

    Attributes:
        trajectory: of the last solution.
        local: the local feedback; None before the first state, on which its gains may depend.
        knots_solved: how many, ever.
    """

    def __init__(self, controller: Controller):
        settings = controller.settings
        self.controller = controller
        # A robot of its own: what the controller left in the workspace of its own is still asked for.
        robot = copy.copy(controller.robot)
        feet = copy.deepcopy(controller.feet, {id(controller.robot): robot})
        # Where a foot will stand is known from the plan alone, and the way from one knot to the next
        # is no step of torque.
        self._ahead = Controller(
            robot,
            dataclasses.replace(
                settings, contact_sources=("schedule",), effort_rate_limits_nm_s=()
            ),
            feet,
        )
        na = robot.na
        self._count = max(2, math.ceil(settings.command_horizon_s / KNOT_S - _ON_KNOT) + 1)
        self._budget = min(settings.solve_every, self._count)
        self._number = np.full(self._count, -1, dtype=np.int64)
        self._solved = np.zeros(self._count, dtype=np.int64)
        self._knots = np.zeros((4, self._count, na))
        self._fade_rate = 0.5 * settings.spread("joint_velocity_gain", na)
        self.trajectory = EffortTrajectory(self._count + 1, na)
        self.local: LocalFeedback | None = None
        self.knots_solved = 0
        self._last: StepResult | None = None
        self._left = 0

    def begin(self) -> None:
        """Forget what was solved: the next state is solved."""
        self._number[:] = -1
        self._last = None
        self._left = 0

    def step(self, state: RobotState) -> StepResult:
        """Torques for the coming period: solved, or of the local feedback."""
        controller = self.controller
        if self.local is None:
            self.local = LocalFeedback(
                *local_gains(controller.robot, controller.settings, state.q),
                controller.effort_limits,
            )
        if self._left > 0 and self._last is not None:
            self._left -= 1
            position, velocity = self._joints(state)
            self.local.trajectory = self.trajectory
            torques = self.local.torques(state.time_s, position, velocity)
            self._last = controller.between_solutions(state, torques, self._last)
            return self._last
        self._last = None  # an error on the way: the next state is solved
        result = controller.step(state)
        self._last, self._left = result, controller.settings.solve_every - 1
        self._lead_on(state, result)
        return result

    @property
    def solved_now(self) -> bool:
        """Whether the last step solved, and so began a trajectory."""
        return self._last is not None and self._left == self.controller.settings.solve_every - 1

    def solve_ahead(
        self, until_s: float = math.inf, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Solve some knots: those without efforts first, then the oldest; outside of the step.

        As many as the solution's period has periods, but only one when ``clock`` has passed
        ``until_s``.
        """
        if self._last is None or not self.solved_now:
            return
        self._ahead.follow_as(self.controller)
        first = int(self.trajectory.start_s / KNOT_S + _ON_KNOT)
        numbers = first + np.arange(self._count)
        places = numbers % self._count
        age = np.where(self._number[places] == numbers, self._solved[places], -1)
        for k in np.argsort(age, kind="stable")[: self._budget].tolist():
            self._solve_knot(first + k)
            if clock() >= until_s:
                return

    def _solve_knot(self, number: int) -> None:
        place = number % self._count
        self._number[place] = -1
        try:
            state = self._ahead.planned_state(number * KNOT_S)
            if state is None:
                return
            result = self._ahead.step(state)
        except ContactIdError:
            return  # a plan on which nothing can be solved has no efforts
        knot = self._knots[:, place]
        knot[0], knot[1], knot[2] = result.reference
        knot[3] = result.torques
        if np.isfinite(knot).all():
            self.knots_solved += 1
            self._number[place], self._solved[place] = number, self.knots_solved

    def _joints(self, state: RobotState) -> tuple[np.ndarray, np.ndarray]:
        robot = self.controller.robot
        return state.q[robot.q_index], state.v[robot.actuated]

    def _lead_on(self, state: RobotState, result: StepResult) -> None:
        """The trajectory that begins at a state with its solution."""
        out, now_s = self.trajectory, state.time_s
        out.start_s = now_s
        first = int(now_s / KNOT_S + _ON_KNOT)
        numbers = first + np.arange(self._count)
        out.times_s[0] = 0.0
        out.times_s[1:-1] = numbers[1:] * KNOT_S - now_s
        out.times_s[-1] = out.times_s[-2] + REST_S
        known = np.append(self._number[numbers % self._count] == numbers, False).argmin()
        self._set_motion(state, result, numbers, int(known))
        self._set_efforts(result, numbers, int(known), now_s)
        # To rest, at constant deceleration.
        out.positions[-1] = out.positions[-2] + 0.5 * REST_S * out.velocities[-2]
        out.velocities[-1] = out.accelerations[-1] = 0.0
        out.efforts[-1] = out.efforts[-2]
        out.replaced()

    def _set_motion(
        self, state: RobotState, result: StepResult, numbers: np.ndarray, known: int
    ) -> None:
        """Set-points: the plan, less the present error, which fades."""
        out = self.trajectory
        parts = out.positions, out.velocities, out.accelerations
        for part, now, knots in zip(parts, result.reference, self._knots):
            part[0] = now
            part[1:known] = knots[numbers[1:known] % self._count]
        for k in range(max(known, 1), self._count):
            motion = self.controller.reference_at(numbers[k] * KNOT_S)
            for part, row in zip(parts, motion):
                part[k] = row
        position, velocity = self._joints(state)
        rate, s = self._fade_rate, out.times_s[:-1, None]
        error = result.reference.position - position
        slope = result.reference.velocity - velocity + rate * error
        decay = np.exp(-s * rate)
        left = (error + slope * s) * decay
        slope = slope * decay
        out.positions[:-1] -= left
        out.velocities[:-1] -= slope - rate * left
        out.accelerations[:-1] -= rate * (rate * left - 2.0 * slope)

    def _set_efforts(
        self, result: StepResult, numbers: np.ndarray, known: int, now_s: float
    ) -> None:
        """Efforts on the plan as far as they are known, and the correction at the present state."""
        out, places = self.trajectory, numbers % self._count
        if known < 2:
            out.efforts[:-1] = result.torques
            return
        efforts = self._knots[3]
        out.efforts[1:known] = efforts[places[1:known]]
        out.efforts[known:-1] = efforts[places[known - 1]]
        share = now_s / KNOT_S - numbers[0]
        begin = (1.0 - share) * efforts[places[0]] + share * efforts[places[1]]
        out.efforts[0] = begin
        fade = np.maximum(0.0, 1.0 - out.times_s[:-1, None] / FADE_S)
        out.efforts[:-1] += (result.torques - begin) * fade
