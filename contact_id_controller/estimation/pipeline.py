"""From readings of IMU, encoders and motors to contacts, ground forces and the base's pose and velocity.

    filters of one delay -> dynamics estimator -> contact -> base odometry

One step a period, without ROS: the node and the runs in one process drive the same object. What a sensor
claims wrongly never raises; it is named in ``PipelineEstimate.faults`` and has a defined reaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contact_id_controller.estimation.base_odometry import BaseOdometry
from contact_id_controller.estimation.checked import ALL, put
from contact_id_controller.estimation.dynamics_estimator import DynamicsEstimator
from contact_id_controller.estimation.filters import LowPass
from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.estimation.period import (
    CHANGED,
    FIRST,
    FOUND,
    UNSOLVED,
    UNTRIED,
    EstimationPeriod,
    find_contact,
    find_feet,
    find_forces,
    go_on,
    keep_estimate,
    sum_forces,
    take_joints,
    take_readings,
)
from contact_id_controller.estimation.pipeline_settings import PipelineSettings
from contact_id_controller.estimation.sensors import (
    Accelerometer,
    AngularAcceleration,
    Contact,
    JointAcceleration,
    JointEffort,
)
from contact_id_controller.estimation.stamps import StampFilter
from contact_id_controller.robot import RobotModel
from contact_id_controller.state import RobotState

ACCELEROMETER, ANGULAR = "accelerometer", "angular_acceleration"
JOINTS, EFFORTS = "joint_acceleration", "joint_effort"
"""Names of the sensors in residuals and faults."""

SHORTEST_PERIODS, LONGEST_PERIODS = 0.2, 5.0
"""A difference over fewer or more periods is no acceleration: the filters begin anew. Fewer come from a
simulator that waits, and whose time hardly advances."""

STALE_S = 0.02
"""So long the last good sample of the IMU stands in where forces are computed."""

WHITENING_LOOKS = 25
"""So many looks at residuals are weighed for the same posture, as long as none is suspicious: that costs
twenty times what a step does."""


class PipelineEstimate:
    """What one step found; valid until the next one.

    Attributes:
        time_s: stamp of the joints.
        odometry: ``BaseEstimate``: pose, velocity, covariance.
        contact: (n_feet,) bool.
        forces: (n_feet, 3) N of the ground on the feet, base axes; NaN where they are not observable.
        forces_known: whether those on all feet can be.
        position, velocity: (na,) of the joints, in the robot's order; the last that were finite. Those
            that turn without end count on.
        residuals: sensor -> normalised residual, of the last look.
        faults: whatever is wrong, one sentence each; empty while all is well.
    """

    def __init__(
        self, odometry: Any, estimator: DynamicsEstimator, period: EstimationPeriod
    ) -> None:
        self.time_s, self.odometry, self._estimator = 0.0, odometry, estimator
        self.contact, self.forces = period.contact, period.forces
        self.position, self.velocity = period.position, period.velocity
        self.forces_known = False
        self.residuals: dict[str, float] = {}
        self.faults: tuple[str, ...] = ()

    @property
    def dynamics(self) -> Any:
        """``Estimate``: accelerations, efforts, wrenches; computed on first access."""
        return self._estimator.latest

    @property
    def ready(self) -> bool:
        """Whether pose and twist of the base may be used."""
        return self.odometry.ready

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
        self.base = BaseOdometry(robot, feet, radii, settings.odometry, settings.soles)
        self.estimator = self._make_estimator(np.broadcast_to(radii, len(self.feet)))
        self.period = period = self._make_period()
        self._places: list[Any] = [place.data for place in (period.effort, period.readings)]
        self._planned: Any = period.stands.data
        self._skew_limit_s = settings.odometry.stamp_limit_s
        self.estimate = PipelineEstimate(self.base.estimate, self.estimator, period)
        self.start()
        self._compile()

    def start(
        self, position: np.ndarray | None = None, yaw: float = 0.0, in_motion: bool = False
    ) -> None:
        """Restart, standing still unless ``in_motion``; see ``BaseOdometry.start``."""
        self.base.start(position, yaw, in_motion)
        self._begin_filters()
        self._time_s: float | None = None
        self._stamps = StampFilter()
        self._look_s, self._look_due = 0.0, False
        self._suspects: frozenset[str] = frozenset()
        self._missing: tuple[str, ...] = ()
        self._hidden: tuple[str, ...] = ()
        self._judged = True
        self._whitening: dict[str, np.ndarray] | None = None
        self._whitening_looks = 0
        self._lying: tuple[str, ...] = ()
        self._trouble: tuple[str, ...] = ()
        period, estimate = self.period, self.estimate
        period.raw[:] = False
        period.since_s[:] = period.seen_s[:] = -np.inf
        period.aloft[:] = 0.0
        period.observable[:] = period.sure[:] = period.bears[:] = True
        period.contact[:], period.forces[:] = True, np.nan
        estimate.forces_known, estimate.residuals, estimate.faults = False, {}, ()

    def follow_clock(self) -> None:
        """The next stamp may be any: the caller has seen that the clock was set, or that a gap is over."""
        self._stamps.begin()

    def step(
        self,
        time_s: float,
        gyro: np.ndarray | None,
        accel: np.ndarray | None,
        position: np.ndarray,
        velocity: np.ndarray,
        effort: np.ndarray,
        *,
        readings: Any = (),
        imu_time_s: float | None = None,
        planned: Any = None,
        look: bool = True,
    ) -> PipelineEstimate:
        """One period on.

        Args:
            time_s: stamp of the joints.  imu_time_s: of the IMU; None: the same.
            gyro, accel: (3,) rad/s and m/s2 (gravity inside) in the IMU's axes; None: no sample arrived.
            position, velocity, effort: (na,) of the joints, in the robot's order; efforts are those
                over the period that ends here, not a number where none was measured.
            readings: numbers of the messages of ``settings.mounted``, one after the other; not a number where
                one was silent.
            planned: (n_feet,) bool, which feet stand by the plan: those it lifts are not used by the
                odometry, and it stands in where forces are not observable; None: not known.
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
        try:
            self._places[0][ALL] = effort
        except (TypeError, ValueError):
            put("effort", effort, self._places[0])
        if self._places[1].nbytes or len(readings):
            put("readings", readings, self._places[1])
        time_s = float(time_s)
        dt = self.settings.period_s if self._time_s is None else time_s - self._time_s
        self._time_s = estimate.time_s = time_s
        skew_s = 0.0 if imu_time_s is None else time_s - float(imu_time_s)
        base.put(dt, gyro, accel, position, velocity)
        if planned is not None:
            try:
                self._planned[ALL] = planned
            except (TypeError, ValueError):
                self._planned[ALL] = np.ascontiguousarray(planned, dtype=bool)
        trouble = self._advance(dt, time_s, skew_s, planned is not None)
        self._trouble = *base.estimate.reasons, *trouble
        estimate.faults = *self._trouble, *self._lying
        if look:
            self.look()
        return estimate

    def _advance(self, dt: float, time_s: float, skew_s: float, planned: bool) -> tuple[str, ...]:
        """Everything from the inputs that ``base`` was given; what is wrong with forces, in words.

        In one call where the period is like those before, as nearly always; else, and from where that has stopped, step
        by step.
        """
        period, base, found = self.period, self.base, UNTRIED
        usual = SHORTEST_PERIODS < dt / self.settings.period_s < LONGEST_PERIODS
        usual = usual and not self._missing
        base.disputed = bool(self._suspects)
        if usual and base.goes_on and abs(skew_s) <= self._skew_limit_s:
            fault, found, known, verdict = go_on(period, dt, time_s, skew_s, base.disputed, planned)
            base.judge(fault)
            if found == FOUND:
                self.estimate.forces_known = known
                self._have_forces(dt)
                base.went_on(verdict)
                return ()
        else:
            base.judge(take_joints(period))
        trouble = self._find_feet(dt, time_s, usual, planned, found)
        base.advance(period.stay, skew_s)
        return trouble

    # Forces

    def _find_feet(
        self, dt: float, time_s: float, usual: bool, planned: bool, found: int
    ) -> tuple[str, ...]:
        """Ground forces of this period, and which feet touch; what is wrong, in words.

        found: what ``go_on`` has found of the forces.
        """
        period, ready, estimate = self.period, self.base.estimate.ready, self.estimate
        if usual and self.base.joints_finite and self.base.imu_bad_s <= STALE_S:
            if found == UNTRIED:
                found, known = find_feet(period, dt, time_s, ready, planned)
                if found == FOUND:
                    estimate.forces_known = known
                    self._have_forces(dt)
                    return ()
            trouble = self._go_on(found, dt)
        else:
            trouble = self._find_forces(dt)
        estimate.forces_known = find_contact(period, time_s, ready, planned)
        return trouble

    def _find_forces(self, dt: float) -> tuple[str, ...]:
        """Ground forces of this period; what is wrong, in words."""
        period, base = self.period, self.base
        periods = dt / self.settings.period_s
        steady = SHORTEST_PERIODS < periods < LONGEST_PERIODS
        if not (steady and base.joints_finite) or base.imu_bad_s > STALE_S:
            if take_readings(period):
                self._leave_out()
            return self._hold()
        return self._go_on(find_forces(period, dt, base.estimate.ready), dt)

    def _go_on(self, found: int, dt: float) -> tuple[str, ...]:
        """Ground forces where ``find_forces`` has not found them, or others are missing than before."""
        period = self.period
        if found == CHANGED:
            self._leave_out()
            found = find_forces(period, dt, self.base.estimate.ready)
        if found == FIRST:
            return self._missing
        if found == UNSOLVED:
            if not self.estimator.solve_dense():
                return self._hold("no estimate: the sensors do not suffice in this configuration")
            sum_forces(period)
        self._have_forces(dt)
        if self._missing:
            if self._look_due or not self._judged:
                self._judge()
            return (*self._missing, *self._hidden)
        return self._missing

    def _have_forces(self, dt: float) -> None:
        """Forces of this period are found: what follows from them is due, and a look at the residuals when it is time."""
        self.estimator.outputs_due = True
        self._look_s = self._look_s + dt if self.base.estimate.ready else 0.0
        self._look_due = self._look_s >= self.settings.residual_period_s

    def _hold(self, *trouble: str) -> tuple[str, ...]:
        """No forces now; the filters restart."""
        self._begin_filters()
        self.period.forces[:] = np.nan
        return (*self._missing, *trouble)

    def _leave_out(self) -> None:
        """Other efforts or readings are missing than before: go on without them."""
        period, settings = self.period, self.settings
        self.estimator.leave_out(period.lost[: period.measured])
        self._whitening, self._judged, self._hidden = None, False, ()
        period.observable[:] = period.sure[:] = True
        n = self.robot.na
        gone = period.lost[6 + n : 6 + 2 * n]
        efforts = [name for name, lost in zip(self.robot.joint_names, gone) if lost]
        silent = [each.label for each, there in zip(settings.mounted, period.whole) if not there]
        self._missing = tuple(
            f"{what} is missing of {', '.join(which)}"
            for what, which in (("effort", efforts), ("reading", silent))
            if which
        )

    def _judge(self) -> None:
        """Which feet's forces are observable, and well enough to detect contact, without what is missing."""
        period, deviation, weight = self.period, self.estimator.deviations(), self.robot.weight
        period.observable[:] = deviation < weight
        period.sure[:] = deviation < self.settings.contact_on_share * weight
        hidden = [foot for foot, observable in zip(self.feet, period.observable) if not observable]
        self._hidden = (f"the forces on {', '.join(hidden)} are not observable",) if hidden else ()
        self._judged = True

    def _begin_filters(self) -> None:
        self.period.primed[0] = False
        self.period.beginning[:] = True

    def look(self) -> None:
        """Look at the residuals of the last step if it is time: ``estimate.faults`` may become longer."""
        if self._look_due:
            self._look_due = False
            self._look(self.estimator.latest)
            self.estimate.faults = *self._trouble, *self._lying

    def _look(self, found: Any) -> None:
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
            worst = max(named, key=residuals.__getitem__)
            self._lying = (
                f"{worst} disagrees with all other sensors: normalised residual "
                f"{residuals[worst]:.1f}, at most {limit:g} is believed"
                f"{self._joint_of(worst, found)}",
            )

    def _residuals_of(self, found: Any, fresh: bool) -> dict[str, float]:
        """Normalised residuals; fresh: weighed for the present posture."""
        if fresh:
            self._whitening, self._whitening_looks = self.estimator.whitening(), 0
        self._whitening_looks += 1
        return self.estimator.normalise(found.residuals, self._whitening)

    def _joint_of(self, sensor: str, found: Any) -> str:
        """Which joint of a sensor that measures joints is furthest off."""
        if sensor not in (JOINTS, EFFORTS):
            return ""
        values = np.abs(found.residuals[sensor])
        return f"; most of it at {self.robot.joint_names[int(np.argmax(values))]}"

    # Parts

    def _make_period(self) -> EstimationPeriod:
        """The arrays of this robot; the signals stand as in ``period``."""
        settings, robot, estimator, feet = self.settings, self.robot, self.estimator, len(self.feet)
        slices, n, motors = estimator.slices, robot.na, robot.motors
        labels = [each.label for each in settings.mounted]
        # How many numbers come from each sensor, and how many values they make.
        counts = [len(each.numbers) for each in settings.mounted]
        sizes = [slices[label].stop - slices[label].start for label in labels]
        measured = 6 + 2 * n + sum(sizes)
        low_pass = LowPass(measured + 2 * n + 3, settings.cutoff_hz, settings.period_s)
        axes = estimator.mechanism.frame(self._imu_frame())[1]
        shares = "contact_on", "contact_off", "planned_on", "planned_off"
        estimator.take_configuration(robot.neutral())
        return EstimationPeriod(
            odometry=self.base.arrays,
            integers=estimator.stores[0],
            numbers=estimator.stores[1],
            by_limbs=estimator.by_limbs,
            axes=np.ascontiguousarray(axes),
            measured=measured,
            share=low_pass.share,
            thresholds=robot.weight * np.array([getattr(settings, f"{s}_share") for s in shares]),
            confirm_s=float(settings.confirm_s),
            timeout_s=np.inf,
            effort=np.zeros(n),
            rubbing=np.array(
                [
                    motors.dry_friction_nm,
                    motors.viscous_friction_nm_s_rad,
                    motors.friction_speed_rad_s,
                ]
            ),
            readings=np.zeros(sum(counts)),
            stands=np.ones(feet, dtype=bool),
            reading_sensor=np.repeat(np.arange(len(sizes)), counts),
            signal_sensor=np.repeat(np.arange(len(sizes)), sizes),
            signal_gain=_gains(settings.mounted, sizes),
            position=np.zeros(n),
            velocity=np.zeros(n),
            signals=np.zeros(len(low_pass.value)),
            smoothed=low_pass.value,
            lost=np.zeros(measured, dtype=bool),
            beginning=low_pass.beginning,
            before=np.zeros(3 + n),
            primed=np.zeros(1, dtype=bool),
            whole=np.ones(len(sizes), dtype=bool),
            component=estimator.components_of(self.feet),
            observable=np.ones(feet, dtype=bool),
            sure=np.ones(feet, dtype=bool),
            forces=np.zeros((feet, 3)),
            loads=np.zeros(feet),
            on_n=np.zeros(feet),
            off_n=np.zeros(feet),
            aloft=np.zeros(feet),
            states=np.zeros(feet),
            raw=np.zeros(feet, dtype=bool),
            since_s=np.zeros(feet),
            seen_s=np.zeros(feet),
            felt=np.zeros(feet, dtype=bool),
            contact=np.ones(feet, dtype=bool),
            bears=np.ones(feet, dtype=bool),
            stay=np.zeros(feet),
        )

    def _compile(self) -> None:
        """Kernels compile now, not in the first step."""
        period, dt = self.period, self.settings.period_s
        take_joints(period)
        take_readings(period)
        for _ in range(2):
            find_forces(period, dt, False)
        sum_forces(period)
        self.estimator.outputs_due = True
        _ = self.estimator.latest
        find_contact(period, 0.0, False, False)
        find_feet(period, dt, 0.0, False, False)
        go_on(period, dt, 0.0, 0.0, False, False)
        keep_estimate(period, 0.0, np.zeros(1 + self.robot.nq + self.robot.nv + period.forces.size))
        self.start()

    def _imu_frame(self) -> str:
        """Name of a frame where the IMU is; the base's own is that of its joint."""
        return self.settings.odometry.imu_frame or self.robot.model.names[1]

    def _make_estimator(self, radii: np.ndarray) -> DynamicsEstimator:
        """The estimator of these sensors and feet; ``radii`` (f,) m, a foot without a sole is a point contact."""
        settings, frame = self.settings, self._imu_frame()
        joints = self.robot.joint_names
        sensors = [
            Accelerometer(frame, settings.accelerometer_noise_m_s2, ACCELEROMETER),
            AngularAcceleration(frame, settings.angular_acceleration_noise_rad_s2, ANGULAR),
            JointAcceleration(settings.joint_acceleration_noise_rad_s2, joints, JOINTS),
            JointEffort(settings.effort_noise_nm, joints, EFFORTS),
        ]
        sensors += [each.sensor(self.robot, self.feet) for each in settings.mounted]
        contacts = {
            foot: Contact(foot, "surface")
            if foot in settings.soles
            else Contact(foot, "point", float(radius))
            for foot, radius in zip(self.feet, radii)
        }
        return DynamicsEstimator(
            self.robot, sensors, contacts, model_force_noise_n=settings.model_force_noise_n
        )


def _gains(mounted: Sequence[Mounted], sizes: Sequence[int]) -> np.ndarray:
    """G (values, numbers) of all mounted sensors, which have these ``sizes`` values; 0 between different ones."""
    parts = [each.gains(size) for each, size in zip(mounted, sizes)]
    found, row, column = np.zeros((sum(sizes), sum(len(each.numbers) for each in mounted))), 0, 0
    for part in parts:
        found[row : row + len(part), column : column + part.shape[1]] = part
        row, column = row + len(part), column + part.shape[1]
    return found
