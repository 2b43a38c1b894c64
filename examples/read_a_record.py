"""Read a record: a short walk in one process, saved, loaded again, and drawn.

    python examples/read_a_record.py [RECORD.npz [PICTURE.png]]

With a file, for example the record.npz of `contact_id demo`, nothing is run. Over a whole number of steps
the ground carries the weight on the mean; the controller predicted what each foot would get.
"""

import tempfile
from pathlib import Path

import numpy as np

from contact_id_controller.cli import run_script
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, section
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.from_settings import build_robot

WALK_S = 1.2
WEIGHT_N = 47.088  # of the quadruped of the first paper
SETTLED_S = 0.3


def walk(file: Path) -> None:
    """Walk in place, and save the record."""
    world = build_robot(
        SimulatedRobotSettings.from_mapping(section("quadruped", "simulated_robot"))
    )
    settings = controller_settings("quadruped", start_ramp_s=0.0)
    InProcessRun("quadruped", settings, world).record(WALK_S).save(file)


def draw(record: RunRecord, picture: Path) -> None:
    """Predicted and simulated vertical forces of every foot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    for i, axes in enumerate(figure.subplots(len(record.foot_names), sharex=True)):
        axes.plot(record.time_s, record.simulated_forces[:, i, 2], label="simulated")
        axes.plot(record.time_s, record.predicted_forces[:, i, 2], label="predicted", lw=0.8)
        axes.set_ylabel(f"{record.foot_names[i]}, N")
    axes.set_xlabel("time, s")
    axes.legend()
    figure.savefig(picture)


def main(file: str | None = None, picture: str | None = None) -> tuple[float, float]:
    """Print what the record holds; returns carried share and force error as shares of the weight."""
    with tempfile.TemporaryDirectory() as folder:
        if file is None:
            file = str(Path(folder) / "record.npz")
            walk(Path(file))
        record = RunRecord.load(Path(file))
    settled = record.part(slice(round(SETTLED_S / record.period_s), None))
    carried = settled.simulated_forces[:, :, 2].sum(axis=1).mean() / WEIGHT_N
    wrong = np.abs(settled.predicted_forces - settled.simulated_forces)[:, :, 2].sum(axis=1)
    error = wrong.mean() / WEIGHT_N
    print(f"{len(record)} periods of {record.period_s} s, joints {', '.join(record.joint_names)}")
    print(f"statuses: {', '.join(sorted(set(record.status.tolist())))}; fell: {record.fell}")
    print(f"carried on the mean: {carried:.4f} of the weight; force error {100 * error:.1f} %")
    if picture:
        draw(record, Path(picture))
        print(picture)
    return carried, error


if __name__ == "__main__":
    run_script(main)
