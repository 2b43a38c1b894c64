"""One causal filter for every signal, so that all of them are late by the same time.

An acceleration is a difference of velocities: that over the period [k, k+1] belongs with the efforts and
forces of that period and with the configuration at k, and is known at k + 1. Whoever pairs it with the
readings at k + 1 is a sample off, which costs far more than noise does.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.estimation.checked import finite
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.views import dense


class LowPass:
    """First-order low-pass of signals (size,), y += (1 - exp(-2 pi f dt)) (x - y).

    It begins at the first sample. Two filters of one cutoff and period delay alike, whatever passes them.

    Args:
        size: number of signals.
        cutoff_hz: None or inf: every sample passes as it is.
        period_s: between samples.

    Attributes:
        share: of the difference that goes into the value at each sample.
        value (size,): filtered signals.  beginning (size,) bool: those that restart at the next sample.

    Raises:
        ConfigurationError: a cutoff or period that is not positive.
    """

    def __init__(self, size: int, cutoff_hz: float | None, period_s: float):
        cutoff = math.inf if cutoff_hz is None else float(cutoff_hz)
        if not cutoff > 0.0:
            raise ConfigurationError(f"cutoff_hz is {cutoff_hz}, must be above 0, or None")
        if not 0.0 < period_s < math.inf:
            raise ConfigurationError(f"period_s is {period_s}, must be above 0 and finite")
        self.share = -math.expm1(-2.0 * math.pi * cutoff * period_s)
        self.value, self.beginning = np.zeros(size), np.ones(size, dtype=bool)

    def reset(self) -> None:
        """Restart at the next sample."""
        self.beginning[:] = True

    def begin(self, signals: np.ndarray) -> None:
        """Let some signals, (size,) bool, restart at the next sample."""
        self.beginning |= signals

    def __call__(self, signals: np.ndarray) -> np.ndarray:
        """Filtered signals (size,); the same array in every call.

        Raises:
            StateError: another shape. What is not finite would stay for ever and is refused too.
        """
        signals = finite("signals", signals, len(self.value))
        smooth(dense(signals), self.share, self.beginning, self.value)
        return self.value


@bare_kernel
def smooth(signals, share, beginning, value):
    """One step of a low-pass of signals (size,): ``value`` follows; those ``beginning`` are as they are."""
    for k in range(signals.shape[0]):
        if beginning[k]:
            value[k], beginning[k] = signals[k], False
        else:
            value[k] += share * (signals[k] - value[k])
