"""What a user can set on the base odometry: noises, limits, gates."""

from __future__ import annotations

import dataclasses
import math

from contact_id_controller.exceptions import ConfigurationError


@dataclasses.dataclass(frozen=True)
class BaseOdometrySettings:
    """Noises, limits and gates.

    Attributes:
        gyroscope_noise, accelerometer_noise: densities, rad/s/sqrt(Hz) and m/s2/sqrt(Hz).
        gyroscope_bias_walk, accelerometer_bias_walk: rad/s2/sqrt(Hz) and m/s3/sqrt(Hz). What a gyroscope at rest would
            need is less by far: while a robot walks its vibrations, aliased and rectified, are an error that stays for
            some tenths of a second and has a mean.
        gyroscope_bias, accelerometer_bias: standard deviations before anything is measured, rad/s, m/s2.
        foot_walk: how far a standing foot may creep, m/sqrt(s).
        foot_position_noise_m: of one measurement of a foot by the encoders.
        joint_noise: how far a joint of a leg with a flat foot is from where its encoder has it, by play and yielding,
            and how far the sole rocks, rad (m of sliders).
        sole_walk: how far a standing flat foot may turn, rad/sqrt(s).
        sole_turn, sole_creep: how far it may turn about the vertical and creep along the ground beyond that, while the
            leg moves over it at 1 m/s, rad/sqrt(s) and m/sqrt(s).
        gate: chi-square (3 freedoms) beyond which a foot is not believed.
        slip_speed_m_s, slip_time_s: a foot whose velocity on the ground, low-passed, exceeds this slips.
        compensate_rolling: spherical feet roll; off only to see what that costs.
        ground_height_noise_m: the ground is level to within this (standard deviation of each foothold), which holds the
            height until footholds say otherwise; 0: nothing is known of it.
        gravity_m_s2: at the robot's place.
        imu_frame: where the IMU is, on the base; empty: the base itself.
        gyroscope_range, accelerometer_range: rad/s, m/s2; what reaches them is saturated.
        frozen_limit_s: samples that repeat for so long while joints move are not believed.
        imu_timeout_s: so long the base is estimated without samples of the IMU, by its feet and with growing
            doubt; then it is lost.
        stamp_limit_s: largest difference of the stamps of IMU and joints; beyond it is reported, and feet
            count less the faster their legs move.
        longest_period_s: largest difference of stamps with which feet count at all.
        gap_limit_s: largest dt of a step: over a longer gap between states the pose is lost. A kernel holds
            real-time threads for up to 50 ms, and a busy computer for longer, which is no evidence against
            the pose: what no sample tells about makes it doubtful instead.
        coasting_limit_s: without any foot for so long: lost.
        gravity_limit_m_s2: the base's mean acceleration over a second must stay below.
        gyroscope_bias_limit, accelerometer_bias_limit: estimates beyond are not believed.
        still_time_s: how long the robot stands still at the start; still_samples of the IMU are as
            good, where a simulator waits and time hardly advances.
        still_rate_rad_s, still_acceleration_m_s2: what counts as still, of gyroscope and joints, and
            of the accelerometer's size against gravity.
        start_tilt_rad: the largest at the start; beyond, the IMU is mounted otherwise than configured.

    Raises:
        ConfigurationError: a value outside its range.
    """

    gyroscope_noise: float = 1e-3
    accelerometer_noise: float = 3e-2
    gyroscope_bias_walk: float = 1e-3
    accelerometer_bias_walk: float = 1e-4
    gyroscope_bias: float = 0.02
    accelerometer_bias: float = 0.2
    foot_walk: float = 5e-3
    foot_position_noise_m: float = 1e-3
    joint_noise: float = 0.02
    sole_walk: float = 1e-3
    sole_turn: float = 0.5
    sole_creep: float = 0.05
    gate: float = 30.0
    slip_speed_m_s: float = 0.1
    slip_time_s: float = 0.01
    compensate_rolling: bool = True
    ground_height_noise_m: float = 0.02
    gravity_m_s2: float = 9.81
    imu_frame: str = ""
    gyroscope_range: float = 34.9
    accelerometer_range: float = 156.9
    frozen_limit_s: float = 0.02
    imu_timeout_s: float = 0.1
    stamp_limit_s: float = 0.002
    longest_period_s: float = 0.02
    gap_limit_s: float = 0.5
    coasting_limit_s: float = 1.0
    gravity_limit_m_s2: float = 2.0
    gyroscope_bias_limit: float = 0.2
    accelerometer_bias_limit: float = 2.0
    still_time_s: float = 0.25
    still_samples: int = 250
    still_rate_rad_s: float = 0.3
    still_acceleration_m_s2: float = 1.5
    start_tilt_rad: float = 1.0

    def __post_init__(self) -> None:
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
        if self.still_samples < 1:
            raise ConfigurationError(
                f"odometry still_samples is {self.still_samples}, must be at least 1"
            )
