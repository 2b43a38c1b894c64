"""Pressure under soles stays where the motors of ankles hold the weight."""

import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.geometry.legs import held_by_ankles
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.settings.robot_files import robots


@pytest.mark.parametrize(
    "robot, share, expected",
    [("g1", 1.0, True), ("g1", 0.3, True), ("talos", 1.0, False), ("talos", 0.2, True)],
)
def test_the_weight_on_a_corner_is_what_the_ankle_holds(robot, share, expected):
    """By the transposed Jacobian of the place, for ankles as strong as in the URDF and for weaker ones."""
    settings = controller_settings(str(robots()[robot]))
    robot, feet = settings.robot(), settings.feet
    efforts = share * robot.effort_limits
    shifts = held_by_ankles(robot, feet, efforts)
    model, data = robot.model, robot.data
    pin.computeJointJacobians(model, data, robot.neutral())
    pin.updateFramePlacements(model, data)
    moved = np.abs(shifts).max(axis=1) > 0.0
    weight, limits = robot.weight * np.array([0.0, 0.0, 1.0]), np.full(robot.nv, np.inf)
    limits[robot.actuated] = efforts
    for foot, shift, changed in zip(feet, shifts, moved, strict=True):
        frame = model.frames[robot.frame_id(foot.frame)]
        joint = frame.parentJoint
        local = frame.placement.act(np.array(foot.center)) + shift
        arm = data.oMi[joint].act(local)
        J = pin.getJointJacobian(model, data, joint, pin.WORLD)
        torques = np.abs(J.T @ np.r_[weight, np.cross(arm, weight)])
        ankle = [model.joints[j].idx_v for j in model.supports[joint]][-2:]  # pitch and roll
        assert (torques[ankle] <= limits[ankle] + 1e-6).all()
        if changed:
            assert np.isclose(torques[ankle], limits[ankle], rtol=1e-6).any(), (
                "no farther than needed"
            )
    assert moved.any() == expected


def test_g1_walks_backwards_within_its_ankles():
    """15 % of the periods had an ankle at its limit: the pressure went to the toe, which 35 N·m do not hold."""
    file = str(robots()["g1"])
    settings = controller_settings(file)
    run = InProcessRun(file, settings, mujoco_robot(settings, 0.6))
    run.planner.set_velocity((-0.3, 0.0), 0.0)
    record = run.record(4.0)
    assert not record.fell and record.q[-1, 0] < -0.7
    ankles = [k for k, name in enumerate(run.robot.joint_names) if "ankle" in name]
    assert len(ankles) == 4
    assert record.saturated[:, ankles].any(axis=1).mean() < 0.02
