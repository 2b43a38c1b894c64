"""Files that somebody made to hurt: `contact_id check` says one clear line about each, at once."""

import time

import pytest
import yaml
from robots import QUADRUPED
from test_robot_description import BAD, chain

from contact_id_controller import cli
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import MOST_ENTRIES, parse_value, read_yaml
from contact_id_controller.settings.robot_rows import MovedRobot

AT_MOST_S = 2.0
HEAD = "controller:\n  ros__parameters:\n"


def controller(*lines):
    return HEAD + "".join(f"    {line}\n" for line in (f"urdf: {QUADRUPED}", *lines))


BOMB = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 25)
)
FILES = {
    "number of 5,000 digits": (controller(f"period_s: {'9' * 5000}"), "5000 digits"),
    "number of 4,000 digits": (controller(f"friction_edges: {'9' * 4000}"), "4000 digits"),
    "number beyond all": (controller("period_s: 1.0e+999"), "must be finite"),
    "integer key": (controller("1: 2"), "names a parameter 1"),
    "list as a key": (controller("? [1, 2]\n    : 3"), "cannot read"),
    "integer section": (controller() + "1:\n  ros__parameters: {1: 2}\n", "names a section 1"),
    "deep lists": (controller("joints: " + "[" * 100_000), "deeper than 30"),
    "deep blocks": (HEAD + "".join(" " * k + "a:\n" for k in range(4, 2000)), "deeper than 30"),
    "alias bomb": (controller("joints: *a24").join([BOMB, ""]), "aliases"),
    "circle": (controller("joints: &a [*a]"), "aliases"),
    "too large": ("#" * 5_000_000, "more than 4000000 bytes"),
    "no text": (b"\xff\xfe\x00", "cannot read"),
    "zero in a text": (controller('frictoin: "a\\0b"'), "did you mean 'friction'"),
    "python object": (controller("joints: !!python/object:os.system x"), "cannot read"),
    "package of dots": (HEAD + "    urdf: package://../x\n", "name a package"),
    "package without a name": (HEAD + "    urdf: package:///x\n", "name a package"),
    "package that is left": (
        HEAD + "    urdf: package://contact_id_controller/../../../etc/passwd\n",
        "without '..'",
    ),
    "package alone": (HEAD + "    urdf: package://contact_id_controller\n", "name a file"),
    "endless path": (HEAD + f"    urdf: {'x' * 5000}\n", "be a path of at most"),
    "path with a zero": (HEAD + '    urdf: "a\\0b"\n', "be a path of at most"),
}


@pytest.fixture(scope="module", autouse=True)
def imported():
    """What takes long to import is no part of the time measured."""
    cli.run(["check", "--config", "/nowhere.yaml"])


def check(tmp_path, capsys, content):
    """Lines that `contact_id check` says of a file that it does not like."""
    file = tmp_path / "robot.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    capsys.readouterr()
    begun = time.process_time()
    code = cli.run(["check", "--quiet", "--config", str(file)])
    took_s = time.process_time() - begun
    said = capsys.readouterr()
    assert code != 0 and took_s < AT_MOST_S and "Traceback" not in said.err + said.out
    return [line for line in (said.out + said.err).splitlines() if "0 warnings" not in line]


@pytest.mark.parametrize("name", FILES)
def test_a_malformed_file_is_one_clear_line(name, tmp_path, capsys):
    content, words = FILES[name]
    lines = check(tmp_path, capsys, content)
    matching = [line for line in lines if words in line]
    assert len(matching) == 1, lines
    assert all(len(line) < 600 for line in lines) and len(lines) <= 2


@pytest.mark.parametrize("name", ["mass heavy", "1,000 links", "deep", "entities"])
def test_a_malformed_description_is_one_clear_line(name, tmp_path, capsys):
    text, words = BAD[name]
    file = tmp_path / "robot.urdf"
    file.write_text(text, encoding="utf-8")
    (line,) = check(tmp_path, capsys, f"{HEAD}    urdf: {file}\n    floating_base: false\n")
    assert words in line


def test_aliases_that_do_no_harm_stay(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("a: &a [1, 2]\nb: *a\nc: {x: *a}\n", encoding="utf-8")
    assert read_yaml(file) == {"a": [1, 2], "b": [1, 2], "c": {"x": [1, 2]}}
    heights = [[0.1 * k for k in range(300)] for _ in range(300)]
    file.write_text(yaml.safe_dump(heights), encoding="utf-8")
    assert read_yaml(file) == heights and 300 * 300 < MOST_ENTRIES


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 1000, "&a [*a]", "9" * 5000, "x" * 5_000_000, "[1, 2"),
        *("!!bool foo", "!!int ''", "!!float ''", "!!timestamp foo", "59:" * 400 + "59.5"),
        "[" + "1," * 390_000 + "]",
    ],
)
def test_a_value_that_is_none_is_one_short_line(text):
    with pytest.raises(ConfigurationError) as refused:
        parse_value(text)
    assert len(str(refused.value)) < 300 and "\n" not in str(refused.value)


@pytest.mark.parametrize("urdf", [QUADRUPED, "a/../b.urdf", "~/robot.urdf", "./robot.urdf"])
def test_locations_that_are_right_stay(urdf):
    assert MovedRobot.from_mapping({"urdf": urdf}).urdf == urdf


def test_chain_is_a_tree():
    assert chain(3).count("<link") == 3
