"""What a plan is checked for before it is followed: the whole of it, in one place.

That its points are well formed was checked when its parts were made (`plans.points`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import JointTrajectory, PlanSlot


class Followed(NamedTuple):
    """What a new plan is compared with.

    joint_names (na), frames (n_feet): of the robot; slot: the joint plans that are followed until
    now; hold (na,): posture without one; measured (na,): positions of the joints, rad, None before
    the first state; jump_limit: ``plan_jump_limit``, rad; locked: joints that nothing moves.
    """

    joint_names: Sequence[str]
    frames: Sequence[str]
    slot: PlanSlot[JointTrajectory]
    hold: np.ndarray
    measured: np.ndarray | None
    jump_limit: float
    locked: Container[str] = ()


def ready_to_follow(plan: Plan, now_s: float, followed: Followed) -> Plan:
    """The plan as it is followed when it comes in at ``now_s``: in the robot's order, with a way to it.

    Raises:
        TrajectoryError: parts that do not begin together, unknown or missing joints, an unknown
            contact frame, planned joints that end in the past, or that begin farther than
            ``jump_limit`` from the motion followed until then and from the joints.
    """
    starts = {name: part.start_s for name, part in plan.parts.items()}
    if len(set(starts.values())) > 1:
        told = ", ".join(f"{name} at {start_s:.6f} s" for name, start_s in starts.items())
        raise TrajectoryError(f"the parts of a plan must begin together: {told}")
    joints, contacts = plan.joints, plan.contacts
    if joints is not None:
        joints = _approached(
            joints.in_order(followed.joint_names, followed.locked), now_s, followed
        )
    if contacts is not None:
        contacts = contacts.in_order(followed.frames)
    return dataclasses.replace(plan, joints=joints, contacts=contacts)


def _approached(joints: JointTrajectory, now_s: float, followed: Followed) -> JointTrajectory:
    """Planned joints with the way from the motion before; refused where that would be a jump."""
    current = followed.slot.at(now_s)
    begin_s, before = now_s, (followed.hold, None, None)
    if current is not None:
        begin_s = max(joints.start_s or now_s, now_s)
        before = current.sample(begin_s)
    joints = joints.received(begin_s, *before)
    if followed.measured is not None:
        first = joints.sample(begin_s).position
        _refuse_jump(first, before[0], followed.measured, followed)
    return joints


def _refuse_jump(first, before, measured, followed: Followed) -> None:
    """A TrajectoryError unless the first position is near the reference, or near the joints."""
    limit = followed.jump_limit
    jump = np.abs(first - before)
    if jump.max(initial=0.0) <= limit or np.abs(first - measured).max() <= limit:
        return
    k = int(np.argmax(jump))
    raise TrajectoryError(
        f"joint {followed.joint_names[k]!r} would jump by {jump[k]:.3g} where the "
        f"trajectory begins, plan_jump_limit is {limit:g}: give its first point a later time"
    )
