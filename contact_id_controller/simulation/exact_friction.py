"""Exact Coulomb friction in MuJoCo, where contacts that slide are else lifted off the ground.

MuJoCo's contact forces f minimise a convex cost, whose optimum is, with e = J a - a_ref (3,) of each contact,

    e + R f in the dual of the friction cone:        e_n = mu |e_t| while it slides, not 0.

With its a_ref = -b v - k r a contact that slides at v_t is accelerated upwards by mu b v_t and would be at rest at a gap
of mu b v_t / k = 2 mu v_t T, T its time constant (.5 mm at .1 m/s, mu .6, T 4 ms), where there is no contact: it hops.
Here e_n becomes e_n + s, and s = mu |e_t| is found by fixed-point iteration: the law is Coulomb's, e_n = 0.
One contact contracts at the rate mu^2 A_tt / (A_nn + mu^2 A_tt), A = J M^-1 J^T without coupling of n and t.

Source: De Saxce and Feng, "The bipotential method", 1998, for s; Acary, Cadoux, Lemarechal and Malick, "A formulation of
the linear discrete Coulomb friction problem via convex optimization", 2011, for the iteration.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

SETTLED = 1e-4
"""Change of s, as a share of it, or m/s2, with which the iteration ends."""
MOST = 20
"""Iterations of a step; from the last step's s a steady slide needs one."""


class ExactFriction:
    """Steps of one MuJoCo model with elliptic cones of three rows, integrated by semi-implicit Euler.

    Args:
        model, data: of MuJoCo.

    Attributes:
        iterations: of the last step; 0: nothing touched.
    """

    def __init__(self, model: Any, data: Any) -> None:
        self._model, self._data, self.iterations = model, data, 0
        self.forget()

    def forget(self) -> None:
        """Reset: nothing slid before."""
        self._shift = np.zeros(self._model.ngeom)

    def step(self) -> None:
        """As ``mujoco.mj_step``."""
        model, data = self._model, self._data
        mujoco.mj_step1(model, data)
        address, self.iterations = data.contact.efc_address, 0
        active = address >= 0
        if active.any():
            rows, geoms = address[active], data.contact.geom[active, 1]
            friction, given = data.contact.friction[active, 0], data.efc_aref[rows]
            mujoco.mj_fwdActuation(model, data)
            mujoco.mj_fwdAcceleration(model, data)
            shift, moved = self._shift[geoms], np.empty(data.nefc)
            for self.iterations in range(1, MOST + 1):
                data.efc_aref[rows] = given - shift
                mujoco.mj_fwdConstraint(model, data)
                mujoco.mj_mulJacVec(model, data, moved, data.qacc)
                error = moved - data.efc_aref
                before, shift = shift, friction * np.hypot(error[rows + 1], error[rows + 2])
                if (np.abs(shift - before) <= SETTLED * np.maximum(1.0, before)).all():
                    break
            self._shift[:] = 0.0
            self._shift[geoms] = shift
        else:
            self._shift[:] = 0.0
        mujoco.mj_step2(model, data)
