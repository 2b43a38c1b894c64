"""Checks of a plan before it is followed, in one place.

The form of its points was checked when its parts were made (`plans.points`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.kernels.turns import nearest
from contact_id_controller.plans import rotations
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.goals import TaskGoals
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.plan_limits import (
    PlanLimits,
    check_base,
    check_base_jump,
    check_goals,
    check_joints,
    check_way,
)
from contact_id_controller.plans.points import started
from contact_id_controller.plans.trajectories import JointTrajectory, PlanSlot, Reference

LATE_S = 0.5
"""A base or a schedule whose last point is older belongs to another time: more than a message takes."""


class Followed(NamedTuple):
    """State of the controller against which a new plan is checked.

    joint_names (na), frames (n_feet): of the robot; slot: the joint plans followed until
    now; hold (na,): posture without one; measured (na,): positions of the joints, rad, None before
    the first state; jump_limit: ``plan_jump_limit``, rad; locked: joints without a motor; turns
    (na,) bool: joints without limits, None: none.  limits: of every plan.  base_slot: the base plans;
    base_hold (7,): pose without one, None for a fixed base; base_measured (7,): its pose, None before the
    first state.  takes_goals: goals are followed.  feet_measured (f, 3): ground points of the feet, m, None
    before the first state.  others: frames of the robot that are no feet; places_of: where such frames are, (3,) m each.
    goals: those followed until now.  floating_base: of the robot; a fixed one takes no motion of a base.
    """

    joint_names: Sequence[str]
    frames: Sequence[str]
    slot: PlanSlot[JointTrajectory]
    hold: np.ndarray
    measured: np.ndarray | None
    jump_limit: float
    limits: PlanLimits
    base_slot: PlanSlot[BaseTrajectory]
    base_hold: np.ndarray | None = None
    base_measured: np.ndarray | None = None
    locked: Container[str] = ()
    turns: np.ndarray | None = None
    takes_goals: bool = False
    feet_measured: np.ndarray | None = None
    others: Sequence[str] = ()
    places_of: Callable[[Iterable[str]], list[np.ndarray]] | None = None
    goals: PlanSlot[TaskGoals] | None = None
    floating_base: bool = True

    def near(self, positions: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Positions (na,) with the whole turns that bring them nearest to a reference (na,)."""
        return positions if self.turns is None else nearest(positions, reference, self.turns)


def prepare(plan: Plan, followed: Followed) -> Plan:
    """Order the plan's parts as the robot does and check them against its limits.

    The slow part of `ready_to_follow` that depends on no state; errors are raised there.
    """
    joints, base, contacts = plan.joints, plan.base, plan.contacts
    with contextlib.suppress(TrajectoryError):
        if joints is not None:
            joints = joints.in_order(followed.joint_names, followed.locked)
            check_joints(joints, followed.limits)
    with contextlib.suppress(TrajectoryError):
        if base is not None:
            check_base(base, followed.limits)
    with contextlib.suppress(TrajectoryError):
        if contacts is not None:
            contacts = contacts.in_order(followed.frames)
    goals = plan.goals
    with contextlib.suppress(TrajectoryError):
        if goals is not None:
            goals = _ordered_goals(goals, followed)
            check_goals(goals, followed.limits)
    return dataclasses.replace(plan, joints=joints, contacts=contacts, goals=goals)


