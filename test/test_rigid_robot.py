"""The rigid time stepper against Newton, Coulomb, Pinocchio and MuJoCo."""

import numpy as np
import pinocchio as pin
import pytest
from test_mujoco_robot import (
    BLOCK,
    JOINTS,
    QUADRUPED,
    QUADRUPED_FEET,
    SOLO,
    SOLO_FEET,
    STANDING,
    hold,
    quadruped,
    standing,
)
from tolerances import within

from contact_id_controller.exceptions import ConfigurationError, SimulationError, StateError
from contact_id_controller.geometry import (
    FrictionMap,
    HalfSpace,
    HeightField,
    SphereFoot,
    TerrainFeet,
)
from contact_id_controller.models import ROWS, Tangential
from contact_id_controller.robot import RobotModel
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from experiments.rigid.rigid_robot import MODELS, RigidRobot
from experiments.rigid.scene import Body
from experiments.rigid.solids import Box, Sphere
from experiments.rigid.terrain import ball_points
from experiments.rigid.valley_feet import ValleyFeet

G, DT = 9.81, 1e-3
DEPTH_M = 1e-4  # deepest penetration after an impact at several m/s; at rest it is nil
COULOMB = [pair for pair in MODELS if pair[0] == "coulomb"]


def box(size=(0.4, 0.4, 0.1), mass=2.0):
    """A free box alone."""
    a, b, c = np.square(size)
    inertia = mass / 12.0 * np.diag([b + c, a + c, a + b])
    return RobotModel(pin.Model()).with_object(mass, inertia, "block")


def ball(radius=0.1):
    return RobotModel(pin.Model()).with_object(1.0, 0.4 * radius**2 * np.eye(3), "ball")


def corners(radius=0.01, half=0.2, low=-0.04):
    return [SphereFoot("block", radius, (x, y, low)) for x in (-half, half) for y in (-half, half)]


def bumps(seed=0, height=0.03, cell=0.1, half=1.0):
    grid = np.arange(-half, half + cell / 2, cell)
    heights = np.random.default_rng(seed).uniform(0.0, height, (len(grid), len(grid)))
    return HeightField(grid, grid, heights)


def walker(**settings):
    return RigidRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS, **settings)


def on_slope(simulated, degrees):
    """Put a block on ground that falls along x, and turn it to lie flat."""
    q = simulated.robot.neutral()
    q[3:7] = pin.Quaternion(pin.exp3(np.array([0, np.radians(degrees), 0]))).coeffs()
    q[2] = 1.0
    return simulated.reset(simulated.place_on_ground(q))


def slope(degrees):
    angle = np.radians(degrees)
    return HalfSpace((np.sin(angle), 0.0, np.cos(angle)))


def trunk():
    """The quadruped's body as a solid, beside its feet."""
    return [Body("base", Box((0.1, 0.14, 0.02)))]


def droppable(name, model, ground, **settings):
    """Simulated robots that are thrown about below."""
    common = dict(model=model, ground=ground, **settings)
    if name == "quadruped":
        return walker(bodies=trunk() if isinstance(ground, HalfSpace) else (), **common)
    if name == "solo12":
        return RigidRobot(SOLO, SOLO_FEET, **common)
    return RigidRobot(box(), bodies=[Body("block", Box((0.4, 0.4, 0.1)))], **common)


def energy(robot, q, v):
    data = robot.model.createData()
    return pin.computeKineticEnergy(robot.model, data, q, v) + pin.computePotentialEnergy(
        robot.model, data, q
    )


def free_velocity(robot, state, torques):
    """Velocity after one step without any contact, by Pinocchio's own recursion."""
    effort = np.zeros(robot.nv)
    effort[robot.actuated] = torques
    return state.v + DT * pin.aba(robot.model, robot.model.createData(), state.q, state.v, effort)


def kinetic(robot, q, v):
    return pin.computeKineticEnergy(robot.model, robot.model.createData(), q, v)


