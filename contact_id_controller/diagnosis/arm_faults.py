"""Hypotheses on faults of an arm's log or model, tested by its inverse dynamics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cached_property, partial

import numpy as np
import pinocchio as pin

from contact_id_controller.diagnosis.arm_judge import JointFit, Motion, judged
from contact_id_controller.diagnosis.hypotheses import Hypothesis, gear_ratio, search, zero_offset
from contact_id_controller.logs.log import Array
from contact_id_controller.robot import RobotModel

OFFSET_RAD, GEAR, TILT_RAD, MASS, CONSTANT = 0.03, 0.1, 0.06, 0.075, 0.15
"""Errors of good models and sensors: joint zero, gear ratio, direction of gravity, masses, a joint's torque constant."""

LOAD = 0.05
"""Load at the flange that is tolerated, as a share of the robot's mass."""

REACH_M, LOAD_ROUNDS = 0.1, 3
"""Usual distance of a load's centre from the end of the last link; number of reweighted fits of a load."""

CENTRE_M = 0.03
"""Error of good models' centres of mass; it also covers torques that depend on a joint's angle for other reasons."""

SEARCHED_TILT_RAD = 0.6
LARGEST_TILTS = (
    (np.pi, 0.0),
    (np.pi / 2, 0.0),
    (-np.pi / 2, 0.0),
    (0.0, np.pi / 2),
    (0.0, -np.pi / 2),
)
"""Roll and pitch, rad, of a base on a ceiling or a wall."""


@dataclasses.dataclass(frozen=True)
class Trials:
    """Cost of the fit with a changed motion, or with changed torques of the bodies (n, na).

    Attributes:
        fit: without a change.
    """

    motion: Motion
    robot: RobotModel
    fit: JointFit

    def cost(self, changed: Motion, torques: Array | None = None) -> float:
        """Cost of the fit with a change."""
        return judged(changed, self.robot, torques=torques).cost_instead_of(self.fit)

    @cached_property
    def _tolerant(self) -> JointFit:
        return judged(self.motion, self.robot, torques=self.fit.model_torque, centre_m=CENTRE_M)

    def confirmed(self, changed: Motion, torques: Array | None = None) -> float:
        """Gain of a change if centres of mass may be off by `CENTRE_M`, before and after."""
        after = judged(changed, self.robot, torques=torques, centre_m=CENTRE_M)
        return self._tolerant.cost - after.cost_instead_of(self._tolerant)


def hypotheses(
    motion: Motion, robot: RobotModel, joints: tuple[str, ...], fit: JointFit
) -> Iterator[Hypothesis]:
    """All hypotheses on one log."""
    trials = Trials(motion, robot, fit)
    yield from signs(trials, joints)
    yield from exchanges(trials, joints)
    yield from offsets_and_gears(trials, joints)
    free = judged(motion, robot, free_gains=True, torques=fit.model_torque)
    yield from torque_constants(trials, joints, free)
    yield from gravity(trials)
    yield from masses(trials, free.gain[free.clear])


def signs(trials: Trials, joints: tuple[str, ...]) -> Iterator[Hypothesis]:
    """A joint whose motion, effort, or both have the opposite sign."""
    motion = trials.motion
    channel = "current" if motion.currents else "effort"
    for k, joint in enumerate(joints):
        turn = np.ones(len(joints))
        turn[k] = -1.0
        moved = motion.moved_by(turn)
        pushed = dataclasses.replace(motion, effort=motion.effort * turn)
        both = dataclasses.replace(moved, effort=motion.effort * turn)
        for what, changed, channels in (
            ("position and velocity", moved, ("position", "velocity")),
            (channel, pushed, (channel,)),
            (f"position, velocity and {channel}", both, ("position", "velocity", channel)),
        ):
            yield Hypothesis(
                "sign of joints",
                trials.cost(changed),
                1.0,
                0.0,
                f"{what} of {joint}: sign opposite to the URDF's",
                f"invert the sign of {what} of {joint}",
                {"correct": {each: {joint: {"times": -1.0}} for each in channels}},
                partial(trials.confirmed, changed),
            )


