"""QcqpProgram put to Clarabel, an independent interior-point solver for second-order cones."""

import clarabel
import numpy as np
from scipy import sparse

EXACT = 1e-12  # violations up to this are rounding


def conic_form(program):
    """P, q, A, b, cones of Clarabel's form: min 1/2 x^T P x + q^T x, A x + s = b, s in the cones."""
    na, mu = program.na, program.friction
    N = program.A.shape[1]
    bounded = np.where(np.isinf(mu), 1.0, mu)
    scale = np.maximum(bounded, 1.0)
    tangent = np.where(bounded > 0.0, bounded, 1.0) / scale
    units = np.column_stack([1.0 / scale, tangent, tangent])
    price = program.force_weight / units.reshape(-1) ** 2
    P = 2.0 * np.concatenate([program.weights, price])
    rows, right, cones = [program.A], [program.b], [clarabel.ZeroConeT(len(program.b))]
    linear, bound = [], []
    for sign, limit in ((1.0, program.upper), (-1.0, -program.lower)):
        for j in np.flatnonzero(np.isfinite(limit)):
            linear.append(sign * np.eye(N)[j])
            bound.append(limit[j])
    for more, least in zip(program._inequalities, program._bounds):
        linear.extend(-more)
        bound.extend(-least)
    for i in np.flatnonzero(np.isinf(mu)):
        linear.append(-np.eye(N)[na + 3 * i])
        bound.append(0.0)
    if linear:
        rows.append(np.array(linear))
        right.append(np.array(bound))
        cones.append(clarabel.NonnegativeConeT(len(bound)))
    for i in np.flatnonzero(~np.isinf(mu)):
        cone = -np.eye(N)[na + 3 * i : na + 3 * i + 3]
        cone[0] *= mu[i]
        if mu[i] == 0.0:
            rows.append(
                np.vstack([-np.eye(N)[na + 3 * i], np.eye(N)[na + 3 * i + 1 : na + 3 * i + 3]])
            )
            cones += [clarabel.NonnegativeConeT(1), clarabel.ZeroConeT(2)]
        else:
            rows.append(cone)
            cones.append(clarabel.SecondOrderConeT(3))
        right.append(np.zeros(3))
    return (
        sparse.csc_matrix(np.diag(P)),
        np.zeros(N),
        sparse.csc_matrix(np.vstack(rows)),
        np.concatenate(right),
        cones,
    )


def settings(tolerance=1e-10):
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = tolerance
    chosen.max_threads = 1
    return chosen


def by_clarabel(program, tolerance=1e-10):
    """Clarabel's solution object."""
    return clarabel.DefaultSolver(*conic_form(program), settings(tolerance)).solve()


def cost(program, torques, forces):
    """The objective, force price included."""
    mu = np.where(np.isinf(program.friction), 1.0, program.friction)
    scale = np.maximum(mu, 1.0)
    tangent = np.where(mu > 0.0, mu, 1.0) / scale
    units = np.column_stack([1.0 / scale, tangent, tangent])
    return program.weights @ torques**2 + program.force_weight * np.square(forces / units).sum()


def violations(program, torques, forces):
    """Largest violation of rows, cones and limits, relative to the terms that they are made of."""
    x = np.concatenate([torques, forces.reshape(-1)])
    size = np.abs(program.A) @ np.abs(x) + np.abs(program.b)
    size = np.maximum(size, 1e-9 * size.max(initial=1.0))
    worst = np.max(np.abs(program.A @ x - program.b) / size, initial=0.0)
    largest = np.abs(x).max()
    mu = program.friction
    bound = np.where(np.isinf(mu), np.inf, np.where(np.isinf(mu), 0.0, mu) * forces[:, 0])
    over = [
        np.hypot(forces[:, 1], forces[:, 2]) - bound,
        -forces[:, 0],
        torques - program.upper,
        program.lower - torques,
    ]
    for rows, least in zip(program._inequalities, program._bounds):
        over.append(least - rows @ x)
    return max(worst, max(np.max(values, initial=0.0) for values in over) / largest)


def compare(program, ours):
    """How an answer of ours stands to Clarabel's: a verdict, relative difference of cost, violation.

    Verdicts: ``agree`` (cost and violations within 1e-6), ``better`` (ours costs less and violates
    nothing: optima next to zero, where Clarabel stops early), ``infeasible`` (both), ``wrong``, and
    ``undecided`` (Clarabel gave up).
    """
    theirs = by_clarabel(program)
    status = str(theirs.status)
    if ours.status == "infeasible":
        return ("infeasible" if "Infeasible" in status else "wrong"), 0.0, 0.0
    if ours.status != "solved":
        decided = "Solved" in status or "Infeasible" in status
        return ("wrong" if decided else "undecided"), np.inf, np.inf
    violation = violations(program, ours.torques, ours.forces)
    x, na = np.array(theirs.x), program.na
    best, value = (
        cost(program, x[:na], x[na:].reshape(-1, 3)),
        cost(program, ours.torques, ours.forces),
    )
    difference = abs(value - best) / best
    if "Infeasible" in status or violation > 1e-6:
        return "wrong", difference, violation
    if difference <= 1e-6:
        return "agree", difference, violation
    if value < best and violation <= EXACT:
        return "better", difference, violation
    return ("undecided" if status != "Solved" else "wrong"), difference, violation
