"""A walk in one process: gait planner, controller and MuJoCo, without ROS."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.settings import ControllerSettings
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.planning.gait import GaitPlanner
from contact_id_controller.planning.settings import GaitSettings
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.simulation.mujoco_robot import MujocoRobot

CONFIG = Path(__file__).resolve().parent.parent / "config"
REPLAN_EVERY = 50  # periods


class Run(NamedTuple):
    """Row k belongs to period k: results of the step, the forces of the ground, the state after it."""

    results: list
    forces: np.ndarray   # (n, feet, 3) N
    states: list
    feet: np.ndarray     # (n, feet, 3) m, world frame
    robot: RobotModel


def section(name, node, changes):
    """A node's parameters in a file of config/, with changes."""
    content = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    return {**content[node]["ros__parameters"], **changes}


def run(name, seconds, mu, *, plan=None, planner=(), **controller):
    """Walk, or follow ``plan(controller, state)``, called before each step."""
    values = section(name, "controller", {"friction_coefficient": [mu], **controller})
    settings = ControllerSettings.from_mapping(values)
    robot = RobotModel.from_urdf(settings.urdf, joints=list(settings.joints))
    control = Controller(robot, settings)
    radii = settings.spread("contact_radii_m", len(settings.contact_frames))
    feet = [SphereFoot(frame, radius) for frame, radius in zip(settings.contact_frames, radii)]
    simulated = section(name, "simulated_robot", {})
    world = MujocoRobot(str(resolve_urdf(settings.urdf)), feet, joints=settings.joints, friction=mu)
    start = np.array(simulated["initial_joint_positions"])
    state = world.reset(world.place_on_ground(robot.configuration([0, 0, 0, 0, 0, 0, 1], start)))
    control.reset(state)
    gait = section(name, "gait_planner", dict(planner))
    known = {field.name for field in dataclasses.fields(GaitSettings)}
    planned = GaitPlanner(robot, GaitSettings.from_mapping({k: v for k, v in gait.items() if k in known}))
    results, forces, states, places = [], [], [], []
    for k in range(round(seconds / settings.period_s)):
        if plan is not None:
            plan(control, state)
        elif k % REPLAN_EVERY == 0:
            motion = planned.plan(state.time_s, state.q, state.v)
            motion.joints.allow_moving_end = True
            control.set_trajectory(motion.joints, state.time_s)
            control.set_base_trajectory(motion.base)
            control.set_contact_schedule(motion.contacts)
        results.append(control.step(state))
        places.append(control.feet.points.copy())
        state = world.step(results[-1].torques)
        forces.append(world.contact_forces())
        states.append(state)
    return Run(results, np.array(forces), states, np.array(places), robot)
