"""The commands that the pages name exist, with their options, parameters, files and targets."""

import argparse
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import venv

import pytest
from paths import ROOT

from contact_id_controller.cli import COMMANDS
from contact_id_controller.settings.reference import TABLES
from experiments.__main__ import COMMANDS as EXPERIMENTS

PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "results").glob("*.md")),
]
PROGRAMS = ("contact_id", "make", "ros2", "python", "python3")
FROM_ELSEWHERE = {"venv", "pip", "pytest", "ruff"}
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
BLOCK = re.compile(r"(?:^(?: {4}|\t).*\n?)+|^```\w*\n(?:.*\n)*?```", flags=re.M)
SETTING = re.compile(r"(?:(\w+)\.)?(\w+)=")


def commands(page):
    """Every command of a page, as words; comments, prompts and what follows a pipe are left out."""
    text = page.read_text(encoding="utf-8")
    lines = [
        line
        for block in BLOCK.findall(text)
        for line in block.replace("\\\n", " ").splitlines()
        if not line.startswith("```")
    ]
    for line in lines + INLINE.findall(text):
        for part in re.split(r"&&|;| \| ", line):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:  # prose with an apostrophe
                continue
            if words and words[0].rpartition("/")[2] in PROGRAMS and "=" not in words[:2]:
                yield [words[0].rpartition("/")[2], *words[1:]]


def wrong(words):
    """What is wrong with a command; None where nothing is."""
    program, *rest = words
    return CHECKS[program](rest)


SET_BY_DEFAULT = {"plan": "kinodynamic_planner"}
"""Whose parameters --set changes where no node is named; else the controller's."""


def wrong_contact_id(words, commands=COMMANDS, room="contact_id_controller.commands"):
    if not words or not re.fullmatch(r"[a-z]+", words[0]):
        return None  # its own options, or a placeholder
    name, *rest = words
    if name not in commands:
        return f"no subcommand {name!r}"
    parser = argparse.ArgumentParser(prog=name)
    importlib.import_module(f"{room}.{name}").add_arguments(parser)
    for k, word in enumerate(rest):
        option = word.partition("=")[0]
        if word.startswith("--") and option not in parser._option_string_actions:
            return f"no option {option!r}"
        if option in ("--set", "--sweep") and k + 1 < len(rest):
            node, parameter = SETTING.match(rest[k + 1]).groups()
            node = node or SET_BY_DEFAULT.get(name, "controller")
            if parameter not in {spec.name for spec in TABLES[node]}:
                return f"no parameter {parameter!r} of {node}"
    return None


def wrong_make(words):
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in words:
        if "=" not in word and not re.search(rf"^{re.escape(word)}:", rules, flags=re.M):
            return f"no target {word!r}"
    return None


def wrong_ros2(words):
    """Our launch files and their arguments, our executables, our node's parameters."""
    if words[:2] == ["launch", "contact_id_controller"]:
        file = ROOT / "launch" / words[2]
        if not file.is_file():
            return f"no launch file {words[2]!r}"
        names = [word.partition(":=")[0] for word in words[3:] if ":=" in word]
        text = file.read_text(encoding="utf-8")
        missing = [name for name in names if f'"{name}"' not in text]
        return f"no launch arguments {missing}" if missing else None
    if words[:2] == ["run", "contact_id_controller"]:
        scripts = "".join((ROOT / f).read_text("utf-8") for f in ("setup.py", "setup.cfg"))
        known = re.search(rf"\b{words[2]}\b", scripts)
        return None if known else f"no executable {words[2]!r}"
    if words[:3] == ["param", "set", "/controller"]:
        known = words[3] in {spec.name for spec in TABLES["controller"]}
        return None if known else f"no parameter {words[3]!r}"
    return None


