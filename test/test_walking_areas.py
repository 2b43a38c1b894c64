"""Flat areas of a height map on which feet may stand, and walks on stairs and slopes whose map is known."""

import math

import numpy as np
import pytest
import yaml
from paths import CONFIG
from test_walking_planner import PERIOD_S, Puppet, Walk, talos

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import HeightField
from contact_id_controller.geometry.ground_file import ground_of
from contact_id_controller.planning.walking import planner as walking
from contact_id_controller.planning.walking.areas import EDGE_M, Areas
from contact_id_controller.planning.walking.planner import WalkingPlanner
from contact_id_controller.runs.estimated_state import controller_changes, estimator_changes
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    estimated_state,
    mujoco_robot,
    section,
)

HALF = np.array([0.1, 0.0625])
RISE_M, TREAD_M = 0.1, 0.3


def stairs(first_m, steps=3, wide_m=2.0):
    """Steps up from ``first_m`` on, the highest one a metre long, and down again."""
    heights = [*range(1, steps + 1), *range(steps - 1, 0, -1)]
    boxes, x = [], first_m
    for height in heights:
        length = 1.0 if height == steps else TREAD_M
        top = RISE_M * height
        boxes.append({"size_m": [length, wide_m, top], "top_m": [x + 0.5 * length, 0.0, top]})
        x += length
    return ground_of({"boxes": boxes})


def slope(along, across):
    x, y = np.linspace(-3.0, 6.0, 91), np.linspace(-3.0, 3.0, 61)
    return HeightField(x, y, along * x[:, None] + across * y[None, :])


def below(field, place, yaw, half=HALF):
    """Heights of the ground below a sole, at points that a foot's corners and edges enclose."""
    grid = np.stack(np.meshgrid(*(np.linspace(-h, h, 21) for h in half)), axis=-1).reshape(-1, 2)
    c, s = math.cos(yaw), math.sin(yaw)
    x, y = (np.asarray(place) + grid @ np.array([[c, s], [-s, c]])).T
    return field.heights_at(x, y)


def corners(area):
    """Corners (4, 2) of a bounded area."""
    found = []
    for i in range(4):
        for j in range(i):
            rows = [i, j]
            if abs(np.linalg.det(area.normals[rows])) > 0.5:
                found.append(np.linalg.solve(area.normals[rows], area.bounds[rows]))
    return np.array(found)


