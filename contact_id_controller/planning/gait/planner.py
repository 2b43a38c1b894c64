"""Gait planner: from a state and a velocity command to joint, base and contact plans."""

from __future__ import annotations

import cmath
import dataclasses
import math
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, ContactIdError
from contact_id_controller.planning.gait.base_motion import (
    BaseMotion,
    BaseSamples,
    Fading,
    Sway,
    Tilt,
    Track,
)
from contact_id_controller.planning.gait.command import VelocityCommand, WaypointFollower
from contact_id_controller.planning.gait.foot_path import KINDS
from contact_id_controller.planning.gait.footsteps import Footsteps, LegLimits
from contact_id_controller.planning.gait.gaits import check_gait
from contact_id_controller.planning.gait.ground import Surface, make_ground, plane
from contact_id_controller.planning.gait.joint_motion import (
    UNREACHABLE_M,
    PlannedMotion,
    plan_joints,
    warm_up,
)
from contact_id_controller.planning.gait.knots import SWITCH_S, knots
from contact_id_controller.planning.gait.legs import Legs
from contact_id_controller.planning.gait.measurement import (
    Measured,
    check_state,
    measure,
    velocity,
)
from contact_id_controller.planning.gait.support_motion import SupportMotion, support_motion
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import (
    BaseTrajectory,
    ContactSchedule,
    JointTrajectory,
)
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.gait import (
    HORIZON_S,
    LEAD_TIME_S,
    MAX_YAW_RATE_RAD_S,
    TOUCH_LEAD_TIME_S,
    GaitSettings,
)

SLOW_M_S = 5e-3
"""Planned speed below which a base without command counts as stopped."""

REACH_SHARE = 0.97
"""Share of a leg's length used by the base's height on uneven ground; a straight leg is slow."""

LEAST_HEIGHT_SHARE = 0.5
"""Least base height above the feet, relative to the nominal one, to reach a foothold."""

STAND_TIME_S = 0.3
"""Duration of standing before the first step: one cycle, in which the plan fades to the measured posture."""

VELOCITY_TIME_CONSTANT_S = 0.15
"""Time constant with which planned base velocity approaches the commanded one: half a cycle of the paper's gait."""

MAX_YAW_ACCELERATION_RAD_S2 = 4.0
"""Largest planned yaw acceleration: reaches the default largest yaw rate within a fifth of a second."""

GROUND_TIME_CONSTANT_S = 0.1
"""Time constant with which height, roll and pitch of the base follow the feet; docs/walking.md."""

DEFICIT_TIME_CONSTANT_S = 1.0
"""Averaging time of the deficit of speed along the command: some cycles of a gait."""

LARGEST_DEFICIT = 0.1
"""Largest share of the commanded speed that is added to it."""

RESTART_DISTANCE_M, RESTART_FOOT_M, RESTART_TURN_RAD = 0.2, 0.1, 1.0
"""Distance of a base and of a stance foot from the plan, and turn of a base, above which the robot was carried or its
odometry jumped: the planner restarts in stance. A pushed base comes up to the first between two steps."""

GRID_S = 0.02
"""Time between two points of a plan: cubic interpolation between them is within .5 mrad of finer ones."""


