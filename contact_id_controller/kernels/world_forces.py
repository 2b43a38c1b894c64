"""Contact forces in the world frame from the impulses of a solution."""

from __future__ import annotations

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.reduction import open_store, sizes
from contact_id_controller.kernels.views import view


@kernel
def world_forces(store, actuated, unactuated, impulses, forces):
    """Forces (m n, 3) N, world frame, from impulses (3 m n,) N.s of m problems with n contacts each.

    store: of the problems, one after the other.
    """
    fixed, each = sizes(unactuated.shape[0], actuated.shape[0])
    # m (fixed + n each) numbers, of which the m n contacts are known.
    frames = (store.shape[0] - forces.shape[0] * each) // fixed
    n, size = forces.shape[0] // frames, store.shape[0] // frames
    for k in range(frames):
        reduced = open_store(view(store, k * size, (size,)), actuated, unactuated)
        axes, dt = reduced.frames, reduced.dt
        for i in range(n):
            at = k * n + i
            for d in range(3):
                total = 0.0
                for a in range(3):
                    total += axes[i, a, d] * impulses[3 * at + a]
                forces[at, d] = total / dt
