"""``contact_id faults``: a simulated robot walks over real topics, and things fail."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL

EXTRAS = (("rclpy", "ros"), ("lifecycle_msgs", "ros"), ("mujoco", "simulation"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("faults"),
        metavar="DIR",
        help="folder for parameters and logs",
    )
    parser.add_argument(
        "--real-time-factor",
        type=float,
        metavar="X",
        help="simulated time per second; smaller on a busy machine (default: 0.2)",
    )
    parser.add_argument(
        "--command-interface",
        choices=("effort", "joint_trajectory"),
        default="effort",
        help="what the controller commands (default: effort)",
    )
    parser.add_argument("--only", metavar="WORDS", help="faults whose name contains these words")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="document whose table is replaced, such as docs/safety.md",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the campaign, print the table, and what was not as stated."""
    from contact_id_controller.runs.preparation import check_extras

    check_extras(EXTRAS, "the campaign needs")
    from contact_id_controller.faults.campaign import REAL_TIME_FACTOR, run_campaign

    factor = arguments.real_time_factor
    rows, page = run_campaign(
        arguments.output,
        only=arguments.only or "",
        real_time_factor=REAL_TIME_FACTOR if factor is None else factor,
        document=arguments.write,
        interface=arguments.command_interface,
    )
    print(page)
    for row in rows:
        for problem in row.wrong:
            print(f"{row.fault.name}: {problem}", file=sys.stderr)
    return NOT_ALL_WELL if any(row.wrong for row in rows) else DONE
