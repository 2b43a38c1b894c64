"""Inverse kinematics of feet and centre of mass by the smallest step of base and legs.

    q <- q + W J' (J W J')^-1 e

with e the errors of feet and CoM, J their Jacobian and W the mobility, in which all joints that carry no foot are
stiff.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.planning.kinodynamic.contact_plan import Sole
from contact_id_controller.planning.kinodynamic.swing import FootMotion
from contact_id_controller.robot import RobotModel

BASE = 6
"""Velocity coordinates of a floating base."""

ATTITUDE_MOBILITY = 0.05
"""How readily the base turns where the legs alone do not suffice; legs and the base's place: 1."""

REACHED = 1e-8
"""Feet and CoM closer to their place than this (m, rad) count as there."""

MAX_STEPS = 8
"""Newton steps for one point."""

REGULAR = 1e-10
"""Regularisation relative to the trace: a leg that is stretched loses a direction."""


def is_flat(sole: Sole) -> bool:
    """Whether the foot's rotation is fixed in contact; a point foot is free to turn."""
    return max(sole.half_size_m) > 0.0


class Placement(NamedTuple):
    """Targets of CoM and feet at p points of time: positions and velocities.

    Attributes:
        robot: with a floating base.
        frames: the f feet.  flat: whether each one's rotation matters.
        com: (p, 3) m.  com_velocities: (p, 3) m/s.
        feet: their paths.
    """

    robot: RobotModel
    frames: tuple[str, ...]
    flat: tuple[bool, ...]
    com: np.ndarray
    com_velocities: np.ndarray
    feet: FootMotion

    def at(self, point: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Errors (r,), actual minus target, m and rad, of CoM and feet at q, and their Jacobian (r, nv), world axes.

        point: index of the point of time. Rows: CoM (3), then each foot's position (3), with its rotation (3) if flat.
        """
        model, data = self.robot.model, self.robot.data
        jacobians = [pin.jacobianCenterOfMass(model, data, q)]
        errors = [data.com[0] - self.com[point]]
        pin.updateFramePlacements(model, data)
        for column, (name, flat) in enumerate(zip(self.frames, self.flat)):
            frame = self.robot.frame_id(name)
            pose = data.oMf[frame]
            rows = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
            errors.append(pose.translation - self.feet.positions[point, column])
            if flat:
                errors.append(pin.log3(pose.rotation @ self.feet.rotations[point, column].T))
            jacobians.append(rows if flat else rows[:3])
        return np.concatenate(errors), np.concatenate(jacobians)

    def velocity(self, point: int) -> np.ndarray:
        """Target velocities (r,) of CoM and feet, in the rows of `at`."""
        parts = [self.com_velocities[point]]
        for column, flat in enumerate(self.flat):
            parts.append(self.feet.velocities[point, column])
            if flat:
                parts.append(self.feet.spins[point, column])
        return np.concatenate(parts)

    def mobility(self) -> np.ndarray:
        """Diagonal of W (nv,): 1 for the base's position and joints that carry a foot, less for its attitude, else 0."""
        mobility = np.where(carrying(self.robot, self.frames), 1.0, 0.0)
        mobility[:BASE] = [1.0] * 3 + [ATTITUDE_MOBILITY] * 3
        return mobility

    def reached(
        self, point: int, q: np.ndarray, mobility: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[float]]:
        """Iterate from q to the targets; returns the configuration, the Jacobian there and the error of each foot.

        An error is the larger one of foot and CoM, m or rad; up to `REACHED` it counts as converged.
        """
        for step in range(MAX_STEPS + 1):
            errors, J = self.at(point, q)
            if np.abs(errors).max() < REACHED or step == MAX_STEPS:
                break
            q = pin.integrate(self.robot.model, q, smallest(J, mobility, -errors))
        row, misses, com = 3, [], np.abs(errors[:3]).max()
        for flat in self.flat:
            rows = 6 if flat else 3
            own = np.abs(errors[row : row + rows])
            misses.append(float(max(own.max(), com)))
            row += rows
        return q, J, misses


def carrying(robot: RobotModel, frames: tuple[str, ...]) -> np.ndarray:
    """Which velocity coordinates (nv,) move one of the frames."""
    parents = [robot.model.frames[robot.frame_id(name)].parentJoint for name in frames]
    return np.any(robot.supports[parents], axis=0)


def smallest(J: np.ndarray, mobility: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Solve J x = wanted for the x of least norm in the metric of the mobility."""
    spread = mobility[:, None] * J.T
    gram = J @ spread
    gram[np.diag_indices_from(gram)] += REGULAR * np.trace(gram)
    return spread @ np.linalg.solve(gram, wanted)
