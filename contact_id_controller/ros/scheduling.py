"""Real-time scheduling of a node's threads, where the operating system grants it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def raise_priority(priority: int, warn: Callable[[str], object]) -> bool:
    """Give all threads of this process SCHED_FIFO with `priority`, 1 to 99; 0 changes nothing.

    The threads that receive messages count as much as the one that computes. Where it is not
    allowed (ulimit -r, CAP_SYS_NICE) one warning is given and the process runs as before.
    """
    if priority == 0:
        return False
    try:
        for task in Path("/proc/self/task").iterdir():
            os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(priority))
    except (AttributeError, OSError) as error:
        warn(f"realtime_priority {priority} is not granted ({error}); running at normal priority")
        return False
    return True
