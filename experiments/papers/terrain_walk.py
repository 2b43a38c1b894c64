"""Viscous and no-slip paper, tables II and III: a quadruped on a terrain map.

The first paper's quadruped walks over bumps of 3 cm in the rigid time stepper, controlled alike;
what is timed is the simulator's step. Walking needs friction, so the viscous coefficient of the
paper is tried, and one that carries the robot.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from contact_id_controller.geometry import TerrainFeet
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.lcp import lemke, ppm
from contact_id_controller.runs.one_process import (
    InProcessRun,
    Period,
    controller_settings,
    feet_of,
)
from experiments.papers.blocks import Claim, Section, Text, outcome
from experiments.papers.paper import Paper
from experiments.papers.store import RunDescription, RunResult
from experiments.papers.terrains import BLIND_STEPS, bumpy_field
from experiments.rigid.rigid_robot import RigidRobot

NAME = "terrain_walk"
ROBOT, FRICTION = "quadruped", 100.0
PAPER_VISCOSITY, STRONG_VISCOSITY = 0.1, 1000.0
CASES = {
    "Drumwright-Shell": ("coulomb/qp", 0.0),
    "no slip": ("no_slip/lcp", 0.0),
    "Stewart-Trinkle": ("coulomb/lcp", 0.0),
    "viscous, paper": ("viscous/lcp", PAPER_VISCOSITY),
    "viscous, strong": ("viscous/lcp", STRONG_VISCOSITY),
}
PAPER = Paper(NAME)
PAPER_S = PAPER.figures["ten_seconds_s"]

COMPARE_EVERY = 20
"""Periods between two problems on which Lemke's method and the principal pivoting are timed."""


def runs(quick: bool) -> list[RunDescription]:
    """One walk for each contact law."""
    return [
        RunDescription(NAME, {"case": name, "duration_s": 2.0 if quick else 10.0, "seed": 0})
        for name in CASES
    ]


def run(description: RunDescription) -> dict[str, Any]:
    """Walk until the end or the fall; time of the simulator's steps."""
    model, viscosity = CASES[description.parameters["case"]]
    field = bumpy_field(description.parameters["seed"])
    settings = controller_settings(ROBOT, friction_coefficient=[1.0])
    robot = settings.robot()
    world = RigidRobot(
        settings.urdf,
        feet_of(settings),
        joints=settings.joints,
        friction=FRICTION,
        period_s=settings.period_s,
        model=tuple(model.split("/")),
        ground=field,
        viscosity_n_s_m=viscosity,
    )
    walk = InProcessRun(
        ROBOT,
        settings,
        world,
        feet=TerrainFeet(robot, feet_of(settings), field, 1.0),
        planner={"ground_height_m": float(field.heights.mean()), **BLIND_STEPS},
    )
    timed = _Timed(world)
    compared: list[tuple[float, float, float]] = []
    periods = itertools.count()

    def each(_: Period) -> None:
        sampled = next(periods) % COMPARE_EVERY == 0
        if model == "viscous/lcp" and sampled and len(world.last_solution.problem):
            compared.append(compare(world.last_solution))

    record = walk.record(
        description.parameters["duration_s"],
        each=each,
        ground_height_m=float(field.heights.mean()),
    )
    steps = np.array(timed.steps_s)
    result = {
        "fell_time_s": record.fell_time_s,
        "duration_s": record.duration_s,
        "step_median_s": np.median(steps),
        "ten_seconds_s": 10.0 / settings.period_s * np.median(steps),
        "contacts": np.mean(timed.contacts),
        "unsolved": world.unsolved_steps,
    }
    if compared:
        lemke_s, ppm_s, difference = np.array(compared).T
        result |= {
            "lemke_s": np.median(lemke_s),
            "ppm_s": np.median(ppm_s),
            "difference": difference.max(),
        }
    return result


