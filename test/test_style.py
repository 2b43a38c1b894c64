"""Lint and layout: `ruff check` and `ruff format --check` find nothing; their rules are in pyproject.toml.

And no list of more than 12 positional arguments, where a struct or names should be; no function longer than 80 lines,
and none of 8 lines without a docstring.
"""

import ast
import functools
import subprocess
import sys

import pytest
from paths import ROOT

FOLDERS = (
    "contact_id_controller",
    "experiments",
    "test",
    "examples",
    "benchmarks",
    "launch",
    "setup.py",
)

MOST_POSITIONAL = 12
DESCRIBED_LINES = 8
MOST_LINES = 80
COUNTED = ("contact_id_controller", "experiments", "benchmarks", "examples", "launch")
"""Folders that keep to both."""
KERNELS = "kernel", "bare_inlined"
"""Ends of the names of decorators that compile a function."""


def ruff(*arguments, folder=ROOT):
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [("check", "--output-format=concise"), ("format", "--check")])
def test_ruff_finds_nothing(arguments):
    found = ruff(*arguments, *FOLDERS)
    assert found.returncode == 0, found.stdout + found.stderr


def test_ruff_reads_the_rules(tmp_path):
    """Another dialect of docstrings, a relative import and a second layout are found."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / "bad.py").write_text(
        '"""Bad."""\nfrom ..robot import x\n\n\ndef f(a):\n    """F.\n\n    Raises\n    ------\n'
        '    ValueError\n        Never.\n    """\n    return [x,a]\n',
        encoding="utf-8",
    )
    printed = ruff("check", "--output-format=concise", folder=tmp_path).stdout
    assert "D416" in printed and "TID252" in printed
    assert ruff("format", "--check", folder=tmp_path).returncode == 1


@functools.cache
def trees():
    """Path and syntax of every file that is counted; parsing them takes longer than all that is asked of them."""
    files = (path for folder in COUNTED for path in sorted((ROOT / folder).rglob("*.py")))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in files]


def long_lists(tree):
    """(line, name, count) of functions that take, and calls that give, more positional arguments; not ``self``."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
            name, count = node.name, len(names) - (names[:1] in (["self"], ["cls"]))
        elif isinstance(node, ast.Call):
            name, count = node.func, len(node.args)
        else:
            continue
        if count > MOST_POSITIONAL:
            yield node.lineno, name if isinstance(name, str) else ast.unparse(name), count


def long_functions(tree):
    """(line, name, count) of functions with more lines from ``def`` to their end."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            count = node.end_lineno - node.lineno + 1
            if count > MOST_LINES:
                yield node.lineno, node.name, count


@pytest.mark.parametrize("too_long", [long_lists, long_functions])
def test_lists_of_arguments_and_functions_are_short(too_long):
    found = [
        f"{path}:{line} {name} has {count}"
        for path, tree in trees()
        for line, name, count in too_long(tree)
    ]
    assert not found, "\n".join(found)


def test_a_long_list_is_found():
    names = ", ".join(f"a{k}" for k in range(MOST_POSITIONAL + 1))
    source = f"class C:\n    def f(self, {names}): ...\nC.f({names})\ndef g(*, {names}): ...\n"
    assert sorted(long_lists(ast.parse(source))) == [(2, "f", 13), (3, "C.f", 13)]


def test_a_long_function_is_found():
    lines = "\n".join(["    x = 1"] * (MOST_LINES - 1))
    source = f"def short():\n{lines}\n@cached\ndef long():\n{lines}\n    x = 2\n"
    assert list(long_functions(ast.parse(source))) == [(MOST_LINES + 2, "long", MOST_LINES + 1)]


def is_kernel(function):
    return any(ast.unparse(each).endswith(KERNELS) for each in function.decorator_list)


def undescribed(tree):
    """(line, name) of kernels, and of functions of ``DESCRIBED_LINES`` and more, without a docstring.

    Nested functions are described by what they are in, and ``__init__`` and its like by their class.
    """
    waiting = [(tree, False)]
    while waiting:
        parent, described = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                makes = node.name in ("__init__", "__new__", "__post_init__") and described
                short = node.end_lineno - node.lineno + 1 < DESCRIBED_LINES and not is_kernel(node)
                if not (makes or short or ast.get_docstring(node)):
                    yield node.lineno, node.name
            else:
                own = isinstance(node, ast.ClassDef)
                waiting.append((node, bool(ast.get_docstring(node)) if own else described))


def test_functions_say_what_they_do():
    package = ROOT / "contact_id_controller"
    found = [
        f"{path}:{line} {name}"
        for path, tree in trees()
        if path.is_relative_to(package)
        for line, name in undescribed(tree)
    ]
    assert not found, "\n".join(found)


def test_a_function_that_says_nothing_is_found():
    body = "        pass\n" * DESCRIBED_LINES
    source = (
        f"class C:\n    def __init__(self):\n{body}    def f(self):\n{body}    def g(self): ...\n"
    )
    assert sorted(name for _, name in undescribed(ast.parse(source))) == ["__init__", "f"]
    kernel = "@bare_kernel\ndef k(a):\n    return a\n"
    assert [name for _, name in undescribed(ast.parse(kernel))] == ["k"]
    described = source.replace("class C:\n", 'class C:\n    """One."""\n')
    assert [name for _, name in undescribed(ast.parse(described))] == ["f"]
