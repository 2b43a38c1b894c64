"""Copying of solutions into the arrays of a batch, compiled: in Python it would take as long as solving."""

from __future__ import annotations

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import inlined_kernel, kernel
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.kernels.views import rows, view
from contact_id_controller.models.steps.reduced import open_answer


class Kept(Struct):
    """The arrays of ``FrameSolutions``, one row a frame."""

    torques: NDArray[np.float64]
    velocity: NDArray[np.float64]
    forces: NDArray[np.float64]
    local_forces: NDArray[np.float64]
    contact_velocity: NDArray[np.float64]
    gap_speed: NDArray[np.float64]


@structref.register
class KeptType(StructType):
    """numba's type of `Kept`."""


_pack = packing(Kept, KeptType)


@kernel
def _packed(values):
    """The struct ``Kept``, from the tuple of its fields' values."""
    return _pack(values)


Kept.packed = staticmethod(_packed)


@inlined_kernel
def _keep(reduced, answer, forces, numbers, k, kept):
    """Write one frame's solution into row k of the arrays of all frames; contacts not in the problem: NaN, forces 0.

    ``w = c + Y Y^T z`` (3n,), m/s, is the contacts' velocity at the period's end, ``z / dt`` their force in local
    axes, N; c is the attainable one (``answer.moved``). numbers (n,): indices of these contacts among all.
    """
    Y, gap_speed, dt = reduced.Y, reduced.gap_speed, reduced.dt
    moved, z = answer.moved, answer.z
    force, local, velocity, gap = (
        kept.forces[k],
        kept.local_forces[k],
        kept.contact_velocity[k],
        kept.gap_speed[k],
    )
    assign(kept.torques[k], answer.torques)
    assign(kept.velocity[k], answer.velocity)
    for i in range(gap.shape[0]):
        gap[i] = np.nan
        for d in range(3):
            force[i, d] = local[i, d] = 0.0
            velocity[i, d] = np.nan
    u = np.zeros(Y.shape[1])
    for r in range(z.shape[0]):
        amount = z[r]
        if amount != 0.0:
            for a in range(u.shape[0]):
                u[a] += Y[r, a] * amount
    for i in range(numbers.shape[0]):
        at = numbers[i]
        gap[at] = gap_speed[i]
        for d in range(3):
            r = 3 * i + d
            w = moved[r]
            for a in range(u.shape[0]):
                w += Y[r, a] * u[a]
            force[at, d], local[at, d], velocity[at, d] = forces[i, d], z[r] / dt, w


@kernel
def keep_frames(store, actuated, unactuated, room, forces, numbers, places, kept):
    """Write m solutions into rows ``places`` (m,) of the arrays ``kept``; negative: not written.

    store, room: of the m problems and answers, one after the other.  forces (m n, 3): N, world frame.
    numbers (n,): indices of the problems' contacts among all of them.
    """
    frames, n, na = places.shape[0], numbers.shape[0], actuated.shape[0]
    size, width = store.shape[0] // frames, room.shape[0] // frames
    for k in range(frames):
        if places[k] >= 0:
            _keep(
                open_store(view(store, k * size, (size,)), actuated, unactuated),
                open_answer(view(room, k * width, (width,)), n, na),
                rows(forces, k * n, n),
                numbers,
                places[k],
                kept,
            )
