"""Translation of states between Pinocchio's convention and MuJoCo's."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from contact_id_controller.exceptions import RobotDescriptionError
from contact_id_controller.robot import RobotModel


class StateMap:
    """Maps (q, v) of Pinocchio to (qpos, qvel) of MuJoCo and back.

    Joints are matched by name, since the two libraries order them differently. The floating base
    differs in two ways: MuJoCo's quaternion is w, x, y, z, and its linear velocity is that of the
    base origin in the *world* frame (angular velocity: base frame in both), so that

        v_pinocchio[:3] = R^T qvel[:3]        R: base to world.

    Attributes:
        actuated: indices into qvel of the robot's actuated joints, in command order, (na,).
    """

    def __init__(self, robot: RobotModel, model: mujoco.MjModel):
        self._floating = robot.floating_base
        # Where each entry of q and v lies in qpos and qvel.
        self._qpos_of_q = np.zeros(robot.nq, dtype=np.int64)
        self._qvel_of_v = np.zeros(robot.nv, dtype=np.int64)
        if self._floating:
            self._qpos_of_q[:7] = (0, 1, 2, 4, 5, 6, 3)
            self._qvel_of_v[:6] = range(6)
        # First of the two entries (cos, sin) that q has for a joint of type continuous.
        self._circles: list[int] = []
        for index in range(2 if self._floating else 1, robot.model.njoints):
            joint, name = robot.model.joints[index], robot.model.names[index]
            found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
            if joint.nv != 1 or found < 0:
                raise RobotDescriptionError(
                    f"joint {name!r} cannot be simulated: it has {joint.nv} freedoms in Pinocchio"
                    f" and {'none' if found < 0 else 'one'} in MuJoCo, must be one in both"
                )
            self._qpos_of_q[joint.idx_q : joint.idx_q + joint.nq] = model.jnt_qposadr[found]
            self._qvel_of_v[joint.idx_v] = model.jnt_dofadr[found]
            if joint.nq == 2:
                self._circles.append(joint.idx_q)
        self.actuated = self._qvel_of_v[robot.actuated]

    def to_mujoco(self, q: np.ndarray, v: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Write (q, v) into `qpos` and `qvel`."""
        qpos[self._qpos_of_q] = q
        qvel[self._qvel_of_v] = v
        for index in self._circles:
            qpos[self._qpos_of_q[index]] = math.atan2(q[index + 1], q[index])
        if self._floating:
            mujoco.mju_rotVecQuat(qvel[:3], np.array(v[:3]), qpos[3:7])

    def to_pinocchio(self, qpos: np.ndarray, qvel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """New arrays (q, v) of a MuJoCo state."""
        q, v = qpos[self._qpos_of_q], qvel[self._qvel_of_v]
        for index in self._circles:
            angle = q[index]
            q[index], q[index + 1] = math.cos(angle), math.sin(angle)
        if self._floating:
            world_to_base = np.empty(4)
            mujoco.mju_negQuat(world_to_base, qpos[3:7])
            mujoco.mju_rotVecQuat(v[:3], qvel[:3], world_to_base)
        return q, v
