"""Viscous and no-slip paper, VII-A and table I: two grippers hold a row of boxes by friction.

Grippers slide along x and push the row together; gravity pulls the boxes down. Simulated by time
stepping on forward problems, 0.01 s a step. Between two neighbours the collision detection finds
the four corners of their faces; each counts three times, as in the paper's simulator, where such
corners have three contacts (there with three normals, here with the face's).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from scipy.linalg import solve_triangular

from contact_id_controller.contacts import ContactSet
from contact_id_controller.lcp import lemke
from contact_id_controller.models import solve
from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS
from contact_id_controller.robot import RobotModel
from contact_id_controller.solution import Solution
from experiments.benchmark.lcp_problems import friction_matrix, polygon
from experiments.papers import AS_PRINTED
from experiments.papers.blocks import Claim, Picture, Section, Text
from experiments.papers.marks import PRINTED, legend_beside
from experiments.papers.paper import Paper
from experiments.papers.store import RunDescription, RunResult
from experiments.rigid.forward import build_forward_problem, step
from experiments.rigid.scene import Body, Scene
from experiments.rigid.solids import Box

NAME = "grasp"
EDGE_M, MASS_KG, STEP_S = 0.1, 1.0, 0.01
EDGES = 4
SQUEEZE_N = 100.0
COPIES = 3
FRICTION = 100.0
PAPER_STEPS = 10
PAPER = Paper(NAME)
PAPER_S = PAPER.figures["table_1_s"]
DROPPED_M = 0.01
LEMKE, QP = "coulomb/lemke", "coulomb/qp"
NAMES = {
    LEMKE: "Stewart-Trinkle, all unknowns, plain Lemke",
    "coulomb/lcp": "Stewart-Trinkle (coulomb/lcp)",
    "no_slip/qp": "no slip (QP)",
    "no_slip/lcp": "no slip (modified PPM)",
    QP: "complementarity-free QP",
}


def runs(quick: bool) -> list[RunDescription]:
    """Rows of two boxes and more, each by three solvers of the paper and one of ours."""
    counts = (2, 4) if quick else (2, 4, 8)
    return [
        RunDescription(NAME, {"model": model, "boxes": boxes, "steps": 100, "trials": 3})
        for boxes in counts
        for model in NAMES
        if model != LEMKE or boxes <= 2
    ]


def run(description: RunDescription) -> dict:
    """Hold the boxes for so many steps, several times; times and how far they sank."""
    wanted = description.parameters
    trials = [
        _hold(wanted["boxes"], wanted["steps"], wanted["model"])
        for _ in range(wanted["trials"] + 1)
    ]
    times = np.array([trial["steps_s"] for trial in trials[1:]])  # the first one compiles
    solves = np.array([trial["solves_s"] for trial in trials[1:]])
    ten = times[:, :PAPER_STEPS].sum(axis=1)
    kept = ("contacts", "sunk_m", "dropped_step", "iterations", "status_counts")
    return {
        **{name: trials[-1][name] for name in kept},
        "step_median_s": np.median(times),
        "solve_median_s": np.median(solves),
        "ten_steps_s": ten.mean(),
        "ten_steps_deviation_s": ten.std(),
        "all_steps_s": times.sum(axis=1).mean(),
    }


def row(boxes: int) -> tuple[RobotModel, Scene, np.ndarray]:
    """Grippers and boxes side by side along x; the scene of their contacts; where they start."""
    model = pin.Model()
    inertia = pin.Inertia(MASS_KG, np.zeros(3), MASS_KG * EDGE_M**2 / 6.0 * np.eye(3))
    names = ["left", *(f"box_{k}" for k in range(boxes)), "right"]
    for number, name in enumerate(names):
        place = np.array([EDGE_M * number, 0.0, 1.0])
        if name in ("left", "right"):
            joint = model.addJoint(0, pin.JointModelPX(), pin.SE3(np.eye(3), place), name)
        else:
            joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), name)
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        model.addFrame(pin.Frame(f"{name}_body", joint, pin.SE3.Identity(), pin.FrameType.BODY))
    robot = RobotModel(model, ["left", "right"])
    q = robot.neutral()
    for number, name in enumerate(names[1:-1], start=1):
        index = model.joints[model.getJointId(name)].idx_q
        q[index : index + 3] = [EDGE_M * number, 0.0, 1.0]
    frames = [f"{name}_body" for name in names]
    scene = Scene(
        robot,
        [Body(frame, Box((EDGE_M,) * 3)) for frame in frames],
        (),
        list(itertools.pairwise(frames)),
        FRICTION,
        0.01,
    )
    return robot, scene, q


def three_times(contacts: ContactSet) -> ContactSet:
    """Every contact three times at its place."""
    every = np.repeat(np.arange(len(contacts)), COPIES)
    return ContactSet(
        contacts.points[every],
        contacts.normals[every],
        [contacts.frames[i] for i in every],
        contacts.friction[every],
        contacts.gaps[every],
        [(*contacts.identities[i], copy) for i in range(len(contacts)) for copy in range(COPIES)],
        [contacts.against[i] for i in every],
    )


def _hold(boxes: int, steps: int, model: str) -> dict:
    robot, scene, q = row(boxes)
    v, start = np.zeros(robot.nv), q.copy()
    squeeze = np.array([1.0, -1.0]) * SQUEEZE_N * boxes
    heights = [joint.idx_q + 2 for joint in robot.model.joints if joint.nq == 7]
    options = AS_PRINTED if model == QP else {}
    previous, durations, solves, sunk, iterations, statuses, count = None, [], [], [], [], {}, 0
    for _ in range(steps):
        begun = time.perf_counter()
        contacts = three_times(scene.contacts(q))
        problem = build_forward_problem(robot, q, v, squeeze, contacts, STEP_S)
        built = time.perf_counter()
        if model == LEMKE:
            solution = _plain_lemke(problem)
        else:
            solution = solve(problem, *model.split("/"), warm_start=previous, **options)
        solves.append(time.perf_counter() - built)
        q, v = step(solution, q), solution.velocity
        durations.append(time.perf_counter() - begun)
        previous, count = solution, max(count, len(contacts))
        iterations.append(solution.iterations)
        statuses[solution.status] = statuses.get(solution.status, 0) + 1
        sunk.append(float(np.max(start[heights] - q[heights])))
    dropped = np.flatnonzero(np.array(sunk) > DROPPED_M)
    return {
        "contacts": count,
        "sunk_m": sunk[-1],
        "steps_s": durations,
        "solves_s": solves,
        "dropped_step": int(dropped[0]) + 1 if len(dropped) else None,
        "iterations": float(np.mean(iterations)),
        "status_counts": statuses,
    }


def _plain_lemke(problem) -> Solution:
    """Stewart and Trinkle's problem with n (k + 2) unknowns, formed and solved as in the paper."""
    edges, n = polygon(EDGES), len(problem)
    free = problem.c.copy()
    free[::3] += problem.gap_speed
    result = lemke(*friction_matrix(problem.Y, free, problem.contacts.friction, edges))
    impulses = np.zeros((n, 3))
    impulses[:, 0] = result.z[:n]
    impulses[:, 1:] = result.z[n : n * (EDGES + 1)].reshape(n, EDGES) @ edges
    velocity = solve_triangular(problem.L.T, problem.base + problem.Y.T @ impulses.ravel())
    return Solution(problem, result.status, np.zeros(0), impulses.ravel(), velocity, result.pivots)


