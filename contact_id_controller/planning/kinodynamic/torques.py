"""Joint torques of a planned motion under its planned forces, and the remaining wrench at the base."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.planning.kinodynamic.between_knots import FineMotion
from contact_id_controller.planning.kinodynamic.momentum import MomentumPlan
from contact_id_controller.planning.kinodynamic.placement import BASE
from contact_id_controller.robot import RobotModel


class PlannedTorques(NamedTuple):
    """Torques half way between the points of the finer grid.

    Attributes:
        times_s: (p,).  torques: (p, na) N m.
        unexplained: (p, 6) N and N m, residual wrench at the base: force, and moment about its origin.
    """

    times_s: np.ndarray
    torques: np.ndarray
    unexplained: np.ndarray


def planned_torques(
    robot: RobotModel, fine: FineMotion, momentum: MomentumPlan, parts: int
) -> PlannedTorques:
    """Inverse dynamics of the fine motion: ``M a + h - J' f``, with the forces of each interval."""
    model, data = robot.model, robot.data
    contacts, soles = momentum.problem.contacts, momentum.problem.contact_plan.soles
    frames = [robot.frame_id(sole.frame) for sole in soles]
    step_s = fine.times_s[1] - fine.times_s[0]
    count = len(fine.times_s) - 1
    efforts = np.empty((count, robot.nv))
    for point in range(count):
        q, v = fine.configurations[point], fine.velocities[point]
        change = pin.difference(model, q, fine.configurations[point + 1])
        q = pin.integrate(model, q, 0.5 * change)
        acceleration = (fine.velocities[point + 1] - v) / step_s
        efforts[point] = pin.rnea(model, data, q, change / step_s, acceleration)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        interval = point // parts
        for index, frame in enumerate(frames):
            corners = contacts.sole_of_corner == index
            forces = momentum.forces[interval, corners]
            if forces.any():
                J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
                arms = contacts.points[interval, corners] - data.oMf[frame].translation
                efforts[point] -= J[:3].T @ forces.sum(0) + J[3:].T @ np.cross(arms, forces).sum(0)
    times = 0.5 * (fine.times_s[1:] + fine.times_s[:-1])
    return PlannedTorques(times, efforts[:, robot.actuated], efforts[:, :BASE])
