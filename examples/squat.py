"""A planner of your own: Solo12 squats, planned by one function.

    python examples/squat.py

A planner returns a `Plan`: joint motion, base motion, or both, and which feet stand. The controller
finds torques and contact forces. `InProcessRun` calls `plan(controller, state)` before each period
instead of the gait planner.
"""

import numpy as np

from contact_id_controller.cli import run_script
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import BaseTrajectory, JointTrajectory
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot

ROBOT, LINK_M = "solo12", 0.16  # thigh and shank
DOWN_M, TIMES_S = 0.04, np.array([0.2, 1.0, 1.8])


def posture(hip: float) -> np.ndarray:
    """Joints (12,) rad with each foot below its hip: the knee bends twice as far as the hip."""
    front, hind = [0.0, hip, -2.0 * hip], [0.0, -hip, 2.0 * hip]
    return np.array(front * 2 + hind * 2)


def squat(joint_names, height: float, down_m: float = DOWN_M) -> Plan:
    """Down by so much from a base height, m, and up again; at rest at each point."""
    hip = 0.8
    bent = np.arccos(np.cos(hip) - down_m / (2.0 * LINK_M))
    rows = np.array([posture(hip), posture(bent), posture(hip)])
    places = np.array([[0.0, 0.0, height - down] for down in (0.0, down_m, 0.0)])
    at_rest = np.zeros((3, 3))
    return Plan(
        joints=JointTrajectory(joint_names, TIMES_S, rows, 0.0 * rows, 0.0 * rows),
        base=BaseTrajectory(TIMES_S, places, [[0.0, 0.0, 0.0, 1.0]] * 3, at_rest, at_rest),
    )


def main() -> tuple[float, float]:
    """Print the squat; returns how far the base went down, m, and the force error."""
    settings = controller_settings(ROBOT, start_ramp_s=0.0)

    def plan(controller, state):
        return squat(controller.robot.joint_names, state.q[2]) if state.time_s == 0.0 else None

    run = InProcessRun(ROBOT, settings, mujoco_robot(settings, 0.6), plan=plan)
    record = run.record(TIMES_S[-1] + 0.2)
    height = record.q[:, 2]
    down = height[0] - height.min()
    forces = (record.predicted_forces - record.simulated_forces)[:, :, 2].sum(axis=1)
    error = np.abs(forces).mean() / run.robot.weight
    print(f"squatted {1e3 * down:.1f} mm for {1e3 * DOWN_M:.0f} planned, fell: {record.fell}")
    print(f"back up within {1e3 * abs(height[-1] - height[0]):.2f} mm")
    print(f"force error {100 * error:.3f} % of the weight")
    return down, error


if __name__ == "__main__":
    run_script(main)