def drop(simulated, seed, twist):
    """Let it fall a little from a random posture with a random velocity."""
    robot, rng = simulated.robot, np.random.default_rng(seed)
    q = pin.integrate(robot.model, robot.neutral(), rng.uniform(-twist, twist, robot.nv))
    q[:3] = 0.03, 0.03, 0.25
    if simulated.feet:
        q = simulated.place_on_ground(q)
        q[2] += 0.1
    return simulated.reset(q, rng.uniform(-twist, twist, robot.nv))


@pytest.mark.parametrize("model", MODELS, ids="/".join)
@pytest.mark.parametrize(
    "name, uneven, steps",
    [
        ("quadruped", False, 250),
        ("quadruped", True, 250),
        ("solo12", False, 250),
        ("box", False, 250),
        ("box", True, 90),
    ],
)
def test_contact_never_adds_energy(name, uneven, steps, model):
    """Among the same torques contact takes kinetic energy in every single step, or leaves it."""
    simulated = droppable(
        name,
        model,
        bumps() if uneven else HalfSpace(),
        penetration_gain=0.0,
        friction=0.4,
        viscosity_n_s_m=20.0,
    )
    robot, rng, touched = simulated.robot, np.random.default_rng(1), 0
    state = drop(simulated, 5, 0.7)
    for _ in range(steps):
        torques = rng.uniform(-0.2, 0.2, robot.na) - 0.05 * state.v[robot.actuated]
        before = kinetic(robot, state.q, free_velocity(robot, state, torques))
        start = state.q
        state = simulated.step(torques)
        after = kinetic(robot, start, simulated.last_solution.velocity)
        assert after <= before + 1e-9 * max(1.0, before)
        touched += simulated.last_solution.impulses.any()
    # Contacts that may not slip can ask for what no force gives; those steps are few, and counted.
    rare = 0.05 * steps if ROWS[model].tangential is Tangential.NO_SLIP else 0
    assert touched > 10 and simulated.unsolved_steps <= rare


@pytest.mark.parametrize("model", MODELS, ids="/".join)
@pytest.mark.parametrize(
    "name, uneven", [("quadruped", False), ("quadruped", True), ("solo12", False), ("box", False)]
)
def test_penetration_stays_within_the_stated_bound_and_fades(name, uneven, model):
    gain, extent = 0.2, 0.5
    simulated = droppable(
        name,
        model,
        bumps() if uneven else HalfSpace(),
        friction=0.4,
        viscosity_n_s_m=20.0,
        penetration_gain=gain,
    )
    robot = simulated.robot
    state = drop(simulated, 8, 0.5)
    deepest, fastest, touched = 0.0, 0.0, 0
    for _ in range(500):
        state = simulated.step(-0.05 * state.v[robot.actuated])
        gaps = simulated.contacts().gaps
        deepest = min(deepest, gaps.min(initial=0.0))
        fastest = max(fastest, np.abs(state.v[3:]).max())
        touched += simulated.last_solution.impulses.any()
    assert touched > 100
    assert -deepest < (fastest * DT) ** 2 * extent / (2.0 * gain)
    assert -deepest < 2e-3
    if name != "solo12":  # its legs, without any friction, still swing
        assert -gaps.min() < 5e-5


@pytest.mark.parametrize("model", COULOMB, ids="/".join)
def test_block_on_a_slope_sticks_below_the_angle_of_friction(model):
    simulated = RigidRobot(
        box(), corners(), ground=slope(20.0), model=model, friction=np.tan(np.radians(20.5))
    )
    start = on_slope(simulated, 20.0)
    for _ in range(200):
        state = simulated.step(np.zeros(0))
    exact = within(model, 1e-10)
    assert np.abs(state.v).max() < exact
    np.testing.assert_allclose(state.q[:3], start.q[:3], atol=exact)
    forces = simulated.contact_forces().sum(axis=0)
    np.testing.assert_allclose(forces, [0, 0, 2 * G], atol=within(model, 1e-6))


