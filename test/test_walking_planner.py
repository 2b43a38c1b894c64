"""The walking planner on a pendulum whose feet go where they are led, and once with controller and MuJoCo."""

import math

import numpy as np
import pinocchio as pin
import pytest
from paths import CONFIG

from contact_id_controller.control.following import LIMITS
from contact_id_controller.control.limits import POSITION_MARGIN
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.planning.walking.body import (
    FOOT_ACCELERATION,
    LOWEST,
    ORIGIN,
    STRAIGHT,
    TORQUE_SHARE,
    Body,
)
from contact_id_controller.planning.walking.planner import WalkingPlanner
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    mujoco_robot,
)
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push

PERIOD_S = 0.01


def talos():
    file = ParameterFile(CONFIG / "plans" / "talos.yaml")
    settings = ControllerSettings.from_mapping(file.section("controller"))
    posture = np.array(file.section("simulated_robot")["initial_joint_positions"])
    return settings.robot(), settings.feet, posture


class Puppet(Body):
    """A body whose centre of mass is a pendulum and whose feet are where they are put."""

    def measure(self, q, v):
        pass

    def points(self, feet):
        half = np.array([0.1, 0.0625])
        corners = half * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        return np.vstack([self.places[k, :2] + corners for k in feet])

    def ground_below(self, feet):
        return float(self.places[list(feet), 2].min())

    def stretched(self, feet):
        return False

    def height_over(self, ground_m):
        return self.height_m


class Walk:
    """A planner and its pendulum: the centre of pressure is what the plan says, and feedback along it."""

    def __init__(self, robot, contacts, posture):
        self.robot = robot
        self.planner = WalkingPlanner(robot, contacts, posture)
        self.body = self.planner.body
        self.body.__class__ = Puppet
        self.body.places[:, 2] = 0.0
        self.q, self.v = robot.neutral(), np.zeros(robot.nv)
        self.time_s, self.plans = 0.0, []
        self.touch, self.heights = np.ones(2, dtype=bool), []

    def ground(self, place):
        """Height of the ground at a place (2,)."""
        return 0.0

    def follow(self, foot, place, aloft_s):
        """Put a foot aloft where it is led, or on the ground; aloft_s: since when."""
        ground = self.ground(place[:2])
        self.body.places[foot] = [*place[:2], max(place[2], ground)]
        self.body.yaws[foot] = place[3]
        self.touch[foot] = place[2] <= ground + 1e-6

    def go(self, duration_s, velocity=(0.0, 0.0), turn=0.0, push=(0.0, 0.0), turns=True):
        """Walk on; a push (2,) m/s at the beginning.  turns: the base follows the heading that is asked."""
        body, planner = self.body, self.planner
        body.speed[:2] += push
        planner.set_velocity(velocity, turn)
        for _ in range(round(duration_s / PERIOD_S)):
            plan = planner.plan(self.time_s, self.q, self.v, self.touch)
            self.plans.append(plan)
            goals, w = plan.goals, planner.rules.rate
            stance = plan.contacts.stance[0]
            # Feedback along the plan: xi = p + e^{w t} (xi0 - p), pressure within what stands.
            xi = body.com[:2] + body.speed[:2] / w
            sample = goals.sample(self.time_s)
            low = [body.places[foot, 2] for foot in np.flatnonzero(stance)]
            self.heights.append(float(np.mean(low) + sample.height[0]))
            p = sample.com[4:6] + (1.0 + 3.0 / w) * (xi - sample.com[:2])
            points = body.points(np.flatnonzero(stance).tolist())
            p = np.clip(p, points.min(axis=0), points.max(axis=0))
            ch, sh = math.cosh(w * PERIOD_S), math.sinh(w * PERIOD_S)
            away, speed = body.com[:2] - p, body.speed[:2].copy()
            body.com[:2] = p + ch * away + sh * speed / w
            body.speed[:2] = w * sh * away + ch * speed
            self.time_s += PERIOD_S
            sample = goals.sample(self.time_s)
            if turns:
                body.heading = float(sample.heading[0])
            for foot, frame in enumerate(body.frames):
                self.touch[foot] = stance[foot]
                if frame in goals.feet:
                    place = sample.feet[list(goals.feet).index(frame), 0]
                    self.follow(foot, place, self.time_s - planner.sequence.lifted_s)
            assert np.linalg.norm(body.com[:2] - body.places[:, :2].mean(axis=0)) < 0.6, "it fell"
        return self


