"""Bipeds that are driven by random commands: which fall, when, and at what command.

    python benchmarks/driven_bipeds.py --robot talos g1 --seconds 60 --seeds 4
    python benchmarks/driven_bipeds.py --robot g1 --seconds 6 --seed 7 --most 0.3 0.1 0.4 --push 0.3 \\
        --picture docs/driven.gif

MuJoCo, one process, true state, friction 0.6. Each 2 to 4 s another velocity: at most ``--most`` forwards and aside, m/s,
and turning, rad/s. ``--push``: at the half of the time, to the left within 0.1 s; impulse per mass, m/s. Measured:
results/walks.md.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import constants

from contact_id_controller.report.animation import save_gif
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.settings.robot_files import robots
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.simulation.rendering import render_frames

FRICTION, PUSHED_S = 0.6, 0.1
HELD_S = 2.0, 4.0
"""How long a command stays, at least and at most."""
FRAMES_PER_SECOND, COLOURS, SHOWN = 10, 100, np.s_[60:380, 310:590]
ARROW_M = 0.4
"""Length of the arrow of a force as large as the weight: a third of G1."""


def drive(
    file: Path, seconds: float, most: np.ndarray, seed: int, push_m_s: float = 0.0
) -> tuple[InProcessRun, RunRecord, list[np.ndarray]]:
    """The run, its record and the commands (3,): forwards, left, turning left, with their times before them, (4,)."""
    settings = controller_settings(str(file))
    mass = settings.robot().mass
    pushes = [Push(0.5 * seconds, PUSHED_S, np.array([0.0, mass * push_m_s, 0.0]))]
    world = DisturbedRobot(mujoco_robot(settings, FRICTION), 0, pushes)
    run = InProcessRun(str(file), settings, world)
    random, commands = np.random.default_rng(seed), []
    until_s = 0.0

    def command(time_s: float) -> None:
        nonlocal until_s
        if time_s >= until_s:
            until_s = time_s + random.uniform(*HELD_S)
            velocity = random.uniform(-most, most)
            commands.append(np.array([time_s, *velocity]))
            run.planner.set_velocity(velocity[:2], velocity[2])

    command(0.0)
    record = run.record(seconds, each=lambda period: command(period.after.time_s))
    return run, record, commands


def draw(run: InProcessRun, record: RunRecord, path: Path) -> None:
    """Write the run as a GIF, with forces."""
    settings = run.settings
    frames = render_frames(
        settings.urdf,
        settings.feet,
        record.time_s,
        record.q,
        record.simulated_forces,
        locked=settings.locked,
        frames_per_second=FRAMES_PER_SECOND,
        width=900,
        height=440,
        metres_per_newton=ARROW_M / (settings.robot().mass * constants.g),
    )
    middle = [Image.fromarray(frame[SHOWN]) for frame in frames]
    save_gif(middle, path, COLOURS, FRAMES_PER_SECOND)


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", nargs="+", required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=1, help="number of runs")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--most", type=float, nargs=3, default=[0.5, 0.2, 1.0])
    parser.add_argument("--push", type=float, default=0.0)
    parser.add_argument("--picture", type=Path, help="the last run, a GIF")
    chosen = parser.parse_args()
    print("| robot, seed | walked | way, m | command before a fall |\n|---|---|---|---|")
    for name in chosen.robot:
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            run, record, commands = drive(
                robots()[name], chosen.seconds, np.array(chosen.most), seed, chosen.push
            )
            way = np.linalg.norm(np.diff(record.q[::10, :2], axis=0), axis=1).sum()
            fell = record.fell_time_s
            last = "" if fell is None else " ".join(f"{each:.2f}" for each in commands[-1])
            walked = f"{record.time_s[-1]:.1f} s" + (", fell" if fell is not None else "")
            print(f"| {name}, {seed} | {walked} | {way:.1f} | {last} |", flush=True)
    if chosen.picture:
        draw(run, record, chosen.picture)


if __name__ == "__main__":
    main()
