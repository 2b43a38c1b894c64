"""The pages in docs/ and results/: their code runs, what they name exists, their links lead somewhere."""

import re
import sys
import types
from pathlib import Path

import pytest
from paths import EXPERIMENTS, PACKAGE, ROOT

from contact_id_controller.models import ROWS, available, registry

DOCS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "results").glob("*.md")])
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
THEORY = ROOT / "docs" / "theory.md"
MODELS = ROOT / "docs" / "contact_models.md"
RECIPE = ROOT / "docs" / "adding_a_contact_model.md"
WIDTH = 120

NAME_IN_FILE = re.compile(r"`([\w.]+)`(?:\(\))?\s+in\s+`([\w/]+\.py)`")
FILE = re.compile(r"`([\w/]+\.py)`")
MENTION = re.compile(r"`([\w/]+\.py|\w+\.\w+|\w+_\w+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def text(page):
    return page.read_text(encoding="utf-8")


def without_code_blocks(page):
    return re.sub(r"^```.*?^```", "", text(page), flags=re.M | re.S)


def prose(page):
    """A page without code and formulas."""
    lines = without_code_blocks(page).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    "))


def located(path):
    """A file named relative to the repository or to the package; None when there is none."""
    found = [base / path for base in (ROOT, PACKAGE) if (base / path).is_file()]
    return found[0] if found else None


def defines(file, name):
    """Whether a file defines ``name`` or ``Class.name``: a function, class, attribute, constant."""
    source = text(file)
    if "." in name:
        owner, name = name.split(".")
        body = re.search(rf"^class {owner}\b.*?(?=^\S|\Z)", source, flags=re.M | re.S)
        return bool(body and re.search(rf"\b{name}\b", body.group()))
    return bool(re.search(rf"^\s*(?:def|class) {name}\b|^{name}\b.*=", source, flags=re.M))


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", text(page), flags=re.M | re.S)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_named_files_and_functions_exist(page):
    words = prose(page)
    missing = [
        path
        for path in FILE.findall(words)
        if located(path) is None and path not in made_by_the_recipe()
    ]
    assert not missing
    pairs = NAME_IN_FILE.findall(words)
    assert [f"{name} in {path}" for name, path in pairs if not defines(located(path), name)] == []
    assert len(pairs) >= 5 or page.name not in ("theory.md", "adding_a_contact_model.md")


def test_names_without_a_file_exist_somewhere():
    """Names and options that the theory mentions without a file are words of code, experiments or tests."""
    files = [f for place in (PACKAGE, EXPERIMENTS, ROOT / "test") for f in place.rglob("*.py")]
    source = "\n".join(text(file) for file in files if file.name != Path(__file__).name)
    words = {word for word in MENTION.findall(prose(THEORY)) if not word.endswith(".py")}
    assert len(words) > 20
    last = {word: word.split(".")[-1] for word in sorted(words)}
    assert [word for word, name in last.items() if not re.search(rf"\b{name}\b", source)] == []


def test_the_table_of_models_is_the_registry():
    section = text(THEORY).split("\n## The models\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)/(\w+)` \|", section, flags=re.M)
    assert sorted(rows) == sorted(available())


def test_the_table_says_when_to_choose_a_model_in_the_words_of_its_row():
    lines = re.findall(r"^\| `(\w+)/(\w+)` \|(.*)\|$", text(MODELS), flags=re.M)
    assert len(lines) > 5
    for friction, solver, rest in lines:
        assert rest.split("|")[0].strip() == ROWS[friction, solver].choose_when


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    broken = []
    for link in LINK.findall(text(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in headings(target)):
            broken.append(link)
    assert not broken


def headings(page):
    """Anchors of a page's headings, as code hosts make them."""
    titles = re.findall(r"^#+ (.*)$", without_code_blocks(page), flags=re.M)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_lines_are_short(page):
    lines = enumerate(text(page).splitlines(), 1)  # the rows of a table cannot be broken
    assert not [n for n, line in lines if len(line) > WIDTH and not line.startswith("|")]


def test_the_library_example_of_the_first_page_runs_as_it_stands(capsys):
    (code,) = blocks(README)
    exec(compile(code, "README.md", "exec"), {})
    *_, share = capsys.readouterr().out.split()
    assert float(share) == pytest.approx(1.0, abs=1e-6)
    assert "# 1.0: the feet carry the weight" in code


def made_by_the_recipe():
    """Files that the reader of the recipe makes."""
    return ("contact_id_controller/models/frictionless_lcp.py", "test/test_frictionless_lcp.py")


@pytest.fixture
def recipe(monkeypatch):
    """The recipe followed to the letter: its model and its registry row, in memory; its test."""
    model_code, row_code, test_code = blocks(RECIPE)
    model = types.ModuleType("contact_id_controller.models.frictionless_lcp")
    exec(compile(model_code, "frictionless_lcp.py", "exec"), vars(model))
    monkeypatch.setitem(sys.modules, model.__name__, model)
    (row,) = eval(row_code, vars(registry))
    monkeypatch.setitem(registry.ROWS, row.pair, row)
    return test_code


def test_recipe_adds_a_model_that_passes_its_own_tests(recipe):
    assert ("frictionless", "lcp") in available()
    names = {"__name__": "test_frictionless_lcp"}
    exec(compile(recipe, "test_frictionless_lcp.py", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) >= 3
    for test in tests:
        test()


def test_recipe_leaves_the_registry_as_it_was():
    assert ("frictionless", "lcp") not in available()
