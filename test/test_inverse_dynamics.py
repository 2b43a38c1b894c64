"""The same contacts at many states: bit for bit what ``build_problem`` and ``solve`` say, and no less refused."""

import copy
import pickle

import numpy as np
import pytest
from robots import SOLO_FEET, random_contacts, random_state, solo12, standing_solo

from contact_id_controller import InverseDynamics, build_problem, solve
from contact_id_controller.exceptions import (
    ConfigurationError,
    ContactSetError,
    StateError,
    UnknownModelError,
)
from contact_id_controller.models import contact_models, row_of

DT = 1e-3
PLAIN = [row.pair for row in contact_models() if row.most_contacts is None]


@pytest.fixture(scope="module")
def robot():
    return solo12()


def test_what_is_compared_has_models_with_and_without_a_compiled_call():
    compiled = {row_of(*pair).prepare_frames is not None for pair in PLAIN}
    assert compiled == {True, False}


@pytest.mark.parametrize("pair", PLAIN, ids="/".join)
def test_torques_are_those_of_a_single_solve(robot, pair):
    """Contacts that contradict the plan, with gaps and moving ground; and the same ones elsewhere."""
    rng, statuses = np.random.default_rng(17), set()
    how = {"contact_time_constant_s": 0.02, "penetration_gain": 0.3}
    for _ in range(12):
        q, v = random_state(robot, rng)
        contacts = random_contacts(robot, q, SOLO_FEET, rng)[0]
        ready = InverseDynamics(robot, contacts, DT, *pair, **how)
        for _ in range(3):
            v, acceleration = rng.normal(size=robot.nv), 5.0 * rng.normal(size=robot.na)
            points = contacts.points + 0.01 * rng.normal(size=contacts.points.shape)
            for places in (None, points):
                planted = contacts if places is None else contacts.moved(places)
                problem = build_problem(robot, q, v, acceleration, planted, DT, **how)
                expected = solve(problem, *pair)
                found = ready.torques(q, v, acceleration, places)
                assert found.tobytes() == expected.torques.tobytes()
                whole = ready.solution(q, v, acceleration, places)
                assert whole.status == expected.status
                assert whole.forces.tobytes() == expected.forces.tobytes()
                statuses.add(expected.status)
    assert "solved" in statuses


def test_a_contradiction_gets_the_forces_that_a_single_solve_gives(robot):
    """Status inconsistent: no plain case of the compiled call."""
    q, contacts = standing_solo(robot)
    model, only_report = ("no_slip", "lcp"), {"consistency": "report"}
    ready = InverseDynamics(robot, contacts, DT, *model, **only_report)
    v, rest = np.zeros(robot.nv), np.zeros(robot.na)
    acceleration = 400.0 * np.sin(np.arange(robot.na))  # feet that slip apart
    problem = build_problem(robot, q, v, acceleration, contacts, DT)
    expected = solve(problem, *model, **only_report)
    assert expected.status == "inconsistent"
    assert ready.torques(q, v, acceleration).tobytes() == expected.torques.tobytes()
    calm = solve(build_problem(robot, q, v, rest, contacts, DT), *model, **only_report)
    assert calm.status == "solved"
    assert ready.torques(q, v, rest).tobytes() == calm.torques.tobytes()


def test_options_are_those_of_solve(robot):
    q, contacts = standing_solo(robot)
    v, rest = np.zeros(robot.nv), np.zeros(robot.na)
    for keywords in ({"edges": 8}, {"cone": "exact"}, {"distribution": "least_force"}):
        expected = solve(build_problem(robot, q, v, rest, contacts, DT), **keywords)
        found = InverseDynamics(robot, contacts, DT, **keywords).torques(q, v, rest)
        assert found.tobytes() == expected.torques.tobytes()
    with pytest.raises(UnknownModelError, match="no option 'egdes'"):
        InverseDynamics(robot, contacts, DT, egdes=8)
    with pytest.raises(UnknownModelError, match="feedback alone"):
        InverseDynamics(robot, contacts, DT, "none", "pid")
    with pytest.raises(ConfigurationError, match="period must be"):
        InverseDynamics(robot, contacts, 0.0)


def test_bad_states_are_refused_as_build_problem_does(robot):
    q, contacts = standing_solo(robot)
    v, rest = np.zeros(robot.nv), np.zeros(robot.na)
    ready = InverseDynamics(robot, contacts, DT)
    good = ready.torques(q, v, rest).copy()
    long, wild = q.copy(), v.copy()
    long[3:7] *= 2.0
    wild[7] = np.nan
    for state, message in (
        ((long, v, rest), "must be 1"),
        ((q, wild, rest), "no finite problem"),
        ((q, v, rest[1:]), r"desired_acceleration must have shape \(12,\)"),
        ((q[1:], v, rest), "q must have shape"),
    ):
        for refuse in (ready.torques, lambda *state: build_problem(robot, *state, contacts, DT)):
            with pytest.raises(StateError, match=message):
                refuse(*state)
    with pytest.raises(ContactSetError, match=r"points must have shape \(4, 3\), got \(3, 3\)"):
        ready.torques(q, v, rest, contacts.points[:3])
    assert ready.torques(q.tolist(), v, rest).tobytes() == good.tobytes()


@pytest.mark.parametrize("pair", [("coulomb", "qp"), ("no_slip", "lcp"), ("coulomb", "lcp")])
def test_copies_have_room_of_their_own(robot, pair):
    q, contacts = standing_solo(robot)
    v, rest = np.zeros(robot.nv), np.zeros(robot.na)
    ready = InverseDynamics(robot, contacts, DT, *pair, contact_time_constant_s=0.02, edges=8)
    held = ready.torques(q, v, rest)
    expected = held.copy()
    for twin in (copy.deepcopy(ready), pickle.loads(pickle.dumps(ready))):
        assert twin.torques(q, v, rest).tobytes() == expected.tobytes()
        assert not np.array_equal(twin.torques(q, v, rest + 3.0), expected)
        assert held.tobytes() == expected.tobytes()


def test_a_solution_keeps_its_own_points(robot):
    q, contacts = standing_solo(robot)
    v, rest, points = np.zeros(robot.nv), np.zeros(robot.na), contacts.points.copy()
    solution = InverseDynamics(robot, contacts, DT).solution(q, v, rest, points)
    points += 0.05
    assert solution.dynamics_defect(q, v) < 1e-9


@pytest.mark.parametrize("pair", [("coulomb", "qp"), ("no_slip", "lcp"), ("coulomb", "ncp")])
def test_values_that_do_not_lie_together_in_memory(robot, pair):
    """Columns of tables, one value for all: kernels read numbers that lie together."""
    q, contacts = standing_solo(robot)
    table, shifted = np.zeros((4, 2)), np.zeros((4, 6))
    table[:, 0], shifted[:, ::2] = (0.3, 0.5, 0.7, 0.9), contacts.points + 0.001
    for loose in (
        {"friction": table[:, 0]},
        {"friction": table[::-1, 0]},
        {"load_share": np.broadcast_to(0.1, (4,))},
        {"points": shifted[:, ::2]},
    ):
        dense = {name: np.array(values) for name, values in loose.items()}
        torques = [
            solve(
                build_problem(
                    robot,
                    q,
                    0.1 * np.arange(robot.nv),
                    np.zeros(robot.na),
                    contacts.moved(**values),
                    DT,
                    contact_time_constant_s=0.02,
                ),
                *pair,
            ).torques
            for values in (loose, dense)
        ]
        assert torques[0].tobytes() == torques[1].tobytes()
