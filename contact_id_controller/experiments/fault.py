"""One row of the fault campaign: what is done, what should follow, what did."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from contact_id_controller.experiments.fault_world import FaultWorld

ALLOWANCE_S = 0.05
"""Beyond every stated time, for a machine that does other things too."""

WALKS_ON, WALKS_AGAIN, FALLS = "walks on", "walks again", "stays damped"


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

    within: gives the stated time, s of wall clock; None: no reaction of its own is due.
    ends: how it must end.  act: does it on a walking robot.
    """

    name: str
    reaction: str
    within: Callable[[FaultWorld], float] | None
    ends: str
    act: Callable[[FaultWorld], Observed]


def at_once(world: FaultWorld) -> float:
    """The answer to a bad message is that to a state: one period, and the way."""
    return world.period_s


def when_silent(world: FaultWorld) -> float:
    """Nothing good came for the controller's time-out."""
    return world.state_timeout_s


def when_dead(world: FaultWorld) -> float:
    """Nothing good came for the watchdog's time-out."""
    return world.command_timeout_s


def ending(world: FaultWorld, needs: str = "") -> str:
    """Whether the robot walks on by itself, else whether it does after a new start."""
    if world.walks_on():
        return WALKS_ON
    world.begin()
    return WALKS_AGAIN
