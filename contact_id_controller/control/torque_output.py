"""From one torque to another without a step: the start ramp, and blending after a change."""

from __future__ import annotations

import numpy as np

from ..lcp._compile import bare_kernel
from .settings import ControllerSettings


class TorqueOutput:
    """Follows wanted torques: at once as a rule, slowly while something has just changed.

    Attributes:
        sent: (na,) N·m, what was sent last.
    """

    def __init__(self, na: int, settings: ControllerSettings):
        self.sent = np.zeros(na)
        self._start = np.zeros(na)
        self._behind = np.zeros(na, dtype=np.bool_)
        self._ramp_periods = self._ramped = 0
        self.apply(settings)

    def apply(self, settings: ControllerSettings) -> None:
        """Take over the parameters blend_rate_nm_s and start_ramp_s."""
        self._step = settings.period_s * settings.spread("blend_rate_nm_s", len(self.sent))
        self._length = round(settings.start_ramp_s / settings.period_s)

    @property
    def settled(self) -> bool:
        """Whether what is sent is what is wanted."""
        return self._ramped >= self._ramp_periods and not self._behind.any()

    def ramp(self) -> None:
        """From now on grow from what was sent last to what is wanted, over the start ramp."""
        self._start[:] = self.sent
        self._ramped, self._ramp_periods = 0, self._length
        self._behind[:] = True

    def blend(self) -> None:
        """From now on move at the blend rate, each joint until it has caught up."""
        self._behind[:] = True

    def jump(self, torques: np.ndarray) -> np.ndarray:
        """Send torques (na,) at once; what follows them is blended in."""
        self._ramped = self._ramp_periods
        self._behind[:] = True
        self.sent[:] = torques
        return self.sent

    def follow(self, wanted: np.ndarray) -> np.ndarray:
        """What to send in this period, (na,), for the torques wanted; a view of `sent`."""
        if self._ramped < self._ramp_periods:
            self._ramped += 1
            share = self._ramped / self._ramp_periods
            np.subtract(wanted, self._start, out=self.sent)
            self.sent *= share
            self.sent += self._start
            return self.sent
        _follow(wanted, self._step, self._behind, self.sent)
        return self.sent


@bare_kernel
def _follow(wanted, step, behind, sent):
    for j in range(sent.shape[0]):
        change = wanted[j] - sent[j]
        if behind[j] and change > step[j]:
            sent[j] += step[j]
        elif behind[j] and change < -step[j]:
            sent[j] -= step[j]
        else:
            sent[j], behind[j] = wanted[j], False
