"""Tests hypotheses on faults: how much better measurements and model agree with a change."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from scipy.optimize import minimize_scalar

CONVINCING = 0.25
"""Least gain of a significant change: residuals fall to .78 of their size together."""

TRIALS = 14
"""Number of evaluations of a search for one value."""

PROBES = (-0.9, -0.35, -0.12, 0.12, 0.35, 0.9)
"""Start values of a search, in units of half the range."""

NOTICED = 0.02
"""Least gain of a start value with which a search goes on."""

SEARCHED_OFFSET_RAD, SEARCHED_RATIO = 0.5, 1.8
"""Range of the search for a joint zero, to either side; largest gear ratio, and inverse of the smallest."""


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A possible fault, with the value that fits best.

    Attributes:
        check: its name.
        cost: logarithmic misfit with the best value.
        value: the best one, in the unit of ``tolerance``; only its size matters.
        tolerance: size of the value that is normal for a good robot.
        text: the value as text.  change: what to do.
        fragment: of a map that corrects it.
        confirmed: computes the gain with the tolerated errors of a good model; None: the same gain.
    """

    check: str
    cost: float
    value: float
    tolerance: float
    text: str
    change: str
    fragment: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    confirmed: Callable[[], float] | None = None

    def gain(self, before: float) -> float:
        """Reduction of the logarithmic misfit; 0 if the value is within its tolerance."""
        if not math.isfinite(self.cost) or abs(self.value) <= self.tolerance:
            return 0.0
        return before - self.cost


def best_of(hypotheses: Sequence[Hypothesis], before: float) -> tuple[Hypothesis, float] | None:
    """The hypothesis with the largest confirmed gain, and that gain; None if none is significant."""
    convincing = [each for each in hypotheses if each.gain(before) >= CONVINCING]
    gains = [
        min(each.gain(before), math.inf if each.confirmed is None else each.confirmed())
        for each in convincing
    ]
    k = max(range(len(gains)), key=lambda each: gains[each], default=-1)
    return (convincing[k], gains[k]) if k >= 0 and gains[k] >= CONVINCING else None


def search(
    cost: Callable[[float], float], low: float, high: float, before: float = math.inf
) -> tuple[float, float]:
    """The value within a range with the least cost, and that cost.

    If no start value costs less than ``before``, the best of them is returned without a search.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    probes = [middle + half * each for each in PROBES]
    costs = [cost(each) for each in probes]
    k = min(range(len(probes)), key=lambda each: costs[each])
    if costs[k] > before - NOTICED:
        return probes[k], costs[k]
    found = minimize_scalar(
        cost,
        bounds=(low if k == 0 else probes[k - 1], high if k + 1 == len(probes) else probes[k + 1]),
        method="bounded",
        options={"maxiter": TRIALS, "xatol": 1e-3},
    )
    return min((float(found.fun), float(found.x)), (costs[k], probes[k]))[::-1]


def zero_offset(
    joint: str,
    moved: Callable[[float], float],
    before: float,
    tolerance: float,
    confirmed: Callable[[float], float] | None = None,
) -> Hypothesis:
    """A joint with another zero; ``moved``: cost as a function of an offset on its position, rad."""
    value, cost = search(moved, -SEARCHED_OFFSET_RAD, SEARCHED_OFFSET_RAD, before)
    return Hypothesis(
        "zero offsets",
        cost,
        value,
        tolerance,
        f"{joint} is {math.degrees(-value):+.1f} degrees off",
        f"add {value:.3f} rad to the position of {joint}",
        {"correct": {"position": {joint: {"plus": round(value, 4)}}}},
        None if confirmed is None else partial(confirmed, value),
    )


def gear_ratio(
    joint: str,
    geared: Callable[[float], float],
    before: float,
    tolerance: float,
    confirmed: Callable[[float], float] | None = None,
) -> Hypothesis:
    """A joint with another gear ratio; ``geared``: cost as a function of the ratio's logarithm."""
    value, cost = search(geared, -math.log(SEARCHED_RATIO), math.log(SEARCHED_RATIO), before)
    ratio = math.exp(value)
    return Hypothesis(
        "gear ratios",
        cost,
        value,
        tolerance,
        f"{joint} moves {ratio:.3f} times what the log states",
        f"multiply position and velocity of {joint} by {ratio:.3f}",
        {"correct": {c: {joint: {"times": round(ratio, 4)}} for c in ("position", "velocity")}},
        None if confirmed is None else partial(confirmed, value),
    )
