"""``python -m experiments faults``: a simulated robot walks over real topics, and things fail; or anything comes."""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path

from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL


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
    parser.add_argument(
        "--only",
        metavar="WORDS",
        help="faults whose name contains this text; with --fuzz nodes, as estimator or planner",
    )
    parser.add_argument(
        "--fuzz",
        action="store_true",
        help="no faults: spoiled bytes and requests into all nodes, over real topics",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=1.0,
        help="how long to fuzz (default: 1); Ctrl-C ends it, too",
    )
    parser.add_argument("--seed", type=int, default=14, help="of the inputs (default: 14)")
    parser.add_argument(
        "--rate",
        type=float,
        default=500.0,
        metavar="HZ",
        help="most inputs a second (default: 500); two cores that are full answer nothing in time",
    )
    parser.add_argument(
        "--rt-priority",
        default="0",
        metavar="N",
        help="with --fuzz: real-time priority (SCHED_FIFO, 1 to 99) of both nodes, of this process one "
        "less (default: 0, the ordinary one)",
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="document whose table is replaced, such as results/faults.md",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the campaign, print the table as it grows, and what was not as stated; or fuzz."""
    from contact_id_controller.runs.preparation import check_extras

    check_extras("the campaign needs", "rclpy", "lifecycle_msgs", "mujoco", "viser")
    if arguments.fuzz:
        return _fuzz(arguments)
    from contact_id_controller.ros.process import Interrupt
    from experiments.faults.campaign import REAL_TIME_FACTOR, run_campaign

    factor, interrupt = arguments.real_time_factor, Interrupt().listen()
    rows = run_campaign(
        arguments.output,
        only=arguments.only or "",
        real_time_factor=REAL_TIME_FACTOR if factor is None else factor,
        document=arguments.write,
        interface=arguments.command_interface,
        tell=functools.partial(print, flush=True),
        is_interrupted=lambda: interrupt.requested,
    )
    for row in rows:
        for problem in row.wrong:
            print(f"{row.fault.name}: {problem}", file=sys.stderr)
    return NOT_ALL_WELL if any(row.wrong for row in rows) else DONE


def _fuzz(arguments: argparse.Namespace) -> int:
    from contact_id_controller.exceptions import ConfigurationError
    from contact_id_controller.ros.scheduling import priority
    from experiments.faults.fuzz import run_fuzz

    for name in ("minutes", "rate"):
        value = getattr(arguments, name)
        if not 0.0 < value < 1e6:
            raise ConfigurationError(f"--{name} is {value:g}, must be above 0 and below 1e6")
    factor, number = arguments.real_time_factor, priority(arguments.rt_priority)
    result = run_fuzz(
        arguments.output,
        minutes=arguments.minutes,
        seed=arguments.seed,
        rate_hz=arguments.rate,
        slower=1.0 if factor is None else 1.0 / factor,
        rt_priority=number,
        only=arguments.only or "",
    )
    return NOT_ALL_WELL if result.forbidden else DONE
