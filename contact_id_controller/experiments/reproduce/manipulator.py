"""First paper, section 8.4.1 and figure 18: an arm swings a heavy box that four fingers hold.

The controllers know the state of arm and box exactly and have the same error feedback; what differs
is where the contact forces come from. The fingers shall rest where they touch the box, and close
where they do not. ``squeeze_n``: what each finger pushes at least with, on top of which the contact
model puts what the motion needs; the papers have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, SimulationError
from contact_id_controller.experiments.reproduce.arm_and_box import (
    BOX, DENSITY_KG_M3, EDGE_M, POSTURE_RAD, TIPS, Arm, MujocoArm, tip_numbers,
)
from contact_id_controller.experiments.reproduce.blocks import (
    BETTERED, NOT_REPRODUCED, REPRODUCED, WRONG, Claim, Picture, Section, Table, Text, shown,
)
from contact_id_controller.experiments.reproduce.figures import (
    GREY, MORE_COLOURS, draw, legend_beside,
)
from contact_id_controller.experiments.reproduce.runs import RunDescription, RunResult
from contact_id_controller.models import options, solve
from contact_id_controller.problem import build_problem
from contact_id_controller.solution import RELAXED, SOLVED

NAME = "manipulator"
PERIOD_S = 1e-3
WEIGHT_N = 9.81 * DENSITY_KG_M3 * EDGE_M ** 3
ARM_JOINTS = 7
SWING_RAD, RATE_RAD_S, CLOSED_RAD = 0.1, 10.0, -0.01
POSITION_GAIN, VELOCITY_GAIN = 1600.0, 80.0     # 1/s2, 1/s, of every inverse dynamics controller
PID_POSITION, PID_VELOCITY = 10.0, 0.1          # N·m/rad, N·m·s/rad
DROPPED_M = EDGE_M / 2
"""The box is dropped once it has slipped this far in the hand."""

FAR_M = 0.1
"""Beyond this nobody asks how far the box has fallen."""

TRACE_S = 0.02
FEEDBACK = {"papers": {"contact_time_constant_s": PERIOD_S, "velocity_product_term": False},
            "ours": {"contact_time_constant_s": 0.05, "velocity_product_term": True}}

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
    names = ("none/pid", "none/sensed", "coulomb/qp", "coulomb/lcp", "no_slip/lcp")
    chosen = names if quick else CONTROLLERS
    duration = 2.0 if quick else 3.0
    cases = []
    for mu in (1.0, 100.0):
        for name in chosen:
            cases.append(describe(controller=name, mu=mu, duration_s=duration))
        cases.append(describe(controller="coulomb/qp", mu=mu, squeeze_n=SQUEEZE_N, trust=TRUST,
                              duration_s=duration))
        cases.append(describe(controller="coulomb/qp", mu=mu, settings="papers",
                              duration_s=duration))
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
    world = MujocoArm(arm, case.mu, PERIOD_S)
    state = world.reset(arm.start())
    control = _Control(arm, case)
    rows = []
    for _ in range(round(case.duration_s / PERIOD_S)):
        torques, predicted = control.step(state)
        position, velocity, _ = reference(state.time_s)
        q, v = state.q[:ARM_JOINTS], state.v[:ARM_JOINTS]
        slip = arm.slip_m(state.q)
        try:
            state = world.step(torques)
        except SimulationError:
            break  # the torques have torn everything apart, which is a result
        control.measure(world.contact_forces())
        real = np.linalg.norm(world.contact_forces(), axis=1).sum()
        rows.append((np.abs(position - q).mean(), np.abs(velocity - v).mean(), slip, real,
                     np.linalg.norm(predicted, axis=1).sum(), torques))
    return _figures(rows, control, case)


def reference(time_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of the arm's seven joints: q0 + A (cos w t - 1)."""
    a, w = SWING_RAD, RATE_RAD_S
    one = np.ones(ARM_JOINTS)
    return (POSTURE_RAD + a * (np.cos(w * time_s) - 1.0), -a * w * np.sin(w * time_s) * one,
            -a * w * w * np.cos(w * time_s) * one)


