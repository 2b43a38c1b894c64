"""Herzog, Schaal, Righetti: the claims about momentum, and the bilinear form that they are judged by."""

import numpy as np
import pytest

from contact_id_controller.files import plain
from contact_id_controller.planning.kinodynamic import solve_momentum
from experiments.papers import kinodynamic, kinodynamic_bilinear, kinodynamic_equations
from experiments.papers.blocks import NOT_REPRODUCED, REPRODUCED, WRONG
from experiments.papers.kinodynamic_bilinear import (
    CURVATURES,
    DROPPED,
    EXACT,
    PER_CONTACT,
)
from experiments.papers.kinodynamic_report import claims, report
from experiments.papers.kinodynamic_scenes import talos
from experiments.papers.store import RunDescription, RunResult


def result(values, **parameters):
    return RunResult(RunDescription(kinodynamic.NAME, parameters), plain(values), "", 1.0, "cpu")


def time(knots, solve_ms, **more):
    usual = dict(
        steps=9,
        cost=0.25,
        defect=1e-14,
        friction_n=0.0,
        ipopt_ms=30.0 * solve_ms,
        ipopt_iterations=15,
        relative_cost=-1e-6,
        sequential_step_ms=None,
    )
    return result({**usual, "solve_ms": solve_ms, **more}, problem="time", knots=knots)


@pytest.fixture(scope="module")
def form():
    return kinodynamic_bilinear._Form(talos(10))


def test_jacobian_of_the_bilinear_form_by_differences(form):
    random = np.random.default_rng(0)
    x, u, _ = form.start()
    x, u = x + 0.1 * random.standard_normal(x.shape), u + 0.1 * random.standard_normal(u.shape)
    way = random.standard_normal(len(x) + len(u))
    up, down = (form.defect(x + h * way[: len(x)], u + h * way[len(x) :]) for h in (1e-6, -1e-6))
    np.testing.assert_allclose((up - down) / 2e-6, form.jacobian(x, u) @ way, atol=1e-7)


def test_curvature_of_the_bilinear_form_by_differences(form):
    """Exact: the derivative of jacobian' multipliers. Parts: positive, and larger than it."""
    random = np.random.default_rng(1)
    x, u, multipliers = form.start()
    multipliers = random.standard_normal(multipliers.shape)
    way = random.standard_normal(len(x) + len(u))
    up, down = (
        form.jacobian(x + h * way[: len(x)], u + h * way[len(x) :]).T @ multipliers
        for h in (1e-5, -1e-5)
    )
    exact = form.curvature(multipliers, EXACT).toarray()
    np.testing.assert_allclose((up - down) / 2e-5, exact @ way, atol=1e-8)
    assert np.linalg.eigvalsh(exact)[0] < -1e-2
    for kept in CURVATURES[1:3]:
        part = form.curvature(multipliers, kept).toarray()
        assert np.linalg.eigvalsh(part)[0] > -1e-12  # positive semidefinite,
        assert np.linalg.eigvalsh(part - exact)[0] > -1e-12  # and what is dropped is negative
    assert form.curvature(multipliers, DROPPED).nnz == 0


def test_every_curvature_leads_to_our_plan():
    ours = solve_momentum(talos(10)).cost
    for kept in CURVATURES:
        found = kinodynamic_bilinear.solve(talos(10), kept)
        if kept == PER_CONTACT:  # splits too much: slow, and at large steps without an end
            assert found.steps > 20
        else:
            assert found.solved and found.steps <= 12
            assert found.cost == pytest.approx(ours, rel=1e-6)


def test_formulas_of_the_paper():
    found = kinodynamic_equations.check()
    assert max(found[name] for name in ("momentum_error", "position_error", "cop_error")) < 1e-9
    np.testing.assert_allclose(
        found["theorem_1_eigenvalues"], [-0.5, -0.5, 0, 0, 0.5, 0.5], atol=1e-12
    )
    np.testing.assert_allclose(found["bound_meant"], found["bound_true"])
    assert found["euler"]["100"]["com_m"] == pytest.approx(0.0097, abs=5e-4)
    verdicts = [claim.verdict for claim in claims([result(found, problem="equations")])]
    assert verdicts == [REPRODUCED, WRONG, WRONG, WRONG]


def test_pressure_stays_and_the_outer_pyramid_leaves_the_cone():
    found = result(kinodynamic.pressure(50), problem="pressure", knots=50)
    assert [claim.verdict for claim in claims([found])] == [REPRODUCED, WRONG]
    assert found["cones"]["cone"]["friction_used"] <= 0.6


@pytest.mark.parametrize(("last_ms", "verdict"), [(85.0, REPRODUCED), (200.0, NOT_REPRODUCED)])
def test_linear_time_is_judged_by_the_runs(last_ms, verdict):
    runs = [time(200, 10.0), time(1600, last_ms, ipopt_ms=None, relative_cost=None)]
    (claim,) = claims(runs)
    assert (
        claim.verdict == verdict
        and "IPOPT takes 30 to 30 times as long up to T = 200" in claim.evidence
    )


def test_a_sequential_step_is_judged_by_the_runs():
    slow = [time(100, 9.0, sequential_step_ms=30.0), time(200, 18.0)]
    quick = [time(100, 9.0, sequential_step_ms=0.5), time(200, 18.0)]
    assert [claims(runs)[1].verdict for runs in (slow, quick)] == [NOT_REPRODUCED, REPRODUCED]


@pytest.mark.parametrize(("steps", "verdict"), [(7, NOT_REPRODUCED), (3, REPRODUCED)])
def test_curvature_is_judged_by_the_runs(steps, verdict):
    row = dict(solved=True, steps=7, cost=0.26, defect=1e-12, stationarity=1e-9)
    methods = dict.fromkeys((*CURVATURES, "ours_gauss_newton"), row)
    methods["per_step"] = {**row, "steps": steps}
    (claim,) = claims([result({"methods": methods}, problem="curvature", knots=50)])
    assert claim.verdict == verdict


def test_section_of_short_runs():
    """Small runs of the real thing; quick ones begin as those of the registry do."""
    runs = [
        result(kinodynamic.times(knots, 1, ipopt_up_to=0), problem="time", knots=knots)
        for knots in (20, 160)
    ]
    section = report(runs)
    assert len(section.blocks) == 3 and section.claims
    assert {run.parameters["problem"] for run in kinodynamic.runs(True)} == {
        "time",
        "curvature",
        "pressure",
        "equations",
    }
