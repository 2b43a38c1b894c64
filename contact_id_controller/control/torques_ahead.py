"""Torques for a horizon, to bridge delays of the computer: contact inverse dynamics on the plan.

Each solution at a measured state begins a trajectory for the robot's own side (`EffortTrajectory`).
Its efforts are those that the same controller computes *on the plan*: planned base, joints and contacts
at knots ``KNOT_S`` apart, solved one after another as time allows. Two corrections start it at the measured
state, and fade:

    q_set(t) = q_plan(t) - e(t),   e'' + kd e' + (kd/2)^2 e = 0 from the present error on
    effort(t) = effort_plan(t) + (tau - effort_plan(0)) max(0, 1 - t / FADE_S)

The set-points thus start at the present state and converge to the plan as fast as with the controller's own
joint feedback; at the state that was solved the local feedback is zero, and the sum
is the solver's torque. Set-points on the plan itself would make the local feedback oppose the base's.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable
from operator import is_not
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.held_steps import HeldSteps
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.plans.effort_trajectory import (
    REST_S,
    EffortTrajectory,
    LocalFeedback,
)
from contact_id_controller.robot import RobotModel, symmetric
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

KNOT_S = 0.01
FADE_S = 0.03
LOCAL_SPEED = 2.0
"""Speed of the local feedback relative to the controller's own joint feedback; it has no delay. With the same speed,
walks with 100 ms blackouts fell on slippery ground."""

MOST_OF_FREE = 2.0
"""Without this bound a Panda's gains were 7 times what is stable at 1 kHz, with it .6; those of quadrupeds are within
6 % the same."""

SURE_S = 0.05
"""Horizon whose torques are solved first after a change of plan; beyond, as time allows: a replanning planner has
usually sent another plan by then."""

_ON_KNOT = 1e-6


def actuated_inertia(robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """Inertia (na, na) of the actuated joints with all else free: M_aa - M_au M_uu^-1 M_ua."""
    M = symmetric(pin.crba(robot.model, robot.scratch, q))
    a, u = robot.actuated, robot.unactuated
    coupling = M[np.ix_(a, u)]
    return M[np.ix_(a, a)] - coupling @ np.linalg.solve(M[np.ix_(u, u)], coupling.T)


def joint_inertia(robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """Inertia (na,) of each actuated joint by itself, with all others but the base locked."""
    return np.diag(actuated_inertia(robot, q)).copy()


def local_gains(
    robot: RobotModel,
    settings: ControllerSettings,
    q: np.ndarray,
    rotors: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """K, N·m/rad, and D, N·m·s/rad, (na,), of the local feedback of a robot standing at q (nq,).

    The controller's own, ``LOCAL_SPEED`` times as fast, times the joint inertia; of that at most ``MOST_OF_FREE`` times
    the inertia with all other joints free. In an arm that is far smaller: its joints have nearly the same axis.
    rotors: inertia (na,) estimated in addition to the model's, kg m^2.
    """
    na, inertias = robot.na, actuated_inertia(robot, q)
    free = 1.0 / np.diag(np.linalg.inv(inertias))
    inertia = np.minimum(np.diag(inertias), MOST_OF_FREE * free) + rotors
    return (
        LOCAL_SPEED**2 * inertia * settings.spread("joint_position_gain", na),
        LOCAL_SPEED * inertia * settings.spread("joint_velocity_gain", na),
    )


class TorquesAhead(HeldSteps):
    """Steps whose command is the trajectory that continues the last solution.

    Between two solutions torques are those of the local feedback along it.

    Args:
        controller: that solves. A second one of its kind solves ahead.

    Attributes:
        local: the local feedback; None before the first state, on which its gains may depend.
        knots_solved: number of knots solved since construction.
    """

    command: EffortTrajectory

    def __init__(self, controller: Controller):
        settings, na = controller.settings, controller.robot.na
        self._count = max(2, math.ceil(settings.command_horizon_s / KNOT_S - _ON_KNOT) + 1)
        super().__init__(controller, EffortTrajectory(self._count + 1, na))
        # A copy of the robot: its workspace must not overwrite that of the controller's step.
        robot = copy.copy(controller.robot)
        feet = copy.deepcopy(controller.feet, {id(controller.robot): robot})
        # In the future contact is known by the plan alone; and the rate limit is for steps of one period, not for the
        # change from knot to knot.
        self._ahead = Controller(
            robot,
            dataclasses.replace(
                settings, contact_sources=("schedule",), effort_rate_limits_nm_s=()
            ),
            feet,
        )
        self._number = np.full(self._count, -1, dtype=np.int64)
        self._solved = np.zeros(self._count, dtype=np.int64)
        self._plans: list[tuple[Any, ...]] = [(None,) * 3] * self._count
        self._stale = np.zeros(self._count, dtype=bool)
        self._failed = np.full(self._count, -1, dtype=np.int64)
        # With an integral gain efforts change although the plan does not.
        self._learns = bool(settings.spread("joint_integral_gain", na).any())
        self._knots = np.zeros((self._count, 4, na))
        self._fade_rate = 0.5 * settings.spread("joint_velocity_gain", na)
        self.local: LocalFeedback | None = None
        self._began_at = np.zeros(0)
        self.knots_solved = 0
        self._now_s = 0.0

    def begin(self) -> None:
        """Discard the last solution: the next state is solved."""
        super().begin()
        self._number[:] = self._failed[:] = -1

    def step(self, state: RobotState) -> StepResult:
        """Torques for the coming period: solved, or by the local feedback."""
        controller, self._now_s = self.controller, state.time_s
        if self.local is None:
            self.local = LocalFeedback(
                *local_gains(controller.robot, controller.settings, state.q),
                controller.effort_limits,
                controller.robot.turns,
            )
            self._began_at = state.q.copy()
        return super().step(state)

    def solve_ahead(
        self, until_s: float = -math.inf, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Solve a knot that is not solved for the current plan; called outside of the step.

        Continues with further knots while ``clock`` is before ``until_s``. Knots changed by a new plan get its motion
        at once; if they are more than ``SURE_S`` ahead, their torques are solved only in spare time.
        """
        if self._last is None:
            return
        self._ahead.follow_as(self.controller)
        first = int(self._now_s / KNOT_S + _ON_KNOT)
        waiting = []
        for number in range(first, first + self._count):
            place = number % self._count
            plans = self._ahead.plans_at(number * KNOT_S)
            known = self._number[place] == number
            if any(map(is_not, plans, self._plans[place])):
                self._plans[place], self._stale[place], self._failed[place] = plans, True, -1
                if known:
                    self._knots[place, :3] = self._ahead.reference_at(number * KNOT_S)
            far = (number - first) * KNOT_S > SURE_S
            if not known and self._failed[place] != number:
                waiting.append((False, 0, number))
            elif known and (self._stale[place] or self._learns):
                can_wait = far and bool(self._stale[place])
                waiting.append((can_wait, int(self._solved[place]), number))
        waiting.sort()
        for can_wait, _, number in waiting:
            if can_wait and clock() >= until_s:
                return
            self._solve_knot(number)
            if clock() >= until_s:
                return

    def _solve_knot(self, number: int) -> None:
        """Solve reference and torques at time ``number * KNOT_S``, on the planned state.

        Marked as failed if there is none.
        """
        place = number % self._count
        self._number[place], self._failed[place] = -1, number
        try:
            state = self._ahead.planned_state(number * KNOT_S)
            if state is None:
                return
            result = self._ahead.step(state)
        except ContactIdError:
            return  # a plan on which nothing can be solved has no efforts
        knot = self._knots[place]
        knot[0], knot[1], knot[2] = result.reference
        knot[3] = result.torques
        if np.isfinite(knot).all():
            self.knots_solved += 1
            self._number[place], self._solved[place] = number, self.knots_solved
            self._stale[place], self._failed[place] = False, -1

    def _learn_rotors(self) -> None:
        """Update the gains for the rotors estimated at the last step, unless they are configured."""
        controller = self.controller
        rotors = controller.period.motors[0]
        if (
            self.local is not None
            and rotors.any()
            and not controller.settings.interface.has_joint_gains
        ):
            self.local.tune(
                local_gains(controller.robot, controller.settings, self._began_at, rotors)
            )

    def _held(self, state: RobotState) -> np.ndarray:
        robot = self.controller.robot
        assert self.local is not None, "made at the first state"
        self.local.trajectory = self.command
        return self.local.torques(state.time_s, robot.joints_of(state.q), state.v[robot.actuated])

    def _fill_command(self, state: RobotState, result: StepResult) -> None:
        """Write the trajectory that begins at a state with its solution."""
        self._learn_rotors()
        out, now_s, robot = self.command, state.time_s, self.controller.robot
        first = int(now_s / KNOT_S + _ON_KNOT)
        known = _lead_on(
            now_s,
            first,
            self._number,
            self._knots,
            *result.reference,
            result.torques,
            out.times_s,
            out.values,
        )
        if known < self._count:
            self._fill(first, known)
        if robot.turns.any():
            # Knots of different plans may count other turns.
            way = out.values[: self._count, 0, robot.turns]
            out.values[: self._count, 0, robot.turns] = np.unwrap(way, axis=0)
        _begin_here(
            self._fade_rate,
            robot.joints_near(state.q, result.reference.position),
            state.v[robot.actuated],
            out.times_s,
            out.values,
        )
        out.start_s = now_s

    def _fill(self, first: int, known: int) -> None:
        """Fill points of knots not solved yet: the plan, with the last known effort."""
        values = self.command.values
        for k in range(max(known, 1), self._count):
            values[k, 0], values[k, 1], values[k, 2] = self.controller.reference_at(
                (first + k) * KNOT_S
            )