@pytest.mark.parametrize("model", COULOMB, ids="/".join)
def test_block_on_a_slope_slides_above_it_as_newton_says(model):
    mu, angle = 0.3, np.radians(30.0)
    simulated = RigidRobot(box(), corners(), ground=slope(30.0), model=model, friction=mu)
    on_slope(simulated, 30.0)
    speeds = [simulated.step(np.zeros(0)).v[0] for _ in range(100)]
    expected = G * (np.sin(angle) - mu * np.cos(angle))
    np.testing.assert_allclose(np.diff(speeds)[20:] / DT, expected, rtol=within(model, 1e-6))


@pytest.mark.parametrize("model", COULOMB, ids="/".join)
def test_sliding_block_stops_where_newton_and_mujoco_say(tmp_path, model):
    path = tmp_path / "block.urdf"
    path.write_text(BLOCK)
    mu, speed = 0.5, np.array([1.0, 0.0, 0, 0, 0, 0])
    stops = []
    for simulated in (
        RigidRobot(path, corners(), friction=mu, model=model),
        MujocoRobot(path, corners(), friction=mu),
    ):
        start = simulated.place_on_ground(simulated.robot.neutral())
        simulated.reset(start, speed)
        for _ in range(300):
            state = simulated.step(np.zeros(0))
        assert abs(state.v[0]) < 1e-3
        stops.append(state.q[0] - start[0])
    assert stops[0] == pytest.approx(1.0 / (2.0 * mu * G), rel=0.01)
    assert stops[0] == pytest.approx(stops[1], rel=0.01)


def slide(simulated, velocity, steps=300):
    """Heights (steps,) of a block that starts to slide on flat ground, and its last state, m."""
    start = simulated.place_on_ground(simulated.robot.neutral())
    simulated.reset(start, velocity)
    states = [simulated.step(np.zeros(0)) for _ in range(steps)]
    return np.array([state.q[2] - start[2] for state in states]), states[-1]


@pytest.mark.parametrize("model", COULOMB, ids="/".join)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("mu, speed", [(0.1, 0.3), (0.5, 1.0), (0.8, 2.0), (2.0, 3.0)])
def test_a_block_that_starts_to_slide_stays_on_the_ground(model, axis, mu, speed):
    simulated = RigidRobot(box(), corners(), friction=mu, model=model)
    velocity = np.zeros(6)
    velocity[axis] = speed
    heights, last = slide(simulated, velocity, int(speed / (mu * G * DT)) + 20)
    assert np.abs(heights).max() < 1e-6
    assert np.abs(last.v).max() < 1e-6 and simulated.unsolved_steps == 0
    # In a step of DT the first order method is at most speed DT / 2 off.
    assert last.q[axis] == pytest.approx(speed**2 / (2 * mu * G), abs=0.51 * speed * DT)


@pytest.mark.parametrize("mu, speed", [(0.3, 1.0), (1.0, 3.0)])
@pytest.mark.parametrize("edges", [4, 8])
@pytest.mark.parametrize("degrees", [0, 20, 45, 200])
def test_sliding_and_turning_are_those_of_complementarity(mu, speed, edges, degrees):
    """Three feet, so that loads are unique: coulomb/lcp is the judge of coulomb/qp."""
    feet = [
        SphereFoot("block", 0.01, (x, y, -0.04)) for x, y in ((-0.2, 0), (0.2, -0.2), (0.2, 0.2))
    ]
    angle = np.radians(degrees)
    velocity = np.array([speed * np.cos(angle), speed * np.sin(angle), 0, 0, 0, 2.0])
    heights, ends = [], []
    for model in COULOMB:
        simulated = RigidRobot(box(), feet, friction=mu, model=model, edges=edges)
        height, last = slide(simulated, velocity, 100)
        heights.append(np.abs(height).max())
        ends.append(np.concatenate([last.q, last.v]))
        assert simulated.unsolved_steps == 0
        assert simulated.last_solution.residuals()["gap_m_s"] < 1e-5
    assert max(heights) < 1e-5
    np.testing.assert_allclose(ends[0], ends[1], atol=2e-4)


