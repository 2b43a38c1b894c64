"""The command limits that ros2_control enforces on efforts, applied before they are sent.

From Kilted on its controller_manager enforces the URDF's limits on each command: efforts are clipped, and are zero in
the direction of motion beyond a joint's speed or range (`compute_effort_limits` in ros2_control's joint_limits).
With them applied first, the controller knows the torques that act.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.robot import RobotModel


class CommandLimits:
    """The limits of a robot's URDF as ros2_control enforces them, joints in the robot's order.

    A limit that the URDF does not state, or an empty range, does not apply.
    """

    def __init__(self, robot: RobotModel) -> None:
        stated = robot.upper > robot.lower
        self._lower = np.where(stated, robot.lower, -np.inf)
        self._upper = np.where(stated, robot.upper, np.inf)
        self._speed = np.array(robot.velocity_limits, dtype=float)
        self._effort = np.array(robot.effort_limits, dtype=float)

    def enforce(self, torques: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> bool:
        """Reduce torques (na,), N·m, in place to the limits at the measured state; return whether any changed.

        position, velocity: (na,) rad, rad/s.
        """
        return _enforce(
            torques, position, velocity, self._lower, self._upper, self._speed, self._effort
        )


@bare_kernel
def _enforce(torques, position, velocity, lower, upper, speed, effort):
    """Clip torques (na,), N·m, in place as controller_manager does; return whether any changed.

    |tau| <= effort; no torque in the direction of motion beyond the speed limit, rad/s, nor outwards at an end of
    the range, rad, unless the joint moves inwards already. position, velocity, lower, upper, speed, effort: (na,).
    """
    changed = False
    for j in range(torques.shape[0]):
        torque, qd = torques[j], velocity[j]
        least, most = -effort[j], effort[j]
        if qd < -speed[j] or (position[j] <= lower[j] and qd <= 0.0):
            least = 0.0
        if qd > speed[j] or (position[j] >= upper[j] and qd >= 0.0):
            most = 0.0
        if torque > most:
            torques[j], changed = most, True
        elif torque < least:
            torques[j], changed = least, True
    return changed
