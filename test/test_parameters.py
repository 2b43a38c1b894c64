"""The table of parameters, the settings made from it, and its ROS side."""

import functools
import math
import re

import numpy as np
import pytest

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.parameter_spec import named_settings
from contact_id_controller.settings.controller import TABLE, ControllerSettings
from contact_id_controller.settings.nodes import SETTINGS, TABLES
from contact_id_controller.settings.parameter_file import load_settings
from contact_id_controller.settings.removed import REMOVED

MINIMAL = {"urdf": "robot.urdf"}
MOST_PARAMETERS = 179
KINDS = {
    "string": "text",
    "boolean": True,
    "integer": 5,
    "number": 0.5,
    "strings": ["a"],
    "numbers": [0.5],
}


def spec(name):
    return next(row for row in TABLE if row.name == name)


def test_every_row_is_described_and_its_default_is_valid():
    assert len({row.name for row in TABLE}) == len(TABLE) > 30
    for row in TABLE:
        assert len(row.description) > 20, row.name
        assert row.description.endswith("."), row.name
        assert row.check(row.default) == row.default, row.name
        chosen = row.default if isinstance(row.default, tuple) else (row.default,)
        assert not row.choices or set(chosen) <= set(row.choices)


def test_units_are_given_where_the_name_ends_in_one():
    endings = {
        "_s": "s",
        "_m": "m",
        "_nm": "N·m",
        "_m_s": "m/s",
        "_n": "N",
        "_w": "W",
        "_nm_sqrt_w": "N·m/√W",
        "_nm_s": "N·m/s",
        "_rad": "rad",
        "_rad_s": "rad/s",
        "_nm_s_rad": "N·m·s/rad",
    }
    for row in TABLE:
        for ending in sorted(endings, key=len, reverse=True):
            if row.name.endswith(ending):
                assert row.unit == endings[ending], row.name
                break


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_values_of_another_kind_are_refused_by_name(row):
    for kind, value in KINDS.items():
        accepted = kind == row.kind or (kind, row.kind) in {
            ("integer", "number"),
            ("integer", "numbers"),
            ("number", "numbers"),
        }
        if not accepted:
            with pytest.raises(ConfigurationError, match=f"'{row.name}'.*must be"):
                row.check(value)


@pytest.mark.parametrize(
    "row", [r for r in TABLE if math.isfinite(r.minimum)], ids=lambda row: row.name
)
def test_values_below_the_range_are_refused_with_the_range(row):
    low = row.minimum - 1
    with pytest.raises(ConfigurationError, match=f"'{row.name}'.*{row.minimum:g}"):
        row.check([low] if row.kind == "numbers" else low)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_must_be_finite_unless_infinity_means_something(value):
    with pytest.raises(ConfigurationError, match="finite"):
        spec("joint_position_gain").check([1.0, value])
    if math.isnan(value):
        with pytest.raises(ConfigurationError, match="finite"):
            spec("friction_coefficient").check(value)
    else:
        assert spec("friction_coefficient").check(value) == (math.inf,)


NUMBERS = [row for table in TABLES.values() for row in table if row.kind in ("number", "numbers")]


@pytest.mark.parametrize("value", [1e300, 1e-300, -1e300])
def test_a_number_whose_powers_are_not_finite_is_refused(value):
    """`ground_height_noise_m: 1e300` ended in a traceback."""
    for row in NUMBERS:
        with pytest.raises(
            ConfigurationError, match=re.escape(f"'{row.name}' is {value:g}, must be")
        ):
            row.check(value)
    with pytest.raises(ConfigurationError, match="x_m is .*, must be 0 or between 1e-30"):
        named_settings(f"foot x_m={value}", {"x_m": "float"})


def test_time_constant_of_contacts_says_what_it_does():
    text = spec("contact_time_constant_s").description
    for word in ("removed", "runs away", "20 to 100 ms", "One period"):
        assert word in text


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"perod_s": 1e-3}, "did you mean 'period_s'"),
        ({"zzz": 1}, "unknown parameter 'zzz'"),
        ({"urdf": ""}, "'urdf' is empty"),
        ({"joints": ["a", "b", "a"]}, "names 'a' more than once"),
        ({"contact_frames": ["a", "a"]}, "'a' more than once"),
        ({"joints": ["a", "b"], "joint_velocity_gain": [1, 2, 3]}, "3 values, must have 1 or 2"),
        ({"joints": ["a", "b"], "effort_limits_nm": [1, 2, 3]}, "3 values, must have 1 or 2"),
        ({"contact_frames": ["a", "b"], "friction_coefficient": [1, 2, 3]}, "must have 1 or 2"),
        ({"base_linear_position_gain": [1, 2]}, "must have 1 or 3"),
        ({"contact_time_constant_s": 5e-4}, "not be below period_s"),
    ],
)
def test_values_that_do_not_fit_each_other_are_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        ControllerSettings.from_mapping({**MINIMAL, **changes})


