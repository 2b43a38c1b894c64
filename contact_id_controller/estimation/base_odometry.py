"""Pose and velocity of a base that nobody measures: IMU, encoders, and which feet stand.

A contact-aided right-invariant extended Kalman filter (``invariant_filter``) with what a robot needs
around it: a start from standing still, feet that slip, an IMU that lies. Position and yaw are not
observable; they drift, and their covariance says so. Source: Hartley et al. (2020).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.estimation.imu_checks import (
    FAULTS,
    GOOD,
    M_BAD_S,
    MEMORY,
    NO_JOINTS,
    check_inputs,
)
from contact_id_controller.estimation.tree import Mechanism
from contact_id_controller.exceptions import ConfigurationError, StateError, UnknownJointError
from contact_id_controller.robot import RobotModel

STARTING, RUNNING, COASTING, LOST = "starting", "running", "coasting", "lost"
"""What the odometry does: waits for the robot to stand still; runs; runs on IMU or feet alone for a
moment; holds its pose, with velocity zero, until the robot stands still again."""

DOUBTFUL_IMU = 1e4
"""Factor of the IMU's variance while its last good sample stands in for it."""
LOST_SPEED_M_S = 1.0
"""Standard deviation of the velocity that nobody knows."""


@dataclasses.dataclass(frozen=True)
class BaseOdometrySettings:
    """Noises, limits and gates.

    Attributes:
        gyroscope_noise, accelerometer_noise: densities, rad/s/sqrt(Hz) and m/s2/sqrt(Hz).
        gyroscope_bias_walk, accelerometer_bias_walk: rad/s2/sqrt(Hz) and m/s3/sqrt(Hz).
        gyroscope_bias, accelerometer_bias: standard deviations before anything is measured, rad/s, m/s2.
        foot_walk: how far a standing foot may creep, m/sqrt(s).
        foot_position_noise_m: of one measurement of a foot by the encoders.
        gate: chi-square (3 freedoms) beyond which a foot is not believed.
        slip_speed_m_s, slip_time_s: a foot whose velocity on the ground, low-passed, exceeds this slips.
        compensate_rolling: spherical feet roll; off only to see what that costs.
        ground_height_noise_m: the ground is level to within this (standard deviation at each
            touch-down); 0: nothing is known of it.
        gravity_m_s2: at the robot's place.
        imu_frame: where the IMU is, on the base; empty: the base itself.
        gyroscope_range, accelerometer_range: rad/s, m/s2; what reaches them is saturated.
        frozen_limit_s: samples that repeat for so long while joints move are not believed.
        imu_timeout_s: so long the last good sample stands in.
        stamp_limit_s: largest difference of the stamps of IMU and joints; beyond it is said, and feet
            count less the faster their legs move.
        longest_period_s: largest dt of a step, and difference of stamps with which feet count at all.
        coasting_limit_s: without any foot for so long: lost.
        gravity_limit_m_s2: the base's mean acceleration over a second must stay below.
        gyroscope_bias_limit, accelerometer_bias_limit: estimates beyond are not believed.
        still_time_s: how long the robot stands still at the start.
        still_rate_rad_s, still_acceleration_m_s2: what counts as still, of gyroscope and joints, and
            of the accelerometer's size against gravity.
        start_tilt_rad: the largest at the start; beyond, the IMU is mounted otherwise than said.

    Raises:
        ConfigurationError: a value outside its range.
    """

    gyroscope_noise: float = 1e-3
    accelerometer_noise: float = 1e-2
    gyroscope_bias_walk: float = 1e-5
    accelerometer_bias_walk: float = 1e-4
    gyroscope_bias: float = 0.02
    accelerometer_bias: float = 0.2
    foot_walk: float = 5e-3
    foot_position_noise_m: float = 1e-3
    gate: float = 30.0
    slip_speed_m_s: float = 0.1
    slip_time_s: float = 0.01
    compensate_rolling: bool = True
    ground_height_noise_m: float = 0.0
    gravity_m_s2: float = 9.81
    imu_frame: str = ""
    gyroscope_range: float = 34.9
    accelerometer_range: float = 156.9
    frozen_limit_s: float = 0.02
    imu_timeout_s: float = 0.02
    stamp_limit_s: float = 0.002
    longest_period_s: float = 0.02
    coasting_limit_s: float = 1.0
    gravity_limit_m_s2: float = 2.0
    gyroscope_bias_limit: float = 0.2
    accelerometer_bias_limit: float = 2.0
    still_time_s: float = 0.25
    still_rate_rad_s: float = 0.3
    still_acceleration_m_s2: float = 1.5
    start_tilt_rad: float = 1.0

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type != "float":
                continue
            lowest = 0.0 if field.name == "ground_height_noise_m" else math.ulp(0.0)
            if not lowest <= value < math.inf:
                raise ConfigurationError(
                    f"odometry {field.name} is {value}, must be "
                    f"{'at least' if lowest == 0.0 else 'above'} 0 and finite"
                )


