"""Status codes of the kernels, and the result of the Python entries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SOLVED = 0  # certified by its residual
SOLVED_REGULARIZED = 1  # solves (M + eps I, q); its residual in (M, q) is small, not negligible
RAY = 2  # Lemke ended on a secondary ray; for a copositive-plus M the problem has no solution
UNSOLVABLE = 3  # no z >= 0 makes M z + q >= 0: proven by a row of signs or by a dual ray
PIVOT_LIMIT = 4  # max_pivots reached
INACCURATE = 5  # a basis was found, but its residual does not certify it

STATUS_NAMES = ("solved", "solved_regularized", "ray", "unsolvable", "pivot_limit", "inaccurate")

SOLVED_RESIDUAL = 1e-10  # largest residual that may be called solved
REGULARIZED_RESIDUAL = 1e-6  # largest residual that may be called solved_regularized

# Entries of the report array that every kernel fills.
PIVOTS, RESIDUAL, REGULARIZATION, ATTEMPTS, REPORT_SIZE = 0, 1, 2, 3, 4


class LcpResult(NamedTuple):
    """Solution of 0 <= z  perp  w = M z + q >= 0.

    Attributes:
        z, w: (n,) complementary: both non-negative and z_i w_i = 0 exactly.  Zero when unsolved
            (w then max(q, 0)).
        status: one of ``STATUS_NAMES``.
        pivots: number of pivots taken, over all attempts.
        basis: (n,) bool, the basic z; pass it as ``warm_start`` of a similar problem.
        residual: largest componentwise backward error of w = M z + q, that is
            |w - (M z + q)|_i / (|q| + |M| z)_i, with a floor for pure rounding: free of units,
            unchanged by scaling rows or columns.
        regularization: eps relative to the equilibrated matrix; 0 unless ``solved_regularized``.
    """

    z: np.ndarray
    w: np.ndarray
    status: str
    pivots: int
    basis: np.ndarray
    residual: float
    regularization: float = 0.0

    @property
    def solved(self) -> bool:
        """Whether z and w may be used: solved, or solved with a reported regularization."""
        return self.status in ("solved", "solved_regularized")
