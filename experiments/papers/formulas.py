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
from experiments.papers import kinetic_energy
from experiments.papers.blocks import Claim, Section, Text
from experiments.papers.paper import Paper
from experiments.papers.store import RunDescription, RunResult

NAME = "formulas"
PAPER = Paper(NAME)
PERIOD_S, SPEED_M_S = 1e-3, 0.3
VARIANTS = {
    "ours": ("contact velocity (eq. 75)", "qp", {}),
    "kinetic energy": ("kinetic energy (eq. 69)", kinetic_energy.MODEL.solver, {}),
    "frozen": ("eq. 75, Jacobian frozen (eq. 35)", "qp", {"velocity_product_term": False}),
}
"""Name -> title, solver, options of the problem."""


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
    _, solver, assembly = VARIANTS[variant]
    problem = build_problem(robot, q, v, acceleration, contacts, PERIOD_S, **assembly)
    with kinetic_energy.registered():
        solution = solve(problem, "coulomb", solver)
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
    rows = [
        {
            **r.values,
            "title": VARIANTS[r.parameters["variant"]][0],
            "braking": abs(round(r["braking_n"], 6)),
            "change": abs(round(r["base_change_m_s"], 6)),
        }
        for r in variants
    ]
    commands = [r.description.command() for r in variants]
    table = PAPER.table("variants", rows, commands, speed=SPEED_M_S)
    text = Text(" ".join(__doc__.split("\n\n", 1)[1].split()))
    return PAPER.section([text, table], _claims(found))


def _claims(found) -> list[Claim]:
    claims = []
    ours, energy, frozen, sign = (found.get(name) for name in (*VARIANTS, "sign"))
    if ours and energy:
        differs = abs(energy["normal_n"] / ours["normal_n"] - 1.0) > 1e-3
        braking = abs(round(ours["braking_n"], 6))
        both = dict(energy=energy, ours=ours, braking=braking)
        command = energy.description.command()
        claims.append(PAPER.claim("objectives", differs, command=command, **both))
    if frozen and ours:
        bias, left = (r["normal_n"] / r["weight_n"] - 1.0 for r in (frozen, ours))
        biased, command = abs(bias) > 1e-3 > abs(left), frozen.description.command()
        claims.append(PAPER.claim("jacobian", biased, command=command, bias=bias, left=left))
    if sign:
        wrong, command = sign["minus"] > 0.1 > 1e6 * sign["plus"], sign.description.command()
        claims.append(PAPER.claim("sign", wrong, command=command, sign=sign))
    return [*claims, PAPER.claim("blocks", command="python -m experiments reproduce grasp")]
