"""Findings of a robot's check, one line each."""

from __future__ import annotations

from typing import NamedTuple

LONGEST = 500
"""Longest line, characters: a longer one is cut in the middle."""

ERROR, WARNING, NOTE = "error", "warning", "ok"


def counted(number: int, level: str) -> str:
    """A number of findings in words: 1 error, 2 errors."""
    return f"{number} {level}{'s' * (number != 1)}"


class Finding(NamedTuple):
    """One line of the check.

    Attributes:
        level: ``error`` (the robot must not move), ``warning`` (to be examined) or ``ok`` (a figure).
        subject: of the check, one or two words.
        text: what is wrong, or a figure, with values and units.
    """

    level: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.level:<8} {self.subject}: {self.text}"


class Findings(list[Finding]):
    """Findings about one subject, in their order."""

    def __init__(self, subject: str) -> None:
        super().__init__()
        self._subject = subject

    def error(self, text: object) -> None:
        """Add a finding that forbids to move the robot."""
        self.append(error(self._subject, text))

    def warning(self, text: object) -> None:
        """Add a finding to be examined."""
        self.append(warning(self._subject, text))

    def note(self, text: object) -> None:
        """Add a figure without objection."""
        self.append(note(self._subject, text))


def error(subject: str, text: object) -> Finding:
    """A finding that forbids to move the robot."""
    return Finding(ERROR, subject, _one_line(text))


def warning(subject: str, text: object) -> Finding:
    """A finding to be examined."""
    return Finding(WARNING, subject, _one_line(text))


def note(subject: str, text: object) -> Finding:
    """A figure without objection."""
    return Finding(NOTE, subject, _one_line(text))


def _one_line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
