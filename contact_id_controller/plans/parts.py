"""Joins the parts of one plan that come one by one."""

from __future__ import annotations

import dataclasses

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.plan import Plan


class PlanParts:
    """Base and schedule wait for the joints that begin with them, and share their fate.

    Parts with the same start, other than 0, are one plan. A base or a schedule that begins later
    waits for joints with its start: it is followed with them, or refused with them. When its start
    comes without any, it is followed alone.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, Plan] = {}
        """Plans of one part each, by its name."""
        self._followed_s: float | None = None
        self._refused_s: float | None = None

    def clear(self) -> None:
        """Forget all parts."""
        self.waiting.clear()
        self._followed_s = self._refused_s = None

    def join(self, plan: Plan, now_s: float) -> Plan | None:
        """What to follow now that ``plan`` has come: it and what waited for it; None: it waits too.

        Raises TrajectoryError for a part of a plan whose joints were refused.
        """
        start_s = next(iter(plan.parts.values())).start_s
        if plan.joints is not None:
            mates = {
                name: getattr(part, name)
                for name, part in self.waiting.items()
                if getattr(part, name).start_s == start_s != 0.0
            }
            for name in mates:
                del self.waiting[name]
            return dataclasses.replace(plan, **{**mates, **plan.parts})
        if start_s > now_s and start_s != self._followed_s:
            for name, part in plan.parts.items():
                self.waiting[name] = Plan(**{name: part})
            return None
        if start_s == self._refused_s:
            raise TrajectoryError(
                f"the joints of this plan, which begins at {start_s:.6f} s, were refused"
            )
        return plan

    def due(self, now_s: float) -> list[Plan]:
        """Parts whose start has come without joints; `join` them again."""
        names = [
            name for name, part in self.waiting.items() if getattr(part, name).start_s <= now_s
        ]
        return [self.waiting.pop(name) for name in names]

    def told(self, plan: Plan, refused: bool) -> None:
        """Whether what `join` returned was refused or is followed."""
        if plan.joints is None or plan.joints.start_s == 0.0:
            return
        start_s = plan.joints.start_s
        self._followed_s, self._refused_s = (None, start_s) if refused else (start_s, None)
