"""Planned motion: interpolation against known polynomials, and which plans are refused."""

import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.interpolation import doubtful, largest_rates, range_between
from contact_id_controller.plans.trajectories import (
    BaseTrajectory,
    ContactSchedule,
    JointTrajectory,
    PlanSlot,
)

NAMES = ["hip", "knee"]
TIMES = np.array([0.0, 0.1, 0.25, 0.6])


def polynomial(degree, times):
    """Value and first two derivatives of two fixed polynomials at the times: three (p, 2)."""
    rng = np.random.default_rng(degree)
    curves = [np.polynomial.Polynomial(rng.standard_normal(degree + 1)) for _ in NAMES]
    return [np.array([c.deriv(k)(times) if k else c(times) for c in curves]).T for k in range(3)]


def trajectory(degree, times=TIMES, **options):
    points = polynomial(degree, times)[: (degree + 1) // 2]
    options.setdefault("allow_moving_end", True)
    return JointTrajectory(NAMES, times, *points, **{"start_s": 2.0, **options})


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_points_of_a_polynomial_reproduce_it_with_its_derivatives(degree):
    followed = trajectory(degree)
    for t in np.linspace(0.0, 0.599, 50):
        for got, wanted in zip(followed.sample(2.0 + t), polynomial(degree, np.array([t]))):
            assert got == pytest.approx(wanted[0], abs=1e-9)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_first_and_last_point_are_held_at_rest(degree):
    followed = trajectory(degree)
    for t, k in ((1.5, 0), (2.6, -1), (9.0, -1)):
        reference = followed.sample(t)
        assert np.array_equal(reference.position, followed.positions[k])
        assert not reference.velocity.any() and not reference.acceleration.any()


def test_single_point_is_held():
    followed = JointTrajectory(NAMES, [0.5], [[0.1, 0.2]], start_s=1.0)
    for t in (1.0, 1.5, 3.0):
        assert followed.sample(t).position == pytest.approx([0.1, 0.2])


def test_without_a_start_times_count_from_zero_and_sampling_changes_nothing():
    plan = trajectory(3, start_s=None)
    still = np.zeros((2, 3))
    base = BaseTrajectory([0.0, 1.0], [still[0], still[0] + 1.0], [[0, 0, 0, 1]] * 2, still, still)
    schedule = ContactSchedule(["a"], [0.0, 0.5], [[1], [0]])
    for _ in range(2):
        assert plan.sample(7.0).position == pytest.approx(plan.positions[-1])
        assert plan.sample(plan.times_s[1]).position == pytest.approx(plan.positions[1])
        assert base.sample(0.5).position == pytest.approx([0.5] * 3)
        assert schedule.sample(0.4).all() and not schedule.sample(0.5).any()
    assert plan.start_s is base.start_s is schedule.start_s is None


def test_sampling_writes_into_the_array_given():
    out = np.full((3, 2), np.nan)
    reference = trajectory(5).sample(2.2, out)
    assert reference.velocity.base is out and np.isfinite(out).all()


def test_joints_are_matched_by_name():
    followed = trajectory(5)
    swapped = followed.in_order(["knee", "hip"])
    for got, wanted in zip(swapped.sample(2.17), followed.sample(2.17)):
        assert got == pytest.approx(wanted[::-1])


@pytest.mark.parametrize(
    "robot, words", [(["hip", "foot"], "unknown joint 'knee'"), (["hip", "knee", "toe"], "'toe'")]
)
def test_joints_that_do_not_fit_the_robot_are_refused(robot, words):
    with pytest.raises(TrajectoryError, match=words):
        trajectory(1).in_order(robot)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_way_to_the_first_point_starts_at_the_state_at_reception(degree):
    followed = trajectory(degree).received(1.8, [0.3, -0.2], [1.0, 2.0], [3.0, 4.0])
    start, arrival = followed.sample(1.8), followed.sample(2.0)
    assert start.position == pytest.approx([0.3, -0.2])
    if degree >= 3:
        assert start.velocity == pytest.approx([1.0, 2.0])
    if degree == 5:
        assert start.acceleration == pytest.approx([3.0, 4.0])
    assert arrival.position == pytest.approx(trajectory(degree).positions[0])
    assert followed.sample(2.3).position == pytest.approx(trajectory(degree).sample(2.3).position)


@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("now_s", [0.0, 0.7, 1.8, 2.3])
def test_reception_is_the_trajectory_made_of_all_its_points(degree, now_s):
    """A long plan is received in the control loop: its points are not looked at again."""
    plan, first = trajectory(degree), [0.3, -0.2]
    received = plan.received(now_s, first, [1.0, 2.0], [3.0, 4.0])
    rows = [plan.positions, plan.velocities, plan.accelerations]
    if now_s < plan.start_s + plan.times_s[0]:
        before = [first, [1.0, 2.0], [3.0, 4.0]]
        rows = [None if row is None else np.vstack([b, row]) for b, row in zip(before, rows)]
        times_s = np.r_[0.0, plan.times_s + plan.start_s - now_s]
        made = JointTrajectory(plan.names, times_s, *rows, now_s, True)
    else:
        made = JointTrajectory(plan.names, plan.times_s, *rows, plan.start_s, True)
    for t_s in np.linspace(now_s, 3.5, 77):
        for got, wanted in zip(received.sample(t_s), made.sample(t_s)):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    assert received.start_s + received.times_s[-1] == pytest.approx(made.start_s + made.times_s[-1])
    assert plan.sample(2.1).position == pytest.approx(trajectory(degree).sample(2.1).position)


def test_reception_without_velocity_starts_at_rest():
    followed = trajectory(5).received(1.8, [0.3, -0.2])
    assert not followed.sample(1.8).velocity.any()


def test_reception_after_the_start_changes_nothing():
    followed = trajectory(5).received(2.3, [9.0, 9.0])
    assert followed.sample(2.4).position == pytest.approx(trajectory(5).sample(2.4).position)


def test_reception_at_time_zero_is_no_start_at_any_time():
    """It was: the plan began a period late, with the second time it was sampled at."""
    followed = trajectory(5, start_s=0.5).received(0.0, [0.3, -0.2])
    wanted = trajectory(5, start_s=0.5).sample(0.6).position
    followed.sample(0.001)
    assert followed.sample(0.6).position == pytest.approx(wanted, abs=1e-12)


def test_reception_gives_a_plan_without_start_its_time():
    plan = trajectory(3, start_s=None)
    assert plan.received(5.0, [0.0, 0.0]).start_s == 5.0 and plan.start_s is None
    with pytest.raises(TrajectoryError, match="in the past"):
        trajectory(3, start_s=0.0).received(5.0, [0.0, 0.0])


def test_plan_that_ended_before_reception_is_refused():
    with pytest.raises(TrajectoryError, match="in the past"):
        trajectory(3).received(2.7, [0.0, 0.0])


def test_final_motion_is_refused_unless_allowed():
    with pytest.raises(TrajectoryError, match="'hip'.*must end at rest"):
        JointTrajectory(NAMES, [0.0, 1.0], np.zeros((2, 2)), [[0, 0], [0.5, 0]])
    JointTrajectory(NAMES, [0.0, 1.0], np.zeros((2, 2)), [[0.5, 0], [0, 0]])


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"times_s": []}, "no points"),
        ({"times_s": [0.0, 0.2, 0.2]}, "must increase: point 2 is at 0.2 s"),
        ({"times_s": [0.0, 0.3, 0.2]}, "must increase"),
        ({"times_s": [-0.1, 0.3, 0.4]}, "not negative"),
        ({"times_s": [0.0, 0.3, np.nan]}, "finite"),
        ({"positions": np.zeros((3, 1))}, r"positions have shape \(3, 1\)"),
        ({"positions": None}, "no positions"),
        ({"positions": [[0, 0], [0], [0, 0]]}, "positions are not 3 points of 2"),
        ({"positions": np.full((3, 2), np.inf)}, "positions hold"),
        ({"velocities": np.zeros((2, 2))}, "velocities have shape"),
        ({"velocities": np.full((3, 2), np.nan)}, "velocities hold"),
        ({"velocities": None, "accelerations": np.zeros((3, 2))}, "accelerations but no velocit"),
        ({"names": ["hip", "hip"]}, "joint twice"),
        ({"start_s": -1.0}, "start is -1"),
        ({"start_s": np.nan}, "start is nan"),
    ],
)
def test_malformed_joint_trajectory_is_refused_in_one_line(changes, words):
    good = {
        "names": NAMES,
        "times_s": [0.0, 0.1, 0.2],
        "positions": np.zeros((3, 2)),
        "velocities": np.zeros((3, 2)),
        "start_s": 1.0,
    }
    JointTrajectory(**good)
    with pytest.raises(TrajectoryError, match=words) as caught:
        JointTrajectory(**{**good, **changes})
    assert "\n" not in str(caught.value)


