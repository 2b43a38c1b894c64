"""Detects from effort states whether the commanded efforts act on the robot.

A deactivated group controller, a command interface claimed by another controller, or a watchdog in between: joint
states and our commands continue, but other efforts act. When ours act again, full torque at once would be a shock.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel

AGREES, DIFFERS = 0.1, 0.25
"""Ratio of squared difference to squared command up to which efforts follow, and above which they do not."""

LEARNT_S = 0.1
"""Time for which efforts must follow before they are checked at all: they may be of another unit, or zero."""

SIGNIFICANT = 0.04
"""Squared commands below this part of the largest one that was followed are not judged."""

FOLLOWS = 0.5
"""Part of a commanded change that must be measured for efforts to follow again."""

PROBE = 0.1
"""Share of the start ramp that is sent while efforts do not follow: enough to be measured, and no shock."""

LAG = 8
"""Largest delay from a command to its measured effort, periods."""

LATE_S = 0.25
"""Efforts that match a command no older than this are late (a process in between was suspended), not another's.

Late efforts are accepted for this long in all until efforts are prompt again: a stride repeats its torques, so that a
constant effort could match an old command, too."""


class EffortMonitor:
    """Compares measured efforts with the commands sent before them. Times are stamps of the states, s.

    Efforts that never followed (zero, noise, another unit) are not judged. Sums decay over ``window_s``, so that an
    outlier, or a joint at a limit, is no evidence. Efforts that match an older command count as late, see LATE_S.

    Args:
        joints: their number, na.
        window_s: time for which efforts must differ; 0: nothing is judged.
        period_s: of the commands.
        limits: (na,) N·m, that no effort exceeds; one that does counts as the limit. None: unknown.

    Attributes:
        lost: whether efforts other than the commanded ones act.
        held: (na,) N·m, measured efforts since then: their mean over ``window_s``, or the first ones until it is known.
        watched: window_s and period_s.  watches: whether anything is judged; else ``ring`` need not be filled.
        ring: (k, na) N·m, the last commands, number i in row i % k.  count: of commands; the sender updates both.
    """

    def __init__(
        self, joints: int, window_s: float, period_s: float, limits: np.ndarray | None = None
    ) -> None:
        self.watched = window_s, period_s
        # A float of Python: a step with scalars of numpy takes several times as long.
        self._keep = math.exp(-period_s / window_s) if window_s > 0.0 else 0.0
        self.watches = window_s > 0.0
        self._learnt = max(1, round(LEARNT_S / period_s))
        self._window = max(1, round(window_s / period_s))
        self._longest_s = 2.5 * period_s
        self._limits = np.full(joints, np.inf) if limits is None else limits
        self.ring = np.zeros((max(LAG, round(LATE_S / period_s)), joints))
        self.held, self._sum = np.zeros(joints), np.zeros(joints)
        self.forget()

    def forget(self) -> None:
        """Restart: efforts are judged again only after they were seen to follow."""
        self.lost = False
        self._agreed, self._largest, self._seen = 0, 0.0, 0
        self._late = self._prompt = 0
        self.count, self._time_s = 0, -np.inf
        self._missing = self._whole = 0.0

    def warm_up(self) -> None:
        """Compile what `measure` calls."""
        for lost in (False, True):
            _compare(self.ring, LAG, LAG, self.held, self.held, lost, self._largest)

    def measure(self, time_s: float, efforts: np.ndarray | None) -> bool:
        """Compare the efforts (na,), N·m, of a state; return whether ``lost`` or ``held`` changed."""
        if not self.watches or efforts is None or self.count < LAG:
            return False
        since_s, self._time_s = time_s - self._time_s, time_s
        spent = self._late >= len(self.ring)
        reach = len(self.ring) if self._agreed >= self._learnt and not spent else LAG
        missing, whole, late = _compare(
            self.ring, self.count, reach, efforts, self.held, self.lost, self._largest
        )
        if not (since_s <= self._longest_s and missing < np.inf):
            return False  # a gap: states between were not compared
        if not self.lost:
            self._count_late(late, missing <= AGREES * whole)
            self._follow(missing, whole, efforts)
            return self.lost
        if self._seen < self._window:
            self._seen += 1
            self._sum += self._possible(efforts)
            if self._seen == self._window:
                np.multiply(self._sum, 1.0 / self._window, out=self.held)
            return self._seen == self._window
        # Capped, both ways around whole so that noise does not count: no single wrong effort follows for a window.
        self._follow_again(min(max(missing, -whole), 3.0 * whole), whole)
        return not self.lost

    def _count_late(self, late: bool, agrees: bool) -> None:
        """Count periods in which efforts match an old command; restart the count after ``LEARNT_S`` of prompt ones."""
        self._late += late
        self._prompt = self._prompt + 1 if agrees and not late else 0
        if self._prompt >= self._learnt:
            self._late = 0

    def _follow(self, missing: float, whole: float, efforts: np.ndarray) -> None:
        """Update the decaying sums; set ``lost`` when the measured efforts have stopped following.

        Args:
            missing, whole: sum of squared differences and of squared commands in this period, N²·m².
            efforts: (na,) N·m, measured; copied to ``held`` when they are lost.
        """
        # Capped: large efforts of a few periods, as of feedback at the robot's side, would outweigh a window.
        self._missing = self._keep * self._missing + min(missing, whole)
        self._whole = self._keep * self._whole + whole
        share = (1.0 - self._keep) * self._whole
        if self._missing <= AGREES * self._whole and whole > 0.0:
            self._agreed += 1
            if self._agreed >= self._learnt:
                self._largest = max(self._largest, share)
        elif self._agreed < self._learnt:
            self._agreed = 0
        elif share > SIGNIFICANT * self._largest and self._missing > DIFFERS * self._whole:
            self.lost = True
            self.held[:] = self._possible(efforts)
            self._seen, self._sum[:] = 0, 0.0
            self._late = self._prompt = 0
            self._missing = self._whole = 0.0

    def _possible(self, efforts: np.ndarray) -> np.ndarray:
        """Efforts (na,), N·m, within the limits."""
        return np.clip(efforts, -self._limits, self._limits)

    def _follow_again(self, followed: float, whole: float) -> None:
        self._missing = self._keep * self._missing + followed
        self._whole = self._keep * self._whole + whole
        floor = PROBE**2 * SIGNIFICANT * self._largest
        if (1.0 - self._keep) * self._whole > floor and self._missing > FOLLOWS * self._whole:
            self.lost = False
            self._missing = self._whole = 0.0


@bare_kernel
def _compare(ring, count, reach, efforts, held, lost, largest):
    """Find the command that efforts match; return squared difference, squared command, N²·m², and whether it is late.

    Args:
        ring (rows, na): the last commands, ``count`` in all.  efforts, held (na,): measured, N·m.
        reach: number of commands to search: the nearest of the last LAG; if none agrees, the newest older one that
            agrees and whose square is above SIGNIFICANT times ``largest``.
        lost: compare the changes of efforts and of the last command from ``held`` instead; returns their product and
            the square of the commanded change.
    """
    rows, joints = ring.shape
    if lost:
        newest = (count - 1) % rows
        followed, whole = 0.0, 0.0
        for j in range(joints):
            change = ring[newest, j] - held[j]
            followed += change * (efforts[j] - held[j])
            whole += change * change
        return followed, whole, False
    least, size, late = np.inf, 0.0, False
    for age in range(min(reach, count)):
        if age >= LAG and least <= AGREES * size:
            break
        row = (count - 1 - age) % rows
        missing, whole = 0.0, 0.0
        for j in range(joints):
            difference = efforts[j] - ring[row, j]
            missing += difference * difference
            whole += ring[row, j] * ring[row, j]
        if missing < least and (
            age < LAG or (missing <= AGREES * whole and whole > SIGNIFICANT * largest)
        ):
            least, size, late = missing, whole, age >= LAG
    return least, size, late
