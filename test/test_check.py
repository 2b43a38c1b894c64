"""``contact_id check``: one thing broken in a good file gives one line that says so."""

import numpy as np
import pytest
import yaml
from paths import CONFIG

from contact_id_controller import cli
from contact_id_controller.check.config import check_config, check_file
from contact_id_controller.check.findings import ERROR, WARNING
from contact_id_controller.check.linear_feedback import check_linear_feedback
from contact_id_controller.estimation.sensor_kinds import KINDS
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.exit_codes import NOT_ALL_WELL
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.settings.robot_files import robots

CROSSING = -0.8  # rad, the hip roll that crosses the quadruped's legs


@pytest.fixture
def good():
    """The parameters of one robot, to be broken."""
    return yaml.safe_load((CONFIG / "quadruped.yaml").read_text(encoding="utf-8"))


def check(content, folder):
    """(level, line) of each finding that is not fine."""
    file = folder / "robot.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return [(f.level, str(f)) for f in check_config(file) if f.level in (ERROR, WARNING)]


def lines(found, level, *words):
    """The findings of a level with all of these words."""
    return [line for kind, line in found if kind == level and all(word in line for word in words)]


def everywhere(content, name, change):
    for section in content.values():
        values = section["ros__parameters"]
        if name in values:
            values[name] = change(values[name])


def with_urdf(content, folder, *replacements):
    """Use a copy of the URDF in which the first of each text is replaced."""
    location = content["controller"]["ros__parameters"]["urdf"]
    text = resolve_urdf(location).read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    file = folder / "robot.urdf"
    file.write_text(text, encoding="utf-8")
    everywhere(content, "urdf", lambda _: str(file))


@pytest.mark.parametrize("file", robots().values(), ids=lambda file: file.stem)
def test_good_files_pass(file, capsys):
    assert cli.run(["check", "--config", str(file)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "0 errors" in printed[-1]
    assert not any("posture: " in line and "differs" in line for line in printed)
    for subject in ("forces", "step time", "inertia", "support", "torques"):
        assert any(f" {subject}: " in line for line in printed), subject


def test_errors_give_their_exit_code_and_are_printed(good, tmp_path, capsys):
    good["controller"]["ros__parameters"]["urdf"] = "nowhere.urdf"
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(good), encoding="utf-8")
    assert cli.run(["check", "--quiet", "--config", str(file)]) == NOT_ALL_WELL
    printed = capsys.readouterr().out
    assert "error    URDF: URDF 'nowhere.urdf' not found" in printed and "ok " not in printed


def test_one_error_is_counted_as_one(good, tmp_path, capsys):
    good["simulated_robot"]["ros__parameters"]["perod_s"] = 0.001
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(good), encoding="utf-8")
    assert cli.run(["check", "--quiet", "--config", str(file)]) == NOT_ALL_WELL
    assert f"{file}: 1 error, " in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_one_line(tmp_path, refusal):
    assert "none.yaml" in refusal("check", "--config", str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    "node, change, words",
    [
        ("simulated_robot", {"urdf": None}, "'urdf' is empty"),
        ("simulated_robot", {"contact_frames": None}, "contact_frames (by default) differs"),
        ("simulated_robot", {"contact_radii_m": None}, "contact_radii_m (by default) differs"),
        ("simulated_robot", {"initial_joint_positions": None}, "initial_joint_positions (by def"),
        ("simulated_robot", {"perod_s": 0.001}, "did you mean 'period_s'"),
        ("simulated_robot", {"friction_coefficient": -1.0}, "is -1, must be within"),
        ("gait_planner", {"foot_radius_m": None}, "foot_radius_m is 0.01, controller"),
        ("controller", {"period_s": None}, "controller.period_s (by default) is 0.001"),
        *((node, {"joints": None}, "joints") for node in ("simulated_robot", "gait_planner")),
    ],
)
def test_what_one_section_lacks_or_misspells_is_told(tmp_path, node, change, words):
    """Names and values of the simulated robot were not looked at; a default may be another value than the controller's."""
    content = yaml.safe_load((CONFIG / "solo12.yaml").read_text(encoding="utf-8"))
    if node == "controller":
        everywhere(content, "period_s", lambda _: 0.002)
    if words == "joints":  # the URDF's order is then another one
        everywhere(content, "joints", lambda names: names[3:] + names[:3])
    values = content[node]["ros__parameters"]
    content[node]["ros__parameters"] = {
        k: v for k, v in {**values, **change}.items() if v is not None
    }
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    found = [each for each in check_file(file) if each.level in (ERROR, WARNING)]
    assert len(found) == 1 and words in found[0].text, found


