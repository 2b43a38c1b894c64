"""The first paper's locomotion experiments: one run, from its description to its figures.

A quadruped trots between way-points on one of five terrains under one of ten controllers
(sections 7 and 8; tables 3 to 5, figures 14 to 17), in MuJoCo or in the rigid time stepper. Gait
planner, controller and simulator run in one process.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.runs.one_process import (
    InProcessRun,
    Period,
    controller_settings,
    section,
)
from contact_id_controller.settings.controller import ControllerSettings
from experiments.papers import AS_PRINTED, kinetic_energy
from experiments.papers.locomotion_figures import Companion, figures
from experiments.papers.stabiliser import StabilisedRun
from experiments.papers.terrains import Ground


class ControllerKind(NamedTuple):
    """A controller of the comparison: its name in the paper, its settings, and its friction.

    unbounded: it takes friction to be infinite.  stabilised: with the balance stabiliser.
    """

    title: str
    settings: dict[str, Any]
    unbounded: bool = False
    stabilised: bool = False


def _model(friction, solver, **more):
    return {"friction": friction, "solver": solver, **more}


CONTROLLERS = {
    "qp_mu": ControllerKind("ID(t) QP, mu", _model("coulomb", "qp", options=AS_PRINTED)),
    "qp_inf": ControllerKind("ID(t) QP, inf", _model("coulomb", "qp", options=AS_PRINTED), True),
    "qp_energy_mu": ControllerKind(
        "ID(t) QP, mu, kinetic energy",
        _model(*kinetic_energy.MODEL.pair),
    ),
    "qp_one_stage_mu": ControllerKind("ID(t) one-stage QP, mu", _model("coulomb", "qp_one_stage")),
    "lcp_mu": ControllerKind("ID(t) LCP, mu", _model("coulomb", "lcp")),
    "no_slip_lcp": ControllerKind("ID(t) LCP, inf", _model("no_slip", "lcp"), True),
    "qcqp_mu": ControllerKind("ID(t) QCQP, mu", _model("coulomb", "qcqp")),
    "pid": ControllerKind("PID", _model("none", "pid"), stabilised=True),
    "sensed_1": ControllerKind("ID(t-1)", _model("none", "sensed", sensed_delay=1)),
    "sensed_2": ControllerKind("ID(t-2)", _model("none", "sensed", sensed_delay=2)),
}
"""Name -> controller."""

SETTINGS = ("ours", "papers")
"""ours: contact velocity fades over 50 ms, and the velocity product term is on. papers: it is gone
after one period, and that term is off."""


@dataclasses.dataclass(frozen=True)
class LocomotionRun:
    """One run; every value is a string or a number, so it goes into JSON as it is.

    Attributes:
        controller: a name of ``CONTROLLERS``.  terrain: a name of ``terrains.TERRAINS``.
        engine: ``mujoco`` or ``rigid``.
        engine_model: contact law of the rigid engine on rigid ground, ``friction/solver``.
        settings: one of ``SETTINGS``.
        robot: configuration with a gait planner.  seed: of bumps and friction.
        duration_s: simulated time.
    """

    controller: str
    terrain: str
    engine: str = "mujoco"
    engine_model: str = "coulomb/lcp"
    settings: str = "ours"
    robot: str = "quadruped"
    seed: int = 0
    duration_s: float = 30.0


def run_locomotion(run: LocomotionRun, progress=None) -> dict[str, Any]:
    """Make one run and measure it; ends early when the robot falls.

    Args:
        progress: called with the simulated time, s, ten times a second of it.

    Returns:
        ``run``: the description; ``figures``: single numbers; ``series``: decimated courses over
        time; all ready for JSON (None where a figure does not exist). See ``locomotion_figures``.

    Raises:
        ConfigurationError: a name or number that does not exist.
    """
    periods = itertools.count()

    def each(period: Period) -> None:
        companion.add(period)
        if progress is not None and next(periods) % 100 == 0:
            progress(period.after.time_s)

    with kinetic_energy.registered():
        walk, ground = prepare(run)
        companion = Companion(walk.robot, walk.controller, walk.planner)
        record = walk.record(run.duration_s, each=each, ground_height_m=ground.height_m)
    result = figures(record, companion)
    result["figures"] |= {
        "finished": not record.fell,
        "error": walk.error,
        "refused_commands": walk.world.refused_commands,
        "unsolved_steps": getattr(walk.world, "unsolved_steps", None),
    }
    return {"run": dataclasses.asdict(run), **result}


def prepare(
    run: LocomotionRun,
    planner: Mapping[str, Any] = MappingProxyType({}),
    controller: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[InProcessRun, Ground]:
    """Robot, controller, planner and simulator of a run, at rest on the ground.

    planner, controller: changes of their settings beside those that the run asks for.
    The controller ``qp_energy_mu`` exists within ``kinetic_energy.registered`` only.

    Raises:
        ConfigurationError: a name or number that does not exist.
    """
    if run.controller not in CONTROLLERS:
        raise ConfigurationError(
            f"no controller {run.controller!r}; there is {choices(CONTROLLERS)}"
        )
    if not (math.isfinite(run.duration_s) and run.duration_s > 0.0):
        raise ConfigurationError(f"duration_s must be positive, got {run.duration_s}")
    kind = CONTROLLERS[run.controller]
    ground = Ground.make(run.terrain, run.seed)
    settings = dataclasses.replace(_settings(run, kind, ground), **controller)
    robot = settings.robot()
    world = ground.world(settings, run.engine, tuple(run.engine_model.split("/")))
    feet = ground.controller_feet(robot, settings, kind.unbounded)
    kind_of_run = StabilisedRun if kind.stabilised else InProcessRun
    walk = kind_of_run(
        run.robot,
        settings,
        world,
        feet=feet,
        planner=ground.planner_changes() | planner,
        surface=ground.field if planner.get("ground") == "map" else None,
    )
    return walk, ground


def _settings(run: LocomotionRun, kind: ControllerKind, ground: Ground) -> ControllerSettings:
    period_s = section(run.robot, "controller")["period_s"]
    # Speed limits bound the next period's speed, not, by a slower approach, ordinary swings.
    changes, experimental = dict(kind.settings), {"limit_time_constant_s": period_s}
    for name in ControllerSettings.experimental() & set(changes):
        experimental[name] = changes.pop(name)
    changes.setdefault("contact_sources", ["geometry", "schedule"])  # papers know their ground
    changes["friction_coefficient"] = [ground.assumed_friction(kind.unbounded)]
    if run.settings == "papers":
        changes["contact_time_constant_s"] = period_s
        experimental["velocity_product_term"] = False
    elif run.settings != "ours":
        raise ConfigurationError(f"no settings {run.settings!r}; there is {choices(SETTINGS)}")
    return controller_settings(run.robot, experimental, **changes)