class _Timed:
    """Times the steps of a simulated robot, and counts its contacts."""

    def __init__(self, world: RigidRobot):
        self.steps_s: list[float] = []
        self.contacts: list[int] = []
        step = world.step

        def timed(torques):
            begun = time.perf_counter()
            state = step(torques)
            self.steps_s.append(time.perf_counter() - begun)
            self.contacts.append(len(world.last_solution.problem))
            return state

        world.step = timed


def compare(solution) -> tuple[float, float, float]:
    """Lemke's method and principal pivoting on the normal LCP of a viscous problem.

    Returns the times of both, s, and the largest relative difference of their velocities from the
    model's.

    With implicit friction H = I + dt Y_T^T mu_v Y_T is eliminated:
    M = Y_N H^-1 Y_N^T, q = c_N + gap - dt Y_N H^-1 Y_T^T mu_v c_T.
    """
    problem = solution.problem
    normal = np.arange(0, 3 * len(problem), 3)
    tangent = np.setdiff1d(np.arange(3 * len(problem)), normal)
    rub = problem.period * np.repeat(problem.contacts.viscosity, 2)
    rub = np.where(np.repeat(problem.gap_speed, 2) <= TOUCHING_SPEED, rub, 0.0)
    Y_n, Y_t = problem.Y[normal], problem.Y[tangent]
    H = np.eye(Y_n.shape[1]) + Y_t.T @ (rub[:, None] * Y_t)
    shift = -np.linalg.solve(H, Y_t.T @ (rub * problem.c[tangent]))
    half = np.linalg.solve(H, Y_n.T)
    M, q = Y_n @ half, problem.c[normal] + problem.gap_speed + Y_n @ shift
    times, results = [], []
    for method in (lemke, ppm):
        method(M, q)
        begun = time.perf_counter()
        results.append(method(M, q))
        times.append(time.perf_counter() - begun)
    own = problem.Y.T @ solution.impulses
    differences = [
        np.linalg.norm(shift + half @ result.z - own) / max(np.linalg.norm(own), 1e-12)
        for result in results
    ]
    return times[0], times[1], max(differences)


# The report


def report(results: Sequence[RunResult]) -> Section:
    """Tables II and III."""
    found = {r.parameters["case"]: r for r in results}
    rows = [
        {
            "lemke_s": None,
            "ppm_s": None,
            **r.values,
            "name": name,
            "model": CASES[name][0],
            "paper": PAPER_S.get(name),
            "outcome": outcome(r["fell_time_s"]),
        }
        for name, r in found.items()
    ]
    table = PAPER.table("walks", rows, [r.description.command() for r in found.values()])
    text = Text(" ".join(__doc__.split("\n\n", 1)[1].split()))
    return PAPER.section([text, table], _claims(found))


def _claims(found) -> list[Claim]:
    claims = []
    shell, stick = found.get("Drumwright-Shell"), found.get("no slip")
    if shell and stick:
        ratio, paper = stick["step_median_s"] / shell["step_median_s"], PAPER_S["no slip"]
        figures = {
            **dict(ratio=ratio, paper=paper, stick=stick),
            **dict(shell_outcome=outcome(shell["fell_time_s"])),
            **dict(stick_outcome=outcome(stick["fell_time_s"])),
        }
        claims += [
            PAPER.claim("no_slip", 1.0 - ratio >= PAPER.figures["saved"], **figures),
            PAPER.claim("ten_seconds", stick["ten_seconds_s"] < paper, **figures),
        ]
    viscous = [r for r in found.values() if r.values.get("ppm_s")]
    if viscous:
        ratio = min(r["lemke_s"] / r["ppm_s"] for r in viscous)
        difference = max(r["difference"] for r in viscous)
        faster = ratio > PAPER.figures["faster"]
        claims.append(PAPER.claim("viscous", faster, ratio=ratio, difference=difference))
    weak = found.get("viscous, paper")
    if weak:
        fell_s = weak["fell_time_s"]
        figures = {"viscosity": PAPER_VISCOSITY, "outcome": outcome(fell_s)}
        claims.append(PAPER.claim("weak", fell_s is None, **figures))
    return claims
