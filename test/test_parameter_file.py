"""Parameter files: what each node gets of them, and what is wrong with one, in one line."""

import re

import pytest
from paths import PACKAGE

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.parameter_file import (
    ParameterFile,
    parse_value,
    write_parameters,
)
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings

TEXT = """
/**:
  ros__parameters: {use_sim_time: true, urdf: all.urdf}
/gait_planner:
  ros__parameters: {feet: [a, b], touchdown_phases: [0.0, 0.5]}
simulated_robot:
  ros__parameters: {urdf: own.urdf, contact_frames: [a, b]}
"""


def file_of(folder, text=TEXT):
    path = folder / "robot.yaml"
    path.write_text(text, encoding="utf-8")
    return ParameterFile(path)


def test_values_of_all_nodes_lie_below_those_of_one(tmp_path):
    file = file_of(tmp_path)
    assert file.nodes == ["gait_planner", "simulated_robot"]
    planner, robot = file.sections().values()
    assert planner == file.section("gait_planner")
    assert planner["urdf"] == "all.urdf" and robot["urdf"] == "own.urdf"
    assert planner["use_sim_time"] is True and robot["use_sim_time"] is True
    assert "gait_planner" in file and "controller" not in file


def test_settings_of_a_node_pass_over_what_every_node_of_ros_has(tmp_path):
    file = file_of(tmp_path)
    planner = GaitPlannerSettings.from_mapping(file.section("gait_planner"))
    assert (planner.urdf, planner.feet) == ("all.urdf", ("a", "b"))
    robot = SimulatedRobotSettings.from_mapping(file.section("simulated_robot"))
    assert robot.contact_frames == planner.feet
    with pytest.raises(ConfigurationError, match="did you mean 'contact_frames'"):
        SimulatedRobotSettings.from_mapping({"urdf": "a", "contact_frame": ["a"]})


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_section_with_the_name_that_a_node_had_once_is_refused_with_its_name_now(tmp_path, slash):
    text = f"{slash}kino_dynamic_planner:\n  ros__parameters: {{urdf: a.urdf}}\n"
    with pytest.raises(ConfigurationError, match="is named 'kinodynamic_planner' now"):
        file_of(tmp_path, text)


def test_what_was_written_is_read_again(tmp_path):
    parameters = {"controller": {"urdf": "a.urdf", "gains": [1.0, 2.0], "on": True}, "other": {}}
    write_parameters(tmp_path / "again.yaml", parameters)
    assert ParameterFile(tmp_path / "again.yaml").sections() == parameters


@pytest.mark.parametrize(
    "text, value", [("1e-3", 1e-3), ("-.5E2", -50.0), ("[2e3, 1.0e3]", [2e3, 1e3])]
)
def test_powers_of_ten_are_numbers_as_they_are_to_ros(tmp_path, text, value):
    assert parse_value(text) == value
    words = {"controller": {"urdf": "1e-3", "name": "e3", "other": "1e"}}
    assert parse_value("'1e-3'") == "1e-3"
    write_parameters(tmp_path / "words.yaml", words)
    assert ParameterFile(tmp_path / "words.yaml").sections() == words


def test_lists_of_numbers_are_written_as_one_type(tmp_path):
    """ROS's parser of parameter files refuses a list with whole numbers and others."""
    write_parameters(tmp_path / "again.yaml", {"planner": {"goal": [10.0, 0, -1], "n": [1, 2]}})
    written = ParameterFile(tmp_path / "again.yaml").section("planner")
    assert [type(each) for each in written["goal"] + written["n"]] == [float] * 3 + [int] * 2


def test_lists_that_nodes_share_are_written_in_each_of_them(tmp_path):
    """ROS's parser of parameter files refuses aliases."""
    text = TEXT.replace("urdf: all.urdf", "urdf: all.urdf, joints: [a, b]")
    file = file_of(tmp_path, text)
    write_parameters(tmp_path / "again.yaml", file.sections())
    written = (tmp_path / "again.yaml").read_text(encoding="utf-8")
    assert "&" not in written and "*" not in written
    assert ParameterFile(tmp_path / "again.yaml").sections() == file.sections()
    assert file.own_section("simulated_robot") == {"urdf": "own.urdf", "contact_frames": ["a", "b"]}


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "bad.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"cannot read '.*bad\.yaml': ") as caught:
        ParameterFile(path)
    assert "\n" not in str(caught.value)


def test_sections_that_miss_or_are_none_are_named(tmp_path):
    with pytest.raises(ConfigurationError, match="no section 'x', only 'gait_planner', 'simul"):
        file_of(tmp_path).section("x")
    with pytest.raises(ConfigurationError, match="no section 'x', only nothing"):
        file_of(tmp_path, "- 1").section("x")
    with pytest.raises(ConfigurationError, match="only '/\\*\\*', which .* put a line 'x:' above"):
        file_of(tmp_path, "/**: {ros__parameters: {period_s: 1e-3}}").section("x")
    with pytest.raises(ConfigurationError, match="section 'x' of .* has no 'ros__parameters'"):
        file_of(tmp_path, "x: {urdf: a}").sections()
    with pytest.raises(ConfigurationError, match=r"'\[1, ' is not YAML"):
        parse_value("[1, ")


def test_nobody_else_reads_yaml():
    readers = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"safe_load|SafeLoader|yaml\.(load|parse)", path.read_text(encoding="utf-8"))
    ]
    assert readers == ["files.py"]
