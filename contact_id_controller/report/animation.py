"""An animation of a recorded motion: the robot with its contact forces, and their curves below it.

As AVIF, a tenth of the size of a GIF, if Pillow can write it; and as a GIF, which every mail and chat program shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, features

from contact_id_controller.exceptions import RenderingError
from contact_id_controller.files import write_with
from contact_id_controller.report.force_strip import ForceStrip
from contact_id_controller.report.stick_figure import draw_stick_figure
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.record import RunRecord

FRAMES_PER_SECOND = 20
LONGEST_S = 12.0
"""Longest animation: of a longer walk the beginning is shown, or the end if the robot fell."""

WIDTH, HEIGHT, STRIP_HEIGHT = 560, 350, 150
COLOURS, FEW_COLOURS = 128, 48  # of a GIF's palette, and of the small one's
PALETTE_FRAMES, PALETTE_PIXELS = 8, 40_000
QUALITY, ENCODER_SPEED = 45, 10  # of AVIF
SMALL = 2
"""Factor by which a GIF beside an AVIF is smaller in both directions, and has fewer frames; it has few colours."""


def save_animation(
    walk: RunRecord,
    path: Path,
    *,
    urdf: str,
    robot: RobotModel,
    feet: Sequence[Any],
    normal: np.ndarray,
    ground_file: str = "",
    sharp: Path | None = None,
) -> str:
    """Write the animation, a GIF, and return its caption.

    Drawn by MuJoCo where it finds an OpenGL that can draw without a screen (packages libegl1 and
    libgl1-mesa-dri, or libosmesa6), else as a stick figure.

    Args:
        urdf: location of the description that ``robot`` was made from.
        feet: spheres that touch the ground: ``frame``, ``radius_m``, ``center``.
        normal: of the ground, unit vector (3,), world frame.
        ground_file: of uneven ground; empty: there is a plane.
        sharp: place of an AVIF; the GIF beside it is small. Written where `writes_avif`.
    """
    rows = _excerpt(walk)
    shown = f"{walk.time_s[rows][0]:.1f} to {walk.time_s[rows][-1]:.1f} s"
    strip = ForceStrip(walk, normal, WIDTH, STRIP_HEIGHT)
    try:
        pictures = list(_mujoco_pictures(walk, rows, urdf, robot, feet, ground_file))
        kind = "simulated" if walk.knows_ground_forces else "predicted"
        around = "; pale orange around them: predicted" if walk.knows_ground_forces else ""
        caption = f"The run from {shown}. Green arrows: {kind} contact forces{around}."
    except RenderingError:
        pictures = list(
            draw_stick_figure(
                robot,
                feet,
                walk.q[rows],
                _shown_forces(walk)[rows],
                walk.predicted_forces[rows],
                stride=_stride(walk),
                width=WIDTH,
                height=HEIGHT,
            )
        )
        caption = (
            f"The run from {shown} as a stick figure; MuJoCo could not draw it. Arrows: "
            "contact forces, simulated (blue) and predicted (orange)."
        )
    instants = walk.time_s[rows][:: _stride(walk)]
    frames = [_stack(picture, strip.draw(time)) for picture, time in zip(pictures, instants)]
    if sharp is not None:
        sharp.unlink(missing_ok=True)  # of a run before
    if sharp is not None and writes_avif():
        _save(frames, sharp, format="AVIF", quality=QUALITY, speed=ENCODER_SPEED)
        size = WIDTH // SMALL, (HEIGHT + STRIP_HEIGHT) // SMALL
        small = [frame.resize(size, Image.Resampling.LANCZOS) for frame in frames[::SMALL]]
        save_gif(small, path, FEW_COLOURS, FRAMES_PER_SECOND / SMALL)
    else:
        save_gif(frames, path)
    return caption


def writes_avif() -> bool:
    """Whether this Pillow can write AVIF."""
    return bool(features.check("avif"))


def _mujoco_pictures(
    walk: RunRecord,
    rows: slice,
    urdf: str,
    robot: RobotModel,
    feet: Sequence[Any],
    ground_file: str,
) -> Iterator[np.ndarray]:
    """Pictures of these rows of a walk, rendered by MuJoCo with predicted and simulated forces."""
    try:
        from contact_id_controller.simulation.rendering import render_frames
    except ImportError as error:
        raise RenderingError(f"MuJoCo is not installed: {error}") from error
    return render_frames(
        urdf,
        feet,
        walk.time_s[rows],
        walk.q[rows],
        _shown_forces(walk)[rows],
        floating_base=robot.floating_base,
        locked=robot.locked,
        ground_file=ground_file,
        frames_per_second=FRAMES_PER_SECOND,
        width=WIDTH,
        height=HEIGHT,
        predicted=walk.predicted_forces[rows] if walk.knows_ground_forces else None,
    )


def _shown_forces(walk: RunRecord) -> np.ndarray:
    """The ground's forces (n, f, 3), N, or the predicted ones where none were recorded."""
    return walk.simulated_forces if walk.knows_ground_forces else walk.predicted_forces


def _excerpt(walk: RunRecord) -> slice:
    """Rows in the animation."""
    length = min(len(walk), round(LONGEST_S / walk.period_s))
    return slice(len(walk) - length, len(walk)) if walk.fell else slice(0, length)


def _stride(walk: RunRecord) -> int:
    """Control periods in a frame."""
    return max(1, round(1.0 / (FRAMES_PER_SECOND * walk.period_s)))


def _stack(picture: np.ndarray, strip: Image.Image) -> Image.Image:
    frame = Image.new("RGB", (WIDTH, HEIGHT + STRIP_HEIGHT), "white")
    frame.paste(Image.fromarray(picture), (0, 0))
    frame.paste(strip, (0, HEIGHT))
    return frame


def save_gif(
    frames: list[Image.Image],
    path: Path,
    colours: int = COLOURS,
    frames_per_second: float = FRAMES_PER_SECOND,
) -> None:
    """Write frames that repeat for ever, all with the same palette."""
    palette = _palette(frames, colours)
    indexed = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    _save(indexed, path, frames_per_second, format="GIF", loop=0)


def _save(
    frames: list[Image.Image],
    path: Path,
    frames_per_second: float = FRAMES_PER_SECOND,
    **options: Any,
) -> None:
    """Write moving frames, with options of their format."""
    more, shown_ms = frames[1:], round(1000 / frames_per_second)
    write_with(
        path,
        lambda file: frames[0].save(
            file, save_all=True, append_images=more, duration=shown_ms, **options
        ),
    )


def _palette(frames: list[Image.Image], colours: int) -> Image.Image:
    """A palette weighted towards saturated colours, so that arrows and feet keep theirs."""
    chosen = frames[:: max(1, len(frames) // PALETTE_FRAMES)]
    pixels = np.concatenate([np.asarray(frame).reshape(-1, 3) for frame in chosen])
    spread = pixels.max(axis=1).astype(float) - pixels.min(axis=1)
    weights = 1.0 + (spread / 16.0) ** 2
    picks = np.random.default_rng(0).choice(len(pixels), PALETTE_PIXELS, p=weights / weights.sum())
    sample = Image.fromarray(pixels[picks].reshape(-1, 200, 3))
    return sample.quantize(colours, method=Image.Quantize.MEDIANCUT)
