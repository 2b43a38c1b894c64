"""A simulated robot on ground of springs and dampers, with Coulomb friction.

    f_n = max(0, k depth - b depth'),    f_t = -k s - b v_t, no longer than mu f_n

s is how far the foot has moved along the ground since it began to stick; where friction gives in,
the point it sticks to is dragged along. No contact model of the controllers is involved.

Source: the penalty method of the first paper's compliant terrain, section 7.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.robot import RobotModel
from experiments.rigid.rigid_robot import RigidRobot, cross

DAMPING_RATIO = 0.3
"""Of a foot's share of the mass on its spring."""


class CompliantRobot(RigidRobot):
    """A robot whose feet stand on springs, with the interface of `RigidRobot`.

    Args:
        robot, feet, settings: as for `RigidRobot`; only feet touch.
        sink_m: how far the ground gives way under the weight, shared by all feet.
        substeps: the forces are explicit, so a step must be short against mass / damping of a foot.

    Raises:
        ConfigurationError: no feet, or a sink that is not positive; and as for `RigidRobot`.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: Any,
        *,
        sink_m: float = 1e-3,
        substeps: int = 5,
        friction: Any = 0.6,
        **settings: Any,
    ) -> None:
        if not 0.0 < sink_m < np.inf or not feet:
            raise ConfigurationError(
                f"sink_m is {sink_m} for {len(feet)} feet, both must be positive"
            )
        self._anchors: list[np.ndarray | None] = [None] * len(feet)
        super().__init__(robot, feet, substeps=substeps, friction=friction, **settings)
        count = len(self.feet)
        self.stiffness_n_m = self.robot.weight / (count * sink_m)
        self.damping_n_s_m = (
            2.0 * DAMPING_RATIO * np.sqrt(self.stiffness_n_m * self.robot.mass / count)
        )
        self._mu = friction if callable(friction) else np.broadcast_to(friction, (count,))
        model = self.robot.model
        self._links = [model.frames[self.robot.frame_id(foot.frame)].parentJoint for foot in feet]

    def reset(self, q: np.ndarray, v: np.ndarray | None = None) -> Any:
        """As for `RigidRobot`."""
        self._anchors = [None] * len(self.feet)
        return super().reset(q, v)

    def _advance(self, torques: np.ndarray) -> None:
        """One step of semi-implicit Euler: spring, damper and friction below the ground, then the ABA."""
        robot, data, v = self.robot, self._data, self._v
        pin.computeJointJacobians(robot.model, data, self._q)
        feet, jacobian = self._standing, data.J
        feet.update(data)
        effort = np.zeros(robot.nv)
        effort[robot.actuated] = torques
        mu = self._mu(feet.points) if callable(self._mu) else self._mu
        for i, link in enumerate(self._links):
            if feet.gaps[i] >= 0.0:
                self._anchors[i] = None
                continue
            rows = jacobian * robot.supports[link]
            twist = rows @ v
            point = feet.points[i].copy()  # the next update writes over it
            force = self._push(
                i,
                point,
                twist[:3] + cross(twist[3:], point),
                feet.normals[i],
                -feet.gaps[i],
                float(mu[i]),
            )
            self._forces[i] += force
            effort += force @ rows[:3] + cross(point, force) @ rows[3:]
        acceleration = pin.aba(robot.model, data, self._q, v, effort)
        velocity = v + self._step_s * acceleration
        if not np.isfinite(velocity.sum()):
            raise self._diverged()
        self._q = pin.integrate(robot.model, self._q, self._step_s * velocity)
        self._v = self._carried(velocity)

    def _push(
        self,
        i: int,
        point: np.ndarray,
        speed: np.ndarray,
        normal: np.ndarray,
        depth: float,
        mu: float,
    ) -> np.ndarray:
        """Force of the ground on foot i, (3,) N."""
        k, b = self.stiffness_n_m, self.damping_n_s_m
        along = normal @ speed
        pressure = max(0.0, k * depth - b * along)
        if self._anchors[i] is None:
            self._anchors[i] = point
        slide = speed - along * normal
        way = point - self._anchors[i]
        way -= (normal @ way) * normal
        friction = -k * way - b * slide
        size = np.linalg.norm(friction)
        bound = mu * pressure if pressure > 0.0 else 0.0  # also where mu is infinite
        if size > bound:
            friction *= bound / size
            self._anchors[i] = point + friction / k
        return pressure * normal + friction
