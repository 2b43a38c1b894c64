"""Kino-dynamic paper (Herzog, Schaal, Righetti): forces and whole body in turn, TALOS over stones.

The robot, its stones and all settings are those of ``config/plans/talos.yaml``: phases of 0.7 s and 100
knots as in the paper, the rest ours. Times are CPU times of this process.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contact_id_controller.planning.kinodynamic import MotionPlan, plan_motion
from contact_id_controller.planning.kinodynamic.footsteps import Task, footsteps_file, read_task
from contact_id_controller.planning.kinodynamic.placement import carrying
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.settings.kino_dynamic_planner import KinoDynamicPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from experiments.papers.blocks import (
    BETTERED,
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    Section,
    Table,
    Text,
)
from experiments.papers.store import RunDescription, RunResult

NAME = "whole_body_plans"
CONFIG = "package://contact_id_controller/config/plans/talos.yaml"
PAPER = "kino-dynamic paper"
COMMAND = f"python -m experiments reproduce {NAME}"
CONSENSUS = ("plain", "multipliers")
STEPS_S = {50: 0.14, 100: 0.07, 200: 0.035}
"""Knots of the paper's seven seconds, and the time between them."""

PASSES, THEIRS = 4, 2
"""That are looked at, and that the paper says suffice."""

THEIR_TIME_S = 30.0
AGREED_M, AGREED_SPIN = 2e-3, 0.2
"""Design's tolerances for CoM, m, and angular momentum, kg m2/s."""


def runs(quick: bool) -> list[RunDescription]:
    """One for each way to hand on and number of knots."""
    return [
        RunDescription(NAME, {"consensus": consensus, "knots": knots})
        for knots in ((100,) if quick else STEPS_S)
        for consensus in CONSENSUS
    ]


def run(description: RunDescription) -> dict:
    """Disagreement after each pass, times, and what the robot does with its arms."""
    return alternate(description.parameters["consensus"], description.parameters["knots"])


def alternate(consensus: str, knots: int, passes: int = PASSES) -> dict:
    """A plan of some passes, and the time of one with as many as the paper's."""
    values = {"consensus": consensus, "time_step_s": STEPS_S[knots]}
    settings, task = scene(**values, passes=passes)
    plan = _planned(settings, task)  # compiles
    shorter, _ = scene(**values, passes=THEIRS)
    began = time.process_time()
    _planned(shorter, task)
    whole_s = time.process_time() - began
    return {
        "whole_plan_s": whole_s,
        "com_m": [each.com for each in plan.passes],
        "momentum": [each.momentum for each in plan.passes],
        "angular_momentum": [each.angular_momentum for each in plan.passes],
        "iterations": [each.motion_iterations for each in plan.passes],
        "sway_m": float(np.ptp(plan.momentum.com[:, 1])),
        "arms_rad": _travel_of_arms(plan, task),
        "largest_spin": float(np.abs(plan.momentum.angular_momentum).max()),
    }


def scene(**changes) -> tuple[KinoDynamicPlannerSettings, Task]:
    """Settings with changes, and the robot on its stones."""
    file = Path(resolve_urdf(CONFIG))
    section = ParameterFile(file).section("kino_dynamic_planner")
    settings = KinoDynamicPlannerSettings.from_mapping({**section, **changes})
    return settings, read_task(settings, footsteps_file(settings, file.parent))


def _planned(settings: KinoDynamicPlannerSettings, task: Task) -> MotionPlan:
    return plan_motion(task.robot, task.contact_plan, settings, start=task.start)


def _travel_of_arms(plan: MotionPlan, task: Task) -> float:
    """Largest way of a joint that carries no foot, rad."""
    robot = task.robot
    legs = carrying(robot, plan.contacts.frames)[robot.actuated]
    return float(np.ptp(robot.joints_of(plan.fine.configurations)[:, ~legs], axis=0).max())


