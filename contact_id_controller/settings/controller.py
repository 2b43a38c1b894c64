"""Everything a user can set: one table, shared by the Python library and the ROS node.

Each field of `ControllerSettings` is one parameter: its name and type, then default, description,
unit and range. `TABLE` lists the same rows as `ParameterSpec` objects; whatever needs to know the
parameters reads it.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.models import ROWS, Tangential
from contact_id_controller.parameter_spec import ParameterSpec
from contact_id_controller.settings.controller_rows import (
    ContactSettings,
    FeedbackSettings,
    ModelOptions,
    ModelSettings,
    NodeSettings,
    RobotSettings,
    SafetySettings,
)
from contact_id_controller.settings.specification import table_of


@dataclasses.dataclass(frozen=True)
class ControllerSettings(
    NodeSettings,
    SafetySettings,
    FeedbackSettings,
    ContactSettings,
    ModelOptions,
    ModelSettings,
    RobotSettings,
):
    """Settings of the controller; `from_mapping` and `load_settings` check every value."""

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> ControllerSettings:
        """Check every value of a mapping from parameter name to value and build the settings.

        Raises
        ------
        ConfigurationError
            Unknown name, wrong type, value outside its range, missing `urdf`, or values that do
            not fit each other.
        """
        known = {spec.name: spec for spec in TABLE}
        for name in mapping:
            if name not in known:
                raise ConfigurationError(_unknown_parameter(name, known))
        settings = cls(**{name: known[name].check(value) for name, value in mapping.items()})
        _check_together(settings)
        return settings

    def spread(self, name: str, count: int) -> np.ndarray:
        """Values of parameter `name` as an array (count,); a single value is repeated.

        Raises
        ------
        ConfigurationError
            The parameter holds neither 1 nor `count` values.
        """
        values = np.array(getattr(self, name), dtype=float)
        if values.size not in (1, count):
            raise ConfigurationError(
                f"parameter '{name}' has {values.size} values, must have 1 or {count}"
            )
        return np.full(count, values[0]) if values.size == 1 else values


TABLE: tuple[ParameterSpec, ...] = table_of(ControllerSettings)
"""The rows of the table of parameters, in the order of the fields of `ControllerSettings`."""


def load_settings(path: str | Path, section: str = "controller") -> ControllerSettings:
    """Read the settings from a section of a ROS parameter file, on top of its section `/**`.

    Raises
    ------
    ConfigurationError
        The file is missing, is not YAML, lacks the section, or holds a bad value.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"cannot read '{path}': {' '.join(str(error).split())}") from error
    sections = content if isinstance(content, dict) else {}
    names = [name for name in ("/**", section, f"/{section}") if name in sections]
    if not set(names) - {"/**"}:
        raise ConfigurationError(
            f"'{path}' has no section '{section}', only {choices(map(str, sections)) or 'nothing'}"
        )
    values: dict[str, Any] = {}
    for name in names:
        body = sections[name]
        if not isinstance(body, dict) or not isinstance(body.get("ros__parameters"), dict):
            raise ConfigurationError(f"section '{name}' of '{path}' has no 'ros__parameters'")
        values.update(body["ros__parameters"])
    return ControllerSettings.from_mapping(
        {name: value for name, value in values.items() if not belongs_to_ros(name)}
    )


def belongs_to_ros(name: str) -> bool:
    """Whether a parameter is one that every ROS node has."""
    return name == "use_sim_time" or name.startswith(("qos_overrides", "start_type_description"))


def _unknown_parameter(name: str, known: Mapping[str, ParameterSpec]) -> str:
    close = difflib.get_close_matches(str(name), known, n=3)
    valid = f"did you mean {choices(close)}?" if close else f"must be one of {choices(known)}"
    return f"unknown parameter '{name}', {valid}"


def _check_together(settings: ControllerSettings) -> None:
    """Raise ConfigurationError when values that are each valid do not fit each other."""
    if not settings.urdf:
        raise ConfigurationError("parameter 'urdf' is empty, must name a robot description")
    for name in ("joints", "contact_frames"):
        values = getattr(settings, name)
        twice = {value for value in values if values.count(value) > 1}
        if twice:
            raise ConfigurationError(f"parameter '{name}' names {choices(twice)} more than once")
    counts = {
        "joint": len(settings.joints),
        "contact frame": len(settings.contact_frames),
        "axis": 3,
    }
    for spec in TABLE:
        # Without a list of joints or frames the counts are known only with the robot.
        if spec.per and counts[spec.per] and (getattr(settings, spec.name) or spec.default):
            settings.spread(spec.name, counts[spec.per])
    row = ROWS.get((settings.friction, settings.solver))
    if row and row.tangential is Tangential.VISCOUS and not any(settings.viscosity):
        raise ConfigurationError(
            f"parameter 'viscosity' is 0 for every contact frame, friction {row.friction} needs "
            "more than 0"
        )
    if bool(settings.motor_resistance_ohm) != bool(settings.motor_torque_constant_nm_a):
        raise ConfigurationError(
            "parameters 'motor_resistance_ohm' and 'motor_torque_constant_nm_a' must both be given "
            "or both be empty"
        )
    if settings.power_limit_w and not settings.motor_resistance_ohm:
        raise ConfigurationError(
            f"parameter 'power_limit_w' is {settings.power_limit_w:g}, which needs "
            "'motor_resistance_ohm' and 'motor_torque_constant_nm_a'"
        )
    if settings.contact_force_off_n > settings.contact_force_on_n:
        raise ConfigurationError(
            f"parameter 'contact_force_off_n' is {settings.contact_force_off_n:g}, must not be "
            f"above contact_force_on_n = {settings.contact_force_on_n:g}"
        )
    if settings.contact_time_constant_s < settings.period_s:
        raise ConfigurationError(
            f"parameter 'contact_time_constant_s' is {settings.contact_time_constant_s:g}, "
            f"must not be below period_s = {settings.period_s:g}"
        )
