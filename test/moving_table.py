"""A table under a simulated arm that moves up and down by itself, whatever presses on it."""

import mujoco
import numpy as np

from contact_id_controller.runs.one_process import mujoco_robot
from contact_id_controller.simulation import mujoco_model

HALF_SIZE_M = (3.0, 3.0, 0.5)
MASS_KG = 1e6  # its speed is not what presses on it


def _add_table(spec, height_m):
    body = spec.worldbody.add_body(name="table", pos=[0, 0, height_m - HALF_SIZE_M[2]], gravcomp=1)
    body.explicitinertial, body.mass, body.inertia = True, MASS_KG, [MASS_KG] * 3
    body.add_joint(name="table", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, 0, 1])
    body.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=HALF_SIZE_M,
        mass=0,
        contype=0,
        conaffinity=0,
    )


class MovingTable:
    """An arm of a controller's settings over a table of a height, m, above where it is believed.

    Attributes:
        arm: the simulated robot.  height_m: of the table now.
    """

    def __init__(self, settings, friction, height_m, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(mujoco_model, "add_scenery", lambda spec, _: _add_table(spec, height_m))
            self.arm = mujoco_robot(settings, friction, floating_base=settings.floating_base)
        model = self.arm.mujoco_model
        self._dof = int(model.jnt_dofadr[model.joint("table").id])
        self._start = height_m

    @property
    def height_m(self):
        return self._start + float(self.arm.mujoco_data.qpos[self._dof])

    def step(self, torques, speed_m_s=0.0):
        """State after a period in which the table rises at a speed, and the normal force in it, N."""
        data = self.arm.mujoco_data
        # By a force, which the solver of contacts knows of; speeds set from outside would part what touches.
        change = (speed_m_s - data.qvel[self._dof]) / self.arm.period_s
        data.qfrc_applied[self._dof] = MASS_KG * change
        state, force = self.arm.step(torques), np.zeros(6)
        total = 0.0
        for number in range(data.ncon):
            mujoco.mj_contactForce(self.arm.mujoco_model, data, number, force)
            total += force[0]
        return state, total
