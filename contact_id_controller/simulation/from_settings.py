"""Simulated robots from settings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.simulated_robot import NUMBERS_OF_A_PUSH, SimulatedRobotSettings
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.simulation.sensor_noise import SimulatedSensors, preset

PUSH_DURATION_S = 0.1
"""How long each push lasts: a shove of a hand."""


def build_robot(settings: SimulatedRobotSettings) -> MujocoRobot | DisturbedRobot:
    """Build the simulated robot of the settings, in its initial posture on the ground, with its disturbances.

    Raises:
        ContactIdError: the description is missing, or does not fit joints, frames or values.
    """
    simulated = MujocoRobot(
        settings.urdf,
        settings.feet,
        terrain=settings.terrain,
        joints=list(settings.joints) or None,
        locked=settings.locked,
        motors=settings.motor_rows,
        floating_base=settings.floating_base,
        friction=settings.friction_coefficient,
        period_s=settings.period_s,
        imu_frame=settings.imu_frame if settings.floating_base or settings.imu_frame else None,
        wrench_sensors=[each.name for each in settings.mounted if each.of_engine],
    )
    place(simulated, settings)
    rows = np.reshape(settings.pushes, (-1, NUMBERS_OF_A_PUSH))
    pushes = [Push(row[0], PUSH_DURATION_S, row[1:]) for row in rows]
    if not pushes:
        return simulated
    return DisturbedRobot(simulated, 0, pushes)


def build_sensors(simulated: Any, settings: SimulatedRobotSettings) -> SimulatedSensors:
    """Sensors of the simulated robot with the settings' noise."""
    return SimulatedSensors(simulated, preset(settings.sensors), mounted=settings.mounted)


def place(simulated: Any, settings: SimulatedRobotSettings) -> None:
    """Reset the robot to its initial posture, at rest on the ground."""
    simulated.reset(_initial_configuration(simulated, settings))


def _initial_configuration(simulated: Any, settings: SimulatedRobotSettings) -> np.ndarray:
    """Initial configuration (nq,): joints, place and heading of the settings, feet on the ground."""
    robot = simulated.robot
    angles = settings.initial_joint_positions or (0.0,) * robot.na
    if len(angles) != robot.na:
        raise ConfigurationError(
            f"parameter 'initial_joint_positions' has {len(angles)} values, must have "
            f"{robot.na}, one per joint"
        )
    q = robot.neutral()
    robot.put_joints(q, angles)
    if settings.floating_base:
        x, y, heading = settings.initial_base
        q[:2], q[5:7] = (x, y), (math.sin(0.5 * heading), math.cos(0.5 * heading))
    if not (settings.floating_base and simulated.feet):
        return q
    q = simulated.place_on_ground(q)
    return simulated.stand_on_ground(q) if settings.ground_file else q
