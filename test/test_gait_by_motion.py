"""Gait step: its settings, and the planner that they ask for."""

import numpy as np
import pytest
from paths import CONFIG

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.by_velocity import velocity_planner
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.planning.walking.planner import WalkingPlanner
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile

BIPEDS = sorted((CONFIG / "bipeds").glob("*.yaml"))
SOLE = "left_sole_link half_length_m=0.1 half_width_m=0.0625"


@pytest.mark.parametrize("file", BIPEDS, ids=lambda file: file.stem)
def test_a_biped_has_a_planner_that_steps_on_the_controllers_contacts(file):
    file = ParameterFile(file)
    settings = GaitPlannerSettings.from_mapping(file.section("gait_planner"))
    controller = ControllerSettings.from_mapping(file.section("controller"))
    assert settings.contacts == tuple(controller.feet)
    robot = settings.robot()
    planner = velocity_planner(robot, settings)
    assert isinstance(planner, WalkingPlanner) and planner.lead_s == 0.0
    q = robot.configuration([0, 0, 1, 0, 0, 0, 1], np.array(settings.posture))
    planner.set_velocity((0.2, 0.0))
    plan = planner.plan(1.0, q, np.zeros(robot.nv))
    assert plan.walking and plan.contacts.frames == controller.foot_frames
    assert plan.goals.names == tuple(robot.joint_names)
    initial = file.section("simulated_robot")["initial_joint_positions"]
    assert list(settings.posture) == initial


def test_other_gaits_keep_the_gait_planner():
    file = ParameterFile(CONFIG / "quadruped.yaml")
    settings = GaitPlannerSettings.from_mapping(file.section("gait_planner"))
    assert isinstance(velocity_planner(settings.robot(), settings), GaitPlanner)


def changed(**changes):
    file = ParameterFile(CONFIG / "bipeds" / "talos.yaml")
    return {**file.section("gait_planner"), **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"feet": [SOLE, SOLE]}, "'feet' names"),
        ({"feet": ["left_sole_link half_length_m=0.1"]}, "'feet' has"),
        ({"ground": "felt"}, "must be 'level' with gait step"),
        ({"waypoints_m": [1.0, 2.0, 3.0]}, "must be pairs x, y"),
        ({"gait": "trot", "feet": ["a", "b", "c", "d"]}, "must be 0.02 or more with gait trot"),
    ],
)
def test_what_does_not_fit_is_refused(changes, words):
    with pytest.raises(ConfigurationError, match=words):
        GaitPlannerSettings.from_mapping(changed(**changes))


def test_it_goes_to_way_points_until_a_velocity_comes_and_has_one_gait():
    settings = GaitPlannerSettings.from_mapping(changed(waypoints_m=[0.0, 2.0]))
    robot = settings.robot()
    planner = velocity_planner(robot, settings)
    q = robot.configuration([0, 0, 1, 0, 0, 0, 1], np.array(settings.posture))
    for k in range(30):
        planner.plan(1.0 + 0.01 * k, q, np.zeros(robot.nv))
    assert planner.velocity[1] > 0.1 and abs(planner.velocity[0]) < 0.02
    planner.set_velocity((0.0, 0.0))
    for k in range(30, 70):
        planner.plan(1.0 + 0.01 * k, q, np.zeros(robot.nv))
    assert np.abs(planner.velocity).max() < 1e-9
    planner.set_gait("step")
    with pytest.raises(ConfigurationError, match="has only 'step'"):
        planner.set_gait("trot")