@pytest.mark.parametrize("yaw", [0.0, 0.3])
def test_soles_of_an_area_stand_on_one_tread_whole(yaw):
    field = stairs(0.5, wide_m=0.4)
    areas = Areas(field, HALF, 0.15).near(np.array([0.65, 0.02]), yaw)
    assert areas[0].height_m == pytest.approx(RISE_M, abs=1e-9)
    ends = corners(areas[0])
    assert len(ends) == 4
    for place in ends:
        assert np.ptp(below(field, place, yaw)) < 1e-9
        ahead = [place + EDGE_M * np.array(way) for way in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        assert all(np.ptp(below(field, each, yaw)) < 1e-9 for each in ahead)


def test_areas_of_both_treads_beside_an_edge_are_found():
    """Astride of it a foot stands on neither."""
    field = stairs(0.5)
    place = np.array([0.8, 0.0])
    areas = Areas(field, HALF, 0.15).near(place, 0.0)
    assert sorted(round(area.height_m, 6) for area in areas) == [RISE_M, 2 * RISE_M]
    assert not any(area.holds(place) for area in areas)
    assert Areas(field, HALF, 0.0).near(place, 0.0) == []


def test_no_other_area_is_looked_for_where_the_place_lies_in_its_own():
    x, place = np.arange(-1.0, 1.0, 0.02), np.array([-0.4, 0.1])
    grown = np.clip((x + 0.5) / 0.5, 0.0, 1.0)[:, None]
    twisted = HeightField(x, np.array([-1.0, 1.0]), 0.14 * grown * np.array([-1.0, 1.0]))
    several = Areas(twisted, HALF, 0.15).near(place, 0.0)
    assert len(several) > 1 and several[0].holds(place)
    (alone,) = Areas(twisted, HALF, 0.15).near(place, 0.0, alone=True)
    assert all(np.array_equal(one, other) for one, other in zip(alone, several[0]))
    assert len(Areas(stairs(0.5), HALF, 0.15).near(np.array([0.8, 0.0]), 0.0, alone=True)) == 2


def test_a_slope_is_one_area_without_bounds_and_too_steep_a_one_is_none():
    place, (along, across) = np.array([0.3, -0.2]), (0.14, -0.05)
    (area,) = Areas(slope(along, across), HALF, 0.15).near(place, 0.7)
    assert area.slope == pytest.approx([along, across]) and len(area.bounds) == 0
    assert area.height_at(np.array([1.0, 1.0])) == pytest.approx(along + across)
    assert Areas(slope(0.5, 0.0), HALF, 0.15).near(place, 0.0) == []


def test_heights_are_those_of_the_map_also_on_an_uneven_grid_and_go_on_outside():
    random = np.random.default_rng(2)
    x, y = np.cumsum(random.uniform(0.001, 0.2, 40)), np.linspace(-1.0, 1.0, 11)
    field = HeightField(x, y, random.uniform(0.0, 0.1, (40, 11)))
    areas = Areas(field, HALF, 0.0)
    places = random.uniform([x[0] - 0.5, -1.5], [x[-1] + 0.5, 1.5], (200, 2))
    for place in [*places, *np.stack([x, np.resize(y, 40)], axis=1)]:
        inside = np.clip(place, [x[0], -1.0], [x[-1], 1.0])
        assert areas.height_at(place) == pytest.approx(field.heights_at(*inside[:, None])[0])


@pytest.fixture
def parts_of_four():
    file = str(CONFIG / "solo12.yaml")
    settings = controller_settings(file)
    posture = section(file, "simulated_robot")["initial_joint_positions"]
    return settings.robot(), settings.feet, np.array(posture)


class Climber(Walk):
    """A pendulum on a map: its feet are where they are led, and stop on the ground."""

    def __init__(self, parts, field, search_m=0.15):
        super().__init__(*parts)
        planner = WalkingPlanner(*parts, surface=field, search_m=search_m)
        self.planner, self.body, self.field = planner, planner.body, field
        self.body.__class__ = Puppet
        self.body.places[:, 2] = 0.0
        self.landed, self.swings, self.held = [], [], []

    def ground(self, place):
        return float(self.field.heights_at(place[:1], place[1:2])[0])

    def follow(self, foot, place, aloft_s):
        self.swings.append((aloft_s, place.copy()))
        area, landing = self.planner._area, self.planner.landing
        self.held.append(area is not None and area.holds(landing.footholds[0]))
        super().follow(foot, place, aloft_s)
        if self.touch[foot]:
            self.landed.append(place[[0, 1, 3]])


@pytest.mark.parametrize("first_m", [0.50, 0.59, 0.68])
def test_feet_go_up_and_down_stairs_whole_on_their_treads_and_above_edges(first_m):
    field = stairs(first_m)
    walk = Climber(talos(), field)
    walk.go(11.5, (0.3, 0.0))
    assert all(walk.held)  # to the landing: a foot that is to stop beside an edge is not led on
    assert walk.body.com[0] > first_m + 2.4  # down again
    tops = {round(walk.ground(place), 3) for place in walk.landed}
    assert tops == {0.0, 0.1, 0.2, 0.3}
    for *place, yaw in walk.landed:
        assert np.ptp(below(field, place, yaw)) < 1e-9
    for aloft_s, place in walk.swings:
        if aloft_s > 0.03:  # it has left the ground
            assert place[2] > below(field, place[:2], place[3]).max() - 1e-3


def test_no_plan_of_a_walk_looks_for_areas_twice(monkeypatch):
    """Once for the foothold, or how far the ground goes on: the time of a plan is that of its longest one."""
    looked, near = [], Areas.near
    walk = Climber(talos(), stairs(0.5))

    def counted(*where):
        looked.append(walk.time_s)
        return near(*where)

    monkeypatch.setattr(Areas, "near", counted)
    walk.go(4.0, (0.25, 0.0))
    times, many = np.unique(looked, return_counts=True)
    assert len(times) > 100 and many[times > 0.0].max() == 1


def test_a_slow_walk_does_not_stay_before_an_edge():
    """From its end the next tread is farther than a step, and what the walk is behind by is made up for."""
    first_m = 0.5
    walk = Climber(talos(), stairs(first_m))
    walk.go(13.0, (0.1, 0.0))
    assert walk.body.com[0] > first_m + 0.3


def test_the_centre_of_mass_goes_up_smoothly():
    """Its height is continuous where feet land and lift, half of a step between both feet, all of it above the upper."""
    walk = Climber(talos(), stairs(0.5))
    walk.go(7.0, (0.3, 0.0))
    heights = np.array(walk.heights)
    assert np.abs(np.diff(heights)).max() < 0.4 * PERIOD_S
    assert heights[0] == pytest.approx(walk.body.height_m, abs=1e-6)
    assert heights.max() == pytest.approx(walk.body.height_m + 3 * RISE_M, abs=0.01)


@pytest.mark.parametrize("after_s", [0.0, 0.03, 0.06])
def test_a_foot_that_climbs_gets_over_the_edge_even_if_it_lands_as_soon_as_it_may(
    monkeypatch, after_s
):
    """Led down before, it met the riser: G1 fell."""
    walk = Climber(talos(), stairs(0.5))
    walk.go(0.5, (0.3, 0.0))
    while not any(swing.climbs > 0.9 for swing in walk.planner._swings.values()):
        walk.go(PERIOD_S, (0.3, 0.0))
    walk.go(after_s, (0.3, 0.0))
    for name in ("next_landing", "landing_within"):
        solve = getattr(walking, name)
        monkeypatch.setattr(
            walking, name, lambda *a, solve=solve: solve(*a[:-1], a[-1].min(keepdims=True))
        )
    (swing,) = walk.planner._swings.values()
    begun = len(walk.swings)
    while walk.planner._swings:
        walk.go(PERIOD_S, (0.3, 0.0))
    assert swing.lands_s - swing.lifted_s < 0.9 * walk.planner.rules.swing_s
    places = np.array([place for aloft_s, place in walk.swings[begun:] if aloft_s > 0.03])
    above = [place[2] - below(walk.field, place[:2], place[3]).max() for place in places]
    assert min(above) > -1e-3


def test_a_foot_that_climbs_goes_no_higher_than_its_lift_above_the_edge():
    """The ground from which it lifted counts, not where the last plan had it."""
    walk = Climber(talos(), stairs(0.5))
    walk.go(2.5, (0.3, 0.0))
    highest = max(place[2] for _, place in walk.swings)
    assert (
        highest
        < max(walk.ground(place) for place in walk.landed) + 1.1 * walk.planner._shape.lift_m
    )


def test_feet_are_planned_with_the_slope():
    """From where they lift to where they land the whole sole has its slopes."""
    along, across = 0.14, 0.05
    walk = Climber(talos(), slope(along, across))
    walk.body.places[:, 2] = walk.body.places[:, :2] @ [along, across]
    walk.go(3.0, (0.2, 0.1))
    paths = [path for plan in walk.plans for path in plan.goals.feet.values()]
    assert len(paths) > 100
    for path in paths:
        assert path.points[:, 0, 4:] == pytest.approx(
            np.tile([along, across], (len(path.times_s), 1)), abs=1e-6
        )
    for *place, _ in walk.landed:
        assert walk.ground(np.array(place)) == pytest.approx(place[0] * along + place[1] * across)


def test_a_foot_comes_down_at_the_height_of_the_place_to_which_it_goes():
    """Also one that a new time of landing makes keep its place: height and place are of one goal."""
    slopes = np.array([-0.2, 0.05])
    walk = Climber(talos(), slope(*slopes))
    walk.body.places[:, 2] = walk.body.places[:, :2] @ slopes
    walk.go(1.0, (0.3, 0.1))
    planner = walk.planner
    while not planner._swings or not 0.2 < planner.sequence.ends_s - walk.time_s < 0.21:
        walk.go(PERIOD_S, (0.3, 0.1))
    (swing,) = planner._swings.values()
    now_s, sooner_s = planner._last_s, planner._last_s + 0.1
    assert swing.keeps_place(now_s, sooner_s) and not swing.keeps_place(now_s, swing.lands_s)
    planner.sequence.ends_s = sooner_s
    moved = planner.landing._replace(footholds=planner.landing.footholds + [0.1, 0.0])
    planner._aim(now_s, moved)
    height = swing.at(swing.lands_s)[0, 2]
    assert height == pytest.approx(swing.goal @ slopes, abs=1e-6)


def test_four_feet_need_level_ground(parts_of_four):
    with pytest.raises(ConfigurationError, match="must be 'level' with gait step of 4 feet"):
        WalkingPlanner(*parts_of_four, surface=slope(0.1, 0.0))


def run_on_a_box(folder, robot, box, **changes):
    """A run of a biped in MuJoCo on level ground with this box, whose planner has the map."""
    ground = folder / "step.yaml"
    ground.write_text(f"boxes: [{{{box}}}]\nmargin_m: 2.0\n")
    file = str(CONFIG / "bipeds" / f"{robot}.yaml")
    settings = controller_settings(file, ground_file=str(ground))
    changes = {"ground_file": str(ground), "ground": "map", **changes}
    return InProcessRun(file, settings, mujoco_robot(settings, 0.6), planner=changes)


def test_talos_goes_up_a_step_of_ten_centimetres_in_mujoco(tmp_path):
    """With the map it stands on the step, its centre of mass as high above it as before; no sole is on the edge."""
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    box = "size_m: [3.0, 2.0, 0.1], top_m: [1.83, 0.0, 0.1]"
    run = run_on_a_box(tmp_path, "talos", box, foothold_search_m=0.15)
    run.planner.set_velocity((0.3, 0.0))
    body, highest = run.planner.body, 0.0
    for _ in range(3600):
        run.advance()
        highest = max(highest, body.com[2])
        for k, carries in enumerate(run.planner.sequence.stands()):
            middle = body.places[body.groups[k][0]]
            assert not carries or abs(middle[0] - 0.33) > HALF[0] - 0.005
    assert body.places[:, 2] == pytest.approx(np.full(2, 0.1), abs=0.07)
    assert body.com[2] == pytest.approx(body.height_m + 0.1, abs=0.02)
    assert highest < body.height_m + 0.12


def test_g1_goes_down_a_step_of_ten_centimetres_in_mujoco(tmp_path):
    """Its legs are just as long as that takes: its centre of mass is lower when it lands, and its knees never straight.

    Before they were, and pulled at both feet: it fell.
    """
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    run = run_on_a_box(tmp_path, "g1", "size_m: [2.0, 2.0, 0.1], top_m: [-0.7, 0.0, 0.1]")
    run.planner.set_velocity((0.25, 0.0))
    robot = run.robot
    knees = [robot.joint_names.index(f"{side}_knee_joint") for side in ("left", "right")]
    straightest = np.inf
    for _ in range(3200):
        period = run.advance()
        straightest = min(straightest, robot.joints_of(period.after.q)[knees].min())
    body = run.planner.body
    assert body.places[:, 0].min() > 0.3 + 0.085
    assert body.com[2] == pytest.approx(body.height_m, abs=0.02)
    assert straightest > 0.2


def test_up_a_slope_an_estimate_does_not_hold_the_height_level(tmp_path):
    """TALOS: with the ground of the estimator's own settings the height would be 2 cm off, and feet land in the air."""
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    x, ground = np.linspace(-1.0, 2.0, 31), tmp_path / "slope.yaml"
    heights = math.tan(math.radians(8.0)) * np.maximum(x - 0.2, 0.0)
    rows = {"x_m": x.tolist(), "y_m": [-1.0, 1.0], "heights_m": [[h, h] for h in heights.tolist()]}
    ground.write_text(yaml.safe_dump(rows))
    file = str(CONFIG / "bipeds" / "talos.yaml")
    changes = controller_changes(section(file, "controller"), "good")
    settings = controller_settings(file, ground_file=str(ground), **changes)
    world = mujoco_robot(settings, 0.6, imu_frame="")
    told = estimated_state(file, world, "good", **estimator_changes(settings))
    planner = {"ground_file": str(ground), "ground": "map"}
    run = InProcessRun(file, settings, world, estimator=told, planner=planner)
    run.planner.set_velocity((0.25, 0.0))
    worst = 0.0
    for _ in range(3000):
        period = run.advance()
        worst = max(worst, abs(run.believed.q[2] - period.after.q[2]))
    assert run.planner.body.places[:, 2].min() > 0.03 and worst < 0.003, worst
