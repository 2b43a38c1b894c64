"""What does the hand hold, and who pushes the arm? A Panda finds out from its joint sensors alone.

    python examples/payload.py

The arm follows the motion of config/arms/panda.yaml in MuJoCo. Its hand holds 1 kg that the controller
does not know, and at 3 s a person leans on its elbow. Efforts, positions and velocities are noisy.
The estimator allows for a force at the hand only: nine efforts tell more than its three components, so
a force anywhere else shows as a residual that is too large.
"""

import mujoco
import numpy as np
import pinocchio as pin

from contact_id_controller.cli import run_script
from contact_id_controller.control.controller import Controller
from contact_id_controller.estimation import DynamicsEstimator, JointAcceleration, JointEffort
from contact_id_controller.estimation.filters import LowPass
from contact_id_controller.plans.plan import Plan
from contact_id_controller.runs.joint_motion_file import joint_motion
from contact_id_controller.runs.one_process import controller_settings, mujoco_robot, section
from contact_id_controller.simulation.sensor_noise import SimulatedSensors

ARM, HAND, ELBOW = "arms/panda", "panda_hand_tcp", "panda_link4"
LOAD_KG, GRAVITY, PUSH_N = 1.0, 9.81, 30.0
BEGIN_S, PUSH_BEGINS_S, END_S = 0.2, 3.0, 3.2
CUTOFF_HZ, LIMIT = 30.0, 3.0


def load(model, body, place, mass):
    """Add a point mass (kg) at a place (3,) m of a body to a MuJoCo model."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[body])
    turn = turn.reshape(3, 3)
    own = turn @ np.diag(model.body_inertia[body]) @ turn.T
    both = pin.Inertia(model.body_mass[body], model.body_ipos[body], own)
    both += pin.Inertia(mass, place, np.zeros((3, 3)))
    moments, axes = np.linalg.eigh(both.inertia)
    axes[:, 2] *= np.linalg.det(axes)
    model.body_mass[body], model.body_ipos[body] = both.mass, both.lever
    model.body_inertia[body] = moments
    mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())


def main() -> tuple[float, float, int]:
    """Print what is found; returns the load, kg, the delay of noticing the push, s, and false alarms."""
    settings = controller_settings(ARM, least_normal_force_n=[0.0])
    world = mujoco_robot(settings, 0.6, floating_base=False)
    robot, model, data = world.robot, world.mujoco_model, world.mujoco_data
    hand = robot.model.frames[robot.frame_id(HAND)]
    load(model, model.body("panda_link7").id, hand.placement.translation, LOAD_KG)
    elbow = model.body(ELBOW).id

    motion = section(ARM, "joint_motion")
    controller, sensors = Controller(robot, settings), SimulatedSensors(world, "good", seed=1)
    start = section(ARM, "simulated_robot")["initial_joint_positions"]
    state = world.reset(np.array(start))
    controller.follow(Plan(joints=joint_motion(motion, robot.joint_names)), 0.0)

    n = robot.na
    estimator = DynamicsEstimator(
        robot, [JointAcceleration(3.0), JointEffort(0.03)], {HAND: "point"}
    )
    together = LowPass(4 * n, CUTOFF_HZ, world.period_s)
    before, forces, alarms = np.zeros(n), [], []
    while state.time_s < END_S:
        data.xfrc_applied[elbow, 0] = PUSH_N if state.time_s >= PUSH_BEGINS_S else 0.0
        state = world.step(controller.step(state).torques)
        read = sensors.read(state)
        rate, before = (read.velocity - before) / world.period_s, read.velocity
        q, v, acceleration, effort = together(
            np.concatenate([read.position, read.velocity, rate, read.effort])
        ).reshape(4, n)
        found = estimator.estimate(
            q, v, None, {"joint_acceleration": acceleration, "joint_effort": effort}
        )
        if state.time_s < BEGIN_S:
            continue
        if max(found.normalised_residuals.values()) > LIMIT:
            alarms.append(state.time_s)
        if state.time_s < PUSH_BEGINS_S:
            forces.append(found.contact_force(HAND)[2])
    mass = -np.mean(forces) / GRAVITY
    true = [time for time in alarms if time > PUSH_BEGINS_S]
    delay, false = (true[0] - PUSH_BEGINS_S if true else np.inf), len(alarms) - len(true)
    print(f"the hand holds {mass:.3f} kg (true: {LOAD_KG:g})")
    print(f"something pushes the arm: noticed after {1e3 * delay:.0f} ms, {false} false alarms")
    return mass, delay, false


if __name__ == "__main__":
    run_script(main)
