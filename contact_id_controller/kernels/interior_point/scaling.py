"""Scaling of a cone program so that its data are of order one, and back.

    x = beta c x^,   rows times r,   objective = beta^2 / kappa times the scaled one

c is one number for each bounded variable and one for each cone (a cone keeps its shape).
Source: Ruiz (2001), restricted to the shape of the cones.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel

SWEEPS = 2


@kernel
def equilibrate(program, column, row):
    """Scale a program in place; column (N,), row (p,) out. Returns beta, kappa."""
    weight, linear, At, b, soft, lower, upper = program
    N, p = At.shape
    boxes = lower.shape[0]
    fill(column, 1.0)
    fill(row, 1.0)
    largest_row = np.empty(p)
    for sweep in range(SWEEPS):
        fill(largest_row, 0.0)
        for j in range(N):
            for i in range(p):
                largest_row[i] = max(largest_row[i], abs(At[j, i]))
        for i in range(p):
            largest_row[i] = 1.0 / np.sqrt(largest_row[i]) if largest_row[i] > 0.0 else 1.0
            row[i] *= largest_row[i]
        j = 0
        while j < N:
            width = 1 if j < boxes else 3
            largest = 0.0
            for d in range(width):
                for i in range(p):
                    At[j + d, i] *= largest_row[i]
                    largest = max(largest, abs(At[j + d, i]))
            factor = 1.0 / np.sqrt(largest) if largest > 0.0 else 1.0
            for d in range(width):
                column[j + d] *= factor
                for i in range(p):
                    At[j + d, i] *= factor
            j += width
    beta, kappa = 0.0, 0.0
    for i in range(p):
        beta = max(beta, abs(b[i] * row[i]))
    if not beta > 0.0:
        beta = 1.0
    for j in range(N):
        kappa = max(kappa, weight[j] * column[j] * column[j])
    kappa = 1.0 / kappa if kappa > 0.0 else 1.0
    for j in range(N):
        weight[j] *= kappa * column[j] * column[j]
        linear[j] *= kappa * column[j] / beta
    for j in range(boxes):
        lower[j] /= beta * column[j]
        upper[j] /= beta * column[j]
    for i in range(p):
        b[i] *= row[i] / beta
        soft[i] *= row[i] * row[i] / kappa
    return beta, kappa


@bare_kernel
def lift_prices(weight, first, boxes, least):
    """Raise weights from variable ``first`` on to at least ``least``; those of a cone together, in their ratio."""
    for j in range(first, boxes):
        weight[j] = max(weight[j], least)
    for j in range(boxes, weight.shape[0], 3):
        dearest = max(weight[j], weight[j + 1])
        if not dearest > 0.0:
            weight[j] = weight[j + 1] = weight[j + 2] = least
        elif dearest < least:
            for d in range(3):
                weight[j + d] *= least / dearest


@kernel
def into_units(point, column, row, beta, kappa):
    """Convert a ``Point`` in SI units to the scaled ones, in place.

    column (N,), row (p,), beta, kappa: of ``equilibrate``.
    """
    x, y, s, r = point
    for j in range(x.shape[0]):
        x[j] /= beta * column[j]
        s[j] *= kappa * column[j] / beta
    for j in range(r.shape[0]):
        r[j] *= kappa * column[j] / beta
    for i in range(y.shape[0]):
        y[i] *= kappa / (beta * row[i])


@kernel
def out_of_units(point, column, row, beta, kappa):
    """The inverse of ``into_units``."""
    x, y, s, r = point
    for j in range(x.shape[0]):
        x[j] *= beta * column[j]
        s[j] *= beta / (kappa * column[j])
    for j in range(r.shape[0]):
        r[j] *= beta / (kappa * column[j])
    for i in range(y.shape[0]):
        y[i] *= beta * row[i] / kappa
