"""Finds faults by the model: the single change with which model and measurements agree best, repeatedly."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contact_id_controller.diagnosis import arm_faults, leg_faults
from contact_id_controller.diagnosis.arm_judge import explained
from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong
from contact_id_controller.diagnosis.hypotheses import NOTICED, Hypothesis, best_of

MOST_FAULTS = 3
"""Largest number of faults that are found one after the other."""

ARM = (
    "sign of joints",
    "order of joints",
    "zero offsets",
    "gear ratios",
    "torque constants",
    "gravity",
    "mass and payload",
)
LEGS = (
    "order of feet",
    "IMU mounting",
    "gyroscope",
    "delay of the IMU",
    "sign of joints",
    "order of joints",
    "zero offsets",
    "gear ratios",
    "foot radius",
)
NEEDS = {
    "torque constants": "efforts, N·m, of a fixed base, or commands beside currents",
    "gravity": "efforts or currents of a fixed base",
    "mass and payload": "efforts of a fixed base, or forces of all feet",
    "order of feet": "forces of the feet whose names say which is which, and an IMU",
    "foot radius": "--config with round feet, efforts or their forces, and an IMU",
}
HELD = "a log with the base held and without contact; of a walk, an IMU"

FLAT = 0.1
"""Least increase of the misfit by a wrong value with which the log confirms a right one."""


def faults(case: Case) -> tuple[list[Finding], Case]:
    """A finding for each fault that the model determines, and the case with the faults corrected."""
    found: list[Finding] = []
    by_check: dict[str, list[Hypothesis]] = {}
    before = 0.0
    for _ in range(MOST_FAULTS):
        tested, cost = _tested(case), case.cost
        if cost is None:
            break
        by_check, before = _by_check(tested), cost
        best = best_of([each for each in tested if case.believable(each.cost)], cost)
        if best is None:
            break
        hypothesis, gain = best
        rank = min([gain, *(each.gain for each in found)])
        found.append(
            wrong(
                hypothesis.check,
                f"{hypothesis.text}; residuals fall to {100 * math.exp(-gain / _parts(case)):.0f} %, "
                f"{'certain' if gain > 1.0 else 'likely'}",
                hypothesis.change,
                hypothesis.fragment,
                rank,
                _picture(case),
            )
        )
        if not hypothesis.fragment:
            break
        case = case.with_correction(hypothesis.fragment)
    faulty = {each.check for each in found}
    rest = [check for check in dict.fromkeys((*ARM, *LEGS)) if check not in faulty]
    if not found and case.motion is not None and case.cost is not None:
        if not case.believable(case.cost):
            part = 100.0 * max(0.0, explained(case.motion, case.cost))
            text = (
                "the legs carry the robot"
                if case.carries
                else f"the model explains {part:.0f} % of the efforts' variance, and no tested fault explains most of it"
            )
            return [unknown(check, text, HELD) for check in rest], case
    return found + [
        left_of(check, by_check.get(check, []), before, _parts(case)) for check in rest
    ], case


def _parts(case: Case) -> int:
    """Number of residuals that share a gain: joints of an arm, or one of legs."""
    return 1 if case.motion is None else len(case.log.joints)


def _tested(case: Case) -> list[Hypothesis]:
    if case.motion is not None and case.fit is not None and case.of is not None:
        return list(arm_faults.hypotheses(case.motion, case.of.robot, case.log.joints, case.fit))
    if case.stance is not None and case.of is not None:
        return list(leg_faults.hypotheses(case, case.stance, case.of))
    return []


def _by_check(tested: Sequence[Hypothesis]) -> dict[str, list[Hypothesis]]:
    found: dict[str, list[Hypothesis]] = {}
    for each in tested:
        found.setdefault(each.check, []).append(each)
    return found


def left_of(check: str, tested: list[Hypothesis], cost: float, parts: int) -> Finding:
    """Finding on a check without a fault: fine with its figure, or unknown.

    Args:
        cost: without any change.  parts: number of residuals that share it.
    """
    if not tested:
        needs = NEEDS.get(
            check,
            "a URDF, and efforts or currents of an arm; of a walk an IMU, and efforts or forces of the feet",
        )
        return unknown(check, "nothing to compare with", needs)
    noticeable = [each for each in tested if _would_be_seen(each, cost)]
    if not noticeable:
        return unknown(check, "no fault of it would be noticeable", "a motion of all joints")
    best = min(noticeable, key=lambda each: each.cost if each.tolerance > 0.0 else math.inf)
    outside = [each for each in noticeable if each.tolerance > 0.0 and each.gain(cost) > NOTICED]
    if outside:
        best = max(outside, key=lambda each: each.gain(cost))
        share = 100.0 * math.exp(-best.gain(cost) / parts)
        return unknown(
            check,
            f"best fit: {best.text}; residuals fall to {share:.0f} %, too little to be sure",
            "a longer log with larger and faster motions of all joints, or a better model of friction and masses",
        )
    hidden = len(tested) - len(noticeable)
    more = f"; {hidden} of {len(tested)} tested faults would not be noticeable" if hidden else ""
    if best.tolerance > 0.0 and cost - best.cost > NOTICED:
        return fine(check, f"best fit: {best.text}; within tolerance{more}")
    return fine(check, f"no tested fault agrees better{more}")


def _would_be_seen(each: Hypothesis, cost: float) -> bool:
    """Whether a change beyond the tolerance, or a smaller value found, changes the misfit."""
    if each.tolerance > 0.0:
        return abs(each.value) <= each.tolerance or abs(cost - each.cost) > NOTICED
    return abs(cost - each.cost) > FLAT


def _picture(case: Case) -> Picture | None:
    """Plot of the worst joint's effort, measured and by the model."""
    if case.motion is None or case.fit is None:
        return None
    share = case.fit.residual / np.maximum(np.std(case.motion.effort, axis=0), 1e-9)
    moved = np.std(case.fit.model_torque, axis=0)
    k = int(np.argmax(share * moved))
    measured = case.motion.effort[:, k]
    lines = {"measured": measured, "explained": measured - case.fit.unexplained[:, k]}
    return Picture(
        f"Effort of {case.log.joints[k]}", "time, s", case.motion.time, "N·m or A", lines
    )
