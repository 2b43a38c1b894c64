"""The queue of `make test`: what dies hides no other test, what runs in real time runs in one process."""

import os
import re
import subprocess
import sys

import pytest
from paths import ROOT
from queue_of_files import IN_REAL_TIME

pytest.importorskip("xdist", reason="make test has it")


def made(folder, *more):
    """What `make test` does with the tests of a folder, with more options."""
    (rule,) = re.findall(r"\$\(or \$\(ARGS\),(.*)\)", (ROOT / "Makefile").read_text())
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *more, "-p", "queue_of_files", *rule.split()],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "test")),
        capture_output=True,
        text=True,
    )


def test_a_process_that_dies_fails_its_test_and_hides_no_other(tmp_path):
    (tmp_path / "test_a.py").write_text(
        "import os\ndef test_before(): pass\ndef test_dies(): os._exit(9)\ndef test_after(): pass\n"
    )
    others = [f"test_{name}.py" for name in "bcdefg"]
    for name in others:
        (tmp_path / name).write_text("".join(f"def test_{k}(): pass\n" for k in range(3)))
    result = made(tmp_path)
    assert result.returncode == 1
    assert f"1 failed, {2 + 3 * len(others)} passed" in result.stdout, result.stdout


def test_files_in_real_time_run_in_one_process(tmp_path):
    names = [*IN_REAL_TIME, *(f"test_{name}.py" for name in "abcd")]
    text = "import time\ndef test_a(): time.sleep(0.3)\ndef test_b(): pass\ndef test_c(): pass\n"
    for name in names:
        (tmp_path / name).write_text(text)
    result = made(tmp_path, "-v")
    ran = re.findall(r"\[(gw\d)\].* PASSED (test_\w+\.py)::", result.stdout)
    assert len(ran) == 3 * len(names), result.stdout
    assert len({process for process, name in ran if name in IN_REAL_TIME}) == 1, result.stdout
    assert len({process for process, _ in ran}) > 1, result.stdout
