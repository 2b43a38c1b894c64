"""Immutable values that cost no more to build than mutable ones.

A frozen dataclass sets each field through ``object.__setattr__``, many times the price of an
assignment. A constructor here assigns while the value still has the class of its draft, which has
the same slots and no guard, and gives it its own class last.
"""

from __future__ import annotations

from typing import Any


def draft_of(frozen: type) -> Any:
    """A mutable class with the slots of a frozen dataclass."""
    return type(f"{frozen.__name__}Draft", (), {"__slots__": frozen.__slots__})  # type: ignore[attr-defined]


def open_draft(value: Any, draft: Any) -> Any:
    """The same value, to be assigned to until it is given the class it was made with again."""
    object.__setattr__(value, "__class__", draft)
    return value
