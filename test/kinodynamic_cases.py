"""Robots and footsteps for the tests of the kinodynamic planner."""

import functools

import numpy as np
from paths import ROOT

from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan, Foothold, Sole
from contact_id_controller.planning.kinodynamic.standing import standing_start
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.parameter_file import ParameterFile

TALOS_URDF = "example-robot-data://talos_data/robots/talos_reduced.urdf"
TALOS_LOCKED = ("gripper_left_joint", "gripper_right_joint", "head_1_joint", "head_2_joint")
TALOS_LEG = (0.0, 0.0, -0.52, 1.08, -0.56, 0.0)
TALOS_ARM = (0.25847, 0.173046, -0.0002, -0.525366, 0.0, 0.0, 0.1)
TALOS_POSTURE = (
    *TALOS_LEG,
    *TALOS_LEG,
    *(0.0, 0.006761),
    *TALOS_ARM,
    *(-0.25847, -0.173046, 0.0002, -0.525366, 0.0, 0.0, 0.1),
)


@functools.cache
def talos():
    """Robot, soles, a standing configuration and its footholds."""
    robot = RobotModel.from_urdf(TALOS_URDF, locked=dict.fromkeys(TALOS_LOCKED, 0.0))
    soles = tuple(
        Sole(f"{side}_sole_link", (0.10, 0.0625), cop_margin_m=0.0175) for side in ("left", "right")
    )
    return robot, soles, *standing_start(robot, soles, np.array(TALOS_POSTURE))


@functools.cache
def solo12():
    """The same of a quadruped with point feet."""
    values = ParameterFile(ROOT / "config" / "solo12.yaml").section("gait_planner")
    robot = RobotModel.from_urdf(values["urdf"], joints=values["joints"])
    soles = tuple(
        Sole(foot, center_m=(0.0, 0.0, -values["foot_radius_m"])) for foot in values["feet"]
    )
    return robot, soles, *standing_start(robot, soles, np.array(values["posture"]))


def walk(robot_case, steps, *, swing_s, support_s):
    """A contact plan from where the robot stands; steps: (index of the foot, shift (3,), rotation)."""
    _, soles, _, stance = robot_case
    places = {foothold.foot: foothold.position for foothold in stance}
    footsteps = []
    for index, shift, rotation in steps:
        foot = soles[index].frame
        places[foot] = places[foot] + shift
        footsteps.append(Foothold(foot, places[foot], rotation))
    return ContactPlan.from_footsteps(
        soles, stance, footsteps, swing_s=swing_s, support_s=support_s
    )
