"""The rooms of the package and who may import whom: the contracts hold, docs/architecture.md draws them."""

import importlib
import re

import grimp
import pytest
from importlinter.cli import EXIT_STATUS_ERROR, EXIT_STATUS_SUCCESS, lint_imports
from paths import EXPERIMENTS, PACKAGE, ROOT

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

PYPROJECT = ROOT / "pyproject.toml"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
NAME = PACKAGE.name
READS_ONLY = {"estimation": {"kernels", "robot", "state", "parameter_spec", "exceptions", "lazy"}}
"""What a room may import at most, where that is less than all floors below it."""
IMPORTED_BY_ONLY = {"view": {"commands"}}
"""Who may import a room, where that is less than all floors above it."""
USERS = {"cli", "commands"}
"""Rooms that may use the package by its face, as a user does."""


def contracts():
    return tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def floors(house):
    """Names of the rooms from the top floor down; rooms to come stand in brackets."""
    return next(each["layers"] for each in contracts() if each.get("containers") == [house.name])


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(NAME)


def room(module):
    return module.split(".")[1]


def lint(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    monkeypatch.syspath_prepend(str(ROOT))
    return lint_imports(config_filename=str(file), no_cache=True)


def test_every_contract_holds(monkeypatch, capsys):
    assert lint(PYPROJECT, monkeypatch) == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_an_import_that_runs_upwards_is_found(tmp_path, monkeypatch, capsys):
    """Two floors exchanged: what is right today runs upwards in that house."""
    text = PYPROJECT.read_text(encoding="utf-8")
    exchanged = text.replace('"kernels",\n', '"@",\n', 1).replace('"models",\n', '"kernels",\n', 1)
    file = tmp_path / "pyproject.toml"
    file.write_text(exchanged.replace('"@",\n', '"models",\n', 1), encoding="utf-8")
    assert lint(file, monkeypatch) == EXIT_STATUS_ERROR
    assert "is not allowed to import" in capsys.readouterr().out


def test_a_room_imports_no_more_than_it_may(graph):
    for importer, most in READS_ONLY.items():
        root = f"{NAME}.{importer}"
        if root in graph.modules:
            inside = {root, *graph.find_descendants(root)}
            used = {
                module
                for each in inside
                for module in graph.find_modules_directly_imported_by(each) - inside
            }
            assert {room(module) for module in used} <= most
    for imported, few in IMPORTED_BY_ONLY.items():
        root = f"{NAME}.{imported}"
        if root in graph.modules:
            inside = {root, *graph.find_descendants(root)}
            users = {
                module
                for each in inside
                for module in graph.find_modules_that_directly_import(each) - inside
            }
            assert {room(module) for module in users} <= few


def test_rooms_import_each_other_not_the_face(graph):
    """The face imports rooms: a room below that imported it would close a circle."""
    users = {room(module) for module in graph.find_modules_that_directly_import(NAME)}
    assert users <= USERS


def test_settings_and_their_command_need_no_ros():
    """Nobody on the way to the tables of parameters imports rclpy or a message."""
    graph = grimp.build_graph(NAME, include_external_packages=True)
    ros = {name for name in graph.modules if re.fullmatch(r"rclpy|rcl_\w+|\w+_(msgs|srvs)", name)}
    assert "rclpy" in ros
    for module in (f"{NAME}.settings", f"{NAME}.commands.parameters"):
        chains = {name: graph.find_shortest_chain(module, name, as_packages=True) for name in ros}
        assert {name: chain for name, chain in chains.items() if chain} == {}


def test_the_picture_is_the_contract():
    """Rooms in the order of the contract; what each is for is the first line of its docstring."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    drawn = re.search(r"^```text\n(experiments/\n.*?)^```", text, flags=re.M | re.S)
    assert drawn.group(1) == picture(EXPERIMENTS) + picture(PACKAGE)


def picture(house):
    lines = [f"{house.name}/"]
    for floor in floors(house):
        name = floor.strip("()")
        if floor == "__main__":
            continue
        there = (house / f"{name}.py").is_file() or (house / name).is_dir()
        shown = name if (house / f"{name}.py").is_file() else f"{name}/"
        text = purpose(f"{house.name}.{name}") if there else "(to come)"
        lines.append(f"  {shown:<16}{text}")
    return "\n".join(lines) + "\n"


def purpose(module):
    return importlib.import_module(module).__doc__.splitlines()[0].rstrip(".:")
