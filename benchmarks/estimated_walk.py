"""Walks that know only IMU, encoders and joint efforts, beside the same walks on the true state.

    python benchmarks/estimated_walk.py --seconds 10
    python benchmarks/estimated_walk.py --seconds 60 --seeds 5
    python benchmarks/estimated_walk.py --model none/sensed --mu 1 --sensors good
    python benchmarks/estimated_walk.py --bumps --seconds 30 --seeds 5

Quadruped and Solo12, friction 1.0 and 0.1, sensors ``good`` and ``motor_currents``, in one process. The simulator's
state is used for the figures alone. Aims: no fall; drift of at most 2.5 % of the distance (good); velocity within 2
cm/s rms; joint error at most 1.5 times that of the walk on the true state. A model that takes measured forces is
compared with the same walk with the true forces instead of the estimated ones, and may have 1.1 times its joint
error. ``--bumps``: the quadruped on the first paper's bumpy grounds, of which controller and planner know nothing;
friction is drawn by place and taken for ``BLIND_FRICTION``. Aim: at most one fall in five. Ends with 1 where an aim is
missed. Measured figures: results/walks.md.
"""

from __future__ import annotations

import argparse
import sys

import checkout  # noqa: F401  before what is not installed

from contact_id_controller.models import row_of
from contact_id_controller.report.metrics import measure
from contact_id_controller.runs import one_process
from contact_id_controller.runs.estimated_state import controller_changes, estimator_changes
from experiments.papers.terrains import BLIND_STEPS, Ground

DRIFT_SHARE, VELOCITY_M_S, JOINT_RATIO, FORCES_RATIO = 0.025, 0.02, 1.5, 1.1
MODEL = ("coulomb", "qp")
BLIND_FRICTION, FALLS_SHARE = 0.5, 0.2
UP = (0.0, 0.0, 1.0)
JOINTS = "mean_joint_position_error_rad"
FIGURES = (JOINTS, "estimated_drift_share", "estimated_velocity_rms_m_s", "estimated_force_rms")


def walk(
    robot: str,
    mu: float,
    seconds: float,
    sensors: str | None,
    seed: int = 0,
    model: tuple[str, str] = MODEL,
    true_forces: bool = False,
):
    """Record and figures of a walk; sensors None: on the true state.

    true_forces: it gets the true forces, and the estimate for all else.
    """
    changes = dict(zip(("friction", "solver"), model))
    if sensors is not None:
        changes |= controller_changes(changes, sensors)
    settings = one_process.controller_settings(robot, friction_coefficient=[mu], **changes)
    world = one_process.mujoco_robot(settings, mu, imu_frame="")
    estimate = None
    if sensors is not None:
        changes = {"true_forces": true_forces, **estimator_changes(settings)}
        estimate = one_process.estimated_state(robot, world, sensors, seed, **changes)
    record = one_process.InProcessRun(robot, settings, world, estimator=estimate).record(seconds)
    return record, measure(record, world.robot.weight, UP, FIGURES)


def bumpy_walk(mu: float, seconds: float, sensors: str, seed: int):
    """Record and figures of the quadruped on bumps; mu: what the controller takes friction for."""
    ground = Ground.make("height_field", seed)
    settings = one_process.controller_settings("quadruped", friction_coefficient=[mu])
    world = one_process.mujoco_robot(settings, ground.friction, terrain=ground.field, imu_frame="")
    estimate = one_process.estimated_state(
        "quadruped", world, sensors, seed, ground_height_noise_m=0.0
    )
    run = one_process.InProcessRun(
        "quadruped", settings, world, estimator=estimate, planner=BLIND_STEPS
    )
    record = run.record(seconds, ground_height_m=ground.height_m)
    return record, measure(record, world.robot.weight, UP, FIGURES)


def walk_on_bumps(given) -> int:
    """Print one line a walk; 1 where too many fall."""
    print("| ground | sensors | walked, s | joint error, mrad | drift, % | velocity, cm/s | "
          "forces, % of weight | |\n|" + "---|" * 8)  # fmt: skip
    missed = 0
    for sensors in given.sensors:
        falls = 0
        for seed in range(given.seeds):
            record, found = bumpy_walk(BLIND_FRICTION, given.seconds, sensors, seed)
            falls += record.fell
            print(
                f"| {seed} | {sensors} | {record.duration_s:.1f} | {1e3 * found[JOINTS]:.1f} | "
                f"{100 * found['estimated_drift_share']:.2f} | "
                f"{100 * found['estimated_velocity_rms_m_s']:.2f} | "
                f"{100 * found['estimated_force_rms']:.1f} | {'fell' if record.fell else ''} |",
                flush=True,
            )
        missed += falls > FALLS_SHARE * given.seeds
    return min(missed, 1)


def main() -> int:
    """Print one line a walk; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--robots", nargs="+", default=["quadruped", "solo12"])
    parser.add_argument("--mu", nargs="+", type=float, default=[1.0, 0.1])
    parser.add_argument("--sensors", nargs="+", default=["good", "motor_currents"])
    parser.add_argument("--model", default="/".join(MODEL), help="friction/solver")
    parser.add_argument("--bumps", action="store_true")
    given = parser.parse_args()
    if given.bumps:
        return walk_on_bumps(given)
    model = tuple(given.model.split("/"))
    takes_forces = row_of(*model).takes("forces")
    limit = FORCES_RATIO if takes_forces else JOINT_RATIO
    print("| robot | mu | sensors | seed | walked, s | joint error, of that on the truth | "
          "drift, % | velocity, cm/s | forces, % of weight | |\n|" + "---|" * 10)  # fmt: skip
    missed = 0
    for robot in given.robots:
        for mu in given.mu:
            if not takes_forces:
                _, truth = walk(robot, mu, given.seconds, None, model=model)
            for sensors in given.sensors:
                for seed in range(given.seeds):
                    choice = robot, mu, given.seconds, sensors, seed, model
                    record, found = walk(*choice)
                    if takes_forces:
                        _, truth = walk(*choice, true_forces=True)
                    ratio = found[JOINTS] / truth[JOINTS]
                    good = (
                        not record.fell
                        and ratio <= limit
                        and found["estimated_velocity_rms_m_s"] <= VELOCITY_M_S
                        and (sensors != "good" or found["estimated_drift_share"] <= DRIFT_SHARE)
                    )
                    missed += not good
                    print(
                        f"| {robot} | {mu:g} | {sensors} | {seed} | {record.duration_s:.1f} | "
                        f"{ratio:.2f} | {100 * found['estimated_drift_share']:.2f} | "
                        f"{100 * found['estimated_velocity_rms_m_s']:.2f} | "
                        f"{100 * found['estimated_force_rms']:.1f} | {'' if good else 'missed'} |",
                        flush=True,
                    )
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
