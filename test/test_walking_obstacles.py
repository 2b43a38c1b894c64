"""What a robot that steps on a map does before ground on which it cannot step."""

from types import SimpleNamespace

import numpy as np
import pytest
from test_walking_areas import HALF, Climber, below, stairs
from test_walking_planner import talos

from contact_id_controller.geometry import HeightField
from contact_id_controller.geometry.ground_file import ground_of
from contact_id_controller.planning.walking.areas import Areas
from contact_id_controller.plans.plan import Plan


def heights(of, cell_m=0.02):
    x, y = np.arange(-2.0, 4.0, cell_m), np.arange(-2.0, 2.0, cell_m)
    return HeightField(x, y, of(*np.meshgrid(x, y, indexing="ij")))


def platform(first_m, height_m):
    return heights(lambda x, y: np.where(x > first_m, height_m, 0.0))


def wall(first_m, height_m=0.5, thick_m=0.05):
    return ground_of(
        {
            "boxes": [
                {
                    "size_m": [thick_m, 4.0, height_m],
                    "top_m": [first_m + 0.5 * thick_m, 0.0, height_m],
                }
            ]
        }
    )


def landed_before(walk, end_m, height_m=0.0):
    """Whether all soles landed whole before a place, on level ground."""
    for *place, yaw in walk.landed:
        assert place[0] + HALF[0] < end_m + 1e-6
        assert below(walk.field, place, yaw) == pytest.approx(height_m, abs=1e-9)


def times_said(walk):
    said = np.array([bool(plan.unreachable) for plan in walk.plans], dtype=int)
    return int((np.diff(said) == 1).sum())


@pytest.mark.parametrize(
    ("height_m", "velocity"),
    [
        (0.3, (0.3, 0.15)),
        (0.3, (0.15, 0.0)),
        (0.5, (0.3, 0.0)),
        (0.8, (0.3, 0.0)),
        (-0.4, (0.3, 0.0)),
        (-1.0, (0.3, 0.15)),
    ],
)
def test_it_steps_in_place_before_what_is_higher_or_lower_than_a_step(height_m, velocity):
    walk = Climber(talos(), platform(0.8, height_m))
    walk.go(10.0, velocity)
    landed_before(walk, 0.8)
    assert walk.body.places[:, 0].max() > 0.8 - HALF[0] - 0.12  # as far as it can
    assert set(walk.plans[-1].unreachable) == set(walk.body.frames)
    assert times_said(walk) == 1
    assert max(abs(walk.body.speed[0]), abs(walk.body.com[0] - walk.body.places[:, 0].mean())) < 0.1


@pytest.mark.parametrize("first_m", [0.40, 0.47, 0.55])
def test_it_does_not_go_through_a_wall_and_walks_away_from_it(first_m):
    walk = Climber(talos(), wall(first_m))
    walk.go(8.0, (0.3, 0.0))
    landed_before(walk, first_m)
    assert walk.plans[-1].unreachable and times_said(walk) == 1
    walk.go(4.0, (-0.2, 0.0))
    assert walk.body.com[0] < first_m - 0.5 and not walk.plans[-1].unreachable


def test_it_goes_over_a_bar_no_higher_than_a_step():
    walk = Climber(talos(), wall(0.5, 0.06))
    walk.go(8.0, (0.3, 0.0))
    assert walk.body.com[0] > 1.5
    assert not any(plan.unreachable for plan in walk.plans)


def test_on_ground_without_any_flat_area_it_stays_and_says_so():
    rng = np.random.default_rng(0)
    rough = heights(lambda x, y: np.where(x > 0.4, 0.04 * rng.random(x.shape), 0.0))
    walk = Climber(talos(), rough)
    walk.go(6.0, (0.2, 0.0))
    landed_before(walk, 0.4)
    assert walk.plans[-1].unreachable and times_said(walk) == 1


def test_outside_the_map_the_ground_is_as_high_as_at_its_border():
    x = np.array([-2.0, 0.7])
    walk = Climber(talos(), HeightField(x, np.array([-2.0, 2.0]), np.full((2, 2), 0.0)))
    walk.ground = lambda place: 0.0
    walk.go(8.0, (0.3, 0.0))
    assert walk.body.com[0] > 1.5
    said = [plan.unmapped for plan in walk.plans]
    assert not said[0] and said[-1] and np.abs(np.diff(np.array(said, dtype=int))).sum() < 6
    assert not any(plan.unreachable for plan in walk.plans)


def test_without_a_search_footholds_move_by_a_sole():
    walk = Climber(talos(), stairs(0.5), search_m=0.0)
    walk.go(8.0, (0.3, 0.0))
    assert walk.body.com[0] > 1.0
    for *place, yaw in walk.landed:
        assert np.ptp(below(walk.field, place, yaw)) < 1e-9


@pytest.mark.parametrize("shift_m", [0.0, 0.003, 0.007])
def test_what_is_as_small_as_a_cell_of_the_map_is_seen(shift_m):
    """A pole of one grid point between the points at which a sole is looked up."""
    x = np.arange(-0.5, 0.5, 0.01)
    tops = np.zeros((len(x), len(x)))
    i, j = np.searchsorted(x, [0.031 + shift_m, 0.012 + shift_m])
    tops[i, j] = 0.4
    areas = Areas(HeightField(x, x, tops), HALF, 0.0)
    pole = np.array([x[i], x[j]])
    for yaw in (0.0, 0.4):
        away = 0.2 * np.array([np.cos(yaw + 1.0), np.sin(yaw + 1.0)])
        assert areas.highest(pole - away, pole + away, yaw) == pytest.approx(0.4)
        assert areas.near(np.zeros(2), yaw) == []
    assert areas.highest(pole - [0.2, 0.09], pole + [0.2, -0.09], 0.0) == 0.0


def test_the_node_says_once_that_footholds_are_outside_the_map():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from contact_id_controller.ros.gait_planner import GaitPlannerNode

    said = []
    node = SimpleNamespace(_warn=said.append, _unreachable=(), _bounded=(), _unmapped=False)
    for unmapped in (False, True, True, False, True):
        GaitPlannerNode._report(node, Plan(unmapped=unmapped))
    assert len(said) == 2 and all("outside the height map" in text for text in said)