def test_defaults_that_differ_are_told_where_both_sections_lack_the_name(tmp_path):
    """Feet of the simulated robot were 1 cm from where the controller had them, and the sections agreed."""
    content = yaml.safe_load((CONFIG / "solo12.yaml").read_text(encoding="utf-8"))
    for section in ("simulated_robot", "controller"):
        del content[section]["ros__parameters"]["contact_radii_m"]
    content["gait_planner"]["ros__parameters"]["foot_radius_m"] = 0.0
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert any("contact_radii_m" in each.text for each in check_file(file) if each.level == ERROR)


def test_a_default_that_is_the_value_of_the_other_section_is_no_finding(tmp_path):
    content = yaml.safe_load((CONFIG / "solo12.yaml").read_text(encoding="utf-8"))
    everywhere(content, "contact_radii_m", lambda _: [0.01] * 4)
    content["controller"]["ros__parameters"]["motors"] = []
    for section, names in {
        "simulated_robot": ("joints", "period_s", "contact_radii_m"),
        "gait_planner": ("joints", "posture", "foot_radius_m"),
        "command_watchdog": ("urdf",),
    }.items():
        for name in names:
            del content[section]["ros__parameters"][name]
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert not [str(each) for each in check_file(file) if each.level in (ERROR, WARNING)]


VALUES = [
    ("solver", "magic", ("contact model", "magic")),
    ("joint_velocity_gain", [2500.0], ("gains", "velocity gain times period below 2")),
    ("base_angular_velocity_gain", [0.0], ("gains", "base_angular_velocity_gain 0")),
    ("motor_resistance_ohm", [0.4], ("parameter", "is part of 'motor_constant_nm_sqrt_w' now")),
    ("effort_limits_nm", [0.1], ("torques", "needs", "its limit is 0.1 N·m")),
    ("effort_limits_nm", [float("inf")], ("limits", "no effort limit")),
    ("contact_radii_m", [0.01, 0.01, 0.01, 0.03], ("feet", "'LF_FOOT'", "20.0 mm above")),
]


@pytest.mark.parametrize(
    "name, value, words", VALUES, ids=[f"{name}-{i}" for i, (name, _, _) in enumerate(VALUES)]
)
def test_bad_value_of_the_controller(good, tmp_path, name, value, words):
    good["controller"]["ros__parameters"][name] = value
    assert lines(check(good, tmp_path), ERROR, *words)


@pytest.mark.parametrize(
    "solver, mu, warned", [("qp", 3.0, True), ("qp", 2.9, False), ("ncp", 10.0, False)]
)
def test_friction_too_steep_for_the_law_is_warned_of(good, tmp_path, solver, mu, warned):
    """A model that slides with several times the torque of the exact law says so where it is chosen."""
    good["controller"]["ros__parameters"].update(solver=solver, friction_coefficient=[mu])
    found = lines(check(good, tmp_path), WARNING, "contact model", "coulomb/ncp, or state less")
    assert bool(found) is warned


def test_every_bad_value_has_its_line(good, tmp_path):
    good["controller"]["ros__parameters"].update(period_s="fast", friction_edges=2, wheel=1)
    found = lines(check(good, tmp_path), ERROR, "parameter")
    assert len(found) == 3 and all(
        any(name in line for line in found) for name in ("period_s", "friction_edges", "wheel")
    )


def test_unknown_joint_is_named(good, tmp_path):
    everywhere(good, "joints", lambda names: [*names[:-1], "RH_KNEE"])
    found = check(good, tmp_path)
    assert lines(found, ERROR, "joints", "'RH_KNEE' is not in the URDF")
    assert lines(found, WARNING, "RH_KFE", "stay passive")


KNEE = '<joint name="LF_KFE" type="revolute">'


