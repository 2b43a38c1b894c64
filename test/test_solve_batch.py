"""Many frames at once: bit for bit what each of them gives alone."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
from robots import SOLO_FEET, point_kinematics, random_contacts, random_state, solo12

from contact_id_controller import (
    ContactFrames,
    ContactSet,
    FrameSolutions,
    build_problem,
    solve,
    solve_batch,
)
from contact_id_controller.exceptions import (
    ConfigurationError,
    ContactSetError,
    StateError,
    UnknownModelError,
)
from contact_id_controller.models.batch import FRAME_STATUSES, REFUSED, TOGETHER
from contact_id_controller.runs.worker_pool import processes

DT = 1e-3
MODELS = [("coulomb", "qp"), ("no_slip", "lcp"), ("coulomb", "ncp")]


@pytest.fixture(scope="module")
def robot():
    return solo12()


def case(robot, frames, seed=0):
    """States, accelerations and contacts of some frames; contacts come and go."""
    rng = np.random.default_rng(seed)
    states = [random_state(robot, rng) for _ in range(frames)]
    q, v = (np.array(each) for each in zip(*states))
    sets = [random_contacts(robot, each, SOLO_FEET, rng)[0] for each in q]
    touching = rng.random((frames, 4)) < 0.7
    touching[0], touching[1] = False, True
    contacts = ContactFrames(
        sets[0],
        [each.points for each in sets],
        touching,
        [each.normals for each in sets],
        [each.gaps for each in sets],
        rng.uniform(0.1, 1.0, (frames, 4)),
        rng.normal(size=(frames, 4, 3)),
    )
    return q, v, rng.normal(size=(frames, robot.na)), contacts


def alone(robot, q, v, acceleration, contacts, k):
    """A frame's contacts as a user writes them."""
    rows = np.flatnonzero(contacts.touching[k])
    frame = ContactSet(
        contacts.points[k, rows],
        contacts.normals[k, rows],
        [SOLO_FEET[i] for i in rows],
        contacts.friction[k, rows],
        contacts.gaps[k, rows],
        surface_velocities=contacts.surface_velocities[k, rows],
    )
    return build_problem(
        robot, q[k], v[k], acceleration[k], frame, DT, contact_time_constant_s=0.05
    ), rows


def bits(array):
    return np.ascontiguousarray(array).view(np.uint64)


@pytest.mark.parametrize("model", MODELS, ids="/".join)
def test_each_frame_is_bit_equal_to_a_single_solve(robot, model):
    q, v, acceleration, contacts = case(robot, 40)
    batch = solve_batch(
        robot, q, v, acceleration, contacts, DT, *model, contact_time_constant_s=0.05
    )
    for k in range(40):
        problem, rows = alone(robot, q, v, acceleration, contacts, k)
        single = solve(problem, *model)
        assert (bits(batch.torques[k]) == bits(single.torques)).all()
        assert (bits(batch.forces[k, rows]) == bits(single.forces)).all()
        assert (bits(batch.velocity[k]) == bits(single.velocity)).all()
        assert not batch.forces[k, ~contacts.touching[k]].any()
        assert batch.names[k] == single.status and batch.iterations[k] == single.iterations
        known = single.residuals()
        for name, values in batch.residuals(contacts.friction).items():
            assert values[k] == pytest.approx(known[name], abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [{}, {"distribution": "none"}, {"edges": 8, "polygon": "circumscribed"}, {"cone": "exact"}],
    ids=str,
)
def test_more_frames_than_go_together(robot, options):
    """Standing still on four feet, but for some: two calls' worth, bad frames and hard ones among them."""
    frames = TOGETHER + 20
    q, v, acceleration, contacts = case(robot, frames, seed=4)
    contacts.touching[:] = True
    contacts.touching[5:8, 2] = False
    force = np.random.default_rng(5).normal(size=(frames, robot.nv))
    q[3, 3:7] *= 1.1
    v[70, 2] = np.inf
    bare = ContactFrames(contacts.contacts, contacts.points, contacts.touching)
    batch = solve_batch(robot, q, v, acceleration, bare, DT, external_forces=force, **options)
    assert set(batch.reasons) == {3, 70}
    for k in set(range(frames)) - {3, 70}:
        frame = contacts.contacts.subset(contacts.touching[k])
        rows = np.flatnonzero(contacts.touching[k])
        problem = build_problem(
            robot,
            q[k],
            v[k],
            acceleration[k],
            frame.moved(contacts.points[k, rows]),
            DT,
            external_forces=force[k],
        )
        single = solve(problem, **options)
        assert (bits(batch.torques[k]) == bits(single.torques)).all()
        assert (bits(batch.forces[k, rows]) == bits(single.forces)).all()
        assert batch.names[k] == single.status and batch.iterations[k] == single.iterations
        assert batch.contradiction_m_s[k] == single.contradiction_m_s


