"""The gait planner on uneven ground: what it knows of the ground, and where feet and base go on it."""

import itertools

import numpy as np
import pinocchio as pin
import pytest
from kinematic_walk import ROBOTS, KinematicWalk, planned_state

from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.geometry import HeightField
from contact_id_controller.planning.gait.ground import FeltGround, MappedGround, plane
from contact_id_controller.planning.gait.planner import GaitPlanner
from experiments.papers.terrains import bumpy_field
from experiments.rigid.terrain import ball_points

QUADRUPED = ROBOTS["quadruped"]
RADIUS_M = QUADRUPED.foot_radius_m
SLOPE_X, SLOPE_Y = 0.15, -0.1


def field(height, extent=1.0, count=201):
    """A height field of a function of x and y."""
    grid = np.linspace(-extent, extent, count)
    return HeightField(grid, grid, height(*np.meshgrid(grid, grid, indexing="ij")))


def ramp():
    return field(lambda x, y: SLOPE_X * x + SLOPE_Y * y, count=3)


def stairs(rise=0.03, run=0.15):
    return field(lambda x, y: rise * np.floor(np.maximum(x - 0.3, 0.0) / run + 1e-9))


def climbing(surface, seconds=1.0, **settings):
    """A walk under way on a map, with every plan and the time it was in force."""
    walk = KinematicWalk(QUADRUPED, surface, ground="map", **settings)
    walk.planner.set_velocity((0.2, 0.0))
    walk.walk(0.8)
    return walk, walk.walk(seconds)


def moments(walk, plans, step_s=2e-3):
    """q and stance at times at which each plan is followed."""
    for plan in plans:
        for s in np.arange(1e-6, walk.settings.plan_period_s, step_s):
            t = plan.joints.start_s + s
            yield planned_state(walk.model, plan.joints, plan.base, t)[0], plan.contacts.sample(t)


# What is known of the ground


def test_many_heights_of_a_field_are_those_of_its_triangles():
    bumps = bumpy_field(7)
    places = np.random.default_rng(0).uniform(-1.6, 1.6, (400, 2))
    many = bumps.heights_at(places[:, 0], places[:, 1])
    for (x, y), height in zip(places, many):
        alone = bumps.height(x, y)
        assert np.isnan(height) if alone is None else height == pytest.approx(alone, abs=1e-12)
    assert np.isnan(many).sum() > 10


@pytest.mark.parametrize("surface, most_m", [(ramp(), 2e-4), (bumpy_field(3), 6e-4)])
def test_a_foot_on_the_map_touches_the_surface_and_no_more(surface, most_m):
    """Judged by the distance of a ball from the triangles."""
    ground = MappedGround(surface, RADIUS_M, 0.0, 4)
    for x, y in np.random.default_rng(1).uniform(-0.9, 0.9, (50, 2)):
        center = ground.foothold(0, complex(x, y))
        gap = min(point.gap for point in ball_points(center, RADIUS_M, surface, 0.02, 0))
        assert abs(gap) < most_m


def test_a_foothold_is_moved_from_an_edge_to_the_tread():
    surface = stairs(rise=0.05)
    still, moved = (MappedGround(surface, RADIUS_M, search, 4) for search in (0.0, 0.04))
    assert still.foothold(0, 0.445 + 0j)[0] == 0.445
    place = moved.foothold(0, 0.445 + 0j)
    around = surface.heights_at(place[0] + np.array([-RADIUS_M, RADIUS_M]), np.full(2, place[1]))
    assert around[0] == around[1] and np.hypot(place[0] - 0.445, place[1]) <= 0.04 + 1e-12


def test_beside_the_map_the_ground_is_as_high_as_where_the_foot_stood():
    ground = MappedGround(ramp(), RADIUS_M, 0.02, 4)
    ground.begin(np.array([[0.0, 0.0, 0.1 * k] for k in range(4)]))
    assert ground.foothold(3, 5.0 + 0j).tolist() == [5.0, 0.0, pytest.approx(0.3)]


