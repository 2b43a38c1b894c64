"""Legs of a robot: thigh, shank and ankle, and the part of a sole on which the ankle can hold the robot's weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry.feet import SphereFoot
from contact_id_controller.robot import RobotModel


class Leg(NamedTuple):
    """One leg: joints (Pinocchio's indices; -1: the foot frame itself) and the length of thigh and shank, m.

    root: the first one, which no other one of the leg moves.  hip: the upper end of the thigh.  knee: its lower end.
    ankle: the first one below the shank.
    """

    root: int
    hip: int
    knee: int
    ankle: int
    length_m: float


def leg_of(robot: RobotModel, frame: pin.Frame) -> Leg:
    """Find the leg of a foot's frame; thigh and shank are the two longest segments of the chain from the base to it.

    Raises:
        ConfigurationError: fewer than three joints.
    """
    model = robot.model
    joints = [j for j in model.supports[frame.parentJoint] if j > 1]
    if len(joints) < 3:
        raise ConfigurationError(f"foot {frame.name!r} hangs on {len(joints)} joints, needs 3")
    parts = [float(np.linalg.norm(model.jointPlacements[j].translation)) for j in joints[1:]]
    parts.append(float(np.linalg.norm(frame.placement.translation)))
    thigh, shank = sorted(np.argsort(parts)[-2:].tolist())
    ankle = joints[shank + 1] if shank + 1 < len(joints) else -1
    return Leg(joints[0], joints[thigh], joints[shank], ankle, parts[thigh] + parts[shank])


def held_by_ankles(
    robot: RobotModel, feet: Sequence[SphereFoot], efforts: np.ndarray
) -> np.ndarray:
    """Shift (n, 3), m, joint axes, of each contact to the nearest point where its ankle can hold the robot's weight.

    The ground pushes with the weight W along the sole's normal z at p; about the axis a through o of each joint of the
    ankle that is a torque W |(p - o) . (z x a)|, at most the joint's. Feet with fewer than three joints have no ankle:
    zero, as for feet with a single contact.

    Args:
        feet: the contacts, several in a frame a sole, whose normal is the frame's z axis.
        efforts: (na,) N·m, the largest torque of each joint, in ``robot.joint_names`` order.
    """
    model, data = robot.model, robot.model.createData()
    pin.computeJointJacobians(model, data, robot.neutral())
    largest = np.full(robot.nv, np.inf)
    largest[robot.actuated] = efforts / robot.weight
    shifts, frames = np.zeros((len(feet), 3)), [foot.frame for foot in feet]
    for i, foot in enumerate(feet):
        frame = model.frames[robot.frame_id(foot.frame)]
        chain = [j for j in model.supports[frame.parentJoint] if j > 1]
        if frames.count(foot.frame) < 2 or len(chain) < 3:
            continue
        ankle = leg_of(robot, frame).ankle
        link = data.oMi[frame.parentJoint]
        normal = (link * frame.placement).rotation[:, 2]
        start = link.act(frame.placement.act(np.array(foot.center, dtype=float)))
        place = start.copy()
        for j in chain[chain.index(ankle) :] if ankle > 0 else ():
            k = model.joints[j].idx_v
            lever = np.cross(normal, data.J[3:, k])
            square = float(lever @ lever)
            # A sliding joint, or one that turns about the normal, carries no such torque.
            if square > 1e-6:
                along = float((place - data.oMi[j].translation) @ lever)
                bound = float(np.clip(along, -largest[k], largest[k]))
                place += (bound - along) / square * lever
        shifts[i] = link.rotation.T @ (place - start)
    return shifts
