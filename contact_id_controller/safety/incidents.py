"""Catches errors, counts them by reason, and logs them at a limited rate. Without ROS."""

from __future__ import annotations

import math
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from contact_id_controller.exceptions import ContactIdError

TELL_EVERY_S = 10.0
"""Time between two lines in the log about the same reason."""

MOST_CHARACTERS = 4000
"""Longest line of the log: parts of it may come from a peer, and writing a megabyte takes 20 ms."""


class Incidents:
    """Catches errors and counts them; logs the first of each reason, then one every `TELL_EVERY_S`.

    Args:
        tell: logs one line (or a traceback).
        counts: number of incidents by reason; None: its own.
        clock: seconds of a steady clock.
        passed_on: errors that are raised again.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        counts: Counter[str] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        passed_on: tuple[type[Exception], ...] = (),
    ) -> None:
        self.counts: Counter[str] = Counter() if counts is None else counts
        self._tell, self._clock, self._passed_on = tell, clock, passed_on
        self._logged: dict[str, tuple[float, int]] = {}  # by reason: when, at which count

    def guarded(self, what: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``action``, and return its result; None after an error, which is counted and logged as ``what``."""
        try:
            return action(*arguments)
        except Exception as error:
            self.caught(what, error)
        return None

    def caught(self, what: str, error: Exception) -> None:
        """Count and log an error that is being handled; raise it again if it is one of ``passed_on``."""
        if isinstance(error, self._passed_on):
            raise
        if isinstance(error, ContactIdError):
            self.count(what, str(error))
        else:
            self.count(f"{what}_{type(error).__name__}", traceback.format_exc().strip())

    def count(self, reason: str, detail: str) -> None:
        """Count an incident; log it, with the number since the last line, if none was logged for `TELL_EVERY_S`."""
        now_s = self._clock()
        self.counts[reason] += 1
        count = self.counts[reason]
        logged_s, logged = self._logged.get(reason, (-math.inf, 0))
        if now_s - logged_s >= TELL_EVERY_S:
            since = f" ({count - logged} since the last line)" if logged else ""
            self._logged[reason] = now_s, count
            self._tell(_shortened(f"{reason}{since}: {detail}"))

    def tell_anew(self) -> None:
        """Log the next incident of each reason, however recent the last line is."""
        self._logged.clear()


def _shortened(text: str) -> str:
    """Cut a text that is too long in the middle: the end of a traceback matters most."""
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]} ... {text[-half:]}"
