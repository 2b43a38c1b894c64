"""The parameter files of the package, by the robot's name: the choices of ``--robot``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError, RobotDescriptionError, choices
from contact_id_controller.robot import resolve_urdf

QUADRUPEDS, BIPEDS = "", "bipeds"
"""Folders of ``config/`` with robots that walk by velocity commands or way-points."""

TEMPLATE = "template"  # names no robot


def robots(*folders: str) -> dict[str, Path]:
    """Robots that have a parameter file in these folders of ``config/``: name -> file.

    folders: a name in several is that of the first; none: robots that walk.

    Raises:
        ConfigurationError: the installation has none.
    """
    try:
        config = resolve_urdf("package://contact_id_controller/config/quadruped.yaml").parent
    except RobotDescriptionError as error:
        raise ConfigurationError(f"the installation has no configuration files: {error}") from error
    found: dict[str, Path] = {}
    for folder in folders or (QUADRUPEDS, BIPEDS):
        for path in sorted((config / folder).glob("*.yaml")):
            if path.stem != TEMPLATE:
                found.setdefault(path.stem, path)
    return found


def file_of(robot: str, known: Mapping[str, Path] | None = None) -> Path:
    """The parameter file of a robot among the known ones; None: those that walk.

    Raises:
        ConfigurationError: no robot of that name.
    """
    known = robots() if known is None else known
    if robot not in known:
        raise ConfigurationError(
            f"robot is {robot!r}, must be one of {choices(known)}; "
            "for your own give its parameter file (config)"
        )
    return known[robot]
