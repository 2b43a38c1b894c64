"""What may be wrong, put to the test: how much better measurements and model agree without it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from scipy.optimize import minimize_scalar

CONVINCING = 0.25
"""Gain from which a change is believed: residuals fall together to .78 of what they were."""

TRIALS = 14
"""Of a search for one number."""

PROBES = (-0.9, -0.35, -0.12, 0.12, 0.35, 0.9)
"""Of half the range, at which a search begins."""

NOTICED = 0.02
"""Gain from which a search is worth its time."""

SEARCHED_OFFSET_RAD, SEARCHED_RATIO = 0.5, 1.8
"""How far a zero is searched, and how large a gear ratio, or small its inverse."""


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One thing that may be wrong.

    Attributes:
        check: that names it.
        cost: with the best value, in powers of e.
        value: the best one, in the unit of ``tolerance``; its sign matters not.
        tolerance: what a good robot's model may be off by: below it nothing is wrong.
        text: the value in words.  change: what to do.
        fragment: of a map that mends it.
        confirmed: computes what the agreement gains where a good model may be off, too; None: as much.
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
        """How much the agreement gains; nothing where the value is within its tolerance."""
        if not math.isfinite(self.cost) or abs(self.value) <= self.tolerance:
            return 0.0
        return before - self.cost


def best_of(hypotheses: Sequence[Hypothesis], before: float) -> tuple[Hypothesis, float] | None:
    """That with the largest gain that is confirmed, with it; None where none convinces."""
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
    """The number between two with the least cost, and that cost.

    Where none of a few probes costs less than ``before``, the best of them is the answer: what is right is not searched.
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
    """A joint whose zero is another one; ``moved``: the cost with so much added to its position, rad."""
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
    """A joint whose gear ratio is another one; ``geared``: the cost with its motion times a ratio, by its logarithm."""
    value, cost = search(geared, -math.log(SEARCHED_RATIO), math.log(SEARCHED_RATIO), before)
    ratio = math.exp(value)
    return Hypothesis(
        "gear ratios",
        cost,
        value,
        tolerance,
        f"{joint} moves {ratio:.3f} of what the log has",
        f"multiply position and velocity of {joint} by {ratio:.3f}",
        {"correct": {c: {joint: {"times": round(ratio, 4)}} for c in ("position", "velocity")}},
        None if confirmed is None else partial(confirmed, value),
    )
