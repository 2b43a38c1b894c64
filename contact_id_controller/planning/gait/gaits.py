"""Gaits by name: touchdown phases of the feet from their nominal places."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.settings.gait import BY_PHASES, GaitSettings


class Gait(NamedTuple):
    """Duration of a cycle, s, duty factor, and touchdown phases (L,)."""

    period_s: float
    duty_factor: float
    touchdown_phases: tuple[float, ...]

    @property
    def stance_s(self) -> float:
        """Duration of a stance, s."""
        return self.duty_factor * self.period_s


PHASES: dict[str, Callable[[bool, bool], float]] = {
    "walk": lambda fore, left: 0.25 * fore + 0.5 * (not left),
    "trot": lambda fore, left: 0.25 if fore == left else 0.75,
    "pace": lambda fore, left: 0.25 if left else 0.75,
    "bound": lambda fore, left: 0.25 if fore else 0.75,
}
"""Touchdown of a foot by where it is. walk: one after the other, each fore foot after the hind one
of its side; trot: diagonal feet together; pace: those of a side; bound: fore feet, then hind ones."""


def check_gait(name: str) -> None:
    """Raise ConfigurationError if there is no gait of that name."""
    if name not in (BY_PHASES, *PHASES):
        raise ConfigurationError(f"no gait {name!r}; there is {choices([BY_PHASES, *PHASES])}")


GRAVITY_M_S2 = 9.81
SHORTEST_S = 0.02
LONGEST = {"pace": 2.2, "bound": 1.7}
"""Largest period of a gait in units of sqrt(height / gravity): with its square a robot on the feet of a side, or of an
end, turns."""


def gait_of(settings: GaitSettings, home: np.ndarray, name: str, below_m: float = math.inf) -> Gait:
    """Gait by name, with duration, at most that of `LONGEST`, and duty factor of the settings.

    Args:
        home: (L,) places of the feet relative to the base, x + iy, m, x forward and y to the left.
        name: one of ``PHASES``, or ``phases`` for the settings' `touchdown_phases`.
        below_m: mean height of the hips above the feet.

    Raises:
        ConfigurationError: no such gait.
    """
    check_gait(name)
    phases = settings.touchdown_phases
    if name in PHASES:
        from_middle = home - home.mean()
        phases = tuple(PHASES[name](bool(p.real > 0.0), bool(p.imag > 0.0)) for p in from_middle)
    period_s = settings.gait_period_s
    if name in LONGEST:
        longest_s = LONGEST[name] * math.sqrt(max(below_m, 0.0) / GRAVITY_M_S2)
        period_s = min(period_s, max(longest_s, SHORTEST_S))
    return Gait(period_s, settings.duty_factor, phases)
