"""Many frames at once: the answer to each is, bit for bit, that of ``build_problem`` and ``solve``.

Each frame is solved on its own, without a warm start: its answer depends neither on the frames beside
it nor on who solves it. An executor of processes takes whole blocks of frames. Threads would not help:
Pinocchio computes inertia and bias forces under the interpreter's lock, and a frame is over before
another thread has it.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.contacts import UNIT_TOLERANCE, ContactSet
from contact_id_controller.exceptions import (
    ConfigurationError,
    ContactSetError,
    StateError,
    UnknownModelError,
)
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.models.batch_kernels import keep_frame
from contact_id_controller.models.registry import row_of, solve
from contact_id_controller.problem import build_problem
from contact_id_controller.robot import RobotModel
from contact_id_controller.solution import STATUSES, Solution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from contact_id_controller.models.names import Friction, Options, Solver

REFUSED = "refused"
"""Status of a frame that is no problem, such as one whose state is not finite."""

FRAME_STATUSES = (*STATUSES, REFUSED)
"""The status of a frame is a place in this tuple; those of solutions keep their order."""

BLOCK = 1024
"""Frames that a worker takes at once: some tens of milliseconds of work."""


_VECTORS = ("points", "normals", "surface_velocities")


class ContactFrames:
    """The n possible contacts of a robot in each of m frames.

    Args:
        contacts: what stays: n frames of the robot, identities, and whatever is not given below.
        points: (m, n, 3) m, world frame.
        touching: (m, n) bool, contacts that count; None: all. The numbers of others are not looked at.
        normals: (m, n, 3) unit vectors, world frame.  gaps: (m, n) m.  friction: (m, n).
        surface_velocities: (m, n, 3) m/s, world frame, see ``ContactSet``.

    Raises:
        ContactSetError: wrong shape, or a contact that counts has a number out of its range; the
            message names the first such frame.
    """

    def __init__(
        self,
        contacts: ContactSet,
        points: ArrayLike,
        touching: ArrayLike | None = None,
        normals: ArrayLike | None = None,
        gaps: ArrayLike | None = None,
        friction: ArrayLike | None = None,
        surface_velocities: ArrayLike | None = None,
    ) -> None:
        self.contacts = contacts
        self.points: NDArray[np.float64] = np.ascontiguousarray(points, dtype=np.float64)
        shape = self.points.shape[:1] + (len(contacts),)
        self.touching = np.ones(shape, bool) if touching is None else np.asarray(touching)
        if self.touching.dtype != np.bool_:
            raise ContactSetError(f"touching must be of type bool, got {self.touching.dtype}")
        given = {
            "points": self.points,
            "normals": normals,
            "gaps": gaps,
            "friction": friction,
            "surface_velocities": surface_velocities,
        }
        arrays = {
            name: None if value is None else np.ascontiguousarray(value, dtype=np.float64)
            for name, value in given.items()
        }
        self.normals, self.gaps, self.friction, self.surface_velocities = (
            arrays[name] for name in ("normals", "gaps", "friction", "surface_velocities")
        )
        for name, array in {**arrays, "touching": self.touching}.items():
            wanted = (*shape, 3) if name in _VECTORS else shape
            if array is not None and array.shape != wanted:
                raise ContactSetError(f"{name} must have shape {wanted}, got {array.shape}")
        good: NDArray[np.bool_] = np.asarray(np.isfinite(self.points).all(axis=-1))
        self._check("points", good, "be finite")
        if self.normals is not None:
            lengths = np.sqrt((self.normals**2).sum(axis=-1))
            good = np.asarray(np.abs(lengths - 1.0) <= UNIT_TOLERANCE)
            self._check("normals", good, "have length 1")
        if self.gaps is not None:
            self._check("gaps", np.isfinite(self.gaps), "be finite")
        if self.friction is not None:
            self._check("friction", self.friction >= 0.0, "be 0 or more")
        if self.surface_velocities is not None:
            good = np.asarray(np.isfinite(self.surface_velocities).all(axis=-1))
            self._check("surface_velocities", good, "be finite")
        self._subsets: dict[bytes, tuple[ContactSet, NDArray[np.intp]]] = {}

    def _check(self, name: str, good: NDArray[np.bool_], rule: str) -> None:
        bad = np.argwhere(self.touching & ~good)
        if len(bad):
            frame, contact = bad[0].tolist()
            raise ContactSetError(f"{name} of contact {contact} in frame {frame} must {rule}")

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.points)

    def part(self, rows: slice) -> ContactFrames:
        """The contacts of some of the frames."""
        given = (
            self.points,
            self.touching,
            self.normals,
            self.gaps,
            self.friction,
            self.surface_velocities,
        )
        cut = (None if array is None else array[rows] for array in given)
        points, touching, *rest = cut
        return ContactFrames(self.contacts, points, touching, *rest)  # type: ignore[arg-type]

    def at(self, frame: int, robot: RobotModel) -> ContactSet:
        """The contacts that count in a frame."""
        base, rows = self._subset(frame, robot)
        gaps, normals, friction = self.gaps, self.normals, self.friction
        contacts = base.moved(
            self.points[frame].take(rows, 0),
            None if gaps is None else gaps[frame].take(rows),
            None if normals is None else normals[frame].take(rows, 0),
            friction=None if friction is None else friction[frame].take(rows),
        )
        if self.surface_velocities is not None:  # nobody else has seen it yet
            moving = self.surface_velocities[frame].take(rows, 0)
            object.__setattr__(contacts, "surface_velocities", moving)
        return contacts

    def numbers(self, frame: int, robot: RobotModel) -> NDArray[np.intp]:
        """The places in ``contacts`` of those that count in a frame."""
        return self._subset(frame, robot)[1]

    def _subset(self, frame: int, robot: RobotModel) -> tuple[ContactSet, NDArray[np.intp]]:
        mask = self.touching[frame]
        known = self._subsets.get(key := mask.tobytes())
        if known is None:
            subset = self.contacts.subset(mask)
            subset.links(robot)
            known = self._subsets[key] = subset, np.flatnonzero(mask)
        return known

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_subsets": {}}


@dataclasses.dataclass(frozen=True, eq=False)
class FrameSolutions:
    """The answers to m frames with n possible contacts; numbers of refused frames are not numbers.

    Attributes:
        torques: (m, na) N·m, in ``robot.joint_names`` order.
        forces: (m, n, 3) N, world frame, on the robot; 0 where a contact does not count.
        velocity: (m, nv), generalized velocity at the period's end.
        local_forces: (m, n, 3) N, (normal, tangent 1, tangent 2).
        contact_velocity: (m, n, 3) m/s, ``Solution.contact_velocity``; not a number where a contact
            does not count.
        gap_speed: (m, n) m/s, the closing speed that a gap allows; not a number there, either.
        contradiction_m_s: (m,) largest contact velocity that a change of a contradictory plan took away.
        iterations: (m,) steps of the solvers.
        status: (m,) places in ``FRAME_STATUSES``.
        reasons: frame -> why it was refused.
    """

    torques: NDArray[np.float64]
    forces: NDArray[np.float64]
    velocity: NDArray[np.float64]
    local_forces: NDArray[np.float64]
    contact_velocity: NDArray[np.float64]
    gap_speed: NDArray[np.float64]
    contradiction_m_s: NDArray[np.float64]
    iterations: NDArray[np.int64]
    status: NDArray[np.uint8]
    reasons: dict[int, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def room(cls, robot: RobotModel, frames: int, contacts: int) -> FrameSolutions:
        """Room for so many answers, to be filled by ``solve_batch``."""
        return cls(
            np.empty((frames, robot.na)),
            np.empty((frames, contacts, 3)),
            np.empty((frames, robot.nv)),
            np.empty((frames, contacts, 3)),
            np.empty((frames, contacts, 3)),
            np.empty((frames, contacts)),
            np.empty(frames),
            np.empty(frames, np.int64),
            np.empty(frames, np.uint8),
        )

    def __len__(self) -> int:
        return len(self.status)

    @property
    def names(self) -> NDArray[np.str_]:
        """(m,) status of each frame as text."""
        names: NDArray[np.str_] = np.array(FRAME_STATUSES)[self.status]
        return names

    @property
    def slip_m_s(self) -> NDArray[np.float64]:
        """(m, n) tangential speed at the period's end; not a number where a contact does not count."""
        slip: NDArray[np.float64] = np.hypot(
            self.contact_velocity[..., 1], self.contact_velocity[..., 2]
        )
        return slip

    def residuals(self, friction: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """The first four of ``Solution.residuals``, (m,) each; friction (n,) or (m, n)."""
        normal, parting = self.local_forces[..., 0], self.contact_velocity[..., 0] + self.gap_speed
        tangential = np.hypot(self.local_forces[..., 1], self.local_forces[..., 2])
        mu = np.broadcast_to(np.asarray(friction, float), normal.shape)
        finite = np.where(mu < UNBOUNDED_FRICTION, mu, 0.0)
        bound = np.where(mu < UNBOUNDED_FRICTION, finite * np.maximum(normal, 0.0), np.inf)
        parts = {
            "cone_n": np.maximum(tangential - bound, 0.0),
            "adhesion_n": np.maximum(-normal, 0.0),
            "gap_m_s": np.maximum(-parting, 0.0),
            "complementarity_w": np.abs(normal * parting),
        }
        refused = self.status == FRAME_STATUSES.index(REFUSED)
        return {
            name: np.where(refused, np.nan, np.fmax.reduce(part, axis=1, initial=0.0))
            for name, part in parts.items()
        }

    def _keep(self, k: int, numbers: NDArray[np.intp], solution: Solution) -> None:
        problem, attainable = solution.problem, solution.attainable
        robot = problem.robot
        keep_frame(
            problem.store,
            problem.period,
            robot.actuated,
            robot.unactuated,
            solution.torques,
            solution.velocity,
            solution.forces,
            solution.impulses,
            _NONE if attainable is None else attainable,
            numbers,
            k,
            self.torques,
            self.velocity,
            self.forces,
            self.local_forces,
            self.contact_velocity,
            self.gap_speed,
        )
        self.contradiction_m_s[k] = solution.contradiction_m_s
        self.iterations[k] = solution.iterations
        self.status[k] = _CODES[solution.status]

    def _refuse(self, k: int, why: str) -> None:
        for array in self._arrays().values():
            array[k] = np.nan if array.dtype == np.float64 else 0
        self.status[k] = _CODES[REFUSED]
        self.reasons[k] = why

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: array for name, array in vars(self).items() if name != "reasons"}

    def _take(self, rows: slice, other: FrameSolutions) -> None:
        for name, array in self._arrays().items():
            array[rows] = getattr(other, name)
        self.reasons.update({rows.start + k: why for k, why in other.reasons.items()})


