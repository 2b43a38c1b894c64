"""``python -m experiments``, in a checkout: one subcommand for each kind of experiment."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from contact_id_controller.cli import run_program

COMMANDS = {
    "reproduce": "do the papers' experiments again and report what came of them",
    "benchmark": "measure the speed of every contact model, or its robustness",
    "faults": "let one thing after the other fail while a simulated robot walks over real topics",
    "power": "compare the power that three allocations of torque lose, and what they violate",
}


def run(arguments: Sequence[str]) -> int:
    """Run a command line, without the program's name, and return its exit code."""
    text = "Experiments with contact_id_controller, in a checkout of its sources."
    return run_program("python -m experiments", text, COMMANDS, "experiments.commands", arguments)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
