"""The simulated robot that the settings describe."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.simulation.mujoco_model import GroundSettings
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.simulation.sensors import SimulatedSensors, preset


def build_robot(settings: SimulatedRobotSettings) -> MujocoRobot | DisturbedRobot:
    """The simulated robot in its initial posture, on the ground, and what happens to it.

    Raises:
        ContactIdError: the description is missing, or does not fit joints, frames or values.
    """
    simulated = MujocoRobot(
        settings.urdf,
        settings.feet,
        terrain=settings.terrain,
        joints=list(settings.joints) or None,
        locked=settings.locked,
        floating_base=settings.floating_base,
        friction=settings.friction_coefficient,
        period_s=settings.period_s,
        substeps=settings.substeps,
        ground=GroundSettings(settings.ground_time_constant_s, impedance=settings.ground_impedance),
        imu_frame=settings.imu_frame if settings.floating_base or settings.imu_frame else None,
        wrench_sensors=settings.force_torque_sensors,
    )
    place(simulated, settings)
    delay_periods = round(settings.torque_delay_s / settings.period_s)
    pushes = [Push(start_s, long_s, np.array(row)) for start_s, long_s, row in settings.pushes]
    if not (delay_periods or pushes):
        return simulated
    return DisturbedRobot(simulated, delay_periods, pushes, settings.push_body)


def build_sensors(simulated: MujocoRobot, settings: SimulatedRobotSettings) -> SimulatedSensors:
    """The sensors of this robot."""
    noise = dataclasses.replace(preset(settings.sensors), **settings.sensor_changes)
    return SimulatedSensors(simulated, noise, settings.sensor_seed)


def place(simulated: MujocoRobot, settings: SimulatedRobotSettings) -> None:
    """Put the robot at rest into its initial posture, on the ground."""
    simulated.reset(_initial_configuration(simulated, settings))


def _initial_configuration(simulated: MujocoRobot, settings: SimulatedRobotSettings) -> np.ndarray:
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
