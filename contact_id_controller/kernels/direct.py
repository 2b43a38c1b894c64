"""Calls of compiled functions without numba's look at the arguments' types, which takes .05 us for each of them."""

from __future__ import annotations

from typing import Any

import numba
from numba.core.registry import CPUDispatcher

from contact_id_controller.kernels.compile import Kernel


def direct(function: Kernel, *arguments: Any) -> Kernel:
    """Compiled code of a kernel for arguments of the types of these.

    Only for callers that choose the types themselves: numbers of another type or order are read as if they were of these.
    """
    if not isinstance(function, CPUDispatcher):  # NUMBA_DISABLE_JIT
        return function
    entry: Kernel = function.compile(tuple(map(numba.typeof, arguments)))
    return entry
