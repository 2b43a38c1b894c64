"""Walks whose torques act late, with the state as it is measured and as it is predicted.

    python benchmarks/late_torques.py --seconds 5
    python benchmarks/late_torques.py --seconds 20 --late 1 2 5 --planes all --models coulomb/qp no_slip/lcp

The paper's quadruped trots in one process in MuJoCo on the planes of benchmarks/blackouts.py; its torques
act some periods of 1 ms after the state that they answer. With ``command_delay_s`` they are computed for the
state predicted for then. Prints joint error, rad, and the mean
step of the torques from one period to the next, N·m. Measured figures: results/real_time_runs.md.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from blackouts import PLANES

from contact_id_controller.runs import one_process
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot


def walk(
    plane: str, model: str, late: int, predicted: bool, seconds: float
) -> tuple[float, float, float | None]:
    """Mean joint error, rad, mean step of torque, N·m, and time of the fall, s, or None."""
    mu, ground = PLANES[plane]
    friction, solver = model.split("/")
    settings = one_process.controller_settings(
        "quadruped",
        friction_coefficient=[mu],
        friction=friction,
        solver=solver,
        command_delay_s=1e-3 * late * predicted,
    )
    world = DisturbedRobot(one_process.mujoco_robot(settings, mu, ground=ground), late)
    record = one_process.InProcessRun("quadruped", settings, world).record(seconds)
    error = float(np.abs(record.reference_position - record.position).mean())
    step = float(np.abs(np.diff(record.torques, axis=0)).mean())
    return error, step, record.fell_time_s if record.fell else None


def main() -> None:
    """Print one line a walk."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--late", nargs="+", type=int, default=[0, 1, 2, 5], help="periods, ms")
    parser.add_argument("--planes", nargs="+", default=["mu 1"], help="or all")
    parser.add_argument("--models", nargs="+", default=["coulomb/qp"])
    given = parser.parse_args()
    planes = list(PLANES) if given.planes == ["all"] else given.planes
    print("| plane | model | late, ms | state | joint error, rad | torque step, N·m | |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for plane, model, late in itertools.product(planes, given.models, given.late):
        for predicted in (False, True) if late else (False,):
            error, step, fell = walk(plane, model, late, predicted, given.seconds)
            state = "predicted" if predicted else "measured"
            what = "" if fell is None else f"falls at {fell:.1f} s"
            print(
                f"| {plane} | {model} | {late} | {state} | {error:.4f} | {step:.4f} | {what} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
