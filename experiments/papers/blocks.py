"""What a report is made of. Experiments give these; ``page`` turns them into HTML and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REPRODUCED, BETTERED, NOT_REPRODUCED, WRONG, NOT_MEASURED = (
    "reproduced",
    "bettered",
    "not reproduced",
    "wrong",
    "not measured",
)
VERDICTS = (BETTERED, REPRODUCED, NOT_REPRODUCED, WRONG, NOT_MEASURED)
"""Bettered: as claimed, and ours is better. Wrong: shown to be an error. Not measured: these runs
do not tell."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of cells; numbers and texts. The last column holds the command of the row, if any."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence]
    commands: Sequence[str] = ()


@dataclass(frozen=True)
class Picture:
    """A plot: PNG data, with what it shows and the commands behind it."""

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True)
class Claim:
    """Something a paper says, and what came of it.

    Attributes:
        source: paper and place.  text: the claim, in our words.
        verdict: one of ``VERDICTS``.  evidence: figures that show it.
        command: that measures them.
    """

    source: str
    text: str
    verdict: str
    evidence: str
    command: str


@dataclass(frozen=True)
class Section:
    """One experiment's part of the report."""

    title: str
    blocks: Sequence[Text | Table | Picture]
    claims: Sequence[Claim] = ()


def shown(cell) -> str:
    """A cell for people: four digits; what there is not is a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return str(cell)


def outcome(fell_s: float | None) -> str:
    """How a walk ended, for people: the time of its fall in s, None for none."""
    return "walked" if fell_s is None else f"fell at {fell_s:.2f} s"
