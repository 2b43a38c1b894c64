"""One plan: joints, base and contacts, whoever planned it."""

from __future__ import annotations

import dataclasses

from contact_id_controller.plans.trajectories import (
    BaseTrajectory,
    ContactSchedule,
    JointTrajectory,
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """One plan; its three parts share start and times of the points.

    Attributes:
        joints, base, contacts: what the controller follows.
        walking: the gait is running.  restarted: the planner began anew with this plan.
        unreachable: feet whose target was out of reach and has been replaced by the nearest point.
        points_reached: number of way-points reached so far.
    """

    joints: JointTrajectory
    base: BaseTrajectory
    contacts: ContactSchedule
    walking: bool
    restarted: bool
    unreachable: tuple[str, ...]
    points_reached: int
