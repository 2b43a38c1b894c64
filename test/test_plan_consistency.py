"""project_plan: what the contacts allow is left as it is, whatever the bodies weigh."""

import numpy as np
import pinocchio as pin
import pytest
from robots import SOLO_FEET, SOLO_POSTURE, frame_positions, solo12

from contact_id_controller import ContactSet, build_problem, solve
from contact_id_controller.labels.contact_speeds import contact_speeds

TWIST = np.array([0.3, 0.1, 0.05, 0.2, -0.3, 0.1])  # of the base


def planted_with_object(mass):
    """Solo12, three feet on the ground, one on a body that stands on three points; all consistent."""
    robot = solo12().with_object(mass, mass * 1e-2 * np.eye(3))
    q = robot.neutral()
    q[robot.q_index] = SOLO_POSTURE
    feet = frame_positions(robot, q, SOLO_FEET)
    q[-7:-4] = feet[0] - [0.0, 0.0, 0.01]
    legs = feet[0] + [[0.01, 0.0, -0.02], [-0.01, 0.01, -0.02], [-0.01, -0.01, -0.02]]
    contacts = ContactSet(
        np.vstack([feet, legs]),
        np.tile([0.0, 0.0, 1.0], (7, 1)),
        [*SOLO_FEET, *["object"] * 3],
        0.6,
        against=["object", *[None] * 6],
    )
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)
    v = np.zeros(robot.nv)
    v[:6] = TWIST
    for foot in SOLO_FEET:
        J = pin.getFrameJacobian(robot.model, data, robot.frame_id(foot), pin.LOCAL_WORLD_ALIGNED)[
            :3
        ]
        leg = [k for k in robot.actuated if np.abs(J[:, k]).max() > 1e-12]
        v[leg] = np.linalg.solve(J[:, leg], -J[:, :6] @ TWIST)
    return build_problem(
        robot, q, v, np.zeros(robot.na), contacts, 1e-3, velocity_product_term=False
    )


@pytest.mark.parametrize("mass", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("friction, solver", [("coulomb", "qp"), ("no_slip", "lcp")])
def test_a_consistent_plan_is_kept_whatever_an_object_weighs(friction, solver, mass):
    problem = planted_with_object(mass)
    # Consistent: the base and the body at rest leave no contact velocity.
    u = np.linalg.lstsq(problem.Y, -problem.c, rcond=None)[0]
    assert np.abs(problem.Y @ u + problem.c).max() < 1e-8
    solution = solve(problem, friction, solver)
    assert np.abs(solution.joint_velocity_change).max() < 1e-12
    assert solution.contradiction_m_s < 1e-12


def test_a_foot_that_hovers_comes_down_as_planned():
    """One of four feet 30 um above the ground, planned to near it by .2 mm/s; it was held where it was."""
    robot = solo12()
    q = robot.neutral()
    q[robot.q_index] = SOLO_POSTURE
    feet = frame_positions(robot, q, SOLO_FEET)
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)
    J = pin.getFrameJacobian(
        robot.model, data, robot.frame_id(SOLO_FEET[0]), pin.LOCAL_WORLD_ALIGNED
    )[:3, robot.actuated]
    down = np.array([0.0, 0.0, -2e-4])
    desired = np.linalg.pinv(J) @ down / 1e-3
    contacts = ContactSet(
        feet, np.tile([0.0, 0.0, 1.0], (4, 1)), SOLO_FEET, 0.6, gaps=[3e-5, 0.0, 0.0, 0.0]
    )
    problem = build_problem(robot, q, np.zeros(robot.nv), desired, contacts, 1e-3)
    solution = solve(problem)
    np.testing.assert_allclose(J @ solution.velocity[robot.actuated], down, atol=2e-5)
    assert solution.forces[0, 2] == 0.0 and (solution.forces[1:, 2] >= 0.0).all()


