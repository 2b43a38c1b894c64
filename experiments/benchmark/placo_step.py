"""Times PlaCo's DynamicsSolver; run by ``python -m experiments benchmark`` in an environment that has PlaCo.

PlaCo pins an older Pinocchio than this package, so this file stands alone: it reads a task from
standard input (urdf, feet, joints, stances, budget_s) and prints one JSON line, n -> cell.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np


def with_contact_frames(urdf, feet, offsets, folder):
    """The URDF without meshes, with a massless link at each contact; its path."""
    tree = ElementTree.parse(urdf)
    root = tree.getroot()
    for link in root.iter("link"):
        for kind in ("visual", "collision"):
            for shape in link.findall(kind):
                link.remove(shape)
    for k, offset in enumerate(offsets):
        ElementTree.SubElement(root, "link", name=f"contact_{k}")
        joint = ElementTree.SubElement(root, "joint", name=f"contact_{k}_joint", type="fixed")
        ElementTree.SubElement(joint, "parent", link=feet[k % len(feet)])
        ElementTree.SubElement(joint, "child", link=f"contact_{k}")
        ElementTree.SubElement(joint, "origin", xyz=" ".join(map(str, offset)), rpy="0 0 0")
    path = Path(folder) / f"{len(offsets)}.urdf"
    tree.write(path)
    return str(path)


def stand(urdf, task, q):
    """PlaCo's robot in the stance's configuration."""
    import placo

    robot = placo.RobotWrapper(urdf, placo.Flags.ignore_collisions)
    for name, value in zip(task["joints"], q[7:]):
        robot.set_joint(name, value)
    robot.update_kinematics()
    base = np.eye(4)
    base[:3, 3] = q[:3]
    robot.set_T_world_fbase(base)
    robot.update_kinematics()
    return robot


def cell(task, points, q):
    """Median and 99th percentile of PlaCo's whole cycle for one stance."""
    import placo

    feet = task["feet"]
    with tempfile.TemporaryDirectory() as folder:
        robot = stand(with_contact_frames(task["urdf"], feet, [], folder), task, q)
        frames = [robot.get_T_world_frame(foot) for foot in feet]
        offsets = [
            (np.linalg.inv(frames[k % len(feet)]) @ np.array([*point, 1.0]))[:3]
            for k, point in enumerate(points)
        ]
        robot = stand(with_contact_frames(task["urdf"], feet, offsets, folder), task, q)
    solver = placo.DynamicsSolver(robot)
    solver.dt = 1e-3
    for k, point in enumerate(points):
        contact = solver.add_point_contact(
            solver.add_position_task(f"contact_{k}", np.array(point))
        )
        contact.mu = 0.6
        contact.unilateral = True
    posture = solver.add_joints_task()
    posture.set_joints(dict(zip(task["joints"], q[7:])))
    posture.configure("posture", "soft", 1e-3)
    for _ in range(20):
        robot.update_kinematics()
        solver.solve(False)
    times = []
    end = time.perf_counter() + task["budget_s"]  # on a busy machine the first ones take longer
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        robot.update_kinematics()
        solver.solve(False)
        times.append(time.perf_counter() - began)
    return {
        "median_s": float(np.median(times)),
        "p99_s": float(np.percentile(times, 99)),
        "samples": len(times),
    }


def main():
    """Read the task from standard input, and print a row of times for each number of contacts."""
    task = json.load(sys.stdin)
    print(json.dumps({n: cell(task, *stance) for n, stance in task["stances"].items()}))


if __name__ == "__main__":
    main()
