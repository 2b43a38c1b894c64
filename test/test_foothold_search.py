"""Footholds that may move: the gradient by differences, and better places."""

import dataclasses

import numpy as np
import pytest

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic import foothold_search as freed
from contact_id_controller.planning.kinodynamic.foothold_search import free_footholds
from contact_id_controller.planning.kinodynamic.momentum import solve_momentum, solve_unjudged
from experiments.papers.kinodynamic_scenes import stone_walk, talos

KNOTS = 50


@pytest.fixture(scope="module")
def problem():
    return talos(KNOTS)


def test_each_stay_is_found_once(problem):
    assert freed.stays(problem.contact_plan) == [
        ("left", 4, 7),
        ("left", 8, 9),
        ("right", 2, 5),
        ("right", 6, 9),
    ]


def test_slopes_against_differences(problem):
    places = freed.stays(problem.contact_plan)
    random = np.random.default_rng(0)
    moved, way = 0.02 * random.standard_normal((2, len(places), 2))
    search = freed._Search(problem, places, weight=3.0)
    slope = search(moved.ravel())[1]
    up, down = (search((moved + h * way).ravel())[0] for h in (0.05, -0.05))
    assert (up - down) / 0.1 == pytest.approx(slope @ way.ravel(), rel=2e-3)


def test_footholds_find_better_places(problem):
    fixed = solve_momentum(problem)
    found = free_footholds(problem, (0.05, 0.03))
    assert found.plan.cost < 0.97 * fixed.cost
    assert (np.abs(found.moved_m) <= np.array([0.05, 0.03]) + 1e-12).all()
    assert np.abs(found.moved_m).max() > 0.01
    for old, new in zip(problem.contact_plan.phases, found.plan.problem.contact_plan.phases):
        for a, b in zip(old.footholds, new.footholds):  # in the plane of the ground
            assert abs((b.position - a.position) @ a.rotation[:, 2]) < 1e-12
    first = problem.contact_plan.phases[0]
    assert found.plan.problem.contact_plan.phases[0].footholds == first.footholds


def test_a_foothold_that_was_moved_away_comes_back():
    """Nothing but the foothold's own distance asks for it: the search undoes a shift of 4 cm."""
    problem = talos(KNOTS, stone_walk(tilt_deg=0.0, rise=0.0))
    best = free_footholds(problem, 0.1)
    places = freed.stays(problem.contact_plan)
    away = best.moved_m + 0.04
    contact_plan = freed.moved_plan(problem.contact_plan, places, away)
    shifted = dataclasses.replace(
        problem, contact_plan=contact_plan, contacts=contact_plan.sample(KNOTS)
    )
    again = free_footholds(shifted, 0.1)
    assert solve_unjudged(shifted).cost > 1.05 * best.plan.cost
    assert again.plan.cost == pytest.approx(best.plan.cost, rel=2e-3)


@pytest.mark.parametrize(("within", "weight"), [(-0.1, 0.0), (0.1, -1.0), (np.nan, 0.0)])
def test_bounds_and_weight_are_refused(problem, within, weight):
    with pytest.raises(ConfigurationError, match="must be finite and not negative"):
        free_footholds(problem, within, weight=weight)
