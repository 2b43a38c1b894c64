"""Public names of a package that load when they are first asked for.

Processes that compute no dynamics, such as the watchdog of commands, start in a moment and depend
on neither pinocchio nor numba.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def loader(
    package: str, namespace: dict[str, Any], homes: Mapping[str, str]
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose ``homes`` say which of its modules holds a name."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        namespace[name] = value
        return value

    return load