def _figures(rows, control, case: Case) -> dict[str, Any]:
    error, speed_error, slip, real, predicted, torques = (np.array(c) for c in zip(*rows))
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
        "force_error_n": np.abs(predicted - real)[held].mean(),
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
        self._friction, _, self._solver = case.controller.partition("/")
        # A controller that counts on all the friction there is slips at the first inaccuracy.
        self._scene = arm.scene(np.inf if self._friction == "no_slip" else case.trust * case.mu)
        self._settings = FEEDBACK[case.settings]
        self._options = {}
        if self._solver != "pid" and "distribution" in options(self._friction, self._solver):
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
        touched[[tip for tip, gap in zip(tip_numbers(contacts), contacts.gaps) if gap <= 0.0]] = True
        position, velocity, acceleration = (np.append(part, np.zeros(len(TIPS)))
                                            for part in reference(state.time_s))
        q, v = state.q[self._robot.q_index], state.v[self._robot.actuated]
        if self._solver == "pid":
            position[ARM_JOINTS:] = CLOSED_RAD
            self._count("pid")
            torques = PID_POSITION * (position - q) + PID_VELOCITY * (velocity - v)
            return torques, np.zeros((len(TIPS), 3))
        position[ARM_JOINTS:] = np.where(touched, q[ARM_JOINTS:], CLOSED_RAD)
        wanted = acceleration + POSITION_GAIN * (position - q) + VELOCITY_GAIN * (velocity - v)
        squeeze = self._case.squeeze_n * (contacts.gaps <= 0.0)
        problem = build_problem(
            self._robot, state.q, state.v, wanted, contacts, PERIOD_S,
            external_forces=self._pushing(contacts, state.q, squeeze), **self._settings)
        if self._solver == "sensed":
            self._options["forces"] = self._measured[tip_numbers(contacts)]
        solution = solve(problem, self._friction, self._solver, warm_start=self._previous,
                         **self._options)
        self._previous = solution if solution.status in (SOLVED, RELAXED) else None
        self._count(solution.status)
        predicted = np.zeros((len(TIPS), 3))
        np.add.at(predicted, tip_numbers(contacts),
                  solution.forces + squeeze[:, None] * contacts.normals)
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
        for frame, point, normal, size in zip(contacts.frames, contacts.points, contacts.normals,
                                              squeeze):
            for name, sign in ((frame, 1.0), (BOX, -1.0)):
                index = model.getFrameId(name)
                arm = point - data.oMf[index].translation
                force = sign * size * normal
                jacobian = pin.getFrameJacobian(model, data, index, pin.LOCAL_WORLD_ALIGNED)
                total += jacobian.T @ np.concatenate([force, np.cross(arm, force)])
        return total


# The report

PAPER_DROP_S = 1.5
TARGETS_RAD = {1.0: 0.006, 100.0: 0.012}
"""Mean error of the seven joints that ours must not exceed, read off the paper's figure 18."""


def label(case: Case) -> str:
    """Name of a controller in tables and legends."""
    name = {"none/pid": "PID", "none/sensed": "sensed forces"}.get(case.controller, case.controller)
    more = [f"squeeze {case.squeeze_n:g} N, counts on {case.trust:g} mu"] if case.squeeze_n else []
    more += ["papers' settings"] if case.settings == "papers" else []
    return ", ".join([name, *more])


def report(results: Sequence[RunResult]) -> Section:
    """Figure 18 and its text, and a hand that does not drop the box."""
    found = {Case(**result.parameters): result for result in results}
    text = Text(
        f"A {DENSITY_KG_M3:g} kg/m3 box of {1e3 * EDGE_M:g} mm edge, held by four spherical "
        "fingertips, is swung by an arm of seven joints (q0 + 0.1 cos 10 t - 0.1). Simulated by "
        "MuJoCo, which shares no line with the controllers. Posture, hand and link inertias are "
        "ours, the paper does not state them. *Dropped*: the box has slipped half its edge.")
    blocks: list = [text]
    for mu in sorted({case.mu for case in found}):
        chosen = {case: result for case, result in found.items() if case.mu == mu}
        blocks += [_table(mu, chosen), _picture(mu, chosen)]
    return Section("Arm and box (first paper, 8.4.1)", blocks, _claims(found))


def _table(mu: float, found) -> Table:
    head = ("controller", "engine", "mean joint error, rad", "dropped after, s", "mean torque, N·m",
            "torque rate while held, N·m/s", "force error while held, N", "status")
    rows = [(label(case), case.engine, r["position_error_rad"], _drop(r), r["torque_nm"],
             r["torque_rate_while_held_nm_s"], r["force_error_n"], _statuses(r))
            for case, r in found.items()]
    return Table(f"mu {mu:g}. Force error: summed forces on the fingertips, predicted against real.",
                 head, rows, [r.description.command() for r in found.values()])


def _drop(result: RunResult):
    if result["diverged_s"] is not None:
        return f"torn apart at {result['diverged_s']:.3g}"
    return "held" if result["dropped_s"] is None else result["dropped_s"]


def _statuses(result: RunResult) -> str:
    return ", ".join(f"{name} {count}" for name, count in result["statuses"].items())


