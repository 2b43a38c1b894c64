"""Hypotheses on faults of a walking robot's log, tested by its gyroscope and the standing legs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.even_samples import EvenSamples
from contact_id_controller.diagnosis.hypotheses import Hypothesis, gear_ratio, search, zero_offset
from contact_id_controller.diagnosis.leg_judge import (
    Contacts,
    Stance,
    contacts_of,
    cost,
    residuals,
    size,
)
from contact_id_controller.diagnosis.robot_of_log import RobotOfLog
from contact_id_controller.logs.log import Array

OFFSET_RAD, GEAR, TURN_RAD, DELAY_PERIODS, RADIUS_M = 0.05, 0.15, 0.17, 1.0, 0.01
DELAY_S = 0.006
MOST_FEET = 4
"""Largest number of feet for which all orders are tried."""

SEARCHED_DELAY_S, SEARCHED_RADIUS_M = 0.08, 0.08
DEG = np.pi / 180.0


def hypotheses(case: Case, stance: Stance, of: RobotOfLog) -> Iterator[Hypothesis]:
    """All hypotheses on a log."""
    contacts = contacts_of(stance, of)
    if of.feet_named and len(of.feet) <= MOST_FEET:
        least, feet = best_feet(stance, of)
        yield Hypothesis(
            "order of feet",
            least,
            float(feet != of.feet),
            0.0,
            "the sensors belong to other feet: "
            + ", ".join(f"{log} is {frame}" for log, frame in zip(case.samples.feet, feet)),
            "rename the forces in --map",
        )
    yield from mounting(case, stance, of, contacts)
    yield delay(case.samples, stance, contacts)
    moving = _in_legs(of)
    yield from signs_and_exchanges(stance, of, case.log.joints, moving)
    yield from offsets_and_gears(stance, of, case.log.joints, moving)
    if not of.soles and of.settings is not None:
        yield radius(stance, of)


def best_feet(stance: Stance, of: RobotOfLog) -> tuple[float, tuple[str, ...]]:
    """The assignment of frames to the log's feet that agrees best with IMU and legs, with its cost."""
    return min(
        (cost(stance, dataclasses.replace(of, feet=feet)), feet)
        for feet in itertools.permutations(of.feet)
    )


def _in_legs(of: RobotOfLog) -> list[int]:
    """Columns of joints between the base and a foot."""
    model = of.robot.model
    parents = [model.frames[of.robot.frame_id(name)].parentJoint for name in of.feet]
    moves: list[bool] = np.any(of.robot.supports[parents], axis=0).tolist()
    return [k for k, column in enumerate(of.robot.actuated.tolist()) if moves[column]]


def turns() -> list[Array]:
    """The 24 rotations that map axes onto axes."""
    found = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            turn = np.zeros((3, 3))
            turn[range(3), order] = signs
            if np.linalg.det(turn) > 0.0:
                found.append(turn)
    return found


def mounting(
    case: Case, stance: Stance, of: RobotOfLog, contacts: Contacts
) -> Iterator[Hypothesis]:
    """An IMU with another orientation than in the description; a gyroscope in deg/s, or with the opposite sign."""

    def cost_of(rotation: Array, gyro: Array = stance.gyro) -> float:
        return float(np.log(size(residuals(contacts, gyro, rotation))))

    found = min(((cost_of(stance.rotation @ turn), k) for k, turn in enumerate(turns())))
    best = turns()[found[1]]
    for axis in np.eye(3)[[0, 1, 2, 0, 1, 2]]:  # refined about each axis in turn
        angle, _ = search(lambda x: cost_of(stance.rotation @ pin.exp3(x * axis) @ best), -0.5, 0.5)
        best = pin.exp3(angle * axis) @ best
    turned = float(np.linalg.norm(pin.log3(best)))
    angles = np.degrees(pin.rpy.matrixToRpy(best))
    yield Hypothesis(
        "IMU mounting",
        cost_of(stance.rotation @ best),
        value=turned,
        tolerance=TURN_RAD,
        text=f"the IMU is rotated by {np.degrees(turned):.0f} degrees relative to the description (roll {angles[0]:.0f}, pitch {angles[1]:.0f}, yaw {angles[2]:.0f})",
        change="rotate its measurements, or its frame in the URDF",
        fragment={"rotation_rpy": [round(float(x), 4) for x in pin.rpy.matrixToRpy(best)]},
    )
    # A map's unit is a name or the factor itself.
    for what, factor, unit in (("degrees", DEG, "deg/s"), ("the other direction", -1.0, -1.0)):
        yield Hypothesis(
            "gyroscope",
            cost_of(stance.rotation, factor * stance.gyro),
            value=1.0,  # yes or no: without a tolerance
            tolerance=0.0,
            text=f"the gyroscope measures in {what}",
            change="set the unit of imu.angular_velocity in --map",
            fragment={"units": {"imu.angular_velocity": unit}},
        )


