"""What went wrong: caught at one door, counted by reason, logged now and then. Knows no ROS."""

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
"""Of a line: a peer may have chosen some of its words, and writing a megabyte takes 20 ms."""


class Incidents:
    """Catches, counts, and logs the first of each reason, then one every `TELL_EVERY_S`.

    Args:
        tell: takes one line (or a traceback) for the log.
        counts: how often, by reason; None: its own.
        clock: seconds of a clock that never jumps.
        passed_on: errors that mean an end, not an incident.
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
        """What an action returns; None after an error, which is counted and logged."""
        try:
            return action(*arguments)
        except Exception as error:
            self.caught(what, error)
        return None

    def caught(self, what: str, error: Exception) -> None:
        """Count and log an error that is being handled; raised again where it means an end."""
        if isinstance(error, self._passed_on):
            raise
        if isinstance(error, ContactIdError):
            self.count(what, str(error))
        else:
            self.count(f"{what}_{type(error).__name__}", traceback.format_exc().strip())

    def count(self, reason: str, detail: str) -> None:
        """Count one more of a reason; a line has their number since the last one."""
        now_s = self._clock()
        self.counts[reason] += 1
        count = self.counts[reason]
        logged_s, logged = self._logged.get(reason, (-math.inf, 0))
        if now_s - logged_s >= TELL_EVERY_S:
            since = f" ({count - logged} since the last line)" if logged else ""
            self._logged[reason] = now_s, count
            self._tell(_shortened(f"{reason}{since}: {detail}"))

    def tell_anew(self) -> None:
        """The next one of each reason is logged, however long ago the last was."""
        self._logged.clear()


def _shortened(text: str) -> str:
    """Both ends of a text that is too long: that of a traceback matters most."""
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]} ... {text[-half:]}"