def test_one_value_stands_for_all():
    settings = ControllerSettings.from_mapping(
        {**MINIMAL, "joint_position_gain": 3, "friction_coefficient": [0.1, math.inf]}
    )
    assert np.array_equal(settings.spread("joint_position_gain", 3), [3.0, 3.0, 3.0])
    assert np.array_equal(settings.spread("friction_coefficient", 2), [0.1, math.inf])
    with pytest.raises(ConfigurationError, match="2 values, must have 1 or 3"):
        settings.spread("friction_coefficient", 3)


# The tables


def test_no_parameter_that_nobody_sets_and_each_says_when_to_change_it():
    """A new one is a decision somebody must take: before this number grows, another one goes."""
    rows = [(node, row) for node, table in TABLES.items() for row in table]
    assert len(rows) <= MOST_PARAMETERS
    for node, row in rows:
        assert row.when.endswith(".") and len(row.when) > 10, f"{node}.{row.name}"
        if row.kind in ("number", "numbers", "integer"):
            pure = math.isfinite(row.minimum)  # a number without unit has a range
            assert row.unit or pure, f"{node}.{row.name}"


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_parameter_is_refused_in_one_line_that_says_what_became_of_it(name):
    losers = [node for node, table in TABLES.items() if name not in {row.name for row in table}]
    assert losers, f"{name} is a parameter of every node"
    settings = SETTINGS[losers[0]]
    with pytest.raises(ConfigurationError) as caught:
        settings.from_mapping({name: 1.0})
    assert str(caught.value) == f"parameter '{name}' {REMOVED[name]}"
    assert "\n" not in str(caught.value)


# The file


def write(folder, text):
    file = folder / "robot.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_section_of_a_ros_parameter_file_is_read_on_top_of_the_common_one(tmp_path):
    file = write(
        tmp_path,
        """
/**:
  ros__parameters: {use_sim_time: true, period_s: 0.002, solver: pid, friction: none}
controller:
  ros__parameters: {urdf: a.urdf, period_s: 0.004}
other:
  ros__parameters: {anything: 1}
""",
    )
    settings = load_settings(file)
    assert (settings.urdf, settings.period_s, settings.solver) == ("a.urdf", 0.004, "pid")


@pytest.mark.parametrize(
    "text, message",
    [
        ("controller: {ros__parameters: {urdf: [}}", "cannot read"),
        ("planner: {ros__parameters: {}}", "no section 'controller', only 'planner'"),
        ("- 1", "no section 'controller'"),
        ("controller: {urdf: a}", "no 'ros__parameters'"),
        ("controller: {ros__parameters: {urdf: a, perod_s: 1}}", "did you mean"),
    ],
)
def test_bad_file_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_settings(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigurationError, match="nothing.yaml"):
        load_settings(tmp_path / "nothing.yaml")


# ROS


@pytest.fixture
def table_of_node(node_within):
    """Makes a node with the controller's parameters and returns it with its ParameterTable."""
    from rclpy.node import Node

    from contact_id_controller.ros.declared_parameters import ParameterTable

    kind = functools.partial(
        Node, "parameters", automatically_declare_parameters_from_overrides=True
    )

    def make(overrides, **options):
        node = node_within(kind, **overrides)
        return node, ParameterTable(node, TABLE, **options)

    return make


def set_one(node, name, value):
    from rclpy.parameter import Parameter

    return node.set_parameters([Parameter(name, value=value)])[0]


def test_descriptors_show_meaning_unit_and_range(table_of_node):
    node, _ = table_of_node(MINIMAL)
    for row in TABLE:
        description = node.describe_parameter(row.name)
        assert description.description.startswith(row.description)
        assert f"[{row.unit}]" in description.description or not row.unit
        assert all(repr(choice) in description.additional_constraints for choice in row.choices)
        if row.kind == "number" and math.isfinite(row.minimum):
            assert description.floating_point_range[0].from_value == row.minimum
        if row.kind == "integer":
            assert description.integer_range[0].to_value == row.maximum


def test_ros_values_give_the_same_settings_as_a_mapping(table_of_node):
    values = {
        **MINIMAL,
        "joints": ["a", "b"],
        "friction_coefficient": 1,
        "period_s": 0.002,
        "effort_limits_nm": [1, 2],
        "mode": "lockstep",
    }
    _, table = table_of_node(values)
    expected = ControllerSettings.from_mapping(values)
    assert ControllerSettings.from_mapping(table.values()) == expected


def test_misspelt_parameter_is_found(table_of_node):
    _, table = table_of_node({**MINIMAL, "use_sim_time": True, "fricton": "none"})
    with pytest.raises(ConfigurationError, match="'fricton', did you mean 'friction'"):
        table.values()


