"""The options that several contact models share: keyword, parameter, values, meaning."""

from __future__ import annotations

from typing import Any

from contact_id_controller.models.contact_model import Option, literal
from contact_id_controller.parameter_spec import ParameterSpec

DISTRIBUTIONS = ("least_torque", "least_force", "none")
CONSISTENCIES = ("project", "report")
POLYGONS = ("inscribed", "circumscribed")
OBJECTIVES = ("contact_velocity", "kinetic_energy")
CONES = ("pyramid", "exact")
BACKENDS = ("kernel", "quadprog")
SLIDINGS = ("coulomb", "parting")
FORMS = ("implicit", "explicit")


def option(
    keyword: str,
    kind: str,
    default: Any,
    description: str,
    *,
    parameter: str = "",
    unset: Any = None,
    live: bool = True,
    **columns: Any,
) -> Option:
    """An option that YAML sets by the parameter of its name, or of the name ``parameter``.

    kind, default, description, live and the other columns (unit, minimum, maximum, choices): as for
    ``ParameterSpec``.
    """
    text = " ".join(description.split())
    name = parameter or keyword
    return Option(
        keyword, ParameterSpec(name, kind, default, text, live=live, **columns), unset=unset
    )


EDGES = option(
    "edges",
    "integer",
    4,
    """Edges of the pyramid that stands for the friction cone. Inscribed, it has the cone's friction
    along its edges, the first along tangent 1, and cos(pi/edges) of it between two: 71 % with 4 edges,
    92 % with 8, so what slides that way stops after up to 1.41 or 1.08 times the distance.""",
    parameter="friction_edges",
    minimum=3,
    maximum=64,
)
POLYGON = option(
    "polygon",
    "string",
    "inscribed",
    "Whether that pyramid lies inside the friction cone or around it.",
    parameter="friction_polygon",
    choices=POLYGONS,
)
CONE = option(
    "cone",
    "string",
    "pyramid",
    """Cone of a sticking contact in the distribution of coulomb/qp: the pyramid, or the exact
    cone.""",
    live=False,
    choices=CONES,
)
SLIDING = option(
    "sliding",
    "string",
    "coulomb",
    """What a loaded contact does that slides under coulomb/qp: it stays on the ground (coulomb), or
    parts at mu times its slip as in the paper (parting), for which the others pay with torques that
    grow without bound with mu.""",
    live=False,
    choices=SLIDINGS,
)
OBJECTIVE = option(
    "objective",
    "string",
    "contact_velocity",
    """What stage I minimises: the velocity of the contacts, or the kinetic energy of the whole
    robot as the paper writes it (which brakes a moving robot).""",
    live=False,
    choices=OBJECTIVES,
)
DISTRIBUTION = option(
    "distribution",
    "string",
    "least_torque",
    """Which of the contact forces with the same effect on the base is taken: least joint torque,
    least force, or whatever the solver returns.""",
    choices=DISTRIBUTIONS,
)
CONSISTENCY = option(
    "consistency",
    "string",
    "project",
    """When planned joint motion would make contacts slip or collide: replace it by the closest
    motion that does not, or only report it.""",
    choices=CONSISTENCIES,
)
REGULARISATION = option(
    "regularisation",
    "number",
    0.0,
    """One-stage solvers: how far contacts yield in exchange for unique forces, relative to the trace
    of their inertia; 0: the solver's own default.""",
    unset=0.0,
    minimum=0.0,
    maximum=1.0,
)
DISTURBANCE_PRICE = option(
    "rho",
    "number",
    1e4,
    """Solver qcqp: price of leaving the plan where forces and torques have no solution for it,
    relative to that of the torques which it saves.""",
    parameter="disturbance_price",
    minimum=1e-3,
    maximum=1e12,
)

# What only Python callers choose: the same result, computed by a library for comparison.
BACKEND = Option("backend", annotation=literal(BACKENDS))

# What the controller knows of the robot.
TORQUE_LIMITS = Option("torque_limits", supplied=True, annotation="ArrayLike | None")  # (na,) N·m
LOSS_WEIGHTS = Option(
    "weights", supplied=True, annotation="ArrayLike | None"
)  # (na,) R/Kt^2, W/(N·m)^2, or None
MEASURED_FORCES = Option(
    "forces", supplied=True, annotation="ArrayLike | None"
)  # (n, 3) N, world frame
