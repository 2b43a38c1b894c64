"""Speed of the whole step, from (q, v, desired acceleration) to torques, for every contact model.

Solo12 stands on n contacts, spread over the soles of its four feet, and its base accelerates a
little. Times are medians and 99th percentiles in one process on one core; machines differ, so each
is also given as a ratio to ``pinocchio.computeAllTerms`` (CAT) measured in between, in the same run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_id_controller import (
    ContactSet,
    InverseDynamics,
    RobotModel,
    build_problem,
)
from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.models import ContactModel, contact_models, row_of
from contact_id_controller.runs.computer import describe_machine, installed_versions
from contact_id_controller.runs.preparation import check_extras

SOLO12 = "example-robot-data://solo_description/robots/solo12.urdf"
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
POSTURE = np.array([0, 0.8, -1.6] * 2 + [0, -0.8, 1.6] * 2)
CONTACTS = (4, 8, 20, 40, 100, 400, 1000)
QUADPROG, QUANTECON = "coulomb/qp, quadprog", "QuantEcon Lemke"
MODELS = (*map(str, contact_models()), QUADPROG)
"""What is measured: every contact model, and one by a library."""
PREPARED = {f"{row}, prepared": row.pair for row in contact_models() if row.frames}
"""Models once more by ``InverseDynamics``, which has all but the state made ready; name -> model."""
LARGEST = {
    str(row): row.most_contacts or row.practical_contacts
    for row in contact_models()
    if row.most_contacts or row.practical_contacts
} | {QUADPROG: 40, QUANTECON: 40}
"""Contacts beyond which a model is left out: it refuses them, or would take minutes."""

PERIOD_S, TIME_CONSTANT_S = 1e-3, 0.05
SOLE_M = 0.02  # half the width of the patch over which a foot's contacts are spread
BUDGET_S = 1.0  # time spent on one cell
STATES = 40  # states visited in turn, so that no branch is learned by heart


def stance(robot: RobotModel, n: int) -> tuple[np.ndarray, ContactSet]:
    """Solo12 standing with n contacts spread over its soles: q and the contacts."""
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], POSTURE)
    pin.framesForwardKinematics(robot.model, robot.data, q)
    feet = np.array([robot.data.oMf[robot.frame_id(name)].translation for name in FEET])
    q[2] -= feet[:, 2].min()
    feet[:, 2] = 0.0
    which = np.arange(n) % 4
    ring = np.arange(n) // 4
    angle = 2.399963 * ring  # the golden angle spreads points evenly over a disc
    radius = SOLE_M * np.sqrt(ring / max(ring.max(), 1))
    points = feet[which]
    points[:, 0] += radius * np.cos(angle)
    points[:, 1] += radius * np.sin(angle)
    return q, ContactSet(points, np.tile([0.0, 0.0, 1.0], (n, 1)), [FEET[i] for i in which], 0.6)


def states(robot: RobotModel, q: np.ndarray, seed: int = 0):
    """Nearby states and desired accelerations: slow motion, as between two periods of a walk."""
    rng = np.random.default_rng(seed)
    return [
        (q, 0.01 * rng.normal(size=robot.nv), 0.5 * rng.normal(size=robot.na))
        for _ in range(STATES)
    ]


def timed(step, yardstick) -> dict:
    """Median and 99th percentile of step (s), its ratio to the yardstick's, measured in turn."""
    for k in range(STATES):
        step(k)
    samples, reference = [], []
    end = time.perf_counter() + BUDGET_S
    k = 0
    while time.perf_counter() < end or k < 2 * STATES:
        began = time.perf_counter()
        step(k % STATES)
        middle = time.perf_counter()
        yardstick()
        samples.append(middle - began)
        reference.append(time.perf_counter() - middle)
        k += 1
    median, unit = float(np.median(samples)), float(np.median(reference))
    return {
        "median_s": median,
        "p99_s": float(np.percentile(samples, 99)),
        "cat_s": unit,
        "median_cat": median / unit,
        "samples": len(samples),
    }


