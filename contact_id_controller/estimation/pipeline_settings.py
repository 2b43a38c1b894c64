"""Noises and thresholds of ``pipeline.EstimationPipeline``; no kernel is imported for them."""

from __future__ import annotations

import dataclasses
import math

from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.estimation.odometry_settings import BaseOdometrySettings
from contact_id_controller.exceptions import ConfigurationError

MAY_BE_ZERO = {"model_force_noise_n", "confirm_s"}
MAY_BE_INFINITE = {"cutoff_hz"}


@dataclasses.dataclass(frozen=True)
class PipelineSettings:
    """Noises and thresholds of the dynamics estimator and of contact.

    Noises are standard deviations after the low-pass, and include what the model lacks.

    Attributes:
        period_s: of the steps.
        cutoff_hz: of the low-pass that all signals share.
        accelerometer_noise_m_s2, angular_acceleration_noise_rad_s2: of the IMU, the latter of its
            gyroscope, differentiated.
        joint_acceleration_noise_rad_s2: of joint velocities, differentiated.
        effort_noise_nm: of joint efforts.
        model_force_noise_n: see ``DynamicsEstimator``.
        contact_on_share, contact_off_share: of the weight; a foot that is pushed upwards by more
            touches, one that is pushed by less has left.
        planned_on_share, planned_off_share: the same for feet that stand by the plan: lower, because
            a foot that has just landed carries little and must not be taken for one in the air.
        confirm_s: how long twice ``contact_on_share`` must last under a foot that the plan lifts.
        residual_limit: normalised residual from which on a sensor lies.
        residual_period_s: between two looks at the residuals; one bad look may be an impact, two name
            the sensor.
        soles: frames of the feet that are flat; their contact has a moment as well.
        mounted: sensors beside IMU, encoders and motors, see ``sensor_kinds``.
        odometry: of the base.

    Raises:
        ConfigurationError: a value outside its range, or thresholds that cross.
    """

    period_s: float = 1e-3
    cutoff_hz: float = 100.0
    accelerometer_noise_m_s2: float = 0.1
    angular_acceleration_noise_rad_s2: float = 5.0
    joint_acceleration_noise_rad_s2: float = 20.0
    effort_noise_nm: float = 0.05
    model_force_noise_n: float = 0.5
    contact_on_share: float = 0.06
    contact_off_share: float = 0.03
    planned_on_share: float = 0.02
    planned_off_share: float = 0.005
    confirm_s: float = 0.005
    residual_limit: float = 5.0
    residual_period_s: float = 0.02
    soles: tuple[str, ...] = ()
    mounted: tuple[Mounted, ...] = ()
    odometry: BaseOdometrySettings = dataclasses.field(default_factory=BaseOdometrySettings)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "float" and not (
                0.0 <= value
                and (value or field.name in MAY_BE_ZERO)
                and (value < math.inf or field.name in MAY_BE_INFINITE)
            ):
                least = "at least" if field.name in MAY_BE_ZERO else "above"
                raise ConfigurationError(
                    f"estimation {field.name} is {value}, must be {least} 0 and finite"
                )
        for which in ("contact", "planned"):
            on, off = getattr(self, f"{which}_on_share"), getattr(self, f"{which}_off_share")
            if off > on:
                raise ConfigurationError(
                    f"estimation {which}_off_share is {off}, must be at most {which}_on_share, {on}"
                )
