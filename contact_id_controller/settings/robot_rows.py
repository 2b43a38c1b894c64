"""Parameters of the robot and its ground, which several nodes share with the same meaning."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.parameter_spec import named_settings
from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.specification import parameter

if TYPE_CHECKING:  # imported in the functions that need them: the tables alone need no dynamics
    from contact_id_controller.geometry import FlatFoot, HeightField, SphereFoot
    from contact_id_controller.robot import MotorRows, RobotModel

_HALF, _MIDDLE = ("half_length_m", "half_width_m"), ("x_m", "y_m", "z_m")
"""Settings of a sole: required ones, and those that are 0 by default."""

_LARGEST_M = 1.0
"""Largest half size of a sole, and distance of its middle."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_MOST_CHARACTERS, _MOST_OF_A_NAME = 4000, 255
"""Longest path, and longest name in it."""


def location(value: str) -> str:
    """The requirement that a location fails, as the end of "must ..."; empty: valid. A URI stays within its package."""
    scheme, separator, rest = value.partition("://")
    names = rest.split("/") if separator else value.split("/")
    longest = max(map(len, names))
    if "\0" in value or len(value) > _MOST_CHARACTERS or longest > _MOST_OF_A_NAME:
        return (
            f"be a path of at most {_MOST_CHARACTERS} characters, {_MOST_OF_A_NAME} between two /"
        )
    if not separator:
        return ""
    package, path = names[0], names[1:]
    if not _NAME.fullmatch(package):
        return f"name a package behind {scheme}://"
    if not any(path) or ".." in path or not all(path):
        return f"name a file in package {package}, without '..'"
    return ""


def sole_of(text: str, row: str = "soles") -> FlatFoot:
    """Parse a row of ``soles``.

    Raises:
        ConfigurationError: an unknown or missing setting, or one outside its range.
    """
    from contact_id_controller.geometry import FlatFoot

    try:
        frame, given = named_settings(text, dict.fromkeys((*_HALF, *_MIDDLE), "float"))
    except ConfigurationError as error:
        raise ConfigurationError(f"parameter '{row}' has {error}") from None
    values = {name: float(given.get(name, 0.0)) for name in (*_HALF, *_MIDDLE)}
    for name, value in values.items():
        least = -_LARGEST_M if name in _MIDDLE else 0.0
        if not least <= value <= _LARGEST_M or (name in _HALF and not value):
            raise ConfigurationError(
                f"parameter '{row}' has {text!r}, whose {name} must be "
                f"{'within -1 and 1' if name in _MIDDLE else 'above 0, at most 1'}"
            )
    half = values["half_length_m"], values["half_width_m"]
    return FlatFoot(frame, half, (values["x_m"], values["y_m"], values["z_m"]))


def _held(values: tuple[str, ...]) -> str:
    """The requirement that locked joints fail, as the end of "must ..."; empty: all are names or ``name=position``."""
    for value in values:
        name, equals, position = value.partition("=")
        try:
            good = bool(name) and (not equals or math.isfinite(float(position)))
        except ValueError:
            good = False
        if not good:
            return "be names of joints, or name=position"
    return ""


@dataclasses.dataclass(frozen=True)
class Description(Settings):
    """The robot's description, and its joints that do not move."""

    urdf: str = parameter(
        "",
        """Robot description: a file, package://contact_id_controller/urdf/<file>, or
        example-robot-data://<package>/robots/<file>.""",
        when="Required: the description of your robot, the same for all nodes.",
        validator=location,
    )
    locked_joints: tuple[str, ...] = parameter(
        (),
        """Joints that something else holds in place, such as grippers, each name, or name=position where
        it is not held at 0 (rad): they are as if welded, and belong neither to joints nor to commands;
        plans that name them are refused.""",
        when="Set to joints that the controller shall not command.",
        validator=_held,
    )

    @property
    def locked(self) -> dict[str, float]:
        """Position of each locked joint, rad.

        Raises:
            ConfigurationError: a joint named twice.
        """
        held = [each.partition("=") for each in self.locked_joints]
        twice = sorted({name for name, _, _ in held if [row[0] for row in held].count(name) > 1})
        if twice:
            raise ConfigurationError(
                f"parameter 'locked_joints' names {choices(twice)} more than once"
            )
        return {name: float(position or 0.0) for name, _, position in held}

    def robot(self) -> RobotModel:
        """The robot's model, with the joints in the order of the parameters.

        Raises:
            RobotDescriptionError: also for a number that cannot be read, or an impossible body.
            UnknownJointError, ConfigurationError: see ``RobotModel.from_urdf``.
        """
        from contact_id_controller.settings import robot_description

        description = robot_description.read_description(self.urdf)
        robot_description.refuse_unreadable(description, tuple(self.locked))
        robot = self.load_robot()
        robot_description.refuse_impossible(description, robot)
        return robot

    def load_robot(self) -> RobotModel:
        """As `robot`, without checks of its bodies.

        Raises:
            RobotDescriptionError, UnknownJointError, ConfigurationError: see ``RobotModel.from_urdf``.
        """
        from contact_id_controller.robot import RobotModel

        joints = list(getattr(self, "joints", ())) or None
        floating = getattr(self, "floating_base", True)
        return RobotModel.from_urdf(self.urdf, floating, joints, self.locked, self.motor_rows)

    @property
    def motor_rows(self) -> MotorRows:
        """Pattern of joint names, and settings, of each row on motors; empty for a node without such rows."""
        return ()


@dataclasses.dataclass(frozen=True)
class MovedRobot(Description):
    """The robot's joints, for nodes that move it."""

    floating_base: bool = parameter(
        True,
        "The base moves freely (legged robot); false for a robot bolted to the ground.",
        when="Set false for an arm.",
    )
    joints: tuple[str, ...] = parameter(
        (),
        "Actuated joints in the order of the command; empty: all of the URDF, in its order.",
        when="Set to the order in which your driver takes commands.",
    )


