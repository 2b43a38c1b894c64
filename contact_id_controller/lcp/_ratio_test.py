"""Ratio test of the path-following methods: lexicographic on values, then on a perturbation.

The right-hand side is q + e p with an infinitesimal e and a generic p > 0; a basic
variable is then the pair (value, spread), compared lexicographically.  No two ratios tie in both,
so no basis is repeated: the two-level form of the lexicographic rule.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel as kernel

VALUE, CHANGE, SPREAD = 0, 1, 2  # rows of ``level``
COVERING, NOTHING = -1, -2  # what blocks, when it is not an entry of ``level``

PIVOT_TOLERANCE = 1e-10  # smaller changes, relative to the largest (at least 1), never block
TIE_TOLERANCE = 1e-12  # ratios closer than this, relative to 1 + ratio, are ties
LOOSEST_TIE = 1e-8  # the tie tolerance grows tenfold with each further attempt, up to this
GOLDEN = 0.618033988749895  # multiples of it, modulo 1, spread perturbations and covering vectors


@kernel
def tie_tolerance(attempt):
    """Tolerance of an attempt, which grows with its number: failed attempts often had larger rounding errors."""
    return min(TIE_TOLERANCE * 10.0 ** max(attempt, 0), LOOSEST_TIE)


@kernel
def first_blocking(level, end, tie, z0, z0_spread, z0_change):
    """Basic variable that reaches zero first, and the steps of values and spreads to there.

    ``level`` (3, >= end): value, change per unit step, spread; entries without change never block.
    Ties in the values go to z_0, then to the smallest ratio of the spreads.  Returns an index below
    ``end``, COVERING or NOTHING.
    """
    best, largest = math.inf, 1.0
    for b in range(end):
        largest = max(largest, abs(level[CHANGE, b]))
    smallest = -PIVOT_TOLERANCE * largest
    for b in range(end):
        change = level[CHANGE, b]
        if change < smallest and max(level[VALUE, b], 0.0) < best * -change:
            best = max(level[VALUE, b], 0.0) / -change
    limit = best + tie * (1.0 + best)
    chosen = np.int64(NOTHING)
    if z0_change < smallest and z0 <= limit * -z0_change:
        return np.int64(COVERING), max(z0, 0.0) / -z0_change, z0_spread / -z0_change
    tilt = math.inf
    for b in range(end):
        change = level[CHANGE, b]
        if (
            change < smallest
            and max(level[VALUE, b], 0.0) <= limit * -change
            and level[SPREAD, b] < tilt * -change
        ):
            chosen, tilt = b, level[SPREAD, b] / -change
    if chosen < 0:
        return chosen, 0.0, 0.0
    return chosen, max(level[VALUE, chosen], 0.0) / -level[CHANGE, chosen], tilt


@kernel
def steadiest_blocking(level, end, slack, z0, z0_change):
    """Basic variable that reaches zero nearly first, with the largest change; the step to there.

    For paths whose covering vector breaks ties by itself: values may fall to minus ``slack``, the
    rounding of values, and of all that reach zero by then the best pivot is
    taken.  Returns as ``first_blocking``.

    Source: Harris, Pivot selection methods of the Devex LP code (1973).
    """
    limit, largest = math.inf, 1.0
    for b in range(end):
        largest = max(largest, abs(level[CHANGE, b]))
    smallest = -PIVOT_TOLERANCE * largest
    for b in range(end):
        change = level[CHANGE, b]
        if change < smallest and max(level[VALUE, b], 0.0) + slack < limit * -change:
            limit = (max(level[VALUE, b], 0.0) + slack) / -change
    if z0_change < smallest and z0 <= limit * -z0_change:
        return np.int64(COVERING), max(z0, 0.0) / -z0_change
    chosen, pivot = np.int64(NOTHING), 0.0
    for b in range(end):
        change = level[CHANGE, b]
        if change < min(smallest, pivot) and max(level[VALUE, b], 0.0) <= limit * -change:
            chosen, pivot = b, change
    if chosen < 0:
        return chosen, 0.0
    return chosen, max(level[VALUE, chosen], 0.0) / -pivot


@kernel
def raise_cover(level, cover, n):
    """Let z_0 enter: returns the row that fixes it, its value and its spread; updates ``level``."""
    chosen = np.int64(NOTHING)
    best = lean = 0.0
    for i in range(n):
        if level[VALUE, i] < 0.0:
            ratio, tilt = -level[VALUE, i] / cover[i], -level[SPREAD, i] / cover[i]
            tie = TIE_TOLERANCE * (1.0 + best)
            if chosen < 0 or ratio > best + tie or (ratio >= best - tie and tilt > lean):
                chosen, best, lean = i, ratio, tilt
    for i in range(n):
        level[VALUE, i] += best * cover[i]
        level[SPREAD, i] += lean * cover[i]
    return chosen, best, lean
