"""One plan of any planner: joints, base and contacts, or goals and contacts."""

from __future__ import annotations

import dataclasses

from contact_id_controller.plans.forces import PlannedForces
from contact_id_controller.plans.goals import TaskGoals
from contact_id_controller.plans.trajectories import (
    BaseTrajectory,
    ContactSchedule,
    JointTrajectory,
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """One plan; its parts begin together, and are followed or refused together.

    Attributes:
        joints, base, contacts: followed by the controller; None: that part of the plan before continues.
        goals: of the whole body, in place of joints and base; a plan has one or the other.
        walking: the gait is running.  restarted: the planner restarted with this plan.
        unreachable: feet whose target was out of reach, or on no ground to step on, and has been replaced by the nearest.
        unmapped: a foothold lies outside the height map.
        bounded: velocity forwards and to the left, m/s, to which a faster command was limited; empty: as commanded.
        points_reached: number of way-points reached so far.
        forces: planned contact forces, if any; not followed, the controller computes its own.
    """

    joints: JointTrajectory | None = None
    base: BaseTrajectory | None = None
    contacts: ContactSchedule | None = None
    walking: bool = False
    restarted: bool = False
    unreachable: tuple[str, ...] = ()
    unmapped: bool = False
    bounded: tuple[float, ...] = ()
    points_reached: int = 0
    forces: PlannedForces | None = None
    goals: TaskGoals | None = None

    @property
    def parts(self) -> dict[str, JointTrajectory | BaseTrajectory | ContactSchedule | TaskGoals]:
        """The parts of this plan, by their names."""
        parts = {
            "joints": self.joints,
            "base": self.base,
            "contacts": self.contacts,
            "goals": self.goals,
        }
        return {name: part for name, part in parts.items() if part is not None}
