"""Identifies a robot from a log and its description, and evaluates the result on a part that was not fitted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from contact_id_controller.exceptions import RecordError
from contact_id_controller.identification.model_fit import (
    LEAN_RAD,
    Belief,
    Fit,
    Rows,
    belief_of,
    drives_of,
    explained_freely,
    fit,
)
from contact_id_controller.identification.regressor import (
    BACKWARDS,
    DRY,
    FORWARDS,
    OFFSET,
    DriveShape,
    drive_regressor,
    stated_parameters,
)
from contact_id_controller.identification.smoothing import (
    FEWEST_ROWS,
    POSITION,
    Motion,
    Samples,
    cutoffs_hz,
    edge_s,
    moving,
    pieces,
    smoothed,
    sources,
    still,
)
from contact_id_controller.logs.log import SLOWEST_S, Log, common_joints
from contact_id_controller.robot import FRICTION_SPEED, RobotModel, resolve_urdf

Array = NDArray[np.float64]

BEYOND_RAD = 0.5
"""Largest distance of a joint beyond its limits, rad (m); a larger one means a wrong unit or zero."""

HELD_OUT = 0.3
"""Share of the time, at the end, on which the fit is evaluated."""

MOST_ROWS, TRIED_ROWS = 12_000, 2_000
"""Largest number of rows for a fit, and for the choice of filter or friction."""

SPEEDS = (0.1, 1.0 / 3.0, 1.0, 3.0)
TRAVELS = (0.001, 0.003, 0.01, 0.03)
"""Widths of dry friction that are tried, in units of `FRICTION_SPEED` and of the span of the joint's motion."""

BREAKAWAYS = (0.0, 0.1, 0.3)
"""Stribeck speeds that are tried, as shares of the joint's largest speed; 0: constant dry friction."""

TRIED_INDEPENDENT, PARTS = 100, 4
"""For cross-validation of drive shapes: number of independent rows that a log counts as; number of parts."""

LEANS, LEVEL = 3, 0.1
"""Largest number of fits for the base's lean; change, in standard deviations, at which it has converged."""

EDGES = 0.2
"""Largest share of the longest part of a log that is left out at either end."""

BLOCKS, SURE, MATTERS = 10, 2.0, 0.05
"""Parts of the jackknife; number of standard deviations that is significant; relative increase of residuals that is
tolerated: any fit is a little worse on rows that were not fitted."""

BETTER = 0.95
"""Residual of another drive shape, relative to the usual one's, below which it is chosen."""


class Missing(NamedTuple):
    """Joints that the description lacks, and those whose torque the log lacks, or has without any change."""

    undescribed: tuple[str, ...]
    unmeasured: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Judged:
    """Residuals on held-out rows, where joints move; (na,) each, N·m or A.

    Attributes:
        before: rms, of the description with dry and viscous friction, an offset and, for currents, a torque constant,
            all fitted.  after: of the identified model.
        ratio_sd: standard deviation of after / before, by a jackknife over `BLOCKS` parts of the time.
        spread: standard deviation of the measured values.
        everywhere: rms after, including rows in which joints stand still.  spread_everywhere: likewise.
    """

    before: Array
    after: Array
    ratio_sd: Array
    spread: Array
    everywhere: Array
    spread_everywhere: Array

    @property
    def ratio(self) -> Array:
        """after / before, (na,)."""
        return self.after / np.maximum(self.before, 1e-12)

    @property
    def worse(self) -> NDArray[np.bool_]:
        """Joints (na,) bool whose residual has grown significantly, and by more than ``MATTERS``."""
        return np.asarray(self.ratio - SURE * self.ratio_sd > 1.0 + MATTERS)

    @property
    def explained(self) -> Array:
        """R² after, (na,)."""
        return 1.0 - (self.after / np.maximum(self.spread, 1e-12)) ** 2


