"""A kernel that others call is a part of them, and by itself what it was."""

import hashlib
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


def started(place, calls):
    return subprocess.Popen(
        [sys.executable, "-c", calls],
        cwd=place,
        env=dict(os.environ, PYTHONPATH=str(ROOT), NUMBA_CACHE_DIR=str(place / "cache")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(place, calls, *processes):
    process = processes[0] if processes else started(place, calls)
    out, errors = process.communicate()
    assert process.returncode == 0, errors[-2000:]
    return out.splitlines()


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
    end = "\nprint('contact_id_controller.kernels.inlining' in sys.modules)\n"
    *found, _, parts = said(tmp_path, other + CALLS + end)
    assert found[:4] == ["12.0 6.0 3.0 10", *["first is less than 1.5"] * 3] and parts == "False"


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
@pytest.mark.parametrize("damage", ["flipped bits", "cut", "exchanged", "unreadable"])
def test_a_damaged_file_of_the_cache_is_compiled_anew(tmp_path, damage):
    (tmp_path / "numerics.py").write_text(KERNELS)
    whole = said(tmp_path, CALLS)
    files = sorted(path for path in (tmp_path / "cache").rglob("*.nb*"))
    contents = [bytearray(path.read_bytes()) for path in files]
    for path, content, other in zip(files, contents, [*contents[1:], contents[0]]):
        if damage == "flipped bits":
            for k in range(300, len(content), 997):
                content[k] ^= 1 << k % 8
        unreadable = b"\x80\x05no pickle"  # with the checksum that it should have
        path.write_bytes(
            {
                "cut": content[:-9],
                "exchanged": other,
                "unreadable": hashlib.sha256(unreadable).digest() + unreadable,
            }.get(damage, content)
        )
    assert said(tmp_path, CALLS) == whole
    assert said(tmp_path, CALLS) == [*whole[:-1], "0"]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_processes_that_compile_the_same_at_once_keep_it_whole(tmp_path):
    (tmp_path / "numerics.py").write_text(KERNELS)
    processes = [started(tmp_path, CALLS) for _ in range(4)]
    first, *others = [said(tmp_path, CALLS, process)[:-1] for process in processes]
    assert others == [first] * 3
    assert said(tmp_path, CALLS) == [*first, "0"]
    assert {path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {".nbc"}
