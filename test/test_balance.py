"""Feedback of the centre of mass: what it asks of soles they can give, and pushes are held."""

import numpy as np
import pinocchio as pin
import pytest
import yaml
from scipy.optimize import nnls

from contact_id_controller.control.balance import COM_GAINS, SUPPORT_MARGIN
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.support_preview import STEP_S, Support, SupportPreview
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic import plan_motion
from contact_id_controller.planning.kinodynamic.footstep_file import read_task
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.one_process import controller_settings, section
from contact_id_controller.runs.planned_motion import follow_motion, write_ground
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.state import RobotState

TALOS = str(resolve_urdf("package://contact_id_controller/config/plans/talos.yaml"))
STONES = resolve_urdf("package://contact_id_controller/config/plans/talos_stones.yaml")
FRICTION = 0.6


@pytest.fixture(scope="module")
def task():
    settings = KinodynamicPlannerSettings.from_mapping(section(TALOS, "kinodynamic_planner"))
    return read_task(settings, STONES)


def on_one_foot(task, base_feedback, speed_m_s):
    """Acceleration (nv,) asked of TALOS on its left foot, pushed sideways; controller, q, v."""
    settings = controller_settings(
        TALOS, base_feedback=base_feedback, friction_coefficient=[FRICTION]
    )
    controller = Controller(settings.robot(), settings)
    q, v = task.start, np.zeros(task.robot.nv)
    controller.reset(RobotState(1.0, q, v))
    frames = list(settings.foot_frames)
    controller.follow(Plan(contacts=ContactSchedule(frames, [0.0], [[True, False]], 1.0)), 1.0)
    v[1] = speed_m_s
    controller.step(RobotState(1.0, q, v))
    return controller, controller.period.acceleration.copy(), q, v


def missing_share(controller, acceleration, q, v, margin):
    """Share of the wrench needed that no forces of the left sole give; by non-negative least squares."""
    robot, feet = controller.robot, controller.feet
    data = robot.model.createData()
    pin.dccrba(robot.model, data, q, v)
    needed = data.Ag @ acceleration + data.dAg @ v
    needed[:3] -= robot.mass * robot.model.gravity.linear
    com = pin.centerOfMass(robot.model, data, q)
    points = feet.points[feet.foot == 0]
    middle = points.mean(axis=0)
    generators = [
        np.r_[force, np.cross(middle + (1.0 - margin) * (point - middle) - com, force)]
        for point in points
        for turn in (0.0, 0.5 * np.pi, np.pi, 1.5 * np.pi)
        for force in [np.array([FRICTION * np.cos(turn), FRICTION * np.sin(turn), 1.0])]
    ]
    _, missing = nnls(np.array(generators).T, needed)
    return missing / np.linalg.norm(needed)


@pytest.mark.parametrize("speed_m_s", [0.25, -0.25])
def test_what_is_asked_of_a_sole_it_can_give(task, speed_m_s):
    """Judge: SciPy's NNLS over the sole's corners. The feedback of the base asks for what it cannot."""
    tipping = missing_share(*on_one_foot(task, "base", speed_m_s), 0.0)
    held = missing_share(*on_one_foot(task, "center_of_mass", speed_m_s), SUPPORT_MARGIN)
    assert tipping > 0.05
    assert held < 5e-3


def test_a_sole_that_can_give_it_moves_the_centre_of_mass_as_asked(task):
    """Both feet, a slow push: acceleration by the gains, and the soles' own is what stops them."""
    settings = controller_settings(TALOS, base_feedback="center_of_mass")
    controller = Controller(settings.robot(), settings)
    robot, q, v = controller.robot, task.start, np.zeros(task.robot.nv)
    controller.reset(RobotState(1.0, q, v))
    v[:2] = 0.02, -0.03
    controller.step(RobotState(1.0, q, v))
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q, v, controller.period.acceleration)
    pin.centerOfMass(robot.model, data, q, v, controller.period.acceleration)
    gain = COM_GAINS[1]
    np.testing.assert_allclose(data.acom[0], -gain * data.vcom[0], rtol=0.01, atol=1e-3)
    for frame in settings.foot_frames:
        moving = (robot.model, data, robot.frame_id(frame), pin.LOCAL_WORLD_ALIGNED)
        speed, pull = pin.getFrameVelocity(*moving), pin.getFrameClassicalAcceleration(*moving)
        expected = -speed.linear / settings.contact_time_constant_s
        np.testing.assert_allclose(pull.linear, expected, atol=2e-3)


