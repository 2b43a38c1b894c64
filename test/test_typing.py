"""What an editor or a type checker knows of the package, by mypy: everything but compiled kernels is strict."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

START = """\
import numpy as np

from contact_id_controller import (
    ContactSet, Problem, RobotModel, Solution, build_problem, solve
)
from contact_id_controller.lcp import lemke, lemke_friction, ppm, ppm_factored

robot = RobotModel.from_urdf("package://contact_id_controller/urdf/quadruped.urdf")
contacts = ContactSet([[0, 0, 0]], [[0, 0, 1]], ["LF_FOOT"], friction=0.6)
problem = build_problem(robot, robot.neutral(), np.zeros(robot.nv), [0.0] * robot.na, contacts, 1e-3)
solution = solve(problem)
"""

GOOD = """\
solution = solve(problem, "coulomb", "qp", edges=8, distribution="least_force")
solution = solve(problem, friction="no_slip", solver="lcp", warm_start=solution)
solution = solve(problem, solver="qcqp", torque_limits=robot.effort_limits, rho=1e3)
forces: np.ndarray = solution.forces
status: str = solution.status
worst: float = max(solution.residuals(robot.neutral(), np.zeros(robot.nv)).values())
names: list[str] = robot.joint_names
less: ContactSet = contacts.subset([True]).moved(friction=np.ones(1))
answered: Problem = solution.problem
again: Solution = solve(answered)
count: int = len(problem) + robot.na
box: RobotModel = robot.with_object(1.0, np.eye(3))
z: np.ndarray = lemke(np.eye(2), [-1.0, 1.0]).z
basis: np.ndarray = ppm(np.eye(2), [-1.0, 1.0], max_pivots=9).basis
w: np.ndarray = ppm_factored(np.eye(2), [-1.0, 1.0], warm_start=basis).w
friction = lemke_friction(problem.Y, problem.c, [0.6], np.vstack([np.eye(2), -np.eye(2)]))
impulses: np.ndarray = friction.impulses if friction.solved else problem.c
"""

BAD = {
    "a friction that does not exist": 'solve(problem, "coulom")',
    "a solver that does not exist": 'solve(problem, "coulomb", "qpp")',
    "an option that does not exist": "solve(problem, edgs=4)",
    "an option of another type": 'solve(problem, edges="four")',
    "a choice that does not exist": 'solve(problem, distribution="least_work")',
    "no problem": "solve(robot)",
    "a problem written to": "problem.period = 2e-3",
    "contacts written to": "contacts.friction = np.ones(1)",
    "a solution written to": "solution.torques = np.zeros(12)",
    "a member that does not exist": "robot.joint_name",
    "a field that does not exist": "solution.force",
    "a method that does not exist": "contacts.move(np.zeros((1, 3)))",
    "a keyword that does not exist": "ContactSet([[0, 0, 0]], [[0, 0, 1]], ['foot'], mu=1.0)",
    "an argument left out": "build_problem(robot, robot.neutral(), np.zeros(18), contacts, 1e-3)",
    "a name that the package lacks": "from contact_id_controller import build_problems",
    "a field that an LCP's result lacks": "lemke(np.eye(2), np.ones(2)).impulses",
    "a number of pivots that is none": "ppm(np.eye(2), np.ones(2), max_pivots='many')",
    "a torque of another type": "torque: str = solution.torques",
}


GOOD_LINES = len((START + GOOD).splitlines())


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says, in one run, of the package and of a program of a user, line by line."""
    program = tmp_path_factory.mktemp("user") / "program.py"
    program.write_text(START + GOOD + "\n".join(BAD.values()) + "\n")
    command = [sys.executable, "-m", "mypy", "--no-color-output", "--no-error-summary"]
    result = subprocess.run(
        [*command, "contact_id_controller", str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout.splitlines()


COMPILED = {
    "allocating_kernel",
    "bare_inlined",
    "bare_kernel",
    "inlined_kernel",
    "intrinsic",
    "kernel",
    "overload",
    "register_jitable",
}
"""Decorators of functions whose types numba finds."""


def compiled_lines(source):
    """Numbers of the lines of a source that stand in compiled functions."""
    lines = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for each in node.decorator_list:
                name = each.func if isinstance(each, ast.Call) else each
                if ast.unparse(name).split(".")[-1] in COMPILED:
                    lines.update(range(each.lineno, node.end_lineno + 1))
    return lines


def test_everything_but_compiled_kernels_is_typed(said):
    compiled, found = {}, []
    for line in said:
        place = re.match(r"(\S+\.py):(\d+): error: ", line)
        if place is None or place[1].endswith("program.py"):
            continue
        path, number = place.groups()
        if path not in compiled:
            compiled[path] = compiled_lines((ROOT / path).read_text(encoding="utf-8"))
        if int(number) not in compiled[path]:
            found.append(line)
    assert not found, "\n".join(found)


def test_no_module_is_left_out():
    assert "ignore_errors" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_lines_of_compiled_functions_are_found():
    source = "import k\n\n@k.kernel\ndef f(a):\n    return a\n\ndef g(a):\n    return a\n"
    assert compiled_lines(source) == {3, 4, 5}


def test_a_program_is_taken_and_each_slip_in_it_refused(said):
    places = [re.match(r"\S*program\.py:(\d+): error: ", line) for line in said]
    lines = {int(place[1]) for place in places if place}
    assert not {n for n in lines if n <= GOOD_LINES}, said
    expected = dict(enumerate(BAD.values(), GOOD_LINES + 1))
    missed = [line for n, line in expected.items() if n not in lines]
    assert not missed, f"not refused: {missed}\n{said}"


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "contact_id_controller/py.typed").is_file()


@pytest.mark.parametrize("module", ["contact_id_controller", "contact_id_controller.exceptions"])
def test_importing_it_loads_neither_pinocchio_nor_numba(module):
    code = (
        f"import sys, {module}; print(sorted({{'numba', 'pinocchio', 'numpy'}} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_its_names_are_there_when_they_are_asked_for():
    code = "import contact_id_controller as c; print(set(c.__all__) <= set(dir(c)), c.solve, c.Problem)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("True <function solve")
