"""Which frames are in contact: geometry, schedule, measurement, agreement; ramps of load."""

from types import SimpleNamespace

import numpy as np
import pytest

from contact_id_controller.control.contact_sources import (
    DEBOUNCE_S,
    ContactDetector,
    ContactSources,
)
from contact_id_controller.estimation.contact_detector import BearingFeet
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.safety.odometry_jump import OdometryJump
from contact_id_controller.settings.controller import ControllerSettings

FRAMES = ("a", "b")


def settings(**changes):
    return ControllerSettings.from_mapping({"urdf": "x.urdf", **changes})


def detector(on_n=5.0, off_n=2.0, debounce_s=0.0, timeout_s=1.0):
    made = ContactDetector(2)
    made.on_n, made.off_n, made.debounce_s, made.timeout_s = on_n, off_n, debounce_s, timeout_s
    return made


def test_force_has_hysteresis():
    made = detector()
    seen = []
    for k, force in enumerate([0.0, 4.0, 6.0, 4.0, 2.1, 1.9, 4.0, 5.1]):
        made.take_forces(np.array([force, 0.0]), 0.001 * k)
        seen.append(bool(made.at(0.001 * k)[0]))
    assert seen == [False, False, True, True, True, False, False, True]


def test_change_counts_when_it_has_lasted():
    made = detector(debounce_s=0.005)
    for k in range(20):  # trembles every 3 ms
        made.take_forces(np.array([10.0 if k // 3 % 2 else 0.0, 10.0]), 0.001 * k)
        contact = made.at(0.001 * k)
        assert not contact[0]
        assert contact[1] == (k >= 5)


def test_old_and_missing_measurements_are_no_contact():
    made = detector(timeout_s=0.05)
    made.take_states(np.array([1.0, 1.0]), 1.0)
    assert made.at(1.0).all()
    made.take_states(np.array([np.nan, 1.0]), 1.04)
    assert made.at(1.06).tolist() == [False, True]


@pytest.mark.parametrize("silence_s", [10.0, -0.5])
def test_a_message_after_a_silence_counts_at_once(silence_s):
    """The contact that expired, or lies in the future, is not brought back by the message that denies it."""
    made = detector(timeout_s=0.05)
    for time_s in (1.0, 1.01):
        made.take_states(np.array([1.0, 0.0]), time_s)
    made.take_states(np.array([0.0, 1.0]), 1.01 + silence_s)
    assert made.at(1.01 + silence_s).tolist() == [False, True]


@pytest.mark.parametrize(
    "sources, expected",
    [
        (["geometry"], [True, False, True, False]),
        (["schedule"], [True, True, False, False]),
        (["force"], [False, True, True, False]),
        (["geometry", "schedule"], [True, False, False, False]),
        (["schedule", "state"], [False, True, False, False]),
        (["force", "geometry"], [False, False, True, False]),
    ],
)
def test_all_sources_named_must_agree(sources, expected):
    made = ContactSources(np.arange(4), settings(contact_sources=sources))
    for time_s in (0.0, DEBOUNCE_S):
        made.detector.take_forces(np.array([0.0, 9.0, 9.0, 0.0]), time_s)
    gaps = np.array([0.0, 0.1, 0.0, 0.1])
    planned = np.array([True, True, False, False])
    assert made.contacts(DEBOUNCE_S, gaps, planned).tolist() == expected


def test_forces_last_before_they_count_and_states_count_at_once():
    for source, at_once in (("force", False), ("state", True)):
        made = ContactSources(np.arange(1), settings(contact_sources=[source]))
        made.detector.take_states(np.ones(1), 0.0)
        assert made.measured(0.0).tolist() == [at_once]
        made.detector.take_states(np.ones(1), DEBOUNCE_S)
        assert made.measured(DEBOUNCE_S).tolist() == [True]


@pytest.mark.parametrize("source, period_s", [("state", 0.001), ("state", 0.02), ("force", 0.02)])
def test_one_wrong_measurement_is_no_contact_and_no_lift_off(source, period_s):
    """However long the next one takes to come; what two say in a row counts."""
    made = ContactSources(np.arange(2), settings(contact_sources=[source]))
    detector = made.detector

    def measure(k, *touching):
        take = detector.take_states if source == "state" else detector.take_forces
        take(100.0 * np.array(touching), k * period_s)
        return [made.measured((k + part) * period_s).tolist() for part in (0.0, 0.5, 0.99)]

    stands = [True, False]
    for k in range(3):
        found = measure(k, 1, 0)
    assert found == [stands] * 3
    for k, wrong in ((3, (0, 0)), (5, (1, 1)), (7, (0, 1)), (9, (1, 0))):
        assert measure(k, *wrong) == [stands] * 3
        assert measure(k + 1, 1, 0) == [stands] * 3
    assert measure(11, 0, 1) == [stands] * 3
    assert measure(12, 0, 1) == [[False, True]] * 3


@pytest.mark.parametrize(
    "sources, message",
    [
        ([], "one source or two"),
        (["geometry", "geometry"], "one source or two"),
        (["geometry", "schedule", "force"], "one source or two"),
        (["force", "state"], "one source or two"),
        (["measured"], "must be one of 'estimate', 'force', 'geometry', 'schedule', 'state'"),
    ],
)
def test_bad_sources_are_refused(sources, message):
    with pytest.raises(ConfigurationError, match=f"contact_sources.*{message}"):
        settings(contact_sources=sources)


def test_load_grows_after_touchdown_and_fades_before_lift_off():
    made = ContactSources(np.arange(2), settings(force_ramp_s=0.02))
    made.begin()
    everywhere, nowhere = np.zeros(2), np.array([0.0, 0.1])
    planned = np.ones(2, dtype=bool)
    made.contacts(1.0, nowhere, planned)
    assert made.load_share(1.0, None)[0] == 1.0
    made.contacts(1.001, everywhere, planned)  # b lands
    made.contacts(1.011, everywhere, planned)
    assert np.allclose(made.load_share(1.011, None), [1.0, 0.5])
    assert np.allclose(made.load_share(1.011, np.array([0.005, np.inf])), [0.25, 0.5])
    assert made.load_share(1.5, np.array([0.0, 0.3])).tolist() == [1e-3, 1.0]
    assert ContactSources(np.arange(2), settings()).load_share(1.0, None) is None


def test_schedule_knows_when_each_frame_lifts():
    stance = [[1, 1], [0, 1], [1, 0], [1, 1], [0, 1]]
    schedule = ContactSchedule(FRAMES, [0.0, 0.1, 0.2, 0.3, 0.4], stance, start_s=1.0)
    assert np.allclose(schedule.leaves_in(1.05), [0.05, 0.15])
    assert np.allclose(schedule.leaves_in(1.25)[0], 0.15)
    assert schedule.leaves_in(1.35).tolist() == [pytest.approx(0.05), np.inf]
    assert np.isinf(schedule.leaves_in(2.0)).all()


# Odometry

LEVEL = [0.0, 0.0, 0.0, 1.0]


def poses(count, velocity=(0.5, 0.0, 0.0), dt=0.001):
    """A straight walk: (pose, twist, stamp) of each millisecond."""
    for k in range(count):
        position = np.array(velocity) * dt * k
        yield np.r_[position, LEVEL], np.r_[velocity, 0, 0, 0], int(1e9 + 1e6 * k)


def test_walk_is_no_jump():
    jump = OdometryJump(1e-4, 1e-3)
    assert all(jump.take(*pose) == ("", False) for pose in poses(50))


def test_spinning_base_that_moves_forward_is_no_jump():
    """The twist is in the base frame, and turns with it."""
    import pinocchio as pin

    jump, place, twist = OdometryJump(1e-3, 1e-3), pin.SE3.Identity(), pin.Motion.Zero()
    twist.linear, twist.angular = np.array([1.0, 0.2, 0.1]), np.array([0.5, 1.0, 6.0])
    for k in range(300):
        pose = pin.SE3ToXYZQUAT(place)
        assert jump.take(pose, twist.vector, int(1e6 * (k + 1))) == ("", False)
        place = place * pin.exp6(twist * 1e-3)


@pytest.mark.parametrize("turn", [False, True])
def test_outlier_is_refused_and_a_lasting_jump_accepted_at_the_third(turn):
    jump = OdometryJump(0.05, 0.1)
    answers = []
    for k, (pose, twist, stamp) in enumerate(poses(30)):
        if k == 10 or k >= 20:
            if turn:
                pose[3:] = [0.0, 0.0, np.sin(0.5), np.cos(0.5)]
                twist[:2] = 0.5 * np.cos(1.0), -0.5 * np.sin(1.0)
            else:
                pose[0] += 1.0
        away, elsewhere = jump.take(pose, twist, stamp)
        answers.append((bool(away), elsewhere))
    refused = [k for k, (away, _) in enumerate(answers) if away]
    assert refused == [10, 20, 21]
    assert [k for k, (_, elsewhere) in enumerate(answers) if elsewhere] == [22]


def test_wild_poses_are_never_accepted():
    jump, rng = OdometryJump(0.05, 0.1), np.random.default_rng(1)
    jump.take(np.r_[0, 0, 0, LEVEL], np.zeros(6), 1)
    for k in range(50):
        pose = np.r_[rng.uniform(1, 100, 3), LEVEL]
        assert jump.take(pose, np.zeros(6), int(1e6 * (k + 1)))[0]


def test_the_same_odometry_twice_is_no_jump_and_reset_forgets():
    jump = OdometryJump(0.05, 0.1)
    pose = np.r_[0, 0, 0, LEVEL]
    jump.take(pose, np.zeros(6), 5)
    assert jump.take(pose, np.zeros(6), 5) == ("", False)
    jump.reset()
    pose[0] = 9.0
    assert jump.take(pose, np.zeros(6), 6) == ("", False)


def test_measurement_from_before_time_began_anew_is_none():
    measured = detector(debounce_s=0.005, timeout_s=0.05)
    for time_s in (100.0, 100.01):
        measured.take_states(np.array([1.0, 0.0]), time_s)
    assert measured.at(100.01).tolist() == [True, False]
    assert not measured.at(1.0).any()
    measured.take_states(np.array([1.0, 0.0]), 1.001)
    assert measured.at(1.001).tolist() == [True, False]


def test_pose_elsewhere_with_the_stamp_of_the_last_one_is_a_jump():
    jump = OdometryJump(0.05, 0.1)
    pose = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert jump.take(pose, np.zeros(6), 7) == ("", False)
    away, moved = jump.take(pose + np.eye(7)[0], np.zeros(6), 7)
    assert away and not moved


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_feet_that_bear_carry_nearly_as_much_as_any(unit):
    """.9 of the largest load to begin, .85 to go on; a load that is not measured changes nothing."""
    bearing = BearingFeet(3)
    for loads, bears in (
        ([100.0, 89.0, 91.0], [True, True, True]),
        ([100.0, 84.0, 86.0], [True, False, True]),
        ([100.0, 89.0, np.nan], [True, False, True]),
        ([10.0, 9.1, 7.0], [True, True, False]),
    ):
        assert list(bearing.among(unit * np.array(loads))) == bears


def test_a_message_that_is_none_takes_no_other_feet_away():
    pytest.importorskip("rclpy", reason="reads messages of ROS 2")
    from geometry_msgs.msg import WrenchStamped
    from rclpy.serialization import serialize_message

    from contact_id_controller.ros.contact_input import ContactInput

    wrench = WrenchStamped()
    wrench.wrench.force.z = 7.0
    good, taken = serialize_message(wrench), []
    node = SimpleNamespace(create_subscription=lambda *_, **__: None)
    guard = SimpleNamespace(
        take_contact_forces=lambda forces, seen: taken.append((forces[:, 2].copy(), seen.tolist()))
    )
    felt = ContactInput(node, None, "force", ["a", "b", "c"])
    for wrong in (0, 1, 2):
        messages = [good] * 3
        messages[wrong] = b"none"
        felt._newest = messages.__getitem__
        with pytest.raises(StateError):
            felt.pass_on(guard)
        forces, seen = taken.pop()
        assert seen == [k != wrong for k in range(3)] and (forces[seen] == 7.0).all()