def report(results: Sequence[RunResult]) -> Section:
    """Disagreement over the passes, and the claims."""
    ordered = sorted(results, key=lambda each: (each.parameters["knots"], _way(each)))
    rows = [
        [
            each.parameters["knots"],
            _way(each),
            *(
                f"{1e3 * com:.2f} / {spin:.3f}"
                for com, spin in zip(each["com_m"], each["angular_momentum"])
            ),
            each["whole_plan_s"],
        ]
        for each in ordered
    ]
    head = ["T", "handed on", *(f"pass {number}" for number in range(1, PASSES + 1)), "2 passes, s"]
    table = Table(
        "Disagreement of forces and whole body after each pass: CoM, mm / angular momentum, kg m2/s",
        head,
        rows,
    )
    text = Text(
        "TALOS (28 joints move) steps over four stones, each 6 cm higher, two tilted by 12 degrees. Each "
        "plan follows what the other one found: as it is (plain, the paper's algorithm 1), or with the "
        "disagreement so far added (multipliers)."
    )
    return Section(
        "Whole-body plans (structured contact force optimisation)", [text, table], claims(results)
    )


def claims(results: Sequence[RunResult]) -> list[Claim]:
    """Those that runs of 100 knots can judge."""
    at_100 = {_way(each): each for each in results if each.parameters["knots"] == 100}
    judged = []
    for consensus, result in at_100.items():
        if consensus == "multipliers":
            judged += [_time(result), _sway(result)]
        judged.append(_passes(consensus, result))
    if "plain" in at_100:
        judged.append(_optimal(at_100["plain"]))
    return judged


def _time(result: RunResult) -> Claim:
    taken = result["whole_plan_s"]
    return Claim(
        f"{PAPER}, V-A, V-B",
        "100 knots and two passes take 30 s",
        BETTERED if taken < THEIR_TIME_S else NOT_REPRODUCED,
        f"{taken:.2f} s of CPU time, with the finer grid, torques and checks",
        COMMAND,
    )


def _passes(consensus: str, result: RunResult) -> Claim:
    com, spin = result["com_m"], result["angular_momentum"]
    agreed = com[THEIRS - 1] <= AGREED_M and spin[THEIRS - 1] <= AGREED_SPIN
    shrinks = spin[THEIRS] / spin[THEIRS - 1]
    return Claim(
        f"{PAPER}, V-B, figure 3",
        f"two passes suffice ({consensus})",
        REPRODUCED if agreed else NOT_REPRODUCED,
        f"after two passes {1e3 * com[THEIRS - 1]:.2f} mm and {spin[THEIRS - 1]:.3f} kg m2/s are left "
        f"(tolerances {1e3 * AGREED_M:g} mm, {AGREED_SPIN:g}); the third leaves {shrinks:.2f} of that",
        COMMAND,
    )


def _optimal(result: RunResult) -> Claim:
    spin = result["angular_momentum"]
    return Claim(
        f"{PAPER}, I, II",
        "alternating leads to a locally optimal solution of the full plan",
        NOT_REPRODUCED if spin[-1] > 0.1 * spin[0] else REPRODUCED,
        "not proved there; what each pass finds only agrees with the other one in the limit of large "
        f"weights: the plain alternation's angular momenta are {spin[0]:.3f} kg m2/s apart after one "
        f"pass and {spin[-1]:.3f} after {len(spin)}",
        COMMAND,
    )


def _sway(result: RunResult) -> Claim:
    sway, arms = result["sway_m"], result["arms_rad"]
    return Claim(
        f"{PAPER}, V-B, figures 2, 3",
        "lateral sway and a swing of the arms appear by themselves",
        REPRODUCED if sway > 0.01 and arms > 0.1 else NOT_REPRODUCED,
        f"the CoM sways by {1e3 * sway:.0f} mm, arms move by up to {arms:.2f} rad, the angular momentum "
        f"stays below {result['largest_spin']:.2f} kg m2/s",
        COMMAND,
    )


def _way(result: RunResult) -> str:
    return result.parameters["consensus"]
