"""Constrained dynamics in all coordinates: projection instead of minimal coordinates.

    M qdd + C qd + g = B u + A^T f      A qd = 0        (f acts on the robot)

With P = I - A^+ A and any scalar nu > 0, premultiplied by P and with the constraint differentiated,

    Mbar qdd + Cbar qd = P (B u - g)     Mbar = P M P + nu (I - P)
    Cbar = P C P + P M Pdot - nu L       L = -A^+ Adot P,  Pdot = L + L^T

Mbar is positive definite and dMbar/dt - 2 Cbar skew-symmetric (Property 1) for any contacts, so contacts change
without a change of the model. Source: Aghili, Optimal control of legged robots subject to friction cone constraints,
eq. 1 to 7 and appendices .1 to .3, with two corrections: (4) needs Omega = L - L^T, since (I - P) qdd = L qd, and the
Gamma of (5c) is L, otherwise neither (5a) nor Property 1 holds. The sign of the multipliers differs from the paper's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.kernels.spatial import tangents
from contact_id_controller.robot import RobotModel

INDEPENDENCE = 1e-9  # singular values of A below this share of the largest count as zero


class ProjectedDynamics:
    """Dynamics of the robot at one state, constrained by its contacts.

    Args:
        robot, q (nq,), v (nv,): the state; v is Pinocchio's velocity.
        contacts: constraints; a contact without friction constrains its normal direction only.
        scale: nu, by default the mean diagonal of M (kg and kg m2 alike).

    Attributes:
        M, C: (nv, nv), with dM/dt - 2 C skew-symmetric.  gravity: (nv,) g.  B: (nv, na).
        A, A_dot: (3n, nv) contact Jacobian, rows normal, tangent 1, tangent 2 of each contact (zero
            rows for free tangents), and its derivative along v.
        rank: independent rows of A.  A_pinv: (nv, 3n).  P, P_dot, L: (nv, nv).
        Mbar, Cbar: (nv, nv).  S: (nv, nv), the oblique projector I - M Mbar^-1 P.

    Raises:
        StateError: a state of the wrong shape or not finite.
        ConfigurationError: scale not positive.
    """

    def __init__(
        self,
        robot: RobotModel,
        q: ArrayLike,
        v: ArrayLike,
        contacts: ContactSet,
        scale: float | None = None,
    ) -> None:
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if q.shape != (robot.nq,) or v.shape != (robot.nv,) or not np.isfinite([*q, *v]).all():
            raise StateError(f"q and v must be finite, of shapes ({robot.nq},) and ({robot.nv},)")
        self.robot, self.contacts, self.q, self.v = robot, contacts, q, v
        model, data = robot.model, robot.model.createData()
        upper = np.triu(pin.crba(model, data, q))
        self.M = upper + np.triu(upper, 1).T
        self.C = pin.computeCoriolisMatrix(model, data, q, v).copy()
        self.gravity = pin.computeGeneralizedGravity(model, data, q).copy()
        self.B = np.eye(robot.nv)[:, robot.actuated]
        self.A, self.A_dot = contact_jacobian(robot, q, v, contacts)
        self.nu = float(np.trace(self.M) / robot.nv) if scale is None else float(scale)
        if not self.nu > 0.0:
            raise ConfigurationError(f"scale must be positive, got {scale}")
        self._project()

    def _project(self) -> None:
        """Compute P, Mbar, Cbar and the other attributes from M, C, A and their derivatives."""
        left, values, right = np.linalg.svd(self.A, full_matrices=False)
        largest = values[0] if len(values) else 0.0
        self.rank = int((values > INDEPENDENCE * largest).sum()) if largest > 0.0 else 0
        basis = right[: self.rank].T
        self.A_pinv = (basis / values[: self.rank]) @ left[:, : self.rank].T
        eye = np.eye(self.robot.nv)
        # From an orthonormal basis: A^+ A itself is symmetric only up to the condition of A.
        self.P = eye - basis @ basis.T
        self.L = -self.A_pinv @ self.A_dot @ self.P
        self.P_dot = self.L + self.L.T
        self.Mbar = self.P @ self.M @ self.P + self.nu * (eye - self.P)
        self.Mbar = 0.5 * (self.Mbar + self.Mbar.T)
        self.Cbar = self.P @ self.C @ self.P + self.P @ self.M @ self.P_dot - self.nu * self.L
        self.S = eye - self.M @ np.linalg.solve(self.Mbar, self.P)

    @property
    def Mbar_dot(self) -> np.ndarray:
        """d Mbar / dt along v (nv, nv), with dM/dt = C + C^T."""
        half = self.P_dot @ self.M @ self.P
        return half + half.T + self.P @ (self.C + self.C.T) @ self.P - self.nu * self.P_dot

    def acceleration(self, torques: np.ndarray) -> np.ndarray:
        """qdd (nv,) for torques (na,), for a velocity with A v = 0 (eq. 5a)."""
        force = self.P @ (self.B @ torques - self.gravity) - self.Cbar @ self.v
        return np.linalg.solve(self.Mbar, force)

    def multipliers(self) -> tuple[np.ndarray, np.ndarray]:
        """F (3n, na) and f0 (3n,): contact forces F u + f0, N, of least norm (eq. 6, 27).

        Of redundant contacts only A^T f is determined; this is one of many distributions.
        """
        push = self.A_pinv.T @ self.S
        bias = (self.M @ self.L + self.C) @ self.v + self.gravity
        return -push @ self.B, push @ bias


def contact_jacobian(
    robot: RobotModel, q: np.ndarray, v: np.ndarray, contacts: ContactSet
) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian A (3n, nv) of the material points at the contacts, in the contacts' fixed frames, and dA/dt along v."""
    model, data = robot.model, robot.model.createData()
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    pin.updateFramePlacements(model, data)
    A, A_dot = np.zeros((3 * len(contacts), robot.nv)), np.zeros((3 * len(contacts), robot.nv))
    for i in range(len(contacts)):
        axes = _axes(contacts.normals[i])
        if contacts.friction[i] == 0.0:
            axes[1:] = 0.0
        bodies: list[tuple[Any, float]] = [(contacts.frames[i], 1.0)]
        if contacts.against is not None and contacts.against[i] is not None:
            bodies.append((contacts.against[i], -1.0))
        for name, sign in bodies:
            frame = robot.frame_id(name)
            J = pin.getFrameJacobian(model, data, frame, pin.WORLD)
            J_dot = pin.getFrameJacobianTimeVariation(model, data, frame, pin.WORLD)
            point = contacts.points[i]
            speed = J[:3] @ v + np.cross(J[3:] @ v, point)
            # The material point moves, so its arm does: d/dt (J_v - [p] J_w).
            A[3 * i : 3 * i + 3] += sign * axes @ (J[:3] - pin.skew(point) @ J[3:])
            A_dot[3 * i : 3 * i + 3] += (
                sign * axes @ (J_dot[:3] - pin.skew(point) @ J_dot[3:] - pin.skew(speed) @ J[3:])
            )
    return A, A_dot


def _axes(normal: np.ndarray) -> np.ndarray:
    """Rows normal, tangent 1, tangent 2, as in ``Problem.frames``."""
    frame = np.empty((3, 3))
    tangents(normal, frame)
    return frame
