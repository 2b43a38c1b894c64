"""Load shares: forces that grow and fade, for the same motion, in every model with a stage II."""

import numpy as np
import pytest
import quadprog
from robots import (
    QUADRUPED,
    QUADRUPED_FEET,
    SOLO_FEET,
    frame_positions,
    gliding_solo,
    solo12,
    standing_solo,
)

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.exceptions import ContactSetError
from contact_id_controller.geometry import HalfSpace
from contact_id_controller.geometry.feet import FootContacts, SphereFoot
from contact_id_controller.kernels.pyramid import STICKING
from contact_id_controller.models import contact_models, row_of
from contact_id_controller.models.steps.exact_law import FINE_TIE_BREAK, STEPS, choose_forces
from contact_id_controller.models.steps.force_distribution import (
    LEAST_SHARE,
    MANY_TIE_BREAK,
    RELUCTANCE,
    TIE_BREAK,
)
from contact_id_controller.models.steps.reduced import Cones
from experiments.benchmark.quadprog_two_stages import MODEL as BY_QUADPROG
from experiments.benchmark.quadprog_two_stages import generators

DT = 1e-3
DISTRIBUTED = {
    "coulomb/qp": {},
    "coulomb/qp least_force": {"distribution": "least_force"},
    "coulomb/qp exact": {"cone": "exact"},
    str(BY_QUADPROG): {},
    "coulomb/lcp": {},
    "coulomb/ncp": {},
    "coulomb/lcp_min_diff": {"distribution": "least_torque"},
    "no_slip/lcp": {},
    "no_slip/qp": {},
    "viscous/lcp": {},
}
UNHEEDING = [
    *(str(row) for row in contact_models() if "distribution" not in row.accepted),
    "coulomb/lcp_min_diff",  # has the option, and does without unless it is asked
]


@pytest.fixture(scope="module")
def robot():
    return solo12()


@pytest.fixture(scope="module")
def quadruped():
    """The first paper's quadruped on its feet: robot, q, contacts."""
    robot = RobotModel.from_urdf(QUADRUPED)
    joints = dict.fromkeys(robot.joint_names, 0.0)
    for leg, sign in (("LF", 1), ("RH", 1), ("RF", -1), ("LH", -1)):
        for name, angle in (("HAA", 0.1), ("HFE", 0.8), ("KFE", 1.2)):
            joints[f"{leg}_{name}"] = sign * angle
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], list(joints.values()))
    points = frame_positions(robot, q, QUADRUPED_FEET)
    return robot, q, ContactSet(points, [[0, 0, 1]] * 4, QUADRUPED_FEET, 0.6)


def soles(contacts, per_foot):
    """Several contacts for each one, on a small ring."""
    angle = 2.0 * np.pi * np.arange(per_foot) / per_foot
    ring = 0.01 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    points = (contacts.points[:, None] + ring).reshape(-1, 3)
    return ContactSet(
        points,
        np.tile([0, 0, 1.0], (len(points), 1)),
        np.repeat(contacts.frames, per_foot),
        np.repeat(contacts.friction, per_foot),
    )


def shared(contacts, share):
    return contacts.moved(contacts.points, load_share=np.array(share, dtype=float))


def at_rest(robot, q, contacts):
    return build_problem(robot, q, np.zeros(robot.nv), np.zeros(robot.na), contacts, DT)


def solved(problem, name, options=None):
    row = BY_QUADPROG if name == str(BY_QUADPROG) else row_of(*name.split()[0].split("/"))
    options = DISTRIBUTED[name] if options is None else options
    solution = row.function(problem, row.complete(options))
    assert solution.status == "solved"
    return solution


def judged(problem, vertex, tie, distribution):
    """Stage II by quadprog in the multipliers of the edges without slack: z, cost function."""
    share = problem.contacts.load_share
    edges = [generators(mu, 4).T for mu in problem.contacts.friction]
    E = np.zeros((3 * len(problem), 4 * len(problem)))
    for i, block in enumerate(edges):
        E[3 * i : 3 * i + 3, 4 * i : 4 * i + 4] = block
    E = E[:, E.T @ (problem.Y @ (problem.Y.T @ vertex.impulses) + vertex.attainable) < 1e-7]
    carrying = np.repeat(np.abs(E).reshape(len(problem), -1).any(axis=1), 3)
    torque = distribution == "least_torque"
    T = problem.T.T if torque else np.zeros((1, 3 * len(problem)))
    offset = vertex.torques - problem.T.T @ vertex.impulses if torque else np.zeros(1)
    scale = np.square(problem.T[carrying]).sum() / carrying.sum() if torque else 1.0
    weight = (tie if torque else 1.0) + RELUCTANCE * (1.0 / share**2 - 1.0)
    H = T.T @ T + scale * np.diag(np.repeat(weight, 3))
    HE = E.T @ H @ E
    answer = quadprog.solve_qp(
        HE + 1e-11 * np.trace(HE) / len(HE) * np.eye(len(HE)),
        -E.T @ (T.T @ offset),
        np.ascontiguousarray(np.vstack([problem.Y.T @ E, np.eye(len(HE))]).T),
        np.concatenate([problem.Y.T @ vertex.impulses, np.zeros(len(HE))]),
        meq=6,
    )
    return E @ answer[0], lambda z: 0.5 * z @ H @ z + offset @ T @ z


