"""Progress bar of labelling, and a line of text for each motion."""

from __future__ import annotations

from contact_id_controller.labels.campaign import Labelled
from contact_id_controller.labels.sources import MotionFile
from contact_id_controller.runs.progress import ProgressBar


class Progress:
    """Progress bar of the current motion."""

    def __init__(self) -> None:
        self._bar: ProgressBar | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, motion: MotionFile, frames: int) -> None:
        """Update the bar to this number of frames."""
        if self._bar is None:
            self._bar = ProgressBar(motion.path.name, float(motion.frames), unit="frames")
        self._bar.show(float(frames))

    def close(self) -> None:
        """End the bar's line, if there is one; the next motion begins another."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None


def summary(labelled: Labelled) -> str:
    """Result of a motion in one line."""
    counts = ", ".join(f"{count} {status}" for status, count in labelled.counts.items())
    new = labelled.frames - labelled.found
    pace = f", {new} in {labelled.wall_s:.1f} s" if new else ""
    before = f", {labelled.found} were there" if labelled.found else ""
    unread = f"; {labelled.unread} messages cannot be read" if labelled.unread else ""
    known = labelled.frames + labelled.unread
    short = (
        ""
        if labelled.unlabelled or known >= labelled.announced
        else (f"; the file announces {labelled.announced}, the others are lost")
    )
    return (
        f"{labelled.path.name}: {labelled.frames} frames{pace}{before}: {counts or 'none'}{unread}{short}"
        f" -> {labelled.folder}"
    )
