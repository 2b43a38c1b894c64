"""What may be wrong with the log or the model of an arm, by its inverse dynamics."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.diagnosis.arm_judge import JointFit, Motion, judged
from contact_id_controller.diagnosis.hypotheses import Hypothesis, gear_ratio, search, zero_offset
from contact_id_controller.logs.log import Array
from contact_id_controller.robot import RobotModel

OFFSET_RAD, GEAR, TILT_RAD, MASS, CONSTANT = 0.03, 0.1, 0.06, 0.075, 0.15
"""What good models and sensors are off by: zero, ratio, gravity's direction, masses, one joint's torque constant."""

LOAD = 0.05
"""Part of the robot's mass that a load at the flange may be without being noticed."""

CLEAR = 8.0
"""So many times the residual a joint's model torque must vary for its gain to be known."""

SEARCHED_TILT_RAD = 0.6
LARGEST_TILTS = (
    (np.pi, 0.0),
    (np.pi / 2, 0.0),
    (-np.pi / 2, 0.0),
    (0.0, np.pi / 2),
    (0.0, -np.pi / 2),
)
"""Roll and pitch, rad, of a base that hangs, or is on a wall."""


def hypotheses(
    motion: Motion, robot: RobotModel, joints: tuple[str, ...], fit: JointFit
) -> Iterator[Hypothesis]:
    """Everything that is put to the test, of one log."""
    yield from signs(motion, robot, joints)
    yield from exchanges(motion, robot, joints)
    yield from offsets_and_gears(motion, robot, joints, fit)
    free = judged(motion, robot, free_gains=True)
    # Of a joint that mostly rubs, or whose model is wrong, the gain tells nothing.
    clear = free.gain * np.std(fit.model_torque, axis=0) > CLEAR * free.residual
    yield from torque_constants(motion, joints, fit, free, clear)
    yield from gravity(motion, robot)
    yield from masses(motion, robot, free.gain[clear])


def signs(motion: Motion, robot: RobotModel, joints: tuple[str, ...]) -> Iterator[Hypothesis]:
    """A joint whose motion, effort, or both count the other way."""
    channel = "current" if motion.currents else "effort"
    for k, joint in enumerate(joints):
        turn = np.ones(len(joints))
        turn[k] = -1.0
        moved = dataclasses.replace(motion, q=motion.q * turn, v=motion.v * turn, a=motion.a * turn)
        pushed = dataclasses.replace(motion, effort=motion.effort * turn)
        both = dataclasses.replace(moved, effort=motion.effort * turn)
        for what, changed, channels in (
            ("position and velocity", moved, ("position", "velocity")),
            (channel, pushed, (channel,)),
            (f"position, velocity and {channel}", both, ("position", "velocity", channel)),
        ):
            yield Hypothesis(
                "sign of joints",
                judged(changed, robot).cost,
                1.0,
                0.0,
                f"{what} of {joint}: the other sign than in the URDF",
                f"turn the sign of {what} of {joint}",
                {"correct": {each: {joint: {"times": -1.0}} for each in channels}},
            )


def exchanges(motion: Motion, robot: RobotModel, joints: tuple[str, ...]) -> Iterator[Hypothesis]:
    """Two joints whose columns are exchanged, in all channels or in the efforts alone."""
    for i in range(len(joints)):
        for j in range(i):
            order = list(range(len(joints)))
            order[i], order[j] = j, i
            names = tuple(joints[k] for k in order)
            efforts = motion.effort[:, order]
            whole = dataclasses.replace(
                motion,
                q=motion.q[:, order],
                v=motion.v[:, order],
                a=motion.a[:, order],
                effort=efforts,
            )
            for what, where, changed, fragment in (
                ("all channels", "'joints'", whole, {"joints": list(names)}),
                (
                    "the efforts",
                    "the list of columns of the efforts in 'channels', not in 'joints'",
                    dataclasses.replace(motion, effort=efforts),
                    {},
                ),
            ):
                yield Hypothesis(
                    "order of joints",
                    judged(changed, robot).cost,
                    1.0,
                    0.0,
                    f"{joints[j]} and {joints[i]} are exchanged in {what}",
                    f"exchange {joints[j]} and {joints[i]} in {where}",
                    fragment,
                )


def offsets_and_gears(
    motion: Motion, robot: RobotModel, joints: tuple[str, ...], fit: JointFit
) -> Iterator[Hypothesis]:
    """A joint whose zero, or whose gear ratio, is another one."""
    for k, joint in enumerate(joints):

        def moved(by: float, k: int = k) -> float:
            q = motion.q.copy()
            q[:, k] += by
            return judged(dataclasses.replace(motion, q=q), robot).cost

        yield zero_offset(joint, moved, fit.cost, OFFSET_RAD)

        def geared(log_ratio: float, k: int = k) -> float:
            q, v, a = motion.q.copy(), motion.v.copy(), motion.a.copy()
            for each in (q, v, a):
                each[:, k] *= np.exp(log_ratio)
            return judged(dataclasses.replace(motion, q=q, v=v, a=a), robot).cost

        yield gear_ratio(joint, geared, fit.cost, GEAR)