def ready_to_follow(plan: Plan, now_s: float, followed: Followed) -> Plan:
    """The plan as followed when it arrives at ``now_s``: in the robot's order, with an approach from the motion before.

    Raises:
        TrajectoryError: parts that do not begin together, unknown or missing joints, an unknown
            contact frame, goals beside joints or base, parts that end in the past, or that begin farther than the
            jump limits from the motion followed until then and from where the robot is, and whatever exceeds the
            limits of position, speed and acceleration.
    """
    parts: dict[str, Any] = {name: started(part, now_s) for name, part in plan.parts.items()}
    plan = dataclasses.replace(plan, **parts)
    starts: dict[str, float] = {name: part.start_s for name, part in parts.items()}
    if len(set(starts.values())) > 1:
        listed = ", ".join(f"{name} at {start_s:.6f} s" for name, start_s in starts.items())
        raise TrajectoryError(f"the parts of a plan must begin together: {listed}")
    joints, base, contacts = plan.joints, plan.base, plan.contacts
    if joints is None:
        for name, part in parts.items():
            _refuse_past(name, part.start_s, float(part.times_s[-1]), now_s)
    else:
        joints = joints.in_order(followed.joint_names, followed.locked)
        check_joints(joints, followed.limits)
        joints = _approached(joints, now_s, followed)
    if base is not None:
        if not followed.floating_base:
            raise TrajectoryError("a plan of the base is not followed: the robot's base is fixed")
        check_base(base, followed.limits)
        _refuse_base_jump(base, now_s, followed)
    if contacts is not None:
        contacts = contacts.in_order(followed.frames)
    goals = plan.goals
    if goals is not None:
        _refuse_goals(plan, followed)
        goals = _ordered_goals(goals, followed)
        check_goals(goals, followed.limits)
        _refuse_goals_elsewhere(goals, now_s, followed)
    return dataclasses.replace(plan, joints=joints, contacts=contacts, goals=goals)


def _ordered_goals(goals: TaskGoals, followed: Followed) -> TaskGoals:
    """The goals in the robot's order."""
    return goals.in_order(followed.joint_names, followed.frames, followed.locked, followed.others)


def _refuse_goals(plan: Plan, followed: Followed) -> None:
    """Raise TrajectoryError for goals beside joints or a base, and if the controller does not follow goals."""
    others = [name for name in ("joints", "base") if name in plan.parts]
    if others:
        raise TrajectoryError(
            f"a plan has goals or joints and base, not both: this one has goals and {others[0]}"
        )
    if not followed.takes_goals:
        raise TrajectoryError(
            "goals are not followed: they need base_feedback 'center_of_mass' and a contact model"
        )


def _refuse_goals_elsewhere(goals: TaskGoals, now_s: float, followed: Followed) -> None:
    """Raise TrajectoryError for goals whose heading, or path of a foot or frame, begins far from the measured one.

    A frame may be away, as a hand out of reach, from a path that goes on from the goals before.
    """
    feet, base = followed.feet_measured, followed.base_measured
    if feet is None or base is None:
        return
    begin_s = max(goals.start_s or now_s, now_s)
    sample = goals.sample(begin_s)
    x, y, z, w = base[3:].tolist()
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    turn = abs(math.remainder(float(sample.heading[0]) - yaw, 2.0 * math.pi))
    if not turn <= followed.limits.base_jump[1]:
        raise TrajectoryError(
            f"the goals' heading is {turn:.3g} rad from the base's, must be at most {followed.limits.base_jump[1]:g}"
        )
    measured = {f"foot {k}": (k, feet[k]) for k in range(len(feet))}
    if followed.places_of is not None and goals.frames:
        places = followed.places_of(goals.frames)
        for k, (frame, place) in enumerate(zip(goals.frames, places), len(feet)):
            measured[f"frame {frame!r}"] = k, place
    before = None if followed.goals is None else followed.goals.peek(begin_s)
    led = {} if before is None else _led(before, begin_s)
    for name, (k, place) in measured.items():
        first = sample.feet[k, 0, :3]
        away = float(np.linalg.norm(first - place))
        goes_on = np.linalg.norm(first - led.get(name, math.inf)) <= followed.limits.base_jump[0]
        if sample.aloft[k] and not (away <= followed.limits.base_jump[0] or goes_on):
            raise TrajectoryError(
                f"the path of {name} of the goals is {away:.3g} m from the {name.split()[0]}, "
                f"must be at most {followed.limits.base_jump[0]:g} m"
            )


