"""What a check of a robot found: one line each."""

from __future__ import annotations

from typing import NamedTuple

LONGEST = 500
"""Characters of a line: of a longer one the middle is left out."""

ERROR, WARNING, NOTE = "error", "warning", "ok"


class Finding(NamedTuple):
    """One line of the check.

    Attributes:
        level: ``error`` (it must not move), ``warning`` (look at it) or ``ok`` (a figure).
        subject: what was looked at, one or two words.
        text: what is wrong, or what was found, with values and units.
    """

    level: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.level:<8} {self.subject}: {self.text}"


def error(subject: str, text: object) -> Finding:
    """A finding that forbids to move the robot."""
    return Finding(ERROR, subject, _one_line(text))


def warning(subject: str, text: object) -> Finding:
    """A finding to look at."""
    return Finding(WARNING, subject, _one_line(text))


def note(subject: str, text: object) -> Finding:
    """A figure that is as it should be."""
    return Finding(NOTE, subject, _one_line(text))


def _one_line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
