"""An arm: a Panda follows a motion, comes down on the table and presses with the force required.

    python examples/press.py [FORCE]

No force sensor is used. `least_normal_force_n` is the least force of a touching contact, and
`distribution: least_force` (in config/arms/panda.yaml) lets it be no more.
"""

import numpy as np

from contact_id_controller.cli import run_script
from contact_id_controller.plans.plan import Plan
from contact_id_controller.runs.joint_motion_file import joint_motion
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    mujoco_robot,
    section,
)

ARM, DURATION_S, SETTLED_S = "arms/panda", 8.5, 7.5  # the hand touches at 6.8 s, or before


def main(force: float = 20.0) -> tuple[float, float]:
    """Print the mean force on the table; returns it as predicted and as simulated, N."""
    settings = controller_settings(ARM, least_normal_force_n=[force])
    world = mujoco_robot(settings, 0.6, floating_base=False)

    def plan(controller, state):
        if state.time_s > 0.0:
            return None
        return Plan(joints=joint_motion(section(ARM, "joint_motion"), controller.robot.joint_names))

    start = np.array(section(ARM, "simulated_robot")["initial_joint_positions"])
    run = InProcessRun(ARM, settings, world, plan=plan, start=start)
    record = run.record(DURATION_S)
    pressing = record.part(slice(round(SETTLED_S / record.period_s), None))
    predicted = pressing.predicted_forces[:, 0, 2].mean()
    simulated = pressing.simulated_forces[:, 0, 2].mean()
    error = np.abs(record.position - record.reference_position).mean()
    print(f"required {force:g} N: predicted {predicted:.2f} N, simulated {simulated:.2f} N")
    print(f"joint error {1e3 * error:.2f} mrad over {DURATION_S:g} s")
    return predicted, simulated


if __name__ == "__main__":
    run_script(main)
