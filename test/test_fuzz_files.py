"""Files and parameters that nobody meant: each is read, or refused in one line."""

import math
import string

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from paths import ROOT
from robots import QUADRUPED

from contact_id_controller.exceptions import ConfigurationError, ContactIdError
from contact_id_controller.files import read_yaml
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.settings.nodes import TABLES
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.settings.robot_rows import MovedRobot

SOME = settings(
    max_examples=120,
    derandomize=True,  # the same in every run
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # the first failure is short enough
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
MANY = settings(SOME, max_examples=200)
CONFIG = (ROOT / "config" / "quadruped.yaml").read_text(encoding="utf-8")
URDF = resolve_urdf(QUADRUPED).read_text(encoding="utf-8")

numbers = st.one_of(
    st.floats(),
    st.integers(),
    st.sampled_from([math.inf, -math.inf, math.nan, 1e300, 2**63, -(2**63) - 1, 10**40]),
)
texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "\0", "/", "..", "package://", "x" * 5000, "1e5", "nan", "true", "~"]),
)
plain = st.one_of(st.none(), st.booleans(), numbers, texts, st.binary(max_size=8))
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=20,
)


def one_line(error):
    return bool(str(error)) and "\n" not in str(error)


@pytest.mark.parametrize("node", TABLES)
@SOME
@given(data=st.data())
def test_a_parameter_is_right_or_refused_in_one_line(node, data):
    """What is right stays right: a value that has been checked passes again, unchanged."""
    spec = data.draw(st.sampled_from(TABLES[node]))
    value = data.draw(values)
    try:
        checked = spec.check(value)
    except ConfigurationError as error:
        assert one_line(error) and spec.name in str(error)
        return
    assert spec.check(checked) == checked or checked != checked


@MANY
@given(data=st.data())
def test_a_parameter_file_is_read_or_refused_in_one_line(data, tmp_path):
    lines = CONFIG.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        k = data.draw(st.integers(0, len(lines) - 1))
        kind = data.draw(st.sampled_from(["drop", "repeat", "indent", "value", "text", "yaml"]))
        if kind == "drop":
            del lines[k]
        elif kind == "repeat":
            lines[k:k] = lines[k : k + 3]
        elif kind == "indent":
            lines[k] = " " * data.draw(st.integers(0, 9)) + lines[k].lstrip()
        elif kind == "value":
            lines[k] = lines[k].partition(":")[0] + ": " + data.draw(texts)
        elif kind == "text":
            lines[k] = data.draw(st.text(alphabet=string.printable, max_size=30))
        else:
            lines[k] += data.draw(st.sampled_from([" &a", " *a", " !!map", " |", " {", " ["]))
        lines = lines or [""]
    file = tmp_path / "fuzzed.yaml"
    file.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    read_all(file)


@MANY
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_bytes_that_are_no_file_of_parameters_are_refused_in_one_line(content, tmp_path):
    file = tmp_path / "fuzzed.yaml"
    file.write_bytes(content)
    read_all(file)


@MANY
@given(content=values)
def test_any_yaml_is_read_or_refused_in_one_line(content, tmp_path):
    file = tmp_path / "fuzzed.yaml"
    try:
        file.write_text(yaml.safe_dump({"controller": {"ros__parameters": content}}))
    except UnicodeEncodeError:
        return
    read_all(file)


def read_all(file):
    try:
        read_yaml(file)
        sections = ParameterFile(file).sections()
    except ContactIdError as error:
        assert one_line(error), error
        return
    for node, section in sections.items():
        if node not in TABLES:
            continue
        known = {spec.name: spec for spec in TABLES[node]}
        for name, value in section.items():
            if name in known:
                try:
                    known[name].check(value)
                except ConfigurationError as error:
                    assert one_line(error), error


@SOME
@given(data=st.data())
def test_a_robot_description_is_a_robot_or_refused_in_one_line(data, tmp_path):
    text = URDF
    for _ in range(data.draw(st.integers(1, 2))):
        marks = [k for k, letter in enumerate(text) if letter == '"']
        if len(marks) < 2:
            break
        k = data.draw(st.integers(0, len(marks) // 2 - 1))
        begin, end = marks[2 * k] + 1, marks[2 * k + 1]
        new = data.draw(
            st.one_of(
                numbers.map(str),
                texts,
                st.sampled_from(["0", "-1", "0 0 0", "1 2", "nan nan nan", "base_link", "fixed"]),
            )
        )
        text = text[:begin] + new + text[end:]
    if data.draw(st.booleans()):
        begin = data.draw(st.integers(0, len(text)))
        text = text[:begin] + text[begin + data.draw(st.integers(0, 200)) :]
    file = tmp_path / "fuzzed.urdf"
    file.write_text(text, encoding="utf-8", errors="replace")
    try:
        robot = MovedRobot(urdf=str(file)).robot()
    except ContactIdError as error:
        assert one_line(error), error
        return
    assert robot.na > 0 and math.isfinite(robot.weight) and robot.weight > 0.0
