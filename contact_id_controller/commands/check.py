"""``contact_id check``: what is wrong with a robot's parameter file, before anything moves."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL
from contact_id_controller.settings.distributions import DISTRIBUTIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        required=True,
        help="parameter file of the robot, such as config/quadruped.yaml",
    )
    parser.add_argument(
        "--ros2-control",
        type=Path,
        metavar="FILE",
        help="parameter file of controller_manager and its controllers, such as "
        "config/ros2_control/quadruped_joint_trajectory.yaml: joints, rate and gains are compared",
    )
    parser.add_argument(
        "--distro",
        choices=tuple(DISTRIBUTIONS),
        default="",
        help="ROS distribution that the file of --ros2-control is for: what differs there is a line each",
    )
    parser.add_argument("--quiet", action="store_true", help="print only errors and warnings")


def run(arguments: argparse.Namespace) -> int:
    """Print one line for each finding; warnings are allowed."""
    from contact_id_controller.check.config import check_config
    from contact_id_controller.check.findings import ERROR, NOTE, WARNING, counted
    from contact_id_controller.kernels.compile_progress import Compiling, to_stderr

    if arguments.distro and arguments.ros2_control is None:
        raise ConfigurationError(
            f"--distro is {arguments.distro!r}, which needs --ros2-control, the file to check"
        )
    with Compiling(to_stderr):
        findings = check_config(arguments.config, arguments.ros2_control, arguments.distro)
    for finding in findings:
        if finding.level != NOTE or not arguments.quiet:
            print(finding)
    errors, warnings = (sum(f.level == level for f in findings) for level in (ERROR, WARNING))
    print(f"{arguments.config}: {counted(errors, ERROR)}, {counted(warnings, WARNING)}")
    return NOT_ALL_WELL if errors else DONE
