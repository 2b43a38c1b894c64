"""Proposes a parameter file from a robot's URDF alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import yaml
from scipy.spatial import ConvexHull, QhullError

from contact_id_controller.check.config import check_config
from contact_id_controller.check.estimator import check_pipeline
from contact_id_controller.check.findings import ERROR
from contact_id_controller.control.held_damping import largest_damping, mobilities
from contact_id_controller.control.torques_ahead import joint_inertia
from contact_id_controller.exceptions import ConfigurationError, ContactIdError
from contact_id_controller.files import write_text
from contact_id_controller.new_robot.anatomy import LEG_JOINTS, Anatomy, away_from_ends
from contact_id_controller.new_robot.feet_from_shapes import (
    RoundFoot,
    Sole,
    alike,
    round_foot,
    sole,
)
from contact_id_controller.new_robot.mjcf_motors import motors_of_mjcf
from contact_id_controller.new_robot.searched import Searched, searched, shapes
from contact_id_controller.new_robot.stance import reach, standing_posture
from contact_id_controller.robot import MotorRows, RobotModel, frame_index
from contact_id_controller.settings.command_watchdog import DAMPING_PERIOD_S
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR
from contact_id_controller.settings.nodes import TABLES
from contact_id_controller.settings.robot_description import read_description, refuse_unreadable

PERIOD_S = 0.001
FRICTION = 0.6
"""Friction coefficient of rubber on most floors."""

DAMPING_PER_S = 40.0
"""Damping of the safe output over the joint's inertia, if light postures allow it: as fast as the joints' feedback, so
that a robot sinks slowly."""

GAIT_PERIODS = 2.6
"""Gait period of the trot in units of sqrt(leg length / gravity), as of animals and of the shipped robots."""

DUTY_FACTOR = 0.65
STEP_HEIGHT = 0.12
SPEED = 0.15
WAY = 3.0
"""Step height and way of the trot in leg lengths; speed in leg lengths per sqrt(leg length / gravity)."""

STEP_HEIGHT_OF_TWO = 0.09
SPEED_OF_TWO = 0.08
"""The same of two legs, whose way is a leg length."""

LEVEL_JOINTS = 6
"""Least number of joints of a leg that holds its sole level wherever the foot is: position and attitude."""

POSTURES = 200
"""Number of random postures, within half of each range, where that in the middle is heavy."""

LIGHT = 0.5
"""Largest share of an effort limit that a posture in the middle of the ranges may take to be held."""

ONE_LEG = 0.7
"""Largest share of an effort limit with which a robot standing on one leg can walk."""

SWAY = 0.2
SWAY_S = 2.0
"""Amplitude, rad (m), and time of one way, s, of the joint motion of a robot that does not walk."""

SWAY_SPEED = 0.5
"""Largest share of the speed limits that this motion uses."""

QUINTIC_PEAK = 1.875
"""Ratio of largest to mean speed of a quintic from rest to rest."""

DIGITS = 5


NO_LEGS = ": if these are no legs, --base fixed"


class Row(NamedTuple):
    """A parameter of a section; why: a comment above it."""

    name: str
    value: Any
    why: str = ""


LEVEL = Row(
    "ground_height_noise_m",
    0.002,
    "The simulated ground is level; remove this line for real ground.",
)


STEPPING = (
    Row("base_feedback", "center_of_mass"),
    Row(
        "contact_sources",
        ["schedule"],
        "By geometry a sole on ground higher than believed would stand nowhere.",
    ),
    Row("touchdown_time_constant_s", 0.02),
)
"""Of the controller of two legs that step."""


class Proposal(NamedTuple):
    """A proposed file, with lines about it for the user.

    Attributes:
        text: of the parameter file.
        found: lines for the user.
        stands: whether the robot can stand still; otherwise a line in ``found`` says why not.
        legs: what a refusal adds about them.
    """

    text: str
    found: tuple[str, ...]
    stands: bool
    legs: str = ""


def propose(urdf: str, floating: bool | None = None, mjcf: Path | None = None) -> Proposal:
    """Propose the parameters of a robot.

    Args:
        urdf: as for `robot.resolve_urdf`.
        floating: whether the base floats; None: it does if the robot has legs.
        mjcf: MuJoCo file of the same robot, which states its motors; None: the URDF's values are used.

    Raises:
        RobotDescriptionError: no such file, not a URDF, or feet that cannot be recognised.
        ConfigurationError: no standing posture, or no joint that can be driven.
    """
    refuse_unreadable(read_description(urdf))
    found = searched(urdf, floating)
    free, limbs = found.robot, found.limbs
    for joint, low, high in zip(free.joint_names, free.lower, free.upper):
        if low == high and joint not in limbs.held:
            raise ConfigurationError(
                f"joint {joint!r} cannot move: its position limits in the URDF are equal, or missing, which means 0; "
                "give it lower and upper, or the type continuous or fixed, and run contact_id new again"
            )
    motors = () if mjcf is None else motors_of_mjcf(mjcf, free.joint_names)
    name = free.model.name or "robot"
    if not limbs.legs:
        if floating and limbs.arms:
            raise ConfigurationError(
                f"{_are_arms(limbs)}; no legs to stand on with a floating base"
            )
        if floating:
            raise ConfigurationError(
                f"{urdf!r} has fewer than two limbs with three joints or more that reach down, or three "
                "with two: no legs to stand on with a floating base"
            )
        return _bolted(urdf, name, limbs, motors)
    legs = "; its legs are taken to end with " + ", ".join(
        free.model.names[leg[-1]] for leg in limbs.legs
    )
    try:
        return _legged(urdf, name, found, motors)._replace(legs=legs + NO_LEGS)
    except ContactIdError as error:
        raise type(error)(f"{error}{legs}{NO_LEGS}") from error


def refuse_unchecked(proposal: Proposal) -> None:
    """Raise if ``contact_id check`` would report an error.

    Raises:
        ConfigurationError: with the first error, and what to do.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proposal.yaml"
        write_text(file, proposal.text)
        errors = [finding for finding in check_config(file) if finding.level == ERROR]
    # A joint that is too weak is why forces err.
    errors.sort(key=lambda finding: finding.subject != "torques")
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ConfigurationError(
            f"nothing is written, because contact_id check would refuse it: {errors[0].subject}: "
            f"{errors[0].text}{more}; correct the URDF, and run contact_id new again"
            f"{proposal.legs}"
        )


