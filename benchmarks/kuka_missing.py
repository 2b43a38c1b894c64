"""What no model of the KUKA's joint torques could explain: how far torques differ where the same motion is repeated.

    git clone https://github.com/kjyv/FloBaRoID KUKA                            # with git-lfs, or commit 4e2e5a29
    python benchmarks/kuka_missing.py KUKA

Logs 1 and 2 are the same motion, 29 minutes apart; positions agree to a thousandth of a radian. For each joint, on the
last 30 % of the log, where it moves: rms of the difference of its torques, divided by sqrt 2, which is what is left by the
best model that explains both; and this as a share of the residual of the URDF with friction fitted to the first 70 %.
Then, for both logs, the same share of what is left on these 30 % once columns that `identify` does not have are fitted to
its residuals of the first 70 %, with a slight ridge. Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from identify_logs import KUKA, kuka

from contact_id_controller.identification.identify import (
    HELD_OUT,
    Identified,
    identify,
    samples_of,
    split,
)
from contact_id_controller.identification.model_fit import Rows
from contact_id_controller.identification.regressor import DriveShape
from contact_id_controller.identification.smoothing import STANDS, Motion, moving, smoothed
from contact_id_controller.logs.log import Log
from contact_id_controller.robot import FRICTION_SPEED

LATE_BY, EDGE_S = 1, 0.8
"""Rows by which log 2 is late; left out at either end, s, as by the filter of 1.25 Hz."""
RIDGE = 1e-2
"""Of columns of size 1."""


def more_columns(motion: Motion, load: np.ndarray, j: int) -> dict[str, np.ndarray]:
    """What joint j's torque may depend on beside its model, (n, m) each.

    Args:
        load: what the bodies take of each joint (n, na), N·m.
    """
    q, v = motion.q[:, j], motion.v[:, j]
    dry, speed = np.tanh(v / FRICTION_SPEED), np.sqrt(np.mean(v**2))
    slides = [DriveShape(share * np.ptp(q), True).course(q, v) for share in (0.01, 0.03, 0.1, 0.3)]
    found = {
        "time": [motion.time, motion.time**2],
        "friction by load": [np.abs(load[:, j]) * dry, load[:, j] * dry, np.abs(load[:, j]) * v],
        "friction at low speed": [
            dry * np.exp(-np.abs(v) / (share * speed)) for share in (0.1, 0.3, 1.0)
        ],
        "friction that winds up": slides,
        "ripple over the angle": [
            wave(n * q) for n in (1, 2, 3, 4, 6, 8) for wave in (np.sin, np.cos)
        ],
        "all angles": [wave(each) for each in motion.q.T for wave in (np.sin, np.cos)],
        "all speeds": [*motion.v.T, *np.tanh(motion.v / FRICTION_SPEED).T],
        "loads of all joints": [*load.T],
    }
    ones = np.ones(len(q))
    tables = {name: np.column_stack([ones, *columns]) for name, columns in found.items()}
    return tables | {"all of these but time": np.column_stack([*list(tables.values())[1:]])}


def left(found: Identified, log: Log) -> dict[str, np.ndarray]:
    """Kind of columns -> rms (na,) that is left on the held-out rows where joints move, N·m."""
    sides = []
    for part in split(samples_of(found.robot, log)[0], HELD_OUT):
        motion = smoothed(part, found.cutoff_hz, found.source)
        rows = Rows.of(found.robot, motion, found.shapes).only(moving(motion))
        model = found.fit.parameters
        sides.append((motion, rows.measured - rows.predicted(model), rows.links @ model.bodies))
    result: dict[str, list[float]] = {}
    for j in range(found.robot.na):
        tables = [more_columns(motion, load, j) for motion, _, load in sides]
        fitted, judged = (residual[:, j] for _, residual, _ in sides)
        known, seen = np.isfinite(fitted), np.isfinite(judged)
        for name, table in tables[0].items():
            size = np.sqrt(np.mean(table[known] ** 2, axis=0)) + 1e-9
            ridge = RIDGE * np.sqrt(known.sum()) * np.eye(len(size))
            system = np.vstack([table[known] / size, ridge])
            wanted = np.concatenate([fitted[known], np.zeros(len(size))])
            weights = np.linalg.lstsq(system, wanted, rcond=None)[0] / size
            rest = judged[seen] - tables[1][name][seen] @ weights
            result.setdefault(name, []).append(float(np.sqrt(np.mean(rest**2))))
    return {name: np.array(values) for name, values in result.items()}


def main() -> None:
    """One row for each joint, and one for each kind of columns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("copy", type=Path, metavar="KUKA")
    copy = parser.parse_args().copy
    first, second = kuka(copy, 1), kuka(copy, 2)
    both = [identify(each, str(copy / KUKA[1])) for each in (first, second)]
    judged = both[0].judged
    assert judged is not None
    time, end = first.time[:-LATE_BY], first.time[-1]
    rows = (time > (1.0 - HELD_OUT) * end + EDGE_S) & (time < end - EDGE_S)
    print(
        "| joint | positions differ, rad | torques differ, N·m | of URDF + friction | identified |"
    )
    print("|---|---|---|---|---|")
    for j in range(len(first.joints)):
        speed = np.abs(first.velocity[:-LATE_BY, j])
        which = rows & (speed > STANDS * np.sqrt(np.mean(speed**2)))
        place, torque = (
            np.sqrt(np.mean((a[:-LATE_BY, j] - b[LATE_BY:, j])[which] ** 2))
            for a, b in ((first.position, second.position), (first.effort, second.effort))
        )
        least, before = torque / np.sqrt(2.0), judged.before[j]
        print(
            f"| {first.joints[j]} | {place:.4f} | {least:.3f} | {least / before:.2f} | {judged.after[j] / before:.2f} |"
        )
    print(
        f"\n| log | fitted in addition | {' | '.join(first.joints)} |\n|{'---|' * (len(first.joints) + 2)}"
    )
    for k, (found, log) in enumerate(zip(both, (first, second))):
        assert found.judged is not None
        for name, rest in {"nothing": found.judged.after, **left(found, log)}.items():
            shares = " | ".join(f"{each:.2f}" for each in rest / found.judged.before)
            print(f"| {k + 1} | {name} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