@pytest.fixture(scope="module")
def parts():
    return talos()


@pytest.fixture
def walk(parts):
    return Walk(*parts)


def test_without_a_command_it_stands_and_a_walk_ends_where_it_stands(walk):
    walk.go(0.5)
    assert not any(plan.walking for plan in walk.plans)
    assert walk.plans[-1].goals.feet == {} and walk.plans[-1].contacts.stance.all()
    walk.go(2.0, (0.2, 0.0))
    assert walk.plans[-1].walking
    walk.go(3.0)
    assert not walk.plans[-1].walking
    places = walk.body.group_places()
    assert places[0] - places[1] == pytest.approx(walk.planner.rules.offset, abs=0.03)


@pytest.mark.parametrize("velocity", [(0.5, 0.0), (-0.4, 0.0), (0.0, 0.2), (0.2, -0.1)])
def test_it_goes_as_fast_as_it_is_told(walk, velocity):
    walk.go(4.0, velocity)
    begin, begin_s = walk.body.com[:2].copy(), walk.time_s
    walk.go(6.0, velocity)
    mean = (walk.body.com[:2] - begin) / (walk.time_s - begin_s)
    assert mean == pytest.approx(np.array(velocity), abs=0.04)


def test_it_turns(walk):
    walk.go(3.0, turn=0.4)
    assert walk.planner.heading == pytest.approx(0.4 * 3.0, abs=0.2)
    assert walk.body.yaws == pytest.approx(np.full(2, walk.planner.heading), abs=0.25)


@pytest.mark.parametrize("turn", [0.8, -0.8])
def test_feet_turn_from_the_base_no_further_than_hips(walk, turn):
    """TALOS' hips turn feet inwards by 20 degrees: the one that stands inside of a turn is led further out before it."""
    robot, most = walk.robot, 0.0
    hips = [robot.joint_names.index(f"leg_{side}_1_joint") for side in ("left", "right")]
    for _ in range(int(5.0 / PERIOD_S)):
        walk.go(PERIOD_S, turn=turn)
        turned = walk.body.yaws - walk.body.heading
        beyond = np.maximum(robot.lower[hips] - turned, turned - robot.upper[hips])
        most = max(most, *np.abs(turned).tolist())
        assert beyond.max() < -0.95 * POSITION_MARGIN, "in a soft stop"
    assert most > 0.3


def test_a_base_that_does_not_turn_winds_no_heading_up(walk):
    """Whatever yaw rate is asked for."""
    walk.go(4.0, turn=5.0, turns=False)
    assert 0.2 < walk.planner.heading < 0.5
    assert walk.planner.velocity[2] < 3.0


def test_a_robot_that_is_elsewhere_at_once_is_planned_for_anew(walk):
    """Odometry jumps by a metre in the middle of a swing: no path leads back."""
    walk.go(1.0, velocity=(0.2, 0.0))
    while not walk.plans[-1].goals.feet:
        walk.go(PERIOD_S, velocity=(0.2, 0.0))
    walk.body.places[:, 0] += 1.0
    walk.body.com[0] += 1.0
    plan = walk.planner.plan(walk.time_s, walk.q, walk.v, walk.touch)
    assert plan.restarted and not plan.goals.feet
    assert not walk.planner.sequence.standing  # it goes on at once, by its command


@pytest.mark.parametrize("degrees", [0, 45, 90, 135, 180, 225, 270, 315])
def test_a_push_makes_it_step_and_it_stands_again(walk, degrees):
    """Aside it fell from .55 on: the far foot stepped first, though it cannot go past the near one."""
    angle, speed = math.radians(degrees), 0.65
    walk.go(0.3)
    walk.go(6.0, push=(speed * math.cos(angle), speed * math.sin(angle)))
    assert walk.planner.sequence.steps >= 1
    assert walk.planner.sequence.standing
    assert np.abs(walk.body.speed[:2]).max() < 0.02


