"""Inverse kinematics for a plan of your own: Solo12's body goes round an ellipse over its standing feet.

    python examples/leg_ik.py

A planner that works with places of base and feet needs joint positions: Gauss-Newton steps on Pinocchio's
frame Jacobians find them, for all legs at once.
"""

import numpy as np
import pinocchio as pin

from contact_id_controller.cli import run_script
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import BaseTrajectory, JointTrajectory
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot

ROBOT, SWAY_M, LOWER_M = "solo12", 0.02, 0.02
TIMES_S = np.linspace(0.2, 2.2, 101)
CLOSE_M, MOST_STEPS = 1e-6, 20


def feet_at(robot, q, feet):
    """Places (n, 3) m of the frames ``feet`` at q (nq,), world, and their Jacobian by the joints, (3n, na)."""
    model, data = robot.model, robot.model.createData()
    frames = [robot.frame_id(foot) for foot in feet]
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    places = np.array([data.oMf[frame].translation for frame in frames])
    world = pin.LOCAL_WORLD_ALIGNED
    rows = [pin.getFrameJacobian(model, data, frame, world)[:3] for frame in frames]
    return places, np.vstack(rows)[:, robot.actuated]


def solve_legs(robot, feet, base, wanted, guess):
    """Joints (na,) rad that put ``feet`` at ``wanted`` (n, 3) m, world, with the base at ``base`` (7,) m, xyzw.

    Steps J dq = wanted - places from ``guess`` (na,). Raises ValueError where they do not get there, as for a foot
    out of reach.
    """
    joints = np.array(guess)
    for _ in range(MOST_STEPS):
        places, J = feet_at(robot, robot.configuration(base, joints), feet)
        error = (wanted - places).ravel()
        if np.abs(error).max() < CLOSE_M:
            return joints
        joints += np.linalg.lstsq(J, error, rcond=None)[0]
    raise ValueError(f"the feet stay {np.abs(error).max():.3g} m away")


def ellipse(robot, feet, q) -> Plan:
    """Once round in y and z from q (nq,), from rest to rest, feet where they stand."""
    s = (TIMES_S - TIMES_S[0]) / (TIMES_S[-1] - TIMES_S[0])
    angle = 2.0 * np.pi * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    places = np.tile(q[:3], (len(angle), 1))
    places[:, 1] += SWAY_M * np.sin(angle)
    places[:, 2] += 0.5 * LOWER_M * (np.cos(angle) - 1.0)
    stand, joints, rows = feet_at(robot, q, feet)[0], robot.joints_of(q), []
    for place in places:  # each from the one before: it is next to it
        joints = solve_legs(robot, feet, np.concatenate([place, q[3:7]]), stand, joints)
        rows.append(joints)
    rows, turned = np.array(rows), np.tile(q[3:7], (len(places), 1))
    speeds, rates = np.gradient(places, TIMES_S, axis=0), np.gradient(rows, TIMES_S, axis=0)
    speeds[[0, -1]] = rates[[0, -1]] = 0.0
    return Plan(
        joints=JointTrajectory(robot.joint_names, TIMES_S, rows, rates),
        base=BaseTrajectory(TIMES_S, places, turned, speeds, 0.0 * speeds),
    )


def main() -> tuple[float, float]:
    """Print the motion; returns how far the base swayed from side to side, m, and the joint error, rad."""
    settings = controller_settings(ROBOT, start_ramp_s=0.0)
    feet = list(settings.contact_frames)

    def plan(controller, state):
        return ellipse(controller.robot, feet, state.q) if state.time_s == 0.0 else None

    run = InProcessRun(ROBOT, settings, mujoco_robot(settings, 0.6), plan=plan)
    record = run.record(TIMES_S[-1] + 0.2)
    swayed = np.ptp(record.q[:, 1])
    error = np.sqrt(np.mean((record.position - record.reference_position) ** 2))
    print(f"swayed {1e3 * swayed:.1f} mm for {2e3 * SWAY_M:.0f} planned, fell: {record.fell}")
    print(f"joint error {error:.4f} rad")
    return swayed, error


if __name__ == "__main__":
    run_script(main)
