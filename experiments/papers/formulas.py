"""Formulas of the first paper that do not hold as printed, each shown on one state of a real robot.

Solo12 stands on four feet that do not move while its base travels at a constant 0.3 m/s: nothing
accelerates but the joints, so the ground has to carry the weight, no more and no less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.models import solve
from contact_id_controller.problem import build_problem
from contact_id_controller.robot import RobotModel
from experiments.benchmark.speed import SOLO12, stance
from experiments.papers.blocks import (
    NOT_REPRODUCED,
    REPRODUCED,
    WRONG,
    Claim,
    Section,
    Table,
    Text,
)
from experiments.papers.store import RunDescription, RunResult

NAME = "formulas"
PERIOD_S, SPEED_M_S = 1e-3, 0.3
VARIANTS = {
    "ours": ("contact velocity (eq. 75)", {}, {}),
    "kinetic energy": ("kinetic energy (eq. 69)", {"objective": "kinetic_energy"}, {}),
    "frozen": ("eq. 75, Jacobian frozen (eq. 35)", {}, {"velocity_product_term": False}),
}


def runs(quick: bool) -> list[RunDescription]:
    """The variants of stage I, and the sign of the torque."""
    variants = [
        RunDescription(NAME, {"variant": name, "speed_m_s": SPEED_M_S}) for name in VARIANTS
    ]
    return [*variants, RunDescription(NAME, {"variant": "sign"})]


def run(description: RunDescription) -> dict:
    """Forces that a variant predicts; of ``sign``, the error of eq. 37 as printed."""
    variant = description.parameters["variant"]
    if variant == "sign":
        return _sign_of_the_torque()
    robot, q, v, acceleration, contacts = _gliding(description.parameters["speed_m_s"])
    _, options, assembly = VARIANTS[variant]
    problem = build_problem(robot, q, v, acceleration, contacts, PERIOD_S, **assembly)
    solution = solve(problem, "coulomb", "qp", **options)
    total = solution.forces.sum(axis=0)
    return {
        "weight_n": robot.weight,
        "normal_n": total[2],
        "braking_n": -total[0],
        "base_change_m_s": solution.velocity[0] - v[0],
        "status": solution.status,
    }


def _gliding(speed_m_s: float):
    """State and joint accelerations of a base in steady motion over standing feet."""
    robot = RobotModel.from_urdf(SOLO12)
    q, contacts = stance(robot, 4)
    model, data = robot.model, robot.data
    v = np.zeros(robot.nv)
    v[0] = speed_m_s

    def jacobian():
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        return np.vstack(
            [
                pin.getFrameJacobian(model, data, robot.frame_id(name), pin.LOCAL_WORLD_ALIGNED)[:3]
                for name in contacts.frames
            ]
        )

    J = jacobian()
    v[robot.actuated] = np.linalg.solve(J[:, robot.actuated], -J[:, :6] @ v[:6])
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.nv))
    pin.updateFramePlacements(model, data)
    drift = np.concatenate(
        [
            pin.getFrameClassicalAcceleration(
                model, data, robot.frame_id(name), pin.LOCAL_WORLD_ALIGNED
            ).linear
            for name in contacts.frames
        ]
    )
    acceleration = np.linalg.solve(J[:, robot.actuated], -drift)
    return robot, q, v, acceleration, contacts


def _sign_of_the_torque() -> dict:
    """Velocity after one period in flight: eq. 37 with either sign, against forward dynamics."""
    robot = RobotModel.from_urdf(SOLO12)
    q, _ = stance(robot, 4)
    rng = np.random.default_rng(0)
    v, torques = rng.normal(size=robot.nv), rng.normal(size=robot.na)
    full = np.zeros(robot.nv)
    full[robot.actuated] = torques
    data = robot.model.createData()
    true = PERIOD_S * pin.aba(robot.model, data, q, v, full)
    M = pin.crba(robot.model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.nonLinearEffects(robot.model, data, q, v)
    errors = {}
    for name, signed in (("minus", -full), ("plus", full)):
        change = PERIOD_S * np.linalg.solve(M, signed - h)
        errors[name] = np.linalg.norm(change - true) / np.linalg.norm(true)
    # In free flight as well, by the reduced problem without contacts.
    desired = true[robot.actuated] / PERIOD_S
    problem = build_problem(robot, q, v, desired, ContactSet.empty(), PERIOD_S)
    back = solve(problem, "none", "none").torques
    errors["round_trip_nm"] = np.abs(back - torques).max()
    return errors


# The report


def report(results: Sequence[RunResult]) -> Section:
    """The formulas and what they predict."""
    found = {r.parameters["variant"]: r for r in results}
    variants = [found[name] for name in VARIANTS if name in found]
    table = Table(
        f"Solo12, base at {SPEED_M_S} m/s, feet at rest, coulomb/qp, T_c = one period.",
        (
            "what is minimised",
            "sum of normal forces, N",
            "weight, N",
            "braking force, N",
            "change of base velocity, m/s",
        ),
        [
            (
                VARIANTS[r.parameters["variant"]][0],
                r["normal_n"],
                r["weight_n"],
                abs(round(r["braking_n"], 6)),
                abs(round(r["base_change_m_s"], 6)),
            )
            for r in variants
        ],
        [r.description.command() for r in variants],
    )
    return Section(
        "Formulas put to the test (first paper)",
        [Text(" ".join(__doc__.split("\n\n", 1)[1].split())), table],
        _claims(found),
    )


def _claims(found) -> list[Claim]:
    claims = []
    ours, energy, frozen, sign = (found.get(name) for name in (*VARIANTS, "sign"))
    if ours and energy:
        claims.append(
            Claim(
                "first paper, eq. 69 and 75",
                "minimising the kinetic energy is the same as eq. 75",
                WRONG if abs(energy["normal_n"] / ours["normal_n"] - 1.0) > 1e-3 else REPRODUCED,
                f"kinetic energy predicts {energy['normal_n']:.3g} N of normal force for "
                f"{energy['weight_n']:.3g} N of weight and brakes with {energy['braking_n']:.3g} N; "
                f"the contact velocity {ours['normal_n']:.4g} N and "
                f"{abs(round(ours['braking_n'], 6)):g} N",
                energy.description.command(),
            )
        )
    if frozen and ours:
        bias = frozen["normal_n"] / frozen["weight_n"] - 1.0
        exact = abs(ours["normal_n"] / ours["weight_n"] - 1.0) < 1e-3
        claims.append(
            Claim(
                "first paper, eq. 35",
                "contacts are constrained by J v+ with the Jacobian of now",
                NOT_REPRODUCED if abs(bias) > 1e-3 and exact else REPRODUCED,
                f"leaves out dt dJ/dt v: the weight is missed by {100 * bias:.2g} %, with the term by "
                f"{100 * (ours['normal_n'] / ours['weight_n'] - 1.0):.2g} %",
                frozen.description.command(),
            )
        )
    if sign:
        claims.append(
            Claim(
                "first paper, eq. 37, 58, 73",
                "the torque enters the dynamics as - P^T tau",
                WRONG if sign["minus"] > 0.1 > 1e6 * sign["plus"] else NOT_REPRODUCED,
                f"one period of free flight: relative error {sign['minus']:.2g} with that sign, "
                f"{sign['plus']:.1g} with + dt P^T tau",
                sign.description.command(),
            )
        )
    claims.append(
        Claim(
            "first paper, eq. 64",
            "matrix of the Coulomb LCP: E in block (1, 3), E^T in (3, 1), mu in (3, 2)",
            WRONG,
            "E has n k rows and block (1, 3) n, so the sizes do not fit; E belongs in "
            "(2, 3), mu in (3, 1), -E^T in (3, 2), as `coulomb/lcp` and the runs of `grasp` have it",
            "python -m experiments reproduce grasp",
        )
    )
    return claims
