"""Every quadruped that has a file stands and trots in MuJoCo, by that file alone."""

import numpy as np
import pytest
from walking import run, section

from contact_id_controller.settings.robot_files import QUADRUPEDS, robots

ROBOTS = list(robots(QUADRUPEDS))
MU = 0.6


def stay(controller, state):
    """No plan: the posture of the start is held."""


def upright(run):
    """Smallest z component of the base's own vertical axis."""
    return min(1.0 - 2.0 * float(state.q[3:5] @ state.q[3:5]) for state in run.states)


@pytest.mark.parametrize("name", ROBOTS)
def test_stands_and_the_feet_carry_the_weight(name):
    walk = run(name, 1.0, MU, plan=stay)
    weight = walk.robot.weight
    predicted = sum(result.forces[:, 2].sum() for result in walk.results[-500:]) / 500
    assert predicted == pytest.approx(weight, rel=0.01)
    assert walk.forces[-500:, :, 2].sum(axis=1).mean() == pytest.approx(weight, rel=0.01)
    assert np.linalg.norm(walk.states[-1].v[:6]) < 0.01 and upright(walk) > 0.999


@pytest.mark.parametrize("name", ROBOTS)
def test_trots(name):
    walk = run(name, 3.0, MU)
    speed = section(name, "gait_planner", {})["speed_m_s"]
    start, end = walk.states[0].q, walk.states[-1].q
    places = np.array([state.q[:2] for state in walk.states])
    travelled = np.linalg.norm(np.diff(places, axis=0), axis=1).sum()
    assert {result.status for result in walk.results} <= {"solved", "relaxed"}
    assert upright(walk) > 0.99 and abs(end[2] - start[2]) < 0.01
    assert travelled > 0.6 * speed * 2.5
    # A trot: at times only two feet stand.
    assert min(int(result.contact.sum()) for result in walk.results) == 2
    # Torques touch the effort limits at most for a moment, when a foot lands.
    assert np.mean([result.saturated.any() for result in walk.results]) < 0.02
