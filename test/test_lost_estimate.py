"""A run in one process whose estimate is lost: the safe output, as behind the topics, where no odometry comes then."""

import numpy as np
import pytest

from contact_id_controller.runs import one_process
from contact_id_controller.safety.machine import SafetyState

BEGIN_S = 0.3
NAN = np.full(3, np.nan)


def standing(**changes):
    settings = one_process.controller_settings("quadruped", **changes)
    world = one_process.mujoco_robot(settings, 0.6, imu_frame="")
    told = one_process.estimated_state("quadruped", world, "good")
    run = one_process.InProcessRun(
        "quadruped", settings, world, estimator=told, plan=lambda controller, state: None
    )
    return run, told


def advance(run, until_s):
    """Periods up to a time."""
    periods = []
    while run.believed.time_s < until_s - 1e-9:
        periods.append(run.advance())
    return periods


def silent(told, begin_s, end_s):
    """The IMU says no number for a while."""
    read = told._sensors.read

    def reading(state):
        readings = read(state)
        if begin_s <= state.time_s < end_s:
            return readings._replace(angular_velocity=NAN, linear_acceleration=NAN)
        return readings

    told._sensors.read = reading


def safe(run, period):
    """The safe output."""
    damping = run.settings.spread("damping_nm_s_rad", run.robot.na)
    return -damping * period.believed.v[run.robot.actuated]


def away(run, periods):
    """Largest difference of each period's torques from the safe output."""
    return np.array([np.abs(p.result.torques - safe(run, p)).max() for p in periods])


@pytest.mark.parametrize("interface", ["effort", "linear_feedback"])
def test_a_lost_base_is_damped_and_stays_so_when_found_too_late(interface):
    run, told = standing(command_interface=interface)
    silent(told, BEGIN_S, BEGIN_S + 0.15)
    advance(run, BEGIN_S)
    assert told.estimate.ready and run.safety.commanding
    while told.estimate.ready:
        run.advance()
    lost = advance(run, run.believed.time_s + 0.05)
    assert away(run, lost)[0] > 0.1, "the torques of before, at first"
    assert away(run, lost)[20:].max() < 1e-12
    while not told.estimate.ready:
        run.advance()
    found = advance(run, run.believed.time_s + 0.1)
    assert run.safety.state is SafetyState.STOPPED
    assert away(run, found).max() < 1e-12, "nobody has resumed"


def lose(told, *windows):
    """The base odometry is lost for a while, several times; each (begin, end), s."""
    odometry, step = told.pipeline.base.estimate, told.pipeline.step

    def lost(*given, **named):
        estimate = step(*given, **named)
        odometry.ready = not any(a + 5e-4 < estimate.time_s < b + 5e-4 for a, b in windows)
        return estimate

    told.pipeline.step = lost


def changes_at(run, periods, torques, when_s):
    """Largest change of torque, N·m, in the first period after a time."""
    times = np.array([p.believed.time_s for p in periods])
    return np.abs(np.diff(torques, axis=0)[np.argmax(times > when_s + 5e-4)]).max()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"solve_every": 2},
        {"command_interface": "linear_feedback"},
        {"command_interface": "low_level"},
    ],
)
def test_a_base_that_is_found_at_once_is_carried_on_without_a_step_of_torque(changes):
    """Twice: the second loss begins with the torques of then."""
    rate_nm_s, lost_s, between_s = 50.0, 0.03, 0.2
    run, told = standing(blend_rate_nm_s=[rate_nm_s], **changes)
    before = advance(run, BEGIN_S)[-1].result.torques
    windows = [(BEGIN_S + k * between_s, BEGIN_S + k * between_s + lost_s) for k in range(2)]
    lose(told, *windows)
    periods = advance(run, BEGIN_S + 2 * between_s)
    torques = np.array([before, *(p.result.torques for p in periods)])
    most = 1.001 * rate_nm_s * run.settings.period_s
    for begin_s, end_s in windows:
        assert changes_at(run, periods, torques, begin_s) < most
        assert changes_at(run, periods, torques, end_s) < most
    assert np.abs(torques[25] - before).max() > 0.2 and run.safety.commanding
    assert np.abs(torques[-1] - before).max() < 0.05 and away(run, periods)[-1] > 0.1


def test_a_trajectory_at_the_robots_side_goes_on_to_its_rest():
    run, told = standing(command_interface="joint_trajectory")
    silent(told, BEGIN_S, 9.0)
    advance(run, BEGIN_S)
    while told.estimate.ready:
        run.advance()
    followed = run.local.trajectory
    advance(run, run.believed.time_s + 0.1)
    assert run.local.trajectory is followed and run.safety.state is SafetyState.INTERRUPTED
