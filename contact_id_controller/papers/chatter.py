"""First paper, figures 6 and 15: torques under an indeterminate contact model, with and without
stage II; and appendix A, whose table scores the controllers by what they do.

The paper's quadruped trots in MuJoCo. Stage I alone takes whatever contact forces its solver ends
with (``distribution: none``); stage II the ones of least torque among all that do the same to the
base (``least_torque``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.exceptions import SimulationError
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, feet_of
from contact_id_controller.runs.store import RunDescription
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.simulation.recording import FallDetector

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
        friction=friction,
        solver=solver,
        distribution=case.distribution,
        friction_coefficient=[case.mu],
    )
    world = MujocoRobot(
        settings.urdf,
        feet_of(settings),
        joints=settings.joints,
        friction=case.mu,
        period_s=settings.period_s,
    )
    walk = InProcessRun(ROBOT, settings, world, planner={"duty_factor": case.duty_factor})
    fall = FallDetector(walk.state, True)
    rows, fell_s = [], None
    for _ in range(round(case.duration_s / settings.period_s)):
        try:
            period = walk.advance()
        except SimulationError:
            fell_s = walk.state.time_s
            break
        result = period.result
        rows.append(
            (
                result.torques,
                result.forces[:, 2],
                period.forces[:, 2],
                result.contact,
                result.solve_time_s,
            )
        )
        if fall.has_fallen(period.after):
            fell_s = fall.fell_time_s
            break
    return {"fell_s": fell_s, **_figures(rows, settings.period_s, walk.robot.weight)}


def _figures(rows, period_s: float, weight_n: float) -> dict[str, Any]:
    torques, predicted, real, contact, solve_s = (np.array(column) for column in zip(*rows))
    settled = slice(min(round(SETTLED_S / period_s), len(rows) // 2), None)
    rate = np.abs(np.diff(torques, axis=0)) / period_s
    forces_rate = np.abs(np.diff(predicted, axis=0)) / period_s
    # Within a phase of the gait nothing lands or lifts: what jumps there is chatter.
    same = (contact[1:] == contact[:-1]).all(axis=1)
    calm = same & (np.arange(len(same)) >= settled.start)
    several = contact.sum(axis=1) >= 3
    loaded = (predicted > LOADED * weight_n).sum(axis=1) / np.maximum(contact.sum(axis=1), 1)
    first, last = (round(t / period_s) for t in TRACE)
    return {
        "torque_nm": np.abs(torques[settled]).mean(),
        "torque_rate_nm_s": rate[settled].mean() if len(rate) > settled.start else None,
        "largest_rate_nm_s": rate[settled].max(initial=0.0),
        "calm_rate_nm_s": rate[calm].mean() if calm.any() else None,
        "calm_largest_rate_nm_s": rate[calm].max(initial=0.0),
        "calm_force_rate_n_s": forces_rate[calm].mean() if calm.any() else None,
        "share_of_feet_loaded": loaded[settled][several[settled]].mean()
        if several[settled].any()
        else None,
        "largest_force": float(predicted[settled].sum(axis=1).max() / weight_n),
        "force_error": np.abs(predicted.sum(axis=1) - real.sum(axis=1))[settled].mean() / weight_n,
        "solve_time_median_s": np.median(solve_s),
        "trace_start_s": TRACE[0],
        "trace_period_s": period_s,
        "torque_trace_nm": torques[first:last, TRACED_JOINT],
    }


TRACED_JOINT = 2  # a knee
