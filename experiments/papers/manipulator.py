"""First paper, section 8.4.1 and figure 18: an arm swings a heavy box that four fingers hold.

The controllers know the state of arm and box exactly and have the same error feedback; what differs
is where the contact forces come from. The fingers shall rest where they touch the box, and close
where they do not. ``squeeze_n``: what each finger pushes at least with, on top of which the contact
model puts what the motion needs; the papers have none.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, SimulationError, StateError
from contact_id_controller.models import Tangential, row_of, solve
from contact_id_controller.problem import build_problem
from contact_id_controller.report.metrics import mean_abs, mean_rate, rates
from contact_id_controller.runs.record import RecordBuilder, RunRecord
from contact_id_controller.solution import RELAXED, SOLVED
from experiments.papers import AS_PRINTED
from experiments.papers.arm_and_box import (
    BOX,
    EDGE_M,
    POSTURE_RAD,
    TIPS,
    Arm,
    MujocoArm,
    RigidArm,
    tip_numbers,
)
from experiments.papers.store import RunDescription

NAME = "manipulator"
PERIOD_S = 1e-3
ARM_JOINTS = 7
SWING_RAD, RATE_RAD_S, CLOSED_RAD = 0.1, 10.0, -0.01
POSITION_GAIN, VELOCITY_GAIN = 1600.0, 80.0  # 1/s2, 1/s, of every inverse dynamics controller
PID_POSITION, PID_VELOCITY = 10.0, 0.1  # N·m/rad, N·m·s/rad
DROPPED_M = EDGE_M / 2
"""The box is dropped once it has slipped this far in the hand."""

TOUCHING_M = 1e-5
"""A finger within this of the box touches it: rigid contacts rest within rounding of the surface."""

FAR_M = 0.1
"""Beyond this it does not matter how far the box has fallen."""

TRACE_S = 0.02
FEEDBACK = {
    "papers": {"contact_time_constant_s": PERIOD_S, "velocity_product_term": False},
    "ours": {"contact_time_constant_s": 0.05, "velocity_product_term": True},
}

ENGINES = {"mujoco": MujocoArm, "rigid": RigidArm}

CONTROLLERS: dict[str, dict[str, Any]] = {
    "none/pid": {},
    "none/sensed": {},
    "coulomb/qp": AS_PRINTED,
    "coulomb/lcp": {},
    "coulomb/lcp_min_diff": {},
    "coulomb/qp_one_stage": {},
    "coulomb/qcqp": {},
    "no_slip/qp": {},
    "no_slip/lcp": {},
}


class Case(NamedTuple):
    """The parameters of a run, as they stand in its description."""

    controller: str
    mu: float
    engine: str = "mujoco"
    settings: str = "ours"
    squeeze_n: float = 0.0
    trust: float = 1.0
    distribution: str = "least_torque"
    duration_s: float = 3.0


def describe(**values) -> RunDescription:
    """The description of a case; see `Case`."""
    case = Case(**values)
    return RunDescription(NAME, case._asdict())


def runs(quick: bool) -> list[RunDescription]:
    """All controllers on both boxes; the quick ones leave out what only completes the table."""
    names = ("none/pid", "none/sensed", "coulomb/qp", "coulomb/lcp", "no_slip/lcp", "no_slip/qp")
    chosen = names if quick else tuple(CONTROLLERS)
    duration = 2.0 if quick else 3.0
    cases = []
    for mu in (1.0, 100.0):
        common = {"mu": mu, "duration_s": duration}
        cases += [describe(controller=name, **common) for name in chosen]
        # The paper's engine was rigid, and its controllers are at home there.
        cases += [
            describe(controller=name, engine="rigid", settings="papers", **common)
            for name in chosen
        ]
        cases.append(describe(controller="coulomb/qp", settings="papers", **common))
        cases += [
            describe(
                controller="coulomb/qp", engine=engine, squeeze_n=SQUEEZE_N, trust=TRUST, **common
            )
            for engine in ENGINES
        ]
        cases.append(describe(controller="coulomb/qp", engine="rigid", **common))
    return cases


SQUEEZE_N, TRUST = 20.0, 0.7
"""Of our own controller: how hard each finger presses at least, and the part of the coefficient of
friction that it counts on."""


def run(description: RunDescription) -> dict[str, Any]:
    """Swing the box; errors over time, when it fell, torques and forces."""
    case = Case(**description.parameters)
    if case.controller not in CONTROLLERS:
        raise ConfigurationError(f"no controller {case.controller!r}")
    arm = Arm.make()
    if case.engine not in ENGINES:
        raise ConfigurationError(f"no engine {case.engine!r}")
    world = ENGINES[case.engine](arm, case.mu, PERIOD_S)
    state = world.reset(arm.start())
    control = _Control(arm, case)
    builder = RecordBuilder(PERIOD_S, arm.robot.joint_names, TIPS)
    for _ in range(round(case.duration_s / PERIOD_S)):
        before, begun = state, time.perf_counter()
        try:
            torques, predicted = control.step(state)
            step_s = time.perf_counter() - begun
            state = world.step(torques)
        except (SimulationError, StateError):
            break  # the torques have torn everything apart, which is a result
        control.measure(world.contact_forces())
        position, velocity, _ = whole_hand(before.time_s)
        builder.add(
            time_s=before.time_s,
            q=before.q,
            v=before.v,
            position=arm.robot.joints_of(before.q),
            velocity=before.v[arm.robot.actuated],
            reference_position=position,
            reference_velocity=velocity,
            torques=torques,
            saturated=np.abs(torques) >= arm.robot.effort_limits,
            predicted_forces=predicted,
            simulated_forces=world.contact_forces(),
            contact=np.linalg.norm(predicted, axis=1) > 0.0,
            solve_time_s=np.nan,
            step_time_s=step_s,
            power_loss_w=np.nan,
            status=control.status,
        )
    record = builder.record()
    return _figures(record, np.array([arm.slip_m(q) for q in record.q]), case)


def reference(time_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of the arm's seven joints: q0 + A (cos w t - 1)."""
    a, w = SWING_RAD, RATE_RAD_S
    one = np.ones(ARM_JOINTS)
    return (
        POSTURE_RAD + a * (np.cos(w * time_s) - 1.0),
        -a * w * np.sin(w * time_s) * one,
        -a * w * w * np.cos(w * time_s) * one,
    )


