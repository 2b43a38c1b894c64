"""A kernel that others call is a part of them, and by itself what it was."""

import os
import subprocess
import sys

import pytest
from paths import ROOT

KERNELS = """
import numpy as np
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.inlined import bare_inlined

@bare_inlined
def first(x):
    return x[0]

@bare_kernel
def scale(x, factor):
    for i in range(x.shape[0]):
        x[i] *= factor

@kernel
def checked(x, least):
    if first(x) < least:
        raise ValueError("first is less than", least)
    scale(x, 2.0)
    return x.sum()

@kernel
def once(x, least):
    return checked(x.copy(), least)

@kernel
def twice(x, least):
    return once(x, least) + checked(x.copy(), least)

@kernel
def factorial(n):
    if n < 2:
        return 1
    return n * factorial(n - 1)

@kernel
def binomial(n, k):
    return factorial(n) // (factorial(k) * factorial(n - k))

"""
CALLS = """
from numerics import *

x = np.ones(3)
print(twice(x, 0.0), once(x, 0.0), x.sum(), binomial(5, 2))
for function in (twice, once, checked):
    try:
        function(x, 1.5)
    except ValueError as error:
        print(*error.args)
print(scale.signatures, checked(x, 0.0), x.sum(), factorial(4))
print(sum(sum(f.stats.cache_misses.values()) for f in (twice, once, checked, scale, first)))
"""


def said(place, calls):
    return subprocess.run(
        [sys.executable, "-c", calls],
        cwd=place,
        env=dict(os.environ, PYTHONPATH=str(ROOT), NUMBA_CACHE_DIR=str(place / "cache")),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_parts_compute_raise_and_recur_as_kernels_do_with_and_without_a_cache(tmp_path):
    (tmp_path / "numerics.py").write_text(KERNELS)
    refused = ["first is less than 1.5"] * 3
    computed = ["12.0 6.0 3.0 10", *refused, "[] 6.0 6.0 24"]
    assert said(tmp_path, CALLS) == [*computed, "3"]  # what only kernels call is not compiled apart
    assert said(tmp_path, CALLS) == [*computed, "0"]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_a_change_of_a_part_in_another_file_reaches_who_calls_it(tmp_path):
    package = tmp_path / "numerics.py"
    caller = "from .steps import *\n\n@kernel\ndef entry(x):\n    return once(x, 0.0)\n"
    package = tmp_path / "walk"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "entries.py").write_text(caller)
    answers = []
    for factor in ("2.0", "3.0"):
        (package / "steps.py").write_text(KERNELS.replace("scale(x, 2.0)", f"scale(x, {factor})"))
        answers += said(tmp_path, "from walk.entries import *; print(entry(np.ones(3)))")
    assert answers == ["6.0", "9.0"]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_with_a_numba_that_was_not_tried_kernels_are_no_parts(tmp_path):
    (tmp_path / "numerics.py").write_text(KERNELS)
    other = "import sys, numba\nnumba.version_info = (0, 1, 0)\n"
    end = "\nprint('contact_id_controller.kernels.parts' in sys.modules)\n"
    *found, _, parts = said(tmp_path, other + CALLS + end)
    assert found[:4] == ["12.0 6.0 3.0 10", *["first is less than 1.5"] * 3] and parts == "False"