@dataclasses.dataclass(frozen=True)
class Identified:
    """The identified model of a robot.

    Attributes:
        robot: of the description, with the joints of the log; others are locked. Its gravity is that of the leaning
            base.
        fit: see `model_fit.Fit`.  shapes: of each joint's drive.
        lean: (2,), components of gravity along x and y of the description's root, as shares of gravity.
        source, cutoff_hz: channel that the motion was made of, and cut-off of its filter.
        judged: on the held-out part, or on another log; None: nothing was held out.
        fitted_s, judged_s: duration of both parts.
        missing: joints that description or log lacks.
        in_amperes: whether currents were fitted, not torques.
        measured_constants: N·m/A of each joint (na,) where a log has both; else None.
    """

    robot: RobotModel
    fit: Fit
    shapes: tuple[DriveShape, ...]
    lean: Array
    source: str
    cutoff_hz: float
    judged: Judged | None
    fitted_s: float
    judged_s: float
    missing: Missing
    in_amperes: bool
    measured_constants: Array | None


def robot_of(urdf: str, joints: Sequence[str]) -> RobotModel:
    """The described robot with a fixed base and the joints of a log; others are locked at 0 or their nearest limit.

    Raises:
        RobotDescriptionError: no such file.  UnknownJointError: it has none of these joints.
    """
    described = RobotModel.from_urdf(resolve_urdf(urdf), floating_base=False, base_held=True)
    common = common_joints(joints, described.joint_names, urdf)
    held = {
        name: float(np.clip(0.0, low, high))
        for name, low, high in zip(described.joint_names, described.lower, described.upper)
        if name not in common
    }
    return RobotModel.from_urdf(resolve_urdf(urdf), False, common, held, base_held=True)


def samples_of(robot: RobotModel, log: Log) -> tuple[tuple[Samples, ...], bool]:
    """The parts of a log, joints in the robot's order, and whether their torques are currents, A.

    Raises:
        RecordError: no positions, or neither efforts nor currents.
    """
    if log.position is None:
        raise RecordError(f"the log {log.source!r} has no positions; name their columns with --map")
    columns = [log.joints.index(name) for name in robot.joint_names]
    torque, in_amperes = log.effort, False
    if not _changes(torque):
        torque, in_amperes = log.current, True
    if torque is None or not _changes(torque):
        raise RecordError(
            f"the log {log.source!r} has neither efforts nor currents that change; name their columns with --map"
        )
    if log.period > SLOWEST_S:
        raise RecordError(
            f"the log {log.source!r} has a row every {log.period:.4g} s, must have one every {SLOWEST_S:g} s or more "
            "often; set the unit of time to ms, us or ns with --map"
        )
    q, torque = log.position[:, columns], torque[:, columns]
    torque = np.where(_changing(torque), torque, np.nan)  # what is constant was not measured
    for name, each, low, high in zip(robot.joint_names, q.T, robot.lower, robot.upper):
        finite = each[np.isfinite(each)]
        if finite.size and (finite.min() < low - BEYOND_RAD or finite.max() > high + BEYOND_RAD):
            raise RecordError(
                f"the position of {name!r} goes from {finite.min():.3g} to {finite.max():.3g} in {log.source!r}, its "
                f"limits are {low:.3g} and {high:.3g}; name the unit with --map; contact_id diagnose finds it"
            )
    v, a = (None if each is None else each[:, columns] for each in (log.velocity, log.acceleration))
    return pieces(log.time, q, v, a, torque), in_amperes


def _changes(channel: Array | None) -> bool:
    return channel is not None and bool(_changing(channel).any())


def _changing(channel: Array) -> NDArray[np.bool_]:
    """Columns of a channel (n, na) with two different finite numbers, (na,)."""
    finite = np.isfinite(channel)
    low = np.where(finite, channel, np.inf).min(axis=0, initial=np.inf)
    return np.asarray(np.where(finite, channel, -np.inf).max(axis=0, initial=-np.inf) > low)


