"""What one run is, and where its result is kept: one JSON file a run, named by its description."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from contact_id_controller.files import make_folder, plain, write_json
from contact_id_controller.runs.fingerprint import fingerprint, package_sources

EXPERIMENTS = Path(__file__).resolve().parents[1]
KEY_LENGTH = 12
DIGITS = 6
"""Significant digits of the floats in a result: files stay small, and no measurement has more."""


@dataclass(frozen=True)
class RunDescription:
    """One run of an experiment: everything its result depends on, in values that JSON knows.

    Attributes:
        experiment: name in the registry.
        parameters: name -> number, text, truth value or list of them; infinite is the text "inf".
    """

    experiment: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The same for equal descriptions, on every machine and in every session."""
        text = json.dumps([self.experiment, dict(self.parameters)], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]

    @property
    def title(self) -> str:
        """For people."""
        values = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        return f"{self.experiment}: {values}" if values else self.experiment

    def command(self) -> str:
        """The command line that does this run, and no other, again."""
        return f"python -m experiments reproduce {self.experiment} --run {self.key}"


@dataclass(frozen=True)
class RunResult:
    """A run that has been done.

    Attributes:
        description: of the run.  values: what the experiment measured.
        error: why there are no values; empty where there are.
        wall_s: time it took.  machine: processor it ran on.
    """

    description: RunDescription
    values: dict[str, Any]
    error: str
    wall_s: float
    machine: str

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.description.parameters


class RunStore:
    """The results in a folder. A file appears whole or not at all: a run counts once it is there.

    Results of other sources than these, and failures, do not count as finished.

    Raises:
        RecordError: the folder cannot be made.
    """

    def __init__(self, folder: Path, code: str | None = None):
        self.folder = make_folder(folder)
        self._code = code_fingerprint() if code is None else code

    def path(self, description: RunDescription) -> Path:
        """File of a run."""
        return self.folder / f"{description.experiment}_{description.key}.json"

    def load(self, description: RunDescription) -> RunResult | None:
        """The result of a finished run, or of a failed one; None: it must be done (again)."""
        try:
            content = json.loads(self.path(description).read_text(encoding="utf-8"))
            result = RunResult(
                description,
                content["values"],
                content["error"],
                content["wall_s"],
                content["machine"],
            )
            same = (
                content["parameters"] == dict(description.parameters)
                and content["code"] == self._code
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return result if same else None

    def finished(self, description: RunDescription) -> bool:
        """Whether the run need not be done again."""
        result = self.load(description)
        return result is not None and not result.error

    def save(self, result: RunResult) -> None:
        """Keep a result.

        Raises:
            RecordError: the file cannot be written.
        """
        description = result.description
        content = {
            "experiment": description.experiment,
            "parameters": dict(description.parameters),
            "command": description.command(),
            "values": plain(result.values, DIGITS, infinities=False),
            "error": result.error,
            "wall_s": result.wall_s,
            "machine": result.machine,
            "code": self._code,
        }
        write_json(self.path(description), content)


ROOMS = ("papers", "benchmark")
REPORTING = ("*_report.py", "*_claims.py", "blocks.py", "marks.py", "page.py", "paper.py")
"""Modules that no run calls: with other words in a report its runs are the same."""


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """Changes with every change of the package and of these experiments, what only reports apart."""
    return fingerprint(sources())


def sources() -> list[Path]:
    """The files that the result of a run may depend on."""
    own = [file for room in ROOMS for file in (EXPERIMENTS / room).rglob("*.py")]
    return package_sources() + [file for file in own if not any(map(file.match, REPORTING))]
