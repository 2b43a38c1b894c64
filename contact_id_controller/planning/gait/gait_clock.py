"""When each foot swings: a cycle of equal duration for all feet, shifted per foot."""

from __future__ import annotations

import dataclasses
import math

from contact_id_controller.planning.gait.gaits import Gait

_SAME_TIME_S = 1e-7


@dataclasses.dataclass(frozen=True)
class GaitClock:
    """Lift-off and touchdown times of a gait whose phase is 0 at `start_s`.

    A foot is in stance from its touchdown phase on for `duty_factor` of the period, then swings. Feet
    that would already be swinging at the start stay in stance until their next lift-off.
    """

    start_s: float
    period_s: float
    duty_factor: float
    touchdown_phases: tuple[float, ...]

    @property
    def gait(self) -> Gait:
        """The gait: period, duty factor and touchdown phases."""
        return Gait(self.period_s, self.duty_factor, self.touchdown_phases)

    @property
    def swing_s(self) -> float:
        """Duration of a swing, s."""
        return (1.0 - self.duty_factor) * self.period_s

    @property
    def stance_s(self) -> float:
        """Duration of a stance, s."""
        return self.duty_factor * self.period_s

    def next_swing(self, foot: int, from_s: float, missed_s: float = 0.0) -> tuple[float, float]:
        """Lift-off and touchdown times, s, of the foot's first swing that begins at or after `from_s`.

        missed_s: a swing whose lift-off was due up to this long before `from_s` lifts off at `from_s` instead.
        """
        phase = (self.touchdown_phases[foot] + self.duty_factor) % 1.0
        first = self.start_s + phase * self.period_s
        cycle = max(math.ceil((from_s - missed_s - first - _SAME_TIME_S) / self.period_s), 0)
        lift = first + cycle * self.period_s
        return (max(lift, from_s) if missed_s else lift), lift + self.swing_s
