"""Models of real arms, identified from public logs, on rows that were not fitted.

    git clone https://github.com/kjyv/FloBaRoID KUKA                            # with git-lfs, or commit 4e2e5a29
    git clone https://github.com/shamilmamedov/dynamic_calibration UR10E        # commit 11af40e7
    git clone https://github.com/thanhndv212/figaroh-examples TIAGO             # commit c0b5c7f0
    python benchmarks/identify_logs.py --kuka KUKA --ur10e UR10E --tiago TIAGO

Everything is a default of ``contact_id identify``. For each joint: rms where it moves of the URDF with dry and viscous
friction, an offset and, for currents, a torque constant, all fitted; of what was identified; and of each joint's
regressor fitted alone by least squares, without a belief, which may be no robot at all (negative masses).
Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from contact_id_controller.identification.identify import Identified, identify, samples_of, split
from contact_id_controller.identification.model_fit import Rows
from contact_id_controller.identification.pseudo_inertia import pseudo_of
from contact_id_controller.identification.smoothing import moving, smoothed
from contact_id_controller.identification.told import told
from contact_id_controller.logs.log import Log

KUKA = "data/KUKA/HW/measurements_{}.npz", "model/kuka_lwr4.urdf"
KUKA_LOGS = 1, 2, 3
UR10E = "dataset_ur10e/identification_data/ur-20_02_{}.csv", "URe/urdf/ur10e.urdf"
UR10E_LOGS = "19_14harm50sec", "10-30sec_12harm"
TIAGO = (
    "examples/tiago/data/identification/dynamic/tiago_{}.csv",
    "examples/tiago/urdf/tiago_48_schunk.urdf",
)
RIDGE = 1e-3


def kuka(copy: Path, which: int = 1) -> Log:
    """KUKA LWR4+, 200 Hz: joint torque sensors; all channels as the repository filtered them, below 2 or 3 Hz."""
    raw = np.load(copy / KUKA[0].format(which))
    channels = (raw[name] for name in ("positions", "velocities", "accelerations", "torques"))
    return Log(raw["times"] - raw["times"][0], tuple(f"lwr_{k}_joint" for k in range(7)), *channels)


def ur10e(copy: Path, which: str) -> Log:
    """UR10e, 100 Hz: motor currents."""
    raw = np.genfromtxt(copy / UR10E[0].format(which), delimiter=",")
    words = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
    joints = tuple(f"{word}_joint" for word in words)
    return Log(raw[:, 0] - raw[0, 0], joints, raw[:, 1:7], raw[:, 7:13], current=raw[:, 13:19])


def tiago(copy: Path) -> Log:
    """TIAGo's torso and arm, 100 Hz: its efforts are motor currents."""
    position, velocity, effort = (
        np.genfromtxt(copy / TIAGO[0].format(name), delimiter=",", skip_header=1)
        for name in ("position", "velocity", "effort")
    )
    joints = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
    stamps = position[:, 0] - position[0, 0]
    return Log(stamps, joints, position[:, 1:], velocity[:, 1:], current=effort[:, 1:])


def alone(found: Identified, log: Log, judge: Log | None) -> np.ndarray:
    """rms (na,) of each joint's regressor fitted alone, on the rows that `identify` judges."""
    samples, _ = samples_of(found.robot, log)
    fitted, kept = (samples, samples_of(found.robot, judge)[0]) if judge else split(samples, 0.3)
    rows = []
    for side in (fitted, kept):
        motion = smoothed(side, found.cutoff_hz, found.source)
        rows.append(Rows.of(found.robot, motion, found.shapes).only(moving(motion)))
    result = []
    for j in range(found.robot.na):
        tables = [np.column_stack([each.links[:, j], each.drives[j]]) for each in rows]
        valid = np.isfinite(rows[0].measured[:, j])
        size = np.linalg.norm(tables[0][valid], axis=0) + 1e-12
        system = np.vstack([tables[0][valid] / size, RIDGE * np.eye(len(size))])
        target = np.concatenate([rows[0].measured[valid, j], np.zeros(len(size))])
        weights = np.linalg.lstsq(system, target, rcond=None)[0] / size
        result.append(np.sqrt(np.nanmean((rows[1].measured[:, j] - tables[1] @ weights) ** 2)))
    return np.array(result)


def judge(name: str, log: Log, urdf: Path, other: Log | None = None) -> None:
    """Print the rows of one log."""
    start = time.perf_counter()
    found = identify(log, str(urdf), judge=other)
    took = time.perf_counter() - start
    bound, judged = alone(found, log, other), found.judged
    assert judged is not None
    all_rows = 1.0 - (judged.everywhere / judged.spread_everywhere) ** 2
    first = 1.0 - (judged.before / judged.spread) ** 2
    for row in zip(
        found.robot.joint_names, judged.before, judged.after, bound, first, judged.explained, all_rows
    ):  # fmt: skip
        joint, before, after, least, *shares = row
        print(
            f"| {name} | {joint} | {before:.3g} | {after:.3g} | {after / before:.2f} | {least:.3g} | "
            + " | ".join(f"{share:.3f}" for share in shares)
            + " |"
        )
    sure = told(found.robot, found.fit)
    pseudo = pseudo_of(found.fit.parameters.bodies.reshape(-1, 10))
    print(
        f"{name}: {took:.1f} s; {found.source} below {found.cutoff_hz:.1f} Hz; combinations told to a tenth: {sure.known} "
        f"of {sure.base}; masses {pseudo[:, 3, 3].round(2)} kg, least eigenvalue {np.linalg.eigvalsh(pseudo).min():.1e}; "
        f"N·m per unit {(1.0 / found.fit.parameters.gains).round(2)}; the base leans by {np.degrees(found.lean).round(2)} degrees"
    )


def main() -> None:
    """One table for the copies that are given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("kuka", "ur10e", "tiago"):
        parser.add_argument(f"--{name}", type=Path, help="copy of its repository")
    given = parser.parse_args()
    print("| log | joint | URDF | identified | ratio | alone | R² URDF | R² | R², all samples |\n"
          + "|---" * 9 + "|")  # fmt: skip
    if given.kuka is not None:
        for which in KUKA_LOGS:
            judge(f"KUKA {which}", kuka(given.kuka, which), given.kuka / KUKA[1])
    if given.ur10e is not None:
        first, second = (ur10e(given.ur10e, which) for which in UR10E_LOGS)
        urdf = given.ur10e / UR10E[1]
        judge("UR10e 14 to 12", first, urdf, second)
        judge("UR10e 12 to 14", second, urdf, first)
    if given.tiago is not None:
        judge("TIAGo", tiago(given.tiago), given.tiago / TIAGO[1])


if __name__ == "__main__":
    main()