@pytest.mark.parametrize(
    "replacement, level, words",
    [
        (('ixx="', 'ixx="-'), ERROR, ("inertia", "not positive definite")),
        (('ixx="', 'ixx="9'), WARNING, ("inertia", "exceeds the sum of the others")),
        (('velocity="', 'velocity="0" was="'), WARNING, ("limits", "no velocity limit")),
        (('effort="', 'effort="0" was="'), ERROR, ("limits", "no effort limit")),
        (('lower="', 'lower="0.5" was="'), ERROR, ("posture", "outside its limits [0.5")),
        (
            (KNEE, f'{KNEE}<mimic joint="LF_HFE" multiplier="-2"/>'),
            WARNING,
            ("joints", "['LF_KFE'] mimic others"),
        ),
        (("<robot", "<robot <"), ERROR, ("URDF", "not well-formed")),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_broken_description(good, tmp_path, replacement, level, words):
    with_urdf(good, tmp_path, replacement)
    assert lines(check(good, tmp_path), level, *words)


@pytest.mark.parametrize("roll", [0.8, -0.8])
def test_feet_on_the_wrong_side(good, tmp_path, roll):
    """Hip rolls of one sign spread the legs, of the other they cross."""

    def turn(values):
        return [abs(v) / v * roll if i % 3 == 0 else v for i, v in enumerate(values)]

    for name in ("posture", "initial_joint_positions"):
        everywhere(good, name, turn)
    found = lines(
        check(good, tmp_path), ERROR, "on the right side, the leg on the left", "'LF_FOOT'"
    )
    assert bool(found) == (roll == CROSSING)


def test_two_feet_do_not_carry_the_weight(good, tmp_path):
    good["controller"]["ros__parameters"]["contact_frames"] = ["LF_FOOT", "RF_FOOT"]
    del good["simulated_robot"], good["gait_planner"]
    found = check(good, tmp_path)
    assert lines(found, WARNING, "posture", "none is given")
    assert lines(found, WARNING, "support", "no area")
    assert lines(found, ERROR, "forces")


def test_centre_of_mass_outside_the_feet(good, tmp_path):
    """Three feet cannot carry a body that is heavy over the fourth."""
    good["controller"]["ros__parameters"]["contact_frames"] = ["LF_FOOT", "RF_FOOT", "LH_FOOT"]
    del good["simulated_robot"]
    with_urdf(
        good, tmp_path, ('<mass value="3.6"/>', '<origin xyz="-0.1 -0.1 0"/><mass value="3.6"/>')
    )
    found = check(good, tmp_path)
    assert lines(found, ERROR, "support", "outside the feet")
    assert lines(found, ERROR, "forces")


def test_robot_that_is_too_light_for_its_motors(good, tmp_path):
    good["controller"]["ros__parameters"] |= {
        "effort_limits_nm": [1000.0],
        "effort_above_description": True,
    }
    found = check(good, tmp_path)
    assert lines(found, WARNING, "torques", "the masses (4.8 kg) are too small, or the limits")
    assert lines(found, WARNING, "motors", "gear included?")


def test_arm_without_ground_is_checked_as_well():
    levels = {finding.level for finding in check_config(CONFIG / "arms" / "panda.yaml")}
    assert ERROR not in levels


def test_slow_step_is_a_warning(good, tmp_path):
    del good["dynamics_estimator"], good["simulated_robot"]  # they take none below 100 us
    everywhere(good, "period_s", lambda _: 5e-5)
    found = check(good, tmp_path)
    assert lines(found, WARNING, "step time", "of a period of 50 us")
    assert not [line for level, line in found if level == ERROR]


TALOS = {
    "urdf": "example-robot-data://talos_data/robots/talos_reduced.urdf",
    "locked_joints": [
        "gripper_left_joint",
        "gripper_right_joint",
        "head_1_joint",
        "head_2_joint",
    ],
    "soles": [
        f"{side}_sole_link half_length_m=0.1 half_width_m=0.06" for side in ("left", "right")
    ],
}
LEG, ARM = [0.0, 0.0, -0.41, 0.86, -0.45, 0.0], [0.17, 0.0, -0.53, 0.0, 0.0, 0.1]
TALOS_POSTURE = [*LEG, *LEG, 0.0, 0.0, 0.26, *ARM, -0.26, -0.17, *ARM[1:]]


def test_a_humanoid_with_soles_and_locked_joints(tmp_path):
    sections = {
        "controller": dict(TALOS),
        "simulated_robot": {**TALOS, "initial_joint_positions": TALOS_POSTURE},
    }
    content = {node: {"ros__parameters": values} for node, values in sections.items()}
    found = check(content, tmp_path)
    assert not lines(found, ERROR)
    assert not lines(found, WARNING, "passive")
    narrow = [text.replace("0.06", "0.05") for text in TALOS["soles"]]
    sections["simulated_robot"]["soles"] = narrow
    sections["simulated_robot"]["locked_joints"] = TALOS["locked_joints"][:3]
    sections["simulated_robot"]["floating_base"] = False
    found = check(content, tmp_path)
    assert lines(found, ERROR, "soles", "0.05")
    assert lines(found, ERROR, "simulated_robot.floating_base is False, controller.floating_base")
    assert lines(found, ERROR, "locked_joints", "lacks 'head_2_joint'")
    sections["controller"]["ground_file"] = "nowhere.yaml"
    assert lines(check(content, tmp_path), ERROR, "ground file 'nowhere.yaml' cannot be read")


def test_a_posture_at_the_end_of_a_joint_is_named(good, tmp_path):
    """Torque towards that end is cut there."""
    at = "at an end of its range"
    assert not lines(check(good, tmp_path), WARNING, at)
    robot = RobotModel.from_urdf(good["controller"]["ros__parameters"]["urdf"])
    posture = good["gait_planner"]["ros__parameters"]["posture"]
    posture[2] = float(robot.upper[2]) - 1e-5
    assert len(lines(check(good, tmp_path), WARNING, "gait_planner.posture", at)) == 1
    good["controller"]["ros__parameters"]["position_stops"] = False
    assert not lines(check(good, tmp_path), WARNING, at)


def test_the_watchdog_must_not_forward_more_than_the_urdf_states(good, tmp_path):
    watchdog = good["command_watchdog"]["ros__parameters"]
    watchdog["effort_limits_nm"] = [20.0] * 11 + [21.0]
    found = check(good, tmp_path)
    assert lines(found, ERROR, "watchdog", "is 21 for joint 'RH_KFE', the URDF states 20")
    good["controller"]["ros__parameters"]["effort_above_description"] = True
    assert not lines(check(good, tmp_path), ERROR)
    watchdog["effort_limits_nm"] = []
    assert lines(check(good, tmp_path), ERROR, "'effort_limits_nm' has 0 values")


def test_command_interfaces_and_local_gains_must_fit(good, tmp_path):
    good["controller"]["ros__parameters"]["command_interface"] = "joint_trajectory"
    robot = good["simulated_robot"]["ros__parameters"]
    given = robot.pop("local_position_gain")
    found = check(good, tmp_path)
    for section in ("simulated_robot", "command_watchdog"):
        assert lines(found, ERROR, f"{section}.command_interface is 'effort'")
    assert lines(found, ERROR, "simulated_robot.local_position_gain has 0 values; [", "fit")
    for section in ("simulated_robot", "command_watchdog"):
        good[section]["ros__parameters"]["command_interface"] = "joint_trajectory"
    robot["local_position_gain"] = given
    found = check(good, tmp_path)
    assert not lines(found, ERROR) and not lines(found, WARNING, "local feedback")
    robot["local_position_gain"], robot["local_velocity_gain"] = [8.0], [0.08]
    found = check(good, tmp_path)
    assert not lines(found, ERROR)
    assert lines(found, WARNING, "local_position_gain", "times what fits")
    assert not lines(found, WARNING, "local_velocity_gain")


def test_linear_feedback_needs_its_messages_and_a_command_for_each_joint(good, tmp_path):
    for section in ("controller", "simulated_robot", "command_watchdog"):
        good[section]["ros__parameters"]["command_interface"] = "linear_feedback"
    found = check(good, tmp_path)
    assert not lines(found, ERROR)
    assert lines(found, WARNING, "linear_feedback_controller_msgs are not installed")
    told_all = [str(finding) for finding in check_config(tmp_path / "robot.yaml")]
    joints = sorted(good["controller"]["ros__parameters"]["joints"])  # as Pinocchio sorts siblings
    assert joints != good["controller"]["ros__parameters"]["joints"]
    names = ", ".join(joints)
    assert any(
        f"moving_joint_names of linear_feedback_controller: [{names}]" in x for x in told_all
    )
    good["controller"]["ros__parameters"]["friction"] = "viscous"
    good["controller"]["ros__parameters"].update(solver="lcp", viscosity=[1.0])
    assert lines(check(good, tmp_path), ERROR, "viscous/lcp provides no active set")


ROS2_CONTROL = CONFIG / "ros2_control"


@pytest.mark.parametrize(
    ("message", "level", "words"),
    [
        ("std_msgs/Float64", ERROR, "Float64 cannot be a sensor's: it has no header"),
        ("sensor_msgs/Range", ERROR, "Range has no float64 fluid_pressure"),
        ("nobody_s_msgs/Cell", WARNING, "nobody_s_msgs are not installed: the node cannot start"),
    ],
)
def test_a_sensor_whose_message_cannot_be_read_is_named(
    good, tmp_path, monkeypatch, message, level, words
):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    sensor = {"mounted_sensors": ["foot_pressure LF_FOOT"]}
    good["dynamics_estimator"]["ros__parameters"] |= sensor
    assert not lines(check(good, tmp_path), ERROR)
    monkeypatch.setattr(KINDS["foot_pressure"], "message", message)
    assert len(lines(check(good, tmp_path), level, "pressure/LF_FOOT", words)) == 1


def test_a_wrong_value_of_the_estimator_is_an_error(good, tmp_path):
    """It hides nothing of the controller's."""
    good["dynamics_estimator"]["ros__parameters"]["mounted_sensors"] = ["scent LF_FOOT"]
    everywhere(good, "contact_frames", lambda _: ["LF_PAW"])
    found = check(good, tmp_path)
    assert len(lines(found, ERROR, "sensor 'scent LF_FOOT' is of no kind")) == 1
    assert lines(found, ERROR, "LF_PAW")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("mounted_sensors", ["foot_pressure NOFOOT"], "NOFOOT"),
        ("imu_frame", "NOIMU", "NOIMU"),
        ("contact_frames", ["LF_FOOT", "RF_PAW"], "RF_PAW"),
        ("joint_wrenches", ["NOJOINT"], "NOJOINT"),
    ],
)
@pytest.mark.parametrize("section", ["dynamics_estimator", "/front/dynamics_estimator", "/**"])
def test_what_the_estimators_node_would_refuse_is_an_error(
    good, tmp_path, section, name, value, words
):
    """In its own section, in that of a namespace, and among the values of all nodes, where no other takes all of them."""
    body = good.pop("dynamics_estimator")["ros__parameters"]
    if section == "/**":
        del good["simulated_robot"]
        body = {"mounted_sensors": ["foot_pressure LF_FOOT"]}
    good[section] = {"ros__parameters": {**body, name: value}}
    found = check(good, tmp_path)
    assert len(lines(found, ERROR, "estimator", words)) == 1, found