def identify(
    log: Log, urdf: str, held_out: float = HELD_OUT, judge: Log | None = None
) -> Identified:
    """Fit a robot's description to a log, and evaluate the fit.

    Args:
        log: of a robot whose base is held and that touches nothing.
        urdf: as for `robot.resolve_urdf`.
        held_out: share of the time, at the end, that is not fitted.
        judge: another log for the evaluation, instead.

    Raises:
        RecordError: too few rows, channels missing, or an evaluation log with the same rows.
        RobotDescriptionError, UnknownJointError: see `robot_of`.
    """
    robot = robot_of(urdf, log.joints)
    samples, in_amperes = samples_of(robot, log)
    if judge is not None and _same_rows(log, judge):
        raise RecordError(
            f"{judge.source!r} for the evaluation has the same rows as the fitted log {log.source!r}; name another log"
        )
    if judge is None:
        fitted, held_out_samples = split(samples, held_out)
    else:
        fitted, (held_out_samples, _) = samples, samples_of(robot, judge)
    source, cutoff = chosen_filter(robot, fitted)
    motion, held_out_motion = (
        smoothed(each, cutoff, source).thinned(MOST_ROWS) if each else None
        for each in (fitted, held_out_samples)
    )
    assert motion is not None
    usual_shapes = [DriveShape(FRICTION_SPEED)] * robot.na
    stated = stated_parameters(robot).ravel()
    level = Rows.of(robot, motion, usual_shapes, stated).only(moving(motion))
    belief = belief_of(robot, motion, in_amperes)
    described = None
    if held_out_motion is not None:
        described = described_with_friction(
            robot, level, Rows.of(robot, held_out_motion, usual_shapes), belief
        )
    shapes = chosen_shapes(level, motion, belief)
    found, lean = leaning_fit(robot, motion, shapes, level, belief)
    judged = None
    if held_out_motion is not None and described is not None:
        judged = _judged(
            Rows.of(robot, held_out_motion, shapes), moving(held_out_motion), described, found
        )
    return Identified(
        robot,
        found,
        tuple(shapes),
        lean,
        source,
        cutoff,
        judged,
        _duration(fitted),
        _duration(held_out_samples),
        _missing(robot, log, samples),
        in_amperes,
        None if in_amperes else measured_constants(robot, log),
    )


def _missing(robot: RobotModel, log: Log, samples: Sequence[Samples]) -> Missing:
    measured = np.any([np.isfinite(each.torque).any(axis=0) for each in samples], axis=0)
    return Missing(
        tuple(name for name in log.joints if name not in robot.joint_names),
        tuple(name for name, has in zip(robot.joint_names, measured) if not has),
    )


def _same_rows(log: Log, other: Log) -> bool:
    """Whether two logs have the same positions at the same times, apart from the start of their clocks."""
    if log.position is None or other.position is None or len(log.time) != len(other.time):
        return False
    stamps = (log.time - log.time[0], other.time - other.time[0])
    if not np.allclose(*stamps, rtol=0.0, atol=1e-6, equal_nan=True):
        return False
    return np.array_equal(log.position, other.position, equal_nan=True)


def split(
    samples: Sequence[Samples], held_out: float
) -> tuple[tuple[Samples, ...], tuple[Samples, ...]]:
    """The parts before and after a time, so that the share ``held_out`` of the rows is after it.

    Raises:
        RecordError: too few rows on one side.
    """
    times = np.concatenate([each.time for each in samples])
    at = float(times[min(int((1.0 - held_out) * len(times)), len(times) - 1)])
    if held_out == 0.0:
        return tuple(samples), ()
    before = [each.part(-np.inf, at) for each in samples]
    after = [each.part(at, np.inf) for each in samples]
    enough = [[each for each in side if len(each.time) >= FEWEST_ROWS] for side in (before, after)]
    if not all(enough):
        raise RecordError(
            f"{held_out:g} of {len(times)} rows held out leaves less than {FEWEST_ROWS} rows on one side; choose another share"
        )
    return tuple(enough[0]), tuple(enough[1])


def chosen_filter(robot: RobotModel, samples: Sequence[Samples]) -> tuple[str, float]:
    """Channel and cut-off, Hz, that explain the torques best in an unconstrained fit."""
    usual = [DriveShape(FRICTION_SPEED)] * robot.na
    cutoffs = cutoffs_hz(samples)
    longest = max(each.time[-1] - each.time[0] for each in samples)
    cutoffs = [each for each in cutoffs if edge_s(each) < EDGES * longest] or cutoffs[:1]
    best, least = (POSITION, cutoffs[0]), np.inf
    for source in sources(samples):
        for cutoff in cutoffs:  # all are judged on the same rows
            motion = smoothed(samples, cutoff, source, edge_s(cutoffs[-1])).thinned(TRIED_ROWS)
            rows = Rows.of(robot, motion, usual).only(moving(motion))
            noise = _rms(rows.measured - explained_freely(rows))
            score = float(np.nanmean(np.log(np.maximum(noise, 1e-12))))
            if score < least:
                best, least = (source, cutoff), score
    return best