@pytest.mark.parametrize("distribution", ["least_torque", "least_force"])
@pytest.mark.parametrize("per_foot, tie", [(1, TIE_BREAK), (7, MANY_TIE_BREAK)])
@pytest.mark.parametrize("mu", [0.2, 0.6])
def test_forces_minimise_the_weighted_objective(robot, per_foot, tie, distribution, mu):
    rng = np.random.default_rng(per_foot)
    q, v, acceleration, contacts = gliding_solo(robot, 0.3, mu)
    contacts = soles(contacts, per_foot)
    spread = 0.0
    for number in range(8):
        share = 10.0 ** rng.uniform(-1.5 if number else 0.0, 0.0, len(contacts))
        problem = build_problem(
            robot,
            q,
            v,
            acceleration + rng.normal(size=12),
            shared(contacts, share),
            DT,
            contact_time_constant_s=0.05,
        )
        vertex = solve(problem, distribution="none", sliding="parting")
        ours = solve(problem, distribution=distribution, sliding="parting")
        judge, cost = judged(problem, vertex, tie, distribution)
        span = abs(cost(vertex.impulses) - cost(judge))
        assert cost(ours.impulses) <= cost(judge) + 1e-6 * span
        np.testing.assert_allclose(ours.impulses, judge, rtol=0, atol=2e-3 * np.abs(judge).max())
        spread = max(spread, span)
    assert spread > 0.0


@pytest.mark.parametrize("share", [[1, 1, 1, 1], [0.4, 1, 1, 0.7], [0.5] * 4, [0.02, 1, 1, 1]])
def test_no_force_in_the_exact_cones_is_better(robot, share):
    mu = 0.3
    q, contacts = standing_solo(robot, mu)
    problem = at_rest(robot, q, shared(contacts, share))
    start = solve(problem, distribution="none")
    z = np.empty(12)
    steps = choose_forces(
        problem.T,
        problem.torque_offset,
        problem.Y,
        problem.Y.T @ start.impulses,
        np.full(4, STICKING),
        np.zeros((4, 2)),
        Cones(problem.contacts.friction, 4, problem.contacts.load_share),
        1.0,
        FINE_TIE_BREAK,
        STEPS,
        z,
    )
    assert steps > 0
    np.testing.assert_allclose(problem.Y.T @ z, problem.Y.T @ start.impulses, atol=1e-9)
    weight = RELUCTANCE * (1.0 / np.square(share) - 1.0) * np.square(problem.T).sum() / 12

    def cost(z):
        torques = problem.torque_offset + problem.T.T @ z
        return torques @ torques + weight @ np.square(z.reshape(4, 3)).sum(axis=1)

    rng, tried = np.random.default_rng(0), 0
    internal = np.linalg.svd(problem.Y.T)[2][6:]
    assert cost(z) < 0.999 * cost(start.impulses)
    while tried < 300:
        other = z + 10.0 ** rng.uniform(-6, -2) * rng.normal(size=len(internal)) @ internal
        force = other.reshape(4, 3)
        if np.all(np.hypot(force[:, 1], force[:, 2]) <= mu * force[:, 0]):
            tried += 1
            assert cost(other) >= cost(z) * (1 - 1e-6)


def test_every_model_that_distributes_is_tried():
    tried = {name.split()[0] for name in DISTRIBUTED} - {str(BY_QUADPROG)}
    assert tried == {str(row) for row in contact_models() if "distribution" in row.accepted}


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_shares_change_the_forces_and_never_the_motion(robot, name):
    rng = np.random.default_rng(3)
    q, contacts = standing_solo(robot)
    for number in range(4):
        v = 0.01 * rng.normal(size=robot.nv)
        acceleration = rng.normal(size=robot.na)

        def at(contacts, v=v, acceleration=acceleration):
            return build_problem(
                robot, q, v, acceleration, contacts, DT, contact_time_constant_s=0.05
            )

        whole, plain = solved(at(contacts), name), solved(at(shared(contacts, [1] * 4)), name)
        assert np.array_equal(plain.impulses, whole.impulses)
        share = np.ones(4)
        share[number] = 0.3
        ramped = solved(at(shared(contacts, share)), name)
        np.testing.assert_allclose(ramped.velocity, plain.velocity, rtol=0, atol=1e-7)
        assert ramped.residuals()["cone_n"] < 1e-6
        assert ramped.forces[number, 2] < 0.9 * plain.forces[number, 2]


@pytest.mark.parametrize("name", UNHEEDING)
def test_models_without_stage_two_do_not_heed_shares(robot, name):
    q, contacts = standing_solo(robot)
    plain = solved(at_rest(robot, q, contacts), name, {})
    ramped = solved(at_rest(robot, q, shared(contacts, [0.01, 1, 1, 1])), name, {})
    assert np.array_equal(plain.impulses, ramped.impulses)


