"""Lemke's method on the Coulomb friction problem of n contacts, from its factor instead of its matrix."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..exceptions import LcpError
from ._compile import bare_kernel as kernel
from ._door import allowed_pivots, checked_array
from ._friction_core import friction_workspace, split
from ._friction_path import follow_path
from ._friction_result import clear, finish, load_basis, prepare
from .status import INACCURATE, PIVOTS, REGULARIZATION, REPORT_SIZE, RESIDUAL, SOLVED, STATUS_NAMES

RESTARTS = 12  # covering vectors tried before giving up


class FrictionResult(NamedTuple):
    """Solution of the friction problem of ``lemke_friction``.

    Attributes:
        impulses: (n, 3) normal, tangent 1, tangent 2.
        z, w: (n, k + 2) complementary pairs, for each contact normal, k edges, slip speed.
        status, pivots, residual: as in ``LcpResult``.
        basis: (n, k + 2) bool, basic z; pass as ``warm_start``.
    """

    impulses: np.ndarray
    z: np.ndarray
    w: np.ndarray
    status: str
    pivots: int
    basis: np.ndarray
    residual: float

    @property
    def solved(self) -> bool:
        """Whether impulses, z and w may be used."""
        return self.status == "solved"


def lemke_friction(Y, c, mu, edges, warm_start=None, max_pivots=None):
    """Solve the friction problem with matrix G = Y Y^T and polygonal cones."""
    Y, c, mu = checked_array("Y", Y, 2), checked_array("c", c, 1), checked_array("mu", mu, 1)
    edges = checked_array("edges", edges, 2)
    n, k = mu.shape[0], edges.shape[0]
    if Y.shape[0] != 3 * n or c.shape[0] != 3 * n or edges.shape[1] != 2 or k < 3:
        raise LcpError("shapes must be Y (3 n, r), c (3 n,), mu (n,), edges (k >= 3, 2), got "
                       f"{Y.shape}, {c.shape}, {mu.shape}, {edges.shape}")
    if (mu < 0.0).any():
        raise LcpError(f"mu must not be negative, got {mu.min()}")
    basis = np.zeros((n, k + 2), dtype=np.bool_)
    if warm_start is not None:
        basis[:] = np.asarray(warm_start, dtype=np.bool_).reshape(n, k + 2)
    z, w, impulses = np.empty((n, k + 2)), np.empty((n, k + 2)), np.empty((n, 3))
    report = np.zeros(REPORT_SIZE)
    status = lemke_friction_kernel(Y, c, mu, edges, allowed_pivots(max_pivots, 0 if False else 0),
                                   *friction_workspace(n, Y.shape[1], k), basis, z, w, impulses, report)
    return FrictionResult(impulses, z, w, STATUS_NAMES[status], int(report[PIVOTS]), basis,
                          float(report[RESIDUAL]))


@kernel
def lemke_friction_kernel(Y, c, mu, edges, max_pivots, real, integer, basis, z, w, impulses, report):
    """The compiled ``lemke_friction``: allocates nothing, returns the status, never raises.

    ``real``, ``integer``: from ``friction_workspace(n, r, k)``.  ``basis``: on entry the warm start
    (all False: cold), on exit the basic z.  z, w, impulses, report: results.
    """
    n, r = mu.shape[0], Y.shape[1]
    work = split(real, integer, n, r, edges.shape[0])
    report[PIVOTS] = 0.0
    report[REGULARIZATION] = 0.0
    scale_Y, scale_c = prepare(Y, c, work)
    first = INACCURATE
    for restart in range(-1, RESTARTS):
        slots = load_basis(Y, c, mu, edges, scale_Y, scale_c, restart, basis, work)
        if restart < 0 and slots == 0:
            continue
        status, slots = follow_path(Y, c, mu, edges, scale_Y, scale_c, restart, slots, max_pivots, work,
                                    report)
        if status == SOLVED:
            if finish(Y, c, mu, edges, scale_Y, scale_c, slots, work, basis, z, w, impulses, report):
                return SOLVED
            status = INACCURATE
        if restart == 0:
            first = status
    clear(basis, z, w, impulses)
    report[RESIDUAL] = math.inf
    return first
