"""Checks of a robot at its standing posture: feet, forces, torques, friction, time of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from scipy.spatial import ConvexHull, QhullError

from contact_id_controller.check.description import PRISMATIC
from contact_id_controller.check.findings import Finding, Findings, error, note, warning
from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.exceptions import choices
from contact_id_controller.robot import RobotModel
from contact_id_controller.state import RobotState

FORCE_TOLERANCE = 0.01
"""Largest deviation of the summed normal force from the weight, as part of it."""

LOW_RESERVE, HIGH_RESERVE = 0.7, 0.01
"""Largest share of the effort limit that standing may take; below the second the limits are implausible."""

MIDLINE_M = 0.02
"""A leg whose first joint is closer to the middle of the robot counts as on neither side."""

BELOW_GROUND_M = 1e-3
LINK_BELOW_M = 0.01
"""Largest depth of a link's frame, which may lie at the edge of a compliant sole."""

HOT_W = 1000.0
"""Heat of one motor at its effort limit above which its constants are implausible."""

STEPS = 300


def standing_state(controller: Controller, posture: np.ndarray) -> RobotState:
    """The state at rest in a posture (na,), with the lowest foot of a floating-base robot on the ground."""
    robot, feet = controller.robot, controller.feet
    base = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0] if robot.floating_base else None
    q = robot.configuration(base, posture)
    if robot.floating_base and len(feet):
        pin.computeJointJacobians(robot.model, robot.data, q)
        feet.update(robot.data)
        q[:3] -= feet.gaps.min() * feet.up
    pin.computeJointJacobians(robot.model, robot.data, q)
    feet.update(robot.data)
    return RobotState(1.0, q, np.zeros(robot.nv))


def check_feet(controller: Controller, state: RobotState) -> list[Finding]:
    """Check that the feet are at one height, below all joints, and each on the side of its leg.

    Call it after ``standing_state``, which leaves the kinematics of the state.
    """
    robot, feet = controller.robot, controller.feet
    names, findings = controller.contact_names, Findings("feet")
    high = {n: g for n, g in zip(names, feet.gaps) if g > controller.settings.contact_gap_m}
    if high:
        findings.error(
            f"{choices(high)} up to {1e3 * max(high.values()):.1f} mm above the ground when the "
            "lowest foot touches it: posture, frame or radius is wrong"
        )
    findings += _check_depth(controller)
    frames = [foot.frame for foot in feet.feet]
    crossed: dict[tuple[str, str], list[str]] = {}
    for frame, sides in _wrong_sides(robot, state, frames, feet.points):
        own = [name for name, of in zip(names, frames) if of == frame]
        crossed.setdefault(sides, []).extend(own)
    if crossed:
        text = "; ".join(
            f"{choices(feet)} on the {other} side, the leg on the {own}"
            for (own, other), feet in crossed.items()
        )
        why = "the sign of a joint in the posture, or the frame, is wrong"
        findings.error(f"{text}: {why}")
    return findings or [note("feet", "all on the ground, each on the side of its leg")]


def _check_depth(controller: Controller) -> list[Finding]:
    """Errors for joints and links below the ground: the standing posture is wrong, or another link is the foot."""
    robot, up = controller.robot, controller.feet.up
    model, data = robot.model, robot.data
    pin.updateFramePlacements(model, data)
    ground = controller.settings.ground_offset_m
    findings = Findings("feet")
    joints = zip(list(model.names)[1:], list(data.oMi)[1:])
    # A sole is where it is stated: the origins of links on its body may lie below it.
    soles = controller.settings.flat_feet_frames
    flat = {model.frames[robot.frame_id(frame)].parentJoint for frame in soles}
    links = (
        (frame.name, place)
        for frame, place in zip(model.frames, data.oMf)
        if frame.type == pin.FrameType.BODY and frame.parentJoint not in flat
    )
    for what, places, allowed, why in (
        ("joints", joints, BELOW_GROUND_M, "the posture, or a foot, is wrong"),
        ("links", links, LINK_BELOW_M, "are these the feet, instead of contact_frames?"),
    ):
        depths = {name: ground - float(place.translation @ up) for name, place in places}
        sunk = [name for name, depth in depths.items() if depth > allowed]
        if sunk:
            deep = 1e3 * max(depths.values())
            text = f"{what} {choices(sunk)} up to {deep:.1f} mm below the ground: {why}"
            findings.error(text)
    return findings


