"""Walks of the first paper's quadruped over its bumps: what the gait planner knows of the ground.

    python benchmarks/uneven_ground.py --seeds 20 --seconds 4 --jobs 2
    python benchmarks/uneven_ground.py --grounds felt --controllers qp_mu --first 100 --seeds 2

Rigid bumps of 3 cm with friction drawn from .1 to 1.5 (`papers.terrains`), the quadruped trotting at
.2 m/s among its way-points. Grounds: ``level`` (the planner takes the ground to be level at its mean
height), ``felt`` (blind: by its last footholds) and ``map``. All controllers have the same planner.
Aims: no fall with a map, at most 1 of 20 without; joint error of qp_mu at least 19 % below PID's.
Ends with 1 where one is missed. Measured figures: results/walks.md.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import sys

import checkout  # noqa: F401  before what is not installed
import numpy as np

from contact_id_controller.report.metrics import measure
from experiments.papers.locomotion import LocomotionRun, prepare
from experiments.papers.terrains import UNEVEN_CONTROLLER, UNEVEN_PLANNER

FIRST_SEED = 1000
"""Seeds from here on were not used to choose any setting."""
UP = (0.0, 0.0, 1.0)
ERROR, DISTANCE = "mean_joint_position_error_rad", "distance_travelled_m"
GROUNDS, ENGINES = ("level", "felt", "map"), ("mujoco", "rigid")
FELT_FALLS, BELOW_PID = 0.05, 0.19


def walk(controller: str, engine: str, ground: str, seed: int, seconds: float) -> dict[str, float]:
    """Figures of one walk."""
    run = LocomotionRun(controller, "height_field", engine, seed=seed, duration_s=seconds)
    changes = (
        ({}, {}) if ground == "level" else ({"ground": ground} | UNEVEN_PLANNER, UNEVEN_CONTROLLER)
    )
    made, terrain = prepare(run, *changes)
    record = made.record(seconds, ground_height_m=terrain.height_m)
    figures = measure(record, made.robot.weight, UP, (ERROR, DISTANCE), predicts=False)
    return {
        "fell": float(record.fell),
        "error": figures[ERROR],
        "speed": figures[DISTANCE] / record.duration_s,
    }


def main() -> int:
    """Print one line for each engine, ground and controller; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--grounds", nargs="+", default=["felt", "map"])
    parser.add_argument("--controllers", nargs="+", default=["pid", "qp_mu"])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    print(
        "| engine | ground | controller | falls | joint error, rad | against PID, % | speed, m/s | "
        "|\n|" + "---|" * 8
    )
    missed = 0
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        for engine, ground in itertools.product(given.engines, given.grounds):
            pid = None
            for controller in given.controllers:
                constant = [[each] * len(seeds) for each in (controller, engine, ground)]
                runs = list(pool.map(walk, *constant, seeds, [given.seconds] * len(seeds)))
                falls, error, speed = (
                    np.array([run[name] for run in runs]) for name in ("fell", "error", "speed")
                )
                if controller == "pid":
                    pid = error.mean()
                change = float("nan") if pid is None else error.mean() / pid - 1.0
                good = (
                    ground == "level"
                    or controller == "pid"
                    or (
                        falls.mean() <= (FELT_FALLS if ground == "felt" else 0.0)
                        and not change > -BELOW_PID
                    )
                )
                missed += not good
                print(
                    f"| {engine} | {ground} | {controller} | {falls.sum():.0f} of {len(seeds)} | "
                    f"{error.mean():.4f} ± {error.std():.4f} | {100.0 * change:+.0f} | "
                    f"{speed.mean():.3f} | {'' if good else 'missed'} |",
                    flush=True,
                )
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
