"""What a state passes through on its way to torques stays little: calls of Python, and files."""

import sys

import numba
import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import path_of_a_state

MOST_CALLS, MOST_FILES = 45, 15


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are Python functions then")
def test_a_state_passes_few_calls_and_files(monkeypatch):
    monkeypatch.setattr(path_of_a_state, "WARM_PERIODS", 600)
    monkeypatch.setattr(path_of_a_state, "PERIODS", 200)
    path, _ = path_of_a_state.walk("solo12")
    files = {call.partition(":")[0] for call in path}
    assert any("coulomb_qp.py" in call for call in path), "the contact problem is solved on the way"
    assert len(path) <= MOST_CALLS and len(files) <= MOST_FILES, path
