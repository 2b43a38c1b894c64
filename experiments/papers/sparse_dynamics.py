"""Sparse factorisation paper (Nori 2017), figures 1 and 2: operations of dynamics, counted again.

The paper's are its program's formulas, applied to its own matrices, beside what the same elimination
takes. Ours are traced: every addition and multiplication from sine and cosine, velocities and torques
to the accelerations, with nothing given. Each result is checked against another algorithm.
"""

from __future__ import annotations

import numpy as np

from experiments.papers import sparse_dynamics_equations as equations
from experiments.papers.sparse_dynamics_algorithms import (
    ALONG_FIRST_JOINT,
    CELLS,
    State,
    articulated_body,
    composite_body,
    inverse_dynamics,
    load_cells,
    traced_state,
)
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
from experiments.papers.sparse_dynamics_tracer import Count, Trace
from experiments.papers.sparse_dynamics_trees import (
    Tree,
    general_tree,
    paper_tree,
    regrouped,
)
from experiments.papers.store import RunDescription

NAME = "sparse_dynamics"
FORWARD, LOAD_CELLS, EQUATIONS = "forward", "load_cells", "equations"
LINKS = {FORWARD: range(2, 31), LOAD_CELLS: range(4, 21)}
"""Of figures 1 and 2; the second is drawn up to 30 in the paper."""

QUICK = {FORWARD: (2, 5, 10, 20, 30), LOAD_CELLS: (4, 8, 12, 16, 20)}
GRAVITY = (0.0, 9.81, 0.0)
"""The base's acceleration minus gravity in the author's program."""

LONGEST = 100  # links up to which the paper finds inverse dynamics triangular
ALGORITHMS = {
    "ours": (articulated_body, False),
    "ours_regrouped": (articulated_body, True),
    "joints_last": (composite_body, False),
    "joints_last_regrouped": (composite_body, True),
}
"""Forward dynamics: elimination, and whether with base inertial parameters."""


def runs(quick: bool) -> list[RunDescription]:
    """One for each length of a chain and figure, and the equations."""
    lengths = QUICK if quick else LINKS
    return [
        *(
            RunDescription(NAME, {"problem": problem, "links": links})
            for problem, several in lengths.items()
            for links in several
        ),
        RunDescription(NAME, {"problem": EQUATIONS}),
    ]


def run(description: RunDescription) -> dict:
    """Counts of one chain, or what the paper's equations come to."""
    problem = description.parameters["problem"]
    if problem == EQUATIONS:
        return _equations()
    measure = _forward if problem == FORWARD else _load_cells
    return measure(description.parameters["links"])


def aba_formula(links: int) -> Count:
    """Articulated body algorithm in the literature, and in the paper's figure 1."""
    return Count(205 * links - 248, 224 * links - 259)


def rnea_formula(links: int) -> int:
    """Recursive Newton-Euler in the literature, additions and multiplications together."""
    return 174 * links - 208


def count_forward(tree: Tree, algorithm: str, gravity=None) -> Count:
    """Operations from sine, cosine, velocities and torques to the joint accelerations.

    algorithm: one of ``ALGORITHMS``.  gravity: constant (3,), None: in any direction.
    """
    solve, grouped = ALGORITHMS[algorithm]
    tree, trace = regrouped(tree) if grouped else tree, Trace()
    return trace.count(solve(tree, traced_state(trace, tree.links, gravity)))


def count_inverse(tree: Tree, gravity=None) -> Count:
    """Operations from sine, cosine, velocities and accelerations to the joint torques."""
    trace = Trace()
    state = traced_state(trace, tree.links, gravity)
    return trace.count(inverse_dynamics(tree, state, state.acceleration)[0])


def count_load_cells(tree: Tree) -> Count:
    """Operations from sine, cosine, velocities and what figure 2 measures to the joint torques."""
    trace = Trace()
    state = traced_state(trace, tree.links)
    cells = trace.variables("first", len(CELLS)), trace.variables("last", len(CELLS))
    return trace.count(load_cells(tree, state, *cells)[0])


# Figure 1