def test_a_block_that_lands_while_it_slides_neither_bounces_nor_sinks():
    for model in COULOMB:
        simulated = RigidRobot(box(), corners(), friction=0.5, model=model)
        heights, last = slide(simulated, np.array([1.0, 0, -1.0, 0, 0, 0]))
        assert np.abs(heights).max() < 1e-6
        # The landing takes mu times its own speed from the slip.
        assert last.q[0] == pytest.approx(0.5**2 / (2 * 0.5 * G), abs=2 * DT)


def test_viscous_block_reaches_its_final_speed():
    simulated = RigidRobot(
        box(), corners(), ground=slope(30.0), model=("viscous", "lcp"), viscosity_n_s_m=50.0
    )
    on_slope(simulated, 30.0)
    for _ in range(200):
        state = simulated.step(np.zeros(0))
    assert state.v[0] == pytest.approx(2.0 * G * 0.5 / (4 * 50.0), rel=1e-6)


def test_without_slip_even_a_wall_of_ice_holds():
    simulated = RigidRobot(
        box(), corners(), ground=slope(40.0), model=("no_slip", "lcp"), friction=0.0
    )
    on_slope(simulated, 40.0)
    for _ in range(100):
        state = simulated.step(np.zeros(0))
    assert np.abs(state.v).max() < 1e-9


def test_ball_rolls_as_newton_says_and_as_mujoco_does(tmp_path):
    """Thrown without spin it slides until v = r omega = 5/7 of its speed."""
    radius, inertia = 0.1, 0.4 * 0.1**2
    path = tmp_path / "ball.urdf"
    light = BLOCK.replace('mass value="2"', 'mass value="1"')
    path.write_text(light.replace('"0.02"', f'"{inertia}"'))
    speeds = []
    for simulated in (
        RigidRobot(path, [SphereFoot("block", radius)], friction=0.5),
        MujocoRobot(path, [SphereFoot("block", radius)], friction=0.5),
    ):
        start = simulated.place_on_ground(simulated.robot.neutral())
        simulated.reset(start, np.array([1.0, 0, 0, 0, 0, 0]))
        for _ in range(300):
            state = simulated.step(np.zeros(0))
        world = pin.Quaternion(state.q[3:7]).matrix() @ state.v[:3]
        assert state.q[2] == pytest.approx(radius, abs=2e-5)
        speeds.append(world[0])
    assert speeds[0] == pytest.approx(5.0 / 7.0, rel=1e-3)
    assert speeds[0] == pytest.approx(speeds[1], rel=5e-3)


@pytest.mark.parametrize("model", COULOMB, ids="/".join)
def test_a_landing_robot_moves_as_in_mujoco(model):
    """Dropped 2 cm on its feet, held by a PD: height, posture and load agree within a little."""
    states, forces = [], []
    for simulated in (walker(model=model), quadruped()):
        q = standing(simulated)
        q[2] += 0.02
        simulated.reset(q)
        states.append(hold(simulated, 0.5))
        forces.append(simulated.contact_forces())
    # Feet that stick keep what tension the landing left in them.
    np.testing.assert_allclose(states[0].q[:7], states[1].q[:7], atol=3e-4)
    np.testing.assert_allclose(states[0].q, states[1].q, atol=1e-2)
    np.testing.assert_allclose(forces[0][:, 2], forces[1][:, 2], atol=0.6)
    assert forces[0][:, 2].sum() == pytest.approx(47.088, rel=0.02)


def test_a_collapsing_robot_comes_to_lie_on_its_trunk():
    simulated = walker(bodies=trunk())
    simulated.reset(standing(simulated))
    for _ in range(600):
        state = simulated.step(-0.01 * simulated.state().v[6:])
    assert state.q[2] == pytest.approx(0.01, abs=2e-3)  # half of the trunk's thickness
    carried = simulated.last_solution.forces[:, 2].sum()
    assert carried == pytest.approx(47.088, rel=0.05)
    assert simulated.contact_forces()[:, 2].sum() < 0.5 * carried


