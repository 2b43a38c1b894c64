"""Runs a controller in one process on the state that the estimator makes of simulated sensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_id_controller.control.controller import Controller
from contact_id_controller.estimation.pipeline import EstimationPipeline, PipelineEstimate
from contact_id_controller.exceptions import SimulationError
from contact_id_controller.models import row_of
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.simulation.sensor_noise import SensorNoise, SimulatedSensors, preset
from contact_id_controller.state import RobotState

FILTER_S = 0.005
"""Time constant of the filter of noisy joint velocities of a robot on soles, whose torques then change a sixth as fast;
on round feet a tenth less, and slips are detected later (.0088 rad of error on ice, not .0065)."""
QUIET_RAD_S = 0.02
"""Noise of joint velocities with which round feet stand as planned; at .05 rad/s the contact model takes one pair of
diagonal feet off the ground, then the other, every 10 ms."""


def controller_changes(given: Mapping[str, Any], sensors: str) -> dict[str, Any]:
    """Controller parameters that change with a state estimated from these sensors: name -> value.

    Models that take measured forces get contact from the estimator and the schedule. On round feet noise of velocities
    is filtered to ``QUIET_RAD_S``, by which the observer (``control/joint_velocity``) reduces white noise to
    1 / sqrt(2 tau / T + 1).
    """
    changes: dict[str, Any] = {}
    if row_of(given.get("friction", "coulomb"), given.get("solver", "qp")).takes("forces"):
        changes["contact_sources"] = ["state", "schedule"]
    noise, filter_s = preset(sensors).velocity_noise_rad_s, FILTER_S
    if not given.get("soles"):
        period_s = given.get("period_s", ControllerSettings.period_s)
        filter_s = 0.5 * period_s * max((noise / QUIET_RAD_S) ** 2 - 1.0, 0.0)
    if noise and filter_s:
        changes["joint_velocity_filter_s"] = given.get("joint_velocity_filter_s", filter_s)
    return changes


def estimator_changes(settings: ControllerSettings) -> dict[str, Any]:
    """Estimator parameters that change with a controller's settings: name -> value.

    Models that take measured forces feed them back in every period: the low-pass is off, as its delay costs more
    than noise. The ground of a file need not be level.
    """
    changes: dict[str, Any] = {}
    if row_of(settings.friction, settings.solver).takes("forces"):
        changes["cutoff_hz"] = math.inf
    if settings.ground_file:
        changes["ground_height_noise_m"] = 0.0
    return changes


class EstimatedState:
    """Estimates the state that a controller gets from the sensors of a simulated robot.

    Args:
        world: simulated robot, with the sensors that the pipeline reads: `MujocoRobot`, or one with its interface.
        pipeline: estimators of the same robot.
        noise: of the sensors, or the name of a preset.  seed: of the noise.
        true_forces: whether the controller gets the simulator's contact forces in place of the estimated ones.
        at: (7,) pose of the base, m and quaternion xyzw, at which odometry begins; None: above its origin.

    Attributes:
        estimate: of the last period.

    Raises:
        ConfigurationError: the robot lacks a sensor.
    """

    def __init__(
        self,
        world: Any,
        pipeline: EstimationPipeline,
        noise: SensorNoise | str = "perfect",
        seed: int = 0,
        true_forces: bool = False,
        at: np.ndarray | None = None,
    ) -> None:
        self._world, self._true_forces = world, true_forces
        self.pipeline, self.estimate = pipeline, pipeline.estimate
        self._sensors = SimulatedSensors(world, noise, seed, pipeline.settings.mounted)
        self._period_s, self._at = world.period_s, at

    def begin(self, controller: Controller, state: RobotState) -> RobotState:
        """Step the estimators with the robot at rest, until time 0; return the estimated state.

        Raises:
            SimulationError: the estimate is not ready then.
        """
        if self._at is None:
            self.pipeline.start()
        else:
            x, y, z, w = self._at[3:7]
            yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
            self.pipeline.start(self._at[:3], yaw)
        waits = self.pipeline.settings.odometry.still_time_s + 10.0 * self._period_s
        for periods in range(-round(waits / self._period_s), 1):
            estimate = self._step(controller, state, periods * self._period_s)
        if not self.estimate.ready:
            raise SimulationError(f"no estimate at the start: {'; '.join(self.estimate.faults)}")
        return estimate

    def after(self, controller: Controller, state: RobotState) -> RobotState:
        """Step the estimators with the sensors of ``state``, the end of a period; return the estimated state."""
        return self._step(controller, state, state.time_s)

    def _step(self, controller: Any, state: Any, time_s: float) -> Any:
        """Estimate the state at ``time_s`` from the sensors; pass contact and forces on to the controller."""
        readings = self._sensors.read(state)
        estimate: PipelineEstimate = self.pipeline.step(
            time_s,
            readings.angular_velocity,
            readings.linear_acceleration,
            readings.position,
            readings.velocity,
            readings.effort,
            readings=readings.mounted,
            planned=controller.planned_feet(time_s),
        )
        controller.sources.detector.take_states(estimate.contact.astype(float), time_s)
        if self._true_forces:
            controller.measure(self._world.contact_forces())
        elif estimate.forces_known:
            controller.measure_feet(estimate.world_forces)
        return estimate.state