class BaseEstimate:
    """What one step found; valid until the next one. Ready for nav_msgs/Odometry.

    Attributes:
        state: ``starting``, ``running``, ``coasting`` or ``lost``.
        reasons: why, and whatever else is wrong, in words; empty while all is well.
        position (3,) m, rotation (3, 3): of the base in the odometry frame.
        velocity (3,) m/s, angular_velocity (3,) rad/s: of the base, in its own axes.
        gyroscope_bias, accelerometer_bias (3,): in the base's axes.
        stands: (n_feet,) bool, feet that were used.  slipping: names of feet that are said to be in
            contact and are not believed.
    """

    def __init__(self, odometry: BaseOdometry):
        record, self._odometry = odometry._record, odometry
        self.state, self.reasons = STARTING, ("standing still is awaited",)
        at = filtering.O_POSITION
        self.position = record[at : at + 3]
        at = filtering.O_ROTATION
        self.rotation = record[at : at + 9].reshape(3, 3)
        at = filtering.O_VELOCITY
        self.velocity, self.angular_velocity = record[at : at + 3], record[at + 3 : at + 6]
        x = odometry._x
        self.gyroscope_bias = x[filtering.GYRO_BIAS : filtering.GYRO_BIAS + 3]
        self.accelerometer_bias = x[filtering.ACCEL_BIAS : filtering.ACCEL_BIAS + 3]

    @property
    def ready(self) -> bool:
        """Whether pose and twist may be used."""
        return self.state in (RUNNING, COASTING)

    @property
    def orientation(self) -> np.ndarray:
        """(4,) quaternion x, y, z, w of the base in the odometry frame."""
        return quaternion(self.rotation)

    @property
    def stands(self) -> np.ndarray:
        return self._odometry._feet[:, filtering.DOES] == filtering.STANDS

    @property
    def slipping(self) -> tuple[str, ...]:
        feet = self._odometry._feet
        gated = (feet[:, filtering.DOES] == filtering.GATED) & (
            feet[:, filtering.SINCE] > filtering.SHORT_S
        )
        return tuple(name for name, bad in zip(self._odometry.feet, gated) if bad)

    @property
    def feet(self) -> np.ndarray:
        """(n_feet, 3) m: centres of the feet in the odometry frame, by the present joints."""
        at = filtering.CENTRE
        imu = self._odometry._x[filtering.POSITION : filtering.POSITION + 3]
        return imu + self._odometry._feet[:, at : at + 3] @ self.rotation.T

    @property
    def pose_covariance(self) -> np.ndarray:
        """(6, 6): position (m), then rotation (rad) about the odometry frame's axes."""
        P = self._odometry._P
        J = np.zeros((6, 9))
        J[:3, :3], J[:3, 6:], J[3:, :3] = -skew(self.position), np.eye(3), np.eye(3)
        return J @ P[:9, :9] @ J.T

    @property
    def twist_covariance(self) -> np.ndarray:
        """(6, 6): linear (m/s), then angular velocity (rad/s), in the base's axes."""
        return self._odometry._twist_covariance()

    def configuration(self, q_joints) -> np.ndarray:
        """Pinocchio's q (nq,) of this base and joints (na,)."""
        pose = np.concatenate([self.position, self.orientation])
        return self._odometry.robot.configuration(pose, q_joints)

    def generalised_velocity(self, v_joints) -> np.ndarray:
        """Pinocchio's v (nv,) of this base and joints (na,)."""
        twist = np.concatenate([self.velocity, self.angular_velocity])
        return self._odometry.robot.velocity(twist, v_joints)


