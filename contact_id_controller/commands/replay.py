"""``contact_id replay``: recompute the torques of a recorded run, also with other settings."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.commands.shared_options import add_changes
from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "bag",
        type=Path,
        metavar="BAG|FOLDER",
        help="rosbag2 folder, MCAP or db3 file, or the folder of `contact_id demo --bag`",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="parameter file of the run (default: parameters.yaml beside the bag)",
    )
    parser.add_argument("--friction", metavar="F", help="another friction model beside")
    parser.add_argument("--solver", metavar="X", help="another solver beside")
    add_changes(parser, "another value of a controller's parameter beside")
    parser.add_argument(
        "--controller", default="controller", metavar="NODE", help="name of the controller's node"
    )
    parser.add_argument("--namespace", metavar="NS", help="of the topics, where a bag has several")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="write the recomputed arrays into this folder, one .npz file each",
    )


def run(arguments: argparse.Namespace) -> int:
    """Replay with the settings of the run, and with changed ones; exit code 3 if the first differs from the bag."""
    from contact_id_controller.runs.preparation import check_extras

    check_extras("a replay needs", "rclpy", "rosbags", "rich")
    from contact_id_controller.view.replay_table import print_replays
    from contact_id_controller.view.replayed import replay_all, write_all

    replays = replay_all(
        arguments.bag,
        config=arguments.config,
        node=arguments.controller,
        namespace=arguments.namespace,
        friction=arguments.friction,
        solver=arguments.solver,
        changes=arguments.changes,
    )
    print_replays(replays)
    if arguments.output:
        write_all(replays, arguments.output)
        print(f"\nArrays: {arguments.output}")
    same = next(iter(replays.values()))
    return DONE if same.exact[same.compared].all() and same.compared.any() else NOT_ALL_WELL
