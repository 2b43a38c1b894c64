"""``contact_id identify``: inertias, friction, rotors and torque constants of a robot, from a log."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.exit_codes import DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "log",
        type=Path,
        metavar="LOG",
        help="of a robot whose base is held and that touches nothing: .csv, .npz, .mat, a folder of .csv, or a bag",
    )
    parser.add_argument(
        "--urdf",
        required=True,
        metavar="URDF",
        help="robot description: a file, package://... or example-robot-data://PACKAGE/robots/FILE",
    )
    parser.add_argument(
        "--map", type=Path, metavar="FILE", help="YAML that assigns columns to channels"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("identified"),
        metavar="FOLDER",
        help="where the corrected URDF and the parameters go (default: identified)",
    )
    parser.add_argument(
        "--hold-out",
        type=float,
        default=0.3,
        metavar="SHARE",
        help="share of the time, at the end, that is held out for evaluation; 0: all is fitted (default: 0.3)",
    )
    parser.add_argument(
        "--judge",
        type=Path,
        metavar="LOG",
        help="evaluate on this log, and fit all of the first one",
    )
    parser.add_argument(
        "--excite",
        type=Path,
        metavar="PLAN",
        help="plan a motion that determines what this log does not, and write it to this .csv file",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        metavar="S",
        help="duration of that motion (default: 20)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit and evaluate, write the results, and print the summary."""
    from contact_id_controller.diagnosis.robot_of_log import joints_of
    from contact_id_controller.files import check_free, make_folder, write_text
    from contact_id_controller.identification.corrected import parameter_text, write_urdf
    from contact_id_controller.identification.identify import identify
    from contact_id_controller.identification.summary import lines
    from contact_id_controller.identification.told import told
    from contact_id_controller.logs.reader import read_log
    from contact_id_controller.robot import resolve_urdf

    if not 0.0 <= arguments.hold_out < 1.0:
        raise ConfigurationError(f"--hold-out is {arguments.hold_out:g}, must be from 0 to below 1")
    if not 2.0 <= arguments.seconds <= 600.0:
        raise ConfigurationError(f"--seconds is {arguments.seconds:g}, must be from 2 to 600")
    if arguments.judge is not None and arguments.judge.resolve() == arguments.log.resolve():
        raise ConfigurationError(
            f"--judge is {str(arguments.judge)!r}, the log that is fitted; name another one"
        )
    source = resolve_urdf(arguments.urdf)
    folder = make_folder(arguments.out)
    urdf, parameters = folder / source.name, folder / f"{source.stem}_motors.yaml"
    if urdf.resolve() == source.resolve():
        raise ConfigurationError(
            f"--out {str(folder)!r} holds the URDF itself; choose another folder"
        )
    if arguments.excite is not None:
        check_free(arguments.excite)
        make_folder(arguments.excite.parent)
    joints = joints_of(source, None)
    log, judge = (
        None if path is None else read_log(path, arguments.map, joints)
        for path in (arguments.log, arguments.judge)
    )
    assert log is not None
    found = identify(log, str(source), arguments.hold_out, judge)
    for line in lines(found, told(found.robot, found.fit)):
        print(line)
    write_urdf(found, source, urdf)
    write_text(parameters, parameter_text(found, urdf.resolve()))
    print(f"Written: {urdf}, {parameters}")
    if arguments.excite is not None:
        from contact_id_controller.identification.excitation import plan_excitation, write_plan

        plan = plan_excitation(found, arguments.seconds)
        write_plan(plan, arguments.excite)
        print(plan.summary)
        print(f"Written: {arguments.excite}")
    return DONE
