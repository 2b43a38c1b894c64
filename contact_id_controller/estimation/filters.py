"""One causal filter for every signal, so that all of them are late by the same time.

An acceleration is a difference of velocities: that over the period [k, k+1] belongs with the efforts and
forces of that period and with the configuration at k, and is known at k + 1. Whoever pairs it with the
readings at k + 1 is a sample off, which costs far more than noise does.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, StateError


class LowPass:
    """First-order low-pass of signals (size,), y += (1 - exp(-2 pi f dt)) (x - y).

    It begins at the first sample. Two filters of one cutoff and period delay alike, whatever passes them.

    Args:
        size: number of signals.
        cutoff_hz: None or inf: every sample passes as it is.
        period_s: between samples.

    Raises:
        ConfigurationError: a cutoff or period that is not positive.
    """

    def __init__(self, size: int, cutoff_hz: float | None, period_s: float):
        cutoff = math.inf if cutoff_hz is None else float(cutoff_hz)
        if not cutoff > 0.0:
            raise ConfigurationError(f"cutoff_hz is {cutoff_hz}, must be above 0, or None")
        if not 0.0 < period_s < math.inf:
            raise ConfigurationError(f"period_s is {period_s}, must be above 0 and finite")
        self._share = -math.expm1(-2.0 * math.pi * cutoff * period_s)
        self._value, self._step = np.zeros(size), np.zeros(size)
        self._started = False
        self._beginning: np.ndarray | None = None

    def reset(self) -> None:
        """Begin anew at the next sample."""
        self._started = False

    def begin(self, signals: np.ndarray) -> None:
        """Let some signals, (size,) bool, begin anew at the next sample."""
        self._beginning = signals

    def __call__(self, signals) -> np.ndarray:
        """Filtered signals (size,); the same array in every call.

        Raises:
            StateError: another shape. What is not finite would stay for ever and is refused too.
        """
        signals = np.asarray(signals, dtype=float)
        if signals.shape != self._value.shape:
            raise StateError(f"signals must have shape {self._value.shape}, got {signals.shape}")
        if not np.isfinite(signals).all():
            raise StateError("signals are not all finite")
        if self._started:
            np.subtract(signals, self._value, out=self._step)
            self._step *= self._share
            self._value += self._step
            if self._beginning is not None:
                np.copyto(self._value, signals, where=self._beginning)
        else:
            self._value[:], self._started = signals, True
        self._beginning = None
        return self._value
