"""The section of the report about the first paper's manipulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.experiments.reproduce.arm_and_box import DENSITY_KG_M3, EDGE_M
from contact_id_controller.experiments.reproduce.blocks import (
    BETTERED, NOT_REPRODUCED, REPRODUCED, Claim, Picture, Section, Table, Text, shown,
)
from contact_id_controller.experiments.reproduce.figures import (
    GREY, MORE_COLOURS, draw, legend_beside,
)
from contact_id_controller.experiments.reproduce.manipulator import (
    DROPPED_M, NAME, TRACE_S, Case,
)
from contact_id_controller.experiments.reproduce.runs import RunResult

WEIGHT_N = 9.81 * DENSITY_KG_M3 * EDGE_M ** 3
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
        "ours, the paper does not state them. Dropped: the box has slipped half its edge.")
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


def _fate(result: RunResult) -> str:
    drop = _drop(result)
    return drop if isinstance(drop, str) else f"dropped after {drop:.3g} s"


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
            NOT_REPRODUCED if any(_drop(r) != "held" for _, r in deadbeat) else REPRODUCED,
            "against contacts that yield a little: " + "; ".join(
                f"mu {case.mu:g} {_fate(r)}" for case, r in deadbeat)
            + "; over 50 ms (ours) none is torn apart", command))
    return claims


def _one(found, **wanted):
    """The first result whose case has these values; None without one."""
    return next((r for case, r in found.items()
                 if all(getattr(case, name) == value for name, value in wanted.items())), None)
