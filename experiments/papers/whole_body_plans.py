"""Kinodynamic paper (Herzog, Schaal, Righetti): forces and whole body in turn, TALOS over stones.

The robot, its stones and all settings are those of ``config/plans/talos.yaml``: phases of 0.7 s and 100
knots as in the paper, the rest ours. Times are CPU times of this process.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contact_id_controller.planning.kinodynamic import MotionPlan, plan_motion
from contact_id_controller.planning.kinodynamic.footstep_file import Task, footsteps_file, read_task
from contact_id_controller.planning.kinodynamic.placement import carrying
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from experiments.papers.blocks import Claim, Section
from experiments.papers.paper import Paper
from experiments.papers.store import RunDescription, RunResult

NAME = "whole_body_plans"
CONFIG = "package://contact_id_controller/config/plans/talos.yaml"
PAPER = Paper(NAME)
CONSENSUS = ("plain", "multipliers")
STEPS_S = {50: 0.14, 100: 0.07, 200: 0.035}
"""Knots of the paper's seven seconds, and the time between them."""

PASSES, THEIRS = 4, 2
"""That are looked at, and that the paper says suffice."""


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
    settings, task = scene(time_step_s=STEPS_S[knots])
    plan = _planned(settings, task, consensus, passes)  # compiles
    began = time.process_time()
    _planned(settings, task, consensus, THEIRS)
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


def scene(**changes) -> tuple[KinodynamicPlannerSettings, Task]:
    """Settings with changes, and the robot on its stones."""
    file = Path(resolve_urdf(CONFIG))
    section = ParameterFile(file).section("kinodynamic_planner")
    settings = KinodynamicPlannerSettings.from_mapping({**section, **changes})
    return settings, read_task(settings, footsteps_file(settings, file.parent))


def _planned(
    settings: KinodynamicPlannerSettings, task: Task, consensus: str, passes: int
) -> MotionPlan:
    return plan_motion(
        task.robot,
        task.contact_plan,
        settings,
        start=task.start,
        consensus=consensus,
        passes=passes,
    )


def _travel_of_arms(plan: MotionPlan, task: Task) -> float:
    """Largest way of a joint that carries no foot, rad."""
    robot = task.robot
    legs = carrying(robot, plan.contacts.frames)[robot.actuated]
    return float(np.ptp(robot.joints_of(plan.fine.configurations)[:, ~legs], axis=0).max())


def report(results: Sequence[RunResult]) -> Section:
    """Disagreement over the passes, and the claims."""
    ordered = sorted(results, key=lambda each: (each.parameters["knots"], _way(each)))
    table = PAPER.table("passes", [{**each.parameters, **each.values} for each in ordered])
    return PAPER.section([PAPER.text(), table], claims(results))


def claims(results: Sequence[RunResult]) -> list[Claim]:
    """Those that runs of 100 knots can judge."""
    at_100 = {_way(each): each for each in results if each.parameters["knots"] == 100}
    judged = []
    for consensus, r in at_100.items():
        if consensus == "multipliers":
            sways = r["sway_m"] > 0.01 and r["arms_rad"] > 0.1
            judged += [
                PAPER.claim("time", r["whole_plan_s"] < PAPER.figures["time_s"], r=r),
                PAPER.claim("sway", sways, r=r),
            ]
        judged.append(_passes(consensus, r))
    if "plain" in at_100:
        spin = at_100["plain"]["angular_momentum"]
        stuck, ends = spin[-1] > 0.1 * spin[0], dict(first=spin[0], last=spin[-1])
        judged.append(PAPER.claim("optimal", stuck, passes=len(spin), **ends))
    return judged


def _passes(consensus: str, result: RunResult) -> Claim:
    com, spin = (result[name][THEIRS - 1] for name in ("com_m", "angular_momentum"))
    tolerances = {name: PAPER.figures[name] for name in ("agreed_m", "agreed_spin")}
    return PAPER.claim(
        "passes",
        com <= tolerances["agreed_m"] and spin <= tolerances["agreed_spin"],
        consensus=consensus,
        com=com,
        spin=spin,
        shrinks=result["angular_momentum"][THEIRS] / spin,
        **tolerances,
    )


def _way(result: RunResult) -> str:
    return result.parameters["consensus"]