def test_felt_ground_goes_on_as_the_last_footholds_rise():
    feet = np.array([[0.2, 0.1, 0.0], [0.2, -0.1, 0.0], [-0.2, 0.1, 0.0], [-0.2, -0.1, 0.0]])
    feet[:, 2] = SLOPE_X * feet[:, 0] + SLOPE_Y * feet[:, 1]
    ground = FeltGround(4)
    ground.begin(feet)
    place = ground.foothold(1, 0.3 - 0.15j)
    assert place[2] == pytest.approx(SLOPE_X * 0.3 - SLOPE_Y * 0.15)
    ground.feel(1, np.array([0.2, -0.1, 0.5]))
    assert ground.stands(1, np.array([0.2, -0.1, 0.5])) == 0.5


def test_a_plane_through_feet_in_a_line_does_not_lean_across_it():
    line = np.array([[0.1 * k, 0.0, 0.02 * k] for k in range(4)])
    assert plane(line, 0.0) == pytest.approx((0.03, 0.2, 0.0))
    assert plane(line, np.pi / 2) == pytest.approx((0.03, 0.0, -0.2))


# Walking by a map


@pytest.mark.parametrize("surface, most_m", [(ramp(), 2e-4), (bumpy_field(3), 1.5e-3)])
def test_feet_stand_on_the_maps_surface(surface, most_m):
    walk, plans = climbing(surface, rolls=False)
    worst = [
        abs(min(point.gap for point in ball_points(center, RADIUS_M, surface, 0.05, 0)))
        for q, stands in moments(walk, plans, 1e-2)
        for center in walk.feet(q)[stands]
    ]
    assert len(worst) > 100 and np.quantile(worst, 0.99) < most_m


def test_the_base_rises_and_leans_with_a_ramp():
    _walk, plans = climbing(ramp(), 2.0)
    base = plans[-1].base
    roll, pitch, _ = pin.rpy.matrixToRpy(pin.Quaternion(base.quaternions_xyzw[0]).matrix())
    assert pitch == pytest.approx(-np.arctan(SLOPE_X), abs=0.01)
    assert roll == pytest.approx(np.arctan(SLOPE_Y), abs=0.01)
    level = KinematicWalk(QUADRUPED).planner.plan(0.0, *_at_rest()).base.positions[-1, 2]
    x, y, z = base.positions[0]
    assert z - SLOPE_X * x - SLOPE_Y * y == pytest.approx(level, abs=0.01)


def _at_rest():
    walk = KinematicWalk(QUADRUPED)
    return walk.q, walk.v


def test_swings_pass_over_the_edges_of_stairs():
    surface = stairs()
    walk, plans = climbing(surface, 2.0, foothold_search_m=0.03, speed_m_s=0.2)
    gaps = []
    for q, stands in moments(walk, plans):
        for center in walk.feet(q)[~stands]:
            points = ball_points(center, RADIUS_M, surface, 0.1, 0)
            gaps.append(min((point.gap for point in points), default=0.1))
    assert len(gaps) > 500 and min(gaps) > -2e-3
    assert surface.height(*walk.q[:2]) > 0.0


def test_swings_over_stairs_last_as_long_as_their_joints_need():
    """They lasted as long as on level ground, and the knees were asked for 34 rad/s of 15."""
    walk, plans = climbing(stairs(), seconds=1.5)
    grid_s = np.arange(1e-6, walk.settings.plan_period_s, 2e-3)
    speeds = [
        plan.joints.sample(plan.joints.start_s + s).velocity for plan in plans for s in grid_s
    ]
    assert np.all(np.abs(speeds) < 1.05 * walk.model.velocity_limits)


def test_the_base_goes_down_as_far_as_the_legs_need_to_reach_the_next_stair():
    """5 cm down is out of reach of legs of 20 cm at 16 cm of height; up it is not."""
    for rise in (-0.05, 0.05):
        walk = KinematicWalk(
            QUADRUPED,
            stairs(rise, 0.3),
            ground="map",
            foothold_search_m=0.03,
            gait_period_s=0.5,
            duty_factor=0.7,
            max_step_height_m=0.08,
        )
        walk.planner.set_velocity((0.12, 0.0))
        plans = walk.walk(5.0)
        assert not any(plan.unreachable for plan in plans)
        assert walk.feet(walk.q)[:2, 2] == pytest.approx(rise + RADIUS_M, abs=1e-3)


