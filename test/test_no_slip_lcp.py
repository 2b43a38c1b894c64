"""no_slip/lcp: who holds carries load, or the status says that nobody can; judged by plain numpy."""

import itertools

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import linprog

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.solution import INCONSISTENT, RELAXED, SOLVED, STATUSES, UNHOLDABLE

QUADRUPED_FEET = {
    "solo12": ("solo_description/robots/solo12.urdf", "FL_FOOT FR_FOOT HL_FOOT HR_FOOT"),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", "lf_foot rf_foot lh_foot rh_foot"),
}
G1 = "g1_description/urdf/g1_29dof_rev_1_0.urdf"
G1_FEET = ["left_ankle_roll_link", "right_ankle_roll_link"]
SOLE = np.array(
    [[0.1, 0.03, -0.03], [0.1, -0.03, -0.03], [-0.05, 0.03, -0.03], [-0.05, -0.03, -0.03]]
)
NEGLIGIBLE = 1e-6  # of the largest impulse or contact velocity
PRESSED = 1e-9  # of the largest impulse: from here on a contact is loaded


def robot_and_feet(name):
    """A robot, and frame and local position of each of its contacts."""
    if name == "g1":
        robot = RobotModel.from_urdf("example-robot-data://" + G1)
        return robot, [(foot, corner) for foot in G1_FEET for corner in SOLE]
    path, feet = QUADRUPED_FEET[name]
    robot = RobotModel.from_urdf("example-robot-data://" + path)
    return robot, [(foot, np.zeros(3)) for foot in feet.split()]


def random_state(robot, feet, number):
    """Plausible two times in three, else fast; flat or uneven ground; contacts touch."""
    rng = np.random.default_rng([5, number])
    q = robot.neutral()
    q[robot.q_index] = rng.uniform(-0.8, 0.8, robot.na)
    q[3:7] = pin.Quaternion(pin.exp3(0.1 * rng.normal(size=3))).coeffs()
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    points = np.array([data.oMf[robot.frame_id(foot)].act(place) for foot, place in feet])
    plausible = number % 3 > 0
    v = (0.3 if plausible else 1.0) * rng.normal(size=robot.nv)
    acceleration = (5.0 if plausible else 30.0) * rng.normal(size=robot.na)
    normals = np.tile([0.0, 0.0, 1.0], (len(feet), 1))
    if number % 2:
        normals += 0.3 * rng.normal(size=normals.shape)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    friction = rng.choice([0.3, 0.6, 1.0, np.inf])
    contacts = ContactSet(points, normals, [foot for foot, _ in feet], friction)
    time_constant = rng.choice([1e-3, 0.05])
    return build_problem(
        robot, q, v, acceleration, contacts, 1e-3, contact_time_constant_s=time_constant
    )


def violations(solution):
    """How far a solution is from the law, each relative."""
    problem = solution.problem
    z = solution.impulses.reshape(-1, 3) / (np.abs(solution.impulses).max() or 1.0)
    w = (problem.Y @ (problem.Y.T @ solution.impulses) + solution.attainable).reshape(-1, 3)
    w[:, 0] += problem.gap_speed
    w /= max(np.abs(problem.c).max(), np.abs(w).max())
    holds, slips = np.abs(z[:, 1:]).max(axis=1), np.abs(w[:, 1:]).max(axis=1)
    loaded = z[:, 0] > PRESSED
    return {
        "pulls": -z[:, 0].min(),
        "closes": -w[:, 0].min(),
        "parts under load": np.abs(z[:, 0] * w[:, 0]).max(),
        "slips under load": (z[:, 0] * slips).max(),
        "holds without load": holds[~loaded].max(initial=0.0),
    }


def lawful_sets(problem, c):
    """Sets of contacts that can carry load, hold, and let all others part or rest: by linear programs."""
    free = c.copy()
    free[::3] += problem.gap_speed
    scale, unit = np.abs(c).max(), problem.Y.std()
    for size in range(len(problem) + 1):
        for chosen in itertools.combinations(range(len(problem)), size):
            rows = [3 * i + d for i in chosen for d in range(3)]
            u = np.linalg.lstsq(problem.Y[rows], -free[rows], rcond=1e-10)[0]
            w = free + problem.Y @ u
            if np.abs(w[rows]).max(initial=0.0) > 1e-7 * scale or w[::3].min() < -1e-7 * scale:
                continue
            if size:
                # The largest least load of impulses with Y^T z = u.
                A = np.column_stack([problem.Y[rows].T / unit, np.zeros(len(u))])
                least = np.zeros((size, len(rows) + 1))
                least[np.arange(size), 3 * np.arange(size)], least[:, -1] = -1.0, 1.0
                goal = np.append(np.zeros(len(rows)), -1.0)
                bounds = [(-1e4, 1e4)] * len(rows) + [(None, 1.0)]
                found = linprog(goal, least, np.zeros(size), A, u / np.abs(u).max(), bounds=bounds)
                if found.status or found.x[-1] <= 1e-9:
                    continue
            yield chosen


@pytest.mark.parametrize("distribution", ["least_torque", "least_force", "none"])
@pytest.mark.parametrize("name", [*QUADRUPED_FEET, "g1"])
def test_only_loaded_contacts_hold_and_none_slips(name, distribution):
    robot, feet = robot_and_feet(name)
    counts = dict.fromkeys(STATUSES, 0)
    for number in range(60):
        problem = random_state(robot, feet, number)
        solution = solve(problem, "no_slip", "lcp", distribution=distribution)
        counts[solution.status] += 1
        if solution.status in (SOLVED, RELAXED):
            found = violations(solution)
            assert max(found.values()) <= NEGLIGIBLE, (number, found)
    lawful = counts[SOLVED] + counts[RELAXED]
    assert lawful + counts[UNHOLDABLE] + counts[INCONSISTENT] == 60
    assert lawful >= (40 if name == "g1" else 57)


@pytest.mark.parametrize("name", [*QUADRUPED_FEET, "g1"])
def test_unholdable_is_said_only_where_no_set_of_contacts_can_hold(name):
    robot, feet = robot_and_feet(name)
    unholdable = 0
    for number in range(60):
        problem = random_state(robot, feet, number)
        solution = solve(problem, "no_slip", "lcp")
        if solution.status == UNHOLDABLE:
            unholdable += 1
            assert next(lawful_sets(problem, solution.attainable), None) is None
            # The paper's forces: no pull, nothing closes, but something holds without load.
            found = violations(solution)
            assert found["holds without load"] > NEGLIGIBLE
            assert max(found["pulls"], found["closes"], found["parts under load"]) <= NEGLIGIBLE
    assert unholdable >= 1


@pytest.mark.parametrize("name", QUADRUPED_FEET)
def test_the_judge_finds_sets_where_the_model_does(name):
    robot, feet = robot_and_feet(name)
    for number in range(12):
        problem = random_state(robot, feet, number)
        solution = solve(problem, "no_slip", "lcp")
        if solution.status == SOLVED:
            assert next(lawful_sets(problem, solution.attainable), None) is not None
