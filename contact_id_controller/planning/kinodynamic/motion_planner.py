"""Plans again and again for one robot: from where it stands, or from the plan that it follows."""

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
        touchdowns_s: when each lands, from the plan's beginning; None: as the settings say.
    """

    footholds: tuple[Foothold, ...]
    touchdowns_s: tuple[float, ...] | None = None


class Goal(NamedTuple):
    """Where to walk on level ground: x, y, m, of the middle of the feet, and heading, rad."""

    x: float
    y: float
    heading: float


class TimedPlan(NamedTuple):
    """A plan and when it begins, s; None: `LEAD_TIME_S` after it is sent."""

    plan: MotionPlan
    start_s: float | None


class MotionPlanner:
    """Plans of a robot whose state is given with each.

    Args:
        settings: see there; `plan` and `follow` know no time but that of the states.

    Attributes:
        robot, soles: that are planned for.
        followed: the plan that the robot was last sent, and when it begins; None: none.

    Raises:
        ConfigurationError, RobotDescriptionError: settings that do not fit the robot.
    """

    def __init__(self, settings: KinodynamicPlannerSettings) -> None:
        self.settings = settings
        self.robot, self.soles = settings.robot(), soles_of(settings)
        self._posture, self._nominal = standing_posture(self.robot, self.soles, settings)
        self.followed: TimedPlan | None = None

    def warm_up(self) -> None:
        """Compile and load what `plan` uses, by a plan that shifts the weight in place."""
        contact_plan = self._contact_plan(self._nominal, Steps(self._nominal[:1]))
        plan_motion(self.robot, contact_plan, self.settings, start=self._posture)

    def reset(self) -> None:
        """The robot follows no plan."""
        self.followed = None

    def plan(
        self,
        now_s: float,
        q: np.ndarray,
        v: np.ndarray,
        task: Steps | Goal,
        lead_time_s: float = LEAD_TIME_S,
    ) -> TimedPlan:
        """A plan from the robot's state.

        Args:
            now_s: time of the state.
            q, v: (nq,), (nv,) as measured.
            task: what to do; `Steps` without footholds come to rest where the feet stand.
            lead_time_s: a plan that is followed is replaced no earlier than so long from now.

        Raises:
            StateError: the robot neither stands nor is where its plan has it.
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
            plan = gone_over(self.robot, before, begin.time_s - start_s, plan)
        return TimedPlan(plan, begin.time_s)

    def refuse_elsewhere(self, plan: MotionPlan, q: np.ndarray) -> str:
        """Why a plan cannot begin at the robot's configuration (nq,); empty: it can."""
        away_m, foot = away_from(plan, 0.0, self.robot, q, 0.0)
        if away_m <= RESTART_DISTANCE_M:
            return ""
        return (
            f"foot {foot} is {away_m:.2g} m from where the plan begins (more than "
            f"{RESTART_DISTANCE_M:g}): plan again"
        )

    def follow(self, plan: MotionPlan, start_s: float) -> None:
        """The robot will follow this plan from ``start_s`` on."""
        self.followed = TimedPlan(plan, start_s)

    def _start(self, now_s: float, q: np.ndarray, v: np.ndarray, lead_s: float) -> PlanStart:
        """Where a new plan begins: on the plan that is followed, ``lead_s`` ahead, or where the robot stands.

        Raises:
            StateError: the robot is away from the plan that it follows, which has not ended.
        """
        if self.followed is not None:
            plan, start_s = self.followed
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