def _are_arms(limbs: Anatomy) -> str:
    return f"2 limbs reach down, but are no legs, with joints without end: {', '.join(limbs.arms)}"


def _bolted(urdf: str, name: str, limbs: Anatomy, motors: MotorRows) -> Proposal:
    """A proposal for a robot without legs: its joints sway about the middle of their ranges, or a lighter posture."""
    robot = _model(urdf, False, limbs, motors)
    low, high = _range(robot)
    middle = _within(_light(robot, low, high), robot)
    fastest = SWAY_SPEED * robot.velocity_limits * SWAY_S / (2.0 * QUINTIC_PEAK)
    sway = np.minimum(np.minimum(SWAY, 0.25 * (high - low)), fastest)
    times = 0.5 + SWAY_S * np.arange(4)
    rows = [middle, middle + sway, middle - sway, middle]
    joints = list(robot.joint_names)
    shared = [
        Row("urdf", urdf),
        Row("floating_base", False),
        Row("joints", joints, "Order of the command, that of the controller that receives it."),
        *_locked(limbs),
        *_motors(robot),
    ]
    return Proposal(
        _text(
            f"{name}: {robot.na} joints, bolted to the ground; proposed from its URDF.",
            {
                "/**": shared,
                "controller": _controller(robot, middle),
                "joint_motion": [
                    Row("times_s", times.tolist(), "From when the controller gets it."),
                    Row("positions", np.concatenate(rows).tolist(), "A row for each time."),
                ],
                "simulated_robot": [
                    Row("initial_joint_positions", middle.tolist()),
                    Row("period_s", PERIOD_S),
                ],
                "command_watchdog": _watchdog(robot, middle),
            },
        ),
        (
            f"{name}: no legs, bolted to the ground; {robot.na} joints, {len(limbs.held)} held",
            *([_are_arms(limbs)] if limbs.arms else []),
        ),
        True,
    )


