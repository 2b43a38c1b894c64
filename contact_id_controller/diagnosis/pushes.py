"""Contacts of an arm, found from efforts or motor currents with a model of the same arm in free motion.

The residual of the momentum observer is what the model does not explain of the efforts, here with a zero-phase filter,
as the whole log is known; a contact force f causes

    r = M a + C v + g + rotors and friction - tau = J^T f

Model, friction and torque constants are those that `identification` finds in the free log. A joint at rest holds any
torque within its dry friction: only the excess counts, and forces are known to within this friction. The threshold of
a joint comes from its residual in the free log, separately at rest and in motion.

Source: De Luca and Mattone, "Sensorless robot collision detection and hybrid force/motion control", ICRA 2005: the
residual, and that no joint behind the touched link feels a contact. A joint whose axis the line of action meets, or is
parallel to, does not feel it either: the named link is the first that the contact can be on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong
from contact_id_controller.exceptions import RecordError
from contact_id_controller.identification.identify import Identified, identify, samples_of
from contact_id_controller.identification.model_fit import Rows
from contact_id_controller.identification.regressor import BREAKAWAY, DRY
from contact_id_controller.identification.smoothing import HIGHEST, Samples, filtered, smoothed
from contact_id_controller.logs.log import Log
from contact_id_controller.robot import FRICTION_SPEED

Array = NDArray[np.float64]

FELT_HZ = 5.0
"""Bandwidth of the residuals: pushes by hand last tenths of a second."""

STANDS = 2.0
"""Multiple of dry friction's width below which a joint may hold any torque within it (tanh 2 = .96)."""

TURNS_S = 0.1
"""Time before and after slow motion in which friction has not yet changed its sign."""

CLEAR = 2.5
"""Residual relative to the largest in the free log from which on a joint is touched. Logs of one arm over two months
differ by up to 2."""

ONE_S = 0.3
"""Time between contacts below which they count as one."""

SHORTEST_S = 0.05

EDGE_S, FLAT, SMEARED = 0.1, 0.2, 0.05
"""A contact begins where the residual, backwards in time, changes by less than a share of the threshold, or of its
largest value, within this time: the zero-phase filter responds before a step."""

FIRM = 0.05
"""Least lever, as a share of the longest one, of joints from which a force is estimated."""


@dataclasses.dataclass(frozen=True)
class Residual:
    """Efforts that the model does not explain, n rows: (n, na) in N·m, positive as acting on the joint.

    Attributes:
        time: (n,) s.  q: (n, na) rad.  whole: with all dry friction included.  beyond: what dry friction cannot
            explain.
        stands: where friction may have any size.
    """

    time: Array
    q: Array
    whole: Array
    beyond: Array
    stands: NDArray[np.bool_]

    @property
    def known(self) -> Array:
        """(n, na) N·m, without the friction of moving joints."""
        return np.where(self.stands, self.whole, self.beyond)


@dataclasses.dataclass(frozen=True)
class Free:
    """An arm in free motion.

    Attributes:
        found: its identified model.  standing, moving: (na,) N·m beyond dry friction from which on a joint is touched.
        dry: (na,) N·m, dry friction.  in_amperes: whether its torques were currents.
    """

    found: Identified
    standing: Array
    moving: Array
    dry: Array
    in_amperes: bool

    @classmethod
    def of(cls, log: Log, urdf: str) -> Free:
        """Identify the arm from a free log, with thresholds.

        Raises:
            RecordError: as of `identify`; also a log in which no joint moves.
        """
        log = _without_gaps(log)
        found = identify(log, urdf)
        samples, in_amperes = samples_of(found.robot, log)
        free = residual(found, samples)
        if free.stands.all():
            raise RecordError(f"no joint moves in {log.source!r}, which is to show free motion")
        size = np.abs(free.beyond)
        standing, moving = (
            np.max(np.where(which, size, 0.0), axis=0) for which in (free.stands, ~free.stands)
        )
        # For a joint that hardly stands, or moves, in the free log the threshold comes from its noise.
        noise = found.fit.noise / np.abs(found.fit.parameters.gains)
        standing, moving = (CLEAR * np.maximum(each, noise) for each in (standing, moving))
        dry = found.fit.parameters.drives[:, [DRY, BREAKAWAY]].sum(axis=1)
        return cls(found, standing, moving, dry, in_amperes)