def walk_until(walk, event):
    """Walk forwards until the left foot stands, and ``event`` of the sequence."""
    walk.go(2.0, (0.3, 0.0))
    for _ in range(200):
        walk.go(PERIOD_S, (0.3, 0.0))
        if walk.planner.sequence.carry == 0 and event(walk.planner.sequence):
            return
    raise AssertionError("it does not walk")


def test_a_foot_that_has_just_landed_goes_out_again_if_pushed_beyond_it(walk):
    """Else the other one lands beside it first: so a push of .5 m/s felled it."""
    walk_until(walk, lambda sequence: sequence.both)
    walk.go(0.03, (0.3, 0.0), push=(0.0, 0.6))
    assert not walk.planner.sequence.both and walk.planner.sequence.carry == 1
    walk.go(2.5, (0.3, 0.0))


def test_a_foot_that_has_just_lifted_is_set_down_again_if_pushed_away_from_it(walk):
    """The earliest usual landing was .13 s later, and the robot fell."""
    walk_until(walk, lambda sequence: not sequence.both)
    begun_s, place = walk.time_s, walk.body.places[1, :2].copy()
    walk.go(0.02, (0.3, 0.0), push=(0.0, 0.5))
    while walk.planner.sequence.carry == 0:
        walk.go(PERIOD_S, (0.3, 0.0))
    assert walk.time_s - begun_s < 0.1
    assert np.linalg.norm(walk.body.places[1, :2] - place) < 0.02
    walk.go(2.5, (0.3, 0.0))


@pytest.mark.parametrize(("left_s", "most_s"), [(0.09, 0.01), (0.13, 0.04)])
def test_a_foot_that_comes_down_is_not_asked_to_land_much_sooner(walk, left_s, most_s):
    """Pushed so late, it had half of its time, and what it then moves too fast along the ground is there as it lands."""
    walk_until(walk, lambda sequence: not sequence.both)
    sequence = walk.planner.sequence
    while sequence.ends_s - walk.time_s > left_s:
        walk.go(PERIOD_S, (0.3, 0.0))
    lands_s = sequence.ends_s
    walk.go(PERIOD_S, (0.3, 0.0), push=(0.25, 0.0))
    walk.go(0.02, (0.3, 0.0))
    assert lands_s - sequence.ends_s < most_s


def test_pressure_in_a_turned_sole_is_planned_along_the_heading(walk, monkeypatch):
    """Else a millimetre aside, which grows with the divergent component, is bought with the length of the sole."""
    straight, turn = walk.body.points, np.array([[1.0, 0.03], [-0.03, 1.0]])
    monkeypatch.setattr(walk.body, "points", lambda feet: straight(feet) @ turn.T)
    normals, bounds = walk.planner._region((0,))
    assert np.sort(np.abs(normals), axis=1) == pytest.approx(np.tile([0.0, 1.0], (4, 1)), abs=1e-9)
    half = np.array([0.1, 0.0625]) - walk.body.margin_m
    middle = walk.body.places[0, :2]
    assert bounds - normals @ middle == pytest.approx(np.abs(normals) @ half, abs=1e-6)


def test_a_foot_lifts_with_the_plan_that_is_nearest_to_its_time(walk):
    """Not with the one after: xi leaves by a centimetre in that time, and a narrow sole holds little more."""
    sequence, late = walk.planner.sequence, []
    for _ in range(400):
        shifts, ends_s, now_s = (
            sequence.both and not sequence.standing,
            sequence.ends_s,
            walk.time_s,
        )
        walk.go(PERIOD_S, (0.2, 0.1))
        if shifts and not walk.planner.sequence.both:
            late.append(now_s - ends_s)
        sequence = walk.planner.sequence
    assert len(late) > 4
    assert np.abs(late).max() < 0.5 * PERIOD_S + 1e-6


