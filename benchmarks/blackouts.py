"""Walks whose computer is late: blackouts of controller and planner, and solutions less often than states.

    python benchmarks/blackouts.py --seconds 10
    python benchmarks/blackouts.py --seconds 60 --seeds 5 --planes all
    python benchmarks/blackouts.py --seconds 20 --ways hold ahead linear --blackouts 0.05/0.5 0.1/1

The paper's quadruped with coulomb/qp trots in one process on four planes in MuJoCo: friction 1 and 0.1,
rigid, and giving way by 1 mm. A blackout LENGTH/EVERY begins at random, EVERY seconds apart in the mean,
and lasts LENGTH seconds: nothing is planned, measured or solved. What the robot's side does meanwhile, at
1 kHz: ``hold`` keeps the last torques; ``ahead`` follows the torques solved ahead on the plan (command_interface
joint_trajectory); ``linear`` applies the feedback of the last solution around its state (command_interface
linear_feedback). Solutions at lower rates: ``solve_every``.
Aims: with 100 ms a second no fall and at most 3 times the joint error without blackouts; solved at 100 Hz
no fall and at most twice, at 50 Hz no fall. Ends with 1 where an aim is missed.
Measured figures: results/real_time_runs.md.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import checkout  # noqa: F401  before what is not installed
import numpy as np

from contact_id_controller.runs import one_process
from contact_id_controller.simulation.mujoco_model import GroundSettings
from experiments.papers.terrains import COMPLIANT_GROUND

PLANES = {
    "mu 1": (1.0, GroundSettings()),
    "mu .1": (0.1, GroundSettings()),
    "compliant": (1.0, COMPLIANT_GROUND),
    "compliant mu .1": (0.1, COMPLIANT_GROUND),
}
BLACKOUTS = ("0.02/0.3", "0.05/0.5", "0.1/1", "0.2/2")
WAYS = ("hold", "ahead", "linear")
INTERFACES = {"hold": "effort", "linear": "linear_feedback"}
RATES_HZ = (200, 100, 50)
AIM_BLACKOUT, BLACKOUT_RATIO = "0.1/1", 3.0
RATE_RATIOS = {100: 2.0, 50: np.inf}


class Blackouts:
    """Whether the computer is late at a time; times must increase. Exponential spacing."""

    def __init__(self, length_s: float, every_s: float, seed: int):
        self._rng = np.random.default_rng(seed)
        self._length_s, self._pause_s = length_s, every_s - length_s
        self._begin_s = self._rng.exponential(self._pause_s)

    def __call__(self, time_s: float) -> bool:
        if time_s >= self._begin_s + self._length_s:
            self._begin_s = time_s + self._rng.exponential(self._pause_s)
        return time_s >= self._begin_s


def walk(plane: str, seconds: float, way: str = "hold", late=None, **changes):
    """Mean joint error, rad, and time of the fall, s, or None."""
    mu, ground = PLANES[plane]
    changes["command_interface"] = INTERFACES.get(way, "joint_trajectory")
    settings = one_process.controller_settings("quadruped", friction_coefficient=[mu], **changes)
    world = one_process.mujoco_robot(settings, mu, ground=ground)
    record = one_process.InProcessRun("quadruped", settings, world, late=late).record(seconds)
    error = float(np.abs(record.reference_position - record.position).mean())
    return error, record.fell_time_s if record.fell else None


def aim(way: str, limit: float | None) -> float | None:
    """The limit of those that are aimed at."""
    return limit if way == "ahead" else None


class Table:
    """Prints the rows of walks beside those that are never late, and counts missed aims."""

    def __init__(self, seconds: float):
        self._seconds, self._never_late = seconds, {}
        self.missed = 0
        print("| plane | late | robot's side | seed | joint error, rad | of that never late | |")
        print("|---|---|---|---|---|---|---|", flush=True)

    def never_late(self, plane: str) -> float:
        """Joint error of the walk that is never late."""
        if plane not in self._never_late:
            error, fell = walk(plane, self._seconds)
            self._never_late[plane] = error
            self._row(plane, "never", "", "", error, 1.0, fell, False)
        return self._never_late[plane]

    def add(self, plane, late, way, seed, found, limit) -> None:
        """One walk; limit: largest ratio that is aimed at, None for no aim."""
        error, fell = found
        ratio = error / self.never_late(plane)
        missed = limit is not None and (fell is not None or ratio > limit)
        self.missed += missed
        self._row(plane, late, way, seed, error, ratio, fell, missed)

    @staticmethod
    def _row(plane, late, way, seed, error, ratio, fell, missed) -> None:
        what = "" if fell is None else f"falls at {fell:.1f} s"
        what += ", missed" if missed else ""
        print(
            f"| {plane} | {late} | {way} | {seed} | {error:.4f} | {ratio:.2f} | {what} |",
            flush=True,
        )


def main() -> int:
    """Print one line a walk; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--planes", nargs="+", default=["mu 1"], help="or all")
    parser.add_argument("--blackouts", nargs="*", default=[AIM_BLACKOUT], help="LENGTH/EVERY, s")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["ahead"])
    parser.add_argument("--rates", nargs="*", type=int, default=list(RATES_HZ), help="Hz")
    given = parser.parse_args()
    planes = list(PLANES) if given.planes == ["all"] else given.planes
    table = Table(given.seconds)
    for plane in planes:
        table.never_late(plane)
        for rate, way in itertools.product(given.rates, ("ahead", "linear")):
            if way in given.ways:
                interface = (
                    "linear" if way == "linear" else "hold"
                )  # torques ahead fill in with effort
                found = walk(plane, given.seconds, interface, solve_every=round(1000 / rate))
                table.add(plane, f"{rate} Hz", way, "", found, aim(way, RATE_RATIOS.get(rate)))
    for seed, blackout, way, plane in itertools.product(
        range(given.seeds), given.blackouts, given.ways, planes
    ):
        length_s, every_s = map(float, blackout.split("/"))
        found = walk(plane, given.seconds, way, Blackouts(length_s, every_s, seed))
        limit = BLACKOUT_RATIO if blackout == AIM_BLACKOUT else None
        table.add(plane, blackout, way, seed, found, aim(way, limit))
    return min(table.missed, 1)


if __name__ == "__main__":
    sys.exit(main())
