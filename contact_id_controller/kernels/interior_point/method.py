"""One interior-point method for every structure of a program over cones.

    min f(x)   A x + soft y = b,   s = G x + h in K,   z in K (self-dual),   s o z = target e

K holds half-lines and second-order cones. An iteration scales s and z into one point (Nesterov and
Todd), factors the Newton matrix once and computes two directions from it (Mehrotra): the step length of the first,
which aims at zero complementarity, sets the target of the second, which also corrects
second-order terms. A point may start infeasible; multipliers that grow along a certificate end the method.

How A, G and the Newton matrix are stored, multiplied and factored depends on the structure: dense rows under
diagonal and 3 x 3 blocks (``barrier.py``), or intervals of a motion by Riccati's recursion
(``planning/kinodynamic/momentum_kernel.py``).

Source: Mehrotra (1992); Nesterov and Todd (1997); Vandenberghe, The CVXOPT linear and quadratic cone
program solvers (2010).
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import Kernel, bare_kernel

SOLVED, INFEASIBLE, NOT_CONVERGED, NOT_CONVEX, NOT_FINITE = range(5)
PULL = 0.995  # share of the way to the boundary that a step goes
STALLED = 1e-5  # steps shorter than this make no progress
MOST_STALLED = 3  # of them in a row, and the method has stalled


def make_method(
    measure: Kernel,
    excluded: Kernel,
    factor: Kernel,
    direction: Kernel,
    reach: Kernel,
    move: Kernel,
    accepted: float,
) -> Kernel:
    """Make the method for one structure: a kernel ``iterate(program, point, work, most)``.

    It is compiled as a part of the kernel that calls it, and cached with that one's file.

    Its ``work`` has a field degree: that of K, one for each half-line and each second-order cone.

    Args:
        measure: (program, point, work, count) -> (gap s'z, the least gap that a step aims at, largest
            defect in units of the tolerance: 1 ends the method).
        excluded: (program, point, work, final) -> whether multipliers certify infeasibility;
            final: no further step is taken, so a weaker certificate suffices.
        factor: (program, point, work) -> False if the Newton matrix is not positive definite.
        direction: (program, point, work, target, share, taken) by the factor, towards s o z = target e and
            (1 - share) of the defects; taken: step length of the predictor, whose second-order terms are
            corrected; 0 for the predictor itself.
        reach: (program, point, work, share) -> the longest step along it that stays inside K.
        move: (program, point, work, length) a step of that length.
        accepted: the largest defect that is accepted when a step no longer halves it, because of rounding.
    """

    @bare_kernel
    def iterate(program, point, work, most):
        """Solve from ``point``, s and z inside K, by at most ``most`` steps; (status, steps taken)."""
        status, count, short, length, last = NOT_CONVERGED, 0, 0, 0.0, np.inf
        for count in range(most + 1):
            gap, least, defect = measure(program, point, work, count)
            if last <= accepted and not defect <= accepted:
                move(program, point, work, -length)  # rounding has spoiled what was good enough
                return SOLVED, count - 1
            if not defect < np.inf:
                return NOT_FINITE, count
            if defect <= 1.0 or (defect <= accepted and defect > 0.5 * last):
                return SOLVED, count
            last = defect
            final = short >= MOST_STALLED or count == most
            if count > 2 and excluded(program, point, work, final):
                return INFEASIBLE, count
            if final:
                break
            if not factor(program, point, work):
                status = NOT_CONVEX
                break
            direction(program, point, work, 0.0, 1.0, 0.0)
            taken = min(1.0, reach(program, point, work, 1.0))
            left = (1.0 - taken) ** 2
            target = max(left * gap, least) / work.degree
            direction(program, point, work, target, 1.0 - left, taken)
            length = min(1.0, PULL * reach(program, point, work, 1.0 - left))
            if not length > 0.0:
                status = NOT_FINITE
                break
            short = short + 1 if length < STALLED else 0
            move(program, point, work, length)
        return (SOLVED if last <= accepted else status), count

    return iterate
