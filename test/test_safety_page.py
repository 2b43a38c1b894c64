"""docs/safety.md and docs/security.md say only what a test shows: each promise names one that exists."""

import ast
import re
from functools import cache

import pytest
from paths import ROOT

PAGES = {name: ROOT / "docs" / f"{name}.md" for name in ("safety", "security")}
EXPLAIN_ONLY = {
    "safety": {
        "Safety",  # what the page is, and how it names tests
        "Fault campaign",  # one measurement, of which a short form is a test
        "Fuzzing",
        "Reaction times",  # measurements
        "What it does not do",
    },
    "security": {
        "Security",
        "What listens",  # a table that is compared as a whole by the tests named above it
    },
}
"""Sections that promise nothing, by their headings; in all others each block names its test."""

NO_PROMISE = ("*Explanation:*", "*Measured*")
"""Words at the beginning of a paragraph that promises nothing in a section that does."""

TEST = re.compile(r"`(test_\w+)::(test_\w+)`")
ROW = re.compile(r"`\[(\w+)\]`")


@cache
def functions_named_test(module):
    """Names of the tests at the top of a file, by its syntax; none where there is no file."""
    file = ROOT / "test" / f"{module}.py"
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def rows_of_the_guard():
    """Names of the rows that `test_guard::test_reaction` plays: decorated, or made by a call."""
    tree = ast.parse((ROOT / "test" / "test_guard.py").read_text(encoding="utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            made_by = [
                each.func.id
                for each in node.decorator_list
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
            ]
            found |= {node.name.removeprefix("_")} if "row" in made_by else set()
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            first = node.value.args[0] if node.value.args else None
            maker = node.value.func
            if (
                isinstance(maker, ast.Name)
                and maker.id in ("_bad", "_impossible_joints", "_failing")
                and isinstance(first, ast.Constant)
            ):
                found.add(first.value)
    return found


def blocks(text):
    """(heading, block) of a page: list items, rows of tables, paragraphs; no code, comments, heads."""
    heading, block, found = "", [], []

    def close():
        if block:
            found.append((heading, " ".join(line.strip() for line in block)))
            block.clear()

    lines = text.splitlines()
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("#"):
            close()
            heading = line.lstrip("#").strip()
        elif not line.strip() or line.startswith(("    ", "<!--")):
            close()
        elif line.startswith("|"):
            close()
            if not line.startswith("|---") and not after.startswith("|---"):
                found.append((heading, line))
        else:
            if re.match(r"[-*] |\d+\. ", line):
                close()
            block.append(line)
    close()
    return found


def promises(name, text):
    """Blocks that must name a test."""
    return [
        (heading, block)
        for heading, block in blocks(text)
        if heading not in EXPLAIN_ONLY[name] and not block.startswith(NO_PROMISE)
    ]


def without_test(name, text):
    return [
        block for _, block in promises(name, text) if not (TEST.search(block) or ROW.search(block))
    ]


def unknown(text):
    """What a page names that is no test and no row of the guard's."""
    named = [
        f"{module}::{test}"
        for module, test in TEST.findall(text)
        if test not in functions_named_test(module)
    ]
    return named + [name for name in ROW.findall(text) if name not in rows_of_the_guard()]


@pytest.mark.parametrize("name", PAGES)
def test_every_named_test_exists(name):
    text = PAGES[name].read_text(encoding="utf-8")
    assert unknown(text) == []
    # No other way to name one, which nothing would check.
    assert re.findall(r"`test_\w+`", text) == []
    assert len(set(TEST.findall(text))) > {"safety": 150, "security": 30}[name]


@pytest.mark.parametrize("name", PAGES)
def test_every_promise_names_its_test(name):
    text = PAGES[name].read_text(encoding="utf-8")
    assert without_test(name, text) == []
    assert len(promises(name, text)) > {"safety": 120, "security": 15}[name]


@pytest.mark.parametrize("name", PAGES)
def test_every_section_that_explains_only_is_there(name):
    headings = set(re.findall(r"^#+ (.*)$", PAGES[name].read_text(encoding="utf-8"), flags=re.M))
    assert EXPLAIN_ONLY[name] <= headings


def test_a_promise_without_a_test_and_a_test_that_is_none_are_found():
    page = (
        "## Faults\n\nNever falls.\n\n| a | b |\n|---|---|\n| tilt | stops |\n"
        "| flood | `test_guard::test_reaction` |\n- stops (`[tilt]`)\n- stands\n  still\n\n"
        "*Measured* today: 3.\n\n    some code\n\n## Reaction times\n\n- fast\n"
    )
    assert without_test("safety", page) == ["Never falls.", "| tilt | stops |", "- stands still"]
    assert unknown(page) == []
    assert unknown("`test_guard::test_nothing` `test_none::test_x` `[no_such_row]` `[tilt]`") == [
        "test_guard::test_nothing",
        "test_none::test_x",
        "no_such_row",
    ]


def test_the_rows_found_are_those_that_are_played():
    import test_guard

    assert rows_of_the_guard() == set(test_guard.ROWS)