def _wrong_sides(
    robot: RobotModel, state: RobotState, frames: list[str], points: np.ndarray
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Feet whose middle is not on the side of their leg: frame, and the sides of leg and foot.

    Only along an axis that has legs on both sides of the base's origin.
    """
    model, data = robot.model, robot.data
    parents = {frame: model.frames[robot.frame_id(frame)].parentJoint for frame in frames}
    chains = {frame: [j for j in model.supports[parents[frame]] if j > 1] for frame in parents}
    for axis, sides in ((1, ("left", "right")), (0, ("front", "rear"))):
        hips = {
            frame: (data.oMi[_first(chains, frame)].translation - state.q[:3])[axis]
            for frame in chains
            if chains[frame]
        }
        if not (min(hips.values(), default=0.0) < 0.0 < max(hips.values(), default=0.0)):
            continue
        for frame, hip in hips.items():
            rows = [k for k, of in enumerate(frames) if of == frame]
            foot = points[rows, axis].mean() - state.q[axis]
            if abs(hip) > MIDLINE_M and foot * hip < 0.0:
                yield frame, sides if hip > 0.0 else sides[::-1]


def _first(chains: dict[str, list[int]], frame: str) -> int:
    """The first joint of a foot's leg: of its chain behind a waist that other feet hang on, too."""
    own, others = set(chains[frame]), set()
    for chain in chains.values():
        if chain and chain[-1] not in own and chains[frame][-1] not in chain:
            others.update(chain)
    return next((joint for joint in chains[frame] if joint not in others), chains[frame][-1])


def check_support(controller: Controller, state: RobotState) -> list[Finding]:
    """Check that the centre of mass is above the polygon of the feet, and how far from its edge."""
    robot, points = controller.robot, controller.feet.points[:, :2]
    if abs(controller.feet.up[2]) < 0.99:
        return [note("support", "not checked: the ground is inclined")]
    center = pin.centerOfMass(robot.model, robot.data, state.q)[:2]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return [warning("support", "the feet span no area: the robot stands only by balancing")]
    margin = -float(np.max(hull.equations[:, :2] @ center + hull.equations[:, 2]))
    if margin <= 0.0:
        return [error("support", f"the centre of mass is {-1e3 * margin:.0f} mm outside the feet")]
    return [note("support", f"centre of mass {1e3 * margin:.0f} mm inside the feet")]


def check_forces(controller: Controller, result: StepResult) -> list[Finding]:
    """Check that the controller's forces at rest carry the weight, and every foot pushes."""
    robot = controller.robot
    up = -robot.model.gravity.linear / np.linalg.norm(robot.model.gravity.linear)
    along = np.einsum("ij,ij->i", result.forces, controller.feet.normals)
    total = float((result.forces @ up).sum())
    findings = Findings("forces")
    if result.status != "solved":
        findings.error(f"the contact model answers {result.status!r} at rest")
    if abs(total / robot.weight - 1.0) > FORCE_TOLERANCE:
        findings.error(f"the feet carry {total:.1f} N in sum, the weight is {robot.weight:.1f} N")
    idle = [
        name for name, force in zip(controller.contact_names, along) if force <= 1e-3 * robot.weight
    ]
    if idle:
        findings.error(
            f"no force on {idle}: the centre of mass is not between "
            "the feet, or these do not touch the ground"
        )
    carried = ", ".join(
        f"{name} {force:.1f}" for name, force in zip(controller.contact_names, along)
    )
    if not findings:
        findings.note(f"{total:.1f} N for a weight of {robot.weight:.1f} N: {carried}")
    return findings + _check_friction(controller, result.forces, along)


def _check_friction(controller: Controller, forces: np.ndarray, along: np.ndarray) -> list[Finding]:
    """Share of the friction coefficient that standing uses, |f_T| / f_N; a warning above .9.

    Args:
        forces: (n, 3) N, world frame.  along: (n,) N, their normal components.
    """
    sideways = np.linalg.norm(forces - along[:, None] * controller.feet.normals, axis=1)
    pushing = along > 0.0
    if not pushing.any():
        return []
    needed = sideways[pushing] / along[pushing]
    given = controller.settings.spread_over_contacts("friction_coefficient")[pushing]
    text = f"standing uses {needed.max():.2f} of a coefficient of {given[needed.argmax()]:g}"
    used = np.max(needed / np.maximum(given, 1e-9))
    if used > 0.9:
        return [warning("friction", text + ", little margin")]
    return [note("friction", text)]


def check_torques(controller: Controller, torques: np.ndarray) -> list[Finding]:
    """Check effort limits against the torques (na,), N·m, at rest, before any limit; then the motors' heat."""
    robot, limits = controller.robot, controller.effort_limits
    part = np.abs(torques) / np.maximum(limits, 1e-12)
    # Of joints with equal shares the first, whatever the rounding.
    findings, worst = Findings("torques"), int(np.argmax(part >= part.max() * (1.0 - 1e-6)))
    if part[worst] > LOW_RESERVE:
        weak, name = part[worst] > 1.0, robot.joint_names[worst]
        slides = robot.model.joints[robot.model.getJointId(name)].shortname().startswith(PRISMATIC)
        unit = "N" if slides else "N·m"
        text = (
            f"joint {name!r} needs {abs(torques[worst]):.3g} {unit} to stand, its "
            f"limit is {limits[worst]:.3g} {unit}"
        )
        more = np.count_nonzero(part > (1.0 if weak else LOW_RESERVE)) - 1
        text += f"; {more} more joints likewise" * bool(more)
        kind = error if weak else warning
        findings.append(kind("torques", text if weak else f"{text}: little margin to move"))
    if not findings and part.max() < HIGH_RESERVE:
        findings.warning(
            f"standing takes {100 * part.max():.2g} % of the effort limits: the masses "
            f"({robot.mass:.3g} kg) are too small, or the limits are not the motors'"
        )
    if not findings:
        text = f"standing takes at most {100 * part.max():.0f} % of a limit"
        findings.note(text)
    return findings + _check_motors(controller, torques)


def _check_motors(controller: Controller, torques: np.ndarray) -> list[Finding]:
    """Heat of the motors, W, while standing and at the effort limits; ``torques`` (na,) N·m."""
    if controller.loss_weights is None:
        return [note("motors", "no motor constants: no power is reported")]
    hottest = controller.loss_weights * controller.effort_limits**2
    joint = int(hottest.argmax())
    if hottest[joint] > HOT_W:
        return [
            warning(
                "motors",
                f"joint {controller.robot.joint_names[joint]!r} would heat its "
                f"motor with {hottest[joint]:.0f} W at its effort limit: is the "
                "torque constant that of the joint, gear included?",
            )
        ]
    standing = controller.loss_weights @ torques**2
    return [
        note(
            "motors",
            f"standing heats them with {standing:.1f} W, the effort limit one with "
            f"{hottest[joint]:.0f} W at most",
        )
    ]


def unlimited_torques(result: StepResult) -> np.ndarray:
    """Torques (na,) of a step before the effort limits."""
    return result.torques if result.solution is None else result.solution.torques


def check_step_time(controller: Controller, state: RobotState) -> list[Finding]:
    """Median and 99th percentile of the controller's step on this machine, against the period."""
    period, samples = controller.settings.period_s, []
    for number in range(STEPS):
        begun = time.perf_counter()
        controller.step(RobotState(state.time_s + number * period, state.q, state.v))
        samples.append(time.perf_counter() - begun)
    median, late = np.percentile(samples, (50, 99))
    text = (
        f"a step takes {1e6 * median:.0f} us (median), {1e6 * late:.0f} us (99th percentile) "
        f"of a period of {1e6 * period:.0f} us"
    )
    slow = median > 0.5 * period or late > 0.5 * period
    return [warning("step time", text) if slow else note("step time", text)]
