"""Reads the effort limits of a robot description in another process, as reading needs large libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from contact_id_controller.exceptions import ConfigurationError

_CODE = """
import os, sys
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # whatever who asks has
os.nice(5)
from contact_id_controller.settings.urdf_efforts import main
sys.exit(main(sys.argv[1:]))
"""


class StatedLimits:
    """A process that reads the limits; it takes a second.

    Args:
        urdf: as parameter ``urdf`` of the controller.  joints: in the order of the answer, n.
    """

    def __init__(self, urdf: str, joints: Sequence[str]) -> None:
        self._joints = list(joints)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE, urdf, *joints],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def answer(self) -> np.ndarray | None:
        """Effort limits (n,), N·m, infinite where none is stated; None: not yet read.

        Raises:
            ConfigurationError: they cannot be read, and why.
        """
        if self._process.poll() is None:
            return None
        words = self._process.communicate()[0].decode(errors="replace").strip()
        try:
            if self._process.returncode:
                raise ValueError(words)
            efforts = np.array(json.loads(words), dtype=float)
            if efforts.shape != (len(self._joints),) or np.isnan(efforts).any():
                raise ValueError(words)
        except ValueError as error:
            raise ConfigurationError(
                f"the URDF's effort limits cannot be read, effort_limits_nm alone applies: {error}"
            ) from error
        return efforts

    def end(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
