"""A progress bar on a terminal; elsewhere a line now and then."""

from __future__ import annotations

import shutil
import sys
import time

WIDTH = 28
REFRESH_S = 0.1
QUIET_STEP = 0.25
"""Where output is not a terminal, a line is written after this part of the whole."""


class ProgressBar:
    """Shows how far a run is, in simulated time, or how many runs are done.

    Args:
        title: in front of the bar.
        total_s: simulated time of the whole run, or number of runs.
        unit: ``s``, or what is counted.
        stream: where to; standard error by default.
    """

    def __init__(self, title: str, total_s: float, stream=None, unit: str = "s"):
        self._unit, self._format = unit, ".1f" if unit == "s" else ".0f"
        self._title, self._total_s = title, total_s
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._begun: tuple[float, float] | None = None
        self._drawn_at, self._next_part, self._last_text = 0.0, QUIET_STEP, ""
        self._state = ""

    def say(self, state: str) -> None:
        """Show a state that has no time yet, such as compiling."""
        self._state = state
        if self._terminal:
            self._write(f"{self._title}  {state}")
        elif state != self._last_text:
            self._stream.write(f"{self._title}: {state}\n")
            self._stream.flush()
            self._last_text = state

    def show(self, now_s: float) -> None:
        """Show the simulated time."""
        wall = time.monotonic()
        if self._begun is None and now_s > 0.0:
            self._begun = (wall, now_s)
        part = min(1.0, now_s / self._total_s)
        if self._terminal:
            if wall - self._drawn_at >= REFRESH_S or part >= 1.0:
                self._drawn_at = wall
                filled = round(WIDTH * part)
                bar = "#" * filled + "-" * (WIDTH - filled)
                self._write(
                    f"{self._title}  [{bar}] {now_s:5{self._format}} / "
                    f"{self._total_s:g} {self._unit}"
                    f"  {self._state}{self._pace(wall, now_s)}"
                )
        elif part >= self._next_part:
            self._next_part = QUIET_STEP * (int(part / QUIET_STEP) + 1)
            self._stream.write(
                f"{self._title}: {now_s:{self._format}} of "
                f"{self._total_s:g} {self._unit}"
                f"{self._pace(wall, now_s)}\n"
            )
            self._stream.flush()

    def close(self) -> None:
        """End the line of the bar."""
        if self._terminal and self._last_text:
            self._stream.write("\n")
            self._stream.flush()

    def _pace(self, wall: float, now_s: float) -> str:
        """Speed relative to real time and the time left, once they can be told."""
        if self._begun is None or wall - self._begun[0] < 1.0:
            return ""
        speed = (now_s - self._begun[1]) / (wall - self._begun[0])
        if speed <= 0.0:
            return ""
        left_s = max(0.0, self._total_s - now_s) / speed
        pace = f"  {speed:.2f} x real time," if self._unit == "s" else " "
        return f"{pace} {left_s:.0f} s left"

    def _write(self, text: str) -> None:
        # A longer line would wrap, and the next one could not be written over it.
        text = text[: shutil.get_terminal_size().columns - 1]
        padding = " " * max(0, len(self._last_text) - len(text))
        self._stream.write(f"\r{text}{padding}")
        self._stream.flush()
        self._last_text = text