def _motor(text: str) -> tuple[str, dict[str, float]]:
    """A row of ``motors``."""
    from contact_id_controller.robot import Motors

    try:
        pattern, given = named_settings(text, dict.fromkeys(Motors._fields, "float"))
    except ConfigurationError as error:
        raise ConfigurationError(f"parameter 'motors' has {error}") from None
    return pattern, {name: float(value) for name, value in given.items()}


@dataclasses.dataclass(frozen=True)
class MotorParameters(Description):
    """The motors of the joints, for nodes that compute or simulate torques."""

    motors: tuple[str, ...] = parameter(
        (),
        """What motors and gears add to the links, for joints by name or pattern: "*_KFE
        rotor_inertia_kg_m2=0.01 dry_friction_nm=0.3 viscous_friction_nm_s_rad=0.05
        friction_speed_rad_s=0.03": inertia of the rotor at the joint, gear ratio squared included; friction,
        dry_friction_nm tanh(speed / friction_speed_rad_s) + viscous_friction_nm_s_rad speed. What no row
        states is the URDF's (dynamics: damping, friction), or 0; later rows count more.""",
        when="Set from data sheets, or from what joints do that are moved alone.",
    )

    @property
    def motor_rows(self) -> MotorRows:
        """Pattern of joint names, and settings, of each row.

        Raises:
            ConfigurationError: a malformed row.
        """
        return tuple(map(_motor, self.motors))


@dataclasses.dataclass(frozen=True)
class GroundRows(Settings):
    """The ground."""

    ground_file: str = parameter(
        "",
        """YAML file of uneven ground, boxes or heights (walking.md): a path, or
        package://contact_id_controller/config/<file>. Empty: a plane.""",
        when="Set for stairs, stones and rough ground.",
        validator=location,
    )

    @property
    def terrain(self) -> HeightField | None:
        """The uneven ground, read from its file; None: it is a plane.

        Raises:
            ConfigurationError: see ``geometry.read_ground``.
        """
        from contact_id_controller.geometry import read_ground

        return read_ground(self.ground_file) if self.ground_file else None


@dataclasses.dataclass(frozen=True)
class FeetRows(Settings):
    """The contacts of a robot: round feet, then the four corners of each sole.

    Subclasses have a row ``contact_radii_m``. A list with "one value per contact frame" has one for
    each round foot and then one for each sole.
    """

    contact_frames: tuple[str, ...] = parameter(
        (),
        "Frames of the URDF that may touch the ground, at the centre of a spherical foot.",
        when="Set to the frames of round feet, or of an arm's tip.",
    )
    soles: tuple[str, ...] = parameter(
        (),
        """Flat feet, each with the frame of the URDF that carries it, z out of the ground, half its length
        along the frame's x and half its width along y, and the place of its middle where that is not the
        frame's origin, m: "left_sole half_length_m=0.1 half_width_m=0.06 x_m=0.02 y_m=0 z_m=-0.03". Their
        four corners are contacts; after those of contact_frames wherever there is one value per contact
        frame.""",
        when="Set to what carries of each sole; smaller keeps the load off its edges.",
    )

    @property
    def flat_feet(self) -> tuple[FlatFoot, ...]:
        """The soles.

        Raises:
            ConfigurationError: an unknown or missing setting, or one outside its range.
        """
        return tuple(map(sole_of, self.soles))

    @property
    def flat_feet_frames(self) -> tuple[str, ...]:
        """Frames of the soles."""
        return tuple(foot.frame for foot in self.flat_feet)

    @property
    def feet(self) -> tuple[SphereFoot, ...]:
        """The n contacts: a sphere for each round foot and for each corner of a sole."""
        from contact_id_controller.geometry import SphereFoot

        radii = self.spread("contact_radii_m", len(self.contact_frames)).tolist()
        round_feet = map(SphereFoot, self.contact_frames, radii)
        return (*round_feet, *(corner for foot in self.flat_feet for corner in foot.corners()))

    @property
    def foot_frames(self) -> tuple[str, ...]:
        """Frames of the feet, round ones first."""
        return self.contact_frames + self.flat_feet_frames

    @property
    def contact_names(self) -> tuple[str, ...]:
        """A name for each of the n contacts."""
        from contact_id_controller.geometry import contact_names

        return contact_names([foot.frame for foot in self.feet])

    def spread_over_contacts(self, name: str) -> np.ndarray:
        """Values (n,) of a parameter with one value, or one per foot; a corner has its foot's.

        Raises:
            ConfigurationError: neither one value nor one per foot.
        """
        values = self.spread(name, len(self.foot_frames))
        corners = [1] * len(self.contact_frames) + [4] * len(self.flat_feet_frames)
        return np.repeat(values, corners)

    def check_feet(self) -> None:
        """Raise ConfigurationError for a foot named twice, or a bad sole."""
        twice = sorted({name for name in self.foot_frames if self.foot_frames.count(name) > 1})
        if twice:
            raise ConfigurationError(
                f"parameters 'contact_frames' and 'soles' name {choices(twice)} more than once"
            )


@dataclasses.dataclass(frozen=True)
class RobotRows(FeetRows, GroundRows, MotorParameters, MovedRobot):
    """The robot and its contacts."""


SAME_ROBOT = (
    "urdf",
    "joints",
    "locked_joints",
    "contact_frames",
    "contact_radii_m",
    "soles",
    "motors",
    "period_s",
)
"""Rows with one value per robot, the same for controller, simulated robot and estimator."""
