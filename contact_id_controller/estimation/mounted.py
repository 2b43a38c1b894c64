"""A sensor mounted on a robot, beside its IMU, encoders and motors; no kernel is imported for it.

A kind of sensor is one class in a file of its own, derived from ``Mounted``, and one row of ``sensor_kinds.KINDS``: the
dynamics estimator, its node, the simulated robot and their parameter ``mounted_sensors`` ask the class.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError, choices

if TYPE_CHECKING:
    from contact_id_controller.estimation.sensors import Sensor
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.state import RobotState


@dataclasses.dataclass(frozen=True)
class Mounted:
    """What a kind of mounted sensor answers; its fields, floats or texts, are its settings.

    Attributes:
        name: of the joint or foot that it is at.
        topic_prefix: it is read on ``<topic_prefix>/<name>``.
        message: type of its message there, which begins with a header, such as ``sensor_msgs/FluidPressure``.
        numbers: the doubles of that message that it measures, in the message's order, as ``wrench.force.x``, or
            ``effort[2]`` of a list.
        of_engine: the simulator itself measures there: its robot is built with a wrench sensor of this name.
    """

    name: str
    topic_prefix: ClassVar[str]
    message: ClassVar[str]
    numbers: ClassVar[tuple[str, ...]]
    of_engine: ClassVar[bool] = False

    @property
    def topic(self) -> str:
        """Where its messages are."""
        return f"{self.topic_prefix}/{self.name}"

    @property
    def label(self) -> str:
        """Its name in residuals and faults."""
        return self.topic

    @property
    def gain(self) -> ArrayLike:
        """G of values = G numbers, between the values of ``sensor`` and the numbers of its message.

        (values, numbers), such as a row of ones for the sum of some cells; or one factor, where each value is one
        number, in this order: the first of them, if ``sensor`` has fewer.
        """
        return 1.0

    def gains(self, count: int) -> np.ndarray:
        """G (count, numbers), where ``sensor`` has ``count`` values.

        Raises:
            ConfigurationError: a ``gain`` of another shape.
        """
        shape, gain = (count, len(self.numbers)), np.asarray(self.gain, dtype=float)
        if gain.ndim == 0 and shape[0] <= shape[1]:
            return gain * np.eye(*shape)
        if gain.shape != shape:
            raise ConfigurationError(
                f"gain of sensor {self.topic!r} has shape {gain.shape}, must be a number or have {shape}: "
                "values of its sensor, numbers of its message"
            )
        return gain

    def sensor(self, robot: RobotModel, feet: tuple[str, ...]) -> Sensor:
        """Its rows, and the noise of their values, which are ``gain`` times the numbers of the message.

        Raises:
            ConfigurationError: it cannot be on this robot.
        """
        raise NotImplementedError

    def true(self, world: Any, state: RobotState) -> ArrayLike:
        """What an ideal one reads of a simulated robot at the end of a period, as numbers of the message."""
        raise NotImplementedError

    def white_noise(self, noise: Any) -> ArrayLike:
        """Standard deviation of each number that the simulated one reads.

        noise: the ``SensorNoise`` of the robot's other sensors.
        """
        return 0.0

    def positive(self, *names: str) -> None:
        """Raise ConfigurationError for settings that are not above 0."""
        for name in names:
            if not 0.0 < getattr(self, name) < float("inf"):
                raise ConfigurationError(
                    f"{name} of sensor {self.topic!r} is {getattr(self, name)}, must be above 0 and finite"
                )

    def refuse_elsewhere(self, feet: Sequence[str]) -> None:
        """Raise ConfigurationError unless it is at one of these feet."""
        if self.name not in feet:
            raise ConfigurationError(
                f"no sensor {self.topic!r}: {self.name!r} is no foot, the feet are {choices(feet)}"
            )


def force_on_foot(world: Any, state: RobotState, foot: str) -> np.ndarray:
    """What the ground does to a foot of a simulated robot, (3,) N: mean of the period, in the foot's axes at its end."""
    import pinocchio as pin

    model, force = world.robot.model, world.foot_forces()[world.foot_frames.index(foot)]
    data = model_data(model)
    pin.forwardKinematics(model, data, state.q)
    placement = pin.updateFramePlacement(model, data, world.robot.frame_id(foot))
    found: np.ndarray = placement.rotation.T @ force
    return found


@functools.lru_cache(maxsize=8)
def model_data(model: Any) -> Any:
    """Pinocchio's data of a model, for what ideal sensors read."""
    return model.createData()
