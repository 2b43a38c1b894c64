"""Rows of the one robot and its ground: several nodes have them, and they mean the same everywhere."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.specification import parameter

if TYPE_CHECKING:  # imported where they are made: who reads the tables needs no dynamics
    from contact_id_controller.geometry import FlatFoot, HeightField, SphereFoot
    from contact_id_controller.robot import RobotModel

PLANE, SPACE = 2, 3
"""Numbers of a size in the sole's plane, and of a place."""


def _positive(values: tuple[float, ...]) -> str:
    return "" if all(value > 0.0 for value in values) else "be above 0"


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_MOST_CHARACTERS, _MOST_OF_A_NAME = 4000, 255
"""Of a path, and of each name in it."""


def location(value: str) -> str:
    """What a location must be instead: a URI stays in its package, a path is one."""
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


def _held(values: tuple[str, ...]) -> str:
    """What held joints must be, for the error; empty where all are ``name`` or ``name=position``."""
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
    """The robot's description, and which of its joints do not move."""

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
        """Where each locked joint is held, rad.

        Raises:
            ConfigurationError: one named twice.
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
            RobotDescriptionError: also for a number that is none, or a body that cannot be.
            UnknownJointError, ConfigurationError: see ``RobotModel.from_urdf``.
        """
        from contact_id_controller.settings import robot_description

        description = robot_description.read_description(self.urdf)
        robot_description.refuse_unreadable(description, tuple(self.locked))
        robot = self.load_robot()
        robot_description.refuse_impossible(description, robot)
        return robot

    def load_robot(self) -> RobotModel:
        """The same, whatever its bodies are.

        Raises:
            RobotDescriptionError, UnknownJointError, ConfigurationError: see ``RobotModel.from_urdf``.
        """
        from contact_id_controller.robot import RobotModel

        joints = list(getattr(self, "joints", ())) or None
        return RobotModel.from_urdf(
            self.urdf, getattr(self, "floating_base", True), joints, self.locked
        )


@dataclasses.dataclass(frozen=True)
class MovedRobot(Description):
    """The robot's joints, as whoever moves it needs to know."""

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


@dataclasses.dataclass(frozen=True)
class GroundRows(Settings):
    """What the robot walks on."""

    ground_file: str = parameter(
        "",
        """YAML file of uneven ground, boxes or heights (walking.md): a path, or
        package://contact_id_controller/config/<file>. Empty: a plane.""",
        when="Set for stairs, stones and rough ground.",
        validator=location,
    )

    @property
    def terrain(self) -> HeightField | None:
        """The uneven ground, read from its file; None: there is a plane.

        Raises:
            ConfigurationError: see ``geometry.read_ground``.
        """
        from contact_id_controller.geometry import read_ground

        return read_ground(self.ground_file) if self.ground_file else None


@dataclasses.dataclass(frozen=True)
class FeetRows(Settings):
    """The contacts of a robot: round feet, then the four corners of each flat one.

    Subclasses have a row ``contact_radii_m``. What has "one value per contact frame" has one for
    each round foot and then one for each flat foot.
    """

    contact_frames: tuple[str, ...] = parameter(
        (),
        "Frames of the URDF that may touch the ground, at the centre of a spherical foot.",
        when="Set to the frames of round feet, or of an arm's tip.",
    )
    flat_feet_frames: tuple[str, ...] = parameter(
        (),
        """Frames of the URDF that carry a flat sole, z out of the ground. Its four corners are
        contacts; after those of contact_frames wherever there is one value per contact frame.""",
        when="Set for soles.",
    )
    flat_feet_half_sizes_m: tuple[float, ...] = parameter(
        (),
        """Half the length of each sole along its frame's x and half along y: two values for all
        flat feet, or two per flat foot.""",
        when="Set to what carries of each sole; smaller keeps the load off its edges.",
        unit="m",
        maximum=1.0,
        validator=_positive,
    )
    flat_feet_centers_m: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0),
        "Middle of each sole in its frame: three values for all flat feet, or three per flat foot.",
        when="Set where the frame is not in the middle of the sole.",
        unit="m",
        minimum=-1.0,
        maximum=1.0,
    )

    @property
    def flat_feet(self) -> tuple[FlatFoot, ...]:
        """The soles."""
        from contact_id_controller.geometry import FlatFoot

        sizes = self._rows("flat_feet_half_sizes_m", PLANE)
        centers = self._rows("flat_feet_centers_m", SPACE)
        return tuple(map(FlatFoot, self.flat_feet_frames, sizes, centers))

    @property
    def feet(self) -> tuple[SphereFoot, ...]:
        """The n contacts: a ball for each round foot and for each corner of a flat one."""
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
        """Raise ConfigurationError for a foot named twice, or a sole without its sizes."""
        self.refuse_repeated("contact_frames", "flat_feet_frames")
        both = set(self.contact_frames) & set(self.flat_feet_frames)
        if both:
            raise ConfigurationError(
                f"parameters 'contact_frames' and 'flat_feet_frames' both name {choices(both)}"
            )
        self._rows("flat_feet_half_sizes_m", PLANE)
        self._rows("flat_feet_centers_m", SPACE)

    def _rows(self, name: str, width: int) -> list[tuple[float, ...]]:
        """A parameter's values in rows of ``width``, one for each flat foot; a single row stands for all."""
        values, count = getattr(self, name), len(self.flat_feet_frames)
        if len(values) not in (width, width * count) and count:
            raise ConfigurationError(
                f"parameter '{name}' has {len(values)} values, must have {width}, or {width} for "
                f"each of {count} flat feet"
            )
        rows = [values[k : k + width] for k in range(0, len(values), width)]
        return rows * count if len(rows) == 1 else rows


@dataclasses.dataclass(frozen=True)
class RobotRows(FeetRows, GroundRows, MovedRobot):
    """The robot and where it may touch the world."""


SAME_ROBOT = (
    "urdf",
    "joints",
    "locked_joints",
    "contact_frames",
    "contact_radii_m",
    "flat_feet_frames",
    "flat_feet_half_sizes_m",
    "flat_feet_centers_m",
    "period_s",
)
"""Rows of which the robot has one value, whoever asks: controller, simulated robot, estimator."""
