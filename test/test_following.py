"""Whether a robot does what is planned: told by what it measures, not by a simulator."""

import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.control.following import FORCES, HEIGHT, LIMITS, Following
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push

TRUE_FRICTION = 0.7


def walk(name, believed, ground, pushes=(), experimental=None, **changes):
    settings = controller_settings(name, experimental, friction_coefficient=[believed], **changes)
    world = DisturbedRobot(mujoco_robot(settings, ground), pushes=pushes)
    return InProcessRun(name, settings, world)


def test_a_robot_whose_legs_splay_is_reported_though_it_never_falls(tmp_path):
    """Friction believed to be .7 on ground of .3, and not felt: the simulator's own rule never calls it a fall."""
    unfelt = {
        "contact_sources": ["geometry", "schedule"],
        "experimental": {"disturbance_limit": 0.0},
    }
    run = walk("solo12", TRUE_FRICTION, 0.3, **unfelt)
    record = run.record(1.5)
    assert not record.fell and record.q[-1, 2] < 0.9 * record.q[0, 2]
    assert record.not_following_s > 0.5
    # Which of both is evidence first is decided by millimetres.
    assert any(
        words in record.not_following
        for words in ("lower above its feet", "from its planned place")
    )
    assert "slip" in record.not_following
    assert run.following.evidence[HEIGHT] > 0.05
    record.save(tmp_path / "record.npz")
    assert RunRecord.load(tmp_path / "record.npz").not_following == record.not_following


@pytest.mark.parametrize(
    "name, impulse_n_s", [("quadruped", 2.0), ("solo12", 1.2), ("go2", 6.0), ("anymal_c", 25.0)]
)
@pytest.mark.parametrize("ground", [0.1, TRUE_FRICTION])
def test_walks_that_go_well_and_pushes_that_are_recovered_raise_no_alarm(name, impulse_n_s, ground):
    sideways = Push(0.7, 0.05, np.array([0.0, impulse_n_s, 0.0]))
    pushes = [sideways] if ground == TRUE_FRICTION else []
    run = walk(name, ground, ground, pushes)
    record = run.record(2.0)
    assert not record.fell
    assert record.not_following == "" and record.not_following_s == 0.0
    assert (run.following.evidence < 0.5 * LIMITS).all()


@pytest.fixture
def standing():
    """A quadruped that stands, its last step, and its state."""
    run = walk("quadruped", TRUE_FRICTION, TRUE_FRICTION)
    run.record(0.01)
    return run


def look(run, following, duration_s, begin_s=0.0, measured=None):
    """States that come one after the other, after the last step; what is reported of the last one."""
    for k in range(round(duration_s / run.settings.period_s)):
        time_s = begin_s + k * run.settings.period_s
        reason = following.look(run.controller, time_s, measured)
    return reason


def test_a_moment_is_no_evidence_and_it_ends_when_the_robot_follows_again(standing):
    following, errors = Following(standing.controller), standing.controller.period.error
    small, large = errors.copy(), errors.copy()
    large[3] += 0.5
    standing.controller.step(standing.state)
    errors[:] = large
    assert look(standing, following, 0.3 * following.window_s, 0.0) == ""
    reason = look(standing, following, 3.0 * following.window_s, 1.0)
    assert standing.robot.joint_names[3] in reason and "rad" in reason
    errors[:] = small
    assert look(standing, following, 0.2 * following.window_s, 2.0) == reason
    assert look(standing, following, 4.0 * following.window_s, 3.0) == ""
    assert following.outcome.not_following == reason
    assert 0.0 < following.outcome.not_following_s < 7.0 * following.window_s


def test_the_height_above_the_feet_is_that_of_the_posture(standing):
    """Every knee bent so far that the base is a centimetre lower: that, to first order, is reported."""
    run, following = standing, Following(standing.controller)
    run.controller.step(run.state)
    gradient = np.zeros(run.robot.na)
    feet = run.controller.feet
    for j in range(run.robot.na):
        moved = run.state.v * 0.0
        moved[run.robot.actuated[j]] = 1e-6
        before = feet.points[:, 2].copy()
        q = pin.integrate(run.robot.model, run.state.q, moved)
        _place(run, q)
        gradient[j] = (feet.points[:, 2] - before).mean() / 1e-6
        _place(run, run.state.q)
    run.controller.step(run.state)
    lower = 0.01 * gradient / (gradient @ gradient)
    run.controller.period.error[:] = -lower
    look(run, following, 6.0 * following.window_s, 0.0)
    assert following.evidence[HEIGHT] * following.length_m == pytest.approx(0.01, rel=0.05)


def _place(run, q):
    pin.forwardKinematics(run.robot.model, run.robot.data, q)
    run.controller.feet.update(run.robot.data)


def test_forces_that_are_not_there_are_evidence_where_they_are_measured(standing):
    following = Following(standing.controller)
    step = standing.controller.step(standing.state)
    as_predicted = look(standing, following, 2.0 * following.window_s, 0.0, step.forces)
    assert as_predicted == "" and following.evidence[FORCES] < 1e-9
    lifted = np.zeros_like(step.forces)  # carried by a hand
    reason = look(standing, following, 2.0 * following.window_s, 1.0, lifted)
    assert "forces differ" in reason


def test_time_that_goes_back_or_jumps_is_no_evidence(standing):
    following = Following(standing.controller)
    standing.controller.step(standing.state)
    standing.controller.period.error[:] = 1.0
    for time_s in (5.0, 5.0, 4.0, 1e6):
        following.look(standing.controller, time_s)
    assert np.isfinite(following.evidence).all() and following.evidence.max() <= 1.0
