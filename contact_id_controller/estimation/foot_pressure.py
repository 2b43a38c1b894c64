"""A pressure sensor in a foot: what the ground pushes along the z axis of the foot's frame, on a known area."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contact_id_controller.estimation.mounted import Mounted, force_on_foot

if TYPE_CHECKING:
    from contact_id_controller.estimation.sensors import Sensor
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.state import RobotState


@dataclasses.dataclass(frozen=True)
class FootPressure(Mounted):
    """Measures f_z / A of the contact at a foot, Pa: f_z = A p is one component of its unknown wrench.

    Attributes:
        area_m2: A.  noise_pa: standard deviation after the low-pass.  white_noise_pa: of each sample of the
            simulated one.

    Raises:
        ConfigurationError: an area or noise that is not positive.
    """

    area_m2: float = 4e-4
    noise_pa: float = 1000.0
    white_noise_pa: float = 500.0
    topic_prefix: ClassVar[str] = "pressure"
    message: ClassVar[str] = "sensor_msgs/FluidPressure"
    numbers: ClassVar[tuple[str, ...]] = ("fluid_pressure",)

    def __post_init__(self) -> None:
        self.positive("area_m2", "noise_pa", "white_noise_pa")

    @property
    def gain(self) -> float:
        """From Pa to N."""
        return self.area_m2

    def white_noise(self, noise: Any) -> float:
        """Of each sample, Pa, whatever the robot's other sensors have."""
        return self.white_noise_pa

    def sensor(self, robot: RobotModel, feet: tuple[str, ...]) -> Sensor:
        """One row: the component f_z itself."""
        from contact_id_controller.estimation.sensors import ContactComponent

        self.refuse_elsewhere(feet)
        return ContactComponent(self.name, 2, self.area_m2 * self.noise_pa, self.label)

    def true(self, world: Any, state: RobotState) -> np.ndarray:
        """Of the mean force on the foot over the period."""
        self.refuse_elsewhere(world.foot_frames)
        return force_on_foot(world, state, self.name)[2:] / self.area_m2
