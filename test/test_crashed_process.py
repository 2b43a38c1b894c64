"""A process of `make test` that dies fails its test and hides no other."""

import os
import re
import subprocess
import sys

import pytest
from paths import ROOT

pytest.importorskip("xdist", reason="make test has it")


def test_a_process_that_dies_fails_its_test_and_hides_no_other(tmp_path):
    (rule,) = re.findall(r"\$\(or \$\(ARGS\),(.*)\)", (ROOT / "Makefile").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text(
        "import os\ndef test_before(): pass\ndef test_dies(): os._exit(9)\ndef test_after(): pass\n"
    )
    others = [f"test_{name}.py" for name in "bcdefg"]
    for name in others:
        (tmp_path / name).write_text("".join(f"def test_{k}(): pass\n" for k in range(3)))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "crashed_process", *rule.split()],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "test")),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert f"1 failed, {2 + 3 * len(others)} passed" in result.stdout, result.stdout
