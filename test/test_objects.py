"""Bodies and joints without motors: grasped objects, stacks, passive joints, moving ground."""

import numpy as np
import pinocchio as pin
import pytest
from robots import (
    SOLO12,
    SOLO_FEET,
    point_kinematics,
    random_contacts,
    random_state,
    solo12,
    standing_solo,
)
from tolerances import within

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.geometry import HalfSpace
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models import ROWS, Normal, Tangential, contact_models
from experiments.rigid.forward import build_forward_problem, step
from experiments.rigid.scene import Body, Scene, Surface
from experiments.rigid.solids import Box, Sphere

pytestmark = pytest.mark.usefixtures("same_random_configurations")
ARM = "package://contact_id_controller/urdf/arm.urdf"
TIPS = ["tip_1", "tip_2", "tip_3", "tip_4"]
DT, G = 0.001, 9.81
EDGE = 0.0507
BOX_MASS = 6000.0 * EDGE**3
BOX_WEIGHT = BOX_MASS * G
DRY = (Tangential.COULOMB, Tangential.NO_SLIP)
HOLDERS = [row for row in contact_models() if row.tangential in DRY]
CONTACT = [row.pair for row in HOLDERS]
EXACT = [row.pair for row in HOLDERS if not row.yields]
AMBIGUOUS = [row.pair for row in HOLDERS if row.uses_history]  # may let a box fall, see below
MANY = [row.pair for row in HOLDERS if not (row.yields or row.most_contacts)]


@pytest.fixture(scope="module")
def arm():
    """The arm beside a free box: 11 actuated joints, 6 freedoms of the box."""
    robot = RobotModel.from_urdf(ARM, floating_base=False)
    return robot.with_object(BOX_MASS, np.eye(3) * BOX_MASS * EDGE**2 / 6.0, "box")


def grasp(arm, mu, table=False):
    bodies = [Body(tip, Sphere(0.01)) for tip in TIPS] + [Body("box", Box((EDGE,) * 3))]
    top = np.eye(4)
    top[2, 3] = 0.8 - EDGE / 2
    surfaces = [Surface("table", HalfSpace(), top)] if table else []
    return Scene(arm, bodies, surfaces, [(tip, "box") for tip in TIPS], mu, 0.002)


def grasping(arm, joints=None):
    """q with the box between the fingers, wherever the arm's joints (11,) put the hand."""
    q = arm.configuration(None, np.zeros(11) if joints is None else joints)
    data = arm.model.createData()
    pin.framesForwardKinematics(arm.model, data, q)
    q[11:] = pin.SE3ToXYZQUAT(
        data.oMf[arm.frame_id("link_7")] * pin.SE3(np.eye(3), np.array([0, 0, 0.2]))
    )
    # The table of ``grasp`` lies under the upright arm's box only.
    return q


def carried(arm, q, joint_velocity):
    """v with the box moving as if it were part of the hand."""
    v = np.zeros(arm.nv)
    v[arm.actuated] = joint_velocity
    data = arm.model.createData()
    pin.computeJointJacobians(arm.model, data, q)
    pin.updateFramePlacements(arm.model, data)
    hand = pin.getFrameJacobian(arm.model, data, arm.frame_id("link_7"), pin.LOCAL) @ v
    v[11:] = pin.SE3(np.eye(3), np.array([0, 0, 0.2])).actInv(pin.Motion(hand)).vector
    return v


def mass_matrix(robot, q):
    M = pin.crba(robot.model, robot.model.createData(), q)
    return np.triu(M) + np.triu(M, 1).T


