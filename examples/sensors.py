"""A walk that knows only its sensors: IMU, encoders and joint efforts, all of them noisy.

    python examples/sensors.py [perfect|good|motor_currents|cheap]

`estimated_state` stands between the simulated robot and the controller: the estimator finds base pose,
velocity and the forces at the feet, and planner and controller get nothing else.
"""

import numpy as np

from contact_id_controller.cli import run_script
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    estimated_state,
    mujoco_robot,
)

ROBOT, DURATION_S, SETTLED_S = "solo12", 2.0, 0.5


def main(sensors: str = "good") -> tuple[bool, float, float]:
    """Print the walk; returns whether it fell, the drift, m, and the error of the estimated forces."""
    settings = controller_settings(ROBOT)
    world = mujoco_robot(settings, 0.6, imu_frame="")
    estimate = estimated_state(ROBOT, world, sensors, seed=1)
    run = InProcessRun(ROBOT, settings, world, estimator=estimate, planner={"speed_m_s": 0.2})

    differences = []

    def compare(period):
        differences.append(period.estimated_forces[:, 2].sum() - period.forces[:, 2].sum())

    record = run.record(DURATION_S, each=compare)
    settled = np.array(differences[round(SETTLED_S / record.period_s) :])
    error = np.sqrt(np.mean(settled**2)) / run.robot.weight
    drift = np.linalg.norm(run.believed.q[:2] - run.state.q[:2])
    print(f"{sensors} sensors: fell: {record.fell}, base estimated {1e3 * drift:.1f} mm off")
    print(f"sum of the estimated vertical forces: {100 * error:.1f} % of the weight off (rms)")
    return record.fell, drift, error


if __name__ == "__main__":
    run_script(main)