def torque_constants(
    motion: Motion, joints: tuple[str, ...], fit: JointFit, free: JointFit, clear: NDArray[np.bool_]
) -> Iterator[Hypothesis]:
    """A joint whose efforts are too large or small, measured by those of the others.

    Args:
        fit, free: as the model says, and with a gain for each joint.  clear: (na,) whose gain is known.
    """
    if motion.currents:
        return
    for k, joint in enumerate(joints):
        others = clear & (np.arange(len(joints)) != k)
        if not clear[k] or not others.any():
            continue
        # Those count more that the model explains better.
        weight = (np.std(fit.model_torque, axis=0) / free.residual)[others]
        usual = float(np.average(free.gain[others], weights=weight))
        ratio = float(free.gain[k] / usual)
        yield Hypothesis(
            "torque constants",
            fit.cost - float(np.log(fit.residual[k] / free.residual[k])),
            ratio - 1.0,
            CONSTANT,
            f"efforts of {joint} are {ratio:.2f} of what the model and the other joints say",
            f"divide the efforts of {joint} by {ratio:.2f}, or its torque constant",
            {"correct": {"effort": {joint: {"times": round(1.0 / ratio, 4)}}}},
        )


def gravity(motion: Motion, robot: RobotModel) -> Iterator[Hypothesis]:
    """A base that is mounted otherwise than the description says."""

    def cost_of(roll: float, pitch: float) -> float:
        model = motion.model.copy()
        model.gravity.linear = pin.rpy.rpyToMatrix(roll, pitch, 0.0) @ motion.model.gravity.linear
        return judged(dataclasses.replace(motion, model=model), robot).cost

    found = [(cost_of(*turn), *turn) for turn in LARGEST_TILTS]
    roll, _ = search(lambda x: cost_of(x, 0.0), -SEARCHED_TILT_RAD, SEARCHED_TILT_RAD)
    pitch, cost = search(lambda x: cost_of(roll, x), -SEARCHED_TILT_RAD, SEARCHED_TILT_RAD)
    found.append((cost, roll, pitch))
    cost, roll, pitch = min(found)
    yield Hypothesis(
        "gravity",
        cost,
        float(np.hypot(roll, pitch)),
        TILT_RAD,
        f"the base is tilted by {np.degrees(roll):.0f} degrees about x and {np.degrees(pitch):.0f} about y",
        "state how the base is mounted in the URDF",
    )


def masses(motion: Motion, robot: RobotModel, gains: Array) -> Iterator[Hypothesis]:
    """All masses too large or small, or a load at the flange that the URDF lacks.

    Args:
        gains: of the joints whose gain is known. The middle one must say the same: what one joint says is no mass.
    """

    def scaled(log_ratio: float) -> float:
        model = motion.model.copy()
        for k in range(1, model.njoints):
            model.inertias[k] = _times(motion.model.inertias[k], float(np.exp(log_ratio)))
        return judged(dataclasses.replace(motion, model=model), robot).cost

    def loaded(mass: float) -> float:
        model = motion.model.copy()
        last = model.njoints - 1
        load = pin.Inertia(abs(mass), np.zeros(3), np.zeros((3, 3)))
        own = model.inertias[last]
        if mass < 0.0:  # Pinocchio refuses what weighs nothing
            own = _times(own, max(1e-3, 1.0 + mass / max(own.mass, 1e-6)))
            model.inertias[last] = own
            _lighten(model, last, mass + (motion.model.inertias[last].mass - own.mass))
        else:
            model.inertias[last] = own + load
        return judged(dataclasses.replace(motion, model=model), robot).cost

    total = float(sum(body.mass for body in motion.model.inertias))
    if not motion.currents:
        value, cost = search(scaled, -0.4, 0.4)
        ratio = float(np.exp(value))
        yield Hypothesis(
            "mass and payload",
            cost,
            _nearer_none(ratio - 1.0, float(np.median(gains)) - 1.0 if gains.size else 0.0),
            MASS,
            f"the robot weighs {ratio:.3f} of its URDF ({ratio * total:.1f} instead of {total:.1f} kg), or efforts are scaled so",
            f"multiply the masses of the URDF by {ratio:.3f}, or check the scale of the efforts",
        )
    value, cost = search(loaded, -0.2 * total, 0.3 * total)
    yield Hypothesis(
        "mass and payload",
        cost,
        value / total,
        LOAD,
        f"{value:+.2f} kg at the flange beside the URDF",
        f"add a load of {value:.2f} kg to the last link",
    )


def _times(body: pin.Inertia, factor: float) -> pin.Inertia:
    return pin.Inertia(body.mass * factor, body.lever, np.array(body.inertia) * factor)


def _lighten(model: pin.Model, joint: int, mass: float) -> None:
    """Take what the last link is too light for from those before it."""
    while mass < 0.0 and joint > 1:
        joint -= 1
        body = model.inertias[joint]
        taken = min(-mass, 0.9 * body.mass)
        model.inertias[joint] = _times(body, 1.0 - taken / body.mass)
        mass += taken


def _nearer_none(first: float, second: float) -> float:
    """The smaller of two values; none where they have different signs."""
    return min(first, second, key=abs) if first * second > 0.0 else 0.0
