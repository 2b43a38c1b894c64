"""Inverse dynamics of many frames; each result equals, bit for bit, that of ``build_problem`` and ``solve``.

Each frame is solved without a warm start: its result depends neither on other frames nor on the process. Frames with
the same contacts go through one compiled call together if the model has one (``ContactModel.frames``); frames which
that call does not handle are solved singly. An executor of processes takes blocks of frames. Threads would not help:
Pinocchio computes inertia and bias forces under the interpreter's lock.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.contacts import UNIT_TOLERANCE, ContactSet
from contact_id_controller.exceptions import (
    ConfigurationError,
    ContactSetError,
    RobotDescriptionError,
    StateError,
    require,
)
from contact_id_controller.kernels.nearest_point import SOLVED as SOLVED_CODE
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.kernels.world_forces import world_forces
from contact_id_controller.models.batch_kernels import Kept, keep_frames
from contact_id_controller.models.contact_model import Chosen, ContactModel
from contact_id_controller.models.frame_problems import (
    FramesCall,
    Places,
    States,
    reduce_frames,
)
from contact_id_controller.models.registry import parted, solvable
from contact_id_controller.models.steps.reduced import matrices
from contact_id_controller.problem import UNIT_TOLERANCE as UNIT_QUATERNION
from contact_id_controller.problem import ProblemMaker, compute_dynamics
from contact_id_controller.robot import RobotModel, real_array
from contact_id_controller.solution import SOLVED, STATUSES, Solution

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from contact_id_controller.models.names import Friction, Solver
    from contact_id_controller.models.registry import DoorOptions

REFUSED = "refused"
"""Status of a frame that is no problem, such as one whose state is not finite."""

FRAME_STATUSES = (*STATUSES, REFUSED)
"""The status of a frame is a place in this tuple; those of solutions keep their order."""

BLOCK = 1024
"""Frames that a worker takes at once: some tens of milliseconds of work."""

TOGETHER = 64
"""Frames that one compiled call solves: what it reads and writes, half a megabyte, stays in the cache."""


_VECTORS = ("points", "normals", "surface_velocities")


class ContactFrames:
    """The n possible contacts of a robot in each of m frames.

    Args:
        contacts: what is the same in all frames: robot frames, identities, and whatever is not given below.
        points: (m, n, 3) m, world frame.
        touching: (m, n) bool, contacts in the problem; None: all. Values of others are not checked.
        normals: (m, n, 3) unit vectors, world frame.  gaps: (m, n) m.  friction: (m, n).
        surface_velocities: (m, n, 3) m/s, world frame, see ``ContactSet``.

    Raises:
        ContactSetError: wrong shape, or a contact in the problem has a number out of its range; the
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
        require("contacts", contacts, ContactSet, ContactSetError)
        self.points: NDArray[np.float64] = real_array("points", points, ContactSetError)
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
            name: None if value is None else real_array(name, value, ContactSetError)
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
        """The contacts of a range of frames."""
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
        """The contact set of one frame's problem."""
        base, rows = self._subset(frame, robot)
        gaps, normals, friction = self.gaps, self.normals, self.friction
        contacts = base.at(
            self.points[frame].take(rows, 0),
            None if gaps is None else gaps[frame].take(rows),
            None if normals is None else normals[frame].take(rows, 0),
            friction=None if friction is None else friction[frame].take(rows),
        )
        if self.surface_velocities is not None:  # not shared yet
            moving = self.surface_velocities[frame].take(rows, 0)
            object.__setattr__(contacts, "surface_velocities", moving)
        return contacts

    def together(self, rows: NDArray[np.intp], robot: RobotModel) -> tuple[ContactSet, Places]:
        """Contact set, and its values by frame, for frames ``rows`` in which the same contacts are in the problem."""
        base, numbers = self._subset(int(rows[0]), robot)
        at = np.ix_(rows, numbers)
        moving, same = self.surface_velocities, self.contacts.surface_velocities
        if moving is None and same is not None:
            moving = np.broadcast_to(same, self.points.shape)

        def every(given: NDArray[np.float64] | None, fixed: NDArray[np.float64]) -> Any:
            return np.broadcast_to(fixed, (len(rows), *fixed.shape)) if given is None else given[at]

        return base, Places(
            self.points[at],
            every(self.normals, base.normals),
            every(self.gaps, base.gaps),
            every(self.friction, base.friction),
            None if moving is None else moving[at],
        )

    def numbers(self, frame: int, robot: RobotModel) -> NDArray[np.intp]:
        """Indices in ``contacts`` of those in a frame's problem."""
        return self._subset(frame, robot)[1]

    def _subset(self, frame: int, robot: RobotModel) -> tuple[ContactSet, NDArray[np.intp]]:
        """The contacts in a frame's problem, as a set and as indices; cached for each pattern of contacts."""
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
    """The solutions of m frames with n possible contacts; NaN in refused frames.

    Attributes:
        torques: (m, na) N·m, in ``robot.joint_names`` order.
        forces: (m, n, 3) N, world frame, on the robot; 0 for contacts not in the problem.
        velocity: (m, nv), generalized velocity at the period's end.
        local_forces: (m, n, 3) N, (normal, tangent 1, tangent 2).
        contact_velocity: (m, n, 3) m/s, ``Solution.contact_velocity``; NaN for contacts not in the problem.
        gap_speed: (m, n) m/s, the closing speed that a gap allows; NaN likewise.
        contradiction_m_s: (m,) largest contact velocity that a change of a contradictory plan removed.
        iterations: (m,) steps of the solvers.
        status: (m,) index in ``FRAME_STATUSES``.
        reasons: frame -> error message of a refused frame.
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
        """Allocate the arrays for this many frames and contacts, to be filled by ``solve_batch``."""
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
        """Tangential speed (m, n), m/s, at the period's end; NaN for contacts not in the problem."""
        slip: NDArray[np.float64] = np.hypot(
            self.contact_velocity[..., 1], self.contact_velocity[..., 2]
        )
        return slip

    def residuals(self, friction: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """First four of ``Solution.residuals``, (m,) each; friction (n,) or (m, n)."""
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

    def _keep(
        self,
        matrices: tuple[Any, ...],
        room: NDArray[np.float64],
        forces: NDArray[np.float64],
        numbers: NDArray[np.intp],
        places: NDArray[np.int64],
    ) -> None:
        """Copy answers into rows ``places``; see ``keep_frames``."""
        keep_frames(*matrices, room, forces, numbers, places, self._kept)

    @functools.cached_property
    def _kept(self) -> Kept:
        """The struct of the arrays that kernels fill."""
        return Kept(
            torques=self.torques,
            velocity=self.velocity,
            forces=self.forces,
            local_forces=self.local_forces,
            contact_velocity=self.contact_velocity,
            gap_speed=self.gap_speed,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: array for name, array in vars(self).items() if name != "_kept"}

    def _keep_solution(self, k: int, numbers: NDArray[np.intp], solution: Solution) -> None:
        """Copy the solution of frame ``k``, solved singly; ``numbers``: indices of its contacts among all."""
        problem, moved = solution.problem, solution.attainable
        parts = (
            problem.c if moved is None else moved,
            solution.impulses,
            np.zeros(problem.robot.na),
            solution.torques,
            solution.velocity,
        )
        self._keep(
            matrices(problem), np.concatenate(parts), solution.forces, numbers, np.array([k])
        )
        self.contradiction_m_s[k] = solution.contradiction_m_s
        self.iterations[k] = solution.iterations
        self.status[k] = _CODES[solution.status]

    def _refuse(self, k: int, why: str) -> None:
        for array in self._arrays().values():
            array[k] = np.nan if array.dtype == np.float64 else 0
        self.status[k] = _CODES[REFUSED]
        self.reasons[k] = why

    def _check(self, like: FrameSolutions, count: int) -> None:
        """Raise StateError unless compiled code can fill these arrays as it does those of ``like``, with so many rows."""
        for name, array in like._arrays().items():
            shape, found = (count, *array.shape[1:]), np.asarray(getattr(self, name))
            if found.shape != shape or found.dtype != array.dtype or not found.flags.carray:
                raise StateError(
                    f"{name} of out must be a writeable array {shape} of {array.dtype} in C order, "
                    f"got {found.shape} of {found.dtype}"
                )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        names = (field.name for field in dataclasses.fields(self))
        return {name: getattr(self, name) for name in names if name != "reasons"}

    def _take(self, rows: slice, other: FrameSolutions) -> None:
        for name, array in self._arrays().items():
            array[rows] = getattr(other, name)
        self.reasons.update({rows.start + k: why for k, why in other.reasons.items()})


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
    external_forces: ArrayLike | None = None,
    out: FrameSolutions | None = None,
    executor: Executor | None = None,
    block: int = BLOCK,
    **keywords: Unpack[DoorOptions],
) -> FrameSolutions:
    """Inverse dynamics with contact of m frames, each as by ``build_problem`` and ``solve`` without warm start.

    A frame with an invalid state (not finite, quaternion not of length 1) is refused: its numbers are NaN and
    ``reasons`` has the error message; the other frames are solved.

    Args:
        robot: of all frames.
        q, v, desired_acceleration: (m, nq), (m, nv), (m, na), see ``build_problem``.
        contacts: of the m frames.
        period: s, a number or (m,).
        friction, solver: see ``solve``.
        keywords: options of ``build_problem`` and ``solve``. With a period longer than the time constant
            a contact's velocity is removed within the period.
        external_forces: (m, nv), N and N·m.
        out: arrays of this size to fill (``FrameSolutions.room``); None: they are allocated.
        executor: solves blocks of frames, such as ``ProcessPoolExecutor``, or that of a Dask client;
            None: all in this thread.
        block: frames that a worker of the executor takes at once.

    Raises:
        StateError: arrays of wrong shape.
        ConfigurationError: period, time constant, gain or block outside its range.
        UnknownFrameError, UnknownModelError: see ``build_problem`` and ``solve``.
    """
    require("robot", robot, RobotModel, RobotDescriptionError)
    require("contacts", contacts, ContactFrames, ContactSetError)
    how, given = parted(keywords)
    model = friction, solver
    solvable(*model).complete(given)
    count = len(contacts)
    states = _rows("q", q, count, robot.nq), _rows("v", v, count, robot.nv)
    acceleration = _rows("desired_acceleration", desired_acceleration, count, robot.na)
    force = None
    if external_forces is not None:
        force = _rows("external_forces", external_forces, count, robot.nv)
    periods = _periods(period, count)
    if not block >= 1:
        raise ConfigurationError(f"block must be 1 or more, got {block}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ConfigurationError(
            f"executor must have a method submit, got a {type(executor).__name__}"
        )
    if out is None:
        out = FrameSolutions.room(robot, count, len(contacts.contacts))
    require("out", out, FrameSolutions, StateError)
    out._check(FrameSolutions.room(robot, 0, len(contacts.contacts)), count)
    out.reasons.clear()
    frames = _Frames(robot, *states, acceleration, contacts, periods, force, how)
    if executor is None:
        _solve_rows(frames, model, given, out)
        return out
    parts = [slice(k, min(k + block, count)) for k in range(0, count, block)]
    futures = [executor.submit(_solve_block, frames.part(rows), model, given) for rows in parts]
    try:
        for rows, future in zip(parts, futures):
            out._take(rows, future.result())
    finally:
        for future in futures:
            future.cancel()
    return out


