"""Kinds of sensor that a robot may carry beside IMU, encoders and motors: one row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from contact_id_controller.estimation.foot_pressure import FootPressure
from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.exceptions import ConfigurationError, choices

KINDS: dict[str, type[Mounted]] = {"foot_pressure": FootPressure}
"""Name in the parameter ``mounted_sensors`` -> class."""


def mounted(text: str) -> Mounted:
    """A sensor from ``kind name setting=value ...``, such as ``foot_pressure FL_FOOT area_m2=0.0004``.

    Raises:
        ConfigurationError: no such kind or setting, or a value that does not fit.
    """
    kind, *words = text.split() or [""]
    if kind not in KINDS:
        raise ConfigurationError(f"sensor {text!r} is of no kind, choose one of {choices(KINDS)}")
    if not words:
        raise ConfigurationError(f"sensor {text!r} has no name: the joint or foot that it is at")
    known = {field.name: field.type for field in dataclasses.fields(KINDS[kind])[1:]}
    given: dict[str, float | str] = {}
    for word in words[1:]:
        name, _, value = word.partition("=")
        if name not in known:
            raise ConfigurationError(f"sensor {text!r}: {name!r} is none of {choices(known)}")
        try:
            given[name] = float(value) if known[name] == "float" else value
        except ValueError:
            raise ConfigurationError(f"sensor {text!r}: {name} is {value!r}, no number") from None
    return KINDS[kind](words[0], **given)


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
