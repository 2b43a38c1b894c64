"""A made-up trot of the quadruped for tests of the report: smooth and known in closed form."""

import numpy as np

from contact_id_controller import robot as robots
from contact_id_controller.runs.record import RunRecord

PERIOD_S = 1e-3
URDF = "package://contact_id_controller/urdf/quadruped.urdf"
FEET = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
GAIT_S = 0.3
SPEED_M_S = 0.2


def synthetic_walk(
    duration_s: float = 3.0, *, predicted_share: float = 1.0, noise: float = 0.0, seed: int = 0
) -> RunRecord:
    """Walk straight ahead; the predicted normal forces are ``predicted_share`` of the real ones."""
    robot = robots.RobotModel.from_urdf(URDF)
    random = np.random.default_rng(seed)
    n, na, f = round(duration_s / PERIOD_S), robot.na, len(FEET)
    time = PERIOD_S * np.arange(n)
    phase = (time[:, None] / GAIT_S - np.array([0.25, 0.75, 0.75, 0.25])) % 1.0
    contact = phase < 0.75
    load = np.where(contact, np.sin(np.pi * np.clip(phase / 0.75, 0.0, 1.0)) ** 0.3, 0.0)
    normal = robot.weight * load / load.sum(axis=1, keepdims=True)
    simulated = np.zeros((n, f, 3))
    simulated[..., 2] = normal * (1.0 + noise * random.standard_normal((n, f)))
    simulated[..., 0] = 0.1 * normal * np.cos(np.pi * phase)
    predicted = simulated.copy()
    predicted[..., 2] = predicted_share * normal
    q = np.tile(robot.neutral(), (n, 1))
    q[:, 0] = SPEED_M_S * time
    q[:, 1] = 0.01 * np.sin(2.0 * np.pi * time / GAIT_S)
    q[:, 2] = 0.172 + 0.001 * np.sin(4.0 * np.pi * time / GAIT_S)
    pose = np.array([0.1, 0.8, 1.2])
    posture = np.concatenate([pose, -pose, -pose, pose])
    swing = 0.15 * np.sin(2.0 * np.pi * (time[:, None] / GAIT_S + np.arange(na) / na))
    position = posture + swing
    q[:, robot.q_index] = position
    velocity = np.gradient(position, PERIOD_S, axis=0)
    reference = position + 0.004 * np.sin(7.0 * time)[:, None]
    torques = 0.4 * np.sin(2.0 * np.pi * (time[:, None] / GAIT_S + np.arange(na) / 5))
    solve = 60e-6 * np.exp(0.15 * random.standard_normal(n))
    return RunRecord(
        period_s=PERIOD_S,
        time_s=time,
        joint_names=tuple(robot.joint_names),
        foot_names=FEET,
        q=q,
        v=np.zeros((n, robot.nv)),
        position=position,
        velocity=velocity,
        reference_position=reference,
        reference_velocity=velocity + 0.05,
        torques=torques,
        saturated=np.zeros((n, na), dtype=bool),
        predicted_forces=predicted,
        simulated_forces=simulated,
        contact=contact,
        solve_time_s=solve,
        step_time_s=3.0 * solve,
        power_loss_w=0.5 * (torques**2).sum(axis=1),
        status=np.full(n, "solved"),
        deadline_misses=0,
        unanswered_states=0,
        simulation_late_periods=0,
        refused_inputs={},
    )