def test_an_odometry_that_takes_uneven_ground_for_level_is_named(good, tmp_path):
    """With 0 it does not; on level ground nothing is said."""
    words = "ground_height_noise_m is 0.002, for level ground: 0 with a ground_file"
    ground = tmp_path / "ground.yaml"
    box = {"size_m": [1.0, 1.0, 0.1], "top_m": [3.0, 0.0, 0.1]}
    ground.write_text(yaml.safe_dump({"boxes": [box], "margin_m": 4.0}), encoding="utf-8")
    assert not lines(check(good, tmp_path), WARNING, "ground_height_noise_m")
    for node in ("controller", "gait_planner", "simulated_robot"):
        good[node]["ros__parameters"]["ground_file"] = str(ground)
    assert len(lines(check(good, tmp_path), WARNING, "estimator", words)) == 1
    good["dynamics_estimator"]["ros__parameters"]["ground_height_noise_m"] = 0.0
    assert not lines(check(good, tmp_path), WARNING, "ground_height_noise_m")


def told(findings):
    return [(finding.level, str(finding)) for finding in findings]


def beside(name, tmp_path, change=lambda sections: None):
    """A file of ros2_control, with a change."""
    content = yaml.safe_load((ROS2_CONTROL / f"{name}.yaml").read_text(encoding="utf-8"))
    change({node: body["ros__parameters"] for node, body in content.items()})
    file = tmp_path / "ros2_control.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.mark.parametrize("robot", ["quadruped", "solo12", "go2", "anymal_c"])
