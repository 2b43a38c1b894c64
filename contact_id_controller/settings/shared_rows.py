"""Rows that several nodes have: they describe the one robot, and mean the same everywhere."""

from __future__ import annotations

import dataclasses
from typing import Any

from contact_id_controller.settings.specification import parameter


def odometry_age_limit(*, live: bool) -> Any:
    """The row of ``odometry_age_limit_s``."""
    return parameter(
        0.005,
        "Largest difference between the stamps of joint state and odometry.",
        unit="s",
        minimum=0.0,
        maximum=10.0,
        live=live,
    )


def group_controller(when: str) -> Any:
    """The row of ``group_controller``; ``when`` its joints are compared."""
    return parameter(
        "",
        f"""Name of the ros2_control group controller that takes the commands: {when} its parameter
        joints is compared with ours. Empty: no check.""",
    )


def contact_radii(default_m: float, minimum_m: float) -> Any:
    """The row of ``contact_radii_m``."""
    return parameter(
        (default_m,),
        "Radius of the feet: one value, or one per contact frame.",
        unit="m",
        minimum=minimum_m,
        per="contact frame",
    )


@dataclasses.dataclass(frozen=True)
class Description:
    """The robot's description."""

    urdf: str = parameter(
        "",
        """Robot description: a file, package://contact_id_controller/urdf/<file>, or
        example-robot-data://<package>/robots/<file>. Required.""",
    )


@dataclasses.dataclass(frozen=True)
class RobotRows(Description):
    """The robot and where it may touch the world, as whoever moves it needs to know."""

    floating_base: bool = parameter(
        True, "The base moves freely (legged robot); false for a robot bolted to the ground."
    )
    joints: tuple[str, ...] = parameter(
        (), "Actuated joints in the order of the command; empty: all of the URDF, in its order."
    )
    contact_frames: tuple[str, ...] = parameter(
        (), "Frames of the URDF that may touch the ground, at the centre of a spherical foot."
    )
