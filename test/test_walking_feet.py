"""Feet's paths, the sequence of contacts and the region of the centre of pressure of the walking planner."""

import numpy as np
import pytest
from scipy.interpolate import BPoly
from scipy.spatial import ConvexHull

from contact_id_controller.planning.walking.feet import Footing, Swing, SwingShape, quintic
from contact_id_controller.planning.walking.sequence import Event, Patience, Sequence
from contact_id_controller.planning.walking.support import region_of

SHAPE = SwingShape(lift_m=0.06, land_m_s=0.1, rest_s=0.03)


def test_a_quintic_is_scipys():
    rng = np.random.default_rng(0)
    motion, goal = rng.normal(size=(3, 2)), rng.normal(size=2)
    own = quintic(0.3, motion, 0.8, goal, -0.2)
    for d in range(2):
        ends = [motion[:, d], [goal[d], -0.2, 0.0]]
        judge = BPoly.from_derivatives([0.3, 0.8], ends)
        for t in (0.3, 0.41, 0.77):
            expected = [float(judge(t)), float(judge(t, 1)), float(judge(t, 2))]
            assert own.at(t)[:, d].tolist() == pytest.approx(expected, abs=1e-10)


def aim(swing, now_s, lands_s, goal, yaw, footing):
    """Lead a foot elsewhere unless it keeps its place."""
    kept = swing.keeps_place(now_s, lands_s)
    swing.aim(now_s, lands_s, None if kept else goal, yaw, footing)


def replanned(rng):
    """A swing of .4 s that gets another goal and time every 10 ms; jumps of its motion (k, 3) at these times."""
    swing = Swing(SHAPE, 1.0, rng.normal(size=3), rng.normal(), 1.4)
    start, jumps = swing.at(1.0)[0], []
    for t in np.arange(1.0, 1.4, 0.01).tolist():
        before = swing.at(t)
        lands_s = max(1.4 + 0.05 * rng.normal(), t + 0.06)
        goal = start[:2] + [0.2, 0.0] + 0.05 * rng.normal(size=2)
        aim(swing, t, lands_s, goal, start[3] + 0.2, Footing(start[2] + 0.01))
        jumps.append(np.abs(swing.at(t) - before).max(axis=1))
    return swing, np.array(jumps)


def test_a_path_goes_on_in_place_speed_and_acceleration_when_it_is_planned_anew():
    rng = np.random.default_rng(1)
    for _ in range(20):
        _, jumps = replanned(rng)
        assert (jumps.max(axis=0) < 1e-12 * np.array([10.0, 10.0, 1e3])).all()


@pytest.mark.parametrize("since_s", [0.04, 0.06, 0.09])
def test_a_swing_cut_short_is_no_higher(since_s):
    """The landing comes .25 s earlier while the foot rises: it turns down as it is, where it once rose to .17 m."""
    swing, top = Swing(SHAPE, 1.0, np.zeros(3), 0.0, 1.48), 0.0
    lands_s = 1.48
    for t in np.arange(1.0, 1.48, 0.01).tolist():
        lands_s = lands_s if t < 1.0 + since_s else 1.0 + since_s + 0.15
        if t > lands_s - 0.01:
            break
        aim(swing, t, lands_s, np.array([0.2, 0.0]), 0.0, Footing(0.0))
        top = max(top, *(swing.at(t + s)[0, 2] for s in np.linspace(0.0, 0.01, 5)))
    assert top < 1.2 * SHAPE.lift_m
    assert swing.at(lands_s)[0, 2] == pytest.approx(0.0, abs=1e-9)


def test_a_foot_lands_without_speed_along_the_ground():
    rng = np.random.default_rng(2)
    swing = Swing(SHAPE, 1.0, np.zeros(3), 0.0, 1.4)
    top = 0.0
    for t in np.arange(1.0, 1.4, 0.01).tolist():
        top = max(top, swing.at(t)[0, 2])
        aim(swing, t, 1.4, np.array([0.3, 0.05]) + 0.01 * rng.normal(size=2), 0.1, Footing(0.0))
    at = np.array([swing.at(t) for t in np.linspace(1.37, 1.4, 31)])
    low = at[:, 0, 2] < 0.003
    assert low.any() and np.abs(at[low][:, 1, :2]).max() < 1e-9
    end = swing.at(1.4)
    assert end[0, 2] == pytest.approx(0.0, abs=1e-12) and end[1, 2] == pytest.approx(-0.1)
    assert swing.at(1.45)[0, 2] == pytest.approx(-0.005)  # goes on down until it touches
    assert top == pytest.approx(0.06, abs=2e-3)