def exchanges(trials: Trials, joints: tuple[str, ...]) -> Iterator[Hypothesis]:
    """Two joints whose columns are exchanged, in all channels, in the efforts or in the motion alone."""
    motion = trials.motion
    channel = "current" if motion.currents else "effort"
    for i in range(len(joints)):
        for j in range(i):
            order = list(range(len(joints)))
            order[i], order[j] = j, i
            names = tuple(joints[k] for k in order)
            moved, pushed = motion.moved_as(order), motion.effort[:, order]
            both = judged(moved, trials.robot).clear[[i, j]].all()
            columns = "the list of columns of {} in 'channels', not in 'joints'"
            for what, where, changed, fragment in (
                (
                    f"position, velocity and {channel}",
                    "'joints'",
                    dataclasses.replace(moved, effort=pushed),
                    {"joints": list(names)},
                ),
                (
                    f"the {channel}s",
                    columns.format(f"the {channel}s"),
                    dataclasses.replace(motion, effort=pushed),
                    {},
                ),
                ("position and velocity", columns.format("position and velocity"), moved, {}),
            )[: 3 if both else 2]:  # friction makes other motions correlate, too
                yield Hypothesis(
                    "order of joints",
                    trials.cost(changed),
                    1.0,
                    0.0,
                    f"{joints[j]} and {joints[i]} are exchanged in {what}",
                    f"exchange {joints[j]} and {joints[i]} in {where}",
                    fragment,
                    partial(trials.confirmed, changed),
                )


def offsets_and_gears(trials: Trials, joints: tuple[str, ...]) -> Iterator[Hypothesis]:
    """A joint with another zero, or another gear ratio."""
    motion, before = trials.motion, trials.fit.cost
    for k, joint in enumerate(joints):

        def moved(by: float, k: int = k) -> Motion:
            q = motion.q.copy()
            q[:, k] += by
            return dataclasses.replace(motion, q=q)

        def geared(log_ratio: float, k: int = k) -> Motion:
            times = np.ones(len(joints))
            times[k] = np.exp(log_ratio)
            return motion.moved_by(times)

        for kind, changed, tolerance in (
            (zero_offset, moved, OFFSET_RAD),
            (gear_ratio, geared, GEAR),
        ):
            yield kind(
                joint,
                _after(trials.cost, changed),
                before,
                tolerance,
                _after(trials.confirmed, changed),
            )


def _after(
    judge: Callable[[Motion], float], changed: Callable[[float], Motion]
) -> Callable[[float], float]:
    return lambda value: judge(changed(value))


def torque_constants(
    trials: Trials, joints: tuple[str, ...], free: JointFit
) -> Iterator[Hypothesis]:
    """A joint whose efforts are too large or small compared with those of the others.

    Args:
        free: fit with a gain for each joint.
    """
    motion, fit = trials.motion, trials.fit
    if motion.currents:
        return
    determined = free.clear
    for k, joint in enumerate(joints):
        others = determined & (np.arange(len(joints)) != k)
        if not determined[k] or not others.any():
            continue
        # Weighted by how well the model explains each joint.
        weight = (np.std(fit.model_torque, axis=0) / free.residual)[others]
        usual = float(np.average(free.gain[others], weights=weight))
        ratio = float(free.gain[k] / usual)
        factor = np.where(np.arange(len(joints)) == k, free.gain[k], 1.0)
        yield Hypothesis(
            "torque constants",
            fit.cost - float(np.log(fit.residual[k] / free.residual[k])),
            ratio - 1.0,
            CONSTANT,
            f"efforts of {joint} are {ratio:.2f} times the model's, relative to the other joints",
            f"divide the efforts of {joint} by {ratio:.2f}, or its torque constant",
            {"correct": {"effort": {joint: {"times": round(1.0 / ratio, 4)}}}},
            partial(trials.confirmed, motion, fit.model_torque * factor),
        )


def gravity(trials: Trials) -> Iterator[Hypothesis]:
    """A base that is mounted with another orientation than in the description."""
    motion = trials.motion

    def turned(roll: float, pitch: float) -> Motion:
        model = motion.model.copy()
        model.gravity.linear = pin.rpy.rpyToMatrix(roll, pitch, 0.0) @ motion.model.gravity.linear
        return dataclasses.replace(motion, model=model)

    def cost_of(roll: float, pitch: float) -> float:
        return trials.cost(turned(roll, pitch))

    found = [(cost_of(*turn), *turn) for turn in LARGEST_TILTS]
    roll, _ = search(lambda x: cost_of(x, 0.0), -SEARCHED_TILT_RAD, SEARCHED_TILT_RAD)
    pitch, least = search(lambda x: cost_of(roll, x), -SEARCHED_TILT_RAD, SEARCHED_TILT_RAD)
    found.append((least, roll, pitch))
    least, roll, pitch = min(found)
    yield Hypothesis(
        "gravity",
        least,
        float(np.hypot(roll, pitch)),
        TILT_RAD,
        f"the base is tilted by {np.degrees(roll):.0f} degrees about x and {np.degrees(pitch):.0f} about y",
        "state how the base is mounted in the URDF",
        confirmed=lambda: trials.confirmed(turned(roll, pitch)),
    )