def test_a_walk_gets_faster_no_faster_than_its_soles_hold(walk):
    """Aside they are narrow: TALOS, told .2 m/s to the left and then to the right, was beyond all steps."""
    planner, fastest = walk.planner, np.zeros(2)
    for velocity in ((0.4, 0.2), (-0.4, -0.2)):
        for _ in range(300):
            before = planner.velocity[:2].copy()
            walk.go(PERIOD_S, velocity)
            fastest = np.maximum(fastest, np.abs(planner.velocity[:2] - before) / PERIOD_S)
        assert planner.velocity[:2] == pytest.approx(np.array(velocity), abs=1e-9)
    assert (fastest < 0.7 * planner.rules.rate**2 * planner.rules.sole).all()


@pytest.mark.parametrize("turn", [0.8, -0.8])
def test_it_goes_as_it_is_told_while_it_turns(walk, turn):
    """Steps ahead turn too; the way of a turning walk is no straight one whose direction is wrong."""
    velocity, along = np.array([0.3, 0.0]), []
    walk.go(3.0, velocity, turn)
    for _ in range(600):
        walk.go(PERIOD_S, velocity, turn)
        c, s = math.cos(walk.body.heading), math.sin(walk.body.heading)
        along.append(np.array([[c, s], [-s, c]]) @ walk.body.speed[:2])
    assert np.mean(along, axis=0) == pytest.approx(velocity, abs=0.015)


@pytest.mark.parametrize("way", [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (-0.6, -0.8)])
def test_a_command_faster_than_steps_hold_is_bounded_and_said(walk, way):
    """Nothing falls: what is left of the room of a step is for balance."""
    velocity = 3.0 * np.array(way)
    walk.go(8.0, velocity)
    plan, rules = walk.plans[-1], walk.planner.rules
    begin, begin_s = walk.body.com[:2].copy(), walk.time_s
    walk.go(4.0, velocity)
    mean = (walk.body.com[:2] - begin) / (walk.time_s - begin_s)
    assert mean == pytest.approx(np.array(plan.bounded), abs=0.06)
    ahead, back = rules.reach / (rules.swing_s + rules.double_s)
    assert -0.9 * back < mean[0] < 0.9 * ahead and np.linalg.norm(mean) > 0.15
    walk.go(1.0, (0.2, 0.1))
    assert walk.plans[-1].bounded == ()


def test_legs_do_not_cross(walk):
    """Whatever it is told and pushed, a foothold lies on its own side of the other one."""
    rng, rules, nearest = np.random.default_rng(3), walk.planner.rules, np.inf
    for _ in range(12):
        command = rng.uniform([-0.3, -0.2], [0.4, 0.2])
        walk.go(0.7, command, rng.uniform(-0.4, 0.4), 0.08 * rng.normal(size=2))
        left, right = walk.body.places[:, :2]
        c, s = math.cos(walk.planner.heading), math.sin(walk.planner.heading)
        nearest = min(nearest, float(np.array([-s, c]) @ (left - right)))
    assert nearest > rules.width[0] - 0.03


def test_goals_begin_at_the_state_and_feet_go_on(walk):
    walk.go(2.5, (0.3, 0.0))
    before = None
    for plan in walk.plans:
        goals = plan.goals
        assert goals.start_s == plan.contacts.start_s
        for frame, path in goals.feet.items():
            if before is not None and frame in before.feet:
                last = before.feet[frame]
                after = before.sample(goals.start_s).feet[list(before.feet).index(frame)]
                if goals.start_s - before.start_s < last.landing_s:
                    assert np.abs(path.points[0] - after).max() < 1e-9
        before = goals


def test_a_hole_in_time_begins_anew(walk):
    walk.go(1.0, (0.2, 0.0))
    walk.time_s += 5.0
    walk.go(PERIOD_S)
    assert walk.plans[-1].restarted and not walk.plans[-2].restarted


