"""Pushes that bipeds answer by stepping: which are held, by direction and impulse.

    python benchmarks/stepped_pushes.py --config config/bipeds/g1.yaml --link torso_link --size 0.3 0.5
    python benchmarks/stepped_pushes.py --config config/bipeds/talos.yaml --link torso_2_link --size 0.4 0.6 --speed 0.3

MuJoCo, one process, true state. A push lasts 0.1 s from 0.7 s on (``--moment``); its impulse is ``--size`` times
the robot's mass. Measured: docs/pushes.md.
"""

import argparse

import numpy as np

from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push

FRICTION = 0.6
LASTS_S = 0.1


def fell(config: str, link: str, push_m_s: np.ndarray, moment_s: float, speed_m_s: float):
    """When it fell, s, None: it did not; push (3,) m/s: impulse per mass, world axes."""
    settings = controller_settings(config)
    push = Push(moment_s, LASTS_S, settings.robot().mass * push_m_s)
    run = InProcessRun(
        config, settings, DisturbedRobot(mujoco_robot(settings, FRICTION), 0, [push], link)
    )
    run.planner.set_velocity((speed_m_s, 0.0), 0.0)
    return run.record(moment_s + 2.3).fell_time_s


def main() -> None:
    """Print a row for each size, a column for each direction."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True)
    parser.add_argument("--link", required=True, help="that is pushed")
    parser.add_argument("--size", type=float, nargs="+", required=True, help="m/s")
    parser.add_argument("--moment", type=float, nargs="+", default=[0.7], help="s")
    parser.add_argument("--speed", type=float, default=0.0, help="forwards, m/s")
    chosen = parser.parse_args()
    degrees = np.arange(0, 360, 45)
    print("| m/s, at s |", " | ".join(f"{each}°" for each in degrees), "|")
    print("|---|" + "---|" * len(degrees))
    for size in chosen.size:
        for moment in chosen.moment:
            cells = []
            for angle in np.radians(degrees):
                push = size * np.array([np.cos(angle), np.sin(angle), 0.0])
                time_s = fell(chosen.config, chosen.link, push, moment, chosen.speed)
                cells.append("held" if time_s is None else f"fell at {time_s:.1f}")
            print(f"| {size:g}, {moment:g} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
