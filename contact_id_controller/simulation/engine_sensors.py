"""Ideal sensors inside MuJoCo: an IMU and force/torque sensors, averaged over a control period."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from contact_id_controller.simulation.mujoco_model import IMU, WRENCH, foot_name


class EngineSensors:
    """Sums of MuJoCo's sensor readings over the steps of a period.

    Args:
        model, data: of the engine.
        world: the robot they belong to.
    """

    def __init__(self, model: Any, data: Any, world: Any) -> None:
        self._model, self._data, self._world = model, data, world
        self._sum = np.zeros(model.nsensordata)
        self._wrenches: np.ndarray | None = None
        self._imu = model.site(IMU).id if world.has_imu else -1
        self._felt = slice(*_place(model, IMU)) if world.has_imu else None
        self._joints = []  # row of the sensor, its six numbers
        # Row, contact, its body, axes of its frame in the body (3, 3), its centre there.
        self._feet = []
        for row, name in enumerate(world.wrench_sensors):
            if name in world.foot_frames:
                frame = world.robot.model.frames[world.robot.frame_id(name)].placement
                for number, foot in enumerate(world.feet):
                    if foot.frame == name:
                        arm = np.array(foot.center, dtype=float)
                        body = model.geom_bodyid[model.geom(foot_name(number)).id]
                        self._feet.append((row, number, body, np.array(frame.rotation), arm))
            else:
                first, _ = _place(model, f"{WRENCH}{name}_force")
                self._joints.append((row, slice(first, first + 6)))

    def begin(self) -> None:
        """Reset the sums at the beginning of a period."""
        self._sum[:] = 0.0
        self._wrenches = None

    def add(self) -> None:
        """Add the readings of the step that MuJoCo has just taken."""
        if len(self._sum):
            self._sum += self._data.sensordata

    def rest(self) -> None:
        """Set the readings before the first period: gravity alone."""
        self.begin()
        if self._world.has_imu:
            axes = self._data.site_xmat[self._imu].reshape(3, 3)
            self._sum[self._felt] = -self._world.substeps * (axes.T @ self._model.opt.gravity)

    def imu(self) -> tuple[np.ndarray, np.ndarray]:
        """Angular velocity (3,) rad/s now, proper acceleration (3,) m/s2 over the period."""
        model, data, motion = self._model, self._data, np.zeros(6)
        # After a step MuJoCo's velocities of bodies are still those before it.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_SITE, self._imu, motion, 1)
        return motion[:3].copy(), self._sum[self._felt] / self._world.substeps

    def wrenches(self, contact_forces: np.ndarray) -> np.ndarray:
        """Wrenches (n, 6) of all force/torque sensors; contact_forces (n_contacts, 3) N, world."""
        if self._wrenches is not None:
            return self._wrenches
        found = self._wrenches = np.zeros((len(self._world.wrench_sensors), 6))
        for row, place in self._joints:
            found[row] = self._sum[place] / self._world.substeps
        for row, foot, body, axes, arm in self._feet:
            turned = (self._data.xmat[body].reshape(3, 3) @ axes).T
            force = turned @ contact_forces[foot]
            # It acts under the centre, as on level ground.
            point = arm - turned[:, 2] * self._world.feet[foot].radius_m
            found[row, :3] += force
            found[row, 3:] += np.cross(point, force)
        return found


def _place(model: Any, sensor: str) -> tuple[int, int]:
    """Begin and end index of a sensor's numbers."""
    found = model.sensor(sensor).id
    first = int(model.sensor_adr[found])
    return first, first + int(model.sensor_dim[found])
