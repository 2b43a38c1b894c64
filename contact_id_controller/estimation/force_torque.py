"""A six-axis force/torque sensor in a joint or under a foot: measured rows of a wrench."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contact_id_controller.estimation.mounted import Mounted, model_data
from contact_id_controller.exceptions import ConfigurationError, UnknownJointError, choices

if TYPE_CHECKING:
    from contact_id_controller.estimation.sensors import Sensor
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.state import RobotState

PARENT_TO_CHILD, CHILD_TO_PARENT = "parent_to_child", "child_to_parent"


@dataclasses.dataclass(frozen=True)
class ForceTorqueSensor(Mounted):
    """Measures (f, m), N and N·m: of a joint what one link does to the other, of a foot what the ground does to it.

    Attributes:
        frame: of a joint's: in its axes and about its origin; empty: the joint's own, on the outer link. A
            foot's are those of the foot.
        direction: of a joint's: ``parent_to_child``, what the link nearer to the base does to the other, or
            ``child_to_parent``.
        force_noise_n, moment_noise_nm: standard deviations after the low-pass.

    Raises:
        ConfigurationError: a noise that is not positive, or another direction.
    """

    frame: str = ""
    direction: str = PARENT_TO_CHILD
    force_noise_n: float = 0.2
    moment_noise_nm: float = 0.02
    topic_prefix: ClassVar[str] = "wrench"
    message: ClassVar[str] = "geometry_msgs/WrenchStamped"
    numbers: ClassVar[tuple[str, ...]] = (
        *("wrench.force.x", "wrench.force.y", "wrench.force.z"),
        *("wrench.torque.x", "wrench.torque.y", "wrench.torque.z"),
    )
    of_engine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.positive("force_noise_n", "moment_noise_nm")
        known = PARENT_TO_CHILD, CHILD_TO_PARENT
        if self.direction not in known:
            raise ConfigurationError(
                f"direction of {self.label} is {self.direction!r}, must be one of {choices(known)}"
            )

    def sensor(self, robot: RobotModel, feet: tuple[str, ...]) -> Sensor:
        """Six rows of a joint; of a foot the components that its contact has, the force first.

        Raises:
            UnknownJointError: neither a joint nor a foot.
            ConfigurationError: a frame for a foot's.
        """
        from contact_id_controller.estimation.sensors import ContactWrench, ForceTorque

        noise = [self.force_noise_n] * 3 + [self.moment_noise_nm] * 3
        if self.name in feet:
            if self.frame:
                raise ConfigurationError(
                    f"force/torque sensor {self.name!r} is a foot's, in the foot's own axes; "
                    f"it has no frame {self.frame!r}"
                )
            return ContactWrench(self.name, noise, self.label)
        if self.name not in robot.joint_names:
            raise UnknownJointError(
                f"no force/torque sensor at {self.name!r}: neither a foot, which are "
                f"{choices(feet)}, nor a joint, which are {choices(robot.joint_names)}"
            )
        return ForceTorque(self.name, self.frame or self.name, noise, self.direction, self.label)

    def true(self, world: Any, state: RobotState) -> np.ndarray:
        """The engine's, in the axes and direction of this sensor.

        Raises:
            ConfigurationError: the simulated robot has none there.
        """
        there = world.wrench_sensors
        if self.name not in there:
            raise ConfigurationError(
                f"the simulated robot has no force/torque sensor {self.name!r}; it has "
                f"{choices(there) if there else 'none'}"
            )
        found: np.ndarray = world.wrenches()[there.index(self.name)]
        if self.name in world.foot_frames:
            return found
        if self.frame:
            import pinocchio as pin

            model, data = world.robot.model, model_data(world.robot.model)
            pin.forwardKinematics(model, data, state.q)
            placement = pin.updateFramePlacement(model, data, world.robot.frame_id(self.frame))
            joint = data.oMi[model.getJointId(self.name)]
            found = placement.actInv(joint.act(pin.Force(found))).vector
        return found if self.direction == PARENT_TO_CHILD else -found

    def white_noise(self, noise: Any) -> np.ndarray:
        """Of each sample: that of the simulated robot's preset."""
        return np.repeat([noise.force_noise_n, noise.moment_noise_nm], 3)
