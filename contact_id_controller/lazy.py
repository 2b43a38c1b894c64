"""Names of the package that load on first use.

Processes that compute no dynamics, such as the watchdog of commands, start in a moment and depend
on neither pinocchio nor numba.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def public_names(
    package: str, namespace: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package; ``homes``: name -> module that defines it."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted({*namespace, *homes})

    return load, names


def loaded(place: str) -> Callable[..., Any]:
    """Load the function or class named "module:function" in this package, as "lcp.lemke:lemke"."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found