@pytest.mark.parametrize("turn", [[0.0, 0.0, 0.5], [0.1, -0.1, 0.3]])
def test_corners_of_a_body_that_turns_do_not_contradict_each_other(turn):
    """A block on four corners turns; they move as one body, and each bears about a quarter of it.

    With their accelerations towards the middle they contradicted each other by 25 and 11 um/s.
    """
    mass, half = 3.0, np.array([[0.1, 0.05], [0.1, -0.05], [-0.1, 0.05], [-0.1, -0.05]])
    robot = solo12().with_object(mass, mass * 1e-2 * np.eye(3))
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[robot.q_index] = SOLO_POSTURE
    feet = frame_positions(robot, q, SOLO_FEET)
    q[-7:-4] = [2.0, 0.0, feet[0, 2] + 0.02]
    v[-3:] = turn
    corners = q[-7:-4] + np.column_stack([half, np.full(4, -0.02)])
    contacts = ContactSet(
        np.vstack([feet, corners]),
        np.tile([0.0, 0.0, 1.0], (8, 1)),
        [*SOLO_FEET, *["object"] * 4],
        0.6,
    )
    rest = np.zeros(robot.na)
    problem = build_problem(robot, q, v, rest, contacts, 1e-3, contact_time_constant_s=0.05)
    u = np.linalg.lstsq(problem.Y, -problem.c, rcond=None)[0]
    assert np.abs(problem.Y @ u + problem.c).max() < 1e-10
    bears = solve(problem, distribution="least_force").forces[4:, 2]
    np.testing.assert_allclose(bears, bears.mean(), rtol=0.2)


def two_on_each_shank(seed, gaps=0.0):
    """Solo12 in motion, four contacts on its feet and four 6 cm up the shanks."""
    rng = np.random.default_rng(seed)
    robot = solo12()
    q, v = robot.neutral(), rng.normal(size=robot.nv)
    q[robot.q_index] = SOLO_POSTURE
    feet = frame_positions(robot, q, SOLO_FEET)
    points = np.vstack([feet, feet + [0.0, 0.0, 0.06]])
    heights = np.concatenate([np.zeros(4), np.full(4, gaps)])
    return robot, q, v, ContactSet(points, [[0, 0, 1]] * 8, [*SOLO_FEET] * 2, 0.6, heights)


@pytest.mark.parametrize("looked_up", [False, True])
def test_some_contacts_of_a_set_are_as_if_there_were_no_others(looked_up):
    """With its bodies looked up before, two contacts of one shank once had the rows of the first."""
    robot, q, v, contacts = two_on_each_shank(1)
    few = np.array([0, 4])
    fresh = ContactSet(contacts.points[few], contacts.normals[few], [SOLO_FEET[0]] * 2, 0.6)
    if looked_up:
        contacts.links(robot)
    both = [
        build_problem(robot, q, v, np.zeros(robot.na), each, 1e-3)
        for each in (fresh, contacts.subset(np.isin(np.arange(8), few)))
    ]
    for name in ("Y", "T", "c"):
        one, other = (getattr(problem, name) for problem in both)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(one).max())


def test_contacts_that_hang_above_the_ground_take_nothing_from_those_that_touch():
    robot, q, v, contacts = two_on_each_shank(2, gaps=0.06)
    alone = contacts.subset(np.arange(8) < 4)
    whole, feet = (
        build_problem(robot, q, v, np.zeros(robot.na), each, 1e-3) for each in (contacts, alone)
    )
    np.testing.assert_allclose(whole.c[:12], feet.c, rtol=0, atol=1e-12)


def test_recorded_motion_contradicts_no_contacts_of_one_body():
    """Surfaces that move as the contacts of the recorded motion leave nothing to be done."""
    robot, q, v, contacts = two_on_each_shank(3)
    following, dt = v + 0.01 * np.random.default_rng(4).normal(size=robot.nv), 1e-3
    pin.computeJointJacobians(robot.model, robot.data, q)
    bodies, pair = contacts.links(robot)
    speeds = np.zeros((8, 3))
    contact_speeds(
        robot.jacobian_view,
        v,
        following,
        robot.supports,
        robot.coordinate_joint,
        bodies[pair, 0],
        contacts.points,
        np.ones(8, dtype=bool),
        dt,
        speeds,
    )
    moving = ContactSet(
        contacts.points, contacts.normals, contacts.frames, 0.6, surface_velocities=speeds
    )
    acceleration = (following - v)[robot.actuated] / dt
    problem = build_problem(robot, q, v, acceleration, moving, dt, contact_time_constant_s=dt)
    u = np.linalg.lstsq(problem.Y, -problem.c, rcond=None)[0]
    assert np.abs(problem.Y @ u + problem.c).max() < 1e-11
