"""A base that was measured some milliseconds ago: carried on, believed as far as it is known, walked with."""

import numpy as np
import pinocchio as pin
import pytest
from robots import QUADRUPED, QUADRUPED_FEET

from contact_id_controller import RobotModel
from contact_id_controller.runs import one_process
from contact_id_controller.safety.base_prediction import KEPT, BasePrediction
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.states import JointReading, Refusal, StateChecks
from contact_id_controller.settings.controller import ControllerSettings

MS, CERTAIN = 1_000_000, np.zeros(6)


def moving(seed=0):
    random = np.random.default_rng(seed)
    turn = random.normal(size=4)
    return np.concatenate(
        [random.normal(size=3), turn / np.linalg.norm(turn), random.normal(size=6)]
    )


def integrated(base, accelerations, steps=200):
    """The same base, a millisecond for each of its accelerations, in small steps."""
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    q, v, h = base[:7].copy(), base[7:].copy(), 1e-3 / steps
    for acceleration in accelerations:
        for _ in range(steps):
            q = pin.integrate(model, q, h * (v + 0.5 * h * acceleration))
            v = v + h * acceleration
    return np.concatenate([q, v])


@pytest.mark.parametrize("known", [0, 3, 20])
def test_a_base_is_carried_on_with_what_is_known_of_its_accelerations(known):
    """Evenly before the first; each holds until the next one."""
    prediction, base = BasePrediction(), moving()
    accelerations = 10.0 * np.random.default_rng(1).normal(size=(20, 6))
    accelerations[: 20 - known] = 0.0
    for k in range(20 - known, 20):
        prediction.accelerate((100 + k) * MS, accelerations[k])
    found = prediction.carry(base, 100 * MS, 120 * MS, CERTAIN)
    np.testing.assert_allclose(found, integrated(base, accelerations), atol=2e-4)
    back = prediction.carry(base, 100 * MS, 98 * MS, CERTAIN)
    np.testing.assert_allclose(back[7:], base[7:])


def test_only_what_is_kept_is_used_and_what_is_forgotten_is_not():
    prediction, base = BasePrediction(), moving()
    for k in range(3 * KEPT):
        prediction.accelerate(k * MS, np.full(6, float(k)))
    newest = 3 * KEPT - 1
    found = prediction.carry(base, newest * MS, (newest + 1) * MS, CERTAIN)
    np.testing.assert_allclose(found[7:], base[7:] + 1e-3 * newest)
    prediction.forget()
    found = prediction.carry(base, newest * MS, (newest + 1) * MS, CERTAIN)
    np.testing.assert_allclose(found[7:], base[7:])


def test_what_surprises_is_known_less_well():
    deviations = []
    for noise in (0.0, 0.01, 0.1):
        prediction, base = BasePrediction(), moving()
        random = np.random.default_rng(2)
        for k in range(300):
            base[7:] = noise * random.normal(size=6)
            prediction.carry(base, k * MS, (k + 20) * MS, CERTAIN)
        deviations.append((prediction.position_m, prediction.attitude_rad))
    assert deviations[0] < (1e-4, 1e-4) and np.all(np.diff(deviations, axis=0) > 0.0)
    prediction.carry(base, 300 * MS, 320 * MS, np.full(6, 4.0))
    assert prediction.position_m > 0.04  # the sender is unsure itself


def checks_of(**changes):
    values = {"urdf": QUADRUPED, "contact_frames": list(QUADRUPED_FEET), **changes}
    settings = ControllerSettings.from_mapping(values)
    checks = StateChecks(settings.robot())
    checks.apply(settings)
    return checks


def last_age_ms(checks, base, variances=None):
    """How old a base of time 1 s may be, and why it is refused then."""
    na = len(RobotModel.from_urdf(QUADRUPED).joint_names)
    checks.take_base(base, 1000 * MS, variances)
    for age in range(200):
        state = checks.take(JointReading((1000 + age) * MS, np.zeros(na), np.zeros(na)), None)
        if isinstance(state, Refusal):
            return age - 1, state.reason
    raise AssertionError("it is never refused")


