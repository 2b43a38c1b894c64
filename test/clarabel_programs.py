"""QcqpProgram put to Clarabel, an independent interior-point solver for second-order cones."""

import clarabel
import numpy as np
from scipy import sparse

EXACT = 1e-12  # violations up to this are rounding


def force_prices(program):
    """(n, 3) of the squared forces: f_N^2 + |f_T|^2 / min(mu, 1)^2."""
    mu = np.where(program.friction > 0.0, np.minimum(program.friction, 1.0), 1.0)
    return program.force_weight * np.column_stack([np.ones_like(mu), mu**-2.0, mu**-2.0])


def conic_form(program):
    """P, q, A, b, cones of Clarabel's form: min 1/2 x^T P x + q^T x, A x + s = b, s in the cones."""
    na, mu = program.na, program.friction
    N = program.A.shape[1]
    P = 2.0 * np.concatenate([program.weights, force_prices(program).reshape(-1)])
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
    return program.weights @ torques**2 + (force_prices(program) * np.square(forces)).sum()


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


def relaxed_by_clarabel(problem, solution, limit=np.inf, rho=1e4):
    """The program of coulomb/qcqp with a disturbance, for the plan and the contacts that our answer holds.

        min u^T u + rho price |d|^2      u = offset + T^T f dt + schur d,  Y (Y^T f) - dt T d = -c / dt

    f in N, d in rad/s2. A ``solved`` answer is judged with d = 0. The sizes of our answer serve as units of the
    variables: what accelerates by 1e5 rad/s2 cannot be told from nothing in units of 1. Returns (Clarabel's
    status, its cost, our cost, its largest d).
    """
    na, n, dt, mu = problem.robot.na, len(problem), problem.period, problem.contacts.friction
    nu = problem.Y.shape[1]
    projection = solution.joint_velocity_change - dt * solution.disturbance
    plan = problem.c - dt * problem.T @ projection
    normal = np.asarray(solution.contact_velocity).reshape(n, 3)[:, 0]
    still = normal <= 1e-5 * np.abs(problem.c).max() + 1e-12
    held = np.flatnonzero((problem.gap_speed <= 0.05) & (still | (solution.impulses[::3] > 0.0)))
    forces = (3 * held[:, None] + np.arange(3)).reshape(-1)
    rows = np.concatenate([3 * i + np.arange(3 if mu[i] > 0.0 else 1) for i in held])
    T, Y = dt * problem.T[forces], problem.Y[forces]
    free = na if solution.status == "relaxed" else 0
    m, end = len(forces), na + free + len(forces)
    sizes = [np.abs(x).max() for x in (solution.torques, solution.disturbance, solution.forces)]
    units = np.repeat(np.maximum(sizes, 1e-6), [na, free, m])
    units = np.concatenate([units, np.full(nu, units[-1] * np.abs(Y).max())])
    # Independent rows of the contacts only: Clarabel takes rounding in others for a contradiction.
    contacts = np.hstack([-dt * problem.T[rows][:, :free], problem.Y[rows]])
    left, values, _ = np.linalg.svd(contacts / np.abs(contacts).max(axis=0), full_matrices=False)
    left = left.T[values > 1e-8 * values[0]]
    contacts, right = left @ contacts, left @ (-plan[rows] / dt)
    A = np.block(
        [
            [np.eye(na), -problem.schur[:, :free], -T.T, np.zeros((na, nu))],
            [np.zeros((nu, na + free)), Y.T, -np.eye(nu)],
            [
                np.zeros((len(contacts), na)),
                contacts[:, :free],
                np.zeros((len(contacts), m)),
                contacts[:, free:],
            ],
        ]
    )
    offset = problem.torque_offset + problem.schur @ projection / dt
    b = np.concatenate([offset, np.zeros(nu), right])
    A = A * units
    size = np.abs(A).max(axis=1)
    rows, right, cones = [A / size[:, None]], [b / size], [clarabel.ZeroConeT(len(b))]
    every = np.eye(end + nu)
    if np.isfinite(limit):
        rows += [every[:na], -every[:na]]
        right += [np.full(2 * na, limit / units[0])]
        cones.append(clarabel.NonnegativeConeT(2 * na))
    for k, i in enumerate(held):
        cone = -every[na + free + 3 * k :][:3]
        if np.isinf(mu[i]):
            rows.append(cone[:1])
            cones.append(clarabel.NonnegativeConeT(1))
        elif mu[i] == 0.0:
            rows.append(cone)
            cones += [clarabel.NonnegativeConeT(1), clarabel.ZeroConeT(2)]
        else:
            rows.append(np.vstack([mu[i] * cone[:1], cone[1:]]))
            cones.append(clarabel.SecondOrderConeT(3))
        right.append(np.zeros(len(rows[-1])))
    price = rho * np.square(problem.schur).sum() / na
    tie = 1e-8 * np.square(dt * problem.T).sum() / (3 * n)
    P = 2.0 * np.repeat([1.0, price, tie, 0.0], [na, free, m, nu]) * units**2
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.diag(P / P.max())),
        np.zeros(len(P)),
        sparse.csc_matrix(np.vstack(rows)),
        np.concatenate(right),
        cones,
        settings(1e-9),
    ).solve()
    x = np.array(found.x) * units
    u, d = x[:na], x[na : na + free]
    ours = solution.torques @ solution.torques + price * solution.disturbance @ solution.disturbance
    return str(found.status), u @ u + price * d @ d, ours, np.abs(d).max(initial=0.0)
