"""The reduced contact problem: inverse dynamics on the unactuated coordinates for given joint velocities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import hypot
from numbers import Real
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pinocchio import Convention, crba, nonLinearEffects

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import (
    ConfigurationError,
    ContactSetError,
    RobotDescriptionError,
    StateError,
    require,
)
from contact_id_controller.frozen import draft_of, parts, sealed
from contact_id_controller.kernels.reduction import (
    Reduced,
    empty_store,
    open_store,
    store_size,
)
from contact_id_controller.robot import RobotModel, vector

if TYPE_CHECKING:
    from typing_extensions import Unpack

UNIT_TOLERANCE = 1e-3  # of a quaternion's norm: odometry in single precision is well within

WORLD = Convention.WORLD
"""With it ``crba`` also fills data.J. Looking up names in Pinocchio takes a tenth of its two calls."""

NO_FORCE, NO_SURFACE = np.zeros(0), np.zeros((0, 3))
"""Stand for no external force, and surfaces at rest, as arguments of ``reduce``."""


class How(TypedDict, total=False):
    """Options of ``ProblemMaker``, which all functions that make a problem take."""

    velocity_product_term: bool
    contact_time_constant_s: float | None
    penetration_gain: float


@sealed
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Problem:
    """One period's contact problem in the unactuated coordinates; immutable.

    With A = M_uu = L L^T and impulses z (3n,) ordered normal, tangent 1, tangent 2 of each contact:

        L^T v_u+ = base + Y^T z          contact velocity = Y (Y^T z) + c
        torques  = torque_offset + T^T z

    It may be shared between threads, copied and pickled.

    Attributes:
        robot, contacts, period (s).
        desired_velocity: (na,) joint velocities at the period's end, rad/s.
        L: (nu, nu) Cholesky factor of M_uu.  C: (nu, na) = L^-1 M_ua.
        base: (nu,) = L^T p.
        Y: (3n, nu), row r is L^-1 J_u[r]: the factor of G = Y Y^T (stored by rows).
        c: (3n,) m/s, contact velocity at z = 0 less the share (1 - dt/T_c) of the present one that may stay.
        store: one array of all numbers below, for compiled entries.
        keep: that share.  speed: (3n,) m/s, present contact velocity.
        gap_speed: (n,) m/s, the closing speed a gap allows (negative: the required opening speed).
        T: (3n, na), row r is d torques / d z_r, N·m/(N·s).
        torque_offset: (na,) N·m.  schur: (na, na) = M_aa - C^T C.
        frames: (n, 3, 3), rows normal, tangent 1, tangent 2 in the world.
        external_forces: (nv,) given generalized forces, N and N·m; None for none.
    """

    robot: RobotModel
    contacts: ContactSet
    period: float
    keep: float
    store: NDArray[np.float64]
    external_forces: NDArray[np.float64] | None
    _opened: Reduced | None

    def __new__(
        cls,
        robot: RobotModel,
        contacts: ContactSet,
        period: float,
        keep: float = 0.0,
        external_forces: NDArray[np.float64] | None = None,
    ) -> Problem:
        """Allocate a problem, whose store ``ProblemMaker`` or ``build_problem`` fills."""
        problem: Problem = _Draft()
        draft: Any = problem
        draft.robot, draft.contacts, draft.period, draft.keep = robot, contacts, period, keep
        draft.store = np.empty(store_size(len(contacts.points), robot.nu, robot.na))
        draft.external_forces, draft._opened = external_forces, None
        draft.__class__ = cls
        return problem

    def _array(self, name: str) -> NDArray[np.float64]:
        robot = self.robot
        place, shape = _places(len(self.contacts), robot.nu, robot.na)[name]
        return self.store[place] if shape is None else self.store[place].reshape(shape)

    @property
    def reduced(self) -> Reduced:
        """All arrays, by the names that kernels use."""
        opened = self._opened
        if opened is None:
            robot = self.robot
            opened = _open_store(self.store, robot.actuated, robot.unactuated)
            object.__setattr__(self, "_opened", opened)  # computed once, in any thread
        return opened

    @property
    def desired_velocity(self) -> NDArray[np.float64]:
        return self._array("desired")

    @property
    def L(self) -> NDArray[np.float64]:
        return self._array("L")

    @property
    def C(self) -> NDArray[np.float64]:
        return self._array("C")

    @property
    def base(self) -> NDArray[np.float64]:
        return self._array("base")

    @property
    def Y(self) -> NDArray[np.float64]:
        return self._array("Y")

    @property
    def c(self) -> NDArray[np.float64]:
        return self._array("c")

    @property
    def speed(self) -> NDArray[np.float64]:
        return self._array("speed")

    @property
    def gap_speed(self) -> NDArray[np.float64]:
        return self._array("gap_speed")

    @property
    def T(self) -> NDArray[np.float64]:
        return self._array("T")

    @property
    def torque_offset(self) -> NDArray[np.float64]:
        return self._array("offset")

    @property
    def schur(self) -> NDArray[np.float64]:
        return self._array("schur")

    @property
    def frames(self) -> NDArray[np.float64]:
        return self._array("frames")

    def __reduce__(self) -> tuple[Any, ...]:
        return parts(self, "_opened")  # views of another store than the copy's

    def __len__(self) -> int:
        """Number of contacts."""
        return len(self.contacts)


_Draft = draft_of(Problem)
_open_store = getattr(open_store, "py_func", open_store)


@lru_cache(maxsize=256)
def _places(n: int, nu: int, na: int) -> dict[str, tuple[slice, tuple[int, ...] | None]]:
    """Slice of each array in the store, and its shape unless it is a vector."""
    numbers = empty_store(n, nu, na)
    numbers[:] = np.arange(len(numbers))
    coordinates = np.zeros(na, np.int64), np.zeros(nu, np.int64)
    places = {}
    for name, array in _open_store(numbers, *coordinates)._asdict().items():
        if isinstance(array, np.ndarray) and array.dtype == np.float64:
            first = int(array.flat[0]) if array.size else 0
            shape = array.shape if array.ndim > 1 else None
            places[name] = slice(first, first + array.size), shape
    return places


class ProblemMaker:
    """Makes the problems of one robot with one period; constant inputs are checked once.

    Args:
        robot: the model.  period: dt, s.
        velocity_product_term: keep dt Jdot v, the drift of the contact points.
        contact_time_constant_s: T_c, the time constant with which a contact's present velocity
            decays; None means the period (rigid, deadbeat contact as in the papers).
        penetration_gain: share in [0, 1] of a penetration that is undone within one period.

    Threads may share one.

    Attributes:
        keep: share of a contact's present velocity that stays.  how: (1, 4) period and shares, for ``reduce``.

    Raises:
        ConfigurationError: period, time constant or gain outside its range.
    """

    __slots__ = ("how", "keep", "period", "robot")

    def __init__(
        self,
        robot: RobotModel,
        period: float,
        *,
        velocity_product_term: bool = True,
        contact_time_constant_s: float | None = None,
        penetration_gain: float = 0.0,
    ) -> None:
        self.robot, self.period = robot, period
        self.keep = kept_velocity(period, contact_time_constant_s, penetration_gain)
        drift_share = 1.0 if velocity_product_term else 0.0
        self.how = np.array([[period, self.keep, penetration_gain, drift_share]])

    def at(
        self,
        v: NDArray[np.float64],
        acceleration: NDArray[np.float64],
        contacts: ContactSet,
        external_forces: NDArray[np.float64] | None = None,
    ) -> Problem:
        """Make the problem at the state of ``compute_dynamics``.

        Args:
            v: (nv,).  acceleration: (na,) desired, rad/s2.  external_forces: (nv,) N and N·m, kept by reference.

        Raises:
            StateError, UnknownFrameError: as ``build_problem``.
        """
        problem = Problem(self.robot, contacts, self.period, self.keep, external_forces)
        force = NO_FORCE if external_forces is None else external_forces
        self._fill(problem.store, v, acceleration, contacts, force)
        return problem

    def _fill(
        self,
        store: NDArray[np.float64],
        v: NDArray[np.float64],
        acceleration: NDArray[np.float64],
        contacts: ContactSet,
        force: NDArray[np.float64],
    ) -> None:
        """Write that problem's numbers into ``store``; all arrays as ``dense`` gives them.

        Raises:
            StateError: numbers that are not finite, or an inertia that is not positive definite.
        """
        bodies, pair = contacts.links(self.robot)
        surface = contacts.surface_velocities
        sound = self.robot.reduce(
            self.how,
            force,
            bodies,
            pair,
            contacts.normals,
            contacts.gaps,
            NO_SURFACE if surface is None else surface,
            store,
            self.robot.mechanism,
            v,
            acceleration,
            contacts.points,
        )
        if not sound:
            raise StateError(
                "state or inertia gives no finite problem: q, v, desired_acceleration must be "
                "finite and the unactuated inertia positive definite"
            )


def build_problem(
    robot: RobotModel,
    q: ArrayLike,
    v: ArrayLike,
    desired_acceleration: ArrayLike,
    contacts: ContactSet,
    period: float,
    *,
    external_forces: ArrayLike | None = None,
    **how: Unpack[How],
) -> Problem:
    """Reduce inverse dynamics with contact to the unactuated coordinates.

        M (v+ - v) = J^T z + dt (P^T tau - h + f_ext),   P v+ = P v + dt qdd_des

    Threads may call it with the same robot at the same time.

    Args:
        q, v: Pinocchio configuration (nq,) and velocity (nv,).
        desired_acceleration: (na,) rad/s2 of the actuated joints, in ``robot.joint_names`` order.
        contacts: where the robot touches or is about to touch.
        period: dt, s.
        external_forces: (nv,) generalized forces known from elsewhere, N and N·m.
        how: ``velocity_product_term``, ``contact_time_constant_s``, ``penetration_gain``, see
            ``ProblemMaker``.

    Raises:
        StateError: non-finite or wrongly shaped state, a quaternion whose norm is not 1, or an
            inertia that is not positive definite.
        ConfigurationError: period, time constant or gain outside its range.
        UnknownFrameError: a contact frame the robot lacks.
        RobotDescriptionError, ContactSetError: something else than a robot, or than contacts.

    Source: first paper, eq. 34 to 37 and section 4.
    """
    require("robot", robot, RobotModel, RobotDescriptionError)
    require("contacts", contacts, ContactSet, ContactSetError)
    maker = ProblemMaker(robot, period, **how)
    q = vector("q", q, robot.nq)
    v = vector("v", v, robot.nv)
    acceleration = vector("desired_acceleration", desired_acceleration, robot.na)
    known = None
    if external_forces is not None:
        known = vector("external_forces", external_forces, robot.nv).copy()
    compute_dynamics(robot, q, v)
    return maker.at(v, acceleration, contacts, known)


def compute_dynamics(robot: RobotModel, q: NDArray[np.float64], v: NDArray[np.float64]) -> None:
    """Compute inertia, joint axes and placements, and bias forces at a state, into the robot's ``data``.

    Raises:
        StateError: a quaternion whose norm is not 1.
    """
    for name, part in robot.unit_parts:
        norm = hypot(*q[part].tolist())
        if not abs(norm - 1.0) <= UNIT_TOLERANCE:
            raise StateError(f"{name} in q has norm {norm:.6g}, must be 1")
    model, data = robot.model, robot.data
    crba(model, data, q, WORLD)
    nonLinearEffects(model, data, q, v)


def kept_velocity(period: float, time_constant: float | None, penetration_gain: float) -> float:
    """Share of a contact's present velocity that stays at the period's end; raises for invalid settings."""
    if not isinstance(period, Real) or not 0.0 < period < np.inf:
        raise ConfigurationError(f"period must be a positive number of seconds, got {period!r}")
    if not 0.0 <= penetration_gain <= 1.0:
        raise ConfigurationError(f"penetration_gain must lie in [0, 1], got {penetration_gain}")
    if time_constant is None or time_constant == period:
        return 0.0
    if not time_constant >= period:
        raise ConfigurationError(
            f"contact_time_constant_s must be at least the period {period} s, got {time_constant}"
        )
    return 1.0 - period / time_constant
