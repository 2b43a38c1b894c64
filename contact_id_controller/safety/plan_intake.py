"""How plans reach the controller: at once, or read in a thread; their parts together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.parts import PlanParts
from contact_id_controller.plans.plan import Plan
from contact_id_controller.safety.plan_reader import PlanReader, Read


class PlanIntake:
    """Joins the parts of plans and passes them to the controller, in order of arrival.

    Args:
        guarded: calls an action and counts its error, see `Incidents.guarded`.
        reads_at_once: read long plans at once, as no step waits (lockstep).

    Attributes:
        parts: those that wait for others.  reader: of long plans.
    """

    def __init__(self, guarded: Callable[..., Any], reads_at_once: bool) -> None:
        self.reads_at_once = reads_at_once
        self.parts, self.reader = PlanParts(), PlanReader()
        self._guarded = guarded

    def clear(self) -> None:
        """Drop all that has arrived."""
        self.parts.clear()
        self.reader.clear()

    def follow(self, controller: Controller, plan: Plan, now_s: float | None) -> None:
        """Follow a plan, or parts of one.  now_s: stamp of the last state, None before the first.

        Raises:
            TrajectoryError: it is refused; the plan before is followed.
        """
        if now_s is None:
            raise TrajectoryError("a plan before the first state of the robot is not followed")
        if not isinstance(plan, Plan) or not plan.parts:
            raise TrajectoryError(f"{plan!r} is no plan with joints, base, contacts or goals")
        joined = self.parts.join(plan, now_s)
        if joined is None:
            return
        try:
            controller.follow(joined, now_s)
        except TrajectoryError:
            self.parts.note_outcome(joined, refused=True)
            raise
        self.parts.note_outcome(joined, refused=False)

    def follow_due(self, controller: Controller, now_s: float) -> None:
        """Follow the parts that have waited long enough for others."""
        for part in self.parts.due(now_s):
            self._guarded("plan", self.follow, controller, part, now_s)

    def follow_read(self, controller: Controller, now_s: float | None) -> None:
        """Follow the oldest plan of ``reader.done``, which must not be empty."""
        read = self.reader.done.popleft()
        self._guarded(read.what, self._follow_read, read, controller, now_s)

    def _follow_read(self, read: Read, controller: Controller, now_s: float | None) -> None:
        read.taken()
        self.follow(controller, read.result(), now_s)

    def waits(self, long: bool) -> bool:
        """Whether a plan that arrives now is read in the thread."""
        return not self.reads_at_once and (long or self.reader.is_busy)