@pytest.mark.parametrize(
    "make, substeps", [(walker, 3), (quadruped, 1), (quadruped, 4)], ids=lambda each: str(each)[:12]
)
def test_contact_impulses_account_for_the_momentum_of_a_landing(make, substeps):
    simulated = make(substeps=substeps)
    q = standing(simulated)
    q[2] += 0.02
    state, impulse, robot = simulated.reset(q), np.zeros(3), simulated.robot
    for _ in range(150):
        error = STANDING - state.q[robot.q_index]
        state = simulated.step(40.0 * error - 0.1 * state.v[robot.actuated])
        impulse += simulated.contact_forces().sum(axis=0) * simulated.period_s
    data = robot.model.createData()
    momentum = pin.computeCentroidalMomentum(robot.model, data, state.q, state.v).linear
    assert impulse[2] > 2.0
    np.testing.assert_allclose(momentum, impulse - (0, 0, robot.weight * state.time_s), atol=0.02)


def test_a_robot_is_placed_on_uneven_ground_and_stays_there():
    simulated = walker(ground=bumps(3), friction=1.0)
    q = standing(simulated)
    q[:2] = 0.1, -0.2
    q[2] = 0.5
    q = simulated.place_on_ground(q)
    simulated.reset(q)
    gaps = simulated.contacts().gaps
    assert gaps.min() == pytest.approx(0.0, abs=1e-8)
    state = hold(simulated, 1.0)
    assert np.linalg.norm(state.v) < 0.2
    assert simulated.contact_forces()[:, 2].sum() == pytest.approx(47.088, rel=0.01)


def test_feet_on_a_height_field_have_the_contacts_of_the_general_search():
    rng, robot = np.random.default_rng(0), ball()
    data = robot.model.createData()
    several = 0
    for height, radius in ((0.03, 0.01), (0.3, 0.05), (0.3, 0.2)):
        field = bumps(1, height)
        feet, alone = (
            kind(robot, [SphereFoot("ball", radius)], field) for kind in (ValleyFeet, TerrainFeet)
        )
        for _ in range(150):
            center = np.append(rng.uniform(-1.02, 1.02, 2), rng.uniform(0.0, height + radius))
            pin.forwardKinematics(robot.model, data, np.concatenate([center, [0, 0, 0, 1.0]]))
            feet.update(data)
            contacts, foot = feet.touching(0.01)
            expected = ball_points(center, radius, field, 0.01, 0)
            assert len(contacts) == len(expected) == len(foot)
            several += len(expected) > 1
            for k, other in enumerate(expected):
                np.testing.assert_allclose(contacts.points[k], other.point, atol=1e-12)
                np.testing.assert_allclose(contacts.normals[k], other.normal, atol=1e-10)
                assert contacts.gaps[k] == pytest.approx(other.gap, abs=1e-12)
            if expected:
                alone.update(data)
                np.testing.assert_array_equal(alone.points, feet.points)
                assert alone.gaps[0] == pytest.approx(min(p.gap for p in expected), abs=1e-12)
    assert several > 30


def test_a_spinning_body_in_flight_keeps_its_momentum():
    simulated = RigidRobot(box())
    q = simulated.robot.neutral()
    q[2] = 5.0
    state = simulated.reset(q, np.array([1.0, 2.0, 0.0, 3.0, 8.0, 5.0]))
    for _ in range(500):
        state = simulated.step(np.zeros(0))
    world = pin.Quaternion(state.q[3:7]).matrix() @ state.v[:3]
    np.testing.assert_allclose(world, [1.0, 2.0, -0.5 * G], atol=1e-9)


def test_friction_drawn_by_place_is_the_same_for_the_same_seed_and_within_its_bounds():
    points = np.random.default_rng(0).uniform(-5, 5, (5000, 3))
    values = FrictionMap(0.1, 1.5, seed=3)(points)
    np.testing.assert_array_equal(values, FrictionMap(0.1, 1.5, seed=3)(points))
    assert not np.array_equal(values, FrictionMap(0.1, 1.5, seed=4)(points))
    assert 0.1 <= values.min() < 0.12 and 1.48 < values.max() <= 1.5
    assert values.mean() == pytest.approx(0.8, abs=0.02)
    near = np.array([[0.001, 0.001, 0.0], [0.019, 0.019, 0.5], [0.021, 0.001, 0.0]])
    first, second, third = FrictionMap(0.1, 1.5, seed=3)(near)
    assert first == second != third


