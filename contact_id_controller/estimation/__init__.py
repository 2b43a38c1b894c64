"""Whole-body dynamics from any set of sensors, and the motion of a base that is not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contact_id_controller.lazy import public_names

if TYPE_CHECKING:  # what editors and type checkers see; at run time each name loads on first use
    from contact_id_controller.estimation.base_odometry import BaseOdometry
    from contact_id_controller.estimation.dynamics_estimator import DynamicsEstimator, Estimate
    from contact_id_controller.estimation.sensors import (
        Accelerometer,
        AngularAcceleration,
        Contact,
        ContactWrench,
        ForceTorque,
        Gyroscope,
        JointAcceleration,
        JointEffort,
        KnownWrench,
        StationaryFrame,
    )

__all__ = [
    "Accelerometer",
    "AngularAcceleration",
    "BaseOdometry",
    "Contact",
    "ContactWrench",
    "DynamicsEstimator",
    "Estimate",
    "ForceTorque",
    "Gyroscope",
    "JointAcceleration",
    "JointEffort",
    "KnownWrench",
    "StationaryFrame",
]

_HOMES = {
    "Accelerometer": "sensors",
    "AngularAcceleration": "sensors",
    "BaseOdometry": "base_odometry",
    "Contact": "sensors",
    "ContactWrench": "sensors",
    "DynamicsEstimator": "dynamics_estimator",
    "Estimate": "dynamics_estimator",
    "ForceTorque": "sensors",
    "Gyroscope": "sensors",
    "JointAcceleration": "sensors",
    "JointEffort": "sensors",
    "KnownWrench": "sensors",
    "StationaryFrame": "sensors",
}

if not TYPE_CHECKING:  # which would take any name from it
    __getattr__, __dir__ = public_names(__name__, globals(), _HOMES)