def _forward(links: int) -> dict:
    rng = np.random.default_rng(links)
    tree = paper_tree(links)
    q, velocity = rng.uniform(0.0, 10.0, links), rng.uniform(0.0, 1.0, links)
    torque = rng.normal(size=links)
    system = program_system(tree, q, velocity, GRAVITY, forward_measurements(torque))
    state = State(np.cos(q), np.sin(q), velocity, torque, (), GRAVITY)
    acceleration = np.array(articulated_body(tree, state), float)
    found, x = _least({o.__name__: o(system) for o in (leaf_to_root, least_product)}, system)
    unknown = np.array([x[system.columns["qdd", i]][0] for i in range(links)])
    back, _ = inverse_dynamics(tree, state, acceleration)
    last = np.array(composite_body(tree, state), float)
    general = general_tree(links)
    return {
        **{name: count_forward(general, name) for name in ALGORITHMS},
        "rnea": count_inverse(general),
        "rnea_regrouped": count_inverse(regrouped(general)),
        "paper_chain": _fewest(tree),
        "paper_chain_rnea": count_inverse(tree, ALONG_FIRST_JOINT),
        "paper_tree": _fewest(paper_tree(links, branching=1.5)),
        **found,
        **_unpermuted(system),
        "factorisation_error": _relative(unknown, acceleration),
        "joints_last_error": _relative(last, acceleration),
        "torque_error": _relative(np.array(back, float), torque),
    }


def _fewest(tree: Tree) -> int:
    counts = (count_forward(tree, name, ALONG_FIRST_JOINT) for name in ALGORITHMS)
    return min(count.total for count in counts)


def _least(orders: dict[str, Order], system: System) -> tuple[dict, np.ndarray]:
    """Of these orders that with the fewest operations: its name, both counts, and the solution."""
    counted = {name: count_of_elimination(system, order) for name, order in orders.items()}
    name = min(counted, key=lambda name: counted[name][0].total)
    factorisation, substitutions = count_of_program(system, orders[name])
    correct, x = counted[name]
    return {
        "order": name,
        "program": factorisation.total + substitutions.total,
        "program_factorisation": factorisation,
        "correct": correct.total,
    }, x


def _unpermuted(system: System) -> dict:
    """The paper's LU "without permutations"."""
    found, _ = _least({"": partial_pivoting(system)}, system)
    names = ("program", "program_factorisation", "correct")
    return {f"unpermuted_{name}": found[name] for name in names}


def _relative(a, b) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


# Figure 2


def _load_cells(links: int) -> dict:
    rng = np.random.default_rng(links)
    tree = paper_tree(links, taper=1.0)
    q, velocity = rng.uniform(0.0, 10.0, links), rng.uniform(0.0, 1.0, links)
    acceleration, wrench = rng.normal(size=links), rng.normal(size=6)
    state = State(np.cos(q), np.sin(q), velocity, (), acceleration, GRAVITY)
    torques, wrenches = inverse_dynamics(tree, state, acceleration, wrench)
    torques, base = np.array(torques, float), np.concatenate(wrenches[0]).astype(float)
    first, last = base[list(CELLS)], wrench[list(CELLS)]
    measurements = load_cell_measurements(acceleration, first, last)
    system = program_system(tree, q, velocity, GRAVITY, measurements)
    found, x = _least({least_product.__name__: least_product(system)}, system)
    solved = np.array([x[system.columns["tau", i]][0] for i in range(links)])
    ours = np.array(load_cells(tree, state, first, last)[0], float)
    return {
        "ours": count_load_cells(tree),
        "rnea": count_inverse(tree),
        "general": count_load_cells(general_tree(links)).total,
        "general_rnea": count_inverse(general_tree(links)).total,
        **found,
        **_unpermuted(system),
        "torque_error": _relative(ours, torques),
        "factorisation_error": _relative(solved, torques),
    }


# Equations


def _equations() -> dict:
    ordered, rows = equations.peeled(LONGEST)
    seen = equations.seen_by_cells()
    ranks = equations.load_cell_ranks([k for k in range(6) if k not in seen])
    return {
        "property_1_above_diagonal": equations.property_1(),
        "peeled_rows": ordered,
        "peeled_of": rows,
        **{f"property_2_{name}": value for name, value in equations.property_2()._asdict().items()},
        "seen_by_cells": seen,
        "ranks": {str(rank): poses for rank, poses in ranks.items()},
    }
