"""Limits of torque, the soft stop of a joint, blending and the start ramp."""

import dataclasses

import numpy as np
import pytest
from robots import QUADRUPED

from contact_id_controller import RobotModel
from contact_id_controller.control.limits import (
    BRAKES,
    EFFORT,
    POSITION,
    POWER,
    RATE,
    VELOCITY,
    bound_joints,
    joint_limits,
    limit_joints,
)
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.safety.torque_output import TorqueOutput
from contact_id_controller.settings.controller import ControllerSettings

NA = 12
ZERO = np.zeros(NA)
HEAVY = np.eye(NA)


class Limits:
    """The limits of a period: of accelerations, then of torques."""

    def __init__(self, robot, settings):
        self._limits = joint_limits(robot, settings)
        self.acting, self._bounded = np.zeros((2, NA), np.uint8)

    def bound_accelerations(self, q, qd, qdd, M=HEAVY, brakes=BRAKES):
        bound_joints(q, qd, M, np.arange(NA), brakes, self._limits, qdd, self._bounded)

    def limit(self, q, qd, wanted, last):
        torques = np.empty(NA)
        limit_joints(q, qd, wanted, last, self._limits, self._bounded, torques, self.acting)
        self._bounded[:] = 0
        return torques


@pytest.fixture(scope="module")
def robot():
    robot = RobotModel.from_urdf(QUADRUPED)
    robot.lower[:], robot.upper[:] = -1.0, 1.0
    robot.effort_limits[:], robot.velocity_limits[:] = 20.0, 15.0
    return robot


def settings(**changes):
    return ControllerSettings.from_mapping({"urdf": QUADRUPED, **changes})


def first(robot, torque, q=0.0, qd=0.0, last=0.0, **changes):
    """What becomes of a torque on the first joint, and the bits that acted."""
    limits = Limits(robot, settings(**changes))
    values = [np.r_[value, np.zeros(NA - 1)] for value in (q, qd, torque, last)]
    torques = limits.limit(*values)
    assert not limits.acting[1:].any() or limits.acting[0] & POWER
    return float(torques[0]), int(limits.acting[0])


