"""Runs all checks on a log, and sorts the findings, the likeliest fault first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from contact_id_controller.diagnosis import (
    channel_checks,
    command_checks,
    contact_checks,
    friction_check,
    leg_faults,
    model_checks,
    odometry_check,
    pushes,
    stamp_checks,
    trembling_check,
    value_checks,
)
from contact_id_controller.diagnosis.case import Case, in_order_of
from contact_id_controller.diagnosis.finding import FINE, UNKNOWN, WRONG, Finding, unknown
from contact_id_controller.diagnosis.robot_of_log import robot_of
from contact_id_controller.logs.log import Log


class Check(NamedTuple):
    """A check: its name, what it needs, and its function.

    floor: faults of a lower floor cause those above it, and are reported first.
    """

    what: str
    needs: str
    run: Callable[[Case], Finding]
    floor: int


CHECKS = (
    Check("gaps, jitter and order of stamps", "time", stamp_checks.gaps, 0),
    Check("messages that are missing or repeat", "time", stamp_checks.missing, 0),
    Check("drift of clocks", "stamps of two clocks", stamp_checks.clocks, 0),
    Check(
        "limits of sensors and drives", "efforts, currents or an IMU", value_checks.saturation, 1
    ),
    Check("steps of positions", "positions", value_checks.quantisation, 2),
    Check("positions named velocities", "velocities", channel_checks.channel_order, 1),
    Check("degrees", "velocities or a URDF", channel_checks.angle_unit, 1),
    Check("g", "an IMU", channel_checks.gravity_unit, 2),
    Check("mA", "currents", channel_checks.current_unit, 2),
    Check("columns of velocities", "velocities", channel_checks.velocity_order, 3),
    Check("signs and ratios of velocities", "velocities", channel_checks.velocity_scale, 3),
    Check("unit of efforts", "efforts of a fixed base, a URDF", channel_checks.effort_unit, 4),
    Check("trembling", "positions", trembling_check.trembling, 4),
    Check("delay of commands", "commands", command_checks.loop_delay, 5),
    Check("scale of drives", "commands", command_checks.drive_scale, 4),
    Check("friction", "efforts or currents, a URDF", friction_check.friction, 6),
    Check("contact of an arm", "a log without, efforts or currents, a URDF", pushes.contact, 7),
    Check("weight", "forces of feet, a URDF", contact_checks.weight, 6),
    Check("forces in the air", "forces of feet", contact_checks.sensors, 6),
    Check(
        "thresholds of contact", "forces of feet, a parameter file", contact_checks.thresholds, 7
    ),
    Check("base odometry", "an IMU, a URDF, forces of feet or efforts", odometry_check.odometry, 8),
    Check("tracking error by cause", "commanded positions", command_checks.tracking, 7),
)
NAMED = "a URDF that has them, or its names for them in 'joints' of --map"
MODEL_FLOOR = 5
"""Floor of the faults that compete for the best agreement with the model."""


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The result of a diagnosis.

    Attributes:
        findings: the likeliest fault first, then what is fine, then what the log does not determine.
        fragment: part of a map of columns, with the corrections that a map can make.
    """

    findings: tuple[Finding, ...]
    fragment: dict[str, Any]

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The faults, the likeliest first."""
        return tuple(each for each in self.findings if each.verdict == WRONG)


def diagnose(
    log: Log, urdf: str | Path | None = None, config: Path | None = None, free: Log | None = None
) -> Diagnosis:
    """Run all checks on a log and its robot's description.

    A fault is corrected before checks that depend on it: a joint in degrees is not also reported for its gear ratio.

    Args:
        log: see ``logs.reader.read_log``.
        urdf: of the robot; None: that of the parameter file.
        config: the robot's parameter file; None: none.
        free: a log of the same robot without contact, with which contacts in ``log`` are found; None: none.

    Raises:
        ContactIdError: a URDF or file that cannot be read, or a log without positions or of other joints.
    """
    of, columns = robot_of(log, urdf, config), log.joints
    found: list[tuple[int, Finding]] = []
    if of is not None and (known := tuple(of.robot.joint_names)) != columns:
        others = ", ".join(name for name in columns if name not in known)
        log, free = in_order_of(log, known), None if free is None else in_order_of(free, known)
        found.append(
            (0, unknown("joints of the log", f"left out, not in the URDF: {others}", NAMED))
        )
    case = Case(log, of, free)
    if case.of is not None and log.feet and not case.of.feet_named:
        if case.stance is not None and len(case.of.feet) <= leg_faults.MOST_FEET:
            case = case.of_feet(leg_faults.best_feet(case.stance, case.of)[1])
    fragment: dict[str, Any] = {}
    for floor in sorted({each.floor for each in CHECKS} | {MODEL_FLOOR}):
        if floor == MODEL_FLOOR:
            own, case = model_checks.faults(case)
            found += [(floor, each) for each in own]
            for each in own:
                fragment = merged(fragment, each.fragment)
        for check in (each for each in CHECKS if each.floor == floor):
            finding = check.run(case)
            found.append((floor, finding))
            if finding.verdict == WRONG and finding.fragment:
                case = case.with_correction(finding.fragment)
                fragment = merged(fragment, finding.fragment)
        if any(each.ends for _, each in found):
            break
    if "joints" in fragment:  # of all columns
        own_order = iter(fragment["joints"])
        fragment["joints"] = [next(own_order) if name in log.joints else name for name in columns]
    return Diagnosis(_ranked(found), fragment)


def _ranked(found: list[tuple[int, Finding]]) -> tuple[Finding, ...]:
    """Faults by floor and gain, then fine findings, then unknown ones; of each check its worst finding."""
    order = {WRONG: 0, FINE: 1, UNKNOWN: 2}
    ranked = sorted(found, key=lambda each: (order[each[1].verdict], each[0], -each[1].gain))
    kept: dict[str, Finding] = {}
    for _, finding in ranked:
        known = kept.get(finding.check)
        if known is None or (
            known.verdict == WRONG == finding.verdict and known.text != finding.text
        ):
            kept[finding.check if known is None else f"{finding.check} {len(kept)}"] = finding
    return tuple(kept.values())


def merged(first: dict[str, Any], second: Any) -> dict[str, Any]:
    """Two fragments of a map combined; factors of a joint that both change are multiplied."""
    result = dict(first)
    for key, value in second.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = merged(old, value)
        elif key == "times" and old is not None:
            result[key] = old * value
        else:
            result[key] = value
    return result
