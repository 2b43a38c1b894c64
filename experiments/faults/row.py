"""One row of the fault campaign: what is done, what should follow, what did."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from contact_id_controller.plans.effort_trajectory import REST_S
from experiments.faults.world import FaultWorld

ALLOWANCE_S = 0.05
"""Beyond every stated time, for a machine that does other things too."""

SERVICE_TURN_S, OTHERS_FIRST = 0.02, 5
"""Between two turns of the controller's executor, which serves services; and how many turns may
serve something else before, on a machine that gets no more than one callback into a turn."""

WALKS_ON = "walks on"
WALKS_AGAIN = "walks again after a new activation"


class Observed(NamedTuple):
    """What came of a fault.

    reaction_s: wall time from its onset to the reaction; None where none came, or none is due.
    ended: one of the words above.  remark: figures for the table.
    """

    reaction_s: float | None
    ended: str
    remark: str = ""


class Fault(NamedTuple):
    """A fault and its stated reaction.

    name, reaction: its cells in the table.
    within: gives the stated time, s of wall clock (simulated seconds / ``world.real_time_factor``); None: no reaction of
        its own is due, and none is measured.
    ends: how it must end, ``WALKS_ON`` or ``WALKS_AGAIN``.  act: does it on a walking robot.
    """

    name: str
    reaction: str
    within: Callable[[FaultWorld], float] | None
    ends: str
    act: Callable[[FaultWorld], Observed]


def when_silent(world: FaultWorld) -> float:
    """Nothing good came for the controller's time-out."""
    return world.state_timeout_s


def when_over(world: FaultWorld) -> float:
    """The last trajectory has come to rest, which the next time-out after it shows."""
    simulated_s = world.horizon_s + REST_S + world.simulated_timeout_s
    return simulated_s * max(world.relay.pace, 1.0 / world.real_time_factor)


def when_failing(world: FaultWorld) -> float:
    """So many steps failed in a row."""
    return world.failures_in_a_row * world.period_s


def when_asked(world: FaultWorld) -> float:
    """A service is looked at in the next turn of the executor."""
    return SERVICE_TURN_S


def when_queued(world: FaultWorld) -> float:
    """Other callbacks wait, too."""
    return OTHERS_FIRST * SERVICE_TURN_S


def when_dead(world: FaultWorld) -> float:
    """Nothing good came for the watchdog's time-out."""
    return world.command_timeout_s


def ending(world: FaultWorld) -> str:
    """Whether the robot walks on by itself, else whether it does after a new start."""
    if world.walks_on():
        return WALKS_ON
    world.begin()
    return WALKS_AGAIN