def test_a_preview_sees_the_support_to_come():
    """Wide now, narrow sideways from half a second on; reach by the formula of the divergent component."""
    rate, lasts = 3.3, 10 * STEP_S
    corners = np.array([[0.1, 0.2], [0.1, -0.2], [-0.1, 0.2], [-0.1, -0.2]])
    narrow = corners * [1.0, 0.25]
    preview = SupportPreview(lambda t: Support(corners if t < 5.0 + lasts else narrow, rate))
    for passed in (0.0, 0.5 * lasts, 0.55 * lasts):
        fade = np.exp(-rate * (lasts - passed))
        sideways = (1.0 - fade) * 0.2 + fade * 0.05
        found = preview.reaches(5.0 + passed)
        np.testing.assert_allclose(found[[0, 9, 18, 27]], [0.1, sideways, 0.1, sideways])


def test_what_soles_give_goes_where_least_is_left():
    square = np.array([[0.1, 0.1], [0.1, -0.1], [-0.1, 0.1], [-0.1, -0.1]])
    preview = SupportPreview(lambda t: Support(square, 3.3))
    np.testing.assert_allclose(preview.metric(5.0, np.zeros(2)), np.eye(2), atol=1e-9)
    metric = preview.metric(5.0, np.array([0.0, -0.095]))
    np.testing.assert_allclose(metric, np.diag([metric[0, 0], 1.0]), atol=1e-9)
    assert metric[0, 0] < 0.5


def test_a_fixed_base_has_no_feedback_of_the_centre_of_mass():
    with pytest.raises(ConfigurationError, match="'base_feedback' is 'center_of_mass'.*fixed"):
        settings = controller_settings("arms/panda", base_feedback="center_of_mass")
        Controller(settings.robot(), settings)


@pytest.mark.parametrize("rounding_nm", [0.0, 1e-9])
def test_talos_holds_a_push_before_it_steps(tmp_path, monkeypatch, rounding_nm):
    """16 N s sideways within .1 s, before the other foot lifts; two of the stones. No rounding decides it."""
    act, rng = DisturbedRobot.step, np.random.default_rng(1)
    monkeypatch.setattr(
        DisturbedRobot,
        "step",
        lambda robot, torques: act(
            robot, torques + rounding_nm * rng.standard_normal(torques.size)
        ),
    )
    steps = tmp_path / "two.yaml"
    steps.write_text(yaml.safe_dump(yaml.safe_load(STONES.read_text())[:2]), encoding="utf-8")
    settings = KinodynamicPlannerSettings.from_mapping(section(TALOS, "kinodynamic_planner"))
    short = read_task(settings, steps)
    plan = plan_motion(short.robot, short.contact_plan, settings, start=short.start, start_s=0.2)
    ground = write_ground(plan, tmp_path)
    lift_s = 0.2 + plan.contact_plan.boundaries_s[3]
    push = Push(lift_s - 0.3, 0.1, np.array([0.0, 16.0, 0.0]))

    done = follow_motion(
        TALOS,
        plan,
        controller_settings(TALOS, base_feedback="center_of_mass", **ground),
        friction=FRICTION,
        pushes=[push],
        push_body="torso_2_link",
    )
    assert not done.record.fell and done.record.not_following == ""
    away = np.linalg.norm(done.com_errors, axis=1)
    assert 0.01 < away.max() < 0.1 and away[-1] < 0.01
