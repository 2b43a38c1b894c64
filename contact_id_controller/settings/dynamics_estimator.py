"""Everything a user can set on the dynamics estimator."""

from __future__ import annotations

import dataclasses

from contact_id_controller.estimation.odometry_settings import BaseOdometrySettings
from contact_id_controller.estimation.pipeline_settings import (
    DIRECTIONS,
    PipelineSettings,
    WrenchSensor,
)
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.robot_rows import Description, FeetRows
from contact_id_controller.settings.shared_rows import contact_radii
from contact_id_controller.settings.specification import parameter

ODOMETRY = {
    "imu_frame": "imu_frame",
    "gyroscope_density_rad_s_rthz": "gyroscope_noise",
    "accelerometer_density_m_s2_rthz": "accelerometer_noise",
    "gyroscope_range_rad_s": "gyroscope_range",
    "accelerometer_range_m_s2": "accelerometer_range",
    "foot_position_noise_m": "foot_position_noise_m",
    "ground_height_noise_m": "ground_height_noise_m",
    "gravity_m_s2": "gravity_m_s2",
    "slip_speed_m_s": "slip_speed_m_s",
    "imu_timeout_s": "imu_timeout_s",
    "stamp_limit_s": "stamp_limit_s",
    "coasting_limit_s": "coasting_limit_s",
    "still_time_s": "still_time_s",
}
"""Parameter -> the field of ``BaseOdometrySettings`` that it sets."""

_ODOMETRY, _PIPELINE, _WRENCH = BaseOdometrySettings(), PipelineSettings(), WrenchSensor("")


def _noise(name: str, what: str, unit: str):
    """The row of a noise of the dynamics estimator."""
    return parameter(
        getattr(_PIPELINE, name),
        f"Standard deviation of {what} after the low-pass, with what the model lacks.",
        unit=unit,
        minimum=1e-6,
    )


def _share(name: str, what: str):
    """The row of a threshold of contact."""
    return parameter(getattr(_PIPELINE, name), what, minimum=1e-6, maximum=1.0)


def _odometry(name: str, description: str, unit: str = "", minimum: float = 1e-9):
    """The row of a setting of the odometry."""
    default = getattr(_ODOMETRY, ODOMETRY[name])
    return parameter(default, description, unit=unit, minimum=minimum)


