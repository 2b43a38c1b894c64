"""What was identified, in lines for people."""

from __future__ import annotations

import numpy as np

from contact_id_controller.identification.corrected import by_angle, roll_pitch
from contact_id_controller.identification.identify import Identified
from contact_id_controller.identification.told import Told

OFF = 3.0
"""Measured torques this many times larger or smaller than the description's are hardly torques at the joints."""


def lines(found: Identified, told: Told) -> list[str]:
    """The summary: how it was fitted, residuals before and after, drives, bodies, and what the log cannot tell."""
    return [
        *_fitted(found),
        *_judged(found),
        *_base(found, told),
        *_drives(found, told),
        *_bodies(found, told),
        *_missing(found, told),
    ]


def _fitted(found: Identified) -> list[str]:
    """What was fitted, and how."""
    unit = "currents, A" if found.in_amperes else "efforts, N·m"
    result = [
        f"Fitted: {len(found.robot.joint_names)} joints, {found.fitted_s:.1f} s of {unit}; motion from the "
        f"{found.source} below {found.cutoff_hz:.1f} Hz (zero phase, chosen by the residual)."
    ]
    if found.left_out:
        result.append(f"Left out, not in the URDF: {', '.join(found.left_out)}.")
    return result


def _judged(found: Identified) -> list[str]:
    """A table of residuals on rows that were not fitted."""
    judged = found.judged
    if judged is None:
        return ["Not judged: nothing was held out."]
    unit = "A" if found.in_amperes else "N·m"
    result = [
        f"Judged on {found.judged_s:.1f} s that were not fitted, where joints move (rms, {unit}):",
        f"  {'joint':24} {'URDF + friction':>16} {'identified':>11} {'ratio':>13} {'R²':>7} {'R², standing too':>17}",
    ]
    everywhere = 1.0 - (judged.everywhere / np.maximum(judged.spread_everywhere, 1e-12)) ** 2
    names, columns = (
        found.robot.joint_names,
        (judged.before, judged.after, judged.ratio, judged.ratio_sd),
    )
    for row in zip(names, *columns, judged.explained, everywhere):
        name, before, after, ratio, sd, explained, whole = row
        result.append(
            f"  {name:24} {before:16.4g} {after:11.4g} {ratio:6.2f} ± {sd:4.2f} {explained:7.4f} {whole:17.4f}"
        )
    worse = ", ".join(name for name, is_so in zip(names, judged.worse) if is_so)
    if worse:
        result.append(
            f"Do not use it: residuals are larger than those of the URDF with friction, by more than chance: {worse}."
        )
    lost = ", ".join(name for name, share in zip(names, judged.explained) if share < 0.0)
    if lost:
        result.append(
            f"Not explained: what is left is larger than what was measured varies: {lost}. Are these torques of joints, "
            "not of motors that move two of them? Friction and offset found here hold for no other motion."
        )
    return result


def _base(found: Identified, told: Told) -> list[str]:
    """How far the base leans."""
    angles = [
        f"{name} {np.degrees(value):.2f} ± {np.degrees(sd):.1g}"
        for name, value, sd in zip(("roll", "pitch"), roll_pitch(found.lean), told.lean_sd[::-1])
    ]
    return [f"The base leans against the URDF's root (degrees): {', '.join(angles)}."]


def _drives(found: Identified, told: Told) -> list[str]:
    """A line for each joint's drive."""
    result = ["Drives (± one standard deviation; ? where this log does not tell it):"]
    for j, name in enumerate(found.robot.joint_names):
        cells = [
            f"{title} {value:.3g} ± {sd:.2g}{'' if sure else ' ?'}"
            for title, value, sd, sure in zip(
                ("rotor", "dry", "viscous +", "viscous -", "breakaway", "offset"),
                found.fit.parameters.drives[j],
                told.drive_sd[j],
                told.drives[j],
            )
            if title != "breakaway" or found.shapes[j].breakaway_rad_s
        ]
        if found.shapes[j].travel_rad is not None:
            cells.append(f"by its angle {by_angle(found, j):.3g}")
        if found.in_amperes:
            constant = 1.0 / found.fit.parameters.gains[j]
            sure = "" if told.gains[j] else " ?"
            cells.append(f"{constant:.3g} N·m/A ± {100 * told.gain_sd[j]:.0f} %{sure}")
        elif found.measured_constants is not None:
            cells.append(f"{found.measured_constants[j]:.3g} N·m/A")
        result.append(f"  {name:24} {', '.join(cells)}")
    return result


def _bodies(found: Identified, told: Told) -> list[str]:
    """A line for each body's mass."""
    result = ["Bodies (mass, kg; how many of ten coordinates this log tells):"]
    names, before = list(found.robot.model.names)[1:], list(found.robot.model.inertias)[1:]
    for name, stated, mass, sd, count, sure in zip(
        names,
        before,
        found.fit.parameters.bodies[::10],
        told.body_sd[:, 0],
        told.coordinates,
        told.mass,
    ):
        result.append(
            f"  behind {name:17} {stated.mass:7.3f} -> {mass:7.3f} ± {sd:.2g}{'' if sure else ' ?'}, {count} of 10"
        )
    return result


def _missing(found: Identified, told: Told) -> list[str]:
    """What the log cannot tell, and what looks wrong."""
    result = [
        f"Any motion could tell {told.base} combinations of masses, inertias and rotors; this log tells {told.known} of "
        "them to a tenth. The rest is the URDF's; --excite plans a motion that tells more."
    ]
    if found.in_amperes:
        result.append(
            "Currents tell no scale: torque per ampere is right as far as the URDF's masses are."
        )
    scale = found.fit.scale
    off = [
        f"{name} {value:.2g}"
        for name, value in zip(found.robot.joint_names, scale)
        if np.isfinite(value) and not 1.0 / OFF < value < OFF
    ]
    if off and not found.in_amperes:
        result.append(
            f"Look at this: efforts are so many times what the URDF's masses explain: {', '.join(off)}. If they are "
            "currents, or torques before the gear, or count the other way round, name them current with --map."
        )
    return result
