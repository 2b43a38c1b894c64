"""One robot, its copies, its threads and its processes compute the same; values are immutable."""

import copy
import dataclasses
import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pinocchio as pin
import pytest
from robots import SOLO12, SOLO_FEET, random_contacts, random_state

from contact_id_controller import ContactSet, Problem, RobotModel, Solution, build_problem, solve
from contact_id_controller.exceptions import ContactIdError, StateError
from experiments.rigid.constraints import Pin
from experiments.rigid.forward import build_forward_problem, constraint_forces

DT = 1e-3


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(SOLO12)


def cases(robot, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, v = random_state(robot, rng)
        contacts, _ = random_contacts(robot, q, SOLO_FEET, rng)
        yield q, v, rng.normal(size=robot.na), contacts


def answer(robot, q, v, acceleration, contacts):
    """Torques and all that a problem holds, as one vector."""
    problem = build_problem(robot, q, v, acceleration, contacts, DT)
    arrays = [getattr(problem, name).ravel() for name in ("L", "C", "base", "Y", "c", "T")]
    return np.concatenate([solve(problem).torques, *arrays])


def in_another_process(work):
    robot, case = work
    return answer(robot, *case)


@pytest.mark.parametrize("name", ["torques", "impulses", "velocity"])
def test_a_solution_of_another_shape_is_refused(robot, name):
    """Compiled code would read beyond it, or what its memory holds."""
    problem = build_problem(robot, *next(cases(robot, 1)), DT)
    found = solve(problem)
    given = {each: getattr(found, each) for each in ("torques", "impulses", "velocity")}
    for wrong in (given[name][:-1], given[name][:, None], np.zeros((1,) * 9)):
        with pytest.raises(ContactIdError, match=f"{name} of a solution must have shape"):
            Solution(problem, "solved", **{**given, name: wrong})
    Solution(problem, "solved", **{**given, name: given[name].tolist()})


COPIES = {
    "pickle": lambda robot: pickle.loads(pickle.dumps(robot)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "copy of a copy": lambda robot: copy.copy(copy.deepcopy(robot)),
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_robot_computes_what_the_first_one_does(robot, make):
    twin = make(robot)
    work = list(cases(robot, 5))
    expected = [answer(robot, *case) for case in work]
    for case, wanted in zip(work, expected):
        np.testing.assert_array_equal(answer(twin, *case), wanted)
        # The first one is not touched by it.
        np.testing.assert_array_equal(answer(robot, *case), wanted)
    assert twin.joint_names == robot.joint_names and twin.data is not robot.data


def test_a_copy_outlives_the_robot_it_was_made_of():
    robot = RobotModel.from_urdf(SOLO12)
    case = next(cases(robot, 1))
    expected, twin = answer(robot, *case), copy.copy(robot)
    del robot
    np.testing.assert_array_equal(answer(twin, *case), expected)


def test_a_copy_keeps_what_its_owner_changed(robot):
    first = copy.deepcopy(robot)
    first.effort_limits[:] = 3.0
    twin = pickle.loads(pickle.dumps(first))
    assert twin.effort_limits.tolist() == [3.0] * robot.na != robot.effort_limits.tolist()


def test_robots_go_through_multiprocessing(robot):
    work = list(cases(robot, 4))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answers = pool.map(in_another_process, [(robot, case) for case in work])
    for case, found in zip(work, answers):
        # Kernels compiled there need not round as those compiled here.
        np.testing.assert_allclose(found, answer(robot, *case), rtol=1e-9, atol=1e-9)


def test_problems_contacts_and_solutions_go_through_pickle(robot):
    q, v, acceleration, contacts = next(cases(robot, 1))
    problem = build_problem(robot, q, v, acceleration, contacts, DT)
    solution = solve(problem)
    forces = solution.forces
    for make in (lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy, copy.copy):
        twin = make(solution)
        assert isinstance(twin, Solution) and isinstance(twin.problem, Problem)
        assert isinstance(twin.problem.contacts, ContactSet)
        assert twin.problem.contacts.identities == contacts.identities
        np.testing.assert_array_equal(twin.forces, forces)
        assert twin.residuals(q, v) == solution.residuals(q, v)
        np.testing.assert_array_equal(solve(twin.problem).torques, solution.torques)
        again = build_problem(twin.problem.robot, q, v, acceleration, twin.problem.contacts, DT)
        np.testing.assert_array_equal(again.Y, problem.Y)
    forward = build_forward_problem(
        robot, q, v, np.zeros(robot.na), contacts, DT, constraints=[Pin("FL_FOOT")]
    )
    twin = pickle.loads(pickle.dumps(solve(forward)))
    assert type(twin.problem) is type(forward)
    np.testing.assert_array_equal(twin.problem.W, forward.W)
    np.testing.assert_array_equal(constraint_forces(twin), constraint_forces(solve(forward)))
    # A contact set does not drag the robot along that it was last used with.
    assert len(pickle.dumps(contacts)) < 0.5 * len(pickle.dumps(robot))


@pytest.mark.parametrize(
    "make", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy, copy.copy]
)
def test_the_arrays_of_a_copied_problem_lie_in_its_own_store(robot, make):
    q, v, acceleration, contacts = next(cases(robot, 1))
    problem = build_problem(robot, q, v, acceleration, contacts, DT)
    size = len(pickle.dumps(problem))
    for name, array in problem.reduced._asdict().items():
        twin = make(problem)
        if np.size(array) and name not in ("dt", "actuated", "unactuated"):
            assert np.shares_memory(getattr(twin.reduced, name), twin.store), name
    # What was opened is not written twice.
    assert len(pickle.dumps(problem)) == size


def run_threads(*works):
    failures = []

    def guarded(work):
        try:
            work()
        except Exception as error:  # noqa: BLE001  raised again by the main thread
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]


def test_threads_that_share_a_robot_compute_what_one_thread_does(robot):
    works = [list(cases(robot, 300, seed)) for seed in (1, 2)]
    expected = [[answer(robot, *case) for case in work] for work in works]
    found = [[], []]

    def compute(work, out):
        for _ in range(3):
            out += [answer(robot, *case) for case in work]

    run_threads(*(lambda w=w, out=out: compute(w, out) for w, out in zip(works, found)))
    wrong = sum(
        not np.array_equal(each, wanted)
        for out, wanteds in zip(found, expected)
        for each, wanted in zip(out, 3 * wanteds)
    )
    assert wrong == 0, f"{wrong} wrong answers of {sum(map(len, found))}"


def test_threads_that_share_a_robot_solve_its_forward_problems(robot):
    pins = [Pin("FL_FOOT"), Pin("HR_FOOT")]

    def forward(q, v, _, contacts):
        problem = build_forward_problem(
            robot, q, v, np.zeros(robot.na), contacts, DT, constraints=pins
        )
        solution = solve(problem)
        return np.concatenate([solution.velocity, constraint_forces(solution)])

    works = [list(cases(robot, 60, seed)) for seed in (3, 4)]
    expected = [[forward(*case) for case in work] for work in works]
    found = [[], []]

    def compute(work, out):
        out += [forward(*case) for case in work]

    run_threads(*(lambda w=w, out=out: compute(w, out) for w, out in zip(works, found)))
    for out, wanteds in zip(found, expected):
        for each, wanted in zip(out, wanteds):
            np.testing.assert_array_equal(each, wanted)


def test_a_thread_sees_its_own_data(robot):
    seen = []
    run_threads(lambda: seen.append((robot.data, robot.jacobian_view)))
    data, jacobian = seen[0]
    assert data is not robot.data and jacobian is not robot.jacobian_view
    assert robot.data is robot.data and robot.jacobian_view is robot.jacobian_view


def test_values_cannot_be_assigned_to(robot):
    q, v, acceleration, contacts = next(cases(robot, 1))
    problem = build_problem(robot, q, v, acceleration, contacts, DT)
    forward = build_forward_problem(robot, q, v, np.zeros(robot.na), contacts, DT)
    for value, name in (
        (contacts, "friction"),
        (contacts.moved(contacts.points), "points"),
        (contacts.subset([True] + [False] * (len(contacts) - 1)), "points"),
        (problem, "Y"),
        (forward, "base"),
        (forward, "W"),
        (solve(problem), "torques"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, 1.0)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(value, name)
        for act in (lambda: setattr(value, "another", 1.0), lambda: delattr(value, "another")):
            with pytest.raises(dataclasses.FrozenInstanceError):
                act()
        with pytest.raises((AttributeError, TypeError)):
            object.__setattr__(value, "another", 1.0)  # slots


@pytest.mark.parametrize("door", [ContactSet.moved, ContactSet.at])
def test_contacts_moved_change_only_what_is_given(door):
    contacts = ContactSet(
        np.eye(3), np.eye(3), list("abc"), 0.5, [0.1, 0.2, 0.3], viscosity=2.0, load_share=0.5
    )
    changes = {
        "points": np.ones((3, 3)),
        "gaps": np.zeros(3),
        "normals": np.eye(3)[::-1].copy(),
        "load_share": np.ones(3),
        "friction": np.zeros(3),
        "viscosity": np.ones(3),
    }
    for name, value in changes.items():
        moved = door(contacts, **{name: value})
        assert getattr(moved, name) is value
        for other in ContactSet.__slots__:
            if other != name:
                assert getattr(moved, other) is getattr(contacts, other)


# Quaternions


@pytest.mark.parametrize("norm", [0.0, 0.5, 1.01, 2.0, np.nan])
def test_a_quaternion_of_another_norm_is_refused(robot, norm):
    q, v, acceleration, contacts = next(cases(robot, 1))
    q[3:7] *= norm
    with pytest.raises(StateError, match=f"quaternion.*norm {norm:g}, must be 1"):
        build_problem(robot, q, v, acceleration, contacts, DT)


def test_a_quaternion_in_single_precision_is_taken(robot):
    q, v, acceleration, contacts = next(cases(robot, 1))
    rounded = q.astype(np.float32)
    assert (rounded != q).any()
    build_problem(robot, rounded, v, acceleration, contacts, DT)


def test_every_joint_on_a_sphere_or_circle_is_looked_at():
    body = pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))
    kinds = (
        pin.JointModelPlanar(),
        pin.JointModelRUBX(),
        pin.JointModelSpherical(),
        pin.JointModelRX(),
        pin.JointModelTranslation(),
    )
    model = pin.Model()
    for number, kind in enumerate(kinds):
        joint = model.addJoint(number, kind, pin.SE3.Identity(), f"joint_{number}")
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    robot = RobotModel(model, [])
    robot = robot.with_object(1.0, np.eye(3), "box")
    rng, rest = np.random.default_rng(0), np.zeros(robot.nv)
    q = pin.integrate(robot.model, robot.neutral(), rng.normal(size=robot.nv))
    build_problem(robot, q, rest, [], ContactSet.empty(), DT)
    # Those of which Pinocchio's normalisation changes a scaled configuration, and no others.
    names = [robot.model.names[j] for j in range(1, robot.model.njoints)]
    for j, name in enumerate(names, 1):
        scaled, joint = q.copy(), robot.model.joints[j]
        scaled[joint.idx_q : joint.idx_q + joint.nq] *= 1.1
        if np.allclose(pin.normalize(robot.model, scaled), scaled, atol=1e-9):
            build_problem(robot, scaled, rest, [], ContactSet.empty(), DT)
        else:
            with pytest.raises(StateError, match=f"{name}.*norm 1.1, must be 1"):
                build_problem(robot, scaled, rest, [], ContactSet.empty(), DT)
