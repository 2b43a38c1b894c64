"""Initial configurations of whole-body motions, and postures that regularise them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic.contact_plan import Foothold, Sole
from contact_id_controller.planning.kinodynamic.placement import BASE, Placement, is_flat
from contact_id_controller.planning.kinodynamic.swing import FootMotion
from contact_id_controller.robot import RobotModel

NOT_THERE = 1e-5
"""A foot that misses its first foothold by more (m, rad) cannot stand there."""

_PARTS = ("translation", "rotation")

PRISMATIC = "JointModelP"
"""How Pinocchio's names of joints that slide begin."""


def require_whole_body(robot: RobotModel, soles: Sequence[Sole]) -> None:
    """Raise if the planner cannot plan for this robot.

    Raises:
        ConfigurationError: no floating base, or joints of more than one freedom.
        UnknownFrameError: a sole on a frame that the robot lacks.
    """
    if not robot.floating_base:
        raise ConfigurationError("the robot has no floating base: its momentum cannot be planned")
    if robot.nv != BASE + robot.na or robot.nq != 7 + robot.na + robot.turns.sum():
        raise ConfigurationError(
            f"{robot.nv - BASE} joint coordinates, of which {robot.na} are actuated single ones; "
            "whole-body motion needs all to be"
        )
    for sole in soles:
        robot.frame_id(sole.frame)


def standing_start(
    robot: RobotModel,
    soles: Sequence[Sole],
    posture: np.ndarray,
    friction_coefficient: float = 0.6,
) -> tuple[np.ndarray, tuple[Foothold, ...]]:
    """Put the robot on level ground at height 0, feet around the origin; returns q (nq,) and the footholds.

    Soles keep place and heading of the posture but are turned level; base and legs move for that.

    Args:
        robot: with a floating base.
        soles: of all feet.
        posture: (na,) joint positions.
        friction_coefficient: of the ground.

    Raises:
        ConfigurationError: a posture in which the feet cannot be put level.
    """
    require_whole_body(robot, soles)
    model, data = robot.model, robot.data
    q = robot.configuration([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], posture)
    pin.framesForwardKinematics(model, data, q)
    poses = [data.oMf[robot.frame_id(sole.frame)].copy() for sole in soles]
    middle = np.mean([pose.translation for pose in poses], axis=0)
    lowest = min(
        float((pose.act(corner) - middle)[2])
        for pose, sole in zip(poses, soles)
        for corner in sole.corners
    )
    shift = middle + [0.0, 0.0, lowest]
    q[:3] -= shift
    footholds = []
    for sole, pose in zip(soles, poses):
        turned = _level(pose.rotation) if is_flat(sole) else np.eye(3)
        place = pose.translation - shift
        place[2] = -min(float((turned @ corner)[2]) for corner in sole.corners)
        footholds.append(Foothold(sole.frame, place, turned, friction_coefficient))
    return placed(robot, soles, q, footholds), tuple(footholds)


def placed(
    robot: RobotModel, soles: Sequence[Sole], q: np.ndarray, footholds: Sequence[Foothold]
) -> np.ndarray:
    """Configuration near q (nq,) with the feet on the footholds and the CoM unchanged.

    Raises:
        ConfigurationError: none is found; the message names the foot with the largest error.
    """
    com = pin.centerOfMass(robot.model, robot.data, q).copy()
    count = len(soles)
    feet = FootMotion(
        np.array([[foothold.position for foothold in footholds]]),
        np.array([[foothold.rotation for foothold in footholds]]),
        np.zeros((1, count, 3)),
        np.zeros((1, count, 3)),
        np.ones((1, count), dtype=bool),
    )
    names, flat = zip(*((sole.frame, is_flat(sole)) for sole in soles))
    place = Placement(robot, names, flat, com[None], np.zeros((1, 3)), feet)
    there, _, misses = place.reached(0, q, place.mobility())
    worst = int(np.argmax(misses))
    if misses[worst] > NOT_THERE:
        raise ConfigurationError(
            f"foot {names[worst]!r} cannot be put on its first foothold: {misses[worst]:.3g} m or "
            "rad are missing; choose another posture"
        )
    return there


