"""Commanded acceleration from goals of the whole body (`plans.goals`).

The centre of mass c tracks the planned divergent component xi = c + c'/w by its centre of pressure,

    p = nearest in the hull of the contacts to  p_plan + (1 + k / w) (xi - xi_plan),     c'' = (g + c_z'') / h (c - p)

swing feet track their paths, hands and other frames theirs, the base its heading and the joints a posture: weighted
tasks, with feet in stance as constraints, as in `balance`, whose rows these are. A foot that is to land is not
constrained before it touches: it continues its path. If it touches while its path allows landing, it is in stance at
once.

Source: Englsberger et al., Three-dimensional bipedal walking control based on divergent component of motion
(T-RO 2015), eqs. 26 and 32, for the centre of pressure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pinocchio as pin

from contact_id_controller.control.balance import (
    SUPPORT_MARGIN,
    TORSO_WEIGHT,
    Bearing,
)
from contact_id_controller.control.balance_kernels import (
    TASK_COMPLIANCE,
    balanced_acceleration,
)
from contact_id_controller.control.course import Course
from contact_id_controller.control.period import Period
from contact_id_controller.control.tasks_kernels import (
    aim_feet,
    bound_free_joints,
    catch_touches,
    com_acceleration,
    wanted_motion,
)
from contact_id_controller.geometry import FeetOnGround
from contact_id_controller.plans.goals import FrameGoal, Sample, TaskGoals
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

DIVERGENCE_GAIN = 2.0
"""Rate, 1/s, at which the divergent component returns to its plan, in addition to compensating its growth."""

HEIGHT_GAINS = (100.0, 20.0)
"""Acceleration per error of the height of the centre of mass, 1/s^2, and of its speed, 1/s: critically damped."""

FOOT_GAINS = (900.0, 60.0, np.inf, TASK_COMPLIANCE)
"""Of a swing foot along its path: acceleration per error, 1/s^2, and its rate, 1/s, within a tenth of a second, a
fifth of a swing; largest error that counts, m and rad; compliance."""

FRAME_GAINS = (100.0, 20.0, 0.2, 10.0)
"""The same of a hand or another frame: it comes at 1 m/s (rad/s) at most from where it is. It weighs a tenth of the
torso's rotation and a hundredth of the centre of mass, which a hand .7 m out of reach moves by 2 cm (TALOS)."""

LEG_STIFFNESS, OTHER_STIFFNESS = 40.0, 200.0
"""Stiffness of the posture, 1/s^2, unless the goals have one: joints of legs move as feet and base require."""

SPIN_WEIGHT = 0.2
"""As that of `balance`; the next step stops the rotation. Of 16 pushes TALOS and G1 held 7 and 12 with 1, 11 and 15
with this (docs/pushes.md)."""

POINT_SPIN_WEIGHT = 30.0
"""The same with point feet: over one of them the centre of mass falls as a pendulum with any command, and steps
correct it; nothing else corrects rotation."""

POSTURE_WEIGHT = 1e-3
"""Weight of each joint relative to the torso's rotation, 1. The parameter ``joint_weight`` is for planned legs."""


LED_WEIGHT = 1e-5
"""The same of joints that move a hand or another frame with a goal: with that of other joints the hand of TALOS stayed
6 cm short of .44 m."""

TORQUE_SHARE, ENDS_COMPLIANCE = 0.9, 1.0
"""Of joints that no foot hangs on: share of the largest torque that tasks may require, or what holds their weight, if
that is more (the rest is for what tasks and contact forces differ by); compliance of the stop before their ends."""