class GaitPlanner:
    """Plan walking of a robot whose legs have at least three joints.

    Each call of `plan` continues the last plan: it begins with that one's positions and velocities
    and fades to the measured positions of base and feet in stance.

    Args:
        robot: the model; joint plans are in the order of its `joint_names`.
        settings: of the gait.
        surface: height map of the ground (`geometry.HeightField`), with setting ground `map`.

    Raises:
        ConfigurationError: settings that do not fit the robot or the map.
        UnknownFrameError: a foot frame that the robot lacks.
    """

    lead_s = LEAD_TIME_S
    """By which the last plan begins after its state; others may follow after `LEAD_TIME_S`."""

    parts = ("contacts", "base", "joints")
    """Of its plans, the one that is waited for last."""

    def __init__(self, robot: RobotModel, settings: GaitSettings, surface: Surface | None = None):
        settings.check_together()
        self.robot = robot
        self.settings = settings
        self._ground = make_ground(settings, surface)
        self._legs = Legs(robot, settings.feet)
        self.rolling_radius_m = settings.foot_radius_m
        """Radius on which standing feet roll in a plan; 0: the centres of the spheres are at rest."""
        self._follower = WaypointFollower(
            settings.waypoints(),
            settings.speed_m_s,
            settings.heading,
            MAX_YAW_RATE_RAD_S,
        )
        self._velocity: VelocityCommand | None = None
        # None until the first plan, before which nothing but `is None` reads them.
        self._footsteps: Footsteps = None  # type: ignore[assignment]
        self._base: BaseMotion = None  # type: ignore[assignment]
        self._motion: PlannedMotion = None  # type: ignore[assignment]
        self._gait = settings.gait
        self._epoch_s = 0.0
        self._support_motion: SupportMotion | None = None
        self._deficit = 0.0
        self._stand_until_s = 0.0
        self._last: Plan | None = None
        warm_up(self._legs)
        if settings.posture:
            self._take_posture(np.array(settings.posture))

    def set_velocity(
        self, linear: Any = (0.0, 0.0), yaw_rate: float = 0.0, frame: str = "base"
    ) -> None:
        """Set the velocity command, which holds until the next call.

        linear (2,): x, y, m/s, in the `base` or `world` ``frame``; yaw_rate: rad/s.

        Raises:
            ConfigurationError: a frame of another name, or numbers that are not finite.
        """
        self._velocity = VelocityCommand.of(linear, yaw_rate, frame)

    def set_gait(self, name: str) -> None:
        """Change to a gait of ``gaits.PHASES``, or ``phases``: that of `touchdown_phases`.

        While walking the change takes place when all swinging feet have landed.

        Raises:
            ConfigurationError: no such gait.
        """
        check_gait(name)
        self._gait = name
        if self._footsteps is not None:
            self._footsteps.take_gait(name)

    def reset(self) -> None:
        """Forget the last plan: the next one begins in stance, without given `posture` in that of its state."""
        self._last = None
        if not self.settings.posture:
            self._footsteps = None  # type: ignore[assignment]

    def is_due(
        self, time_s: float, q: np.ndarray, v: np.ndarray, contact: np.ndarray | None
    ) -> bool:
        """Whether the next plan is due at once: base or feet are not where the last plan has them.

        The base is pushed (`Footsteps.is_pushed`), or a foot has met the ground elsewhere (`Footsteps.has_met`).

        contact: (L,) bool, which feet touch the ground; None: not known.
        """
        if self._last is None:
            return False
        now_s = time_s - self._epoch_s
        slip = velocity(q, v) - self._base.swayed(now_s)[1] - self._base.velocity(now_s)
        if self._is_pushed(now_s, slip):
            return True
        if contact is None or not np.any(self._footsteps.descending(now_s) & contact):
            return False  # without the kinematics of the legs, which most looks do not need
        return self._footsteps.has_met(now_s, measure(self._legs, q, v, contact))

    def plan(
        self, time_s: float, q: np.ndarray, v: np.ndarray, contact: np.ndarray | None = None
    ) -> Plan:
        """Plan from the state (time_s, q, v) on; the plan starts ``lead_s`` after it.

        contact: (L,) bool, which feet touch the ground; None: a foot is in contact while it is planned to be.

        Raises:
            StateError: a state of wrong size or not finite.
            TrajectoryError: the plan is not finite, as after a state or command of huge numbers; the next one
                begins in stance.
        """
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        check_state(self.robot, len(self._legs.columns), time_s, q, v, contact)
        measured = measure(self._legs, q, v, contact)
        try:
            return self._continue(time_s, q, measured)
        except ContactIdError:
            self._last = None  # what was planned so far may hold the same numbers
            raise

    def _continue(self, time_s: float, q: np.ndarray, measured: Measured) -> Plan:
        """Continue the last plan, or begin a new one if there is none or the robot is too far from it."""
        now_s = time_s - self._epoch_s
        restarted = self._last is None or self._is_lost(now_s, self._without_sway(now_s, measured))
        if restarted:
            self._begin(time_s, q, measured)
        now_s = time_s - self._epoch_s
        measured = self._without_sway(now_s, measured)
        self.lead_s = TOUCH_LEAD_TIME_S if self._footsteps.has_met(now_s, measured) else LEAD_TIME_S
        start_s = now_s + self.lead_s
        end_s = start_s + HORIZON_S
        command = self._command(start_s, measured)
        slip = measured.velocity - self._base.velocity(now_s)
        pushed, feedback_s = self._is_pushed(now_s, slip), self.settings.footstep_feedback_s
        if pushed:
            feedback_s = max(feedback_s, self._footsteps.capture_s)
        last = self._base
        wanted = self._with_deficit(command, slip, start_s)
        self._base = self._continue_base(now_s, start_s, measured, wanted)
        moves = command.moves or pushed or abs(self._base.velocity(start_s)) > SLOW_M_S
        # A foot out of reach cannot stand: step home, without any command.
        moves = moves or (bool(self._far_legs()) and start_s >= self._stand_until_s)
        if pushed:
            self._footsteps.hurry(start_s)
        self._footsteps.run_clock(start_s, moves, self._base)
        self._footsteps.extend(
            now_s,
            start_s,
            end_s,
            self._base,
            measured,
            self._planned_centers(now_s),
            self._planned_centers(start_s),
            feedback_s * slip,
        )
        self._base = dataclasses.replace(
            self._base,
            tilt=self._continue_tilt(last, start_s, measured),
            sway=self._continue_sway(last.sway, start_s),
        )
        samples = self._solve(start_s)
        self._last = self._output(time_s + self.lead_s, samples, restarted)
        return self._last

    def _take_posture(self, posture: np.ndarray) -> None:
        """Derive base height, nominal footholds and reach of the legs from a standing posture (na,), rad."""
        if posture.shape != (self.robot.na,):
            raise ConfigurationError(
                f"parameter 'posture' has {posture.size} values, must have one for each of the "
                f"{self.robot.na} joints"
            )
        settings = self.settings
        self._posture = posture
        q = self._legs.configuration(posture)
        centers = self._legs.centers(q)
        above_m = settings.foot_radius_m - float(centers[:, 2].mean())
        self._height_m = settings.ground_height_m + above_m
        self._above_feet_m = above_m - settings.foot_radius_m
        self._hips, self._reach_m = self._legs.hips(posture)
        self._body, self._support_motion = self._legs.body(posture), None
        beside = centers - self._hips
        self._beside_m = np.linalg.norm(beside[:, :2], axis=1)
        reach = np.sqrt(np.maximum((REACH_SHARE * self._reach_m) ** 2 - beside[:, 2] ** 2, 0.0))
        hips = beside[:, 0] + 1j * beside[:, 1]
        limits = LegLimits(*self._legs.foot_speed(posture), hips, reach, -beside[:, 2])
        self._footsteps = Footsteps(settings, self._ground, centers, 2.0 * SWITCH_S, limits)
        self._footsteps.take_gait(self._gait)

    def _without_sway(self, now_s: float, measured: Measured) -> Measured:
        """``measured`` with base position and velocity less the planned horizontal sway at ``now_s``."""
        place, rate = self._base.swayed(now_s)
        return dataclasses.replace(
            measured, position=measured.position - place, velocity=measured.velocity - rate
        )

    def _is_pushed(self, now_s: float, slip: complex) -> bool:
        """Whether ``slip``, m/s, world, is a push: of the measured base velocity from that of the plan at ``now_s``."""
        return self._footsteps.is_pushed(slip * cmath.exp(-1j * self._base.pose(now_s)[1]))

    def _is_lost(self, now_s: float, measured: Measured) -> bool:
        """Whether the time is outside the last plan, or base or feet in stance are too far from it to continue."""
        if now_s < self._base.start_s - LEAD_TIME_S:
            return True
        if now_s > self._motion.times_s[-1]:
            return True
        position, yaw = self._base.pose(now_s)
        if abs(measured.position - position) > RESTART_DISTANCE_M:
            return True
        if abs(_turn(measured.yaw - yaw)) > RESTART_TURN_RAD:
            return True
        slips = np.linalg.norm((measured.centers - self._planned_centers(now_s))[:, :2], axis=1)
        return bool(np.any(slips[self._footsteps.standing(now_s)] > RESTART_FOOT_M))

    def _begin(self, time_s: float, q: np.ndarray, measured: Measured) -> None:
        """Start from standing where the robot is; called before the first step."""
        settings = self.settings
        joints = self.robot.joints_of(np.asarray(q, dtype=float))
        if self._footsteps is None:
            self._take_posture(joints)
        self._epoch_s = time_s
        self._stand_until_s = LEAD_TIME_S + STAND_TIME_S
        self._footsteps.begin(LEAD_TIME_S, measured.centers, measured.contact)
        slow, fade = VELOCITY_TIME_CONSTANT_S, settings.tracking_time_constant_s
        nominal = self._nominal_tilt(measured.yaw, 0.0)

        def rest(value: Any) -> Track:
            return Track(value, 0.0, 0.0, 0.0, slow, Fading(0.0, 0.0, fade))

        offset = Fading(measured.tilt - nominal, np.zeros(3), self._tilt_fade_s())
        tilt = Tilt(nominal, offset)
        sway = Sway.none(LEAD_TIME_S, fade)
        self._base = BaseMotion(
            LEAD_TIME_S, rest(measured.position), rest(measured.yaw), tilt, sway
        )
        self._motion = None  # type: ignore[assignment]
        self._deficit = 0.0
        self._first_joints, self._first_centers = joints, measured.centers

    def _command(self, start_s: float, measured: Measured) -> VelocityCommand:
        """Commanded velocity, world frame: that of `set_velocity`, otherwise of the waypoints.

        Zero for the first STAND_TIME_S. A command in the base frame is turned by the planned heading at ``start_s``.
        """
        command = self._follower.command(measured.position, measured.yaw)
        if self._velocity is not None:
            command = self._velocity
            if command.turns:
                heading = cmath.exp(1j * self._base.pose(start_s)[1])
                command = dataclasses.replace(command, velocity=command.velocity * heading)
        return VelocityCommand() if start_s < self._stand_until_s else command

    def _with_deficit(
        self, command: VelocityCommand, slip: complex, start_s: float
    ) -> VelocityCommand:
        """Raise the commanded speed by the low-pass filtered deficit of the measured speed; bounded by LARGEST_DEFICIT.

        slip: measured minus planned base velocity, complex, m/s, world.
        """
        speed = abs(command.velocity)
        if speed == 0.0:
            self._deficit = 0.0
            return command
        along = float(np.real(slip * np.conj(command.velocity))) / speed
        share = min((start_s - self._base.start_s) / DEFICIT_TIME_CONSTANT_S, 1.0)
        deficit, most = self._deficit - share * (along + self._deficit), LARGEST_DEFICIT * speed
        self._deficit = min(max(deficit, -most), most)
        faster = command.velocity * (1.0 + self._deficit / speed)
        return dataclasses.replace(command, velocity=faster)

    def _continue_base(
        self, now_s: float, start_s: float, measured: Any, command: Any
    ) -> BaseMotion:
        """Plan the base from its position and velocity in the last plan at `start_s`."""
        settings, last = self.settings, self._base
        s, fade_s = start_s - last.start_s, self._footsteps.tracking_s
        position, yaw = last.pose(now_s)
        turn = _turn(measured.yaw - yaw)
        planar = last.planar.continued(
            s,
            measured.position - position,
            command.velocity,
            command.yaw_rate if command.turns else 0.0,
            settings.max_acceleration_m_s2 * VELOCITY_TIME_CONSTANT_S,
            fade_s,
        )
        turning = last.yaw.continued(
            s,
            turn,
            command.yaw_rate,
            0.0,
            MAX_YAW_ACCELERATION_RAD_S2 * VELOCITY_TIME_CONSTANT_S,
            fade_s,
        )
        return BaseMotion(start_s, planar, turning, last.tilt, last.sway)

    def _nominal_tilt(self, yaw: float, speed_m_s: float) -> np.ndarray:
        """Base height (m), roll and pitch (rad), (3,): above level ground, or above the plane of the footholds.

        Low enough for the legs to reach all planned footholds throughout their stances.
        """
        if not self._ground.follows:
            return np.array([self._height_m, 0.0, 0.0])
        height, slope_x, slope_y = plane(self._footsteps.places(), yaw)
        lean = [math.atan(slope_y * math.cos(math.atan(slope_x))), -math.atan(slope_x)]
        up = [-math.sin(lean[1]), *(math.cos(lean[1]) * f(lean[0]) for f in (math.sin, math.cos))]
        out = self._beside_m + 0.5 * self._footsteps.stance_s * speed_m_s
        below = np.sqrt(np.maximum((REACH_SHARE * self._reach_m) ** 2 - out**2, 0.0))
        within_reach = np.min(self._footsteps.lowest() + below - self._hips @ up)
        above = np.clip(
            within_reach - height, LEAST_HEIGHT_SHARE * self._above_feet_m, self._above_feet_m
        )
        return np.array([height + above, *lean])

    def _tilt_fade_s(self) -> float:
        if self._ground.follows:
            return GROUND_TIME_CONSTANT_S
        return self.settings.tracking_time_constant_s

    def _continue_tilt(self, before: BaseMotion, start_s: float, measured: Measured) -> Tilt:
        """Fade height, roll and pitch from their planned values at `start_s` to the nominal ones."""
        nominal = self._nominal_tilt(self._base.pose(start_s)[1], abs(self._base.velocity(start_s)))
        values, rates, _ = before.tilt.at(start_s - before.start_s)
        return Tilt(nominal, Fading(values - nominal, rates, self._tilt_fade_s()))

    def _continue_sway(self, before: Sway, start_s: float) -> Sway:
        """Fade to the sway of the current gait from the planned sway at `start_s`."""
        clock, settings = self._footsteps.clock, self.settings
        if clock is None:
            return before.continued(start_s, None, start_s)
        if self._support_motion is None or self._support_motion.gait != clock.gait:
            self._support_motion = support_motion(
                self._body, clock.gait, settings.step_height_m, KINDS[settings.swing_profile]
            )
        return before.continued(start_s, self._support_motion, clock.start_s)

    def _planned_centers(self, t_s: float) -> np.ndarray:
        """Centres of the feet (L, 3), m, world, in the last plan."""
        return self._first_centers if self._motion is None else self._motion.centers(t_s)

    def _solve(self, start_s: float) -> BaseSamples:
        """Solve the plan's joints into `_motion`; returns the base motion at the knots."""
        guess = self._first_joints.copy()
        if self._motion is not None:
            assert self._last is not None and self._last.joints is not None
            guess = self._last.joints.sample(start_s + self._epoch_s).position
        # A stretched leg may have bent the wrong way.
        columns = self._legs.columns[self._far_legs()]
        guess[columns] = self._posture[columns]
        switches, middles = self._footsteps.switches()
        times, pick = knots(start_s, HORIZON_S, GRID_S, switches, middles)
        samples = self._base.sample(times, pick)
        self._motion = plan_joints(
            self._legs,
            self._footsteps.paths,
            samples,
            times,
            pick,
            guess,
            self.rolling_radius_m,
        )
        return samples

    def _far_legs(self) -> list[int]:
        """Indices of the legs whose feet were out of reach in the last plan."""
        if self._motion is None:
            return []
        return np.flatnonzero(self._motion.residual_m > UNREACHABLE_M).tolist()

    def _output(self, start_s: float, base: BaseSamples, restarted: bool) -> Plan:
        """Collect joints, base and contact schedule into a plan that begins at ``start_s``."""
        motion = self._motion
        times = motion.times_s - motion.times_s[0]
        return Plan(
            JointTrajectory(
                self.robot.joint_names,
                times,
                motion.position,
                motion.velocity,
                motion.acceleration,
                start_s,
                allow_moving_end=True,
            ),
            BaseTrajectory(
                times,
                base.position,
                base.quaternion,
                base.velocity,
                base.spin,
                start_s,
            ),
            ContactSchedule(self.settings.feet, times, motion.stance, start_s),
            walking=self._footsteps.clock is not None,
            restarted=restarted,
            unreachable=tuple(self.settings.feet[leg] for leg in self._far_legs()),
            points_reached=self._follower.reached,
        )


def _turn(angle: float) -> float:
    """Wrap an angle to within pi of 0, rad."""
    return math.remainder(angle, 2.0 * math.pi)
