"""Gait step: its settings, and the planner that they ask for."""

import numpy as np
import pytest
import yaml
from paths import CONFIG

from contact_id_controller.check.config import check_file
from contact_id_controller.check.findings import ERROR
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.by_velocity import fit, velocity_planner
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
        ({"ground": "felt"}, "must be 'level' or 'map' with gait step"),
        ({"waypoints_m": [1.0, 2.0, 3.0]}, "must be pairs x, y"),
        ({"gait": "trot", "feet": ["a", "b", "c", "d"]}, "must be 0.02 or more with gait trot"),
    ],
)
def test_what_does_not_fit_is_refused(changes, words):
    with pytest.raises(ConfigurationError, match=words):
        GaitPlannerSettings.from_mapping(changed(**changes))


@pytest.fixture
def stones(tmp_path):
    file = tmp_path / "stones.yaml"
    file.write_text("boxes: [{size_m: [1.0, 2.0, 0.1], top_m: [1.0, 0.0, 0.1]}]\n")
    return str(file)


@pytest.mark.parametrize("name", ["bipeds/talos", "quadruped"])
@pytest.mark.parametrize(
    ("ground", "with_map", "words"),
    [("map", False, "but no map is given"), ("level", True, "must be 'map' where a height map is")],
)
def test_ground_and_map_fit_each_other_for_both_planners(name, ground, with_map, words, stones):
    """In check and where planners are made, in the same line."""
    values = ParameterFile(CONFIG / f"{name}.yaml").section("gait_planner")
    values = {**values, "ground": ground, "ground_file": stones if with_map else ""}
    settings = GaitPlannerSettings.from_mapping(values)
    robot = settings.robot()
    for make in (fit, velocity_planner):
        with pytest.raises(ConfigurationError, match=words):
            make(robot, settings, settings.terrain)


def test_check_refuses_four_feet_that_step_on_a_map(stones, tmp_path):
    nodes = yaml.safe_load((CONFIG / "solo12.yaml").read_text())
    for node in ("controller", "simulated_robot", "gait_planner"):
        nodes[node]["ros__parameters"]["ground_file"] = stones
    changes = {"gait": "step", "ground": "map", "plan_period_s": 0.01}
    nodes["gait_planner"]["ros__parameters"].update(changes)
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(nodes))
    said = [finding.text for finding in check_file(str(file)) if finding.level == ERROR]
    assert any("must be 'level' with gait step of 4 feet" in text for text in said), said


def test_it_goes_to_way_points_until_a_velocity_comes_and_has_one_gait():
    settings = GaitPlannerSettings.from_mapping(changed(waypoints_m=[0.0, 2.0]))
    robot = settings.robot()
    planner = velocity_planner(robot, settings)
    q = robot.configuration([0, 0, 1, 0, 0, 0, 1], np.array(settings.posture))
    for k in range(60):
        planner.plan(1.0 + 0.01 * k, q, np.zeros(robot.nv))
    assert planner.velocity[1] > 0.1 and abs(planner.velocity[0]) < 0.02
    planner.set_velocity((0.0, 0.0))
    for k in range(60, 130):
        planner.plan(1.0 + 0.01 * k, q, np.zeros(robot.nv))
    assert np.abs(planner.velocity).max() < 1e-9
    planner.set_gait("step")
    with pytest.raises(ConfigurationError, match="has only 'step'"):
        planner.set_gait("trot")


@pytest.mark.parametrize("file", BIPEDS, ids=lambda file: file.stem)
def test_check_finds_nothing_wrong_with_the_files(file):
    """But that two point feet cannot stand, and what their URDF has of limits."""
    wrong = [finding for finding in check_file(file) if finding.level == ERROR]
    assert not wrong, wrong
    lines = [finding.text for finding in check_file(file) if finding.subject == "gait planner"]
    assert lines == ["2 feet that step where the motion asks"]


class Recorder:
    """A node whose publishers keep what they publish."""

    def __init__(self):
        self.sent = []

    def create_publisher(self, kind, topic, qos):
        sent = self.sent

        class Publisher:
            def publish(self, message):
                sent.append((topic, message))

        return Publisher()


@pytest.mark.parametrize("name", ["bipeds/talos", "quadruped"])
def test_the_parts_of_a_plan_are_sent_in_order_and_read_again(name):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from contact_id_controller.ros.conversions import contact_schedule
    from contact_id_controller.ros.goals_messages import task_goals
    from contact_id_controller.ros.plan_messages import PlanSender

    file = ParameterFile(CONFIG / f"{name}.yaml")
    settings = GaitPlannerSettings.from_mapping(file.section("gait_planner"))
    robot = settings.robot()
    planner = velocity_planner(robot, settings)
    q = robot.configuration([0, 0, 0.5, 0, 0, 0, 1], np.array(settings.posture))
    planner.set_velocity((0.2, 0.0))
    node = Recorder()
    sender = PlanSender(node, planner.parts)
    for k in range(20):
        plan = planner.plan(1.0 + 0.02 * k, q, np.zeros(robot.nv))
    start_ns = 1_400_000_000
    sender.send(plan, start_ns)
    topics = [topic for topic, _ in node.sent]
    first = contact_schedule(node.sent[0][1])
    assert topics[0] == "contact_schedule" and first.start_s == pytest.approx(1.4)
    assert (first.stance == plan.contacts.stance).all()
    if plan.goals is None:
        assert topics[1:] == ["base_trajectory", "joint_trajectory"]
        return
    goals = task_goals(node.sent[1][1])
    assert topics[1:] == ["task_goals"] and goals.start_s == pytest.approx(1.4)
    assert goals.com.divergent == pytest.approx(plan.goals.com.divergent)
    assert set(goals.feet) == set(plan.goals.feet) and goals.names == plan.goals.names
