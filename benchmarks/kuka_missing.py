"""What the KUKA's identified model lacks: how well its torques repeat, and which term would explain what is left.

    git clone https://github.com/kjyv/FloBaRoID KUKA                            # with git-lfs, or commit 4e2e5a29
    python benchmarks/kuka_missing.py KUKA

For each joint, as a share of the residual of the URDF with friction fitted, on the last 30 % of the log: what changes
between the two periods of the motion, which no function of the motion explains (divided by sqrt 2 it is the least that a
model could leave); and what is left of the identified model's residual after terms are added to it that were fitted,
with dry and viscous friction, rotor and offset of the joint, to the first 70 %. Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from identify_logs import KUKA, kuka

from contact_id_controller.identification.identify import identify, samples_of, split
from contact_id_controller.identification.model_fit import Rows
from contact_id_controller.identification.regressor import DryFriction
from contact_id_controller.identification.smoothing import Motion, filtered, moving, smoothed

SHORTEST_S, LONGEST_S, RIDGE = 11.0, 14.0, 1e-3
"""Between which the motion's period is looked for; of a fit."""
BELOW_HZ = 10.0
"""What torques are compared below: noise of samples is nobody's model."""
WINDINGS_RAD = 0.01, 0.03, 0.1, 0.3


def added(j: int, motion: Motion, rows: Rows, rigid: np.ndarray, dry: DryFriction) -> dict:
    """Terms (n, k) by name that the model of joint j lacks; rigid: (n, na) torques of its bodies."""
    q, v, others = motion.q[:, j], motion.v[:, j], np.arange(motion.q.shape[1]) != j
    load, course = rigid[:, j], dry.of(q, v)
    angle = np.column_stack([np.sin(q), np.cos(q), np.sin(2.0 * q), np.cos(2.0 * q)])
    wound = np.column_stack([DryFriction(width, True).of(q, v) for width in WINDINGS_RAD])
    return {
        "nothing but friction fitted again": np.zeros((len(q), 0)),
        "friction that grows with the load": np.column_stack([load, np.abs(load) * course]),
        "Stribeck": np.column_stack(
            [np.sign(v) * np.exp(-np.abs(v) / 0.1), np.sign(v) * np.sqrt(np.abs(v))]
        ),
        "friction that winds up over .01 to .3 rad": wound,
        "first and second harmonic of the joint's angle": angle,
        "drift in time": motion.time[:, None],
        "cross-talk of the other sensors": motion.torque[:, others],
        "harmonics and winding": np.column_stack([angle, wound]),
        "harmonics, winding and cross-talk": np.column_stack(
            [angle, wound, motion.torque[:, others]]
        ),
    }


def repeats(log, first_s: float, cutoff_hz: float, source: str, robot) -> tuple[float, np.ndarray]:
    """Period of the motion, s, and rms (na,) by which torques differ from those a period before, from a time on."""
    motion = smoothed(samples_of(robot, log)[0], cutoff_hz, source)
    per = float(np.median(np.diff(motion.time)))
    lags = range(round(SHORTEST_S / per), round(LONGEST_S / per))
    lag = min(lags, key=lambda k: float(np.mean((motion.q[k:] - motion.q[:-k]) ** 2)))
    torque = filtered(motion.torque, BELOW_HZ * per)
    late = motion.time[lag:] > first_s
    return lag * per, np.sqrt(np.mean((torque[lag:] - torque[:-lag])[late] ** 2, axis=0))


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("copy", type=Path, metavar="KUKA")
    copy = parser.parse_args().copy
    log = kuka(copy)
    found = identify(log, str(copy / KUKA[1]))
    fit, before = found.fit.parameters, found.judged.before
    samples, _ = samples_of(found.robot, log)
    sides = [smoothed(each, found.cutoff_hz, found.source) for each in split(samples, 0.3)]
    period, changes = repeats(log, sides[1].time[0], found.cutoff_hz, found.source, found.robot)
    print(
        f"period {period:.2f} s; torques a period apart differ by {np.round(changes / before, 2)}"
    )
    print("| identified |", " | ".join(f"{x:.2f}" for x in found.judged.after / before), "|")
    rows = [Rows.of(found.robot, each, found.dry).only(moving(each)) for each in sides]
    left = [each.measured - each.predicted(fit) for each in rows]
    terms = [
        [added(j, m, r, r.links @ fit.bodies, found.dry[j]) for j in range(found.robot.na)]
        for m, r in zip(sides, rows)
    ]
    for name in terms[0][0]:
        shares = []
        for j in range(found.robot.na):
            tables = [
                np.column_stack([each.drives[j], side[j][name]]) for each, side in zip(rows, terms)
            ]
            valid = np.isfinite(left[0][:, j])
            size = np.linalg.norm(tables[0][valid], axis=0) + 1e-12
            system = np.vstack([tables[0][valid] / size, RIDGE * np.eye(len(size))])
            target = np.concatenate([left[0][valid, j], np.zeros(len(size))])
            weights = np.linalg.lstsq(system, target, rcond=None)[0] / size
            shares.append(
                np.sqrt(np.nanmean((left[1][:, j] - tables[1] @ weights) ** 2)) / before[j]
            )
        print(f"| {name} |", " | ".join(f"{share:.2f}" for share in shares), "|")


if __name__ == "__main__":
    main()
