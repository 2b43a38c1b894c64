"""Checks of the dynamics estimator's section: its values, its pipeline, whether its node can read the mounted sensors."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from contact_id_controller.check.findings import Finding, error, note, warning
from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.exceptions import ConfigurationError, ContactIdError
from contact_id_controller.lazy import loaded
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings

SUBJECT = "estimator"


def check_estimator(values: Mapping[str, Any], controller: ControllerSettings) -> list[Finding]:
    """Findings about the parameters of the estimator's node beside those of the controller."""
    try:
        settings = DynamicsEstimatorSettings.from_mapping(values)
    except ContactIdError as problem:
        return [error(SUBJECT, problem)]
    findings, sensors = [], settings.mounted
    level_within = settings.ground_height_noise_m
    if level_within and controller.ground_file:
        words = f"ground_height_noise_m is {level_within!r}, for level ground: 0 with a ground_file"
        findings.append(warning(SUBJECT, words))
    if sensors and importlib.util.find_spec("rclpy") is None:
        words = "the sensors' messages were not looked at: ROS is not installed"
        return [*findings, note(SUBJECT, words)]
    return findings + [_readable(sensor) for sensor in sensors]


def check_pipeline(values: Mapping[str, Any]) -> list[Finding]:
    """An error if the node could not be configured with values that `check_estimator` accepts; it compiles."""
    try:
        settings = DynamicsEstimatorSettings.from_mapping(values)
    except ContactIdError:
        return []  # `check_estimator` reports it
    try:
        feet, radii = settings.foot_frames, settings.foot_radii_m
        pipeline = EstimationPipeline(settings.robot(), feet, radii, settings.pipeline)
        settings.refuse_unknown_wrenches(pipeline.estimator.joint_names)
    except ContactIdError as problem:
        return [error(SUBJECT, problem)]
    rank = pipeline.estimator.observability.rank
    return [note(SUBJECT, f"{len(feet)} feet, rank {rank}")]


def _readable(sensor: Mounted) -> Finding:
    """Whether the node can read a sensor's messages."""
    package = sensor.message.partition("/")[0]
    if importlib.util.find_spec(package) is None:
        words = f"the messages of {package} are not installed: the node cannot start"
        return warning(SUBJECT, f"{sensor.topic}: {words}")
    try:
        loaded("ros.packed:readable")(sensor.message, sensor.numbers)
    except ConfigurationError as problem:
        return error(SUBJECT, f"{sensor.topic}: {problem}")
    return note(SUBJECT, f"{sensor.topic} is read from {sensor.message}")
