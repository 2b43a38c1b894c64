"""Whole-body dynamics from any set of sensors: accelerations, joint and contact wrenches, efforts.

All dynamic quantities are affine in z = (a_0, joint accelerations, contact wrenches), so the estimate is

    min |Sigma^-1/2 (H z - y)|^2   subject to   f_0 = 0 and what is known exactly

and everything else follows. What the sensors cannot tell is found before the robot moves, and named.
Source: Nori (2017), sections III and VI; formulation by limbs: docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.linalg

from contact_id_controller.estimation.elimination import (
    SOLVED,
    WORK,
    by_limbs,
    dense,
    outputs,
    sweep,
    unpack_columns,
    unpack_rows,
)
from contact_id_controller.estimation.layout import Layout
from contact_id_controller.estimation.observability import Observability, observe
from contact_id_controller.estimation.rows import Limbs
from contact_id_controller.estimation.sensors import Contact
from contact_id_controller.estimation.sweep import MOTION_WIDTH, unpack_motion
from contact_id_controller.estimation.tree import Mechanism, unpack_tree
from contact_id_controller.exceptions import (
    ConfigurationError,
    StateError,
    UnobservableError,
    choices,
)
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.robot import RobotModel

UP = np.array([0.0, 0.0, 1.0])
CHECKED = (
    1e-6  # share of a measurement's variance that must be left for a residual to mean anything
)
CONDITION = 1e10  # of a limb's normal equations: beyond it the dense method takes over


class Estimate:
    """What one call of ``DynamicsEstimator.estimate`` found; valid until the next call.

    Frames: base axes, unless a sensor's or contact's own are named. Pinocchio's order, force or
    linear part first.

    Attributes:
        base_acceleration: (6,) proper acceleration of the base origin, m/s2 (gravity inside), rad/s2.
        joint_accelerations, joint_efforts: (n,) in the order of ``joint_names``; rad/s2, N m.
    """

    def __init__(self, estimator: DynamicsEstimator):
        self._estimator = estimator
        self.base_acceleration = estimator._a[0]
        self.joint_accelerations = estimator._joint_acceleration[1:]
        self.joint_efforts = estimator._effort[1:]

    @property
    def contact_wrenches(self) -> dict[str, np.ndarray]:
        """Contact -> its components, in the contact frame's axes (see ``Contact.components``)."""
        return {name: self._estimator._components(name) for name in self._estimator.contacts}

    def contact_force(self, contact: str) -> np.ndarray:
        """(3,) N, force of a contact in base axes."""
        layout, force = self._estimator._layout, np.zeros(3)
        for k, amount in zip(layout.components[contact], self._estimator._components(contact)):
            force += amount * self._estimator._units[layout.component_place[k], :3]
        return force

    @property
    def joint_wrenches(self) -> dict[str, np.ndarray]:
        """Joint -> wrench (6,) that passes through it to the outer link, about the base origin."""
        estimator = self._estimator
        return {name: estimator._f[i + 1] for i, name in enumerate(estimator.joint_names)}

    @property
    def residuals(self) -> dict[str, np.ndarray]:
        """Sensor -> (measured less estimated) / sigma of each of its values; exact ones: difference."""
        return self._estimator._residuals()

    @property
    def normalised_residuals(self) -> dict[str, float]:
        """Sensor -> sqrt(r^T C^+ r / rank C) of its residuals r with their covariance C.

        Near 1 while all noises are what they are said to be. If one sensor lies, its own is the
        largest. A sensor that nothing else checks has 0. Costs more than an estimate: for
        diagnostics, not for every step.
        """
        return self._estimator._normalised_residuals()

    def covariance(self, name: str) -> np.ndarray:
        """Covariance of ``base_acceleration``, ``joint_accelerations``, ``joint_efforts`` or a contact.

        Raises:
            ConfigurationError: another name.
        """
        return self._estimator._covariance(name)


