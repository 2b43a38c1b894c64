"""Operational-space control of a robot in contact with stacked task variables.

Tracking (eq. 17): with Lambda = dx/dq P and as many independent task variables as degrees of freedom,

    tau_c = P (C qd + g) + P M (Lambda^+ (xdd_d + K_D ed + K_P e - Lambda_dot qd) + L qd)

makes ed' + K_D ed + K_P e = 0 for e = x_d - x. Regulation (eq. 22) needs no derivative of Lambda:

    tau_c = P (g - K_D qd + Lambda^T K_P e)

``program`` finds the torques: P B u = tau_c with forces in their cones and torques within limits, of
least power (eq. 29), or the least disturbance (section 3.3). Source: Aghili, Optimal control of
legged robots subject to friction cone constraints; gravity enters here as + g on the left side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError
from experiments.projected.dynamics import ProjectedDynamics
from experiments.projected.program import QcqpProgram

INDEPENDENCE = 1e-6  # a task direction counts when this share of the largest singular value is left
YIELD = 1e3  # price of contacts that yield against that of the task


class Task(NamedTuple):
    """Task variable x: error e = x_d - x (k,), Jacobian and its derivative along v (k, nv), reference and gains.

    velocity, acceleration (k,): of x_d. stiffness, damping (k,): diagonals of K_P (1/s2) and K_D (1/s).
    """

    error: np.ndarray
    jacobian: np.ndarray
    jacobian_dot: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray


def joint_task(
    dynamics: ProjectedDynamics,
    positions: ArrayLike,
    stiffness: ArrayLike,
    damping: ArrayLike,
    velocities: ArrayLike = 0.0,
    accelerations: ArrayLike = 0.0,
) -> Task:
    """Posture task: positions (na,), rad, of the actuated joints."""
    robot = dynamics.robot
    J = np.eye(robot.nv)[robot.actuated]
    wanted = np.broadcast_to(positions, robot.na)
    error = wanted - robot.joints_near(dynamics.q, wanted)
    return _task(error, J, np.zeros_like(J), velocities, accelerations, stiffness, damping)


def frame_position_task(
    dynamics: ProjectedDynamics,
    frame: str,
    position: np.ndarray,
    stiffness: ArrayLike,
    damping: ArrayLike,
    velocity: ArrayLike = 0.0,
    acceleration: ArrayLike = 0.0,
) -> Task:
    """Position task: origin of a frame at ``position`` (3,), m, world."""
    data, name = _kinematics(dynamics), dynamics.robot.frame_id(frame)
    J, J_dot = _frame(dynamics, data, name)
    error = np.asarray(position, float) - data.oMf[name].translation
    return _task(error, J[:3], J_dot[:3], velocity, acceleration, stiffness, damping)


def frame_pose_task(
    dynamics: ProjectedDynamics,
    frame: str,
    placement: pin.SE3,
    stiffness: ArrayLike,
    damping: ArrayLike,
    velocity: ArrayLike = 0.0,
    acceleration: ArrayLike = 0.0,
) -> Task:
    """Pose task of a frame: position (m), then rotation vector (rad), both in the world.

    The error of the rotation is log(R_d R^T); its rate is the angular velocity to first order.
    velocity, acceleration: (6,) m/s, rad/s of the reference pose, world.
    """
    data, name = _kinematics(dynamics), dynamics.robot.frame_id(frame)
    J, J_dot = _frame(dynamics, data, name)
    now = data.oMf[name]
    turn = pin.log3(placement.rotation @ now.rotation.T)
    error = np.concatenate([placement.translation - now.translation, turn])
    return _task(error, J, J_dot, velocity, acceleration, stiffness, damping)


def center_of_mass_task(
    dynamics: ProjectedDynamics,
    position: np.ndarray,
    stiffness: ArrayLike,
    damping: ArrayLike,
    velocity: ArrayLike = 0.0,
    acceleration: ArrayLike = 0.0,
) -> Task:
    """Position task of the centre of mass: ``position`` (3,), m, world."""
    data, model = _kinematics(dynamics), dynamics.robot.model
    J = pin.jacobianCenterOfMass(model, data, dynamics.q).copy()
    # Centroidal momentum: m x'' = (Ag v)' in its first three rows.
    pin.computeCentroidalMapTimeVariation(model, data, dynamics.q, dynamics.v)
    J_dot = data.dAg[:3] / dynamics.robot.mass
    error = np.asarray(position, float) - data.com[0]
    return _task(error, J, J_dot, velocity, acceleration, stiffness, damping)


def track(
    dynamics: ProjectedDynamics, tasks: list[Task], posture: Task | None = None
) -> np.ndarray:
    """Generalized force tau_c (nv,) of tracking (eq. 17), in the range of P.

    posture: fills the null space of the tasks, if these have fewer independent variables than there are degrees of
    freedom; it does not disturb them.

    Raises:
        ConfigurationError: degrees of freedom that neither tasks nor posture determine.
    """
    wanted = np.zeros(dynamics.robot.nv)
    room = dynamics.P
    for task in [*tasks, *([] if posture is None else [posture])]:
        J = task.jacobian @ room
        rate = task.jacobian @ dynamics.L @ dynamics.v + task.jacobian_dot @ dynamics.v
        remaining = _law(task, dynamics.v) - rate - task.jacobian @ wanted
        left, values, right = np.linalg.svd(J, full_matrices=False)
        keep = values > INDEPENDENCE * max(float(np.linalg.norm(task.jacobian, 2)), 1e-12)
        wanted = wanted + right[keep].T @ ((left[:, keep].T @ remaining) / values[keep])
        room = room - right[keep].T @ right[keep]
    open_freedoms = round(np.trace(room))
    if open_freedoms:
        raise ConfigurationError(
            f"tasks leave {open_freedoms} freedoms open; complete them with a posture"
        )
    qdd = wanted + dynamics.L @ dynamics.v
    return dynamics.P @ (dynamics.M @ qdd + dynamics.C @ dynamics.v + dynamics.gravity)


def regulate(dynamics: ProjectedDynamics, tasks: list[Task], damping: float) -> np.ndarray:
    """Generalized force tau_c (nv,) of regulation (eq. 22); damping in N·m·s/rad (N·s/m for a base).

    The stiffnesses of the tasks are K_P here in N/m or N·m/rad; reference velocities are ignored.
    """
    force = dynamics.gravity - damping * dynamics.v
    for task in tasks:
        force = force + task.jacobian.T @ (task.stiffness * task.error)
    return dynamics.P @ force


def program(
    dynamics: ProjectedDynamics,
    tau_c: np.ndarray,
    rho: float = 1e4,
    weights: Any = 1.0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
    force_weight: float = 1e-8,
) -> QcqpProgram:
    """Program for the torques and contact forces that realise tau_c (nv,) with least power or least disturbance.

    The rows are B u + A^T f = M qdd + C qd + g for the qdd that belongs to tau_c: (12) and (6) at once,
    for any redundancy of the contacts. First level of relaxation: d = Mbar^-1 (P B u - tau_c) (nv,
    in a basis of the admissible motions) at the cost rho |d|^2; second: the contact constraints are relaxed too.
    ``solve`` always has a solution. Add further constraints before calling it.
    """
    qdd = np.linalg.solve(
        dynamics.Mbar, tau_c - dynamics.P @ dynamics.gravity - dynamics.Cbar @ dynamics.v
    )
    right = dynamics.M @ qdd + dynamics.C @ dynamics.v + dynamics.gravity
    friction = dynamics.contacts.friction
    result = QcqpProgram(
        np.hstack([dynamics.B, dynamics.A.T]), right, friction, weights, lower, upper, force_weight
    )
    values, vectors = np.linalg.eigh(dynamics.P)
    free, held = vectors[:, values > 0.5], vectors[:, values <= 0.5]
    result.allow_disturbance(-dynamics.M @ free, rho)
    prices = rho * np.concatenate([np.ones(free.shape[1]), np.full(held.shape[1], YIELD)])
    result.allow_disturbance(-dynamics.M @ np.hstack([free, held]), prices)
    return result


def _law(task: Task, v: np.ndarray) -> np.ndarray:
    """xdd_d + K_D ed + K_P e."""
    rate = task.velocity - task.jacobian @ v
    return task.acceleration + task.damping * rate + task.stiffness * task.error


def _task(
    error: np.ndarray,
    J: np.ndarray,
    J_dot: np.ndarray,
    velocity: Any,
    acceleration: Any,
    stiffness: ArrayLike,
    damping: ArrayLike,
) -> Task:
    """Task of this error (m,) and Jacobian; gains and reference broadcast to (m,)."""
    size = len(error)
    values = [
        np.array(np.broadcast_to(np.asarray(value, float), (size,)))
        for value in (velocity, acceleration, stiffness, damping)
    ]
    return Task(error, J, J_dot, *values)


def _kinematics(dynamics: ProjectedDynamics) -> Any:
    data = dynamics.robot.model.createData()
    pin.computeJointJacobiansTimeVariation(dynamics.robot.model, data, dynamics.q, dynamics.v)
    pin.updateFramePlacements(dynamics.robot.model, data)
    return data


def _frame(dynamics: ProjectedDynamics, data: Any, name: Any) -> tuple[np.ndarray, np.ndarray]:
    model, reference = dynamics.robot.model, pin.LOCAL_WORLD_ALIGNED
    return (
        pin.getFrameJacobian(model, data, name, reference),
        pin.getFrameJacobianTimeVariation(model, data, name, reference),
    )
