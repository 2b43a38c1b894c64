"""A straight walk in MuJoCo with what its IMU felt, for estimators to be judged by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.robot import RobotModel
from contact_id_controller.runs import one_process
from contact_id_controller.simulation.sensor_noise import NoisySensors, Readings, SensorNoise

TOUCHES = 0.06
"""Share of the weight from which on a foot counts as standing."""
FAR_M = 1000.0


class SensedWalk(NamedTuple):
    """Row k: the state at the end of period k, and what was felt over that period; row 0: at rest.

    q (n, nq), v (n, nv): Pinocchio's.  forces (n, feet, 3) N, world.  torques (n, na) N m.
    gyro, accel (n, 3): of an ideal IMU at the base, rad/s, m/s2.  stands (n, feet) bool.
    """

    robot: RobotModel
    feet: tuple[str, ...]
    radius_m: float
    period_s: float
    q: np.ndarray
    v: np.ndarray
    forces: np.ndarray
    torques: np.ndarray
    gyro: np.ndarray
    accel: np.ndarray
    stands: np.ndarray

    @property
    def rotations(self) -> np.ndarray:
        """(n, 3, 3) of the base in the world."""
        return np.array([pin.Quaternion(q[3:7]).matrix() for q in self.q])

    @property
    def distance_m(self) -> float:
        """Length of the base's path over ground."""
        return float(np.linalg.norm(np.diff(self.q[:, :2], axis=0), axis=1).sum())

    def cut(self, end: int) -> SensedWalk:
        """The first rows only."""
        return self._replace(**{name: getattr(self, name)[:end] for name in _ARRAYS})


_ARRAYS = ("q", "v", "forces", "torques", "gyro", "accel", "stands")


def sensed_walk(name: str, seconds: float, mu: float = 0.6, **planner: Any) -> SensedWalk:
    """The controller walks a robot of the package straight ahead, with the simulator's state.

    Args:
        name: of the robot's configuration.
        mu: friction, which the controller knows.
        planner: changes of the gait planner's settings.
    """
    settings = one_process.controller_settings(name, friction_coefficient=[mu])
    world = one_process.mujoco_robot(settings, mu, imu_frame="")
    planner = {"waypoints_m": [FAR_M, 0.0], **planner}
    walk = one_process.InProcessRun(name, settings, world, planner=planner)
    none = np.zeros((len(settings.contact_frames), 3))
    rows = [(walk.state.q, walk.state.v, none, np.zeros(walk.robot.na), *world.imu())]
    for _ in range(round(seconds / settings.period_s)):
        period = walk.advance()
        torques = np.array(period.result.torques)
        rows.append((period.after.q, period.after.v, period.forces, torques, *world.imu()))
    q, v, forces, torques, gyro, accel = (np.array(column) for column in zip(*rows))
    stands = forces[:, :, 2] > TOUCHES * walk.robot.weight
    stands[0] = True
    return SensedWalk(
        walk.robot,
        tuple(settings.contact_frames),
        settings.contact_radii_m[0],
        settings.period_s,
        q,
        v,
        forces,
        torques,
        gyro,
        accel,
        stands,
    )


def readings(
    walk: SensedWalk, noise: SensorNoise | str, seed: int = 0, still_s: float = 0.3
) -> Iterator[tuple[int, Readings]]:
    """(row, readings) of the walk, after standing still at its start: rows below 0."""
    robot, period_s = walk.robot, walk.period_s
    sensors = NoisySensors(noise, robot.na, period_s, seed=seed)
    for k in range(-round(still_s / period_s), len(walk.q)):
        row = max(k, 0)
        yield (
            k,
            sensors.read(
                k * period_s,
                walk.gyro[row],
                walk.accel[row],
                robot.joints_of(walk.q[row]),
                walk.v[row, robot.actuated],
                walk.torques[row],
            ),
        )
