"""A fingerprint of the sources that a result depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
LENGTH = 12
NOT_IN_RUNS = ("report", "commands", "view")
"""Folders that no run uses: a changed report does not change the runs."""

MEASURING = ("report/metrics.py",)
"""Files in these folders that runs do use."""


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """Fingerprint of the package's sources and robots, except those that only report."""
    return fingerprint(package_sources())


def fingerprint(files: Iterable[Path]) -> str:
    """Hash of files of the checkout: names and contents."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(PACKAGE.parent).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:LENGTH]


def package_sources() -> list[Path]:
    """The files of the package that the result of a run may depend on."""

    def counts(file: Path) -> bool:
        inside = file.relative_to(PACKAGE)
        return inside.parts[0] not in NOT_IN_RUNS or inside.as_posix() in MEASURING

    return [
        *filter(counts, PACKAGE.rglob("*.py")),
        *(PACKAGE.parent / "urdf").glob("*.urdf"),
        *(PACKAGE.parent / "config").rglob("*.yaml"),
    ]