def whole_hand(time_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of arm and fingers, which have no reference of their own: zero."""
    return tuple(np.append(part, np.zeros(len(TIPS))) for part in reference(time_s))


def _figures(record: RunRecord, slip_m: np.ndarray, case: Case) -> dict[str, Any]:
    """Errors are those of the arm's joints; ``held``: until the box is dropped."""
    arm = slice(0, ARM_JOINTS)
    position_error = record.reference_position[:, arm] - record.position[:, arm]
    velocity_error = record.reference_velocity[:, arm] - record.velocity[:, arm]
    net_error = (record.predicted_forces - record.simulated_forces).sum(axis=1)
    tip_forces = np.linalg.norm(record.simulated_forces, axis=2).sum(axis=1)
    dropped = np.flatnonzero(slip_m > DROPPED_M)
    held = slice(0, dropped[0] if len(dropped) else len(record))
    stride = max(1, round(TRACE_S / PERIOD_S))
    rate = rates(record.torques, record.time_s)
    blocks = len(record) // stride * stride
    error = np.abs(position_error).mean(axis=1)
    done_s = record.duration_s
    return {
        "mean_joint_position_error_rad": mean_abs(position_error),
        "mean_joint_velocity_error_rad_s": mean_abs(velocity_error),
        "dropped_s": PERIOD_S * dropped[0] if len(dropped) else None,
        "diverged_s": done_s if done_s < case.duration_s - 0.5 * PERIOD_S else None,
        "slip_m": min(slip_m[-1], FAR_M),
        "torque_mean_nm": mean_abs(record.torques),
        "torque_rate_mean_nm_s": mean_rate(record.torques, record.time_s),
        "torque_rate_largest_nm_s": rate.max(initial=0.0),
        "torque_rate_while_held_nm_s": rate[held].mean() if held.stop > 1 else None,
        "box_force_error_n": np.linalg.norm(net_error[held], axis=1).mean(),
        "tip_forces_n": tip_forces[held].mean(),
        "status_counts": dict(Counter(map(str, record.status))),
        "trace_s": TRACE_S,
        "error_trace_rad": error[:blocks].reshape(-1, stride).mean(axis=1),
        "slip_trace_m": np.minimum(slip_m[:blocks:stride], FAR_M),
    }


class _Control:
    """Inverse dynamics of arm and box with one of the contact models, or one of the references."""

    def __init__(self, arm: Arm, case: Case):
        self._arm, self._case, self._robot = arm, case, arm.robot
        self._row = row_of(*case.controller.split("/"))
        # A controller that counts on all the friction there is slips at the first inaccuracy.
        unbounded = self._row.tangential is Tangential.NO_SLIP
        self._scene = arm.scene(np.inf if unbounded else case.trust * case.mu)
        self._settings = FEEDBACK[case.settings]
        self._options = dict(CONTROLLERS[case.controller])
        if self._row.takes("distribution"):
            self._options["distribution"] = case.distribution
        self._measured = np.zeros((len(TIPS), 3))
        self._previous = None
        self.status = self._row.solver

    def measure(self, forces: np.ndarray) -> None:
        """Take the forces on the tips over the last period, (4, 3) N."""
        self._measured = forces

    def step(self, state) -> tuple[np.ndarray, np.ndarray]:
        """Torques (11,) and the predicted forces on the tips (4, 3)."""
        contacts = self._scene.contacts(state.q)
        touched = np.zeros(len(TIPS), dtype=bool)
        tips = np.array(tip_numbers(contacts), dtype=int)
        touched[tips[contacts.gaps <= TOUCHING_M]] = True
        position, velocity, acceleration = whole_hand(state.time_s)
        q, v = self._robot.joints_of(state.q), state.v[self._robot.actuated]
        if self._row.feedback_only:
            position[ARM_JOINTS:] = CLOSED_RAD
            torques = PID_POSITION * (position - q) + PID_VELOCITY * (velocity - v)
            return torques, np.zeros((len(TIPS), 3))
        position[ARM_JOINTS:] = np.where(touched, q[ARM_JOINTS:], CLOSED_RAD)
        wanted = acceleration + POSITION_GAIN * (position - q) + VELOCITY_GAIN * (velocity - v)
        squeeze = self._case.squeeze_n * (contacts.gaps <= TOUCHING_M)
        problem = build_problem(
            self._robot,
            state.q,
            state.v,
            wanted,
            contacts,
            PERIOD_S,
            external_forces=self._pushing(contacts, state.q, squeeze),
            **self._settings,
        )
        if self._row.takes("forces"):
            self._options["forces"] = self._measured[tip_numbers(contacts)]
        solution = solve(problem, *self._row.pair, warm_start=self._previous, **self._options)
        self._previous = solution if solution.status in (SOLVED, RELAXED) else None
        self.status = solution.status
        predicted = np.zeros((len(TIPS), 3))
        np.add.at(
            predicted, tip_numbers(contacts), solution.forces + squeeze[:, None] * contacts.normals
        )
        limits = self._robot.effort_limits
        return np.clip(solution.torques, -limits, limits), predicted

    def _pushing(self, contacts: ContactSet, q: np.ndarray, squeeze: np.ndarray):
        """Generalized force (nv,) of a push of each finger on the box, and of the box on it."""
        if not squeeze.any():
            return None
        model, data = self._robot.model, self._robot.data
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        total = np.zeros(model.nv)
        for frame, point, normal, size in zip(
            contacts.frames, contacts.points, contacts.normals, squeeze
        ):
            for name, sign in ((frame, 1.0), (BOX, -1.0)):
                index = model.getFrameId(name)
                arm = point - data.oMf[index].translation
                force = sign * size * normal
                jacobian = pin.getFrameJacobian(model, data, index, pin.LOCAL_WORLD_ALIGNED)
                total += jacobian.T @ np.concatenate([force, np.cross(arm, force)])
        return total
