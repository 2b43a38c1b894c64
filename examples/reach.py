"""Goals by name: TALOS stands, reaches with a hand and turns its head.

    python examples/reach.py

`TaskGoals` has goals of the centre of mass, feet, heading and posture, and of any other frame: a path
of its origin, a rotation, or both. The controller weighs them against each other in one least-squares
problem; there is no inverse kinematics and no joint plan. The neck is locked in this file: the torso
turns the head.
"""

import numpy as np
import pinocchio as pin

from contact_id_controller.cli import run_script
from contact_id_controller.plans.goals import ComGoal, FootPath, FrameGoal, Posture, TaskGoals
from contact_id_controller.plans.plan import Plan
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot

ROBOT, HAND, HEAD = "bipeds/talos", "gripper_right_base_link", "head_2_link"
BY_M, TIMES_S, DURATION_S = np.array([0.35, -0.1, 0.25]), [0.5, 2.0], 3.0
LOOK = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.3, -0.4))  # down and to the right


def reach(robot, q) -> Plan:
    """The robot in configuration q (nq,) stands for 10 s; its right hand moves by `BY_M`, m."""
    data = robot.model.createData()
    com = pin.centerOfMass(robot.model, data, q)
    pin.framesForwardKinematics(robot.model, data, q)
    hand = data.oMf[robot.frame_id(HAND)].translation
    feet = [data.oMf[robot.frame_id(f"{side}_sole_link")].translation for side in ("left", "right")]
    middle, height_m = np.mean(feet, axis=0), com[2] - feet[0][2]
    rest = np.zeros((2, 3))
    goals = {
        HAND: FrameGoal(FootPath(TIMES_S, [hand, hand + BY_M], rest, rest)),
        HEAD: FrameGoal(rotation=LOOK.coeffs()),
    }
    balance = ComGoal(middle[:2], middle[:2], np.sqrt(9.81 / height_m), height_m)
    posture = Posture(robot.joint_names, robot.joints_of(q))
    return Plan(goals=TaskGoals(balance, posture, {}, 10.0, frames=goals))


def main() -> tuple[float, float, float]:
    """Print how far hand and head are from their goals; returns that, m and rad, and the CoM's way, m."""
    settings = controller_settings(ROBOT, start_ramp_s=0.0)

    def plan(controller, state):
        return reach(controller.robot, state.q) if state.time_s == 0.0 else None

    run = InProcessRun(ROBOT, settings, mujoco_robot(settings, 0.6), plan=plan)
    record = run.record(DURATION_S)
    robot, (first, last) = run.robot, record.q[[0, -1]]
    data = robot.model.createData()
    coms, hands = [], []
    for q in (first, last):
        coms.append(pin.centerOfMass(robot.model, data, q).copy())
        pin.framesForwardKinematics(robot.model, data, q)
        hands.append(data.oMf[robot.frame_id(HAND)].translation.copy())
    away = float(np.linalg.norm(hands[1] - hands[0] - BY_M))
    head = data.oMf[robot.frame_id(HEAD)].rotation
    turned = float(np.linalg.norm(pin.log3(head.T @ LOOK.matrix())))
    moved = float(np.linalg.norm(coms[1] - coms[0]))
    print(f"hand {1e3 * away:.1f} mm from where it is to be, {np.linalg.norm(BY_M):.2f} m away")
    print(
        f"head {1e3 * turned:.1f} mrad from where it is to look; centre of mass {1e3 * moved:.1f} mm"
    )
    print(f"fell: {record.fell}")
    return away, turned, moved


if __name__ == "__main__":
    run_script(main)
