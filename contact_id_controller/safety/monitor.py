"""Counts and times of the controller's steps, as figures and text for the diagnostics."""

from __future__ import annotations

import array
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from contact_id_controller.control.controller import StepResult
from contact_id_controller.control.limits import NAMES
from contact_id_controller.solution import RELAXED

_WINDOW = 4096
"""Steps over which percentiles are taken."""

_TIMES = ("period", "step time", "controller step", "solve time")
_PARTS = {"median": 50.0, "p99": 99.0, "p99.9": 99.9}


RATE_WINDOW_S = 1.0
"""Time of the states over which solutions are counted."""

TOLD_CHANGE = 0.2
"""Relative change of the rate of solutions that is logged."""

SMOOTHING = 0.05
"""Weight of a new delay in the mean delay."""

LARGEST_DELAY = 2.0
"""Largest delay that counts, in multiples of the mean, or of a period: a nap says nothing of the next steps."""


class SolutionRate:
    """Counts solutions per second of the states' time.

    Attributes:
        hz: rate in the last full window, 1/s; NaN before.
    """

    def __init__(self) -> None:
        self.hz = math.nan
        self._logged_hz = math.nan
        self.pause()

    def pause(self) -> None:
        """Restart the window with the next solution."""
        self._since_s, self._count = math.nan, 0

    def count(self, time_s: float) -> bool:
        """Count a solution for a state at ``time_s``; return whether the rate has changed enough to be logged."""
        passed_s = time_s - self._since_s
        if not 0.0 <= passed_s < 2.0 * RATE_WINDOW_S:
            self._since_s, self._count = time_s, 0
            return False
        self._count += 1
        if passed_s < RATE_WINDOW_S:
            return False
        before, self.hz = self.hz, self._count / passed_s
        self._since_s, self._count = time_s, 0
        if abs(self.hz - self._logged_hz) <= TOLD_CHANGE * self._logged_hz:
            return False
        if abs(self.hz - before) > TOLD_CHANGE * before:
            return False  # the rate changed within this window: the next one decides
        self._logged_hz = self.hz
        return True


class StepMonitor:
    """Counts and times the steps of the controller.

    A step is a deadline miss if states were lost before it (its stamp is more than 1.5 periods after that of the
    step before; only in real time, as a lockstep simulation loses none), or if it took longer than a period of the
    robot's time, from the arrival of the state to the publication of the command.

    Attributes:
        pace: clock seconds per second of the robot's time.
        solutions: counts solutions per second.
    """

    def __init__(self, period_s: float, real_time: bool) -> None:
        self._period_s = period_s
        self._real_time = real_time
        self.steps, self.pace = 0, 1.0
        self.deadline_misses = 0
        self.long_steps = self.long_controller_steps = 0
        """Steps longer than half a period: with the messages, and the controller's part alone."""
        self.statuses: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self._times_s = array.array("d", bytes(8 * len(_TIMES) * _WINDOW))
        self._last: tuple[float, float] | None = None
        self.solutions = SolutionRate()
        self._delay_s = self._step_s = 0.0

    def delay_s(self, age_s: float) -> float:
        """Mean delay from a state to its command, s: age of the state, ``age_s``, plus the last step, averaged."""
        most_s = LARGEST_DELAY * max(self._delay_s, self._period_s)
        now_s = min(max(age_s, 0.0) + self._step_s, most_s)
        self._delay_s += SMOOTHING * (now_s - self._delay_s) if self._delay_s else now_s
        return self._delay_s

    def pause(self) -> None:
        """Forget the last step: the next one is not compared with it."""
        self._last = None
        self.solutions.pause()

    def step(self, stamp_s: float, arrival_s: float, step_s: float, result: StepResult) -> bool:
        """Count and time a step; return whether states were lost before it.

        Args:
            stamp_s: of its state.  arrival_s: of the state, steady clock.
            step_s: from the arrival to the publication of the command. It includes ``result.step_time_s``,
                `Controller.step`, and that ``result.solve_time_s``: contact problem and solution.
        """
        controller_s, solve_s = result.step_time_s, result.solve_time_s
        last_stamp_s, last_arrival_s = self._last or (stamp_s, arrival_s)
        self._last = stamp_s, arrival_s
        self._step_s = step_s
        interval_s = arrival_s - last_arrival_s
        lost = self._real_time and stamp_s - last_stamp_s > 1.5 * self._period_s
        if lost or step_s > self._period_s * self.pace:
            self.deadline_misses += 1
        self.long_steps += step_s > 0.5 * self._period_s
        self.long_controller_steps += controller_s > 0.5 * self._period_s
        # An array of numpy takes ten times as long.
        times_s, k = self._times_s, self.steps % _WINDOW * len(_TIMES)
        times_s[k], times_s[k + 1] = interval_s, step_s
        times_s[k + 2], times_s[k + 3] = controller_s, solve_s
        self.statuses[result.status] += 1
        self.steps += 1
        return lost

    def refuse(self, reason: str) -> None:
        """Count a refused input, or a failure, by its reason."""
        self.refusals[reason] += 1

    def figures(self) -> dict[str, str]:
        """Names and values of all counts and times; times over the last 4096 steps."""
        figures = {
            "steps": str(self.steps),
            "deadline misses": str(self.deadline_misses),
            "steps over half a period": str(self.long_steps),
            "controller steps over half a period": str(self.long_controller_steps),
        }
        if not math.isnan(self.solutions.hz):
            figures["solutions a second"] = f"{self.solutions.hz:.0f}"
        if self.steps:
            recent = np.array(self._times_s).reshape(_WINDOW, -1)[: self.steps]
            # In one call: this runs between two steps, and one call for each percentile takes four times as long.
            found = np.percentile(recent, list(_PARTS.values()), axis=0)
            for name, times_s in zip(_TIMES, found.T):
                for part, time_s in zip(_PARTS, times_s):
                    figures[f"{name} {part} (us)"] = f"{time_s * 1e6:.1f}"
        for status, count in sorted(self.statuses.items()):
            figures[f"status {status}"] = str(count)
        for reason, count in sorted(self.refusals.items()):
            figures[f"refused {reason}"] = str(count)
        return figures


