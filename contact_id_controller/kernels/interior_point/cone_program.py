"""The arrays of a cone program and of its interior-point iterates, in named tuples.

    min 1/2 x^T D x + g^T x + 1/2 |A x - b|^2 / soft      D diagonal
        A x = b (rows with soft = 0),  lower <= x <= upper (the first variables),  x_i in Q (the others)

N variables, the first m of them bounded, the others in cones of three; p rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class ConeProgram(NamedTuple):
    """weight (N,): D >= 0, the same for the two tangents of a cone; linear (N,): g; At (N, p): A transposed.

    b, soft (p,); lower, upper (m,), infinite without bound.
    """

    weight: np.ndarray
    linear: np.ndarray
    At: np.ndarray
    b: np.ndarray
    soft: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Point(NamedTuple):
    """x (N,); y (p,) multipliers of the rows; s (N,) of lower bounds and cones; r (m,) of upper bounds."""

    x: np.ndarray
    y: np.ndarray
    s: np.ndarray
    r: np.ndarray


class Work(NamedTuple):
    """A step, its matrix and workspace.

    degree: of bounds and cones. step; rd (N,), rp (p,): defects of the dual and primal equations.
    log (steps + 1, 2): gap relative to the objective and largest relative defect before each step; saved (4,
    max(N, p)): (x, y, s, r) of an intermediate point. extent (2, N) int64: begin and end of the nonzero entries
    of each variable's column. inverse (m,): 1 x 1 blocks; blocks (cones, BLOCK): the
    others, see ``scale_cone``; S (p, p): lower factor of the Schur complement. rhs, comp (N,): right side,
    and its complementarity part; pull, pulled (N,), rest (p,), rows (3, p), threes
    (4, 3): workspace.
    """

    degree: int
    step: Point
    rd: np.ndarray
    rp: np.ndarray
    log: np.ndarray
    saved: np.ndarray
    extent: np.ndarray
    inverse: np.ndarray
    blocks: np.ndarray
    S: np.ndarray
    rhs: np.ndarray
    comp: np.ndarray
    pull: np.ndarray
    pulled: np.ndarray
    rest: np.ndarray
    rows: np.ndarray
    threes: np.ndarray