@bare_kernel
def _lead_on(now_s, first, number, knots, position, velocity, acceleration, torques, times, values):
    """Write times and values (p, 4, na) of a trajectory on the plan, with efforts that begin at ``torques``.

    number (n,), knots (n, 4, na): of the solved knots, in a ring buffer; position, velocity, acceleration,
    torques (na,): the present plan, and the solution. The last point is not written. Returns how many knots
    are solved, from ``first`` on; of the others only the efforts are set.
    """
    count, joints = number.shape[0], torques.shape[0]
    known = 0
    while known < count and number[(first + known) % count] == first + known:
        known += 1
    share = now_s / KNOT_S - first
    times[0] = 0.0
    for k in range(1, count):
        times[k] = (first + k) * KNOT_S - now_s
    for j in range(joints):
        values[0, 0, j], values[0, 1, j] = position[j], velocity[j]
        values[0, 2, j], values[0, 3, j] = acceleration[j], torques[j]
        correction = 0.0
        if known >= 2:
            here, there = knots[first % count, 3, j], knots[(first + 1) % count, 3, j]
            correction = torques[j] - (1.0 - share) * here - share * there
        for k in range(1, count):
            if known < 2:
                values[k, 3, j] = torques[j]
                continue
            place = (first + min(k, known - 1)) % count
            fade = max(0.0, 1.0 - times[k] / FADE_S)
            values[k, 3, j] = knots[place, 3, j] + correction * fade
            if k < known:
                for part in range(3):
                    values[k, part, j] = knots[place, part, j]
    return known


@bare_kernel
def _begin_here(rate, position, velocity, times, values):
    """Shift set-points on the plan, in place, to begin at the measured position and velocity (na,), and end at rest.

    rate (na,) 1/s: kd / 2 of the fading error.
    """
    last = times.shape[0] - 1
    times[last] = times[last - 1] + REST_S
    for j in range(rate.shape[0]):
        error = values[0, 0, j] - position[j]
        slope = values[0, 1, j] - velocity[j] + rate[j] * error
        for k in range(last):
            decay = np.exp(-rate[j] * times[k])
            left, change = (error + slope * times[k]) * decay, slope * decay
            values[k, 0, j] -= left
            values[k, 1, j] -= change - rate[j] * left
            values[k, 2, j] -= rate[j] * (rate[j] * left - 2.0 * change)
        # At constant deceleration.
        values[last, 0, j] = values[last - 1, 0, j] + 0.5 * REST_S * values[last - 1, 1, j]
        values[last, 1, j] = values[last, 2, j] = 0.0
        values[last, 3, j] = values[last - 1, 3, j]