# The report


def report(results: Sequence[RunResult]) -> Section:
    """Table I, and how long the boxes stay."""
    rows = []
    for r in results:
        model, boxes = r.parameters["model"], r.parameters["boxes"]
        paper = PAPER_S.get(model) if boxes == 2 else None
        row = {
            **r.values,
            "name": NAMES[model],
            "boxes": boxes,
            "paper_s": paper[0] if paper else None,
            "fate": _fate(r),
            "statuses": _statuses(r),
        }
        rows.append(row)
    table = PAPER.table("runs", rows, [r.description.command() for r in results])
    pair = {r.parameters["model"]: r for r in results if r.parameters["boxes"] == 2}
    text = Text(" ".join(__doc__.split("\n\n", 1)[1].split()))
    return PAPER.section([text, table, _picture(pair)], _claims(pair))


def _picture(pair) -> Picture:
    def fill(axes):
        axis, names = axes[0, 0], list(pair)[::-1]
        for k, name in enumerate(names):
            axis.barh(k, 1e3 * pair[name]["ten_steps_s"], height=0.6, color=COLOURS[0])
            if name in PAPER_S:
                mean, deviation = PAPER_S[name]
                axis.errorbar(1e3 * mean, k, xerr=1e3 * deviation, capsize=4, **PRINTED)
        axis.plot([], [], **PRINTED, label="paper (MATLAB, 1.8 GHz i5)")
        axis.set_xscale("log")
        axis.set_xlim(1.0, 3e4)
        axis.set_yticks(range(len(names)), [NAMES[name] for name in names])
        axis.set(title="Ten steps of two boxes between two grippers, 36 contacts", xlabel="ms")
        legend_beside(axis)

    return Picture(
        "grasp",
        draw(10.5, 3.2, 1, 1, fill),
        PAPER.phrase("figure"),
    )


def _claims(pair) -> list[Claim]:
    plain, lcp, active, ppm = (
        pair.get(name) for name in (LEMKE, "coulomb/lcp", "no_slip/qp", "no_slip/lcp")
    )
    if not (plain and lcp and active and ppm):
        return []
    ratios, whole = (
        [plain[name] / other[name] for other in (active, ppm)]
        for name in ("solve_median_s", "ten_steps_s")
    )
    saved = active["solve_median_s"] / ppm["solve_median_s"] - 1.0
    figures = {
        **dict(whole=whole, ratios=ratios, saved=saved),
        **dict(lcp=lcp, ppm=ppm, plain=plain, active=active, statuses=_statuses(plain)),
        **dict(lcp_fate=_fate(lcp), plain_fate=_fate(plain)),
        **dict(active_fate=_fate(active), ppm_fate=_fate(ppm)),
    }
    return [
        PAPER.claim(name, holds, **figures)
        for name, holds in (
            ("whole_steps", min(whole) >= PAPER.figures["lemke_ratio"]),
            ("friction", lcp["solve_median_s"] < 0.25 * plain["solve_median_s"]),
            ("drops", _held(lcp)),
            ("holds", _held(ppm) and _held(active)),
            ("ppm", saved >= 0.5 * PAPER.figures["ppm_faster"]),
        )
    ]


def _statuses(result: RunResult) -> str:
    return ", ".join(f"{name} {count}" for name, count in result["status_counts"].items())


def _held(result: RunResult) -> bool:
    return result["dropped_step"] is None and result["sunk_m"] is not None


def _fate(result: RunResult) -> str:
    if result["dropped_step"]:
        return f"dropped them at step {result['dropped_step']}"
    if result["sunk_m"] is None:
        return "threw them away"
    return f"held them, sunk {1e6 * result['sunk_m']:.2g} µm"
