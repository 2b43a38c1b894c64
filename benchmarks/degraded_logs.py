"""Base odometry on the logs of ``real_logs.py`` as another robot, another rate or worse sensors would have logged them.

    python benchmarks/degraded_logs.py --paper PAPER --kindyn KINDYN --iros IROS    # see real_logs.py

One row a fault, one column a log: drift in % of the path, height at the end in mm, velocity in cm/s and tilt in degrees,
both rms, times it was lost. Defaults; of a fault nothing is told. Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation, Slerp

sys.path.insert(0, str(Path(__file__).parent))
from real_logs import BEGIN_S, RADIUS_M, SOLES, Log, picked, read, robot_of, sources

from contact_id_controller.diagnosis.odometry_run import (
    Samples,
    by_heights,
    by_loads,
    errors,
    run,
)
from contact_id_controller.estimation.base_odometry import (
    BaseOdometry,
    BaseOdometrySettings,
)
from contact_id_controller.robot import RobotModel

NO_LOADS = "no loads"
"""The fault whose feet touch where they are lowest."""


def resampled(log: Log, rate_hz: float) -> Log:
    """Straight lines between the samples, at even times."""
    known = np.concatenate([[True], np.diff(log.t) > 0.0])
    log = picked(log, known)
    t = np.arange(log.t[0], log.t[-1], 1.0 / rate_hz)
    found = {
        name: np.column_stack([np.interp(t, log.t, column) for column in getattr(log, name).T])
        for name in ("q", "v", "gyro", "accel", "force_z", "position")
    }
    rotation = Slerp(log.t, Rotation.from_matrix(log.rotation))(t).as_matrix()
    return dataclasses.replace(log, t=t, rotation=rotation, **found)


def stamps_repeated(log: Log) -> Log:
    """One stamp of fifty is that of the sample before."""
    t, rng = log.t.copy(), np.random.default_rng(0)
    for k in 1 + np.flatnonzero(rng.random(len(t) - 1) < 0.02):
        t[k] = t[k - 1]
    return dataclasses.replace(log, t=t)


def stamps_jump(log: Log, by_s: float, every_s: float = 3.0) -> Log:
    """A single stamp is off by so much, every three seconds."""
    t = log.t.copy()
    hit = np.searchsorted(log.t, np.arange(log.t[0] + 2.0, log.t[-1] - 0.5, every_s))
    t[hit] += by_s
    return dataclasses.replace(log, t=t)


def clock_set(log: Log, by_s: float) -> Log:
    """From the middle on, all stamps are off."""
    t = log.t.copy()
    t[len(t) // 2 :] += by_s
    return dataclasses.replace(log, t=t)


def gaps(log: Log, every_s: float = 4.0) -> Log:
    """.1, .2 and .3 s are missing in turn, every so often."""
    kept = np.ones(len(log.t), dtype=bool)
    for k, at in enumerate(np.arange(log.t[0] + 2.0, log.t[-1] - 1.0, every_s)):
        kept &= ~((log.t > at) & (log.t < at + (0.1, 0.2, 0.3)[k % 3]))
    return picked(log, kept)


def from_the_middle(log: Log) -> Log:
    """Begins where one foot alone carries the robot for the first time after a third of the log."""
    share = log.force_z.min(axis=1) / np.maximum(log.force_z.sum(axis=1), 1e-9)
    late = np.flatnonzero((share < 0.05) & (log.t > log.t[0] + (log.t[-1] - log.t[0]) / 3.0))
    return picked(log, np.arange(late[0] if len(late) else len(log.t) // 3, len(log.t)))


def turned_imu(log: Log) -> Log:
    """Turned by 90 degrees about x, which the description states."""
    R = pin.rpy.rpyToMatrix(np.pi / 2.0, 0.0, 0.0)
    return dataclasses.replace(log, gyro=log.gyro @ R, accel=log.accel @ R)


def without_velocities(log: Log, step_rad: float = 0.0) -> Log:
    """Positions in steps, and velocities that are their differences from one sample to the next."""
    q = np.round(log.q / step_rad) * step_rad if step_rad else log.q
    v, dt = np.zeros_like(q), np.diff(log.t)
    v[1:] = np.diff(q, axis=0) / np.maximum(dt, 1e-3)[:, None]
    return dataclasses.replace(log, q=q, v=v)


def zeros_off(log: Log, by_rad: float = np.radians(1.0), seed: int = 0) -> Log:
    """Each joint's zero is off by one degree, up or down by chance."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], log.q.shape[1])
    return dataclasses.replace(log, q=log.q + by_rad * signs)


def changed(log: Log, **by: Callable[[np.ndarray], np.ndarray]) -> Log:
    """Channels by name, each as a function makes it."""
    return dataclasses.replace(log, **{name: make(getattr(log, name)) for name, make in by.items()})


def held(log: Log, rate_hz: float) -> Log:
    """Every sample again and again, as a log has it that is faster than its sensors."""
    t = np.arange(log.t[0], log.t[-1], 1.0 / rate_hz)
    made = resampled(log, rate_hz)
    last = picked(log, np.searchsorted(log.t, t, side="right") - 1)
    return dataclasses.replace(last, t=t, position=made.position, rotation=made.rotation)


def imu_late(log: Log, samples: int) -> Log:
    """The IMU's samples come so much later than those of the joints, and no stamp tells."""
    late = {name: lambda values: np.roll(values, samples, axis=0) for name in ("gyro", "accel")}
    return picked(changed(log, **late), np.arange(samples, len(log.t)))


