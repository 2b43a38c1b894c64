"""A robot of one's own: a URDF written here, a tripod on three telescopic legs.

    python examples/own_robot.py

Its statics fit on a slip of paper: each leg carries a third of the weight, and its motor pushes with
that less the weight of the foot below it.
"""

import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.cli import run_script

BODY_KG, FOOT_KG, RADIUS_M, LENGTH_M, G = 3.0, 0.1, 0.2, 0.3, 9.81


def link(name, mass):
    """A small solid link."""
    inertia = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    return f'<link name="{name}"><inertial><mass value="{mass}"/>{inertia}</inertial></link>'


def leg(k):
    """A foot on a vertical prismatic joint at the rim of the body."""
    x, y = RADIUS_M * np.cos(2 * np.pi * k / 3), RADIUS_M * np.sin(2 * np.pi * k / 3)
    return f"""
      {link(f"foot_{k}", FOOT_KG)}
      <joint name="leg_{k}" type="prismatic">
        <parent link="body"/><child link="foot_{k}"/>
        <origin xyz="{x} {y} {-LENGTH_M}"/><axis xyz="0 0 -1"/>
        <limit lower="-0.1" upper="0.1" effort="100" velocity="2"/>
      </joint>"""


def main() -> tuple[np.ndarray, float]:
    """Print the efforts; returns them, N, and the ones expected on paper."""
    urdf = f'<robot name="tripod">{link("body", BODY_KG)}{"".join(map(leg, range(3)))}</robot>'
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tripod.urdf"
        file.write_text(urdf, encoding="utf-8")
        robot = RobotModel.from_urdf(file)
    q = robot.configuration([0, 0, LENGTH_M, 0, 0, 0, 1], np.zeros(3))
    feet = [f"foot_{k}" for k in range(3)]
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    points = [data.oMf[robot.frame_id(foot)].translation for foot in feet]
    contacts = ContactSet(points, [[0, 0, 1]] * 3, feet, 0.5)

    problem = build_problem(robot, q, np.zeros(robot.nv), np.zeros(robot.na), contacts, 1e-3)
    solution = solve(problem, "coulomb", "lcp")

    expected = (BODY_KG + 3 * FOOT_KG) * G / 3 - FOOT_KG * G
    for joint, effort, force in zip(robot.joint_names, solution.torques, solution.forces):
        print(f"{joint}: pushes with {effort:.4f} N; the ground with {force[2]:.4f} N")
    print(f"on paper: {expected:.4f} N")
    return solution.torques, expected


if __name__ == "__main__":
    run_script(main)
