"""Which contact models exist: (friction, solver) -> function. A new model is one file and one row."""

from __future__ import annotations

import inspect

from contact_id_controller.exceptions import UnknownModelError, choices
from contact_id_controller.models.coulomb_lcp import solve_coulomb_lcp
from contact_id_controller.models.coulomb_lcp_min_diff import solve_coulomb_lcp_min_diff
from contact_id_controller.models.coulomb_qcqp import solve_coulomb_qcqp
from contact_id_controller.models.coulomb_qp import solve_coulomb_qp
from contact_id_controller.models.coulomb_qp_one_stage import solve_coulomb_qp_one_stage
from contact_id_controller.models.no_contact import solve_no_contact, solve_sensed
from contact_id_controller.models.no_slip_lcp import solve_no_slip_lcp
from contact_id_controller.models.no_slip_qp import solve_no_slip_qp, solve_no_slip_qp_one_stage
from contact_id_controller.models.viscous_lcp import solve_viscous_lcp
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

MODELS = {
    ("coulomb", "qp"): solve_coulomb_qp,
    ("coulomb", "qp_one_stage"): solve_coulomb_qp_one_stage,
    ("coulomb", "lcp"): solve_coulomb_lcp,
    ("coulomb", "lcp_min_diff"): solve_coulomb_lcp_min_diff,
    ("coulomb", "qcqp"): solve_coulomb_qcqp,
    ("no_slip", "qp"): solve_no_slip_qp,
    ("no_slip", "qp_one_stage"): solve_no_slip_qp_one_stage,
    ("no_slip", "lcp"): solve_no_slip_lcp,
    ("viscous", "lcp"): solve_viscous_lcp,
    ("none", "none"): solve_no_contact,
    ("none", "sensed"): solve_sensed,
}

_OPTIONS = {
    function: frozenset(inspect.signature(function).parameters) - {"problem", "warm_start"}
    for function in MODELS.values()
}


def available() -> list[tuple[str, str]]:
    """The (friction, solver) pairs that ``solve`` accepts."""
    return list(MODELS)


def check(friction: str, solver: str) -> None:
    """Refuse a pair that does not exist.

    Raises:
        UnknownModelError: the message lists the possible pairs.
    """
    if (friction, solver) not in MODELS:
        pairs = ", ".join(f"{f}/{s}" for f, s in sorted(MODELS))
        raise UnknownModelError(
            f"no solver {solver!r} for friction {friction!r}; the possible pairs "
            f"friction/solver are {pairs}"
        )


def options(friction: str, solver: str) -> frozenset[str]:
    """Names of the keyword options that a model takes."""
    check(friction, solver)
    return _OPTIONS[MODELS[friction, solver]]


def solve(
    problem: Problem,
    friction: str = "coulomb",
    solver: str = "qp",
    warm_start: Solution | None = None,
    **keywords,
) -> Solution:
    """Solve a contact problem with the named model; ``keywords`` are the model's own options.

    Raises:
        UnknownModelError: an impossible pair, or an option the model does not have.
    """
    function = MODELS.get((friction, solver))
    if function is None:
        check(friction, solver)
    if not _OPTIONS[function] >= keywords.keys():
        unknown = sorted(keywords.keys() - _OPTIONS[function])
        raise UnknownModelError(
            f"{friction}/{solver} has no option {unknown[0]!r}; it has {choices(_OPTIONS[function])}"
        )
    return function(problem, warm_start=warm_start, **keywords)
