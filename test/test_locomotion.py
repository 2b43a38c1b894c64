"""The locomotion experiment: what its runs measure, and that what should walk walks."""

import dataclasses
import json

import numpy as np
import pinocchio as pin
import pytest
from test_mujoco_robot import JOINTS, QUADRUPED, QUADRUPED_FEET, STANDING, block, hold, standing

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import (
    FootContacts,
    FrictionMap,
    HalfSpace,
    HeightField,
    SphereFoot,
    TerrainFeet,
    stand_on,
)
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, feet_of
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.state import RobotState
from experiments.papers import locomotion
from experiments.papers.compliant_robot import CompliantRobot
from experiments.papers.locomotion import (
    CONTROLLERS,
    LocomotionRun,
    prepare,
    run_locomotion,
)
from experiments.papers.locomotion_figures import MEANINGS, Companion, figures
from experiments.papers.stabiliser import Stabiliser
from experiments.papers.terrains import (
    COMPLIANT_GROUND,
    FRICTION_RANGE,
    TERRAINS,
    UNEVEN_CONTROLLER,
    UNEVEN_PLANNER,
    Ground,
    bumpy_field,
)
from experiments.rigid.rigid_robot import RigidRobot

PLANES = [name for name, kind in TERRAINS.items() if not kind.bumps]


def short(controller, terrain, **changes):
    return run_locomotion(LocomotionRun(controller, terrain, **{"duration_s": 0.42, **changes}))


@pytest.mark.parametrize("terrain", TERRAINS)
@pytest.mark.parametrize("engine", ["mujoco", "rigid"])
def test_the_coulomb_controller_steps_on_every_terrain_in_both_engines(terrain, engine):
    result = short("qp_mu", terrain, engine=engine)
    measured = result["figures"]
    assert measured["finished"] and measured["duration_s"] == pytest.approx(0.42)
    assert set(measured["status_counts"]) == {"solved"}
    assert measured["mean_joint_position_error_rad"] < 0.05
    assert measured["normal_force_error_of_simulated"] < 0.06
    assert measured["torque_mean_nm"] < 1.0


@pytest.mark.parametrize(
    "controller, model",
    [("lcp_mu", "coulomb/lcp"), ("no_slip_lcp", "no_slip/lcp"), ("qp_mu", "coulomb/qp")],
)
def test_with_the_papers_settings_the_matching_rigid_ground_answers_as_predicted(controller, model):
    """Time constant one period, no drift term: the simulator solves the controller's problem."""
    result = short(
        controller,
        "rigid_low",
        engine="rigid",
        engine_model=model,
        settings="papers",
        duration_s=0.6,
    )
    measured = result["figures"]
    assert measured["finished"]
    assert measured["normal_force_error_of_simulated"] < 1e-3
    assert measured["normal_force_error_median_n"] < 1e-6


def test_another_contact_model_in_the_simulator_is_noticed():
    """The figure above can fail: Coulomb friction against a law of viscous friction."""
    run = LocomotionRun("lcp_mu", "rigid_low", engine="rigid", settings="papers", duration_s=0.2)
    same = run_locomotion(run)["figures"]["normal_force_error_median_n"]
    walk, _ = prepare(run)
    walk.world = RigidRobot(
        QUADRUPED, QUADRUPED_FEET, joints=JOINTS, model=("viscous", "lcp"), viscosity_n_s_m=1.0
    )
    walk.state = walk.world.reset(walk.state.q)
    companion = Companion(walk.robot, walk.controller, walk.planner)
    other = figures(walk.record(0.2, each=companion.add), companion)["figures"]
    assert same < 1e-6 < 1e-3 < other["foot_force_error_n"]


def test_a_result_is_json_says_what_was_run_and_explains_its_figures():
    run = LocomotionRun("qp_mu", "height_field", seed=4, duration_s=0.1)
    result = run_locomotion(run)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert LocomotionRun(**result["run"]) == run
    assert set(MEANINGS) <= set(result["figures"])
    assert len(result["series"]["time_s"]) == len(result["series"]["normal_force_error_n"]) == 100


def test_the_same_seed_gives_the_same_run_and_another_one_another():
    first, again, other = (
        short("qp_mu", "height_field", seed=seed, duration_s=0.2) for seed in (1, 1, 2)
    )
    for result in (first, again, other):
        for name in [name for name in result["figures"] if "_time_" in name and "fell" not in name]:
            del result["figures"][name]
    assert first["figures"] == again["figures"] != other["figures"]
    assert first["series"] == again["series"]


