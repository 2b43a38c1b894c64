"""Avoids steps of the torque: start ramp, and blending after a change."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from contact_id_controller.kernels.compile import Kernel, bare_kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.settings.controller import ControllerSettings

CARRIES = 0.15
"""Efforts from this part of the wanted torques on carry a load, as in the plugin (``robot_side.hpp``)."""

TAKE_OVER_S = 0.05
"""Time to take over a load: the plan continues, and half of its torque does not carry the robot."""


class TorqueOutput:
    """Sends the wanted torques, without steps other than those of the motion itself.

    When parameters, the model or the source of torque change, an offset is added that fades at blend_rate_nm_s: the
    difference to the torques without the change or, where these are not known, to those sent before. The wanted torques
    themselves stay unfiltered. After activation torques grow over start_ramp_s.

    Args:
        settings: blend_rate_nm_s, start_ramp_s and period_s are used.
        effort: (na,) N·m, torque limits.

    Attributes:
        sent: (na,) N·m, torques sent last.
        commanding: whether they were the controller's, in the last period.
        wanted: (na,) N·m, torques wanted last, to which those sent move.
    """

    def __init__(self, settings: ControllerSettings, effort: np.ndarray):
        na = len(effort)
        self.sent, self.commanding = np.zeros(na), False
        self.wanted = self.sent
        self._start, self._offset = np.zeros(na), np.zeros(na)
        self._ramp, self._from = np.zeros(na), np.zeros(na)
        self._changed = self._continues = False
        self._ramp_periods = self._ramped = 0
        self._share_allowed = 1.0
        self.apply(settings, effort)

    def apply(self, settings: ControllerSettings, effort: np.ndarray) -> None:
        """Use other settings and torque limits (na,), N·m."""
        self._effort = effort
        self._step = settings.period_s * settings.spread("blend_rate_nm_s", len(effort))
        self._length = round(settings.start_ramp_s / settings.period_s)
        self._take_over_periods = round(TAKE_OVER_S / settings.period_s)

    @property
    def share(self) -> float:
        """Progress of the start ramp, in [0, 1]: the share of the wanted torques that is sent."""
        if self._ramped >= self._ramp_periods:
            return 1.0
        return self._ramped / self._ramp_periods

    @property
    def settled(self) -> bool:
        """Whether the wanted torques are sent unchanged."""
        return self._ramped >= self._ramp_periods and not self._changed and not self._offset.any()

    def ramp(self) -> None:
        """Start the ramp from the torques sent last to the wanted ones."""
        self.hold(self.sent, 1.0)

    def hold(self, torques: np.ndarray, share: float) -> None:
        """Start the ramp at torques (na,), N·m, and keep it at ``share`` until ``go_on``."""
        self._start[:] = torques
        self._ramped, self._ramp_periods = 0, self._length
        self._share_allowed = share
        self.settle()

    def go_on(self, wanted: np.ndarray | None = None) -> None:
        """End ``hold``: continue the ramp, faster if the efforts at its start carry a load of the wanted ones (na,)."""
        self._share_allowed = 1.0
        if wanted is not None and np.abs(self._start).sum() >= CARRIES * np.abs(wanted).sum():
            periods = min(self._ramp_periods, self._take_over_periods)
            self._ramped, self._ramp_periods = int(self.share * periods), periods

    def blend(self) -> None:
        """Blend the next wanted torques, of another source, from the torques sent last."""
        self._changed, self._continues = True, False

    def blend_from(self, torques: np.ndarray) -> None:
        """Blend as ``blend``, from torques (na,) of the previous source for this period.

        A change of torque that is part of the motion, as at a touchdown in this period, is then not blended.
        """
        self._changed, self._continues = True, self._ramped >= self._ramp_periods
        np.add(torques, self._offset, out=self._from)

    def settle(self) -> None:
        """End the blending at once; the start ramp continues."""
        self._offset[:] = 0.0
        self._changed = self._continues = False

    def send(
        self,
        wanted: np.ndarray | None,
        safe: Callable[[], np.ndarray],
        *,
        at_once: bool,
        goes_on: bool,
    ) -> np.ndarray:
        """Torques (na,), N·m, to send in this period, the controller's or the safe output; a view of `sent`.

        Args:
            wanted: (na,) of the controller; None: it does not command.
            safe: returns the safe output (na,).
            at_once: jump to it; else it is blended.
            goes_on: the robot's side continues by itself: meanwhile nothing else is sent, and nothing is blended.
        """
        before, self.commanding = self.commanding, wanted is not None
        if wanted is None and goes_on:
            return self.sent
        if wanted is None and at_once:
            return self.jump(safe())
        # Also to the safe output and back: an offset is valid for its source of torques only.
        if self.commanding != before and not goes_on:
            self.blend()
        return self.follow(safe() if wanted is None else wanted)

    def jump(self, torques: np.ndarray) -> np.ndarray:
        """Send torques (na,), N·m, at once; the next wanted ones are blended."""
        if self._share_allowed < 1.0:
            self.hold(torques, self._share_allowed)
        else:
            self._ramped = self._ramp_periods
            self.blend()
        self.sent[:] = self.wanted = torques
        return self.sent

    def follow(self, wanted: np.ndarray) -> np.ndarray:
        """Torques (na,), N·m, to send in this period for the wanted ones; a view of `sent`."""
        self.wanted = wanted
        if self._ramped < self._ramp_periods:
            self._ramped += self._ramped + 1 <= self._share_allowed * self._ramp_periods
            share = self._ramped / self._ramp_periods
            np.subtract(wanted, self._start, out=self._ramp)
            self._ramp *= share
            self._ramp += self._start
            wanted = self._ramp  # a change in the middle of the ramp is blended as any other
        before = self._from if self._continues else self.sent
        _entry()(wanted, self._step, self._effort, self._changed, before, self._offset, self.sent)
        self._changed = self._continues = False
        return self.sent


@cache
def _entry() -> Kernel:
    """Compiled call of `_follow`."""
    row = np.empty(1)
    return direct(_follow, *3 * (row,), True, *3 * (row,))


@bare_kernel
def _follow(wanted, step, effort, changed, before, offset, sent):
    """Write ``sent`` (na,), N·m: wanted torques plus an offset that fades by at most ``step`` per period.

    When the source changes (``changed``), offset = before - wanted, and ``sent`` changes by at most ``step``. All
    (na,), N·m; with an offset ``sent`` also stays within +-effort.
    """
    for j in range(sent.shape[0]):
        last = sent[j]
        if changed:
            offset[j] = before[j] - wanted[j]
        if offset[j] > step[j]:
            offset[j] -= step[j]
        elif offset[j] < -step[j]:
            offset[j] += step[j]
        else:
            offset[j] = 0.0
        sent[j] = wanted[j]
        if offset[j] != 0.0:
            sent[j] = min(max(wanted[j] + offset[j], -effort[j]), effort[j])
            # Else the part cut off by the limit would keep the torque at the limit while it fades.
            offset[j] = sent[j] - wanted[j]
        if changed:  # no step in the period of the change, whatever the wanted torques do
            slow = min(max(sent[j], last - step[j]), last + step[j])
            sent[j] = min(max(slow, -effort[j]), effort[j])