def _light(robot: RobotModel, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A posture (na,) that leaves torque to move: the middle of the ranges, else the lightest of others near it."""
    rng, data = np.random.default_rng(0), robot.model.createData()
    spread = 0.5 * (rng.random((POSTURES, robot.na)) - 0.5)
    tried = 0.5 * (low + high) + (high - low) * np.vstack([np.zeros(robot.na), spread])
    shares = np.empty(len(tried))
    for k, posture in enumerate(tried):
        q = robot.configuration(None, posture)
        gravity = pin.computeGeneralizedGravity(robot.model, data, q)[robot.actuated]
        shares[k] = np.abs(gravity / robot.effort_limits).max()
        if k == 0 and shares[k] <= LIGHT:
            return posture
    return tried[int(np.argmin(shares))]


def _legged(urdf: str, name: str, found: Searched, motors: MotorRows) -> Proposal:
    """A proposal for a legged robot: feet, standing posture, and a gait if it can walk."""
    free, limbs, parts = found.robot, found.limbs, shapes(found)
    model, near = free.model, limbs.posture
    flat = limbs.walks_on_soles
    feet: list[Any] = [
        (sole if flat else round_foot)(model, near, leg[-1], parts) for leg in limbs.legs
    ]
    if not flat:
        feet = alike(feet)
    frames = [frame_index(model, foot.frame) for foot in feet]
    centers = np.array([foot.center_m for foot in feet])
    others = away_from_ends(model, near, limbs.legs)
    q = standing_posture(model, others, limbs.legs, frames, centers, flat)
    robot = _model(urdf, True, limbs, motors)
    posture = _within(RobotModel(model, robot.joint_names).joints_of(q), robot)
    length = float(
        np.mean([reach(model, leg, frame, near) for leg, frame in zip(limbs.legs, frames)])
    )
    gait = _gait_of(robot, posture, limbs, feet)
    stands = flat or _stands(model, q, frames)
    shared = [
        Row("urdf", urdf),
        Row("floating_base", True),
        Row(
            "joints",
            list(robot.joint_names),
            "Order of the command, that of the controller that receives it.",
        ),
        *_locked(limbs),
        *_contacts(feet),
        *_motors(robot),
    ]
    estimator, not_estimated = _estimator(shared)
    sections = {
        "/**": shared,
        "controller": _controller(robot, posture, gait),
        **gait.motion(feet, posture, length, free),
        **estimator,
        "simulated_robot": [
            Row("initial_joint_positions", posture.tolist()),
            Row("friction_coefficient", FRICTION, "Of the ground; the controller does not see it."),
            Row("period_s", PERIOD_S),
            *gait.simulation,
        ],
        "command_watchdog": _watchdog(robot, posture),
    }
    lines = [
        f"{name}: {len(feet)} legs of {length:.2f} m on "
        + ("soles" if flat else "round feet")
        + f", {robot.mass:.1f} kg; {robot.na} joints, {len(limbs.held)} held",
        "feet: " + ", ".join(_words(foot) for foot in feet),
    ]
    lines += [
        f"{foot.frame}: its shape is unknown, radius {foot.radius_m:g} m is a guess"
        for foot in feet
        if isinstance(foot, RoundFoot) and not foot.known
    ]
    if limbs.wheels:
        lines.append("wheels are locked, and feet: " + ", ".join(limbs.wheels))
    if not stands:
        words = f"its {len(feet)} point feet span no area; {gait.upright}"
        lines.append(f"{name} cannot stand still: {words}")
    lines += gait.found
    title = f"{name}: {robot.mass:.1f} kg, {robot.na} joints, {gait.does}; proposed from its URDF."
    return Proposal(_text(title, sections), (*lines, *not_estimated), stands)


def _estimator(shared: list[Row]) -> tuple[dict[str, list[Row]], list[str]]:
    """The section of the dynamics estimator; or none, and a line that says why its node would not start."""
    rows = [Row("period_s", PERIOD_S), LEVEL]
    names = {spec.name for spec in TABLES[ESTIMATOR]}
    values = {row.name: row.value for row in (*shared, *rows) if row.name in names}
    refused = [
        f"no section {ESTIMATOR}: {finding.text}"
        for finding in check_pipeline(values)
        if finding.level == ERROR
    ]
    return ({} if refused else {ESTIMATOR: rows}), refused


def _model(urdf: str, floating: bool, limbs: Anatomy, motors: MotorRows) -> RobotModel:
    """The robot with undriven joints locked; ConfigurationError if no joint remains."""
    motors = [row for row in motors if row[0] not in limbs.held]
    robot = RobotModel.from_urdf(urdf, floating, None, dict.fromkeys(limbs.held, 0.0), motors)
    if not robot.na:
        raise ConfigurationError(
            f"{urdf!r} has no joint that can be driven: give those that are driven a <limit> with an "
            "effort above 0, and the links that they move an <inertial>, and run contact_id new again"
        )
    return robot


def _within(positions: np.ndarray, robot: RobotModel) -> np.ndarray:
    """Positions (na,) rounded to the file's digits without exceeding their limits."""
    unit = 10.0**-DIGITS
    low, high = np.ceil(robot.lower / unit) * unit, np.floor(robot.upper / unit) * unit
    narrow = low > high
    return np.where(narrow, positions, np.clip(positions, low, high))


def _range(robot: RobotModel) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of a search: the limits, at most half a turn."""
    low, high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
    none = ~(low < high)
    return np.where(none, robot.lower, low), np.where(none, robot.upper, high)


def _locked(limbs: Anatomy) -> list[Row]:
    if not limbs.held:
        return []
    why = "Without a drive that is known, or fingers: held where they are."
    return [Row("locked_joints", list(limbs.held), why)]


def _motors(robot: RobotModel) -> list[Row]:
    """A row of ``motors`` for each kind of motor that the description states."""
    kinds: dict[str, list[str]] = {}
    stated = robot.motors._fields[:-1]
    for joint, *values in zip(robot.joint_names, *robot.motors[:-1]):
        words = [f"{name}={value:.5g}" for name, value in zip(stated, values) if value]
        kinds.setdefault(" ".join(words), []).append(joint)
    rows = [
        f"{joint} {words}"
        for words, joints in kinds.items()
        if words
        for joint in (["*"] if len(kinds) == 1 else joints)
    ]
    why = "Inertia and friction of the drives, as stated; measured values are better."
    return [Row("motors", rows, why)] if rows else []


def _contacts(feet: Sequence[Any]) -> list[Row]:
    """Rows of the feet: frames and radii of spheres, or soles."""
    frames = [foot.frame for foot in feet]
    if isinstance(feet[0], RoundFoot):
        radii = [round(foot.radius_m, DIGITS) for foot in feet]
        return [
            Row("contact_frames", frames, "Frames in the middle of spheres that touch the ground."),
            Row("contact_radii_m", radii[:1] if len(set(radii)) == 1 else radii),
        ]
    return [
        Row("soles", list(map(_sole, feet)), "Frames that carry a sole, z out of the ground; m."),
    ]


def _sole(foot: Sole) -> str:
    """The sole as text for the parameter ``soles``."""
    names = ("half_length_m", "half_width_m", "x_m", "y_m", "z_m")
    values = (round(float(x), DIGITS) + 0.0 for x in (*foot.half_size_m, *foot.center_m))
    return " ".join([foot.frame, *(f"{n}={x:g}" for n, x in zip(names, values))])


def _controller(robot: RobotModel, posture: np.ndarray, gait: _Gait | None = None) -> list[Row]:
    """Rows of the controller: contact model, feedback, and damping of the safe output at this posture."""
    rows = [
        Row("period_s", PERIOD_S, "Joint states must come at this rate."),
        Row("friction", "coulomb"),
        Row("solver", "qp"),
        Row("friction_coefficient", [FRICTION]),
        Row(
            "joint_position_gain",
            [1600.0],
            "Feedback, accelerations per error: the same for light and heavy joints.",
        ),
        Row("joint_velocity_gain", [80.0]),
        Row("safe_output", "damping"),
        Row("damping_nm_s_rad", _damping(robot, posture)),
    ]
    if gait is not None:
        rows += gait.controller
    return rows


def _watchdog(robot: RobotModel, posture: np.ndarray) -> list[Row]:
    return [
        Row("effort_limits_nm", robot.effort_limits.tolist()),
        Row("damping_nm_s_rad", _damping(robot, posture)),
        Row("timeout_s", 0.03, "Longer than the controller's state_timeout_s."),
    ]


def _damping(robot: RobotModel, posture: np.ndarray) -> list[float]:
    """D (na,), N·m·s/rad, that is stable in any posture when the watchdog, which holds it longest, applies it."""
    base = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0] if robot.floating_base else None
    inertia = joint_inertia(robot, robot.configuration(base, posture))
    largest = largest_damping(mobilities(robot), DAMPING_PERIOD_S)
    return [float(f"{value:.2g}") for value in np.minimum(DAMPING_PER_S * inertia, 0.9 * largest)]


class _Gait(NamedTuple):
    """How a legged robot moves.

    Attributes:
        does: the verb for its file's title.
        motion: makes the section that moves it, of feet, posture (na,), leg length, m, and robot.
        controller, simulation: rows of these sections that go with it.
        found: lines for the user.
        upright: what holds it where its feet span no area.
    """

    does: str
    motion: Callable[[Any, np.ndarray, float, RobotModel], dict[str, list[Row]]]
    controller: tuple[Row, ...] = ()
    simulation: tuple[Row, ...] = ()
    found: tuple[str, ...] = ()
    upright: str = "no contact force holds it upright"


def _gait_of(robot: RobotModel, posture: np.ndarray, limbs: Anatomy, feet: Any) -> _Gait:
    """How a robot with these legs moves: four round feet trot, two feet step where one leg bears the robot."""
    if min(len(leg) for leg in limbs.legs) < LEG_JOINTS:
        words = (
            f"it stands; the gait planner takes legs of {LEG_JOINTS} joints or more, a motion of these "
            "can be given as joint_motion"
        )
        return _Gait("stands", _standing, found=(words,))
    if len(limbs.legs) == 4 and not limbs.walks_on_soles:
        return _Gait("trots", _trot, (Row("allow_moving_trajectory_end", True),))
    if len(limbs.legs) != 2:
        words = "it stands; for footsteps write a section kinodynamic_planner"
        return _Gait("stands", _standing, found=(words,))
    if limbs.walks_on_soles and min(len(leg) for leg in limbs.legs) < LEVEL_JOINTS:
        words = (
            f"it stands: legs of fewer than {LEVEL_JOINTS} joints tip their soles as they sway; for footsteps write a "
            "section kinodynamic_planner"
        )
        return _Gait("stands", _standing, found=(words,))
    weakest, torque, limit = _on_one_leg(robot, posture, feet)
    if torque > ONE_LEG * limit:
        words = (
            f"it stands: on one leg joint {weakest!r} would need {torque:.3g} N·m of {limit:.3g}; "
            "for footsteps write a section kinodynamic_planner"
        )
        return _Gait("stands", _standing, found=(words,))
    waits = (Row("wait_for_plan_s", 0.021),)
    return _Gait("walks", _steps, STEPPING, waits, upright="it balances by stepping")


def _on_one_leg(robot: RobotModel, posture: np.ndarray, feet: Any) -> tuple[str, float, float]:
    """The joint with the largest share of its effort limit as a single foot bears the robot; its torque, limit, N·m."""
    model, data = robot.model, robot.model.createData()
    q = robot.configuration([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], posture)
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    gravity = pin.computeGeneralizedGravity(model, data, q)
    force = -robot.mass * model.gravity.linear
    largest = np.zeros(robot.na)
    for foot in feet:
        frame = frame_index(model, foot.frame)
        jacobian = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        moment = np.cross(data.oMf[frame].rotation @ foot.center_m, force)
        torques = gravity - jacobian.T @ np.concatenate([force, moment])
        largest = np.maximum(largest, np.abs(torques)[robot.actuated])
    worst = int(np.argmax(largest / robot.effort_limits))
    return robot.joint_names[worst], float(largest[worst]), float(robot.effort_limits[worst])


def _trot(feet: Any, posture: np.ndarray, length: float, robot: RobotModel) -> dict[str, list[Row]]:
    """Section of the gait planner, scaled by leg length, m, and the pendulum time sqrt(length / gravity), s."""
    pendulum_s = _pendulum_s(length, robot)
    return {
        "gait_planner": [
            *_round_feet(feet),
            Row("posture", posture.tolist(), "Of standing; it gives the places of the feet."),
            Row("gait", "trot"),
            Row("gait_period_s", float(f"{GAIT_PERIODS * pendulum_s:.2g}")),
            Row("duty_factor", DUTY_FACTOR),
            Row("step_height_m", float(f"{STEP_HEIGHT * length:.2g}")),
            Row("swing_profile", "quintic"),
            *_way(WAY * length, SPEED * length / pendulum_s),
        ]
    }


def _steps(
    feet: Any, posture: np.ndarray, length: float, robot: RobotModel
) -> dict[str, list[Row]]:
    """Section of the planner of steps, scaled likewise."""
    if isinstance(feet[0], RoundFoot):
        rows = _round_feet(feet)
    else:
        rows = [Row("feet", list(map(_sole, feet)))]
    return {
        "gait_planner": [
            *rows,
            Row("posture", posture.tolist(), "Of standing; it gives the places of the feet."),
            Row("gait", "step", "Places and times of steps, as cmd_vel and pushes require."),
            Row("plan_period_s", 0.01),
            Row("step_height_m", float(f"{STEP_HEIGHT_OF_TWO * length:.2g}")),
            *_way(length, SPEED_OF_TWO * length / _pendulum_s(length, robot)),
        ]
    }


def _round_feet(feet: Any) -> list[Row]:
    radius = max(foot.radius_m for foot in feet)
    return [Row("feet", [foot.frame for foot in feet]), Row("foot_radius_m", round(radius, DIGITS))]


def _way(way: float, speed: float) -> list[Row]:
    """Way-points of a turn to the left, ``way`` m ahead, and the speed to them, m/s."""
    way = float(f"{way:.1g}")
    return [
        Row(
            "waypoints_m",
            [way, 0.0, way, 0.5 * way, 0.0, 0.0],
            "x1, y1, x2, y2, ...; empty: follows cmd_vel.",
        ),
        Row("speed_m_s", float(f"{speed:.2g}")),
    ]


def _pendulum_s(length: float, robot: RobotModel) -> float:
    return float(np.sqrt(length / np.linalg.norm(robot.model.gravity.linear)))


def _standing(
    feet: Any, posture: np.ndarray, length: float, robot: RobotModel
) -> dict[str, list[Row]]:
    """A joint motion that goes nowhere."""
    return {
        "joint_motion": [
            Row("times_s", [0.5, 0.5 + SWAY_S], "It stays where it stands."),
            Row("positions", [*posture.tolist(), *posture.tolist()]),
        ]
    }


def _stands(model: pin.Model, q: np.ndarray, frames: Sequence[int]) -> bool:
    """Whether the centre of mass is above the area between the feet."""
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    points = np.array([data.oMf[frame].translation[:2] for frame in frames])
    com = pin.centerOfMass(model, data, q)[:2]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return False
    return bool((hull.equations[:, :2] @ com + hull.equations[:, 2] < 0.0).all())


def _words(foot: RoundFoot | Sole) -> str:
    if isinstance(foot, RoundFoot):
        return f"{foot.frame} (radius {1e3 * foot.radius_m:.0f} mm)"
    length, width = (2e3 * half for half in foot.half_size_m)
    return f"{foot.frame} ({length:.0f} x {width:.0f} mm)"


def _text(title: str, sections: dict[str, list[Row]]) -> str:
    """The parameter file as text: title, then each section with its rows."""
    parts = [
        f"# {title}\n#\n#   contact_id check --config FILE\n#   contact_id demo --config FILE\n#\n"
        "# config/quadruped.yaml explains the parameters, contact_id parameters lists them all.\n"
    ]
    for name, rows in sections.items():
        note = "  # what all nodes share" if name == "/**" else ""
        parts.append(f"\n{name}:{note}\n  ros__parameters:\n" + "".join(_lines(rows)))
    return "".join(parts)


def _lines(rows: Iterable[Row]) -> Iterable[str]:
    """Lines of rows in YAML, each after its comment."""
    for row in rows:
        if row.why:
            yield f"    # {row.why}\n"
        dumped = yaml.safe_dump(
            {row.name: _rounded(row.value)},
            default_flow_style=None if isinstance(row.value, list) else False,
            width=90,
            sort_keys=False,
            allow_unicode=True,
        )
        yield "".join(f"    {line}\n" for line in dumped.splitlines())


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, DIGITS) + 0.0 if isinstance(value, float) else value
