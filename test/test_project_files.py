"""What strangers and machines read first: citation, continuous integration, contributing."""

import os
import re
import subprocess

import yaml
from paths import ROOT

from contact_id_controller.settings.removed import REMOVED


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_citation_has_the_five_papers_and_this_version():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == re.search(r'version="([\d.]+)"', read("setup.py")).group(1)
    assert citation["license"] == "Apache-2.0"
    references = citation["references"]
    names = [[author["family-names"] for author in each["authors"]] for each in references]
    assert names == [
        ["Zapolsky", "Drumwright"],
        ["Drumwright"],
        ["Aghili"],
        ["Nori"],
        ["Herzog", "Schaal", "Righetti"],
    ]
    assert len({each["title"] for each in references}) == 5


def test_the_changelog_says_of_every_parameter_that_is_gone_what_became_of_it():
    changelog = read("CHANGELOG.md")
    assert [name for name in REMOVED if not re.search(rf"`{name}\b", changelog)] == []


def test_hosted_ci_runs_what_everybody_runs():
    workflow = yaml.safe_load(read(".github/workflows/ci.yml"))
    (job,) = workflow["jobs"].values()
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert runs == [".ci/run"] and os.access(ROOT / ".ci" / "run", os.X_OK)
    oldest = re.search(r'python_requires=">=([\d.]+)"', read("setup.py")).group(1)
    assert job["strategy"]["matrix"]["python"][0] == oldest


def test_the_pages_for_those_who_change_something_are_linked_from_the_first():
    links = re.findall(r"\]\(([^)\s]+)\)", read("README.md"))
    for page in ("CONTRIBUTING.md", "CITATION.cff", "docs/architecture.md", "docs/examples.md"):
        assert page in links


def test_what_a_run_leaves_is_not_part_of_the_project():
    """Folders that commands write by default are ignored, and none of them was ever added."""
    ignored = read(".gitignore").splitlines()
    for folder in ("report", "faults"):
        assert f"/{folder}/" in ignored
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-ci", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert listed.stdout == ""
