"""Foot forces and contact of the controller's own walks, from IMU, encoders and efforts alone."""

import numpy as np
import pytest

from contact_id_controller.estimation.pipeline import PipelineSettings
from experiments.benchmark.foot_forces import (
    UNFILTERED_HZ,
    foot_forces,
    touch_downs,
)
from experiments.benchmark.sensed_walk import sensed_walk

SECONDS = 2.0  # benchmarks/estimation.py --walks: 10 s


@pytest.fixture(scope="module", params=["solo12", "quadruped"])
def walk(request):
    return sensed_walk(request.param, SECONDS)


@pytest.mark.parametrize(
    ("noise", "cutoff_hz", "most"),
    [("perfect", UNFILTERED_HZ, 0.005), ("good", 100.0, 0.015), ("motor_currents", 100.0, 0.03)],
)
def test_foot_forces_without_foot_sensors(walk, noise, cutoff_hz, most):
    settings = PipelineSettings(period_s=walk.period_s, cutoff_hz=cutoff_hz)
    found = foot_forces(walk, noise, settings=settings)
    assert found.filtered <= most
    assert found.contact >= 0.965
    assert found.touch_downs >= 10 and found.missed == 0 and found.false <= 1


def test_efforts_of_the_next_period_are_worse(walk):
    """The pitfall: efforts a sample late belong to other forces."""
    settings = PipelineSettings(period_s=walk.period_s, cutoff_hz=UNFILTERED_HZ)
    late = walk._replace(torques=np.roll(walk.torques, 1, axis=0))
    right = foot_forces(walk, "perfect", settings=settings)
    assert foot_forces(late, "perfect", settings=settings).filtered > 5.0 * right.filtered


def test_touch_downs_are_counted():
    true, said = np.zeros((400, 3), bool), np.zeros((400, 3), bool)
    true[100:200] = True
    said[110:200, 0] = True  # 10 ms late
    said[300:310, 1] = True  # missed, and one that was none
    true[250:260, 2] = said[105:200, 2] = True  # too short to be one
    said[250:260, 2] = True
    count, missed, false, delay_s = touch_downs(said, true, 1e-3)
    assert (count, missed, false) == (3, 1, 1)
    assert delay_s == pytest.approx(0.0075)
