"""A walk in one process: gait planner, controller and a quadruped in MuJoCo, two seconds.

    python examples/walk.py [FRICTION]

The same parts as `contact_id demo`, without ROS. `InProcessRun` reads the robot's configuration,
asks the gait planner for a plan every 50 ms and the controller for torques every millisecond.
"""

import numpy as np

from contact_id_controller.cli import run_script
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot

ROBOT, DURATION_S = "solo12", 2.0
SETTLED_S = 0.5


def main(friction: float = 0.6) -> tuple[bool, float, float]:
    """Print the walk; returns whether it fell, the joint error, rad, and the force error."""
    settings = controller_settings(ROBOT, friction_coefficient=[friction], start_ramp_s=0.0)
    world = mujoco_robot(settings, friction)
    run = InProcessRun(ROBOT, settings, world, planner={"speed_m_s": 0.2})
    record = run.record(DURATION_S)

    settled = record.part(slice(round(SETTLED_S / record.period_s), None))
    joint_error = np.abs(settled.position - settled.reference_position).mean()
    predicted, simulated = (
        forces[:, :, 2].sum(axis=1)
        for forces in (settled.predicted_forces, settled.simulated_forces)
    )
    force_error = np.abs(predicted - simulated).mean() / run.robot.weight
    print(f"walked {record.q[-1, 0] - record.q[0, 0]:.2f} m in {DURATION_S} s, fell: {record.fell}")
    print(f"joint error {joint_error:.4f} rad, force error {100 * force_error:.2f} % of the weight")
    return record.fell, joint_error, force_error


if __name__ == "__main__":
    run_script(main)
