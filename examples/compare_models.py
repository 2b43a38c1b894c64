"""Compare contact models: every one that the registry knows, on one state, behind one function.

    python examples/compare_models.py

The body of Solo12 glides at 0.3 m/s over four planted feet. All models find the same load, those whose
contacts give way a hundredth less; they differ in which of the possible forces they choose, and in how
much torque that costs.
"""

import numpy as np
import pinocchio as pin

from contact_id_controller import ContactSet, RobotModel, build_problem
from contact_id_controller.cli import run_script
from contact_id_controller.models import available, row_of, solve

FEET = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
POSTURE = [0, 0.8, -1.6] * 2 + [0, -0.8, 1.6] * 2
SPEED_M_S = 0.3


def gliding(robot):
    """q, v, joint accelerations and points with the feet at rest and the body at constant speed."""
    model, data = robot.model, robot.model.createData()
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], POSTURE)
    frames = [robot.frame_id(foot) for foot in FEET]
    world = pin.LOCAL_WORLD_ALIGNED
    J = np.vstack([pin.computeFrameJacobian(model, data, q, frame, world)[:3] for frame in frames])
    v = np.zeros(robot.nv)
    v[0] = SPEED_M_S
    v[6:] = np.linalg.solve(J[:, 6:], -J[:, :6] @ v[:6])
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.nv))
    pin.updateFramePlacements(model, data)
    drift = [pin.getFrameClassicalAcceleration(model, data, f, world).linear for f in frames]
    points = [data.oMf[frame].translation.copy() for frame in frames]
    return q, v, np.linalg.solve(J[:, 6:], -np.concatenate(drift)), points


def main() -> dict[str, float]:
    """Print a table; returns what each model's forces carry, as a share of the weight."""
    robot = RobotModel.from_urdf("example-robot-data://solo_description/robots/solo12.urdf")
    q, v, acceleration, points = gliding(robot)
    contacts = ContactSet(points, [[0, 0, 1]] * 4, FEET, 0.6, viscosity=50.0)
    problem = build_problem(robot, q, v, acceleration, contacts, 1e-3)
    weight = pin.computeTotalMass(robot.model) * 9.81
    carried = {}
    print(f"{'model':22}{'carried':>9}{'sideways, N':>13}{'torque, N·m':>13}  status")
    for pair in available():
        row = row_of(*pair)
        if not row.predicts_forces:
            continue
        solution = solve(problem, *pair)
        carried[str(row)] = solution.forces[:, 2].sum() / weight
        sideways = np.hypot(solution.forces[:, 0], solution.forces[:, 1]).sum()
        torque = np.linalg.norm(solution.torques)
        print(
            f"{row!s:22}{carried[str(row)]:9.4f}{sideways:13.3f}{torque:13.3f}  {solution.status}"
        )
    return carried


if __name__ == "__main__":
    run_script(main)
