"""First paper, figures 6 and 15: torques under an indeterminate contact model.

With and without stage II; and appendix A, whose table scores the controllers by what they do.

The paper's quadruped trots in MuJoCo. Stage I alone takes whatever contact forces its solver ends
with (``distribution: none``); stage II the ones of least torque among all that do the same to the
base (``least_torque``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.report.metrics import measure, rates
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.runs.record import RunRecord
from experiments.papers import AS_PRINTED
from experiments.papers.store import RunDescription

NAME = "chatter"
ROBOT = "quadruped"
STAGE_I, STAGE_II = "none", "least_torque"
HIGH_MU, LOW_MU = 1.0, 0.1
MODELS = ("no_slip/lcp", "no_slip/qp", "coulomb/lcp", "coulomb/qp")
"""The columns of the paper's table 6, in its order."""

WALK, TWO_FEET = 0.75, 0.55
"""Duty factors: of the paper's trot, with two to four contacts; and of one on two feet, which come
together for a moment only."""

TRACE = (1.0, 1.6)
"""Seconds of the torque traces: two cycles of the gait, once it is under way."""

SETTLED_S = 0.5
UP = (0.0, 0.0, 1.0)
FIGURES = (
    "fell_time_s",
    "torque_mean_nm",
    "torque_rate_mean_nm_s",
    "normal_force_relative_error",
    "solve_time_median_s",
)
LOADED = 0.02
"""A foot carries load above this part of the weight."""


class Case(NamedTuple):
    """The parameters of a run, as they stand in its description."""

    model: str
    distribution: str
    mu: float
    duty_factor: float = WALK
    duration_s: float = 10.0


def runs(quick: bool) -> list[RunDescription]:
    """Every model with and without stage II, on much and on little friction."""
    duration = 4.0 if quick else 10.0
    cases = [
        Case(model, stage, mu, WALK, duration)
        for mu in (HIGH_MU, LOW_MU)
        for model in MODELS
        for stage in (STAGE_I, STAGE_II)
    ]
    cases += [
        Case(model, STAGE_II, mu, TWO_FEET, duration)
        for mu in (HIGH_MU, LOW_MU)
        for model in MODELS
    ]
    return [RunDescription(NAME, case._asdict()) for case in cases]


def run(description: RunDescription) -> dict[str, Any]:
    """Trot; torques and how they change, forces and how evenly they are spread."""
    case = Case(**description.parameters)
    friction, solver = case.model.split("/")
    settings = controller_settings(
        ROBOT,
        {"options": AS_PRINTED},
        friction=friction,
        solver=solver,
        distribution=case.distribution,
        friction_coefficient=[case.mu],
    )
    world = mujoco_robot(settings, case.mu)
    walk = InProcessRun(ROBOT, settings, world, planner={"duty_factor": case.duty_factor})
    return _figures(walk.record(case.duration_s), walk.robot.weight)


def _figures(record: RunRecord, weight_n: float) -> dict[str, Any]:
    """Figures of the periods after `SETTLED_S`, or of the second half of a shorter run."""
    settled = record.part(slice(min(round(SETTLED_S / record.period_s), len(record) // 2), None))
    predicted, contact = settled.predicted_forces[..., 2], settled.contact
    rate = rates(settled.torques, settled.time_s)
    forces_rate = rates(predicted, settled.time_s)
    # Within a phase of the gait nothing lands or lifts: what jumps there is chatter.
    calm = (contact[1:] == contact[:-1]).all(axis=1)
    several = contact.sum(axis=1) >= 3
    loaded = (predicted > LOADED * weight_n).sum(axis=1) / np.maximum(contact.sum(axis=1), 1)
    first, last = (round(t / record.period_s) for t in TRACE)
    return {
        **measure(settled, weight_n, UP, FIGURES),
        "torque_rate_largest_nm_s": rate.max(initial=0.0),
        "calm_torque_rate_mean_nm_s": rate[calm].mean() if calm.any() else None,
        "calm_torque_rate_largest_nm_s": rate[calm].max(initial=0.0),
        "calm_force_rate_n_s": forces_rate[calm].mean() if calm.any() else None,
        "share_of_feet_loaded": loaded[several].mean() if several.any() else None,
        "largest_normal_force_of_weight": float(predicted.sum(axis=1).max() / weight_n),
        "trace_start_s": TRACE[0],
        "trace_period_s": record.period_s,
        "torque_trace_nm": record.torques[first:last, TRACED_JOINT],
    }


TRACED_JOINT = 2  # a knee
