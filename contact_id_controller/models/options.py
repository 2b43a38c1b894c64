"""Options that several contact models share: keyword, parameter, values, meaning."""

from __future__ import annotations

from typing import Any

from contact_id_controller.models.contact_model import Option, literal
from contact_id_controller.parameter_spec import ParameterSpec

DISTRIBUTIONS = ("least_torque", "least_force", "none")
CONSISTENCIES = ("project", "report")
POLYGONS = ("inscribed", "circumscribed")
CONES = ("pyramid", "exact")
SLIDINGS = ("coulomb", "parting")


def option(
    keyword: str,
    kind: str,
    default: Any,
    description: str,
    *,
    parameter: str = "",
    least: float | None = None,
    live: bool = True,
    **columns: Any,
) -> Option:
    """Make an option that YAML sets by the parameter of its name, or of the name ``parameter``.

    kind, default, description, live and the other columns (unit, minimum, maximum, choices): as for
    ``ParameterSpec``.  least: smallest value that ``solve`` takes.
    """
    text = " ".join(description.split())
    name = parameter or keyword
    spec = ParameterSpec(name, kind, default, text, live=live, **columns)
    return Option(keyword, spec, least=least)


def one_of(keyword: str, choices: tuple[str, ...]) -> Option:
    """Make an option without a parameter; its first choice is the default."""
    return Option(keyword, annotation=literal(choices), default=choices[0], choices=choices)


EDGES = option(
    "edges",
    "integer",
    4,
    """Edges of the pyramid that stands for the friction cone. Inscribed, it has the cone's friction
    along its edges, the first along tangent 1, and between two 71 % of it with 4 edges, 92 % with 8.""",
    parameter="friction_edges",
    least=3,
    when="Raise to 8 where contacts slide, or use all of their friction, in any direction.",
    minimum=3,
    maximum=64,
)
DISTRIBUTION = option(
    "distribution",
    "string",
    "least_torque",
    """Which of the contact forces with the same effect on the base is taken: least joint torque,
    least force, or whatever the solver returns.""",
    when="least_force for an arm on a table, and where ground may be more slippery than believed, at the price of some "
    "torque; none to see the solver's own, as in the papers.",
    choices=DISTRIBUTIONS,
)

# What only Python callers and experiments choose (``ControllerSettings.options``).

POLYGON = one_of("polygon", POLYGONS)
"""Whether the pyramid lies inside the friction cone or around it."""

CONE = one_of("cone", CONES)
"""Cone of a sticking contact in the distribution of coulomb/qp: the pyramid, or the exact cone."""

SLIDING = one_of("sliding", SLIDINGS)
"""What a loaded contact does that slides under coulomb/qp: it stays on the ground (coulomb), or parts at mu
times its slip as in the paper (parting), for which the others pay with torques that grow without bound
with mu."""

CONSISTENCY = one_of("consistency", CONSISTENCIES)
"""When planned joint motion would make contacts slip or collide: replace it by the closest motion that does
not, or only report it."""

REGULARISATION = Option("regularisation", annotation="float")
"""One-stage solvers: how far contacts yield in exchange for unique forces, relative to the trace of their
inertia."""

DISTURBANCE_PRICE = Option("rho", annotation="float", default=1e4)
"""Solver qcqp: price of leaving the plan where forces and torques have no solution for it, relative to that
of the torques which it saves."""

# Properties of the robot that the controller supplies.
TORQUE_LIMITS = Option("torque_limits", supplied=True, annotation="ArrayLike | None")  # (na,) N·m
# (na,) R/Kt^2, W/(N·m)^2, or None
LOSS_WEIGHTS = Option("weights", supplied=True, annotation="ArrayLike | None")
# (n, 3) N, world frame
MEASURED_FORCES = Option("forces", supplied=True, annotation="ArrayLike | None")
