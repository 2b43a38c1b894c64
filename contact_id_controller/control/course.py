"""Plans that a controller follows: joints, base and contacts, goals, or a posture to hold."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.plans import rotations
from contact_id_controller.plans.base_trajectory import BaseReference, BaseTrajectory
from contact_id_controller.plans.goals import TaskGoals
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.sampling import (
    BASE_NUMBERS,
    entries,
)
from contact_id_controller.plans.trajectories import (
    ContactSchedule,
    JointTrajectory,
    PlanSlot,
    Reference,
)
from contact_id_controller.robot import RobotModel
from contact_id_controller.state import RobotState

Numbers = NDArray[np.float64]
SAME_TIME_S = 1e-6
"""Two times that differ by less are the same, but for rounding."""


class Course:
    """Current and next plans, and the posture that is held without them.

    After a plan that ends in motion it holds the last posture, with all feet on the ground.

    Attributes:
        joints, base, contacts, goals: slots of the plans.  Goals end plans of joints and base, and vice versa.
        posture: (na,) rad, held without a plan of the joints.  base_pose: (7,) held without plans of base
            and joints; None for a fixed base.  is_set: there is a posture.
        lower_feet: feet in the air come down without a plan for it.
        caught (n,) bool: contacts of feet that have landed earlier than planned, where goals allow it.
    """

    def __init__(self, robot: RobotModel, contacts: int):
        self._robot = robot
        self.joints: PlanSlot[JointTrajectory] = PlanSlot()
        self.base: PlanSlot[BaseTrajectory] = PlanSlot()
        self.contacts: PlanSlot[ContactSchedule] = PlanSlot(early=False)
        self.goals: PlanSlot[TaskGoals] = PlanSlot(early=False)
        self.posture: Numbers = np.zeros(robot.na)
        self.base_pose: Numbers | None = None
        self.is_set = self.lower_feet = False
        self._next_s = np.inf
        self._standing = np.ones(contacts, dtype=bool)
        self.caught = np.zeros(contacts, dtype=bool)

    def copy(self) -> Course:
        """An independent copy that follows the same plans."""
        other = copy.copy(self)
        other.joints, other.base = self.joints.copy(), self.base.copy()
        other.contacts, other.goals = self.contacts.copy(), self.goals.copy()
        other.caught = self.caught.copy()
        return other

    @property
    def has_goals(self) -> bool:
        """Whether goals are followed, now or after a start time."""
        return self.goals.current is not None or self.goals.waiting is not None

    def hold(self, q: Numbers) -> None:
        """Drop the plans and hold the posture of a configuration (nq,)."""
        self._drop_plans()
        self.posture = self._robot.joints_of(q)
        self.base_pose = q[:7].copy() if self._robot.floating_base else None
        self.is_set, self.lower_feet = True, False

    def follow(self, ready: Plan, now_s: float = -np.inf) -> None:
        """Follow a plan checked by ``plans.checks``, each part from its start on; plans that start by now_s have begun."""
        slots: tuple[tuple[PlanSlot[Any], Any], ...] = (
            (self.joints, ready.joints),
            (self.base, ready.base),
            (self.contacts, ready.contacts),
            (self.goals, ready.goals),
        )
        for slot, part in slots:
            if part is not None:
                slot.at(now_s + SAME_TIME_S)
                slot.replace(part)
        if ready.joints is not None or ready.goals is not None:
            self.lower_feet = False
        self._next_s = -np.inf

    def _begin_waiting(self, t: float) -> None:
        """Switch to the plans that start by time t, s; the next start is ``_next_s``."""
        slots: tuple[PlanSlot[Any], ...] = (self.joints, self.base, self.contacts, self.goals)
        for slot in slots:
            slot.at(t)
        self._end_replaced(t)
        plans = (plan for slot in slots for plan in (slot.current, slot.waiting))
        starts = (plan.start_s for plan in plans if plan is not None and plan.start_s > t)
        self._next_s = min(starts, default=np.inf)

    def _end_replaced(self, t: float) -> None:
        """Of goals and of joints or base that have started by time t, s, end those that started first."""
        goals = self.goals.current
        if goals is None:
            return
        slots: tuple[PlanSlot[Any], ...] = (self.joints, self.base)
        begun = [slot for slot in slots if slot.current and slot.current.start_s <= t]
        if any(slot.current and slot.current.start_s > goals.start_s for slot in begun):
            self.goals.current = None
            self.caught[:] = False
            return
        for slot in begun:
            slot.current = None
        self.posture = np.asarray(goals.posture.positions)

    def _drop_plans(self) -> None:
        for slot in (self.joints, self.base, self.contacts, self.goals):
            slot.clear()
        self.caught[:] = False

    def sample(
        self, t: float, reference: Numbers, goal: Numbers, planned: NDArray[np.bool_]
    ) -> tuple[bool, bool, ContactSchedule | None]:
        """Sample the plans at time t, s.

        Args:
            reference: (3, na) out: position, velocity and acceleration of each joint, rad, rad/s, rad/s2.
            goal: (19,) out, pose, twist and acceleration of the base, as in ``sample_base``; unchanged without one.
            planned: (n,) bool out, planned contacts.

        Returns whether a plan of the joints has not ended by t; whether the base has a goal; the schedule, if any.
        """
        if t >= self._next_s:
            self._begin_waiting(t)
        sample_joints, sample_base, sample_stance = entries()
        joints, base = self.joints.current, self.base.current
        if (
            joints is None
            or base is None
            or self.goals.current is not None
            or t >= (joints.start_s or 0.0) + joints.last_s
        ):
            lasts = self.take(t, reference)
            has_goal = self._robot.floating_base and self.take_base(t, goal)
        else:  # what ``take`` and ``take_base`` do with plans that go on, with fewer calls
            lasts, has_goal = True, self._robot.floating_base
            since = t if joints.start_s is None else t - joints.start_s
            sample_joints(*joints.motion, since, reference)
            if has_goal:
                sample_base(*base.motion, t if base.start_s is None else t - base.start_s, goal)
        schedule = self.contacts.current
        if schedule is None:
            planned[:] = True
        else:
            since = t if schedule.start_s is None else t - schedule.start_s
            sample_stance(schedule.times_s, schedule.stance, since, planned)
        return lasts, has_goal, schedule

    def take(self, t: float, reference: Numbers) -> bool:
        """Write the joints' motion (3, na) at time t, s, into ``reference``; returns whether a plan has not ended.

        A plan that has ended in motion becomes a posture to hold.
        """
        if t >= self._next_s:
            self._begin_waiting(t)
        plan, goals = self.joints.peek(t), self.goals.current
        if goals is not None:
            reference[0], reference[1:] = self.posture, 0.0
            return t < goals.end_s
        if plan is None:
            reference[0], reference[1:] = self.posture, 0.0
            return False
        lasts = plan.fill(t, reference)
        if plan is not self.joints.current:
            return True
        if not lasts and plan.ends_in_motion:
            self._stay_at_end(plan, t)
            reference[0], reference[1:] = self.posture, 0.0
        return lasts

    def _stay_at_end(self, plan: JointTrajectory, t: float) -> None:
        self.posture = plan.positions[-1].copy()
        base = self.base.at(t)
        if base is not None:
            self.base_pose = np.r_[base.positions[-1], base.quaternions_xyzw[-1]]
        self._drop_plans()
        self.lower_feet = True

    def take_base(self, t: float, goal: Numbers) -> bool:
        """Write the base's motion, or its pose to hold, into ``goal`` (19,); False: the base has none."""
        if t >= self._next_s:
            self._begin_waiting(t)
        if self.goals.current is not None:
            return False  # their heading is no pose
        plan = self.base.peek(t)
        if plan is not None:
            plan.fill(t, goal)
            return True
        if self.base_pose is None or self.joints.current is not None:
            return False
        goal[:7], goal[7:] = self.base_pose, 0.0
        return True

    def stance(self, t: float) -> NDArray[np.bool_]:
        """Planned contacts (n,) bool at time t, s; all without a plan."""
        schedule = self.contacts.at(t)
        return self._standing if schedule is None else schedule.sample(t)

    def plans_at(
        self, t: float
    ) -> tuple[JointTrajectory | None, BaseTrajectory | None, ContactSchedule | None]:
        """Plans of joints, base and contacts that will be active at time t, s, of those received so far."""
        return self.joints.peek(t), self.base.peek(t), self.contacts.peek(t)

    def reference_at(self, t: float) -> Reference:
        """Joint motion at time t, s, by the plans received so far."""
        plan = self.joints.peek(t)
        if plan is None:
            rest = np.zeros(self._robot.na)
            return Reference(self.posture, rest, rest)
        return plan.sample(t)

    def planned_at(self, t: float) -> tuple[Reference, BaseReference, NDArray[np.bool_]] | None:
        """Joints, base and stance as planned for a later time; None without a plan of the base."""
        if self.goals.peek(t) is not None:
            return None
        joints, plan, schedule = self.plans_at(t)
        if plan is not None:
            base = plan.sample(t)
        elif joints is not None or self.base_pose is None:
            return None
        else:
            base = BaseReference(self.base_pose[:3], self.base_pose[3:], *(_STILL,) * 4)
        stance = self._standing if schedule is None else schedule.sample(t)
        return self.reference_at(t), base, stance

    def state_at(self, t: float) -> RobotState | None:
        """Planned state at time t, s; None without a plan of the base."""
        robot = self._robot
        q, v, reference = robot.neutral(), np.zeros(robot.nv), np.zeros((3, robot.na))
        if robot.floating_base:
            numbers = np.zeros(BASE_NUMBERS)
            if not self.take_base(t, numbers):
                return None
            goal = numbers.tolist()
            turn = rotations.conjugate(goal[3:7])
            q[:7], v[:3] = goal[:7], rotations.rotate(turn, goal[7:10])
            v[3:6] = rotations.rotate(turn, goal[10:13])
        plan = self.joints.at(t)
        if plan is None:
            reference[0] = self.posture
        else:
            plan.fill(t, reference)
        robot.put_joints(q, reference[0])
        v[robot.actuated] = reference[1]
        return RobotState(t, q, v)


_STILL = np.zeros(3)