def test_bad_values_are_refused(walk, parts):
    robot, contacts, posture = parts
    with pytest.raises(ConfigurationError, match="must be 'base' or 'world'"):
        walk.planner.set_velocity((0.1, 0.0), frame="map")
    with pytest.raises(ConfigurationError, match="not finite"):
        walk.planner.set_velocity((math.nan, 0.0))
    with pytest.raises(StateError, match="must have"):
        walk.planner.plan(0.0, walk.q[:-1], walk.v)
    with pytest.raises(StateError, match="not finite"):
        walk.planner.plan(0.0, walk.q * math.nan, walk.v)
    with pytest.raises(StateError, match="not finite"):
        walk.planner.plan(math.nan, walk.q, walk.v)
    with pytest.raises(StateError, match="norm 2, must be 1"):
        walk.planner.plan(0.0, np.concatenate([walk.q[:3], 2.0 * walk.q[3:7], walk.q[7:]]), walk.v)
    with pytest.raises(StateError, match="one for each of the 2 feet"):
        walk.planner.plan(0.0, walk.q, walk.v, np.ones(3, dtype=bool))
    with pytest.raises(ConfigurationError, match="one for each of the 28 joints"):
        WalkingPlanner(robot, contacts, posture[:-1])
    with pytest.raises(ConfigurationError, match="1 feet cannot walk"):
        WalkingPlanner(robot, contacts[:4], posture)


def test_lengths_come_from_the_posture(parts):
    """Of TALOS: 85 cm high, feet 17 cm apart, legs of 70 cm."""
    robot, contacts, posture = parts
    body = Body(robot, contacts, posture)
    assert body.groups == ((0,), (1,)) and body.flat
    assert body.height_m == pytest.approx(0.846, abs=0.01)
    assert body.rules.rate == pytest.approx(math.sqrt(9.81 / body.height_m), rel=1e-3)
    assert body.rules.offset == pytest.approx(np.array([0.0, 0.17]), abs=2e-3)
    assert [leg.length_m for leg in body.legs] == pytest.approx([0.705, 0.705], abs=0.01)
    q = robot.configuration([1.0, -2.0, 0.3, 0.0, 0.0, math.sin(0.5), math.cos(0.5)], posture)
    body.measure(q, np.zeros(robot.nv))
    assert body.heading == pytest.approx(1.0) and body.yaws == pytest.approx(np.ones(2), abs=1e-6)


def test_feet_are_as_fast_as_torques_make_them(parts):
    """By the torques that the whole leg takes for it, from the equation of motion with the base held."""
    robot, contacts, posture = parts
    robot = type(robot)(robot.model.copy(), robot.joint_names)
    body = Body(robot, contacts, posture)
    most, model, data = body.rules.foot_acceleration, robot.model, robot.model.createData()
    leg = [k for k, name in enumerate(robot.joint_names) if name.startswith("leg_left")]
    q, shares = robot.configuration(ORIGIN, posture), []
    frame, rows = robot.frame_id(body.frames[0]), robot.actuated[leg]
    J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)[:, rows]
    for axis in np.eye(6)[:2]:
        a = np.zeros(robot.nv)
        a[rows] = most * np.linalg.solve(J, axis)
        tau = pin.rnea(model, data, q, np.zeros(robot.nv), a)
        tau -= pin.rnea(model, data, q, np.zeros(robot.nv), np.zeros(robot.nv))
        shares.append(np.abs(tau[rows] / robot.effort_limits[leg]).max())
    assert max(shares) == pytest.approx(TORQUE_SHARE, rel=1e-6)
    robot.effort_limits *= 0.5
    assert Body(robot, contacts, posture).rules.foot_acceleration == pytest.approx(0.5 * most)
    robot.effort_limits *= np.inf
    most = Body(robot, contacts, posture).rules.foot_acceleration
    assert most == pytest.approx(FOOT_ACCELERATION * 9.81, rel=1e-3)


# Over the whole body


def test_talos_walks_in_mujoco_as_fast_as_it_is_told():
    """Controller, planner and simulated robot in one process: forwards, then aside; no fall, soles never near."""
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    file = str(CONFIG / "bipeds" / "talos.yaml")
    settings = controller_settings(file)
    run = InProcessRun(file, settings, mujoco_robot(settings, 0.6))
    body, nearest = run.planner.body, np.inf
    marks = []
    for k in range(3600):
        forwards = k < 1800
        run.planner.set_velocity((0.2, 0.0) if forwards else (0.0, 0.1))
        run.advance()
        if k % 10 == 0:
            places = body.places[:, :2]
            nearest = min(nearest, float(np.linalg.norm(places[0] - places[1])))
        if k in (600, 1799, 2400, 3599):
            marks.append(body.com[:2].copy())
        assert body.com[2] > 0.8
    assert (marks[1] - marks[0])[0] / 1.2 == pytest.approx(0.2, abs=0.06)
    assert (marks[3] - marks[2])[1] / 1.2 == pytest.approx(0.1, abs=0.06)
    assert nearest > 2 * 0.0625 + 0.02  # two soles and 2 cm
    assert run.following.outcome.not_following == ""
    assert (run.following.evidence < 0.5 * LIMITS).all()


