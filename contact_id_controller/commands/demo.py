"""``contact_id demo``: a simulated robot walks through real ROS 2 topics; a report shows how."""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError, MissingExtraError
from contact_id_controller.report.summary import METRICS
from contact_id_controller.runs.setup import MODES, RunSetup, make_setup

SHOWCASE = (
    {"robot": "quadruped", "duration_s": 30.0, "mu": 1.0},
    {"robot": "quadruped", "duration_s": 30.0, "mu": 0.1},
    {"robot": "solo12", "duration_s": 10.0, "mu": 0.6},
)
"""The runs without ``--robot``."""

EXTRAS = (
    ("rclpy", "ros"),
    ("lifecycle_msgs", "ros"),
    ("mujoco", "simulation"),
    ("matplotlib", "simulation"),
    ("PIL", "simulation"),
)
"""Modules a run needs, and the extra that brings them."""

DONE, FELL = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "--robot",
        metavar="R",
        help="name of a file in config/, such as quadruped or solo12; without it "
        "three walks: quadruped at mu 1 and mu 0.1, and solo12",
    )
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
        choices=MODES,
        default="lockstep",
        help="lockstep: the simulation waits for each command, and gives the same "
        "walk on any machine; real_time: it does not wait (default: lockstep)",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="parameter file of your own robot"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="changes",
        help="change a parameter of the controller, or with "
        "NODE.NAME=VALUE of any node; may be repeated",
    )
    parser.add_argument(
        "--sweep",
        metavar="NAME=V1,V2,...",
        help="one walk for each value of a parameter, and a page that compares "
        "them; with --robot or --config",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="where the report goes (default: report)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do the runs and write their reports.

    Returns 0, or 1 when a robot fell; in a sweep a fall is a result like any other.
    """
    check_extras()
    output = arguments.output
    setups = [
        (folder, make_setup(folder, **choice)) for folder, choice in plan_runs(arguments, output)
    ]
    # SIGTERM ends the nodes in order, as Ctrl-C does; also where the parent had signals ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    from contact_id_controller.report.report import INDEX, PAGE, write_index

    reports = [play(setup, folder) for folder, setup in setups]
    page = output / (PAGE if reports[0].folder == output else INDEX)
    if page.name == INDEX:
        write_index(reports, output)
    print_table([(report.title, report.summary) for report in reports])
    print(f"\nReport: {page}")
    fell = any(report.summary["fell"] for report in reports)
    return FELL if fell and not arguments.sweep else DONE


def play(setup: RunSetup, folder: Path):
    """One run from its start to its report."""
    from contact_id_controller.report.report import write_report
    from contact_id_controller.runs.record import load_walk
    from contact_id_controller.runs.ros_run import run_nodes
    from contact_id_controller.runs.setup import CONTROLLER_RECORD, ROBOT_RECORD

    folder.mkdir(parents=True, exist_ok=True)
    wall_time_s = run_nodes(setup, folder)
    print("drawing plots and animation ...", file=sys.stderr)
    walk = load_walk(folder / CONTROLLER_RECORD, folder / ROBOT_RECORD, setup.settings.period_s)
    return write_report(walk, setup, folder, wall_time_s)


def plan_runs(arguments: argparse.Namespace, output: Path) -> list[tuple[Path, dict]]:
    """Folder and choices, keywords of ``make_setup``, of each run that the options ask for."""
    given = {
        "duration_s": arguments.duration,
        "friction": arguments.friction,
        "solver": arguments.solver,
        "mu": arguments.mu,
        "mode": arguments.mode,
        "config": arguments.config,
        "changes": arguments.changes,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if arguments.robot or arguments.config:
        choice = {"robot": arguments.robot or arguments.config.stem, **given}
        return _sweep(arguments.sweep, choice, output) if arguments.sweep else [(output, choice)]
    if arguments.sweep:
        raise ConfigurationError("--sweep needs --robot or --config")
    runs = [{**choice, **given} for choice in SHOWCASE]
    names = [f"{choice['robot']}_mu{choice['mu']:g}" for choice in runs]
    if len(set(names)) < len(names):
        raise ConfigurationError("--mu makes two of the three walks the same; name one --robot")
    return [(output / name, choice) for name, choice in zip(names, runs)]


def _sweep(text: str, choice: dict, output: Path) -> list[tuple[Path, dict]]:
    """The runs of ``--sweep NAME=V1,V2,...``, each in a folder of its own."""
    name, _, values = (part.strip() for part in text.partition("="))
    changes = [f"{name}={value.strip()}" for value in values.split(",") if value.strip()]
    if not changes:
        raise ConfigurationError(f"--sweep {text!r} is not of the form NAME=V1,V2,...")
    return [
        (
            output / change.replace("=", "_").replace("/", "_"),
            {**choice, "changes": [*choice["changes"], change]},
        )
        for change in changes
    ]


def check_extras() -> None:
    """Refuse to start without what a run needs.

    Raises:
        MissingExtraError: names the extra to install.
    """
    missing = [extra for module, extra in EXTRAS if importlib.util.find_spec(module) is None]
    if missing:
        extras = ",".join(sorted(set(missing)))
        raise MissingExtraError(
            f"a run needs the extra{'s' if ',' in extras else ''} {extras}: "
            f"pip install 'contact_id_controller[{extras}]'"
        )


def print_table(runs: list[tuple[str, dict]]) -> None:
    """Print the figures of one or more runs side by side."""
    from contact_id_controller.report.report import format_value

    first, width = max(map(len, METRICS)) + 2, 16
    print()
    for number, (title, _) in enumerate(runs, start=1):
        print(f"({number}) {title}")
    print("\n" + " " * first + "".join(f"({n + 1})".rjust(width) for n in range(len(runs))))
    for name, metric in METRICS.items():
        values = (format_value(summary[name], metric.unit) for _, summary in runs)
        print(name.ljust(first) + "".join(value.rjust(width) for value in values))