def chosen_shapes(rows: Rows, motion: Motion, belief: Belief) -> list[DriveShape]:
    """Shapes of the joints' drives: for each joint the one with the least cross-validated residual.

    Bodies and lean are those of a fit with the usual dry friction, as in ``rows``.
    """
    first = fit(rows, belief).parameters
    no_drives = dataclasses.replace(first, drives=0.0 * first.drives)
    residual = (rows.measured - rows.predicted(no_drives)) / first.gains
    sampled = slice(None, None, -(-len(motion) // TRIED_ROWS))
    found = []
    for j, candidates in enumerate(tried_shapes(motion)):
        channels, least = (motion.q[:, j], motion.v[:, j], motion.a[:, j]), np.inf
        best = candidates[0]
        for shape in candidates:
            table = np.column_stack([drive_regressor(*channels, shape), residual[:, j]])[sampled]
            score = _left_out(table, belief.drive_sd[j])
            if score < least * (BETTER if best is candidates[0] else 1.0):
                best, least = shape, score
        found.append(best)
    return found


def tried_shapes(motion: Motion) -> list[list[DriveShape]]:
    """Candidate shapes of each joint's drive, the usual one first."""
    result = []
    for q, fastest, rests in zip(motion.q.T, np.abs(motion.v).max(axis=0), still(motion)):
        low, high = float(q.min()), float(q.max())
        turns = [DriveShape(FRICTION_SPEED)]
        if not rests:
            turns += [DriveShape(share * FRICTION_SPEED) for share in SPEEDS]
            turns += [DriveShape(share * (high - low), True) for share in TRAVELS]
        result.append(
            [
                shape._replace(breakaway_rad_s=share * float(fastest), travel_rad=travel)
                for travel in ((None,) if rests else (None, (low, high)))
                for share in ((0.0,) if rests else BREAKAWAYS)
                for shape in turns
            ]
        )
    return result


def _left_out(table: Array, spread: Array) -> float:
    """Cross-validated rms of the last column of a table (n, m + 1), fitted to the first m on the other parts."""
    table = table[np.isfinite(table[:, -1])]
    if len(table) < PARTS * FEWEST_ROWS:
        return np.inf
    used = np.append(np.abs(table[:, :-1]).max(axis=0) > 0.0, True)
    low = np.where(np.arange(len(spread)) < OFFSET, 0.0, -np.inf)[used[:-1]]
    table = table[:, used] * np.append(spread, 1.0)[used]
    weight = np.sqrt(TRIED_INDEPENDENT / len(table)) / max(float(np.std(table[:, -1])), 1e-12)
    parts = [
        np.asarray(np.linalg.qr(weight * rows, mode="r"), dtype=np.float64)
        for rows in np.array_split(table, PARTS)
    ]
    belief, total = np.eye(len(low), len(low) + 1), 0.0
    for k, part in enumerate(parts):
        system = np.vstack([*parts[:k], *parts[k + 1 :], belief])
        weights = lsq_linear(system[:, :-1], system[:, -1], (low, np.inf), method="bvls").x
        total += float(np.sum((part @ np.append(weights, -1.0)) ** 2))
    return float(np.sqrt(total))


def leaning_fit(
    robot: RobotModel, motion: Motion, shapes: Sequence[DriveShape], level: Rows, belief: Belief
) -> tuple[Fit, Array]:
    """Fit roll and pitch of a fixed base, its lean (2,) rad, together with the model; returns (fit, lean).

    Torques are linear in bodies and drives, but lean multiplies the bodies: each of at most LEANS fits linearises about
    the lean and the bodies of the one before.

    Args:
        robot: its gravity becomes that of a base with this lean, g (lean, -1) to first order.
        shapes: of the joints' drives.
        level: the log's rows for a level base.
        belief: the prior, of everything but the lean.
    """
    down, which = robot.model.gravity.linear.copy(), moving(motion)
    size, lean = float(np.linalg.norm(down)), np.zeros(2)
    rows = dataclasses.replace(level, drives=drives_of(motion, shapes))
    for _ in range(LEANS):
        found = fit(rows, dataclasses.replace(belief, lean=lean))
        change = found.parameters.lean
        lean = lean + change
        robot.model.gravity.linear = down + size * np.append(lean, 0.0)
        if np.abs(change).max() < LEVEL * LEAN_RAD:
            break
        rows = Rows.of(robot, motion, shapes, found.parameters.bodies).only(which)
    parameters = dataclasses.replace(found.parameters, lean=np.zeros(2))
    return dataclasses.replace(found, parameters=parameters), lean


def _judged(rows: Rows, moves: NDArray[np.bool_], simple: Array, found: Fit) -> Judged:
    """Residuals on held-out rows; ``simple`` (n, na): predicted by the description with friction."""
    measured = rows.only(moves).measured
    predicted = rows.predicted(found.parameters)
    return Judged(
        _rms(measured - simple),
        _rms(measured - predicted),
        ratio_sd(measured - simple, measured - predicted),
        _spread(measured),
        _rms(rows.measured - predicted),
        _spread(rows.measured),
    )


def described_with_friction(robot: RobotModel, fitted: Rows, judged: Rows, belief: Belief) -> Array:
    """Torques (n, na) predicted by the description, with friction, offset and (for currents) constants fitted."""
    stated = stated_parameters(robot).ravel()
    found = np.full(judged.measured.shape, np.nan)
    for j in range(robot.na):
        measured = fitted.measured[:, j]
        valid = np.isfinite(measured)
        if not valid.any():
            continue
        links = [rows.links[:, j] @ stated for rows in (fitted, judged)]
        friction = [
            rows.drives[j, :, [DRY, FORWARDS, BACKWARDS, OFFSET]].T for rows in (fitted, judged)
        ]
        known = 0.0 if belief.in_amperes else links[0]
        if belief.in_amperes:
            friction = [np.column_stack(pair) for pair in zip(friction, links)]
        weights = np.linalg.lstsq(friction[0][valid], (measured - known)[valid], rcond=None)[0]
        found[:, j] = friction[1] @ weights + (0.0 if belief.in_amperes else links[1])
    return found


def measured_constants(robot: RobotModel, log: Log) -> Array | None:
    """N·m/A of each joint (na,), from a log with efforts and currents; NaN where it cannot be found."""
    if log.effort is None or not _changes(log.current):
        return None
    assert log.current is not None
    found = np.full(robot.na, np.nan)
    for j, name in enumerate(robot.joint_names):
        column = log.joints.index(name)
        pair = np.column_stack([log.current[:, column], log.effort[:, column]])
        pair = pair[np.isfinite(pair).all(axis=1)]
        if len(pair) > 20 and np.ptp(pair[:, 0]) > 0.0:
            found[j] = np.polyfit(pair[:, 0], pair[:, 1], 1)[0]
    return found


def ratio_sd(before: Array, after: Array) -> Array:
    """Standard deviation (na,) of the ratio of two rms, by a jackknife over parts of the rows (n, na).

    Residuals are correlated over many rows, so whole parts are left out; correlation beyond a part is not seen.
    """
    valid = np.isfinite(before) & np.isfinite(after)
    squares = [np.where(valid, each, 0.0) ** 2 for each in (before, after)]
    parts = [
        np.array([part.sum(axis=0) for part in np.array_split(each, BLOCKS)]) for each in squares
    ]
    remaining = [np.maximum(part.sum(axis=0) - part, 0.0) for part in parts]
    ratios = np.sqrt(remaining[1] / np.maximum(remaining[0], 1e-24))
    return np.sqrt((BLOCKS - 1) * np.var(ratios, axis=0))


def _spread(values: Array) -> Array:
    """Standard deviation of the finite ones of each column; NaN without any."""
    finite = np.isfinite(values)
    total, count = np.where(finite, values, 0.0).sum(axis=0), finite.sum(axis=0)
    return _rms(values - total / np.maximum(count, 1))


def _rms(residual: Array) -> Array:
    """Root of the mean square of each column; NaN where it has no finite value."""
    valid = np.isfinite(residual)
    squares = np.where(valid, residual, 0.0) ** 2
    count = valid.sum(axis=0)
    return np.sqrt(squares.sum(axis=0) / np.where(count > 0, count, np.nan))


def _duration(samples: Sequence[Samples]) -> float:
    return float(sum(each.time[-1] - each.time[0] for each in samples))
