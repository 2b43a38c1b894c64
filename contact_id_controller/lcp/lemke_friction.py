"""Lemke's method on the Coulomb friction problem of n contacts, from its factor, not its matrix."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import LcpError
from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.lcp._door import checked_array, checked_pivots
from contact_id_controller.lcp._friction_core import FrictionAnswer, friction_workspace, split
from contact_id_controller.lcp._friction_path import follow_path
from contact_id_controller.lcp._friction_result import clear, finish, load_basis, scaled
from contact_id_controller.lcp.status import (
    ATTEMPTS,
    INACCURATE,
    PIVOTS,
    REGULARIZATION,
    REPORT_SIZE,
    RESIDUAL,
    SOLVED,
    STATUS_NAMES,
)

MOST_ATTEMPTS = 12  # covering vectors tried before giving up


class FrictionResult(NamedTuple):
    """Solution of the friction problem of ``lemke_friction``; zero when unsolved.

    Attributes:
        impulses: (n, 3) normal, tangent 1, tangent 2.
        z, w: (n, k + 2) complementary pairs of each contact: normal, k edges, slip speed.
        status, pivots, residual: as in ``LcpResult``.
        basis: (n, k + 2) bool, the basic z; pass it as ``warm_start`` of a similar problem.
        attempts: paths followed: 0 when the warm basis solved the problem, 1 as a rule, more when
            rounding led the first one astray and other covering vectors were tried.
    """

    impulses: np.ndarray
    z: np.ndarray
    w: np.ndarray
    status: str
    pivots: int
    basis: np.ndarray
    residual: float
    attempts: int = 1

    @property
    def solved(self) -> bool:
        """Whether impulses, z and w may be used."""
        return self.status == "solved"


def lemke_friction(
    Y: ArrayLike,
    c: ArrayLike,
    mu: ArrayLike,
    edges: ArrayLike,
    warm_start: ArrayLike | None = None,
    max_pivots: int | None = None,
) -> FrictionResult:
    """Solve the friction problem with G = Y Y^T and polygonal cones.

        [G_NN  G_NF  0] [f_N]   [c_N]   [w_N]
        [G_FN  G_FF  E] [f_F] + [c_F] = [w_F]     all >= 0, complementary
        [mu   -E^T   0] [lam]   [0  ]   [w_l]

    where the F rows are the tangential rows of Y and c along the edges.  The matrix, of order
    n (k + 2), is never formed: a pivot costs O(n r + r^3 + r k), and only contacts that come to
    carry load take part in pivots, so cold starts take 10 to 50 pivots for 4 to 1000 contacts.
    The path starts from every contact sliding without load, with the normal rows alone covered; it
    has the guarantee of Lemke's method with a covering vector of ones: a solution, or ``ray``,
    which cannot happen if c f >= 0 for every f in the cones with Y^T f = 0 (so for c = Y a plus
    non-negative normal parts).  Ties are broken lexicographically (``_ratio_test``).  What is
    returned as solved was certified by its residual.  Where rounding leads the path astray, as in
    stacks whose contacts nearly all rest, others follow that cover tangential velocities too, in
    directions of their own, so that nothing ties (``attempts``).

    Args:
        Y: (3 n, r) rows normal, tangent 1, tangent 2 of each contact.
        c: (3 n,) contact velocity without impulses (gap speed added to the normal), m/s.
        mu: (n,) friction coefficients, finite, >= 0.
        edges: (k, 2) unit vectors in the tangent plane, k >= 3, neighbours less than half a turn
            apart.
        warm_start: (n, k + 2) bool, ``basis`` of a similar problem: taken in one factorisation if
            it still solves, else the method starts cold.
        max_pivots: pivots allowed for each of MOST_ATTEMPTS attempts; by default 200 + 10 (r + k).

    Returns:
        FrictionResult with status ``solved``, ``ray``, ``pivot_limit`` or ``inaccurate``.

    Raises:
        LcpError: wrong shapes, values that are not finite, negative friction.

    Source: first paper, section 5.2 with eq. 64 corrected; Anitescu and Potra (1997); Cottle, Pang
    and Stone (1992), algorithm 4.4.5.
    """
    Y, c, mu, edges = _checked(Y, c, mu, edges)
    n, k = mu.shape[0], edges.shape[0]
    basis = np.zeros((n, k + 2), dtype=np.bool_)
    if warm_start is not None:
        if np.shape(warm_start) != basis.shape:
            raise LcpError(f"warm_start must have shape {basis.shape}, got {np.shape(warm_start)}")
        basis[:] = warm_start
    z, w, impulses = np.empty((n, k + 2)), np.empty((n, k + 2)), np.empty((n, 3))
    report = np.zeros(REPORT_SIZE)
    max_pivots = checked_pivots(max_pivots, 200 + 10 * (Y.shape[1] + k))
    status = lemke_friction_kernel(
        Y,
        c,
        mu,
        edges,
        max_pivots,
        *friction_workspace(n, Y.shape[1], k),
        basis,
        z,
        w,
        impulses,
        report,
    )
    return FrictionResult(
        impulses,
        z,
        w,
        STATUS_NAMES[status],
        int(report[PIVOTS]),
        basis,
        float(report[RESIDUAL]),
        int(report[ATTEMPTS]),
    )


def _checked(
    Y: ArrayLike, c: ArrayLike, mu: ArrayLike, edges: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Convert and check the problem's arrays; LcpError for invalid ones."""
    Y, c, mu = checked_array("Y", Y, 2), checked_array("c", c, 1), checked_array("mu", mu, 1)
    edges = checked_array("edges", edges, 2)
    n, k = mu.shape[0], edges.shape[0]
    if Y.shape[0] != 3 * n or c.shape[0] != 3 * n or edges.shape[1] != 2 or k < 3:
        raise LcpError(
            "shapes must be Y (3 n, r), c (3 n,), mu (n,), edges (k >= 3, 2), got "
            f"{Y.shape}, {c.shape}, {mu.shape}, {edges.shape}"
        )
    if (mu < 0.0).any():
        raise LcpError(f"mu must not be negative, got {mu.min()}")
    return Y, c, mu, edges


@kernel
def lemke_friction_kernel(
    Y, c, mu, edges, max_pivots, real, integer, basis, z, w, impulses, report
):
    """Compiled ``lemke_friction``: allocates nothing, returns the status, never raises.

    ``real``, ``integer``: from ``friction_workspace(n, r, k)``, uninitialised.  ``basis``
    (n, k + 2) bool: on entry the warm start (all False: cold), on exit the basic z.  z, w,
    impulses, report: results, as in ``FrictionResult``.
    """
    work = split(real, integer, mu.shape[0], Y.shape[1], edges.shape[0])
    answer = FrictionAnswer(basis, z, w, impulses)
    report[PIVOTS] = report[REGULARIZATION] = 0.0
    problem = scaled(Y, c, mu, edges, work)
    first = INACCURATE
    slots = load_basis(problem, basis, work)
    for attempt in range(-1 if slots > 0 else 0, MOST_ATTEMPTS):
        report[ATTEMPTS] = attempt + 1.0
        if attempt >= 0:
            slots = np.int64(0)
        status, slots = follow_path(problem, attempt, slots, max_pivots, work, report)
        if attempt == 0:
            first = status
        if status == SOLVED and finish(problem, slots, work, answer, report):
            return SOLVED
    clear(answer)
    report[RESIDUAL] = math.inf
    return INACCURATE if first == SOLVED else first