_NONE = np.zeros(0)
_CODES = {name: code for code, name in enumerate(FRAME_STATUSES)}


def solve_batch(
    robot: RobotModel,
    q: ArrayLike,
    v: ArrayLike,
    desired_acceleration: ArrayLike,
    contacts: ContactFrames,
    period: ArrayLike,
    friction: Friction = "coulomb",
    solver: Solver = "qp",
    *,
    velocity_product_term: bool = True,
    contact_time_constant_s: float | None = None,
    penetration_gain: float = 0.0,
    external_forces: ArrayLike | None = None,
    out: FrameSolutions | None = None,
    executor: Executor | None = None,
    block: int = BLOCK,
    **keywords: Unpack[Options],
) -> FrameSolutions:
    """Inverse dynamics with contact for m frames, each as ``build_problem`` and ``solve`` do it, cold.

    Args:
        robot: of all frames.
        q, v, desired_acceleration: (m, nq), (m, nv), (m, na), see ``build_problem``.
        contacts: of the m frames.
        period: s, a number or (m,).
        friction, solver, keywords: see ``solve``.
        velocity_product_term, contact_time_constant_s, penetration_gain: see ``build_problem``. A
            longer period than the time constant takes the velocity away within the period.
        external_forces: (m, nv), N and N·m.
        out: room of this size to fill (``FrameSolutions.room``); None: new room.
        executor: does blocks of frames, such as ``ProcessPoolExecutor``, or that of a Dask client;
            None: this thread does all.
        block: frames that a worker of the executor takes at once.

    A frame that is no problem (its state is not finite, its quaternion has not length 1) is refused
    alone: its numbers are not numbers, ``reasons`` says why.

    Raises:
        StateError: arrays of wrong shape.
        ConfigurationError: period, time constant, gain or block outside its range.
        UnknownFrameError, UnknownModelError: see ``build_problem`` and ``solve``.
    """
    if row_of(friction, solver).feedback_only:
        raise UnknownModelError(f"{friction}/{solver} is feedback alone and solves no problem")
    count = len(contacts)
    states = _rows("q", q, count, robot.nq), _rows("v", v, count, robot.nv)
    acceleration = _rows("desired_acceleration", desired_acceleration, count, robot.na)
    force = None
    if external_forces is not None:
        force = _rows("external_forces", external_forces, count, robot.nv)
    periods = np.broadcast_to(np.asarray(period, dtype=np.float64), (count,))
    if not ((periods > 0.0) & (periods < np.inf)).all():
        raise ConfigurationError("period must be a positive number of seconds in every frame")
    if not block >= 1:
        raise ConfigurationError(f"block must be 1 or more, got {block}")
    if out is None:
        out = FrameSolutions.room(robot, count, len(contacts.contacts))
    if out.forces.shape != (count, len(contacts.contacts), 3) or out.torques.shape[1] != robot.na:
        raise StateError(
            f"out has room for forces {out.forces.shape}, must be {count, len(contacts.contacts), 3}"
        )
    out.reasons.clear()
    how: dict[str, Any] = {
        "velocity_product_term": velocity_product_term,
        "contact_time_constant_s": contact_time_constant_s,
        "penetration_gain": penetration_gain,
    }
    frames = _Frames(robot, *states, acceleration, contacts, periods, force)
    if executor is None:
        _solve_rows(frames, (friction, solver), how, keywords, out)
        return out
    parts = [slice(k, min(k + block, count)) for k in range(0, count, block)]
    futures = [
        executor.submit(_solve_block, frames.part(rows), (friction, solver), how, dict(keywords))
        for rows in parts
    ]
    try:
        for rows, future in zip(parts, futures):
            out._take(rows, future.result())
    finally:
        for future in futures:
            future.cancel()
    return out


