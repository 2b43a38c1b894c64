"""Registry of the contact models. A new model is one file and one row.

Rows describe what a model can do (``ContactModel``); the file of a model is loaded when it first solves.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from contact_id_controller.exceptions import StateError, UnknownModelError
from contact_id_controller.models.contact_model import ContactModel, Normal, Tangential, literal
from contact_id_controller.models.options import (
    CONE,
    CONSISTENCY,
    DISTRIBUTION,
    DISTURBANCE_PRICE,
    EDGES,
    LOSS_WEIGHTS,
    MEASURED_FORCES,
    POLYGON,
    REGULARISATION,
    SLIDING,
    TORQUE_LIMITS,
)
from contact_id_controller.parameter_spec import ParameterSpec

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from contact_id_controller.models.names import Friction, Options, Solver
    from contact_id_controller.problem import How, Problem
    from contact_id_controller.solution import Solution

    class DoorOptions(How, Options, total=False):
        """The options of doors that make a problem and solve it."""


PROBLEM_OPTIONS = ("velocity_product_term", "contact_time_constant_s", "penetration_gain")
"""The options of ``problem.ProblemMaker``."""

ROWS: dict[tuple[str, str], ContactModel] = {}
"""(friction, solver) -> row."""


def register(row: ContactModel) -> ContactModel:
    """Add a row, so that ``solve`` accepts the model.

    Raises:
        UnknownModelError: the pair exists already, or another model's option has the name of a
            parameter and means something else.
    """
    if row.pair in ROWS:
        raise UnknownModelError(f"the model {row} exists already")
    specs = [one.parameter for other in ROWS.values() for one in other.options]
    taken = {spec.name: spec for spec in specs if spec is not None}
    for one in row.options:
        spec = one.parameter
        if spec is not None and taken.get(spec.name, spec) != spec:
            raise UnknownModelError(
                f"the parameter {spec.name!r} of {row} exists already with another meaning; "
                "give this option a parameter of another name"
            )
    ROWS[row.pair] = row
    return row


for _row in (
    ContactModel(
        "coulomb",
        "qp",
        "in doubt, and it is the default: fast, no history, any number of contacts",
        Normal.COMPLEMENTARITY,
        Tangential.COULOMB,
        options=(EDGES, POLYGON, CONE, SLIDING, DISTRIBUTION, CONSISTENCY),
        engine=True,
        switchable=True,
        steep_friction=3.0,
        active_set="active_set:of_coulomb_qp",
        frames="coulomb_qp:prepare_frames",
    ),
    ContactModel(
        "coulomb",
        "qp_one_stage",
        "a plan may contradict the contacts and must be answered softly",
        Normal.COMPLEMENTARITY_FREE,
        Tangential.COULOMB,
        options=(EDGES, POLYGON, CONSISTENCY, REGULARISATION.by_default(1e-6)),
        yields=True,
        switchable=True,
    ),
    ContactModel(
        "coulomb",
        "lcp",
        "contacts slide for long: what slid last is tried first",
        Normal.COMPLEMENTARITY,
        Tangential.COULOMB,
        options=(EDGES, POLYGON, DISTRIBUTION, CONSISTENCY),
        engine=True,
        switchable=True,
        steep_friction=3.0,
        # The polygon of an almost unbounded coefficient would hold nearly dependent feet with
        # enormous forces.
        without_slip=("no_slip", "lcp"),
    ),
    ContactModel(
        "coulomb",
        "ncp",
        "contacts slide, in any direction, and friction is to be neither less nor more than Coulomb's law",
        Normal.COMPLEMENTARITY,
        Tangential.COULOMB,
        options=(DISTRIBUTION, CONSISTENCY),
        exact_cone=True,
        uses_history=True,
        engine=True,
        switchable=True,
        without_slip=("no_slip", "lcp"),
        iterative=True,
        accuracy=1e-7,
    ),
    ContactModel(
        "coulomb",
        "lcp_min_diff",
        "up to 4 contacts with several possible motions: a held object must not be let go",
        Normal.COMPLEMENTARITY,
        Tangential.COULOMB,
        options=(EDGES, POLYGON, DISTRIBUTION.by_default("none"), CONSISTENCY),
        uses_history=True,
        most_contacts=4,
    ),
    ContactModel(
        "coulomb",
        "qcqp",
        "torque limits matter or motors get hot; nothing is meant to slip",
        Normal.HOLDING,
        Tangential.COULOMB,
        options=(TORQUE_LIMITS, LOSS_WEIGHTS, CONSISTENCY, DISTURBANCE_PRICE),
        exact_cone=True,
        practical_contacts=100,
    ),
    ContactModel(
        "no_slip",
        "qp",
        "the ground has more friction than is ever used, and every touching foot is to hold at once",
        Normal.COMPLEMENTARITY_FREE,
        Tangential.NO_SLIP,
        options=(DISTRIBUTION, CONSISTENCY),
        switchable=True,
        active_set="active_set:of_no_slip_qp",
    ),
    ContactModel(
        "no_slip",
        "qp_one_stage",
        "as no_slip/qp, softly; not for walking",
        Normal.COMPLEMENTARITY_FREE,
        Tangential.NO_SLIP,
        options=(CONSISTENCY, REGULARISATION.by_default(1e-2)),  # see the model
        home="no_slip_qp:solve_no_slip_qp_one_stage",
        yields=True,
    ),
    ContactModel(
        "no_slip",
        "lcp",
        "the ground has more friction than is ever used, and contacts may part",
        Normal.COMPLEMENTARITY,
        Tangential.NO_SLIP,
        options=(EDGES, DISTRIBUTION, CONSISTENCY),
        engine=True,
        switchable=True,
        active_set="active_set:of_no_slip_lcp",
        frames="no_slip_lcp:prepare_frames",
    ),
    ContactModel(
        "viscous",
        "lcp",
        "wet or greasy contacts; not for walking on dry ground",
        Normal.COMPLEMENTARITY,
        Tangential.VISCOUS,
        options=(DISTRIBUTION, CONSISTENCY),
        engine=True,
    ),
    ContactModel(
        "none",
        "none",
        "only to compare with: contact ignored",
        Normal.NONE,
        Tangential.NONE,
        home="no_contact:solve_no_contact",
    ),
    ContactModel(
        "none",
        "sensed",
        "only to compare with: measured contact forces, as they are",
        Normal.NONE,
        Tangential.NONE,
        options=(MEASURED_FORCES,),
        home="no_contact:solve_sensed",
    ),
    ContactModel(
        "none",
        "pid",
        "only to compare with: feedback of the joints alone, no dynamics",
        Normal.NONE,
        Tangential.NONE,
        home=None,
        switchable=True,
    ),
):
    register(_row)


def row_of(friction: str, solver: str) -> ContactModel:
    """Row of a pair, including those that only the controller uses (feedback alone).

    Raises:
        UnknownModelError: no such pair; the message lists the possible ones.
    """
    row = ROWS.get((friction, solver))
    if row is None:
        pairs = sorted(map(str, ROWS.values()))
        close = difflib.get_close_matches(f"{friction}/{solver}", pairs, n=1, cutoff=0.8)
        hint = f"did you mean {close[0]}? The" if close else "the"
        raise UnknownModelError(
            f"no solver {solver!r} for friction {friction!r}; {hint} possible pairs "
            f"friction/solver are {', '.join(pairs)}"
        )
    return row


def contact_models() -> list[ContactModel]:
    """Rows of all models that predict contact forces."""
    return [row for row in ROWS.values() if row.predicts_forces]


def model_parameters() -> list[ParameterSpec]:
    """Parameters that set options of models, each once."""
    found: dict[str, ParameterSpec] = {}
    for row in ROWS.values():
        for one in row.options:
            if one.parameter is not None:
                found.setdefault(one.parameter.name, one.parameter)
    return list(found.values())


def available() -> list[tuple[str, str]]:
    """(friction, solver) pairs that ``solve`` accepts."""
    return [pair for pair, row in ROWS.items() if not row.feedback_only]


def check(friction: str, solver: str) -> None:
    """Raise for a pair that ``solve`` does not accept.

    Raises:
        UnknownModelError: the message lists the possible pairs.
    """
    if row_of(friction, solver).feedback_only:
        pairs = ", ".join("/".join(pair) for pair in sorted(available()))
        raise UnknownModelError(
            f"{friction}/{solver} is feedback alone and solves no problem; the possible pairs "
            f"friction/solver are {pairs}"
        )


def options(friction: str, solver: str) -> frozenset[str]:
    """Names of the keyword options that a model takes."""
    check(friction, solver)
    return ROWS[friction, solver].accepted


def solve(
    problem: Problem,
    friction: Friction = "coulomb",
    solver: Solver = "qp",
    warm_start: Solution | None = None,
    **keywords: Unpack[Options],
) -> Solution:
    """Solve a contact problem with the named model; ``keywords`` are the model's own options.

    Raises:
        UnknownModelError: an impossible pair, or an option the model does not have.
        StateError: something else than a problem.
    """
    row = solvable(friction, solver)
    # Its class would bring Pinocchio, which the list of parameters needs not.
    if not hasattr(problem, "store"):
        raise StateError(f"problem must be a Problem, got a {type(problem).__name__}")
    solution: Solution = row.function(problem, row.complete(keywords), warm_start)
    return solution


def solvable(friction: str, solver: str) -> ContactModel:
    """Row of a model that solves problems.

    Raises:
        UnknownModelError: see ``check``.
    """
    row = ROWS.get((friction, solver))
    if row is None or row.feedback_only:
        check(friction, solver)
    return row_of(friction, solver) if row is None else row


def parted(keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keywords into the options of problems, see ``problem.ProblemMaker``, and those of models."""
    how = {name: value for name, value in keywords.items() if name in PROBLEM_OPTIONS}
    return how, {name: value for name, value in keywords.items() if name not in how}


def names_text() -> str:
    """Source text of ``models/names.py``: names of models and options for type checkers."""
    taken = {one.keyword: one.type_text() for row in ROWS.values() for one in row.options}
    friction, solver = (literal(dict.fromkeys(names)) for names in zip(*available()))
    fields = "\n".join(f"    {keyword}: {type_text}" for keyword, type_text in taken.items())
    return f'''"""The names that ``solve`` takes, for editors and type checkers.

Written by `contact_id parameters --write` from the rows of the registry; changes are lost.
"""

# fmt: off
from __future__ import annotations

from typing import Literal, TypedDict

from numpy.typing import ArrayLike

Friction = {friction}
Solver = {solver}


class Options(TypedDict, total=False):
    """The keyword options of all models; ``options`` lists those that a model takes."""

{fields}
'''


def __getattr__(name: str) -> dict[tuple[str, str], Callable[..., Solution]]:
    """``MODELS``, the table (friction, solver) -> function; it loads every model."""
    if name != "MODELS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return {pair: ROWS[pair].function for pair in available()}
