"""Common base of simulated robots with any engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, SimulationError, StateError
from contact_id_controller.geometry import (
    FeetOnGround,
    SphereFoot,
    contact_names,
    lower_onto,
    stand_on,
)
from contact_id_controller.robot import RobotModel


class SteppedRobot:
    """A robot with round or flat feet, advanced one control period at a time.

    Args:
        robot: its model.
        feet: spheres that may touch the ground, in the order of every per-contact array; those of
            one frame are the corners of one foot.
        standing: contact geometry of the same feet.
        period_s, substeps: control period, s, and steps of the engine in it.

    Attributes:
        has_imu: it has an IMU.  wrench_sensors: names of its force/torque sensors; here: none.
        refused_commands: commands that were not (na,) finite numbers, and were replaced by zero.

    Raises:
        ConfigurationError: a period or number of steps that is not positive.
    """

    has_imu: bool = False
    wrench_sensors: tuple[str, ...] = ()

    def __init__(
        self,
        robot: RobotModel,
        feet: Sequence[SphereFoot],
        standing: FeetOnGround,
        period_s: float,
        substeps: int,
    ):
        if not period_s > 0.0 or substeps < 1:
            raise ConfigurationError(
                f"period_s is {period_s} and substeps {substeps}, must be above 0 and at least 1"
            )
        self.robot, self.feet = robot, tuple(feet)
        self.period_s, self.substeps = float(period_s), int(substeps)
        self.refused_commands = 0
        self._standing, self._foot_count = standing, len(self.foot_frames)
        self._periods = 0
        self._forces = np.zeros((len(self.feet), 3))
        self._applied = np.zeros(robot.na)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of every per-contact array."""
        return contact_names([foot.frame for foot in self.feet])

    @property
    def foot_frames(self) -> tuple[str, ...]:
        """Frames of the feet, in the order of every per-foot array."""
        return tuple(dict.fromkeys(foot.frame for foot in self.feet))

    def contact_forces(self) -> np.ndarray:
        """Force on the robot at each contact, averaged over the last period: (n, 3), world, N."""
        return self._forces.copy()

    def foot_forces(self) -> np.ndarray:
        """Sum of the contact forces of each foot, (f, 3), N, world."""
        total = np.zeros((self._foot_count, 3))
        np.add.at(total, self._standing.foot, self._forces)
        return total

    def applied_torques(self) -> np.ndarray:
        """Torques (na,), N m, that the motors applied over the last period."""
        return self._applied.copy()

    def imu(self) -> tuple[np.ndarray, np.ndarray]:
        """Ideal IMU readings of the last period, in its axes.

        Angular velocity (3,) rad/s at its end, and proper acceleration (3,) m/s2, with gravity,
        averaged over it; at rest after a reset: gravity alone.

        Raises:
            ConfigurationError: there is no IMU.
        """
        raise ConfigurationError("this simulated robot has no IMU: give it an imu_frame")

    def wrenches(self) -> np.ndarray:
        """Force then moment, (n, 6), N, N m, at each of ``wrench_sensors``, over the last period.

        A joint's: of its inner link on the outer one, about the joint's origin, in the outer
        link's axes. A foot's: of the ground on it, about its frame's origin and in its axes.
        """
        return np.zeros((0, 6))

    def place_on_ground(self, q: np.ndarray) -> np.ndarray:
        """Raise or lower the base of q until the lowest foot touches the ground; returns the new q.

        Raises:
            ConfigurationError: the base is fixed, or there are no feet.
        """
        if not self.robot.floating_base or not self.feet:
            raise ConfigurationError("only a robot with a floating base and feet can be placed")
        model = self.robot.model
        q = checked_vector("q", q, self.robot.nq)
        return lower_onto(self._standing, model, model.createData(), q)

    def stand_on_ground(self, q: np.ndarray) -> np.ndarray:
        """q with every foot on the ground, see ``geometry.stand_on``."""
        return stand_on(self._standing, self.robot, q)

    def _accepted(self, torques: np.ndarray) -> np.ndarray:
        """The command (na,), or zero for one of wrong shape or not finite."""
        command = np.asarray(torques, dtype=float)
        if command.shape == (self.robot.na,) and np.isfinite(command).all():
            self._applied[:] = command
        else:
            self.refused_commands += 1
            self._applied[:] = 0.0
        return self._applied

    def _start(self) -> None:
        """Reset time and forces to zero."""
        self._periods = 0
        self._forces[:] = 0.0
        self._applied[:] = 0.0

    def _diverged(self) -> SimulationError:
        return SimulationError(
            f"simulation diverged at {self._periods * self.period_s:.3f} s; "
            "are the torques or the period too large?"
        )


def checked_vector(name: str, values: np.ndarray, size: int) -> np.ndarray:
    """A fresh array (size,) of finite numbers, or StateError."""
    array = np.array(values, dtype=float)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise StateError(f"{name} has shape {array.shape}, must be {size} finite numbers")
    return array
