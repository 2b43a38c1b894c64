"""Steps of a kernel that are compiled into it, for kernels that read as their mathematics.

A call hands every array of a named tuple over one by one, .1 us for some thirty arrays. A step with one
caller costs nothing this way.
"""

from __future__ import annotations

from contact_id_controller.kernels.compile import _BARE_OPTIONS, _OPTIONS, _compiled


def inlined(function):
    """As ``kernel``, made part of its caller."""
    return _compiled(function, {**_OPTIONS, "forceinline": True})


def bare_inlined(function):
    """As ``bare_kernel``, made part of its caller."""
    return _compiled(function, {**_BARE_OPTIONS, "forceinline": True})