@pytest.mark.parametrize("per_foot", [1, 3])
@pytest.mark.parametrize("foot", range(4))
def test_a_foot_about_to_lift_is_unloaded(quadruped, per_foot, foot):
    robot, q, contacts = quadruped
    contacts = soles(contacts, per_foot) if per_foot > 1 else contacts
    mine = np.repeat(np.arange(4), per_foot) == foot
    plain = solve(at_rest(robot, q, contacts))
    ramped = solve(at_rest(robot, q, shared(contacts, np.where(mine, 1e-3, 1.0))))
    assert plain.forces[mine, 2].sum() > 0.1 * robot.weight
    assert ramped.forces[mine, 2].sum() < 0.02 * plain.forces[mine, 2].sum()
    change = ramped.forces - plain.forces
    np.testing.assert_allclose(change.sum(axis=0), 0.0, atol=1e-8 * robot.weight)
    moment = np.cross(contacts.points, change).sum(axis=0)
    np.testing.assert_allclose(moment, 0.0, atol=1e-8 * robot.weight)
    # So that it makes no difference when the foot leaves the set.
    lifted = solve(at_rest(robot, q, contacts.subset(~mine)))
    np.testing.assert_allclose(ramped.forces[~mine], lifted.forces, atol=0.01 * robot.weight)


@pytest.mark.parametrize("per_foot", [1, 3])
def test_force_follows_the_share_without_jumps(quadruped, per_foot):
    robot, q, contacts = quadruped
    contacts = soles(contacts, per_foot) if per_foot > 1 else contacts
    mine = np.repeat(np.arange(4), per_foot) == 1
    shares = np.linspace(1e-3, 1.0, 101)
    solutions = [
        solve(at_rest(robot, q, shared(contacts, np.where(mine, share, 1.0)))) for share in shares
    ]
    load = np.array([solution.forces[mine, 2].sum() for solution in solutions])
    torques = np.array([solution.torques for solution in solutions])
    assert np.all(np.diff(load) >= -1e-6 * robot.weight)
    # A straight ramp would have the slope 1.
    step = shares[1] - shares[0]
    assert np.diff(load).max() < 1.8 * step * load[-1]
    assert np.abs(np.diff(torques, axis=0)).max() < 4.0 * step * np.abs(torques[-1]).max()
    assert 0.3 < np.interp(0.5, shares, load) / load[-1] < 0.7


@pytest.mark.parametrize("pair", [(0, 3), (0, 1)])
def test_of_two_feet_none_can_be_relieved(robot, pair):
    """All that is open between two point feet is how hard they push along the line between them."""
    q, contacts = standing_solo(robot)
    contacts = contacts.subset(np.isin(np.arange(4), pair))
    plain = solve(at_rest(robot, q, contacts))
    ramped = solve(at_rest(robot, q, shared(contacts, [1e-3, 1.0])))
    np.testing.assert_allclose(ramped.velocity, plain.velocity, rtol=0, atol=1e-9)
    change = ramped.forces - plain.forces
    line = contacts.points[1] - contacts.points[0]
    np.testing.assert_allclose(np.cross(change, line), 0.0, atol=1e-8 * robot.weight)
    np.testing.assert_allclose(change.sum(axis=0), 0.0, atol=1e-8 * robot.weight)


def test_all_feet_may_be_reluctant_and_the_least_share_is_floored(robot):
    q, contacts = standing_solo(robot)
    even = solve(at_rest(robot, q, shared(contacts, [LEAST_SHARE] * 4)))
    assert even.forces[:, 2].sum() == pytest.approx(robot.weight, rel=1e-8)
    tiny = solve(at_rest(robot, q, shared(contacts, [1e-300] * 4)))
    assert np.array_equal(even.impulses, tiny.impulses)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, np.nan, np.inf, [0.5, 0.5]])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ContactSetError, match="load_share"):
        ContactSet(np.zeros((3, 3)), [[0, 0, 1]] * 3, ["a", "b", "c"], load_share=share)


def test_shares_stay_with_their_contacts(robot):
    contacts = ContactSet(
        np.zeros((3, 3)), [[0, 0, 1]] * 3, ["a", "b", "c"], load_share=[0.2, 1.0, 0.7]
    )
    assert contacts.subset([True, False, True]).load_share.tolist() == [0.2, 0.7]
    assert contacts.moved(np.ones((3, 3))).load_share.tolist() == [0.2, 1.0, 0.7]
    again = contacts.moved(np.ones((3, 3)), load_share=np.array([1.0, 0.5, 0.7]))
    assert again.load_share.tolist() == [1.0, 0.5, 0.7]
    assert contacts.load_share.tolist() == [0.2, 1.0, 0.7]
    feet = FootContacts(robot, [SphereFoot(name, 0.01) for name in SOLO_FEET], HalfSpace())
    mask = np.array([True, True, False, True])
    assert feet.select(mask).load_share.tolist() == [1.0, 1.0, 1.0]
    assert feet.select(mask, np.array([0.1, 0.2, 0.3, 0.4])).load_share.tolist() == [0.1, 0.2, 0.4]
    assert feet.select(mask).load_share.tolist() == [1.0, 1.0, 1.0]