@dataclasses.dataclass(frozen=True)
class Push:
    """A contact.

    Attributes:
        begin_s, end_s: time of the log.  joints: those with a residual above threshold, in the robot's order.
        torque: (na,) N·m on all joints at its maximum.  error: (na,), by dry friction of joints at rest.
        force_n: least force with this torque at the far end of the link behind the last of them; None: unknown.
    """

    begin_s: float
    end_s: float
    joints: tuple[str, ...]
    torque: Array
    error: Array
    force_n: float | None


def residual(found: Identified, samples: tuple[Samples, ...]) -> Residual:
    """The residual of a log with the model of a free log."""
    per = samples[0].period
    cutoff = min(FELT_HZ, HIGHEST / per)
    even = tuple(
        dataclasses.replace(each, torque=filtered(each.torque, cutoff * each.period))
        for each in samples
    )
    motion = smoothed(even, cutoff, found.source)
    fit = found.fit.parameters
    drives, (dry, more) = fit.drives.copy(), fit.drives[:, [DRY, BREAKAWAY]].T
    drives[:, [DRY, BREAKAWAY]] = 0.0
    without_friction = Rows.of(found.robot, motion, found.shapes).predicted(
        dataclasses.replace(fit, drives=drives)
    )
    unexplained = (without_friction - motion.torque) / fit.gains
    width = np.array([FRICTION_SPEED if each.winds_up else each.width for each in found.shapes])
    falls = np.array([each.breakaway_rad_s or np.inf for each in found.shapes])
    rows = 2 * round(TURNS_S / per) + 1
    fastest = maximum_filter1d(motion.v, rows, axis=0)
    slowest = minimum_filter1d(motion.v, rows, axis=0)
    forwards, backwards = slowest > STANDS * width, fastest < -STANDS * width
    stands = ~(forwards | backwards)
    sliding = (dry + more * np.exp(-np.abs(motion.v) / falls)) * np.tanh(motion.v / width)
    most = np.where(stands, dry + more, -sliding)
    least = np.where(stands, -dry - more, -sliding)
    beyond_friction = np.maximum(unexplained - most, 0.0) + np.minimum(unexplained - least, 0.0)
    return Residual(motion.time, motion.q, unexplained, beyond_friction, stands)


def _without_gaps(log: Log) -> Log:
    """The log without rows that lack an effort: a filter would spread NaN over all of them."""
    channels = [each for each in (log.effort, log.current) if each is not None]
    numbers = [np.isfinite(each) for each in channels]
    # A channel or joint without any value is missing, and no gap.
    complete = [known.all(axis=1) | ~known.any(axis=1).any() for known in numbers]
    rows = np.logical_and.reduce(complete) if complete else np.ones(len(log.time), dtype=bool)
    return log if rows.all() else log.rows(rows)


def pushes(free: Free, log: Log) -> tuple[list[Push], Residual]:
    """Contacts in a log, and the residual that they were found in.

    Raises:
        RecordError: too few rows, channels or joints missing, or torques of another unit than in the free log.
    """
    log = _without_gaps(log)
    missing = [name for name in free.found.robot.joint_names if name not in log.joints]
    if missing:
        raise RecordError(f"{log.source!r} lacks joint {missing[0]!r} of the free log")
    samples, in_amperes = samples_of(free.found.robot, log)
    if in_amperes != free.in_amperes:
        units = ("torques", "currents")
        raise RecordError(
            f"{log.source!r} has {units[in_amperes]}, the free log {units[free.in_amperes]}: both must have the same"
        )
    residuals = residual(free.found, samples)
    share = np.abs(residuals.beyond) / np.where(residuals.stands, free.standing, free.moving)
    rows = np.flatnonzero(share.max(axis=1) > 1.0)
    if not rows.size:
        return [], residuals
    found = []
    for part in np.split(rows, np.flatnonzero(np.diff(residuals.time[rows]) > ONE_S) + 1):
        if residuals.time[part[-1]] - residuals.time[part[0]] >= SHORTEST_S:
            found.append(_push(free, residuals, share, part))
    return found, residuals


def _push(free: Free, left: Residual, share: Array, part: NDArray[np.intp]) -> Push:
    """The contact in the rows ``part`` above threshold."""
    robot = free.found.robot
    felt = np.flatnonzero(share[part].max(axis=0) > 1.0)
    strongest = int(part[np.argmax(share[part].max(axis=1))])
    clearest = int(np.argmax(share[strongest]))
    begin = _begin(free, left, part, int(np.argmax(share[part, clearest] > 1.0)), clearest)
    stands = left.stands[strongest]
    torque = left.known[strongest]
    return Push(
        float(left.time[begin]),
        float(left.time[part[-1]]),
        tuple(robot.joint_names[j] for j in felt),
        torque,
        np.where(stands, free.dry, 0.0),
        _least_force(free, left.q[strongest], torque, felt),
    )