@pytest.mark.parametrize(
    ("name", "link", "speed", "push_s", "degrees"),
    [("talos", "torso_2_link", 0.6, 2.15, 90.0), ("g1", "torso_link", 0.5, 2.15, 90.0)],
)
def test_who_is_pushed_over_the_foot_that_carries_does_not_fall(name, link, speed, push_s, degrees):
    """Steps aside were shorter than legs reach, and G1's feet slower than its hips make them: both fell within 1.3 s."""
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    file = str(CONFIG / "bipeds" / f"{name}.yaml")
    settings = controller_settings(file)
    way = np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0.0])
    push = Push(push_s, 0.1, speed * settings.robot().mass * way)
    world = DisturbedRobot(mujoco_robot(settings, 0.6), 0, [push], link)
    run = InProcessRun(file, settings, world)
    run.planner.set_velocity((0.3, 0.0))
    while run.state.time_s < push_s + 2.0:
        run.advance()
        assert run.state.q[2] > 0.8 * run.planner.body.height_m


def test_bolt_walks_on_two_points_and_keeps_its_heading():
    """It fell after 2 s: attitude gave way to a centre of mass that no point holds, and light touches were felt late."""
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    file = str(CONFIG / "bipeds" / "bolt.yaml")
    settings = controller_settings(file)
    run = InProcessRun(file, settings, mujoco_robot(settings, 0.6))
    run.planner.set_velocity((0.3, 0.0))
    body, begin = run.planner.body, 0.0
    for k in range(4000):
        period = run.advance()
        begin = body.com[0] if k == 1500 else begin
        assert period.after.q[2] > 0.2 and abs(body.heading) < 0.15
    assert (body.com[0] - begin) / 2.5 == pytest.approx(0.3, abs=0.05)


def test_a_touch_between_two_plans_is_a_landing():
    """G1's soles bounce when they land: 90 ms later they still did not press where a plan looked, and it fell."""
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    file = str(CONFIG / "bipeds" / "g1.yaml")
    settings = controller_settings(file)
    run = InProcessRun(file, settings, mujoco_robot(settings, 0.6))
    run.planner.set_velocity((-0.23, -0.18), -0.97)
    sequence, weight, late = run.planner.sequence, settings.robot().weight, []
    steps, touched_s = 0, None
    for _ in range(4000):
        period = run.advance()
        run.planner.set_velocity((-0.23, -0.18), -0.97)
        sequence, now_s = run.planner.sequence, period.after.time_s
        loads = period.forces[:, 2].reshape(2, -1).sum(axis=1)
        since_s = now_s - sequence.lifted_s
        if sequence.steps > steps:
            late.append(0.0 if touched_s is None else now_s - touched_s)
            steps, touched_s = sequence.steps, None
        elif not sequence.both and touched_s is None and since_s > sequence.patience.early_s:
            touched_s = now_s if loads[1 - sequence.carry] > 0.02 * weight else None
    assert steps >= 6 and max(late) < 0.012


def test_the_ground_is_below_the_lowest_corner_of_a_sole_that_tips(parts):
    """Its middle is in the air then, and a foot that lands there comes late."""
    robot, contacts, posture = parts
    body = Body(robot, contacts, posture)
    flat = body.ground_below([0])
    assert flat == pytest.approx(body.places[0, 2], abs=1e-6)
    tipped = posture.copy()
    tipped[robot.joint_names.index("leg_left_5_joint")] += 0.2
    body.measure(robot.configuration([0, 0, 0, 0, 0, 0, 1], tipped), np.zeros(robot.nv))
    assert body.ground_below([0]) == pytest.approx(
        body.places[0, 2] - 0.1 * math.sin(0.2), abs=2e-3
    )
    assert body.ground_below([0, 1]) == body.ground_below([0])


