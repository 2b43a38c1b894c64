"""Assembly of plans whose parts arrive separately."""

from __future__ import annotations

import dataclasses
from typing import Any

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.plan import Plan

WAIT_S = 0.05
"""So long, s, a part whose start has come waits for its joints: messages overtake each other."""


class PlanParts:
    """Holds base and schedule until joints or goals with the same start arrive, to be followed or refused with them.

    Parts with the same start are one plan; those without one, which start on arrival, are not. When a part's start has
    come without joints, and `WAIT_S` has passed since its arrival, it is followed alone.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, Plan] = {}
        """Plans of one part each, by its name."""
        self._came_s: dict[str, float] = {}
        self._alone: list[Plan] = []
        self._followed_s: float | None = None
        self._refused_s: float | None = None

    def clear(self) -> None:
        """Discard all parts."""
        self.waiting.clear()
        self._alone.clear()
        self._followed_s = self._refused_s = None

    def join(self, plan: Plan, now_s: float) -> Plan | None:
        """Combine an arriving plan with the parts held for it; None: it is held itself.

        Raises TrajectoryError for a part of a plan whose joints were refused.
        """
        start_s = next(iter(plan.parts.values())).start_s
        if plan.joints is not None or plan.goals is not None:
            mates = {
                name: getattr(part, name)
                for name, part in self.waiting.items()
                if start_s is not None and getattr(part, name).start_s == start_s
            }
            for name in mates:
                del self.waiting[name]
            return dataclasses.replace(plan, **{**mates, **plan.parts})
        known = start_s is not None and start_s == self._refused_s and start_s <= now_s
        waited = known or any(plan is part for part in self._alone)
        if start_s not in (None, self._followed_s) and not waited:
            parts: dict[str, Any] = plan.parts
            for name, part in parts.items():
                self.waiting[name] = Plan(**{name: part})
                self._came_s[name] = now_s
            return None
        if start_s is not None and start_s == self._refused_s:
            raise TrajectoryError(
                f"the joints or goals of this plan, which begins at {start_s:.6f} s, were refused"
            )
        return plan

    def due(self, now_s: float) -> list[Plan]:
        """Parts whose waiting time for joints has passed; `join` them again."""
        names = []
        for name, part in self.waiting.items():
            start_s = getattr(part, name).start_s
            patience_s = 0.0 if start_s == self._refused_s else WAIT_S
            if max(start_s, self._came_s[name] + patience_s) <= now_s:
                names.append(name)
        self._alone = [self.waiting.pop(name) for name in names]
        return self._alone

    def note_outcome(self, plan: Plan, refused: bool) -> None:
        """Record whether the plan that `join` returned was refused."""
        lead = plan.goals if plan.joints is None else plan.joints
        if lead is None or lead.start_s is None:
            return
        start_s = lead.start_s
        self._followed_s, self._refused_s = (None, start_s) if refused else (start_s, None)