def test_figures_are_the_stated_means():
    """Against the same numbers computed here from the periods themselves."""
    run = LocomotionRun("qp_mu", "rigid_high", duration_s=0.5)
    walk, _ = prepare(run)
    companion, periods = Companion(walk.robot, walk.controller, walk.planner), []

    def each(period):
        periods.append(period)
        companion.add(period)

    measured = figures(walk.record(0.5, each=each), companion)["figures"]
    plan = np.array([p.result.reference.position for p in periods])
    position = np.array([p.before.q[walk.robot.q_index] for p in periods])
    torque = np.array([p.result.torques for p in periods])
    predicted = np.array([p.result.forces[:, 2].sum() for p in periods])
    applied = np.array([p.forces[:, 2].sum() for p in periods])
    error = np.abs(predicted - applied).mean()
    assert measured["mean_joint_position_error_rad"] == pytest.approx(
        np.abs(plan - position).mean()
    )
    assert measured["torque_mean_nm"] == pytest.approx(np.abs(torque).mean())
    assert measured["torque_rate_mean_nm_s"] == pytest.approx(
        np.abs(np.diff(torque, axis=0)).mean() / 1e-3
    )
    assert measured["normal_force_error_n"] == pytest.approx(error)
    assert measured["normal_force_error_of_simulated"] == pytest.approx(error / applied.mean())
    assert applied.mean() == pytest.approx(47.088, rel=0.02)


def test_a_robot_that_falls_ends_the_run_and_is_reported(monkeypatch):
    """Its motors are off: it goes down on its knees."""
    run = LocomotionRun("qp_mu", "rigid_high", duration_s=2.0)
    walk, _ = prepare(run)
    step = walk.world.step
    monkeypatch.setattr(walk.world, "step", lambda torques: step(0.0 * torques))
    monkeypatch.setattr(locomotion, "prepare", lambda _: (walk, Ground.make("rigid_high", 0)))
    measured = run_locomotion(run)["figures"]
    assert not measured["finished"] and 0.05 < measured["fell_time_s"] < 1.0
    assert measured["duration_s"] == pytest.approx(measured["fell_time_s"], abs=2e-3)


def test_a_plan_that_begins_far_away_is_refused_and_the_walk_goes_on(monkeypatch):
    """As in the node: a robot that falls gets plans that begin anywhere."""
    walk, _ = prepare(LocomotionRun("qp_mu", "rigid_high"))
    walk.advance()
    make, sent = walk.planner.plan, []

    def far_away(*state):
        plan = make(*state)
        moved = plan.joints._replaced(positions=plan.joints.positions + 2.0)
        sent.append(dataclasses.replace(plan, joints=moved))
        return sent[-1]

    monkeypatch.setattr(walk.planner, "plan", far_away)
    for _ in range(100):
        assert np.abs(walk.advance().result.reference.position).max() < 1.5
    assert sent and np.abs(walk.state.v).max() < 0.5


def test_the_stabiliser_presses_with_the_feet_on_the_side_that_sinks():
    """Virtual forces by hand: the base low and rolled to the left, all feet standing."""
    walk, _ = prepare(LocomotionRun("pid", "rigid_high"))
    robot, state = walk.robot, walk.state
    feet = list(walk.settings.contact_frames)
    stabiliser = Stabiliser(robot, walk.planner, state.q[2], feet)
    np.testing.assert_allclose(stabiliser.torques(walk.controller, state), 0.0, atol=1e-9)
    q = state.q.copy()
    roll, sink = -0.01, 0.004  # negative roll: the left side goes down
    q[2] -= sink
    q[3:7] = pin.Quaternion(pin.exp3(np.array([roll, 0, 0]))).coeffs()
    added = stabiliser.torques(walk.controller, RobotState(0.0, q, np.zeros(robot.nv)))
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)
    y = np.array([data.oMf[robot.frame_id(name)].translation[1] for name in feet])
    # Least forces with sum 1e2 sink and moment 1e3 |roll| about x are affine in y.
    forces = 1e2 * sink / 4.0 + 1e3 * -roll * (y - y.mean()) / np.square(y - y.mean()).sum()
    assert (forces > 0.0).tolist() == [True, False, True, False]
    expected = np.zeros(robot.nv)
    for name, force in zip(feet, forces):
        frame = pin.getFrameJacobian(
            robot.model, data, robot.frame_id(name), pin.LOCAL_WORLD_ALIGNED
        )
        expected -= max(force, 0.0) * frame[2]
    np.testing.assert_allclose(added, expected[robot.actuated], rtol=0.03, atol=0.02)


