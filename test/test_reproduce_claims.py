"""Verdicts of ``contact_id reproduce`` come from the runs: with other figures they are others."""

import pytest

from contact_id_controller.experiments.reproduce import walks_report
from contact_id_controller.experiments.reproduce.blocks import (
    BETTERED, NOT_REPRODUCED, REPRODUCED,
)
from contact_id_controller.experiments.reproduce.runs import RunDescription, RunResult


def result(experiment, parameters, **values):
    return RunResult(RunDescription(experiment, parameters), values, "", 1.0, "cpu")


# Walks


def walk(controller, terrain="rigid_high", engine="mujoco", settings="ours", seed=0, **figures):
    parameters = dict(controller=controller, terrain=terrain, engine=engine, settings=settings,
                      engine_model="coulomb/lcp", robot="quadruped", seed=seed, duration_s=30.0)
    usual = dict(finished=True, fell_s=None, distance_m=4.9, position_error_rad=0.005,
                 torque_rate_nm_s=28.0, torque_mean_nm=0.15, com_deviation_m=0.02,
                 force_error_relative=1e-5, force_error_unlimited=1e-5, force_error_median_n=0.0)
    return result("locomotion", parameters, figures={**usual, **figures})


FELL = {"finished": False, "fell_s": 1.0}


def verdicts(claims):
    return [claim.verdict for claim in claims]


def test_a_fall_is_told_with_its_seed_and_standing_still_is_no_walk():
    good = [walk("qp_mu"), walk("lcp_mu", distance_m=0.15)]
    (claim,) = walks_report._finishing(good)
    assert claim.verdict == REPRODUCED and "at least 0.15 m in 30 s (lcp_mu" in claim.evidence
    bad = walk("qp_mu", "height_field", "rigid", seed=7, **FELL)
    (claim,) = walks_report._finishing([*good, bad])
    assert claim.verdict == NOT_REPRODUCED
    assert "fell qp_mu on height_field, rigid, seed 7" in claim.evidence


def test_tracking_is_bettered_only_where_each_controller_beats_its_own_figure():
    pid = walk("pid", position_error_rad=0.1)
    for error, verdict in ((0.025, BETTERED), (0.03, REPRODUCED), (0.2, NOT_REPRODUCED)):
        found = [walk("qp_mu", position_error_rad=0.01), walk("lcp_mu", position_error_rad=error),
                 pid]
        assert verdicts(walks_report._tracking(found)) == [verdict]


def test_a_controller_that_falls_is_not_the_smoothest():
    one, rival = walk("qp_mu"), walk("lcp_mu", torque_rate_nm_s=30.0)
    assert verdicts(walks_report._smoothness([one, rival])) == [BETTERED, REPRODUCED]
    fallen = [walk("qp_mu", "rigid_low", **FELL), walk("lcp_mu", "rigid_low")]
    smooth, _ = walks_report._smoothness([one, rival, *fallen])
    assert smooth.verdict == NOT_REPRODUCED and "(QP, mu fell)" in smooth.evidence
    only_rigid = [walk("qp_mu", engine="rigid"), walk("sensed_1", engine="rigid",
                                                      torque_rate_nm_s=20.0)]
    smooth, _ = walks_report._smoothness(only_rigid)
    assert smooth.verdict == NOT_REPRODUCED and smooth.text.startswith("rigid")


@pytest.mark.parametrize("error, free, verdict", [
    (1e-5, 1e-5, BETTERED), (0.01, 1e-5, BETTERED), (0.01, 0.01, REPRODUCED),
    (0.05, 1e-5, NOT_REPRODUCED),  # limited torques may explain an error, and do not undo it
])
def test_prediction_counts_all_periods(error, free, verdict):
    r = walk("lcp_mu", engine="rigid", settings="papers", force_error_relative=error,
             force_error_unlimited=free)
    assert verdicts(walks_report._prediction([r])) == [verdict]


def test_height_map_and_centre_of_mass_are_measured():
    def bumps(name, error):
        return [walk(name, "height_field", seed=seed, position_error_rad=error)
                for seed in range(2)]

    pid = bumps("pid", 0.1)
    for error, verdict in ((0.05, BETTERED), (0.09, REPRODUCED), (0.11, NOT_REPRODUCED)):
        claims = walks_report._height_map([*bumps("qp_mu", error), *pid])
        assert verdicts(claims) == [verdict] and "2 of 2 stood" in claims[0].evidence
    for deviation, verdict in ((0.03, REPRODUCED), (0.01, NOT_REPRODUCED)):
        found = [walk("qp_mu"), walk("pid"), walk("sensed_1", com_deviation_m=deviation)]
        assert verdicts(walks_report._center_of_mass(found)) == [verdict]


def test_the_printed_objective_is_compared_with_the_printed_figure():
    for error, verdict in ((0.3, REPRODUCED), (0.001, NOT_REPRODUCED), (2.0, NOT_REPRODUCED)):
        r = walk("qp_energy_mu", engine="rigid", settings="papers", force_error_relative=error)
        assert verdicts(walks_report._kinetic_energy([r])) == [verdict]
