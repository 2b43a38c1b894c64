"""``contact_id demo --state estimated``: what changes in the nodes' parameters, and what is refused."""

import argparse

import pytest
from paths import ROOT

from contact_id_controller.commands import demo
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.runs.estimated_state import FILTER_S
from contact_id_controller.runs.setup import (
    make_setup,
)
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR


def test_nobody_but_the_report_hears_the_oracle(tmp_path):
    setup = make_setup(tmp_path, robot="quadruped", state="estimated")
    assert set(setup.nodes) == {"controller", "simulated_robot", "gait_planner", ESTIMATOR}
    simulated, estimator = setup.parameters["simulated_robot"], setup.parameters[ESTIMATOR]
    assert simulated["ground_truth_topics"] == "separate" and setup.sensors == "good"
    assert estimator["mode"] == "lockstep" and estimator["autostart"] is True
    assert estimator["contact_frames"] == list(setup.settings.contact_frames)
    assert estimator["record_path"].startswith(str(tmp_path.resolve()))
    oracle = make_setup(tmp_path, robot="quadruped")
    assert ESTIMATOR not in oracle.nodes and oracle.sensors == "perfect"
    assert oracle.parameters["simulated_robot"].get("ground_truth_topics", "shared") == "shared"


def test_noisy_velocities_are_filtered(tmp_path):
    """On round feet slips would be seen later: to the noise of good sensors only."""
    for config, sensors, filter_s in (
        ("config/bipeds/g1.yaml", "good", FILTER_S),
        ("config/bipeds/g1.yaml", "perfect", 0.0),
        ("config/quadruped.yaml", "good", 0.0),
        ("config/quadruped.yaml", "cheap", 0.5e-3 * (2.5**2 - 1.0)),
    ):
        choice = {"config": ROOT / config, "sensors": sensors, "state": "estimated"}
        setup = make_setup(tmp_path, robot="mine", **choice)
        assert setup.settings.joint_velocity_filter_s == pytest.approx(filter_s)


def test_the_estimator_has_from_the_controller_what_its_section_lacks(tmp_path):
    setup = make_setup(tmp_path, robot="quadruped")
    text = setup.config.read_text(encoding="utf-8")
    start, end = text.index(f"{ESTIMATOR}:"), text.index("simulated_robot:")
    mine = tmp_path / "mine.yaml"
    mine.write_text(text[:start] + text[end:], encoding="utf-8")
    found = make_setup(tmp_path, robot="mine", config=mine, state="estimated")
    given = make_setup(tmp_path, robot="quadruped", state="estimated")
    for name in ("urdf", "joints", "contact_frames", "contact_radii_m"):
        assert found.parameters[ESTIMATOR][name] == given.parameters[ESTIMATOR][name]


def test_the_command_of_a_report_does_the_same_run_again(tmp_path):
    setup = make_setup(
        tmp_path,
        robot="solo12",
        state="estimated",
        sensors="motor_currents",
        changes=[f"{ESTIMATOR}.cutoff_hz=60.0"],
    )
    assert setup.parameters[ESTIMATOR]["cutoff_hz"] == 60.0
    assert "estimated from motor_currents sensors" in setup.title
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    ((_, choice),) = demo.planned(parser.parse_args(setup.command(tmp_path).split()[2:]))
    assert make_setup(tmp_path, **choice).parameters == setup.parameters


def test_the_estimator_reads_the_wrenches_that_the_simulated_robot_has(tmp_path):
    sensors = ["force_torque LF_FOOT", "foot_pressure RH_FOOT"]
    named = [f"simulated_robot.mounted_sensors={sensors}"]
    choice = {"robot": "quadruped", "state": "estimated"}
    setup = make_setup(tmp_path, **choice, changes=named)
    assert setup.parameters[ESTIMATOR]["mounted_sensors"] == sensors
    fewer = make_setup(
        tmp_path, **choice, changes=[*named, f"{ESTIMATOR}.mounted_sensors={sensors[:1]}"]
    )
    assert fewer.parameters[ESTIMATOR]["mounted_sensors"] == sensors[:1]
    assert "mounted_sensors" not in make_setup(tmp_path, **choice).parameters[ESTIMATOR]


def test_forces_that_a_model_feeds_back_are_not_filtered(tmp_path):
    choice = {"robot": "solo12", "state": "estimated"}
    sensed = make_setup(tmp_path, **choice, friction="none", solver="sensed")
    assert sensed.parameters[ESTIMATOR]["cutoff_hz"] == float("inf")
    assert "cutoff_hz" not in make_setup(tmp_path, **choice).parameters[ESTIMATOR]
    own = [f"{ESTIMATOR}.cutoff_hz=300.0", "friction=none", "solver=sensed"]
    assert make_setup(tmp_path, **choice, changes=own).parameters[ESTIMATOR]["cutoff_hz"] == 300.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "known"}, "state is 'known', must be one of 'estimated', 'oracle'"),
        ({"sensors": "fine"}, "'fine', must be one of 'cheap', 'good'"),
        (
            {"state": "estimated", "changes": [f"{ESTIMATOR}.cutoff=9"]},
            "unknown parameter 'cutoff'",
        ),
    ],
)
def test_what_does_not_exist_is_refused(tmp_path, changes, words):
    with pytest.raises(ConfigurationError, match=words):
        make_setup(tmp_path, robot="quadruped", **changes)