@dataclasses.dataclass(frozen=True)
class DynamicsEstimatorSettings(FeetRows, Description):
    """Settings of the dynamics estimator; names shared with the controller mean the same there."""

    # The robot
    joints: tuple[str, ...] = parameter(
        (), "Measured joints; empty: all of the URDF. Joint states may have more, in any order."
    )
    contact_radii_m: tuple[float, ...] = contact_radii(0.01, 1e-4)
    imu_frame: str = parameter("", "Frame of the IMU, on the base; empty: the base.")

    # The dynamics
    period_s: float = parameter(
        _PIPELINE.period_s, "Period of the joint states.", unit="s", minimum=1e-4, maximum=0.1
    )
    cutoff_hz: float = parameter(
        _PIPELINE.cutoff_hz,
        "Of the low-pass that all signals share, so that all are late by the same time.",
        unit="Hz",
        minimum=0.1,
        infinite=True,
    )
    accelerometer_noise_m_s2: float = _noise(
        "accelerometer_noise_m_s2", "the accelerometer", "m/s2"
    )
    angular_acceleration_noise_rad_s2: float = _noise(
        "angular_acceleration_noise_rad_s2", "the gyroscope, differentiated,", "rad/s2"
    )
    joint_acceleration_noise_rad_s2: float = _noise(
        "joint_acceleration_noise_rad_s2", "joint velocities, differentiated,", "rad/s2"
    )
    effort_noise_nm: float = _noise("effort_noise_nm", "joint efforts", "N·m")
    model_force_noise_n: float = parameter(
        _PIPELINE.model_force_noise_n,
        "Standard deviation of the forces on the base that the model lacks; 0: it is exact.",
        unit="N",
        minimum=0.0,
    )
    force_torque_sensors: tuple[str, ...] = parameter(
        (),
        """Joints, or contact frames, with a six-axis force/torque sensor that is read on topic
        wrench/<name>. A joint's: what the link nearer to the base does to the other one. A contact
        frame's: what the ground does to the foot, in the frame's axes.""",
    )
    force_torque_frames: tuple[str, ...] = parameter(
        (),
        """Frames in whose axes, and about whose origins, the sensors of joints measure, one each;
        empty: the joint's own, on the outer link.""",
    )
    force_torque_directions: tuple[str, ...] = parameter(
        ("parent_to_child",),
        "Which link the wrench of a joint's sensor acts on, one for all or one each.",
        choices=DIRECTIONS,
    )
    force_noise_n: float = parameter(
        _WRENCH.force_noise_n,
        "Standard deviation of the forces of those sensors after the low-pass.",
        unit="N",
        minimum=1e-6,
    )
    moment_noise_nm: float = parameter(
        _WRENCH.moment_noise_nm,
        "Standard deviation of their moments after the low-pass.",
        unit="N·m",
        minimum=1e-6,
    )
    wrench_timeout_s: float = parameter(
        0.02, "Age above which a wrench counts as missing.", unit="s", minimum=1e-4
    )
    residual_limit: float = parameter(
        _PIPELINE.residual_limit,
        "Normalised residual from which on a sensor is said to lie; 1 is usual.",
        minimum=1.0,
    )

    # Contact
    contact_on_share: float = _share(
        "contact_on_share", "Share of the weight above which a foot comes into contact."
    )
    contact_off_share: float = _share(
        "contact_off_share", "Share of the weight below which a foot leaves contact."
    )
    planned_on_share: float = _share(
        "planned_on_share",
        "The same for feet that stand by contact_schedule: one that has just landed carries little.",
    )
    planned_off_share: float = _share(
        "planned_off_share", "The same for feet that stand by contact_schedule."
    )

    # The odometry
    gyroscope_density_rad_s_rthz: float = _odometry(
        "gyroscope_density_rad_s_rthz", "Noise density of the gyroscope.", "rad/s/√Hz"
    )
    accelerometer_density_m_s2_rthz: float = _odometry(
        "accelerometer_density_m_s2_rthz", "Noise density of the accelerometer.", "m/s2/√Hz"
    )
    gyroscope_range_rad_s: float = _odometry(
        "gyroscope_range_rad_s", "Of the gyroscope; what reaches it is saturated.", "rad/s"
    )
    accelerometer_range_m_s2: float = _odometry(
        "accelerometer_range_m_s2", "Of the accelerometer; what reaches it is saturated.", "m/s2"
    )
    foot_position_noise_m: float = _odometry(
        "foot_position_noise_m", "Of a foot's place by the encoders.", "m"
    )
    ground_height_noise_m: float = _odometry(
        "ground_height_noise_m",
        """The ground is level to within this, which holds the height of the base; 0: nothing is
        known of the ground, and the height drifts.""",
        "m",
        0.0,
    )
    gravity_m_s2: float = _odometry("gravity_m_s2", "Gravity at the robot's place.", "m/s2")
    slip_speed_m_s: float = _odometry(
        "slip_speed_m_s", "Speed of a foot on the ground from which on it slips.", "m/s"
    )
    imu_timeout_s: float = _odometry(
        "imu_timeout_s", "So long the last good sample stands in for a bad IMU.", "s"
    )
    stamp_limit_s: float = _odometry(
        "stamp_limit_s", "Largest difference of the stamps of IMU and joints.", "s"
    )
    coasting_limit_s: float = _odometry(
        "coasting_limit_s", "Without any foot on the ground for so long the base is lost.", "s"
    )
    still_time_s: float = _odometry(
        "still_time_s", "How long the robot stands still before the odometry begins.", "s"
    )

    # The topics
    mode: str = parameter(
        "real_time",
        """real_time: each joint state is used with the newest IMU. lockstep: it waits for the IMU of
        its own stamp.""",
        choices=("real_time", "lockstep"),
    )
    reliable_topics: bool = parameter(
        False, "Take IMU and joint states reliably instead of best effort. Implied by lockstep."
    )
    odometry_frame: str = parameter("odom", "Frame in which the base is said to be.")
    base_frame: str = parameter("base", "Frame of the base.")
    publish_tf: bool = parameter(True, "Publish the base's pose on /tf, where tf2_msgs is there.")
    joint_wrenches: tuple[str, ...] = parameter(
        (), "Joints whose wrench is published on ~/joint_wrench/<joint>."
    )
    autostart: bool = parameter(
        False, "Configure and activate at start, without a lifecycle manager."
    )
    record_path: str = parameter(
        "",
        "File (.npz) into which each estimate is recorded, written on deactivation; empty: none.",
    )

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""
        self.require("urdf", "a robot description")
        if not self.flat_feet_frames:
            self.require("contact_frames", "the feet")
        self.refuse_repeated("joints", "joint_wrenches", "force_torque_sensors")
        self.check_feet()
        _ = self.locked
        _ = self.pipeline

    @property
    def reliable(self) -> bool:
        """Whether IMU and joint states are taken reliably."""
        return self.reliable_topics or self.mode == "lockstep"

    @property
    def pipeline(self) -> PipelineSettings:
        """What the estimation without ROS is told."""
        odometry = {field: getattr(self, name) for name, field in ODOMETRY.items()}
        names = {field.name for field in dataclasses.fields(PipelineSettings)}
        own = {name: getattr(self, name) for name in names & set(vars(self))}
        return PipelineSettings(
            odometry=BaseOdometrySettings(**odometry),
            soles=self.flat_feet_frames,
            wrench_sensors=self.wrench_sensors,
            **own,
        )

    @property
    def wrench_sensors(self) -> tuple[WrenchSensor, ...]:
        """The force/torque sensors, each with its frame and direction.

        Raises:
            ConfigurationError: frames or directions that are not as many as the sensors.
        """
        names, frames = self.force_torque_sensors, self.force_torque_frames
        directions = self.force_torque_directions
        if len(frames) not in (0, len(names)):
            raise ConfigurationError(
                f"parameter 'force_torque_frames' has {len(frames)} values, must have none or "
                f"{len(names)}, one for each of 'force_torque_sensors'"
            )
        if len(directions) not in (1, len(names)):
            raise ConfigurationError(
                f"parameter 'force_torque_directions' has {len(directions)} values, must have 1 or "
                f"{len(names)}, one for each of 'force_torque_sensors'"
            )
        frames = frames or ("",) * len(names)
        directions = directions * len(names) if len(directions) == 1 else directions
        noises = self.force_noise_n, self.moment_noise_nm
        return tuple(WrenchSensor(*row, *noises) for row in zip(names, frames, directions))

    @property
    def foot_radii_m(self) -> list[float]:
        """How far below its frame each of ``foot_frames`` touches level ground, m."""
        from contact_id_controller.geometry.feet import CORNER_RADIUS_M

        radii = self.spread("contact_radii_m", len(self.contact_frames)).tolist()
        return radii + [max(-foot.center_m[2], CORNER_RADIUS_M) for foot in self.flat_feet]
