"""Kinds of sensor that a robot may carry beside IMU, encoders and motors: one row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from contact_id_controller.estimation.foot_pressure import FootPressure
from contact_id_controller.estimation.force_torque import ForceTorqueSensor
from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.parameter_spec import named_settings

KINDS: dict[str, type[Mounted]] = {
    "force_torque": ForceTorqueSensor,
    "foot_pressure": FootPressure,
}
"""Name in the parameter ``mounted_sensors`` -> class."""


def mounted(text: str) -> Mounted:
    """A sensor from ``kind name setting=value ...``, such as ``foot_pressure FL_FOOT area_m2=0.0004``.

    Raises:
        ConfigurationError: no such kind or setting, or a value that does not fit.
    """
    kind, _, rest = text.strip().partition(" ")
    if kind not in KINDS:
        raise ConfigurationError(f"sensor {text!r} is of no kind, choose one of {choices(KINDS)}")
    # A type is its name in a file that postpones annotations, else itself.
    known = {
        field.name: getattr(field.type, "__name__", str(field.type))
        for field in dataclasses.fields(KINDS[kind])[1:]
    }
    try:
        name, given = named_settings(rest, known)
    except ConfigurationError as error:
        raise ConfigurationError(f"sensor of kind {kind}: {error}") from None
    return KINDS[kind](name, **given)


def all_mounted(texts: Sequence[str]) -> tuple[Mounted, ...]:
    """The sensors of these texts.

    Raises:
        ConfigurationError: see ``mounted``; two on one topic.
    """
    found = tuple(map(mounted, texts))
    topics = [each.topic for each in found]
    for topic in topics:
        if topics.count(topic) > 1:
            raise ConfigurationError(f"two of 'mounted_sensors' are on topic {topic!r}")
    return found
