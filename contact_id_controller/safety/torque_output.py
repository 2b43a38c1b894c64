"""From one torque to another without a step: the start ramp, and blending after a change."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.settings.controller import ControllerSettings

CARRIES = 0.15
"""Part of the torques wanted which, acting already, carries a load: as the plugin has it (``robot_side.hpp``)."""

TAKE_OVER_S = 0.05
"""Time to take over a load: a plan walks on, and half of its torque does not carry."""


class TorqueOutput:
    """Sends the torques wanted, except that no change other than the robot's own makes a step.

    When parameters, the model or the source of torque change, the difference to what would have been
    sent without the change, or, where that is not known, to what was sent before, becomes an offset that
    fades at blend_rate_nm_s; the torques themselves stay as quick as the motion asks. After activation
    torque grows over start_ramp_s.

    Args:
        settings: blend_rate_nm_s, start_ramp_s and period_s are used.
        effort: (na,) N·m, largest torque that is sent.

    Attributes:
        sent: (na,) N·m, what was sent last.
    """

    def __init__(self, settings: ControllerSettings, effort: np.ndarray):
        na = len(effort)
        self.sent = np.zeros(na)
        self._start, self._offset = np.zeros(na), np.zeros(na)
        self._ramp, self._from = np.zeros(na), np.zeros(na)
        self._changed = self._continues = False
        self._ramp_periods = self._ramped = 0
        self._share_allowed = 1.0
        self.apply(settings, effort)

    def apply(self, settings: ControllerSettings, effort: np.ndarray) -> None:
        """Take over other settings and limits."""
        self._effort = effort
        self._step = settings.period_s * settings.spread("blend_rate_nm_s", len(effort))
        self._length = round(settings.start_ramp_s / settings.period_s)
        self._take_over_periods = round(TAKE_OVER_S / settings.period_s)

    @property
    def share(self) -> float:
        """How far the start ramp is, in [0, 1]: so much of what is wanted is sent."""
        if self._ramped >= self._ramp_periods:
            return 1.0
        return self._ramped / self._ramp_periods

    @property
    def settled(self) -> bool:
        """Whether what is sent is what is wanted."""
        return self._ramped >= self._ramp_periods and not self._changed and not self._offset.any()

    def ramp(self) -> None:
        """From now on grow from what was sent last to what is wanted, over the start ramp."""
        self.hold(self.sent, 1.0)

    def hold(self, torques: np.ndarray, share: float) -> None:
        """Start the ramp at torques (na,), and go no further than a share of it until ``go_on``."""
        self._start[:] = torques
        self._ramped, self._ramp_periods = 0, self._length
        self._share_allowed = share
        self.settle()

    def go_on(self, wanted: np.ndarray | None = None) -> None:
        """End ``hold``: the ramp goes on; faster where what acts carries a load of the torques wanted (na,)."""
        self._share_allowed = 1.0
        if wanted is not None and np.abs(self._start).sum() >= CARRIES * np.abs(wanted).sum():
            periods = min(self._ramp_periods, self._take_over_periods)
            self._ramped, self._ramp_periods = int(self.share * periods), periods

    def blend(self) -> None:
        """What is wanted next comes from elsewhere: begin where what was sent last ends."""
        self._changed, self._continues = True, False

    def blend_from(self, torques: np.ndarray) -> None:
        """As ``blend``, where torques (na,) are what the source until now wants in this period.

        A change of torque that is the motion's own, as when a foot lands in this moment, is then no part
        of what fades.
        """
        self._changed, self._continues = True, self._ramped >= self._ramp_periods
        np.add(torques, self._offset, out=self._from)

    def settle(self) -> None:
        """Nothing is left to fade: what is wanted next is sent as it is, but for the start ramp."""
        self._offset[:] = 0.0
        self._changed = self._continues = False

    def jump(self, torques: np.ndarray) -> np.ndarray:
        """Send torques (na,) at once; what follows them is blended in."""
        if self._share_allowed < 1.0:
            self.hold(torques, self._share_allowed)
        else:
            self._ramped = self._ramp_periods
            self.blend()
        self.sent[:] = torques
        return self.sent

    def follow(self, wanted: np.ndarray) -> np.ndarray:
        """What to send in this period, (na,), for the torques wanted; a view of `sent`."""
        if self._ramped < self._ramp_periods:
            self._ramped += self._ramped + 1 <= self._share_allowed * self._ramp_periods
            share = self._ramped / self._ramp_periods
            np.subtract(wanted, self._start, out=self._ramp)
            self._ramp *= share
            self._ramp += self._start
            wanted = self._ramp  # a change in the middle of the ramp is blended as any other
        before = self._from if self._continues else self.sent
        _follow(wanted, self._step, self._effort, self._changed, before, self._offset, self.sent)
        self._changed = self._continues = False
        return self.sent


@bare_kernel
def _follow(wanted, step, effort, changed, before, offset, sent):
    """Write ``sent`` (na,), N·m: wanted torques plus an offset that fades by at most ``step`` a period.

    When a source of torques changes (``changed``), offset = before - wanted, so that nothing jumps; later it fades
    to zero. All (na,), N·m; sent also stays within +-effort.
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
            # What the limit cuts off would hold the torque there long after.
            offset[j] = sent[j] - wanted[j]
        if changed:  # the period of the change itself brings no step in any case
            slow = min(max(sent[j], last - step[j]), last + step[j])
            sent[j] = min(max(slow, -effort[j]), effort[j])