def _begin(free: Free, left: Residual, part: NDArray[np.intp], first: int, joint: int) -> int:
    """First row of a contact: from there the residual of a joint grows to that of the row ``first`` of ``part``."""
    row = int(part[first])
    signed = left.known[:, joint] * np.sign(left.beyond[row, joint])
    back = max(round(EDGE_S / float(np.median(np.diff(left.time)))), 1)
    least = max(FLAT * free.standing[joint], SMEARED * float(signed[part].max()))
    while row > back and signed[row] - signed[row - back] > least:
        row -= 1
    return row


def _least_force(free: Free, q: Array, torque: Array, felt: NDArray[np.intp]) -> float | None:
    """Smallest force, N, at the far end of the link behind the last joint that felt it."""
    robot, last = free.found.robot, int(felt[-1])
    model, data = robot.model, robot.model.createData()
    configuration = robot.neutral()
    robot.put_joints(configuration, q)
    pin.computeJointJacobians(model, data, configuration)
    pin.updateFramePlacements(model, data)
    joint = int(model.getJointId(robot.joint_names[last]))
    ends = [data.oMi[k].translation for k in range(1, model.njoints) if model.parents[k] == joint]
    ends += [
        place.translation
        for frame, place in zip(model.frames, data.oMf)
        if frame.parentJoint == joint
    ]
    own = data.oMi[joint].translation
    end = max(ends, key=lambda point: float(np.linalg.norm(point - own)))
    axes = pin.getJointJacobian(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    levers = axes[:3] + np.cross(axes[3:].T, end - own).T
    sizes = np.linalg.norm(levers, axis=0)
    firm = sizes[robot.actuated[felt]] > FIRM * sizes.max()
    if not firm.any():
        return None
    columns = robot.actuated[felt[firm]]
    force = np.linalg.lstsq(levers[:, columns].T, torque[felt[firm]], rcond=FIRM)[0]
    return float(np.linalg.norm(force))


def contact(case: Case) -> Finding:
    """Find contacts of an arm, with a second log that has none."""
    name = "contact"
    if case.free is None or case.of is None or case.of.robot.floating_base:
        return unknown(
            name,
            "no model of the robot in free motion",
            "--free, a log of the same robot whose base is held and that touches nothing",
        )
    try:
        free = Free.of(case.free, case.of.urdf)
        found, residuals = pushes(free, case.log)
    except RecordError as error:
        return unknown(
            name, str(error), "a log in which the arm moves freely, recorded as this one"
        )
    share = residuals.beyond / np.where(residuals.stands, free.standing, free.moving)
    names = free.found.robot.joint_names
    strongest = np.argsort(-np.abs(share).max(axis=0))[:3]
    picture = Picture(
        "Torque on the joints that the model does not explain, and its threshold",
        "time, s",
        residuals.time,
        "of the threshold",
        {names[j]: share[:, j] for j in strongest}
        | {"threshold": np.ones(len(share)), "-threshold": -np.ones(len(share))},
    )
    if not found:
        largest = np.abs(share).max(axis=0)
        j = int(np.argmax(largest))
        return fine(
            name,
            f"no contact; {names[j]} comes closest, at {largest[j]:.2f} of the threshold",
            picture,
        )
    times = "once" if len(found) == 1 else f"{len(found)} times"
    return wrong(
        name,
        f"touched {times}: " + "; ".join(_line(each, names) for each in found),
        "exclude these times when fitting a model to this log",
        gain=float(np.log(np.abs(share).max())),
        picture=picture,
    )


def _line(push: Push, names: Sequence[str]) -> str:
    """A contact as text."""
    cells = [
        f"{joint} {push.torque[j]:+.3g} ± {push.error[j]:.2g}"
        for j, joint in enumerate(names)
        if joint in push.joints
    ]
    force = "" if push.force_n is None else f", {push.force_n:.3g} N if at its end"
    return (
        f"{push.begin_s:.2f} to {push.end_s:.2f} s, on the link behind {push.joints[-1]}{force} "
        f"(N·m: {', '.join(cells)})"
    )