def turning_base(count=9, duration=0.4):
    """A base that tumbles on a known path; the trajectory and functions for its exact motion."""
    axis = np.array([0.3, -0.5, 0.8])

    def attitude(t):
        return pin.exp3(axis * np.sin(3 * t)) @ pin.rpy.rpyToMatrix(0.2 * t, -0.4, 2.0 * t)

    def spin(t, step=1e-5):
        return pin.log3(attitude(t + step) @ attitude(t - step).T) / (2 * step)

    def position(t):
        return np.array([np.sin(4 * t), np.cos(3 * t), 0.3 + t * t])

    def velocity(t):
        return np.array([4 * np.cos(4 * t), -3 * np.sin(3 * t), 2 * t])

    times = np.linspace(0.0, duration, count)
    quaternions = [pin.Quaternion(attitude(t)).coeffs() for t in times]
    plan = BaseTrajectory(
        times,
        [position(t) for t in times],
        quaternions,
        [velocity(t) for t in times],
        [spin(t) for t in times],
        start_s=1.0,
    )
    return plan, attitude, spin, position, velocity


def test_base_follows_a_known_tumbling_path():
    plan, attitude, spin, position, velocity = turning_base()
    for t in np.linspace(0.001, 0.399, 40):
        got = plan.sample(1.0 + t)
        turned = pin.Quaternion(got.quaternion_xyzw).matrix()
        assert np.linalg.norm(pin.log3(turned @ attitude(t).T)) < 1e-4
        assert got.angular_velocity == pytest.approx(spin(t), abs=5e-3)
        assert got.position == pytest.approx(position(t), abs=1e-5)
        assert got.linear_velocity == pytest.approx(velocity(t), abs=1e-3)


