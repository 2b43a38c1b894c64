"""The finding of a check: fine, wrong and what to change, or what would be needed to tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FINE, WRONG, UNKNOWN = "fine", "wrong", "this log cannot tell"


class Picture(NamedTuple):
    """Lines of a plot that shows a finding: title, label and values of the axis, label of the values, lines by name."""

    title: str
    x_label: str
    x: NDArray[np.float64]
    y_label: str
    lines: Mapping[str, NDArray[np.float64]]


@dataclasses.dataclass(frozen=True)
class Finding:
    """The finding of a check.

    Attributes:
        check: its name.
        verdict: ``FINE``, ``WRONG`` or ``UNKNOWN``.
        text: the figures; of a fault one value with its certainty.
        change: what to change; of an unknown finding which data would decide it.
        fragment: the same as a part of a map of columns; empty if a map cannot correct it.
        gain: reduction of the logarithmic misfit by the change.
        picture: a plot of it.
        ends: whether checks of higher floors are meaningless before it is corrected.
    """

    check: str
    verdict: str
    text: str
    change: str = ""
    fragment: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    gain: float = 0.0
    picture: Picture | None = None
    ends: bool = False

    def __str__(self) -> str:
        return f"{self.check}: {self.verdict}: {self.text}" + (
            f"; {self.change}" * bool(self.change)
        )


def wrong(
    check: str,
    text: str,
    change: str,
    fragment: Mapping[str, Any] | None = None,
    gain: float = 0.0,
    picture: Picture | None = None,
    ends: bool = False,
) -> Finding:
    """A finding of a fault."""
    return Finding(check, WRONG, text, change, fragment or {}, gain, picture, ends)


def fine(check: str, text: str, picture: Picture | None = None) -> Finding:
    """A finding without objection."""
    return Finding(check, FINE, text, picture=picture)


def unknown(check: str, text: str, would_tell: str) -> Finding:
    """A finding on which the log has too little information; would_tell: data that would decide it."""
    return Finding(check, UNKNOWN, text, would_tell)
