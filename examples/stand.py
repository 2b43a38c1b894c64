"""Stand: what each foot of a quadruped carries, and the torques that hold it up.

    python examples/stand.py

Solo12 at rest on four planted feet. The vertical forces add up to its weight, whatever the model.
"""

import numpy as np
import pinocchio as pin

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.cli import run_script

FEET = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
POSTURE = [0, 0.8, -1.6] * 2 + [0, -0.8, 1.6] * 2


def main() -> float:
    """Print the forces; returns the carried share of the weight."""
    robot = RobotModel.from_urdf("example-robot-data://solo_description/robots/solo12.urdf")
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], POSTURE)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    points = [data.oMf[robot.frame_id(foot)].translation for foot in FEET]
    contacts = ContactSet(points, [[0, 0, 1]] * 4, FEET, 0.6)

    at_rest, hold = np.zeros(robot.nv), np.zeros(robot.na)
    problem = build_problem(robot, q, at_rest, hold, contacts, 1e-3)
    solution = solve(problem, friction="coulomb", solver="qp")

    for foot, force in zip(FEET, solution.forces):
        print(f"{foot}: {force[2]:6.3f} N up, {np.hypot(*force[:2]):.3f} N sideways")
    for joint, torque in zip(robot.joint_names, solution.torques):
        print(f"{joint}: {torque:+.3f} N·m")
    weight = pin.computeTotalMass(robot.model) * 9.81
    share = solution.forces[:, 2].sum() / weight
    print(f"weight {weight:.3f} N, carried share {share:.6f}, {solution.status}")
    return share


if __name__ == "__main__":
    run_script(main)