@pytest.mark.parametrize("duration", [0.02, 0.4, 3.0])  # rotation per segment: small to large
def test_base_velocities_and_accelerations_are_derivatives_of_the_pose(duration):
    plan = turning_base(count=4, duration=duration)[0]
    step = 1e-5 * duration
    for t in 1.0 + np.linspace(0.05, 0.3, 7) * duration:
        before, here, after = plan.sample(t - step), plan.sample(t), plan.sample(t + step)
        turn = (
            pin.Quaternion(after.quaternion_xyzw).matrix()
            @ pin.Quaternion(before.quaternion_xyzw).matrix().T
        )
        assert here.angular_velocity == pytest.approx(pin.log3(turn) / (2 * step), abs=1e-4)
        for name in ("angular", "linear"):
            change = getattr(after, f"{name}_velocity") - getattr(before, f"{name}_velocity")
            wanted = getattr(here, f"{name}_acceleration")
            assert wanted == pytest.approx(change / (2 * step), rel=1e-4, abs=1e-3)
        change = after.position - before.position
        assert here.linear_velocity == pytest.approx(change / (2 * step), abs=1e-4)


def test_base_does_not_take_the_long_way_when_quaternions_change_sign():
    turn = np.array([[0, 0, 0, 1.0], [0, 0, -np.sin(0.05), -np.cos(0.05)]])
    still = np.zeros((2, 3))
    plan = BaseTrajectory([0.0, 1.0], still, turn, still, still, start_s=1.0)
    angle = 2 * np.arctan2(*plan.sample(1.5).quaternion_xyzw[2:])
    assert angle == pytest.approx(0.05)


