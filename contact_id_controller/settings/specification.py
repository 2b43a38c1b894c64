"""Tables of parameters declared as dataclasses, one field per row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from contact_id_controller.parameter_spec import ParameterSpec

ANNOTATIONS = {
    "string": "str",
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "strings": "tuple[str, ...]",
    "numbers": "tuple[float, ...]",
}
"""Kind of a parameter -> annotation of its field."""


def parameter(default: Any, description: str, **columns: Any) -> Any:
    """A dataclass field that carries the columns of its row; see `ParameterSpec`."""
    columns["description"] = " ".join(description.split())
    columns["when"] = " ".join(columns.get("when", "").split())
    return dataclasses.field(default=default, metadata=columns)


def _rows_of(settings: type) -> tuple[ParameterSpec, ...]:
    """The rows declared by the fields of a dataclass that have a description; other fields are no parameters.

    The kind follows from the annotation.
    """
    kinds: dict[Any, str] = {annotation: kind for kind, annotation in ANNOTATIONS.items()}
    return tuple(
        ParameterSpec(
            name=field.name, kind=kinds[field.type], default=field.default, **field.metadata
        )
        for field in dataclasses.fields(settings)
        if "description" in field.metadata
    )


table_of: Callable[[type], tuple[ParameterSpec, ...]] = cache(_rows_of)
"""`_rows_of`, once for each class."""


def settings_of(name: str, table: Iterable[ParameterSpec]) -> type:
    """The inverse of `table_of`: a frozen dataclass whose fields declare the rows of `table`."""
    fields = [
        (spec.name, ANNOTATIONS[spec.kind], parameter(spec.default, **_columns(spec)))
        for spec in table
    ]
    return dataclasses.make_dataclass(name, fields, frozen=True)


def _columns(spec: ParameterSpec) -> dict[str, Any]:
    """The columns of a row that are not in a field's annotation and default."""
    names = (field.name for field in dataclasses.fields(spec))
    return {name: getattr(spec, name) for name in names if name not in ("name", "kind", "default")}
