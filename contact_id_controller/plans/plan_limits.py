"""Limits of position, speed and acceleration of plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.goals import FootPath, TaskGoals
from contact_id_controller.plans.interpolation import doubtful, largest_rates, range_between
from contact_id_controller.plans.trajectories import JointTrajectory

SHORTEST_WAY_S = 0.001
"""The way to a plan's first point counts as no shorter: less is a step, whatever its time."""


RATES, HIGHEST_M = (0.3, 50.0), 100.0
"""Of goals: rate of the divergent component, 1/s, that of heights from 4 mm to 100 m; the largest height, m."""

STIFFEST = 1e4
"""Stiffness of a posture, 1/s^2: a hundredth of a second."""


class PlanLimits(NamedTuple):
    """Limits of plans.

    lower, upper, speed (na,): of the joints, rad, rad/s (m, m/s); acceleration: of any joint,
    rad/s^2.  base_jump, base_speed, base_acceleration: of the base, each linear (m) and angular (rad).
    farthest: of a base or foot from the origin, m.
    """

    lower: np.ndarray
    upper: np.ndarray
    speed: np.ndarray
    acceleration: float
    base_jump: tuple[float, float]
    base_speed: tuple[float, float]
    base_acceleration: tuple[float, float]
    farthest: float


def check_joints(joints: JointTrajectory, limits: PlanLimits) -> None:
    """Raise if joints, in the robot's order, exceed limits of position, speed or acceleration.

    Raises:
        TrajectoryError: naming the joint, its value and the limit.
    """
    _judge(joints, limits, _judge_joints)


def check_base(base: BaseTrajectory, limits: PlanLimits) -> None:
    """Raise if a base exceeds limits of speed or acceleration.

    Raises:
        TrajectoryError: naming the value and its limit.
    """
    _judge(base, limits, _judge_base)


def check_goals(goals: TaskGoals, limits: PlanLimits) -> None:
    """Raise for goals, in the robot's order, with a posture or a foot path beyond limits, or implausible numbers.

    A foot, or another frame, may be as fast as a base.

    Raises:
        TrajectoryError: naming the joint, foot or number, the value and the limit.
    """
    names, positions, stiffness = goals.posture
    places = np.asarray(positions)
    _within("position", names, places, places, limits.lower, limits.upper)
    numbers = {
        "rate": (goals.com.rate, *RATES),
        **_heights(goals, limits),
        "yaw rate": (goals.heading.rate, -limits.base_speed[1], limits.base_speed[1]),
        "place": (
            max(np.abs(goals.com.pressure).max(), np.abs(goals.com.divergent).max()),
            0.0,
            limits.farthest,
        ),
        "stiffness": (0.0 if stiffness is None else np.max(stiffness, initial=0.0), 0.0, STIFFEST),
    }
    for name, (value, least, most) in numbers.items():
        if not least <= value <= most:
            raise TrajectoryError(
                f"{name} of the goals is {value:.3g}, must lie in [{least:g}, {most:g}]"
            )
    for frame, path in goals.feet.items():
        _judge_foot(f"foot {frame!r}", path, limits)
    for frame, goal in goals.frames.items():
        if goal.path is not None:
            _judge_foot(f"frame {frame!r}", goal.path, limits)


def _heights(goals: TaskGoals, limits: PlanLimits) -> dict[str, tuple[float, float, float]]:
    """Name -> value and limits of the height of the centre of mass, m, from the start to the end, and of its rates."""
    rate, acceleration = np.asarray(goals.com.climb).tolist()
    times = [0.0, goals.lasts_s]
    if rate * acceleration < 0.0:  # where it turns
        times.append(min(-rate / acceleration, goals.lasts_s))
    heights = [goals.com.height_m + t * (rate + 0.5 * t * acceleration) for t in times]
    fastest = max(abs(rate), abs(rate + goals.lasts_s * acceleration))
    return {
        "acceleration of the height": (abs(acceleration), 0.0, limits.base_acceleration[0]),
        "climb": (fastest, 0.0, limits.base_speed[0]),
        "lowest height_m": (min(heights), 0.0, HIGHEST_M),
        "height_m": (max(heights), 0.0, HIGHEST_M),
    }


