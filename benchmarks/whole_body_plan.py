"""Whole-body plans: disagreement after each pass, and time, of both ways to hand on.

    python benchmarks/whole_body_plan.py --knots 50 100 200 --passes 4

The scene is that of ``python -m experiments reproduce whole_body_plans``: TALOS over four stones. The time is the
CPU time of a plan of two passes with everything that belongs to it: both solvers, the finer grid,
torques and checks.
"""

from __future__ import annotations

import argparse

import checkout  # noqa: F401  before what is not installed

from experiments.papers import whole_body_plans


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--knots", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--passes", type=int, default=whole_body_plans.PASSES)
    arguments = parser.parse_args()
    print(
        "   T  handed on    CPU s  steps of the whole body   CoM mm / angular momentum kg m2/s by pass"
    )
    for knots in arguments.knots:
        for consensus in whole_body_plans.CONSENSUS:
            found = whole_body_plans.alternate(consensus, knots, arguments.passes)
            apart = "  ".join(
                f"{1e3 * com:5.2f} / {spin:5.3f}"
                for com, spin in zip(found["com_m"], found["angular_momentum"])
            )
            steps = " ".join(str(count) for count in found["iterations"])
            print(
                f"{knots:4d}  {consensus:11s} {found['whole_plan_s']:6.2f}  {steps:23s}   {apart}",
                flush=True,
            )


if __name__ == "__main__":
    main()
