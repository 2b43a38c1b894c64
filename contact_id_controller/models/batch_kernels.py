"""What a batch keeps of one solution, written by one call: from Python it costs as much as the solution."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import inlined_kernel, kernel
from contact_id_controller.kernels.reduction import open_store


class Kept(NamedTuple):
    """Of one solution: torques (na,), velocity (nv,), forces (n, 3), z (3n,); attainable (3n,), or (0,)."""

    torques: Any
    velocity: Any
    forces: Any
    z: Any
    attainable: Any


class Room(NamedTuple):
    """The arrays of ``FrameSolutions``, a row a frame."""

    torques: Any
    velocity: Any
    forces: Any
    local_forces: Any
    contact_velocity: Any
    gap_speed: Any


@inlined_kernel
def _keep(reduced, kept, numbers, k, room):
    Y, c, gap_speed, dt = reduced.Y, reduced.c, reduced.gap_speed, reduced.dt
    attainable, z, forces = kept.attainable, kept.z, kept.forces
    force, local, velocity, gap = (
        room.forces[k],
        room.local_forces[k],
        room.contact_velocity[k],
        room.gap_speed[k],
    )
    assign(room.torques[k], kept.torques)
    assign(room.velocity[k], kept.velocity)
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
            w = attainable[r] if attainable.shape[0] else c[r]
            for a in range(u.shape[0]):
                w += Y[r, a] * u[a]
            force[at, d], local[at, d], velocity[at, d] = forces[i, d], z[r] / dt, w


@kernel
def keep_frame(
    store,
    dt,
    actuated,
    unactuated,
    torques,
    velocity,
    forces,
    z,
    attainable,
    numbers,
    k,
    all_torques,
    all_velocity,
    all_forces,
    all_local_forces,
    all_contact_velocity,
    all_gap_speed,
):
    """Row k of the arrays; numbers (n,): the places of the solution's contacts among all of them."""
    _keep(
        open_store(store, dt, actuated, unactuated),
        Kept(torques, velocity, forces, z, attainable),
        numbers,
        k,
        Room(
            all_torques,
            all_velocity,
            all_forces,
            all_local_forces,
            all_contact_velocity,
            all_gap_speed,
        ),
    )