def test_the_stabiliser_steadies_the_pid_reference(monkeypatch):
    run = LocomotionRun("pid", "rigid_low", duration_s=0.6)
    steady = run_locomotion(run)["figures"]
    monkeypatch.setitem(CONTROLLERS, "pid", CONTROLLERS["pid"]._replace(stabilised=False))
    alone = run_locomotion(run)["figures"]
    assert (
        steady["finished"]
        and steady["mean_joint_position_error_rad"] < alone["mean_joint_position_error_rad"]
    )


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_of_the_comparison_stands_and_begins_to_step(controller):
    measured = short(controller, "rigid_low", duration_s=0.35)["figures"]
    assert measured["finished"]
    predicts = controller not in ("pid", "sensed_1", "sensed_2")
    assert (measured["normal_force_error_n"] is not None) == predicts


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(controller="lqr"), "no controller 'lqr'.*qp_mu"),
        (dict(terrain="moon"), "no terrain 'moon'.*rigid_low"),
        (dict(engine="bullet"), "no engine 'bullet'.*mujoco"),
        (dict(engine="rigid", engine_model="coulomb/qcqp"), "no simulation of coulomb/qcqp"),
        (dict(settings="mine"), "no settings 'mine'.*papers"),
        (dict(duration_s=-1.0), "duration_s"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(change, message):
    with pytest.raises(ConfigurationError, match=message):
        run_locomotion(LocomotionRun(**{"controller": "qp_mu", "terrain": "rigid_low", **change}))


def test_compliant_ground_gives_way_by_one_millimetre_in_both_engines():
    soft = CompliantRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS)
    other = MujocoRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS, ground=COMPLIANT_GROUND)
    for simulated in (soft, other):
        simulated.reset(standing(simulated))
        hold(simulated, 0.5)
        depth = 0.01 - simulated.foot_positions()[:, 2]
        np.testing.assert_allclose(depth, 1e-3, rtol=0.02)
        assert simulated.contact_forces()[:, 2].sum() == pytest.approx(47.088, rel=1e-3)


@pytest.mark.parametrize("slope, sticks", [(0.25, True), (0.35, False)])
def test_compliant_ground_holds_below_the_friction_angle_and_lets_go_above(slope, sticks):
    simulated = CompliantRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS, friction=0.3)
    simulated.robot.model.gravity.linear = 9.81 * np.array([slope, 0.0, -1.0])
    simulated.reset(standing(simulated))
    hold(simulated, 0.5)
    before = simulated.foot_positions()[:, 0]
    hold(simulated, 0.1)
    moved = simulated.foot_positions()[:, 0] - before
    if sticks:
        assert np.abs(moved).max() < 5e-5
    else:
        forces = simulated.contact_forces()
        sliding = np.linalg.norm(forces[:, :2], axis=1) / forces[:, 2]
        np.testing.assert_allclose(sliding, 0.3, rtol=0.02)
        assert moved.min() > 1e-3


def test_compliant_ground_needs_feet_and_a_sink():
    for feet, sink in ((QUADRUPED_FEET, 0.0), ([], 1e-3)):
        with pytest.raises(ConfigurationError, match="sink_m"):
            CompliantRobot(QUADRUPED, feet, sink_m=sink)


def test_mujoco_has_the_same_uneven_ground():
    """Balls let down anywhere come to touch where our own geometry says the surface is."""
    field, rng = bumpy_field(2), np.random.default_rng(1)
    feet = [SphereFoot("LF_FOOT", 0.01)]
    for _ in range(12):
        simulated = MujocoRobot(QUADRUPED, feet, joints=JOINTS, terrain=field)
        q = simulated.robot.configuration([0, 0, 0.5, 0, 0, 0, 1], STANDING)
        q[:2] = rng.uniform(-1.0, 1.0, 2)
        q = simulated.place_on_ground(q)
        for lift, touches in ((1e-4, False), (-1e-4, True)):
            q[2] += lift
            simulated.reset(q)
            simulated.step(np.zeros(12))
            assert (simulated.contact_forces()[0, 2] > 0.0) == touches
            q[2] -= lift


