"""Signals that end a process, for executables. Imports only Python's standard library.

`leave_at_once` is for the time of Python's imports, in which an interrupt would print a traceback.
"""

from __future__ import annotations

import os
import signal

_NAMES = [
    "INT",
    "TERM",
    "HUP",
    "QUIT",
    "USR1",
    "USR2",
    "ALRM",
    "VTALRM",
    "PROF",
    "POLL",
    "PWR",
    "STKFLT",
    "XCPU",
]

ENDING = tuple(getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}"))
"""Signals from outside that end a process by default: a closed terminal, a lost connection, a limit of the system.
Those of errors of the process itself are not among them."""

SUSPENDING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""Signals of the terminal that suspend a process, which then neither commands nor damps."""


def keep_running() -> None:
    """Ignore the terminal's signals that suspend a process."""
    for number in SUSPENDING:
        signal.signal(number, signal.SIG_IGN)


def leave_at_once() -> None:
    """End the process silently, with code 0, at any of these signals from now on."""
    for number in ENDING:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(0))
