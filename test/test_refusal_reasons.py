"""The table of refusal reasons in docs/reference.md has those of the code, no more and no less."""

import ast
import re

from paths import PACKAGE, ROOT

from contact_id_controller.settings.command_interfaces import INTERFACES

BEGIN = "## Names of refusals"
COUNTED = ("safety", "ros")
WATCHDOG = ("safety/command_watchdog.py", "safety/commanders.py")
READ_BY = ("_fault", "refusal")
"""Functions whose texts are reasons of the watchdog."""
GUARDED = (
    "safety/guard.py",
    "safety/in_process.py",
    "safety/plan_intake.py",
    "ros/control_loop.py",
)
"""Where an error of what is called counts by the name that it is guarded with."""


def names(node):
    """A text as a pattern: the parts of an f-string that vary stand for any word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [re.escape(node.value)] if node.value else []
    if isinstance(node, ast.JoinedStr):
        parts = (re.escape(p.value) if isinstance(p, ast.Constant) else r"\w+" for p in node.values)
        return ["".join(parts)]
    return [name for child in ast.iter_child_nodes(node) for name in names(child)]


def refused_by_the_controller():
    found = set()
    for folder in COUNTED:
        for path in (PACKAGE / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "Refusal":
                    found.update(names(node.args[0]))
    for path in GUARDED:
        for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                ("guarded", "caught")
            ):
                found.update(names(node.args[0]))
    return found


def refused_by_the_watchdog():
    found = {row.unread for row in INTERFACES.values()}
    for path in WATCHDOG:
        for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "self.refused":
                found.update(names(node.slice))
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "reason":
                found.update(names(node.value) if isinstance(node.value, ast.Constant) else [])
            elif isinstance(node, ast.FunctionDef) and node.name in READ_BY:
                for each in ast.walk(node):
                    if isinstance(each, ast.Return):
                        found.update(returned(each.value))
    return found


def returned(value):
    if isinstance(value, ast.IfExp):
        return returned(value.body) + returned(value.orelse)
    return names(value) if isinstance(value, ast.Constant) else []


def documented():
    """Reasons of the table, by who refuses."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").split(BEGIN, 1)[1]
    found = {"controller": set(), "watchdog": set()}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `"):
            found[cells[1]].update(re.findall(r"`(\w+)`", cells[0]))
    return found


def test_the_table_has_each_reason_of_the_code():
    table = documented()
    for who, patterns in (
        ("controller", refused_by_the_controller()),
        ("watchdog", refused_by_the_watchdog()),
    ):
        assert len(patterns) > 5, who
        lacking = [each for each in patterns if not any(re.fullmatch(each, n) for n in table[who])]
        gone = [n for n in table[who] if not any(re.fullmatch(each, n) for each in patterns)]
        assert not lacking and not gone, (who, lacking, gone)
