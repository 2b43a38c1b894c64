"""Compares friction in the efforts with the description's."""

from __future__ import annotations

import numpy as np

from contact_id_controller.diagnosis.arm_judge import rubbed
from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.channel_checks import LOADED
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong

FACTOR = 1.5
"""Factor between friction of a warm and a cold gear."""

TOLD = 0.5
"""Share of a joint's residual below which its friction, found or stated, cannot be told."""


def friction(case: Case) -> Finding:
    """Compare friction at each joint's usual speed, fitted and stated; the median joint decides."""
    name, motion, fit = "friction", case.motion, case.fit
    if motion is None or fit is None or case.of is None:
        return unknown(
            name, "needs efforts or currents of a fixed base, and a URDF", "a log of a free motion"
        )
    if not case.believable(fit.cost):
        return unknown(name, "the model does not explain the efforts", "a log of a free motion")
    speed = np.sqrt(np.mean(motion.v**2, axis=0))
    scale = np.where(fit.gain > 0.0, fit.gain, np.nan) if motion.currents else np.ones(len(speed))
    found = fit.friction_at(speed) / scale
    stated = case.of.robot.motors.friction(speed)
    least = TOLD * fit.residual / scale
    significant = np.isfinite(found) & (found > least)
    sizes = np.std(fit.model_torque, axis=0)
    significant &= sizes > LOADED * np.max(sizes)
    values = ", ".join(
        f"{joint} {value:.2g}" for joint, value in zip(case.log.joints, found) if np.isfinite(value)
    )
    both = significant & (stated > least)
    k = int(np.argmax(np.where(significant, found, 0.0)))
    lines = {
        "unexplained and friction": (
            fit.unexplained + rubbed(motion.rubbing, motion.v, fit.friction)
        )[:, k]
    }
    order = np.argsort(motion.v[:, k])
    picture = Picture(
        f"Friction of {case.log.joints[k]}",
        "rad/s",
        motion.v[order, k],
        "effort",
        {n: x[order] for n, x in lines.items()},
    )
    if not both.any():
        return fine(
            name,
            f"the description states no significant friction; at the joints' usual speeds it is, N·m: {values}",
            picture,
        )
    logs = np.log(np.maximum(found[both] / stated[both], 1e-3))
    ratio = float(np.exp(np.median(logs)))
    # Joints that do not agree show a wrong model rather than friction.
    spread = float(np.median(np.abs(logs - np.median(logs))))
    if abs(float(np.log(ratio))) > np.log(FACTOR) + spread:
        return wrong(
            name,
            f"{ratio:.2f} times what the description states (median of {int(both.sum())} joints), likely",
            f"multiply friction and damping by {ratio:.2f}; at the joints' usual speeds friction is, N·m: {values}",
            gain=abs(float(np.log(ratio))),
            picture=picture,
        )
    return fine(name, f"{ratio:.2f} times what the description states", picture)
