"""A run in one process whose planner and controller know only what sensors say."""

from __future__ import annotations

from contact_id_controller.control.controller import Controller
from contact_id_controller.estimation.pipeline import EstimationPipeline, PipelineEstimate
from contact_id_controller.exceptions import SimulationError
from contact_id_controller.simulation.sensors import SensorNoise, SimulatedSensors
from contact_id_controller.state import RobotState

CONTROLLER = {"contact_sources": ["measured", "schedule"], "contact_debounce_s": 0.0}
"""What changes in the controller's settings: distances from the ground are not known well enough, and
the estimate has a hysteresis of its own."""


class EstimatedState:
    """What the sensors of a simulated robot say, made into the state that its controller is told.

    Args:
        world: a simulated robot with an IMU.
        pipeline: of the same robot.
        noise, seed: see ``NoisySensors``.

    Attributes:
        estimate: of the last period.
    """

    def __init__(
        self,
        world,
        pipeline: EstimationPipeline,
        noise: SensorNoise | str = "perfect",
        seed: int = 0,
    ):
        self.pipeline, self.estimate = pipeline, pipeline.estimate
        self._sensors = SimulatedSensors(world, noise, seed)
        self._period_s = world.period_s

    def begin(self, controller: Controller, state: RobotState) -> RobotState:
        """The robot is held at its start until the estimate has begun; times of that are negative.

        Raises:
            SimulationError: it does not begin.
        """
        self.pipeline.start()
        waits = self.pipeline.settings.odometry.still_time_s + 10.0 * self._period_s
        for periods in range(-round(waits / self._period_s), 1):
            told = self._step(controller, state, periods * self._period_s)
        if not self.estimate.ready:
            raise SimulationError(f"no estimate at the start: {'; '.join(self.estimate.faults)}")
        return told

    def after(self, controller: Controller, state: RobotState) -> RobotState:
        """What is known at the end of a period that ended in ``state``."""
        return self._step(controller, state, state.time_s)

    def _step(self, controller, state, time_s):
        readings = self._sensors.read(state)
        estimate: PipelineEstimate = self.pipeline.step(
            time_s,
            readings.angular_velocity,
            readings.linear_acceleration,
            readings.position,
            readings.velocity,
            readings.effort,
            planned=controller.planned_stance(time_s),
        )
        controller.sources.detector.take_states(estimate.contact.astype(float), time_s)
        if estimate.forces_known:
            controller.measure(estimate.world_forces)
        return estimate.state