def test_successive_plans_on_a_map_join_without_a_jump():
    _walk, plans = climbing(bumpy_field(3))
    for before, after in itertools.pairwise(plans):
        start = after.joints.start_s
        for part, most in (("position", 2e-3), ("velocity", 0.2)):
            one, two = (
                getattr(plan.joints.sample(start + 1e-9), part).copy() for plan in (before, after)
            )
            assert np.abs(one - two).max() < most
        assert before.base.sample(start).position == pytest.approx(
            after.base.sample(start).position, abs=1e-4
        )


# Feet that say whether they touch


def test_where_level_ground_is_elsewhere_the_plan_returns_to_the_robot_in_half_the_time():
    left = []
    for rise_m in (0.0, 0.02):
        walk, touch = KinematicWalk(QUADRUPED), np.ones(4, dtype=bool)
        walk.q[2] += rise_m
        walk.planner.plan(1.0, walk.q, walk.v, touch)
        walk.q[0] += 0.01
        plan = walk.planner.plan(1.05, walk.q, walk.v, touch)
        later = plan.joints.start_s + 0.1
        left.append(walk.q[0] - planned_state(walk.model, plan.joints, plan.base, later)[0][0])
    expected = [0.01 * (1.0 + 0.1 / fade_s) * np.exp(-0.1 / fade_s) for fade_s in (0.1, 0.05)]
    np.testing.assert_allclose(left, expected, atol=2e-4)


def test_a_foot_that_meets_the_ground_early_stands_where_it_is():
    walk = KinematicWalk(QUADRUPED, ground="felt", plan_period_s=0.02)
    walk.planner.set_velocity((0.2, 0.0))
    walk.walk(0.8)
    for _ in range(20):
        now_s, steps = walk.time_s - walk.planner._epoch_s, walk.planner._footsteps
        swings = [foot for foot in range(4) if not steps.standing(now_s)[foot]]
        late = [foot for foot in swings if now_s > steps.paths[foot].active(now_s).middle_s]
        if late:
            break
        walk.advance()
    heights = walk.feet(walk.q)[:, 2]
    assert heights[late].min() > RADIUS_M + 2e-3
    plan = walk.planner.plan(walk.time_s, walk.q, walk.v, np.ones(4, dtype=bool))
    there = walk.feet(walk.q)
    for foot in late:
        assert plan.contacts.stance[0, foot]
        assert steps.places()[foot, 2] == pytest.approx(heights[foot], abs=1e-9)
        # Its plan, which goes on from the swing, is there within .1 s.
        begins_s = plan.joints.start_s - walk.planner._epoch_s
        stance = steps.paths[foot].active(begins_s)
        planned = stance.at(np.array([begins_s + 0.1]))[0][0]
        assert np.linalg.norm(planned - there[foot]) < 3e-3


@pytest.mark.parametrize("robot", ["quadruped", "go2", "anymal_c", "solo12"])
def test_a_foot_that_was_felt_in_its_swing_by_mistake_goes_on_down(robot):
    """It hung where it was felt, 11 mm above the ground, until its stance ended."""
    walk, foot = before_touchdown(robot, past_middle=True)
    planner, height = walk.planner, walk.feet(walk.q)[foot][2]
    touches = planner._footsteps.standing(walk.time_s - planner._epoch_s)
    heights = []
    for k in range(6):
        touches[foot] = k == 0
        plan = planner.plan(walk.time_s + 0.02 * k, walk.q, walk.v, touches)
        later_s = plan.joints.start_s - planner._epoch_s + 0.02
        heights.append(
            planner._footsteps.paths[foot].active(later_s).at(np.array([later_s]))[0][0][2]
        )
    assert heights[0] == pytest.approx(height, abs=1e-3)
    assert np.all(np.diff(heights[1:]) < -1e-4)


