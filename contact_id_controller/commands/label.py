"""``contact_id label``: inverse dynamics with contact for recorded motions, frame by frame."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from contact_id_controller.commands.shared_options import add_changes, add_robot
from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="motions: .npz, .parquet, rosbag2 folder, .mcap or .db3",
    )
    add_robot(parser, "config/ or config/bipeds/, such as quadruped or g1")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("labels"),
        metavar="DIR",
        help="where the labels go, a folder a motion; frames whose labels are there are not done again "
        "(default: labels)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="processes at once (default: one a core)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="label on a Dask cluster, such as tcp://host:8786; it needs none of the files",
    )
    parser.add_argument("--friction", metavar="F", help="friction model, such as coulomb")
    parser.add_argument("--solver", metavar="X", help="solver, such as qp")
    add_changes(parser, "another value of a controller's parameter")
    parser.add_argument(
        "--contact",
        choices=("geometry", "recorded"),
        default="geometry",
        help="geometry: a foot within contact_gap_m of the ground touches; recorded: as the array "
        "contact of the motion states (default: geometry)",
    )
    parser.add_argument(
        "--base",
        choices=("recorded", "law"),
        default="recorded",
        help="recorded: forces bring about the recorded motion of the base, too, as far as friction "
        "allows; law: the base moves as the contact law computes (default: recorded)",
    )
    parser.add_argument(
        "--parting-speed",
        type=float,
        default=0.05,
        metavar="S",
        help="m/s; a foot near the ground that is recorded to part faster does not touch (default: 0.05)",
    )
    parser.add_argument(
        "--longest-gap",
        type=float,
        default=0.1,
        metavar="S",
        help="rows further apart in time do not belong together (default: 0.1)",
    )
    parser.add_argument(
        "--chunk",
        type=int,
        default=4096,
        metavar="N",
        help="frames of a chunk, the unit of work and of files (default: 4096)",
    )
    parser.add_argument("--namespace", metavar="NS", help="of the topics, where a bag has several")


def run(arguments: argparse.Namespace) -> int:
    """Label frames without labels; exit code 3 if some have no certified solution."""
    from contact_id_controller.labels.campaign import FAILED, Workers, label_files
    from contact_id_controller.labels.labeller import Labeller
    from contact_id_controller.labels.labelling_progress import Progress, summary
    from contact_id_controller.runs.preparation import end_on_signals
    from contact_id_controller.settings.controller import ControllerSettings
    from contact_id_controller.settings.parameter_file import ParameterFile, changed_parameters
    from contact_id_controller.settings.robot_files import file_of

    end_on_signals()
    config = arguments.config or file_of(arguments.robot)
    mapping = ParameterFile(config).section("controller")
    changed = changed_parameters(arguments.friction, arguments.solver, arguments.changes)
    settings = ControllerSettings.from_mapping({**mapping, **changed})
    labeller = Labeller(
        settings, arguments.contact, arguments.longest_gap, arguments.base, arguments.parting_speed
    )
    well = True
    with Progress() as progress:
        for labelled in label_files(
            arguments.files,
            labeller,
            arguments.output,
            workers=Workers(arguments.jobs, arguments.cluster),
            chunk=arguments.chunk,
            namespace=arguments.namespace,
            progress=progress.show,
        ):
            progress.close()
            print(summary(labelled), flush=True)
            for first, why in labelled.unlabelled.items():
                print(f"  not labelled: frames from {first} on: {why}", file=sys.stderr)
            if labelled.failed:
                print(f"  frames without a certified answer: {labelled.folder / FAILED}")
            if labelled.unconnected:
                within = f"within {arguments.longest_gap:g} s (--longest-gap)"
                print(f"  nothing labelled: no row follows another {within}", file=sys.stderr)
            well = well and not (labelled.failed or labelled.unlabelled or labelled.unconnected)
    return DONE if well else NOT_ALL_WELL
