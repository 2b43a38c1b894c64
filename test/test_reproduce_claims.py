"""Verdicts of ``python -m experiments reproduce`` come from the runs: with other figures they are others."""

import dataclasses

import pytest
from matplotlib.figure import Figure

from experiments.papers import (
    chatter_report,
    formulas,
    grasp,
    manipulator,
    manipulator_report,
    running_time,
    walks_claims,
    walks_report,
)
from experiments.papers.blocks import BETTERED, NOT_REPRODUCED, REPRODUCED, WRONG, Table
from experiments.papers.chatter import MODELS, Case
from experiments.papers.store import RunDescription, RunResult


def result(experiment, parameters, **values):
    return RunResult(RunDescription(experiment, parameters), values, "", 1.0, "cpu")


# Walks


def walk(controller, terrain="rigid_high", engine="mujoco", settings="ours", seed=0, **figures):
    parameters = dict(
        controller=controller,
        terrain=terrain,
        engine=engine,
        settings=settings,
        engine_model="coulomb/lcp",
        robot="quadruped",
        seed=seed,
        duration_s=30.0,
    )
    usual = dict(
        finished=True,
        fell_time_s=None,
        distance_travelled_m=4.9,
        mean_joint_position_error_rad=0.005,
        torque_rate_mean_nm_s=28.0,
        torque_mean_nm=0.15,
        com_deviation_m=0.02,
        normal_force_error_of_simulated=1e-5,
        normal_force_error_of_simulated_unsaturated=1e-5,
        normal_force_error_median_n=0.0,
    )
    return result("locomotion", parameters, figures={**usual, **figures})


FELL = {"finished": False, "fell_time_s": 1.0}


def verdicts(claims):
    return [claim.verdict for claim in claims]


def test_a_fall_is_told_with_its_seed_and_standing_still_is_no_walk():
    good = [walk("qp_mu"), walk("lcp_mu", distance_travelled_m=0.15)]
    (claim,) = walks_claims._finishing(good)
    assert claim.verdict == REPRODUCED and "at least 0.15 m in 30 s (lcp_mu" in claim.evidence
    bad = walk("qp_mu", "height_field", "rigid", seed=7, **FELL)
    (claim,) = walks_claims._finishing([*good, bad])
    assert claim.verdict == NOT_REPRODUCED
    assert "fell qp_mu on height_field, rigid, seed 7" in claim.evidence


def test_tracking_is_bettered_only_where_each_controller_beats_its_own_figure():
    pid = walk("pid", mean_joint_position_error_rad=0.1)
    for error, verdict in ((0.025, BETTERED), (0.03, REPRODUCED), (0.2, NOT_REPRODUCED)):
        found = [
            walk("qp_mu", mean_joint_position_error_rad=0.01),
            walk("lcp_mu", mean_joint_position_error_rad=error),
            pid,
        ]
        assert verdicts(walks_claims._tracking(found)) == [verdict]


def test_a_controller_that_falls_is_not_the_smoothest():
    one, rival = walk("qp_mu"), walk("lcp_mu", torque_rate_mean_nm_s=30.0)
    assert verdicts(walks_claims._smoothness([one, rival])) == [BETTERED, REPRODUCED]
    fallen = [walk("qp_mu", "rigid_low", **FELL), walk("lcp_mu", "rigid_low")]
    smooth, _ = walks_claims._smoothness([one, rival, *fallen])
    assert smooth.verdict == NOT_REPRODUCED and "(QP, mu fell)" in smooth.evidence
    only_rigid = [
        walk("qp_mu", engine="rigid"),
        walk("sensed_1", engine="rigid", torque_rate_mean_nm_s=20.0),
    ]
    smooth, _ = walks_claims._smoothness(only_rigid)
    assert smooth.verdict == NOT_REPRODUCED and smooth.text.startswith("rigid")


@pytest.mark.parametrize(
    "error, free, verdict",
    [
        (1e-5, 1e-5, BETTERED),
        (0.01, 1e-5, BETTERED),
        (0.01, 0.01, REPRODUCED),
        (0.05, 1e-5, NOT_REPRODUCED),  # limited torques may explain an error, and do not undo it
    ],
)
def test_prediction_counts_all_periods(error, free, verdict):
    r = walk(
        "lcp_mu",
        engine="rigid",
        settings="papers",
        normal_force_error_of_simulated=error,
        normal_force_error_of_simulated_unsaturated=free,
    )
    assert verdicts(walks_claims._prediction([r])) == [verdict]