def test_base_is_held_at_rest_outside_the_plan():
    plan = turning_base()[0]
    for t, k in ((0.5, 0), (1.41, -1), (8.0, -1)):
        reference = plan.sample(t)
        assert np.array_equal(reference.position, plan.positions[k])
        assert not np.any(reference[2:])


def test_quaternion_that_is_not_of_unit_length_is_refused():
    still = np.zeros((2, 3))
    with pytest.raises(TrajectoryError, match="norm 2"):
        BaseTrajectory([0.0, 1.0], still, [[0, 0, 0, 2.0]] * 2, still, still)


def test_contact_schedule_holds_each_row_until_the_next():
    schedule = ContactSchedule(["a", "b"], [0.0, 0.1, 0.2], [[1, 1], [0, 1], [1, 0]], start_s=1.0)
    rows = ((0.0, [1, 1]), (1.0999, [1, 1]), (1.1001, [0, 1]), (1.3, [1, 0]), (9.0, [1, 0]))
    for t, wanted in rows:
        assert schedule.sample(t).tolist() == [bool(w) for w in wanted]
    assert schedule.sample(1.0).dtype == bool


def test_contact_schedule_of_wrong_width_is_refused():
    with pytest.raises(TrajectoryError, match="contact rows have shape"):
        ContactSchedule(["a", "b"], [0.0], [[1.0]])


def test_waiting_plan_takes_over_at_its_start_and_the_newest_replaces_it():
    slot = PlanSlot()
    assert slot.at(0.0) is None
    first, second, third = (trajectory(3, start_s=s) for s in (1.0, 1.2, 1.1))
    slot.replace(first)
    assert slot.at(0.5) is first
    slot.replace(second)
    assert slot.at(1.19) is first
    slot.replace(third)
    assert slot.at(1.19) is third and slot.at(1.3) is third
    immediate = trajectory(3, start_s=None)
    slot.replace(immediate)
    assert slot.at(1.3) is immediate
    slot.clear()
    assert slot.at(1.4) is None


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_rates_are_those_that_sampling_finds_and_a_quick_bound_misses_none(degree):
    rng = np.random.default_rng(degree)
    times = np.cumsum(rng.uniform(0.05, 0.2, 30))
    rows = [rng.normal(size=(30, 2)) for _ in range({1: 1, 3: 2, 5: 3}[degree])]
    trajectory = JointTrajectory(["a", "b"], times, *rows, start_s=1.0, allow_moving_end=True)
    fine = np.linspace(times[0], times[-1], 30_000)[:-1] + 1.0
    samples = [trajectory.sample(t) for t in fine]
    steps, segments, far = np.diff(times), trajectory.segments, np.full(2, np.inf)
    for found, name in zip(largest_rates(steps, segments), ("velocity", "acceleration")):
        dense = np.abs([getattr(each, name) for each in samples]).max(axis=0)
        assert (found >= 0.9 * dense).all() and (found <= 1.02 * dense + 1e-9).all()
    position = np.array([each.position for each in samples])
    low, high = range_between(trajectory.positions, segments)
    assert np.allclose(low, position.min(axis=0), atol=0.05)
    assert np.allclose(high, position.max(axis=0), atol=0.05)
    for k in range(29):
        rates = largest_rates(steps[k : k + 1], segments[k : k + 1])
        low, high = range_between(trajectory.positions[k : k + 1], segments[k : k + 1])
        for limits in (
            (low + 1e-6, far, far, np.inf),
            (-far, high - 1e-6, far, np.inf),
            (-far, far, 0.999 * rates[0], np.inf),
            (-far, far, far, 0.999 * rates[1].max()),
        ):
            beyond = degree > 1 or limits[3] == np.inf
            assert doubtful(steps, segments, limits)[k] or not beyond
    wide = np.full((3, 2), [[-1e3], [1e3], [1e6]])
    assert not doubtful(steps, segments, (*wide, 1e9)).any()
