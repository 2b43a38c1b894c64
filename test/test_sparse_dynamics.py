"""Nori (2017), counted again: operations by trace and by elimination, and the paper's equations."""

import dataclasses
import json

import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import plain
from experiments.papers import sparse_dynamics, sparse_dynamics_equations
from experiments.papers.blocks import (
    BETTERED,
    NOT_REPRODUCED,
    REPRODUCED,
    WRONG,
    Picture,
    Table,
)
from experiments.papers.registry import EXPERIMENTS
from experiments.papers.sparse_dynamics import (
    EQUATIONS,
    FORWARD,
    GRAVITY,
    LOAD_CELLS,
    aba_formula,
    count_forward,
    count_inverse,
    count_load_cells,
    rnea_formula,
)
from experiments.papers.sparse_dynamics_algorithms import (
    ALONG_FIRST_JOINT,
    CELLS,
    State,
    articulated_body,
    composite_body,
    inverse_dynamics,
    load_cells,
    traced_state,
    unknown_accelerations,
)
from experiments.papers.sparse_dynamics_claims import UMFPACK, claims
from experiments.papers.sparse_dynamics_elimination import (
    Order,
    System,
    count_of_elimination,
    count_of_program,
    forward_measurements,
    leaf_to_root,
    least_product,
    load_cell_measurements,
    partial_pivoting,
    program_system,
)
from experiments.papers.sparse_dynamics_tracer import Count, Trace, inverse, is_zero
from experiments.papers.sparse_dynamics_trees import (
    general_tree,
    link_transforms,
    paper_tree,
    regrouped,
    robot_of,
)
from experiments.papers.store import RunDescription, RunResult

SWAP = [3, 4, 5, 0, 1, 2]  # forces first to couples first and back
TREES = {
    "general": general_tree(7),
    "branched": general_tree(8, branching=1.5, seed=3),
    "paper": paper_tree(7, branching=1.5),
}


# The tracer


def test_constants_signs_ones_and_zeros_are_free():
    trace = Trace()
    x = trace.variable("x")
    assert is_zero(0.0 * x) and is_zero(x - x) and is_zero(x * 0)
    assert trace.count([x, -x, 1.0 * x, -1.0 * x, x + 0.0, 0 - x]) == (0, 0)
    assert trace.count([3.0 * (2.0 * x)]) == trace.count([6.0 * x]) == (0, 1)
    assert trace.count([3.0 * (2.0 * x), 6.0 * x]) == (0, 1)  # folded: the same
    assert trace.count([inverse(x), 3.0]) == (0, 1) and inverse(4.0) == 0.25


def test_common_subexpressions_count_once_and_dead_code_does_not():
    trace = Trace()
    x, y = trace.variables("x", 2)
    assert trace.count([x * y, y * x, -(x * y)]) == (0, 1)
    assert trace.count([x - y, y - x, -x + y]) == (1, 0)
    assert trace.count([x + x]) == (0, 1)
    dead = (x + y) * (x + y)
    assert trace.count([x * x]) == (0, 1) and trace.count([dead]) == (1, 1)
    assert Count(3, 4).total == 7


def test_a_trace_computes_what_it_counts():
    trace = Trace()
    x, y = trace.variables("x", 2)
    outputs = [x * y - 2.5, inverse(y - x), -(x + 3.0) * y, 7.0, 3 - (y * 0.5 * x + x - y)]
    a, b = 0.3, -1.7
    wanted = [a * b - 2.5, 1 / (b - a), -(a + 3.0) * b, 7.0, 3 - (b * 0.5 * a + a - b)]
    np.testing.assert_allclose(trace.evaluate(outputs, {"x_0": a, "x_1": b}), wanted, rtol=1e-15)


# The algorithms, judged by Pinocchio


