"""Whether the robot is given what is commanded, as its effort states tell.

A group controller that is deactivated, a command interface that another controller took, a watchdog in
between: the joint states come on, and so do our commands, but other efforts act. When ours act again,
full torque at once would be a blow.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel

AGREES, DIFFERS = 0.1, 0.25
"""Part of the square of what was commanded that is missing where efforts follow, and where not."""

LEARNT_S = 0.1
"""Efforts that followed for so long mean what is commanded; before they may mean anything."""

SIGNIFICANT = 0.04
"""Part of the largest square of a command that was followed; below nothing is judged."""

FOLLOWS = 0.5
"""Part of a small change that must be seen to be followed again."""

PROBE = 0.1
"""Share of the way to the torque wanted while none of it is given: so much is seen, and is no blow."""

LAG = 8
"""Periods that a command may take until it is seen."""

LATE_S = 0.25
"""Efforts that are a command no older than this are late: a process on their way slept, and nobody else commands.

They are believed for as long altogether until efforts are prompt again, for a stride brings the same torques back, also
beside a last effort that stays."""


class EffortMonitor:
    """Compares measured efforts with the commands before them. Seconds are those of the states.

    Efforts that never followed (zero, noise, another unit) are never judged. Sums fade over
    ``window_s``, so that an outlier, or a joint at a limit, is no evidence. Nor is lateness: efforts that are
    those of an older command agree with it, for up to LATE_S until they are prompt again.

    Args:
        joints: their number.
        window_s: for so long efforts must differ; 0: nothing is judged.
        period_s: of the commands.

    Attributes:
        lost: whether the robot is given something else than is commanded.
        held: (na,) N·m, what it has since; a mean over ``window_s``, or the first of it.
        watched: window_s and period_s.  watches: whether anything is judged; else commands need not be known.
        ring: (k, na) N·m, the last commands, each in the place of its number.  count: of commands; who sends one
            writes it there.
    """

    def __init__(self, joints: int, window_s: float, period_s: float) -> None:
        self.watched = window_s, period_s
        self._keep = np.exp(-period_s / window_s) if window_s > 0.0 else 0.0
        self.watches = window_s > 0.0
        self._learnt = max(1, round(LEARNT_S / period_s))
        self._window = max(1, round(window_s / period_s))
        self._longest_s = 2.5 * period_s
        self.ring = np.zeros((max(LAG, round(LATE_S / period_s)), joints))
        self.held, self._sum = np.zeros(joints), np.zeros(joints)
        self.forget()

    def forget(self) -> None:
        """The next efforts mean nothing until they were seen to follow."""
        self.lost = False
        self._agreed, self._largest, self._seen = 0, 0.0, 0
        self._late = self._prompt = 0
        self.count, self._time_s = 0, -np.inf
        self._missing = self._whole = 0.0

    def warm_up(self) -> None:
        """Compile what `measure` uses."""
        for lost in (False, True):
            _compare(self.ring, LAG, LAG, self.held, self.held, lost, self._largest)

    def measure(self, time_s: float, efforts: np.ndarray | None) -> bool:
        """Judge the efforts (na,) of a state; whether ``lost`` or ``held`` changed."""
        if not self.watches or efforts is None or self.count < LAG:
            return False
        since_s, self._time_s = time_s - self._time_s, time_s
        spent = self._late >= len(self.ring)
        reach = len(self.ring) if self._agreed >= self._learnt and not spent else LAG
        missing, whole, late = _compare(
            self.ring, self.count, reach, efforts, self.held, self.lost, self._largest
        )
        if not (since_s <= self._longest_s and missing < np.inf):
            return False  # what came meanwhile was not seen
        if not self.lost:
            self._count_late(late, missing <= AGREES * whole)
            self._follow(missing, whole, efforts)
            return self.lost
        if self._seen < self._window:
            self._seen += 1
            self._sum += efforts
            if self._seen == self._window:
                np.multiply(self._sum, 1.0 / self._window, out=self.held)
            return self._seen == self._window
        self._follow_again(missing, whole)
        return not self.lost

    def _count_late(self, late: bool, agrees: bool) -> None:
        """Periods in which efforts were those of an old command, until they were prompt for ``LEARNT_S``."""
        self._late += late
        self._prompt = self._prompt + 1 if agrees and not late else 0
        if self._prompt >= self._learnt:
            self._late = 0

    def _follow(self, missing: float, whole: float, efforts: np.ndarray) -> None:
        """Judge from leaky sums whether applied efforts have stopped following the commanded ones.

        Args:
            missing, whole: of this period, sum of squared differences and of squared commands.
            efforts: (na,) N·m, measured; held once the commands are lost.
        """
        # No more than all of it: large efforts of a few periods, as of feedback at the robot's side, outweighed a window.
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
            self.held[:] = efforts
            self._seen, self._sum[:] = 0, 0.0
            self._late = self._prompt = 0
            self._missing = self._whole = 0.0

    def _follow_again(self, followed: float, whole: float) -> None:
        self._missing = self._keep * self._missing + followed
        self._whole = self._keep * self._whole + whole
        floor = PROBE**2 * SIGNIFICANT * self._largest
        if (1.0 - self._keep) * self._whole > floor and self._missing > FOLLOWS * self._whole:
            self.lost = False
            self._missing = self._whole = 0.0


@bare_kernel
def _compare(ring, count, reach, efforts, held, lost, largest):
    """Squares, N^2·m^2, of what is missing of the nearest command, and of that command; whether that is an old one.

    ring (rows, na): the last commands, ``count`` in all; efforts (na,) measured. The nearest of the last LAG, and
    where that does not agree the newest of ``reach`` that does and is no small part of ``largest``. Lost: how much
    of the change from ``held`` (na,) to the last command is followed, and its square.
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
