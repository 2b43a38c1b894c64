"""Bilateral constraints of forward problems: closed kinematic loops, pins, welds, gears, locks.

Each gives velocity rows K, the position error (whose time derivative is K v) and the drift Kdot v, by Pinocchio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.exceptions import ConfigurationError, UnknownJointError, choices
from contact_id_controller.robot import RobotModel


class Rows(NamedTuple):
    """m rows: K (m, nv), error (m,) m or rad, drift (m,) = Kdot v in m/s2 or rad/s2."""

    K: NDArray[np.float64]
    error: NDArray[np.float64]
    drift: NDArray[np.float64]


class Constraint(Protocol):
    """Interface of a bilateral constraint."""

    def rows(
        self, robot: RobotModel, data: Any, q: NDArray[np.float64], v: NDArray[np.float64]
    ) -> Rows:
        """Rows at q (nq,), v (nv,); ``data``: Pinocchio's, with placements, Jacobians and drifts of that state."""


class Pin(NamedTuple):
    """A point of one frame stays on a point of another (ball joint): three rows, world axes.

    frame, point (m, in that frame); other, other_point: the second frame, None for the world.
    """

    frame: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    other: str | None = None
    other_point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def rows(
        self, robot: RobotModel, data: Any, q: NDArray[np.float64], v: NDArray[np.float64]
    ) -> Rows:
        first = _point_rows(robot, data, v, self.frame, self.point)
        return _difference(first, _point_rows(robot, data, v, self.other, self.other_point))


class Weld(NamedTuple):
    """One frame stays where it is in another: six rows, world axes, linear then angular.

    placement: (4, 4) pose of ``frame`` in ``other`` (None: the world), None for the identity.
    """

    frame: str
    other: str | None = None
    placement: ArrayLike | None = None

    def rows(
        self, robot: RobotModel, data: Any, q: NDArray[np.float64], v: NDArray[np.float64]
    ) -> Rows:
        """Six rows: relative linear and angular velocity of the two frames; errors m and rad, world axes."""
        wanted = (
            pin.SE3.Identity()
            if self.placement is None
            else pin.SE3(np.array(self.placement, float))
        )
        place = data.oMf[robot.frame_id(self.frame)]
        base = pin.SE3.Identity() if self.other is None else data.oMf[robot.frame_id(self.other)]
        linear = _difference(
            _point_rows(robot, data, v, self.frame, np.zeros(3)),
            _point_rows(robot, data, v, self.other, wanted.translation),
        )
        angular = _difference(
            _turn_rows(robot, data, v, self.frame), _turn_rows(robot, data, v, self.other)
        )
        apart = pin.log3(place.rotation @ (base.rotation @ wanted.rotation).T)
        return Rows(
            np.vstack([linear.K, angular.K]),
            np.concatenate([linear.error, apart]),
            np.concatenate([linear.drift, angular.drift]),
        )


class Coupling(NamedTuple):
    """A gear or a lock: sum of ratios times joint positions = offset; one row.

    joints: names of one-freedom joints; ratios: one each, default 1; offset: rad (m).
    """

    joints: tuple[str, ...]
    ratios: tuple[float, ...] | None = None
    offset: float = 0.0

    def rows(
        self, robot: RobotModel, data: Any, q: NDArray[np.float64], v: NDArray[np.float64]
    ) -> Rows:
        """One row, sum ratio_j v_j = 0, with error sum ratio_j q_j - offset (rad or m).

        Raises:
            ConfigurationError: not one ratio a joint.
            UnknownJointError: no such joint, or one of several degrees of freedom or of unlimited rotation.
        """
        ratios = (
            np.ones(len(self.joints)) if self.ratios is None else np.asarray(self.ratios, float)
        )
        if len(ratios) != len(self.joints) or len(ratios) == 0:
            raise ConfigurationError(
                f"a coupling needs one ratio a joint, got {self.joints} and {self.ratios}"
            )
        K, error = np.zeros((1, robot.nv)), -float(self.offset)
        for name, ratio in zip(self.joints, ratios):
            if not robot.model.existJointName(name):
                raise UnknownJointError(
                    f"joint {name!r} does not exist; this robot has "
                    f"{choices(list(robot.model.names)[1:])}"
                )
            joint = robot.model.joints[robot.model.getJointId(name)]
            if joint.nv == 1 and joint.nq == 2:
                raise UnknownJointError(
                    f"joint {name!r} turns without end, so its angle is known only up to whole turns; "
                    "a coupling takes joints of type revolute or prismatic"
                )
            if joint.nv != 1 or joint.nq != 1:
                raise UnknownJointError(
                    f"joint {name!r} has {joint.nv} freedoms, a coupling takes one"
                )
            K[0, joint.idx_v] += ratio
            error += ratio * float(q[joint.idx_q])
        return Rows(K, np.array([error]), np.zeros(1))


def stack(
    robot: RobotModel,
    q: NDArray[np.float64],
    v: NDArray[np.float64],
    constraints: Sequence[Constraint],
) -> Rows:
    """The rows of all constraints at the state q (nq,), v (nv,).

    Raises:
        UnknownFrameError, UnknownJointError: a name the robot lacks.
    """
    if not constraints:
        return Rows(np.zeros((0, robot.nv)), np.zeros(0), np.zeros(0))
    data = robot.scratch
    pin.forwardKinematics(robot.model, data, q, v, np.zeros(robot.nv))
    pin.updateFramePlacements(robot.model, data)
    pin.computeJointJacobians(robot.model, data, q)
    parts = [constraint.rows(robot, data, q, v) for constraint in constraints]
    return Rows(*(np.concatenate(column) for column in zip(*parts)))


def _point_rows(
    robot: RobotModel, data: Any, v: NDArray[np.float64], frame: str | None, point: ArrayLike
) -> Rows:
    """Position error, velocity rows and classical drift of a point of a frame (None: the world)."""
    if frame is None:
        return Rows(np.zeros((3, robot.nv)), np.array(point, float), np.zeros(3))
    index = robot.frame_id(frame)
    arm = data.oMf[index].rotation @ np.asarray(point, float)
    J = pin.getFrameJacobian(robot.model, data, index, pin.LOCAL_WORLD_ALIGNED)
    linear = pin.getFrameClassicalAcceleration(
        robot.model, data, index, pin.LOCAL_WORLD_ALIGNED
    ).linear
    angular = pin.getFrameAcceleration(robot.model, data, index, pin.LOCAL_WORLD_ALIGNED).angular
    omega = J[3:] @ v
    turn = pin.skew(omega)
    drift = linear + pin.skew(angular) @ arm + turn @ (turn @ arm)
    return Rows(J[:3] - pin.skew(arm) @ J[3:], data.oMf[index].translation + arm, drift)


def _turn_rows(robot: RobotModel, data: Any, v: NDArray[np.float64], frame: str | None) -> Rows:
    """Angular velocity rows (3, nv) and drift (3,), rad/s2, of a frame, world axes; zero for the world."""
    if frame is None:
        return Rows(np.zeros((3, robot.nv)), np.zeros(3), np.zeros(3))
    index = robot.frame_id(frame)
    J = pin.getFrameJacobian(robot.model, data, index, pin.LOCAL_WORLD_ALIGNED)
    angular = pin.getFrameAcceleration(robot.model, data, index, pin.LOCAL_WORLD_ALIGNED).angular
    return Rows(J[3:].copy(), np.zeros(3), angular)


def _difference(first: Rows, second: Rows) -> Rows:
    return Rows(first.K - second.K, first.error - second.error, first.drift - second.drift)
