"""The URDF is the ceiling of what may be commanded."""

from __future__ import annotations

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings


def refuse_above_description(robot: RobotModel, settings: ControllerSettings) -> None:
    """Refuse effort limits above those of the URDF, unless the settings say that they may be.

    Raises:
        ConfigurationError: naming the joint, its limit and the URDF's.
    """
    if not settings.effort_limits_nm or settings.effort_above_description:
        return
    limits = settings.spread("effort_limits_nm", robot.na)
    above = np.flatnonzero(limits > robot.effort_limits)
    if above.size:
        k = int(above[0])
        raise ConfigurationError(
            f"parameter 'effort_limits_nm' is {limits[k]:g} for joint {robot.joint_names[k]!r}, the "
            f"URDF states {robot.effort_limits[k]:g}: more needs 'effort_above_description' at the "
            "start of the node"
        )
