"""From what IMU, encoders and motors say to contacts, ground forces and the base's pose and velocity.

    filters of one delay -> dynamics estimator -> contact -> base odometry

One step a period, without ROS: the node and the runs in one process drive the same object. What a sensor
says wrongly never raises; it is named in ``PipelineEstimate.faults`` and has a defined reaction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contact_id_controller.estimation.base_odometry import BaseOdometry
from contact_id_controller.estimation.checked import shaped
from contact_id_controller.estimation.contact_detector import ContactDetector
from contact_id_controller.estimation.dynamics_estimator import DynamicsEstimator
from contact_id_controller.estimation.filters import LowPass
from contact_id_controller.estimation.imu_checks import GREATEST
from contact_id_controller.estimation.pipeline_settings import PipelineSettings, WrenchSensor
from contact_id_controller.estimation.sensors import (
    Accelerometer,
    AngularAcceleration,
    Contact,
    ContactWrench,
    ForceTorque,
    JointAcceleration,
    JointEffort,
)
from contact_id_controller.estimation.stamps import StampFilter
from contact_id_controller.exceptions import (
    ConfigurationError,
    StateError,
    UnknownJointError,
    choices,
)
from contact_id_controller.robot import RobotModel
from contact_id_controller.state import RobotState

ACCELEROMETER, ANGULAR, JOINTS, EFFORTS = (
    "accelerometer",
    "angular_acceleration",
    "joint_acceleration",
    "joint_effort",
)
"""Names of the sensors in residuals and faults."""
WRENCH = "wrench/"
"""Before the name of a force/torque sensor there."""

SHORTEST_PERIODS, LONGEST_PERIODS = 0.2, 5.0
"""A difference over fewer or more periods is no acceleration: the filters begin anew. Fewer come from a
simulator that waits, and whose time hardly advances."""

WHITENING_LOOKS = 25
"""So many looks at residuals are weighed for the same posture, as long as none is suspicious: that costs
twenty times what a step does."""


class PipelineEstimate:
    """What one step found; valid until the next one.

    Attributes:
        time_s: stamp of the joints.
        odometry: ``BaseEstimate``: pose, velocity, covariance.
        dynamics: ``Estimate``: accelerations, efforts, wrenches.
        contact: (n_feet,) bool.
        forces: (n_feet, 3) N of the ground on the feet, base axes; NaN where they cannot be told.
        position, velocity: (na,) of the joints, in the robot's order; the last that were finite. Those
            that turn without end count on.
        residuals: sensor -> normalised residual, of the last look.
        faults: whatever is wrong, one sentence each; empty while all is well.
    """

    def __init__(self, robot: RobotModel, odometry, dynamics, feet: int):
        self.time_s, self.odometry, self.dynamics = 0.0, odometry, dynamics
        self.contact = np.ones(feet, dtype=bool)
        self.forces = np.full((feet, 3), np.nan)
        self.position, self.velocity = np.zeros(robot.na), np.zeros(robot.na)
        self.residuals: dict[str, float] = {}
        self.faults: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether pose and twist of the base may be used."""
        return self.odometry.ready

    @property
    def forces_known(self) -> bool:
        """Whether the ground's forces on all feet can be told."""
        return bool(np.isfinite(self.forces).all())

    @property
    def world_forces(self) -> np.ndarray:
        """(n_feet, 3) N, of the ground on the feet, in the axes of the odometry frame."""
        return self.forces @ self.odometry.rotation.T

    @property
    def state(self) -> RobotState:
        """State of the robot in the odometry frame, as a controller takes it."""
        return RobotState(
            self.time_s,
            self.odometry.configuration(self.position),
            self.odometry.generalised_velocity(self.velocity),
        )


