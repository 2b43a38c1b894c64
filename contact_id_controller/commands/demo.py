"""``contact_id demo``: a simulated robot walks through real ROS 2 topics; a report shows how."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from contact_id_controller.commands.shared_options import add_changes, add_robot
from contact_id_controller.exit_codes import DONE, FELL
from contact_id_controller.runs.processes import HIGHEST_DOMAIN

MODULES = ("rclpy", "lifecycle_msgs", "mujoco", "matplotlib", "PIL", "rich", "jinja2")
"""That a run needs."""

TELEOP_S = 600.0

REAL_TIME_PRIORITY = 70
"""Default of the nodes in real time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    _add_walk(parser)
    _add_processes(parser)
    _add_outputs(parser)


def _add_walk(parser: argparse.ArgumentParser) -> None:
    """Options of the robot, its motion and its surroundings."""
    names = "config/ or config/bipeds/, such as quadruped or g1; without it three walks: quadruped at mu 1 and mu 0.1, "
    add_robot(parser, f"{names}and solo12", required=False)
    parser.add_argument("--duration", type=float, metavar="S", help="simulated time, s")
    parser.add_argument("--friction", metavar="F", help="friction model, such as coulomb")
    parser.add_argument("--solver", metavar="X", help="solver, such as qp")
    parser.add_argument(
        "--mu",
        type=float,
        metavar="M",
        help="friction coefficient, of the ground and in the controller",
    )
    parser.add_argument(
        "--mode",
        choices=("lockstep", "real_time"),
        default="lockstep",
        help="lockstep: the simulation waits for each command, so that a slow machine walks as "
        "well; real_time: it does not wait (default: lockstep)",
    )
    parser.add_argument(
        "--state",
        choices=("oracle", "estimated"),
        help="estimated: controller and planner get IMU, encoders and motors only; "
        "oracle: the simulator publishes the base's true state (default: oracle)",
    )
    parser.add_argument(
        "--sensors",
        metavar="PRESET",
        help="how good the simulated sensors are: perfect, good, motor_currents or cheap "
        "(default: as in the file; good with --state estimated)",
    )
    parser.add_argument(
        "--ground",
        type=Path,
        metavar="FILE",
        help="uneven ground, boxes or heights in YAML, for all nodes (docs/walking.md)",
    )
    parser.add_argument(
        "--planner",
        type=Path,
        metavar="FILE.py",
        help="a planner node of your own, named as this Python script, in place of the file's; the section of that "
        "name has its parameters (docs/examples.md)",
    )
    add_changes(parser, "change a parameter of the controller, or with NODE.NAME=VALUE of any node")


def _add_processes(parser: argparse.ArgumentParser) -> None:
    """Options of the processes."""
    parser.add_argument(
        "--rt-priority",
        metavar="N",
        help="real-time priority (SCHED_FIFO, 1 to 99) of all nodes, planners one less and the "
        "simulated robot two (default: 70 with --mode real_time where the system allows it, else 0, "
        "the ordinary one; docs/real_time.md)",
    )
    parser.add_argument(
        "--cpus",
        action="append",
        metavar="[NODE=]LIST",
        help="cores of all nodes, or of one, as 0,2-3; may be repeated",
    )
    parser.add_argument(
        "--domain",
        type=_domain,
        metavar="N",
        help=f"ROS domain of the run, 0 to {HIGHEST_DOMAIN}, where other tools may listen in "
        "(default: an unused one; it is printed)",
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    """Options of comparison, live view, driving and recording."""
    parser.add_argument(
        "--sweep",
        metavar="NAME=V1,V2,...",
        help="one walk for each value of a parameter, and a page that compares "
        "them; with --robot or --config",
    )
    parser.add_argument(
        "--view",
        nargs="?",
        const=":",
        metavar="HOST:PORT",
        help="show the run live in a browser, in which anyone with the printed link can stop, resume "
        "and tune it (default: 127.0.0.1:8080, this machine alone)",
    )
    parser.add_argument(
        "--teleop",
        action="store_true",
        help="drive the robot: a stick on the page of --view, the keyboard there, or the topic joy; "
        "with --robot or --config, 600 s unless --duration is given",
    )
    parser.add_argument(
        "--bag",
        choices=("sqlite3", "mcap"),
        help="record the topics of the controller into a bag in the run's folder, for `contact_id replay`",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="where the report goes (default: report)",
    )


def _domain(text: str) -> int:
    """The number of a ROS domain."""
    if not (text.isdecimal() and int(text) <= HIGHEST_DOMAIN):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to {HIGHEST_DOMAIN}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Do the runs, write their reports; in a sweep a fall is not a failure."""
    from contact_id_controller.runs.preparation import check_extras

    recorded = ("rosbags",) if arguments.bag else ()
    viewed = ("viser",) if arguments.view or arguments.teleop else ()
    check_extras("a run needs", *MODULES, *recorded, *viewed)
    from contact_id_controller.report.demo import play_all
    from contact_id_controller.report.tables import print_figures

    reports, page = play_all(
        planned(arguments), arguments.output, partial(_side_processes, arguments), arguments.domain
    )
    print_figures([(report.title, report.summary) for report in reports])
    print(f"\nReport: {page}")
    fell = any(report.summary["fell"] for report in reports)
    return FELL if fell and not arguments.sweep else DONE


def _side_processes(
    arguments: argparse.Namespace, setup: Any, folder: Path
) -> dict[str, list[str]]:
    """Command lines of the processes beside the nodes, as the options request."""
    from contact_id_controller.view import side_processes

    found = {}
    if arguments.bag:
        from contact_id_controller.view.bag import clear_bag

        found["bag_recorder"] = side_processes.recording(folder, clear_bag(folder), arguments.bag)
    if arguments.view or arguments.teleop:
        host, port = side_processes.place_of(arguments.view or ":")
        found["viewer"] = side_processes.viewing(folder, host, port, arguments.teleop)
    return found


def _usual_priority(mode: str | None) -> int:
    """Default priority of the nodes: in real time other load on this machine can make a robot fall."""
    if mode != "real_time":
        return 0
    from contact_id_controller.ros.scheduling import is_allowed

    if is_allowed(REAL_TIME_PRIORITY):
        return REAL_TIME_PRIORITY
    print(
        "real time at an ordinary priority, because the system allows no other: other programs on "
        "this machine can make the robot fall (docs/real_time.md: how to allow it)",
        file=sys.stderr,
    )
    return 0


def planned(arguments: argparse.Namespace) -> list[tuple[Path, dict[str, Any]]]:
    """Folder and keywords of each requested run."""
    from contact_id_controller.exceptions import ConfigurationError
    from contact_id_controller.runs.selection import plan_runs

    duration_s = arguments.duration
    if arguments.teleop:
        if not (arguments.robot or arguments.config):
            raise ConfigurationError("--teleop drives one robot: name it with --robot or --config")
        duration_s = duration_s or TELEOP_S
    return plan_runs(
        arguments.output,
        robot=arguments.robot,
        config=arguments.config,
        sweep=arguments.sweep,
        duration_s=duration_s,
        friction=arguments.friction,
        solver=arguments.solver,
        mu=arguments.mu,
        mode=arguments.mode,
        state=arguments.state,
        sensors=arguments.sensors,
        ground=arguments.ground,
        planner=arguments.planner,
        changes=arguments.changes,
        rt_priority=arguments.rt_priority or _usual_priority(arguments.mode),
        cpus=arguments.cpus,
        driven=arguments.teleop or None,
        switchable=bool(arguments.view or arguments.teleop),
    )
