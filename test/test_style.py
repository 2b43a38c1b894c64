"""Lint and layout: `ruff check` and `ruff format --check` find nothing; their rules are in pyproject.toml."""

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
