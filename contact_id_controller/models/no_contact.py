"""Inverse dynamics that ignores contact: the reference against which contact models are measured."""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from ..solution import SOLVED, Solution
from .stages import finish


def solve_no_contact(problem: Problem, *, warm_start: Solution | None = None) -> Solution:
    """Torques for the desired acceleration as if nothing were touched; all forces zero."""
    robot = problem.robot
    z = np.zeros(3 * len(problem))
    torques, velocity, still = np.empty(robot.na), np.empty(robot.nv), np.zeros(robot.na)
    finish(problem.L, problem.C, problem.base, problem.schur, problem.torque_offset,
           problem.desired_velocity, problem.T, problem.Y, z, still, problem.period,
           robot.actuated, robot.unactuated, torques, velocity)
    return Solution(problem, SOLVED, torques, z, velocity)