def test_the_centre_of_mass_is_as_low_as_legs_reach_from_a_higher_foot_to_a_lower_one(parts):
    """By the distance from hip to ankle where both feet stand, and where the other one lifts."""
    robot, contacts, posture = parts
    body = Body(robot, contacts, posture)
    near, far = body.places.copy(), body.places.copy()
    far[1] += [0.3, 0.0, -0.2]
    com, data = far[:, :2].mean(axis=0) + [[0.0, 0.0], [0.04, 0.0]], robot.model.createData()
    assert body.ground_in_reach(near, com) == pytest.approx(near[:, 2].mean())
    led = body.ground_in_reach(far, com)
    assert far[:, 2].mean() - 0.1 * body.height_m < led < far[:, 2].mean() - 0.02
    names = [f"leg_{side}_{{}}_joint" for side in ("left", "right")]
    straight, legs = posture.copy(), []
    straight[[robot.joint_names.index(name.format(4)) for name in names]] = 0.0
    for q, distance in ((straight, True), (posture, False)):
        pin.framesForwardKinematics(
            robot.model, data, robot.configuration([0, 0, 0, 0, 0, 0, 1], q)
        )
        for name in names:
            hip, ankle = (data.oMi[robot.model.getJointId(name.format(k))] for k in (1, 5))
            away = hip.translation - ankle.translation
            legs.append(float(np.linalg.norm(away)) if distance else (hip, ankle))
    shares = []
    for k in range(2):
        hip, ankle = legs[2 + k]
        down = far[k] + ankle.translation - body.places[k]
        for place in com:
            up = np.append(place, led + body.height_m) + hip.translation - body.com
            shares.append(float(np.linalg.norm(up - down)) / legs[k])
    assert max(shares) == pytest.approx(STRAIGHT, abs=1e-3)
    far[1, 2] -= 0.3
    lowest = far[:, 2].mean() - (1.0 - LOWEST) * body.height_m
    assert body.ground_in_reach(far, com) == pytest.approx(lowest)


def test_feet_that_are_toed_out_at_rest_stay_so(parts):
    """The frame of a foot may point elsewhere than forwards."""
    robot, contacts, posture = parts
    turned = posture.copy()
    for name, yaw in (("leg_left_1_joint", 0.2), ("leg_right_1_joint", -0.2)):
        turned[robot.joint_names.index(name)] += yaw
    toed = Walk(robot, contacts, turned)
    before = toed.body.yaws.copy()
    assert np.abs(before).min() > 0.15
    toed.go(2.0, velocity=(0.2, 0.0))
    assert toed.body.yaws == pytest.approx(before, abs=0.02)


def test_a_waist_that_turns_all_feet_bounds_none_of_them(tmp_path):
    """G1 hung on a trunk by a joint that turns by .2 rad at most: its feet turn as far as before."""
    file = CONFIG / "bipeds" / "g1.yaml"
    settings = load_settings(file)
    posture = np.array(ParameterFile(file).section("gait_planner")["posture"])
    text = resolve_urdf(settings.urdf).read_text()
    waist = """<link name="trunk"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0"
        iyz="0"/></inertial></link><joint name="waist" type="revolute"><parent link="trunk"/><child link="pelvis"/>
        <axis xyz="0 0 1"/><limit lower="-0.2" upper="0.2" effort="90" velocity="9"/></joint></robot>"""
    below = tmp_path / "below.urdf"
    below.write_text(text.replace("</robot>", waist))
    robot = settings.robot()
    on_trunk = RobotModel.from_urdf(below, True, [*robot.joint_names, "waist"])
    own = Body(robot, settings.feet, posture).turns
    hung = Body(on_trunk, settings.feet, np.append(posture, 0.0)).turns
    assert (np.ptp(own, axis=1) > 1.0).all()
    np.testing.assert_allclose(hung, own, atol=1e-9)