def contact_figures(result: StepResult, joint_names: Sequence[str]) -> dict[str, str]:
    """Names and values of the residuals of a step's solution, its contacts and saturated joints."""
    figures = {"status": result.status, "contacts": str(int(np.count_nonzero(result.contact)))}
    if result.solution is not None:
        for name, value in result.solution.residuals().items():
            figures[f"residual {name}"] = f"{value:.3g}"
        disturbance = result.solution.disturbance
        if disturbance is not None:
            figures["plan given up (rad/s2)"] = f"{np.abs(disturbance).max(initial=0.0):.3g}"
    if not np.isnan(result.power_loss_w):
        figures["power loss (W)"] = f"{result.power_loss_w:.3g}"
    figures["saturated joints"] = (
        ", ".join(
            f"{joint} ({_limits(acting)})"
            for joint, acting in zip(joint_names, result.limits)
            if acting
        )
        or "none"
    )
    return figures


def _limits(acting: int) -> str:
    return " and ".join(name for bit, name in NAMES.items() if acting & bit)


FELT_M_S = 1e-6
"""Largest speed of contacts that give way which is not reported: it is rounding."""

WORDS = {
    "relaxed": "plan or contacts given up in part",
    "inconsistent": "contacts contradict each other, fallback forces",
    "unholdable": "no set of sticking contacts has pressing forces alone: some contacts pull, which no ground allows",
    "not_converged": "solver failed, fallback forces",
}


def gave_way_m_s(result: StepResult) -> float:
    """Largest required contact velocity that a relaxed solution violates, m/s; 0 for any other status."""
    if result.status != RELAXED or result.solution is None:
        return 0.0
    residuals = result.solution.residuals()
    return max(residuals["given_way_m_s"], residuals["gap_m_s"])


def shortfall(statuses: Counter[str], before: Counter[str], gave_way: float = 0.0) -> str:
    """Describe failed solutions among the steps since ``before``, with counts; empty: none.

    statuses, before: counts by status, now and then.  gave_way: largest ``gave_way_m_s`` of these steps.
    """
    new = statuses - before
    parts = [
        f"{words} in {new[status]} of {new.total()} steps"
        for status, words in WORDS.items()
        if new[status]
    ]
    if gave_way > FELT_M_S:
        parts.append(f"contacts give way by up to {gave_way:.2g} m/s")
    return "; ".join(parts)