def test_one_twist_that_is_wrong_does_not_make_later_bases_unsure():
    """At 200 Hz and 20 ms late .3 s of right odometry were refused after it; worse odometry is known nevertheless."""
    prediction, base, random = BasePrediction(), np.zeros(13), np.random.default_rng(5)
    base[6], step_ns = 1.0, 5_000_000

    def deviations(count, noise, wrong=0.0):
        worst = 0.0
        for k in range(count):
            seen = base.copy()
            seen[7:] += noise * random.standard_normal(6)
            seen[7] += wrong
            deviations.ns += step_ns
            prediction.carry(seen, deviations.ns, deviations.ns + 20_000_000, np.zeros(6))
            worst = max(worst, prediction.position_m)
        return worst

    deviations.ns = 10**12
    deviations(3000, 1e-3)
    usual = deviations(100, 1e-3)
    deviations(1, 1e-3, wrong=20.0)
    assert deviations(200, 1e-3) < max(2.0 * usual, 2e-3)
    assert deviations(30, 3.0) > 0.05


def test_an_old_base_is_refused_by_how_unsure_it_is_and_at_the_latest_by_its_age():
    base = np.zeros(13)
    base[6] = 1.0
    age, reason = last_age_ms(checks_of(), base)
    assert 50 <= age < 100 and reason == "odometry_unsure"
    doubtful, reason = last_age_ms(checks_of(), base, np.full(6, 4.0))
    assert 10 <= doubtful < 30 and reason == "odometry_unsure"
    free = {"odometry_jump_m": np.inf}
    assert last_age_ms(checks_of(**free), base) == (100, "odometry_old")
    assert last_age_ms(checks_of(odometry_age_limit_s=0.02), base) == (20, "odometry_old")
    unknown = np.full(6, np.nan)
    assert last_age_ms(checks_of(), base, unknown) == (0, "odometry_unsure")


def test_a_robot_walks_on_odometry_that_is_always_late():
    """5 ms; taken as it is it fell after .6 s, carried on evenly it all but did."""
    late = 5
    settings = one_process.controller_settings("quadruped", start_ramp_s=0.0)
    world = one_process.mujoco_robot(settings, 1.0)
    run = one_process.InProcessRun("quadruped", settings, world)
    guard, bases, robot = Guard(run.controller, lockstep=True), [], run.robot

    def measured(state):
        bases.append(np.concatenate([state.q[:7], state.v[:6]]))
        stamp = len(bases)
        guard.take_base(bases[max(stamp - 1 - late, 0)], max(stamp - late, 1) * MS)
        joints = robot.joints_of(state.q), state.v[robot.actuated]
        return JointReading(stamp * MS, *joints)

    def step(state):
        torques = guard.step(measured(state))
        assert guard.result is not None, guard.news()
        guard.finish(0.0)
        return guard.result._replace(torques=torques.copy())

    guard.observe(measured(run.state), None)
    assert guard.start() == ""
    run._step = step
    record = run.record(2.0)
    assert not record.fell
    error = np.abs(record.reference_position - record.position).mean()
    assert error < 0.01
    assert np.linalg.norm(record.q[-1, :2] - record.q[0, :2]) > 0.15


def test_an_acceleration_of_long_ago_is_none_of_now():
    """Only a base that is predicted leaves one: the last may be of an impact minutes ago."""
    prediction, base = BasePrediction(), moving()
    prediction.accelerate(0, np.full(6, 20.0))
    found = prediction.carry(base, 1_000 * MS, 1_050 * MS, CERTAIN)
    np.testing.assert_allclose(found[7:], base[7:])


def test_bases_next_to_each_other_in_time_say_nothing_of_how_velocity_grows():
    """As of two senders on one topic: their noise over a nanosecond is no acceleration."""
    prediction, base = BasePrediction(), moving()
    prediction.carry(base, 100 * MS, 105 * MS, CERTAIN)
    before = prediction.position_m
    other = base.copy()
    other[7:] += 0.05
    prediction.carry(other, 100 * MS + 1, 105 * MS + 1, CERTAIN)
    assert prediction.position_m == pytest.approx(before)


def test_a_driver_that_does_not_know_its_covariance_is_believed():
    """1e6 is what many send for unknown."""
    checks = StateChecks(RobotModel.from_urdf(QUADRUPED, floating_base=True))
    base = np.zeros(13)
    base[2], base[6] = 0.16, 1.0
    joints = np.zeros(12)
    checks.take_base(base, 100 * MS, np.full(6, 1e6))
    assert not isinstance(checks.take(JointReading(102 * MS, joints, joints), None), Refusal)