def measure(contacts, placo_python: str | None = None, names: Sequence[str] = ()) -> dict:
    """All cells, or those of the rows named: {"machine", "rows": {model: {n: cell}}}.

    Raises:
        ConfigurationError: a number of contacts below 1, or no such row.
    """
    known = (*MODELS, *PREPARED, QUANTECON)
    for name in names:
        if name not in known:
            raise ConfigurationError(f"--models names {name!r}, must be of {choices(known)}")
    names = names or known
    if QUADPROG in names:
        check_extras(f"{QUADPROG!r} needs", "quadprog")
    if min(contacts) < 1:
        raise ConfigurationError(f"--contacts must be positive, got {list(contacts)}")
    robot = RobotModel.from_urdf(SOLO12)
    rows: dict[str, dict] = {name: {} for name in names}
    for n in contacts:
        q, contact_set = stance(robot, n)
        visited = states(robot, q)

        twin = robot.model.createData()

        def yardstick(q=q, v=visited[0][1], twin=twin):
            pin.computeAllTerms(robot.model, twin, q, v)

        for name in MODELS:
            if name not in names or n > LARGEST.get(name, n):
                continue
            row, last = row_measured(name), [None]

            def step(k, row=row, last=last):
                problem = build_problem(
                    robot,
                    *visited[k],
                    contact_set,
                    PERIOD_S,
                    contact_time_constant_s=TIME_CONSTANT_S,
                )
                last[0] = row.function(problem, row.defaults, last[0])

            cell = timed(step, yardstick)
            cell["status"] = last[0].status
            rows[name][n] = cell
        for name, model in PREPARED.items():
            if name in names:
                ready = InverseDynamics(
                    robot, contact_set, PERIOD_S, *model, contact_time_constant_s=TIME_CONSTANT_S
                )
                cell = timed(lambda k, ready=ready: ready.torques(*visited[k]), yardstick)
                cell["status"] = ready.solution(*visited[0]).status
                rows[name][n] = cell
        if QUANTECON in names and n <= LARGEST[QUANTECON]:
            rows[QUANTECON][n] = quantecon_cell(robot, visited, contact_set, yardstick)
    if placo_python:
        peers = placo_cells(placo_python, [n for n in contacts if n <= 40])
        for n, cell in peers.items():
            cell["cat_s"] = next(cells[n]["cat_s"] for cells in rows.values() if cells.get(n))
            cell["median_cat"] = cell["median_s"] / cell["cat_s"]
        rows["PlaCo DynamicsSolver"] = peers
    return {
        "machine": describe_machine(),
        "versions": installed_versions(),
        "robot": "solo12",
        "command": " ".join(sys.argv),
        "rows": {name: cells for name, cells in rows.items() if cells},
    }


def row_measured(name: str) -> ContactModel:
    """The contact model that a name of ``MODELS`` stands for."""
    if name == QUADPROG:  # an extra under the GPL: loaded only where it is measured
        from experiments.benchmark.quadprog_two_stages import MODEL

        return MODEL
    return row_of(*name.split("/"))


def quantecon_cell(robot, visited, contact_set, yardstick) -> dict | None:
    """QuantEcon's Lemke on the reduced Coulomb LCP: the solve alone, its matrix made beforehand."""
    try:
        from quantecon.optimize import lcp_lemke
    except ImportError:
        return None
    problems = [
        polygon_lcp(
            build_problem(
                robot, *state, contact_set, PERIOD_S, contact_time_constant_s=TIME_CONSTANT_S
            )
        )
        for state in visited
    ]
    return {**timed(lambda k: lcp_lemke(*problems[k]), yardstick), "status": "solve only"}


def polygon_lcp(problem, edges: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Dense (M, q) of the Coulomb problem on a friction polygon (first paper, eq. 64 corrected)."""
    n = len(problem)
    angle = 2.0 * np.pi * np.arange(edges) / edges
    F = np.zeros((n * edges, 3 * n))
    for i in range(n):
        F[i * edges : (i + 1) * edges, 3 * i + 1] = np.cos(angle)
        F[i * edges : (i + 1) * edges, 3 * i + 2] = np.sin(angle)
    N = np.eye(3 * n)[::3]
    rows = np.vstack([N, F])
    E = np.kron(np.eye(n), np.ones((edges, 1)))
    M = np.zeros((n * (edges + 2), n * (edges + 2)))
    half = rows @ problem.Y
    M[: n * (edges + 1), : n * (edges + 1)] = half @ half.T
    M[n : n * (edges + 1), n * (edges + 1) :] = E
    M[n * (edges + 1) :, n : n * (edges + 1)] = -E.T
    M[n * (edges + 1) :, :n] = np.diag(problem.contacts.friction)
    q = np.concatenate([rows @ problem.c, np.zeros(n)])
    q[:n] += problem.gap_speed
    return M, q


def placo_cells(python: str, contacts) -> dict:
    """PlaCo's DynamicsSolver on the same robot and stances, in its own environment."""
    script = Path(__file__).with_name("placo_step.py")
    robot = RobotModel.from_urdf(SOLO12)
    stances = {
        n: [stance(robot, n)[1].points.tolist(), stance(robot, n)[0].tolist()] for n in contacts
    }
    from contact_id_controller.robot import resolve_urdf

    task = {
        "urdf": str(resolve_urdf(SOLO12)),
        "feet": FEET,
        "joints": robot.joint_names,
        "stances": stances,
        "budget_s": BUDGET_S,
    }
    answer = subprocess.run(
        [python, str(script)], input=json.dumps(task), text=True, capture_output=True, check=False
    )
    if answer.returncode:
        print(
            f"PlaCo could not be measured: {answer.stderr.strip().splitlines()[-1:]}",
            file=sys.stderr,
        )
        return {}
    return {int(n): cell for n, cell in json.loads(answer.stdout.splitlines()[-1]).items()}


def table(result: dict) -> str:
    """The result as text: median in µs and, in brackets, the ratio to CAT of the same run."""
    sizes = sorted({n for cells in result["rows"].values() for n in cells})
    lines = ["median µs (CAT)".ljust(24) + "".join(f"{n:>16}" for n in sizes)]
    for name, cells in result["rows"].items():
        text = name.ljust(24)
        for n in sizes:
            cell = cells.get(n)
            text += (
                f"{cell['median_s'] * 1e6:9.0f} ({cell['median_cat']:.1f})".rjust(16)
                if cell
                else "-".rjust(16)
            )
        lines.append(text)
    return "\n".join(lines)
