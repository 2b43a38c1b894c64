"""First paper, tables 1 and 2: floating point operations that set up stage I, and ours.

The paper's are its formulas, evaluated. Ours are counted: the kernel that reduces the problem runs
in plain Python on numbers that count what is done with them.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from unittest import mock

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.kernels.reduction import reduce
from contact_id_controller.kernels.structs import Struct
from contact_id_controller.problem import build_problem
from contact_id_controller.robot import RobotModel
from experiments.papers.blocks import Claim, Section
from experiments.papers.paper import Paper
from experiments.papers.store import RunDescription, RunResult

NAME = "flops"
EDGES, COORDINATES = 4, 18
PAPER = Paper(NAME)
PAPER_TOTALS = PAPER.figures["totals"]
"""Joints -> totals that the paper prints, before and after its simplifications, for 4 contacts."""


def runs(quick: bool) -> list[RunDescription]:
    """The paper's two cases with 4 contacts, and its quadruped with more."""
    cases = [(12, 4), (16, 4), (12, 8), (12, 20), (12, 40)]
    return [RunDescription(NAME, {"joints": joints, "contacts": n}) for joints, n in cases]


def run(description: RunDescription) -> dict:
    """The paper's counts, as printed and put right, and ours."""
    joints, n = description.parameters["joints"], description.parameters["contacts"]
    unknowns = n * (EDGES + 1)
    counts = {
        "before_as_printed": before_simplification(joints, n, power=1),
        "before": before_simplification(joints, n),
        "after_as_printed": after_simplification(joints, n),
        "after_as_summed": after_simplification(joints, n, parentheses=False),
        "after": after_simplification(joints, n, unknowns=unknowns),
    }
    totals = {name: round(sum(rows.values())) for name, rows in counts.items()}
    return {**totals, "ours": count_ours(joints, n)}


def before_simplification(nq: int, n: int, k: int = EDGES, power: int = 2) -> dict[str, float]:
    """The rows of table 1 for m = 18 coordinates, n contacts, k friction directions.

    power: of n in row F X^-1 F^T, an (nk x m)(m x nk) product: 2, where the table prints 1.
    """
    m = COORDINATES
    return {
        "LDL^T(X)": m**3 / 3
        + m**2 * nq
        + m**2
        + m * nq**2
        + 2 * m * nq
        - 7 * m / 3
        + nq**3 / 3
        + nq**2
        - 7 * nq / 3
        + 1,
        "X^-1 N^T": m + 2 * m**2 * n + nq + 4 * m * n * nq + 2 * n * nq**2,
        "X^-1 F^T": m + 2 * k * m**2 * n + nq + 4 * k * m * n * nq + 2 * k * n * nq**2,
        "N X^-1 N^T": 2 * m * n**2 - m * n,
        "F X^-1 N^T": 2 * m * n**2 * k - m * n,
        "F X^-1 F^T": 2 * m * n**power * k**2 - m * n * k,
        "kappa": 2 * m**2 - m,
        "X^-1 kappa": 2 * (m + nq) ** 2,
        "N X^-1 kappa": m * n - m,
        "F X^-1 kappa": m * n * k - m,
        "tau": 2 * (m + nq) ** 2,
    }


def after_simplification(
    nq: int, n: int, k: int = EDGES, unknowns: int | None = None, parentheses: bool = True
) -> dict[str, float]:
    """The rows of table 2, nb = m - nq.

    unknowns: columns of Z; None: n(nk + 1), as printed, where R = [N^T F^T] has n(k + 1).
    parentheses: False: row Z^T A p without them, which gives the totals that the paper states.
    """
    m = COORDINATES
    nb, c = m - nq, n * (n * k + 1) if unknowns is None else unknowns
    return {
        "(LL^T(M))^-1": 2 * m**3 / 3 + m**2 / 2 + 5 * m / 6,
        "LL^T(G)": nq**3 / 3 + nq**2 / 2 + nq / 6,
        "Z": nb * m + nq * c * (2 * m - 1) + nb * m * (2 * nq - 1) + 2 * nq**2 * m,
        "p": 2 * nb * nq + 2 * nq**2 + 3 * nq + 2 * nb + 2 * m + 2 * m * nq,
        "Z^T A Z": 2 * nb**2 * c - nb * c + 2 * nb * c**2 - c**2,
        "Z^T A p": (c + nb) * (2 * nb - 1) if parentheses else c + nb * (2 * nb - 1),
        "Z^T B v": (c + nq) * (2 * nq - 1),
        "N^T Z": n * c * (2 * nb - 1),
        "N^T [p v]": n * (2 * m - 1),
    }


# Ours, counted


class Counter:
    """How many operations its numbers have taken part in."""

    total = 0


class Counted(float):
    """A float whose sums, products, quotients and roots are counted, one each."""

    def _operation(name):
        plain = getattr(float, name)

        def method(self, other):
            Counter.total += 1
            return Counted(plain(self, other))

        return method

    __add__ = __radd__ = _operation("__add__")
    __mul__ = __rmul__ = _operation("__mul__")
    __sub__, __rsub__ = _operation("__sub__"), _operation("__rsub__")
    __truediv__, __rtruediv__ = _operation("__truediv__"), _operation("__rtruediv__")

    def __neg__(self):
        return Counted(float.__neg__(self))

    def __abs__(self):
        return Counted(float.__abs__(self))


