"""The nodes of the fault campaign: which they are, how they are connected, and their parameters."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.runs.processes import node_command
from contact_id_controller.settings.command_interfaces import DEFAULT, INTERFACES, TOPICS
from contact_id_controller.settings.command_watchdog import CommandWatchdogSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.settings.robot_files import QUADRUPEDS, file_of, robots
from contact_id_controller.settings.shared_rows import REPORT

CONTROLLER, PLANNER = "controller", "gait_planner"
WATCHDOG, ROBOT = "command_watchdog", "simulated_robot"

STALL_VARIABLE = "CONTACT_ID_FAULT_STALL_S"
"""Environment variable: how long a solution that is to stall takes, s by the wall clock."""

FAIL, RAISE, STALL = (signal.SIGRTMIN + number for number in (1, 2, 3))
"""Signals by which the solver of the controller is made to fail; others ask a node to end."""

REAL_TIME_FACTOR = 0.2
"""Two cores do not run five Python processes at 1 kHz."""

REMAPPED = {
    ROBOT: {
        "joint_states": "robot/joint_states",
        "odometry": "robot/odometry",
        "/clock": "robot/clock",
        **{topic: f"robot/{topic}" for topic in TOPICS},
    },
    CONTROLLER: {topic: f"{topic}_in" for topic in TOPICS},
}

WALL_CLOCK = {
    WATCHDOG: (CommandWatchdogSettings(), ("timeout_s", "state_timeout_s")),
}
"""Parameters that are times by the wall clock, with their defaults: lengthened like time itself. The
controller's go by the time of the states."""

BRIDGED_TIMEOUT_S = 0.13
"""The watchdog's ``timeout_s`` where the robot's side goes on: longer than a stall that it bridges."""

SLOWEST = 0.02
"""Smallest real time factor; the watchdog's period would be too long at slower ones."""


def campaign_parameters(
    robot: str, real_time_factor: float, interface: str = DEFAULT
) -> dict[str, dict[str, Any]]:
    """Parameters of all nodes: those of the robot's file, with slower time and a command interface.

    Raises:
        ConfigurationError: no such robot, or a real time factor beyond its range.
    """
    file = file_of(robot, robots(QUADRUPEDS))
    if not SLOWEST <= real_time_factor <= 1.0:
        raise ConfigurationError(
            f"real time factor is {real_time_factor:g}, must lie within [{SLOWEST:g}, 1]"
        )
    content = ParameterFile(file)
    names = (ROBOT, PLANNER, WATCHDOG, CONTROLLER)
    parameters = {name: content.section(name) for name in names}
    for name in (ROBOT, WATCHDOG, CONTROLLER):
        parameters[name]["command_interface"] = interface
    if INTERFACES[interface].bridges:
        parameters[WATCHDOG]["timeout_s"] = BRIDGED_TIMEOUT_S
    for name, (defaults, keys) in WALL_CLOCK.items():
        for key in keys:
            own = parameters[name].get(key, getattr(defaults, key))
            parameters[name][key] = own / real_time_factor
    parameters[ROBOT].update(real_time_factor=real_time_factor, stop_when_fallen=False)
    # The robot stands free from the beginning; steps take long on a busy machine.
    parameters[CONTROLLER].update(autostart=True, use_sim_time=True, start_ramp_s=0.0)
    # The watchdog keeps intruders out; stopping for them, too, would hide whether it does.
    parameters[CONTROLLER]["second_commander"] = REPORT
    parameters[PLANNER]["use_sim_time"] = True
    return parameters


def command_line(name: str, file: Path) -> list[str]:
    """Command line of a node with a parameter file: topics by way of the relay."""
    command = node_command(name, file)
    if name == CONTROLLER:
        command[:3] = [sys.executable, "-m", "experiments.faults.failing_controller"]
    remapped = [["-r", f"{old}:={new}"] for old, new in REMAPPED.get(name, {}).items()]
    return sum(remapped, command)


def viewer_line(file: Path) -> list[str]:
    """Command line of a live view with a parameter file, on free ports."""
    words = ["--parameters", str(file), "--port", "0", "--teleop"]
    return [sys.executable, "-m", "contact_id_controller.view.viewer", *words]
