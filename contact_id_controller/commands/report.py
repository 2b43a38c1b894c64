"""``contact_id report``: the report of a run that has ended, or was interrupted."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from contact_id_controller.exit_codes import DONE, FELL

MODULES = ("rclpy", "rosbags", "mujoco", "matplotlib", "PIL", "rich", "jinja2")
"""That a report needs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "run",
        type=Path,
        metavar="DIR|BAG",
        help="folder of a demo, or a bag; if the nodes' records are missing, as after an "
        "interruption, the bag is replayed",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="parameter file of the run (default: parameters.yaml in the folder or beside the bag)",
    )
    parser.add_argument("--namespace", metavar="NS", help="of the topics, where a bag has several")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="where the report goes (default: DIR itself)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report of a run, and print its figures; exit code FELL if the robot fell."""
    from contact_id_controller.runs.preparation import check_extras

    check_extras("a report needs", *MODULES)
    from contact_id_controller.files import make_folder
    from contact_id_controller.report.report import PAGE, write_report
    from contact_id_controller.report.tables import print_figures
    from contact_id_controller.runs.ros_run import PARAMETERS
    from contact_id_controller.runs.setup import read_setup
    from contact_id_controller.view.replayed import find_parameters
    from contact_id_controller.view.run_record import record_of_run

    path = arguments.run
    parameters = arguments.config or path / PARAMETERS
    if not parameters.is_file():
        parameters = find_parameters(path)
    setup = read_setup(parameters)
    record = record_of_run(path, setup, arguments.namespace)
    folder = make_folder(arguments.output or (path if path.is_dir() else path.parent))
    report = write_report(record, setup, folder, math.nan)
    print_figures([(report.title, report.summary)])
    print(f"\nReport: {folder / PAGE}")
    return FELL if record.fell else DONE