class DynamicsEstimator:
    """Estimates accelerations, efforts and wrenches from whatever sensors there are.

    Args:
        robot: with one floating base, or bolted to the world.
        sensors: of ``estimation.sensors``; each exact (noise 0) or with a standard deviation.
        contacts: name -> ``Contact``, or frame -> kind; where unknown wrenches may act.
        regularisation: noise (N, N m, rad/s2) of an expectation of zero for what the sensors cannot
            tell: one number for all of it, or a mapping from the labels that
            ``observability.unobservable`` gives; None refuses such sets.
        model_force_noise_n: standard deviation of the forces that the base's equation lacks, N
            (moments: times the radius of gyration); 0 makes f_0 = 0 exact.

    Attributes:
        joint_names: of the joints in outputs and in sensors without a list.
        observability: what the sensors can tell.  by_limbs: limbs are eliminated one by one.
        slices: sensor -> its place in the vector that ``estimate`` takes instead of a mapping.

    Raises:
        UnobservableError: the sensors leave something undetermined; the message names it.
        ConfigurationError, UnknownFrameError, UnknownJointError: sensors that do not fit.

    Source: Nori (2017); elimination by limbs in ``elimination``.
    """

    def __init__(
        self,
        robot: RobotModel,
        sensors: Sequence,
        contacts: Mapping[str, str | Contact] | None = None,
        *,
        regularisation: float | Mapping[str, float] | None = None,
        model_force_noise_n: float = 0.0,
    ):
        if not 0.0 <= model_force_noise_n < np.inf:
            raise ConfigurationError(
                f"model_force_noise_n must be at least 0 N and finite, got {model_force_noise_n}"
            )
        self.robot = robot
        self.mechanism = Mechanism(robot)
        self.contacts = {
            name: kind if isinstance(kind, Contact) else Contact(name, kind)
            for name, kind in (contacts or {}).items()
        }
        self._layout = Layout(self.mechanism, sensors, self.contacts)
        self.joint_names, self.slices = list(self.mechanism.names), self._layout.slices
        self._gravity = float(np.linalg.norm(robot.model.gravity.linear))
        self._allocate(model_force_noise_n)
        self.observability: Observability = observe(self, regularisation)
        if self.observability.undetermined:
            raise UnobservableError(self.observability.sentence())
        self.by_limbs = self._limbs_suffice()
        self.estimate(*self.observability.states[0])  # compiles

    def _allocate(self, noise):
        layout, mechanism = self._layout, self.mechanism
        n, m, columns = len(mechanism), len(layout.rows.kind), len(layout.labels)
        limbs = layout.limbs_integers.shape[1]
        widest = max([1, *(layout.limbs_integers[7] - layout.limbs_integers[6])])
        self._y = np.zeros(layout.size)
        self._buffer = np.zeros(MOTION_WIDTH * n)
        self._motion = unpack_motion(self._buffer, n)
        self._work = np.zeros(WORK + 6 + n + max(widest, 6))
        self._units = np.zeros((len(layout.wrenches), 6))
        self._row_vectors = np.zeros((m, 6))
        self._H, self._Y = np.zeros((limbs, widest, widest)), np.zeros((limbs, widest, 13))
        self._K = np.zeros((12, 13))
        self._base, self._z = np.zeros(6), np.zeros(columns)
        self._joint_acceleration, self._effort = np.zeros(n), np.zeros(n)
        self._a, self._f = np.zeros((n, 6)), np.zeros((n, 6))
        self._residual = np.zeros(m)
        self._base_bias = np.zeros(6)
        if not mechanism.floating:
            self._base_bias[:3] = -np.asarray(self.robot.model.gravity.linear)
        trace = mechanism.tree.inertia[:, [0, 3, 5]].sum()  # of the links alone: a size is enough
        lever = (mechanism.tree.mass[:, None] * mechanism.tree.lever**2).sum()
        radius = np.sqrt((trace / 2.0 + lever) / max(self.robot.mass, 1e-12))
        self._softness = np.repeat([noise**2, (noise * radius) ** 2], 3)
        self._nowhere = np.zeros(3)

    def estimate(
        self,
        q,
        v,
        angular_velocity=None,
        measurements: Mapping[str, np.ndarray] | np.ndarray | None = None,
        up=None,
    ) -> Estimate:
        """Everything from one instant's measurements.

        Args:
            q (nq,), v (nv,): Pinocchio's; of a floating base nothing is used.
            angular_velocity: (3,) rad/s of the base in its axes (a gyroscope); None: from v.
            measurements: sensor's name -> values; or all in one vector by ``slices``.
            up: (3,) upward direction in base axes, for feet with a radius and stationary frames;
                None: the base's z axis.

        Raises:
            StateError: wrong shapes, values that are not finite, a sensor without values; or a
                configuration in which the sensors suddenly do not suffice.
        """
        robot = self.robot
        q, v = _vector("q", q, robot.nq), _vector("v", v, robot.nv)
        if angular_velocity is None:
            w = v[3:6] if self.mechanism.floating else self._nowhere
        else:
            w = _vector("angular_velocity", angular_velocity, 3)
        up = UP if up is None else _vector("up", up, 3)
        self._take(measurements)
        # A limb that is singular here (a stretched leg) may still be determined by the base's equation.
        solved = self.by_limbs and self._solve_by_limbs(q, v, w, up)
        if not solved and not self._solve_dense(q, v, w, up):
            raise StateError(
                "no estimate: state or measurements are not finite, or the sensors do not suffice "
                "in this configuration"
            )
        return Estimate(self)

    def _take(self, measurements):
        y, slices = self._y, self.slices
        if measurements is None:
            y[:] = 0.0
        elif isinstance(measurements, np.ndarray):
            if measurements.shape != (len(y) - 1,):
                raise StateError(
                    f"measurements must have shape ({len(y) - 1},), got {measurements.shape}"
                )
            y[:-1] = measurements
        else:
            for name, place in slices.items():
                if name not in measurements:
                    raise StateError(f"no measurement of {name!r}; needed are {choices(slices)}")
                value = np.asarray(measurements[name], dtype=float)
                if value.shape != (place.stop - place.start,):
                    raise StateError(
                        f"{name} must have shape ({place.stop - place.start},), got {value.shape}"
                    )
                y[place] = value

    def _solve_by_limbs(self, q, v, w, up):
        layout, mechanism = self._layout, self.mechanism
        return SOLVED == _estimate(
            mechanism.integers, mechanism.numbers, layout.rows_integers, layout.rows_numbers,
            layout.joint_columns, layout.wrench_columns, layout.prior_values, layout.column_numbers,
            layout.limbs_integers, self._buffer, self._work, q, v, w, up, self._base_bias, self._y,
            self._gravity, self._softness, mechanism.floating, self._units, self._row_vectors,
            self._H, self._Y, self._K, self._base, self._z, self._joint_acceleration, self._a,
            self._f, self._effort, self._residual,
        )  # fmt: skip

    def _assemble(self, q, v, w, up):
        """A x = target of all rows, priors last, and B x = -fb_0 of the base, x = (a_0, z)."""
        layout = self._layout
        m, width = len(layout.rows.kind), 6 + len(layout.labels)
        A, target, B = np.zeros((m, width)), np.zeros(m), np.zeros((6, width))
        args = (layout.rows, layout.columns, layout.limbs, self._motion, self._y, up)
        n = len(self.mechanism)
        work = self._work
        _sweep(self.mechanism.tree, layout.columns, q, v, w, up, self._base_bias, self._y,
               work[WORK + 6 : WORK + 6 + n], self._motion, self._units, work)  # fmt: skip
        dense(self.mechanism.tree, *args, self._gravity, self._units, self._row_vectors,
              work[WORK : WORK + 6], work[WORK + 6 + n :], A, target, B)  # fmt: skip
        return A, target, B

    def _system(self, A, B):
        """KKT matrix of the least-squares problem, and which of its unknowns remain."""
        layout = self._layout
        exact = layout.rows.exact == 1
        weights = layout.rows.weight
        free = np.ones(A.shape[1], bool)
        equalities, soft = [A[exact]], [np.zeros(exact.sum())]
        if self.mechanism.floating:
            equalities.append(B)
            soft.append(self._softness)
        else:
            free[:6] = False
        E, soft = np.vstack(equalities)[:, free], np.concatenate(soft)
        A = A[~exact][:, free]
        normal = (A.T * weights[~exact]) @ A
        normal[np.diag_indices(len(normal))] += np.concatenate([np.zeros(6), layout.columns.prior])[
            free
        ]
        K = np.block([[normal, E.T], [E, -np.diag(soft)]])
        return K, free, exact

    def _solve_dense(self, q, v, w, up):
        layout = self._layout
        A, target, B = self._assemble(q, v, w, up)
        K, free, exact = self._system(A, B)
        weights, prior = layout.rows.weight, layout.columns.prior
        right = (A[~exact].T * weights[~exact]) @ target[~exact]
        right[6:] += prior * np.where(prior > 0.0, self._y[layout.prior_values], 0.0)
        right = [right[free], target[exact]]
        if self.mechanism.floating:
            right.append(-self._motion.fb[0])
        right = np.concatenate(right)
        if not (np.isfinite(K).all() and np.isfinite(right).all()):
            return False
        scale = 1.0 / np.sqrt(np.maximum(np.abs(K).max(axis=1), 1e-300))
        # Exact equations may say the same twice: the least of their multipliers then.
        x = scale * scipy.linalg.lstsq(K * scale[:, None] * scale, scale * right, cond=1e-13)[0]
        count = int(free.sum())
        whole = np.zeros(len(free))
        whole[free] = x[:count]
        self._base[:], self._z[:] = whole[:6], whole[6:]
        _outputs(
            self.mechanism.tree, layout.rows, layout.columns, layout.limbs, self._motion, self._y,
            up, self._gravity, self._units, self._row_vectors, self._base, self._z,
            self._joint_acceleration, self._a, self._f, self._effort, self._residual,
        )  # fmt: skip
        return True

    def _limbs_suffice(self):
        """No exact row but f_0 = 0, and every limb's own normal equations are sound."""
        layout = self._layout
        if layout.rows.exact.any():
            return False
        for q, v in self.observability.states:
            A, _, _ = self._assemble(q, v, v[3:6] if self.mechanism.floating else self._nowhere, UP)
            for b in range(layout.limbs_integers.shape[1]):
                first, end = layout.limbs_integers[6:, b]
                part = A[:, 6 + first : 6 + end]
                normal = (part.T * layout.rows.weight) @ part
                normal[np.diag_indices(end - first)] += layout.columns.prior[first:end]
                scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
                if end > first and not np.linalg.cond(normal / scale / scale[:, None]) < CONDITION:
                    return False
        return True

    def _components(self, contact):
        layout, values = self._layout, []
        for k in layout.components[contact]:
            place = layout.component_place[k]
            column = layout.columns.wrench[place]
            if column >= 0:
                values.append(self._z[layout.limbs.column[layout.wrenches[k].limb] + column])
            else:
                values.append(self._y[layout.columns.wrench_value[place]])
        return np.array(values)

    def _residuals(self):
        layout, found = self._layout, {}
        for k, sensor in enumerate(layout.row_sensors):
            found.setdefault(sensor, []).append(self._residual[k])
        prior = layout.columns.prior
        names = {}
        for name, place in self.slices.items():
            for at in range(place.start, place.stop):
                names[at] = name
        for column in np.flatnonzero(prior > 0.0):
            at = int(layout.prior_values[column])
            if at in names:
                difference = (self._y[at] - self._z[column]) * np.sqrt(prior[column])
                found.setdefault(names[at], []).append(difference)
        for sensor, link, rotation, place, noise in layout.gyroscopes:
            axes = self._motion.R[link].reshape(3, 3) @ rotation
            difference = self._y[place] - axes.T @ self._motion.v[link, 3:]
            found[sensor.name] = difference / np.where(noise > 0.0, noise, 1.0)
        return {name: np.asarray(values) for name, values in found.items()}

    def _inverse_of(self, A, B):
        K, free, _ = self._system(A, B)
        scale = 1.0 / np.sqrt(np.maximum(np.abs(K).max(axis=1), 1e-300))
        inverse = np.linalg.pinv(K * scale[:, None] * scale) * scale[:, None] * scale
        count = int(free.sum())
        P = np.zeros((len(free), len(free)))
        P[np.ix_(free, free)] = inverse[:count, :count]
        return P

    def _normalised_residuals(self):
        """From the state of the last estimate; all measured rows and unknowns as one matrix."""
        layout = self._layout
        A, B = self._swept()
        names = {at: name for name, p in self.slices.items() for at in range(p.start, p.stop)}
        measured = np.flatnonzero(layout.rows.exact == 0)
        H = [A[measured] * np.sqrt(layout.rows.weight[measured])[:, None]]
        owners = [layout.row_sensors[m] for m in measured]
        for column in np.flatnonzero(layout.columns.prior > 0.0):
            if int(layout.prior_values[column]) in names:
                row = np.zeros((1, A.shape[1]))
                row[0, 6 + column] = np.sqrt(layout.columns.prior[column])
                H.append(row)
                owners.append(names[int(layout.prior_values[column])])
        H = np.vstack(H)
        covariance = np.eye(len(H)) - H @ self._inverse_of(A, B) @ H.T
        found = {}
        for name, residual in self._residuals().items():
            own = [k for k, owner in enumerate(owners) if owner == name]
            C = covariance[np.ix_(own, own)] if own else np.eye(len(residual))
            if len(C) != len(residual):  # exact: nothing is left to compare
                found[name] = 0.0
                continue
            values, vectors = np.linalg.eigh(C)
            seen = values > CHECKED
            along = (vectors.T @ residual)[seen] / np.sqrt(values[seen])
            found[name] = float(np.sqrt((along @ along) / max(1, seen.sum())))
        return found

    def _swept(self):
        """A and B of the state last swept, which is still in the buffers."""
        layout, n = self._layout, len(self.mechanism)
        m, width = len(layout.rows.kind), 6 + len(layout.labels)
        A, target, B = np.zeros((m, width)), np.zeros(m), np.zeros((6, width))
        dense(self.mechanism.tree, layout.rows, layout.columns, layout.limbs, self._motion, self._y,
              UP, self._gravity, self._units, self._row_vectors, self._work[WORK : WORK + 6],
              self._work[WORK + 6 + n :], A, target, B)  # fmt: skip
        return A, B

    def _covariance(self, name):
        """From the state of the last estimate, whose sweep is still in the buffers."""
        layout, n = self._layout, len(self.mechanism)
        A, B = self._swept()
        width = A.shape[1]
        P = self._inverse_of(A, B)
        if name == "base_acceleration":
            T = np.eye(6, width)
        elif name == "joint_accelerations":
            T = np.zeros((n - 1, width))
            for link in range(1, n):
                if layout.columns.joint[link] >= 0:
                    column = layout.limbs.column[self.mechanism.tree.limb[link]]
                    T[link - 1, 6 + column + layout.columns.joint[link]] = 1.0
        elif name == "joint_efforts":
            T = self.observability.efforts.matrix(self)
        elif name in layout.components:
            T = np.zeros((len(layout.components[name]), width))
            for row, k in enumerate(layout.components[name]):
                column = layout.columns.wrench[layout.component_place[k]]
                if column >= 0:
                    T[row, 6 + layout.limbs.column[layout.wrenches[k].limb] + column] = 1.0
        else:
            known = ["base_acceleration", "joint_accelerations", "joint_efforts", *self.contacts]
            raise ConfigurationError(f"no covariance of {name!r}; there is one of {choices(known)}")
        return T @ P @ T.T


