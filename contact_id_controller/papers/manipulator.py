"""First paper, section 8.4.1 and figure 18: an arm swings a heavy box that four fingers hold.

The controllers know the state of arm and box exactly and have the same error feedback; what differs
is where the contact forces come from. The fingers shall rest where they touch the box, and close
where they do not. ``squeeze_n``: what each finger pushes at least with, on top of which the contact
model puts what the motion needs; the papers have none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, SimulationError, StateError
from contact_id_controller.models import Tangential, row_of, solve
from contact_id_controller.papers.arm_and_box import (
    BOX,
    EDGE_M,
    POSTURE_RAD,
    TIPS,
    Arm,
    MujocoArm,
    RigidArm,
    tip_numbers,
)
from contact_id_controller.problem import build_problem
from contact_id_controller.runs.store import RunDescription
from contact_id_controller.solution import RELAXED, SOLVED

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
"""Beyond this nobody asks how far the box has fallen."""

TRACE_S = 0.02
FEEDBACK = {
    "papers": {"contact_time_constant_s": PERIOD_S, "velocity_product_term": False},
    "ours": {"contact_time_constant_s": 0.05, "velocity_product_term": True},
}

ENGINES = {"mujoco": MujocoArm, "rigid": RigidArm}

CONTROLLERS: dict[str, dict[str, Any]] = {
    "none/pid": {},
    "none/sensed": {},
    "coulomb/qp": {},
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
    rows = []
    for _ in range(round(case.duration_s / PERIOD_S)):
        position, velocity, _ = reference(state.time_s)
        q, v = state.q[:ARM_JOINTS], state.v[:ARM_JOINTS]
        slip = arm.slip_m(state.q)
        try:
            torques, predicted = control.step(state)
            state = world.step(torques)
        except (SimulationError, StateError):
            break  # the torques have torn everything apart, which is a result
        control.measure(world.contact_forces())
        real = world.contact_forces()
        rows.append(
            (
                np.abs(position - q).mean(),
                np.abs(velocity - v).mean(),
                slip,
                np.linalg.norm(real, axis=1).sum(),
                np.linalg.norm(predicted.sum(axis=0) - real.sum(axis=0)),
                torques,
            )
        )
    return _figures(rows, control, case)


def reference(time_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of the arm's seven joints: q0 + A (cos w t - 1)."""
    a, w = SWING_RAD, RATE_RAD_S
    one = np.ones(ARM_JOINTS)
    return (
        POSTURE_RAD + a * (np.cos(w * time_s) - 1.0),
        -a * w * np.sin(w * time_s) * one,
        -a * w * w * np.cos(w * time_s) * one,
    )


def _figures(rows, control, case: Case) -> dict[str, Any]:
    error, speed_error, slip, real, net_error, torques = (np.array(c) for c in zip(*rows))
    done_s = PERIOD_S * len(error)
    dropped = np.flatnonzero(slip > DROPPED_M)
    held = slice(0, dropped[0] if len(dropped) else len(slip))
    stride = max(1, round(TRACE_S / PERIOD_S))
    rate = np.abs(np.diff(torques, axis=0)) / PERIOD_S
    blocks = len(error) // stride * stride
    return {
        "position_error_rad": error.mean(),
        "velocity_error_rad_s": speed_error.mean(),
        "dropped_s": PERIOD_S * dropped[0] if len(dropped) else None,
        "diverged_s": done_s if done_s < case.duration_s - 0.5 * PERIOD_S else None,
        "slip_m": min(slip[-1], FAR_M),
        "torque_nm": np.abs(torques).mean(),
        "torque_rate_nm_s": rate.mean(),
        "largest_torque_rate_nm_s": rate.max(),
        "torque_rate_while_held_nm_s": rate[held].mean() if held.stop > 1 else None,
        "force_error_n": net_error[held].mean(),
        "force_n": real[held].mean(),
        "statuses": control.statuses,
        "trace_s": TRACE_S,
        "error_trace_rad": error[:blocks].reshape(-1, stride).mean(axis=1),
        "slip_trace_m": np.minimum(slip[:blocks:stride], FAR_M),
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
        self._options = {}
        if self._row.takes("distribution"):
            self._options["distribution"] = case.distribution
        self._measured = np.zeros((len(TIPS), 3))
        self._previous = None
        self.statuses: dict[str, int] = {}

    def measure(self, forces: np.ndarray) -> None:
        """Take the forces on the tips over the last period, (4, 3) N."""
        self._measured = forces

    def step(self, state) -> tuple[np.ndarray, np.ndarray]:
        """Torques (11,) and the predicted forces on the tips (4, 3)."""
        contacts = self._scene.contacts(state.q)
        touched = np.zeros(len(TIPS), dtype=bool)
        tips = np.array(tip_numbers(contacts), dtype=int)
        touched[tips[contacts.gaps <= TOUCHING_M]] = True
        position, velocity, acceleration = (
            np.append(part, np.zeros(len(TIPS))) for part in reference(state.time_s)
        )
        q, v = state.q[self._robot.q_index], state.v[self._robot.actuated]
        if self._row.feedback_only:
            position[ARM_JOINTS:] = CLOSED_RAD
            self._count(self._row.solver)
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
        self._count(solution.status)
        predicted = np.zeros((len(TIPS), 3))
        np.add.at(
            predicted, tip_numbers(contacts), solution.forces + squeeze[:, None] * contacts.normals
        )
        limits = self._robot.effort_limits
        return np.clip(solution.torques, -limits, limits), predicted

    def _count(self, status: str) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1

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
