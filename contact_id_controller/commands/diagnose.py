"""``contact_id diagnose``: find faults in a log, or in the description of its robot."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "log",
        type=Path,
        metavar="LOG",
        help=".csv, .npz or .mat file, folder of .csv files, rosbag2 folder, .mcap, .db3 or .bag",
    )
    parser.add_argument("--urdf", metavar="URDF", help="of the robot (default: that of --config)")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="parameter file of the robot: feet, radii, thresholds and motors are compared, too",
    )
    parser.add_argument(
        "--map",
        type=Path,
        metavar="FILE",
        help="YAML that assigns columns to channels where names do not: channels, joints, units, correct, "
        "delay_s, rotation_rpy (default: by the names)",
    )
    parser.add_argument(
        "--free",
        type=Path,
        metavar="LOG",
        help="log of the same arm without contact: finds contacts in the other log",
    )
    parser.add_argument(
        "--namespace", metavar="NS", help="of the topics, where a bag has several robots"
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="also write a page with a picture for each finding",
    )
    parser.add_argument(
        "--fragment", type=Path, metavar="FILE", help="also write the corrections, for --map"
    )
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")


def run(arguments: argparse.Namespace) -> int:
    """Print one line for each finding, the likeliest fault first; exit code 3 if there is one."""
    from contact_id_controller.diagnosis.diagnose import diagnose
    from contact_id_controller.diagnosis.finding import WRONG
    from contact_id_controller.diagnosis.robot_of_log import joints_of
    from contact_id_controller.files import check_free, make_folder, write_text
    from contact_id_controller.logs.column_map import map_text
    from contact_id_controller.logs.reader import read_log

    written = [path for path in (arguments.page, arguments.fragment) if path is not None]
    check_free(*written)
    for path in written:
        make_folder(path.parent)
    joints = joints_of(arguments.urdf, arguments.config)
    log, free = (
        None if path is None else read_log(path, arguments.map, joints, arguments.namespace)
        for path in (arguments.log, arguments.free)
    )
    assert log is not None
    diagnosis = diagnose(log, arguments.urdf, arguments.config, free)
    for finding in diagnosis.findings:
        if finding.verdict == WRONG or not arguments.quiet:
            print(finding)
    if diagnosis.fragment:
        print(f"\nto paste into the file of --map:\n\n{map_text(diagnosis.fragment)}", end="")
    if arguments.fragment is not None:
        write_text(arguments.fragment, map_text(diagnosis.fragment))
    if arguments.page is not None:
        from contact_id_controller.report.diagnosis_page import write_page

        write_page(diagnosis, log, arguments.page)
        print(f"page: {arguments.page}")
    return NOT_ALL_WELL if diagnosis.wrong else DONE
