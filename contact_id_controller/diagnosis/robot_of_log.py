"""Finds the robot of a log, its joints, IMU and feet, in the URDF and its parameter file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_id_controller.logs.log import Array, Log, common_joints
from contact_id_controller.new_robot.anatomy import anatomy
from contact_id_controller.new_robot.searched import searched
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from contact_id_controller.settings.robot_description import read_description, refuse_unreadable

FOOT_WORDS = ("sole", "foot", "toe", "contact", "ankle")


@dataclasses.dataclass(frozen=True)
class RobotOfLog:
    """A model with those joints of a log that it has, in the log's order; others are locked at 0.

    Attributes:
        urdf: the description.  robot: in the order of the log; its base floats if the log has an IMU or feet.
        legged: whether it may stand on legs, so that its efforts carry its weight.
        settings: of its controller; None: no parameter file.
        imu_rotation: (3, 3), the IMU's axes in the base.  imu_frame: its name; empty: the base's axes.
        feet: frames of the feet, in the order of the log's; empty: none known.
        feet_named: whether the names in the log assign them.
        soles: whether these are flat.
        radius_m: of the feet; 0 if unknown.
    """

    urdf: str
    robot: RobotModel
    legged: bool
    settings: ControllerSettings | None
    imu_rotation: Array
    imu_frame: str
    feet: tuple[str, ...]
    feet_named: bool
    soles: bool
    radius_m: float


def robot_of(log: Log, urdf: str | Path | None, config: Path | None) -> RobotOfLog | None:
    """Build the robot of a log; None without URDF and parameter file.

    Raises:
        ContactIdError: a URDF or file that cannot be read, or not wholly.
        UnknownJointError: the log and the URDF have no joint in common by name.
    """
    settings = None if config is None else load_settings(config)
    where = urdf if urdf is not None else None if settings is None else settings.urdf
    if where is None:
        return None
    refuse_unreadable(read_description(where))
    floating = log.imu is not None or bool(log.feet)
    full = RobotModel.from_urdf(where, floating, base_held=True)
    joints = common_joints(log.joints, full.joint_names, str(where))
    held = {name: 0.0 for name in full.joint_names if name not in joints}
    if settings is not None:
        held |= {name: value for name, value in settings.locked.items() if name in held}
    motors = () if settings is None else settings.motor_rows
    robot = RobotModel.from_urdf(
        where, floating, joints, _within(full, held), motors, base_held=True
    )
    frame = _imu_frame(robot, log, config)
    legs = _feet(robot, settings) if floating else ()
    soles = bool(legs) and (
        bool(settings.soles) if settings is not None else anatomy(full.model).walks_on_soles
    )
    feet, named = _in_order(tuple(log.feet), legs)
    radii = () if settings is None else tuple(np.atleast_1d(settings.contact_radii_m))
    return RobotOfLog(
        urdf=str(where),
        robot=robot,
        legged=floating or _legged(where, settings),
        settings=settings,
        imu_rotation=_rotation(robot, frame),
        imu_frame=frame,
        feet=feet,
        feet_named=named,
        soles=soles,
        radius_m=float(np.mean(radii)) if radii else 0.0,
    )


def joints_of(urdf: str | Path | None, config: Path | None) -> tuple[str, ...]:
    """The joints of a robot in the order of its URDF, or else of its parameter file; empty without both."""
    if urdf is not None:
        refuse_unreadable(read_description(urdf))
        return tuple(RobotModel.from_urdf(resolve_urdf(urdf)).joint_names)
    return () if config is None else tuple(load_settings(config).joints)


def _legged(urdf: str | Path, settings: ControllerSettings | None) -> bool:
    """Whether the base floats by the parameter file, or else whether the robot has legs."""
    if settings is not None:
        return settings.floating_base
    return bool(searched(urdf).limbs.legs)


def _within(robot: RobotModel, held: dict[str, float]) -> dict[str, float]:
    """Positions of locked joints, clipped to their limits."""
    limits = {
        name: (low, high) for name, low, high in zip(robot.joint_names, robot.lower, robot.upper)
    }
    return {name: float(np.clip(value, *limits[name])) for name, value in held.items()}


def _imu_frame(robot: RobotModel, log: Log, config: Path | None) -> str:
    """The IMU's frame: as named in the log, as stated for the estimator in the parameter file, or one called imu."""
    names = [frame.name for frame in robot.model.frames]
    if log.imu is None:
        return ""
    if log.imu.frame in names:
        return log.imu.frame
    file = None if config is None else ParameterFile(config)
    if file is not None and ESTIMATOR in file:
        return str(file.section(ESTIMATOR).get("imu_frame", ""))
    on_base = [
        frame.name
        for frame in robot.model.frames
        if "imu" in frame.name.lower()
        and frame.parentJoint == 1
        and frame.type == pin.FrameType.BODY
    ]
    return min(on_base, key=len, default="")


def _rotation(robot: RobotModel, frame: str) -> Array:
    if not frame:
        return np.eye(3)
    return np.array(robot.model.frames[robot.frame_id(frame)].placement.rotation)


def _feet(robot: RobotModel, settings: ControllerSettings | None) -> tuple[str, ...]:
    """Frames of the feet: those of the parameter file, or of the ends of the legs."""
    if settings is not None:
        return settings.foot_frames
    model = robot.model
    ends = []
    for leg in anatomy(model).legs:
        own = [
            f.name
            for f in model.frames
            if f.parentJoint == leg[-1] and f.type == pin.FrameType.BODY
        ]
        named = [[name for name in own if word in name.lower()] for word in FOOT_WORDS]
        ends.append(next((min(names, key=len) for names in named if names), own[-1] if own else ""))
    return tuple(name for name in ends if name)


def _in_order(feet: tuple[str, ...], frames: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The frame of each foot of the log by its name; if names do not match, the frames unchanged, and False."""
    if len(feet) != len(frames) or not feet:
        return (frames if not feet else ()), False
    lower = [frame.lower() for frame in frames]
    found = []
    for foot in feet:
        name = foot.lower()
        fits = [k for k, frame in enumerate(lower) if name in frame or frame in name]
        if not fits:
            word = name.split("_")[0]
            fits = [k for k, frame in enumerate(lower) if frame.split("_")[0] in (word, word[:1])]
        found.append(fits[0] if len(fits) == 1 else -1)
    named = sorted(found) == list(range(len(feet)))
    return (tuple(frames[k] for k in found) if named else frames), named
