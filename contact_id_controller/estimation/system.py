"""The arrays of one estimator, as named tuples of views into two stores.

integers (flat): sizes, then all that counts or points; numbers (flat): all that stays, then all that an
estimate is given and computes. Two arrays cross from Python into compiled code in a tenth of the time of
forty, and a step opens the views again: that costs next to nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from contact_id_controller.estimation.rows import Columns, Limbs, Rows
from contact_id_controller.estimation.sweep import MOTION_WIDTH, Motion
from contact_id_controller.estimation.tree import (
    TREE_INTEGERS,
    TREE_NUMBERS,
    Tree,
    unpack_tree,
)
from contact_id_controller.kernels.views import view


class Sizes(NamedTuple):
    """links n, rows m, contact components c, columns N, limbs, columns of the widest limb.

    floating: 1 for a base that moves freely.  nq, nv: of the robot; ny: of measurements.
    """

    links: int
    rows: int
    components: int
    columns: int
    limbs: int
    widest: int
    floating: int
    nq: int
    nv: int
    ny: int


class Facts(NamedTuple):
    """What holds for the whole robot.

    floating: 1 for a base that moves freely.  gravity: m/s2.  softness (6,): variance of f_0, N2 and
    (N m)2.  base_bias (6,): proper acceleration of a base that is bolted down, else zero.
    """

    floating: int
    gravity: float
    softness: np.ndarray
    base_bias: np.ndarray


class System(NamedTuple):
    """The problem: see ``tree``, ``rows`` and ``sweep``; units (c, 6): unit wrenches of contacts."""

    tree: Tree
    rows: Rows
    columns: Columns
    limbs: Limbs
    facts: Facts
    motion: Motion
    units: np.ndarray


class Inputs(NamedTuple):
    """What an estimate is given: see ``DynamicsEstimator.estimate``; y (ny,) ends with a zero."""

    q: np.ndarray
    v: np.ndarray
    w: np.ndarray
    up: np.ndarray
    y: np.ndarray


class Scratch(NamedTuple):
    """Work space.

    Row vectors r (m, 6) and what is left of measurements for unknowns, target (m,); coefficients base (6,) and h (widest,), normal equations
    H (limbs, widest, widest; lower), Y (limbs, widest, 13) and K (12, 13), known (n,) accelerations.
    """

    r: np.ndarray
    target: np.ndarray
    base: np.ndarray
    h: np.ndarray
    H: np.ndarray
    Y: np.ndarray
    K: np.ndarray
    known: np.ndarray
    sweep: np.ndarray


class Results(NamedTuple):
    """base (6,) = a_0 and z (N,), and what follows from them.

    Joint accelerations (n,), proper accelerations a (n, 6) and wrenches f (n, 6) of links about the
    base origin, efforts (n,), residuals (m,).
    """

    base: np.ndarray
    z: np.ndarray
    joint_acceleration: np.ndarray
    a: np.ndarray
    f: np.ndarray
    effort: np.ndarray
    residual: np.ndarray


SIZES, SWEEP_WORK = len(Sizes._fields), 15


def constants_size(sizes: Sizes) -> int:
    """Length of what stays, at the start of the numbers."""
    n, m, c, columns = sizes[:4]
    return TREE_NUMBERS * n + 11 * m + 7 * c + columns + 13


def numbers_size(sizes: Sizes) -> int:
    """Length of the store of numbers."""
    n, m, c, columns, limbs, widest, _, nq, nv, ny = sizes
    computed = MOTION_WIDTH * n + 6 * c
    scratch = 7 * m + 6 + widest + limbs * widest * (widest + 13) + 12 * 13 + n + SWEEP_WORK
    results = 6 + columns + 14 * n + m
    return constants_size(sizes) + computed + scratch + results + nq + nv + 6 + ny


@register_jitable
def unpack(integers, numbers):
    """System, inputs, scratch and results: views into the two stores."""
    n, m, c, N, limbs = integers[0], integers[1], integers[2], integers[3], integers[4]
    tree = unpack_tree(
        view(integers, SIZES, (TREE_INTEGERS, n)), view(numbers, 0, (TREE_NUMBERS * n,))
    )
    at, end = SIZES + TREE_INTEGERS * n, TREE_NUMBERS * n
    rows = _rows(integers, at, numbers, end, m)
    at, end = at + 6 * m, end + 11 * m
    columns = _columns(integers, at, numbers, end, n, c, N)
    at, end = at + 2 * n + 3 * c + N, end + 7 * c + N
    runs = Limbs(
        view(integers, at, (limbs,)),
        view(integers, at + limbs, (limbs,)),
        view(integers, at + 2 * limbs, (limbs,)),
        view(integers, at + 3 * limbs, (limbs,)),
        view(integers, at + 4 * limbs, (limbs,)),
        view(integers, at + 5 * limbs, (limbs,)),
        view(integers, at + 6 * limbs, (limbs,)),
        view(integers, at + 7 * limbs, (limbs,)),
    )
    facts = Facts(
        integers[6], numbers[end], view(numbers, end + 1, (6,)), view(numbers, end + 7, (6,))
    )
    end += 13
    motion = Motion(
        view(numbers, end, (n, 9)),
        view(numbers, end + 9 * n, (n, 3)),
        view(numbers, end + 12 * n, (n, 6)),
        view(numbers, end + 18 * n, (n, 6)),
        view(numbers, end + 24 * n, (n, 6)),
        view(numbers, end + 30 * n, (n, 6)),
        view(numbers, end + 36 * n, (n, 6)),
        view(numbers, end + 42 * n, (n, 10)),
    )
    end += MOTION_WIDTH * n
    system = System(tree, rows, columns, runs, facts, motion, view(numbers, end, (c, 6)))
    scratch, results, end = _computed(integers, numbers, end + 6 * c)
    nq, nv, ny = integers[7], integers[8], integers[9]
    inputs = Inputs(
        view(numbers, end, (nq,)),
        view(numbers, end + nq, (nv,)),
        view(numbers, end + nq + nv, (3,)),
        view(numbers, end + nq + nv + 3, (3,)),
        view(numbers, end + nq + nv + 6, (ny,)),
    )
    return system, inputs, scratch, results


@register_jitable
def _rows(integers, at, numbers, end, m):
    """Views of m measured rows, from ``at`` in ``integers`` and ``end`` in ``numbers``; shapes as in ``Rows``."""
    return Rows(
        view(integers, at, (m,)),
        view(integers, at + m, (m,)),
        view(integers, at + 2 * m, (m,)),
        view(integers, at + 3 * m, (m,)),
        view(integers, at + 4 * m, (m,)),
        view(integers, at + 5 * m, (m,)),
        view(numbers, end, (m, 6)),
        view(numbers, end + 6 * m, (m, 3)),
        view(numbers, end + 9 * m, (m,)),
        view(numbers, end + 10 * m, (m,)),
    )


@register_jitable
def _columns(integers, at, numbers, end, n, c, N):
    """Views of the columns of n joints, c wrench components and N unknowns; shapes as in ``Columns``."""
    return Columns(
        view(integers, at, (n,)),
        view(integers, at + n, (n,)),
        view(integers, at + 2 * n, (c,)),
        view(integers, at + 2 * n + c, (c,)),
        view(integers, at + 2 * n + 2 * c, (c,)),
        view(numbers, end, (c, 6)),
        view(numbers, end + 6 * c, (c,)),
        view(numbers, end + 7 * c, (N,)),
        view(integers, at + 2 * n + 3 * c, (N,)),
    )


@register_jitable
def _computed(integers, numbers, at):
    """Scratch and results from ``at`` on, and where they end."""
    n, m, N, limbs, w = integers[0], integers[1], integers[3], integers[4], integers[5]
    right = at + 7 * m + 6 + w + limbs * w * w
    corner = right + limbs * w * 13
    scratch = Scratch(
        view(numbers, at, (m, 6)),
        view(numbers, at + 6 * m, (m,)),
        view(numbers, at + 7 * m, (6,)),
        view(numbers, at + 7 * m + 6, (w,)),
        view(numbers, at + 7 * m + 6 + w, (limbs, w, w)),
        view(numbers, right, (limbs, w, 13)),
        view(numbers, corner, (12, 13)),
        view(numbers, corner + 156, (n,)),
        view(numbers, corner + 156 + n, (SWEEP_WORK,)),
    )
    at = corner + 156 + n + SWEEP_WORK
    results = Results(
        view(numbers, at, (6,)),
        view(numbers, at + 6, (N,)),
        view(numbers, at + 6 + N, (n,)),
        view(numbers, at + 6 + N + n, (n, 6)),
        view(numbers, at + 6 + N + 7 * n, (n, 6)),
        view(numbers, at + 6 + N + 13 * n, (n,)),
        view(numbers, at + 6 + N + 14 * n, (m,)),
    )
    return scratch, results, at + 6 + N + 14 * n + m