@dataclasses.dataclass(frozen=True, eq=False)
class _Frames:
    """What is given of m frames."""

    robot: RobotModel
    q: NDArray[np.float64]
    v: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    contacts: ContactFrames
    periods: NDArray[np.float64]
    external_forces: NDArray[np.float64] | None

    def part(self, rows: slice) -> _Frames:
        force = None if self.external_forces is None else self.external_forces[rows]
        arrays = (self.q[rows], self.v[rows], self.acceleration[rows])
        return _Frames(self.robot, *arrays, self.contacts.part(rows), self.periods[rows], force)


def _solve_block(
    frames: _Frames, model: tuple[str, str], how: dict[str, Any], keywords: dict[str, Any]
) -> FrameSolutions:
    """In a worker: room of its own."""
    out = FrameSolutions.room(frames.robot, len(frames.q), len(frames.contacts.contacts))
    _solve_rows(frames, model, how, keywords, out)
    return out


def _solve_rows(
    frames: _Frames,
    model: tuple[str, str],
    how: dict[str, Any],
    keywords: Any,
    out: FrameSolutions,
) -> None:
    robot, contacts, periods = frames.robot, frames.contacts, frames.periods.tolist()
    longest_s, how = how["contact_time_constant_s"], dict(how)
    friction, solver = model
    for k in range(len(frames.q)):
        if longest_s is not None:
            how["contact_time_constant_s"] = max(longest_s, periods[k])
        if frames.external_forces is not None:
            how["external_forces"] = frames.external_forces[k]
        try:
            problem = build_problem(
                robot,
                frames.q[k],
                frames.v[k],
                frames.acceleration[k],
                contacts.at(k, robot),
                periods[k],
                **how,
            )
        except StateError as error:
            out._refuse(k, str(error))
            continue
        solution = solve(problem, friction, solver, **keywords)  # type: ignore[arg-type]
        out._keep(k, contacts.numbers(k, robot), solution)


def _rows(name: str, value: ArrayLike, count: int, size: int) -> NDArray[np.float64]:
    array: NDArray[np.float64] = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape != (count, size):
        raise StateError(f"{name} must have shape {count, size}, got {array.shape}")
    return array
