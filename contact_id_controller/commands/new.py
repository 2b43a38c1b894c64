"""``contact_id new``: a parameter file for your robot, from its URDF."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.exit_codes import DONE

FIXED, FLOATING = "fixed", "floating"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "urdf",
        metavar="URDF",
        help="robot description: a file, package://... or example-robot-data://PACKAGE/robots/FILE",
    )
    parser.add_argument(
        "--base",
        choices=(FIXED, FLOATING),
        help="fixed: bolted to the ground; floating: stands on legs (default: floating where two "
        "limbs or more reach down)",
    )
    parser.add_argument(
        "--mjcf",
        type=Path,
        metavar="FILE",
        help="of the same robot for MuJoCo: rotor inertia and friction of its joints (default: the URDF's)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write, which must not exist (default: name of the URDF, .yaml, here)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write a file that `contact_id check` accepts, and print what was found."""
    from contact_id_controller.files import write_text
    from contact_id_controller.kernels.compile_progress import Compiling, to_stderr
    from contact_id_controller.new_robot.first_parameters import propose, refuse_unchecked

    output = arguments.output or Path(Path(arguments.urdf).stem + ".yaml")
    if output.exists():
        raise ConfigurationError(f"{str(output)!r} exists; name another file with --output")
    urdf = arguments.urdf
    if "://" not in urdf:
        urdf = str(Path(urdf).expanduser().resolve())
    floating = None if arguments.base is None else arguments.base == FLOATING
    proposal = propose(urdf, floating, arguments.mjcf)
    with Compiling(to_stderr):
        refuse_unchecked(proposal)
    write_text(output, proposal.text)
    for line in proposal.found:
        print(line)
    print(f"Written: {output}. Next: contact_id check --config {output}")
    return DONE
