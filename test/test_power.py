"""python -m experiments power: the three allocations, what is counted, and the claims of its table."""

import json
import sys

import numpy as np
import pytest
from clarabel_programs import by_clarabel
from paths import ROOT

from experiments.__main__ import run as command
from experiments.power import allocations, quadruped_runs
from experiments.power.allocations import (
    ALLOCATIONS,
    CONES,
    PINV,
    PINV_W,
    PYRAMID,
    Allocation,
    breach,
    pseudo_inverse,
)
from experiments.power.comparison import excess, figures, table
from experiments.power.quadruped_runs import (
    Run,
    configuration,
    legged,
    peak_torque,
)

sys.path.insert(0, str(ROOT / "benchmarks"))

from arm_power import arm_push
from qcqp import reduced_program

DURATION_S = 0.4
A, A_W, B, C = (ALLOCATIONS.index(name) for name in (PINV, PINV_W, PYRAMID, CONES))


@pytest.fixture(scope="module")
def runs():
    """Short runs in which something is at stake: a load, a slope, limits."""
    arm, quadruped = configuration("arms/panda"), configuration("quadruped")
    slope = legged(quadruped, "slope", DURATION_S, slope_deg=20.0, friction=0.6)
    return {
        "arm": arm_push(arm, "arm", DURATION_S),
        "slope": slope,
        "limits": limited_slope(quadruped, 0.97 * peak_torque(slope, PYRAMID)),
        "too tight": limited_slope(quadruped, 0.94 * peak_torque(slope, PYRAMID)),
        "walk": legged(quadruped, "walk", DURATION_S, walk=True, friction=0.3),
    }


def limited_slope(robot, limit_nm):
    return legged(
        robot, "limits", DURATION_S, slope_deg=20.0, friction=0.6, limit_nm=limit_nm, solver="qcqp"
    )


@pytest.mark.parametrize("name", ["arm", "slope", "limits", "too tight", "walk"])
def test_exact_cones_never_violate_and_lose_no_more_where_the_pseudo_inverse_is_feasible(
    runs, name
):
    run = runs[name]
    assert not run.broken[:, C].any()
    # Limits that no torques within them satisfy cost the plan, and are counted as such.
    assert run.kept[:, C].any() and run.kept[:, C].all() == (name != "too tight")
    for base in (PINV, PINV_W):
        assert excess(run, base) <= 1e-6


def test_others_violate_where_the_table_says_so(runs):
    assert runs["arm"].broken[:, A_W, 0].any() and runs["slope"].broken[:, A, 0].any()
    limited = runs["limits"].broken
    assert limited[:, A, 2].any() and limited[:, B, 2].any()
    for run in runs.values():
        assert not run.broken[:, B, :2].any()  # the pyramid lies inside the cone


def test_without_active_limits_the_weighted_pseudo_inverse_is_the_optimum(runs):
    """Two independent computations of the same power, on the slope: nothing is at its bound."""
    run = runs["slope"]
    free = run.strict[:, A_W]
    assert free.sum() > 100
    np.testing.assert_allclose(run.power[free, C], run.power[free, A_W], rtol=1e-8)
    assert np.all(run.power[:, A] >= run.power[:, A_W] * (1 - 1e-12))


def test_the_plan_is_given_up_exactly_where_clarabel_finds_no_solution(runs, monkeypatch):
    """On the slope with limits that are too tight; every 20th period."""
    verdicts = []

    def judged(problem, weights, limits, previous=None):
        answer = allocations.allocate_reduced(problem, weights, limits, previous)
        if problem.contacts.gaps.max() <= 0.0 and len(verdicts) % 20 == 0:
            feasible = str(by_clarabel(reduced_program(problem, limits)).status) == "Solved"
            verdicts.append((feasible, answer[0][CONES].kept))
        else:
            verdicts.append((True, True))
        return answer

    monkeypatch.setattr(quadruped_runs, "allocate_reduced", judged)
    limited_slope(configuration("quadruped"), 0.94 * peak_torque(runs["slope"], PYRAMID))
    assert all(feasible == kept for feasible, kept in verdicts)
    assert sum(not feasible for feasible, _ in verdicts) >= 2


def test_pseudo_inverse_satisfies_its_optimality_conditions():
    rng = np.random.default_rng(0)
    offset, F, E, e, w = (
        rng.normal(size=5),
        rng.normal(size=(5, 9)),
        rng.normal(size=(4, 9)),
        rng.normal(size=4),
        rng.uniform(0.5, 2.0, 5),
    )
    E[3], e[3] = E[2], e[2]  # rows that depend on each other
    F[:, 5:] = F[:, :4]
    u, f = pseudo_inverse(offset, F, E, e, w)
    np.testing.assert_allclose(E @ f, e, atol=1e-12)
    np.testing.assert_allclose(u, offset + F @ f, atol=1e-12)
    gradient = F.T @ (w * u)
    multipliers = np.linalg.lstsq(E.T, gradient, rcond=None)[0]
    np.testing.assert_allclose(E.T @ multipliers, gradient, atol=1e-10)


def test_breaches_are_counted_one_by_one():
    limits, mu = np.array([1.0, 2.0]), np.array([0.5])

    def broken(force, torques=(0.0, 0.0)):
        return tuple(breach(Allocation(np.array(torques), np.array([force]), True), mu, limits))

    assert broken((2.0, 0.8, 0.6)) == (False, False, False)  # on the circle
    assert broken((2.0, 0.8, 0.601)) == (True, False, False)
    assert broken((-1.0, 0.0, 0.0)) == (False, True, False)
    assert broken((-1.0, 0.1, 0.0)) == (True, True, False)
    assert broken((1.0, 0.0, 0.0), (0.0, -2.1)) == (False, False, True)
    assert broken((1.0, 0.0, 0.0), (1.0, -2.0)) == (False, False, False)


def test_an_excess_would_show():
    power = np.array([[2.0, 1.0, 2.0, 1.5], [2.0, 1.0, 2.0, 9.0]])
    strict, kept = np.ones((2, 4), bool), np.ones((2, 4), bool)
    broken = np.zeros((2, 4, 3), bool)
    run = Run("x", 0.5, "y", None, 1e-3, power, broken, strict, kept, power)
    assert excess(run, PINV) == 3.5 and excess(run, PINV_W) == 8.0
    kept[1, C] = False  # where the plan was given up nothing is compared
    assert excess(run, PINV) == -0.25 and excess(run, PINV_W) == 0.5
    rows = figures(run)
    assert [row["power_w"] for row in rows] == [2.0, 1.0, 2.0, 1.5]
    assert rows[C]["plan_given_up"] == 0.5 and "+5.0e-01 (1)" in table(rows)


def test_the_command_writes_table_numbers_and_plot(tmp_path, capsys):
    assert command(["power", "--duration", "0.02", "--output", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "power.json").read_text())
    assert len(result["rows"]) % len(ALLOCATIONS) == 0 and "machine" in result
    assert all(
        row["cone"] == row["pull"] == row["torque"] == 0.0
        for row in result["rows"]
        if row["allocation"] == CONES
    )
    assert (tmp_path / "power.png").stat().st_size > 10_000
    assert "(c) cones" in capsys.readouterr().out


def test_a_duration_without_periods_is_refused(capsys):
    assert command(["power", "--duration", "0"]) == 2
    assert "--duration" in capsys.readouterr().err
