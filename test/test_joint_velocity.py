"""Joint velocities on noisy encoders: less noise, no lag, and TALOS walks over stones on its own estimate."""

import numpy as np
import pytest
import yaml

from contact_id_controller.control.controller import Controller
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.planning.kinodynamic import plan_motion
from contact_id_controller.planning.kinodynamic.footstep_file import read_task
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.estimated_state import EstimatedState
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    mujoco_robot,
    section,
)
from contact_id_controller.runs.planned_motion import write_ground
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.state import RobotState

NOISE_RAD_S = 0.02
FILTER_S = 0.005
TALOS = str(resolve_urdf("package://contact_id_controller/config/plans/talos.yaml"))
STONES = resolve_urdf("package://contact_id_controller/config/plans/talos_stones.yaml")


def swung(filter_s):
    """Errors (steps, na) of the velocities that Panda's controller acts on in a motion; MuJoCo's are the truth."""
    settings = controller_settings("arms/panda", joint_velocity_filter_s=filter_s)
    world, rng = mujoco_robot(settings, 1.0, floating_base=False), np.random.default_rng(1)
    controller, errors, torques = Controller(settings.robot(), settings), [], []
    start = section("arms/panda", "simulated_robot")["initial_joint_positions"]
    world.reset(world.robot.configuration(None, np.array(start)))
    state = world.state()
    controller.reset(state)
    controller.memory.course.posture[:] += 0.02  # a step of the posture: all joints move fast
    for _ in range(400):
        noisy = state.v + NOISE_RAD_S * rng.standard_normal(state.v.size)
        result = controller.step(RobotState(state.time_s, state.q, noisy))
        errors.append(controller.answered.v - state.v)
        torques.append(result.torques)
        state = world.step(result.torques)
    return np.array(errors), np.abs(np.diff(torques, axis=0)).mean()


def test_noise_is_a_third_and_nothing_lags():
    raw, filtered = swung(0.0), swung(FILTER_S)
    assert raw[0][50:].std() == pytest.approx(NOISE_RAD_S, rel=0.05)
    # 1 / (2 tau / h + 1) of the variance, for a model that is right
    assert filtered[0][50:].std() < 1.2 * NOISE_RAD_S / np.sqrt(2.0 * FILTER_S / 1e-3 + 1.0)
    assert np.abs(filtered[0][50:].mean(axis=0)).max() < 0.1 * NOISE_RAD_S
    assert filtered[1] < 0.5 * raw[1]


def test_a_velocity_after_a_gap_counts_as_measured():
    settings = controller_settings("arms/panda", joint_velocity_filter_s=FILTER_S)
    robot = settings.robot()
    controller = Controller(robot, settings)
    posture = np.array(section("arms/panda", "simulated_robot")["initial_joint_positions"])
    q, v = robot.configuration(None, posture), np.full(robot.nv, 0.01)
    controller.reset(RobotState(1.0, q, v))
    for time_s, corrected in ((1.0, False), (1.001, True), (1.101, False)):
        solution = None if not corrected else controller.memory.solution
        past = controller.period.velocity.copy()
        state = RobotState(time_s, q, v)
        controller.step(state)
        if not corrected:
            assert controller.answered is state
            continue
        ahead = solution.velocity[robot.actuated]
        gain = 1e-3 / (1e-3 + FILTER_S)
        judge = past + (ahead - past) + gain * (v[robot.actuated] - ahead)
        np.testing.assert_allclose(controller.answered.v[robot.actuated], judge, atol=1e-9)


def over_stones(folder, filter_s):
    """A walk of TALOS over the first two stones; whether it fell, and the mean torque rate, N·m/s."""
    steps = folder / "two.yaml"
    steps.write_text(yaml.safe_dump(yaml.safe_load(STONES.read_text())[:2]), encoding="utf-8")
    planner = KinodynamicPlannerSettings.from_mapping(section(TALOS, "kinodynamic_planner"))
    task = read_task(planner, steps)
    plan = plan_motion(task.robot, task.contact_plan, planner, start=task.start, start_s=0.2)
    settings = controller_settings(
        TALOS, joint_velocity_filter_s=filter_s, **write_ground(plan, folder)
    )
    world = mujoco_robot(settings, 0.6, imu_frame="")
    shared = yaml.safe_load(resolve_urdf(TALOS).read_text())["/**"]["ros__parameters"]
    estimator = DynamicsEstimatorSettings.from_mapping(shared)
    feet = estimator.foot_frames, estimator.foot_radii_m
    told = EstimatedState(world, EstimationPipeline(world.robot, *feet, estimator.pipeline), "good")
    pending = [plan]

    def hand_over(controller, state):
        while pending:
            controller.follow(pending.pop(), state.time_s)

    run = InProcessRun(
        TALOS, settings, world, plan=hand_over, start=plan.fine.configurations[0], estimator=told
    )
    torques = []
    record = run.record(5.0, each=lambda period: torques.append(period.result.torques))
    return record.fell or record.not_following, np.abs(
        np.diff(torques[:2000], axis=0)
    ).mean() / 1e-3


def test_talos_walks_over_stones_on_its_own_estimate(tmp_path):
    failed, rate = over_stones(tmp_path, FILTER_S)
    assert not failed
    assert rate < 1000.0  # 3,000 without it, by which it falls
