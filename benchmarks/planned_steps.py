"""Robots of config/plans/ follow plans of steps in MuJoCo: over stones, on level ground, disturbed.

    python benchmarks/planned_steps.py [--robots talos g1 solo12] [--cases stones level late ...]
    python benchmarks/planned_steps.py --robots talos --pushes 12 16 20 [--feedback base] [--level]

One process, the controller with the parameters of the robot's file. Printed, a line a case: why its
plan is refused, or whether it fell, the error of the centre of mass from the plan, and the error of the predicted normal forces
of the feet, summed over them, as part of the weight. With --pushes impulses in N s, each within 0.1 s
at the torso, in four directions at moments of the first two swings: what was held, and behind it how
much fixed footholds can hold at all (`planning.kinodynamic.holdable_velocity`).
"""

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.files import read_yaml
from contact_id_controller.planning.kinodynamic import MotionPlan, holdable_velocity, plan_motion
from contact_id_controller.planning.kinodynamic.footstep_file import (
    footsteps_file,
    read_task,
    walk_task,
)
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.runs.one_process import controller_settings, section
from contact_id_controller.runs.planned_motion import follow_motion, write_ground
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.simulation.disturbed_robot import Push

PLANS = "package://contact_id_controller/config/plans"
LEAD_S, PUSH_S = 0.5, 0.1
PUSHED = {"talos": "torso_2_link", "g1": "torso_link", "solo12": "base_link"}


class Case(NamedTuple):
    """level: steps on the plane instead of stones; walk_m: as far as this, instead of the file's.

    impulse_m_s: of a push along x and y, per mass.
    """

    level: bool = False
    walk_m: float = 0.0
    friction: float = 0.6
    late_periods: int = 0
    impulse_m_s: tuple[float, float] = (0.0, 0.0)
    at_s: float = 0.0


DIRECTIONS = (0, 90, 180, 270)
WALK_SUPPORT_S = 0.35
STRIDES_M = {"talos": 0.5, "g1": 0.4, "solo12": 0.12}
SIDE = 20.0 / 90.27  # 20 N s for TALOS, and the same change of velocity for lighter robots
CASES = {
    "level": Case(level=True),
    "level_late": Case(level=True, late_periods=1),
    "level_pushed": Case(level=True, impulse_m_s=(0.0, SIDE), at_s=1.6),
    "walk_10m": Case(walk_m=10.0),
    "walk_10m_late": Case(walk_m=10.0, late_periods=1),
    "stones": Case(),
    "stones_mu04": Case(friction=0.4),
    "stones_late": Case(late_periods=1),
    "stones_pushed": Case(impulse_m_s=(0.0, SIDE), at_s=1.6),
}


class Scene(NamedTuple):
    """A plan and who follows it: configuration, robot, plan, parameters of the ground."""

    config: str
    robot: RobotModel
    plan: MotionPlan
    ground: dict[str, str]


def plan_scene(robot: str, case: Case, folder: Path) -> Scene:
    """Plan the steps of a case."""
    config = str(resolve_urdf(f"{PLANS}/{robot}.yaml"))
    values = section(config, "kinodynamic_planner", friction_coefficient=case.friction)
    if case.walk_m:
        settings = KinodynamicPlannerSettings.from_mapping(
            {**values, "support_s": WALK_SUPPORT_S, "stride_m": STRIDES_M[robot]}
        )
        task = walk_task(settings, (case.walk_m, 0.0, 0.0))
    else:
        settings = KinodynamicPlannerSettings.from_mapping(values)
        steps = footsteps_file(settings, Path(config).parent)
        if case.level:
            rows = [
                {**row, "at": [*row["at"][:2], 0.0], "turned": [0, 0, 0]}
                for row in read_yaml(steps)
            ]
            steps = folder / "level.yaml"
            steps.write_text(yaml.safe_dump(rows), encoding="utf-8")
        task = read_task(settings, steps)
    plan = plan_motion(task.robot, task.contact_plan, settings, start=task.start, start_s=LEAD_S)
    return Scene(config, task.robot, plan, write_ground(plan, folder))


def run(robot: str, case: Case, scene: Scene, feedback: str) -> dict[str, float | bool]:
    """Follow a plan; figures by name."""
    controller = controller_settings(
        scene.config,
        friction_coefficient=[case.friction],
        base_feedback=feedback,
        **scene.ground,
    )
    impulse = np.array([*case.impulse_m_s, 0.0]) * scene.robot.mass
    done = follow_motion(
        scene.config,
        scene.plan,
        controller,
        friction=case.friction,
        delay_periods=case.late_periods,
        pushes=[Push(case.at_s, PUSH_S, impulse)],
        push_body=PUSHED[robot],
    )
    return {name: value for name, (value, _, _) in done.figures().items()}


def outcome(robot: str, case: Case, feedback: str) -> str:
    """Plan and follow a case; its figures, or why no plan is followed, in a line."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            scene = plan_scene(robot, case, Path(folder))
        except TrajectoryError as refusal:
            return f"refused: {refusal}"
        return line(run(robot, case, scene, feedback))


def line(found: dict[str, float | bool]) -> str:
    """Figures in a line."""
    fate = f"fell after {found['executed_s']:.2f} s" if found["fell"] else "no fall"
    return (
        f"{fate:18} CoM {1e3 * found['com_error_rms_m']:.1f} / "
        f"{1e3 * found['com_error_max_m']:.1f} mm, forces {100 * found['force_error']:.2f} %, "
        f"step {1e6 * found['step_s']:.0f} us"
    )


def push_about(robot: str, impulses: list[float], case: Case, feedback: str) -> None:
    """Pushes in four directions at moments of the first two swings."""
    with tempfile.TemporaryDirectory() as folder:
        scene = plan_scene(robot, case, Path(folder))
        mass, ends = scene.robot.mass, LEAD_S + scene.plan.contact_plan.boundaries_s
        for moment, at_s in {
            "on both feet": 0.5 * (ends[2] + ends[3]),
            "foot has lifted": ends[1] + 0.1,
            "foot aloft": 0.5 * (ends[1] + ends[2]) + 0.05,
            "other foot aloft": 0.5 * (ends[3] + ends[4]) + 0.05,
        }.items():
            for degrees in DIRECTIONS:
                angle = np.deg2rad(degrees)
                most = mass * holdable_velocity(scene.plan.momentum, at_s - LEAD_S, [angle])[0]
                for impulse in impulses:
                    speed = impulse / mass
                    pushed = case._replace(
                        impulse_m_s=(speed * np.cos(angle), speed * np.sin(angle)), at_s=at_s
                    )
                    found = run(robot, pushed, scene, feedback)
                    print(
                        f"{robot:7} {moment:16} {at_s:.2f} s {degrees:4d} deg {impulse:5.1f} of "
                        f"{most:4.1f} N s: {line(found)}",
                        flush=True,
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="+", choices=PUSHED, default=list(PUSHED))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--pushes", nargs="+", type=float, help="impulses, N s")
    parser.add_argument("--level", action="store_true", help="pushes on level ground")
    parser.add_argument("--feedback", choices=("base", "center_of_mass"), default="center_of_mass")
    chosen = parser.parse_args()
    for robot in chosen.robots:
        if chosen.pushes:
            push_about(robot, chosen.pushes, Case(level=chosen.level), chosen.feedback)
            continue
        for name in chosen.cases:
            print(f"{robot:7} {name:14} {outcome(robot, CASES[name], chosen.feedback)}", flush=True)


if __name__ == "__main__":
    main()
