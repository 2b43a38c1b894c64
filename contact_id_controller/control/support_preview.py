"""Largest deviation of the centre of mass from the plan that coming footholds can still correct.

The divergent component e of the error, e' = w (e - (p - p_p)) with the centre of pressure p in the hull
S of the soles in contact, can be brought to zero if and only if n.e <= H(n) for all n, where

    H(n, t) = (1 - f) max_{p in S(t)} n.(p - p_p(t)) + f H(n, t + dt),   f = e^{-w dt}

(`planning.kinodynamic.holdable` has the same for planners). If soles cannot give what feedback
requires in all directions, directions with little margin H(n) - n.e come first. Otherwise a
push forwards would take the pressure to the toes of one foot, and the resulting sideways motion
could not be balanced any more when the other foot lifts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

STEP_S = 0.05
STEPS = 32
"""Of the look ahead, after which the last support stays."""

NORMALS = 36

LEAST_REACH_M = 1e-3
"""Smaller reaches count as this: a plan may touch the edge of its soles."""

LEAST_SLACK = 0.1
"""Of a reach: an error beyond it counts as this near to it."""


class Support(NamedTuple):
    """Planned support at one time, horizontal: corners (m, 2) m about the planned pivot; w, 1/s."""

    corners: np.ndarray
    rate: float


class SupportPreview:
    """Preview of H over the coming supports; each time step is evaluated once.

    Args:
        look: planned support at a time, s; None without planned contacts.
    """

    def __init__(self, look: Callable[[float], Support | None]):
        self._look = look
        angles = np.linspace(0.0, 2.0 * np.pi, NORMALS, endpoint=False)
        self._normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self._reaches, self._fades = np.zeros((STEPS, NORMALS)), np.ones(STEPS)
        self._next, self._here = np.zeros(NORMALS), np.zeros(NORMALS)
        self._begins_s = -np.inf  # before the first step

    def forget(self) -> None:
        """Discard the preview, after a change of plan."""
        self._begins_s = -np.inf

    def reaches(self, time_s: float) -> np.ndarray:
        """H (NORMALS,) m at a time, counter-clockwise from x on."""
        self.advance(time_s)
        fade = self._fades[0] ** (1.0 - (time_s - self._begins_s) / STEP_S)
        return np.maximum((1.0 - fade) * self._here + fade * self._next, LEAST_REACH_M)

    def metric(self, time_s: float, error: np.ndarray) -> np.ndarray:
        """Square roots of the weights (2, 2) of horizontal accelerations for an error e (2,), m; the largest is 1.

        The weights are the second derivatives of the barrier -sum log(H - n.e).
        """
        reaches = self.reaches(time_s)
        slack = np.maximum(reaches - self._normals @ error, LEAST_SLACK * reaches)
        weights, axes = np.linalg.eigh((self._normals.T / slack**2) @ self._normals)
        return (axes * np.sqrt(weights / weights[1])) @ axes.T

    def advance(self, time_s: float) -> None:
        """Evaluate the supports newly within the horizon at a time, and sum backwards from its end."""
        if time_s < self._begins_s + STEP_S:
            return
        if time_s >= self._begins_s + 2.0 * STEP_S:
            self._begins_s, new = time_s, range(STEPS)
        else:
            self._begins_s += STEP_S
            self._reaches[:-1], self._fades[:-1] = self._reaches[1:], self._fades[1:]
            new = range(STEPS - 1, STEPS)
        for k in new:
            support = self._look(self._begins_s + (k + 0.5) * STEP_S)
            if support is None:
                self._reaches[k] = 0.0
            else:
                self._reaches[k] = (support.corners @ self._normals.T).max(axis=0)
                self._fades[k] = np.exp(-support.rate * STEP_S)
        total = self._reaches[-1].copy()
        for k in range(STEPS - 2, 0, -1):
            total += (1.0 - self._fades[k]) * (self._reaches[k] - total)
        self._next, self._here = total, self._reaches[0].copy()
