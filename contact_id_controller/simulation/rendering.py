"""Pictures of a recorded motion, drawn off-screen by MuJoCo.

MuJoCo fixes its OpenGL backend when it is imported, and a broken driver can end the process. So a
child process draws (`render_worker`), one backend after the other is tried, and frames come back
through a pipe.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.exceptions import RenderingError
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.robot import resolve_urdf

BACKENDS = ("egl", "osmesa", "glfw")


def render_frames(
    urdf: str | Path,
    feet: Sequence[SphereFoot],
    times_s: np.ndarray,
    q: np.ndarray,
    forces: np.ndarray | None = None,
    *,
    floating_base: bool = True,
    locked: Mapping[str, float] | None = None,
    ground_file: str = "",
    frames_per_second: float = 25.0,
    width: int = 640,
    height: int = 400,
    metres_per_newton: float | None = None,
    predicted: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Draw a recorded motion as pictures, with an arrow for each contact force.

    The camera follows the base. A frame shows the recorded state nearest to its instant; its force
    is the mean over the frame's duration.

    Args:
        urdf, feet, floating_base, locked: as for `MujocoRobot`; meshes are shown where MuJoCo can
            read them.
        ground_file: of uneven ground, see `geometry.read_ground`.
        times_s: instants of the recording, increasing, (n,), s.
        q: configurations in Pinocchio's convention, (n, nq).
        forces: force on the robot at each foot, (n, n_feet, 3), world frame, N; None: no arrows.
        frames_per_second: pictures per second of recorded time.
        width, height: of a picture, in pixels.
        metres_per_newton: length of the arrows; None: the robot's weight is 2.5 times as long as
            its base is high.
        predicted: predicted forces, as ``forces``, drawn as wider arrows around them; None: none.

    Yields:
        Pictures (height, width, 3), uint8, RGB.

    Raises:
        RenderingError: no OpenGL was found (the message lists what was tried), or there is nothing
            to draw.
    """
    times_s, q = np.asarray(times_s, dtype=float), np.asarray(q, dtype=float)
    arrows = [
        np.zeros((len(q), len(feet), 3)) if each is None else np.asarray(each, dtype=float)
        for each in (forces, predicted)
    ]
    for each in arrows:
        if not len(times_s) or q.ndim != 2 or each.shape != (len(q), len(feet), 3):
            raise RenderingError(
                f"recording to draw has times {times_s.shape}, q {q.shape} and forces {each.shape}"
            )
    if len(times_s) != len(q) or not (np.isfinite(q).all() and np.all(np.diff(times_s) > 0.0)):
        raise RenderingError("recording to draw must be finite, with increasing times")
    count = max(1, int((times_s[-1] - times_s[0]) * frames_per_second))
    instants = times_s[0] + np.arange(count) / frames_per_second
    rows = np.clip(np.searchsorted(times_s, instants), 0, len(times_s) - 1)
    settings = {
        "urdf": str(resolve_urdf(urdf)),
        "floating_base": floating_base,
        "locked": dict(locked or {}),
        "ground_file": ground_file,
        "width": width,
        "height": height,
        "metres_per_newton": metres_per_newton,
        "frames_per_second": frames_per_second,
        "feet": [
            (foot.frame, float(foot.radius_m), list(map(float, foot.center))) for foot in feet
        ],
    }
    means = np.stack([_window_means(each, rows) for each in arrows], axis=1)
    return _frames_from_child(settings, q[rows], means, (height, width, 3))


def _window_means(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mean of `values` from each row to the next, (len(rows), ...)."""
    ends = np.append(rows[1:], len(values))
    return np.array([values[a : max(a + 1, b)].mean(axis=0) for a, b in zip(rows, ends)])


def _frames_from_child(
    settings: Any, q: np.ndarray, forces: np.ndarray, shape: tuple[int, ...]
) -> Iterator[np.ndarray]:
    """Yield the pictures of the first OpenGL backend with which the child process delivers one."""
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.npz"
        np.savez(task, q=q, forces=forces, settings=json.dumps(settings))
        for backend in (chosen,) if chosen else BACKENDS:
            delivered = 0
            with _Child(task, backend, Path(folder) / f"{backend}.log") as child:
                for _ in range(len(q)):
                    picture = child.read(int(np.prod(shape)))
                    if picture is None:
                        break
                    delivered += 1
                    yield np.frombuffer(picture, dtype=np.uint8).reshape(shape)
            if delivered == len(q):
                return
            failures.append(f"{backend}: {child.last_words()}")
            if delivered:
                break
    raise RenderingError(
        f"MuJoCo cannot draw off-screen ({'; '.join(failures)}); install libegl1 with "
        "libgl1-mesa-dri, or libosmesa6, or choose a backend with MUJOCO_GL in the environment"
    )


class _Child:
    """The drawing process: pictures come from its standard output, errors go to a log."""

    def __init__(self, task: Path, backend: str, log: Path):
        self._log = log
        package_parent = str(Path(__file__).resolve().parents[2])
        paths = [package_parent, os.environ.get("PYTHONPATH", "")]
        environment = dict(
            os.environ, MUJOCO_GL=backend, PYTHONPATH=os.pathsep.join(filter(None, paths))
        )
        with open(log, "wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "contact_id_controller.simulation.render_worker", str(task)],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
            )
        assert self._process.stdout is not None
        self._pictures = self._process.stdout

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._pictures.close()
        self._process.terminate()
        self._process.wait()

    def read(self, size: int) -> bytes | None:
        """The next `size` bytes, or None when the process ended before."""
        data = self._pictures.read(size)
        return data if len(data) == size else None

    def last_words(self) -> str:
        """Last line of the log."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with code {self._process.returncode}"
