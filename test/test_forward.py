"""Forward problems: given torques, what contact and bilateral constraints let the robot do."""

import numpy as np
import pinocchio as pin
import pytest
from robots import SOLO_FEET, gliding_solo, point_kinematics, random_contacts, random_state, solo12
from tolerances import within

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.exceptions import ConfigurationError, StateError, UnknownJointError
from contact_id_controller.geometry import HalfSpace
from contact_id_controller.models import ROWS, Tangential, contact_models
from experiments.rigid.constraints import Coupling, Pin, Weld
from experiments.rigid.forward import (
    ForwardProblem,
    build_forward_problem,
    constraint_forces,
    step,
)
from experiments.rigid.scene import Body, Scene, Surface
from experiments.rigid.solids import Box

pytestmark = pytest.mark.usefixtures("same_random_configurations")
DT = 0.001
G = 9.81
# A model that holds contacts by assumption is a law for planned motions, not for falling bodies.
FALLING = [row for row in contact_models() if not row.holds_touching]
FRICTIONAL = [row.pair for row in FALLING]
UNIQUE = [row.pair for row in FALLING if not (row.yields or row.uses_history)]


@pytest.fixture(scope="module")
def solo():
    return solo12()


@pytest.fixture(scope="module")
def block():
    """A free cube, 1 kg, 0.2 m."""
    return RobotModel(pin.Model()).with_object(1.0, np.eye(3) * 0.2**2 / 6.0, "block")


def mass_matrix(robot, q):
    M = pin.crba(robot.model, robot.model.createData(), q)
    return np.triu(M) + np.triu(M, 1).T


def advance(robot, q, v, contacts, torques=(), pair=("coulomb", "lcp"), period=DT, **options):
    """One step of the simulator: (q+, v+, solution)."""
    torques = np.zeros(robot.na) if len(torques) == 0 else torques
    solution = solve(
        build_forward_problem(robot, q, v, torques, contacts, period, **options), *pair
    )
    assert solution.status == "solved"
    return step(solution, q), solution.velocity.copy(), solution


def above_ground(robot, mu):
    """The scene of the block over level ground, and the block lying on it."""
    bodies, ground = [Body("block", Box((0.2, 0.2, 0.2)))], [Surface("ground", HalfSpace())]
    return Scene(robot, bodies, ground, friction=mu), np.array([0, 0, 0.1, 0, 0, 0, 1.0])


@pytest.mark.parametrize("pair", [*FRICTIONAL, ("none", "none")], ids="/".join)
def test_free_fall(solo, pair):
    rng = np.random.default_rng(0)
    q, v = random_state(solo, rng)
    torques = rng.normal(size=solo.na)
    solution = solve(build_forward_problem(solo, q, v, torques, ContactSet.empty(), DT), *pair)
    effort = np.zeros(solo.nv)
    effort[solo.actuated] = torques
    expected = v + DT * pin.aba(solo.model, solo.model.createData(), q, v, effort)
    np.testing.assert_allclose(solution.velocity, expected, atol=1e-9)
    assert solution.torques.shape == (0,)


@pytest.mark.parametrize("pair", UNIQUE, ids="/".join)
def test_torques_of_the_inverse_problem_give_its_motion_and_forces_back(solo, pair):
    q, v, acceleration, planted = gliding_solo(solo, mu=0.3)
    contacts = ContactSet(planted.points, planted.normals, planted.frames, 0.3, viscosity=30.0)
    rng = np.random.default_rng(1)
    solved = slipped = parted = 0
    for trial in range(12):
        noise = rng.normal(size=solo.na) * [0.0, 10.0, 100.0][trial % 3]
        inverse = solve(build_problem(solo, q, v, acceleration + noise, contacts, DT), *pair)
        if inverse.status != "solved":
            continue
        forward = solve(
            build_forward_problem(
                solo, q, v, inverse.torques, contacts, DT, velocity_product_term=True
            ),
            *pair,
        )
        assert forward.status == "solved"
        near = within(pair, 1e-8)
        np.testing.assert_allclose(forward.velocity, inverse.velocity, atol=near)
        if ROWS[pair].unique_forces:
            near *= max(solo.weight, np.abs(inverse.forces).max())
            np.testing.assert_allclose(forward.forces, inverse.forces, atol=near)
        solved += 1
        slipped += np.abs(inverse.contact_velocity[:, 1:]).max() > 1e-3
        parted += inverse.impulses[::3].min() < 1e-12
    assert solved >= 8 and parted >= 1
    assert slipped >= 1 or ROWS[pair].tangential is Tangential.NO_SLIP


