"""From a list of sensors to the arrays that the elimination takes, and the places of measurements in y."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contact_id_controller.estimation.sensors import (
    COMPONENT,
    COMPONENTS,
    JOINT,
    VELOCITY,
    Contact,
    Sensor,
)
from contact_id_controller.estimation.system import Sizes, constants_size, numbers_size, unpack
from contact_id_controller.estimation.tree import Mechanism
from contact_id_controller.exceptions import ConfigurationError


@dataclasses.dataclass
class _Unknown:
    """A joint acceleration or a component of a contact wrench, before it has a column.

    noise: None unknown, 0 exact, else sigma.  value: place in y.
    """

    label: str
    limb: int
    noise: float | None = None
    value: int = -1


class Layout:
    """The arrays of one set of sensors on one mechanism.

    Attributes:
        slices: sensor's name -> slice of y.  size: length of y; its last entry stays zero.
        contacts: name -> ``Contact``; components: name -> indices of its components in ``wrenches``.
        joints, wrenches: the unknowns, as ``_Unknown``.
        velocities: rows that are only compared: sensor, link, axis in it (3,), place in y, noise.
        labels: of the N columns.  row_labels, row_sensors: of the rows; row_noise (m,).
        integers, numbers: see ``system``; system, inputs, scratch, results: views into them, and
            rows, columns, limbs those of the system.

    Raises:
        ConfigurationError: two sensors of one name, a noise that is negative or of wrong size, a
            quantity measured twice in a way that cannot be weighed.
        UnknownFrameError, UnknownJointError: a name that the robot lacks.
    """

    def __init__(
        self, mechanism: Mechanism, sensors: Sequence[Sensor], contacts: Mapping[str, Contact]
    ):
        self.mechanism, self.sensors, self.contacts = mechanism, tuple(sensors), dict(contacts)
        self.slices: dict[str, slice] = {}
        self.size = 1
        self._unknowns()
        self._rows()
        self._columns()

    def value(self, sensor: Any, count: int) -> slice:
        """A slice of y for a sensor's values."""
        if sensor.name in self.slices:
            raise ConfigurationError(f"two sensors are called {sensor.name!r}")
        self.slices[sensor.name] = slice(self.size - 1, self.size - 1 + count)
        self.size += count
        return self.slices[sensor.name]

    def _unknowns(self) -> None:
        """Number the unknowns: joint accelerations, then components of contact wrenches with their directions."""
        mechanism = self.mechanism
        tree = mechanism.tree
        self.joints = [
            _Unknown(f"acceleration of {name}", int(tree.limb[link]))
            for link, name in enumerate(mechanism.names, start=1)
        ]
        self.wrenches: list[_Unknown] = []
        self.components: dict[str, range] = {}
        self._geometry = []
        known = [each for sensor in self.sensors for each in sensor.contacts.items()]
        for name, contact in (*self.contacts.items(), *known):
            link, rotation, origin = mechanism.frame(contact.frame)
            start = len(self.wrenches)
            for index in contact.components:
                axis = rotation[:, index % 3]
                if index < 3:
                    vector = np.concatenate([axis, np.cross(origin, axis)])
                else:
                    vector = np.concatenate([np.zeros(3), axis])
                label = f"{COMPONENTS[index]} of {name}"
                self.wrenches.append(_Unknown(label, int(tree.limb[link])))
                self._geometry.append((link, vector, contact.radius_m if index < 3 else 0.0))
            self.components[name] = range(start, len(self.wrenches))

    def _know(self, unknown: _Unknown, noise: float, value: int, sensor: str) -> None:
        """An unknown is measured itself."""
        if unknown.noise is not None:
            raise ConfigurationError(f"{unknown.label} is measured twice, by {sensor} too")
        unknown.noise, unknown.value = float(noise), value

    def _rows(self) -> None:
        """Rows of all sensors, sorted by limb: direct measurements become priors, velocities only residuals."""
        found = []  # (limb, row, noise, value, sensor)
        self.velocities = []  # (sensor, link, axis in it, value, noise)
        limbs = self.mechanism.tree.limb
        for sensor in self.sensors:
            rows = sensor.rows(self.mechanism, self.components)
            noise = sensor.noises(len(rows))
            values: Sequence[int] = [-1] * len(rows)
            if sensor.measured:
                place = self.value(sensor, len(rows))
                values = range(place.start, place.stop)
            for row, sigma, value in zip(rows, noise, values):
                if row.kind == JOINT:
                    self._know(self.joints[row.link - 1], sigma, value, sensor.name)
                elif row.kind == COMPONENT:
                    self._know(self.wrenches[row.link], sigma, value, sensor.name)
                elif row.kind == VELOCITY:
                    self.velocities.append((sensor.name, row.link, row.vector, value, sigma))
                else:
                    found.append((int(limbs[row.link]), row, sigma, value, sensor.name))
        self._limbs_count = max(1, len(self.mechanism.limbs))
        extra = any(unknown.limb < 0 for unknown in self.wrenches)  # contacts of the base itself
        self._limbs_count += extra
        for unknown in self.wrenches:
            if unknown.limb < 0:
                unknown.limb = self._limbs_count - 1
        found.sort(key=lambda entry: entry[0] if entry[0] >= 0 else self._limbs_count)
        self.row_labels = [entry[1].label for entry in found]
        self.row_sensors = [entry[4] for entry in found]
        self.row_limbs = [entry[0] for entry in found]
        self.row_noise = np.array([entry[2] for entry in found])
        m = len(found)
        self.rows_integers = np.zeros((6, m), np.int64)
        vector, position, weight = np.zeros((m, 6)), np.zeros((m, 3)), np.zeros(m)
        rotor = np.array([entry[1].rotor for entry in found])
        for k, (_, row, sigma, value, _) in enumerate(found):
            self.rows_integers[:, k] = (
                row.kind, row.link, row.carrier, row.point, value, sigma == 0.0,
            )  # fmt: skip
            vector[k], position[k] = row.vector, row.position
            weight[k] = 1.0 / sigma**2 if sigma > 0.0 else 0.0
        self.rows_numbers = np.concatenate([vector.ravel(), position.ravel(), weight, rotor])

    def _columns(self) -> None:
        """Place each unknown among its limb's columns; one measured without noise is known, and has no column."""
        n, c, limbs = len(self.mechanism), len(self.wrenches), self._limbs_count
        self.joint_columns, self.wrench_columns = (
            np.zeros((2, n), np.int64),
            np.zeros((3, c), np.int64),
        )
        self.joint_columns[0, 0] = -1
        self.limbs_integers = np.zeros((8, limbs), np.int64)
        self.labels: list[str] = []
        prior, prior_value = [], []
        order: list[int] = []
        for b in range(limbs):
            start = len(self.labels)
            links = self.mechanism.limbs[b] if b < len(self.mechanism.limbs) else (1, 1)
            rows = [k for k, limb in enumerate(self.row_limbs) if limb == b]
            mine = [k for k, unknown in enumerate(self.wrenches) if unknown.limb == b]
            members = [(self.joints[link - 1], "joint", link) for link in range(*links)]
            members += [(self.wrenches[k], "wrench", k) for k in mine]
            first_component = len(order)
            order += mine
            for unknown, kind, at in members:
                exact = unknown.noise == 0.0
                column = -1 if exact else len(self.labels) - start
                value = unknown.value if exact else -1
                if kind == "joint":
                    self.joint_columns[:, at] = column, value
                else:
                    self.wrench_columns[:, order.index(at)] = self._geometry[at][0], column, value
                if not exact:
                    self.labels.append(unknown.label)
                    prior.append(0.0 if unknown.noise is None else unknown.noise**-2.0)
                    prior_value.append(unknown.value)
            row = rows[0] if rows else (self.limbs_integers[3, b - 1] if b else 0)
            self.limbs_integers[:, b] = (
                links[0], links[1], row, row + len(rows), first_component, len(order), start,
                len(self.labels),
            )  # fmt: skip
        self.component_order = order  # place in the arrays -> index in ``wrenches``
        self.component_place = {k: place for place, k in enumerate(order)}
        vector = np.array([self._geometry[k][1] for k in order]).reshape(c, 6)
        radius = np.array([self._geometry[k][2] for k in order])
        self.prior_values = np.array(prior_value, np.int64).reshape(-1)
        self.column_numbers = np.concatenate([vector.ravel(), radius, np.array(prior)])
        self._lengths = (self.rows_integers.shape[1], c, len(self.labels), limbs)

    def freeze(self, facts: Sequence[float]) -> None:
        """Lay everything into two stores; facts (13,): gravity, softness (6), base_bias (6)."""
        m, c, columns, limbs = self._lengths
        widths = self.limbs_integers[7] - self.limbs_integers[6]
        model = self.mechanism.robot.model
        self.sizes = Sizes(
            len(self.mechanism), m, c, columns, limbs, max(6, *widths, 6),
            int(self.mechanism.floating), model.nq, model.nv, self.size,
        )  # fmt: skip
        parts = [self.mechanism.integers, self.rows_integers, self.joint_columns,
                 self.wrench_columns, self.prior_values, self.limbs_integers]  # fmt: skip
        self.integers = np.concatenate([self.sizes, *(part.ravel() for part in parts)])
        self.integers = self.integers.astype(np.int64)
        self.numbers, staying = np.zeros(numbers_size(self.sizes)), constants_size(self.sizes)
        self.numbers[:staying] = np.concatenate(
            [self.mechanism.numbers, self.rows_numbers, self.column_numbers, facts]
        )
        self.system, self.inputs, self.scratch, self.results = unpack(self.integers, self.numbers)
        self.rows, self.columns, self.limbs = (
            self.system.rows,
            self.system.columns,
            self.system.limbs,
        )

    def add_prior(self, column: int, noise: float) -> None:
        """Expect zero, with this noise, of an unknown that nothing measures."""
        if not noise > 0.0:
            raise ConfigurationError(f"regularisation must be positive, got {noise}")
        self.columns.prior[column] = noise**-2.0
        self.columns.prior_value[column] = self.size - 1
