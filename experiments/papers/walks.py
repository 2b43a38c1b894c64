"""First paper, tables 3 to 5, figures 14 to 17: the quadruped trots on five terrains."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from experiments.papers.locomotion import CONTROLLERS, LocomotionRun, run_locomotion
from experiments.papers.store import RunDescription
from experiments.papers.terrains import TERRAINS

NAME = "locomotion"
QUICK_CONTROLLERS = ("qp_mu", "lcp_mu", "no_slip_lcp", "qcqp_mu", "pid", "sensed_1")
MATCHING = {"qp_mu": "coulomb/qp", "qp_energy_mu": "coulomb/qp", "no_slip_lcp": "no_slip/lcp"}
"""Controller -> contact law of the rigid engine that is its own, where coulomb/lcp is not."""

PREDICTING = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp")
COULOMB = ("qp_mu", "lcp_mu", "qcqp_mu")
RIGID = ("rigid_high", "rigid_low")
RANDOM = "height_field"
SEEDS, QUICK_SEEDS = range(10), range(2)


def runs(quick: bool) -> list[RunDescription]:
    """Our settings and the papers' in both engines; on random ground with several seeds.

    In the rigid engine the controllers that predict forces also meet the contact law that is
    theirs. Of the papers' settings on random ground only Coulomb's controllers get all seeds: the
    others fall. The quick runs leave out what only completes the tables.
    """
    chosen: list[LocomotionRun] = []

    def add(settings, engine, terrain, controllers, seeds):
        chosen.extend(
            LocomotionRun(
                controller,
                terrain,
                engine,
                settings=settings,
                seed=seed,
                duration_s=5.0 if quick else 30.0,
            )
            for controller in controllers
            for seed in (seeds if terrain == RANDOM else (0,))
        )

    for terrain in TERRAINS:
        for engine in ("mujoco", "rigid"):
            if quick:
                # With the papers' settings only what their table 5 is about.
                walked = QUICK_CONTROLLERS if engine == "mujoco" else COULOMB
                add("ours", engine, terrain, walked, QUICK_SEEDS)
                if terrain in RIGID:
                    add("papers", engine, terrain, PREDICTING, QUICK_SEEDS)
                continue
            add("ours", engine, terrain, CONTROLLERS, SEEDS)
            add("papers", engine, terrain, CONTROLLERS, SEEDS[:1])
            add("papers", engine, terrain, COULOMB, SEEDS)
    for one in tuple(chosen):
        if (one.settings, one.engine) == ("papers", "rigid") and (
            one.terrain in RIGID and one.controller in MATCHING
        ):
            chosen.append(dataclasses.replace(one, engine_model=MATCHING[one.controller]))
    return [describe(one) for one in dict.fromkeys(chosen)]


def describe(one: LocomotionRun) -> RunDescription:
    """The description of a walk."""
    return RunDescription(NAME, dataclasses.asdict(one))


def run(description: RunDescription) -> dict[str, Any]:
    """Walk; the figures and courses of ``locomotion_figures``."""
    begun = time.perf_counter()
    result = run_locomotion(LocomotionRun(**description.parameters))
    return {
        "figures": result["figures"],
        "series": result["series"],
        "wall_s": time.perf_counter() - begun,
    }


def chosen(results: Sequence, **wanted) -> list:
    """Those whose parameters have these values."""
    return [
        r for r in results if all(r.parameters[name] == value for name, value in wanted.items())
    ]


def select(results: Sequence, **wanted) -> dict[str, Any]:
    """Controller -> result, of those whose parameters have these values; seed 0 unless said.

    On rigid ground the simulated contact law is coulomb/lcp unless said.
    """
    wanted = {"seed": 0, "engine_model": "coulomb/lcp", **wanted}
    return {r.parameters["controller"]: r for r in chosen(results, **wanted)}