@pytest.mark.parametrize("model", MODELS[:2], ids="/".join)
def test_one_contact_whose_normal_is_the_same_in_all_frames(robot, model):
    """Its normals are one row that stands for all: no rows that lie one behind the other."""
    frames = 40
    q, v, acceleration, contacts = case(robot, frames, seed=7)
    only = contacts.contacts.subset([True, False, False, False])
    batch = solve_batch(
        robot, q, v, acceleration, ContactFrames(only, contacts.points[:, :1]), DT, *model
    )
    for k in range(frames):
        frame = only.moved(contacts.points[k, :1])
        single = solve(build_problem(robot, q[k], v[k], acceleration[k], frame, DT), *model)
        assert (bits(batch.torques[k]) == bits(single.torques)).all()
        assert (bits(batch.forces[k]) == bits(single.forces)).all()


def test_a_frame_without_a_problem_stops_no_other(robot):
    """The compiled call ends at the first frame that is not finite: those behind it are solved all the same."""
    q, v, acceleration, contacts = case(robot, 12, seed=6)
    contacts.touching[:] = True
    good = solve_batch(robot, q, v, acceleration, contacts, DT)
    v[4] = 1e200
    batch = solve_batch(robot, q, v, acceleration, contacts, DT)
    assert list(batch.reasons) == [4] and "no finite problem" in batch.reasons[4]
    others = np.arange(12) != 4
    assert (bits(batch.torques[others]) == bits(good.torques[others])).all()


def test_forces_and_torques_move_the_robot_as_newton_says(robot):
    """By Pinocchio alone: M (v+ - v)/dt + h = J^T f + P^T tau."""
    q, v, acceleration, contacts = case(robot, 20, seed=3)
    batch = solve_batch(robot, q, v, acceleration, contacts, DT)
    for k in range(20):
        data = robot.model.createData()
        rest = pin.rnea(robot.model, data, q[k], v[k], (batch.velocity[k] - v[k]) / DT)
        offsets = contacts.points[k] - point_positions(robot, q[k])
        J, _ = point_kinematics(robot, q[k], v[k], SOLO_FEET, offsets)
        rest -= J.T @ batch.forces[k].ravel()
        rest[robot.actuated] -= batch.torques[k]
        size = np.abs(batch.forces[k]).max() + np.abs(batch.torques[k]).max()
        assert np.abs(rest).max() < 1e-8 * size
        moved = (batch.velocity[k] - v[k])[robot.actuated] / DT
        if batch.contradiction_m_s[k] == 0.0:
            np.testing.assert_allclose(moved, acceleration[k], atol=1e-8)


def point_positions(robot, q):
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    return np.array([data.oMf[robot.frame_id(name)].translation for name in SOLO_FEET])


def same(one, other):
    for name in ("torques", "forces", "velocity", "contact_velocity", "contradiction_m_s"):
        assert (bits(getattr(one, name)) == bits(getattr(other, name))).all(), name
    assert (one.status == other.status).all() and one.reasons == other.reasons


def test_workers_and_blocks_change_no_bit(robot):
    q, v, acceleration, contacts = case(robot, 60, seed=1)
    q[17, 3:7] *= 2.0
    whole = solve_batch(robot, q, v, acceleration, contacts, DT)
    with ThreadPoolExecutor(2) as threads:
        same(
            whole,
            solve_batch(robot, q, v, acceleration, contacts, DT, executor=threads, block=7),
        )
    with processes(1) as executor:
        same(
            whole,
            solve_batch(robot, q, v, acceleration, contacts, DT, executor=executor, block=25),
        )


def test_results_go_into_the_room_given(robot):
    q, v, acceleration, contacts = case(robot, 6)
    room = FrameSolutions.room(robot, 6, 4)
    room.reasons[3] = "of the last batch"
    arrays = {name: array for name, array in vars(room).items() if name != "reasons"}
    assert solve_batch(robot, q, v, acceleration, contacts, DT, out=room) is room
    assert all(getattr(room, name) is array for name, array in arrays.items())
    same(room, solve_batch(robot, q, v, acceleration, contacts, DT))
    with pytest.raises(StateError, match=r"torques of out must be .* \(5, 12\) .* got \(6, 12\)"):
        rows = slice(0, 5)
        solve_batch(robot, q[rows], v[rows], acceleration[rows], contacts.part(rows), DT, out=room)
    closed = np.zeros((6, 12))
    closed.setflags(write=False)
    for name, bad in (  # compiled code wrote beyond them, or read other numbers
        ("torques", np.zeros((2, 12))),
        ("torques", np.zeros((6, 12), np.float32)),
        ("torques", np.zeros((6, 12), order="F")),
        ("torques", closed),
        ("velocity", np.zeros((6, 3))),
        ("status", np.zeros(2, np.uint8)),
    ):
        with pytest.raises(StateError, match=f"^{name} of out must be"):
            wrong = dataclasses.replace(room, **{name: bad})
            solve_batch(robot, q, v, acceleration, contacts, DT, out=wrong)


