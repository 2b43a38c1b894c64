"""A sensor mounted on a robot, beside its IMU, encoders and motors; no kernel is imported for it.

A kind of sensor is one class in a file of its own, derived from ``Mounted``, and one row of ``sensor_kinds.KINDS``: the
dynamics estimator, its node, the simulated robot and their parameter ``mounted_sensors`` ask the class.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError

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
        numbers: the doubles of that message that it measures, in the message's order, as ``wrench.force.x``.
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
    def gain(self) -> float:
        """By which the numbers of its message are multiplied to be the values of ``sensor``."""
        return 1.0

    def sensor(self, robot: RobotModel, feet: tuple[str, ...]) -> Sensor:
        """Its rows and noise; the numbers of the message are their values, in this order, or begin with them.

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


@functools.lru_cache(maxsize=8)
def model_data(model: Any) -> Any:
    """Pinocchio's data of a model, for what ideal sensors read."""
    return model.createData()