def test_friction_by_place_acts_under_each_foot():
    """A block pushed along slides by the coefficients of the patches its feet stand on."""
    ground = FrictionMap(0.2, 0.9, patch_m=0.05, seed=2)
    simulated = RigidRobot(box(), corners(), friction=ground)
    q = simulated.place_on_ground(simulated.robot.neutral())
    simulated.reset(q, np.array([1.0, 0, 0, 0, 0, 0]))
    simulated.step(np.zeros(0))
    forces = simulated.contact_forces()
    expected = ground(simulated.last_solution.problem.contacts.points)
    # Three of four feet carry a rigid block; which ones rounding decides, and 0 N times 0.382 is 0 N.
    np.testing.assert_allclose(-forces[:, 0], expected * forces[:, 2], rtol=1e-6, atol=1e-9)
    carrying = forces[:, 2] > 0.1
    assert np.count_nonzero(carrying) >= 3 and np.ptp(expected[carrying]) > 0.1


@pytest.mark.parametrize("make", [walker, quadruped])
@pytest.mark.parametrize(
    "command",
    [np.full(12, np.nan), np.append(np.zeros(11), np.inf), np.ones(11), np.ones((12, 1)), 3.0],
)
def test_bad_commands_become_zero_and_are_counted(make, command):
    simulated = make()
    q = standing(simulated)
    simulated.reset(q)
    expected = simulated.step(np.zeros(12))
    simulated.reset(q)
    state = simulated.step(command)
    assert simulated.refused_commands == 1
    np.testing.assert_array_equal(state.v, expected.v)


def test_it_stands_in_for_mujoco():
    """Whatever MujocoRobot offers beside MuJoCo itself is there, and means the same."""
    rigid, other = walker(period_s=0.002, substeps=2), quadruped(period_s=0.002, substeps=2)
    public = {name for name in dir(other) if not name.startswith(("_", "mujoco_"))}
    assert public <= set(dir(rigid))
    q = standing(other)
    np.testing.assert_allclose(standing(rigid), q, atol=1e-9)
    rigid.reset(q)
    other.reset(q)
    assert rigid.contact_names == other.contact_names and rigid.foot_frames == other.foot_frames
    np.testing.assert_allclose(rigid.foot_positions(), other.foot_positions(), atol=1e-9)
    for simulated in (rigid, other):
        assert simulated.step(np.zeros(12)).time_s == pytest.approx(0.002)
        assert simulated.contact_forces().shape == (4, 3)


def test_a_state_given_out_is_not_changed_by_the_next_step():
    simulated = walker()
    first = simulated.reset(standing(simulated))
    q = first.q.copy()
    for _ in range(20):
        simulated.step(np.ones(12))
    np.testing.assert_array_equal(first.q, q)


@pytest.mark.parametrize("make, torque", [(walker, 1e200), (quadruped, 1e12)])
def test_a_diverged_simulation_is_an_error_not_a_silent_restart(
    make, torque, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log into the working directory
    simulated = make()
    simulated.reset(standing(simulated))
    with pytest.raises(SimulationError, match="diverged at 0.0"):
        for _ in range(50):
            simulated.step(np.full(12, torque))


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(model=("coulomb", "qcqp")), "coulomb/qcqp.*coulomb/lcp"),
        (dict(period_s=0.0), "period_s is 0.0"),
        (dict(substeps=0), "substeps 0"),
        (dict(penetration_gain=2.0), "penetration_gain"),
        (dict(ground=Sphere(1.0)), "Sphere"),
    ],
)
def test_bad_settings_are_refused_by_name(change, message):
    with pytest.raises(ConfigurationError, match=message):
        walker(**change)


def test_impossible_states_and_placings_are_refused():
    with pytest.raises(StateError, match="q has shape"):
        walker().reset(np.full(19, np.nan))
    with pytest.raises(ConfigurationError, match="floating base"):
        RigidRobot(box()).place_on_ground(np.zeros(7))