def before_touchdown(robot, past_middle=False, **settings):
    """A walk on felt ground, and a foot that stands when the next plan begins but swings now.

    past_middle: a foot past the middle of its swing instead, that swings when the plan begins, too.
    """
    walk = KinematicWalk(ROBOTS[robot], ground="felt", plan_period_s=0.02, **settings)
    walk.planner.set_velocity((0.3, 0.0))
    walk.walk(0.8)
    steps, planner = walk.planner._footsteps, walk.planner
    for _ in range(100):
        walk.advance()
        now_s = walk.time_s - planner._epoch_s
        for foot in range(4):
            swing = steps.paths[foot].active(now_s)
            lands = bool(steps.standing(now_s + planner.lead_s)[foot])
            if not swing.standing and now_s > swing.middle_s and lands != past_middle:
                return walk, foot
    raise AssertionError("no foot swings")


def planned_foot(walk, plan, foot, after_s):
    """Centre (3,) of a foot in a plan, some time after its start."""
    t_s = plan.joints.start_s + after_s
    return walk.feet(planned_state(walk.model, plan.joints, plan.base, t_s)[0])[foot]


def test_a_foot_that_lands_off_the_plan_is_led_there_within_a_tenth_of_a_second():
    """Its swing ends before the plan begins."""
    walk, foot = before_touchdown("quadruped")
    q, touch = walk.q.copy(), np.ones(4, dtype=bool)
    q[7 + walk.planner._legs.columns[foot]] += 0.05
    there = walk.feet(q)[foot]
    assert np.linalg.norm(there - walk.feet(walk.q)[foot]) > 3e-3
    plan = walk.planner.plan(walk.time_s, q, walk.v, touch)
    assert planned_foot(walk, plan, foot, 0.1) == pytest.approx(there, abs=1e-3)
    late = walk.planner.plan(walk.time_s + 0.02, q, walk.v, touch)
    assert planned_foot(walk, late, foot, 0.08) == pytest.approx(there, abs=1e-3)


def test_a_place_out_of_reach_is_not_the_last_word_on_a_landing():
    """The foot is measured near the plan later in the same stance, and led there as after any landing."""
    walk, foot = before_touchdown("quadruped")
    far, near, touch = walk.q.copy(), walk.q.copy(), np.ones(4, dtype=bool)
    leg = 7 + walk.planner._legs.columns[foot]
    far[leg[0]] += 0.7
    near[leg] += 0.05
    walk.planner.plan(walk.time_s, far, walk.v, touch)
    plan = walk.planner.plan(walk.time_s + 0.05, near, walk.v, touch)
    assert not plan.restarted
    assert planned_foot(walk, plan, foot, 0.1) == pytest.approx(walk.feet(near)[foot], abs=2e-3)