def _judge_foot(what: str, path: FootPath, limits: PlanLimits) -> None:
    """Raise TrajectoryError if the path of a foot or frame exceeds limits of distance, speed or acceleration."""
    away = float(np.abs(path.points[:, 0]).max())
    if not away <= limits.farthest:
        raise TrajectoryError(
            f"{what} would go to {away:.3g} m or rad, must be at most {limits.farthest:g}"
        )
    for k, (kind, rates) in enumerate(path.largest_rates().items()):
        unit = ("m", "rad")[k]
        most = limits.base_speed[k], limits.base_acceleration[k]
        for value, limit, rate, per in zip(rates, most, ("speed", "acceleration"), ("s", "s^2")):
            if not value <= limit:
                raise TrajectoryError(
                    f"{what} would reach {kind} {rate} of {value:.3g} {unit}/{per}, "
                    f"must be at most {limit:g}"
                )


def _judge(plan: Any, limits: PlanLimits, judge: Callable[[Any, PlanLimits], None]) -> None:
    """Apply ``judge`` and cache its verdict for these limits, since a long plan takes long."""
    if plan.judged[0] is not limits:
        refusal = None
        try:
            judge(plan, limits)
        except TrajectoryError as error:
            refusal = error
        plan.judged = limits, refusal
    if plan.judged[1] is not None:
        raise plan.judged[1]


def _judge_joints(joints: JointTrajectory, limits: PlanLimits) -> None:
    """Raise TrajectoryError if a joint exceeds position, speed or acceleration anywhere between the points."""
    names, steps_s, segments = joints.names, np.diff(joints.times_s), joints.segments
    positions = joints.positions
    if len(segments):
        chosen = doubtful(
            steps_s, segments, (limits.lower, limits.upper, limits.speed, limits.acceleration)
        )
        if not chosen.any():
            return
        steps_s, segments = steps_s[chosen], segments[chosen]
    lowest, highest = range_between(positions, segments)
    _within("position", names, lowest, highest, limits.lower, limits.upper)
    speed, acceleration = largest_rates(steps_s, segments)
    _below("speed", names, speed, limits.speed)
    _below("acceleration", names, acceleration, np.full(len(names), limits.acceleration))


def check_way(
    names: Sequence[str], before: np.ndarray, first: np.ndarray, lead_s: float, limits: PlanLimits
) -> None:
    """Raise if a first point (na,) is too far from ``before`` (na,) for the time until it, ``lead_s``.

    Raises:
        TrajectoryError: naming the joint, the speed and the limit.
    """
    speed = np.abs(first - before) / max(lead_s, SHORTEST_WAY_S)
    _below("speed on the way to the first point", names, speed, limits.speed)


def _judge_base(base: BaseTrajectory, limits: PlanLimits) -> None:
    """Raise TrajectoryError if the base exceeds speed or acceleration, linear or angular, between the points."""
    speed, acceleration = largest_rates(np.diff(base.times_s), base.segments, vectors=True)
    for what, values, most, units in (
        ("speed", speed, limits.base_speed, ("m/s", "rad/s")),
        ("acceleration", acceleration, limits.base_acceleration, ("m/s^2", "rad/s^2")),
    ):
        for kind, value, limit, unit in zip(("linear", "angular"), values, most, units):
            if not value <= limit:
                raise TrajectoryError(
                    f"the base would reach a {kind} {what} of {value:.3g} {unit}, "
                    f"must be at most {limit:g}"
                )


def check_base_jump(distance: float, angle: float, limits: PlanLimits) -> None:
    """Raise if a base begins too far, m and rad, from where the robot is.

    Raises:
        TrajectoryError: naming the distance and the limit.
    """
    if not (distance <= limits.base_jump[0] and angle <= limits.base_jump[1]):
        raise TrajectoryError(
            f"the base would jump by {distance:.3g} m and {angle:.3g} rad where its plan begins, "
            f"must be at most {limits.base_jump[0]:g} m and {limits.base_jump[1]:g} rad"
        )


def _within(
    what: str,
    names: Sequence[str],
    lowest: np.ndarray,
    highest: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> None:
    """Raise TrajectoryError for the first joint whose lowest or highest value is outside [lower, upper]."""
    bad = np.flatnonzero(~((lowest >= lower) & (highest <= upper)))
    if bad.size:
        k = int(bad[0])
        value = highest[k] if not highest[k] <= upper[k] else lowest[k]
        raise TrajectoryError(
            f"joint {names[k]!r} would reach {what} {value:.6g}, "
            f"must stay within [{lower[k]:.6g}, {upper[k]:.6g}]"
        )


def _below(what: str, names: Sequence[str], values: np.ndarray, limits: np.ndarray) -> None:
    bad = np.flatnonzero(~(values <= limits))
    if bad.size:
        k = int(bad[np.argmax(np.nan_to_num(values[bad] / limits[bad], nan=np.inf))])
        raise TrajectoryError(
            f"joint {names[k]!r} would reach {what} {values[k]:.6g}, must be at most {limits[k]:.6g}"
        )
