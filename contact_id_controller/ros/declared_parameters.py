"""ROS parameters made from a table of specifications: declared, described, bounded and checked.

Any node can use it with its own table; the tables are in `settings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.parameter_spec import ParameterSpec
from contact_id_controller.ros.executor import incidents_of
from contact_id_controller.ros.parameter_service import AnsweringParameterService
from contact_id_controller.safety.incidents import Incidents
from contact_id_controller.settings.base import Settings, belongs_to_ros, unknown_parameter
from contact_id_controller.settings.nodes import SHARED
from contact_id_controller.settings.shared_rows import START_ONLY
from contact_id_controller.settings.specification import table_of

SomeSettings = TypeVar("SomeSettings", bound=Settings)

NODE_OPTIONS = {
    "automatically_declare_parameters_from_overrides": True,
    "start_parameter_services": False,
}
"""Options of every node with a table: a bad value or a misspelt name in a parameter file then does not raise in rclpy,
but is found by `ParameterTable.values`, and `AnsweringParameterService` serves requests."""

_INT64 = 2**63 - 1
_EMPTY_LISTS = {
    "strings": Parameter.Type.STRING_ARRAY,
    "numbers": Parameter.Type.DOUBLE_ARRAY,
}

MOST_VALUES, MOST_CHARACTERS = 1000, 4096
"""Longest list and text: no robot needs more, and checking more takes longer than a period."""

_LONGEST_REASON = 500


class ParameterTable:
    """The parameters of a node, declared from a table and checked whenever they are set.

    Args:
        node: the node that owns the parameters, made with `NODE_OPTIONS`.
        table: their specifications.
        locked: returns whether parameters that are not live are locked now.
        check_live: called with all values, as they would become, when live ones change while locked;
            raises ConfigurationError to refuse them.
        served: whether other nodes may read and set them.
        incidents: catches errors in requests; None: they are logged by the node.
    """

    def __init__(
        self,
        node: Node,
        table: Sequence[ParameterSpec],
        locked: Callable[[], bool] = lambda: False,
        check_live: Callable[[dict[str, Any]], None] = lambda values: None,
        *,
        served: bool = True,
        incidents: Incidents | None = None,
    ) -> None:
        self._node = node
        self._specs = {spec.name: spec for spec in table}
        self._locked, self._check_live = locked, check_live
        self.changed = False
        """Set when a parameter was changed, cleared when the change is applied."""
        self._start: dict[str, Any] = {}
        self._current: dict[str, Any] | None = None
        for spec in table:
            self._declare(spec)
        self._start = {name: node.get_parameter(name).value for name in self._specs}
        node.add_on_set_parameters_callback(self._check_set)
        self._follows = hasattr(node, "add_post_set_parameters_callback")  # not in Humble
        if self._follows:
            node.add_post_set_parameters_callback(self._follow)
        if served and not hasattr(node, "_parameter_service"):
            incidents = incidents_of(node) if incidents is None else incidents
            node._parameter_service = AnsweringParameterService(node, incidents)

    def _declare(self, spec: ParameterSpec) -> None:
        """Declare a parameter with its description; a bad override is kept for ``values`` to refuse."""
        description = describe(spec)
        if not self._node.has_parameter(spec.name):
            default = list(spec.default) if isinstance(spec.default, tuple) else spec.default
            self._node.declare_parameter(spec.name, default, description, ignore_override=True)
            if default == []:
                empty = Parameter(spec.name, _EMPTY_LISTS[spec.kind], [])
                self._node.set_parameters([empty])
            return
        value = self._node.get_parameter(spec.name).value
        try:
            spec.check(value)
        except ConfigurationError:
            return  # Reported by `values`; with its range declared ROS would raise here.
        self._node.set_descriptor(spec.name, description)

    def values(self) -> dict[str, Any]:
        """Checked values of all parameters of the table, by name.

        Raises:
            ConfigurationError: a bad value, or a parameter that is not in the table, nor shared by other nodes.
        """
        for name in self._node.get_parameters_by_prefix(""):
            if name not in self._specs and name not in SHARED and not belongs_to_ros(name):
                raise ConfigurationError(unknown_parameter(name, self._specs))
        values = {name: self._node.get_parameter(name).value for name in self._specs}
        for name, value in values.items():
            refuse_size(name, value)
        checked = {name: spec.check(_plain(values[name])) for name, spec in self._specs.items()}
        if self._follows:
            self._current = dict(checked)
        return checked

    def current(self) -> dict[str, Any]:
        """As `values`, but reads only what has changed: reading all takes several periods."""
        return self.values() if self._current is None else self._current

    def _follow(self, parameters: list[Parameter]) -> None:
        """Keep values that were checked and set."""
        if self._current is not None:
            for each in parameters:
                if each.name in self._specs:
                    self._current[each.name] = self._specs[each.name].check(_plain(each.value))

    def _check_set(self, parameters: list[Parameter]) -> SetParametersResult:
        """ROS callback: accept parameters, all or none; the reason names the first one refused."""
        try:
            for parameter in parameters:
                self._refuse_at_sight(parameter.name, parameter.value)
            ours = {p.name: _plain(p.value) for p in parameters if p.name in self._specs}
            for name, value in ours.items():
                ours[name] = self._specs[name].check(value)
                self._refuse_looser(name, ours[name])
            if ours and self._locked():
                self._refuse_locked(ours)
                self._check_live({**self.current(), **ours})
        except ConfigurationError as error:
            return SetParametersResult(successful=False, reason=_shortened(str(error)))
        self.changed = self.changed or bool(ours)
        return SetParametersResult(successful=True)

    def _refuse_at_sight(self, name: str, value: Any) -> None:
        """Refuse an unknown name, a value that is too large, and one that may only be given at the start."""
        if name not in self._specs and not (name and belongs_to_ros(name)):
            raise ConfigurationError(
                unknown_parameter(name[:MOST_CHARACTERS], self._specs)
                if name
                else "a parameter without a name"
            )
        refuse_size(name, value)
        if name in START_ONLY and name in self._start and value != self._start[name]:
            raise ConfigurationError(
                f"parameter '{name}' can only be given at the start of the node: other nodes may not change what it "
                "allows"
            )

    def _refuse_looser(self, name: str, value: Any) -> None:
        """Refuse a value of a safety limit that is looser than at the start; other nodes may only tighten it."""
        spec, start = self._specs[name], _plain(self._start.get(name))
        if start is not None and spec.is_looser(value, start):
            shown, most = (list(v) if isinstance(v, tuple) else v for v in (value, start))
            raise ConfigurationError(
                f"parameter '{name}' is {shown}, must be at {spec.guards} {most}, as at the start of "
                "the node: a safety limit"
            )

    def _refuse_locked(self, names: Iterable[str]) -> None:
        for name in names:
            if not self._specs[name].live:
                raise ConfigurationError(
                    f"parameter '{name}' can only change before configure: "
                    "deactivate and clean up first"
                )


def read_settings(node: Node, settings: type[SomeSettings], *, served: bool = True) -> SomeSettings:
    """Declare all parameters of a node, and check the given ones; none may change later.

    served: whether other nodes may read them.

    Raises:
        ConfigurationError: unknown name, wrong type, value outside its range, or values that do not
            fit each other.
    """
    table = ParameterTable(node, table_of(settings), locked=lambda: True, served=served)
    return settings.from_mapping(table.values())


def refuse_size(name: str, value: Any) -> None:
    """Refuse a value that is too long, before anything else is checked.

    Raises:
        ConfigurationError: naming the parameter, its size and the largest one.
    """
    size, most, what = 0, MOST_CHARACTERS, "characters"
    if isinstance(value, (str, bytes)):
        size = len(value)
    elif hasattr(value, "__len__"):
        size, most, what = len(value), MOST_VALUES, "values"
        if size <= most:
            for each in value:
                refuse_size(name, each)
    if size > most:
        raise ConfigurationError(f"parameter '{name}' has {size} {what}, must have at most {most}")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


def describe(spec: ParameterSpec) -> ParameterDescriptor:
    """The descriptor of a parameter, as `ros2 param describe` shows it.

    Typing is dynamic so that an integer is accepted where a number is expected, and one number
    where a list is; `ParameterSpec.check` decides.
    """
    unit = f" [{spec.unit}]" if spec.unit else ""
    descriptor = ParameterDescriptor(
        name=spec.name,
        description=spec.text + unit,
        additional_constraints=_constraints(spec),
        dynamic_typing=True,
    )
    bounded = math.isfinite(spec.minimum) or math.isfinite(spec.maximum)
    if bounded and spec.kind == "number":
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=float(spec.minimum), to_value=float(spec.maximum))
        ]
    if bounded and spec.kind == "integer":
        low, high = max(spec.minimum, -_INT64), min(spec.maximum, _INT64)
        descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
    return descriptor


def _constraints(spec: ParameterSpec) -> str:
    """Choices, range and whether live, as the text of ROS's parameter descriptor."""
    parts = []
    if spec.choices:
        parts.append(f"one of {choices(spec.choices)}")
    if spec.kind == "numbers" and (math.isfinite(spec.minimum) or math.isfinite(spec.maximum)):
        parts.append(f"each within [{spec.minimum:g}, {spec.maximum:g}]")
    parts.append("may change at any time" if spec.live else "may change only before configure")
    return "; ".join(parts)


def _plain(value: Any) -> Any:
    """A value with ROS's `array.array` as a list, for error messages."""
    return value.tolist() if hasattr(value, "tolist") else value