def test_a_bad_frame_is_refused_alone(robot):
    q, v, acceleration, contacts = case(robot, 5)
    good = solve_batch(robot, q, v, acceleration, contacts, DT)
    q[2, 3:7] *= 1.1
    v[4, 0] = np.nan
    batch = solve_batch(robot, q, v, acceleration, contacts, DT)
    assert list(batch.names[[2, 4]]) == [REFUSED] * 2
    assert set(batch.reasons) == {2, 4} and "norm 1.1" in batch.reasons[2]
    assert np.isnan(batch.torques[[2, 4]]).all() and np.isnan(batch.forces[[2, 4]]).all()
    assert all(np.isnan(each[[2, 4]]).all() for each in batch.residuals(0.6).values())
    assert (bits(batch.torques[[0, 1, 3]]) == bits(good.torques[[0, 1, 3]])).all()
    assert FRAME_STATUSES[batch.status[0]] == batch.names[0] == "solved"


def test_a_period_of_its_own_for_each_frame(robot):
    q, v, acceleration, contacts = case(robot, 3)
    periods = np.array([1e-3, 2e-3, 0.2])
    batch = solve_batch(robot, q, v, acceleration, contacts, periods, contact_time_constant_s=0.05)
    for k in range(3):
        rows = slice(k, k + 1)
        one = solve_batch(
            robot,
            q[rows],
            v[rows],
            acceleration[rows],
            contacts.part(rows),
            periods[k],
            contact_time_constant_s=max(0.05, periods[k]),
        )
        assert (bits(batch.torques[k]) == bits(one.torques[0])).all()


def test_bad_input_is_one_line(robot):
    q, v, acceleration, contacts = case(robot, 3)
    wrong = {
        r"q must have shape \(3, 19\), got \(2, 19\)": (q[:2], v, acceleration, contacts, DT),
        r"v must have shape \(3, 18\), got \(3, 17\)": (q, v[:, 1:], acceleration, contacts, DT),
    }
    for message, arguments in wrong.items():
        with pytest.raises(StateError, match=message):
            solve_batch(robot, *arguments)
    with pytest.raises(ConfigurationError, match="period must be a positive"):
        solve_batch(robot, q, v, acceleration, contacts, [DT, 0.0, DT])
    with pytest.raises(ConfigurationError, match=r"period must be a number or have shape \(3,\)"):
        solve_batch(robot, q, v, acceleration, contacts, [DT, DT])
    with pytest.raises(ContactSetError, match="contacts must be a ContactFrames, got a ContactSet"):
        solve_batch(robot, q, v, acceleration, contacts.contacts, DT)
    with pytest.raises(ContactSetError, match="contacts must be a ContactSet, got a list"):
        ContactFrames([], contacts.points)
    with pytest.raises(ConfigurationError, match="executor must have a method submit, got a int"):
        solve_batch(robot, q, v, acceleration, contacts, DT, executor=4)
    with pytest.raises(StateError, match="out must be a FrameSolutions, got a ndarray"):
        solve_batch(robot, q, v, acceleration, contacts, DT, out=np.zeros(3))
    with pytest.raises(ConfigurationError, match="block must be 1 or more, got 0"):
        solve_batch(robot, q, v, acceleration, contacts, DT, block=0)
    with pytest.raises(UnknownModelError, match="none/pid is feedback alone"):
        solve_batch(robot, q, v, acceleration, contacts, DT, "none", "pid")
    with pytest.raises(UnknownModelError, match="no option 'edgs'"):
        solve_batch(robot, q, v, acceleration, contacts, DT, edgs=4)


def test_bad_contacts_name_the_frame(robot):
    *_, contacts = case(robot, 3)
    base, points = contacts.contacts, contacts.points
    with pytest.raises(ContactSetError, match=r"gaps must have shape \(3, 4\), got \(3, 2\)"):
        ContactFrames(base, points, gaps=np.zeros((3, 2)))
    with pytest.raises(ContactSetError, match="touching must be of type bool, got float64"):
        ContactFrames(base, points, np.ones((3, 4)))
    normals = contacts.normals.copy()
    normals[1, 2] *= 1.01
    with pytest.raises(ContactSetError, match="normals of contact 2 in frame 1 must have length 1"):
        ContactFrames(base, points, normals=normals)
    broken = points.copy()
    broken[2, 0, 1] = np.inf
    with pytest.raises(ContactSetError, match="points of contact 0 in frame 2 must be finite"):
        ContactFrames(base, broken)
    unseen = np.ones((3, 4), bool)
    unseen[2, 0] = False
    assert len(ContactFrames(base, broken, unseen)) == 3
    with pytest.raises(
        ContactSetError, match="surface_velocities of contact 3 in frame 1 must be f"
    ):
        moving = np.zeros((3, 4, 3))
        moving[1, 3, 0] = np.nan
        ContactFrames(base, points, surface_velocities=moving)
    with pytest.raises(ContactSetError, match="friction of contact 1 in frame 0 must be 0 or more"):
        friction = np.ones((3, 4))
        friction[0, 1] = np.nan
        ContactFrames(base, points, friction=friction)
