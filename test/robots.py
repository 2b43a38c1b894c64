"""Robots, stances and random states that several tests share."""

import numpy as np
import pinocchio as pin

from contact_id_controller import ContactSet, RobotModel

SOLO12 = "example-robot-data://solo_description/robots/solo12.urdf"
QUADRUPED = "package://contact_id_controller/urdf/quadruped.urdf"
SOLO_FEET = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
QUADRUPED_FEET = ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]
LEGS = ("LF", "RF", "LH", "RH")
JOINTS = [f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE")]
STANDING = np.outer([1, -1, -1, 1], [0.1, 0.8, 1.2]).ravel()
"""Of the quadruped, in the order of its file."""

SOLO_POSTURE = np.array([0, 0.8, -1.6] * 2 + [0, -0.8, 1.6] * 2)


def solo12() -> RobotModel:
    return RobotModel.from_urdf(SOLO12)


def frame_positions(robot, q, frames):
    """World positions (n, 3) of frames, by Pinocchio."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    return np.array([data.oMf[robot.frame_id(name)].translation for name in frames])


def point_kinematics(robot, q, v, frames, offsets=None):
    """Jacobians (3n, nv) and drift accelerations (3n,) of world points, by Pinocchio alone.

    offsets (n, 3): world vectors from the frames' origins to the points.
    """
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.nv))
    pin.updateFramePlacements(model, data)
    pin.computeJointJacobians(model, data, q)
    jacobians, drifts = [], []
    for i, name in enumerate(frames):
        frame = robot.frame_id(name)
        arm = np.zeros(3) if offsets is None else offsets[i]
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        linear = pin.getFrameClassicalAcceleration(
            model, data, frame, pin.LOCAL_WORLD_ALIGNED
        ).linear
        angular = pin.getFrameAcceleration(model, data, frame, pin.LOCAL_WORLD_ALIGNED).angular
        omega = J[3:] @ v
        jacobians.append(J[:3] - pin.skew(arm) @ J[3:])
        drifts.append(linear + np.cross(angular, arm) + np.cross(omega, np.cross(omega, arm)))
    return np.vstack(jacobians), np.concatenate(drifts)


def standing_solo(robot, mu=0.6):
    """Solo12 on flat ground with its feet planted: q and the contacts."""
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], SOLO_POSTURE)
    q[2] -= frame_positions(robot, q, SOLO_FEET)[:, 2].min()
    points = frame_positions(robot, q, SOLO_FEET)
    return q, ContactSet(points, [[0, 0, 1]] * 4, SOLO_FEET, mu)


def gliding_solo(robot, speed=0.3, mu=0.6):
    """Feet planted, body moving at constant speed: q, v, joint accelerations, contacts."""
    q, contacts = standing_solo(robot, mu)
    v = np.zeros(robot.nv)
    v[0] = speed
    J, _ = point_kinematics(robot, q, v, SOLO_FEET)
    v[6:] = np.linalg.solve(J[:, 6:], -J[:, :6] @ v[:6])
    _, drift = point_kinematics(robot, q, v, SOLO_FEET)
    return q, v, np.linalg.solve(J[:, 6:], -drift), contacts


def random_state(robot, rng):
    """A random configuration and velocity."""
    pin.seed(int(rng.integers(2**31)))
    q = pin.randomConfiguration(robot.model, -np.ones(robot.nq), np.ones(robot.nq))
    return q, rng.normal(size=robot.nv)


def random_contacts(robot, q, frames, rng, mu=0.6, spread=0.03):
    """Contacts near the frames with random directions; returns the set and the offsets (n, 3)."""
    offsets = spread * rng.normal(size=(len(frames), 3))
    normals = rng.normal(size=(len(frames), 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    points = frame_positions(robot, q, frames) + offsets
    return ContactSet(points, normals, frames, mu, rng.uniform(0, 1e-3, len(frames))), offsets
