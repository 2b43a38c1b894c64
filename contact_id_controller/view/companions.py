"""Command lines of the processes of this room that accompany a run."""

from __future__ import annotations

import sys
from pathlib import Path

from contact_id_controller.runs.ros_run import PARAMETERS


def recording(folder: Path, bag: Path, storage: str) -> list[str]:
    """Of a recorder of the run in a folder, into a new bag."""
    return [
        *_module("bag_recorder"),
        "--parameters",
        str(folder / PARAMETERS),
        "--bag",
        str(bag),
        "--storage",
        storage,
    ]


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", f"contact_id_controller.view.{name}"]