def _picture(mu: float, found) -> Picture:
    def fill(axes):
        (error,), (slip,) = axes
        for colour, (case, r) in zip(MORE_COLOURS * 2, found.items()):
            time = r["trace_s"] * np.arange(len(r["error_trace_rad"]))
            error.semilogy(time, np.maximum(r["error_trace_rad"], 1e-6), color=colour,
                           linewidth=1.3, label=label(case))
            slip.plot(time, 1e3 * np.array(r["slip_trace_m"])[:len(time)], color=colour,
                      linewidth=1.3)
        error.axhline(TARGETS_RAD.get(mu, np.nan), color=GREY, linestyle="--", label="target")
        slip.axvline(PAPER_DROP_S if mu == 1.0 else np.nan, color=GREY, linestyle="--",
                     label="paper: PID and QP drop it")
        slip.axhline(1e3 * DROPPED_M, color=GREY, linestyle=":", label="dropped")
        error.set(title=f"mu {mu:g}: mean error of the seven joints", ylabel="rad")
        slip.set(title="Slip of the box in the hand", ylabel="mm", xlabel="time (s)")
        legend_beside(error)
        legend_beside(slip)

    return Picture(f"manipulator_mu{mu:g}", draw(11.0, 6.0, 2, 1, fill),
                   f"Figure 18, mu {mu:g}: error over time (means over {1e3 * TRACE_S:g} ms) and slip.")


def _claims(found) -> list[Claim]:
    source, command = "first paper, 8.4.1", f"contact_id reproduce {NAME}"
    claims = []
    for mu, target in TARGETS_RAD.items():
        qp = [r for case, r in found.items() if case.controller == "coulomb/qp" and case.mu == mu
              and case.settings == "ours"]
        pid = [r for case, r in found.items() if case.controller == "none/pid" and case.mu == mu]
        if not (qp and pid):
            continue
        worst = max(r["position_error_rad"] for r in qp)
        other = min(r["position_error_rad"] for r in pid)
        claims.append(Claim(
            f"{source}, figure 18", f"mu {mu:g}: inverse dynamics with predicted forces tracks far "
            f"better than PID (target: {target:g} rad)",
            BETTERED if worst <= target and worst < other else NOT_REPRODUCED,
            f"{worst:.2g} rad against {other:.2g} rad of PID", command))
    plain = _one(found, controller="coulomb/qp", mu=1.0, squeeze_n=0.0, settings="ours")
    pid = _one(found, controller="none/pid", mu=1.0)
    if plain and pid:
        times = plain["dropped_s"], pid["dropped_s"]
        claims.append(Claim(
            source, f"at mu 1 both PID and inverse dynamics drop the box, at about {PAPER_DROP_S} s",
            NOT_REPRODUCED if None in times else REPRODUCED,
            f"coulomb/qp after {shown(times[0])} s, PID after {shown(times[1])} s; when depends on "
            "posture and hand, which the paper does not state", command))
    firm = [(case, r) for case, r in found.items() if case.squeeze_n > 0.0]
    if firm:
        claims.append(Claim(
            source, "a box held by predicted forces slips out at low friction",
            BETTERED if all(r["dropped_s"] is None for _, r in firm) else NOT_REPRODUCED,
            "with a commanded least squeeze, and counting on less friction than there is: " + "; ".join(
                f"mu {case.mu:g} {'held' if r['dropped_s'] is None else 'dropped'}, torque rate "
                f"{r['torque_rate_nm_s']:.0f} N·m/s" for case, r in firm), command))
    sensed = _one(found, controller="none/sensed", mu=1.0)
    if sensed:
        claims.append(Claim(
            source, "with sensed forces, one period old, the box is held at mu 1 for three seconds",
            REPRODUCED if sensed["dropped_s"] is None else NOT_REPRODUCED,
            f"dropped after {shown(sensed['dropped_s'])} s: fed-back forces keep whatever grip there "
            "is and never build one up", command))
    sticky = _one(found, controller="none/sensed", mu=100.0)
    if sticky and plain:
        claims.append(Claim(
            source, "the sensed controller applies excessive forces to the sticky box",
            REPRODUCED if sticky["force_n"] > 10.0 * WEIGHT_N else NOT_REPRODUCED,
            f"mean summed force {sticky['force_n']:.3g} N, weight of the box {WEIGHT_N:.2g} N; in an "
            "engine whose contacts yield a little", command))
    deadbeat = [(case, r) for case, r in found.items() if case.settings == "papers"]
    if deadbeat:
        claims.append(Claim(
            "first paper, eq. 35 and 37", "contact velocities are removed within one period",
            WRONG if any(_drop(r) != "held" for _, r in deadbeat) else REPRODUCED,
            "against contacts that yield a little: " + "; ".join(
                f"mu {case.mu:g} {_drop(r)} s" for case, r in deadbeat)
            + "; over 50 ms (ours) no run is torn apart", command))
    return claims


def _one(found, **wanted):
    """The first result whose case has these values; None without one."""
    return next((r for case, r in found.items()
                 if all(getattr(case, name) == value for name, value in wanted.items())), None)
