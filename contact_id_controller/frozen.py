"""Immutable values that cost little more to build than mutable ones.

A frozen dataclass sets each field through ``object.__setattr__``, at many times the cost of an
assignment. A constructor here fills a draft instead, which has the same slots and no guard, and
sets its class last.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def draft_of(frozen: type) -> Any:
    """A mutable class with the slots of a frozen dataclass."""
    return type(f"{frozen.__name__}Draft", (), {"__slots__": frozen.__slots__})  # type: ignore[attr-defined]


def sealed(frozen: type[T]) -> type[T]:
    """Refuse every assignment to a frozen dataclass with slots, properties and new names among them.

    Python's own guard knows the class as it was before it had slots, and stumbles over other names
    than fields.
    """

    def refuse(self: Any, name: str, *_: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    frozen.__setattr__ = frozen.__delattr__ = refuse  # type: ignore[method-assign]
    return frozen


def parts(value: Any, forgotten: str = "") -> tuple[Any, ...]:
    """Result of ``__reduce__`` for a frozen dataclass, so that it can be copied and pickled.

    forgotten: name of a cache field, which is None in the copy.
    """
    names = (field.name for field in dataclasses.fields(value))
    return _rebuilt, (type(value), *(None if n == forgotten else getattr(value, n) for n in names))


def _rebuilt(frozen: type, *values: Any) -> Any:
    value: Any = object.__new__(frozen)
    for field, part in zip(dataclasses.fields(frozen), values):
        object.__setattr__(value, field.name, part)
    return value
