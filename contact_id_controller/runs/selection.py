"""The walks of a demonstration: one, one for each value of a parameter, or three."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contact_id_controller.exceptions import ConfigurationError

SHOWCASE = (
    {"robot": "quadruped", "duration_s": 30.0, "mu": 1.0},
    {"robot": "quadruped", "duration_s": 30.0, "mu": 0.1},
    {"robot": "solo12", "duration_s": 10.0, "mu": 0.6},
)
"""The runs by default."""


def plan_runs(
    output: Path,
    *,
    robot: str | None = None,
    config: Path | None = None,
    sweep: str | None = None,
    **given: Any,
) -> list[tuple[Path, dict[str, Any]]]:
    """Folder and keywords of ``make_setup`` for each requested run.

    Args:
        output: folder of one run, or of those of several.
        robot: name of a configuration, or ``config``: its file; neither: the showcase.
        sweep: ``NAME=V1,V2,...``, one run for each value.
        given: further keywords; None: not given.

    Raises:
        ConfigurationError: choices that do not fit each other.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if robot or config:
        if config is not None:
            given["config"] = config
        choice = {"robot": robot or Path(given["config"]).stem, **given}
        return _sweep(sweep, choice, output) if sweep else [(output, choice)]
    if sweep:
        raise ConfigurationError("--sweep needs --robot or --config")
    runs = [{**choice, **given} for choice in SHOWCASE]
    names = [f"{choice['robot']}_mu{choice['mu']:g}" for choice in runs]
    if len(set(names)) < len(names):
        raise ConfigurationError("--mu makes two of the three walks the same; name one --robot")
    return [(output / name, choice) for name, choice in zip(names, runs)]


def _sweep(text: str, choice: dict[str, Any], output: Path) -> list[tuple[Path, dict[str, Any]]]:
    """A run for each value of ``NAME=V1,V2``, with a folder of its own; ConfigurationError at another form."""
    name, _, values = (part.strip() for part in text.partition("="))
    changes = [f"{name}={value.strip()}" for value in values.split(",") if value.strip()]
    if not changes:
        raise ConfigurationError(f"--sweep {text!r} is not of the form NAME=V1,V2,...")
    return [
        (
            output / change.replace("=", "_").replace("/", "_"),
            {**choice, "changes": [*choice.get("changes", ()), change]},
        )
        for change in changes
    ]
