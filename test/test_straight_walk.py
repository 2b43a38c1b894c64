"""Footsteps straight to a goal: they arrive, no step is too long, no sole comes onto another one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kinodynamic_cases import solo12, talos

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic import Foothold
from contact_id_controller.planning.kinodynamic.straight_walk import straight_footsteps

CASES = {"talos": (talos, 0.4, 0.4), "solo12": (solo12, 0.1, 0.3)}
ANGLES = st.floats(-3.1, 3.1)
PLACES = st.floats(-1.5, 1.5)


def turned(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def moved(stance, x, y, angle, flat):
    """The stance around another place; the feet's middle is at (x, y)."""
    middle = np.mean([each.position for each in stance], axis=0) * [1, 1, 0]
    return tuple(
        Foothold(
            each.foot,
            turned(angle) @ (each.position - middle) + [x, y, 0.0],
            turned(angle) @ each.rotation if flat else each.rotation,
        )
        for each in stance
    )


def inside(sole, foothold, point):
    """Whether a point of the ground is under the sole."""
    local = foothold.rotation.T @ (point - foothold.position) - sole.center_m
    return bool((np.abs(local[:2]) <= sole.half_size_m).all())


def grid(sole, foothold):
    x, y = sole.half_size_m
    points = [[a * x, b * y, 0.0] for a in np.linspace(-1, 1, 5) for b in np.linspace(-1, 1, 5)]
    return foothold.position + (np.array(points) + sole.center_m) @ foothold.rotation.T


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=40, deadline=None)
@given(begin=st.tuples(PLACES, PLACES, ANGLES), goal=st.tuples(PLACES, PLACES, ANGLES))
def test_a_walk_arrives_with_steps_that_feet_can_make(name, begin, goal):
    case, stride_m, turn_rad = CASES[name]
    _, soles, _, nominal = case()
    flat = max(soles[0].half_size_m) > 0.0
    here = {each.foot: each for each in moved(nominal, *begin, flat)}
    steps = straight_footsteps(
        soles, tuple(here.values()), nominal, goal, stride_m=stride_m, turn_rad=turn_rad
    )
    by_name = {sole.frame: sole for sole in soles}
    for step in steps:
        way = np.linalg.norm(step.position - here[step.foot].position)
        assert way <= stride_m + 1e-9
        for foot, other in here.items():
            if foot != step.foot and flat:
                assert not any(
                    inside(by_name[foot], other, point) for point in grid(by_name[step.foot], step)
                )
        here[step.foot] = step
    for wanted in moved(nominal, *goal, flat):
        np.testing.assert_allclose(here[wanted.foot].position, wanted.position, atol=2e-3)
        np.testing.assert_allclose(here[wanted.foot].rotation, wanted.rotation, atol=2e-3)


def test_a_robot_at_its_goal_makes_no_step():
    _, soles, _, nominal = talos()
    assert straight_footsteps(soles, nominal, nominal, (0, 0, 0), stride_m=0.4, turn_rad=0.4) == ()


def test_sideways_feet_do_not_pass_and_forwards_they_do():
    _, soles, _, nominal = talos()
    aside = straight_footsteps(soles, nominal, nominal, (0, 0.6, 0), stride_m=0.4, turn_rad=0.4)
    assert [step.foot for step in aside[:2]] == ["left_sole_link", "right_sole_link"]
    assert len(aside) == 4
    ahead = straight_footsteps(soles, nominal, nominal, (1.2, 0, 0), stride_m=0.4, turn_rad=0.4)
    assert len(ahead) == 7  # six of .2 m of the middle, and the feet side by side
    np.testing.assert_allclose(np.diff([step.position[0] for step in ahead[:6]]), 0.2)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"goal": (math.nan, 0, 0)}, "three finite numbers"),
        ({"goal": (1e4, 0, 0)}, "steps away"),
        ({"stride_m": 0.0}, "above 0"),
        ({"stance": 1}, "do not stand"),
    ],
)
def test_what_is_no_walk_is_refused(change, word):
    _, soles, _, nominal = talos()
    values = {"goal": (1, 0, 0), "stride_m": 0.3, "turn_rad": 0.3, "stance": 2} | change
    stance = nominal[: values.pop("stance")]
    with pytest.raises(ConfigurationError, match=word):
        straight_footsteps(soles, stance, nominal, values.pop("goal"), **values)
