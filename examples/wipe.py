"""An arm wipes a table: a Panda presses with a force while its hand goes round.

    python examples/wipe.py [FORCE] [FRICTION]

A plan that moves a pressing contact along the surface slides it: `least_normal_force_n` is all there is to set.
`friction_coefficient` (.6 in config/arms/panda.yaml) is only a guess of the table's, which is measured while it rubs.
MuJoCo alone throws up what slides, hence `exact_friction`.
"""

import numpy as np
import pinocchio as pin

from contact_id_controller.cli import run_script
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import JointTrajectory
from contact_id_controller.runs.joint_motion_file import joint_motion
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    mujoco_robot,
    section,
)
from contact_id_controller.simulation.mujoco_model import GroundSettings

ARM, HAND, RADIUS_M = "arms/panda", "panda_hand_tcp", 0.05
BEGINS_S, LASTS_S = 7.5, 4.0  # the hand touches at 6.8 s, or before


def circle(robot, joints) -> JointTrajectory:
    """A circle of the hand from joint positions (na,), at its height and attitude, from rest to rest."""
    model, data, hand = robot.model, robot.model.createData(), robot.frame_id(HAND)
    q = robot.configuration(None, joints)
    pin.framesForwardKinematics(model, data, q)
    start, rows = data.oMf[hand].copy(), []
    times = np.linspace(0.0, LASTS_S, 201)
    s = times / LASTS_S
    for angle in 2.0 * np.pi * s**3 * (10.0 - 15.0 * s + 6.0 * s**2):
        way = RADIUS_M * np.array([np.sin(angle), 1.0 - np.cos(angle), 0.0])
        goal = pin.SE3(start.rotation, start.translation + way)
        for _ in range(20):  # Gauss-Newton, from the place before
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            error = pin.log6(data.oMf[hand].actInv(goal)).vector
            jacobian = pin.getFrameJacobian(model, data, hand, pin.LOCAL)
            q = pin.integrate(model, q, np.linalg.lstsq(jacobian, error, rcond=None)[0])
            if np.abs(error).max() < 1e-9:
                break
        rows.append(robot.joints_of(q).copy())
    speeds = np.gradient(np.array(rows), times, axis=0)
    speeds[[0, -1]] = 0.0
    return JointTrajectory(robot.joint_names, times, np.array(rows), speeds)


def main(force: float = 20.0, friction: float = 0.3) -> tuple[np.ndarray, float]:
    """Print the forces on the table while it is wiped; returns those along its normal, N, and the joint error, rad."""
    settings = controller_settings(ARM, least_normal_force_n=[force])
    ground = GroundSettings(exact_friction=True)
    world = mujoco_robot(settings, friction, floating_base=False, ground=ground)
    down = section(ARM, "joint_motion")

    def plan(controller, state):
        robot, step = controller.robot, round(state.time_s / settings.period_s)
        if step == 0:
            return Plan(joints=joint_motion(down, robot.joint_names))
        if step == round(BEGINS_S / settings.period_s):
            return Plan(joints=circle(robot, np.reshape(down["positions"], (-1, robot.na))[-1]))
        return None

    start = np.array(section(ARM, "simulated_robot")["initial_joint_positions"])
    run = InProcessRun(ARM, settings, world, plan=plan, start=start)
    record = run.record(BEGINS_S + LASTS_S)
    wiping = record.part(slice(round(BEGINS_S / record.period_s), None))
    pressed = wiping.simulated_forces[:, 0, 2]
    error = float(np.abs(wiping.position - wiping.reference_position).mean())
    print(
        f"required {force:g} N: mean {pressed.mean():.2f} N, {pressed.min():.1f} to "
        f"{pressed.max():.1f} N, touching {100.0 * (pressed > 0.0).mean():.1f} %"
    )
    print(f"joint error {1e3 * error:.2f} mrad")
    return pressed, error


if __name__ == "__main__":
    run_script(main)
