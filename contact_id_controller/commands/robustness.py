"""``contact_id robustness``: how large modelling errors a robot tolerates."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.commands.shared_options import add_changes, add_robot
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.exit_codes import DONE, FELL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    add_robot(parser, "config/, arms and plans too")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME[=SIZE,..]",
        help="these rows of the table, with sizes of your own (default: all)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="of each run (default: 4, or to the end of a plan or joint motion)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="N",
        help="runs where something is drawn (default 1)",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument(
        "--bisect", action="store_true", help="find the largest tolerated size of each error"
    )
    parser.add_argument(
        "--sensors",
        default="",
        metavar="PRESET",
        help="estimate the state from sensors: perfect, good, motor_currents, cheap "
        "(default: planner and controller have the true state)",
    )
    add_changes(parser, "change a parameter of the controller")
    parser.add_argument("--output", type=Path, default=Path("robustness"), metavar="DIR")


def run(arguments: argparse.Namespace) -> int:
    """Do the runs and write table and page; exit code 1 if the robot falls without any error."""
    from contact_id_controller.runs.preparation import check_extras

    check_extras("the runs need", "mujoco", "matplotlib", "jinja2")
    from contact_id_controller.report.robustness import PAGE, TABLES, judge
    from contact_id_controller.runs.perturbed_runs import Case, config_of
    from contact_id_controller.simulation.sensor_noise import preset

    if arguments.jobs < 1 or arguments.seeds < 1:
        raise ConfigurationError("--jobs and --seeds must be 1 or more")
    if arguments.seconds is not None and not 0.0 < arguments.seconds < float("inf"):
        raise ConfigurationError(f"--seconds is {arguments.seconds:g}, must be above 0 and finite")
    if arguments.sensors:
        preset(arguments.sensors)  # refuses a name that does not exist
    config = arguments.config or config_of(arguments.robot)
    nominal = Case(
        str(config),
        seconds=arguments.seconds,
        sensors=arguments.sensors,
        changes=tuple(arguments.changes),
    )
    fell = judge(
        nominal,
        arguments.only,
        arguments.output,
        seeds=arguments.seeds,
        jobs=arguments.jobs,
        bisected=arguments.bisect,
        command=arguments.typed,
        report=lambda line: print(line, flush=True),
    )
    print(f"Written: {arguments.output / PAGE}, {arguments.output / TABLES}")
    return FELL if fell else DONE
