"""The settings of the command watchdog."""

from __future__ import annotations

import dataclasses

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.command_interfaces import Commanded
from contact_id_controller.settings.shared_rows import (
    command_interface,
    emergency_stop_output,
    full_names,
    group_controller,
    state_folder,
)
from contact_id_controller.settings.specification import parameter

DAMPING_PERIOD_S = 0.002
"""Time between two damping commands: a joint moves on by a fiftieth of a turn at 10 rad/s."""


@dataclasses.dataclass(frozen=True)
class CommandWatchdogSettings(Commanded, Settings):
    """Settings of the watchdog; none may change while it runs."""

    joints: tuple[str, ...] = parameter(
        (),
        "Joints in the order of the command, which is also that of ros2_control.",
        when="Required: the order of the group controller.",
    )
    urdf: str = parameter(
        "",
        """Robot description, as the controller's: effort_limits_nm is lowered to what it states, some
        seconds after the start. Empty: effort_limits_nm alone counts.""",
        when="Set to the controller's.",
    )
    command_interface: str = command_interface()
    commanders: tuple[str, ...] = parameter(
        (),
        """Full names of the nodes that may command, one at a time. Empty: the controller whose
        activation is watched, where it publishes commands; else whoever sends first.""",
        when="Set where several controllers take turns.",
        validator=full_names,
    )
    group_controller: str = group_controller("before the first command")
    effort_limits_nm: tuple[float, ...] = parameter(
        (),
        """Largest torque that is forwarded; .inf for none but what urdf states (nothing is forwarded if
        that cannot be read).""",
        when="Required: what motors and gears bear; not more than the controller's.",
        unit="N·m",
        minimum=0.0,
        infinite=True,
        per="joint",
    )
    effort_rate_limits_nm_s: tuple[float, ...] = parameter(
        (),
        """Fastest change of a forwarded torque; empty: any. Not with joint_trajectory. Damping after a trip
        does not wait for it.""",
        when="Set where gears must not be jerked.",
        unit="N·m/s",
        minimum=1e-6,
        infinite=True,
        per="joint",
    )
    damping_nm_s_rad: tuple[float, ...] = parameter(
        (0.05,),
        "Damping D of the torques -D qd after a trip.",
        when="Raise for heavy legs, until the robot sinks slowly; too much shakes.",
        unit="N·m·s/rad",
        minimum=0.0,
        per="joint",
    )
    timeout_s: float = parameter(
        0.01,
        "Without a good command for this long the watchdog trips.",
        when="Set longer than the controller's state_timeout_s, which answers missing states first.",
        unit="s",
        minimum=1e-3,
        maximum=10.0,
    )
    state_timeout_s: float = parameter(
        0.02,
        "A joint velocity older than this is not damped: its joint gets zero torque.",
        when="Set to some periods of your driver's joint states.",
        unit="s",
        minimum=1e-3,
        maximum=10.0,
    )
    damp_before_first_command: bool = parameter(
        True,
        """Damp also before the first command: a watchdog that was started anew ends the torque
        that is still held.""",
        when="Set false for a simulated robot that waits for its first command.",
    )

    emergency_stop_output: str = emergency_stop_output(live=False)
    state_folder: str = state_folder()
    hot_standby: bool = parameter(
        True,
        """Keep a second process connected, which goes on at once when the first is killed: damping goes
        on within milliseconds instead of seconds. It costs memory and the receiving of the topics, and
        shows as a second node of the same name.""",
        when="Set false where memory is short and seconds of held torque do no harm.",
    )

    def check_together(self) -> None:
        """Raise ConfigurationError when joints are missing or named twice, or rates have no meaning."""
        self.require("joints", "the joints")
        self.refuse_repeated("joints")
        if self.interface.has_horizon and self.effort_rate_limits_nm_s:
            raise ConfigurationError(
                "parameter 'effort_rate_limits_nm_s' must be empty with command_interface "
                f"{self.command_interface}: its efforts are those of times to come"
            )
