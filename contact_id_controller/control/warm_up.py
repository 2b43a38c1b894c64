"""Compilation of everything the controller step needs, before the robot depends on it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin

from contact_id_controller.control.controller import Controller
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.goals import (
    PLACE,
    ComGoal,
    FootPath,
    Posture,
    TaskGoals,
)
from contact_id_controller.plans.interpolation import largest_rates
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.state import RobotState

_STEPS = 20


def warm_up(controller: Controller) -> None:
    """Run steps in stance, along plans, in swing and at touchdown; then restore the controller's state.

    The first call of a compiled kernel takes a second, the next ones microseconds.
    """
    state = standing_state(controller)
    _take_steps(controller, state)
    if len(controller.feet) and not controller.robot.floating_base:
        _take_steps(_in_contact(controller), state)
    controller.tilt(state.q)
    # The robot was given none of these torques.
    controller.sent(np.zeros(controller.robot.na))
    controller.reset(state)


def _take_steps(controller: Controller, state: RobotState) -> None:
    """Run steps in one posture, held, planned and as a goal; with a floating base also in the air."""
    frames = [foot.frame for foot in controller.feet.feet]
    for follow in (None, _follow_plans, _follow_goals):
        controller.reset(state)
        if follow is not None:
            follow(controller, state)
        for number in range(_STEPS):
            time_s = state.time_s + number * controller.settings.period_s
            controller.step(RobotState(time_s, state.q, state.v))
    if frames and controller.robot.floating_base:
        lifted = state.q.copy()
        lifted[:3] += 0.1 * controller.feet.up
        for number in range(_STEPS):
            controller.step(RobotState(state.time_s + 1.0 + number, lifted, state.v))


def _in_contact(controller: Controller) -> Controller:
    """The same controller of a fixed base whose ground is raised to its lowest contact of the last step."""
    up = controller.feet.up
    height = float((controller.feet.points @ up).min())
    settings = dataclasses.replace(
        controller.settings, ground_file="", ground_normal=tuple(up), ground_offset_m=height
    )
    return Controller(controller.robot, settings)


def standing_state(controller: Controller) -> RobotState:
    """The posture nearest to neutral within plan limits, at rest, the highest foot on the ground."""
    robot, feet, limits = controller.robot, controller.feet, controller.plan_limits
    q, v = robot.neutral(), np.zeros(robot.nv)
    robot.put_joints(q, np.clip(robot.joints_of(q), limits.lower, limits.upper))
    if robot.floating_base and len(feet):
        pin.forwardKinematics(robot.model, robot.data, q)
        feet.update(robot.data)
        q[:3] -= feet.gaps.max() * feet.up
    return RobotState(1.0, q, v)


def _follow_plans(controller: Controller, state: RobotState) -> None:
    """Follow plans of every degree that stay at the present posture, with one foot in swing."""
    robot, frames = controller.robot, [foot.frame for foot in controller.feet.feet]
    times = [0.0, 10.0]
    place = np.tile(robot.joints_of(state.q), (2, 1))
    rest = np.zeros_like(place)
    for speeds, bends in ((None, None), (rest, None), (rest, rest)):
        plan = Plan(JointTrajectory(robot.joint_names, times, place, speeds, bends))
        controller.follow(plan, state.time_s)
        controller.step(state)
    largest_rates(np.ones(1), np.zeros((1, 2, robot.na)))  # of plans that come near a limit
    if robot.floating_base:
        still = np.zeros((2, 3))
        base = np.tile(state.q[:7], (2, 1))
        plan = Plan(base=BaseTrajectory(times, base[:, :3], base[:, 3:], still, still))
        controller.follow(plan, state.time_s)
    if frames:
        stance = np.ones((2, len(frames)), dtype=bool)
        stance[:, 0] = False
        controller.follow(Plan(contacts=ContactSchedule(frames, times, stance)), state.time_s)


def _follow_goals(controller: Controller, state: RobotState) -> None:
    """Follow goals that stay at the present posture, with one foot in swing, if goals are enabled."""
    if controller.tasks is None or not len(controller.feet):
        return
    robot, foot = controller.robot, controller.feet.feet[0].frame
    still = np.zeros((2, PLACE))
    paths = {foot: FootPath([0.0, 10.0], still, still, still)}
    posture = Posture(robot.joint_names, robot.joints_of(state.q))
    com = ComGoal(state.q[:2], state.q[:2], 3.0, 1.0)
    goals = TaskGoals(com, posture, paths, 10.0)
    contacts = ContactSchedule([foot], [0.0], [[False]])
    controller.follow(Plan(goals=goals, contacts=contacts), state.time_s)
