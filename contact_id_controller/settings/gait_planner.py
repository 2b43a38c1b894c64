"""Everything a user can set on the gait planner's node: the robot, its odometry, and the gait."""

from __future__ import annotations

import dataclasses

from contact_id_controller.settings.gait import GaitSettings
from contact_id_controller.settings.robot_rows import Description, GroundRows
from contact_id_controller.settings.specification import parameter


@dataclasses.dataclass(frozen=True)
class NodeRows(GroundRows, Description):
    """What the node needs to know besides the gait."""

    joints: tuple[str, ...] = parameter(
        (),
        "Actuated joints, in the order of posture; empty: all of the URDF, in its order.",
        when="Set to the controller's joints.",
    )


@dataclasses.dataclass(frozen=True)
class GaitPlannerSettings(GaitSettings, NodeRows):
    """Settings of the gait planner's node."""

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""
        self.require("urdf", "a robot description")
        super().check_together()