@dataclasses.dataclass(frozen=True, eq=False)
class _Frames:
    """Inputs of m frames; how: the options of their problems."""

    robot: RobotModel
    q: NDArray[np.float64]
    v: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    contacts: ContactFrames
    periods: NDArray[np.float64]
    external_forces: NDArray[np.float64] | None
    how: Mapping[str, Any]

    def part(self, rows: slice) -> _Frames:
        force = None if self.external_forces is None else self.external_forces[rows]
        arrays = (self.q[rows], self.v[rows], self.acceleration[rows])
        contacts, periods = self.contacts.part(rows), self.periods[rows]
        return _Frames(self.robot, *arrays, contacts, periods, force, self.how)

    def maker(self, period: float) -> ProblemMaker:
        """The ``ProblemMaker`` of frames with this period, s."""
        constant_s = self.how.get("contact_time_constant_s")
        if constant_s is None or not constant_s < period:
            return ProblemMaker(self.robot, period, **self.how)
        return ProblemMaker(self.robot, period, **{**self.how, "contact_time_constant_s": period})


def _solve_block(
    frames: _Frames, model: tuple[str, str], keywords: Mapping[str, Any]
) -> FrameSolutions:
    """Solve a block in a worker process; allocates the result."""
    out = FrameSolutions.room(frames.robot, len(frames.q), len(frames.contacts.contacts))
    _solve_rows(frames, model, keywords, out)
    return out


