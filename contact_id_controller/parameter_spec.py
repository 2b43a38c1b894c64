"""Definition of one parameter: type, range, unit and meaning, and the check of its values.

The tables of all nodes (``settings``) and the options of the contact models consist of these rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from contact_id_controller.exceptions import ConfigurationError, choices

_WORDS = {
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "strings": "a list of texts",
    "numbers": "a number or a list of numbers",
}

SMALLEST, LARGEST = 1e-30, 1e30
"""Least and largest size of a number: powers of it are finite, and not 0."""

_SIZES = f"0 or between {SMALLEST:g} and {LARGEST:g} in size"


@dataclasses.dataclass(frozen=True)
class ParameterSpec:
    """One row of the table of parameters.

    ``description`` is what it is, ``when`` when to change it; `text` is both.  ``kind`` is one of string, boolean,
    integer, number, strings, numbers; ``numbers`` accepts a single number where one value holds for all. ``live``
    parameters may change while the node is configured or active; the others only before `configure`. ``minimum`` and
    ``maximum`` are inclusive and hold for each element. ``per`` names what a list has one value for ("joint",
    "contact frame", "axis"); one value alone then holds for all. ``validator`` returns what a value of the right type
    and range must be instead, or nothing if it is valid. ``guards``: "most" or "least", if the value at the node's
    start is the largest, or the smallest, that its peers may set: a limit that protects the robot, which
    they may only tighten. An empty list means no limit, and so does the number ``off``.
    """

    name: str
    kind: str
    default: Any
    description: str
    when: str = ""
    unit: str = ""
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()
    live: bool = False
    infinite: bool = False
    per: str = ""
    validator: Callable[[Any], str] | None = None
    guards: str = ""
    off: float | None = None

    @property
    def text(self) -> str:
        """Description with the advice when to change it."""
        return f"{self.description} {self.when}".rstrip()

    def is_looser(self, value: Any, start: Any) -> bool:
        """Whether a checked value protects the robot less than the one at the start."""
        if not self.guards:
            return False
        sign = 1.0 if self.guards == "most" else -1.0
        new, old = (_numbers(math.inf if each == self.off else each) for each in (value, start))
        count = max(len(new), len(old))
        return any(sign * new[k % len(new)] > sign * old[k % len(old)] for k in range(count))

    def check(self, value: Any) -> Any:
        """Return `value` in its canonical type: lists become tuples, whole numbers floats.

        Raises:
            ConfigurationError: wrong type, outside the range, not finite, or not one of the
                choices; the message names all of it.
        """
        if self.kind in ("strings", "numbers"):
            value = self._check_list(value)
        else:
            value = self._check_one(value, self.kind)
        wrong = self.validator(value) if self.validator is not None else ""
        if wrong:
            shown = list(value) if isinstance(value, tuple) else value
            raise ConfigurationError(f"parameter '{self.name}' is {shown!r}, must {wrong}")
        return value

    def _check_list(self, value: Any) -> tuple[Any, ...]:
        kind = self.kind[:-1]
        if isinstance(value, (int, float, bool)) and kind == "number":
            value = [value]
        if isinstance(value, (str, dict)) or not hasattr(value, "__iter__"):
            raise self._wrong_type(value)
        return tuple(self._check_one(element, kind) for element in value)

    def _check_one(self, value: Any, kind: str) -> Any:
        """Check one value of this kind, converting integers to numbers.

        ConfigurationError for another type, range or choice.
        """
        if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        expected: Any = {"string": str, "boolean": bool, "integer": int, "number": float}[kind]
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise self._wrong_type(value)
        if kind in ("integer", "number"):
            self._check_range(value)
        if self.choices and value not in self.choices:
            raise ConfigurationError(
                f"parameter '{self.name}' is {value!r}, must be one of {choices(self.choices)}"
            )
        return value

    def _check_range(self, value: float) -> None:
        """Raise ConfigurationError if a number is not finite or outside [minimum, maximum]."""
        if math.isnan(value) or (math.isinf(value) and not self.infinite):
            raise ConfigurationError(f"parameter '{self.name}' is {value}, must be finite")
        if not self.minimum <= value <= self.maximum:
            unit = f" {self.unit}" if self.unit else ""
            raise ConfigurationError(
                f"parameter '{self.name}' is {value:g}, must be within "
                f"[{self.minimum:g}, {self.maximum:g}]{unit}"
            )
        if value and not SMALLEST <= abs(value) <= LARGEST and not math.isinf(value):
            raise ConfigurationError(f"parameter '{self.name}' is {value:g}, must be {_SIZES}")

    def _wrong_type(self, value: Any) -> ConfigurationError:
        return ConfigurationError(
            f"parameter '{self.name}' is {value!r}, must be {_WORDS[self.kind]}"
        )


def named_settings(text: str, kinds: Mapping[str, str]) -> tuple[str, dict[str, float | str]]:
    """Parse ``name setting=value ...``, as "FL_FOOT area_m2=0.0004", into the name and its settings.

    Args:
        kinds: setting -> "float" or "str".

    Raises:
        ConfigurationError: no name, an unknown setting, or no finite number where one is required.
    """
    name, *words = text.split() or [""]
    if not name or "=" in name:
        raise ConfigurationError(f"{text!r} does not begin with a name")
    given: dict[str, float | str] = {}
    for word in words:
        setting, _, value = word.partition("=")
        if setting not in kinds:
            raise ConfigurationError(f"{text!r}: {setting!r} is none of {choices(kinds)}")
        try:
            given[setting] = float(value) if kinds[setting] == "float" else value
        except ValueError:
            raise ConfigurationError(f"{text!r}: {setting} is {value!r}, no number") from None
        if kinds[setting] == "float" and not math.isfinite(float(value)):
            raise ConfigurationError(f"{text!r}: {setting} is {value}, must be finite")
        if (
            kinds[setting] == "float"
            and float(value)
            and not SMALLEST <= abs(float(value)) <= LARGEST
        ):
            raise ConfigurationError(f"{text!r}: {setting} is {value}, must be {_SIZES}")
    return name, given


def _numbers(value: Any) -> list[float]:
    if isinstance(value, (tuple, list)):
        return list(map(float, value)) or [math.inf]
    return [float(value)]
