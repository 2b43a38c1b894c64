"""A plan for the whole body: Solo12 steps over stones, first planned, then followed in MuJoCo.

    python examples/stones.py

`plan_motion` plans contact forces and all joints in turn until both agree; `follow_motion` lets the
controller follow the plan on stones that stand where the footsteps are.
"""

import tempfile
from pathlib import Path

import numpy as np

from contact_id_controller.cli import run_script
from contact_id_controller.planning.kinodynamic import plan_motion
from contact_id_controller.planning.kinodynamic.footstep_file import task_of
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.one_process import controller_settings, section
from contact_id_controller.runs.planned_motion import follow_motion, write_ground
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings

CONFIG = resolve_urdf("package://contact_id_controller/config/plans/solo12.yaml")
START_S = 0.2


def main() -> tuple[bool, float, float]:
    """Print plan and walk; returns whether it fell, the CoM's rms error, m, and the force error."""
    values = section(str(CONFIG), "kinodynamic_planner")
    settings = KinodynamicPlannerSettings.from_mapping(values)
    task = task_of(settings, CONFIG.parent)  # or read_task(settings, "stones.yaml"), walk_task(...)
    plan = plan_motion(
        task.robot,
        task.contact_plan,
        settings,
        start=task.start,
        start_s=START_S,
        progress=lambda each: print(each.line()),
    )
    with tempfile.TemporaryDirectory() as folder:
        ground = write_ground(plan, Path(folder))
        controller = controller_settings(str(CONFIG), **ground)
        done = follow_motion(str(CONFIG), plan, controller, friction=0.6)
    error = np.sqrt(np.mean(np.sum(done.com_errors**2, axis=1)))
    print(f"followed {plan.contact_plan.duration_s:.2f} s, fell: {done.record.fell}")
    print(
        f"CoM {1e3 * error:.2f} mm from the plan (rms), forces {100 * done.force_errors.mean():.2f} %"
    )
    return done.record.fell, error, done.force_errors.mean()


if __name__ == "__main__":
    run_script(main)
