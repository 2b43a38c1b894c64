"""The files for ros2_control name the same joints, order and period as those of the nodes."""

import pytest
import yaml
from paths import CONFIG

from contact_id_controller.settings.parameter_file import load_settings

IN_PROCESS, TRAJECTORY, LINEAR = "_in_process", "_joint_trajectory", "_linear_feedback"
ROBOT_SIDE = "_robot_side"
FILES = sorted((CONFIG / "ros2_control").glob("*.yaml"))


def _sections(file):
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: body["ros__parameters"] for name, body in content.items()}


def _settings(file):
    robot = file.stem
    for kind in (IN_PROCESS, TRAJECTORY, LINEAR, ROBOT_SIDE):
        robot = robot.removesuffix(kind)
    return load_settings(CONFIG / f"{robot}.yaml")


def test_every_walking_robot_has_one():
    robots = {file.stem: _sections(file) for file in CONFIG.glob("*.yaml")}
    # The template for a new file names no robot.
    walking = {name for name, nodes in robots.items() if nodes.get("gait_planner", {}).get("urdf")}
    assert len(walking) >= 4
    for kind in ("", TRAJECTORY):
        assert {name + kind for name in walking} <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_section_belongs_to_a_controller_that_is_started(file):
    sections = _sections(file)
    manager = sections.pop("controller_manager")
    types = {name: body["type"] for name, body in manager.items() if isinstance(body, dict)}
    assert sections.keys() <= types.keys()
    assert types["joint_state_broadcaster"] == "joint_state_broadcaster/JointStateBroadcaster"
    factor = sections.get("contact_id", {}).get("python_downsample_factor", 1)
    assert manager["update_rate"] * _settings(file).period_s == pytest.approx(factor)


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in FILES
        if not file.stem.endswith((IN_PROCESS, TRAJECTORY, LINEAR, ROBOT_SIDE))
    ],
    ids=lambda file: file.stem,
)
def test_the_group_controller_takes_the_joints_in_the_order_of_the_command(file):
    group = _sections(file)["effort_controller"]
    assert tuple(group["joints"]) == _settings(file).joints
    assert group["interface_name"] == "effort"


@pytest.mark.parametrize(
    "file", [file for file in FILES if TRAJECTORY in file.stem], ids=lambda file: file.stem
)
def test_the_trajectory_controller_has_the_gains_of_the_local_feedback(file):
    """Those of the simulated robot's section, which ``contact_id check`` compares with ours."""
    group, settings = _sections(file)["trajectory_controller"], _settings(file)
    robot = _sections(CONFIG / f"{file.stem.removesuffix(TRAJECTORY)}.yaml")["simulated_robot"]
    assert tuple(group["joints"]) == settings.joints == tuple(group["gains"])
    assert group["command_interfaces"] == ["effort"]
    assert group["allow_trajectory_replacement"] is False
    gains = [group["gains"][name] for name in settings.joints]
    assert all(type(value) is float for gain in gains for value in gain.values()), "ROS is strict"
    assert [gain["p"] for gain in gains] == robot["local_position_gain"]
    assert [gain["d"] for gain in gains] == robot["local_velocity_gain"]
    assert all(gain.keys() == {"p", "d"} for gain in gains)


def test_the_linear_feedback_controller_gets_its_whole_state_in_its_order():
    """Its references, as its sources name them: base, joints in the model's order, each from its own state."""
    file = CONFIG / "ros2_control" / "quadruped_linear_feedback.yaml"
    sections, robot = _sections(file), _settings(file).robot()
    joints = [robot.model.names[k] for k in range(2, robot.model.njoints)]
    assert joints != list(robot.joint_names), "else the order would not be seen"
    taken, states = sections["linear_feedback_controller"], sections["joint_state_estimator"]
    assert taken["moving_joint_names"] == joints
    wanted = [f"base_translation_{x}" for x in "xyz"]
    wanted += [f"base_orientation_q{x}" for x in "xyzw"]
    wanted += [f"{joint}/position" for joint in joints]
    wanted += [f"base_{kind}_velocity_{x}" for kind in ("linear", "angular") for x in "xyz"]
    wanted += [f"{joint}/{kind}" for kind in ("velocity", "effort") for joint in joints]
    assert states["command_interfaces"] == [f"linear_feedback_controller/{each}" for each in wanted]
    given = states["state_interfaces"]
    assert len(given) == len(set(given)) == len(wanted)
    for source, target in zip(given, wanted):
        assert source == target or source.startswith("base/") is target.startswith("base_")