@pytest.mark.parametrize(
    "name, value",
    [
        ("period_s", 7.0),
        ("period_s", "x"),
        ("friction_edges", 2),
        ("distribution", "joy"),
        ("damping_nm_s_rad", [-1.0]),
        ("joints", [1, 2]),
        ("position_stops", 1),
    ],
)
def test_bad_value_is_reported_and_never_set(table_of_node, name, value):
    _, table = table_of_node({**MINIMAL, name: value})
    with pytest.raises(ConfigurationError, match=name):
        table.values()
    node, table = table_of_node(MINIMAL)
    result = set_one(node, name, value)
    assert not result.successful
    assert name in result.reason
    table.values()


def test_locked_parameters_do_not_change_but_live_ones_do(table_of_node):
    locked = []
    node, table = table_of_node(MINIMAL, locked=lambda: bool(locked))
    assert set_one(node, "period_s", 0.002).successful
    locked.append(True)
    table.changed = False
    assert "before configure" in set_one(node, "period_s", 0.001).reason
    assert not table.changed
    assert set_one(node, "state_timeout_s", 0.01).successful
    assert table.changed
    assert (table.values()["period_s"], table.values()["state_timeout_s"]) == (0.002, 0.01)


def test_live_values_are_checked_together_before_any_is_set(table_of_node):
    def refuse(values):
        raise ConfigurationError(f"no {values['state_timeout_s']}")

    node, table = table_of_node(MINIMAL, locked=lambda: True, check_live=refuse)
    assert set_one(node, "state_timeout_s", 0.01).reason == "no 0.01"
    assert table.values()["state_timeout_s"] == spec("state_timeout_s").default


def test_what_a_change_is_checked_with_is_what_a_look_at_all_would_say(table_of_node, monkeypatch):
    """A change once looked at all 150 twice, and settings were made three times: 8 ms without a command."""
    seen = []

    def check(values):
        seen.append(dict(values))
        if values["friction_edges"] == 7:
            raise ConfigurationError("no 7")

    node, table = table_of_node(MINIMAL, locked=lambda: True, check_live=check)
    settings = ControllerSettings.from_mapping(table.values())
    whole = table.values
    monkeypatch.setattr(table, "values", lambda: pytest.fail("all values are looked at"))
    for name, value, taken in (
        ("state_timeout_s", 0.01, True),
        ("friction_edges", 7, False),
        ("friction_edges", 2, False),
        ("friction_coefficient", [0.5], True),
        ("friction_edges", 8, True),
        ("friction_coefficient", 0.4, True),
    ):
        assert set_one(node, name, value).successful is taken
        assert table.current() == whole()
    expected = ControllerSettings.from_mapping(whole())
    assert settings.changed(table.current()) == expected
    assert (expected.friction_edges, expected.friction_coefficient) == (8, (0.4,))
    assert all(values.keys() == whole().keys() for values in seen)
    with pytest.raises(ConfigurationError, match="friction_edges"):
        settings.changed({"friction_edges": 2})
    with pytest.raises(ConfigurationError, match="did you mean 'friction'"):
        settings.changed({"fricton": "none"})


@pytest.mark.parametrize(
    "name, start, tighter, looser",
    [
        ("tilt_limit_rad", 0.8, 0.5, np.inf),
        ("state_timeout_s", 0.05, 0.02, 1.0),
        ("effort_rate_limits_nm_s", [], [50.0], None),
        ("effort_rate_limits_nm_s", [100.0], [50.0] * 3, [50.0, 50.0, 101.0]),
        ("effort_rate_limits_nm_s", [100.0], [100.0] * 3, []),
        ("position_stops", True, True, False),
        ("position_stops", False, True, None),
        ("start_ramp_s", 0.3, 1.0, 0.0),
        ("blend_rate_nm_s", [100.0], [10.0], [np.inf]),
        ("joint_jump", 0.2, 0.1, 10.0),
        ("recovery_window_s", 0.2, 0.1, 10.0),
        ("overruns_in_a_row", 20, 5, 0),
        ("overruns_in_a_row", 0, 5, None),
        ("power_limit_w", 300.0, 100.0, 0.0),
    ],
)
@pytest.mark.parametrize("locked", [True, False])
def test_peers_may_tighten_what_guards_the_robot_and_undo_that(
    table_of_node, name, start, tighter, looser, locked
):
    node, _ = table_of_node({**MINIMAL, name: start}, locked=lambda: locked)
    assert set_one(node, name, tighter).successful
    if looser is not None:
        reason = set_one(node, name, looser).reason
        assert name in reason and "at the start" in reason
    if start != []:
        assert set_one(node, name, start).successful


def test_what_lets_somebody_else_in_is_given_at_the_start_only(table_of_node):
    node, _ = table_of_node(MINIMAL)
    for name, value in (
        ("urdf", "evil.urdf"),
        ("second_commander", "report"),
        ("watchdog_required", True),
        ("mode", "lockstep"),
        ("commanders", ["/rogue"]),
        ("planner_required", True),
        ("stamp_reference", "stream"),
    ):
        assert "only be given at the start" in set_one(node, name, value).reason
