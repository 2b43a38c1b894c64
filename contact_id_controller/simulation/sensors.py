"""What real sensors make of the truth: noise, bias, gain, friction, steps of encoders, delay; no ROS, no engine."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, StateError, choices

FRICTION_SPEED = 0.1
"""Joint speed, rad/s or m/s, at which Coulomb friction has three quarters of its size."""


@dataclasses.dataclass(frozen=True)
class SensorNoise:
    """How far each sensor is from the truth; zero everywhere: not at all.

    Noises are standard deviations of white noise on every sample; biases and gain errors those of one
    constant for each axis or joint, drawn once.

    Attributes:
        gyroscope_noise, gyroscope_bias: rad/s.  accelerometer_noise, accelerometer_bias: m/s2.
        position_noise, position_step: of joints, rad or m; step: what an encoder resolves.
        velocity_noise: of joints, rad/s or m/s.
        effort_noise: N m or N.  effort_gain_error: relative.
        effort_friction: Coulomb friction, N m or N, that a motor's current pays for and the joint
            does not get.
        force_noise, moment_noise: of force/torque sensors, N and N m.
        delay_s: age of everything when it is read.

    Raises:
        ConfigurationError: a negative or infinite value.
    """

    gyroscope_noise: float = 0.0
    gyroscope_bias: float = 0.0
    accelerometer_noise: float = 0.0
    accelerometer_bias: float = 0.0
    position_noise: float = 0.0
    position_step: float = 0.0
    velocity_noise: float = 0.0
    effort_noise: float = 0.0
    effort_gain_error: float = 0.0
    effort_friction: float = 0.0
    force_noise: float = 0.0
    moment_noise: float = 0.0
    delay_s: float = 0.0

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value < math.inf:
                raise ConfigurationError(
                    f"sensor {field.name} is {value}, must be at least 0 and finite"
                )


_GOOD = SensorNoise(
    gyroscope_noise=0.005,
    gyroscope_bias=0.002,
    accelerometer_noise=0.05,
    accelerometer_bias=0.02,
    position_noise=1e-4,
    velocity_noise=0.02,
    effort_noise=0.01,
    force_noise=0.1,
    moment_noise=0.01,
)

PRESETS = {
    "perfect": SensorNoise(),
    "good": _GOOD,
    "motor_currents": dataclasses.replace(
        _GOOD,
        gyroscope_noise=0.01,
        accelerometer_noise=0.1,
        position_noise=5e-4,
        velocity_noise=0.05,
        effort_noise=0.02,
        effort_gain_error=0.03,
        effort_friction=0.02,
    ),
    "cheap": SensorNoise(
        gyroscope_noise=0.02,
        gyroscope_bias=0.01,
        accelerometer_noise=0.2,
        accelerometer_bias=0.1,
        position_noise=5e-4,
        position_step=2.0 * math.pi / 8192,
        velocity_noise=0.05,
        effort_noise=0.05,
        effort_gain_error=0.05,
        effort_friction=0.05,
        force_noise=1.0,
        moment_noise=0.1,
    ),
}
"""good: joint torque sensors and a good IMU.  motor_currents: efforts from currents.  cheap: hobby parts."""


def preset(name: str) -> SensorNoise:
    """The noise of a preset.

    Raises:
        ConfigurationError: no preset of that name.
    """
    if name not in PRESETS:
        raise ConfigurationError(f"sensors are {name!r}, must be one of {choices(PRESETS)}")
    return PRESETS[name]


class Readings(NamedTuple):
    """What the sensors say, all of one instant.

    time_s: of that instant.  angular_velocity (3,) rad/s and linear_acceleration (3,) m/s2 (gravity
    inside) in the IMU's axes.  position, velocity, effort (na,) in command order.
    wrenches (n, 6): forces, then moments.
    """

    time_s: float
    angular_velocity: np.ndarray
    linear_acceleration: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    wrenches: np.ndarray


class NoisySensors:
    """The sensors of one robot; the same seed gives the same biases, gains and noise.

    Args:
        noise: a ``SensorNoise``, or the name of a preset.
        joints: number of joints.
        period_s: of the readings; the delay is rounded to whole periods.
        wrenches: number of force/torque sensors.
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
        wrenches: int = 0,
        seed: int = 0,
    ):
        if not 0.0 < period_s < math.inf:
            raise ConfigurationError(f"period_s is {period_s}, must be above 0 and finite")
        self.noise = preset(noise) if isinstance(noise, str) else noise
        self._joints, self._wrenches = joints, wrenches
        self._rng = rng = np.random.default_rng(seed)
        self.gyroscope_bias = rng.normal(size=3) * self.noise.gyroscope_bias
        self.accelerometer_bias = rng.normal(size=3) * self.noise.accelerometer_bias
        self.effort_gain = 1.0 + rng.normal(size=joints) * self.noise.effort_gain_error
        self._waiting: deque[Readings] = deque(maxlen=1 + round(self.noise.delay_s / period_s))

    def reset(self) -> None:
        """Forget readings under way; biases and gains stay those of the same sensors."""
        self._waiting.clear()

    def read(
        self,
        time_s: float,
        angular_velocity,
        linear_acceleration,
        position,
        velocity,
        effort,
        wrenches=(),
    ) -> Readings:
        """What is read at ``time_s`` where this is true; see ``Readings`` for shapes.

        With a delay, the oldest reading until it has passed once.

        Raises:
            StateError: wrong shapes.
        """
        noise, joints = self.noise, self._joints
        velocity = _shaped("velocity", velocity, (joints,))
        current = _shaped("effort", effort, (joints,))
        if noise.effort_friction:
            current = current + noise.effort_friction * np.tanh(velocity / FRICTION_SPEED)
        position = self._noisy(_shaped("position", position, (joints,)), noise.position_noise)
        if noise.position_step:
            position = noise.position_step * np.round(position / noise.position_step)
        shape = (self._wrenches, 6)
        wrenches = _shaped("wrenches", wrenches if self._wrenches else np.zeros(shape), shape)
        self._waiting.append(
            Readings(
                float(time_s),
                self._noisy(
                    _shaped("angular_velocity", angular_velocity, (3,)) + self.gyroscope_bias,
                    noise.gyroscope_noise,
                ),
                self._noisy(
                    _shaped("linear_acceleration", linear_acceleration, (3,))
                    + self.accelerometer_bias,
                    noise.accelerometer_noise,
                ),
                position,
                self._noisy(velocity, noise.velocity_noise),
                self._noisy(current * self.effort_gain, noise.effort_noise),
                self._noisy(wrenches, np.repeat([noise.force_noise, noise.moment_noise], 3)),
            )
        )
        return self._waiting[0]

    def _noisy(self, values, deviation):
        return values + self._rng.standard_normal(values.shape) * deviation


def _shaped(name, values, shape):
    """A fresh array of that shape, or StateError."""
    array = np.array(values, dtype=float)
    if array.shape != shape:
        raise StateError(f"true {name} has shape {array.shape}, must be {shape}")
    return array
