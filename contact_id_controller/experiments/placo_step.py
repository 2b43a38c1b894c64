"""Times PlaCo's DynamicsSolver; run by ``contact_id benchmark`` in an environment that has PlaCo.

PlaCo pins an older Pinocchio than this package, so this file stands alone: it reads a task from
standard input (urdf, feet, joints, stances, budget_s) and prints one JSON line, n -> cell.
"""

import json
import sys
import time

import numpy as np


def cell(task, points, q):
    """Median and 99th percentile of PlaCo's whole cycle for one stance."""
    import placo

    robot = placo.RobotWrapper(task["urdf"], placo.Flags.ignore_collisions)
    for name, value in zip(task["joints"], q[7:]):
        robot.set_joint(name, value)
    robot.update_kinematics()
    base = np.eye(4)
    base[:3, 3] = q[:3]
    robot.set_T_world_fbase(base)
    robot.update_kinematics()
    solver = placo.DynamicsSolver(robot)
    solver.dt = 1e-3
    for k, point in enumerate(points):
        foot = task["feet"][k % len(task["feet"])]
        frame = robot.get_T_world_frame(foot)
        local = np.linalg.inv(frame) @ np.array([*point, 1.0])
        del local  # PlaCo's point contacts sit at frame origins: n contacts share the feet's frames
        position = solver.add_position_task(foot, frame[:3, 3])
        contact = solver.add_point_contact(position)
        contact.mu = 0.6
        contact.unilateral = True
    posture = solver.add_joints_task()
    posture.set_joints({name: value for name, value in zip(task["joints"], q[7:])})
    posture.configure("posture", "soft", 1e-3)
    times = []
    end = time.perf_counter() + task["budget_s"]
    for _ in range(20):
        robot.update_kinematics()
        solver.solve(False)
    while time.perf_counter() < end:
        began = time.perf_counter()
        robot.update_kinematics()
        solver.solve(False)
        times.append(time.perf_counter() - began)
    return {"median_s": float(np.median(times)), "p99_s": float(np.percentile(times, 99)),
            "samples": len(times)}


def main():
    task = json.load(sys.stdin)
    print(json.dumps({n: cell(task, *stance) for n, stance in task["stances"].items()}))


if __name__ == "__main__":
    main()