def _solve_rows(
    frames: _Frames, model: tuple[str, str], keywords: Mapping[str, Any], out: FrameSolutions
) -> None:
    """Solve all frames into ``out``: those of equal contacts together if the model has a compiled call, else singly."""
    row = solvable(*model)
    prepare, options = row.prepare_frames, row.complete(keywords)
    left = np.ones(len(frames.q), bool)
    if prepare is not None:
        sound = _sound(frames)
        for rows in _alike(frames.contacts.touching, sound):
            left[rows] = ~_solve_together(frames, rows, partial(prepare, options=options), out)
    for k in np.flatnonzero(left).tolist():
        _solve_alone(frames, k, row, options, out)


def _solve_alone(
    frames: _Frames, k: int, row: ContactModel, options: Chosen, out: FrameSolutions
) -> None:
    """Solve frame ``k`` by ``build_problem`` and the model; an error of its state becomes its status."""
    robot, contacts, force = frames.robot, frames.contacts, frames.external_forces
    try:
        compute_dynamics(robot, frames.q[k], frames.v[k])
        problem = frames.maker(float(frames.periods[k])).at(
            frames.v[k],
            frames.acceleration[k],
            contacts.at(k, robot),
            None if force is None else force[k].copy(),
        )
    except StateError as error:
        out._refuse(k, str(error))
        return
    solution = row.function(problem, options, None)
    out._keep_solution(k, contacts.numbers(k, robot), solution)