@pytest.mark.parametrize("robot", ROBOTS)
def test_a_foot_that_meets_the_ground_in_its_swing_is_planned_there_at_once(robot):
    """The plan went on with the swing for a planning period and 20 ms, and faded to the foot's place from there."""
    walk, foot = before_touchdown(robot, past_middle=True)
    planner, before, there = walk.planner, walk.planner._last, walk.feet(walk.q)[foot]
    touches = planner._footsteps.standing(walk.time_s - planner._epoch_s)
    assert not planner.is_due(walk.time_s, walk.q, walk.v, touches)
    touches[foot] = True
    assert planner.is_due(walk.time_s, walk.q, walk.v, touches)
    after = planner.plan(walk.time_s, walk.q, walk.v, touches)
    start_s = after.joints.start_s
    assert start_s - walk.time_s == pytest.approx(0.01)
    for after_s in (1e-9, 0.05):
        assert planned_foot(walk, after, foot, after_s) == pytest.approx(there, abs=1e-3)
    one, two = (plan.joints.sample(start_s + 1e-9).position.copy() for plan in (before, after))
    others = np.delete(np.arange(len(one)), planner._legs.columns[foot])
    assert np.abs(one - two)[others].max() < 5e-3
    assert not planner.is_due(walk.time_s + 0.02, walk.q, walk.v, touches)


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize(
    "turn_rad, rise_m",
    [(0.05, 0.0), (0.0, 0.05), (0.0, 0.1)],
    ids=["at touchdown", "odometry up 5 cm", "odometry up 10 cm"],
)
def test_plans_join_at_touchdowns_where_they_were_not_expected(robot, turn_rad, rise_m):
    walk, foot = before_touchdown(robot)
    q, touch = walk.q.copy(), np.ones(4, dtype=bool)
    q[7 + walk.planner._legs.columns[foot]] += turn_rad
    q[2] += rise_m
    plans = [walk.planner._last]
    for k in range(4):
        plans.append(walk.planner.plan(walk.time_s + 0.02 * k, q, walk.v, touch))
    for before, after in itertools.pairwise(plans):
        assert not after.restarted
        start = after.joints.start_s
        for part, most in (("position", 5e-3), ("velocity", 0.3)):
            one, two = (
                getattr(plan.joints.sample(start + 1e-9), part).copy() for plan in (before, after)
            )
            assert np.abs(one - two).max() < most


def sinking(walk, contact):
    """How far each foot (L,) goes down in 60 ms of the next plan, made with what touches (L,)."""
    plan = walk.planner.plan(walk.time_s, walk.q, walk.v, contact)
    times = plan.joints.start_s + np.array([0.0, 0.06])
    first, last = (
        walk.feet(planned_state(walk.model, plan.joints, plan.base, t)[0])[:, 2] for t in times
    )
    return first - last


def stopped_after_a_swing(foot):
    """A walk on felt ground in which a foot has just ended its swing."""
    quick = {"plan_period_s": 0.02, "tracking_time_constant_s": 0.05}
    walk = KinematicWalk(QUADRUPED, ground="felt", **quick)
    walk.planner.set_velocity((0.2, 0.0))
    steps = walk.planner._footsteps
    while not walk.advance().walking or steps.standing(walk.time_s - walk.planner._epoch_s)[foot]:
        pass
    walk.planner.set_velocity()
    while not steps.standing(walk.time_s - walk.planner._epoch_s)[foot]:
        walk.advance()
    return walk


def test_a_foot_that_misses_the_ground_is_led_further_down():
    walk = stopped_after_a_swing(3)
    fall = sinking(walk, np.array([True, True, True, False]))
    assert fall[3] > 5e-4 and abs(fall[0]) < 1e-6  # 0 has swung together with 3


def test_a_foot_that_has_met_the_ground_stands_there_without_load():
    """Two feet of a trot may carry all; on rigid ground the others then touch without any force."""
    walk = KinematicWalk(QUADRUPED, ground="felt")
    walk.walk(0.2)
    assert np.abs(sinking(walk, np.array([True, False, False, True]))).max() < 1e-3
    walk = stopped_after_a_swing(3)
    walk.planner.plan(walk.time_s, walk.q, walk.v, np.ones(4, dtype=bool))
    walk.advance()
    assert abs(sinking(walk, np.array([True, True, True, False]))[3]) < 1e-6


@pytest.mark.parametrize(
    "settings, surface, words",
    [
        ({"ground": "map"}, None, "no map is given"),
        ({}, ramp(), "must be 'map' where a height map is given"),
        ({"ground": "sand"}, None, "'sand'"),
    ],
)
def test_ground_and_map_must_fit(settings, surface, words):
    with pytest.raises(ConfigurationError, match=words):
        GaitPlanner(QUADRUPED.model(), QUADRUPED.settings(**settings), surface)


def test_contact_of_other_than_all_feet_is_refused():
    walk = KinematicWalk(QUADRUPED)
    with pytest.raises(StateError, match="one for each of the 4 feet"):
        walk.planner.plan(0.0, walk.q, walk.v, np.ones(3, dtype=bool))