def values_of(links, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.uniform(-3.0, 3.0, links)
    return q, State(np.cos(q), np.sin(q), *rng.normal(size=(3, links)), (0.0, 0.0, 9.81))


def named(state):
    names = ("cosine", "sine", "velocity", "torque", "acceleration", "gravity")
    return {f"{n}_{i}": x for n, part in zip(names, state) for i, x in enumerate(part)}


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("grouped", [False, True])
def test_traced_dynamics_are_pinocchio_s(name, grouped):
    tree = TREES[name]
    q, state = values_of(tree.links)
    model = robot_of(tree).model
    data, used = model.createData(), regrouped(tree) if grouped else tree
    trace = Trace()
    inputs = traced_state(trace, tree.links)
    effort = pin.rnea(model, data, q, state.velocity, state.acceleration)
    found = trace.evaluate(inverse_dynamics(used, inputs, inputs.acceleration)[0], named(state))
    np.testing.assert_allclose(found, effort, rtol=0, atol=1e-10 * np.abs(effort).max())
    wanted = pin.aba(model, data, q, state.velocity, state.torque)
    for algorithm in (articulated_body, composite_body):
        found = trace.evaluate(algorithm(used, inputs), named(state))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


def test_link_transforms_are_pinocchio_s():
    tree = TREES["branched"]
    q, _ = values_of(tree.links)
    model = robot_of(tree).model
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    for X, place in zip(link_transforms(tree, q), data.liMi[1:]):
        np.testing.assert_allclose(X, place.inverse().toActionMatrix()[SWAP][:, SWAP], atol=1e-14)


# Counts


GENERAL = {
    2: ((101, 131), (95, 127), (59, 83), 143),
    5: ((709, 778), (675, 765), (485, 597), 671),
    10: ((1724, 1853), (1645, 1825), (1595, 2037), 1551),
    20: ((3754, 4003), (3585, 3945), (5740, 7517), 3311),
    30: ((5784, 6153), (5525, 6065), (13285, 17297), 5071),
}
"""Links -> ours, regrouped, joints last and regrouped, inverse dynamics."""

PAPER_CHAIN = {2: 63, 5: 790, 10: 2666, 20: 5966, 30: 9266}
PAPER_TREE = {2: 63, 5: 635, 10: 1865, 20: 4856, 30: 7601}
CELL_COUNTS = {4: 826, 8: 2030, 12: 3234, 16: 4438, 20: 5642}


@pytest.mark.parametrize("links", GENERAL)
def test_counts_of_a_general_chain(links):
    tree = general_tree(links)
    names = ("ours", "ours_regrouped", "joints_last_regrouped")
    counts = [count_forward(tree, name) for name in names]
    assert (*counts, count_inverse(tree).total) == GENERAL[links]


@pytest.mark.parametrize("counts, branching", [(PAPER_CHAIN, 1.0), (PAPER_TREE, 1.5)])
def test_counts_of_the_paper_s_chain_and_tree(counts, branching):
    for links, fewest in counts.items():
        tree = paper_tree(links, branching=branching)
        # From 10 links on, or 20 in the tree, the links go first; below, the joints last.
        names = sparse_dynamics.ALGORITHMS if links <= 10 else ("ours", "ours_regrouped")
        found = (count_forward(tree, name, ALONG_FIRST_JOINT).total for name in names)
        assert min(found) == fewest


def test_additions_and_multiplications_are_at_most_aba_s_for_every_length():
    for links in range(2, 31):
        ours, aba = count_forward(general_tree(links), "ours"), aba_formula(links)
        assert ours.additions <= aba.additions and ours.multiplications <= aba.multiplications
        if links > 2:
            assert ours == (203 * links - 306, 215 * links - 297)
    assert aba_formula(30) == (5902, 6461) and rnea_formula(30) == 5012


def test_load_cells_take_less_than_three_times_inverse_dynamics():
    for links in range(4, 21):
        tree = paper_tree(links, taper=1.0)
        ours, inverse_ = count_load_cells(tree).total, count_inverse(tree).total
        assert ours <= 3.0 * inverse_ and CELL_COUNTS.get(links, ours) == ours
    tree = general_tree(20)
    assert count_load_cells(tree).total / count_inverse(tree).total < 2.64


@pytest.mark.parametrize("links", [4, 5, 12, 20])
def test_load_cells_give_the_torques_of_pinocchio(links):
    tree = paper_tree(links, taper=1.0) if links % 2 == 0 else general_tree(links)
    q, state = values_of(links, links)
    model = robot_of(tree).model
    data, wrench = model.createData(), np.random.default_rng(1).normal(size=6)
    forces = pin.StdVec_Force()
    for _ in range(links):
        forces.append(pin.Force.Zero())
    forces.append(pin.Force(wrench[SWAP]))
    effort = pin.rnea(model, data, q, state.velocity, state.acceleration, forces)
    first = data.f[1].vector[SWAP]
    trace = Trace()
    inputs = traced_state(trace, links)
    cells = trace.variables("first", 5), trace.variables("last", 5)
    torques, accelerations, found = load_cells(tree, inputs, *cells)
    values = named(state)
    for i in unknown_accelerations(links):
        del values[f"acceleration_{i}"]  # what it must find
    for name, of in (("first", first), ("last", wrench)):
        values |= {f"{name}_{k}": of[cell] for k, cell in enumerate(CELLS)}
    scale = np.abs(effort).max()
    assert np.abs(trace.evaluate(torques, values) - effort).max() <= 1e-12 * scale
    np.testing.assert_allclose(trace.evaluate(accelerations, values), state.acceleration, atol=1e-9)
    np.testing.assert_allclose(trace.evaluate(found, values), wrench, atol=1e-9 * scale)


# Factorisations


def lu_cost(A):
    """The program's formula, line by line."""
    R, additions, multiplications = A.copy(), 0, 0
    for k in range(len(R) - 1):
        r = np.arange(k + 1, len(R))
        R[r, k] /= R[k, k]
        multiplications += np.count_nonzero(R[r, k])
        R[np.ix_(r, r)] -= np.outer(R[r, k], R[k, r])
        both = R[r, k] * R[k, r]
        additions += np.count_nonzero(both)
        at = np.flatnonzero(both)  # relative to k + 1, used as if it were not
        multiplications += len(at)
        for x in (R[at, k], R[k, at]):
            multiplications -= np.count_nonzero(x - 1.0) + np.count_nonzero(x + 1.0)
    return additions, multiplications


def natural(n):
    return Order(np.arange(n), np.arange(n))


def dense(n):
    rng = np.random.default_rng(n)
    return System(rng.normal(size=(n, n)) + 5.0 * np.eye(n), rng.normal(size=n), {}, {})


def chain_system(links, seed=0):
    tree, rng = paper_tree(links), np.random.default_rng(seed)
    q, velocity, torque = (
        rng.uniform(0, 10, links),
        rng.uniform(0, 1, links),
        rng.normal(size=links),
    )
    state = State(np.cos(q), np.sin(q), velocity, torque, (), GRAVITY)
    return tree, state, program_system(tree, q, velocity, GRAVITY, forward_measurements(torque))


def test_a_dense_matrix_takes_what_the_textbook_says():
    n = 7
    system = dense(n)
    count, x = count_of_elimination(system, natural(n))
    squares = (n - 1) * n * (2 * n - 1) // 6
    divisions = n * (n - 1) // 2 + n
    assert count == (squares + n * (n - 1), squares + divisions + n * (n - 1))
    np.testing.assert_allclose(x, np.linalg.solve(system.A, system.b))
    factorisation, _ = count_of_program(system, natural(n))
    assert factorisation.additions == n * (n - 1) // 2 < squares


def test_ones_zeros_and_new_entries_are_free_in_an_elimination():
    """By hand: l = -1 makes the new entry 2; 1/3, 2/3 and 2/3 off -1 and off 1; then x_2, x_1, x_0."""
    A = np.array([[-1.0, 0.0, 2.0], [1.0, 3.0, 0.0], [0.0, 1.0, -1.0]])
    count, x = count_of_elimination(System(A, np.array([0.0, 2.0, 1.0]), {}, {}), natural(3))
    assert count == (3, 7)
    np.testing.assert_allclose(x, [-0.4, 0.8, -0.2])


@pytest.mark.parametrize("order", [leaf_to_root, least_product, partial_pivoting])
def test_the_program_s_count_is_its_formula(order):
    _, _, system = chain_system(6)
    rows, columns = order(system)
    assert sorted(rows) == sorted(columns) == list(range(len(system.b)))
    factorisation, substitutions = count_of_program(system, Order(rows, columns))
    assert factorisation == lu_cost(system.A[np.ix_(rows, columns)])
    assert min(substitutions) > 0


@pytest.mark.parametrize("order", [leaf_to_root, least_product, partial_pivoting])
def test_every_order_gives_the_accelerations_of_the_blocks(order):
    tree, state, system = chain_system(9)
    count, x = count_of_elimination(system, order(system))
    found = np.array([x[system.columns["qdd", i]][0] for i in range(tree.links)])
    wanted = np.array(articulated_body(tree, state), float)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert count.total > 2 * count_forward(tree, "ours", ALONG_FIRST_JOINT).total


def test_the_program_misses_nearly_all_of_a_factorisation():
    """One addition a joint, fewer than no multiplications: the headline's count."""
    *_, system = chain_system(30)
    counted, _ = count_of_program(system, leaf_to_root(system))
    right, _ = count_of_elimination(system, leaf_to_root(system))
    assert counted.additions == 30 and right.total > 1.7 * aba_formula(30).total
    counted, _ = count_of_program(system, partial_pivoting(system))
    assert counted.multiplications < 0


def test_measurements_must_fill_the_system():
    tree, state, _ = chain_system(4)
    measured = load_cell_measurements(np.zeros(4), np.zeros(5), np.zeros(6))
    with pytest.raises(ConfigurationError, match="have 29 values, must have 28"):
        program_system(tree, np.zeros(4), state.velocity, GRAVITY, measured)


# Equations


def test_property_1_and_its_order_for_a_hundred_links():
    assert sparse_dynamics_equations.property_1() == 0.0
    assert sparse_dynamics_equations.peeled(100) == (2000, 2000)


@pytest.mark.parametrize("seed", range(5))
def test_property_2_holds_after_two_corrections(seed):
    found = sparse_dynamics_equations.property_2(links=5 + seed, seed=seed)
    assert found.corrected < 1e-12 and found.smallest_diagonal > 0.5
    assert found.residual_corrected < 1e-12 * max(1.0, found.residual_printed)
    assert found.printed > 1.0 and found.residual_printed > 1.0


def test_load_cells_are_ill_posed_for_every_pose_and_slippery_ones_are_not():
    assert sparse_dynamics_equations.seen_by_cells() == (0, 1, 5)
    assert sparse_dynamics_equations.load_cell_ranks((2, 3, 4), 300) == {5: 300}
    assert sparse_dynamics_equations.load_cell_ranks((2,), 100) == {2: 100}
    assert sparse_dynamics_equations.load_cell_ranks((0, 1, 2), 100) == {3: 100}


# The report


def result_of(**parameters):
    """A run done here, its values as they come back from a file."""
    description = RunDescription(sparse_dynamics.NAME, parameters)
    values = json.loads(json.dumps(plain(sparse_dynamics.run(description)), allow_nan=False))
    return RunResult(description, values, "", 0.0, "cpu")


@pytest.fixture(scope="module")
def results():
    lengths = [(FORWARD, 2), (FORWARD, 10), (LOAD_CELLS, 4), (LOAD_CELLS, 8)]
    several = [result_of(problem=problem, links=links) for problem, links in lengths]
    return [*several, result_of(problem=EQUATIONS)]


def verdicts(results):
    return {claim.source: claim.verdict for claim in claims(results)}


def test_the_section_has_both_figures_and_a_verdict_on_every_claim(results):
    section = EXPERIMENTS[sparse_dynamics.NAME].report(results)
    assert [type(block) for block in section.blocks[1:]] == [Picture, Table] * 2
    for table in section.blocks[2::2]:
        assert all(len(row) == len(table.head) for row in table.rows)
        assert len(table.commands) == len(table.rows)
    assert [claim.verdict for claim in section.claims] == [
        *(WRONG, WRONG, BETTERED, BETTERED, REPRODUCED, WRONG, WRONG, WRONG, REPRODUCED, WRONG)
    ]
    headline = section.claims[0].evidence
    assert "3,659 by its program, 6,427 in fact" in headline and "3,783" in headline
    assert EXPERIMENTS[sparse_dynamics.NAME].report(results[-1:]).claims == section.claims[4:]


def test_verdicts_follow_the_figures(results):
    def other(at, **values):
        changed = list(results)
        result = changed[at]
        changed[at] = dataclasses.replace(result, values={**result.values, **values})
        return verdicts(changed)

    figure_1 = "sparse factorisation paper, V-D, figure 1"
    assert other(1, correct=3000)[figure_1] == NOT_REPRODUCED
    assert other(1, ours=[1803, 1000])["sparse factorisation paper, V-D"] == NOT_REPRODUCED
    assert other(1, torque_error=1e-3)["sparse factorisation paper, V-D"] == NOT_REPRODUCED
    figure_2 = "sparse factorisation paper, VI, figure 2"
    assert other(2, ours=[400, 435])[figure_2] == REPRODUCED  # 3.004 times inverse dynamics
    assert other(3, torque_error=1e-3)[figure_2] == REPRODUCED
    assert other(3, unpermuted_correct=3000)[figure_2] == NOT_REPRODUCED
    program = {"program_factorisation": [900, 900], "unpermuted_program_factorisation": [900, 900]}
    source = "sparse factorisation paper, program lu_cost.m"
    assert other(1, **program)[source] == NOT_REPRODUCED
    for source, value in {
        "sparse factorisation paper, property 1": {"property_1_above_diagonal": 1.0},
        "sparse factorisation paper, remark 3": {"peeled_rows": 1999},
        "sparse factorisation paper, eq. 35": {"property_2_printed": 0.0},
        "sparse factorisation paper, property 2": {"property_2_residual_printed": 0.0},
        "sparse factorisation paper, property 3 and remark 5": {"ranks": {"6": 2000}},
        "sparse factorisation paper, eq. 19b": {"seen_by_cells": [2, 3, 4]},
    }.items():
        assert other(4, **value)[source] == NOT_REPRODUCED != verdicts(results)[source]


def test_quoted_counts_are_those_of_the_lengths_of_a_quick_run():
    assert {problem: tuple(counts) for problem, counts in UMFPACK.items()} == sparse_dynamics.QUICK
    for links, (program, correct) in UMFPACK[FORWARD].items():
        if links >= 5:
            assert program < aba_formula(links).total < correct