def test_the_gains_of_our_joint_trajectory_controllers_fit(robot, tmp_path):
    content = yaml.safe_load((CONFIG / f"{robot}.yaml").read_text(encoding="utf-8"))
    for section in ("controller", "simulated_robot", "command_watchdog"):
        content[section]["ros__parameters"]["command_interface"] = "joint_trajectory"
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(content))
    found = told(check_config(file, ROS2_CONTROL / f"{robot}_joint_trajectory.yaml"))
    assert not lines(found, WARNING, "local feedback") and not lines(found, ERROR, "ros2_control")
    for gain in ("p", "d"):
        assert lines(found, "ok", f"trajectory_controller.gains {gain} fit")


def test_a_file_of_ros2_control_that_does_not_fit(good, tmp_path):
    file = tmp_path / "robot.yaml"

    def found_with(name, change):
        file.write_text(yaml.safe_dump(good))
        return told(check_config(file, beside(name, tmp_path, change)))

    def swap(sections):
        joints = sections["effort_controller"]["joints"]
        joints[0], joints[1] = joints[1], joints[0]
        sections["controller_manager"]["update_rate"] = 500

    found = found_with("quadruped", swap)
    assert lines(found, ERROR, "effort_controller.joints is [LF_HFE, LF_HAA")
    assert lines(found, WARNING, "update_rate is 500 Hz")
    found = found_with("quadruped_joint_trajectory", lambda sections: None)
    assert lines(found, ERROR, "starts no effort_controllers/JointGroupEffortController")
    for section in ("controller", "simulated_robot", "command_watchdog"):
        good[section]["ros__parameters"]["command_interface"] = "joint_trajectory"

    def spoil(sections):
        controller = sections["trajectory_controller"]
        controller["command_interfaces"] = ["position"]
        controller["gains"]["LF_HAA"] = {"p": 8, "d": 0.2, "i": 0.0}
        controller["gains"]["LF_KFE"] = {"p": 1.76, "d": 0.0441, "i": 3.0}
        del controller["gains"]["RH_KFE"]

    found = found_with("quadruped_joint_trajectory", spoil)
    assert lines(found, ERROR, "command_interfaces is ['position'], must be ['effort']")
    for words in ("LF_HAA.p is 8,", "LF_KFE.i is 3.0", "RH_KFE.p is None"):
        assert lines(found, ERROR, words)

    def stiffen(sections):
        sections["trajectory_controller"]["gains"]["RF_HFE"]["p"] = 60.0

    found = found_with("quadruped_joint_trajectory", stiffen)
    assert not lines(found, ERROR)
    assert lines(found, WARNING, "trajectory_controller.gains p of 'RF_HFE'", "times what fits")


