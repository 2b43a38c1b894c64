"""The arrays of one estimator, as named tuples of views into three buffers.

integers (flat): sizes, then all that counts or points; constants (flat): all numbers that stay;
buffer (flat): all that an estimate computes. Three arrays cross from Python into compiled code in a
tenth of the time of forty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.estimation.rows import Columns, Limbs, Rows
from contact_id_controller.estimation.sweep import MOTION_WIDTH, Motion, unpack_motion
from contact_id_controller.estimation.tree import TREE_INTEGERS, TREE_NUMBERS, Tree, unpack_tree
from contact_id_controller.kernels.compile import kernel


class Sizes(NamedTuple):
    """links n, rows m, contact components c, columns N, limbs, columns of the widest limb."""

    links: int
    rows: int
    components: int
    columns: int
    limbs: int
    widest: int


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


class Scratch(NamedTuple):
    """Work space.

    Row vectors r (m, 6), coefficients base (6,) and h (widest,), normal equations
    H (limbs, widest, widest), Y (limbs, widest, 13) and K (12, 13), known (n,) accelerations.
    """

    r: np.ndarray
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


SWEEP_WORK = 15


def buffer_size(sizes: Sizes) -> int:
    """Length of an estimator's buffer."""
    n, m, c, columns, limbs, widest = sizes
    motion = MOTION_WIDTH * n + 6 * c
    scratch = 6 * m + 6 + widest + limbs * widest * (widest + 13) + 12 * 13 + n + SWEEP_WORK
    return motion + scratch + 6 + columns + 14 * n + m


@kernel
def unpack_system(integers, constants, buffer):
    """The problem's arrays."""
    n, m, c, N, count = integers[0], integers[1], integers[2], integers[3], integers[4]
    at = 7
    tree_integers = integers[at : at + TREE_INTEGERS * n].reshape((TREE_INTEGERS, n))
    at += TREE_INTEGERS * n
    ri = integers[at : at + 6 * m].reshape((6, m))
    at += 6 * m
    joints = integers[at : at + 2 * n].reshape((2, n))
    at += 2 * n
    wrenches = integers[at : at + 3 * c].reshape((3, c))
    at += 3 * c
    priors = integers[at : at + N]
    at += N
    li = integers[at : at + 8 * count].reshape((8, count))
    end = TREE_NUMBERS * n
    tree = unpack_tree(tree_integers, constants[:end])
    rows = Rows(
        ri[0], ri[1], ri[2], ri[3], ri[4], ri[5],
        constants[end : end + 6 * m].reshape((m, 6)),
        constants[end + 6 * m : end + 9 * m].reshape((m, 3)),
        constants[end + 9 * m : end + 10 * m],
    )  # fmt: skip
    end += 10 * m
    columns = Columns(
        joints[0], joints[1], wrenches[0], wrenches[1], wrenches[2],
        constants[end : end + 6 * c].reshape((c, 6)), constants[end + 6 * c : end + 7 * c],
        constants[end + 7 * c : end + 7 * c + N], priors,
    )  # fmt: skip
    end += 7 * c + N
    facts = Facts(
        integers[6], constants[end], constants[end + 1 : end + 7], constants[end + 7 : end + 13]
    )
    limbs = Limbs(li[0], li[1], li[2], li[3], li[4], li[5], li[6], li[7])
    units = buffer[MOTION_WIDTH * n : MOTION_WIDTH * n + 6 * c].reshape((c, 6))
    return System(tree, rows, columns, limbs, facts, unpack_motion(buffer, n), units)


@kernel
def unpack_buffer(integers, buffer):
    """Work space and results."""
    n, m, c, N, count, w = (
        integers[0], integers[1], integers[2], integers[3], integers[4], integers[5],
    )  # fmt: skip
    s = buffer[MOTION_WIDTH * n + 6 * c :]
    normal, right = 6 * m + 6 + w, 6 * m + 6 + w + count * w * w
    corner = right + count * w * 13
    known = corner + 12 * 13
    scratch = Scratch(
        s[: 6 * m].reshape((m, 6)), s[6 * m : 6 * m + 6], s[6 * m + 6 : normal],
        s[normal:right].reshape((count, w, w)), s[right:corner].reshape((count, w, 13)),
        s[corner:known].reshape((12, 13)), s[known : known + n],
        s[known + n : known + n + SWEEP_WORK],
    )  # fmt: skip
    t = s[known + n + SWEEP_WORK :]
    e = 6 + N
    results = Results(
        t[:6], t[6:e], t[e : e + n], t[e + n : e + 7 * n].reshape((n, 6)),
        t[e + 7 * n : e + 13 * n].reshape((n, 6)), t[e + 13 * n : e + 14 * n],
        t[e + 14 * n : e + 14 * n + m],
    )  # fmt: skip
    return scratch, results
