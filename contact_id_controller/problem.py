"""The reduced contact problem: what is left of inverse dynamics once joint velocities are fixed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.kernels.reduction import reduce
from contact_id_controller.robot import RobotModel


class Problem:
    """One period's contact problem in the coordinates that stay free; immutable.

    With A = M_uu = L L^T and impulses z (3n,) ordered normal, tangent 1, tangent 2 of each contact:

        L^T v_u+ = base + Y z            contact velocity = Y^T (Y z) + c
        torques  = torque_offset + T z

    Attributes:
        robot, contacts, period (s).
        desired_velocity: (na,) joint velocities at the period's end, rad/s.
        L: (nu, nu) Cholesky factor of M_uu.  C: (nu, na) = L^-1 M_ua.
        base: (nu,) = L^T p.
        Y: (3n, nu), row r is L^-1 J_u[r]: the factor of G = Y Y^T (stored by rows).
        c: (3n,) m/s, contact velocity at z = 0 less the share (1 - dt/T_c) of today's that may stay.
        keep: that share.  speed: (3n,) m/s, today's contact velocity.
        gap_speed: (n,) m/s, the closing speed a gap allows (negative: the opening speed asked for).
        T: (3n, na), row r is d torques / d z_r, N·m/(N·s).
        torque_offset: (na,) N·m.  schur: (na, na) = M_aa - C^T C.
        frames: (n, 3, 3), rows normal, tangent 1, tangent 2 in the world.
        external_forces: (nv,) generalized forces known from elsewhere, N and N·m; None for none.
    """

    __slots__ = (
        "robot",
        "contacts",
        "period",
        "desired_velocity",
        "L",
        "C",
        "base",
        "Y",
        "c",
        "keep",
        "speed",
        "gap_speed",
        "T",
        "torque_offset",
        "schur",
        "frames",
        "external_forces",
    )

    def __init__(self, robot, contacts, period, desired_velocity, n):
        nu, na = robot.nu, robot.na
        self.robot, self.contacts, self.period = robot, contacts, period
        self.desired_velocity = desired_velocity
        self.L = np.zeros((nu, nu))
        self.C = np.empty((nu, na))
        self.base = np.empty(nu)
        self.Y = np.empty((3 * n, nu))
        self.c = np.empty(3 * n)
        self.keep = 0.0
        self.speed = np.empty(3 * n)
        self.gap_speed = np.empty(n)
        self.T = np.empty((3 * n, na))
        self.torque_offset = np.empty(na)
        self.schur = np.empty((na, na))
        self.frames = np.empty((n, 3, 3))
        self.external_forces = None

    def __len__(self):
        """Number of contacts."""
        return len(self.gap_speed)


def build_problem(
    robot: RobotModel,
    q,
    v,
    desired_acceleration,
    contacts: ContactSet,
    period: float,
    *,
    velocity_product_term: bool = True,
    contact_time_constant_s: float | None = None,
    penetration_gain: float = 0.0,
    external_forces=None,
) -> Problem:
    """Reduce inverse dynamics with contact to the unactuated coordinates.

        M (v+ - v) = J^T z + dt (P^T tau - h + f_ext),   P v+ = P v + dt qdd_des

    Args:
        q, v: Pinocchio configuration (nq,) and velocity (nv,).
        desired_acceleration: (na,) rad/s2 of the actuated joints, in ``robot.joint_names`` order.
        contacts: where the robot touches or is about to touch.
        period: dt, s.
        velocity_product_term: keep dt Jdot v, the drift of the contact points.
        contact_time_constant_s: T_c, the time over which a contact's present velocity is taken
            away; None means the period (rigid, deadbeat contact as in the papers).
        penetration_gain: share in [0, 1] of a penetration that is undone within one period.
        external_forces: (nv,) generalized forces known from elsewhere, N and N·m.

    Raises:
        StateError: non-finite or wrongly shaped state, or an inertia that is not positive definite.
        ConfigurationError: period, time constant or gain outside its range.
        UnknownFrameError: a contact frame the robot lacks.

    Source: first paper, eq. 34 to 37 and section 4.
    """
    time_constant = period if contact_time_constant_s is None else contact_time_constant_s
    if not 0.0 < period < np.inf:
        raise ConfigurationError(f"period must be a positive number of seconds, got {period}")
    if not time_constant >= period:
        raise ConfigurationError(
            f"contact_time_constant_s must be at least the period {period} s, got {time_constant}"
        )
    if not 0.0 <= penetration_gain <= 1.0:
        raise ConfigurationError(f"penetration_gain must lie in [0, 1], got {penetration_gain}")
    q = _vector("q", q, robot.nq)
    v = _vector("v", v, robot.nv)
    acceleration = _vector("desired_acceleration", desired_acceleration, robot.na)
    force = (
        _NO_FORCE
        if external_forces is None
        else _vector("external_forces", external_forces, robot.nv)
    )
    model, data = robot.model, robot.data
    pin.crba(model, data, q, pin.Convention.WORLD)  # this convention also fills data.J
    pin.nonLinearEffects(model, data, q, v)
    bodies, pair = contacts.links(robot)
    n = len(contacts)
    problem = Problem(robot, contacts, period, np.empty(robot.na), n)
    if external_forces is not None:
        problem.external_forces = force.copy()
    surface = contacts.surface_velocities
    keep = problem.keep = 0.0 if time_constant == period else 1.0 - period / time_constant
    sound = reduce(
        robot.mass_matrix_view,
        robot.jacobian_view,
        robot.nonlinear_effects_view,
        v,
        acceleration,
        force,
        robot.actuated,
        robot.unactuated,
        robot.supports,
        robot.coordinate_joint,
        bodies,
        pair,
        contacts.points,
        contacts.normals,
        contacts.gaps,
        _NO_SURFACE if surface is None else surface,
        period,
        keep,
        penetration_gain,
        1.0 if velocity_product_term else 0.0,
        problem.desired_velocity,
        problem.L,
        problem.C,
        problem.base,
        problem.Y,
        problem.c,
        problem.speed,
        problem.gap_speed,
        problem.T,
        problem.torque_offset,
        problem.schur,
        problem.frames,
    )
    if not sound:
        raise StateError(
            "state or inertia gives no finite problem: q, v, desired_acceleration must be "
            "finite and the unactuated inertia positive definite"
        )
    return problem


_NO_FORCE = np.zeros(0)
_NO_SURFACE = np.zeros((0, 3))


def _vector(name, value, size):
    if type(value) is not np.ndarray or value.dtype != np.float64 or not value.flags.c_contiguous:
        value = np.ascontiguousarray(value, dtype=np.float64)
    if value.shape != (size,):
        raise StateError(f"{name} must have shape ({size},), got {value.shape}")
    return value