def commanding(good, interface):
    for section in ("controller", "simulated_robot", "command_watchdog"):
        good[section]["ros__parameters"]["command_interface"] = interface


@pytest.mark.parametrize(
    ("distro", "refused"), [("", True), ("jazzy", False), ("kilted", False), ("lyrical", True)]
)
def test_replacement_of_trajectories_must_be_off_where_it_is_known(good, tmp_path, distro, refused):
    commanding(good, "joint_trajectory")
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(good))

    def found_with(change):
        file = beside("quadruped_joint_trajectory", tmp_path, change)
        return told(check_config(tmp_path / "robot.yaml", file, distro))

    def forget(sections):
        del sections["trajectory_controller"]["allow_trajectory_replacement"]

    found = found_with(lambda sections: None)
    assert not lines(found, ERROR)
    found = found_with(forget)
    words = "allow_trajectory_replacement is not set, which is True from lyrical on, must be False"
    assert bool(lines(found, ERROR, words)) is refused
    assert bool(
        lines(found, "ok", f"allow_trajectory_replacement: {distro} has no such parameter")
    ) is (not refused)


def test_what_differs_between_distributions_is_a_line_each(good, tmp_path):
    good["controller"]["ros__parameters"]["enforce_command_limits"] = "on"
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(good))

    def found_for(distro, change=lambda sections: None):
        file = beside("quadruped", tmp_path, change)
        return told(check_config(tmp_path / "robot.yaml", file, distro))

    found = found_for("jazzy")
    assert not lines(found, ERROR)
    assert lines(found, "ok", "enforce_command_limits is not set, in jazzy False")
    assert lines(found, WARNING, "controller.enforce_command_limits is 'on'")
    assert lines(found, "ok", "jazzy: was read, not run")
    found = found_for("kilted")
    assert lines(found, "ok", "kilted: was driven") and not lines(found, WARNING, "enforce")
    for distro in ("lyrical", "rolling"):
        words = f"{distro} has no effort_controllers/JointGroupEffortController: take forward"
        assert lines(found_for(distro), ERROR, words)

    def replace(sections):
        kind = "forward_command_controller/ForwardCommandController"
        sections["controller_manager"]["effort_controller"]["type"] = kind

    assert not lines(found_for("rolling", replace), ERROR)
    with pytest.raises(ConfigurationError, match="'foxy', must be 'jazzy', 'kilted'"):
        found_for("foxy")


