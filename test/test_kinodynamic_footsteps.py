"""Files of footsteps, and every robot in config/plans."""

import numpy as np
import pytest
from kinodynamic_cases import solo12, talos
from paths import CONFIG

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry.ground_file import ground_of
from contact_id_controller.planning.kinodynamic import (
    ContactPlan,
    ContactPlanError,
    Foothold,
    plan_motion,
)
from contact_id_controller.planning.kinodynamic.footstep_file import (
    footsteps_file,
    read_footsteps,
    read_task,
    stones_below,
)
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile

FOLDER = CONFIG / "plans"
ROBOTS = sorted(file.stem for file in FOLDER.glob("*.yaml") if "_" not in file.stem)


def task_of(name):
    values = ParameterFile(FOLDER / f"{name}.yaml").section("kinodynamic_planner")
    settings = KinodynamicPlannerSettings.from_mapping(values)
    return settings, read_task(settings, footsteps_file(settings, FOLDER))


def test_there_are_three_robots():
    assert ROBOTS == ["g1", "solo12", "talos"]


@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_can_step_over_its_stones(name):
    settings, task = task_of(name)
    plan = plan_motion(task.robot, task.contact_plan, settings, start=task.start)
    last = plan.passes[-1]
    scale = task.robot.mass / 90.0
    assert last.com < 2e-3 and last.momentum < 2 * scale and last.angular_momentum < 0.2 * scale
    assert plan.joints.times_s[-1] > 4.0


@pytest.mark.parametrize("name", ROBOTS)
def test_feet_stand_on_the_stones_below_them(name):
    """The height of the ground under the middle of each sole."""
    _, task = task_of(name)
    ground = ground_of(stones_below(task.contact_plan))
    for phase in task.contact_plan.phases:
        for foothold in phase.footholds:
            sole = task.contact_plan.sole_of(foothold.foot)
            top = foothold.position + foothold.rotation @ np.array(sole.center_m)
            height = ground.height(top[0], top[1])
            assert height == pytest.approx(top[2], abs=1e-3)


def test_a_stone_under_the_sole_that_stands_on_another_one_is_refused(tmp_path):
    """Its side lifted G1's toe: the robot fell at 3.7 s."""
    settings, _ = task_of("g1")
    steps = (FOLDER / "g1_stones.yaml").read_text("utf-8")
    assert "[0.36, 0.13, 0.08]" in steps
    file = tmp_path / "close.yaml"
    file.write_text(steps.replace("[0.36, 0.13, 0.08]", "[0.40, 0.13, 0.08]"))
    with pytest.raises(ContactPlanError, match="left_ankle_roll_link .* leave at least 35 mm"):
        stones_below(read_task(settings, file).contact_plan)


def test_the_ground_under_a_foot_is_not_its_frame(tmp_path):
    """A round foot's centre is a radius above, a sole in its own plane."""
    file = tmp_path / "steps.yaml"
    file.write_text("- {foot: FL_FOOT, at: [0.2, 0.1, 0.05], turned: [0, 60, 0]}\n")
    _, soles, _, _ = solo12()
    (foothold,) = read_footsteps(file, soles)
    above = 0.016 * np.array([np.sin(np.pi / 3.0), 0.0, 0.5])
    np.testing.assert_allclose(foothold.position, above + [0.2, 0.1, 0.05], atol=1e-12)
    file.write_text("- {foot: left_sole_link, at: [0.2, 0.1, 0.05]}\n")
    (foothold,) = read_footsteps(file, talos()[1])
    np.testing.assert_allclose(foothold.position, [0.2, 0.1, 0.05])


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[1, ", ConfigurationError, "cannot read"),
        ("a: 1", ConfigurationError, "must be a list of footsteps"),
        ("- {foot: FL_FOOT}", ContactPlanError, r"footstep 1: a foothold needs 'foot' and 'at'"),
        (
            "- {foot: tail, at: [0, 0, 0]}",
            ContactPlanError,
            "footstep 1: foot 'tail' does not exist",
        ),
        ("- {foot: FL_FOOT, at: [0, 0]}", ContactPlanError, "footstep 1: position"),
        *(
            (
                f"- {{foot: FL_FOOT, at: [0, 0, 0], turned: [{turned}]}}",
                ContactPlanError,
                f"footstep 1: the ground of foot 'FL_FOOT' leans by {degrees} degrees, must be at most 75",
            )
            for turned, degrees in (("180, 0, 0", 180), ("0, 90, 0", 90), ("0, -76, 30", 76))
        ),
    ],
)
def test_what_is_no_footstep_is_refused(tmp_path, text, error, message):
    file = tmp_path / "steps.yaml"
    file.write_text(text)
    with pytest.raises(error, match=message):
        read_footsteps(file, solo12()[1])


def test_steep_ground_is_ground(tmp_path):
    file = tmp_path / "steps.yaml"
    file.write_text("- {foot: FL_FOOT, at: [0, 0, 0], turned: [0, 74, 30]}")
    (foothold,) = read_footsteps(file, solo12()[1])
    assert foothold.rotation[2, 2] == pytest.approx(np.cos(np.deg2rad(74)))


def test_ground_of_a_message_that_is_turned_over_is_refused():
    pytest.importorskip("rclpy", reason="messages need ROS 2")
    from geometry_msgs.msg import Quaternion, Transform, Vector3
    from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

    from contact_id_controller.ros.footstep_messages import steps_of

    turn = Transform(translation=Vector3(x=0.1), rotation=Quaternion(x=1.0, w=0.0))
    message = MultiDOFJointTrajectory(
        joint_names=["FL_FOOT"], points=[MultiDOFJointTrajectoryPoint(transforms=[turn])]
    )
    with pytest.raises(ContactPlanError, match="footstep 1: .*leans by 180 degrees"):
        steps_of(message, solo12()[1], 0.6)


def test_a_landing_in_64_years_is_refused_before_there_are_knots_for_it():
    soles = solo12()[1]
    stance = [Foothold(sole.frame, np.zeros(3)) for sole in soles]
    times = {"support_s": 0.3, "swing_s": 0.4}
    plan = ContactPlan.from_footsteps(soles, stance, stance[:1], touchdowns_s=[2e9], **times)
    with pytest.raises(ContactPlanError, match="lasts 2e.09 s, 4e.10 steps .* at most 10000"):
        plan.on_knots(0.05)
    later = ContactPlan.from_footsteps(soles, stance, stance[:1], touchdowns_s=[200.0], **times)
    assert later.on_knots(0.05).duration_s == pytest.approx(later.duration_s)


def test_a_posture_of_another_length_is_refused():
    values = ParameterFile(FOLDER / "solo12.yaml").section("kinodynamic_planner")
    settings = KinodynamicPlannerSettings.from_mapping({**values, "posture": [0.0] * 7})
    with pytest.raises(ConfigurationError, match="'posture' has 7 values, must have 12"):
        read_task(settings, FOLDER / "solo12_stones.yaml")
