"""The controller's settings: one table, shared by the Python library and the ROS node.

Each field of `ControllerSettings` is one parameter: its name and type, then default, description,
unit and range. `TABLE` lists the same rows as `ParameterSpec` objects.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.models import ROWS, ContactModel, Tangential
from contact_id_controller.parameter_spec import ParameterSpec
from contact_id_controller.settings.base import Settings, unknown_parameter
from contact_id_controller.settings.command_interfaces import TORQUES_ONLY, Commanded
from contact_id_controller.settings.controller_rows import (
    ContactSettings,
    Experimental,
    FeedbackSettings,
    ModelOptions,
    ModelSettings,
    NodeSettings,
    RobotSettings,
    SafetySettings,
)
from contact_id_controller.settings.specification import table_of

if TYPE_CHECKING:
    from contact_id_controller.geometry import HalfSpace, HeightField

UP = (0.0, 0.0, 1.0)


@dataclasses.dataclass(frozen=True)
class ControllerSettings(
    Experimental,
    NodeSettings,
    SafetySettings,
    FeedbackSettings,
    ContactSettings,
    ModelOptions,
    ModelSettings,
    RobotSettings,
    Commanded,
    Settings,
):
    """Settings of the controller; `from_mapping` and `parameter_file.load_settings` check every value."""

    @property
    def ground(self) -> HalfSpace | HeightField:
        """The ground: a plane, or uneven ground read from ``ground_file``.

        Raises:
            ConfigurationError: see ``geometry.read_ground``.
        """
        from contact_id_controller.geometry import HalfSpace

        terrain = self.terrain
        return HalfSpace(self.ground_normal, self.ground_offset_m) if terrain is None else terrain

    @property
    def looks_ahead(self) -> bool:
        """Whether torques are solved ahead on the plan."""
        return self.interface.bridges or self.solve_every > 1

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""
        self.require("urdf", "a robot description")
        self.refuse_repeated("joints")
        self.check_feet()
        _ = self.locked
        counts = {
            "joint": len(self.joints),
            "round foot": len(self.contact_frames),
            "contact frame": len(self.foot_frames),
            "axis": 3,
        }
        for spec in TABLE:
            # Without a list of joints or frames the counts are known only with the robot.
            if spec.per and counts[spec.per] and (getattr(self, spec.name) or spec.default):
                self.spread(spec.name, counts[spec.per])
        if self.ground_file and (self.ground_normal != UP or self.ground_offset_m):
            raise ConfigurationError(
                "parameter 'ground_file' names the ground: 'ground_normal' and 'ground_offset_m' "
                "must be left out"
            )
        known = {option.keyword for row in ROWS.values() for option in row.options}
        for name in self.options:
            if name not in known:
                raise ConfigurationError(unknown_parameter(name, known))
        row = ROWS.get((self.friction, self.solver))
        if row and row.tangential is Tangential.VISCOUS and not any(self.viscosity):
            raise ConfigurationError(
                f"parameter 'viscosity' is 0 for every contact frame, friction {row.friction} needs "
                "more than 0"
            )
        if self.power_limit_w and not self.motor_constant_nm_sqrt_w:
            raise ConfigurationError(
                f"parameter 'power_limit_w' is {self.power_limit_w:g}, which needs 'motor_constant_nm_sqrt_w'"
            )
        self._check_ahead(row)
        if self.contact_time_constant_s < self.period_s:
            raise ConfigurationError(
                f"parameter 'contact_time_constant_s' is {self.contact_time_constant_s:g}, "
                f"must not be below period_s = {self.period_s:g}"
            )

    def _check_ahead(self, row: ContactModel | None) -> None:
        """Raise ConfigurationError where torques ahead are needed that this model cannot give."""
        if not self.looks_ahead:
            return
        if row and (row.feedback_only or row.takes("forces")):
            raise ConfigurationError(
                f"solver {self.solver!r} knows no torques ahead: 'command_interface' must be "
                f"{TORQUES_ONLY} and 'solve_every' 0 or 1"
            )
        if self.interface.needs_derivative:
            self._check_derivative(row)
        elif self.command_horizon_s < self.solve_every * self.period_s:
            raise ConfigurationError(
                f"parameter 'command_horizon_s' is {self.command_horizon_s:g}, must not be below "
                f"solve_every times period_s = {self.solve_every * self.period_s:g}"
            )

    def _check_derivative(self, row: ContactModel | None) -> None:
        """Raise ConfigurationError where the torques' derivative is needed, and not known."""
        if row and (reason := row.not_derivable(self)):
            known = choices(str(other) for other in ROWS.values() if other.active_set)
            raise ConfigurationError(
                f"parameter 'command_interface' is {self.command_interface!r}, which needs the derivative of "
                f"the torques: {reason}; it is known of {known}"
            )
        if self.base_feedback != "base":
            raise ConfigurationError(
                f"parameter 'base_feedback' is {self.base_feedback!r}, of which no derivative is known: "
                f"must be 'base' with command_interface {self.command_interface}"
            )


TABLE: tuple[ParameterSpec, ...] = table_of(ControllerSettings)
"""The rows of the table of parameters, in the order of the fields of `ControllerSettings`."""
