"""Wrenches of a walking iCub's feet from its IMU and encoders, judged by its force/torque sensors.

    git clone https://github.com/ami-iit/kindyn-vio KINDYN && git -C KINDYN checkout b5a04bf
    pip install h5py
    python benchmarks/foot_wrenches.py KINDYN

The log has no efforts. While one foot carries nothing, the whole wrench of the other one follows from IMU, encoders and
masses. With the sensor of one foot the wrench of the other follows at all times, and is judged by the sensor that is
left out. All by ``DynamicsEstimator``; accelerations are derivatives without delay, below 5 Hz. The wrenches
of the log are taken to be in the soles' axes: in those of the feet its vertical forces would pull.
Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pinocchio as pin
from real_logs import IMU, KINDYN, SOLES, read
from scipy.signal import butter, sosfiltfilt

from contact_id_controller.estimation.dynamics_estimator import DynamicsEstimator
from contact_id_controller.estimation.sensors import (
    Accelerometer,
    AngularAcceleration,
    Contact,
    ContactWrench,
    JointAcceleration,
)

CUTOFF_HZ, EDGE = 5.0, 50
AIR, STANDS = 0.02, 0.5
"""Shares of the weight: below the first a foot is in the air, above the second the other one stands."""
NOISE = {"imu": 0.05, "turning": 0.5, "joints": 1.0, "wrench": [1.0, 1.0, 1.0, 0.1, 0.1, 0.1]}
PARTS = ("fx", "fy", "fz", "nx", "ny", "nz")


def below(values: np.ndarray, period: float) -> np.ndarray:
    """Channels (n, k) below the cut-off, without delay."""
    sections = butter(4, 2.0 * CUTOFF_HZ * period, output="sos")
    return sosfiltfilt(sections, values, axis=0)


def estimator(robot, feet, measured):
    """An estimator with unknown wrenches at feet, of which some are measured."""
    sensors = [
        Accelerometer(IMU, NOISE["imu"], "imu"),
        AngularAcceleration(IMU, NOISE["turning"], "turning"),
        JointAcceleration(NOISE["joints"], name="joints"),
        *(ContactWrench(foot, NOISE["wrench"], name=f"wrench {foot}") for foot in measured),
    ]
    return DynamicsEstimator(robot, sensors, {foot: Contact(foot, "surface") for foot in feet})


def wrenches(log, channels, rows, feet, known):
    """Wrenches (m, 6) of the first of ``feet`` at rows; known: foot -> (n, 6)."""
    robot, found = log.robot, []
    judge = estimator(robot, feet, known)
    q = robot.neutral()
    v = np.zeros(robot.nv)
    change = np.zeros(len(judge.joint_names))  # of joints that the log lacks: they are held
    places = [judge.joint_names.index(name) for name in robot.joint_names]
    turn = np.array(robot.model.frames[robot.frame_id(IMU)].placement.rotation)
    for k in rows:
        robot.put_joints(q, channels["q"][k])
        v[robot.actuated] = channels["v"][k]
        change[places] = channels["joints"][k]
        readings = {"imu": channels["imu"][k], "turning": channels["turning"][k], "joints": change}
        readings |= {f"wrench {foot}": values[k] for foot, values in known.items()}
        result = judge.estimate(q, v, turn @ channels["gyro"][k], readings)
        found.append(result.contact_wrenches[feet[0]].copy())
    return np.array(found)


def mounting(log, channels):
    """Smallest turn (3, 3) of the IMU after which it feels what stands on level soles in the first second."""
    robot, data = log.robot, log.robot.model.createData()
    q, up = robot.neutral(), np.zeros(3)
    rows = slice(EDGE, EDGE + round(1.0 / float(np.median(np.diff(log.t)))))
    for joints in channels["q"][rows]:
        robot.put_joints(q, joints)
        pin.framesForwardKinematics(robot.model, data, q)
        imu = data.oMf[robot.frame_id(IMU)].rotation
        for sole in SOLES:
            up += imu.T @ data.oMf[robot.frame_id(sole)].rotation[:, 2]
    felt = channels["imu"][rows].mean(axis=0)
    turn = pin.Quaternion.FromTwoVectors(felt, up)
    axis = pin.log3(turn.toRotationMatrix())
    print(f"IMU turned by {np.degrees(axis).round(2)} degrees by its first second")
    return turn.toRotationMatrix()


def report(title, estimated, measured, weight):
    """One row: rms error and bias of each part, and of the force as a share of the weight."""
    error = estimated - measured
    rms, bias = np.sqrt(np.mean(error**2, axis=0)), error.mean(axis=0)
    force = np.sqrt(np.mean(np.sum(error[:, :3] ** 2, axis=1)))
    spread = np.sqrt(np.mean(np.sum((error - bias)[:, :3] ** 2, axis=1)))
    print(f"| {title} | {len(error)} | " + " | ".join(f"{a:.2g} ({b:+.2g})" for a, b in zip(rms, bias))
          + f" | {100 * force / weight:.1f} | {100 * spread / weight:.1f} |")  # fmt: skip


def main() -> None:
    """One table."""
    import h5py

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("copy", type=Path, metavar="KINDYN")
    parser.add_argument("--level", action="store_true", help="turn the IMU by its first second")
    given = parser.parse_args()
    copy = given.copy
    calibrated = given.level
    log = read(*(copy / file for file in KINDYN))
    with h5py.File(copy / KINDYN[0]) as file:
        logged = [np.asarray(file[name], dtype=float).T for name in ("lfWrench", "rfWrench")]
    period = float(np.median(np.diff(log.t)))
    channels = {
        "q": below(log.q, period), "v": below(log.v, period), "gyro": below(log.gyro, period),
        "imu": below(log.accel, period),
    }  # fmt: skip
    if calibrated:
        turn = mounting(log, channels)
        channels["gyro"], channels["imu"] = channels["gyro"] @ turn.T, channels["imu"] @ turn.T
    channels["turning"] = np.gradient(channels["gyro"], period, axis=0)
    channels["joints"] = np.gradient(channels["v"], period, axis=0)
    wrench = [below(each, period) for each in logged]
    weight = log.robot.weight
    loads = np.column_stack([each[:, 2] for each in wrench])
    total = (wrench[0] + wrench[1])[EDGE:-EDGE, :3]
    print(f"weight {weight:.1f} N; mean force of both sensors {total.mean(axis=0).round(1)} N")
    inner = np.zeros(len(log.t), bool)
    inner[EDGE:-EDGE] = True
    alone = [
        np.flatnonzero(
            inner & (np.abs(loads[:, 1 - side]) < AIR * weight) & (loads[:, side] > STANDS * weight)
        )
        for side in (0, 1)
    ]
    print(
        "| estimate | rows | "
        + " | ".join(PARTS)
        + " | force, % of the weight | without bias |\n|"
        + "---|" * 10
    )
    for side in (0, 1):
        found = wrenches(log, channels, alone[side], (SOLES[side],), {})
        report(f"{SOLES[side]} alone", found, wrench[side][alone[side]], weight)
    both = np.flatnonzero(inner)
    for side in (0, 1):
        other = 1 - side
        feet, known = (SOLES[side], SOLES[other]), {SOLES[other]: wrench[other]}
        found = wrenches(log, channels, both, feet, known)
        print(
            f"mean force of both by IMU and encoders {(found + wrench[other][both])[:, :3].mean(axis=0).round(1)} N"
        )
        report(f"{SOLES[side]} left out", found, wrench[side][both], weight)


if __name__ == "__main__":
    main()
