"""Whole-body dynamics from any set of sensors: accelerations, joint and contact wrenches, efforts.

All dynamic quantities are affine in z = (a_0, joint accelerations, contact wrenches), so the estimate is

    min |Sigma^-1/2 (H z - y)|^2   subject to   f_0 = 0 and what is known exactly

and everything else follows. What the sensors cannot determine is found before the robot moves, and named.
Source: Nori (2017), sections III and VI; formulation by limbs: docs/theory.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from contact_id_controller.estimation.checked import ALL, put
from contact_id_controller.estimation.elimination import SOLVED, by_limbs, dense, outputs, sweep
from contact_id_controller.estimation.layout import Layout
from contact_id_controller.estimation.missing_measurements import MissingMeasurements
from contact_id_controller.estimation.observability import Observability, observe
from contact_id_controller.estimation.sensors import Contact
from contact_id_controller.estimation.system import Inputs, unpack
from contact_id_controller.estimation.tree import Mechanism
from contact_id_controller.exceptions import (
    ConfigurationError,
    StateError,
    UnobservableError,
    choices,
)
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.robot import RobotModel

UP = np.array([0.0, 0.0, 1.0])
CHECKED = 1e-6  # least share of a measurement's variance in its residual for this to be judged
CONDITION = 1e10  # of a limb's normal equations: beyond it the dense method takes over
UNIT = 1e-2  # deviation of the norm of a direction from 1


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
        results = estimator._layout.results
        self.base_acceleration = results.a[0]
        self.joint_accelerations = results.joint_acceleration[1:]
        self.joint_efforts = results.effort[1:]

    @property
    def contact_wrenches(self) -> dict[str, np.ndarray]:
        """Contact -> its components, in the contact frame's axes (see ``Contact.components``)."""
        return {name: self._estimator._components(name) for name in self._estimator.contacts}

    def contact_force(self, contact: str) -> np.ndarray:
        """(3,) N, force of a contact in base axes."""
        return self.contact_forces((contact,))[0]

    def contact_forces(self, contacts: Sequence[str]) -> np.ndarray:
        """(n, 3) N, of several contacts; the same as one by one."""
        layout = self._estimator._layout
        owners, _, _, places = self._estimator.components_of(contacts)
        amounts = self._estimator._components(*contacts)
        forces = np.zeros((len(contacts), 3))
        np.add.at(forces, owners, amounts[:, None] * layout.system.units[places, :3])
        return forces

    @property
    def joint_wrenches(self) -> dict[str, np.ndarray]:
        """Joint -> wrench (6,) that passes through it to the outer link, about the base origin."""
        estimator = self._estimator
        return {
            name: estimator._layout.results.f[i + 1] for i, name in enumerate(estimator.joint_names)
        }

    @property
    def residuals(self) -> dict[str, np.ndarray]:
        """Sensor -> (measured less estimated) / sigma of each of its values; exact ones: difference."""
        return self._estimator._residuals()

    @property
    def normalised_residuals(self) -> dict[str, float]:
        """Sensor -> sqrt(r^T C^+ r / rank C) of its residuals r with their covariance C.

        Near 1 while all noises are as configured. If one sensor lies, its own is the
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
        observability: what the sensors determine.  by_limbs: limbs are eliminated one by one.
        slices: sensor -> its place in the vector that ``estimate`` takes instead of a mapping.
        outputs_due: the unknowns of ``stores`` were solved elsewhere, and nothing else follows from them yet.

    Raises:
        UnobservableError: the sensors leave something undetermined; the message names it.
        ConfigurationError, UnknownFrameError, UnknownJointError: sensors that do not fit.

    Source: Nori (2017); elimination by limbs in ``elimination``.
    """

    def __init__(
        self,
        robot: RobotModel,
        sensors: Sequence[Any],
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
        self._allocate(model_force_noise_n)
        self.observability: Observability = observe(self, regularisation)
        if self.observability.undetermined:
            raise UnobservableError(self.observability.sentence())
        self._found_places: dict[tuple[str, ...], np.ndarray] = {}
        self._missing = MissingMeasurements(self)
        self.by_limbs = self._limbs_suffice()
        self.estimate(*self.observability.states[0])  # compiles

    def _allocate(self, noise: float) -> None:
        """Freeze the layout into arrays, and keep views of its inputs.

        Args:
            noise: standard deviation of the equation of motion of a link, N; of moments times the radius of gyration.
        """
        tree, gravity = self.mechanism.tree, np.asarray(self.robot.model.gravity.linear)
        trace = tree.inertia[:, [0, 3, 5]].sum()  # of the links alone: a size is enough
        lever = (tree.mass[:, None] * tree.lever**2).sum()
        radius = np.sqrt((trace / 2.0 + lever) / max(self.robot.mass, 1e-12))
        softness = np.repeat([noise**2, (noise * radius) ** 2], 3)
        bolted = np.zeros(3) if self.mechanism.floating else -gravity
        self._layout.freeze([float(np.linalg.norm(gravity)), *softness, *bolted, 0.0, 0.0, 0.0])
        self._inputs = self._layout.inputs
        self._y = self._inputs.y
        q, v, w, up, y = (array.data for array in self._inputs)
        self._places: Any = Inputs(q, v, w, up, y)
        self._measured = self._y[:-1].data
        self._turning = self._inputs.v[3:6] if self.mechanism.floating else np.zeros(3)
        self._latest, self.outputs_due = Estimate(self), False

    @property
    def latest(self) -> Estimate:
        """What the last call of ``estimate`` returned; the same object each time."""
        if self.outputs_due:
            self.outputs_due = False
            _outputs(self._layout.integers, self._layout.numbers)
        return self._latest

    def estimate(
        self,
        q: np.ndarray,
        v: np.ndarray,
        angular_velocity: np.ndarray | None = None,
        measurements: Mapping[str, np.ndarray] | np.ndarray | None = None,
        up: np.ndarray | None = None,
    ) -> Estimate:
        """Everything from one instant's measurements.

        Args:
            q (nq,), v (nv,): Pinocchio's; of a floating base nothing is used.
            angular_velocity: (3,) rad/s of the base in its axes (a gyroscope); None: from v.
            measurements: sensor's name -> values; or all in one vector by ``slices``.
            up: (3,) unit vector upwards in base axes, for feet with a radius and stationary frames;
                None: the base's z axis.

        Raises:
            StateError: wrong shapes, values that are not finite, a sensor without values; or a
                configuration in which the sensors suddenly do not suffice.
        """
        self._state(q, v, angular_velocity, up)
        self._take(measurements)
        # A limb that is singular here (a stretched leg) may still be determined by the base's equation.
        layout = self._layout
        self.outputs_due = False
        solved = self.by_limbs and SOLVED == estimate_by_limbs(layout.integers, layout.numbers)
        if not solved and not self.solve_dense():
            raise StateError(
                "no estimate: state or measurements are not finite, or the sensors do not suffice "
                "in this configuration"
            )
        return self.latest

    def leave_out(self, missing: ArrayLike) -> None:
        """Go on without some measurements until the next call; what is given for them is not used.

        What the others still determine of a contact: ``deviations``.

        Args:
            missing: (values,) bool, by ``slices``; none of it True: all are used again.

        Raises:
            ConfigurationError: another shape, or one that is exact.
        """
        self._missing.change(missing)

    def deviations(self) -> np.ndarray:
        """Largest standard deviation of each contact's components in any direction, N or N m, (contacts,).

        Of the state last estimated. Costs more than an estimate.
        """
        P = self._covariance_of_unknowns()
        found = (self._outputs_of(name, P.shape[0]) for name in self.contacts)
        largest = [np.linalg.eigvalsh(T @ P @ T.T)[-1] for T in found]
        return np.sqrt(np.maximum(largest, 0.0))

    @property
    def stores(self) -> tuple[np.ndarray, np.ndarray]:
        """Integers and numbers that ``solve_by_limbs`` works on, see ``system``."""
        return self._layout.integers, self._layout.numbers

    def take_configuration(self, q: np.ndarray) -> None:
        """Put a configuration (nq,) at rest where the kernels read it."""
        put("q", q, self._places.q)
        self._inputs.v[:] = 0.0

    def _state(
        self,
        q: np.ndarray,
        v: np.ndarray,
        angular_velocity: np.ndarray | None = None,
        up: np.ndarray | None = None,
    ) -> None:
        """Put a state where the kernels read it."""
        places = self._places
        put("q", q, places.q)
        put("v", v, places.v)
        if angular_velocity is not None:
            put("angular_velocity", angular_velocity, places.w)
        else:
            places.w[ALL] = self._turning
        put("up", UP if up is None else up, places.up)
        if up is not None and not abs(math.hypot(*places.up) - 1.0) <= UNIT:
            raise StateError(f"up is {places.up.tolist()}, must have length 1")

    def _take(self, measurements: Mapping[str, np.ndarray] | np.ndarray | None) -> None:
        """Copy measurements, an array in the layout's order or a dictionary by sensor, into y (m,); None clears it."""
        y, slices = self._y, self.slices
        if measurements is None:
            y[:] = 0.0
        elif isinstance(measurements, np.ndarray):
            put("measurements", measurements, self._measured)
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
        if self._missing.any:
            y[self._missing.values] = 0.0

    def _assemble(
        self,
        q: np.ndarray,
        v: np.ndarray,
        w: np.ndarray | None = None,
        up: np.ndarray | None = None,
    ) -> Any:
        """A x = target of all rows, and B x = -fb_0 of the base, x = (a_0, z), at a state."""
        self._state(q, v, w, up)
        return self._swept(_sweep)

    def _swept(self, first: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for the state last swept, which is still in the store."""
        layout = self._layout
        if first is not None:
            first(layout.integers, layout.numbers)
        m, width = layout.sizes.rows, 6 + layout.sizes.columns
        A, target, B = np.zeros((m, width)), np.zeros(m), np.zeros((6, width))
        _dense(layout.integers, layout.numbers, A, target, B)
        return A, target, B

    def _system(self, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """KKT matrix of the least-squares problem, and which of its unknowns remain."""
        layout = self._layout
        exact = layout.rows.exact == 1
        weights = layout.rows.weight
        free = np.ones(A.shape[1], bool)
        equalities, soft = [A[exact]], [np.zeros(exact.sum())]
        if self.mechanism.floating:
            equalities.append(B)
            soft.append(layout.system.facts.softness)
        else:
            free[:6] = False
        E, softness = np.vstack(equalities)[:, free], np.concatenate(soft)
        A = A[~exact][:, free]
        normal = (A.T * weights[~exact]) @ A
        normal[np.diag_indices(len(normal))] += np.concatenate([np.zeros(6), layout.columns.prior])[
            free
        ]
        K = np.block([[normal, E.T], [E, -np.diag(softness)]])
        return K, free, exact

    def solve_dense(self) -> bool:
        """All unknowns as one matrix, where limbs alone do not suffice; whether that found an estimate.

        Of the inputs that are in the stores.
        """
        layout, self.outputs_due = self._layout, False
        A, target, B = self._swept(_sweep)
        K, free, exact = self._system(A, B)
        weights, prior = layout.rows.weight, layout.columns.prior
        right = (A[~exact].T * weights[~exact]) @ target[~exact]
        right[6:] += prior * np.where(prior > 0.0, self._y[layout.columns.prior_value], 0.0)
        right = [right[free], target[exact]]
        if self.mechanism.floating:
            right.append(-layout.system.motion.fb[0])
        right = np.concatenate(right)
        if not (np.isfinite(K).all() and np.isfinite(right).all()):
            return False
        scale = 1.0 / np.sqrt(np.maximum(np.abs(K).max(axis=1), 1e-300))
        # Exact equations may depend on each other: then the multipliers of least norm.
        x = scale * scipy.linalg.lstsq(K * scale[:, None] * scale, scale * right, cond=1e-13)[0]
        count = int(free.sum())
        whole = np.zeros(len(free))
        whole[free] = x[:count]
        layout.results.base[:], layout.results.z[:] = whole[:6], whole[6:]
        self.outputs_due = True
        return True

    def _limbs_suffice(self) -> bool:
        """No exact row but f_0 = 0, and every limb's own normal equations are sound."""
        layout = self._layout
        if layout.rows.exact.any():
            return False
        for q, v in self.observability.states:
            A, _, _ = self._assemble(q, v)
            for b in range(layout.limbs_integers.shape[1]):
                first, end = layout.limbs_integers[6:, b]
                part = A[:, 6 + first : 6 + end]
                normal = (part.T * layout.rows.weight) @ part
                normal[np.diag_indices(end - first)] += layout.columns.prior[first:end]
                scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
                if end > first and not np.linalg.cond(normal / scale / scale[:, None]) < CONDITION:
                    return False
        return True

    def components_of(self, contacts: Sequence[str]) -> np.ndarray:
        """(4, c) of the components of contacts' wrenches, those of one after those of the other.

        Number of the contact; place among the unknowns z; place in y of an exact one, -1: it is unknown; place
        among the unit wrenches.
        """
        contacts = tuple(contacts)
        if contacts not in self._found_places:
            layout = self._layout
            owners = [k for k, name in enumerate(contacts) for _ in layout.components[name]]
            components = [k for name in contacts for k in layout.components[name]]
            places = np.array([layout.component_place[k] for k in components], dtype=np.int64)
            columns = layout.columns.wrench[places]
            limbs = [layout.limbs.column[layout.wrenches[k].limb] for k in components]
            exact = columns < 0
            # The last of y is zero, which is what nothing measures.
            values = np.where(exact, layout.columns.wrench_value[places] % len(self._y), -1)
            unknown = np.where(exact, 0, columns + np.array(limbs, dtype=np.int64))
            self._found_places[contacts] = np.array(
                [owners, unknown, values, places], dtype=np.int64
            )
        return self._found_places[contacts]

    def _components(self, *contacts: Any) -> np.ndarray:
        _, unknown, value, _ = self.components_of(contacts)
        return np.where(value >= 0, self._y[value], self._layout.results.z[unknown])

    @functools.cached_property
    def _residual_places(self) -> tuple[Any, ...]:
        """Sensor -> its residuals among those of all; rows of the first of each sensor, unknowns of the others.

        Places of the first, and of the others, which measure an unknown directly, among all; those unknowns, and
        where their values stand in y.
        """
        layout = self._layout
        found: dict[str, tuple[list[int], list[int], list[int]]] = {}
        for k, sensor in enumerate(layout.row_sensors):
            found.setdefault(sensor, ([], [], []))[0].append(k)
        names = {at: name for name, p in self.slices.items() for at in range(p.start, p.stop)}
        for column in np.flatnonzero(layout.columns.prior > 0.0).tolist():
            at = int(layout.columns.prior_value[column])
            if at in names:
                _, columns, values = found.setdefault(names[at], ([], [], []))
                columns.append(column)
                values.append(at)
        parts, end = {}, 0
        places: tuple[list[int], ...] = [], [], [], [], []
        for name, (rows, columns, values) in found.items():
            middle = end + len(rows)
            parts[name], end = slice(end, middle + len(columns)), middle + len(columns)
            new = range(parts[name].start, middle), range(middle, end), rows, columns, values
            for each, more in zip(places, new):
                each.extend(more)
        return parts, end, *(np.array(each, dtype=np.int64) for each in places)

    def _residuals(self) -> dict[str, np.ndarray]:
        """By sensor: measured minus estimated values, in standard deviations of that sensor."""
        layout, results = self._layout, self._layout.results
        parts, size, of_rows, of_columns, rows, columns, values = self._residual_places
        residuals = np.empty(size)
        residuals[of_rows] = results.residual[rows]
        deviation = np.sqrt(layout.columns.prior[columns])
        residuals[of_columns] = (self._y[values] - results.z[columns]) * deviation
        found = {name: residuals[part] for name, part in parts.items()}
        motion = layout.system.motion
        for name, link, axis, value, noise in layout.velocities:
            turn = (motion.R[link].reshape(3, 3) @ axis) @ motion.v[link, 3:]
            difference = (self._y[value] - turn) / (noise if noise > 0.0 else 1.0)
            found[name] = np.append(found.get(name, ()), difference)
        return found

    def _inverse_of(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Covariance of the unknowns, (6 + N, 6 + N): block of the inverse of the scaled KKT matrix.

        The pseudo-inverse, so directions that no sensor sees get none; a fixed base has zero rows.
        """
        K, free, _ = self._system(A, B)
        scale = 1.0 / np.sqrt(np.maximum(np.abs(K).max(axis=1), 1e-300))
        inverse = np.linalg.pinv(K * scale[:, None] * scale, hermitian=True)
        inverse *= scale[:, None] * scale
        count = int(free.sum())
        P = np.zeros((len(free), len(free)))
        P[np.ix_(free, free)] = inverse[:count, :count]
        return P

    def _normalised_residuals(self) -> dict[str, float]:
        return self.normalise(self._residuals(), self.whitening())

    @staticmethod
    def normalise(residuals: Mapping[str, np.ndarray], whitening: Any) -> dict[str, float]:
        """Sensor -> normalised residual, of `residuals` and what `whitening` returned."""
        found = {}
        for name, residual in residuals.items():
            rows = whitening[name]
            if rows.shape[1] != len(residual):  # exact: nothing is left to compare
                found[name] = 0.0
            else:
                found[name] = math.hypot(*(rows @ residual)) / math.sqrt(max(1, len(rows)))
        return found

    def whitening(self) -> dict[str, np.ndarray]:
        """Sensor -> (k, m), by which its m residuals are k numbers of variance 1; of another m where they are exact.

        At the state of the last estimate; all measured rows and unknowns as one matrix. It changes as slowly as the
        posture does, and costs far more than an estimate.
        """
        layout = self._layout
        A, _, B = self._swept()
        names = {at: name for name, p in self.slices.items() for at in range(p.start, p.stop)}
        measured = np.flatnonzero(layout.rows.exact == 0)
        H = [A[measured] * np.sqrt(layout.rows.weight[measured])[:, None]]
        owners = [layout.row_sensors[m] for m in measured]
        places = layout.rows.value[measured].tolist()
        for column in np.flatnonzero(layout.columns.prior > 0.0):
            if int(layout.columns.prior_value[column]) in names:
                row = np.zeros((1, A.shape[1]))
                row[0, 6 + column] = np.sqrt(layout.columns.prior[column])
                H.append(row)
                places.append(int(layout.columns.prior_value[column]))
                owners.append(names[places[-1]])
        weighted = np.vstack(H)
        covariance = np.eye(len(weighted)) - weighted @ self._inverse_of(A, B) @ weighted.T
        out = self._missing.values[places]
        covariance[out], covariance[:, out] = 0.0, 0.0  # nothing is compared with them
        found = {}
        for name, residual in self._residuals().items():
            own = [k for k, owner in enumerate(owners) if owner == name]
            C = covariance[np.ix_(own, own)] if own else np.eye(len(residual))
            values, vectors = np.linalg.eigh(C)
            seen = values > CHECKED
            found[name] = vectors.T[seen] / np.sqrt(values[seen])[:, None]
        return found

    def _covariance(self, name: str) -> np.ndarray:
        T = self._outputs_of(name, 6 + self._layout.sizes.columns)
        return T @ self._covariance_of_unknowns() @ T.T

    def _covariance_of_unknowns(self) -> np.ndarray:
        """From the state of the last estimate, whose sweep is still in the buffers."""
        A, _, B = self._swept()
        return self._inverse_of(A, B)

    def _outputs_of(self, name: str, width: int) -> np.ndarray:
        """Coefficients of a quantity on all unknowns."""
        layout, n = self._layout, len(self.mechanism)
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
        return T


@kernel
def _sweep(integers, numbers):
    """Compiled entry of ``sweep``; the stores are those of ``unpack``."""
    system, given, scratch, _ = unpack(integers, numbers)
    sweep(system, scratch, given.q, given.v, given.w, given.up, given.y)


@kernel
def _dense(integers, numbers, A, target, B):
    """Compiled entry of ``dense``: A (m, 6 + N), target (m,), B (6, 6 + N) are filled."""
    system, given, scratch, _ = unpack(integers, numbers)
    dense(system, given.y, given.up, scratch, A, target, B)


@kernel
def _outputs(integers, numbers):
    """Compiled entry of ``outputs``; the stores are those of ``unpack``."""
    system, given, scratch, results = unpack(integers, numbers)
    outputs(system, given.y, scratch, results)


@kernel
def solve_by_limbs(integers, numbers):
    """Sweep and elimination by limbs; SOLVED only with finite results. What follows from them: ``_outputs``."""
    system, given, scratch, results = unpack(integers, numbers)
    sweep(system, scratch, given.q, given.v, given.w, given.up, given.y)
    status = by_limbs(system, given.y, given.up, scratch, results)
    if status == SOLVED:
        total = 0.0
        for k in range(results.z.shape[0]):
            total += abs(results.z[k])
        for k in range(6):
            total += abs(results.base[k])
        if not total < np.inf:  # isfinite is x - x == 0, which reassociation may cancel
            status += 1
    return status


@kernel
def estimate_by_limbs(integers, numbers):
    """``solve_by_limbs``, and where that is SOLVED what follows from it, in one call."""
    status = solve_by_limbs(integers, numbers)
    if status == SOLVED:
        system, given, scratch, results = unpack(integers, numbers)
        outputs(system, given.y, scratch, results)
    return status
