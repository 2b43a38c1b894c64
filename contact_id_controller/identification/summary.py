"""The text summary of an identification."""

from __future__ import annotations

import numpy as np

from contact_id_controller.identification.corrected import by_angle, roll_pitch
from contact_id_controller.identification.identify import Identified
from contact_id_controller.identification.told import Told

OFF = 3.0
"""Measured torques this many times larger or smaller than the description's are hardly torques at the joints."""


def lines(found: Identified, told: Told) -> list[str]:
    """Lines of the summary: fit, held-out residuals, base, drives, bodies, and what the log does not determine."""
    return [
        *_fitted(found),
        *_judged(found),
        *_base(found, told),
        *_drives(found, told),
        *_bodies(found, told),
        *_missing(found, told),
    ]


def _fitted(found: Identified) -> list[str]:
    """Lines on the data and the filter of the fit."""
    unit = "currents, A" if found.in_amperes else "efforts, N·m"
    result = [
        f"Fitted: {len(found.robot.joint_names)} joints, {found.fitted_s:.1f} s of {unit}; motion from the "
        f"{found.source} below {found.cutoff_hz:.1f} Hz (zero phase, chosen by the residual)."
    ]
    if found.missing.undescribed:
        result.append(f"Left out, not in the URDF: {', '.join(found.missing.undescribed)}.")
    if found.missing.unmeasured:
        result.append(
            f"No {'current' if found.in_amperes else 'effort'} in the log, or one that never changes: "
            f"{', '.join(found.missing.unmeasured)}. Drives stay as in the URDF there; name columns with --map."
        )
    return result


def _judged(found: Identified) -> list[str]:
    """Lines of a table of held-out residuals per joint, and warnings about joints that got worse."""
    judged = found.judged
    if judged is None:
        return ["Not evaluated: no samples were held out."]
    unit, torque = ("A", "current") if found.in_amperes else ("N·m", "effort")
    result = [
        f"Evaluated on {found.judged_s:.1f} s that were not fitted, where joints move (rms, {unit}):",
        f"  {'joint':24} {'URDF + friction':>16} {'identified':>11} {'ratio':>13} {'R²':>7} {'R², all samples':>17}",
    ]
    everywhere = 1.0 - (judged.everywhere / np.maximum(judged.spread_everywhere, 1e-12)) ** 2
    names, columns = (
        found.robot.joint_names,
        (judged.before, judged.after, judged.ratio, judged.ratio_sd),
    )
    for row in zip(names, *columns, judged.explained, everywhere):
        name, before, after, ratio, sd, explained, of_all = row
        if not np.isfinite(after):
            result.append(f"  {name:24} no motion with {torque} in these samples")
            continue
        result.append(
            f"  {name:24} {before:16.4g} {after:11.4g} {ratio:6.2f} ± {sd:4.2f} {explained:7.4f} {of_all:17.4f}"
        )
    worse = ", ".join(name for name, is_so in zip(names, judged.worse) if is_so)
    if worse:
        result.append(
            "Do not use the identified model: its residuals exceed those of the URDF with friction, beyond chance, "
            f"at: {worse}."
        )
    lost = ", ".join(name for name, share in zip(names, judged.explained) if share < 0.0)
    if lost:
        result.append(
            f"Negative R² (residual larger than the variation of the measured torque) at: {lost}. Check that efforts "
            "are joint torques, not torques of motors coupled to two joints; the friction and offset found here do not "
            "transfer to other motions."
        )
    return result


def _base(found: Identified, told: Told) -> list[str]:
    """Line with the base's roll and pitch against the URDF's root, degrees."""
    angles = [
        f"{name} {np.degrees(value):.2f} ± {np.degrees(sd):.1g}"
        for name, value, sd in zip(("roll", "pitch"), roll_pitch(found.lean), told.lean_sd[::-1])
    ]
    return [f"Tilt of the base relative to the URDF's root (degrees): {', '.join(angles)}."]


def _drives(found: Identified, told: Told) -> list[str]:
    """Lines with the drive parameters of each joint; ``?`` where the log does not determine one."""
    result = ["Drives (± one standard deviation; ? where this log does not determine it):"]
    for j, name in enumerate(found.robot.joint_names):
        if name in found.missing.unmeasured:
            result.append(f"  {name:24} as in the URDF")
            continue
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
    """Lines with the mass of each body, kg, before and after."""
    result = ["Bodies (mass, kg; how many of ten coordinates this log determines):"]
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
    """Lines on parameters that the log does not determine, and on efforts of an implausible scale."""
    result = [
        f"Motions determine {told.base} combinations of masses, inertias and rotors at most; this log determines "
        f"{told.known} of them to 10 %. The rest is the URDF's; --excite plans a motion that determines more."
    ]
    if found.in_amperes:
        result.append(
            "Currents do not determine the scale: torque per ampere is as accurate as the URDF's masses."
        )
    scale = found.fit.scale
    off = [
        f"{name} {value:.2g}"
        for name, value in zip(found.robot.joint_names, scale)
        if np.isfinite(value) and not 1.0 / OFF < value < OFF
    ]
    if off and not found.in_amperes:
        result.append(
            f"Check the efforts: ratio to those that the URDF's masses explain: {', '.join(off)}. If they are "
            "currents, torques before the gear, or of opposite sign, name them current with --map."
        )
    return result
