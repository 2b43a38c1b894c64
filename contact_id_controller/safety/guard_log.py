"""What the guard reports: lines for the log, level and text for the diagnostics."""

from __future__ import annotations

from collections.abc import Callable

from contact_id_controller.control.controller import StepResult
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.safety.incidents import Incidents
from contact_id_controller.safety.machine import SafetyMachine, SafetyState
from contact_id_controller.safety.monitor import StepMonitor, gave_way_m_s, shortfall
from contact_id_controller.solution import NOT_CONVERGED, RELAXED

OK, WARNING, ERROR = range(3)
"""Levels of `GuardLog.summary`."""

TROUBLED = frozenset((NOT_CONVERGED, RELAXED))
"""Statuses of solutions for which `GuardLog.failure` is called."""


class GuardLog:
    """Collects lines for the log, and what went wrong since the last summary.

    Args:
        monitor: has the counts.  clock: seconds of a steady clock.

    Attributes:
        lines: since the last ``news``.  incidents: counts and logs.
    """

    def __init__(self, monitor: StepMonitor, clock: Callable[[], float]) -> None:
        self.lines: list[str] = []
        self.incidents = Incidents(lambda line: self.lines.append(line), monitor.refusals, clock)
        self._monitor, self._stop_reported = monitor, ""
        self._reported, self._gave_way_m_s = (0, monitor.statuses.copy()), 0.0

    def failure(self, result: StepResult) -> str:
        """Why a solution counts as failed (one alone does not stop the controller); empty: it does not."""
        if result.status == NOT_CONVERGED:
            return "solver not converged"
        gave_way = gave_way_m_s(result)
        self._gave_way_m_s = max(self._gave_way_m_s, gave_way)
        if gave_way > TOUCHING_SPEED:
            return f"contacts give way by {gave_way:.2g} m/s"
        return ""

    @property
    def told_of_stop(self) -> bool:
        """Whether a stop was logged, and not yet its end."""
        return bool(self._stop_reported)

    def news(self, machine: SafetyMachine) -> list[str]:
        """Lines since the last call: new refusals, a stop with its reason, its end."""
        stopped = machine.reason if machine.latched else ""
        if stopped != self._stop_reported:
            if stopped:
                self.lines.append(f"stopped: {stopped}")
            elif machine.state is not SafetyState.INACTIVE:
                self.lines.append("commanding again")
            self._stop_reported = stopped
        if not self.lines:
            return self.lines
        news, self.lines = self.lines, []
        return news

    def summary(self, machine: SafetyMachine, result: StepResult | None) -> tuple[int, str]:
        """Level and text: present state, and what went wrong since the last call."""
        monitor = self._monitor
        refusals, statuses = self._reported
        self._reported = new = monitor.refusals.total(), monitor.statuses.copy()
        gave_way, self._gave_way_m_s = self._gave_way_m_s, 0.0
        if machine.state is SafetyState.INACTIVE:
            return OK, "inactive"
        if machine.latched:
            return ERROR, f"{machine.state.value}: {machine.reason}"
        if result is None:
            return ERROR, f"safe output: {machine.reason}"
        if machine.state is SafetyState.NOT_FOLLOWING:
            return ERROR, f"not following: {machine.reason}"
        if new[0] > refusals:
            return WARNING, "commanding, some input refused"
        problems = shortfall(new[1], statuses, gave_way)
        return (WARNING, f"commanding; {problems}") if problems else (OK, "commanding")
