"""Stand-in for the group effort controllers of ros2_control, as far as faults concern it.

Kept of `effort_controllers/JointGroupEffortController`: a command has one value for each joint,
without names; a wrong size is an error of the update; a command that is not finite is dropped;
there is no timeout, the last torque is held for ever; deactivation writes zero.
"""

from __future__ import annotations

import numpy as np


class HeldEfforts:
    """The efforts, N·m, of ``count`` joints."""

    def __init__(self, count: int):
        self.efforts = np.zeros(count)
        self.active = False
        self.dropped = self.errors = 0

    def activate(self) -> None:
        """Take commands; the efforts stay as they are."""
        self.active = True

    def deactivate(self) -> None:
        """Zero effort."""
        self.efforts[:] = 0.0
        self.active = False

    def command(self, data) -> bool:
        """Take a command; whether it is held from now on."""
        data = np.array(data, dtype=float)
        if not self.active:
            return False
        if not np.isfinite(data).all():
            self.dropped += 1
            return False
        if data.shape != self.efforts.shape:
            self.errors += 1
            return False
        self.efforts[:] = data
        return True
