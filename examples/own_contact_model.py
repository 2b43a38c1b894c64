"""A contact model of one's own, registered while the program runs: feet that are glued down.

    python examples/own_contact_model.py

What many whole-body controllers do: every contact is held in all directions, whatever the sign of the
force, and of the forces that do so the smallest is taken. Ten lines of numpy on the reduced problem. Bent
over its front feet the robot falls over: glue pulls at the hind feet, honest contact cannot.
"""

import numpy as np
import pinocchio as pin

from contact_id_controller import ContactSet, RobotModel, Solution, build_problem
from contact_id_controller.cli import run_script
from contact_id_controller.models import ContactModel, Normal, Tangential, register, solve

FEET = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
POSTURE = [0, 1.2, -0.4] * 2 + [0, 0.9, 0.4] * 2  # the body leans out over the front feet


def solve_glued(problem, options, warm_start) -> Solution:
    """Least forces that hold every contact: G z + c = 0 with G = Y Y^T."""
    z = -np.linalg.lstsq(problem.Y @ problem.Y.T, problem.c, rcond=1e-10)[0]
    robot = problem.robot
    velocity = np.zeros(robot.nv)
    velocity[robot.actuated] = problem.desired_velocity
    # base = L^T p, so that v_u+ = p + A^-1 J_u^T z.
    velocity[robot.unactuated] = np.linalg.solve(problem.L.T, problem.base + problem.Y.T @ z)
    torques = problem.torque_offset + problem.T.T @ z
    return Solution(problem, "solved", torques, z, velocity)


def main() -> tuple[np.ndarray, np.ndarray]:
    """Print the vertical forces; returns those of glue and of coulomb/qp, N."""
    register(
        ContactModel(
            "glued",
            "least_force",
            "the feet are bolted to the ground",
            Normal.HOLDING,
            Tangential.NO_SLIP,
            home=solve_glued,
        )
    )
    robot = RobotModel.from_urdf("example-robot-data://solo_description/robots/solo12.urdf")
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], POSTURE)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    points = np.array([data.oMf[robot.frame_id(foot)].translation for foot in FEET])
    contacts = ContactSet(points, [[0, 0, 1]] * 4, FEET, 0.6)
    problem = build_problem(robot, q, np.zeros(robot.nv), np.zeros(robot.na), contacts, 1e-3)

    glued, honest = (
        solve(problem, *pair) for pair in (("glued", "least_force"), ("coulomb", "qp"))
    )
    for foot, pulled, pushed in zip(FEET, glued.forces, honest.forces):
        print(f"{foot}: glue {pulled[2]:+8.3f} N, coulomb/qp {pushed[2]:+8.3f} N")
    weight = pin.computeTotalMass(robot.model) * 9.81
    print(f"carried: glue {glued.forces[:, 2].sum() / weight:.6f} of the weight")
    return glued.forces[:, 2], honest.forces[:, 2]


if __name__ == "__main__":
    run_script(main)
