"""Robots of config/plans/ follow plans of steps in MuJoCo: over stones, on level ground, disturbed.

    python benchmarks/planned_steps.py [--robots talos g1 solo12] [--cases stones level late ...]

One process, the controller with the parameters of the robot's file. Printed, a line a case: whether
it fell, the error of the centre of mass from the plan, and the error of the predicted normal forces
of the feet, summed over them, as part of the weight.
"""

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from contact_id_controller.files import read_yaml
from contact_id_controller.planning.kinodynamic import plan_motion
from contact_id_controller.planning.kinodynamic.footsteps import footsteps_file, read_task
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.one_process import controller_settings, section
from contact_id_controller.runs.planned_motion import follow_motion, write_ground
from contact_id_controller.settings.kino_dynamic_planner import KinoDynamicPlannerSettings

PLANS = "package://contact_id_controller/config/plans"
LEAD_S, PUSH_S = 0.5, 0.1
PUSHED = {"talos": "torso_2_link", "g1": "torso_link", "solo12": "base_link"}


class Case(NamedTuple):
    """level: steps on the plane instead of stones. impulse_m_s: of a push along x and y, per mass."""

    level: bool = False
    friction: float = 0.6
    late_periods: int = 0
    impulse_m_s: tuple[float, float] = (0.0, 0.0)
    at_s: float = 0.0


SIDE = 20.0 / 90.27  # 20 N s for TALOS, and the same change of velocity for lighter robots
CASES = {
    "level": Case(level=True),
    "level_late": Case(level=True, late_periods=1),
    "level_pushed": Case(level=True, impulse_m_s=(0.0, SIDE), at_s=1.6),
    "stones": Case(),
    "stones_mu04": Case(friction=0.4),
    "stones_late": Case(late_periods=1),
    "stones_pushed": Case(impulse_m_s=(0.0, SIDE), at_s=1.6),
}


def run(robot: str, case: Case, folder: Path) -> dict[str, float | bool]:
    """Plan and follow; figures by name."""
    config = str(resolve_urdf(f"{PLANS}/{robot}.yaml"))
    values = section(config, "kino_dynamic_planner", friction_coefficient=case.friction)
    settings = KinoDynamicPlannerSettings.from_mapping(values)
    steps = footsteps_file(settings, Path(config).parent)
    if case.level:
        rows = [
            {**row, "at": [*row["at"][:2], 0.0], "turned": [0, 0, 0]} for row in read_yaml(steps)
        ]
        steps = folder / "level.yaml"
        steps.write_text(yaml.safe_dump(rows), encoding="utf-8")
    task = read_task(settings, steps)
    plan = plan_motion(task.robot, task.contact_plan, settings, start=task.start, start_s=LEAD_S)
    controller = controller_settings(
        config, friction_coefficient=[case.friction], **write_ground(plan, folder)
    )
    force = np.array([*case.impulse_m_s, 0.0]) * task.robot.mass / PUSH_S
    done = follow_motion(
        config,
        plan,
        controller,
        friction=case.friction,
        delay_periods=case.late_periods,
        push=lambda time_s: force * (case.at_s <= time_s < case.at_s + PUSH_S),
        push_body=PUSHED[robot],
    )
    return {name: value for name, (value, _, _) in done.figures().items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="+", choices=PUSHED, default=list(PUSHED))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    chosen = parser.parse_args()
    for robot in chosen.robots:
        for name in chosen.cases:
            with tempfile.TemporaryDirectory() as folder:
                found = run(robot, CASES[name], Path(folder))
            fate = f"fell after {found['executed_s']:.2f} s" if found["fell"] else "no fall"
            print(
                f"{robot:7} {name:14} {fate:18} CoM {1e3 * found['com_error_rms_m']:.1f} / "
                f"{1e3 * found['com_error_max_m']:.1f} mm, forces {100 * found['force_error']:.2f} %, "
                f"step {1e6 * found['step_s']:.0f} us",
                flush=True,
            )


if __name__ == "__main__":
    main()
