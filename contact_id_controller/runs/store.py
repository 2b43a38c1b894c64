"""What one run is, and where its result is kept: one JSON file a run, named by its description."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.exceptions import RecordError

KEY_LENGTH = 12
DIGITS = 6
"""Significant digits of the floats in a result: files stay small, and nobody measures more."""


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
        return f"contact_id reproduce {self.experiment} --run {self.key}"


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
        self.folder = folder
        self._code = code_fingerprint() if code is None else code
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"cannot make {str(folder)!r}: {error.strerror}") from error

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
            "values": plain(result.values),
            "error": result.error,
            "wall_s": result.wall_s,
            "machine": result.machine,
            "code": self._code,
        }
        path = self.path(description)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
            os.replace(part, path)
        except OSError as error:
            raise RecordError(f"cannot write {str(path)!r}: {error.strerror}") from error


def plain(value: Any) -> Any:
    """A value as JSON knows it: arrays as lists, floats rounded, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


REPORTING = ("papers/*_report.py", "papers/*_claims.py", "report/*.py", "commands/*.py", "view/*.py")
"""Modules that no run calls: with other words in a report its runs are the same."""


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """Changes with every change of the package's sources and robots, those that only report apart."""
    top = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for file in sources():
        digest.update(str(file.relative_to(top)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:KEY_LENGTH]


def sources() -> list[Path]:
    """The files that the result of a run may depend on."""
    package = Path(__file__).resolve().parents[1]
    files = [
        *package.rglob("*.py"),
        *(package.parent / "urdf").glob("*.urdf"),
        *(package.parent / "config").rglob("*.yaml"),
    ]
    return sorted(file for file in files if not any(map(file.match, REPORTING)))
