"""A pressure sensor in a foot: what the ground pushes along the z axis of the foot's frame, on a known area."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contact_id_controller.estimation.mounted import Mounted, model_data
from contact_id_controller.exceptions import ConfigurationError, choices

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

        if self.name not in feet:
            raise ConfigurationError(
                f"no pressure sensor at {self.name!r}: the feet are {choices(feet)}"
            )
        return ContactComponent(self.name, 2, self.area_m2 * self.noise_pa, self.label)

    def true(self, world: Any, state: RobotState) -> np.ndarray:
        """Of the force on the foot over the period, in the foot's axes at its end."""
        import pinocchio as pin

        if self.name not in world.foot_frames:
            raise ConfigurationError(
                f"no pressure sensor at {self.name!r}: the feet are {choices(world.foot_frames)}"
            )
        model, force = world.robot.model, world.foot_forces()[world.foot_frames.index(self.name)]
        data = model_data(model)
        pin.forwardKinematics(model, data, state.q)
        placement = pin.updateFramePlacement(model, data, world.robot.frame_id(self.name))
        return np.array([placement.rotation[:, 2] @ force / self.area_m2])
