"""What no model of the KUKA's joint torques could explain: how far torques differ where the same motion is repeated.

    git clone https://github.com/kjyv/FloBaRoID KUKA                            # with git-lfs, or commit 4e2e5a29
    python benchmarks/kuka_missing.py KUKA

Logs 1 and 2 are the same motion, 29 minutes apart; positions agree to a thousandth of a radian. For each joint, on the
last 30 % of the log, where it moves: rms of the difference of its torques, divided by sqrt 2, which is what is left by the
best model that explains both; and this as a share of the residual of the URDF with friction fitted to the first 70 %.
Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from identify_logs import KUKA, kuka

from contact_id_controller.identification.identify import identify
from contact_id_controller.identification.smoothing import STANDS

LATE_BY, EDGE_S, HELD_OUT = 1, 0.8, 0.3
"""Rows by which log 2 is late; left out at either end, as by the filter of 1.25 Hz; share of the time."""


def main() -> None:
    """One row for each joint."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("copy", type=Path, metavar="KUKA")
    copy = parser.parse_args().copy
    first, second = kuka(copy, 1), kuka(copy, 2)
    judged = identify(first, str(copy / KUKA[1])).judged
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


if __name__ == "__main__":
    main()
