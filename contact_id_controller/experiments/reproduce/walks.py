"""First paper, tables 3 to 5, figures 14 to 17: the quadruped trots on five terrains."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from contact_id_controller.experiments.locomotion import CONTROLLERS, LocomotionRun, run_locomotion
from contact_id_controller.experiments.reproduce.runs import RunDescription
from contact_id_controller.experiments.terrains import TERRAINS

NAME = "locomotion"
QUICK_CONTROLLERS = ("qp_mu", "lcp_mu", "no_slip_lcp", "qcqp_mu", "pid", "sensed_1")
MATCHING = {"qp_mu": "coulomb/qp", "qp_energy_mu": "coulomb/qp", "no_slip_lcp": "no_slip/lcp"}
"""Controller -> contact law of the rigid engine that is its own, where coulomb/lcp is not."""

PREDICTING = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp")
RIGID = ("rigid_high", "rigid_low")


def runs(quick: bool) -> list[RunDescription]:
    """Our settings in both engines everywhere; the papers' in the rigid one, on what they ran on.

    In the rigid engine the controllers that predict forces also meet the contact law that is
    theirs. The quick runs leave out what only completes the tables.
    """
    duration = 5.0 if quick else 30.0
    controllers = QUICK_CONTROLLERS if quick else tuple(CONTROLLERS)
    chosen = []
    for terrain in TERRAINS:
        for controller in controllers:
            chosen.append(LocomotionRun(controller, terrain, duration_s=duration))
            if not quick or controller in ("qp_mu", "lcp_mu", "qcqp_mu"):
                chosen.append(LocomotionRun(controller, terrain, "rigid", duration_s=duration))
    for terrain in RIGID if quick else TERRAINS:
        for controller in (PREDICTING if quick else controllers):
            run_ = LocomotionRun(controller, terrain, "rigid", settings="papers",
                                 duration_s=duration)
            chosen.append(run_)
            if controller in MATCHING and terrain in RIGID:
                chosen.append(dataclasses.replace(run_, engine_model=MATCHING[controller]))
    return [describe(one) for one in dict.fromkeys(chosen)]


def describe(one: LocomotionRun) -> RunDescription:
    """The description of a walk."""
    return RunDescription(NAME, dataclasses.asdict(one))


def run(description: RunDescription) -> dict[str, Any]:
    """Walk; the figures and courses of ``locomotion_figures``."""
    begun = time.perf_counter()
    result = run_locomotion(LocomotionRun(**description.parameters))
    return {"figures": result["figures"], "series": result["series"],
            "wall_s": time.perf_counter() - begun}


def select(results: Sequence, **wanted) -> dict[str, Any]:
    """Controller -> result, of those whose parameters have these values."""
    return {r.parameters["controller"]: r for r in results
            if all(r.parameters[name] == value for name, value in wanted.items())}
