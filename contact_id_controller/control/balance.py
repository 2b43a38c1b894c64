"""Feedback of the centre of mass and of swing feet, within what the ground can give.

The commanded acceleration is the closest to the joints' and the torso's feedback at which feet in stance do not move,
and, as nearly as these allow,

    centre of mass   c'' = c_p'' + k_p (c_p - c) + k_d (c_p' - c')
    swing feet       likewise for their poses in the world, by the planned configuration

(subscript p: planned). It requires from the ground the wrench w = (c'' - g, k' / (m h)), k' the
rate of angular momentum about the centre of mass, h its height above the feet. Forces within
friction that press on the soles only give wrenches in a cone:

    w* = argmin |w - w*|^2 in weights (1, spin weight)      w* in cone{ (f, (p_i - c) x f / h) }

If w is not in it, the robot would tip over the edge of a sole; then w* is commanded instead, and
the torso yields: the centre of pressure moves to the edge, and the missing moment comes from angular
momentum (Pratt et al., "Capture point", Humanoids 2006; the hip strategy). The projection on the cone
is the remainder of that on its polar, a polyhedron in six dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from contact_id_controller.control.balance_kernels import (
    TASK_COMPLIANCE,
    balanced_acceleration,
    planned_motions,
)
from contact_id_controller.control.limits import joint_limits
from contact_id_controller.control.support_preview import Support, SupportPreview
from contact_id_controller.geometry import FeetOnGround
from contact_id_controller.geometry.legs import held_by_ankles
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.plans.base_trajectory import BaseReference
from contact_id_controller.plans.trajectories import Reference
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

TORSO_WEIGHT = 1.0
"""Weight of the base's rotation; that of its position is a joint's."""

COM_GAINS = (16.0, 8.0)
"""Acceleration per error of the centre of mass, 1/s^2, and of its velocity, 1/s: little more than g / height
and twice its root hold most (docs/pushes.md)."""

SWING_GAINS = (400.0, 40.0, math.inf, TASK_COMPLIANCE)
"""Acceleration per error of a swing foot's pose in the world, 1/s^2, and of its velocity, 1/s: critically
damped, and within a tenth of a swing; largest error that counts, and compliance."""

SUPPORT_MARGIN = 0.1
"""Margin of the centre of pressure, as a share of a sole's half lengths."""

SPIN_WEIGHT = 1.0
"""Cost of a missing rate of angular momentum, per mass and height of the centre of mass, relative to missing
acceleration: equal."""

LEAST_HEIGHT_M = 0.05
"""Least height of the centre of mass above its feet in the pendulum: a robot that lies is none."""

HIGH_FRICTION = 10.0
"""Finite coefficient for unbounded friction: the cone is nearly a half-space."""


def usable_friction(settings: ControllerSettings) -> np.ndarray:
    """Friction of the contacts (n,), unbounded coefficients replaced by a large finite one."""
    friction = np.asarray(settings.spread_over_contacts("friction_coefficient"), dtype=float)
    return np.where(friction >= UNBOUNDED_FRICTION, HIGH_FRICTION, friction)


