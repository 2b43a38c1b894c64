"""Everything a user can set: one table, shared by the Python library and the ROS node.

Each field of `ControllerSettings` is one parameter: its name and type, then default, description,
unit and range. `TABLE` lists the same rows as `ParameterSpec` objects; whatever needs to know the
parameters reads it.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from contact_id_controller.control.specification import ParameterSpec, parameter, table_of
from contact_id_controller.exceptions import ConfigurationError, choices


@dataclasses.dataclass(frozen=True)
class ControllerSettings:
    """Settings of the controller; `from_mapping` and `load_settings` check every value."""

    # The robot
    urdf: str = parameter(
        "",
        """Robot description: a file, package://contact_id_controller/urdf/<file>, or
        example-robot-data://<package>/robots/<file>. Required.""",
    )
    floating_base: bool = parameter(
        True, "The base moves freely (legged robot); false for a robot bolted to the ground."
    )
    joints: tuple[str, ...] = parameter(
        (), "Actuated joints in the order of the command; empty: all of the URDF, in its order."
    )
    contact_frames: tuple[str, ...] = parameter(
        (), "Frames of the URDF that may touch the ground, at the centre of a spherical foot."
    )
    contact_radii_m: tuple[float, ...] = parameter(
        (0.0,), "Radius of the feet: one value, or one per contact frame.", unit="m", minimum=0.0
    )
    effort_limits_nm: tuple[float, ...] = parameter(
        (),
        "Largest torque: one value, or one per joint; empty: the limits of the URDF.",
        unit="N·m", minimum=0.0, infinite=True,
    )

    motor_resistance_ohm: tuple[float, ...] = parameter(
        (),
        """Winding resistance R of the motors: one value, or one per joint; empty: unknown, and no
        power loss is reported.""",
        unit="ohm", minimum=0.0,
    )
    motor_torque_constant_nm_a: tuple[float, ...] = parameter(
        (),
        """Torque constant Kt on the joint's side of the gear, joint torque per ampere: one value,
        or one per joint. The power that heats the motors is R (torque / Kt)^2.""",
        unit="N·m/A", minimum=0.0,
    )

    # The period and the contact model
    period_s: float = parameter(
        0.001, "Control period; must match the rate of the joint states.",
        unit="s", minimum=1e-5, maximum=0.1,
    )
    friction: str = parameter(
        "coulomb", "Friction model; not every pair of friction and solver exists."
    )
    solver: str = parameter("qp", "Solver; not every pair of friction and solver exists.")
    friction_coefficient: tuple[float, ...] = parameter(
        (0.6,),
        "Coefficient of friction: one value, or one per contact frame; .inf for no slip.",
        minimum=0.0, infinite=True,
    )
    friction_edges: int = parameter(
        4, "Edges of the pyramid that stands for the friction cone.", minimum=3, maximum=64
    )
    friction_polygon: str = parameter(
        "inscribed",
        "Whether that pyramid lies inside the friction cone or around it.",
        choices=("inscribed", "circumscribed"),
    )
    cone: str = parameter(
        "pyramid",
        """Cone of a sticking contact in the distribution of coulomb/qp: the pyramid, or the exact
        cone.""",
        choices=("pyramid", "exact"),
    )
    objective: str = parameter(
        "contact_velocity",
        """What stage I minimises: the velocity of the contacts, or the kinetic energy of the
        whole robot as the paper writes it (which brakes a moving robot).""",
        choices=("contact_velocity", "kinetic_energy"),
    )
    distribution: str = parameter(
        "least_torque",
        """Which of the contact forces with the same effect on the base is taken: least joint
        torque, least force, or whatever the solver returns.""",
        choices=("least_torque", "least_force", "none"),
    )
    consistency: str = parameter(
        "project",
        """When planned joint motion would make contacts slip or collide: replace it by the
        closest motion that does not, or only report it.""",
        choices=("project", "report"),
    )
    disturbance_price: float = parameter(
        1e4,
        """Solver qcqp: price of leaving the plan where forces and torques have no solution for it,
        relative to that of the torques which it saves.""",
        minimum=1e-3, maximum=1e12,
    )
    velocity_product_term: bool = parameter(
        True,
        """Account for the change of the contact Jacobian over the period (dt dJ/dt v); off only
        against a simulator that freezes the Jacobian.""",
    )
    contact_time_constant_s: float = parameter(
        0.05,
        """Time over which the velocity that a contact has now is removed. Short values ask the
        ground to stop the foot at once: measured velocity (1 cm/s is enough) becomes a large
        imagined force, and against ground that gives a little the loop runs away. One period
        reproduces the papers and suits only perfectly rigid ground; 20 to 100 ms walk. Not below
        period_s.""",
        unit="s", minimum=1e-5, maximum=10.0,
    )
    penetration_gain: float = parameter(
        0.0,
        "Part of a penetration that is removed in one period; 0: none, 1: all, as in the paper.",
        minimum=0.0, maximum=1.0,
    )
    sensed_delay: int = parameter(
        1, "Solver sensed: age of the measured contact forces that are used, in periods.",
        minimum=1, maximum=2,
    )
    contact_gap_m: float = parameter(
        0.002, "A contact planned to stand is active when it is closer to the ground than this.",
        unit="m", minimum=0.0, maximum=1.0,
    )
    ground_normal: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0), "Normal of the ground plane, world frame, pointing up out of it."
    )
    ground_offset_m: float = parameter(
        0.0, "Height of the ground plane along its normal.", unit="m"
    )

    # Feedback
    joint_position_gain: tuple[float, ...] = parameter(
        (1600.0,), "Acceleration per joint position error: one value, or one per joint.",
        unit="1/s^2", minimum=0.0,
    )
    joint_velocity_gain: tuple[float, ...] = parameter(
        (80.0,), "Acceleration per joint velocity error: one value, or one per joint.",
        unit="1/s", minimum=0.0,
    )
    joint_integral_gain: tuple[float, ...] = parameter(
        (0.0,), "Acceleration per integral of joint position error: one value, or one per joint.",
        unit="1/s^3", minimum=0.0,
    )
    pid_position_gain: tuple[float, ...] = parameter(
        (20.0,), "Solver pid: torque per joint position error: one value, or one per joint.",
        unit="N·m/rad", minimum=0.0,
    )
    pid_velocity_gain: tuple[float, ...] = parameter(
        (0.1,), "Solver pid: torque per joint velocity error: one value, or one per joint.",
        unit="N·m·s/rad", minimum=0.0,
    )
    pid_integral_gain: tuple[float, ...] = parameter(
        (0.003,), "Solver pid: torque per integral of joint position error.",
        unit="N·m/(rad·s)", minimum=0.0,
    )
    base_linear_position_gain: tuple[float, ...] = parameter(
        (50.0,), "Base acceleration per base position error: one value, or one per axis (x, y, z).",
        unit="1/s^2", minimum=0.0,
    )
    base_linear_velocity_gain: tuple[float, ...] = parameter(
        (15.0,), "Base acceleration per base velocity error: one value, or one per axis (x, y, z).",
        unit="1/s", minimum=0.0,
    )
    base_angular_position_gain: tuple[float, ...] = parameter(
        (100.0,), "Angular acceleration per base rotation error: one value, or one per axis.",
        unit="1/s^2", minimum=0.0,
    )
    base_angular_velocity_gain: tuple[float, ...] = parameter(
        (20.0,),
        "Angular acceleration per base angular velocity error: one value, or one per axis.",
        unit="1/s", minimum=0.0,
    )
    touchdown_speed_m_s: float = parameter(
        0.08, "Speed at which a foot that is planned to stand but still in the air comes down.",
        unit="m/s", minimum=0.0, maximum=10.0,
    )
    touchdown_time_constant_s: float = parameter(
        0.005, "Time in which a foot that comes down takes that speed.",
        unit="s", minimum=1e-4, maximum=1.0,
    )
    allow_moving_trajectory_end: bool = parameter(
        False, "Accept trajectories whose last point has a velocity that is not zero."
    )

    # The node
    mode: str = parameter(
        "real_time",
        """real_time: newest state, old ones may be dropped. lockstep: every state gets exactly
        one command, for a simulation that waits for it; needs reliable_topics and compares stamps
        with the stream.""",
        choices=("real_time", "lockstep"),
    )
    reliable_topics: bool = parameter(
        False,
        """Subscribe to states reliably instead of best-effort; their publisher must then be
        reliable. Implied by lockstep. Commands are always published reliably.""",
    )
    group_controller: str = parameter(
        "",
        """Name of the ros2_control group controller that takes the commands: configure compares
        its parameter joints with ours. Empty: no check.""",
    )
    stamp_reference: str = parameter(
        "clock",
        """What the stamp of a state is compared with: the clock of the node (states older than
        state_timeout_s are refused), or only with the stream of states itself (stamps must
        increase).""",
        choices=("clock", "stream"),
    )
    state_timeout_s: float = parameter(
        0.02, "Without a valid state for this long the safe output is published.",
        unit="s", minimum=1e-3, maximum=10.0, live=True,
    )
    odometry_age_limit_s: float = parameter(
        0.005, "Largest difference between the stamps of joint state and odometry.",
        unit="s", minimum=0.0, maximum=10.0, live=True,
    )
    safe_output: str = parameter(
        "damping",
        """Published on bad input, on errors, when states stop and on deactivation: damping (minus
        damping_nm_s_rad times the last measured joint velocity while that is fresh, then zero) or
        zero.""",
        choices=("damping", "zero"), live=True,
    )
    damping_nm_s_rad: tuple[float, ...] = parameter(
        (0.05,), "Damping of the safe output: one value, or one per joint.",
        unit="N·m·s/rad", minimum=0.0, live=True,
    )
    autostart: bool = parameter(
        False, "Configure and activate at start, without a lifecycle manager."
    )
    record_path: str = parameter(
        "", "File (.npz) into which each step is recorded, written on deactivation; empty: none."
    )

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> ControllerSettings:
        """Check every value of a mapping from parameter name to value and build the settings.

        Raises
        ------
        ConfigurationError
            Unknown name, wrong type, value outside its range, missing `urdf`, or values that do
            not fit each other.
        """
        known = {spec.name: spec for spec in TABLE}
        for name in mapping:
            if name not in known:
                raise ConfigurationError(_unknown_parameter(name, known))
        settings = cls(**{name: known[name].check(value) for name, value in mapping.items()})
        _check_together(settings)
        return settings

    def spread(self, name: str, count: int) -> np.ndarray:
        """Values of parameter `name` as an array (count,); a single value is repeated.

        Raises
        ------
        ConfigurationError
            The parameter holds neither 1 nor `count` values.
        """
        values = np.array(getattr(self, name), dtype=float)
        if values.size not in (1, count):
            raise ConfigurationError(
                f"parameter '{name}' has {values.size} values, must have 1 or {count}"
            )
        return np.full(count, values[0]) if values.size == 1 else values


