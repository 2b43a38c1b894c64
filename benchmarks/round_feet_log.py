"""Base odometry on a log of a real robot with round feet, a Go1 that trots round a room, against motion capture.

    git clone https://github.com/mrsp/serow SEROW
    python benchmarks/round_feet_log.py SEROW

Defaults; nothing is set for this robot but which frames are its feet and their radius. The log has no velocities of
joints, which are differences over two samples here; its foot sensors are not calibrated. The motion capture has no stamps: places are compared while the robot
stands before it walks and lies after it (place and yaw aligned at the start), height before it lies down. The first .9 s,
in which it still settles, are left out. Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_id_controller.diagnosis.odometry_run import Run, Samples, by_heights, by_loads, run
from contact_id_controller.estimation.base_odometry import BaseOdometry
from contact_id_controller.robot import RobotModel

LOG = "b2e0d0b:evaluation/unit_tests/data/go1.csv"
URDF = "b2e0d0b:urdf/go1.urdf"
TRUTH = "9201120:test/data/go1_odom.csv"
LEGS = ("FR", "FL", "RR", "RL")
"""Order of the legs in the log."""
FEET, RADIUS_M = [f"{leg}_foot" for leg in LEGS], 0.02
JOINTS = [f"{leg}_{joint}_joint" for leg in LEGS for joint in ("hip", "thigh", "calf")]
SETTLED_S, LIES_S = 0.9, (18.9, 19.7)
"""Where the log begins to count, and while the robot stands for the last time, s from there."""
STANDS_FRAMES, LIES_FRAMES, LAST_FRAMES = slice(180, 215), slice(1280, 1330), slice(-50, None)
"""Of the motion capture: while it stands, before it lies down, and while it lies."""


def shown(repository: Path, name: str) -> bytes:
    """A file of one commit."""
    return subprocess.run(
        ["git", "-C", str(repository), "show", name], check=True, capture_output=True
    ).stdout


def estimate(robot: RobotModel, rows: np.ndarray, by_load: bool) -> Run:
    """What the odometry makes of it, by the feet's sensors or by which feet are lowest."""
    t, loads, accel, gyro, q = np.split(rows, [1, 5, 8, 11], axis=1)
    t, q = t[:, 0] - t[0, 0], q[:, [JOINTS.index(name) for name in robot.joint_names]]
    v = np.zeros_like(q)
    v[2:] = (q[2:] - q[:-2]) / (t[2:] - t[:-2])[:, None]
    samples = Samples(t, q, v, gyro, accel, float(np.median(np.diff(t))))
    odometry = BaseOdometry(robot, FEET, RADIUS_M)
    steps = (
        by_loads(odometry, samples, loads, robot.weight)
        if by_load
        else by_heights(odometry, samples)
    )
    return run(steps, t, len(FEET))


def yaws(rotations: np.ndarray) -> np.ndarray:
    """Continuous headings (n,), rad, of rotations (n, 3, 3)."""
    return np.unwrap(np.arctan2(rotations[:, 1, 0], rotations[:, 0, 0]))


def main() -> None:
    """One row by the feet's sensors, and one without them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("serow", type=Path, help="copy of the repository")
    copy = parser.parse_args().serow
    with tempfile.NamedTemporaryFile(suffix=".urdf") as file:
        file.write(shown(copy, URDF))
        file.flush()
        robot = RobotModel.from_urdf(file.name, True, JOINTS)
    rows, truth = (
        np.genfromtxt(io.BytesIO(shown(copy, name)), delimiter=",", skip_header=1)
        for name in (LOG, TRUTH)
    )
    rows = rows[rows[:, 0] - rows[0, 0] >= SETTLED_S]
    true = truth[:, 1:4]
    true_yaw = yaws(
        np.array([pin.Quaternion(*q).toRotationMatrix() for q in truth[:, [7, 4, 5, 6]]])
    )
    path = np.linalg.norm(np.diff(true[:, :2], axis=0), axis=1).sum()
    print(
        "| feet | path, m | drift, % | height before it lies down, mm | yaw, degrees | lost |\n|"
        + "---|" * 6
    )
    for by_load in (True, False):
        found = estimate(robot, rows, by_load)
        t, places, rotations, ready = found.time, found.position, found.rotation, found.ready
        first, last = int(np.argmax(ready)), t > t[-1] - 0.5
        yaw = yaws(rotations)
        axes = pin.rpy.rpyToMatrix(0.0, 0.0, yaw[first] - true_yaw[STANDS_FRAMES].mean())
        start = true[STANDS_FRAMES].mean(axis=0)
        walked = axes @ (true[LAST_FRAMES].mean(axis=0) - start)
        error = places[last].mean(axis=0) - places[first] - walked
        late = (t > LIES_S[0]) & (t < LIES_S[1])
        height = (
            places[late, 2].mean() - places[first, 2] - (true[LIES_FRAMES, 2].mean() - start[2])
        )
        turned = (yaw[-1] - yaw[first]) - (true_yaw[-1] - true_yaw[STANDS_FRAMES].mean())
        print(
            f"| {'that touch, the lowest of them' if by_load else 'the lowest'} | {path:.1f} | "
            f"{100 * np.linalg.norm(error[:2]) / path:.1f} | {1e3 * height:.0f} | {np.degrees(turned):.1f} | {len(found.lost)} |"
        )


if __name__ == "__main__":
    main()