class Bearing:
    """Support points and friction by which ``balanced_acceleration`` bounds wrenches.

    Corners of soles are moved towards the ankle to where its motors can hold the robot's weight: beyond, torques would
    be clipped after the solution, and the robot would not move as commanded.

    Args:
        robot: its ankles.  feet: its contacts.  settings: friction, largest torques.
    """

    def __init__(self, robot: RobotModel, feet: FeetOnGround, settings: ControllerSettings) -> None:
        self._feet, self._friction = feet, usable_friction(settings)
        shifts = held_by_ankles(robot, feet.feet, joint_limits(robot, settings).effort)
        self._shares: np.ndarray | None = None
        """(n, n): each place is an affine combination of the corners of its sole, wherever that is."""
        if shifts.any():
            model, self._shares = robot.model, np.eye(len(feet))
            for frame in {foot.frame for foot in feet.feet}:
                placement = model.frames[robot.frame_id(frame)].placement
                rows = [k for k, foot in enumerate(feet.feet) if foot.frame == frame]
                corners = [placement.act(np.array(feet.feet[k].center, dtype=float)) for k in rows]
                table = np.column_stack([corners, np.ones(len(rows))])
                moved = table + np.column_stack([shifts[rows], np.zeros(len(rows))])
                self._shares[np.ix_(rows, rows)] = moved @ np.linalg.pinv(table)
        self._places = np.empty((len(feet), 3))

    def now(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Foot index of each contact (n,), friction (n,), support point (n, 3) m, world frame."""
        feet, places = self._feet, self._feet.points
        if self._shares is not None:
            places = np.matmul(self._shares, places, out=self._places)
        return feet.foot, self._friction, places


class Balance:
    """Accelerations of one robot by the module's law. Not thread-safe.

    Args:
        robot: with a floating base.  feet: its contacts.  settings: gains, margin, time constants.
        ahead: function of a time, s: planned joints, base and stance (n,) then; None without a plan of the base.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: FeetOnGround,
        settings: ControllerSettings,
        ahead: Callable[[float], tuple[Reference, BaseReference, np.ndarray] | None],
    ):
        self._robot, self._feet, self._settings = robot, feet, settings
        model = robot.model
        self._planned, self._measured = model.createData(), model.createData()
        frames = list(dict.fromkeys(foot.frame for foot in feet.feet))
        self._frames = [model.frames[robot.frame_id(frame)] for frame in frames]
        self._links = np.array([frame.parentJoint for frame in self._frames], dtype=np.int64)
        self._flat = np.bincount(feet.foot) > 1
        self._poses = np.zeros((2, len(frames), 4, 3))  # planned, measured: origin, rotation
        self._motions = np.zeros((2, len(frames), 6))  # planned velocity, acceleration
        self._goal = np.zeros((3, robot.nv))  # planned v, a; one row of work
        self._configuration = robot.neutral()
        self._weights = np.full(robot.nv, settings.joint_weight)
        self._weights[3:6] = TORSO_WEIGHT
        self._unbounded = np.zeros((0, robot.nv)), np.zeros(0), np.zeros(0), np.zeros(0)
        self._bearing = Bearing(robot, feet, settings)
        self._com_gains = np.repeat(np.array(COM_GAINS)[:, None], 3, axis=1)
        self._swing_gains = np.tile(SWING_GAINS, (len(frames), 1))
        self._com = np.zeros((4, 3))
        self._ahead, self._contact_links = ahead, feet.links.tolist()
        self._offsets = [
            model.frames[robot.frame_id(foot.frame)].placement.act(
                np.array(foot.center, dtype=float)
            )
            for foot in feet.feet
        ]
        self.preview = SupportPreview(self._look)

    def acceleration(
        self,
        time_s: float,
        q: np.ndarray,
        v: np.ndarray,
        reference: Reference,
        base: BaseReference,
        wanted: np.ndarray,
        standing: np.ndarray,
        landing: np.ndarray,
        closing: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Write the acceleration (nv,), SI, by the module's law into ``out``.

        Args:
            time_s: of the state.  q, v: measured.
            reference, base: planned.
            wanted: (nv,) by the feedback of joints and torso.
            standing, landing: (n,) bool, contacts on the ground, and those planned there that approach it.
            closing: (n,) m/s, speed at which contacts are to close their gaps.
        """
        robot, feet, settings = self._robot, self._feet, self._settings
        model, data = robot.model, self._measured
        goal, gains = self._com, self._com_gains
        pin.dccrba(model, data, q, v)
        centroidal, centroidal_rate = data.Ag, data.dAg
        com, speed = data.com[0], centroidal[:3] @ v / robot.mass
        self.preview.advance(time_s)  # looks elsewhere: before this time is planned
        self._plan(reference, base)
        error = com - goal[0] + (speed - goal[1]) / self._rate(goal[0], feet.points[standing])
        metric = self.preview.metric(time_s, error[:2])
        goal[3] = goal[2] + gains[0] * (goal[0] - com) + gains[1] * (goal[1] - speed)
        aloft = np.bincount(feet.foot, standing | landing) == 0.0
        for k in np.flatnonzero(aloft).tolist():
            joint, placement = self._frames[k].parentJoint, self._frames[k].placement
            for pose, oMi in zip(
                self._poses[:, k], (self._planned.oMi, robot.data.oMi), strict=True
            ):
                place = oMi[joint] * placement
                pose[0], pose[1:] = place.translation, place.rotation
        if aloft.any():
            pin.computeJointJacobians(model, self._planned, self._configuration)
        tree = robot.jacobian_view, v, robot.supports, robot.coordinate_joint
        swing = (
            aloft,
            aloft & self._flat,
            self._links,
            self._poses,
            self._motions,
            self._swing_gains,
        )
        planned_motions((self._planned.J, self._goal[0], self._goal[1]), tree, swing)
        balanced_acceleration(
            tree,
            (feet.links, feet.points, feet.normals, standing, landing, closing),
            (
                settings.contact_time_constant_s,
                settings.touchdown_time_constant_s,
                float(settings.velocity_product_term),
            ),
            swing,
            (centroidal, centroidal_rate @ v, com, goal[3], robot.mass, model.gravity.linear),
            self._bearing.now(),
            (1.0 - SUPPORT_MARGIN, SPIN_WEIGHT, metric),
            self._weights,
            self._unbounded,
            wanted,
            out,
        )

    def _rate(self, com: np.ndarray, points: np.ndarray) -> float:
        """w, 1/s, of the pendulum with its CoM at ``com`` (3,) above ``points`` (m, 3), m."""
        gravity = float(np.linalg.norm(self._robot.model.gravity.linear))
        height = com[2] - points[:, 2].mean() if len(points) else com[2]
        return math.sqrt(gravity / max(height, LEAST_HEIGHT_M))

    def _look(self, time_s: float) -> Support | None:
        """Planned support at a time, for ``SupportPreview``; None without planned contacts."""
        planned = self._ahead(time_s)
        if planned is None or not planned[2].any():
            return None
        reference, base, stance = planned
        self._plan(reference, base)
        com, acceleration = self._com[0], self._com[2]
        oMi, feet = self._planned.oMi, self._feet
        points = np.array(
            [
                oMi[link].act(offset)
                for link, offset in zip(self._contact_links, self._offsets, strict=True)
            ]
        )
        count = np.bincount(feet.foot)
        middles = (
            np.stack([np.bincount(feet.foot, axis) for axis in points.T], axis=1) / count[:, None]
        )
        share = 1.0 - SUPPORT_MARGIN
        points = middles[feet.foot] + share * (points - middles[feet.foot])
        points = points[stance]
        rate = self._rate(com, points)
        scale = (com[2] - points[:, 2].mean()) / np.maximum(com[2] - points[:, 2], LEAST_HEIGHT_M)
        corners = (points[:, :2] - com[:2]) * scale[:, None] + acceleration[:2] / rate**2
        return Support(corners, rate)

    def _plan(self, reference: Reference, base: BaseReference) -> None:
        """Compute the planned configuration, velocity, acceleration, and the motion of its CoM, into workspace."""
        robot, q, (velocity, acceleration, _) = self._robot, self._configuration, self._goal
        robot.put_joints(q, reference.position)
        velocity[robot.actuated], acceleration[robot.actuated] = (
            reference.velocity,
            reference.acceleration,
        )
        q[:3], q[3:7] = base.position, base.quaternion_xyzw
        turn = pin.Quaternion(base.quaternion_xyzw).toRotationMatrix().T
        speed, spin = turn @ base.linear_velocity, turn @ base.angular_velocity
        velocity[:3], velocity[3:6] = speed, spin
        acceleration[:3] = turn @ base.linear_acceleration - np.cross(spin, speed)
        acceleration[3:6] = turn @ base.angular_acceleration
        data = self._planned
        pin.centerOfMass(robot.model, data, q, velocity, acceleration, False)
        self._com[0], self._com[1], self._com[2] = data.com[0], data.vcom[0], data.acom[0]
