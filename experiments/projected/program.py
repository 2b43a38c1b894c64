"""Least-power programs over torques and contact forces, built row by row.

    min u^T W u      A [u; f] = b,   |f_T| <= mu f_N,   lower <= u <= upper,   C [u; f] >= c

f (3n,) are forces (N) ordered normal, tangent 1, tangent 2 of each contact. Source: Aghili, Optimal
control of legged robots subject to friction cone constraints, eq. 29; section 3.3 and eq. 34, 35.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.interior_point.barrier import central_path
from contact_id_controller.kernels.interior_point.cone_program import ConeProgram, Point
from contact_id_controller.kernels.interior_point.method import INFEASIBLE as INFEASIBLE_CODE
from contact_id_controller.kernels.interior_point.method import SOLVED as SOLVED_CODE
from contact_id_controller.kernels.interior_point.scaling import (
    equilibrate,
    into_units,
    out_of_units,
)
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.solution import NOT_CONVERGED, RELAXED, SOLVED, Certificate

INFEASIBLE = "infeasible"  # proven: no torques and forces within limits satisfy the rows
INSIDE = 1e-3  # a warm start keeps this distance from bounds, in the solver's units


class QcqpResult(NamedTuple):
    """Solution of a ``QcqpProgram``.

    status: ``solved``; ``relaxed`` (by a disturbance); ``infeasible``; ``not_converged``.
    torques (na,) N·m, forces (n, 3) N: normal, tangent 1, tangent 2, inside their cones in any case.
    disturbance: (m,) of the level of relaxation that was needed, empty without.
    level: 0 without relaxation, else which one.
    certificate: objective u^T W u, relative duality gap, largest KKT residual.
    """

    status: str
    torques: np.ndarray
    forces: np.ndarray
    disturbance: np.ndarray
    level: int
    iterations: int
    certificate: Certificate
    memory: tuple[Any, ...]


class QcqpProgram:
    """A program to which each call adds a constraint; ``solve`` may be called at any time.

    Args:
        A (p, na + 3n), b (p,): dynamics and task; rows may depend on each other if they agree.
        friction (n,): coefficients in [0, inf]; infinite from ``UNBOUNDED_FRICTION`` on.
        weights: (na,) or scalar, diagonal of W = R/Kt^2, W/(N·m)^2.
        lower, upper: (na,) or scalar, N·m, infinite without limit.
        force_weight: W/N^2, cost of f_N^2 + |f_T|^2 / min(mu, 1)^2 that makes the forces unique.

    Raises:
        ConfigurationError: shapes that do not fit, lower limits above upper ones.
    """

    def __init__(
        self,
        A: ArrayLike,
        b: ArrayLike,
        friction: ArrayLike,
        weights: ArrayLike = 1.0,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        force_weight: float = 0.0,
    ) -> None:
        self.friction = np.asarray(friction, dtype=float).reshape(-1)
        self.A = np.array(A, dtype=float, ndmin=2)
        self.b = np.array(b, dtype=float).reshape(-1)
        self.na = self.A.shape[1] - 3 * len(self.friction)
        if self.na < 0 or len(self.b) != len(self.A):
            raise ConfigurationError(
                f"A {self.A.shape} and b {self.b.shape} do not fit {len(self.friction)} contacts"
            )
        try:
            self.weights, self.lower, self.upper = (
                np.broadcast_to(np.asarray(value, dtype=float), (self.na,))
                for value in (weights, lower, upper)
            )
        except ValueError as error:
            raise ConfigurationError(
                f"weights and limits must be numbers or have shape ({self.na},)"
            ) from error
        if not (np.all(self.lower < self.upper) and np.all(self.weights >= 0.0)):
            raise ConfigurationError(
                f"lower must be below upper, got {self.lower} and {self.upper}; "
                f"weights must not be negative, got {self.weights}"
            )
        self.force_weight = float(force_weight)
        self._inequalities, self._bounds, self._levels = [], [], []

    def add_equality(self, rows: ArrayLike, values: ArrayLike) -> None:
        """Add rows [u; f] = values; rows (k, na + 3n) or (na + 3n,)."""
        rows, values = self._rows(rows, values)
        self.A, self.b = np.vstack([self.A, rows]), np.concatenate([self.b, values])

    def add_inequality(self, rows: ArrayLike, bounds: ArrayLike) -> None:
        """Add rows [u; f] >= bounds; rows (k, na + 3n) or (na + 3n,)."""
        rows, bounds = self._rows(rows, bounds)
        self._inequalities.append(rows)
        self._bounds.append(bounds)

    def prescribe_force(
        self, contact: int, force: ArrayLike, components: Sequence[int] = (0, 1, 2)
    ) -> None:
        """Fix components (0 normal, 1 and 2 tangents) of one contact's force, N (eq. 35)."""
        components = list(components)
        rows = np.zeros((len(components), self.A.shape[1]))
        rows[np.arange(len(components)), self.na + 3 * contact + np.array(components)] = 1.0
        self.add_equality(rows, np.broadcast_to(force, len(components)))

    def limit_center_of_pressure(
        self, contacts: Sequence[int], positions: ArrayLike, polygon: np.ndarray
    ) -> None:
        """Keep the centre of pressure of one foot's contacts inside a convex polygon (eq. 34).

        contacts: m indices. positions: (m, 2) m, of the contacts along tangents 1 and 2 of the foot.
        polygon: (k, 2) m, corners, counter-clockwise. No moment about any edge may tip outwards.
        """
        positions, corners = np.asarray(positions, float), np.asarray(polygon, float)
        rows = np.zeros((len(corners), self.A.shape[1]))
        for row, start, end in zip(rows, corners, np.roll(corners, -1, axis=0)):
            edge = (end - start) / np.linalg.norm(end - start)
            arms = edge[0] * (positions[:, 1] - start[1]) - edge[1] * (positions[:, 0] - start[0])
            row[self.na + 3 * np.asarray(contacts)] = arms
        self.add_inequality(rows, np.zeros(len(rows)))

    def limit_normal_moment(
        self, contacts: Sequence[int], positions: ArrayLike, coefficient: float
    ) -> None:
        """Add abs(moment about the foot's normal) <= coefficient (m) times the normal force of the contacts."""
        positions, columns = np.asarray(positions, float), self.na + 3 * np.asarray(contacts)
        row = np.zeros(self.A.shape[1])
        row[columns + 2], row[columns + 1] = positions[:, 0], -positions[:, 1]
        load = np.zeros_like(row)
        load[columns] = coefficient
        self.add_inequality(np.vstack([load - row, load + row]), np.zeros(2))

    def allow_disturbance(self, D: ArrayLike, rho: Any) -> None:
        """Add a level of relaxation: A [u; f] + D d = b at the cost sum rho_j d_j^2 (section 3.3).

        D (p, m), rho (m,) or scalar. Levels are tried in the order in which they were added, each
        only if the one before is infeasible.
        """
        D = np.array(D, dtype=float, ndmin=2)
        self._levels.append((D, np.broadcast_to(np.asarray(rho, float), D.shape[1])))

    def solve(self, warm_start: QcqpResult | None = None) -> QcqpResult:
        """Solve at the first feasible level of relaxation; status ``infeasible`` if none of those added is."""
        result = self._solve(0, warm_start)
        steps = result.iterations
        for level in range(1, len(self._levels) + 1):
            if result.status in (SOLVED, RELAXED):
                break
            result = self._solve(level, warm_start)
            steps += result.iterations
        return result._replace(iterations=steps)

    def _rows(self, rows: ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Check linear conditions and return rows (k, na + 3n) and values (k,); ConfigurationError at another shape."""
        rows = np.array(rows, dtype=float, ndmin=2)
        values = np.array(values, dtype=float).reshape(-1)
        if rows.shape != (len(values), self.A.shape[1]):
            raise ConfigurationError(
                f"rows must have shape ({len(values)}, {self.A.shape[1]}), got {rows.shape}"
            )
        return rows, values

    def _solve(self, level: Any, warm_start: Any) -> QcqpResult:
        """Solve one level of relaxation, 0: none, as a ``ConeProgram``.

            min u^T W u + d^T diag(rho) d + force_weight sum (f_N^2 + |f_T|^2 / min(mu, 1)^2)
            A [u; f] + D d = b,   C [u; f] - s = c,   s >= 0,   lower <= u <= upper,   f in its cones

        Columns, in this order: u (na), s (k), d (m), the forces of contacts with unbounded friction, those of the
        others in units in which their cones are x_N >= |x_T|. Rows: those of A (with D), then those of C.
        """
        C = np.vstack([np.zeros((0, self.A.shape[1])), *self._inequalities])
        c = np.concatenate([np.zeros(0), *self._bounds])
        D, rho = self._levels[level - 1] if level else (np.zeros((len(self.b), 0)), np.zeros(0))
        na, k, m, n = self.na, len(c), D.shape[1], len(self.friction)
        rows = np.vstack([self.A, C])
        friction = effective_friction(self.friction, np.inf)
        free = np.isinf(friction)
        order = np.concatenate([np.flatnonzero(free), np.flatnonzero(~free)])
        columns = na + (3 * order[:, None] + np.arange(3)).reshape(-1)
        extra = np.zeros((len(rows), k + m))
        extra[len(self.A) :, :k] = -np.eye(k)
        extra[: len(D), k:] = D
        units = _cone_units(friction[order])
        At = np.ascontiguousarray(
            np.hstack([rows[:, :na], extra, rows[:, columns] * units.reshape(-1)]).T
        )
        boxes, N, p = na + k + m + 3 * int(free.sum()), At.shape[0], At.shape[1]
        # The program's cost is 1/2 x^T weight x: twice the weights here.
        price = np.full((n, 3), 2.0 * self.force_weight)
        price[:, 0] *= units[:, 0] ** 2
        weight = np.concatenate([2.0 * self.weights, np.zeros(k), 2.0 * rho, price.reshape(-1)])
        lower, upper = np.full(boxes, -np.inf), np.full(boxes, np.inf)
        lower[:na], upper[:na] = self.lower, self.upper
        lower[na : na + k] = 0.0
        lower[na + k + m :: 3] = 0.0  # normal forces of contacts with unbounded friction
        b = np.concatenate([self.b, c])
        program = ConeProgram(weight, np.zeros(N), At, b, np.zeros(p), lower, upper)
        column, row = np.empty(N), np.empty(p)
        scales = (column, row, *equilibrate(program, column, row))
        point = Point(np.zeros(N), np.zeros(p), np.zeros(N), np.zeros(boxes))
        saved = np.zeros((4, max(N, p)))
        key = (level, N, p, boxes)
        warm = warm_start is not None and warm_start.memory[0] == key
        if warm:
            for array, old in zip(point, warm_start.memory[1]):
                array[:] = old[: len(array)]
            into_units(point, *scales)
            margin = INSIDE * np.minimum(1.0, upper - lower)
            point.x[:boxes] = np.clip(point.x[:boxes], lower + margin, upper - margin)
        code, steps, gap, residual = central_path(program, warm, point, saved)
        out_of_units(point, *scales)
        out_of_units(Point(saved[0, :N], saved[1, :p], saved[2, :N], saved[3, :boxes]), *scales)
        x = point.x
        forces = np.empty((n, 3))
        forces[order] = x[na + k + m :].reshape(-1, 3) * units
        torques, disturbance = x[:na].copy(), x[na + k : na + k + m].copy()
        status = (
            (RELAXED if level else SOLVED)
            if code == SOLVED_CODE
            else (NOT_CONVERGED if code != INFEASIBLE_CODE else INFEASIBLE)
        )
        certificate = Certificate(float(self.weights @ torques**2), gap, residual)
        return QcqpResult(
            status, torques, forces, disturbance, level, steps, certificate, (key, saved)
        )


def _cone_units(friction: np.ndarray) -> np.ndarray:
    """Units of force (n, 3) in which a cone is x_N >= |x_T|; ones where friction is unbounded."""
    finite = np.where(np.isinf(friction), 1.0, friction)
    normal = 1.0 / np.maximum(finite, 1.0)
    return np.column_stack([normal, normal * finite, normal * finite])