def test_forward_contact_is_the_unreduced_system(solo):
    """The contact law's matrices against M, J and the solution of M v+ = ... by plain numpy."""
    rng = np.random.default_rng(2)
    q, v = random_state(solo, rng)
    contacts, offsets = random_contacts(solo, q, SOLO_FEET, rng)
    torques, external = rng.normal(size=solo.na), rng.normal(size=solo.nv)
    J, drift = point_kinematics(solo, q, v, SOLO_FEET, offsets)
    M = mass_matrix(solo, q)
    h = pin.nonLinearEffects(solo.model, solo.model.createData(), q, v)
    pins = [Weld("FL_FOOT", "HR_FOOT"), Coupling(("FR_HAA", "HL_HAA"), (1.0, -2.0), 0.1)]
    for product in (True, False):
        problem = build_forward_problem(
            solo,
            q,
            v,
            torques,
            contacts,
            DT,
            constraints=pins,
            velocity_product_term=product,
            external_forces=external,
        )
        K, _Kdrift = point_kinematics(solo, q, v, ["FL_FOOT", "HR_FOOT"])
        data = solo.model.createData()
        pin.computeJointJacobians(solo.model, data, q)
        pin.updateFramePlacements(solo.model, data)
        rows, twists = [K[:3] - K[3:]], []
        for name in ("FL_FOOT", "HR_FOOT"):
            twists.append(
                pin.getFrameJacobian(
                    solo.model, data, solo.frame_id(name), pin.LOCAL_WORLD_ALIGNED
                )[3:]
            )
        gear = np.zeros((1, solo.nv))
        for name, ratio in (("FR_HAA", 1.0), ("HL_HAA", -2.0)):
            gear[0, solo.actuated[solo.joint_names.index(name)]] = ratio
        K = np.vstack([*rows, twists[0] - twists[1], gear])
        effort = external.copy()
        effort[solo.actuated] += torques
        z = 0.01 * rng.normal(size=12)
        R = np.zeros((12, 12))
        for i in range(4):
            R[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = problem.frames[i]
        system = np.block([[M, -K.T], [K, np.zeros((7, 7))]])
        answer = np.linalg.solve(
            system, np.concatenate([M @ v + DT * (effort - h) + J.T @ R.T @ z, problem.target])
        )
        end = answer[: solo.nv]
        velocity = np.linalg.solve(problem.L.T, problem.base + problem.Y.T @ z)
        np.testing.assert_allclose(velocity, end, atol=1e-8 * np.abs(end).max())
        at_contacts = R @ (J @ end + (DT * drift if product else 0.0) - 0.0)
        scale = np.abs(at_contacts).max()
        np.testing.assert_allclose(
            problem.Y @ (problem.Y.T @ z) + problem.c, at_contacts, atol=1e-8 * scale
        )
        assert problem.constraint_defect < 1e-9 * np.abs(problem.target).max()
    # The multipliers of the last system are what ``constraint_forces`` reports.
    solution = solve(problem, "none", "none")
    free = np.linalg.solve(system, np.concatenate([M @ v + DT * (effort - h), problem.target]))
    np.testing.assert_allclose(
        constraint_forces(solution) * DT, free[solo.nv :], rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("pair", [("coulomb", "lcp"), ("no_slip", "lcp")], ids="/".join)
def test_warm_start_survives_contacts_that_come_and_go(block, pair):
    """A block thrown flat off a table's edge: corners leave, crossings with the edge come."""
    no_slip = ROWS[pair].tangential is Tangential.NO_SLIP
    scene = Scene(
        block,
        [Body("block", Box((0.2, 0.2, 0.2)))],
        [Surface("table", Box((1, 1, 0.2)))],
        friction=0.0 if no_slip else 0.2,
    )
    turned = pin.exp3(np.array([0, 0, 0.3]))  # so that the corners leave one by one
    q = np.array([0.35, 0.1, 0.2, *pin.Quaternion(turned).coeffs()])
    v = np.concatenate([turned.T @ [1.5, 0, 0], np.zeros(3)])
    last, names = None, set()
    for _ in range(150):
        contacts = scene.contacts(q)
        if no_slip:  # it would stop at once: let it ride on a belt
            contacts = ContactSet(
                contacts.points,
                contacts.normals,
                contacts.frames,
                0.0,
                contacts.gaps,
                contacts.identities,
                surface_velocities=np.tile([1.5, 0, 0], (len(contacts), 1)),
            )
        problem = build_forward_problem(block, q, v, [], contacts, DT)
        cold = solve(problem, *pair)
        last = solve(problem, *pair, warm_start=last)
        assert last.status == cold.status == "solved"
        np.testing.assert_allclose(last.velocity, cold.velocity, atol=1e-8)
        q, v = step(last, q), last.velocity
        names.add(frozenset(contacts.identities))
    assert len(names) >= 3


def planar_chain(lengths, masses):
    """Links (m, kg; point mass at the far end) that turn about y, one after the other, along x."""
    model, parent, offset = pin.Model(), 0, 0.0
    for k, (length, mass) in enumerate(zip(lengths, masses)):
        place = pin.SE3(np.eye(3), np.array([offset, 0, 0]))
        parent = model.addJoint(parent, pin.JointModelRY(), place, f"joint_{k}")
        model.appendBodyToJoint(
            parent,
            pin.Inertia(mass, np.array([length, 0, 0]), 1e-9 * np.eye(3)),
            pin.SE3.Identity(),
        )
        model.addFrame(
            pin.Frame(
                f"end_{k}", parent, pin.SE3(np.eye(3), np.array([length, 0, 0])), pin.FrameType.BODY
            )
        )
        offset = length
    return RobotModel(model, [])


def test_bodies_pinned_together_are_the_double_pendulum():
    """Two free rods with two ball joints against the same pendulum in joint coordinates."""
    pendulum = planar_chain([0.5, 0.4], [1.0, 2.0])
    robot = RobotModel(pin.Model())
    for name, mass in (("first", 1.0), ("second", 2.0)):
        robot = robot.with_object(mass, 1e-3 * np.eye(3), name)
    heavy = pin.Model(pendulum.model)
    for joint, mass, length in ((1, 1.0, 0.5), (2, 2.0, 0.4)):
        heavy.inertias[joint] = pin.Inertia(mass, np.array([length, 0, 0]), 1e-3 * np.eye(3))
    pendulum = RobotModel(heavy, [])
    joints = [Pin("first", (-0.5, 0, 0)), Pin("second", (-0.4, 0, 0), "first")]
    q = np.array([0.5, 0, 0, 0, 0, 0, 1.0, 0.9, 0, 0, 0, 0, 0, 1.0])
    v, p, w = np.zeros(12), np.zeros(2), np.zeros(2)
    period = 1e-4
    for k in range(1000):
        q, v, solution = advance(robot, q, v, ContactSet.empty(), period=period, constraints=joints)
        w = w + period * pin.aba(pendulum.model, pendulum.data, p, w, np.zeros(2))
        p = p + period * w
        if k == 0:
            np.testing.assert_allclose(constraint_forces(solution)[[1, 4]], 0.0, atol=1e-9)
    data = pendulum.model.createData()
    pin.framesForwardKinematics(pendulum.model, data, p)
    for k, start in ((0, 0), (1, 7)):
        tip = data.oMf[pendulum.frame_id(f"end_{k}")].translation
        np.testing.assert_allclose(q[start : start + 3], tip, atol=2e-4)
    assert np.abs(p).max() > 0.05  # it did swing


def test_four_bar_stays_closed_with_redundant_rows_and_keeps_its_energy():
    robot = planar_chain([0.2, 0.5, 0.3], [0.3, 0.5, 0.4])
    # the y row is empty: the motion is planar
    closure = [Pin("end_2", (0, 0, 0), None, (0.5, 0, -0.1))]
    q, v = np.array([0.5, 0.3, 1.0]), np.zeros(3)
    for _ in range(400):  # closes the loop first
        q, v, _ = advance(
            robot, q, np.zeros(3), ContactSet.empty(), constraints=closure, constraint_gain=0.1
        )
    v = np.zeros(3)

    def energy(q, v):
        data = robot.model.createData()
        return pin.computeKineticEnergy(robot.model, data, q, v) + pin.computePotentialEnergy(
            robot.model, data, q
        )

    start, speed = energy(q, v), 0.0
    for _ in range(2000):
        q, v, _solution = advance(robot, q, v, ContactSet.empty(), constraints=closure, period=2e-4)
        data = robot.model.createData()
        pin.framesForwardKinematics(robot.model, data, q)
        gap = data.oMf[robot.frame_id("end_2")].translation - [0.5, 0, -0.1]
        assert np.abs(gap).max() < 1e-4
        speed = max(speed, np.abs(v).max())
    assert speed > 1.0
    kinetic = pin.computeKineticEnergy(robot.model, robot.model.createData(), q, v)
    assert abs(energy(q, v) - start) < 0.02 * max(kinetic, 1.0)


def test_contradictory_constraints_are_met_as_well_as_can_be(block):
    q, v = np.array([0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6)
    apart = [
        Pin("block", (0, 0, 0), None, (0, 0, 0.001)),
        Pin("block", (0, 0, 0), None, (0, 0, -0.001)),
    ]
    problem = build_forward_problem(
        block, q, v, [], ContactSet.empty(), DT, constraints=apart, constraint_gain=1.0
    )
    assert problem.constraint_defect == pytest.approx(1.0)
    np.testing.assert_allclose(solve(problem).velocity, 0.0, atol=1e-9)
    with pytest.raises(ConfigurationError, match="constraint rows already"):
        ForwardProblem(problem, np.eye(6)[:1], [0.0])
    free = build_forward_problem(block, q, v, [], ContactSet.empty(), DT)
    for rows, target in ((np.eye(6)[:2], [0.0]), (np.zeros((0, 6)), []), (np.eye(5), np.zeros(5))):
        with pytest.raises(StateError, match=r"must have \(m, 6\) and \(m,\)"):
            ForwardProblem(free, rows, target)


def test_pinned_block_does_not_load_the_ground(block):
    scene, q = above_ground(block, 0.5)
    held = build_forward_problem(
        block,
        q,
        np.zeros(6),
        [],
        scene.contacts(q),
        DT,
        constraints=[Weld("block", None, pin.XYZQUATToSE3(q).homogeneous)],
    )
    for pair in FRICTIONAL:
        solution = solve(held, *pair)
        np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-9)
        np.testing.assert_allclose(solution.forces, 0.0, atol=1e-6)
    np.testing.assert_allclose(constraint_forces(solve(held)), [0, 0, G, 0, 0, 0], atol=1e-9)


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"torques": np.zeros(3)}, StateError, "torques"),
        ({"external_forces": np.zeros(2)}, StateError, "external_forces"),
        ({"constraint_gain": 1.5}, ConfigurationError, "constraint_gain"),
        ({"period": -1.0}, ConfigurationError, "period"),
        ({"constraints": [Coupling(("NO_JOINT",))]}, UnknownJointError, "NO_JOINT"),
        ({"constraints": [Coupling(("FL_HAA",), (1.0, 2.0))]}, ConfigurationError, "ratio"),
        ({"constraints": [Coupling(("FL_HAA",), offset=np.nan)]}, StateError, "not finite"),
        ({"constraints": [Coupling(("FL_HAA",), (np.inf,))]}, StateError, "not finite"),
    ],
)
def test_bad_forward_problem_is_refused_by_name(solo, change, error, words):
    good = {
        "q": solo.neutral(),
        "v": np.zeros(18),
        "torques": np.zeros(12),
        "contacts": ContactSet.empty(),
        "period": DT,
    }
    with pytest.raises(error, match=words):
        build_forward_problem(solo, **{**good, **change})