def test_height_map_and_centre_of_mass_are_measured():
    def bumps(name, error):
        return [
            walk(name, "height_field", seed=seed, mean_joint_position_error_rad=error)
            for seed in range(2)
        ]

    pid = bumps("pid", 0.1)
    for error, verdict in ((0.05, BETTERED), (0.09, REPRODUCED), (0.11, NOT_REPRODUCED)):
        claims = walks_claims._height_map([*bumps("qp_mu", error), *pid])
        assert verdicts(claims) == [verdict] and "2 of 2 stood" in claims[0].evidence
    for deviation, verdict in ((0.03, REPRODUCED), (0.01, NOT_REPRODUCED)):
        found = [walk("qp_mu"), walk("pid"), walk("sensed_1", com_deviation_m=deviation)]
        assert verdicts(walks_claims._center_of_mass(found)) == [verdict]


def test_table_5_names_the_ground_that_was_simulated():
    table = walks_report._forces(
        [
            walk("qp_mu", terrain, engine, "papers", normal_force_error_n=1.0)
            for terrain, engine in (
                ("rigid_low", "rigid"),
                ("compliant_low", "rigid"),
                ("compliant_low", "mujoco"),
            )
        ]
    )
    assert [row[2] for row in table.rows] == ["coulomb/lcp", "springs and dampers", "MuJoCo"]
    assert [row[4] for row in table.rows] == [3.8009, 7.8260, 7.8260]


def test_the_printed_objective_is_compared_with_the_printed_figure():
    for error, verdict in ((0.3, REPRODUCED), (0.001, NOT_REPRODUCED), (2.0, NOT_REPRODUCED)):
        r = walk(
            "qp_energy_mu", engine="rigid", settings="papers", normal_force_error_of_simulated=error
        )
        assert verdicts(walks_claims._kinetic_energy([r])) == [verdict]


def test_any_single_walk_can_be_reported(monkeypatch):
    monkeypatch.setattr(
        walks_report,
        "draw",
        lambda width, height, rows, columns, fill: fill(
            Figure().subplots(rows, columns, squeeze=False)
        ),
    )
    series = dict(
        time_s=[0.0, 0.1],
        mean_joint_position_error_rad=[0.1, 0.1],
        com_path_m=[[0.0, 0.0, 0.0]],
        waypoints_m=[[0.0, 0.0], [0.25, 0.0]],
    )
    usual = dict(mean_joint_velocity_error_rad_s=0.1, normal_force_error_n=0.1)
    for one in (
        walk("qp_mu", "height_field", seed=3, **usual),
        walk("pid", **usual),
        walk("lcp_mu", engine="rigid", settings="papers", **usual),
    ):
        r = dataclasses.replace(one, values={**one.values, "series": series})
        section = walks_report.report([r])
        assert all(
            len(row) == len(block.head)
            for block in section.blocks
            if isinstance(block, Table)
            for row in block.rows
        )


# The other experiments


def trot(model, mu, duty_factor=0.75, distribution="least_torque", **values):
    case = Case(model, distribution, mu, duty_factor)
    usual = dict(
        fell_time_s=None,
        torque_rate_mean_nm_s=30.0,
        calm_torque_rate_largest_nm_s=100.0,
        share_of_feet_loaded=1.0,
        solve_time_median_s=1e-5,
    )
    return case, result("chatter", case._asdict(), **{**usual, **values})


def test_a_gait_that_falls_is_neither_smooth_nor_like_the_paper():
    one = trot("coulomb/qp", 1.0, distribution="none", torque_rate_mean_nm_s=200.0)
    for fell_s, verdict in ((None, BETTERED), (1.0, NOT_REPRODUCED)):
        found = dict([one, trot("coulomb/qp", 1.0, fell_time_s=fell_s)])
        assert verdicts(chatter_report._claims(found))[1] == verdict
    two_feet = dict(trot(model, 1.0, 0.55) for model in MODELS)
    (claim,) = chatter_report._claims(two_feet)
    assert claim.verdict == REPRODUCED and "two feet" in claim.text
    (claim,) = chatter_report._claims(
        two_feet | dict([trot("coulomb/qp", 1.0, 0.55, fell_time_s=2.0)])
    )
    assert claim.verdict == NOT_REPRODUCED and "coulomb/qp: FAIL" in claim.evidence


