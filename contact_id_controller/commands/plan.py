"""``contact_id plan``: forces and whole-body motion over footsteps, a page about them, and their execution."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from contact_id_controller.commands.shared_options import add_changes, add_robot
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.exit_codes import DONE, FELL

SECTION = "kinodynamic_planner"
LEAD_S = 0.5
"""Time for which the robot stands before an executed plan starts."""


def _passes(text: str) -> int:
    """A number of passes; argparse.ArgumentTypeError for another."""
    if text.isdecimal() and 1 <= int(text) <= 100:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 100")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    add_robot(parser, "config/plans/: talos, g1 or solo12", f", with a section {SECTION}")
    parser.add_argument(
        "--stones",
        type=Path,
        metavar="FILE",
        help="footsteps, one row a step (default: parameter footsteps of the file)",
    )
    parser.add_argument(
        "--goal",
        type=float,
        nargs=3,
        metavar=("X", "Y", "HEADING"),
        help="walk straight there on level ground instead: m, m, rad from where the robot stands",
    )
    parser.add_argument(
        "--passes",
        type=_passes,
        metavar="N",
        help="how often forces and whole body are planned in turn (default: 2); more where they are far apart",
    )
    parser.add_argument(
        "--execute",
        action="store_true",
        help="let the controller follow the plan in MuJoCo, on stones below the footsteps",
    )
    add_changes(
        parser, f"change a parameter of {SECTION}, or with controller.NAME=VALUE of the controller"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("plan"),
        metavar="DIR",
        help="where plan and page go (default: plan)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Plan, print each pass, write the page; one line and exit code 2 if it is infeasible."""
    from contact_id_controller.runs.preparation import check_extras

    executed = ("mujoco",) if arguments.execute else ()
    check_extras("a plan's page needs", "matplotlib", "jinja2", "PIL", *executed)
    from contact_id_controller.files import make_folder
    from contact_id_controller.kernels.compile_progress import Compiling, to_stderr
    from contact_id_controller.planning.kinodynamic import plan_motion
    from contact_id_controller.planning.kinodynamic.alternation import PASSES
    from contact_id_controller.planning.kinodynamic.footstep_file import (
        read_task,
        task_of,
        walk_task,
    )
    from contact_id_controller.report.plan_page import write_plan

    config = config_of(arguments)
    settings, changes = settings_of(config, arguments.changes)
    if arguments.goal is not None and arguments.stones is not None:
        raise ConfigurationError("give --stones or --goal, not both")
    if arguments.goal is not None:
        task = walk_task(settings, tuple(arguments.goal))
    elif arguments.stones is not None:
        task = read_task(settings, arguments.stones)
    elif settings.goal or settings.footsteps:
        task = task_of(settings, config.parent)
    else:
        raise ConfigurationError(f"'{config}' names no footsteps: give --stones FILE or --goal")
    with Compiling(to_stderr):
        plan = plan_motion(
            task.robot,
            task.contact_plan,
            settings,
            start=task.start,
            start_s=LEAD_S,
            progress=lambda each: print(each.line(), flush=True),
            passes=arguments.passes or PASSES,
        )
    print(f"planned {plan.contact_plan.duration_s:.2f} s of motion in {plan.seconds:.2f} s")
    folder = make_folder(arguments.output)
    figures, pictures, fell = {}, {}, False
    if arguments.execute:
        figures, pictures, fell = execute(config, plan, settings, changes, folder)
    page = write_plan(
        plan,
        task.robot,
        folder,
        feet=settings.feet,
        title=f"{config.stem}: {len(plan.contact_plan.phases) // 2} steps",
        command=arguments.typed,
        times=time_against_intervals(plan),
        execution=figures,
        pictures=pictures,
    )
    print(f"Plan: {page}")
    return FELL if fell else DONE


def config_of(arguments: argparse.Namespace) -> Path:
    """The parameter file of the options.

    Raises:
        ConfigurationError: no robot of that name.
    """
    from contact_id_controller.settings.parameter_file import ParameterFile
    from contact_id_controller.settings.robot_files import file_of, robots

    if arguments.config is not None:
        return arguments.config
    plans = {name: file for name, file in robots("plans").items() if SECTION in ParameterFile(file)}
    return file_of(arguments.robot, plans)


def settings_of(config: Path, changes: list[str]) -> tuple[Any, ...]:
    """The planner's settings with changes, and the changes of the controller, name -> value.

    Raises:
        ConfigurationError: a file, a section, a name or a value that is not valid.
    """
    from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
    from contact_id_controller.settings.parameter_file import ParameterFile, parse_value

    values = ParameterFile(config).section(SECTION)
    of_controller = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise ConfigurationError(f"'{change}' must be NAME=VALUE")
        if name.startswith("controller."):
            of_controller[name.removeprefix("controller.")] = parse_value(text)
        else:
            values[name.removeprefix(f"{SECTION}.")] = parse_value(text)
    return KinodynamicPlannerSettings.from_mapping(values), of_controller


def execute(
    config: Path, plan: Any, settings: Any, changes: dict[str, Any], folder: Path
) -> tuple[Any, ...]:
    """Follow the plan in MuJoCo; return figures, pictures (file name -> caption), and whether it fell."""
    from contact_id_controller.report.execution import write_execution
    from contact_id_controller.runs.one_process import controller_settings
    from contact_id_controller.runs.planned_motion import follow_motion, write_ground

    ground: dict[str, Any] = write_ground(plan, folder)
    controller = controller_settings(str(config), **ground, **changes)
    done = follow_motion(str(config), plan, controller, friction=settings.friction_coefficient)
    figures = done.figures()
    for name, (value, unit, meaning) in figures.items():
        print(f"{name}: {value if isinstance(value, bool) else f'{value:.4g}'} {unit} ({meaning})")
    return figures, write_execution(done, controller, folder), done.record.fell


def time_against_intervals(plan: Any) -> list[tuple[int, float]]:
    """Intervals and planning time, s, of momentum plans for the same footholds on coarser and finer knots."""
    import time

    from contact_id_controller.planning.kinodynamic import build_momentum_problem, solve_momentum

    problem, times = plan.momentum.problem, []
    com = plan.momentum.com[0]
    height = float(com[2] - plan.fine.feet.positions[0, :, 2].mean())
    for part in (1, 2, 4, 8):
        step_s = problem.contacts.time_step_s / part
        contact_plan = plan.contact_plan.on_knots(step_s)
        knots = round(contact_plan.duration_s / step_s)
        finer = build_momentum_problem(contact_plan, knots, problem.mass_kg, height_m=height)
        began = time.perf_counter()
        solve_momentum(finer)
        times.append((knots, time.perf_counter() - began))
    return times