def delay(samples: EvenSamples, stance: Stance, contacts: Contacts) -> Hypothesis:
    """An IMU whose stamps are late or early relative to those of the joints."""
    if samples.gyro is None:
        raise ValueError("a stance has a gyroscope")
    gyro, index = samples.gyro, np.arange(len(samples.time), dtype=float)

    def cost_of(late_s: float) -> float:
        at = stance.rows + late_s / samples.period
        shifted = np.column_stack([np.interp(at, index, column) for column in gyro.T])
        return float(np.log(size(residuals(contacts, shifted, stance.rotation))))

    grid = np.linspace(-SEARCHED_DELAY_S, SEARCHED_DELAY_S, 33)
    costs = [cost_of(x) for x in grid]
    middle = grid[int(np.argmin(costs))]
    late, least = search(cost_of, middle - 0.006, middle + 0.006)
    return Hypothesis(
        "delay of the IMU",
        least,
        late,
        max(DELAY_S, DELAY_PERIODS * samples.period),
        f"the IMU's stamps are {1e3 * late:.0f} ms {'late' if late > 0 else 'early'} relative to the joints'",
        "stamp both where they are measured, or correct the delay in --map",
        {"delay_s": {"imu": round(late, 4)}},
    )


def signs_and_exchanges(
    stance: Stance, of: RobotOfLog, joints: tuple[str, ...], moving: list[int]
) -> Iterator[Hypothesis]:
    """Joints of the legs with the opposite sign, or with exchanged columns."""
    for k in moving:
        turn = np.ones(len(joints))
        turn[k] = -1.0
        channels = ("position", "velocity")
        yield Hypothesis(
            "sign of joints",
            cost(dataclasses.replace(stance, q=stance.q * turn, v=stance.v * turn), of),
            1.0,
            0.0,
            f"{joints[k]} has the opposite direction to the URDF",
            f"invert the sign of position, velocity and effort of {joints[k]}",
            {"correct": {each: {joints[k]: {"times": -1.0}} for each in channels}},
        )
    for i, j in itertools.combinations(moving, 2):
        order = list(range(len(joints)))
        order[i], order[j] = j, i
        yield Hypothesis(
            "order of joints",
            cost(dataclasses.replace(stance, q=stance.q[:, order], v=stance.v[:, order]), of),
            1.0,
            0.0,
            f"{joints[i]} and {joints[j]} are exchanged",
            f"exchange {joints[i]} and {joints[j]} in 'joints'",
            {"joints": [joints[k] for k in order]},
        )


def offsets_and_gears(
    stance: Stance, of: RobotOfLog, joints: tuple[str, ...], moving: list[int]
) -> Iterator[Hypothesis]:
    """Joints of the legs with another zero or gear ratio."""
    before = cost(stance, of)
    for k in moving:

        def moved(by: float, k: int = k) -> float:
            q = stance.q.copy()
            q[:, k] += by
            return cost(dataclasses.replace(stance, q=q), of)

        def geared(log_ratio: float, k: int = k) -> float:
            q, v = stance.q.copy(), stance.v.copy()
            q[:, k] *= np.exp(log_ratio)
            v[:, k] *= np.exp(log_ratio)
            return cost(dataclasses.replace(stance, q=q, v=v), of)

        yield zero_offset(joints[k], moved, before, OFFSET_RAD)
        yield gear_ratio(joints[k], geared, before, GEAR)


def radius(stance: Stance, of: RobotOfLog) -> Hypothesis:
    """Round feet with another radius: their lowest points are at rest, not their centres."""
    value, least = search(
        lambda x: cost(dataclasses.replace(stance, radius_m=x), of), 0.0, SEARCHED_RADIUS_M
    )
    return Hypothesis(
        "foot radius",
        least,
        value - of.radius_m,
        RADIUS_M,
        f"feet roll as with a radius of {1e3 * value:.0f} instead of {1e3 * of.radius_m:.0f} mm",
        f"set contact_radii_m to [{value:.3f}]",
    )