def wrong_python(words):
    if words[:2] == ["-m", "experiments"]:
        return wrong_contact_id(words[2:], EXPERIMENTS, "experiments.commands")
    if words[:1] == ["-m"] and len(words) > 1:
        module = words[1].partition(".")[0]
        there = module in FROM_ELSEWHERE or importlib.util.find_spec(words[1])
        return None if there else f"no module {words[1]!r}"
    if words and words[0].endswith(".py") and not (ROOT / words[0]).is_file():
        return f"no file {words[0]!r}"
    return None


CHECKS = {
    "contact_id": wrong_contact_id,
    "make": wrong_make,
    "ros2": wrong_ros2,
    "python": wrong_python,
    "python3": wrong_python,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_exist(page):
    found = [(" ".join(words), wrong(words)) for words in commands(page)]
    assert [each for each in found if each[1]] == []


WAY = "source .venv/bin/activate"
"""How a shell finds `contact_id` after make."""


@pytest.mark.parametrize("name", ["README.md", "docs/getting_started.md"])
def test_the_way_to_contact_id_stands_before_its_first_command(name):
    blocks = "".join(BLOCK.findall((ROOT / name).read_text(encoding="utf-8")))
    first = re.search(r"^    contact_id ", blocks, flags=re.M).start()
    assert WAY in blocks[:first], "contact_id: command not found"
    assert WAY.replace(".venv", "$(VENV)") in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_first_lines_of_the_readme_work_as_they_stand(tmp_path):
    """In a shell that knows no environment; make is taken as done, and a walk by its --help."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    block = next(block for block in blocks if block.startswith("    make demo"))
    assert block.count("contact_id ") >= 5
    clone, elsewhere = tmp_path / "clone", tmp_path / "bin"
    venv.create(clone / ".venv")
    program = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m contact_id_controller "$@"\n'
    for file, text in (
        (clone / ".venv/bin/contact_id", program),
        (elsewhere / "make", "#!/bin/sh\n"),
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    for folder in ("urdf", "config"):
        (clone / folder).symlink_to(ROOT / folder)
    lines = re.sub(r"contact_id demo", "contact_id demo --help", block)
    done = subprocess.run(
        ["bash", "--norc", "-e", "-o", "pipefail", "-c", lines],
        cwd=clone,
        env={
            "PATH": f"{elsewhere}:/usr/bin:/bin",
            "HOME": os.environ["HOME"],
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("usage: contact_id demo") == block.count("contact_id demo")
    assert (clone / "quadruped.yaml").is_file()


def test_commands_are_found_where_they_stand():
    """In blocks, in fences and in running text."""
    programs = [words[0] for words in commands(ROOT / "README.md")]
    assert programs.count("contact_id") >= 5 and "make" in programs and "ros2" in programs
    fenced = [page.name for page in PAGES if "```" in page.read_text(encoding="utf-8")]
    assert fenced


@pytest.mark.parametrize(
    "line, words",
    [
        ("contact_id demonstrate", "no subcommand"),
        ("contact_id benchmark", "no subcommand"),
        ("python -m experiments demo", "no subcommand"),
        ("python -m experiments benchmark --model coulomb/qp", "no option '--model'"),
        ("contact_id demo --robots quadruped", "no option '--robots'"),
        ("contact_id demo --set gait_planner.sped_m_s=0.1", "no parameter 'sped_m_s'"),
        ("contact_id demo --sweep solvr=qp,lcp", "no parameter 'solvr' of controller"),
        ("make everything", "no target"),
        ("ros2 launch contact_id_controller other.launch.py", "no launch file"),
        ("ros2 launch contact_id_controller contact_id.launch.py robt:=a", "no launch arguments"),
        ("ros2 run contact_id_controller regulator", "no executable"),
        ("ros2 param set /controller solvr lcp", "no parameter"),
        ("python examples/sit.py", "no file"),
        ("python -m contact_id_control", "no module"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line, words):
    assert words in wrong(shlex.split(line))


def test_a_command_that_exists_is_accepted():
    line = "contact_id demo --robot quadruped --sweep solver=qp,lcp --set gait_planner.speed_m_s=0"
    assert wrong(shlex.split(line)) is None