def test_a_distribution_without_a_file_is_refused(tmp_path, capsys):
    assert cli.run(["check", "--config", "x.yaml", "--distro", "jazzy"]) == 2
    assert "needs --ros2-control" in capsys.readouterr().err


def test_the_file_of_linear_feedback_fits_and_another_order_or_type_does_not(good, tmp_path):
    commanding(good, "linear_feedback")
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(good))

    def found_with(change):
        file = beside("quadruped_linear_feedback", tmp_path, change)
        return told(check_config(tmp_path / "robot.yaml", file))

    found = found_with(lambda sections: None)
    assert not lines(found, ERROR) and lines(found, WARNING, "has no time-out")

    def spoil(sections):
        section = sections["linear_feedback_controller"]
        joints = good["controller"]["ros__parameters"]["joints"]  # in our own order
        section["moving_joint_names"] = joints
        section["chainable_controller"]["command_interfaces"] = [f"{j}/effort" for j in joints]
        section["robot_has_free_flyer"] = False
        del section["joint_velocity_filter_coefficient"]

    found = found_with(spoil)
    for words in (
        "moving_joint_names is [LF_HAA, LF_HFE, LF_KFE, RF_HAA",
        "chainable_controller.command_interfaces is [LF_HAA/effort",
        "robot_has_free_flyer is False, must be True",
        "joint_velocity_filter_coefficient is 0.9, must be 1.0",
    ):
        assert lines(found, ERROR, words)

    def older(sections):
        kind = "linear_feedback_controller/LinearFeedbackControllerRos"
        sections["controller_manager"]["linear_feedback_controller"]["type"] = kind

    words = "starts no linear_feedback_controller/LinearFeedbackController,"
    assert lines(found_with(older), ERROR, words)


def test_its_estimator_that_newer_distributions_do_not_activate_is_told_of(good, tmp_path):
    commanding(good, "linear_feedback")
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(good))
    file = beside("quadruped_linear_feedback", tmp_path, lambda sections: None)
    words = "joint_state_estimator: linear_feedback_controller/JointStateEstimator"
    for distro in ("kilted", "lyrical", "rolling"):
        found = told(check_config(tmp_path / "robot.yaml", file, distro))
        assert lines(found, WARNING, words) and not lines(found, ERROR)
    assert not lines(told(check_config(tmp_path / "robot.yaml", file, "jazzy")), WARNING, words)


def test_joints_that_linear_feedback_controller_does_not_take_are_named():
    settings = ControllerSettings.from_mapping(
        ParameterFile(CONFIG / "arms" / "panda.yaml").section("controller")
        | {"command_interface": "linear_feedback"}
    )
    section = {"robot_has_free_flyer": False}
    given = ("x", section, settings.robot(), settings, np.zeros(9), 0.001)
    found = lines(told(check_linear_feedback(*given)), ERROR, "takes no")
    assert len(found) == 1 and "takes no ['panda_finger_joint2']" in found[0]