class BaseOdometry:
    """Odometry of a legged robot's base from its IMU, its encoders and its contacts.

    Args:
        robot: with one floating base.
        feet: frames at the centres of the spherical feet.
        radii: of the feet, m: one, or one a foot.

    Attributes:
        estimate: what the last step found.  restarts: how often it was lost and found its feet again.

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
        settings: BaseOdometrySettings = BaseOdometrySettings(),
    ):
        if not robot.floating_base or not feet:
            raise ConfigurationError("odometry needs a floating base and at least one foot")
        radii = np.asarray(radii, dtype=float).ravel()
        if len(radii) not in (1, len(feet)) or not ((radii > 0.0) & (radii < np.inf)).all():
            raise ConfigurationError(
                f"radii of feet are {radii.tolist()} m, must be 1 or {len(feet)} values above 0"
            )
        self.robot, self.feet, self.settings = robot, tuple(feet), settings
        self._mechanism = mechanism = Mechanism(robot)
        frames = [mechanism.frame(name) for name in feet]
        self._links = np.array([link for link, _, _ in frames], dtype=np.int64)
        self._refuse_unmeasured()
        self._facts = self._facts_of(
            [at for _, _, at in frames], np.broadcast_to(radii, len(frames))
        )
        n = filtering.E_FEET + 3 * len(feet)
        self._x, self._P = np.zeros(filtering.FEET + 3 * len(feet)), np.eye(n)
        self._record = np.zeros(filtering.O_FEET + filtering.FOOT_RECORD * len(feet))
        self._feet = self._record[filtering.O_FEET :].reshape(len(feet), -1)
        self._buffer = np.zeros(filtering.buffer_size(len(mechanism), len(feet)))
        self._inputs = inputs = np.zeros(filtering.INPUTS + robot.nq + robot.nv + len(feet))
        self._sample = inputs[filtering.I_GYRO : filtering.I_GYRO + 6]
        self._q = inputs[filtering.INPUTS : filtering.INPUTS + robot.nq]
        self._v = inputs[filtering.INPUTS + robot.nq :][: robot.nv]
        self._contacts = inputs[len(inputs) - len(feet) :]
        self._q[:] = robot.neutral()
        self._memory = np.zeros(MEMORY)
        self._limits = np.array(
            [settings.gyroscope_range, settings.accelerometer_range, settings.frozen_limit_s]
        )
        self.estimate = BaseEstimate(self)
        self.restarts = 0
        self.start()
        self._compile()

    def start(self, position=None, yaw: float = 0.0) -> None:
        """Begin anew: the steps that follow find attitude and biases while the robot stands still.

        Args:
            position: (3,) m of the base in the odometry frame; None: above its origin, as high as puts
                the feet on z = 0.
            yaw: rad, of the base.

        Raises:
            StateError: a position that is not (3,), or not finite.
        """
        if position is not None:
            position = _vector("position", position, 3)
        self._begin(position, float(_vector("yaw", [yaw], 1)[0]), np.zeros(4))
        self.restarts = 0

    def _begin(self, position, yaw, doubts):
        """Await standing still at this place; doubts: variances of position (3,) and yaw."""
        self._place, self._yaw, self._doubts = position, yaw, doubts
        self._record[:] = 0.0
        self._x[:] = 0.0
        self._memory[:] = 0.0
        self._still: list[np.ndarray] = []
        self._still_s = 0.0
        self._set_rotation(_turned(yaw))
        if position is not None:
            self._record[filtering.O_POSITION : filtering.O_POSITION + 3] = position
            self._x[filtering.POSITION : filtering.POSITION + 3] = position
        self._say(STARTING, "standing still is awaited")

    def step(self, dt, gyro, accel, q_joints, v_joints, contacts, skew_s=0.0) -> BaseEstimate:
        """One period on.

        Args:
            dt: s since the last step.
            gyro, accel: (3,) rad/s and m/s2 (gravity inside) in the IMU's axes, of that period; None:
                the IMU said nothing.
            q_joints, v_joints: (na,) positions and velocities at its end, in the robot's order.
            contacts: (n_feet,) bool, or probabilities.
            skew_s: stamp of the joints less that of the IMU, s.

        Raises:
            StateError: wrong shapes. What sensors say wrongly never raises: see ``estimate.reasons``.
        """
        fault, trouble = self._take(dt, gyro, accel, q_joints, v_joints, contacts, skew_s)
        state = self.estimate.state
        if state in (STARTING, LOST):
            self._stand_still(fault, trouble)
        else:
            self._advance(fault, trouble)
        return self.estimate

    # One step

    def _take(self, dt, gyro, accel, q_joints, v_joints, contacts, skew_s):
        """Inputs into their places; the fault of the IMU, and all that is wrong, in words."""
        settings, inputs, robot = self.settings, self._inputs, self.robot
        trouble, dt = [], float(dt)
        self._gap_s = 0.0
        if not 0.0 < dt <= settings.longest_period_s:
            trouble.append(
                f"time advanced by {dt:g} s, must be above 0 and at most {settings.longest_period_s:g}"
            )
            self._gap_s = dt if 0.0 < dt < np.inf else 0.0
            dt = settings.longest_period_s if dt > 0.0 else 0.0
        inputs[filtering.I_DT] = dt
        sample = self._sample
        sample[:3] = np.nan if gyro is None else _shaped("gyro", gyro, 3)
        sample[3:] = np.nan if accel is None else _shaped("accel", accel, 3)
        q = _shaped("q_joints", q_joints, robot.na)
        v = _shaped("v_joints", v_joints, robot.na)
        self._contacts[:] = _shaped("contacts", contacts, len(self.feet))
        fault = check_inputs(sample, q, v, dt, self._limits, self._memory)
        if fault < NO_JOINTS:
            self._q[robot.q_index] = q
            self._v[robot.actuated] = v
        else:
            fault -= NO_JOINTS
            trouble.append("joint positions or velocities are not finite")
            self._contacts[:] = 0.0
        inputs[filtering.I_SKEW] = skew_s
        if not abs(skew_s) <= settings.stamp_limit_s:
            trouble.append(
                f"stamps of joints and IMU differ by {1e3 * skew_s:.1f} ms, "
                f"at most {1e3 * settings.stamp_limit_s:.1f} ms are allowed"
            )
            if not abs(skew_s) <= settings.longest_period_s:
                inputs[filtering.I_SKEW] = 0.0
                self._contacts[:] = 0.0
        if fault != GOOD:
            trouble.append(f"IMU is {FAULTS[fault]} for {1e3 * self._memory[M_BAD_S]:.0f} ms")
        inputs[filtering.I_NOISE] = 1.0 if fault == GOOD else DOUBTFUL_IMU
        return fault, trouble

    def _advance(self, fault, trouble):
        settings, record = self.settings, self._record
        held = record[: filtering.O_VELOCITY].copy()
        if max(self._memory[M_BAD_S], self._gap_s) > settings.imu_timeout_s:
            return self._lose(held, trouble)
        if not self._inputs[filtering.I_DT] > 0.0:
            return self._say(self.estimate.state, *trouble)
        verdict = self._run_filter()
        without = record[filtering.O_WITHOUT_FEET]
        if verdict != filtering.SOUND:
            trouble.append(self._words(verdict))
        elif without > settings.coasting_limit_s:
            trouble.append(f"no foot has stood for {without:.1f} s")
            verdict = filtering.UNSOUND
        if verdict != filtering.SOUND:
            return self._lose(held, trouble)
        if record[filtering.O_SLIPPING]:
            trouble.append(f"slipping: {', '.join(self.estimate.slipping)}")
        coasting = fault != GOOD or without > filtering.SHORT_S
        self._say(COASTING if coasting else RUNNING, *trouble)

    def _run_filter(self):
        mechanism = self._mechanism
        return filtering.step(
            mechanism.integers, mechanism.numbers, self._links, self._facts, self._x, self._P,
            self._inputs, self._record, self._buffer,
        )  # fmt: skip

    def _words(self, verdict):
        """What the filter said of its own result."""
        record, estimate = self._record, self.estimate
        if verdict == filtering.TURNED:
            mean = np.linalg.norm(record[filtering.O_MEAN : filtering.O_FEET])
            return f"accelerometer and attitude disagree by {mean:.1f} m/s2: is the IMU turned?"
        if verdict == filtering.LARGE_GYRO_BIAS:
            size = np.linalg.norm(estimate.gyroscope_bias)
            return f"gyroscope bias of {size:.2g} rad/s is not believed"
        if verdict == filtering.LARGE_ACCEL_BIAS:
            size = np.linalg.norm(estimate.accelerometer_bias)
            return f"accelerometer bias of {size:.2g} m/s2 is not believed"
        return "the filter's numbers make no sense"

    def _lose(self, held, trouble):
        """Hold this pose until the robot stands still; what was known of place and yaw remains."""
        pose = self.estimate.pose_covariance
        doubts = np.append(np.diag(pose)[:3], pose[5, 5])
        if not np.isfinite(doubts).all():
            doubts = np.ones(4)
        position, rotation = held[:3], held[3:].reshape(3, 3)
        yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        self._begin(position.copy(), yaw, np.maximum(doubts, 0.0))
        self._set_rotation(rotation)
        self._spread_doubts()
        self._say(LOST, *trouble)
        self._why = tuple(trouble)

    def _spread_doubts(self):
        """Covariance of a robot of which only the last place is known."""
        P = self._P
        P[:] = np.eye(len(P))
        P[2, 2] = self._doubts[3]
        P[3:6, 3:6] *= LOST_SPEED_M_S**2
        P[6:9, 6:9] = np.diag(self._doubts[:3])
        self._turn_about_position()

    def _turn_about_position(self):
        """The group's error turns about the origin; a known place with doubtful axes does not move.

        xi_p = dp + p x xi_R: rows and columns of the position follow.
        """
        P, lever = self._P, skew(self._x[filtering.POSITION : filtering.POSITION + 3])
        P[6:9] += lever @ P[:3]
        P[:, 6:9] += P[:, :3] @ lever.T

    # The start

    def _stand_still(self, fault, trouble):
        """Gather samples of a robot that does not move; begin when there are enough."""
        settings, sample = self.settings, self._sample
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
            return self._wait(moving)
        self._still.append(sample.copy())
        self._still_s += dt
        if self._still_s >= settings.still_time_s:
            mean = np.mean(self._still, axis=0)
            self._still.clear()
            self._still_s = 0.0
            wrong = self._initialise(mean)
            if wrong:
                return self._wait(wrong)
            self.restarts += self.estimate.state == LOST
            return self._say(RUNNING)
        self._wait("standing still is awaited")

    def _wait(self, reason):
        if self.estimate.state == LOST:
            self._say(LOST, *self._why, f"to begin anew: {reason}")
        else:
            self._say(STARTING, reason)

    def _moving(self, sample):
        settings = self.settings
        rate = math.sqrt(sample[:3] @ sample[:3])
        joints = np.abs(self._v).max()
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

    def _initialise(self, mean):
        """Attitude, biases and their covariance from the mean sample (6,); what is wrong, or nothing."""
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

    def _start_covariance(self, P, up):
        """What standing still leaves unknown: a sideways bias of the accelerometer is a tilt."""
        settings, R = self.settings, self.estimate.rotation
        seconds = settings.still_time_s
        P[:] = 0.0
        noise = settings.accelerometer_noise**2 / seconds
        sideways = np.eye(3) - np.outer(up, up)
        bias = settings.accelerometer_bias**2 * sideways + noise * np.outer(up, up)
        tilt = skew([0.0, 0.0, 1.0]) @ R / settings.gravity_m_s2
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

    def _place_base(self):
        """Where it was said to be, or above the origin, as high as puts the feet on z = 0."""
        x, at = self._x, filtering.POSITION
        lever = self.estimate.rotation @ self._facts[filtering.F_IMU_POSITION :][:3]
        x[at : at + 3] = lever + (np.zeros(3) if self._place is None else self._place)
        if self._place is None:
            contacts = self._contacts.copy()
            self._contacts[:] = 0.0  # where the feet are is asked, nothing is learned
            self._touch_down()
            self._contacts[:] = contacts
            down = contacts > filtering.CONTACT
            bottoms = self.estimate.feet[:, 2] - self._facts[filtering.F_FEET + 3 :: 4]
            x[at + 2] -= bottoms[down].mean() if down.any() else bottoms.min()

    def _touch_down(self):
        """A step without time: the feet touch down where the legs have them."""
        dt, self._inputs[filtering.I_DT] = self._inputs[filtering.I_DT], 0.0
        self._feet[:] = 0.0
        self._run_filter()
        self._inputs[filtering.I_DT] = dt

    # Constants

    def _refuse_unmeasured(self):
        tree, measured = self._mechanism.tree, set(self.robot.joint_names)
        for foot, link in zip(self.feet, self._links):
            while link:
                name = self._mechanism.names[link - 1]
                if name not in measured:
                    raise UnknownJointError(
                        f"joint {name!r} moves foot {foot!r} and is not measured: name it in joints"
                    )
                link = tree.parent[link]

    def _facts_of(self, centres, radii):
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
        )
        facts[filtering.F_IMU_ROTATION : filtering.F_IMU_POSITION] = rotation.ravel()
        facts[filtering.F_IMU_POSITION : filtering.F_FEET] = at
        for i, (centre, radius) in enumerate(zip(centres, radii)):
            facts[filtering.F_FEET + 4 * i :][:4] = (*centre, radius)
        return facts

    def _compile(self):
        """Kernels compile now, not in the first step."""
        joints = np.zeros(self.robot.na)
        check_inputs(np.zeros(6), joints, joints, 1e-3, self._limits, self._memory)
        self._set_rotation(np.eye(3))
        self._inputs[filtering.I_DT] = 0.0
        self._run_filter()
        self.start()

    def _set_rotation(self, rotation):
        self._record[filtering.O_ROTATION : filtering.O_VELOCITY] = rotation.ravel()
        self._x[:9] = rotation.ravel()

    def _say(self, state, *reasons):
        self.estimate.state, self.estimate.reasons = state, reasons

    def _twist_covariance(self):
        P, R = self._P, self.estimate.rotation
        lever = skew(self._facts[filtering.F_IMU_POSITION :][:3])
        linear = R.T @ P[3:6, 3:6] @ R
        dt = max(self._inputs[filtering.I_DT], 1e-4)
        gyro = P[9:12, 9:12] + np.eye(3) * self._facts[filtering.F_GYRO] / dt
        found = np.zeros((6, 6))
        # v_base = v_imu + lever x w, and w is known to within the gyroscope's noise and bias.
        found[:3, :3] = linear + lever @ gyro @ lever.T
        found[:3, 3:], found[3:, :3] = lever @ gyro, gyro @ lever.T
        found[3:, 3:] = gyro
        return found


def skew(a) -> np.ndarray:
    """(3, 3) matrix of the cross product a x."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def quaternion(rotation) -> np.ndarray:
    """(4,) x, y, z, w of a rotation (3, 3), w >= 0. Shepperd (1978)."""
    m = rotation
    squares = np.array(
        [
            1.0 + m[0, 0] - m[1, 1] - m[2, 2],
            1.0 - m[0, 0] + m[1, 1] - m[2, 2],
            1.0 - m[0, 0] - m[1, 1] + m[2, 2],
            1.0 + m[0, 0] + m[1, 1] + m[2, 2],
        ]
    )
    k = int(np.argmax(squares))
    off = np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    if k == 3:
        found = np.append(off, squares[3])
    else:
        found = np.append(m[k] + m[:, k], off[k])
        found[k] = squares[k]
    return found / math.copysign(math.sqrt(found @ found), found[3])


def _turned(yaw):
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _levelled(up):
    """The rotation (3, 3) without yaw that turns a unit vector ``up`` of the base upwards."""
    pitch = math.atan2(-up[0], math.hypot(up[1], up[2]))
    roll = math.atan2(up[1], up[2])
    cp, sp, cr, sr = math.cos(pitch), math.sin(pitch), math.cos(roll), math.sin(roll)
    return np.array([[cp, sp * sr, sp * cr], [0.0, cr, -sr], [-sp, cp * sr, cp * cr]])


def _shaped(name, values, size):
    array = np.asarray(values, dtype=float)
    if array.shape != (size,):
        raise StateError(f"{name} has shape {array.shape}, must be ({size},)")
    return array


def _vector(name, values, size):
    array = _shaped(name, values, size)
    if not np.isfinite(array).all():
        raise StateError(f"{name} is {array.tolist()}, must be finite")
    return array
