"""Start of the next plan: where the robot stands, or on the plan being followed.

A plan being followed can be left while all feet are in contact: the next one then begins with its configuration and
velocity there, so that no reference jumps. A robot that follows no plan must be at rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import StateError
from contact_id_controller.planning.kinodynamic.alternation import MotionPlan
from contact_id_controller.planning.kinodynamic.between_knots import trajectories
from contact_id_controller.planning.kinodynamic.contact_plan import Foothold, Sole
from contact_id_controller.planning.kinodynamic.placement import is_flat
from contact_id_controller.robot import RobotModel

LEAST_SHARE = 0.5
"""Least remaining share of a phase with all feet in contact in which the next plan may take over."""

AT_REST_M_S = 0.05
"""Speed of the CoM above which a robot is not at rest."""


class PlanStart(NamedTuple):
    """Start of a plan.

    Attributes:
        q: (nq,).  v: (nv,).
        stance: footholds of all feet, in the order of the soles.
        time_s: at which the plan being followed is there; None: the robot is there, at rest.
    """

    q: np.ndarray
    v: np.ndarray
    stance: tuple[Foothold, ...]
    time_s: float | None = None


def standing_here(
    robot: RobotModel,
    soles: Sequence[Sole],
    q: np.ndarray,
    v: np.ndarray,
    friction_coefficient: float,
) -> PlanStart:
    """Start at rest at the measured configuration, on level ground; flat feet keep their rotation.

    Raises:
        StateError: the robot is not at rest.
    """
    model, data = robot.model, robot.data
    pin.centerOfMass(model, data, q, v)
    speed = float(np.linalg.norm(data.vcom[0]))
    if not speed <= AT_REST_M_S:
        raise StateError(
            f"the robot moves with {speed:.2g} m/s: a plan begins while it stands (at most "
            f"{AT_REST_M_S:g} m/s), or continues the plan that it follows"
        )
    pin.updateFramePlacements(model, data)
    stance = []
    for sole in soles:
        pose = data.oMf[robot.frame_id(sole.frame)]
        turned = pose.rotation.copy() if is_flat(sole) else np.eye(3)
        place = pose.translation.copy()
        stance.append(Foothold(sole.frame, place, turned, friction_coefficient))
    return PlanStart(np.array(q), np.zeros(robot.nv), tuple(stance))


def while_following(plan: MotionPlan, start_s: float, earliest_s: float) -> PlanStart:
    """Start on a plan being followed, at its first moment from ``earliest_s`` on with all feet in contact.

    Args:
        plan: being followed.
        start_s: when it began.
        earliest_s: on the same clock; after the plan's end the start is at its last configuration.
    """
    fine, contact_plan = plan.fine, plan.contact_plan
    times, ends = start_s + fine.times_s, contact_plan.boundaries_s
    if earliest_s >= times[-1]:
        return PlanStart(
            fine.configurations[-1], np.zeros_like(fine.velocities[-1]), _stance(plan, -1)
        )
    for number, phase in enumerate(contact_plan.phases):
        if len(phase.feet) < len(contact_plan.soles):
            continue
        last_s = ends[number + 1] - LEAST_SHARE * phase.duration_s
        inside = (times >= max(earliest_s, start_s + ends[number])) & (times <= start_s + last_s)
        if inside.any():
            point = int(np.argmax(inside))
            return PlanStart(
                fine.configurations[point],
                fine.velocities[point],
                _stance(plan, number),
                float(times[point]),
            )
    return while_following(plan, start_s, float(times[-1]))


def gone_over(robot: RobotModel, before: MotionPlan, time_s: float, plan: MotionPlan) -> MotionPlan:
    """Blend from the plan before into ``plan`` while all feet are in contact in both.

    They agree in position and velocity at the start of ``plan``, but not in acceleration. Blending keeps feet in place,
    and forces, between those of both plans, within friction.

    Args:
        robot: of both.
        before: the plan that is replaced.
        time_s: of that plan, at which ``plan`` begins.
        plan: the next one.
    """
    first = int(np.argmin(np.abs(before.fine.times_s - time_s)))
    ends = before.contact_plan.boundaries_s
    left_s = ends[np.searchsorted(ends, time_s + 1e-9)] - time_s
    over_s = min(left_s, plan.contact_plan.phases[0].duration_s)
    times = plan.fine.times_s
    points = int(np.count_nonzero(times < over_s - 1e-9))
    old = slice(first, first + points)
    model, fine = robot.model, plan.fine
    share, rate = _fading(times[:points] / over_s)
    q, v = fine.configurations.copy(), fine.velocities.copy()
    for row, (q_old, v_old) in enumerate(
        zip(before.fine.configurations[old], before.fine.velocities[old])
    ):
        away = pin.difference(model, q[row], q_old)
        q[row] = pin.integrate(model, q[row], share[row] * away)
        v[row] += share[row] * (v_old - v[row]) + rate[row] / over_s * away
    joints, base = trajectories(robot, times, q, v, plan.joints.start_s)
    fine = fine._replace(configurations=q, velocities=v)
    return dataclasses.replace(plan, joints=joints, base=base, fine=fine)


def _fading(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blend factor from 1 to 0 for s from 0 to 1, with zero first and second derivatives at the ends; and its slope."""
    return 1.0 - s**3 * (10.0 - 15.0 * s + 6.0 * s**2), -30.0 * (s * (1.0 - s)) ** 2


def away_from(
    plan: MotionPlan, start_s: float, robot: RobotModel, q: np.ndarray, now_s: float
) -> Any:
    """Largest distance, m, of a foot in contact from its planned position, and that foot's name."""
    time_s = min(max(now_s - start_s, 0.0), float(plan.fine.times_s[-1]))
    point = int(np.searchsorted(plan.fine.times_s, time_s - 1e-9))
    pin.framesForwardKinematics(robot.model, robot.data, q)
    soles = plan.contact_plan.soles
    places = np.array([robot.data.oMf[robot.frame_id(sole.frame)].translation for sole in soles])
    away = np.linalg.norm(places - plan.fine.feet.positions[point], axis=1)
    # A foot aloft is between its places at two points of the grid; it is not judged.
    away = np.where(plan.fine.feet.standing[point], away, 0.0)
    foot = int(np.argmax(away))
    return float(away[foot]), soles[foot].frame


def _stance(plan: MotionPlan, number: int) -> tuple[Foothold, ...]:
    phase = plan.contact_plan.phases[number]
    footholds = {foothold.foot: foothold for foothold in phase.footholds}
    return tuple(footholds[sole.frame] for sole in plan.contact_plan.soles)
