"""The balance stabiliser of the papers' PID reference: virtual forces that press the feet down.

    w = -(K x + D x'),  x: height, roll and pitch against the plan     tau = -sum_i J_i^T n f_i

f >= 0 are the parts that push of the least forces of the standing feet with the wrench w: a foot that
presses on the ground is pushed by it. Source: first paper, section 7.3, after Sugihara and Nakamura
(2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.planning.gait.legs import Legs
from contact_id_controller.planning.gait.measurement import measure
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.one_process import InProcessRun
from contact_id_controller.state import RobotState

GAINS = (1e2, 1e3, 1e3)
"""Of height, N/m, roll and pitch, N·m/rad: the paper's."""

DAMPING = (1e2, 1e1, 1e1)
"""N·s/m and N·m·s/rad. The paper has 1e2 for all; in roll and pitch that is three times what steps of
1 ms bear (damping times period over moment of inertia), and throws the robot over within 25 ms."""


class Stabiliser:
    """Adds torques that hold height, roll and pitch of the base.

    Args:
        robot: the model.  planner: whose feet, ground and nominal height count.
        height_m: of the base at rest, world frame.  foot_names: the controller's feet.
    """

    def __init__(
        self, robot: RobotModel, planner: GaitPlanner, height_m: float, foot_names: list[str]
    ):
        settings = planner.settings
        self._robot, self._height_m = robot, float(height_m)
        self._legs = Legs(robot, settings.feet)
        self._frames = [robot.frame_id(name) for name in settings.feet]
        # The controller's number of each of the planner's feet.
        self._order = [foot_names.index(name) for name in settings.feet]
        self._data = robot.model.createData()

    def torques(self, controller: Controller, state: RobotState) -> np.ndarray:
        """What is to be added to the controller's torques, (na,) N·m."""
        robot, data = self._robot, self._data
        measured = measure(self._legs, state.q, state.v)
        deviation = measured.tilt - [self._height_m, 0.0, 0.0]
        wrench = -(np.array(GAINS) * deviation + np.array(DAMPING) * measured.tilt_rate)
        stance = np.flatnonzero(controller.planned_stance(state.time_s)[self._order]).tolist()
        added = np.zeros(robot.nv)
        if not stance:
            return added[robot.actuated]
        arms = measured.centers[stance, 0] + 1j * measured.centers[stance, 1] - measured.position
        arms = arms * np.exp(-1j * measured.yaw)
        grasp = np.vstack([np.ones(len(stance)), arms.imag, -arms.real])
        forces = np.maximum(np.linalg.lstsq(grasp, wrench, rcond=None)[0], 0.0)
        pin.computeJointJacobians(robot.model, data, state.q)
        pin.updateFramePlacements(robot.model, data)
        for i, force in zip(stance, forces):
            frame = pin.getFrameJacobian(
                robot.model, data, self._frames[i], pin.LOCAL_WORLD_ALIGNED
            )
            added -= force * frame[2]
        return added[robot.actuated]


class StabilisedRun(InProcessRun):
    """A run in which the stabiliser's torques are added to the controller's; arguments as of ``InProcessRun``."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        names = list(self.settings.contact_names)
        self._stabiliser = Stabiliser(self.robot, self.planner, self.state.q[2], names)

    def given(self, believed: RobotState, result: StepResult) -> StepResult:
        """The controller's torques and the stabiliser's, within the limits of the motors."""
        limit = self.controller.effort_limits
        added = result.torques + self._stabiliser.torques(self.controller, believed)
        result = result._replace(torques=np.clip(added, -limit, limit))
        self.controller.sent(result.torques)
        return result
