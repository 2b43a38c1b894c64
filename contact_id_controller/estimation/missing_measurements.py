"""Going on without some measurements in the same arrays: their rows stay, and weigh next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError

SOFTENED = 1e4
"""Times its noise: deviation of a measurement that is left out, of which zero is expected. Without any
weight its limb would be singular, and what the base's equation still determines of it would need the dense
method; with one 1e8 times smaller it has no influence, and pivots stay far above the smallest."""


class MissingMeasurements:
    """Which measurements of an estimator are not used now.

    Attributes:
        values: (ny,) bool, like y, whose last entry is no measurement.  any: whether there are some.
    """

    def __init__(self, estimator: Any) -> None:
        self._slices, self._layout = estimator.slices, estimator._layout
        layout = self._layout
        rows, columns = layout.rows, layout.columns
        self._weights = rows.weight.copy(), columns.prior.copy()
        self._exact = np.zeros(layout.size, dtype=bool)
        self._exact[rows.value[rows.exact == 1]] = True
        for unknown in (*layout.joints, *layout.wrenches):
            self._exact[unknown.value] |= unknown.noise == 0.0
        self.values, self.any = np.zeros(layout.size, dtype=bool), False

    def change(self, missing: ArrayLike) -> None:
        """See ``DynamicsEstimator.leave_out``."""
        missing = np.asarray(missing, dtype=bool)
        if missing.shape != (len(self.values) - 1,):
            raise ConfigurationError(
                f"missing must have shape ({len(self.values) - 1},), got {missing.shape}"
            )
        exact = np.flatnonzero(missing & self._exact[:-1])
        if exact.size:
            (name,) = (n for n, part in self._slices.items() if part.start <= exact[0] < part.stop)
            raise ConfigurationError(f"{name} is exact and cannot be left out")
        self.values[:-1], self.any = missing, bool(missing.any())
        share = np.where(self.values, SOFTENED**-2.0, 1.0)
        layout, (weight, prior) = self._layout, self._weights
        layout.rows.weight[:] = weight * share[layout.rows.value]
        layout.columns.prior[:] = prior * share[layout.columns.prior_value]