def masses(trials: Trials, gains: Array) -> Iterator[Hypothesis]:
    """All masses too large or small, or a load at the flange that the URDF lacks.

    Args:
        gains: of the joints with a known gain. Their median must confirm it: one joint is no evidence on a mass.
    """
    motion, fit = trials.motion, trials.fit
    total = float(sum(body.mass for body in motion.model.inertias))
    if not motion.currents:
        value, least = search(
            lambda x: trials.cost(motion, np.exp(x) * fit.model_torque), -0.4, 0.4
        )
        ratio = float(np.exp(value))
        yield Hypothesis(
            "mass and payload",
            least,
            _nearer_none(ratio - 1.0, float(np.median(gains)) - 1.0 if gains.size else 0.0),
            MASS,
            f"the robot weighs {ratio:.3f} times what its URDF states ({ratio * total:.1f} instead of {total:.1f} kg), or all efforts are scaled by that",
            f"multiply the masses of the URDF by {ratio:.3f}, or check the scale of the efforts",
            confirmed=partial(trials.confirmed, motion, ratio * fit.model_torque),
        )
    mass, centre, torques = load(motion, trials.robot, fit)
    link = motion.model.names[_last(motion.model)]
    at = " ".join(f"{x:.2f}" for x in centre)
    yield Hypothesis(
        "mass and payload",
        trials.cost(motion, torques),
        mass / total,
        LOAD,
        f"{mass:+.2f} kg at the flange in addition to the URDF (centre of mass at {at} m in the frame of {link})",
        f"add a load of {mass:.2f} kg there to the last link",
        confirmed=partial(trials.confirmed, motion, torques),
    )


def load(motion: Motion, robot: RobotModel, fit: JointFit) -> tuple[float, Array, Array]:
    """Load that fits the efforts best: mass, kg, centre (3,), m in the last joint's frame, torques (n, na) with it.

    Torques are linear in mass and first moment; friction, offset and rotor are eliminated. Where the log does not
    determine the centre, its prior is the end of the links, with deviation `REACH_M`.
    """
    raw, last = _columns_of_a_point(motion, robot), _last(motion.model)
    ends = [
        frame.placement.translation
        for frame in motion.model.frames
        if frame.parentJoint == last
        and frame.type in (pin.FrameType.BODY, pin.FrameType.FIXED_JOINT)
    ]
    end = max([np.zeros(3), *ends], key=lambda each: float(np.linalg.norm(each)))
    columns = raw.copy()
    columns[:, :, 0] += columns[:, :, 1:] @ end
    na = columns.shape[1]
    for j in range(na):
        rest = np.column_stack(
            [np.ones(len(motion.v)), motion.a[:, j], motion.rubbing[:, j], motion.v[:, j]]
        )
        if motion.currents:
            rest = np.column_stack([fit.model_torque[:, j], rest])
        own = fit.gain[j] * columns[:, j]
        columns[:, j] = own - rest @ np.linalg.lstsq(rest, own, rcond=None)[0]
    residual, found, torques = fit.residual, np.array([1.0, 0.0, 0.0, 0.0]), fit.model_torque
    for _ in range(LOAD_ROUNDS):
        belief = np.diag([0.0, *[1.0 / (REACH_M * max(abs(found[0]), 1e-3))] * 3])
        system = np.vstack([*(columns[:, j] / residual[j] for j in range(na)), belief])
        wanted = np.concatenate(
            [*(fit.unexplained[:, j] / residual[j] for j in range(na)), np.zeros(4)]
        )
        found = np.linalg.lstsq(system, wanted, rcond=None)[0]
        torques = fit.model_torque + raw @ np.append(found[0], found[1:] + found[0] * end)
        residual = judged(motion, robot, torques=torques).residual
    return float(found[0]), end + found[1:] / (found[0] or 1.0), torques


def _last(model: pin.Model) -> int:
    """The joint at the end of the longest chain."""
    return max(range(1, model.njoints), key=lambda k: (len(model.supports[k]), k))


def _columns_of_a_point(motion: Motion, robot: RobotModel) -> Array:
    """Torques (n, na, 4) of 1 kg at the last joint's origin, and of a first moment of 1 kg m along each axis."""
    model, k = motion.model, _last(motion.model)
    data, configuration, v, a = (
        model.createData(),
        robot.neutral(),
        np.zeros(model.nv),
        np.zeros(model.nv),
    )
    found = np.zeros((*motion.q.shape, 4))
    for row, q in enumerate(motion.q):
        robot.put_joints(configuration, q)
        v[robot.actuated], a[robot.actuated] = motion.v[row], motion.a[row]
        table = pin.computeJointTorqueRegressor(model, data, configuration, v, a)
        found[row] = table[robot.actuated, 10 * (k - 1) : 10 * (k - 1) + 4]
    return found


def _nearer_none(first: float, second: float) -> float:
    """The smaller of two values in size; 0 if they have different signs."""
    return min(first, second, key=abs) if first * second > 0.0 else 0.0