def test_inside_all_limits_nothing_changes(robot):
    assert first(robot, 3.0, 0.5, 5.0) == (3.0, 0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_effort(robot, sign):
    assert first(robot, sign * 25.0) == (sign * 20.0, EFFORT)
    assert first(robot, sign * 25.0, effort_limits_nm=[2.0]) == (sign * 2.0, EFFORT)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rate_counts_from_what_was_commanded_last(robot, sign):
    changes = {"effort_rate_limits_nm_s": [100.0]}
    assert first(robot, sign * 3.0, last=sign * 2.95, **changes) == (sign * 3.0, 0)
    torque, acting = first(robot, sign * 3.0, last=-sign * 1.0, **changes)
    assert torque == pytest.approx(-sign * 0.9) and acting == RATE


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_torque_that_drives_a_joint_beyond_its_speed_fades_and_braking_does_not(robot, sign):
    assert first(robot, sign * 3.0, qd=sign * 15.0) == (sign * 3.0, 0)
    torque, acting = first(robot, sign * 3.0, qd=sign * 15.75)
    assert torque == pytest.approx(sign * 1.5) and acting == VELOCITY
    assert first(robot, sign * 3.0, qd=sign * 30.0)[0] == 0.0
    assert first(robot, -sign * 3.0, qd=sign * 30.0) == (-sign * 3.0, 0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_torque_towards_an_end_fades_and_motion_is_damped(robot, sign):
    torque, acting = first(robot, sign * 2.0, q=sign * 0.975)
    assert torque == pytest.approx(sign * 1.0) and acting == POSITION
    assert first(robot, sign * 2.0, q=sign * 1.2)[0] == 0.0
    assert first(robot, -sign * 2.0, q=sign * 1.2) == (-sign * 2.0, 0)
    damped, _ = first(robot, 0.0, q=sign * 0.975, qd=sign * 2.0, damping_nm_s_rad=[0.5])
    assert damped == pytest.approx(-sign * 0.5)
    assert first(robot, sign * 2.0, q=sign * 1.2, position_stops=False) == (sign * 2.0, 0)


def test_power_of_all_motors_is_kept(robot):
    motors = {"motor_constant_nm_sqrt_w": [8.0**-0.5]}
    limits = Limits(robot, settings(power_limit_w=800.0, effort_limits_nm=[np.inf], **motors))
    rng = np.random.default_rng(0)
    limited = 0
    for _ in range(200):
        wanted, qd = rng.normal(0, 3, NA), rng.normal(0, 3, NA)
        torques = limits.limit(ZERO, qd, wanted, ZERO)
        power = torques @ qd + 8.0 * torques @ torques
        assert power <= 800.0 * (1 + 1e-12)
        share = torques / wanted
        assert np.allclose(share, share[0]) and 0.0 < share[0] <= 1.0
        if limits.acting.all():
            limited += 1
            assert power == pytest.approx(800.0) and (limits.acting == POWER).all()
        else:
            assert share[0] == 1.0
    assert 20 < limited < 200


def test_power_limit_needs_motors():
    with pytest.raises(ConfigurationError, match="power_limit_w.*motor_constant_nm_sqrt_w"):
        settings(power_limit_w=5.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_hidden(robot, value):
    limits = Limits(robot, settings(effort_limits_nm=[np.inf]))
    assert not np.isfinite(limits.limit(ZERO, ZERO, np.r_[value, np.zeros(11)], ZERO)[0])


def test_desired_accelerations_stop_a_joint_before_its_end(robot):
    """A joint that is asked to accelerate for ever comes to rest at the soft stop."""
    limits = Limits(robot, settings())
    q, qd = np.zeros(NA), np.zeros(NA)
    fastest, furthest = 0.0, 0.0
    for _ in range(4000):
        qdd = np.where(np.arange(NA) % 2, 1.0, -1.0) * 500.0
        limits.bound_accelerations(q, qd, qdd)
        qd += 1e-3 * qdd
        q += 1e-3 * qd
        fastest, furthest = max(fastest, np.abs(qd).max()), max(furthest, np.abs(q).max())
    assert furthest < 1.0
    assert np.abs(q).min() > 0.94 and np.abs(qd).max() < 1e-3
    assert fastest <= 15.0


@pytest.mark.parametrize("inertia, gain", [(0.005, 100.0), (0.02, 50.0), (1.0, 20.0)])
def test_a_joint_nears_its_end_as_fast_as_it_can_brake(robot, inertia, gain):
    """With half of its 20 N m at 10 rad/s: a light knee that swings was braked from .5 rad before its soft stop on."""
    limits, M = Limits(robot, settings()), inertia * HEAVY
    for share, brakes in ((1.2, False), (0.99, True)):
        q, qdd = np.full(NA, 0.95 - share * 10.0 / gain), np.ones(NA)
        limits.bound_accelerations(q, np.full(NA, 10.0), qdd, M)
        assert np.all(qdd < -0.99 * 10.0 * gain if brakes else qdd == 1.0)


def test_a_joint_that_does_not_brake_slows_down_as_its_stop_gain_says(robot):
    """Arms that do throw the torso of a biped that is pushed: of 64 pushes two felled G1, none without."""
    limits, light = Limits(robot, settings()), 0.005 * HEAVY
    for before, most in ((0.5, 0.0), (0.6, 1.0), (0.4, -1.0)):
        q, qdd = np.full(NA, 0.95 - before), np.ones(NA)
        limits.bound_accelerations(q, np.full(NA, 10.0), qdd, light, brakes=0.0)
        assert np.all(np.sign(np.round(qdd, 6)) == most)


@pytest.mark.parametrize("brakes", [0.0, BRAKES])
def test_a_joint_without_an_effort_limit_stops_before_its_end(robot, brakes):
    """Without brakes its end was not seen: none of an infinite torque is no number."""
    limits = Limits(robot, settings())
    limits._limits = limits._limits.changed(effort=np.full(NA, np.inf))
    limits.bound_accelerations(
        np.full(NA, 0.94), np.full(NA, 2.0), qdd := ZERO + 1e3, brakes=brakes
    )
    assert np.all(qdd < -50.0)


@pytest.mark.parametrize("inertia", [0.005, 0.05])
def test_a_joint_stops_before_its_end_with_its_own_torque(robot, inertia):
    limits, M = Limits(robot, settings()), inertia * HEAVY
    q, qd, most = np.zeros(NA), np.zeros(NA), 20.0 / inertia
    for _ in range(1000):
        limits.bound_accelerations(q, qd, qdd := np.full(NA, most), M)
        qd += 1e-3 * np.clip(qdd, -most, most)
        q += 1e-3 * qd
        assert q.max() < 0.955
    assert q.min() > 0.945 and np.abs(qd).max() < 1e-3


def test_fast_joint_is_brought_back_to_its_speed(robot):
    limits = Limits(robot, settings())
    qdd = np.full(NA, 100.0)
    limits.bound_accelerations(ZERO, np.full(NA, 16.0), qdd)
    assert np.allclose(qdd, -50.0)
    limits.limit(ZERO, ZERO, ZERO, ZERO)
    assert (limits.acting == VELOCITY).all()  # told with the torques of the same step
    limits.limit(ZERO, ZERO, ZERO, ZERO)
    assert not limits.acting.any()


@pytest.mark.parametrize("q", [0.97, 1.0, 1.3])
def test_joint_that_rests_near_its_end_is_neither_pushed_nor_flagged(robot, q):
    limits = Limits(robot, settings())
    qdd = np.zeros(NA)
    limits.bound_accelerations(np.full(NA, q), ZERO, qdd)
    assert not qdd.any()
    assert not limits.limit(np.full(NA, q), ZERO, ZERO, ZERO).any() and not limits.acting.any()
    limits.bound_accelerations(np.full(NA, q), ZERO, qdd := np.full(NA, 9.0))
    assert not qdd.any()


def test_margin_is_at_most_a_tenth_of_the_range():
    robot = RobotModel.from_urdf(QUADRUPED)
    robot.lower[:], robot.upper[:] = 0.0, 0.04  # a gripper, in metres
    limits = Limits(robot, settings())
    torques = limits.limit(np.full(NA, 0.038), ZERO, np.ones(NA), ZERO)
    assert np.allclose(torques, 0.5)
    assert np.allclose(limits.limit(np.full(NA, 0.02), ZERO, np.ones(NA), ZERO), 1.0)


# Output


def output(**changes):
    return TorqueOutput(settings(**changes), np.full(NA, 20.0))


def test_step_of_torque_fades_in_and_the_motion_passes():
    out = output(blend_rate_nm_s=[100.0], start_ramp_s=0.0)
    out.jump(ZERO)
    wanted = np.linspace(0.0, 1.05, NA)
    last = out.sent.copy()
    for _ in range(11):
        sent = out.follow(wanted).copy()
        assert np.abs(sent - last).max() <= 0.1 + 1e-12
        last = sent
    assert np.array_equal(sent, wanted) and out.settled
    assert np.array_equal(out.follow(wanted + 5.0), wanted + 5.0)  # settled: at once
    out.blend()
    assert np.allclose(out.follow(wanted), wanted + 4.9)
    assert np.allclose(out.follow(wanted + 2.0), wanted + 6.8)  # the foot lands meanwhile
    assert not out.settled


def test_a_change_fades_from_what_its_source_would_have_wanted_then():
    out = output(blend_rate_nm_s=[100.0], start_ramp_s=0.0)
    out.jump(ZERO)
    out.settle()
    assert np.array_equal(out.follow(ZERO + 1.0), ZERO + 1.0)
    out.blend_from(ZERO + 7.0)  # the foot lands in this moment: 6 N·m are the motion's own
    assert np.allclose(out.follow(ZERO + 6.5), 1.1)  # no step in this period
    assert np.allclose(out.follow(ZERO + 6.5), 6.8)


@pytest.mark.parametrize("safe", [False, True])
def test_what_comes_between_is_blended_from_instead(safe):
    """A stop, or a bad step, after it was asked what would have been wanted."""
    out = output(blend_rate_nm_s=[100.0], start_ramp_s=0.0)
    out.jump(ZERO + 7.0)
    out.blend_from(ZERO + 7.0)
    if safe:
        out.jump(ZERO)
    else:
        out.blend()
        out.sent[:] = 0.0
    for k in range(1, 5):
        assert np.allclose(out.follow(ZERO + 7.0), 0.1 * k)


def test_offset_stays_within_the_effort_limits():
    out = output(blend_rate_nm_s=[100.0], start_ramp_s=0.0)
    out.jump(np.full(NA, 19.0))
    out.follow(ZERO)
    assert np.abs(out.follow(np.full(NA, 15.0))).max() == 20.0


def test_start_ramp_grows_to_the_wanted_torque_in_the_stated_time():
    out = output(start_ramp_s=0.1)
    out.jump(np.full(NA, -1.0))
    out.ramp()
    sent = [out.follow(np.full(NA, 3.0))[0] for _ in range(101)]
    assert np.allclose(np.diff(sent[:100]), 0.04)
    assert sent[49] == pytest.approx(1.0) and sent[99] == sent[100] == 3.0


def test_jump_ends_a_ramp():
    out = output(start_ramp_s=0.1, blend_rate_nm_s=[1000.0])
    out.ramp()
    out.follow(np.ones(NA))
    assert np.array_equal(out.jump(ZERO), ZERO)
    assert np.allclose(out.follow(np.full(NA, 5.0)), 1.0)


def test_limits_count_their_values(robot):
    for name in ("effort_limits_nm", "velocity_limits_rad_s", "effort_rate_limits_nm_s"):
        with pytest.raises(ConfigurationError, match=f"{name}.*2 values, must have 1 or 12"):
            Limits(robot, dataclasses.replace(settings(), **{name: (1.0, 2.0)}))


def test_effort_limit_that_was_lowered_holds_at_once_whatever_the_rate(robot):
    changes = {"effort_limits_nm": [5.0], "effort_rate_limits_nm_s": [100.0]}
    for sign in (1.0, -1.0):
        torque, acting = first(robot, sign * 19.0, last=sign * 19.0, **changes)
        assert torque == sign * 5.0 and acting & EFFORT


def test_change_in_the_middle_of_the_start_ramp_is_blended():
    out = output(start_ramp_s=0.1, blend_rate_nm_s=[100.0])
    out.jump(ZERO)
    out.ramp()
    for _ in range(90):
        last = out.follow(np.full(NA, 10.0)).copy()
    assert np.allclose(last, 9.0)
    steps = []
    for wanted in (-10.0, 10.0):  # the safe output for one state, and back
        out.blend()
        sent = out.follow(np.full(NA, wanted)).copy()
        steps.append(np.abs(sent - last).max())
        last = sent
    assert max(steps) <= 0.1 + 1e-12
    for _ in range(300):
        sent = out.follow(np.full(NA, 10.0))
    assert np.array_equal(sent, np.full(NA, 10.0)) and out.settled


def test_offset_that_the_effort_limit_cuts_off_is_forgotten():
    out = output(blend_rate_nm_s=[100.0], start_ramp_s=0.0)
    out.jump(np.full(NA, 19.0))
    out.follow(ZERO)
    assert np.allclose(out.follow(np.full(NA, 15.0)), 20.0)  # the offset of 18.8 has become 5
    assert np.allclose(out.follow(ZERO), 4.9)
