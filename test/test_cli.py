"""The command line as a whole: exit codes, versions, and outputs that cannot be written."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import contact_id_controller
from contact_id_controller import cli
from experiments import __main__ as experiments

ROOT = Path(__file__).resolve().parent.parent
WRITERS = (
    ["demo", "--robot", "solo12", "--duration", "0.1"],
    ["power", "--duration", "0.01"],
    ["benchmark", "--contacts", "4"],
    ["faults"],
    ["reproduce", "flops", "--quick"],
    ["robustness", "--robot", "solo12", "--only", "mass=0.1", "--seconds", "0.1"],
)
"""One command line of every subcommand that has --output."""


def _refused(capsys, words):
    """The one line of a command line that is refused."""
    ours = words[0] in experiments.COMMANDS
    code = (experiments if ours else cli).run(words)
    lines = capsys.readouterr().err.strip().splitlines()
    assert code == 2 and len(lines) == 1, (code, lines)
    program = "python -m experiments" if ours else "contact_id"
    assert lines[0].startswith(f"{program} {words[0]}: error: ")
    return lines[0]


def test_a_command_is_told_as_it_was_typed(capsys, monkeypatch):
    room = SimpleNamespace(add_arguments=lambda parser: parser.add_argument("words"))
    room.run = lambda arguments: print(arguments.typed)
    monkeypatch.setitem(sys.modules, "experiments.commands.say", room)
    cli.run_program(
        "python -m experiments", "", {"say": "it"}, "experiments.commands", ["say", "two words"]
    )
    assert capsys.readouterr().out == "python -m experiments say 'two words'\n"


@pytest.mark.parametrize(
    "words, said",
    [
        ("demo --duration abc", "invalid float value: 'abc'"),
        ("demo --state bogus", "invalid choice: 'bogus' (choose from"),
        ("demo --robot go2 --config go2.yaml", "not allowed with argument --robot"),
        ("compile --config go2.yaml --robot go2", "not allowed with argument --config"),
        ("check", "required: --config"),
        ("bogus", "invalid choice: 'bogus'"),
        ("new a.urdf more", "unrecognized arguments: more"),
        ("plan --passes 0", "argument --passes: '0' is no whole number from 1 to 100;"),
        ("demo --robt go2", "unrecognized arguments: --robt go2; contact_id demo --help"),
        ("demo --robot go2 --robot solo12", "argument --robot is given twice"),
    ],
)
def test_words_that_cannot_be_read_are_refused_in_one_line(capsys, words, said):
    with pytest.raises(SystemExit) as ends:
        cli.run(words.split())
    (line,) = capsys.readouterr().err.splitlines()
    assert ends.value.code == 2 and said in line and line.endswith(" --help shows all")


@pytest.mark.parametrize("name", cli.MOVED)
def test_what_a_checkout_alone_has_is_refused_with_its_command(capsys, name):
    assert name in experiments.COMMANDS and name not in cli.COMMANDS
    for words in ([name], [name, "--output", "there"], [name, "--help"]):
        assert cli.run(words) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert line.startswith(f"contact_id {name}: error: ")
        assert line.endswith(f"python -m experiments {name}")


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: words[0])
def test_output_that_is_a_file_is_refused_before_anything_starts(capsys, tmp_path, words):
    place = tmp_path / "taken"
    place.write_text("mine", encoding="utf-8")
    assert str(place) in _refused(capsys, [*words, "--output", str(place)])
    assert place.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: words[0])
def test_output_where_nobody_may_write_is_refused(capsys, words):
    assert "'/proc" in _refused(capsys, [*words, "--output", "/proc/nowhere"])
    assert "'/proc" in _refused(capsys, [*words, "--output", "/proc"])


@pytest.mark.parametrize(
    "words, name",
    [
        (WRITERS[0], "log"),
        (WRITERS[3], "log"),
        (WRITERS[4], "runs"),
    ],
    ids=["demo", "faults", "reproduce"],
)
def test_a_file_where_a_folder_of_the_output_belongs_is_refused(capsys, tmp_path, words, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    assert name in _refused(capsys, [*words, "--output", str(tmp_path)])
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_a_folder_where_a_record_belongs_is_refused(capsys, tmp_path):
    (tmp_path / "controller.npz").mkdir()
    assert "controller.npz" in _refused(capsys, [*WRITERS[0], "--output", str(tmp_path)])


def test_a_bug_is_a_traceback_and_never_taken_for_a_fall(capsys, monkeypatch):
    from contact_id_controller.commands import parameters

    monkeypatch.setattr(parameters, "run", lambda arguments: {}["missing"])
    assert cli.run(["parameters"]) == 70
    assert "KeyError: 'missing'" in capsys.readouterr().err


def test_version_is_told():
    result = _python("-m", "contact_id_controller", "--version")
    assert result.returncode == 0
    assert result.stdout == f"contact_id {contact_id_controller.__version__}\n"


def test_help_tells_the_exit_codes():
    for words in (["--help"], ["demo", "--help"], ["check", "--help"]):
        text = _python("-m", "contact_id_controller", *words).stdout
        assert "130 interrupted" in " ".join(text.split()), text


BLOCKED = ("rclpy", "mujoco", "matplotlib", "PIL", "numba", "pinocchio", "rich", "jinja2")


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["parameters"],
        *([name, "--help"] for name in sorted(cli.COMMANDS | experiments.COMMANDS)),
    ],
    ids=" ".join,
)
def test_help_and_parameters_need_neither_ros_nor_extras_nor_kernels(words):
    module = "experiments.__main__" if words[0] in experiments.COMMANDS else cli.__name__
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({BLOCKED!r}))\n"
        f"from {module} import run; sys.exit(run({words!r}))"
    )
    result = _python("-c", code)
    assert result.returncode == 0, result.stderr
    if words == ["parameters"]:
        for name in ("controller.period_s", "gait_planner.gait_period_s", "simulated_robot.mode"):
            assert f"{name}:" in result.stdout
        assert "command_watchdog.timeout_s:" in result.stdout


def _python(*words):
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