TABLE: tuple[ParameterSpec, ...] = table_of(ControllerSettings)
"""The rows of the table of parameters, in the order of the fields of `ControllerSettings`."""

_PER_JOINT = (
    "joint_position_gain", "joint_velocity_gain", "joint_integral_gain", "damping_nm_s_rad",
    "pid_position_gain", "pid_velocity_gain", "pid_integral_gain",
)
_MOTOR = ("motor_resistance_ohm", "motor_torque_constant_nm_a")
_PER_FRAME = ("contact_radii_m", "friction_coefficient")
_PER_AXIS = tuple(
    f"base_{part}_{order}_gain"
    for part in ("linear", "angular")
    for order in ("position", "velocity")
)


def load_settings(path: str | Path, section: str = "controller") -> ControllerSettings:
    """Read the settings from a section of a ROS parameter file, on top of its section `/**`.

    Raises
    ------
    ConfigurationError
        The file is missing, is not YAML, lacks the section, or holds a bad value.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"cannot read '{path}': {' '.join(str(error).split())}") from error
    sections = content if isinstance(content, dict) else {}
    names = [name for name in ("/**", section, f"/{section}") if name in sections]
    if not set(names) - {"/**"}:
        raise ConfigurationError(
            f"'{path}' has no section '{section}', only {choices(map(str, sections)) or 'nothing'}"
        )
    values: dict[str, Any] = {}
    for name in names:
        body = sections[name]
        if not isinstance(body, dict) or not isinstance(body.get("ros__parameters"), dict):
            raise ConfigurationError(f"section '{name}' of '{path}' has no 'ros__parameters'")
        values.update(body["ros__parameters"])
    return ControllerSettings.from_mapping(
        {name: value for name, value in values.items() if not belongs_to_ros(name)}
    )


def belongs_to_ros(name: str) -> bool:
    """Whether a parameter is one that every ROS node has."""
    return name == "use_sim_time" or name.startswith(("qos_overrides", "start_type_description"))


def _unknown_parameter(name: str, known: Mapping[str, ParameterSpec]) -> str:
    close = difflib.get_close_matches(str(name), known, n=3)
    valid = f"did you mean {choices(close)}?" if close else f"must be one of {choices(known)}"
    return f"unknown parameter '{name}', {valid}"


def _check_together(settings: ControllerSettings) -> None:
    """Raise ConfigurationError when values that are each valid do not fit each other."""
    if not settings.urdf:
        raise ConfigurationError("parameter 'urdf' is empty, must name a robot description")
    for name in ("joints", "contact_frames"):
        values = getattr(settings, name)
        twice = {value for value in values if values.count(value) > 1}
        if twice:
            raise ConfigurationError(f"parameter '{name}' names {choices(twice)} more than once")
    for name in _PER_JOINT if settings.joints else ():
        settings.spread(name, len(settings.joints))
    for name in ("effort_limits_nm", *_MOTOR):
        if settings.joints and getattr(settings, name):
            settings.spread(name, len(settings.joints))
    if bool(settings.motor_resistance_ohm) != bool(settings.motor_torque_constant_nm_a):
        raise ConfigurationError(
            "parameters 'motor_resistance_ohm' and 'motor_torque_constant_nm_a' must both be given "
            "or both be empty")
    for name in _MOTOR:
        if min(getattr(settings, name), default=1.0) <= 0.0:
            raise ConfigurationError(f"parameter '{name}' is {getattr(settings, name)}, must be positive")
    for name in _PER_FRAME if settings.contact_frames else ():
        settings.spread(name, len(settings.contact_frames))
    for name in _PER_AXIS:
        settings.spread(name, 3)
    if len(settings.ground_normal) != 3 or not np.any(settings.ground_normal):
        raise ConfigurationError(
            f"parameter 'ground_normal' is {settings.ground_normal}, must be 3 numbers, not all 0"
        )
    if settings.contact_time_constant_s < settings.period_s:
        raise ConfigurationError(
            f"parameter 'contact_time_constant_s' is {settings.contact_time_constant_s:g}, "
            f"must not be below period_s = {settings.period_s:g}"
        )
