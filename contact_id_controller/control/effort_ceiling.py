"""The URDF's limits as upper bounds of the configured ones."""

from __future__ import annotations

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings


def refuse_above_description(robot: RobotModel, settings: ControllerSettings) -> None:
    """Raise for limits of effort and speed above those of the URDF, unless the settings allow it.

    Raises:
        ConfigurationError: naming the joint, its limit and the URDF's.
    """
    if settings.effort_above_description:
        return
    for name, stated in (
        ("effort_limits_nm", robot.effort_limits),
        ("velocity_limits_rad_s", robot.velocity_limits),
    ):
        if not getattr(settings, name):
            continue
        limits = settings.spread(name, robot.na)
        above = np.flatnonzero(limits > stated)
        if above.size:
            k = int(above[0])
            raise ConfigurationError(
                f"parameter {name!r} is {limits[k]:g} for joint {robot.joint_names[k]!r}, the "
                f"URDF states {stated[k]:g}: more needs 'effort_above_description' at the "
                "start of the node"
            )
