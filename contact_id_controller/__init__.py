"""Inverse dynamics with contact: joint torques and contact forces solved together."""

import importlib

__all__ = ["ContactSet", "Problem", "RobotModel", "Solution", "build_problem", "solve"]
__version__ = "0.1.0"

_HOMES = {
    "ContactSet": "contacts",
    "Problem": "problem",
    "RobotModel": "robot",
    "Solution": "solution",
    "build_problem": "problem",
    "solve": "models",
}


def __getattr__(name):
    """Load a public name when it is first asked for.

    Processes that compute no dynamics, such as the watchdog of commands, start in a moment and
    depend on neither pinocchio nor numba.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    """The public names too, before they are loaded."""
    return sorted({*globals(), *__all__})
