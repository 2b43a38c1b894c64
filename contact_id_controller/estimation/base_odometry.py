"""Pose and velocity of a base that is not measured: IMU, encoders, and which feet stand.

A contact-aided right-invariant extended Kalman filter (``invariant_filter``) with what a robot needs
around it: a start from standing still, feet that slip, an IMU that lies, gaps between states that a busy
computer makes, and a pose that is found again while the robot walks. Position and yaw are not observable;
they drift, and their covariance grows. Source: Hartley et al. (2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.estimation.base_estimate import (
    COASTING,
    LOST,
    RUNNING,
    STARTING,
    BaseEstimate,
    quaternion,
)
from contact_id_controller.estimation.checked import ALL, finite, put
from contact_id_controller.estimation.found_again import TILT_RAD, TURNING_RAD_S, UpwardsInMotion
from contact_id_controller.estimation.imu_checks import (
    FAULTS,
    GOOD,
    GREATEST,
    M_BAD_S,
    MEMORY,
    NO_JOINTS,
)
from contact_id_controller.estimation.odometry_arrays import (
    REPORTED,
    OdometryArrays,
    advance,
    take,
)
from contact_id_controller.estimation.odometry_settings import BaseOdometrySettings
from contact_id_controller.estimation.tree import Mechanism
from contact_id_controller.exceptions import ConfigurationError, UnknownJointError
from contact_id_controller.robot import RobotModel

DEFAULT = BaseOdometrySettings()
UP = np.array([0.0, 0.0, 1.0])
SILENCE = np.full(3, np.nan)
LOST_SPEED_M_S = 1.0
"""Standard deviation of an unknown velocity."""

UNSEEN_M_S2 = 10.0
"""Standard deviation of the mean acceleration in a gap between states, beyond what one sample of the IMU says:
feet land. The filter's doubt of the gyroscope grows with it, by 1 rad/s."""

USUAL_PERIODS = 2.0
"""Of the usual time between states; a longer one is a gap."""
USUAL_SHARE = 0.05
"""Of a new time between states in the usual one."""
SAME_MOTION, STATED_MOTION, ENCODER_STEP = 0.5, 0.25, 1e-3
"""Share of the joints' motion, share of what it were in the time that is stated, and rms of it, rad or m, by which it may
differ from that of a usual period: encoders count in steps, and velocities are late."""
BURST_PERIODS = 0.5
"""Of the usual time between states; less is between states that were read together."""

COAST_S = 0.02
"""Over a longer gap, and without believable samples for longer, the base is taken to keep its velocity, which is
nearer to the mean of a walk than the acceleration of one sample. After a gap the places of the feet begin anew."""

FOUND_M_S = 0.1
"""Standard deviation of the velocity below which a pose that was lost counts as found again."""

FINDING_S = 0.3
"""So long standing feet may take to tell the velocity; then up is looked for anew."""

IN_MOTION_S = 1.0
"""So long a start waits for the robot to stand still; then it begins as one that was lost, in motion: logs do."""