@pytest.mark.parametrize("left_s", [0.1, 0.15, 0.25])
def test_a_foot_is_as_slow_as_a_landing_before_it_lands_however_short_its_way_down_was(left_s):
    """A sole a little tilted touches up to 20 ms early: TALOS' did with .3 m/s."""
    swing = Swing(SHAPE, 1.0, np.zeros(3), 0.0, 1.48)
    for t in np.arange(1.0, 1.48, 0.01).tolist():
        sooner = t >= 1.23
        if not sooner or t < 1.24:
            aim(swing, t, t + left_s if sooner else 1.48, np.array([0.2, 0.0]), 0.0, Footing(0.0))
    at = np.array([swing.at(swing.lands_s - s) for s in np.linspace(0.0, SHAPE.rest_s, 7)])
    assert at[:, 1, 2] == pytest.approx(-SHAPE.land_m_s)
    assert at[0, 0, 2] == pytest.approx(0.0, abs=1e-12) and at[-1, 0, 2] == pytest.approx(0.003)


def test_the_path_of_a_plan_is_the_swing():
    """What the plan's points are joined by, at any time of what is left."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        swing, _ = replanned(rng)
        now_s = 1.0 + rng.uniform(0.0, 0.3)
        aim(swing, now_s, 1.45, rng.normal(size=2), 0.0, Footing(0.0))
        path = swing.path(now_s, 0.1)
        assert path.landing_s == pytest.approx(1.45 - now_s)
        assert path.may_land_from_s == pytest.approx(1.1 - now_s)
        for since in np.linspace(0.0, path.landing_s - 1e-6, 13).tolist():
            k = int(np.searchsorted(path.times_s, since, side="right")) - 1
            ends = path.points[k : k + 2]
            judge = BPoly.from_derivatives(path.times_s[k : k + 2], np.moveaxis(ends, 1, 1))
            assert judge(since) == pytest.approx(swing.at(now_s + since)[0], abs=1e-9)


# The sequence of contacts

NO, LEFT, RIGHT, BOTH = (np.array(each) for each in ((0, 0), (1, 0), (0, 1), (1, 1)))
PATIENCE = Patience(double_s=0.1, swing_s=0.4, early_s=0.15, late_s=0.1)


def test_points_of_a_path_that_should_be_one_are_one():
    """The ends of the ways along the ground and down are the same but for rounding: G1's planner stopped at it."""
    rng = np.random.default_rng(8)
    for _ in range(300):
        lands_s = 1.0 + rng.uniform(0.3, 0.6)
        swing = Swing(SHAPE, 1.0, np.zeros(3), 0.0, lands_s)
        for now_s in np.sort(rng.uniform(1.0, lands_s, 4)).tolist():
            aim(swing, now_s, lands_s, rng.normal(size=2), 0.0, Footing(0.0))
            assert (np.diff(swing.path(now_s, 0.1).times_s) > 0.5e-4).all()


def a_walk():
    sequence = Sequence(PATIENCE)
    sequence.begin(0.0, 0, 0.1)
    return sequence


def test_groups_take_turns():
    sequence, events = a_walk(), []
    for k in range(130):
        t = 0.01 * k
        stands = sequence.stands()
        touches = stands if t < sequence.ends_s else BOTH
        event = sequence.advance(t, touches, False, False, 0.0)
        if event is not Event.NOTHING:
            events.append((round(t, 2), event, sequence.carry))
    assert [event[1] for event in events] == [Event.LIFTED, Event.LANDED] * 2 + [Event.LIFTED]
    assert [event[2] for event in events] == [0, 1, 1, 0, 0]
    assert events[1][0] - events[0][0] == pytest.approx(0.4, abs=0.011)


