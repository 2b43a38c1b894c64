"""A walk in one process in MuJoCo, with everything that happened."""

from typing import NamedTuple

import numpy as np

from contact_id_controller import RobotModel
from contact_id_controller.runs import one_process as in_process


class Run(NamedTuple):
    """Row k belongs to period k: results of the step, the forces of the ground, the state after it."""

    results: list
    forces: np.ndarray  # (n, feet, 3) N
    states: list
    feet: np.ndarray  # (n, feet, 3) m, world frame
    robot: RobotModel


def section(name, node, changes):
    """A node's parameters in a file of config/, with changes."""
    return in_process.section(name, node, **changes)


def run(name, seconds, mu, *, plan=None, planner=(), **controller):
    """Walk, or follow ``plan(controller, state)``, called before each step."""
    settings = in_process.controller_settings(name, **{"friction_coefficient": [mu], **controller})
    world = in_process.mujoco_robot(settings, mu)
    walk = in_process.InProcessRun(name, settings, world, plan=plan, planner=dict(planner))
    results, forces, states, places = [], [], [], []
    for _ in range(round(seconds / settings.period_s)):
        period = walk.advance()
        results.append(period.result)
        places.append(walk.controller.feet.points.copy())
        forces.append(period.forces)
        states.append(period.after)
    return Run(results, np.array(forces), states, np.array(places), walk.robot)
