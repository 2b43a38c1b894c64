"""Shared parts of the Python entries: validation of arguments, and the result from a kernel's arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import LcpError
from contact_id_controller.kernels.views import dense
from contact_id_controller.lcp.status import (
    PIVOTS,
    REGULARIZATION,
    RESIDUAL,
    STATUS_NAMES,
    LcpResult,
)


def checked_problem(M: ArrayLike, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Convert M (n, n) and q (n,) to contiguous float64; LcpError for other shapes or values."""
    M, q = checked_array("M", M, 2), checked_array("q", q, 1)
    if M.shape != (q.shape[0], q.shape[0]):
        raise LcpError(f"M must have shape (n, n) and q (n,), got {M.shape} and {q.shape}")
    return M, q


def checked_array(name: str, value: ArrayLike, dimensions: int) -> np.ndarray:
    """Convert to a finite float64 array, row-major and writeable, of this many dimensions; otherwise LcpError.

    A fresh copy is made only if ``value`` is not such an array.
    """
    try:
        value = dense(value)
    except (TypeError, ValueError):
        raise LcpError(f"{name} must be an array of numbers") from None
    if value.ndim != dimensions:
        raise LcpError(f"{name} must have {dimensions} dimension(s), got shape {value.shape}")
    if not np.isfinite(value).all():
        raise LcpError(f"{name} must be finite")
    return value


def checked_vector(
    name: str, value: ArrayLike | None, n: int, positive: bool = False
) -> np.ndarray:
    """``value`` as a finite (n,) vector, or an empty one for None; LcpError otherwise."""
    if value is None:
        return np.empty(0)
    value = checked_array(name, value, 1)
    if value.shape != (n,):
        raise LcpError(f"{name} must have shape ({n},), got {value.shape}")
    if positive and not (value > 0.0).all():
        raise LcpError(f"{name} must be positive, got a smallest entry of {value.min()}")
    return value


def checked_basis(warm_start: ArrayLike | None, n: int) -> np.ndarray:
    """A fresh (n,) bool array from a warm start; all False for None."""
    if warm_start is None:
        return np.zeros(n, dtype=np.bool_)
    basis = np.array(warm_start)
    if basis.shape != (n,) or basis.dtype != np.bool_:
        raise LcpError(f"warm_start must be {n} booleans, got {basis.dtype} of shape {basis.shape}")
    return basis


def checked_pivots(max_pivots: int | None, default: int) -> int:
    """The caller's limit, or the default for None."""
    if max_pivots is None:
        return default
    if max_pivots < 0:
        raise LcpError(f"max_pivots must not be negative, got {max_pivots}")
    return int(max_pivots)


def result(
    status: int, z: np.ndarray, w: np.ndarray, basis: np.ndarray, report: np.ndarray
) -> LcpResult:
    """Make the ``LcpResult`` from a kernel's solution z, w, basis and report."""
    return LcpResult(
        z,
        w,
        STATUS_NAMES[status],
        int(report[PIVOTS]),
        basis,
        float(report[RESIDUAL]),
        float(report[REGULARIZATION]),
    )