@kernel
def _sweep(tree, columns, q, v, w, up, base_bias, y, known, motion, units, work):
    sweep(tree, columns, q, v, w, up, base_bias, y, known, motion, units, work)


@kernel
def _outputs(tree, rows, columns, limbs, motion, y, up, gravity, units, r, base_acceleration, z,
             joint_acceleration, a, f, effort, residual):  # fmt: skip
    outputs(tree, rows, columns, limbs, motion, y, up, gravity, units, r, base_acceleration, z,
            joint_acceleration, a, f, effort, residual)  # fmt: skip


@kernel
def _estimate(
    tree_integers, tree_numbers, row_integers, row_numbers, joint_columns, wrench_columns, priors,
    column_numbers, limb_integers, buffer, work, q, v, w, up, base_bias, y, gravity, softness,
    floating, units, r, H, Y, K, base, z, joint_acceleration, a, f, effort, residual,
):  # fmt: skip
    """Flat entry: the arrays become named tuples, then sweep, elimination by limbs, outputs."""
    n = tree_integers.shape[1]
    tree, motion = unpack_tree(tree_integers, tree_numbers), unpack_motion(buffer, n)
    rows = unpack_rows(row_integers, row_numbers)
    columns = unpack_columns(joint_columns, wrench_columns, priors, column_numbers)
    limbs = Limbs(
        limb_integers[0], limb_integers[1], limb_integers[2], limb_integers[3], limb_integers[4],
        limb_integers[5], limb_integers[6], limb_integers[7],
    )  # fmt: skip
    known, spare = work[WORK + 6 : WORK + 6 + n], work[WORK + 6 + n :]
    sweep(tree, columns, q, v, w, up, base_bias, y, known, motion, units, work)
    status = by_limbs(
        tree, rows, columns, limbs, motion, y, up, gravity, softness, floating, units, r,
        work[WORK : WORK + 6], spare, H, Y, K, base, z,
    )  # fmt: skip
    if status == SOLVED:
        outputs(
            tree, rows, columns, limbs, motion, y, up, gravity, units, r, base, z,
            joint_acceleration, a, f, effort, residual,
        )  # fmt: skip
        for k in range(z.shape[0]):
            if not np.isfinite(z[k]):
                status += 1
        for k in range(6):
            if not np.isfinite(base[k]):
                status += 1
    return status


def _vector(name, value, size):
    array = np.ascontiguousarray(value, dtype=float)
    if array.shape != (size,):
        raise StateError(f"{name} must have shape ({size},), got {array.shape}")
    return array