def _solve_together(
    frames: _Frames,
    rows: NDArray[np.intp],
    prepare: Callable[..., FramesCall | None],
    out: FrameSolutions,
) -> NDArray[np.bool_]:
    """Solve frames with the same contacts in one compiled call and write their rows of ``out``.

    Args:
        rows: of these frames.  prepare: the model's row, ``ContactModel.prepare_frames``, with its options.

    Returns a mask of the solved ones; the others must be solved singly, with the model's fallbacks.
    """
    robot, force, periods = frames.robot, frames.external_forces, frames.periods[rows].tolist()
    contacts, places = frames.contacts.together(rows, robot)
    numbers, n = frames.contacts.numbers(int(rows[0]), robot), len(contacts)
    problems = reduce_frames(
        robot,
        States(
            frames.q[rows],
            frames.v[rows],
            frames.acceleration[rows],
            None if force is None else force[rows],
        ),
        contacts,
        places,
        np.concatenate([frames.maker(period).how for period in periods]),
    )
    known = np.zeros(len(rows), bool)
    answers = problems.answers(prepare) if len(problems) else None
    if answers is None:
        return known
    rows = rows[: len(problems)]
    status, steps, contradiction = answers.verdicts.T
    known[: len(rows)] = good = status == SOLVED_CODE
    # Of each frame velocities, impulses and more, see ``open_answer``.
    impulses = answers.room.reshape(len(rows), -1)[:, 3 * n : 6 * n].ravel()
    forces = np.empty((len(rows) * n, 3))
    world_forces(*problems.matrices(), impulses, forces)
    out._keep(problems.matrices(), answers.room, forces, numbers, np.where(good, rows, -1))
    rows = rows[good]
    out.contradiction_m_s[rows], out.iterations[rows] = contradiction[good], steps[good]
    out.status[rows] = _CODES[SOLVED]
    return known


def _sound(frames: _Frames) -> NDArray[np.bool_]:
    """Mask (m,) of frames whose numbers ``build_problem`` certainly accepts."""
    q, force = frames.q, frames.external_forces
    given = (q, frames.v, frames.acceleration, *(() if force is None else (force,)))
    sound: NDArray[np.bool_] = np.logical_and.reduce(
        [np.isfinite(each).all(axis=1) for each in given]
    )
    for _, part in frames.robot.unit_parts:
        # Its own norm may differ from this one in the last bits.
        wrong = np.abs(np.linalg.norm(q[:, part], axis=1) - 1.0)
        sound &= wrong < UNIT_QUATERNION * (1.0 - 1e-9)
    return sound


def _alike(touching: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> Iterator[NDArray[np.intp]]:
    """Yield the wanted frames (m,) in groups of at most TOGETHER with the same contacts in the problem."""
    rows = np.flatnonzero(wanted)
    masks = np.packbits(touching[rows], axis=1)
    _, which = np.unique(masks, axis=0, return_inverse=True)
    for group in range(which.max(initial=-1) + 1):
        alike = rows[which.ravel() == group]
        for begin in range(0, len(alike), TOGETHER):
            yield alike[begin : begin + TOGETHER]


def _rows(name: str, value: ArrayLike, count: int, size: int) -> NDArray[np.float64]:
    array = real_array(name, value, StateError)
    if array.shape != (count, size):
        raise StateError(f"{name} must have shape {count, size}, got {array.shape}")
    return array


def _periods(period: ArrayLike, count: int) -> NDArray[np.float64]:
    """Periods (m,), s, of one for all frames or one each; ConfigurationError for others."""
    periods = real_array("period", period, ConfigurationError)
    if periods.shape not in ((), (count,)):
        raise ConfigurationError(
            f"period must be a number or have shape {(count,)}, got {periods.shape}"
        )
    if not ((periods > 0.0) & (periods < np.inf)).all():
        raise ConfigurationError("period must be a positive number of seconds in every frame")
    return np.broadcast_to(periods, (count,))