class _CountingNumpy:
    """What the kernel uses of numpy, with arrays of counted numbers."""

    int64, bool_, inf = np.int64, np.bool_, np.inf

    @staticmethod
    def empty(shape, dtype=float):
        if dtype is not float:
            return np.zeros(shape, dtype)
        return np.full(shape, Counted(0.0), dtype=object)

    zeros = empty

    @staticmethod
    def isfinite(value):
        return np.isfinite(float(value))

    @staticmethod
    def sqrt(value):
        Counter.total += 1
        return Counted(np.sqrt(float(value)))


def count_ours(joints: int, n: int) -> int:
    """Operations from inertia, joint axes and bias forces to the whole reduced problem.

    More than the paper counts: the Jacobians of the contacts, their drift, and the map from forces
    to torques are in it.
    """
    robot = legged(joints)
    rng = np.random.default_rng(0)
    q, v = robot.neutral(), rng.normal(size=robot.nv)
    robot.put_joints(q, rng.normal(size=joints))
    names = [f"foot_{i % 4}" for i in range(n)]
    contacts = ContactSet(rng.normal(size=(n, 3)), np.tile([0.0, 0.0, 1.0], (n, 1)), names)
    kernel, seen = reduce, {}

    def catch(*arguments):
        seen["arguments"] = arguments
        return kernel(*arguments)

    with mock.patch.object(RobotModel, "reduce", staticmethod(catch)):
        build_problem(robot, q, v, np.zeros(robot.na), contacts, 1e-3, contact_time_constant_s=0.05)
    arguments = [_counted(value) for value in seen["arguments"]]
    Counter.total = 0
    _plain(kernel)(*arguments)
    return Counter.total


def _counted(value):
    if isinstance(value, np.ndarray) and value.dtype == float:
        return np.array([Counted(x) for x in value.ravel()], dtype=object).reshape(value.shape)
    if isinstance(value, Struct):
        return types.SimpleNamespace(**{name: _counted(each) for name, each in vars(value).items()})
    return Counted(value) if isinstance(value, float) else value


def _plain(kernel):
    """A kernel and all that it calls as ordinary functions, with counting arrays."""
    function = kernel.py_func
    names = dict(function.__globals__, np=_CountingNumpy)
    names.update(
        {
            name: _plain(names[name])
            for name in function.__code__.co_names
            if hasattr(names.get(name), "py_func")
        }
    )
    return types.FunctionType(function.__code__, names)


def legged(joints: int) -> RobotModel:
    """Four equal legs with so many hinges together, on what is left of the 18 coordinates.

    That is a floating base with 12 joints, two passive slides with 16.
    """
    model = pin.Model()
    body = pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))
    free = COORDINATES - joints
    kinds = [pin.JointModelFreeFlyer()] if free == 6 else [pin.JointModelPX(), pin.JointModelPZ()]
    base = 0
    for number, kind in enumerate(kinds):
        base = model.addJoint(base, kind, pin.SE3.Identity(), f"base_{number}")
        model.appendBodyToJoint(base, body, pin.SE3.Identity())
    step = pin.SE3(np.eye(3), np.array([0.1, 0.05, -0.1]))
    for leg in range(4):
        parent = base
        for k in range(joints // 4):
            kind = (pin.JointModelRX, pin.JointModelRY)[min(k, 1)]()
            parent = model.addJoint(parent, kind, step, f"leg_{leg}_{k}")
            model.appendBodyToJoint(parent, body, pin.SE3.Identity())
        model.addFrame(pin.Frame(f"foot_{leg}", parent, step, pin.FrameType.OP_FRAME))
    return RobotModel(model, [name for name in model.names if name.startswith("leg_")])


# The report


def report(results: Sequence[RunResult]) -> Section:
    """Tables 1 and 2 and ours."""
    rows, claims = [], []
    for result in results:
        joints, n = result.parameters["joints"], result.parameters["contacts"]
        before, after = PAPER_TOTALS.get(joints, (None, None)) if n == 4 else (None, None)
        stated = {"stated_before": before, "stated_after": after}
        rows.append({**result.parameters, **result.values, **stated})
        if before is not None:
            claims += _claims(result, before, after)
    table = PAPER.table("counts", rows, [result.description.command() for result in results])
    return PAPER.section([PAPER.text(), table], claims)


def _claims(result: RunResult, before: int, after: int) -> list[Claim]:
    figures = {
        "command": result.description.command(),
        "joints": result.parameters["joints"],
        "r": result,
        "before": before,
        "after": after,
        "least": min(before, after),
    }
    same = (result["before"], result["after_as_summed"]) == (before, after)
    return [
        PAPER.claim("totals", same, **figures),
        PAPER.claim("entries", **figures),
        PAPER.claim("cost", result["ours"] < min(before, after, result["after"]), **figures),
    ]
