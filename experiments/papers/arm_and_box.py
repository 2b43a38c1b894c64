"""The first paper's manipulator: an arm whose four fingers hold a box, in two engines.

The box is a body of its own: six unactuated freedoms beside the robot's joints. Only fingertips and
box touch; the arm itself, its hand's palm included, is transparent.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import SimulationError
from contact_id_controller.robot import RobotModel
from contact_id_controller.simulation.mujoco_model import (
    FULL_DEPTH_M,
    LARGEST_FRICTION,
    GroundSettings,
)
from contact_id_controller.state import RobotState
from experiments.rigid.rigid_robot import RigidRobot
from experiments.rigid.scene import Body, Scene
from experiments.rigid.solids import Box, Sphere

URDF = "package://contact_id_controller/urdf/arm.urdf"
TIPS = ("tip_1", "tip_2", "tip_3", "tip_4")
HAND, BOX, TIP_RADIUS_M = "link_7", "box", 0.01
EDGE_M, DENSITY_KG_M3 = 0.0507, 6000.0
CENTRE_M = np.array([0.0, 0.0, 0.2])
"""Of the held box in the frame of the hand."""

POSTURE_RAD = np.array([-0.25, 0.0, 0.0, 0.5, 0.0, 0.0, -0.25]) * np.pi
"""Of the arm at the start: elbow out, hand upright. The paper does not tell it. Stretched, joints 3
and 6 would turn against each other with 3e-5 kg m2, for which the paper's damping is too much at
1 ms.
"""

ANTICIPATION_M = 0.002


class Arm(NamedTuple):
    """The arm beside the box: the model that controllers and simulators share."""

    robot: RobotModel
    hand: int
    joints: int

    @classmethod
    def make(cls) -> Arm:
        """Seven joints of the arm, four of the fingers, six freedoms of the box."""
        arm = RobotModel.from_urdf(URDF, floating_base=False)
        mass = DENSITY_KG_M3 * EDGE_M**3
        robot = arm.with_object(mass, np.eye(3) * mass * EDGE_M**2 / 6.0, BOX)
        return cls(robot, robot.frame_id(HAND), arm.nq)

    def start(self) -> np.ndarray:
        """q: the arm in its posture, the box in its hand, all four tips just touching."""
        q = self.robot.configuration(None, np.append(POSTURE_RAD, np.zeros(len(TIPS))))
        q[self.joints :] = pin.SE3ToXYZQUAT(self._held(q))
        return q

    def slip_m(self, q: np.ndarray) -> float:
        """Distance of the box from where it was held, as seen from the hand, m."""
        place = self._held(q)
        return float(np.linalg.norm(place.actInv(q[self.joints : self.joints + 3])))

    def scene(self, friction: float) -> Scene:
        """The contacts of fingertips and box."""
        bodies, pairs = self.bodies()
        return Scene(self.robot, bodies, (), pairs, friction, ANTICIPATION_M)

    def bodies(self) -> tuple[list[Body], list[tuple[str, str]]]:
        """What may touch, and the pairs of frames that do."""
        tips = [Body(tip, Sphere(TIP_RADIUS_M)) for tip in TIPS]
        return [*tips, Body(BOX, Box((EDGE_M,) * 3))], [(tip, BOX) for tip in TIPS]

    def _held(self, q: np.ndarray) -> pin.SE3:
        pin.framesForwardKinematics(self.robot.model, self.robot.data, q)
        return self.robot.data.oMf[self.hand] * pin.SE3(np.eye(3), CENTRE_M)


class RigidArm:
    """Arm and box in the rigid time stepper, with the contact law of Stewart and Trinkle."""

    def __init__(self, arm: Arm, friction: float, period_s: float):
        bodies, pairs = arm.bodies()
        self._world = RigidRobot(
            arm.robot, bodies=bodies, pairs=pairs, friction=friction, period_s=period_s
        )

    def reset(self, q: np.ndarray) -> RobotState:
        """At rest in configuration q (nq,), at time 0."""
        return self._world.reset(q)

    def step(self, torques: np.ndarray) -> RobotState:
        """Hold torques (na,), N·m, for a period. Raises SimulationError when it diverges."""
        return self._world.step(torques)

    def contact_forces(self) -> np.ndarray:
        """Force on each fingertip over the last period, (4, 3), N, world frame."""
        forces, solution = np.zeros((len(TIPS), 3)), self._world.last_solution
        contacts = solution.problem.contacts
        for frame, force in zip(contacts.frames, solution.forces):
            if frame in TIPS:  # else the box on the ground
                forces[TIPS.index(frame)] += force
        return forces


class MujocoArm:
    """Arm and box in MuJoCo; the same four calls as the simulators of walking robots."""

    def __init__(
        self, arm: Arm, friction: float, period_s: float, ground: GroundSettings = GroundSettings()
    ):
        self.robot, self.period_s = arm.robot, period_s
        self._model = _mujoco_model(arm, min(friction, LARGEST_FRICTION), period_s, ground)
        self._data = mujoco.MjData(self._model)
        self._joints, self._periods = arm.joints, 0
        names = arm.robot.model.names
        self._qpos = np.array(
            [self._model.joint(names[k + 1]).qposadr[0] for k in range(arm.joints)]
        )
        self._qvel = np.array(
            [self._model.joint(names[k + 1]).dofadr[0] for k in range(arm.joints)]
        )
        self._box_q = int(self._model.joint(BOX).qposadr[0])
        self._box_v = int(self._model.joint(BOX).dofadr[0])
        self._commanded = self._qvel[arm.robot.q_index]
        self._tips = {self._model.geom(tip).id: k for k, tip in enumerate(TIPS)}
        self._forces = np.zeros((len(TIPS), 3))

    def reset(self, q: np.ndarray) -> RobotState:
        """At rest in configuration q (nq,), at time 0."""
        mujoco.mj_resetData(self._model, self._data)
        x, y, z, w = q[self._joints + 3 :]
        self._data.qpos[self._qpos] = q[: self._joints]
        place = q[self._joints : self._joints + 3]
        self._data.qpos[self._box_q : self._box_q + 7] = [*place, w, x, y, z]
        mujoco.mj_forward(self._model, self._data)
        self._periods = 0
        return self.state()

    def state(self) -> RobotState:
        """In Pinocchio's convention: the joints, then the box."""
        data, k, d = self._data, self._box_q, self._box_v
        w, x, y, z = data.qpos[k + 3 : k + 7]
        q = np.concatenate([data.qpos[self._qpos], data.qpos[k : k + 3], [x, y, z, w]])
        turn = pin.Quaternion(w, x, y, z).matrix()
        v = np.concatenate(
            [data.qvel[self._qvel], turn.T @ data.qvel[d : d + 3], data.qvel[d + 3 : d + 6]]
        )
        return RobotState(self._periods * self.period_s, q, v)

    def step(self, torques: np.ndarray) -> RobotState:
        """Hold torques (na,), N·m, for a period.

        Raises:
            SimulationError: the state is no longer finite.
        """
        data = self._data
        data.qfrc_applied[self._commanded] = torques
        mujoco.mj_step(self._model, data)
        self._read_forces()
        self._periods += 1
        diverged = data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number
        if diverged or not np.isfinite(data.qvel).all():
            raise SimulationError(f"simulation diverged at {self._periods * self.period_s:.3f} s")
        return self.state()

    def contact_forces(self) -> np.ndarray:
        """Force on each fingertip over the last period, (4, 3), N, world frame."""
        return self._forces.copy()

    def _read_forces(self) -> None:
        data, contact = self._data, self._data.contact
        self._forces[:] = 0.0
        for k in range(data.ncon):
            if contact.efc_address[k] < 0:
                continue
            local = data.efc_force[contact.efc_address[k] + np.arange(3)]
            force = contact.frame[k].reshape(3, 3).T @ local  # on the second body of the pair
            first, second = contact.geom[k]
            if second in self._tips:
                self._forces[self._tips[second]] += force
            else:
                self._forces[self._tips[first]] -= force


