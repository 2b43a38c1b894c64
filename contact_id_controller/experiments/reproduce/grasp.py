"""Viscous and no-slip paper, section VII-A and table I: two grippers hold a row of boxes by friction.

Grippers slide along x and push the row together; gravity pulls the boxes down. Simulated by time
stepping on forward problems, 0.01 s a step. Between two neighbours the collision detection finds the
four corners of their faces; each counts three times, as in the paper's simulator, where such corners
have three contacts (there with three normals, here with the face's).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.experiments.reproduce.blocks import (
    BETTERED, NOT_REPRODUCED, REPRODUCED, Claim, Picture, Section, Table, Text,
)
from contact_id_controller.experiments.reproduce.figures import COLOURS, PAPER, draw
from contact_id_controller.experiments.reproduce.runs import RunDescription, RunResult
from contact_id_controller.forward import build_forward_problem, step
from contact_id_controller.geometry import Body, Box, Scene
from contact_id_controller.models import solve
from contact_id_controller.robot import RobotModel

NAME = "grasp"
EDGE_M, MASS_KG, STEP_S = 0.1, 1.0, 0.01
SQUEEZE_N = 100.0
COPIES = 3
FRICTION = 100.0
PAPER_STEPS = 10
PAPER_S = {"coulomb/lcp": (10.9681, 2.1812), "no_slip/qp": (1.9892, 0.2640),
           "no_slip/lcp": (1.6680, 0.3669)}
"""Table I: mean and standard deviation of ten steps of two boxes, MATLAB, 1.8 GHz i5."""

DROPPED_M = 0.01
NAMES = {"coulomb/lcp": "Stewart-Trinkle (Lemke)", "no_slip/qp": "no slip (active-set QP)",
         "no_slip/lcp": "no slip (modified PPM)", "coulomb/qp": "complementarity-free QP"}


def runs(quick: bool) -> list[RunDescription]:
    """Rows of two boxes and more, each by three solvers of the paper and one of ours."""
    counts = (2, 4) if quick else (2, 4, 8)
    return [RunDescription(NAME, {"model": model, "boxes": boxes, "steps": 100, "trials": 3})
            for boxes in counts for model in NAMES]


def run(description: RunDescription) -> dict:
    """Hold the boxes for so many steps, several times; times and how far they sank."""
    wanted = description.parameters
    trials = [_hold(wanted["boxes"], wanted["steps"], *wanted["model"].split("/"))
              for _ in range(wanted["trials"] + 1)]
    times = np.array([trial["steps_s"] for trial in trials[1:]])  # the first one compiles
    return {**{name: trials[-1][name] for name in ("contacts", "sunk_m", "dropped_step", "iterations",
                                                   "statuses", "sunk_trace_m")},
            "steps_median_s": np.median(times), "ten_steps_s": times[:, :PAPER_STEPS].sum(axis=1).mean(),
            "ten_steps_deviation_s": times[:, :PAPER_STEPS].sum(axis=1).std(),
            "all_steps_s": times.sum(axis=1).mean()}


def row(boxes: int) -> tuple[RobotModel, Scene, np.ndarray]:
    """Grippers and boxes side by side along x; the scene of their contacts; where they start."""
    model = pin.Model()
    inertia = pin.Inertia(MASS_KG, np.zeros(3), MASS_KG * EDGE_M ** 2 / 6.0 * np.eye(3))
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
        q[index:index + 3] = [EDGE_M * number, 0.0, 1.0]
    frames = [f"{name}_body" for name in names]
    scene = Scene(robot, [Body(frame, Box((EDGE_M,) * 3)) for frame in frames], (),
                  list(zip(frames[:-1], frames[1:])), FRICTION, 0.01)
    return robot, scene, q


def three_times(contacts: ContactSet) -> ContactSet:
    """Every contact three times at its place."""
    every = np.repeat(np.arange(len(contacts)), COPIES)
    return ContactSet(
        contacts.points[every], contacts.normals[every], [contacts.frames[i] for i in every],
        contacts.friction[every], contacts.gaps[every],
        [(*contacts.identities[i], copy) for i in range(len(contacts)) for copy in range(COPIES)],
        [contacts.against[i] for i in every])


def _hold(boxes: int, steps: int, friction: str, solver: str) -> dict:
    robot, scene, q = row(boxes)
    v, start = np.zeros(robot.nv), q.copy()
    squeeze = np.array([1.0, -1.0]) * SQUEEZE_N * boxes
    heights = [index + 2 for index in (joint.idx_q for joint in robot.model.joints if joint.nq == 7)]
    previous, durations, sunk, iterations, statuses, count = None, [], [], [], {}, 0
    for _ in range(steps):
        begun = time.perf_counter()
        contacts = three_times(scene.contacts(q))
        problem = build_forward_problem(robot, q, v, squeeze, contacts, STEP_S)
        solution = solve(problem, friction, solver, warm_start=previous)
        q, v = step(solution, q), solution.velocity
        durations.append(time.perf_counter() - begun)
        previous, count = solution, max(count, len(contacts))
        iterations.append(solution.iterations)
        statuses[solution.status] = statuses.get(solution.status, 0) + 1
        sunk.append(float(np.max(start[heights] - q[heights])))
        if len(contacts) == 0:
            break
    dropped = np.flatnonzero(np.array(sunk) > DROPPED_M)
    return {"contacts": count, "sunk_m": sunk[-1], "steps_s": durations + [0.0] * (steps - len(sunk)),
            "dropped_step": int(dropped[0]) + 1 if len(dropped) else None,
            "iterations": float(np.mean(iterations)), "statuses": statuses, "sunk_trace_m": sunk}


# The report


def report(results: Sequence[RunResult]) -> Section:
    """Table I, and how long the boxes stay."""
    rows = []
    for r in results:
        model, boxes = r.parameters["model"], r.parameters["boxes"]
        paper = PAPER_S.get(model) if boxes == 2 else None
        rows.append((NAMES[model], boxes, r["contacts"], 1e3 * r["ten_steps_s"],
                     1e3 * paper[0] if paper else None, 1e6 * r["steps_median_s"], r["iterations"],
                     f"dropped at step {r['dropped_step']}" if r["dropped_step"] else "held",
                     1e6 * r["sunk_m"],
                     ", ".join(f"{name} {count}" for name, count in r["statuses"].items())))
    table = Table("Ten steps take, everything included; a median step; held for 100 steps or not.",
                  ("model", "boxes", "contacts", "ten steps, ms", "paper, ms", "step, µs", "pivots",
                   "boxes", "sunk, µm", "status"), rows, [r.description.command() for r in results])
    pair = {r.parameters["model"]: r for r in results if r.parameters["boxes"] == 2}
    return Section("Boxes between grippers (viscous and no-slip paper, table I)",
                   [Text(" ".join(__doc__.split("\n\n", 1)[1].split())), table, _picture(pair)],
                   _claims(pair))


def _picture(pair) -> Picture:
    def fill(axes):
        axis, names = axes[0, 0], list(pair)
        for k, name in enumerate(names):
            axis.bar(k, 1e3 * pair[name]["ten_steps_s"], width=0.6, color=COLOURS[0])
            if name in PAPER_S:
                mean, deviation = PAPER_S[name]
                axis.errorbar(k, 1e3 * mean, 1e3 * deviation, capsize=4, **PAPER)
        axis.plot([], [], **PAPER, label="paper (MATLAB, 1.8 GHz i5)")
        axis.set_yscale("log")
        axis.set_xticks(range(len(names)), [NAMES[name] for name in names])
        axis.set(title="Ten steps of two boxes between two grippers, 36 contacts", ylabel="ms")
        axis.legend()

    return Picture("grasp", draw(9.0, 3.8, 1, 1, fill),
                   "Table I: time of ten steps, collision detection included; bars: ours.")


def _claims(pair) -> list[Claim]:
    command = f"contact_id reproduce {NAME}"
    source = "viscous and no-slip paper, VII-A"
    claims = []
    lemke, active, ppm = (pair.get(name) for name in ("coulomb/lcp", "no_slip/qp", "no_slip/lcp"))
    if lemke and active and ppm:
        claims += [
            Claim(source, "no-slip contact is 4.5 to 5.6 times as fast as Stewart-Trinkle",
                  REPRODUCED if ppm["ten_steps_s"] < lemke["ten_steps_s"] / 4.5 else NOT_REPRODUCED,
                  f"{lemke['ten_steps_s'] / ppm['ten_steps_s']:.2f} times with the modified PPM, "
                  f"{lemke['ten_steps_s'] / active['ten_steps_s']:.2f} with the QP; ours of "
                  "Stewart-Trinkle does not see the friction polygon as 216 unknowns, and collision "
                  "detection takes most of every step", command),
            Claim(source, "Stewart-Trinkle drops the boxes after about ten steps, for numerical reasons",
                  BETTERED if lemke["dropped_step"] is None else REPRODUCED,
                  f"ours: {'held for 100' if lemke['dropped_step'] is None else 'dropped at ' + str(lemke['dropped_step'])}"
                  f" steps, sunk {1e6 * lemke['sunk_m']:.2g} µm", command),
            Claim(source, "no-slip contact holds the boxes for at least 100 steps",
                  REPRODUCED if ppm["dropped_step"] is None and active["dropped_step"] is None
                  else NOT_REPRODUCED, f"sunk {1e6 * ppm['sunk_m']:.2g} µm (modified PPM), "
                  f"{1e6 * active['sunk_m']:.2g} µm (QP)", command),
            Claim(source, "the modified PPM needs 5.5 pivots in the mean",
                  REPRODUCED if ppm["iterations"] <= 7.0 else NOT_REPRODUCED,
                  f"{ppm['iterations']:.2g}, warm started", command)]
    return claims
