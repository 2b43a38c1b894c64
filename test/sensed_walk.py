"""A straight walk in MuJoCo with what its IMU felt, for estimators to be judged by."""

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller import RobotModel
from contact_id_controller.runs import one_process
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.simulation.sensors import NoisySensors

TOUCHES = 0.06
"""Share of the weight from which on a foot counts as standing."""


class SensedWalk(NamedTuple):
    """Row k: the state at the end of period k, and what was felt over that period; row 0: at rest.

    q (n, nq), v (n, nv): Pinocchio's.  forces (n, feet, 3) N, world.  torques (n, na) N m.
    gyro, accel (n, 3): of an ideal IMU at the base.  stands (n, feet) bool.
    """

    robot: RobotModel
    feet: tuple
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
    def rotations(self):
        """(n, 3, 3) of the base in the world."""
        return np.array([pin.Quaternion(q[3:7]).matrix() for q in self.q])

    @property
    def distance_m(self):
        return float(np.linalg.norm(np.diff(self.q[:, :2], axis=0), axis=1).sum())

    def cut(self, end):
        """The first rows only."""
        return self._replace(**{name: getattr(self, name)[:end] for name in ARRAYS})


ARRAYS = ("q", "v", "forces", "torques", "gyro", "accel", "stands")


def sensed_walk(name, seconds, mu=0.6, **planner):
    """The controller of this package walks straight ahead, with the simulator's state."""
    settings = one_process.controller_settings(name, friction_coefficient=[mu])
    world = MujocoRobot(
        settings.urdf,
        one_process.feet_of(settings),
        joints=settings.joints,
        friction=mu,
        period_s=settings.period_s,
        imu_frame="",
    )
    planner = {"waypoints_m": [100.0, 0.0], **planner}
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


def readings(walk, noise, seed=0, still_s=0.3):
    """(row, readings) of the walk after standing still at its start for a while."""
    robot, dt = walk.robot, walk.period_s
    sensors = NoisySensors(noise, robot.na, dt, seed=seed)
    still = round(still_s / dt)
    for k in range(-still, len(walk.q)):
        row = max(k, 0)
        yield (
            k,
            sensors.read(
                k * dt,
                walk.gyro[row],
                walk.accel[row],
                walk.q[row, robot.q_index],
                walk.v[row, robot.actuated],
                walk.torques[row],
            ),
        )