class BaseOdometry:
    """Odometry of a legged robot's base from its IMU, its encoders and its contacts.

    Args:
        robot: with one floating base.
        feet: frames at the centres of the spherical feet, or over flat ones.
        radii: m, one or one a foot: how far below its frame a foot touches, above 0 where it is round.
        soles: those of the feet that are flat, their frame's z axis normal to the sole: they do not turn while they stand.

    Attributes:
        estimate: what the last step found.  restarts: how often it was lost and found its feet again.
        arrays: what it works on.
        sample: (6,) gyroscope and accelerometer in the IMU's axes, the last that was believed.
        disputed: a sensor is suspected at fault, so that feet which disagree with the IMU are no evidence against it.
        joints_finite: whether positions and velocities of the last period were.

    Raises:
        ConfigurationError: no floating base, no feet, radii that do not fit, an IMU that is not on the base.
        UnknownFrameError: no frame of that name.
        UnknownJointError: a foot that an unmeasured joint moves.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: Sequence[str],
        radii: float | Sequence[float],
        settings: BaseOdometrySettings = DEFAULT,
        soles: Sequence[str] = (),
    ):
        if not robot.floating_base or not feet:
            raise ConfigurationError("odometry needs a floating base and at least one foot")
        flat = np.isin(feet, soles)
        given = np.asarray(radii, dtype=float).ravel()
        fits = len(given) in (1, len(feet)) and np.isfinite(given).all()
        if not fits or not (flat | (np.broadcast_to(given, len(feet)) > 0.0)).all():
            raise ConfigurationError(
                f"radii of feet are {given.tolist()} m, must be 1 or {len(feet)} finite values, "
                "above 0 where a foot has no sole"
            )
        self.robot, self.feet, self.settings = robot, tuple(feet), settings
        self._mechanism = mechanism = Mechanism(robot)
        frames = [mechanism.frame(name) for name in feet]
        self._links = np.array([link for link, _, _ in frames], dtype=np.int64)
        self._refuse_unmeasured()
        each_m = np.broadcast_to(given, len(frames))
        self._facts = self._facts_of(
            [
                at - radius * rotation[:, 2] if sole else at
                for (_, rotation, at), radius, sole in zip(frames, each_m, flat)
            ],
            np.where(flat, 0.0, each_m),
        )
        self._error_places = _places_of(flat)
        self.arrays = arrays = self._make_arrays()
        self._x, self._P, self._record = arrays.x, arrays.P, arrays.record
        self._inputs, self._contacts = arrays.inputs, arrays.contacts
        self._feet = arrays.record[filtering.O_FEET :].reshape(len(feet), -1)
        self._memory, self._limits, self.sample = arrays.memory, arrays.limits, arrays.sample
        places = arrays.sample[:3], arrays.sample[3:], arrays.position, arrays.velocity
        self._places = [place.data for place in (*places, arrays.contacts)]
        self.estimate = BaseEstimate(robot, self.feet, arrays)
        self.restarts = 0
        self._why: tuple[str, ...] = ()
        self.joints_finite = True
        self.disputed = False
        self.start()
        self._compile()

    def start(
        self, position: np.ndarray | None = None, yaw: float = 0.0, in_motion: bool = True
    ) -> None:
        """Restart: the steps that follow find attitude and biases while the robot stands still.

        Args:
            position: (3,) m of the base in the odometry frame; None: above its origin, as high as puts
                the feet on z = 0.
            yaw: rad, of the base.
            in_motion: one that does not stand still begins after a while all the same, less sure of tilt and biases.

        Raises:
            StateError: a position that is not (3,), or not finite.
        """
        self._in_motion = in_motion
        if position is not None:
            position = finite("position", position, 3)
        self._begin(position, float(finite("yaw", [yaw], 1)[0]), np.zeros(4))
        self._memory[:] = 0.0
        self.imu_bad_s = 0.0
        self.restarts = 0

    def _begin(self, position: Any, yaw: float, doubts: Any) -> None:
        """Await standing still at this place.

        position: (3,) m of the base, odometry frame; None: above its origin.  yaw: rad.
        doubts: (4,) variances of position, m2, and yaw, rad2.
        """
        self._place, self._yaw, self._doubts = position, yaw, doubts
        self._record[:] = 0.0
        self._record[filtering.O_SAMPLE : filtering.O_HELD] = np.nan
        self._x[:] = 0.0
        self._still: list[np.ndarray] = []
        self._still_s = 0.0
        self._finding_s: float | None = None
        self._usual_s = self._owed_s = self._late_s = 0.0
        self._moving_s = 0.0
        self._biases = np.zeros(6)
        spread = self.settings.gyroscope_bias, self.settings.accelerometer_bias
        self._bias_spread = np.diag(np.repeat(np.square(spread), 3))
        self._upwards = UpwardsInMotion(_turned(yaw))
        self._set_rotation(_turned(yaw))
        if position is not None:
            self._record[filtering.O_POSITION : filtering.O_POSITION + 3] = position
            self._x[filtering.POSITION : filtering.POSITION + 3] = position
        self._set_state(STARTING, "standing still is awaited")

    def step(
        self,
        dt: float,
        gyro: np.ndarray | None,
        accel: np.ndarray | None,
        q_joints: np.ndarray,
        v_joints: np.ndarray,
        contacts: ArrayLike,
        skew_s: float = 0.0,
    ) -> BaseEstimate:
        """One period on.

        Args:
            dt: s since the last step.
            gyro, accel: (3,) rad/s and m/s2 (gravity inside) in the IMU's axes, of that period; None:
                there is no sample of the IMU.
            q_joints, v_joints: (na,) positions and velocities at its end, in the robot's order.
            contacts: (n_feet,) bool, or probabilities.
            skew_s: stamp of the joints less that of the IMU, s.

        Raises:
            StateError: wrong shapes. Wrong readings never raise: see ``estimate.reasons``.
        """
        self.take(dt, gyro, accel, q_joints, v_joints)
        return self.advance(contacts, skew_s)

    def take(
        self,
        dt: float,
        gyro: np.ndarray | None,
        accel: np.ndarray | None,
        q_joints: np.ndarray,
        v_joints: np.ndarray,
    ) -> None:
        """The first half of ``step``, for callers that find the contacts from its results.

        ``sample`` and ``joints_finite`` are what may be used of it; ``imu_bad_s``: for how long the IMU has been bad.
        """
        self.put(dt, gyro, accel, q_joints, v_joints)
        self.judge(take(self.arrays))

    def put(self, dt: float, gyro: Any, accel: Any, q_joints: Any, v_joints: Any) -> None:
        """What ``take`` does before the verdict of ``imu_checks`` on the inputs, which compiled code finds."""
        limit_s, arrays = self.settings.gap_limit_s, self.arrays
        self._trouble: list[str] = []
        trouble = self._trouble
        dt = float(dt)
        odd = self._usual_s > 0.0 and not 0.0 < dt <= USUAL_PERIODS * self._usual_s
        before = (arrays.position.copy(), arrays.velocity.copy()) if odd else None
        gyro, accel = SILENCE if gyro is None else gyro, SILENCE if accel is None else accel
        turn, felt, place, speed, _ = self._places
        try:
            turn[ALL], felt[ALL], place[ALL], speed[ALL] = gyro, accel, q_joints, v_joints
        except (TypeError, ValueError):  # which of them is not as it should be
            put("gyro", gyro, turn)
            put("accel", accel, felt)
            put("q_joints", q_joints, place)
            put("v_joints", v_joints, speed)
        step, self._gap_s = self._elapsed(dt, before), 0.0
        if not 0.0 < step <= limit_s:
            trouble.append(f"time advanced by {step:g} s, must be above 0 and at most {limit_s:g}")
            self._gap_s = step if 0.0 < step < np.inf else 0.0
            step = limit_s if step > 0.0 else 0.0
        self._late_s = max(step - dt, 0.0) if dt > 0.0 else 0.0
        self._inputs[filtering.I_DT] = step
        self._unseen_s = self._unseen(step)

    def _elapsed(self, dt: float, before: tuple[np.ndarray, np.ndarray] | None) -> float:
        """How long after the states before these were measured, s, which is not dt where they were read late or misdated.

        Who stalls reads what has waited at once and stamps it so: a gap in which joints have moved no more than in a usual
        period, and after it states between which there is next to no time. Each has a usual period, until that of the
        gap is spent; where no such states follow, as after a gap in which a robot stood still, it is one. A wrong stamp
        is such a gap, too, and the next step takes its time back; after a step back that is usual, the clock was set. One
        that was set on is a gap: a gait repeats itself, and joints cannot tell.

        Args:
            dt: s, by the stamps.  before: positions and velocities (na,) of the states before; None: dt is as usual.
        """
        usual_s, owed_s = self._usual_s, self._owed_s
        if before is None and owed_s < 0.0:
            owed_s = 0.0
        self._owed_s = 0.0
        if dt + owed_s > 0.0 and owed_s != 0.0:
            step = dt + owed_s
            if 0.0 < owed_s and dt < BURST_PERIODS * usual_s:
                step = min(usual_s, step)
            self._owed_s = owed_s - (step - dt)
            return step
        v = self.arrays.velocity
        if before is None or not abs(dt) < GREATEST:
            return dt
        moved, usually = self.arrays.position - before[0], 0.5 * usual_s * (v + before[1])
        if not (np.abs(moved) + np.abs(usually) < GREATEST).all():
            return dt
        far, stated = np.linalg.norm(moved), np.linalg.norm(usually) * abs(dt) / usual_s
        least = ENCODER_STEP * math.sqrt(len(moved))
        most = max(float(SAME_MOTION * far), float(STATED_MOTION * stated), least)
        same = np.linalg.norm(moved - usually) < most
        moves = max(np.abs(v).max(), np.abs(before[1]).max()) > self.settings.still_rate_rad_s
        if same and (dt > 0.0 or moves):
            self._owed_s = dt - usual_s
            return usual_s
        self._owed_s = min(dt, 0.0)
        return dt

    def judge(self, fault: int) -> None:
        """Keep what ``check_inputs`` found as reasons, and for how long the IMU has been bad; doubt grows meanwhile."""
        trouble = self._trouble
        self.joints_finite = fault < NO_JOINTS
        if not self.joints_finite:
            fault -= NO_JOINTS
            trouble.append("joint positions or velocities are not finite")
        self.imu_bad_s = 0.0
        if fault != GOOD:
            # While states are unread, or were read late, the IMU does not count as missing.
            self._memory[M_BAD_S] -= self._unseen_s + self._late_s
            self.imu_bad_s = float(self._memory[M_BAD_S])
            trouble.append(f"IMU is {FAULTS[fault]} for {1e3 * self.imu_bad_s:.0f} ms")
        if fault != GOOD or self._unseen_s:
            self._doubt(float(self._inputs[filtering.I_DT]))
        self._fault = fault

    @property
    def goes_on(self) -> bool:
        """Whether the inputs of ``put`` allow a period like those before."""
        ready = self.estimate.ready and self._finding_s is None
        return ready and not (self._trouble or self._unseen_s)

    def _doubt(self, dt: float) -> None:
        """The velocity's variance grows by what a time without samples may have done to it, A^2 t^2.

        Of a gap at once; while the IMU is not believed by what A^2 t^2 grows in dt, s.
        """
        bad_s = self.imu_bad_s
        grown = self._unseen_s**2 + (bad_s**2 - max(bad_s - dt, 0.0) ** 2)
        if grown > 0.0:
            factor = grown * (UNSEEN_M_S2 / self.settings.accelerometer_noise) ** 2 / dt
            self._inputs[filtering.I_NOISE] = max(self._inputs[filtering.I_NOISE], factor)

    def _unseen(self, dt: float) -> float:
        """Part of a step of dt, s, without a sample of the IMU: by how much it is longer than usual."""
        if not dt > 0.0:
            return 0.0
        usual_s = self._usual_s or dt
        unseen_s = dt - usual_s if dt > USUAL_PERIODS * usual_s else 0.0
        self._usual_s = usual_s + USUAL_SHARE * (min(dt, USUAL_PERIODS * usual_s) - usual_s)
        return unseen_s

    def advance(self, contacts: Any, skew_s: float = 0.0) -> BaseEstimate:
        """The second half of ``step``."""
        settings, inputs, trouble = self.settings, self._inputs, self._trouble
        try:
            self._places[4][ALL] = contacts
        except (TypeError, ValueError):
            put("contacts", contacts, self._places[4])
        if not self.joints_finite:
            self._contacts[:] = 0.0
        inputs[filtering.I_SKEW] = skew_s
        inputs[filtering.I_DISPUTED] = self.disputed
        if not abs(skew_s) <= settings.stamp_limit_s:
            trouble.append(
                f"stamps of joints and IMU differ by {1e3 * skew_s:.1f} ms, "
                f"at most {1e3 * settings.stamp_limit_s:.1f} ms are allowed"
            )
            if not abs(skew_s) <= settings.longest_period_s:
                inputs[filtering.I_SKEW] = 0.0
                self._contacts[:] = 0.0
        if self.estimate.state in (STARTING, LOST) and self._finding_s is None:
            self._stand_still(self._fault, trouble)
        else:
            self._run(trouble)
        return self.estimate

    # One step

    def _run(self, trouble: list[str]) -> None:
        """One step of the filter with this period's inputs, and what becomes of the state: running, coasting or lost.

        Args:
            trouble: reasons so far, lines; extended.
        """
        settings, record = self.settings, self._record
        if self._unseen_s > COAST_S:
            trouble.append(f"{1e3 * self._unseen_s:.0f} ms without states are bridged")
            self._coast()
            self._feet[:, filtering.DOES] = filtering.AIR
        elif self.imu_bad_s > COAST_S:
            self._coast()
        if self.imu_bad_s > settings.imu_timeout_s or self._gap_s > settings.gap_limit_s:
            return self._lose(record[: filtering.O_VELOCITY].copy(), trouble)
        if not self._inputs[filtering.I_DT] > 0.0:
            return self._set_state(self.estimate.state, *trouble)
        self.went_on(advance(self.arrays))

    def went_on(self, verdict: int) -> None:
        """What becomes of the state after a step of the filter: running, coasting or lost.

        Args:
            verdict: of ``odometry_arrays.advance``.
        """
        settings, record, trouble = self.settings, self._record, self._trouble
        without = record[filtering.O_WITHOUT_FEET]
        if verdict != filtering.SOUND:
            trouble.append(self._words(verdict))
        elif without > settings.coasting_limit_s:
            trouble.append(f"no foot has stood for {without:.1f} s")
            verdict = filtering.UNSOUND
        if verdict != filtering.SOUND:
            return self._lose(self.arrays.held.copy(), trouble)
        if self._finding_s is not None and not self._found():
            return self._wait("standing feet tell the velocity")
        if record[filtering.O_SLIPPING]:
            trouble.append(f"slipping: {', '.join(self.estimate.slipping)}")
        coasting = self._fault != GOOD or without > filtering.SHORT_S
        self._set_state(COASTING if coasting else RUNNING, *trouble)

    def _coast(self) -> None:
        """No acceleration in this step, in place of that of a sample."""
        up = self._x[: filtering.VELOCITY].reshape(3, 3)[2]
        force = self.settings.gravity_m_s2 * up + self.estimate.accelerometer_bias
        self.sample[3:] = force @ self._facts[filtering.F_IMU_ROTATION :][:9].reshape(3, 3)

    def _found(self) -> bool:
        """Whether a pose that was lost is known again, by feet that stand; after a while it is lost once more."""
        self._finding_s += self._inputs[filtering.I_DT]
        speeds = np.diag(self._P)[filtering.E_VELOCITY : filtering.E_POSITION]
        if self._record[filtering.O_USED] and speeds.max() < FOUND_M_S**2:
            self._finding_s = None
            self.restarts += self.estimate.state == LOST
            return True
        if self._finding_s > FINDING_S:
            self._lose(self._record[: filtering.O_VELOCITY].copy(), [])
        return False

    def _words(self, verdict: int) -> str:
        """What the filter reports of its own result."""
        record, estimate = self._record, self.estimate
        if verdict == filtering.TURNED:
            mean = np.linalg.norm(record[filtering.O_MEAN : filtering.O_SAMPLE])
            return f"accelerometer and attitude disagree by {mean:.1f} m/s2: is the IMU turned?"
        if verdict == filtering.LARGE_GYRO_BIAS:
            size = np.linalg.norm(estimate.gyroscope_bias)
            return f"gyroscope bias of {size:.2g} rad/s is not believed"
        if verdict == filtering.LARGE_ACCEL_BIAS:
            size = np.linalg.norm(estimate.accelerometer_bias)
            return f"accelerometer bias of {size:.2g} m/s2 is not believed"
        return "the filter's numbers make no sense"

    def _lose(self, held: np.ndarray, trouble: list[str]) -> None:
        """Hold this pose until it is found again; what was known of place, yaw and believable biases remains.

        held: (12,) position and rotation.  trouble: why; nothing: as before.
        """
        if self.estimate.state == STARTING:
            self._begin(self._place, self._yaw, np.zeros(4))
            return self._set_state(STARTING, *trouble, "standing still is awaited")
        trouble = trouble or list(self._why)
        pose = self.estimate.pose_covariance
        doubts = np.append(np.diag(pose)[:3], pose[5, 5])
        if not np.isfinite(doubts).all():
            doubts = np.ones(4)
        position, rotation = held[:3], held[3:].reshape(3, 3)
        biases = self._x[filtering.GYRO_BIAS : filtering.FEET].copy()
        bias_spread = self._P[
            filtering.E_GYRO : filtering.E_FEET, filtering.E_GYRO : filtering.E_FEET
        ].copy()
        yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        self._begin(position.copy(), yaw, np.maximum(doubts, 0.0))
        self._set_rotation(rotation)
        self._spread_doubts()
        self._set_state(LOST, *trouble)
        self._why = tuple(trouble)
        self._upwards = UpwardsInMotion(rotation)
        if self._believes(
            biases
        ):  # else they would be the reason to lose the next estimate at once
            self._biases, self._bias_spread = biases, bias_spread

    def _believes(self, biases: np.ndarray) -> bool:
        """Whether biases (6,), rad/s and m/s2, of gyroscope and accelerometer, are within their limits."""
        settings = self.settings
        return bool(
            np.linalg.norm(biases[:3]) <= settings.gyroscope_bias_limit
            and np.linalg.norm(biases[3:]) <= settings.accelerometer_bias_limit
        )

    def _spread_doubts(self) -> None:
        """Covariance of a robot of which only the last place is known."""
        P = self._P
        P[:] = np.eye(len(P))
        P[2, 2] = self._doubts[3]
        P[3:6, 3:6] *= LOST_SPEED_M_S**2
        P[6:9, 6:9] = np.diag(self._doubts[:3])
        self._turn_about_position()

    def _turn_about_position(self) -> None:
        """The group's error turns about the origin; a known place with doubtful axes does not move.

        xi_p = dp + p x xi_R: rows and columns of the position follow.
        """
        P, lever = self._P, pin.skew(self._x[filtering.POSITION : filtering.POSITION + 3])
        P[6:9] += lever @ P[:3]
        P[:, 6:9] += P[:, :3] @ lever.T

    # The start

    def _stand_still(self, fault: int, trouble: list[str]) -> None:
        """Gather samples of a robot that does not move; begin when there are enough."""
        settings, sample = self.settings, self.sample
        dt = self._inputs[filtering.I_DT]
        if self.estimate.state == LOST:
            self._doubts[:3] += (LOST_SPEED_M_S * dt) ** 2 + 2.0 * LOST_SPEED_M_S * dt * np.sqrt(
                self._doubts[:3]
            )
            self._spread_doubts()
        moving = self._moving(sample) if fault == GOOD and not trouble else "; ".join(trouble)
        if moving:
            self._still.clear()
            self._still_s = 0.0
            self._moving_s += dt
            waited = self._in_motion and self._moving_s > IN_MOTION_S
            if waited or self.estimate.state == LOST:
                return self._find_in_motion(dt, fault == GOOD and not trouble, moving)
            return self._wait(moving)
        self._still.append(sample.copy())
        self._still_s += dt
        if self._still_s >= settings.still_time_s or len(self._still) >= settings.still_samples:
            mean = np.mean(self._still, axis=0)
            self._still.clear()
            self._still_s = 0.0
            wrong = self._initialise(mean)
            if wrong:
                return self._wait(wrong)
            self.restarts += self.estimate.state == LOST
            return self._set_state(RUNNING)
        self._wait("standing still is awaited")

    def _find_in_motion(self, dt: float, believed: bool, moving: str) -> None:
        """Begin while the robot walks: up from the mean specific force, then velocity from the feet that touch.

        Args:
            dt: s.  believed: whether sample and joints of this period are good.  moving: why it does not stand still.
        """
        settings, upwards = self.settings, self._upwards
        if not believed:
            self._doubts[3] += (TURNING_RAD_S * dt) ** 2
            upwards.begin()
            return self._wait(moving)
        axes = self._facts[filtering.F_IMU_ROTATION :][:9].reshape(3, 3)
        rate, force = axes @ self.sample[:3], axes @ self.sample[3:]
        upwards.add(dt, rate - self._biases[:3], force - self._biases[3:])
        if not upwards.complete or not (self._contacts > filtering.CONTACT).any():
            return self._wait(moving)
        if upwards.level(settings.gravity_m_s2) > settings.gravity_limit_m_s2:
            return self._wait(moving)
        if upwards.rotation[2, 2] < math.cos(settings.start_tilt_rad):
            return self._wait(f"{moving}; gravity is felt from aside")
        self._begin_in_motion(upwards.rotation)
        self._wait("standing feet tell the velocity")

    def _begin_in_motion(self, rotation: np.ndarray) -> None:
        """Run the filter from this attitude (3, 3), the place that was held, and a velocity that is not known."""
        x, P = self._x, self._P
        x[filtering.GYRO_BIAS : filtering.FEET] = self._biases
        self._set_rotation(rotation)
        self._place_base()
        P[:] = np.eye(len(P))
        P[:2, :2] *= TILT_RAD**2
        P[2, 2] = self._doubts[3] + 1e-8
        P[3:6, 3:6] *= LOST_SPEED_M_S**2
        P[6:9, 6:9] = np.diag(self._doubts[:3]) + 1e-8 * np.eye(3)
        P[filtering.E_GYRO : filtering.E_FEET, filtering.E_GYRO : filtering.E_FEET] = (
            self._bias_spread
        )
        self._turn_about_position()
        self._touch_down()
        self._finding_s = 0.0

    def _wait(self, reason: str) -> None:
        if self.estimate.state == LOST:
            self._set_state(LOST, *self._why, f"to begin anew: {reason}")
        else:
            self._set_state(STARTING, reason)

    def _moving(self, sample: np.ndarray) -> str:
        """Why the robot does not stand still, a line; empty where it does.

        Args:
            sample: (6,) angular rate, rad/s, and specific force, m/s^2.
        """
        settings = self.settings
        rate = math.sqrt(sample[:3] @ sample[:3])
        joints = np.abs(self.arrays.v).max()
        if rate > settings.still_rate_rad_s or joints > settings.still_rate_rad_s:
            return (
                f"not standing still: gyroscope {rate:.2g} rad/s, joints {joints:.2g} rad/s, at most "
                f"{settings.still_rate_rad_s:g}"
            )
        felt = math.sqrt(sample[3:] @ sample[3:])
        if abs(felt - settings.gravity_m_s2) > settings.still_acceleration_m_s2:
            return (
                f"accelerometer feels {felt:.1f} m/s2, gravity is {settings.gravity_m_s2:g}: "
                "moving, or not an accelerometer in m/s2"
            )
        return ""

    def _initialise(self, mean: np.ndarray) -> str:
        """Initialise attitude, biases and covariance from the mean sample (6,); returns what is wrong, or ""."""
        settings = self.settings
        axes = self._facts[filtering.F_IMU_ROTATION :][:9].reshape(3, 3)
        gyro, felt = axes @ mean[:3], axes @ mean[3:]
        size = math.sqrt(felt @ felt)
        up = felt / size
        if up[2] < math.cos(settings.start_tilt_rad):
            return (
                f"gravity is felt along ({up[0]:.2f}, {up[1]:.2f}, {up[2]:.2f}) of the base, a tilt of "
                f"{math.degrees(math.acos(max(-1.0, up[2]))):.0f} degrees: is the IMU upside down?"
            )
        self._set_rotation(_turned(self._yaw) @ _levelled(up))
        x, P = self._x, self._P
        x[filtering.VELOCITY : filtering.VELOCITY + 3] = 0.0
        x[filtering.GYRO_BIAS : filtering.GYRO_BIAS + 3] = gyro
        x[filtering.ACCEL_BIAS : filtering.ACCEL_BIAS + 3] = (size - settings.gravity_m_s2) * up
        self._place_base()
        self._start_covariance(P, up)
        self._touch_down()
        return ""

    def _start_covariance(self, P: np.ndarray, up: np.ndarray) -> None:
        """Set P to what standing still leaves unknown: a sideways bias of the accelerometer looks like a tilt."""
        settings, R = self.settings, self.estimate.rotation
        seconds = settings.still_time_s
        P[:] = 0.0
        noise = settings.accelerometer_noise**2 / seconds
        sideways = np.eye(3) - np.outer(up, up)
        bias = settings.accelerometer_bias**2 * sideways + noise * np.outer(up, up)
        tilt = pin.skew(UP) @ R / settings.gravity_m_s2
        P[:3, :3] = tilt @ (bias + noise * np.eye(3)) @ tilt.T + 1e-8 * np.eye(3)
        P[2, 2] += self._doubts[3]
        P[:3, 12:15], P[12:15, :3] = tilt @ bias, bias @ tilt.T
        P[12:15, 12:15] = bias + 1e-8 * np.eye(3)
        P[3:6, 3:6] = (0.1 * settings.slip_speed_m_s) ** 2 * np.eye(3)
        P[6:9, 6:9] = np.diag(self._doubts[:3]) + 1e-8 * np.eye(3)
        P[9:12, 9:12] = (settings.gyroscope_noise**2 / seconds + 1e-10) * np.eye(3)
        far = range(filtering.E_FEET, len(P))
        P[far, far] = 1.0
        self._turn_about_position()

    def _place_base(self) -> None:
        """Put the base at the given place, or above the origin with its standing feet at z = 0, at the attitude of x.

        The mean height of the standing feet (the lowest, if none stands) becomes that of the level ground, O_LEVEL.
        """
        x, at, record = self._x, filtering.POSITION, self._record
        lever = self.estimate.rotation @ self._facts[filtering.F_IMU_POSITION :][:3]
        x[at : at + 3] = lever + (np.zeros(3) if self._place is None else self._place)
        contacts = self._contacts.copy()
        self._contacts[:] = 0.0  # kinematics only: without contact the filter corrects nothing
        self._touch_down()
        self._contacts[:] = contacts
        down = contacts > filtering.CONTACT
        bottoms = self.estimate.feet[:, 2] - self._facts[filtering.F_FEET + 3 :: 4]
        level_m = bottoms[down].mean() if down.any() else bottoms.min()
        if self._place is None:
            x[at + 2] -= level_m
            level_m = 0.0
        if self.settings.ground_height_noise_m > 0.0:
            record[filtering.O_LEVEL] = level_m
        record[filtering.O_HELD] = record[filtering.O_WALKED] = record[filtering.O_DOUBT] = 0.0

    def _touch_down(self) -> None:
        """Advance the filter by no time: feet in contact get footholds where the legs have them, as if long there."""
        dt, self._inputs[filtering.I_DT] = self._inputs[filtering.I_DT], 0.0
        self._feet[:] = 0.0
        advance(self.arrays)
        self._feet[:, filtering.SINCE] = filtering.SHORT_S
        self._inputs[filtering.I_DT] = dt

    # Constants

    def _make_arrays(self) -> OdometryArrays:
        """The filter's arrays for this robot; q, v, sample and contacts are views of its inputs."""
        robot, mechanism, settings, feet = (
            self.robot,
            self._mechanism,
            self.settings,
            len(self.feet),
        )
        soles = int((self._error_places[:, 0] >= 0).sum())
        inputs = np.zeros(filtering.INPUTS + robot.nq + robot.nv + feet)
        q = inputs[filtering.INPUTS : filtering.INPUTS + robot.nq]
        q[:] = robot.neutral()
        return OdometryArrays(
            integers=mechanism.integers,
            numbers=mechanism.numbers,
            links=self._links,
            places=self._error_places,
            q_index=robot.q_index,
            actuated=robot.actuated,
            turns=robot.turns,
            facts=self._facts,
            x=np.zeros(filtering.FEET + 3 * feet + 9 * soles),
            P=np.eye(filtering.E_FEET + 3 * (feet + soles)),
            inputs=inputs,
            record=np.zeros(filtering.O_FEET + filtering.FOOT_RECORD * feet),
            buffer=np.zeros(filtering.buffer_size(len(mechanism), feet, soles)),
            sample=inputs[filtering.I_GYRO : filtering.I_GYRO + 6],
            q=q,
            v=inputs[filtering.INPUTS + robot.nq :][: robot.nv],
            contacts=inputs[len(inputs) - feet :],
            position=np.zeros(robot.na),
            velocity=np.zeros(robot.na),
            limits=np.array(
                [settings.gyroscope_range, settings.accelerometer_range, settings.frozen_limit_s]
            ),
            memory=np.zeros(MEMORY),
            jacobian=np.zeros((6, 9)),
            spread=np.zeros((9, 9)),
            held=np.zeros(filtering.O_VELOCITY),
            reported=np.zeros(REPORTED),
        )

    def _refuse_unmeasured(self) -> None:
        """Raise UnknownJointError where a joint between base and foot has no encoder."""
        tree, measured = self._mechanism.tree, set(self.robot.joint_names)
        for foot, link in zip(self.feet, self._links):
            while link:
                name = self._mechanism.names[link - 1]
                if name not in measured:
                    raise UnknownJointError(
                        f"joint {name!r} moves foot {foot!r} and is not measured: name it in joints"
                    )
                link = tree.parent[link]

    def _facts_of(self, centres: Any, radii: np.ndarray) -> np.ndarray:
        """The filter's constants in one array: variances, limits, IMU placement, each foot's centre, radius.

        Args:
            centres, radii: (f, 3) m in the links' frames and (f,) m, of the feet's spheres.
        """
        settings, facts = self.settings, np.zeros(filtering.F_FEET + 4 * len(radii))
        link, rotation, at = 0, np.eye(3), np.zeros(3)
        if settings.imu_frame:
            link, rotation, at = self._mechanism.frame(settings.imu_frame)
        if link:
            raise ConfigurationError(
                f"the IMU's frame {settings.imu_frame!r} is not on the base, which is what it measures"
            )
        facts[: filtering.F_IMU_ROTATION] = (
            settings.gyroscope_noise**2,
            settings.accelerometer_noise**2,
            settings.gyroscope_bias_walk**2,
            settings.accelerometer_bias_walk**2,
            settings.foot_walk**2,
            settings.foot_position_noise_m**2,
            settings.gate,
            settings.slip_speed_m_s,
            settings.slip_time_s,
            float(settings.compensate_rolling),
            settings.ground_height_noise_m**2,
            settings.gravity_m_s2,
            settings.gravity_limit_m_s2,
            settings.gyroscope_bias_limit,
            settings.accelerometer_bias_limit,
            settings.joint_noise**2,
            settings.sole_walk**2,
            settings.sole_turn**2,
            settings.sole_creep**2,
            settings.accelerometer_bias**2,
        )
        facts[filtering.F_IMU_ROTATION : filtering.F_IMU_POSITION] = rotation.ravel()
        facts[filtering.F_IMU_POSITION : filtering.F_FEET] = at
        for i, (centre, radius) in enumerate(zip(centres, radii)):
            facts[filtering.F_FEET + 4 * i :][:4] = (*centre, radius)
        return facts

    def _compile(self) -> None:
        """Kernels compile now, not in the first step."""
        take(self.arrays)
        self._set_rotation(np.eye(3))
        self._inputs[filtering.I_DT] = 0.0
        advance(self.arrays)
        self.estimate.report()
        quaternion(np.eye(3))
        self.start()

    def _set_rotation(self, rotation: np.ndarray) -> None:
        self._record[filtering.O_ROTATION : filtering.O_VELOCITY] = rotation.ravel()
        self._x[:9] = rotation.ravel()

    def _set_state(self, state: str, *reasons: str) -> None:
        estimate = self.estimate
        estimate.state, estimate.reasons = state, reasons
        estimate.ready = state in (RUNNING, COASTING)


def _places_of(flat: np.ndarray) -> np.ndarray:
    """Places (f, 12) of feet, (f,) bool whether they are flat, in the filter's error, see ``invariant_filter.step``."""
    places = np.full((len(flat), 12), -1)
    soles = filtering.E_FEET + 3 * (len(flat) + np.cumsum(flat) - 1)
    for i, row in enumerate(places):
        row[3:6] = filtering.E_FEET + 3 * i + np.arange(3)
        row[9:] = filtering.E_POSITION + np.arange(3)
        if flat[i]:
            row[:3], row[6:9] = soles[i] + np.arange(3), filtering.E_ROTATION + np.arange(3)
    return places


def _turned(yaw: float) -> np.ndarray:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _levelled(up: np.ndarray) -> np.ndarray:
    """The rotation (3, 3) without yaw that turns a unit vector ``up`` of the base upwards."""
    pitch = math.atan2(-up[0], math.hypot(up[1], up[2]))
    roll = math.atan2(up[1], up[2])
    cp, sp, cr, sr = math.cos(pitch), math.sin(pitch), math.cos(roll), math.sin(roll)
    return np.array([[cp, sp * sr, sp * cr], [0.0, cr, -sr], [-sp, cp * sr, cp * cr]])
