"""A verdict on one thing in a log: fine, wrong and what to change, or what would tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FINE, WRONG, UNKNOWN = "fine", "wrong", "this log cannot tell"


class Picture(NamedTuple):
    """Lines over one axis that show a finding: title, label and values of the axis, label of the values, lines by name."""

    title: str
    x_label: str
    x: NDArray[np.float64]
    y_label: str
    lines: Mapping[str, NDArray[np.float64]]


@dataclasses.dataclass(frozen=True)
class Finding:
    """One verdict.

    Attributes:
        check: what was looked at.
        verdict: ``FINE``, ``WRONG`` or ``UNKNOWN``.
        text: the figures; of a wrong one value and how sure.
        change: what to change; of an unknown one what would tell.
        fragment: the same for the map of columns, to paste; empty where a map cannot mend it.
        gain: how much better the measurements agree once it is changed, in powers of e.
        picture: what shows it.
        ends: whether checks of higher floors mean nothing before this is mended.
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


def fine(check: str, text: str, picture: Picture | None = None) -> Finding:
    """Nothing to change."""
    return Finding(check, FINE, text, picture=picture)


def unknown(check: str, text: str, would_tell: str) -> Finding:
    """The log cannot tell; what would."""
    return Finding(check, UNKNOWN, text, would_tell)