class EstimationPipeline:
    """Everything that a legged robot with an IMU, encoders and joint efforts can tell of itself.

    Args:
        robot: with one floating base.
        feet: frames at the centres of the spherical feet, or over the soles of ``settings.soles``.
        radii: m, one or one a foot: how far below its frame each foot touches.

    Attributes:
        estimate: what the last step found.  estimator, base: the two parts.

    Raises:
        ConfigurationError, UnknownFrameError, UnknownJointError: see ``BaseOdometry``.
        UnobservableError: see ``DynamicsEstimator``.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: Sequence[str],
        radii: float | Sequence[float],
        settings: PipelineSettings | None = None,
    ):
        settings = PipelineSettings() if settings is None else settings
        self.robot, self.feet, self.settings = robot, tuple(feet), settings
        self.base = BaseOdometry(robot, feet, radii, settings.odometry)
        self.estimator = self._make_estimator(np.broadcast_to(radii, len(self.feet)))
        slices = self.estimator.slices
        # Signals in one vector, in the order in which the estimator measures; then q, v and w.
        self._parts = [slices[name] for name in (ACCELEROMETER, ANGULAR, JOINTS, EFFORTS)]
        self._wrench_parts = [slices[WRENCH + sensor.name] for sensor in settings.wrench_sensors]
        self._measured = sum(part.stop - part.start for part in slices.values())
        n = robot.na
        self._signals = np.zeros(self._measured + 2 * n + 3)
        at = self._measured
        self._joint_parts = slice(at, at + n), slice(at + n, at + 2 * n), slice(at + 2 * n, None)
        self._low_pass = LowPass(len(self._signals), settings.cutoff_hz, settings.period_s)
        self._lost, self._judged = np.zeros(len(self._signals), dtype=bool), True
        self._smooth = self._signals
        self._q, self._v = robot.neutral(), np.zeros(robot.nv)
        self._before = np.zeros(3 + n)
        axes = self.estimator.mechanism.frame(self._imu_frame())[1]
        self._axes = np.ascontiguousarray(axes)
        self.estimate = PipelineEstimate(
            robot, self.base.estimate, self.estimator.latest, len(self.feet)
        )
        self.start()

    def start(self, position=None, yaw: float = 0.0) -> None:
        """Begin anew, standing still; see ``BaseOdometry.start``."""
        self.base.start(position, yaw)
        self._begin_filters()
        self._time_s: float | None = None
        self._stamps = StampFilter()
        self._look_s, self._suspects, self._look_due = 0.0, frozenset(), False
        self._whitening, self._whitening_looks = None, 0
        self._lying: tuple[str, ...] = ()
        self._trouble: tuple[str, ...] = ()
        self.detector = ContactDetector(len(self.feet))
        self.detector.debounce_s = self.settings.contact_debounce_s
        self._told = self._sure = np.ones(len(self.feet), dtype=bool)
        estimate = self.estimate
        estimate.contact[:], estimate.forces[:] = True, np.nan
        estimate.residuals, estimate.faults = {}, ()

    def follow_clock(self) -> None:
        """The next stamp may be any: the caller has seen that the clock was set, or that a gap is over."""
        self._stamps.begin()

    def step(
        self,
        time_s: float,
        gyro,
        accel,
        position,
        velocity,
        effort,
        *,
        wrenches=(),
        imu_time_s: float | None = None,
        planned=None,
        look: bool = True,
    ) -> PipelineEstimate:
        """One period on.

        Args:
            time_s: stamp of the joints.  imu_time_s: of the IMU; None: the same.
            gyro, accel: (3,) rad/s and m/s2 (gravity inside) in the IMU's axes; None: it was silent.
            position, velocity, effort: (na,) of the joints, in the robot's order; efforts are those
                over the period that ends here, not a number where none was measured.
            wrenches: (sensors, 6) N, N m of ``settings.wrench_sensors`` over that period; not a number
                where one was silent.
            planned: (n_feet,) bool, which feet stand by the plan: those it lifts are not used by the
                odometry, and it stands in where forces cannot be told; None: not known.
            look: look at the residuals when it is time, which takes much longer than all else. False: the
                caller does so with ``look``, when what was found is on its way.

        A single stamp that does not follow the one before is ignored, with all that came with it: the estimate
        stays that of ``estimate.time_s``.

        Raises:
            StateError: wrong shapes.
        """
        estimate, base = self.estimate, self.base
        if not self._stamps.accepts(float(time_s)):
            ignored = (
                f"a stamp {float(time_s) - estimate.time_s:+.3f} s from the last one is ignored"
            )
            estimate.faults = (ignored, *self._trouble, *self._lying)
            return estimate
        effort = shaped("effort", effort, self.robot.na)
        wrenches = shaped("wrenches", np.ravel(wrenches), 6 * len(self._wrench_parts))
        dt = self.settings.period_s if self._time_s is None else float(time_s) - self._time_s
        self._time_s = estimate.time_s = float(time_s)
        base.take(dt, gyro, accel, position, velocity)
        if base.joints_finite:
            # What is filtered must not begin anew at a whole turn, as a driver may.
            estimate.position[:] = self.robot.nearest(position, estimate.position)
            estimate.velocity[:] = velocity
        trouble = self._find_forces(dt, effort, wrenches)
        self._find_contact(time_s, planned)
        skew = 0.0 if imu_time_s is None else float(time_s) - float(imu_time_s)
        base.advance(self._feet_that_stay(planned), skew)
        self._trouble = *base.estimate.reasons, *trouble
        estimate.faults = *self._trouble, *self._lying
        if look:
            self.look()
        return estimate

    # Forces

    def _find_forces(self, dt, effort, wrenches) -> list[str]:
        """Ground forces of this period; what is wrong, in words."""
        estimate = self.estimate
        trouble = self._take(effort, wrenches)
        silent = self.base.imu_bad_s > self.settings.odometry.imu_timeout_s
        periods = dt / self.settings.period_s
        steady = SHORTEST_PERIODS < periods < LONGEST_PERIODS
        if silent or not (self.base.joints_finite and steady):
            self._begin_filters()
            estimate.forces[:] = np.nan
            return trouble
        signals = self._filtered(dt)
        if signals is None:
            return trouble
        at, speeds, turn = self._joint_parts
        self.robot.put_joints(self._q, signals[at])
        self._v[self.robot.actuated] = signals[speeds]
        w = self._axes @ signals[turn]
        try:
            found = self.estimator.estimate(
                self._q, self._v, w, signals[: self._measured], self._up()
            )
        except StateError as error:
            estimate.forces[:] = np.nan
            return [*trouble, str(error)]
        self._look_s = self._look_s + dt if estimate.ready else 0.0
        look = self._look_s >= self.settings.residual_period_s
        if trouble and (look or not self._judged):
            self._judge()
        estimate.forces[:] = found.contact_forces(self.feet)
        if not self._told.all():
            estimate.forces[~self._told] = np.nan
            untold = [foot for foot, told in zip(self.feet, self._told) if not told]
            trouble.append(f"the forces on {', '.join(untold)} cannot be told")
        self._look_due = look
        return trouble

    def _take(self, effort, wrenches) -> list[str]:
        """Efforts and wrenches among the signals; those that are missing, which are left out."""
        signals, efforts = self._signals, self._parts[-1]
        signals[efforts] = effort
        silent = []
        for k, part in enumerate(self._wrench_parts):
            values = wrenches[6 * k : 6 * k + 6]
            whole = np.abs(values).max(initial=0.0) < GREATEST
            signals[part] = values[: part.stop - part.start] if whole else np.nan
            if not whole:
                silent.append(self.settings.wrench_sensors[k].name)
        given = slice(efforts.start, self._measured)
        lost = ~(np.abs(signals[given]) < GREATEST)
        signals[given][lost] = 0.0
        if (lost != self._lost[given]).any():
            self._lost[given] = lost
            self.estimator.leave_out(self._lost[: self._measured])
            self._whitening = None
            self._told = self._sure = np.ones(len(self.feet), dtype=bool)
            self._judged = False
        names = [name for name, gone in zip(self.robot.joint_names, lost) if gone]
        return [
            f"{what} is missing of {', '.join(which)}"
            for what, which in (("effort", names), ("wrench", silent))
            if which
        ]

    def _judge(self):
        """Which feet's forces can be told at all, and well enough to tell contact, without what is missing."""
        deviation, weight = self.estimator.deviations(), self.robot.weight
        self._told = deviation < weight
        self._sure = deviation < self.settings.contact_on_share * weight
        self._judged = True

    def _filtered(self, dt):
        """All signals through the same low-pass; None at the first sample, which has no rates."""
        estimate, signals, sample = self.estimate, self._signals, self.base.sample
        now = np.concatenate([sample[:3], estimate.velocity])
        first, self._first = self._first, False
        rates = (now - self._before) / dt
        self._before = now
        if first:
            return None
        accelerometer, angular, accelerations, _ = self._parts
        signals[accelerometer] = sample[3:] - self._axes.T @ estimate.odometry.accelerometer_bias
        signals[angular] = rates[:3]
        signals[accelerations] = rates[3:]
        at, speeds, turn = self._joint_parts
        signals[at], signals[speeds], signals[turn] = estimate.position, estimate.velocity, now[:3]
        self._smooth = self._low_pass(signals)
        self._low_pass.begin(self._lost)
        return self._smooth

    def _begin_filters(self):
        self._first = True
        self._low_pass.reset()

    def _up(self):
        """(3,) upwards in base axes: of the odometry, or what the accelerometer feels."""
        if self.base.estimate.ready:
            return self.base.estimate.rotation[2].copy()
        felt = self._axes @ self._smooth[self._parts[0]]
        size = math.sqrt(felt @ felt)
        return felt / size if size > 1.0 else None

    def look(self) -> None:
        """Look at the residuals of the last step if it is time: ``estimate.faults`` may become longer."""
        if self._look_due:
            self._look_due = False
            self._look(self.estimator.latest)
            self.estimate.faults = *self._trouble, *self._lying

    def _look(self, found):
        """Sensors whose residual is too large twice in a row are named."""
        self._look_s, limit = 0.0, self.settings.residual_limit
        fresh = self._whitening is None or self._whitening_looks >= WHITENING_LOOKS
        residuals = self._residuals_of(found, fresh)
        if not fresh and max(residuals.values(), default=0.0) > limit:
            residuals = self._residuals_of(found, True)
        self.estimate.residuals = residuals
        suspects = frozenset(name for name, size in residuals.items() if size > limit)
        named = suspects & self._suspects
        self._suspects = suspects
        self._lying = ()
        if named:
            worst = max(named, key=residuals.get)
            self._lying = (
                f"{worst} disagrees with all other sensors: normalised residual "
                f"{residuals[worst]:.1f}, at most {limit:g} is believed"
                f"{self._joint_of(worst, found)}",
            )

    def _residuals_of(self, found, fresh: bool) -> dict[str, float]:
        """Normalised residuals; fresh: weighed for the present posture."""
        if fresh:
            self._whitening, self._whitening_looks = self.estimator.whitening(), 0
        self._whitening_looks += 1
        return self.estimator.normalise(found.residuals, self._whitening)

    def _joint_of(self, sensor, found):
        """Which joint of a sensor that measures joints is furthest off."""
        if sensor not in (JOINTS, EFFORTS):
            return ""
        values = np.abs(found.residuals[sensor])
        return f"; most of it at {self.robot.joint_names[int(np.argmax(values))]}"

    # Contact

    def _find_contact(self, time_s, planned):
        """From forces; from the plan where they cannot be told, or before the odometry has begun."""
        estimate, detector, settings = self.estimate, self.detector, self.settings
        stands = np.ones(len(self.feet), bool) if planned is None else np.asarray(planned, bool)
        loads = np.full(len(self.feet), np.nan)
        if estimate.ready:
            on, off = settings.contact_on_share, settings.contact_off_share
            if planned is not None:
                on = np.where(stands, settings.planned_on_share, on)
                off = np.where(stands, settings.planned_off_share, off)
            weight = self.robot.weight
            detector.on_n, detector.off_n = weight * on, weight * off
            loads[self._sure] = (estimate.forces @ self._up())[self._sure]
        felt = np.isfinite(loads)
        detector.take_forces(loads, time_s)
        if felt.all():
            estimate.contact[:] = detector.at(time_s)
            return
        detector.take_states(np.where(felt, np.nan, stands), time_s)
        estimate.contact[:] = np.where(felt, detector.at(time_s), stands)

    def _feet_that_stay(self, planned):
        """(n_feet,) bool, for the odometry: in contact and not lifted by the plan.

        A foot that lifts keeps its filtered load for some periods; taken as standing it pulls the base
        down, by 1 mm/s in a trot. A plan that lifts all feet that carry is not believed.
        """
        contact = self.estimate.contact
        if planned is None:
            return contact
        stay = contact & np.asarray(planned, bool)
        return stay if stay.any() else contact

    # Parts

    def _imu_frame(self):
        """Name of a frame where the IMU is; the base's own is that of its joint."""
        return self.settings.odometry.imu_frame or self.robot.model.names[1]

    def _make_estimator(self, radii):
        settings, frame = self.settings, self._imu_frame()
        joints = self.robot.joint_names
        sensors = [
            Accelerometer(frame, settings.accelerometer_noise_m_s2, ACCELEROMETER),
            AngularAcceleration(frame, settings.angular_acceleration_noise_rad_s2, ANGULAR),
            JointAcceleration(settings.joint_acceleration_noise_rad_s2, joints, JOINTS),
            JointEffort(settings.effort_noise_nm, joints, EFFORTS),
        ]
        for sensor in settings.wrench_sensors:
            sensors.append(self._wrench_rows(sensor))
        contacts = {
            foot: Contact(foot, "surface")
            if foot in settings.soles
            else Contact(foot, "point", float(radius))
            for foot, radius in zip(self.feet, radii)
        }
        return DynamicsEstimator(
            self.robot, sensors, contacts, model_force_noise_n=settings.model_force_noise_n
        )

    def _wrench_rows(self, sensor: WrenchSensor):
        """A force/torque sensor as the estimator takes it."""
        name, joints = WRENCH + sensor.name, self.robot.joint_names
        if sensor.name in self.feet:
            if sensor.frame:
                raise ConfigurationError(
                    f"force/torque sensor {sensor.name!r} is a foot's, in the foot's own axes; "
                    f"it has no frame {sensor.frame!r}"
                )
            noise = [sensor.force_noise_n] * 3
            if sensor.name in self.settings.soles:
                noise += [sensor.moment_noise_nm] * 3
            return ContactWrench(sensor.name, noise, name)
        if sensor.name not in joints:
            raise UnknownJointError(
                f"no force/torque sensor at {sensor.name!r}: neither a foot, which are "
                f"{choices(self.feet)}, nor a joint, which are {choices(joints)}"
            )
        noise = [sensor.force_noise_n] * 3 + [sensor.moment_noise_nm] * 3
        frame = sensor.frame or sensor.name
        return ForceTorque(sensor.name, frame, noise, sensor.direction, name)