def test_a_robot_comes_to_rest_alike_on_uneven_ground_of_both_engines():
    field, ends = bumpy_field(0), []
    for simulated in (
        MujocoRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS, friction=1.0, terrain=field),
        RigidRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS, friction=1.0, ground=field),
    ):
        q = simulated.robot.configuration([0.03, -0.07, 0.5, 0, 0, 0, 1], STANDING)
        simulated.reset(simulated.place_on_ground(q))
        ends.append(hold(simulated, 0.5).q)
    np.testing.assert_allclose(ends[0][:3], ends[1][:3], atol=1.5e-3)
    np.testing.assert_allclose(ends[0][3:], ends[1][3:], atol=0.02)


def test_mujoco_takes_friction_from_the_place_of_each_foot(tmp_path):
    friction = FrictionMap(*FRICTION_RANGE, seed=5)
    simulated = block(tmp_path, friction=friction)
    simulated.reset(simulated.state().q, np.array([1.0, 0, 0, 0, 0, 0]))
    used = []
    for _ in range(8):
        expected = friction(simulated.foot_positions())
        simulated.step(np.zeros(0))
        forces = simulated.contact_forces()
        for force, mu in zip(forces, expected):
            if force[2] > 0.1:
                assert -force[0] / force[2] == pytest.approx(mu, rel=0.02)
                used.append(mu)
    assert len(used) >= 3 and np.ptp(used) > 0.3


def test_mujoco_asks_for_the_friction_where_a_foot_touches_not_at_its_centre():
    field = bumpy_field(0)
    simulated = MujocoRobot(
        QUADRUPED,
        QUADRUPED_FEET,
        joints=JOINTS,
        friction=lambda points: 1.0 + 0.0 * points[:, 0],
        terrain=field,
    )
    simulated.reset(standing(simulated))
    hold(simulated, 0.3)
    pin.forwardKinematics(simulated.robot.model, simulated.robot.data, simulated.state().q)
    feet = TerrainFeet(simulated.robot, QUADRUPED_FEET, field)
    feet.update(simulated.robot.data)
    told, off_centre = simulated._contact_points(), feet.points - simulated.foot_positions()
    loaded = simulated.contact_forces()[:, 2] > 1.0
    assert loaded.sum() >= 2 and np.linalg.norm(off_centre[loaded, :2], axis=1).max() > 1e-3
    np.testing.assert_allclose(told[loaded], feet.points[loaded], atol=3e-4)


def test_a_foot_that_leaves_compliant_ground_is_not_held_by_infinite_friction():
    simulated = CompliantRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS, friction=np.inf)
    simulated.reset(standing(simulated))
    up, place = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    pressed = simulated._push(0, place, np.array([0.1, 0.0, 0.0]), up, 1e-3, np.inf)
    assert pressed[2] > 1.0 and pressed[0] < -1e-3
    leaving = simulated._push(0, place, np.array([0.1, 0.0, 10.0]), up, 1e-3, np.inf)
    np.testing.assert_array_equal(leaving, 0.0)


def test_feet_on_uneven_ground_are_what_the_controller_is_told():
    """Contacts, normals and friction of controller and simulator agree at the start."""
    walk, ground = prepare(LocomotionRun("lcp_mu", "height_field", engine="rigid", seed=3))
    period = walk.advance()
    feet, theirs = walk.controller.feet, walk.world.last_solution.problem.contacts
    assert period.result.contact.any()
    for i in np.flatnonzero(period.result.contact):
        k = theirs.frames.index(feet.feet[i].frame)
        np.testing.assert_allclose(feet.normals[i], theirs.normals[k], atol=1e-9)
        chosen = feet.select(np.arange(4) == i)
        assert chosen.friction[0] == theirs.friction[k] == ground.friction(theirs.points)[k]


@pytest.mark.parametrize("seed", range(3))
def test_a_run_on_uneven_ground_starts_with_every_foot_down(seed):
    """Legs stretch vertically below a level base; on a plane nothing changes."""
    walk, _ground = prepare(LocomotionRun("qp_mu", "height_field", seed=seed))
    robot, feet, q = walk.robot, walk.controller.feet, walk.state.q
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    feet.update(data)
    np.testing.assert_allclose(feet.gaps, 0.0, atol=1e-8)
    np.testing.assert_array_equal(np.delete(q[:7], 2), [0, 0, 0, 0, 0, 1])
    level, _ = prepare(LocomotionRun("qp_mu", "rigid_low"))
    plane = level.state.q.copy()
    flat = FootContacts(robot, feet_of(walk.settings), HalfSpace())
    np.testing.assert_allclose(stand_on(flat, robot, plane), plane, atol=1e-8)
    pin.forwardKinematics(robot.model, data, plane)
    places = feet.points.copy()
    flat.update(data)
    assert np.abs(places[:, :2] - flat.points[:, :2]).max() < 0.005  # by the slope under the sphere