def hand(controller="coulomb/qp", engine="mujoco", squeeze_n=0.0, mu=1.0, **values):
    case = manipulator.Case(controller, mu, engine, squeeze_n=squeeze_n)
    usual = dict(
        dropped_s=None,
        diverged_s=None,
        mean_joint_position_error_rad=1e-3,
        tip_forces_n=10.0,
        torque_rate_mean_nm_s=10.0,
    )
    return case, result("manipulator", case._asdict(), **{**usual, **values})


def test_what_is_torn_apart_is_not_held_and_another_time_is_not_the_papers():
    for values, verdict in (({}, BETTERED), ({"diverged_s": 0.1}, NOT_REPRODUCED)):
        found = dict([hand(squeeze_n=20.0, **values)])
        (claim,) = manipulator_report._claims(found)
        assert claim.verdict == verdict
    for dropped_s, dropping, table in (
        (1.2, REPRODUCED, WRONG),
        (0.1, NOT_REPRODUCED, WRONG),
        (None, NOT_REPRODUCED, REPRODUCED),
    ):
        claims = manipulator_report._claims(dict([hand(dropped_s=dropped_s)]))
        assert verdicts(claims) == [dropping, table]


def test_an_arm_without_its_box_is_not_credited_with_its_error():
    def claims(dropped_s):
        found = dict(
            [
                hand("none/pid", mu=100.0, mean_joint_position_error_rad=0.2),
                *(hand(model, mu=100.0, dropped_s=dropped_s) for model in MODELS),
            ]
        )
        return manipulator_report._claims(found)[:2]

    assert verdicts(claims(None)) == [BETTERED, BETTERED]  # coulomb/lcp does not chatter
    tracking, table = claims(0.1)
    assert tracking.verdict == table.verdict == NOT_REPRODUCED
    assert "coulomb/qp FAIL (dropped after 0.1 s)" in table.evidence


def boxes(model, step_s, solve_s, **values):
    usual = dict(
        ten_steps_s=step_s,
        solve_median_s=solve_s,
        dropped_step=None,
        sunk_m=1e-9,
        status_counts={"solved": 100},
    )
    return result("grasp", {"model": model, "boxes": 2}, **{**usual, **values})


def test_grasp_compares_whole_steps_as_the_paper_does():
    def claims(lemke_s, ppm_s, **values):
        runs = (
            boxes("coulomb/lemke", lemke_s, lemke_s),
            boxes("coulomb/lcp", 1.0, 0.1),
            boxes("no_slip/qp", 1.0, 1.0),
            boxes("no_slip/lcp", 1.0, ppm_s, **values),
        )
        return grasp._claims({r.parameters["model"]: r for r in runs})

    assert verdicts(claims(6.0, 0.84)) == [REPRODUCED, BETTERED, BETTERED, REPRODUCED, REPRODUCED]
    assert claims(5.0, 0.84)[0].verdict == NOT_REPRODUCED
    assert claims(6.0, 0.99)[-1].verdict == NOT_REPRODUCED  # one percent is not twenty
    lost = claims(6.0, 0.84, sunk_m=None)[3]
    assert lost.verdict == NOT_REPRODUCED and "threw them away" in lost.evidence


def test_equal_objectives_would_not_be_called_wrong():
    def state(variant, normal_n):
        return result(
            "formulas", {"variant": variant}, normal_n=normal_n, weight_n=24.5, braking_n=0.0
        )

    for normal_n, verdict in ((313.0, WRONG), (24.5, REPRODUCED)):
        found = {"ours": state("ours", 24.5), "kinetic energy": state("kinetic energy", normal_n)}
        assert formulas._claims(found)[0].verdict == verdict


def test_running_time_of_a_slow_machine_is_reported():
    found = {n: {"no_slip/lcp": {"median_s": 0.01 * n}} for n in (4, 8)}
    last = running_time._claims(found)[-1]
    assert last.verdict == NOT_REPRODUCED and "up to 0 contacts" in last.evidence
