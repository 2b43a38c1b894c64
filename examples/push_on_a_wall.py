"""Push on a wall: hind feet on the ground, front feet against a vertical wall.

    python examples/push_on_a_wall.py

A contact's normal points from the environment to the robot: up on the ground, back from the wall.
Nothing moves, so friction at the hind feet must hold what the wall returns. Pinocchio's own inverse
dynamics, given the forces found here, must leave nothing for the base to do.
"""

import numpy as np
import pinocchio as pin

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.cli import run_script

FEET = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
POSTURE = [0, -0.3, -0.9] * 2 + [0, 0.2, 1.2] * 2
UP, BACK = [0, 0, 1], [-1, 0, 0]
PITCH_RAD = -0.6  # nose up
FRICTION = 0.8


def main() -> tuple[float, float]:
    """Print the forces; returns the push on the wall, N, and what is left for the base, N and N·m."""
    robot = RobotModel.from_urdf("example-robot-data://solo_description/robots/solo12.urdf")
    turn = [0, np.sin(PITCH_RAD / 2), 0, np.cos(PITCH_RAD / 2)]
    q = robot.configuration([0, 0, 0, *turn], POSTURE)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    points = np.array([data.oMf[robot.frame_id(foot)].translation for foot in FEET])
    contacts = ContactSet(points, [BACK, BACK, UP, UP], FEET, FRICTION)

    v, hold = np.zeros(robot.nv), np.zeros(robot.na)
    solution = solve(
        build_problem(robot, q, v, hold, contacts, 1e-3), "coulomb", "qp", cone="exact"
    )

    front, hind = solution.forces[:2].sum(axis=0), solution.forces[2:].sum(axis=0)
    print(f"wall:   {-front[0]:.3f} N pushed, carries {front[2]:.3f} N")
    print(f"ground: {hind[0]:.3f} N held by friction, carries {hind[2]:.3f} N")
    slope = np.hypot(hind[0], hind[1]) / hind[2]
    print(f"friction used on the ground: {slope:.3f} of {FRICTION}")

    # The judge: M a + h - J^T f at rest is the torque alone, so its base rows are zero.
    left = pin.rnea(robot.model, data, q, v, np.zeros(robot.nv))
    for foot, force in zip(FEET, solution.forces):
        frame = robot.frame_id(foot)
        J = pin.computeFrameJacobian(robot.model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        left -= J[:3].T @ force
    base = np.abs(left[:6]).max()
    print(f"left for the base to do: {base:.1e}; {solution.status}")
    return -front[0], base


if __name__ == "__main__":
    run_script(main)
