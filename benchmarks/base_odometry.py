"""Base odometry on walks in MuJoCo: drift, velocity, time of a step.

    python benchmarks/base_odometry.py --seconds 60 --seeds 5

Contacts are the simulator's forces above 6 % of the weight, put off by --late milliseconds; everything
else is what the sensors of a preset say. Drift is the error of the position at the end, of the
distance; velocity and tilt are rms over the walk, yaw the error at the end.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from contact_id_controller.estimation.base_odometry import BaseOdometry, BaseOdometrySettings
from experiments.benchmark.sensed_walk import SensedWalk, readings, sensed_walk


def judge(walk: SensedWalk, noise: str, seed: int, late: int, settings: BaseOdometrySettings):
    """Position error (3,) m, velocity rms m/s, tilt rms and yaw at the end rad, time of a step us."""
    odometry = BaseOdometry(walk.robot, walk.feet, walk.radius_m, settings)
    rotations, stands = walk.rotations, np.roll(walk.stands, late, axis=0)
    stands[: max(late, 0)] = True
    places, errors, took_s = [], [], []
    for k, reading in readings(walk, noise, seed):
        arguments = (
            walk.period_s, reading.angular_velocity, reading.linear_acceleration,
            reading.position, reading.velocity, stands[max(k, 0)],
        )  # fmt: skip
        start = time.perf_counter()
        estimate = odometry.step(*arguments)
        took_s.append(time.perf_counter() - start)
        if k >= 0:
            turn = estimate.rotation @ rotations[k].T
            tilt = turn[:, 2] - [0.0, 0.0, 1.0]
            speed = rotations[k] @ (estimate.velocity - walk.v[k, :3])
            places.append(estimate.position.copy())
            errors.append([speed @ speed, tilt @ tilt, np.arctan2(turn[1, 0], turn[0, 0])])
    if not estimate.ready:
        print("  ", estimate.state, *estimate.reasons)
    walked, true = places[-1] - places[0], walk.q[-1, :3] - walk.q[0, :3]
    squares = np.mean(errors, axis=0)
    return (
        walked - true, np.sqrt(squares[0]), np.sqrt(squares[1]), errors[-1][2],
        1e6 * np.median(took_s),
    )  # fmt: skip


def main() -> None:
    """Print one line for each robot, preset and kind of filter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="+", default=["solo12", "quadruped"])
    parser.add_argument(
        "--presets", nargs="+", default=["perfect", "good", "motor_currents", "cheap"]
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--friction", type=float, default=0.6)
    parser.add_argument("--late", type=int, default=0, help="ms by which contacts are late")
    arguments = parser.parse_args()
    for name in arguments.robots:
        walk = sensed_walk(name, arguments.seconds, arguments.friction)
        print(f"{name}: {walk.distance_m:.2f} m in {arguments.seconds:g} s", flush=True)
        cases = [(preset, True) for preset in arguments.presets] + [("good", False)]
        for preset, rolling in cases:
            settings = BaseOdometrySettings(compensate_rolling=rolling)
            late = round(1e-3 * arguments.late / walk.period_s)
            found = [judge(walk, preset, seed, late, settings) for seed in range(arguments.seeds)]
            drift = np.array([np.linalg.norm(error) for error, *_ in found]) / walk.distance_m
            speed, tilt, yaw, took = (np.array([row[k] for row in found]) for k in range(1, 5))
            print(
                f"  {preset:14s} {'rolling' if rolling else 'rolling ignored':16s}"
                f"drift {100 * np.median(drift):.2f} % (worst {100 * drift.max():.2f}), "
                f"velocity {100 * np.max(speed):.2f} cm/s, tilt {np.degrees(tilt.max()):.2f} deg, "
                f"yaw {np.degrees(np.abs(yaw).max()):.1f} deg, {np.median(took):.0f} us a step",
                flush=True,
            )


if __name__ == "__main__":
    main()
