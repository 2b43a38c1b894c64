"""Repeated whole-body plans for one robot, each from the measured state or from the plan being followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import StateError
from contact_id_controller.planning.kinodynamic.alternation import MotionPlan, plan_motion
from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan, Foothold
from contact_id_controller.planning.kinodynamic.footstep_file import soles_of, standing_posture
from contact_id_controller.planning.kinodynamic.plan_start import (
    PlanStart,
    away_from,
    gone_over,
    standing_here,
    while_following,
)
from contact_id_controller.planning.kinodynamic.straight_walk import straight_footsteps
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings

LEAD_TIME_S = 0.5
"""A plan begins so long after it is sent, and replaces another one no earlier: what planning some steps takes.
The node waits longer where planning has taken longer."""

RESTART_DISTANCE_M = 0.05
"""A robot whose feet are farther from the plan that it follows is not on it: no plan replaces that one
before it has ended, and then the next one begins where the robot is."""


class Steps(NamedTuple):
    """Footsteps to make.

    Attributes:
        footholds: of the frames of the feet, world frame, in the order in which they are made.
        touchdowns_s: touchdown time of each, from the plan's beginning; None: by the settings' durations.
    """

    footholds: tuple[Foothold, ...]
    touchdowns_s: tuple[float, ...] | None = None


class Goal(NamedTuple):
    """Target on level ground: x, y, m, of the middle of the feet, and heading, rad, world."""

    x: float
    y: float
    heading: float


class TimedPlan(NamedTuple):
    """A plan and its start time, s; None: `LEAD_TIME_S` after it is sent."""

    plan: MotionPlan
    start_s: float | None


class MotionPlanner:
    """Planner that keeps the plan being followed from call to call.

    Args:
        settings: of the planner; `plan` and `follow` use the states' time only.

    Attributes:
        robot, soles: that are planned for.
        followed: the last plan that was sent and its start time; None: none.

    Raises:
        ConfigurationError, RobotDescriptionError: settings that do not fit the robot.
    """

    def __init__(self, settings: KinodynamicPlannerSettings) -> None:
        self.settings = settings
        self.robot, self.soles = settings.robot(), soles_of(settings)
        self._posture, self._nominal = standing_posture(self.robot, self.soles, settings)
        self.followed: TimedPlan | None = None

    def warm_up(self) -> None:
        """Compile and load what `plan` uses, by planning a weight shift in place."""
        contact_plan = self._contact_plan(self._nominal, Steps(self._nominal[:1]))
        plan_motion(self.robot, contact_plan, self.settings, start=self._posture)

    def reset(self) -> None:
        """Forget the plan being followed."""
        self.followed = None

    def plan(
        self,
        now_s: float,
        q: np.ndarray,
        v: np.ndarray,
        task: Steps | Goal,
        lead_time_s: float = LEAD_TIME_S,
    ) -> TimedPlan:
        """Plan from the measured state, or from the plan being followed.

        Args:
            now_s: time of the state.
            q, v: (nq,), (nv,) as measured.
            task: footsteps or goal; `Steps` without footholds: come to rest on the present footholds.
            lead_time_s: shortest time from now until a plan being followed is replaced.

        Raises:
            StateError: the robot is not at rest, or away from the plan that it follows.
            InfeasiblePlanError, ContactPlanError, ConfigurationError: see `plan_motion`.
        """
        begin = self._start(now_s, q, v, lead_time_s)
        steps = self._steps(begin.stance, task) if isinstance(task, Goal) else task
        plan = plan_motion(
            self.robot,
            self._contact_plan(begin.stance, steps),
            self.settings,
            start=begin.q,
            velocity=begin.v,
            posture=self._posture,
            start_s=begin.time_s,
        )
        if self.followed is not None and begin.time_s is not None:
            before, start_s = self.followed
            assert start_s is not None
            plan = gone_over(self.robot, before, begin.time_s - start_s, plan)
        return TimedPlan(plan, begin.time_s)

    def refuse_elsewhere(self, plan: MotionPlan, q: np.ndarray) -> str:
        """Reason why a plan cannot begin at the robot's configuration (nq,); empty if it can."""
        away_m, foot = away_from(plan, 0.0, self.robot, q, 0.0)
        if away_m <= RESTART_DISTANCE_M:
            return ""
        return (
            f"foot {foot} is {away_m:.2g} m from where the plan begins (more than "
            f"{RESTART_DISTANCE_M:g}): plan again"
        )

    def follow(self, plan: MotionPlan, start_s: float) -> None:
        """Record that the robot follows this plan from ``start_s`` on."""
        self.followed = TimedPlan(plan, start_s)

    def _start(self, now_s: float, q: np.ndarray, v: np.ndarray, lead_s: float) -> PlanStart:
        """Start of a new plan: on the plan being followed, ``lead_s`` ahead, or at rest where the robot is.

        Raises:
            StateError: the robot is away from the plan being followed, which has not ended.
        """
        if self.followed is not None:
            plan, start_s = self.followed
            assert start_s is not None
            away_m, foot = away_from(plan, start_s, self.robot, q, now_s)
            if away_m <= RESTART_DISTANCE_M:
                return while_following(plan, start_s, max(now_s + lead_s, start_s))
            if now_s < start_s + plan.fine.times_s[-1]:
                raise StateError(
                    f"foot {foot} is {away_m:.2g} m from the plan that is followed "
                    f"(more than {RESTART_DISTANCE_M:g}): plan when it has ended"
                )
        return standing_here(self.robot, self.soles, q, v, self.settings.friction_coefficient)

    def _steps(self, stance: Sequence[Foothold], goal: Goal) -> Steps:
        """Footsteps on a straight line from this stance to the goal."""
        settings = self.settings
        return Steps(
            straight_footsteps(
                self.soles,
                stance,
                self._nominal,
                goal,
                stride_m=settings.stride_m,
            )
        )

    def _contact_plan(self, stance: Sequence[Foothold], steps: Steps) -> ContactPlan:
        """The phases of these footsteps: double support and swing with the settings' durations, s."""
        settings = self.settings
        return ContactPlan.from_footsteps(
            self.soles,
            stance,
            steps.footholds,
            support_s=settings.support_s,
            swing_s=settings.swing_s,
            touchdowns_s=steps.touchdowns_s,
        )
