"""Pushes by hand in public logs of a UR10e, found from motor currents; and what is found where nothing touches.

    git clone https://github.com/shamilmamedov/dynamic_calibration UR10E        # commit 11af40e7
    python benchmarks/pushes_of_logs.py UR10E

What is true is told without model and threshold, for the arm holds a position in the logs of pushes: a push is where
encoders leave their median of 4 s by more than one step, 1e-4 rad; it begins where any current leaves the line through
its past .4 s by 5 standard deviations, and it is beyond the elbow where that joint is moved by more than two steps.
Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import median_filter

from contact_id_controller.diagnosis.pushes import Free, pushes
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.logs.log import Log

URDF, FREE = "URe/urdf/ur10e.urdf", "identification_data/ur-20_02_19_14harm50sec.csv"
WORDS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
ELBOW = 2
MOVED_RAD, CLEAR_RAD, HELD_S, APART_S, BEFORE_S = 1.5e-4, 2.5e-4, 2.0, 0.7, 1.0
AWAY, LEVEL_S, LEFT_S, MEAN_S, RUN_S = 5.0, 0.4, 0.1, 0.05, 0.25


def read(path: Path) -> Log:
    """One log; rows that are cut off are left out."""
    rows = [line.split(",") for line in path.read_text().splitlines()]
    raw = np.array([row for row in rows if len(row) == len(rows[0])], dtype=float)
    joints = tuple(f"{word}_joint" for word in WORDS)
    stamps = raw[:, 0] - raw[0, 0]
    return Log(stamps, joints, raw[:, 1:7], raw[:, 7:13], current=raw[:, 13:19], source=path.name)


def departures(log: Log) -> np.ndarray:
    """Rows at which a current has left the line through its past."""
    assert log.current is not None
    level, apart, mean = (round(each / log.period) for each in (LEVEL_S, LEFT_S, MEAN_S))
    t = np.arange(level) - float(level)
    noise = 1.4826 * np.median(np.abs(np.diff(log.current, axis=0)), axis=0) / np.sqrt(2.0)
    found = []
    for row in range(level + apart, len(log.time) - mean):
        before = log.current[row - apart - level : row - apart]
        slope, end = np.polyfit(t, before, 1)
        spread = np.maximum(np.std(before - np.outer(t, slope) - end, axis=0), noise)
        now = log.current[row : row + mean].mean(axis=0) - end - slope * (apart + mean / 2)
        if np.any(np.abs(now) > AWAY * spread):
            found.append(row)
    return np.array(found, dtype=int)


def true_pushes(log: Log) -> list[tuple[float, bool]]:
    """When each push begins, s, and whether it is beyond the elbow."""
    assert log.position is not None
    rows = round(HELD_S / log.period)
    held = median_filter(log.position, (2 * rows + 1, 1), mode="nearest")
    away = np.abs(log.position - held)
    moved = away > MOVED_RAD
    rows = np.flatnonzero(moved.any(axis=1))
    left = departures(log)
    runs = np.split(left, np.flatnonzero(np.diff(log.time[left]) > RUN_S) + 1)
    found = []
    for part in np.split(rows, np.flatnonzero(np.diff(log.time[rows]) > APART_S) + 1):
        first = log.time[part[0]]
        known = [
            run
            for run in runs
            if first - BEFORE_S < log.time[run[0]] <= first <= log.time[run[-1]] + RUN_S
        ]
        begins = log.time[known[-1][0]] if known else first
        found.append((float(begins), bool(away[part, ELBOW].max() > CLEAR_RAD)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("copy", type=Path, metavar="UR10E")
    data = parser.parse_args().copy
    folder = data / "dataset_ur10e"
    begun = time.perf_counter()
    free = Free.of(read(folder / FREE), str(data / URDF))
    print(f"model of the free log: {time.perf_counter() - begun:.1f} s")
    for path in sorted(folder.glob("collision/*push*.csv")):
        log = read(path)
        begun = time.perf_counter()
        found, _ = pushes(free, log)
        print(f"{path.stem}: {time.perf_counter() - begun:.1f} s")
        true = true_pushes(log)
        print(
            f"| true, s | found, s | beyond the elbow | felt by | N·m | N at its end |  ({len(true)} true)"
        )
        for each in found:
            at, beyond = min(
                true, key=lambda known: abs(known[0] - each.begin_s), default=(np.nan, False)
            )
            felt = [log.joints.index(name) for name in each.joints]
            side = "right" if beyond == (felt[-1] >= ELBOW) else "wrong"
            words = ", ".join(f"{each.torque[j]:+.0f} ± {each.error[j]:.0f}" for j in felt)
            joints = ", ".join(WORDS[j] for j in felt)
            print(
                f"| {at:.2f} | {each.begin_s:.2f} to {each.end_s:.2f} | {beyond} ({side}) | {joints} | {words} | {each.force_n or np.nan:.0f} |"
            )
    for path in sorted(folder.glob("*/ur-*.csv")):
        if "push" in path.name:
            continue
        try:
            log = read(path)
            found, left = pushes(free, log)
        except ContactIdError as error:
            print(f"{path.stem}: refused: {error}")
            continue
        share = np.abs(left.beyond) / np.where(left.stands, free.standing, free.moving)
        print(f"{path.stem}: {log.time[-1]:.0f} s, {len(found)} found, nearest {share.max():.2f}")


if __name__ == "__main__":
    main()
