"""What a paper says and prints, as data: ``claims/<experiment>.yaml``, read and rendered.

title: of the section.  figures: what the paper prints, and tolerances.  texts: paragraphs and phrases.
tables: caption, and columns as ``head: key`` of a row.  claims: source, text, verdicts, evidence.
Texts are templates of ``str.format``; ``{share:100*.2g}`` multiplies before it formats, and so does the
key ``1e6*step_s`` of a column.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from contact_id_controller.files import read_yaml
from experiments.papers.blocks import Claim, Section, Table, Text

FOLDER = Path(__file__).with_name("claims")


class _Template(string.Formatter):
    """Formats as ``str.format``, with factors."""

    def format_field(self, value: Any, format_spec: str) -> str:
        factor, star, rest = format_spec.rpartition("*")
        return format(float(factor) * value, rest) if star else format(value, format_spec)


_filled = _Template().format


class Paper:
    """The data of one experiment.

    Attributes:
        command: that does all runs of the experiment again.
        figures: what the paper prints, and what its claims are judged by.

    Raises:
        ConfigurationError: there is no such file, or it is no YAML.
    """

    def __init__(self, name: str):
        content = read_yaml(FOLDER / f"{name}.yaml")
        self.command = f"python -m experiments reproduce {name}"
        self.figures: Mapping[str, Any] = content.get("figures", {})
        self.title: str = content["title"]
        self._texts, self._tables = content.get("texts", {}), content.get("tables", {})
        self._claims = content["claims"]

    def claim(self, name: str, /, *holds: bool, command: str = "", **figures: Any) -> Claim:
        """A claim with the first of its verdicts whose condition holds, or its last one.

        Args:
            holds: a condition for each verdict but the last.
            command: that measures it; empty: that of the whole experiment.
            figures: of its text and its evidence.

        Raises:
            ValueError: there are more or fewer conditions.
        """
        entry = self._claims[name]
        verdicts = entry["verdicts"]
        judged = dict(zip(verdicts[:-1], holds, strict=True))
        verdict = next((each for each, true in judged.items() if true), verdicts[-1])
        return Claim(
            _filled(entry["source"], **figures),
            _filled(entry["text"], **figures),
            verdict,
            _filled(entry["evidence"], **figures),
            command or self.command,
        )

    def phrase(self, name: str, /, **figures: Any) -> str:
        """One of the texts, filled in."""
        return _filled(self._texts[name], **figures)

    def text(self, name: str = "introduction", /, **figures: Any) -> Text:
        """One of the texts as a paragraph."""
        return Text(self.phrase(name, **figures))

    def table(
        self,
        name: str,
        /,
        rows: Iterable[Mapping[str, Any]],
        commands: Sequence[str] = (),
        **figures: Any,
    ) -> Table:
        """A table; each row is a mapping that knows the keys of the columns. figures: of the caption."""
        entry = self._tables[name]
        columns = [next(iter(column.items())) for column in entry["columns"]]
        cells = [[_cell(key, row) for _, key in columns] for row in rows]
        caption = _filled(entry["caption"], **figures)
        return Table(caption, [head for head, _ in columns], cells, commands)

    def section(self, blocks: Sequence, claims: Sequence[Claim]) -> Section:
        """The experiment's part of the report."""
        return Section(self.title, blocks, claims)


def _cell(key: str, row: Mapping[str, Any]) -> Any:
    if "{" in key:
        return _filled(key, **row)
    factor, star, name = key.rpartition("*")
    value = row[name]
    return float(factor) * value if star and value is not None else value
