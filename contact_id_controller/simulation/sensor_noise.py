"""Sensor models: noise, bias, gain, friction, encoder resolution, delay; no ROS, no engine."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.exceptions import ConfigurationError, StateError, choices
from contact_id_controller.state import RobotState

NO_IMU = np.full((2, 3), np.nan)
FRICTION_SPEED = 0.1
"""Joint speed, rad/s or m/s, at which Coulomb friction has three quarters of its size."""


@dataclasses.dataclass(frozen=True)
class SensorNoise:
    """Errors of each sensor; all zero: an ideal one.

    Noises are standard deviations of white noise on every sample; biases and gain errors are those of one
    constant for each axis or joint, drawn once. Prismatic joints: m, m/s and N instead.

    Attributes:
        position_step_rad: resolution of an encoder.
        effort_gain_error: relative.
        effort_friction_nm: Coulomb friction that is part of the measured effort but does not act on the joint.
        force_noise_n, moment_noise_nm: of force/torque sensors.
        sensor_delay_s: age of all readings.

    Raises:
        ConfigurationError: a negative or infinite value.
    """

    gyroscope_noise_rad_s: float = 0.0
    gyroscope_bias_rad_s: float = 0.0
    accelerometer_noise_m_s2: float = 0.0
    accelerometer_bias_m_s2: float = 0.0
    position_noise_rad: float = 0.0
    position_step_rad: float = 0.0
    velocity_noise_rad_s: float = 0.0
    effort_noise_nm: float = 0.0
    effort_gain_error: float = 0.0
    effort_friction_nm: float = 0.0
    force_noise_n: float = 0.0
    moment_noise_nm: float = 0.0
    sensor_delay_s: float = 0.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value < math.inf:
                raise ConfigurationError(
                    f"sensor {field.name} is {value}, must be at least 0 and finite"
                )


_GOOD = SensorNoise(
    gyroscope_noise_rad_s=0.005,
    gyroscope_bias_rad_s=0.002,
    accelerometer_noise_m_s2=0.05,
    accelerometer_bias_m_s2=0.02,
    position_noise_rad=1e-4,
    velocity_noise_rad_s=0.02,
    effort_noise_nm=0.01,
    force_noise_n=0.1,
    moment_noise_nm=0.01,
)

PRESETS = {
    "perfect": SensorNoise(),
    "good": _GOOD,
    "motor_currents": dataclasses.replace(
        _GOOD,
        gyroscope_noise_rad_s=0.01,
        accelerometer_noise_m_s2=0.1,
        position_noise_rad=5e-4,
        velocity_noise_rad_s=0.05,
        effort_noise_nm=0.02,
        effort_gain_error=0.03,
        effort_friction_nm=0.02,
    ),
    "cheap": SensorNoise(
        gyroscope_noise_rad_s=0.02,
        gyroscope_bias_rad_s=0.01,
        accelerometer_noise_m_s2=0.2,
        accelerometer_bias_m_s2=0.1,
        position_noise_rad=5e-4,
        position_step_rad=2.0 * math.pi / 8192,
        velocity_noise_rad_s=0.05,
        effort_noise_nm=0.05,
        effort_gain_error=0.05,
        effort_friction_nm=0.05,
        force_noise_n=1.0,
        moment_noise_nm=0.1,
    ),
}
"""good: joint torque sensors and a good IMU.  motor_currents: efforts from currents.  cheap: hobby parts."""


def preset(name: str) -> SensorNoise:
    """Sensor noise by the name of a preset.

    Raises:
        ConfigurationError: no preset of that name.
    """
    if name not in PRESETS:
        raise ConfigurationError(f"sensors are {name!r}, must be one of {choices(PRESETS)}")
    return PRESETS[name]


class Readings(NamedTuple):
    """Readings of all sensors at one instant.

    time_s: of that instant.  angular_velocity (3,) rad/s and linear_acceleration (3,) m/s2 (with
    gravity) in the IMU's axes.  position, velocity, effort (na,) in command order.
    mounted: numbers of the mounted sensors, one after the other.
    """

    time_s: float
    angular_velocity: np.ndarray
    linear_acceleration: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    mounted: np.ndarray


class NoisySensors:
    """The sensors of one robot; the same seed gives the same biases, gains and noise.

    Args:
        noise: a ``SensorNoise``, or the name of a preset.
        joints: number of joints.
        period_s: of the readings; the delay is rounded to whole periods.
        mounted: standard deviations of the numbers of mounted sensors, (r,).
        seed: of everything random.

    Attributes:
        gyroscope_bias, accelerometer_bias (3,), effort_gain (joints,): drawn constants.
    """

    def __init__(
        self,
        noise: SensorNoise | str,
        joints: int,
        period_s: float,
        *,
        mounted: ArrayLike = (),
        seed: int = 0,
    ):
        if not 0.0 < period_s < math.inf:
            raise ConfigurationError(f"period_s is {period_s}, must be above 0 and finite")
        self.noise = preset(noise) if isinstance(noise, str) else noise
        self._rng = rng = np.random.default_rng(seed)
        noise = self.noise
        self.gyroscope_bias = rng.normal(size=3) * noise.gyroscope_bias_rad_s
        self.accelerometer_bias = rng.normal(size=3) * noise.accelerometer_bias_m_s2
        self.effort_gain = 1.0 + rng.normal(size=joints) * noise.effort_gain_error
        # All values of one instant in a row: one draw for all of them.
        counts = (3, 3, joints, joints, joints, np.size(mounted))
        ends = np.cumsum(counts)
        self._places = [slice(end - count, end) for end, count in zip(ends.tolist(), counts)]
        self._deviations = np.concatenate(
            [
                np.full(3, noise.gyroscope_noise_rad_s),
                np.full(3, noise.accelerometer_noise_m_s2),
                np.full(joints, noise.position_noise_rad),
                np.full(joints, noise.velocity_noise_rad_s),
                np.full(joints, noise.effort_noise_nm),
                np.ravel(mounted),
            ]
        )
        self._noisy = bool(self._deviations.any())
        self._offset = np.zeros(len(self._deviations))
        self._offset[:6] = *self.gyroscope_bias, *self.accelerometer_bias
        self._waiting: deque[Readings] = deque(maxlen=1 + round(noise.sensor_delay_s / period_s))

    def reset(self) -> None:
        """Discard delayed readings; biases and gains are kept."""
        self._waiting.clear()

    def read(
        self,
        time_s: float,
        angular_velocity: np.ndarray,
        linear_acceleration: np.ndarray,
        position: np.ndarray,
        velocity: np.ndarray,
        effort: np.ndarray,
        mounted: Sequence[np.ndarray] | np.ndarray = (),
    ) -> Readings:
        """Readings at ``time_s`` for these true values; see ``Readings`` for shapes.

        With a delay, the oldest reading until the delay has passed once.

        Raises:
            StateError: wrong shapes.
        """
        noise = self.noise
        true = angular_velocity, linear_acceleration, position, velocity, effort, mounted
        row = self._row(true)
        parts = [row[place] for place in self._places]
        joints, rates, currents = parts[2:5]
        if noise.effort_friction_nm:
            currents += noise.effort_friction_nm * np.tanh(rates / FRICTION_SPEED)
        currents *= self.effort_gain
        row += self._offset
        if self._noisy:
            row += self._rng.standard_normal(len(row)) * self._deviations
        if noise.position_step_rad:
            joints[:] = noise.position_step_rad * np.round(joints / noise.position_step_rad)
        self._waiting.append(Readings(float(time_s), *parts))
        return self._waiting[0]

    def _row(self, true: Any) -> np.ndarray:
        """All true values in one fresh row."""
        row = np.empty(len(self._deviations))
        for name, place, values in zip(Readings._fields[1:], self._places, true):
            values, part = np.asarray(values, dtype=float), row[place]
            if values.size != part.size:
                what = "what mounted sensors read" if name == "mounted" else f"true {name}"
                raise StateError(f"{what} has shape {values.shape}, must have {part.size} values")
            part[:] = values.ravel()
        return row


class SimulatedSensors:
    """All sensors of a simulated robot, read after each of its periods.

    Args:
        world: a simulated robot; without an IMU, its IMU reads NaN.
        noise, seed: see ``NoisySensors``.
        mounted: its sensors beside IMU, encoders and motors; without noise where ``noise`` is ``perfect``.

    Raises:
        ConfigurationError: the world lacks what a mounted sensor measures.
    """

    def __init__(
        self,
        world: Any,
        noise: SensorNoise | str = "perfect",
        seed: int = 0,
        mounted: Sequence[Mounted] = (),
    ) -> None:
        self.world, self.mounted = world, tuple(mounted)
        chosen = preset(noise) if isinstance(noise, str) else noise
        perfect = chosen == PRESETS["perfect"]
        deviations = [
            np.broadcast_to(0.0 if perfect else each.white_noise(chosen), len(each.numbers))
            for each in self.mounted
        ]
        self.noisy = NoisySensors(
            chosen,
            world.robot.na,
            world.period_s,
            mounted=np.concatenate([np.zeros(0), *deviations]),
            seed=seed,
        )
        self._unread = np.zeros(sum(map(len, deviations)))
        if self.mounted:
            self._true(world.state())  # refuses now what is not there

    def read(self, state: RobotState, imu: bool = True, mounted: bool = True) -> Readings:
        """Noisy readings of all sensors for the state at the end of the world's last period.

        imu, mounted: whether the IMU and mounted sensors are used; if not, their readings are noise only.
        """
        world, robot = self.world, self.world.robot
        gyro, accel = world.imu() if imu and world.has_imu else NO_IMU
        return self.noisy.read(
            state.time_s,
            gyro,
            accel,
            robot.joints_of(state.q),
            state.v[robot.actuated],
            world.applied_torques(),
            self._true(state) if mounted and self.mounted else self._unread,
        )

    def _true(self, state: RobotState) -> np.ndarray:
        """Ideal readings of the mounted sensors, one after the other."""
        return np.concatenate([each.true(self.world, state) for each in self.mounted])
