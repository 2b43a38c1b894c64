"""The strip below an animation: normal force of each foot over the last seconds."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from contact_id_controller.report.style import GREY, PREDICTED, SHADE, SIMULATED
from contact_id_controller.runs.record import RunRecord

SPAN_S = 2.0
OVERSAMPLING = 2
"""Lines are drawn this much larger and shrunk, which smooths them."""

LABEL_WIDTH, TOP, MARGIN = 84, 24, 6
FONT_SIZE = 11
WIDEST = 0.5
"""Largest share of the width for names of feet, which differ at their beginning as well as at their end."""


class ForceStrip:
    """Draws predicted over simulated normal force, one row per foot, at any time of a walk.

    Args:
        normal: of the ground, unit vector (3,), world frame.
        width, height: of the strip, pixels.
    """

    def __init__(self, walk: RunRecord, normal: np.ndarray, width: int, height: int):
        self._walk = walk
        self._predicted = walk.predicted_forces @ normal
        known = walk.knows_ground_forces
        self._simulated = (walk.simulated_forces if known else walk.predicted_forces) @ normal
        highest = float(np.percentile(self._simulated, 99.8)) if self._simulated.size else 0.0
        self._scale = max(1e-9, 1.1 * highest)
        self._size = (width, height)
        self._font = ImageFont.load_default(OVERSAMPLING * FONT_SIZE)
        longest = max(map(self._font.getlength, walk.foot_names), default=0.0)
        wanted = max(longest / OVERSAMPLING + 2 * MARGIN, LABEL_WIDTH)
        self._left = OVERSAMPLING * min(wanted, WIDEST * width)

    def draw(self, time_s: float) -> Image.Image:
        """The strip that ends at ``time_s``."""
        width, height = (OVERSAMPLING * length for length in self._size)
        image = Image.new("RGB", (width, height), "white")
        pen = ImageDraw.Draw(image)
        self._draw_legend(pen, width, time_s)
        walk = self._walk
        first = int(np.searchsorted(walk.time_s, time_s - SPAN_S))
        last = int(np.searchsorted(walk.time_s, time_s, side="right"))
        rows = slice(first, last, max(1, (last - first) // width))
        left, right = self._left, width - OVERSAMPLING * MARGIN
        x = right + (walk.time_s[rows] - time_s) / SPAN_S * (right - left)
        top = OVERSAMPLING * TOP
        pitch = (height - top - OVERSAMPLING * MARGIN) / max(1, len(walk.foot_names))
        for foot, name in enumerate(walk.foot_names):
            base = top + (foot + 0.9) * pitch
            pen.rectangle((left, base - 0.8 * pitch, right, base), fill=SHADE)
            pen.text(
                (left - OVERSAMPLING * MARGIN, base - 0.4 * pitch),
                name,
                fill=SIMULATED,
                font=self._font,
                anchor="rm",
            )
            for forces, colour, thickness in (
                (self._simulated, SIMULATED, 4),
                (self._predicted, PREDICTED, 2),
            ):
                y = base - 0.8 * pitch * np.clip(forces[rows, foot] / self._scale, 0.0, 1.0)
                pen.line(np.stack([x, y], axis=1).ravel().tolist(), fill=colour, width=thickness)
        return image.resize(self._size, Image.Resampling.LANCZOS)

    def _draw_legend(self, pen: ImageDraw.ImageDraw, width: int, time_s: float) -> None:
        """Draw names of the curves, their scale and the time above the strip, which is ``width`` pixels wide."""
        middle = OVERSAMPLING * TOP / 2
        x = OVERSAMPLING * LABEL_WIDTH
        touches = bool(self._walk.foot_names)
        labels = (("simulated", SIMULATED), ("predicted", PREDICTED)) if touches else ()
        for label, colour in labels:
            pen.line((x, middle, x + 30, middle), fill=colour, width=4)
            pen.text((x + 40, middle), label, fill=colour, font=self._font, anchor="lm")
            x += 170
        text = f"normal force, full scale {self._scale:.0f} N, last {SPAN_S:g} s" * touches
        pen.text((x, middle), text, fill=GREY, font=self._font, anchor="lm")
        pen.text(
            (width - OVERSAMPLING * MARGIN, middle),
            f"t = {time_s:.2f} s",
            fill=SIMULATED,
            font=self._font,
            anchor="rm",
        )
