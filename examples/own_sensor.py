"""A sensor of one's own: four load cells under each foot, whose sum is what the ground pushes there.

    python examples/own_sensor.py

A kind of sensor is one class and one row. Here both are made while the program runs; in a file of
`estimation/` and in `sensor_kinds.py` they are there for every node: `contact_id demo --state estimated
--set "simulated_robot.mounted_sensors=['foot_cells FL_FOOT']"` publishes `cells/FL_FOOT`.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from contact_id_controller.cli import run_script
from contact_id_controller.estimation.mounted import Mounted, force_on_foot
from contact_id_controller.estimation.sensor_kinds import KINDS
from contact_id_controller.estimation.sensors import ContactComponent
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    estimated_state,
    mujoco_robot,
)

ROBOT, DURATION_S, SETTLED_S = "solo12", 1.5, 0.5


@dataclasses.dataclass(frozen=True)
class FootCells(Mounted):
    """Four cells in the sole of a foot, N each: f_z, along the z axis of the foot's frame, is their sum."""

    noise_n: float = 0.1  # standard deviation of each after the low-pass
    white_noise_n: float = 0.2  # of each sample of the simulated ones
    topic_prefix: ClassVar[str] = "cells"  # cells/<foot>
    message: ClassVar[str] = "sensor_msgs/JointState"
    numbers: ClassVar[tuple[str, ...]] = ("effort[0]", "effort[1]", "effort[2]", "effort[3]")
    gain: ClassVar[np.ndarray] = np.ones((1, 4))  # from these numbers to the one value of `sensor`

    def white_noise(self, noise):
        """Of each sample, N; `noise` is that of the robot's other sensors."""
        return self.white_noise_n

    def sensor(self, robot, feet):
        """One row, component 2 of the foot's wrench, with the noise of a sum of four."""
        self.refuse_elsewhere(feet)
        return ContactComponent(self.name, 2, 2.0 * self.noise_n, self.label)

    def true(self, world, state):
        """A quarter each: the simulated foot is a sphere."""
        return np.full(4, 0.25 * force_on_foot(world, state, self.name)[2])


def walk(sensors: list[str]) -> tuple[float, float]:
    """A walk on cheap sensors, and these.

    Returns the median error of the feet's vertical forces as a share of the weight, and the share of
    periods and feet in which contact was known rightly.
    """
    settings = controller_settings(ROBOT)
    world = mujoco_robot(settings, 0.6, imu_frame="")
    estimate = estimated_state(ROBOT, world, "cheap", seed=1, mounted_sensors=sensors)
    run = InProcessRun(ROBOT, settings, world, estimator=estimate, planner={"speed_m_s": 0.2})
    errors, right = [], []

    def compare(period):
        errors.append(period.estimated_forces[:, 2] - period.forces[:, 2])
        right.append(estimate.estimate.contact == (period.forces[:, 2] > 0.0))

    first = round(SETTLED_S / run.record(DURATION_S, each=compare).period_s)
    error = np.median(np.abs(errors[first:])) / run.robot.weight
    return float(error), float(np.mean(right[first:]))


def main() -> tuple[tuple[float, float], tuple[float, float]]:
    """Print what the cells add; returns the figures of `walk` without and with them."""
    KINDS["foot_cells"] = FootCells
    feet = controller_settings(ROBOT).contact_frames
    found = walk([]), walk([f"foot_cells {foot}" for foot in feet])
    for name, (error, right) in zip(("joints alone", "with cells"), found):
        print(f"{name}: forces {100 * error:.1f} % of the weight off, contact right {right:.1%}")
    return found


if __name__ == "__main__":
    run_script(main)
