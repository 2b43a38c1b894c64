"""A simulated robot on a plane or uneven ground that takes torques and returns states: MuJoCo, made from a URDF.

It is independent of any controller, and reports the contact forces that it applied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from contact_id_controller.geometry import HalfSpace, HeightField, SphereFoot, feet_on
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.robot import MotorRows, RobotModel, resolve_urdf
from contact_id_controller.simulation.engine_sensors import EngineSensors
from contact_id_controller.simulation.exact_friction import ExactFriction
from contact_id_controller.simulation.mujoco_model import (
    LARGEST_FRICTION,
    GroundSettings,
    build_mujoco_model,
    foot_name,
)
from contact_id_controller.simulation.state_map import StateMap
from contact_id_controller.simulation.stepped_robot import SteppedRobot, checked_vector
from contact_id_controller.state import RobotState


@kernel
def _add_forces(rows, frames, geoms, efc_force, feet, forces):
    """Add the force of each of MuJoCo's c contacts to its foot: forces (n, 3) N, world frame.

    rows (c,): first row in efc_force, N; frames (c, 9), geoms (c, 2): of the contacts; feet: foot of each geom.

    With elliptic cones a contact's rows are its force: along the normal, then two tangents, the
    rows of its frame. It acts on the second geom of the pair, the foot. A contact that is detected but
    too far apart to push has no rows.
    """
    for k in range(rows.shape[0]):
        first = rows[k]
        if first < 0:
            continue
        foot = feet[geoms[k, 1]]
        for row in range(3):
            for d in range(3):
                forces[foot, d] += efc_force[first + row] * frames[k, 3 * row + d]


class MujocoRobot(SteppedRobot):
    """A robot simulated in MuJoCo, advanced one control period at a time.

    Torques are applied unchanged: no limit, no delay. A command that is not finite
    or not of shape (na,) is replaced by zero and counted in `refused_commands`.

    Args:
        urdf: location of the description, see `resolve_urdf`. Meshes are not needed.
        feet: spheres that may touch the ground, by default the plane z = 0.
        joints: actuated joints in command order; None: all, in the order of `RobotModel`.
        locked: joints that are welded, and their positions, rad.
        friction: Coulomb coefficient of feet on ground: a number, one a foot, or a function of the
            places of the feet, (n, 3) m, such as `FrictionMap`.
        period_s: control period, s, over which torque is held and contact forces are averaged.
        substeps: integration steps in each control period.
        motors: rotor inertia and friction of the actuated joints, in addition to the URDF's.
        meshes: load the meshes that the URDF shows, for pictures.
        terrain: a height field with an even grid, or another plane, instead of that ground.
        imu_frame: frame of the IMU; "": the base; None: there is no IMU.
        wrench_sensors: joints, or frames of feet, with a force/torque sensor.

    Raises:
        RobotDescriptionError, UnknownJointError, UnknownFrameError: the description is missing, or
            does not fit joints or feet.
        ConfigurationError: a number outside its range.
    """

    def __init__(
        self,
        urdf: str | Path,
        feet: Sequence[SphereFoot],
        *,
        joints: Sequence[str] | None = None,
        locked: Mapping[str, float] | None = None,
        motors: MotorRows = (),
        floating_base: bool = True,
        friction: Any = 0.6,
        period_s: float = 1e-3,
        substeps: int = 1,
        ground: GroundSettings = GroundSettings(),
        meshes: bool = False,
        terrain: HeightField | HalfSpace | None = None,
        imu_frame: str | None = None,
        wrench_sensors: Sequence[str] = (),
    ) -> None:
        robot = RobotModel.from_urdf(urdf, floating_base, joints, locked, motors)
        standing = feet_on(robot, feet, HalfSpace() if terrain is None else terrain)
        super().__init__(robot, feet, standing, period_s, substeps)
        self.has_imu, self.wrench_sensors = imu_frame is not None, tuple(wrench_sensors)
        self._model = build_mujoco_model(
            resolve_urdf(urdf),
            self.robot,
            self.feet,
            1.0 if callable(friction) else friction,
            self.period_s / self.substeps,
            ground,
            meshes=meshes,
            terrain=terrain,
            imu_frame=imu_frame,
            wrench_joints=[name for name in self.wrench_sensors if name not in self.foot_frames],
        )
        self._friction = friction if callable(friction) else None
        self._data = mujoco.MjData(self._model)
        self._exact = ExactFriction(self._model, self._data) if ground.exact_friction else None
        self._map = StateMap(self.robot, self._model)
        self._sites = [self._model.site(foot_name(i)).id for i in range(len(self.feet))]
        self._foot_of_geom = {self._model.geom(foot_name(i)).id: i for i in range(len(self.feet))}
        self._feet_of_geoms = np.full(self._model.ngeom, -1)
        self._feet_of_geoms[list(self._foot_of_geom)] = list(self._foot_of_geom.values())
        self._bad_acceleration = self._data.warning[mujoco.mjtWarning.mjWARN_BADQACC]
        self._sensors = EngineSensors(self._model, self._data, self)
        self._add(self._data.contact, np.zeros(0))  # compiled before it is needed
        self.reset(self.robot.neutral())

    def imu(self) -> tuple[np.ndarray, np.ndarray]:
        return self._sensors.imu() if self.has_imu else super().imu()

    def wrenches(self) -> np.ndarray:
        return self._sensors.wrenches(self._forces)

    @property
    def mujoco_model(self) -> mujoco.MjModel:
        """The MuJoCo model; changing it changes the robot."""
        return self._model

    @property
    def mujoco_data(self) -> mujoco.MjData:
        """The MuJoCo data of the current state; changing it changes the state."""
        return self._data

    @property
    def mujoco_dofs(self) -> np.ndarray:
        """Indices (na,) of the actuated joints, in command order, into MuJoCo's ``dof_*`` arrays."""
        return self._map.actuated

    def reset(self, q: np.ndarray, v: np.ndarray | None = None) -> RobotState:
        """Start again at time 0 from configuration q (nq,) and velocity v (nv,), default 0.

        Raises:
            StateError: wrong shape or not finite.
        """
        q = checked_vector("q", q, self.robot.nq)
        v = np.zeros(self.robot.nv) if v is None else checked_vector("v", v, self.robot.nv)
        mujoco.mj_resetData(self._model, self._data)
        if self._exact is not None:
            self._exact.forget()
        self._map.to_mujoco(q, v, self._data.qpos, self._data.qvel)
        mujoco.mj_forward(self._model, self._data)
        self._start()
        self._sensors.rest()
        return self.state()

    def state(self) -> RobotState:
        """State at the end of the last period."""
        q, v = self._map.to_pinocchio(self._data.qpos, self._data.qvel)
        return RobotState(self._periods * self.period_s, q, v)

    def step(self, torques: np.ndarray) -> RobotState:
        """Hold `torques` (na,), N m, over one control period; return the state at its end.

        Raises:
            SimulationError: the state is no longer finite.
        """
        model, data = self._model, self._data
        data.qfrc_applied[self._map.actuated] = self._accepted(torques)
        self._forces[:] = 0.0
        self._sensors.begin()
        for _ in range(self.substeps):
            if self._friction is not None:
                # Pairs of ground and foot are in the order of the feet.
                model.pair_friction[:, :2] = np.minimum(
                    self._friction(self._contact_points()), LARGEST_FRICTION
                )[:, None]
            if self._exact is None:
                mujoco.mj_step(model, data)
            else:
                self._exact.step()
            self._add_contact_forces()
            self._sensors.add()
        self._forces /= self.substeps
        self._periods += 1
        if self._bad_acceleration.number or not math.isfinite(data.qvel.sum()):
            raise self._diverged()
        return self.state()

    def foot_positions(self) -> np.ndarray:
        """Centres of the foot spheres at the end of the last period: (n_feet, 3), world, m."""
        mujoco.mj_kinematics(self._model, self._data)
        return self._data.site_xpos[self._sites].copy()

    def _contact_points(self) -> np.ndarray:
        """Contact point of each foot, (n_feet, 3) m: its deepest contact; its centre in the air."""
        data = self._data
        points = data.site_xpos[self._sites]
        if data.ncon:
            contact = data.contact
            deepest_last = np.argsort(-contact.dist)
            feet = [self._foot_of_geom[geom] for geom in contact.geom[deepest_last, 1].tolist()]
            points[feet] = contact.pos[deepest_last]
        return points

    def _add_contact_forces(self) -> None:
        """Add the forces of the last step; MuJoCo keeps them until the next one."""
        data = self._data
        if data.ncon:
            self._add(data.contact, data.efc_force)

    def _add(self, contact: Any, efc_force: np.ndarray) -> None:
        rows, frames, geoms = map(
            # Rows of structures otherwise, or not: a compiled variant for each.
            np.ascontiguousarray,
            (contact.efc_address, contact.frame, contact.geom),
        )
        _add_forces(rows, frames, geoms, efc_force, self._feet_of_geoms, self._forces)
