"""Base odometry on a log of a real robot with round feet, a Go1 that trots round a room, against motion capture.

    git clone https://github.com/mrsp/serow SEROW
    python benchmarks/round_feet_log.py SEROW

Defaults; nothing is set for this robot but which frames are its feet and their radius. The log has no velocities of
joints, which are differences over two samples here; its foot sensors are not calibrated, so that feet touch by the
threshold alone, and beside it by loads as they are. The motion capture has no stamps: places are compared while the robot
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

from contact_id_controller.estimation.base_estimate import LOST
from contact_id_controller.estimation.base_odometry import BaseOdometry
from contact_id_controller.estimation.contact_detector import BearingFeet, ContactDetector
from contact_id_controller.estimation.pipeline_settings import PipelineSettings
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


def estimate(robot: RobotModel, rows: np.ndarray, by_load: bool):
    """Times (n,), positions (n, 3), rotations (n, 3, 3), whether each was ready (n,), and how often it was lost."""
    t, loads, accel, gyro, q = np.split(rows, [1, 5, 8, 11], axis=1)
    t, q = t[:, 0] - t[0, 0], q[:, [JOINTS.index(name) for name in robot.joint_names]]
    v = np.zeros_like(q)
    v[2:] = (q[2:] - q[:-2]) / (t[2:] - t[:-2])[:, None]
    odometry, contact, bearing = (
        BaseOdometry(robot, FEET, RADIUS_M),
        ContactDetector(4),
        BearingFeet(4),
    )
    contact.on_n = PipelineSettings().contact_on_share * robot.weight
    contact.off_n = PipelineSettings().contact_off_share * robot.weight
    places, rotations, ready, lost, found = [], [], [], 0, odometry.estimate
    for k, dt in enumerate(np.diff(t, prepend=t[0] - np.median(np.diff(t)))):
        contact.take_forces(loads[k], t[k])
        touch = contact.at(t[k]) & (bearing.among(loads[k]) | (not by_load))
        was = found.state
        found = odometry.step(dt, gyro[k], accel[k], q[k], v[k], touch)
        lost += found.state == LOST and was != LOST
        places.append(found.position.copy())
        rotations.append(found.rotation.copy())
        ready.append(found.ready)
    return t, np.array(places), np.array(rotations), np.array(ready), lost


def yaws(rotations: np.ndarray) -> np.ndarray:
    """Continuous headings (n,), rad, of rotations (n, 3, 3)."""
    return np.unwrap(np.arctan2(rotations[:, 1, 0], rotations[:, 0, 0]))


def main() -> None:
    """One row by all feet that touch, and one by those that carry most."""
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
    for by_load in (False, True):
        t, places, rotations, ready, lost = estimate(robot, rows, by_load)
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
            f"| {'that carry most' if by_load else 'that touch'} | {path:.1f} | "
            f"{100 * np.linalg.norm(error[:2]) / path:.1f} | {1e3 * height:.0f} | {np.degrees(turned):.1f} | {lost} |"
        )


if __name__ == "__main__":
    main()