def _mujoco_model(arm: Arm, friction: float, step_s: float, ground: GroundSettings):
    """Links and inertias from Pinocchio's model, so that both sides know the same arm."""
    spec, model = mujoco.MjSpec(), arm.robot.model
    option = spec.option
    option.timestep, option.gravity = step_s, model.gravity.linear
    option.cone, option.solver = mujoco.mjtCone.mjCONE_ELLIPTIC, mujoco.mjtSolver.mjSOL_NEWTON
    option.impratio, option.tolerance = ground.tangential_stiffening, 1e-10
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    bodies = {0: spec.worldbody}
    for joint in range(1, model.njoints):
        placement, inertia = model.jointPlacements[joint], model.inertias[joint]
        quaternion = pin.Quaternion(placement.rotation)
        body = bodies[joint] = bodies[model.parents[joint]].add_body(
            name=f"body_{joint}",
            pos=placement.translation,
            quat=[quaternion.w, quaternion.x, quaternion.y, quaternion.z],
        )
        I = inertia.inertia
        body.explicitinertial, body.mass, body.ipos = True, inertia.mass, inertia.lever
        body.fullinertia = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        if model.joints[joint].nv == 6:
            body.add_freejoint(name=BOX)
            body.add_geom(
                name=BOX,
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=[EDGE_M / 2] * 3,
                contype=0,
                conaffinity=0,
                mass=0,
            )
        else:
            axis = np.ravel(model.joints[joint].createData().S)[3:6]
            body.add_joint(name=model.names[joint], type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis)
    for tip in TIPS:
        frame = model.frames[model.getFrameId(tip)]
        bodies[frame.parentJoint].add_geom(
            name=tip,
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[TIP_RADIUS_M, 0, 0],
            pos=frame.placement.translation,
            contype=0,
            conaffinity=0,
            mass=0,
        )
        pair = spec.add_pair(name=f"{tip}_{BOX}", geomname1=BOX, geomname2=tip, condim=3)
        pair.friction = [friction, friction, 0, 0, 0]
        pair.solref = [ground.time_constant_s, ground.damping_ratio]
        pair.solimp = [*ground.impedance, FULL_DEPTH_M, 0.5, 2]
    return spec.compile()


def tip_numbers(contacts: ContactSet) -> list[int]:
    """Which fingertip each contact belongs to."""
    return [TIPS.index(frame) for frame in contacts.frames]