class Tasks:
    """Accelerations of one robot by the module's law. Not thread-safe.

    Args:
        robot: with a floating base.  feet: its contacts.  settings: gains, weights, time constants.

    Attributes:
        sample: the goals at the last time.  limited: the ground could not give the required wrench.
        pressure (2,): desired centre of pressure, m, world.  com (2, 3): measured position and velocity.
        others: names of the robot's frames that are no feet, which goals may lead.
    """

    def __init__(self, robot: RobotModel, feet: FeetOnGround, settings: ControllerSettings) -> None:
        self._robot, self._feet, self._settings = robot, feet, settings
        model = robot.model
        self._measured = model.createData()
        frames = list(dict.fromkeys(foot.frame for foot in feet.feet))
        self._feet_frames = [model.frames[robot.frame_id(frame)] for frame in frames]
        self.others = tuple(
            frame.name for frame in model.frames if frame.parentJoint and frame.name not in frames
        )
        count = np.bincount(feet.foot)
        self._flat = count > 1
        centers = np.array([foot.center for foot in feet.feet], dtype=float)
        radii = np.array([foot.radius_m for foot in feet.feet], dtype=float)
        middles = [np.bincount(feet.foot, axis) / count for axis in centers.T]
        self._centers = np.ascontiguousarray(np.stack(middles, axis=1))
        self._radii = np.bincount(feet.foot, radii) / count
        self._bearing = Bearing(robot, feet, settings)
        self._gains = DIVERGENCE_GAIN, *HEIGHT_GAINS
        self._goal, self._metric = np.zeros(3), np.eye(2)
        self._spin_weight = SPIN_WEIGHT if self._flat.any() else POINT_SPIN_WEIGHT
        self._landing = np.zeros(len(feet), dtype=bool)
        self._lasts = False
        self._lead({})
        legs = robot.supports[self._links][:, robot.actuated].any(axis=0)
        self._stiffness = np.where(legs, LEG_STIFFNESS, OTHER_STIFFNESS)
        self._free, many = np.flatnonzero(~legs), 2 * np.count_nonzero(~legs)
        compliance = np.repeat([0.0, ENDS_COMPLIANCE], many // 2)
        self._bounds = np.zeros((many, robot.nv)), np.zeros(many), np.zeros(many), compliance
        self.com, self.pressure, self.limited = np.zeros((2, 3)), np.zeros(2), False

    def _lead(self, goals: Mapping[str, FrameGoal]) -> None:
        """Make room for the feet and these other frames: their links, gains, poses, motions and constant goals."""
        robot, feet = self._robot, len(self._feet_frames)
        others = [robot.model.frames[robot.frame_id(name)] for name in goals]
        count = feet + len(others)
        self._others = goals
        self._frames = self._feet_frames + others
        self._links = np.array([frame.parentJoint for frame in self._frames], dtype=np.int64)
        self._frame_gains = np.array([FOOT_GAINS] * feet + [FRAME_GAINS] * len(others))
        self._poses = np.zeros((2, count, 4, 3))  # planned, measured: origin, rotation
        self._motions = np.zeros((2, count, 6))  # planned velocity, acceleration
        self._placed, self._turned = np.zeros((2, count), dtype=bool)
        for k, goal in enumerate(goals.values(), feet):
            self._placed[k] = goal.path is not None
            if goal.rotation is not None:
                self._turned[k] = True
                self._poses[0, k, 1:] = pin.Quaternion(np.asarray(goal.rotation)).matrix()
        self._weights = np.full(robot.nv, POSTURE_WEIGHT)
        self._weights[robot.supports[self._links[feet:]].any(axis=0)] = LED_WEIGHT
        self._weights[:3], self._weights[3:6] = POSTURE_WEIGHT, TORSO_WEIGHT
        self.sample = Sample.of(count)

    def places_of(self, frames: Iterable[str], q: np.ndarray) -> list[np.ndarray]:
        """Origins, (3,) m each, world, of frames in configuration q (nq,)."""
        model, data = self._robot.model, self._measured
        pin.forwardKinematics(model, data, q)
        return [
            pin.updateFramePlacement(model, data, self._robot.frame_id(name)).translation.copy()
            for name in frames
        ]

    def look(self, time_s: float, goals: TaskGoals, course: Course, period: Period) -> None:
        """Sample the goals at ``time_s``, s, into ``sample``; a foot that may land and touches is planned in contact.

        After the end of the goals every foot may land and is planned in contact.

        Args:
            goals: in the robot's order.  course: stores which feet landed early.
            period: with feet and plan of this time; its ``planned`` is changed.
        """
        if goals.frames is not self._others and (goals.frames or self._others):
            self._lead(goals.frames)
        self._lasts = goals.fill(time_s, self.sample)
        may_land = self.sample.may_land[: len(self._feet_frames)]
        if not self._lasts:
            may_land[:] = period.planned[:] = True
        by_measurement = bool(self._settings.measured)
        sources = by_measurement, period.settings.estimates
        catch_touches(self._feet.foot, may_land, sources, period, course.caught)

    def errors(self, goals: TaskGoals, period: Period) -> tuple[float, int, float]:
        """Tracking errors of the goals at the last state, which joint errors do not show, as the posture may yield.

        Largest distance, m, of a swing foot or another frame from its path, the index of that frame, feet first, and
        the height error of the centre of mass above the feet in stance, m (positive: too low).
        """
        poses, feet, standing, low = self._poses, self._feet, period.touching, 0.0
        away = np.linalg.norm(poses[0, :, 0] - poses[1, :, 0], axis=1) * self._placed
        ground = np.full(len(self._feet_frames), np.inf)
        np.minimum.at(ground, feet.foot[standing], feet.points[standing, 2])
        if standing.any():
            low = self.sample.height[0] + float(ground[ground < np.inf].mean() - self.com[0, 2])
        return float(away.max()), int(away.argmax()), low

    def words(self, k: int) -> str:
        """Name of a frame that is led, feet first, after what it is."""
        return f"{'foot' if k < len(self._feet_frames) else 'frame'} {self._frames[k].name}"

    def acceleration(self, goals: TaskGoals, period: Period) -> None:
        """Write the acceleration (nv,) for the goals last sampled into the period's."""
        robot, feet, settings, sample = self._robot, self._feet, self._settings, self.sample
        model, data, v, standing = robot.model, self._measured, period.v, period.touching
        pin.dccrba(model, data, period.q, v)
        centroidal, centroidal_rate = data.Ag, data.dAg
        self.com[0], self.com[1] = data.com[0], centroidal[:3] @ v / robot.mass
        share, bearing = 1.0 - SUPPORT_MARGIN, self._bearing.now()
        self.pressure[:] = com_acceleration(
            (sample.com, goals.com.rate, sample.height),
            self.com,
            self._gains,
            model.gravity.linear,
            (feet.points, standing, feet.foot, share),
            self._lasts,
            self._goal,
        )
        bound_free_joints(self._free, TORQUE_SHARE, period, self._bounds)
        stiffness = goals.posture.stiffness
        posture = np.asarray(goals.posture.positions)
        stiffness = self._stiffness if stiffness is None else np.asarray(stiffness)
        wanted_motion(sample.heading, posture, stiffness, period, period.wanted)
        aloft = self._placed[: len(self._feet_frames)]
        aloft[:] = sample.aloft[: len(aloft)] & self._lasts
        aloft &= np.bincount(feet.foot, standing) == 0.0
        np.logical_and(aloft, self._flat, out=self._turned[: len(aloft)])
        np.logical_and(period.landing, ~aloft[feet.foot], out=self._landing)
        for k in np.flatnonzero(self._placed | self._turned).tolist():
            place = robot.data.oMi[self._frames[k].parentJoint] * self._frames[k].placement
            self._poses[1, k, 0], self._poses[1, k, 1:] = place.translation, place.rotation
        aim_feet(sample.feet, aloft, self._centers, self._radii, self._poses[0], self._motions)
        self._aim_others()
        self.limited = balanced_acceleration(
            (robot.jacobian_view, v, robot.supports, robot.coordinate_joint),
            (feet.links, feet.points, feet.normals, standing, self._landing, period.closing),
            (
                settings.contact_time_constant_s,
                settings.touchdown_time_constant_s,
                float(settings.velocity_product_term),
            ),
            (
                self._placed,
                self._turned,
                self._links,
                self._poses,
                self._motions,
                self._frame_gains,
            ),
            (
                centroidal,
                centroidal_rate @ v,
                self.com[0],
                self._goal,
                robot.mass,
                model.gravity.linear,
            ),
            bearing,
            (share, self._spin_weight, self._metric),
            self._weights,
            self._bounds,
            period.wanted,
            period.acceleration,
        )

    def _aim_others(self) -> None:
        """Write the sampled places and motions of frames that are no feet."""
        first = len(self._feet_frames)
        if first < len(self._frames):
            points = self.sample.feet[first:, :, :3]
            self._poses[0, first:, 0] = points[:, 0]
            self._motions[:, first:, :3] = points[:, 1:].transpose(1, 0, 2)
