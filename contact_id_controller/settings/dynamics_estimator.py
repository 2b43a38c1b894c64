"""The settings of the dynamics estimator."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.estimation.odometry_settings import BaseOdometrySettings
from contact_id_controller.estimation.pipeline_settings import PipelineSettings
from contact_id_controller.estimation.sensor_kinds import all_mounted
from contact_id_controller.exceptions import UnknownJointError, choices
from contact_id_controller.settings.robot_rows import SAME_ROBOT, FeetRows, MotorParameters
from contact_id_controller.settings.shared_rows import autostart, contact_radii, record_path
from contact_id_controller.settings.specification import parameter

ESTIMATOR = "dynamics_estimator"
_ODOMETRY, _PIPELINE = BaseOdometrySettings(), PipelineSettings()


@dataclasses.dataclass(frozen=True)
class DynamicsEstimatorSettings(FeetRows, MotorParameters):
    """Settings of the dynamics estimator; names shared with the controller have the same meaning.

    Noises and thresholds that fit every robot so far are the defaults of ``PipelineSettings`` and
    ``BaseOdometrySettings``.
    """

    # The robot
    joints: tuple[str, ...] = parameter(
        (),
        "Measured joints; empty: all of the URDF. Joint states may have more, in any order.",
        when="Set to the controller's joints.",
    )
    contact_radii_m: tuple[float, ...] = contact_radii(0.01, 1e-4)
    imu_frame: str = parameter(
        "",
        "Frame of the IMU, on the base; empty: the base.",
        when="Set to the frame in which your driver states the IMU's axes.",
    )

    # The dynamics
    period_s: float = parameter(
        _PIPELINE.period_s,
        "Period of the joint states.",
        when="Set to what your driver publishes at.",
        unit="s",
        minimum=1e-4,
        maximum=0.1,
    )
    cutoff_hz: float = parameter(
        _PIPELINE.cutoff_hz,
        "Of the low-pass that all signals share, so that all are late by the same time.",
        when="Lower for noisy velocities, raise for a later contact than the controller bears.",
        unit="Hz",
        minimum=0.1,
        infinite=True,
    )
    effort_noise_nm: float = parameter(
        _PIPELINE.effort_noise_nm,
        "Standard deviation of joint efforts after the low-pass, with what the model lacks.",
        when="Raise for friction of gears, to about a percent of the largest effort.",
        unit="N·m",
        minimum=1e-6,
    )
    mounted_sensors: tuple[str, ...] = parameter(
        (),
        """Sensors beside IMU, encoders and motors, each with its kind, the joint or foot that it is at and its
        settings: "force_torque FR_KFE" (six axes, on topic wrench/<name>), "foot_pressure FL_FOOT
        area_m2=0.0004"; kinds and settings: docs/estimation.md.""",
        when="Set for a robot that has such sensors.",
    )

    # The odometry
    ground_height_noise_m: float = parameter(
        _ODOMETRY.ground_height_noise_m,
        """The ground is level to within this, which holds the height of the base until a foothold is 4 cm off, or
        it had to be held by 4 cm and 5 % of the path; 0: nothing is known of the ground, and the height drifts.""",
        when="0 on gentle ramps.",
        unit="m",
        minimum=0.0,
    )

    # The topics
    mode: str = parameter(
        "real_time",
        """real_time: each joint state is used with the newest IMU. lockstep: it waits for the IMU of
        its own stamp.""",
        when="lockstep with a simulation that waits for its commands.",
        choices=("real_time", "lockstep"),
    )
    reliable_topics: bool = parameter(
        False,
        "Take IMU and joint states reliably instead of best effort. Implied by lockstep.",
        when="Set true where your driver publishes reliably and no sample may be lost.",
    )
    odometry_frame: str = parameter(
        "odom",
        "Frame in which the pose of the base is published.",
        when="Set where another node publishes the frame odom.",
    )
    base_frame: str = parameter(
        "base",
        "Name of the frame of the base.",
        when="Set to the name that the robot's other nodes use, such as base_link.",
    )
    publish_tf: bool = parameter(
        True,
        "Publish the base's pose on /tf, where tf2_msgs is installed.",
        when="Set false where another node publishes it.",
    )
    joint_wrenches: tuple[str, ...] = parameter(
        (),
        "Joints whose wrench is published on ~/joint_wrench/<joint>.",
        when="Set to the joints whose load you want to see.",
    )
    autostart: bool = autostart()
    record_path: str = record_path("each estimate is recorded, written on deactivation")

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""
        self.require("urdf", "a robot description")
        if not self.soles:
            self.require("contact_frames", "the feet")
        self.refuse_repeated("joints", "joint_wrenches")
        self.check_feet()
        # Properties that refuse their parameters when they are made.
        _ = self.locked
        _ = self.pipeline

    def refuse_unknown_wrenches(self, joints: Sequence[str]) -> None:
        """Raise UnknownJointError for the first of ``joint_wrenches`` that is no joint of the estimator's."""
        for name in self.joint_wrenches:
            if name not in joints:
                raise UnknownJointError(
                    f"parameter 'joint_wrenches' names {name!r}, must be among {choices(joints)}"
                )

    @property
    def reliable(self) -> bool:
        """Whether IMU and joint states are taken reliably."""
        return self.reliable_topics or self.mode == "lockstep"

    @property
    def pipeline(self) -> PipelineSettings:
        """Settings of the estimation without ROS."""
        odometry = BaseOdometrySettings(
            imu_frame=self.imu_frame,
            ground_height_noise_m=self.ground_height_noise_m,
        )
        return PipelineSettings(
            period_s=self.period_s,
            cutoff_hz=self.cutoff_hz,
            effort_noise_nm=self.effort_noise_nm,
            odometry=odometry,
            soles=self.flat_feet_frames,
            mounted=self.mounted,
        )

    @property
    def mounted(self) -> tuple[Mounted, ...]:
        """The mounted sensors.

        Raises:
            ConfigurationError: see ``sensor_kinds.mounted``.
        """
        return all_mounted(self.mounted_sensors)

    @property
    def foot_radii_m(self) -> list[float]:
        """Distance from each of ``foot_frames`` down to the ground in contact, m; of a sole it may be 0 or negative."""
        radii = self.spread("contact_radii_m", len(self.contact_frames)).tolist()
        return radii + [-foot.center_m[2] for foot in self.flat_feet]


def estimator_parameters(
    section: Mapping[str, Any], controller: Mapping[str, Any]
) -> dict[str, Any]:
    """The estimator's section of a robot's file; missing values about the robot are those of the controller's."""
    same = {name: controller[name] for name in SAME_ROBOT if name in controller}
    return {**same, **section}