def _led(goals: TaskGoals, t: float) -> dict[str, np.ndarray]:
    """Where ordered goals have the frames that are no feet, by their path, at time t, s: (3,) m each."""
    sample, frames = goals.sample(t), list(goals.frames)
    last = slice(len(sample.aloft) - len(frames), None)
    return {
        f"frame {frame!r}": feet[0, :3]
        for frame, feet, aloft in zip(frames, sample.feet[last], sample.aloft[last])
        if aloft
    }


def _approached(joints: JointTrajectory, now_s: float, followed: Followed) -> JointTrajectory:
    """Planned joints with the approach from the motion before; TrajectoryError for a jump."""
    assert joints.start_s is not None, "started"
    begin_s = max(joints.start_s, now_s)
    current = followed.slot.at(now_s)
    if current is None:
        rest = np.zeros_like(followed.hold)
        begin_s, before = now_s, Reference(followed.hold, rest, rest)
    else:
        before = current.sample(begin_s)
    first_s, start = joints.start_s + float(joints.times_s[0]), before[0]
    if first_s > begin_s:
        # Where a joint turns without end, the way is the short one round.
        start = followed.near(start, joints.positions[0])
        check_way(joints.names, start, joints.positions[0], first_s - begin_s, followed.limits)
    joints = joints.received(begin_s, start, *before[1:])
    if followed.measured is not None:
        first = joints.sample(begin_s).position
        start, measured = (followed.near(each, first) for each in (start, followed.measured))
        _refuse_jump(first, start, measured, followed)
    return joints


def _refuse_jump(first: Any, before: Any, measured: Any, followed: Followed) -> None:
    """Raise TrajectoryError unless the first position is near the reference, or near the measured joints."""
    limit = followed.jump_limit
    jump = np.abs(first - before)
    if jump.max(initial=0.0) <= limit or np.abs(first - measured).max() <= limit:
        return
    k = int(np.argmax(jump))
    raise TrajectoryError(
        f"joint {followed.joint_names[k]!r} would jump by {jump[k]:.3g} where the "
        f"trajectory begins, plan_jump_limit is {limit:g}: give its first point a later time"
    )


def _refuse_past(what: str, start_s: float, last_s: float, now_s: float) -> None:
    """Raise TrajectoryError for a part whose last point lies more than `LATE_S` in the past."""
    end_s = start_s + last_s
    if end_s < now_s - LATE_S:
        raise TrajectoryError(
            f"planned {what} end at {end_s:.6f} s, in the past: it is {now_s:.6f} s"
        )


def _refuse_base_jump(base: BaseTrajectory, now_s: float, followed: Followed) -> None:
    """Raise TrajectoryError unless the base begins near its measured pose, or its planned one and no farther away."""
    assert base.start_s is not None, "started"
    begin_s = max(base.start_s, now_s)
    current = followed.base_slot.at(now_s)
    before = followed.base_hold if current is None else current.sample(begin_s).pose
    first, measured = base.sample(begin_s).pose, followed.base_measured
    jump = None if before is None else _pose_difference(first, before)
    if measured is not None:
        away = _pose_difference(first, measured)
        if _within(away, followed.limits.base_jump):
            return
        # No farther away than the motion before is: else plan after plan would lead away from the robot.
        led_away = before is not None and not _within(away, _pose_difference(before, measured))
        if jump is None or (led_away and _within(jump, followed.limits.base_jump)):
            jump = away
    if jump is not None:
        check_base_jump(*jump, followed.limits)


def _within(difference: tuple[float, float], most: tuple[float, float]) -> bool:
    return all(value <= limit for value, limit in zip(difference, most))


def _pose_difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Distance, m, and angle, rad, between two poses (7,): position, quaternion xyzw."""
    turn = np.array(rotations.multiply(rotations.conjugate(a[3:]), b[3:]))
    angle = 2.0 * np.arctan2(np.linalg.norm(turn[:3]), abs(turn[3]))
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(a[:3] - b[:3])), float(angle)
