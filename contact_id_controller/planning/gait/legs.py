"""The legs of a robot as chains of three moved joints from the base to the centre of a foot."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.gait.support_motion import FRICTION, Body
from contact_id_controller.robot import RobotModel


class Legs:
    """Kinematics of L legs relative to the base.

    With more than three joints in a leg the three nearest to the base move and the others are fixed; joints of no leg
    are fixed as well.

    Attributes:
        columns: (L, 3) the moved joints, as indices among the robot's actuated joints.
        lower, upper: (L, 3) limits of the moved joints, rad.

    Raises:
        UnknownFrameError: a foot frame that the robot lacks.
        ConfigurationError: a robot without floating base, or a leg with fewer than three joints.
    """

    def __init__(self, robot: RobotModel, feet: tuple[str, ...]):
        if not robot.floating_base:
            raise ConfigurationError("the gait planner needs a robot with a floating base")
        self.robot = robot
        self.model = pin.Model(robot.model)
        self._frames = []
        columns = []
        for foot in feet:
            frame = robot.model.frames[robot.frame_id(foot)]
            columns.append(self._moved_joints(foot, frame.parentJoint))
            self._frames.append(
                self.model.addFrame(
                    pin.Frame(
                        f"{foot} centre", frame.parentJoint, frame.placement, pin.FrameType.OP_FRAME
                    )
                )
            )
        self.data = self.model.createData()
        self.columns = np.array(columns)
        self.lower = robot.lower[self.columns]
        self.upper = robot.upper[self.columns]

    def configuration(self, joints: np.ndarray) -> np.ndarray:
        """Configuration q (nq,) for joint positions (na,), the base at the origin, so that world axes are base axes."""
        return self.robot.configuration([0, 0, 0, 0, 0, 0, 1], joints)

    def centers(self, q: np.ndarray) -> np.ndarray:
        """World positions of the centres of the feet (L, 3), m, at the configuration q (nq,)."""
        model, data = self.model, self.data
        pin.forwardKinematics(model, data, q)
        return np.array(
            [pin.updateFramePlacement(model, data, frame).translation for frame in self._frames]
        )

    def hips(self, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (L, 3), m, base axes, of each leg's second moved joint; largest distance (L,), m, of its foot.

        At actuated joints (na,), within the limits of the third; its axis and the second's are assumed parallel.
        """
        q = self.configuration(joints)
        feet, data = self.centers(q), self.data
        owner = {joint.idx_v: number for number, joint in enumerate(self.model.joints) if joint.nv}
        hips, reach = np.zeros((len(feet), 3)), np.zeros(len(feet))
        axes = pin.computeJointJacobians(self.model, data, q)[3:]
        for leg, columns in enumerate(self.robot.actuated[self.columns]):
            hip, knee = (data.oMi[owner[int(k)]].translation for k in columns[1:])
            axis, parts = axes[:, columns[2]], np.array([knee - hip, feet[leg] - knee])
            along = parts @ axis
            thigh, shank = parts - np.outer(along, axis)
            # Straight at this angle of the third joint, or at its limit next to it.
            straight = joints[self.columns[leg, 2]] - math.atan2(
                np.cross(thigh, shank) @ axis, thigh @ shank
            )
            bent = straight - min(max(straight, self.lower[leg, 2]), self.upper[leg, 2])
            sizes = np.linalg.norm(thigh), np.linalg.norm(shank)
            across = abs(sizes[0] + sizes[1] * np.exp(1j * bent))
            hips[leg], reach[leg] = hip, np.hypot(across, along.sum())
        return hips, reach

    def body(self, joints: np.ndarray) -> Body:
        """Response of the robot to normal forces at the feet, at actuated joints (na,)."""
        q, model, data = self.configuration(joints), self.model, self.data
        feet = self.centers(q)
        pin.ccrba(model, data, q, np.zeros(model.nv))
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        whole, arms = data.Ag.copy(), feet - data.com[0]
        height = -arms[:, 2].min()
        whole[3:] += height * np.array([-whole[1], whole[0], np.zeros(model.nv)])
        moved, lifting = whole[:, :5], np.empty((3, len(feet)))
        for leg, (frame, columns) in enumerate(zip(self._frames, self.columns)):
            own = self.robot.actuated[columns]
            jacobian = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
            by_foot = whole[:, own] @ np.linalg.pinv(jacobian[:, own])
            moved = moved - by_foot @ jacobian[:, :5]
            lifting[:, leg] = by_foot[2:5, 2]
        shares = np.minimum(FRICTION / np.abs(arms[:, :2]).max(axis=0), 1.0 / height)
        sideways = moved[:2] + [-shares[0] * moved[4], shares[1] * moved[3]]
        coupling = np.vstack([-np.linalg.solve(sideways[:, :2], sideways[:, 2:]), np.eye(3)])
        return Body(
            momentum=moved[2:5] @ coupling,
            lifting=lifting,
            levers=np.column_stack([np.ones(len(feet)), arms[:, 1], -arms[:, 0]]),
            weight=self.robot.weight,
            coupling=coupling,
        )

    def foot_speed(self, joints: np.ndarray) -> tuple[float, float]:
        """Speeds, m/s, relative to the base, that each foot can reach in every horizontal direction, and upwards.

        At actuated joints (na,), by the speed limits of the moved joints; infinite without limits.
        """
        q, model, data = self.configuration(joints), self.model, self.data
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        angles = np.arange(0.0, np.pi, np.pi / 8)
        ways = np.array([np.cos(angles), np.sin(angles), np.zeros_like(angles)])
        ways = np.column_stack([ways, [0.0, 0.0, 1.0]])
        slowest = np.full(len(ways.T), np.inf)
        for frame, columns in zip(self._frames, self.columns):
            jacobian = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
            rates = np.linalg.pinv(jacobian[:, self.robot.actuated[columns]]) @ ways
            shares = np.abs(rates) / self.robot.velocity_limits[columns, None]
            slowest = np.minimum(slowest, 1.0 / np.maximum(shares.max(axis=0), 1e-9))
        return float(slowest[:-1].min()), float(slowest[-1])

    def chains(self, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each leg as a product of exponentials, in base axes.

        Returns the screws (L, 3, 6) of the moved joints, linear part first, and the centres of the
        feet (L, 3), both where the moved joints are 0 and all others as in `joints` (na,).
        """
        zeroed = np.array(joints, dtype=float)
        zeroed[self.columns.ravel()] = 0.0
        q = self.configuration(zeroed)
        centers = self.centers(q)
        axes = pin.computeJointJacobians(self.model, self.data, q)
        screws = axes[:, self.robot.actuated[self.columns]].transpose(1, 2, 0)
        return np.ascontiguousarray(screws), centers

    def _moved_joints(self, foot: str, parent: int) -> list[int]:
        """The first three driven joints from the base to a foot; ConfigurationError where there are fewer."""
        actuated = {int(v): k for k, v in enumerate(self.robot.actuated)}
        chain = [
            actuated[self.model.joints[j].idx_v]
            for j in self.model.supports[parent]
            if j and self.model.joints[j].nv == 1 and self.model.joints[j].idx_v in actuated
        ]
        if len(chain) < 3:
            raise ConfigurationError(
                f"foot {foot!r} hangs on {len(chain)} actuated joints, needs at least 3"
            )
        return chain[:3]
