"""What the papers say is data: each file is whole, each claim is judged somewhere, each template fits."""

import re
import string

import pytest
from paths import EXPERIMENTS

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import read_yaml
from experiments.papers import paper
from experiments.papers.blocks import BETTERED, NOT_REPRODUCED, REPRODUCED, VERDICTS
from experiments.papers.paper import Paper
from experiments.papers.registry import EXPERIMENTS as ROWS

FILES = sorted(paper.FOLDER.glob("*.yaml"))
CODE = "".join(file.read_text(encoding="utf-8") for file in (EXPERIMENTS / "papers").glob("*.py"))


def test_every_experiment_has_its_file():
    assert {file.stem for file in FILES} == set(ROWS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_whole_and_all_of_it_is_used(file):
    content = read_yaml(file)
    assert set(content) <= {"title", "figures", "texts", "tables", "claims"} and content["title"]
    for name, claim in content["claims"].items():
        assert set(claim) == {"source", "text", "verdicts", "evidence"}, name
        assert set(claim["verdicts"]) <= set(VERDICTS) and len(claim["verdicts"]) >= 1
        for text in (claim["source"], claim["text"], claim["evidence"]):
            assert list(string.Formatter().parse(text))
    for table in content.get("tables", {}).values():
        assert set(table) == {"caption", "columns"}
        assert all(len(column) == 1 for column in table["columns"])
    names = [*content["claims"], *content.get("tables", {}), *content.get("texts", {})]
    names += content.get("figures", {})
    unused = [name for name in names if f'"{name}"' not in CODE and name != "introduction"]
    assert unused == []


@pytest.fixture
def example(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "FOLDER", tmp_path)
    (tmp_path / "school.yaml").write_text(
        "title: Squares\n"
        "tables: {all: {caption: 'up to {most:g}', columns: [{x: x}, {'%': 1e2*share}, {y: '{y:.1f}'}]}}\n"
        "claims: {large: {source: 'p. {page}', text: large, verdicts: [bettered, reproduced, "
        "not reproduced], evidence: '{share:100*.3g} %, {r[square]:,}'}}\n"
    )
    return Paper("school")


@pytest.mark.parametrize(
    "holds, verdict",
    [
        ((True, True), BETTERED),
        ((True, False), BETTERED),
        ((False, True), REPRODUCED),
        ((False, False), NOT_REPRODUCED),
    ],
)
def test_the_first_verdict_that_holds_is_given(example, holds, verdict):
    claim = example.claim("large", *holds, page=3, share=0.1234, r={"square": 1234})
    assert claim.verdict == verdict
    assert (claim.source, claim.evidence) == ("p. 3", "12.3 %, 1,234")
    assert claim.command == "python -m experiments reproduce school"


@pytest.mark.parametrize("holds", [(), (True,), (True, False, True)])
def test_each_verdict_needs_its_condition(example, holds):
    with pytest.raises(ValueError):
        example.claim("large", *holds, page=3, share=0.1, r={"square": 1})


def test_columns_name_keys_factors_and_templates(example):
    rows = [{"x": 1, "share": 0.5, "y": 2.04}, {"x": "a", "share": None, "y": 3.0}]
    table = example.table("all", rows, ["c", "d"], most=2.0)
    assert (table.caption, table.head) == ("up to 2", ["x", "%", "y"])
    assert table.rows == [[1, 50.0, "2.0"], ["a", None, "3.0"]]


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(ConfigurationError):
        Paper("nothing")
    assert not re.search(r"\bClaim\(", CODE.replace("return Claim(", "")), "claims come from data"
