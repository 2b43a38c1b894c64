"""``python -m experiments reproduce whole_body_plans``: what is measured, and verdicts that follow the figures."""

import pytest

from experiments.papers import whole_body_plans
from experiments.papers.blocks import BETTERED, NOT_REPRODUCED, REPRODUCED
from experiments.papers.store import RunDescription, RunResult


def result(consensus, **changes):
    values = {
        "whole_plan_s": 0.6,
        "com_m": [3e-3, 1e-3, 5e-4, 2e-4],
        "momentum": [1.0, 0.1, 0.1, 0.1],
        "angular_momentum": [0.7, 0.1, 0.02, 0.01],
        "iterations": [4, 2, 1, 1],
        "sway_m": 0.08,
        "arms_rad": 0.4,
        "largest_spin": 1.0,
        **changes,
    }
    description = RunDescription(whole_body_plans.NAME, {"consensus": consensus, "knots": 100})
    return RunResult(description, values, "", 1.0, "cpu")


def verdicts(*results):
    return {claim.text.split(" (")[0]: claim.verdict for claim in whole_body_plans.claims(results)}


def test_multipliers_agree_in_fewer_passes_than_plain_alternation():
    """Table C of the design, at 100 knots: plain alternation stops to agree, multipliers go on."""
    plain, multipliers = (
        whole_body_plans.alternate(consensus, 100, passes=3)
        for consensus in whole_body_plans.CONSENSUS
    )
    assert multipliers["angular_momentum"][1] < 0.2 and multipliers["com_m"][1] < 2e-3
    assert multipliers["angular_momentum"][2] < 0.5 * plain["angular_momentum"][2]
    assert multipliers["com_m"][2] < 0.5 * plain["com_m"][2]
    assert plain["arms_rad"] > 0.1 and plain["sway_m"] > 0.01


def test_verdicts_follow_the_figures():
    good = verdicts(result("multipliers"), result("plain"))
    assert good["100 knots and two passes take 30 s"] == BETTERED
    assert good["two passes suffice"] == REPRODUCED
    assert good["lateral sway and a swing of the arms appear by themselves"] == REPRODUCED
    stuck = {"angular_momentum": [0.7, 0.3, 0.3, 0.3]}
    bad = verdicts(
        result("multipliers", whole_plan_s=40.0, arms_rad=0.0, **stuck), result("plain", **stuck)
    )
    assert set(bad.values()) == {NOT_REPRODUCED}


def test_without_the_runs_there_are_no_claims():
    others = RunResult(
        RunDescription(whole_body_plans.NAME, {"consensus": "plain", "knots": 50}),
        result("plain").values,
        "",
        1.0,
        "cpu",
    )
    assert whole_body_plans.claims([others]) == []
    section = whole_body_plans.report([others, result("plain")])
    assert [row[0] for row in section.blocks[1].rows] == [50, 100]


@pytest.mark.parametrize("quick", [True, False])
def test_quick_runs_are_some_of_all(quick):
    runs = whole_body_plans.runs(quick)
    assert {run.parameters["consensus"] for run in runs} == {"plain", "multipliers"}
    assert len(runs) == (2 if quick else 6)
