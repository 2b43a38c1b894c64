"""Reads and writes ROS parameter files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.files import parse_value as parse_value
from contact_id_controller.files import read_yaml as read_yaml
from contact_id_controller.files import with_powers_of_ten, write_text
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.nodes import TABLES
from contact_id_controller.settings.removed import RENAMED_NODES

_BODY = "ros__parameters"
_ALL_NODES = "/**"
_KNOWN = {spec.name for table in TABLES.values() for spec in table}


class ParameterFile:
    """A parameter file: the values of each node, and those of ``/**`` for all nodes that have them, as in ROS.

    Raises:
        ConfigurationError: the file is missing, is no text, or is not YAML; or a section has the former
            name of a node.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        content = read_yaml(self.path)
        self._bodies = content if isinstance(content, dict) else {}
        for name in self._bodies:
            if not isinstance(name, str):
                raise ConfigurationError(f"'{path}' names a section {name!r}, must be a text")
            if new := RENAMED_NODES.get(name.lstrip("/")):
                raise ConfigurationError(f"section '{name}' of '{path}' is named '{new}' now")

    def __contains__(self, node: str) -> bool:
        return bool(self._names(node))

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that have a section, without a leading slash."""
        return list(
            dict.fromkeys(str(name).lstrip("/") for name in self._bodies if name != _ALL_NODES)
        )

    def section(self, node: str) -> dict[str, Any]:
        """Values of one node, which override those of ``/**``; of these, other nodes' parameters are left out.

        Raises:
            ConfigurationError: the file has no such section, or one without ``ros__parameters``.
        """
        names = self._names(node)
        if not names:
            found = choices(self.nodes) or "nothing"
            if not self.nodes and _ALL_NODES in self._bodies:
                found = (
                    f"'{_ALL_NODES}', which holds what nodes share and starts none: put a line "
                    f"'{node}:' above its values"
                )
            raise ConfigurationError(f"'{self.path}' has no section '{node}', only {found}")
        shared = self._merged([_ALL_NODES] if _ALL_NODES in self._bodies else [])
        own = _names_of(_base_name(node))
        others = _KNOWN - own if own else set()
        return {k: v for k, v in shared.items() if k not in others} | self._merged(names)

    def named(self, node: str) -> list[dict[str, Any]]:
        """Values of every node of this name, in any namespace.

        Without one those of ``/**``, if some of them are this node's and no other's that has a section.

        Raises:
            ConfigurationError: a section without ``ros__parameters``.
        """
        kinds = [_base_name(name) for name in self.nodes]
        if node in kinds or _ALL_NODES not in self._bodies:
            return [self.section(name) for name, kind in zip(self.nodes, kinds) if kind == node]
        names, taken = _names_of(node), set[str]().union(*map(_names_of, kinds))
        own = {k: v for k, v in self._merged([_ALL_NODES]).items() if k in names}
        return [own] if own.keys() - taken else []

    def own_section(self, node: str) -> dict[str, Any]:
        """Values of one section alone, without ``/**``, for a section of no node.

        Raises:
            ConfigurationError: as ``section``.
        """
        self.section(node)
        return self._merged(self._names(node))

    def sections(self) -> dict[str, dict[str, Any]]:
        """Values of every node.

        Raises:
            ConfigurationError: a section without ``ros__parameters``.
        """
        return {node: self.section(node) for node in self.nodes}

    def _names(self, node: str) -> list[str]:
        return [name for name in (node, f"/{node}") if name in self._bodies]

    def _merged(self, names: Iterable[str]) -> dict[str, Any]:
        """Parameters of these sections in one mapping; a later section overrides an earlier one."""
        values: dict[str, Any] = {}
        for name in names:
            body = self._bodies[name]
            if not isinstance(body, dict) or not isinstance(body.get(_BODY), dict):
                raise ConfigurationError(f"section '{name}' of '{self.path}' has no '{_BODY}'")
            strange = [key for key in body[_BODY] if not isinstance(key, str)]
            if strange:
                raise ConfigurationError(
                    f"section '{name}' of '{self.path}' names a parameter {strange[0]!r}, must be a text"
                )
            values.update(body[_BODY])
        return values


def _base_name(node: str) -> str:
    """The name of a node without its namespace."""
    return node.rpartition("/")[2]


def _names_of(node: str) -> set[str]:
    """Names of a node's parameters; none of an unknown node."""
    return {spec.name for spec in TABLES.get(node, ())}


def load_settings(path: str | Path, section: str = "controller") -> ControllerSettings:
    """Read the controller's settings from a section of a parameter file.

    Raises:
        ConfigurationError: the file is missing, is not YAML, lacks the section, or holds a bad value.
    """
    return ControllerSettings.from_mapping(ParameterFile(path).section(section))


def changed_parameters(
    friction: str | None, solver: str | None, changes: Sequence[str]
) -> dict[str, Any]:
    """Parameters of the controller that a command line changes: friction, solver, and ``NAME=VALUE`` in YAML.

    Raises:
        ConfigurationError: a change of another form.
    """
    named: dict[str, Any] = {"friction": friction, "solver": solver}
    changed = {name: value for name, value in named.items() if value is not None}
    for change in changes:
        name, equals, text = change.partition("=")
        name = name.strip().removeprefix("controller.")
        if not equals or not name:
            raise ConfigurationError(f"--set {change!r} is not of the form NAME=VALUE")
        changed[name] = parse_value(text)
    return changed


def write_parameters(path: Path, parameters: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the parameters of some nodes, name -> value, as one ROS parameter file."""
    content = {
        node: {_BODY: {name: _of_one_type(value) for name, value in values.items()}}
        for node, values in parameters.items()
    }
    write_text(path, yaml.dump(content, Dumper=_EachInFull, sort_keys=False))


def _of_one_type(value: Any) -> Any:
    """A list with all numbers as floats if one is: ROS reads no mixed lists."""
    if isinstance(value, list) and any(isinstance(each, float) for each in value):
        return [float(each) if type(each) is int else each for each in value]
    return value


class _EachInFull(with_powers_of_ten(yaml.SafeDumper)):  # type: ignore[misc]
    """Writes shared lists in full: ROS reads no YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
