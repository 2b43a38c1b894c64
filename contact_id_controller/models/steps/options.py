"""Checks of the options that several models share, and what follows from them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from contact_id_controller.exceptions import UnknownModelError, choices
from contact_id_controller.models.options import CONSISTENCIES, DISTRIBUTIONS, POLYGONS

__all__ = [
    "CONSISTENCIES",
    "DISTRIBUTIONS",
    "POLYGONS",
    "check_edges",
    "check_option",
    "once",
    "polygon_friction",
]


def check_option(name: str, value, valid) -> None:
    """Refuse an option's value that does not exist.

    Raises:
        UnknownModelError: the message lists the valid ones.
    """
    if value not in valid:
        raise UnknownModelError(f"{name} is {value!r}; choose one of {choices(valid)}")


def once(check: Callable[..., None]) -> Callable[..., None]:
    """A check that looks at the same values only once: the same options come with every problem."""
    known = functools.lru_cache(maxsize=64, typed=True)(check)

    @functools.wraps(check)
    def checked(*values) -> None:
        try:
            known(*values)
        except TypeError:  # a list, as which some value was given, cannot be remembered
            check(*values)

    return checked


def check_edges(edges) -> None:
    """Refuse a friction polygon that is none (UnknownModelError)."""
    if edges < 3:
        raise UnknownModelError(f"edges must be at least 3, got {edges}")


def polygon_friction(mu: np.ndarray, edges: int, polygon: str) -> np.ndarray:
    """Distance of the polygon's corners per normal force, inside the cone or around it, for mu (n,).

    As written: kernels take it through ``effective_friction``.
    """
    return mu if polygon == "inscribed" else mu / math.cos(math.pi / edges)
