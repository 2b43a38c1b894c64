"""Checks of the options that several models share, and what follows from them."""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.exceptions import UnknownModelError, choices
from contact_id_controller.models.options import CONSISTENCIES, DISTRIBUTIONS, POLYGONS

__all__ = [
    "CONSISTENCIES",
    "DISTRIBUTIONS",
    "POLYGONS",
    "check_edges",
    "check_option",
    "polygon_friction",
]


def check_option(name: str, value, valid) -> None:
    """Refuse an option's value that does not exist.

    Raises:
        UnknownModelError: the message lists the valid ones.
    """
    if value not in valid:
        raise UnknownModelError(f"{name} is {value!r}; choose one of {choices(valid)}")


def check_edges(edges) -> None:
    """Refuse a friction polygon that is none (UnknownModelError)."""
    if edges < 3:
        raise UnknownModelError(f"edges must be at least 3, got {edges}")


def polygon_friction(mu: np.ndarray, edges: int, polygon: str) -> np.ndarray:
    """Distance of the polygon's corners per normal force, inside the cone or around it, for mu (n,).

    As written: kernels take it through ``effective_friction``.
    """
    return mu if polygon == "inscribed" else mu / math.cos(math.pi / edges)
