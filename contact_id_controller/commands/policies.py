"""``contact_id policies``: which node may publish, subscribe and call what, as a policy of SROS2."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exit_codes import DONE
from contact_id_controller.settings.command_interfaces import DEFAULT, INTERFACES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "--command-interface",
        choices=tuple(INTERFACES),
        default=DEFAULT,
        help=f"of all nodes (default: {DEFAULT})",
    )
    parser.add_argument(
        "--ros2-control",
        default="",
        metavar="NAME",
        help="group controller of ros2_control that takes the commands",
    )
    parser.add_argument(
        "--no-watchdog",
        action="store_true",
        help="the controller commands the robot itself, without the command watchdog",
    )
    parser.add_argument("--namespace", default="", help="of all nodes")
    parser.add_argument(
        "--write",
        nargs="?",
        const=Path("."),
        type=Path,
        metavar="DIR",
        help="write config/sros2/policy.xml below DIR (default: here) instead of printing it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the policy, or write it."""
    from contact_id_controller.files import make_folder, write_text
    from contact_id_controller.settings.policies import PATH, Wiring, policy

    text = policy(
        Wiring(
            arguments.command_interface,
            arguments.ros2_control,
            not arguments.no_watchdog,
            arguments.namespace,
        )
    )
    if arguments.write is None:
        print(text, end="")
        return DONE
    make_folder((arguments.write / PATH).parent)
    write_text(arguments.write / PATH, text)
    print(arguments.write / PATH)
    return DONE