def test_a_base_is_lower_where_a_leg_is_too_short_for_its_ground():
    """Legs that are straight have no finite step: a hip was turned by 45 rad, and the robot thrown."""
    walk, _ = prepare(LocomotionRun("qp_mu", "rigid_low"))
    robot, q = walk.robot, walk.state.q
    ahead = walk.controller.feet.points[:, 0].max()
    step = HeightField(
        np.array([-1.0, ahead - 0.06, ahead - 0.05, 1.0]),
        np.array([-1.0, 1.0]),
        np.array([[-0.06] * 2, [-0.06] * 2, [0.06] * 2, [0.06] * 2]),
    )
    feet = TerrainFeet(robot, feet_of(walk.settings), step)
    stood = stand_on(feet, robot, q)
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, stood)
    feet.update(data)
    np.testing.assert_allclose(feet.gaps, 0.0, atol=1e-6)
    assert np.abs(stood[7:] - q[7:]).max() < 2.0
    assert stood[2] < q[2] - 0.005


def test_an_in_process_run_of_another_robot_needs_its_configuration_only():
    settings = controller_settings("solo12")
    world = RigidRobot(settings.urdf, feet_of(settings), joints=settings.joints, friction=0.8)
    walk = InProcessRun("solo12", settings, world)
    for _ in range(400):
        period = walk.advance()
    assert period.forces[:, 2].sum() == pytest.approx(walk.robot.weight, rel=0.3)
    assert period.result.status == "solved"


def step_up(seconds):
    """A walk up a step of 4 mm: periods with a foot down early, mean force error."""
    grid = np.linspace(-0.5, 0.5, 101)
    heights = np.zeros((101, 101))
    heights[56:] = 0.004  # from x = 0.06 on
    field = HeightField(grid, grid, heights)
    settings = controller_settings(
        "quadruped",
        {"velocity_product_term": False},
        solver="lcp",
        contact_time_constant_s=1e-3,
        friction_coefficient=[0.6],
    )
    world = RigidRobot(settings.urdf, feet_of(settings), joints=settings.joints, ground=field)
    feet = TerrainFeet(world.robot, feet_of(settings), field, 0.6)
    walk = InProcessRun("quadruped", settings, world, feet=feet)
    early, errors = 0, []
    for _ in range(round(seconds / settings.period_s)):
        period = walk.advance()
        planned = walk.controller.planned_stance(period.before.time_s)
        early += (period.result.contact & ~planned).any()
        errors.append(np.abs(period.result.forces - period.forces).sum())
    return early, np.mean(errors)


def test_feet_do_not_stamp_on_rigid_bumps():
    """Where rolling and slipping leave a foot 10 um off rigid ground, and two of four feet unloaded."""
    run = LocomotionRun("qp_mu", "height_field", "rigid", seed=100)
    walk, ground = prepare(run, {"ground": "map", **UNEVEN_PLANNER}, UNEVEN_CONTROLLER)
    record = walk.record(1.0, ground_height_m=ground.height_m)
    error = np.abs(record.reference_position - record.position)
    assert not record.fell and error.mean() < 0.015
    predicted, true = (
        each.sum(axis=1) for each in (record.predicted_forces, record.simulated_forces)
    )
    assert np.abs(predicted - true).max(axis=1).mean() < 0.03 * walk.robot.weight


def test_a_foot_that_lands_early_is_foreseen(monkeypatch):
    early, error = step_up(0.6)
    step = Controller.step

    def without_foresight(self, state):
        self.period.lifted[:] = False  # only a foot that has left the ground can land early
        return step(self, state)

    monkeypatch.setattr(Controller, "step", without_foresight)
    none, blind = step_up(0.6)
    assert early > 3 and none == 0
    assert error < 0.3 * blind


@pytest.mark.parametrize(
    "controller, settings",
    [("qp_inf", {}), ("no_slip_lcp", {"friction": "coulomb", "solver": "lcp"})],
)
def test_what_takes_friction_to_be_unbounded_walks_where_it_is(monkeypatch, controller, settings):
    """Held before they touched, or by a very wide polygon, feet were torn with 4e6 N."""
    kind = CONTROLLERS[controller]
    monkeypatch.setitem(
        CONTROLLERS, controller, kind._replace(settings={**kind.settings, **settings})
    )
    measured = short(controller, "rigid_high", duration_s=1.2)["figures"]
    assert measured["finished"] and measured["normal_force_error_of_simulated"] < 0.05