def touch_alone(log: Log) -> Log:
    """Loads are contact by a threshold, and tell no more."""
    weight = log.robot.weight
    return changed(log, force_z=lambda f: np.where(f > 0.06 * weight, 0.5 * weight, 0.0))


def off(log: Log, left: float, right: float) -> Log:
    """Loads of the two feet, off by shares of the weight."""
    return changed(log, force_z=lambda f: f + log.robot.weight * np.array([left, right]))


FAULTS: dict[str, Callable[[Log], Log]] = {
    "none": lambda log: log,
    "50 Hz, by straight lines": lambda log: resampled(log, 50.0),
    "200 Hz": lambda log: resampled(log, 200.0),
    "1 kHz": lambda log: resampled(log, 1000.0),
    "200 Hz, samples repeated": lambda log: held(log, 200.0),
    "1 kHz, samples repeated": lambda log: held(log, 1000.0),
    "loads times 10": lambda log: changed(log, force_z=lambda f: 10.0 * f),
    "loads by 10": lambda log: changed(log, force_z=lambda f: 0.1 * f),
    "loads reversed": lambda log: changed(log, force_z=lambda f: -f),
    "loads .2 of the weight too large": lambda log: off(log, 0.2, 0.2),
    "too small": lambda log: off(log, -0.2, -0.2),
    "one .15 too large, one .1 too small": lambda log: off(log, 0.15, -0.1),
    "gain of one foot .7": lambda log: changed(log, force_z=lambda f: f * np.array([0.7, 1.0])),
    "contact by a threshold alone": touch_alone,
    NO_LOADS: lambda log: log,
    "2 % of the stamps repeated": stamps_repeated,
    "a stamp .03 s ahead every 3 s": lambda log: stamps_jump(log, 0.03),
    ".03 s behind": lambda log: stamps_jump(log, -0.03),
    ".3 s ahead": lambda log: stamps_jump(log, 0.3),
    "1 s ahead": lambda log: stamps_jump(log, 1.0),
    "1 s behind": lambda log: stamps_jump(log, -1.0),
    "clock set back by 5 s": lambda log: clock_set(log, -5.0),
    "clock set on by 5 s": lambda log: clock_set(log, 5.0),
    ".1 to .3 s lost every 4 s": gaps,
    "begins in a step": from_the_middle,
    "IMU turned by 90 degrees, stated": turned_imu,
    "gyroscope .02 rad/s off": lambda log: changed(log, gyro=lambda w: w + 0.02 / np.sqrt(3.0)),
    "accelerometer + 2 %": lambda log: changed(log, accel=lambda a: 1.02 * a),
    "accelerometer - 2 %": lambda log: changed(log, accel=lambda a: 0.98 * a),
    "velocities are differences": without_velocities,
    "of positions in steps of .5 mrad": lambda log: without_velocities(log, 5e-4),
    "of 2 mrad": lambda log: without_velocities(log, 2e-3),
    "each zero 1 degree off": zeros_off,
    "other signs": lambda log: zeros_off(log, seed=1),
    "IMU a sample (10 ms) late": lambda log: imu_late(log, 1),
    "two samples": lambda log: imu_late(log, 2),
}


def with_turned_imu(robot: RobotModel, frame: str) -> str:
    """Add a frame of the IMU, turned by 90 degrees about x; its name."""
    model, name = robot.model, "turned_imu"
    at = model.frames[model.getFrameId(frame)]
    turned = pin.SE3(pin.rpy.rpyToMatrix(np.pi / 2.0, 0.0, 0.0), np.zeros(3))
    kind = pin.FrameType.OP_FRAME
    model.addFrame(pin.Frame(name, at.parentJoint, 0, at.placement * turned, kind))
    return name


def judge(log: Log, imu: str, by_load: bool) -> str:
    """One cell of the table."""
    base = BaseOdometry(log.robot, SOLES, RADIUS_M, BaseOdometrySettings(imu_frame=imu), SOLES)
    samples = Samples(log.t, log.q, log.v, log.gyro, log.accel, -BEGIN_S)
    loads = log.force_z, log.robot.weight
    steps = by_loads(base, samples, *loads) if by_load else by_heights(base, samples)
    found = run(steps, log.t, len(SOLES))
    if not found.ready.any():
        return f"never begins: {found.last}"
    off = errors(found, log.position, log.rotation)
    return (
        f"{100 * off.drift_m / off.path_m:.1f}, {1e3 * off.height_m:.0f}, "
        f"{100 * off.velocity_m_s:.1f}, {off.tilt_deg:.1f}, {len(found.lost)}"
    )


def main() -> None:
    """One table for the logs of which a copy is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("paper", "kindyn", "iros"):
        parser.add_argument(f"--{name}", type=Path, help="copy of a repository, see real_logs.py")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    given = parser.parse_args()
    logs = []
    for name, copy, (matlab, urdf), imu in sources(given.paper, given.kindyn, given.iros):
        if copy is not None:
            robot = robot_of(copy / urdf, imu)
            turned = with_turned_imu(robot, imu)
            logs.append((name, read(copy / matlab, robot), imu, turned))
    print(f"| fault | {' | '.join(name for name, *_ in logs)} |\n|" + "---|" * (1 + len(logs)))
    for fault, make in FAULTS.items():
        if given.only in fault:
            cells = [
                judge(make(log), turned if make is turned_imu else imu, fault != NO_LOADS)
                for _, log, imu, turned in logs
            ]
            print(f"| {fault} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