def reach(robot: RobotModel, start: np.ndarray, sole: Sole) -> float:
    """Upper bound of the distance of the foot from the CoM, m.

    All links of the leg in one line, from its first joint in the configuration ``start`` (nq,).
    """
    model, data = robot.model, robot.data
    frame = model.frames[robot.frame_id(sole.frame)]
    com = pin.centerOfMass(model, data, start).copy()
    chain = [joint for joint in model.supports[frame.parentJoint] if joint > 1]
    lengths = [np.linalg.norm(model.jointPlacements[joint].translation) for joint in chain[1:]]
    lengths += [
        np.abs(limits[model.joints[joint].idx_q])
        for limits in (model.lowerPositionLimit, model.upperPositionLimit)
        for joint in chain
        if model.joints[joint].shortname().startswith(PRISMATIC)
    ]
    hip = data.oMi[chain[0]].translation
    tip = float(np.linalg.norm(frame.placement.translation))
    return float(np.linalg.norm(com - hip)) + float(np.sum(lengths)) + tip


def carried_along(
    robot: RobotModel, soles: Sequence[Sole], posture: np.ndarray, feet: FootMotion
) -> tuple[np.ndarray, np.ndarray]:
    """Carry a posture (nq,) along with moving feet: configurations (p, nq) and their CoM (p, 3), m, world.

    The heading follows the mean of the flat feet, or, with point feet only, the figure that they form on the ground.
    The CoM keeps its position relative to the middle of the feet.
    """
    com, places, rotations = _standing(robot, soles, posture)
    flat = np.array([is_flat(sole) for sole in soles])
    if flat.any():
        headings = _headings(np.concatenate([rotations[None], feet.rotations]))[:, flat]
        headings = np.unwrap(headings, axis=0)
        yaw = np.mean(headings - headings[0], axis=1)[1:]
    else:
        positions = np.concatenate([places[None], feet.positions])[..., :2]
        figure = positions - positions.mean(axis=1, keepdims=True)
        x, y = figure[0].T
        along = figure[..., 0] @ x + figure[..., 1] @ y
        across = figure[..., 1] @ x - figure[..., 0] @ y
        yaw = np.unwrap(np.arctan2(across, along))[1:]
    turns = Rotation.from_rotvec(np.multiply.outer(yaw, [0.0, 0.0, 1.0]))
    above = feet.positions.mean(axis=1) + turns.apply(com - places.mean(axis=0))
    rows = np.tile(posture, (len(yaw), 1))
    rows[:, :3] = above + turns.apply(posture[:3] - com)
    rows[:, 3:7] = (turns * Rotation.from_quat(posture[3:7])).as_quat()
    return rows, above


def _standing(
    robot: RobotModel, soles: Sequence[Sole], q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CoM (3,), positions (f, 3) and rotations (f, 3, 3) of the feet at a configuration, m, world."""
    model, data = robot.model, robot.data
    com = pin.centerOfMass(model, data, q).copy()
    pin.updateFramePlacements(model, data)
    poses = [data.oMf[robot.frame_id(sole.frame)] for sole in soles]
    places, rotations = ([getattr(pose, part).copy() for pose in poses] for part in _PARTS)
    return com, np.array(places), np.array(rotations)


def _headings(rotations: np.ndarray) -> np.ndarray:
    """Yaw of the x axis, rad, of rotations (..., 3, 3), to (...)."""
    return np.arctan2(rotations[..., 1, 0], rotations[..., 0, 0])


def _level(rotation: np.ndarray) -> np.ndarray:
    """Rotation about the vertical with the same heading."""
    return pin.rpy.rpyToMatrix(0.0, 0.0, float(_headings(rotation)))
