"""The names that ``solve`` takes, for editors and type checkers.

Written by `contact_id parameters --write` from the rows of the registry; changes are lost.
"""

# fmt: off
from __future__ import annotations

from typing import Literal, TypedDict

from numpy.typing import ArrayLike

Friction = Literal["coulomb", "no_slip", "viscous", "none"]
Solver = Literal["qp", "qp_one_stage", "lcp", "ncp", "lcp_min_diff", "qcqp", "none", "sensed"]


class Options(TypedDict, total=False):
    """The keyword options of all models; ``options`` lists those that a model takes."""

    edges: int
    polygon: Literal["inscribed", "circumscribed"]
    cone: Literal["pyramid", "exact"]
    sliding: Literal["coulomb", "parting"]
    distribution: Literal["least_torque", "least_force", "none"]
    consistency: Literal["project", "report"]
    regularisation: float
    torque_limits: ArrayLike | None
    weights: ArrayLike | None
    rho: float
    forces: ArrayLike | None
