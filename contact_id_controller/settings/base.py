"""Base class of all nodes' settings: made from a mapping, every value checked."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.settings.removed import REMOVED
from contact_id_controller.settings.specification import table_of

if TYPE_CHECKING:
    from typing_extensions import Self


class Settings:
    """Base of the frozen dataclasses whose fields are the parameters of one node.

    A field without a description is no parameter: only Python sets it, for an experiment.
    """

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], **experimental: Any) -> Self:
        """Build the settings from a mapping of parameter names to values, each checked.

        Parameters that every ROS node has are ignored.

        Args:
            mapping: name -> value.
            experimental: fields that are no parameters.

        Raises:
            ConfigurationError: unknown name, wrong type, value outside its range, or values that do
                not fit each other.
        """
        settings = cls(**cls.checked(mapping), **experimental)
        settings.check_together()
        return settings

    @classmethod
    def checked(cls, mapping: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a mapping, each checked by itself; see ``from_mapping``."""
        known = {spec.name: spec for spec in table_of(cls)}
        values = {name: value for name, value in mapping.items() if not belongs_to_ros(str(name))}
        for name in values:
            if name not in known:
                raise ConfigurationError(unknown_parameter(str(name), known))
        return {name: known[name].check(value) for name, value in values.items()}

    @classmethod
    def experimental(cls) -> frozenset[str]:
        """Names of the fields that are no parameters."""
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(cls)  # type: ignore[arg-type]
        return frozenset(field.name for field in fields) - {spec.name for spec in table_of(cls)}

    def changed(self, values: Mapping[str, Any]) -> Self:
        """The settings with other values; unchanged ones are not checked again.

        Raises:
            ConfigurationError: as ``from_mapping``.
        """
        missing = object()
        new = {k: v for k, v in values.items() if v != getattr(self, str(k), missing)}
        settings: Self = dataclasses.replace(self, **self.checked(new))  # type: ignore[type-var]
        settings.check_together()
        return settings

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""

    def spread(self, name: str, count: int) -> np.ndarray:
        """Values of parameter ``name`` as an array (count,); a single value is repeated.

        Raises:
            ConfigurationError: the parameter holds neither 1 nor ``count`` values.
        """
        values = np.array(getattr(self, name), dtype=float)
        if values.size not in (1, count):
            raise ConfigurationError(
                f"parameter '{name}' has {values.size} values, must have 1 or {count}"
            )
        return np.full(count, values[0]) if values.size == 1 else values

    def require(self, name: str, what: str) -> None:
        """Raise ConfigurationError if a required parameter is empty; what: which it must name."""
        if not getattr(self, name):
            raise ConfigurationError(f"parameter '{name}' is empty, must name {what}")

    def refuse_repeated(self, *names: str) -> None:
        """Raise ConfigurationError if one of these lists has an entry more than once."""
        for name in names:
            values = getattr(self, name)
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ConfigurationError(
                    f"parameter '{name}' names {choices(twice)} more than once"
                )


def belongs_to_ros(name: str) -> bool:
    """Whether a parameter is one that every ROS node has."""
    return name == "use_sim_time" or name.startswith(("qos_overrides", "start_type_description"))


def unknown_parameter(name: str, known: Iterable[str]) -> str:
    """Message about a parameter that is in no table: removed, misspelt or unknown."""
    if name in REMOVED:
        return f"parameter '{name}' {REMOVED[name]}"
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3)
    valid = f"did you mean {choices(close)}?" if close else f"must be one of {choices(known)}"
    return f"unknown parameter '{name}', {valid}"
