"""The controller node with a solver that fails on request, for the fault campaign.

The signals of `nodes`: after FAIL no solution converges, until the next one; RAISE: likewise, it raises;
STALL: the next solution takes as many seconds as the environment variable CONTACT_ID_FAULT_STALL_S says.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from contact_id_controller.control.controller import StepSolver
from contact_id_controller.solution import NOT_CONVERGED
from experiments.faults.nodes import FAIL, RAISE, STALL, STALL_VARIABLE

WELL, FAILS, RAISES = "well", "fails", "raises"

stalls = False
"""Whether the next solution is late."""

state = WELL
"""How the solver fares."""

_solve = StepSolver.solve


def solve(*arguments):
    """The solver of the controller, or what is left of it."""
    global stalls
    if stalls:
        stalls = False
        time.sleep(float(os.environ[STALL_VARIABLE]))
    if state == RAISES:
        raise FloatingPointError("made to fail")
    solution = _solve(*arguments)
    if state == FAILS:
        object.__setattr__(solution, "status", NOT_CONVERGED)  # it is frozen
    return solution


def _switch(number, frame) -> None:
    global state
    wanted = FAILS if number == FAIL else RAISES
    state = WELL if state == wanted else wanted


def _stall(number, frame) -> None:
    global stalls
    stalls = True


def main() -> int:
    """Run the controller node."""
    from contact_id_controller.ros.controller import main as run

    StepSolver.solve = solve
    signal.signal(FAIL, _switch)
    signal.signal(RAISE, _switch)
    signal.signal(STALL, _stall)
    return run()


if __name__ == "__main__":
    sys.exit(main())
