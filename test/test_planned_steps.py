"""A humanoid follows a plan of steps over stones in MuJoCo, with default parameters."""

import dataclasses

import numpy as np
from robots import frame_positions

from contact_id_controller.planning.kinodynamic import plan_motion
from contact_id_controller.planning.kinodynamic.footstep_file import read_task, walk_task
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.one_process import controller_settings, section
from contact_id_controller.runs.planned_motion import follow_motion, write_ground
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.simulation.disturbed_robot import Push

TALOS = str(resolve_urdf("package://contact_id_controller/config/plans/talos.yaml"))
STONES = resolve_urdf("package://contact_id_controller/config/plans/talos_stones.yaml")


def test_talos_steps_over_tilted_stones(tmp_path):
    """Judges: MuJoCo's contact forces, and the centre of mass by Pinocchio against the plan's."""
    settings = KinodynamicPlannerSettings.from_mapping(section(TALOS, "kinodynamic_planner"))
    task = read_task(settings, STONES)
    plan = plan_motion(task.robot, task.contact_plan, settings, start=task.start, start_s=0.2)
    ground = write_ground(plan, tmp_path)
    assert ground  # they are no plane
    controller = controller_settings(TALOS, **ground)
    assert len(controller.feet) == 8 and controller.locked
    done = follow_motion(TALOS, plan, controller, friction=0.6)
    away = np.linalg.norm(done.com_errors, axis=1)
    assert not done.record.fell
    assert done.record.time_s[-1] > plan.contact_plan.duration_s
    assert np.sqrt(np.mean(away**2)) < 8e-3 and away.max() < 20e-3
    assert done.force_errors.mean() < 0.02
    # It arrived: each foot stands on the last of its stones.
    last = task.contact_plan.phases[-1].footholds
    places = frame_positions(task.robot, done.record.q[-1], [foothold.foot for foothold in last])
    np.testing.assert_allclose(places, [foothold.position for foothold in last], atol=5e-3)
    assert places[:, 2].min() > 0.1
    forces = done.record.simulated_forces[-100:].reshape(100, 2, 4, 3).sum(axis=2)
    assert (forces[:, :, 2] > 0.3 * task.robot.weight).all()


def test_talos_holds_a_push_forwards(tmp_path):
    """20 N s within .1 s, both feet on the ground: it fell 1.2 s later, where the push was fed forward besides."""
    settings = KinodynamicPlannerSettings.from_mapping(section(TALOS, "kinodynamic_planner"))
    task = read_task(settings, STONES)
    plan = plan_motion(task.robot, task.contact_plan, settings, start=task.start, start_s=0.5)
    done = follow_motion(
        TALOS,
        plan,
        controller_settings(TALOS, **write_ground(plan, tmp_path)),
        friction=0.6,
        pushes=[Push(2.25, 0.1, np.array([20.0, 0.0, 0.0]))],
        push_body="torso_2_link",
    )
    assert not done.record.fell
    assert np.linalg.norm(done.com_errors, axis=1).max() < 30e-3


def test_arms_begin_at_rest_where_the_weight_moves_to_one_foot_at_once():
    """A first support of .35 s turns the body; the right arm took all of that as a jump: 30 N m, of 22.3 it has."""
    settings = KinodynamicPlannerSettings.from_mapping(section(TALOS, "kinodynamic_planner"))
    task = walk_task(dataclasses.replace(settings, support_s=0.35), (0.4, 0.0, 0.0))
    plan = plan_motion(task.robot, task.contact_plan, settings, start=task.start)
    assert np.max(np.abs(plan.torques.torques) / task.robot.effort_limits) < 0.9