def test_an_early_touch_is_a_landing_and_one_of_lift_off_is_not():
    sequence = a_walk()
    assert sequence.advance(0.1, BOTH, False, False, 0.0) is Event.LIFTED
    assert sequence.advance(0.2, BOTH, False, False, 0.0) is Event.NOTHING  # it still scrapes
    assert sequence.advance(0.3, LEFT, False, False, 0.0) is Event.NOTHING
    assert sequence.advance(0.31, BOTH, False, False, 0.0) is Event.LANDED
    assert sequence.carry == 1 and sequence.ends_s == pytest.approx(0.41)


def test_a_foot_that_finds_no_ground_stands_after_a_while():
    sequence = a_walk()
    sequence.advance(0.1, BOTH, False, False, 0.0)
    assert sequence.advance(0.55, LEFT, False, False, 0.0) is Event.NOTHING
    assert sequence.advance(0.61, LEFT, False, False, 0.0) is Event.LANDED


def test_no_foot_lifts_before_the_other_one_bears():
    sequence = a_walk()
    assert sequence.advance(0.12, RIGHT, False, False, 0.0) is Event.NOTHING
    assert sequence.advance(0.14, LEFT, False, False, 0.0) is Event.LIFTED


def test_a_foot_that_touched_and_bounces_is_not_waited_for():
    """Pushed aside a robot rolls on the edge of one sole: the other one touched, hovered and bore nothing for .05 s."""
    sequence = a_walk()
    sequence.advance(0.1, BOTH, False, False, 0.0)
    assert sequence.advance(0.5, BOTH, False, False, 0.0) is Event.LANDED
    assert sequence.advance(0.6, LEFT, False, False, 0.0) is Event.LIFTED and sequence.carry == 1
    assert sequence.advance(1.11, RIGHT, False, False, 0.0) is Event.LANDED  # without a touch
    assert sequence.advance(1.22, RIGHT, False, False, 0.0) is Event.NOTHING
    assert sequence.advance(1.23, LEFT, False, False, 0.0) is Event.LIFTED


def test_a_straight_leg_lifts_at_once_and_a_walk_may_end():
    sequence = a_walk()
    assert sequence.advance(0.02, BOTH, False, True, 0.0) is Event.LIFTED
    sequence = a_walk()
    assert sequence.advance(0.1, BOTH, True, False, 0.0) is Event.RESTED and sequence.standing
    assert sequence.advance(0.5, NO, True, False, 0.0) is Event.NOTHING


# The region of the centre of pressure


def test_the_region_is_the_hull_less_its_margin():
    rng = np.random.default_rng(4)
    for _ in range(30):
        points = rng.normal(size=(rng.integers(4, 9), 2))
        normals, bounds = region_of(points, 0.05)
        judge = ConvexHull(points).equations
        assert np.linalg.norm(normals, axis=1) == pytest.approx(np.ones(len(normals)))
        for probe in rng.normal(size=(20, 2)).tolist():
            expected = (judge[:, :2] @ probe + judge[:, 2]).max() + 0.05
            inner = (judge[:, :2] @ points.mean(axis=0) + judge[:, 2]).max()
            if inner < -0.2:  # nowhere is the margin larger than the hull
                assert (normals @ probe - bounds).max() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("points", "inside", "outside"),
    [
        ([[0.3, 0.1]], [0.3, 0.1], [0.301, 0.1]),
        ([[0.0, 0.0], [0.2, 0.2]], [0.1, 0.1], [0.11, 0.09]),
        ([[0.0, 0.0], [0.1, 0.1], [0.2, 0.2]], [0.15, 0.15], [0.2, 0.2]),
        ([[0.0, 0.0], [0.1, 0.0], [0.1, 0.01], [0.0, 0.01]], [0.05, 0.005], [0.05, 0.0085]),
    ],
)
def test_lines_points_and_slivers_have_a_region(points, inside, outside):
    normals, bounds = region_of(np.array(points), 0.02)
    assert (normals @ inside - bounds).max() <= 1e-12
    assert (normals @ outside - bounds).max() > 0.0
