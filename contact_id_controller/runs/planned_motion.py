"""A kinodynamic plan followed in one process: controller and simulated robot, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pinocchio as pin
import yaml
from scipy.interpolate import CubicHermiteSpline

from contact_id_controller.files import make_folder, write_text
from contact_id_controller.planning.kinodynamic import ContactPlan, MotionPlan
from contact_id_controller.planning.kinodynamic.footstep_file import stones_below
from contact_id_controller.runs.one_process import InProcessRun, Period, mujoco_robot
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.settings.controller import ControllerSettings

if TYPE_CHECKING:
    from contact_id_controller.simulation.disturbed_robot import Push

GROUND = "ground.yaml"
SETTLE_S = 1.0
"""Time for which the robot stands after the plan's end."""


class Execution(NamedTuple):
    """A followed plan.

    Attributes:
        record: of every period.
        com_errors: (periods, 3) m, measured minus planned CoM.
        force_errors: (periods,) error of the feet's predicted normal forces, summed over the feet, as a share of
            the weight.
    """

    record: RunRecord
    com_errors: np.ndarray
    force_errors: np.ndarray

    def figures(self) -> dict[str, tuple[float | bool, str, str]]:
        """Name -> value, unit, meaning."""
        away = np.linalg.norm(self.com_errors, axis=1)
        steps = np.median(self.record.step_time_s)
        return {
            "fell": (self.record.fell, "", "while the plan was followed"),
            "executed_s": (float(self.record.time_s[-1]), "s", "of simulated time"),
            "com_error_rms_m": (float(np.sqrt(np.mean(away**2))), "m", "of the CoM from the plan"),
            "com_error_max_m": (float(away.max()), "m", "the same, largest"),
            "force_error": (
                float(self.force_errors.mean()),
                "",
                "of predicted normal forces per weight",
            ),
            "step_s": (float(steps), "s", "of a controller step, median"),
        }


def write_ground(plan: MotionPlan, folder: Path) -> dict[str, str]:
    """Write the stones below a plan's footholds; see `write_stones`."""
    return write_stones(plan.contact_plan, folder)


def write_stones(plan: ContactPlan, folder: Path) -> dict[str, str]:
    """Write the stones below the footholds into ``folder``; return the parameters for nodes that use them."""
    stones = stones_below(plan)
    if not stones:
        return {}
    make_folder(folder)
    write_text(folder / GROUND, yaml.safe_dump(stones, sort_keys=False))
    return {"ground_file": str((folder / GROUND).resolve())}


def follow_motion(
    config: str,
    plan: MotionPlan,
    settings: ControllerSettings,
    *,
    friction: float,
    delay_periods: int = 0,
    pushes: Sequence[Push] = (),
    push_body: str = "",
) -> Execution:
    """Follow a plan in MuJoCo, starting from its first configuration.

    Args:
        config: of the robot.
        plan: starts after 0 s, so that the robot stands at first.
        settings: of the controller, with the ground.
        friction: coefficient of the ground.
        delay_periods: delay of the torques.
        pushes: on the link ``push_body``; empty: the base.
    """
    from contact_id_controller.simulation.disturbed_robot import DisturbedRobot  # an extra

    world = DisturbedRobot(mujoco_robot(settings, friction), delay_periods, pushes, push_body)
    followed = False

    def hand_over(controller: Any, state: Any) -> None:
        nonlocal followed
        if not followed:
            controller.follow(plan, state.time_s)
            followed = True

    run = InProcessRun(config, settings, world, plan=hand_over, start=plan.fine.configurations[0])
    robot, data = run.robot, run.robot.model.createData()
    begin_s, knots = plan.joints.start_s or 0.0, plan.momentum.times_s
    path = CubicHermiteSpline(knots, plan.momentum.com, plan.momentum.velocity)
    foot_of = np.array([foot.frame for foot in settings.feet])
    together = np.array([foot_of == frame for frame in settings.foot_frames], dtype=float)
    com_errors, force_errors = [], []

    def watch(period: Period) -> None:
        since = np.clip(period.before.time_s - begin_s, knots[0], knots[-1])
        com = pin.centerOfMass(robot.model, data, period.before.q)
        com_errors.append(com - path(since))
        missed = together @ (period.result.forces - period.forces)[:, 2]
        force_errors.append(float(np.abs(missed).sum()) / robot.weight)

    record = run.record(begin_s + knots[-1] + SETTLE_S, each=watch)
    return Execution(record, np.array(com_errors), np.array(force_errors))
