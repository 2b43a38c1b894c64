"""A progress bar on a terminal, if rich is installed; otherwise lines at intervals."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

REFRESH_S = 0.1
QUIET_STEP, QUIET_S = 0.25, 8.0
"""If output is not a terminal, a line is written after this part of the total, or after this time."""


class ProgressBar:
    """Shows the progress of a run, in simulated time, or the number of runs done.

    Args:
        title: in front of the bar.
        total_s: simulated time of the whole run, or number of runs.
        unit: ``s``, or what is counted.
        stream: output; standard error by default.
    """

    def __init__(self, title: str, total_s: float, stream: Any = None, unit: str = "s") -> None:
        self._unit, self._format = unit, ".1f" if unit == "s" else ".0f"
        self._title, self._total_s = title, total_s
        self._stream = sys.stderr if stream is None else stream
        draws = self._stream.isatty() and importlib.util.find_spec("rich") is not None
        self._bar: Any = _rich_bar(self._stream, title, total_s) if draws else None
        self._begun: tuple[float, float] | None = None
        self._drawn_at, self._next_part, self._state = 0.0, QUIET_STEP, ""
        self._written_at = time.monotonic()

    def say(self, state: str) -> None:
        """Show a state without time, such as compiling."""
        if self._bar is not None:
            self._draw(0.0 if self._begun is None else None, state)
        elif state != self._state:
            self._write(f": {state}")
        self._state = state

    def tell(self, line: str) -> None:
        """Write a permanent line."""
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def show(self, now_s: float) -> None:
        """Show the simulated time, s."""
        wall = time.monotonic()
        if self._begun is None and now_s > 0.0:
            self._begun = (wall, now_s)
        part = min(1.0, now_s / self._total_s)
        text = f"{now_s:{self._format}} of {self._total_s:g} {self._unit}{self._pace(wall, now_s)}"
        if self._bar is not None:
            if wall - self._drawn_at >= REFRESH_S or part >= 1.0:
                self._drawn_at = wall
                self._draw(now_s, f"{text}  {self._state}")
        elif part >= self._next_part or wall - self._written_at >= QUIET_S:
            self._next_part = QUIET_STEP * (int(part / QUIET_STEP) + 1)
            self._write(f": {text}")

    def close(self) -> None:
        """End the line of the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _pace(self, wall: float, now_s: float) -> str:
        """Speed relative to real time and the time left, once they are known."""
        if self._begun is None or wall - self._begun[0] < 1.0:
            return ""
        speed = (now_s - self._begun[1]) / (wall - self._begun[0])
        if speed <= 0.0:
            return ""
        left_s = max(0.0, self._total_s - now_s) / speed
        pace = f"  {speed:.2f} x real time," if self._unit == "s" else " "
        return f"{pace} {left_s:.0f} s left"

    def _draw(self, now_s: float | None, text: str) -> None:
        self._bar.update(self._bar.task_ids[0], completed=now_s, text=text)
        self._bar.refresh()

    def _write(self, text: str) -> None:
        self._written_at = time.monotonic()
        self._stream.write(f"{self._title}{text}\n")
        self._stream.flush()


@contextlib.contextmanager
def telling(text: str, stream: Any = None) -> Iterator[None]:
    """While inside, print ``text`` and the time passed every ``QUIET_S``: for work without known progress."""
    stream = sys.stderr if stream is None else stream
    over, begun_s = threading.Event(), time.monotonic()

    def watch() -> None:
        while not over.wait(QUIET_S):
            print(f"{text} ({time.monotonic() - begun_s:.0f} s)", file=stream, flush=True)

    print(text, file=stream, flush=True)
    thread = threading.Thread(target=watch, name="telling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _rich_bar(stream: Any, title: str, total: float) -> Any:
    """A bar with title and text, cut at the edge of the terminal; drawn on demand."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    bar = Progress(
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, min_width=min(len(title), 24)),
        ),
        BarColumn(bar_width=28),
        TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True)),
        console=Console(file=stream),
        auto_refresh=False,  # no thread: processes are forked while it shows
        expand=False,
    )
    bar.add_task(title, total=total, text="")
    bar.start()
    return bar
