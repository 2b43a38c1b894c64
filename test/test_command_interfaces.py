"""Each row of the command interfaces is complete, and whoever reads it never asks for a name."""

import ast
import importlib.util

import pytest
from paths import PACKAGE, ROOT

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.lazy import loaded
from contact_id_controller.ros.command_messages import message_class, messages_of
from contact_id_controller.settings.command_interfaces import INTERFACES, TOPICS
from contact_id_controller.settings.controller import ControllerSettings

REGISTRY = PACKAGE / "settings" / "command_interfaces.py"
ROWS = list(INTERFACES.values())
INSTALLED = [row for row in ROWS if importlib.util.find_spec(row.package)]


def asked(text):
    """Lines in which a program compares with an interface, or with a table by their names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            if any(side.endswith(("interface", "interface.name")) for side in sides):
                yield node.lineno
        elif isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if len(keys & set(INTERFACES)) > 1:
                yield node.lineno


def test_nobody_asks_for_the_name_of_a_command_interface():
    files = [
        file
        for folder in (PACKAGE, ROOT / "benchmarks", ROOT / "launch", ROOT / "experiments")
        for file in folder.rglob("*.py")
        if file != REGISTRY
    ]
    found = {
        str(file.relative_to(ROOT)): lines
        for file in files
        if (lines := list(asked(file.read_text(encoding="utf-8"))))
    }
    assert found == {}


def test_a_question_for_the_name_is_found():
    for text in (
        "if settings.command_interface == EFFORT: pass",
        "if wiring.interface != 'effort': pass",
        "if command_interface in TABLE: pass",
        "TOPICS = {'effort': 'commands', 'joint_trajectory': 'joint_commands'}",
    ):
        assert list(asked(text)) == [1]
    assert not list(asked("if section['joint_trajectory'] == 'effort': pass"))


def test_commands_go_below_the_name_of_a_controller_or_beside_it():
    assert INTERFACES["effort"].taker.topic_of("/robot/legs") == "/robot/legs/commands"
    beside = INTERFACES["linear_feedback"].taker
    assert (beside.topic_of("/robot/legs"), beside.topic_of("legs")) == (
        "/robot/control",
        "/control",
    )


def test_topics_are_told_apart():
    names = [*TOPICS, *(f"{topic}_in" for topic in TOPICS)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_row_names_is_there(row):
    """And belongs together: steps make commands for a robot's side that goes on by itself, and only they."""
    assert row.bridges is bool(row.steps)
    for place in (row.messages, *filter(None, (row.steps, row.robot_side))):
        assert isinstance(loaded(place), type)
    if row.host is None:
        with pytest.raises(
            ConfigurationError, match="goes to the drives, not through ros2_control"
        ):
            _ = row.taker
    else:
        assert row.taker.types and row.taker.topic
    settings = ControllerSettings(command_interface=row.name)
    assert settings.interface is row and settings.looks_ahead is row.bridges


@pytest.mark.parametrize("row", INSTALLED, ids=lambda row: row.name)
def test_a_message_has_the_type_that_the_row_names(row):
    kind = message_class(row)
    assert messages_of(row).kind is kind
    assert f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}" == row.message
