"""Command lines of the processes of this room that accompany a run."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.runs.ros_run import PARAMETERS

LOOPBACK, PORT = "127.0.0.1", 8080
"""Where a page is by default: for this machine alone."""


def recording(folder: Path, bag: Path, storage: str) -> list[str]:
    """Command line of a recorder of the run in a folder, into a new bag; storage: a plugin of rosbag2."""
    return [
        *_module("bag_recorder"),
        "--parameters",
        str(folder / PARAMETERS),
        "--bag",
        str(bag),
        "--storage",
        storage,
    ]


def viewing(folder: Path, host: str, port: int, teleop: bool = False) -> list[str]:
    """Command line of the live view of the run in a folder; ``teleop``: its viewers may drive."""
    parameters = str(folder / PARAMETERS)
    place = ["--host", host, "--port", str(port)]
    words = ["--teleop"] if teleop else []
    return [*_module("viewer"), "--parameters", parameters, *place, *words]


def place_of(text: str) -> tuple[str, int]:
    """Host and port of a page that was requested as ``HOST:PORT``, ``HOST`` or ``:PORT``.

    Raises:
        ConfigurationError: the port is no number of 0 to 65535, or it is in use.
    """
    host, _, port = text.partition(":")
    host = host or LOOPBACK
    if not (port or "0").isdigit() or not 0 <= int(port or 0) < 65536:
        raise ConfigurationError(f"{text!r} is no place for a page, must be HOST:PORT")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port) if port else PORT))
        except OSError as error:
            raise ConfigurationError(
                f"no page at {host}:{port or PORT}: {error.strerror}; name another HOST:PORT"
            ) from error
        return host, int(probe.getsockname()[1])


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", f"contact_id_controller.view.{name}"]