def relative_kinematics(robot, q, v, contacts):
    """Jacobian (3n, nv) and drift (3n,) of the contacts in the world, by Pinocchio alone."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    J, drift = np.zeros((3 * len(contacts), robot.nv)), np.zeros(3 * len(contacts))
    for names, sign in ((contacts.frames, 1.0), (contacts.against or [None] * len(contacts), -1.0)):
        rows = [i for i, name in enumerate(names) if name is not None]
        if not rows:
            continue
        frames = [names[i] for i in rows]
        arms = np.array(
            [contacts.points[i] - data.oMf[robot.frame_id(names[i])].translation for i in rows]
        )
        part, part_drift = point_kinematics(robot, q, v, frames, arms)
        for k, i in enumerate(rows):
            J[3 * i : 3 * i + 3] += sign * part[3 * k : 3 * k + 3]
            drift[3 * i : 3 * i + 3] += sign * part_drift[3 * k : 3 * k + 3]
    return J, drift


def check_against_unreduced(robot, q, v, acceleration, contacts, solution, tolerance=1e-8):
    """v+ and torques by the full KKT system, at the solution's impulses; its contact velocity."""
    problem = solution.problem
    M = mass_matrix(robot, q)
    h = pin.nonLinearEffects(robot.model, robot.model.createData(), q, v)
    J, drift = relative_kinematics(robot, q, v, contacts)
    R = np.zeros((3 * len(contacts),) * 2)
    for i in range(len(contacts)):
        R[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = problem.frames[i]
    P = np.zeros((robot.na, robot.nv))
    P[np.arange(robot.na), robot.actuated] = 1.0
    wanted = v[robot.actuated] + DT * acceleration
    if solution.joint_velocity_change is not None:
        wanted = wanted + solution.joint_velocity_change
    system = np.block([[M, -DT * P.T], [P, np.zeros((robot.na, robot.na))]])
    right = np.concatenate([M @ v + J.T @ R.T @ solution.impulses - DT * h, wanted])
    answer = np.linalg.solve(system, right)
    end, torques = answer[: robot.nv], answer[robot.nv :]
    scale = max(1.0, np.abs(end).max())
    np.testing.assert_allclose(solution.velocity, end, atol=tolerance * scale)
    np.testing.assert_allclose(
        solution.torques,
        torques,
        atol=tolerance * max(1.0, np.abs(torques).max(initial=0.0), np.abs(solution.forces).max()),
    )
    ground = np.zeros(3 * len(contacts))
    if contacts.surface_velocities is not None:
        ground = contacts.surface_velocities.ravel()
    velocity = (R @ (J @ end + DT * drift - ground)).reshape(-1, 3)
    np.testing.assert_allclose(solution.contact_velocity, velocity, atol=1e-7 * scale)
    return velocity


def opposed(row, velocity):
    """Slip speed (n,) against the most opposed friction force: of the exact cone, or of 4 edges."""
    if row.exact_cone:
        return np.linalg.norm(velocity[:, 1:], axis=1)
    return np.abs(velocity[:, 1:]).max(axis=1)


def check_laws(pair, solution, velocity):
    """The model's own laws between the forces and the un-reduced contact velocity (n, 3)."""
    problem = solution.problem
    z, mu = solution.impulses.reshape(-1, 3), problem.contacts.friction
    scale = max(np.abs(problem.c).max(), 1e-6)
    near = within(pair, 1e-6)
    size = max(np.abs(z).max(), 1e-12)
    parting = velocity[:, 0] + problem.gap_speed
    assert (z[:, 0] >= -1e-9 * size).all()
    assert (parting >= -near * scale).all()
    row = ROWS[pair]
    if row.tangential is Tangential.COULOMB:
        norm = 2 if row.exact_cone else 1  # the exact cone, or the polygon of 4 edges
        assert (np.linalg.norm(z[:, 1:], norm, axis=1) <= mu * z[:, 0] + near * size).all()
        if row.normal is Normal.COMPLEMENTARITY_FREE:
            moving = np.column_stack([parting, velocity[:, 1:]])
            assert abs((z * moving).sum()) < near * size * scale * len(z)
            slack = (parting - mu * opposed(row, velocity)) / (1.0 + mu)
            assert (slack >= -near * scale).all()
        else:
            assert np.abs(z[:, 0] * parting).max() < near * size * scale
            # Friction does as much against the slip as the polygon allows.
            power = (z[:, 1:] * velocity[:, 1:]).sum(axis=1)
            most = -mu * z[:, 0] * opposed(row, velocity)
            np.testing.assert_allclose(power, most, atol=10.0 * near * size * scale)
    else:
        assert np.abs(z[:, 0] * parting).max() < near * size * scale
        # A contact that lands within this period does not hold tangentially yet.
        held = (z[:, 0] > 1e-6 * size) & (problem.gap_speed <= TOUCHING_SPEED)
        assert np.abs(velocity[held, 1:]).max(initial=0.0) < near * scale


def test_tips_of_the_arm_touch_the_box_of_the_paper(arm):
    assert (arm.na, arm.nu, arm.nv) == (11, 6, 17)
    assert arm.mass == pytest.approx(1.1 + BOX_MASS)
    assert BOX_MASS == pytest.approx(0.782, abs=1e-3)
    contacts = grasp(arm, 1.0).contacts(grasping(arm))
    assert contacts.frames == tuple(TIPS) and contacts.against == ("box",) * 4
    np.testing.assert_allclose(contacts.gaps, 0.0, atol=1e-9)
    np.testing.assert_allclose(
        contacts.normals, [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], atol=1e-6
    )
    closed = grasping(arm)
    closed[arm.q_index[7:]] = -0.01
    np.testing.assert_allclose(
        grasp(arm, 1.0).contacts(closed).gaps, -0.1 * np.sin(0.01), atol=1e-6
    )


@pytest.mark.parametrize("pair", [pair for pair in CONTACT if pair not in AMBIGUOUS], ids="/".join)
@pytest.mark.parametrize("mu", [1.0, 100.0])
def test_grasp_holds_the_weight_of_the_box(arm, pair, mu):
    rng = np.random.default_rng(0)
    for trial in range(3):
        q = grasping(arm, np.concatenate([0.5 * trial * rng.normal(size=7), np.zeros(4)]))
        contacts = grasp(arm, mu).contacts(q)
        v, still = np.zeros(arm.nv), np.zeros(arm.na)
        stiff = {"regularisation": 1e-6} if ROWS[pair].yields else {}
        solution = solve(build_problem(arm, q, v, still, contacts, DT), *pair, **stiff)
        assert solution.status == "solved"
        loose = 1e-3 if ROWS[pair].yields else within(pair, 1e-8)
        np.testing.assert_allclose(
            solution.forces.sum(axis=0), [0, 0, -BOX_WEIGHT], atol=loose * BOX_WEIGHT
        )
        np.testing.assert_allclose(solution.velocity, 0.0, atol=(1.0 + mu) * loose * G * DT)
        check_against_unreduced(arm, q, v, still, contacts, solution)
        if ROWS[pair].tangential is Tangential.COULOMB:
            slip = np.linalg.norm(solution.impulses.reshape(-1, 3)[:, 1:], axis=1)
            assert (slip <= mu * solution.impulses[::3] * (1 + within(pair, 1e-6)) + 1e-9).all()


def test_complementarity_alone_does_not_make_a_hand_squeeze(arm):
    """With prescribed joint motion, no squeeze and a falling box obey Coulomb's law as well."""
    q, v, still = grasping(arm), np.zeros(17), np.zeros(11)
    contacts = grasp(arm, 1.0).contacts(q)
    problem = build_problem(arm, q, v, still, contacts, DT)
    for solver in ("qp", "lcp", "lcp_min_diff"):
        solution = solve(problem, "coulomb", solver)
        velocity = check_against_unreduced(arm, q, v, still, contacts, solution)
        check_laws(("coulomb", "lcp"), solution, velocity)
    falling = np.zeros((4, 3))
    for i in range(4):
        falling[i] = problem.frames[i] @ [0, 0, G * DT]  # of the tip past the box
    np.testing.assert_allclose(problem.c.reshape(-1, 3), falling, atol=1e-12)
    assert np.abs(falling[:, 0]).max() < 1e-12  # nothing parts or closes: zero force is a solution


def test_the_solution_nearest_to_the_last_keeps_holding_or_falling(arm):
    """Both obey Coulomb's law, with different v+: the last period decides (first paper, 5.3)."""
    rng = np.random.default_rng(2)
    q, v, still = grasping(arm), np.zeros(17), np.zeros(11)
    contacts = grasp(arm, 1.0).contacts(q)
    problem = build_problem(arm, q, v, still, contacts, DT)
    held = solve(problem)
    dropped = solve(problem, "coulomb", "lcp_min_diff")
    assert np.abs(dropped.forces).max() < 1e-12
    for _ in range(5):
        problem = build_problem(arm, q, 1e-4 * rng.normal(size=17), still, contacts, DT)
        held = solve(problem, "coulomb", "lcp_min_diff", warm_start=held)
        dropped = solve(problem, "coulomb", "lcp_min_diff", warm_start=dropped)
        assert held.status == dropped.status == "solved"
        check_laws(("coulomb", "lcp"), held, held.contact_velocity)
        assert held.forces[:, 2].sum() < -0.5 * BOX_WEIGHT < dropped.forces[:, 2].sum()


@pytest.mark.parametrize(
    "pair",
    [pair for pair in EXACT if ROWS[pair].tangential is Tangential.COULOMB],
    ids="/".join,
)
def test_slippery_box_falls_out_of_the_hand(arm, pair):
    q = grasping(arm)
    solution = solve(
        build_problem(arm, q, np.zeros(17), np.zeros(11), grasp(arm, 0.0).contacts(q), DT), *pair
    )
    assert solution.velocity[13] == pytest.approx(-G * DT, rel=within(pair, 1e-6))


@pytest.mark.parametrize("pair", EXACT, ids="/".join)
def test_moving_hand_carries_the_box_along(arm, pair):
    """Forces on the box are its mass times its acceleration, by Newton and Euler."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = grasping(arm, np.concatenate([0.5 * rng.normal(size=7), np.zeros(4)]))
        v = carried(arm, q, np.concatenate([rng.normal(size=7), np.zeros(4)]))
        acceleration = np.concatenate([5.0 * rng.normal(size=7), np.zeros(4)])
        contacts = grasp(arm, 100.0).contacts(q)
        solution = solve(build_problem(arm, q, v, acceleration, contacts, DT), *pair)
        assert solution.status == "solved"
        velocity = check_against_unreduced(arm, q, v, acceleration, contacts, solution)
        check_laws(pair, solution, velocity)
        if pair not in AMBIGUOUS:
            assert np.abs(velocity).max() < within(pair, 1e-6)
        data = arm.model.createData()
        pin.forwardKinematics(arm.model, data, q, v, (solution.velocity - v) / DT)
        pin.updateFramePlacements(arm.model, data)
        box = arm.frame_id("box")
        linear = pin.getFrameClassicalAcceleration(
            arm.model, data, box, pin.LOCAL_WORLD_ALIGNED
        ).linear
        pull = BOX_MASS * (linear + [0, 0, G])
        np.testing.assert_allclose(
            -solution.forces.sum(axis=0), pull, atol=1e-8 * max(1.0, np.abs(pull).max())
        )


@pytest.mark.parametrize("pair", MANY, ids="/".join)
def test_box_between_fingers_and_table(arm, pair):
    """Four finger contacts and four box corners; the plan moves the fingers at random."""
    rng = np.random.default_rng(2)
    q, v = grasping(arm), np.zeros(17)
    contacts = grasp(arm, 0.5, table=True).contacts(q)
    table = np.array([frame == "box" for frame in contacts.frames])
    assert len(contacts) == 8 and table.sum() == 4
    for trial in range(6):
        acceleration = 5.0 * min(trial, 1) * rng.normal(size=11)
        solution = solve(build_problem(arm, q, v, acceleration, contacts, DT), *pair)
        assert solution.status == "solved"
        velocity = check_against_unreduced(arm, q, v, acceleration, contacts, solution)
        check_laws(pair, solution, velocity)
        if trial == 0:
            on_box = solution.forces[table].sum(axis=0) - solution.forces[~table].sum(axis=0)
            np.testing.assert_allclose(on_box, [0, 0, BOX_WEIGHT], atol=within(pair, 1e-8))
            np.testing.assert_allclose(solution.velocity, 0.0, atol=within(pair, 1e-9))


def test_torques_of_the_grasp_hold_the_box_in_the_forward_problem(arm):
    scene, q, v = grasp(arm, 1.0), grasping(arm), np.zeros(17)
    start = q.copy()
    for _ in range(50):
        contacts = scene.contacts(q)
        torques = solve(
            build_problem(arm, q, v, -20.0 * v[:11], contacts, DT, velocity_product_term=False)
        ).torques
        solution = solve(build_forward_problem(arm, q, v, torques, contacts, DT), "coulomb", "lcp")
        q, v = step(solution, q), solution.velocity
    np.testing.assert_allclose(q[:14], start[:14], atol=1e-5)


@pytest.mark.parametrize("pair", MANY, ids="/".join)
def test_stack_of_free_boxes_rests(pair):
    robot = RobotModel(pin.Model())
    for name in ("lower", "upper"):
        robot = robot.with_object(1.0, np.eye(3) * 0.2**2 / 6.0, name)
    cube = Box((0.2, 0.2, 0.2))
    scene = Scene(
        robot,
        [Body("lower", cube), Body("upper", cube)],
        [Surface("ground", HalfSpace())],
        [("upper", "lower")],
        0.5,
    )
    q = np.array([0, 0, 0.1, 0, 0, 0, 1.0, 0.04, 0.02, 0.3, 0, 0, 0, 1.0])
    contacts, v = scene.contacts(q), np.zeros(12)
    solution = solve(build_problem(robot, q, v, [], contacts, DT), *pair)
    assert solution.status == "solved"
    near = within(pair, 1e-9)
    np.testing.assert_allclose(solution.velocity, 0.0, atol=near)
    np.testing.assert_allclose(
        solution.forces[:4].sum(axis=0), [0, 0, 2 * G], atol=max(2 * G * near, 1e-7)
    )
    np.testing.assert_allclose(solution.forces[4:].sum(axis=0), [0, 0, G], atol=max(near, 1e-7))
    # The upper box's forces balance about its centre.
    arms = contacts.points[4:] - q[7:10]
    np.testing.assert_allclose(
        np.cross(arms, solution.forces[4:]).sum(axis=0), 0.0, atol=max(near, 1e-7)
    )
    check_against_unreduced(robot, q, v, np.zeros(0), contacts, solution)


@pytest.mark.parametrize("pair", EXACT, ids="/".join)
def test_passive_joints_join_the_unactuated_coordinates(pair):
    names = [name for name in solo12().joint_names if name not in ("FL_KFE", "HR_HFE")]
    robot = RobotModel.from_urdf(SOLO12, joints=names)
    assert (robot.na, robot.nu) == (10, 8)
    rng, solved = np.random.default_rng(4), 0
    for trial in range(6):
        q, v = random_state(robot, rng)
        v *= 0.1
        contacts, _ = random_contacts(robot, q, SOLO_FEET, rng, mu=0.6)
        acceleration = rng.normal(size=10)
        solution = solve(build_problem(robot, q, v, acceleration, contacts, DT), *pair)
        if solution.status != "solved":
            continue
        solved += 1
        velocity = check_against_unreduced(robot, q, v, acceleration, contacts, solution)
        check_laws(pair, solution, velocity)
    assert solved >= 3


def test_passive_arm_joint_swings_freely():
    names = [f"joint_{k}" for k in (1, 2, 3, 5, 6, 7)] + [f"finger_{k}" for k in (1, 2, 3, 4)]
    robot = RobotModel.from_urdf(ARM, floating_base=False, joints=names)
    rng = np.random.default_rng(5)
    q, v, acceleration = rng.normal(size=11), rng.normal(size=11), rng.normal(size=10)
    solution = solve(build_problem(robot, q, v, acceleration, ContactSet.empty(), DT))
    effort = np.zeros(11)
    effort[robot.actuated] = solution.torques
    qdd = pin.aba(robot.model, robot.data, q, v, effort)
    np.testing.assert_allclose(qdd[robot.actuated], acceleration, atol=1e-7)
    np.testing.assert_allclose(v + DT * qdd, solution.velocity, atol=1e-9)


@pytest.mark.parametrize("pair", EXACT, ids="/".join)
def test_robot_riding_a_conveyor_stands_as_on_still_ground(pair):
    robot = solo12()
    q, planted = standing_solo(robot)
    belt = np.array([0.4, -0.2, 0.0])
    contacts = ContactSet(
        planted.points,
        planted.normals,
        planted.frames,
        0.6,
        surface_velocities=np.tile(belt, (4, 1)),
    )
    v = np.zeros(robot.nv)
    v[:3] = belt
    still = np.zeros(12)
    riding = solve(build_problem(robot, q, v, still, contacts, DT), *pair)
    standing = solve(build_problem(robot, q, np.zeros(18), still, planted, DT), *pair)
    np.testing.assert_allclose(riding.velocity[:3], belt, atol=within(pair, 1e-9))
    if ROWS[pair].unique_forces:
        np.testing.assert_allclose(riding.forces, standing.forces, atol=within(pair, 1e-6))
        np.testing.assert_allclose(riding.torques, standing.torques, atol=within(pair, 1e-7))
    velocity = check_against_unreduced(robot, q, v, still, contacts, riding)
    check_laws(pair, riding, velocity)


def test_conveyor_drags_a_box_up_to_its_own_speed():
    robot = RobotModel(pin.Model()).with_object(1.0, np.eye(3) * 0.2**2 / 6.0, "box")
    speed, mu = 0.2, 0.3
    scene = Scene(
        robot,
        [Body("box", Box((0.2, 0.2, 0.2)))],
        [Surface("belt", HalfSpace(), linear_velocity=(speed, 0, 0))],
        friction=mu,
    )
    q, v = np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.zeros(6)
    speeds = []
    for _ in range(100):
        solution = solve(
            build_forward_problem(robot, q, v, [], scene.contacts(q), DT), "coulomb", "lcp"
        )
        q, v = step(solution, q), solution.velocity
        speeds.append(v[0])
    np.testing.assert_allclose(np.diff(speeds)[:60] / DT, mu * G, rtol=1e-6)
    assert speeds[-1] == pytest.approx(speed, rel=1e-9)
