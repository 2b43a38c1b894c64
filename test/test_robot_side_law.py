"""The plugin's law in C++ against Python's and Pinocchio's; silence, stops, ramp and rate; damaged messages.

Needs g++: where there is none these tests are skipped.
"""

import ctypes
import shutil
import subprocess

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT
from robots import QUADRUPED

from contact_id_controller.exceptions import StateError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory, LocalFeedback
from contact_id_controller.plans.robot_side_message import (
    hash_of,
    packed_feedback,
    packed_stop,
    packed_trajectory,
    unpacked_trajectory,
)
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot

COMPILER = shutil.which("g++")
PLUGIN = ROOT / "contact_id_ros2_control"
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++ here: the law is not compiled")

FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
WAITING, FOLLOWING, TRIPPED, STOPPED = range(4)
JOINTS = ["LF_HAA", "LF_HFE", "LF_KFE", "RF_HAA", "RF_HFE", "RF_KFE"]
JOINTS += ["LH_HAA", "LH_HFE", "LH_KFE", "RH_HAA", "RH_HFE", "RH_KFE"]
START_S, PERIOD_S, TIMEOUT_S = 100, 0.001, 0.05
ATOL_NM = 1e-12
SECONDS = 4
"""Place of the stamp in a message."""


def compiled(folder, source, *flags):
    out = folder / source.split(".")[0]
    command = [COMPILER, *FLAGS, *flags, f"-I{PLUGIN / 'include'}", str(PLUGIN / "test" / source)]
    subprocess.run([*command, "-o", str(out)], check=True, timeout=300)
    return out


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    lib = ctypes.CDLL(str(compiled(folder, "probe.cpp", "-O2", "-shared", "-fPIC")))
    lib.robot_side_new.restype = ctypes.c_void_p
    return lib


class Side:
    """The compiled law of some joints."""

    def __init__(self, lib, joints, floating, rows, turns=None, ramp_s=0.0):
        self.lib, self.n = lib, len(joints)
        flags = (ctypes.c_ubyte * self.n)(*map(int, [0] * self.n if turns is None else turns))
        self._keep = np.ascontiguousarray(rows, dtype=float)
        names = b"".join(name.encode() + b"\0" for name in joints)
        self.place = ctypes.c_void_p(
            lib.robot_side_new(
                names,
                self.n,
                int(floating),
                _array(self._keep),
                flags,
                ctypes.c_double(TIMEOUT_S),
                ctypes.c_double(ramp_s),
            )
        )

    def take(self, numbers):
        return self.lib.robot_side_take(self.place, _array(numbers), ctypes.c_ulong(numbers.size))

    def update(self, since_s, q, v, base=None, dt_s=PERIOD_S):
        """State and torques at a time after ``START_S``."""
        out = np.full(self.n, np.nan)
        state = self.lib.robot_side_update(
            self.place,
            ctypes.c_longlong(START_S * 10**9 + round(1e9 * since_s)),
            ctypes.c_double(dt_s),
            *(None if each is None else _array(each) for each in (q, v, base)),
            _array(out),
        )
        return state, out


def _array(values):
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def rows_of(joints, damping=0.5, limit=np.inf, rate=np.inf, p=0.0, d=0.0):
    return np.array([np.broadcast_to(row, len(joints)) for row in (p, d, damping, limit, rate)])


def some_trajectory(rng, points, joints):
    trajectory = EffortTrajectory(points, joints)
    trajectory.start_s = float(START_S)
    trajectory.times_s[1:] = np.cumsum(rng.uniform(0.005, 0.02, points - 1))
    trajectory.values[:] = rng.normal(size=trajectory.values.shape)
    trajectory.positions *= (
        0.05  # or the way between two points takes 1000 rad/s, and digits with it
    )
    return trajectory


def test_along_a_trajectory_it_is_the_local_feedback(library):
    """At, before, between and after its points; joints that turn without end take the short way."""
    rng, n = np.random.default_rng(0), len(JOINTS)
    p, d, limits = rng.uniform(0, 20, n), rng.uniform(0, 2, n), rng.uniform(1, 60, n)
    turns = np.arange(n) % 3 == 0
    side = Side(library, JOINTS, False, rows_of(JOINTS, limit=limits, p=p, d=d), turns)
    for points in (1, 2, 13, 64):
        local = LocalFeedback(p, d, limits, turns)
        local.trajectory = trajectory = some_trajectory(rng, points, n)
        numbers = packed_trajectory(trajectory, JOINTS)
        assert side.take(numbers) == 0
        for since_s in (-0.01, 0.0, *rng.uniform(0, trajectory.times_s[-1] + 0.01, 50)):
            since_s = round(since_s, 6)
            q, v = 4.0 * rng.normal(size=n), rng.normal(size=n)
            state, torques = side.update(since_s, q, v, dt_s=0.0)
            # Shifted to time 0, where Python's clock has no rounding.
            trajectory.start_s = 0.0
            expected = local.torques(since_s, q, v)
            assert state == FOLLOWING
            np.testing.assert_allclose(torques, expected, rtol=1e-12, atol=ATOL_NM)


@pytest.mark.parametrize("floating", [True, False])
def test_with_a_gain_it_is_the_feedback_of_the_whole_state(library, floating):
    """The way from one pose to another is Pinocchio's; coordinates are in another order than its model's."""
    robot = RobotModel.from_urdf(QUADRUPED, floating, JOINTS)
    rng = np.random.default_rng(1)
    side = Side(library, JOINTS, floating, rows_of(JOINTS))
    feedback, limits = StateFeedback(robot), np.ones(robot.nq)
    for far in (3.0, 1.0, 1e-2, 1e-3, 1e-6, 1e-9, 0.0):
        for _ in range(20):
            feedback.time_s = float(START_S)
            feedback.q[:] = pin.randomConfiguration(robot.model, -limits, limits)
            feedback.v[:], feedback.effort[:] = rng.normal(size=robot.nv), rng.normal(size=robot.na)
            feedback.gain[:] = rng.normal(size=feedback.gain.shape)
            away = rng.normal(size=robot.nv)
            q = pin.integrate(robot.model, feedback.q, far * away / np.linalg.norm(away))
            v = feedback.v + rng.normal(size=robot.nv)
            if floating and rng.random() < 0.5:
                q[3:7] *= -1.0  # the same attitude
            assert side.take(packed_feedback(feedback, robot)) == 0
            base = np.r_[q[:7], v[:6]] if floating else None
            joints = robot.joints_of(q), np.ascontiguousarray(v[robot.actuated])
            state, torques = side.update(0.0, *joints, base)
            assert state == FOLLOWING
            np.testing.assert_allclose(torques, feedback.torques(q, v), rtol=1e-12, atol=ATOL_NM)
    if floating:  # without its base no torque of the gain
        assert np.array_equal(side.update(0.0, *joints, None)[1], -0.5 * joints[1])


def resting(n, effort, start_s=0.0):
    """A trajectory that stands at zero with an effort."""
    trajectory = EffortTrajectory(2, n)
    trajectory.start_s = start_s
    trajectory.times_s[:] = 0.0, 0.1
    trajectory.efforts[:] = effort
    return trajectory


def test_silence_trips_and_only_another_sender_or_a_reset_is_followed_again(library):
    v = np.arange(1.0, 13.0)
    q, damping = np.zeros(12), -0.5 * v
    side = Side(library, JOINTS, False, rows_of(JOINTS))
    state, torques = side.update(0.0, q, v)
    assert state == WAITING and np.array_equal(torques, damping), "nothing has come"
    first, other = (packed_trajectory(resting(12, 3.0), JOINTS, session) for session in (5, 6))
    assert side.take(first) == 0
    periods = 0
    while side.update(0.001 * periods, q, v)[0] == FOLLOWING:
        periods += 1
    assert periods - round(TIMEOUT_S / PERIOD_S) in (0, 1), "the time-out and at most one period"
    state, torques = side.update(0.06, q, v)
    assert state == TRIPPED and np.array_equal(torques, damping)
    side.take(first)
    assert side.update(0.061, q, v)[0] == TRIPPED, "who was late may be so again"
    side.take(other)
    state, torques = side.update(0.062, q, v)
    assert state == FOLLOWING and np.allclose(torques, 3.0, atol=1e-12)
    state, _ = side.update(0.063, q, v, dt_s=0.2)
    assert state == TRIPPED, "periods that were lost count"
    library.robot_side_reset(side.place)
    side.take(other)
    assert side.update(0.2, q, v)[0] == FOLLOWING


def test_silence_is_no_matter_of_the_clock_of_stamps(library):
    q, side = np.zeros(12), Side(library, JOINTS, False, rows_of(JOINTS))
    side.take(packed_trajectory(resting(12, 3.0), JOINTS))
    for since_s in (0.0, -90.0, 5000.0):
        assert side.update(since_s, q, q)[0] == FOLLOWING
    for _ in range(100):
        state, _ = side.update(-95.0, q, q)
    assert state == TRIPPED


def test_a_stop_is_latched_whatever_comes_behind_it(library):
    q, v = np.zeros(12), np.ones(12)
    side = Side(library, JOINTS, False, rows_of(JOINTS))
    command = packed_trajectory(resting(12, 3.0), JOINTS)
    side.take(command)
    assert side.update(0.0, q, v)[0] == FOLLOWING
    side.take(packed_stop(JOINTS))
    side.take(packed_trajectory(resting(12, 3.0), JOINTS, session=9))
    for _ in range(3):
        state, torques = side.update(0.001, q, v)
        assert state == STOPPED and np.array_equal(torques, np.full(12, -0.5))
        side.take(command)
    library.robot_side_activate(side.place, None)
    assert side.update(0.002, q, v)[0] == STOPPED, "also when activated again"
    library.robot_side_reset(side.place)
    side.update(0.003, q, v)
    side.take(command)
    assert side.update(0.004, q, v)[0] == FOLLOWING


def test_torque_ramps_from_damping_and_changes_no_faster_than_its_rate(library):
    q, v, limit = np.zeros(12), np.full(12, -2.0), 2.5
    side = Side(library, JOINTS, False, rows_of(JOINTS, limit=limit), ramp_s=0.02)
    sent = []
    for k in range(30):
        side.take(packed_trajectory(resting(12, 3.0), JOINTS))
        sent.append(side.update(0.001 * k, q, v)[1][0])
    share = np.minimum(np.arange(1, 31) / 20, 1.0)
    np.testing.assert_allclose(sent, np.minimum(1.0 + 2.0 * share, limit), atol=1e-12)
    side = Side(library, JOINTS, False, rows_of(JOINTS, rate=100.0))
    sent = [0.0]
    for k in range(60):
        effort = 3.0 if k < 40 else -3.0
        side.take(packed_trajectory(resting(12, effort), JOINTS))
        sent.append(side.update(0.001 * k, q, q)[1][0])
    assert np.abs(np.diff(sent)).max() == pytest.approx(0.1) and sent[40] == 3.0
    assert sent[60] == pytest.approx(1.0)


def test_where_efforts_are_measured_the_ramp_begins_at_those_that_acted_on_activation(library):
    """So who stands on another controller's torques goes on standing; without a command they end by the time-out."""
    q, v, limit = np.zeros(12), np.full(12, -2.0), 2.5
    acting = np.full(12, 2.0)
    side = Side(library, JOINTS, False, rows_of(JOINTS, limit=limit), ramp_s=0.02)
    library.robot_side_activate(side.place, _array(acting))
    sent = [side.update(0.001 * k, q, q)[1][0] for k in range(60)]
    assert sent[:49] == [2.0] * 49 and sent[51:] == [0.0] * 9
    library.robot_side_activate(side.place, _array(acting))
    sent = [side.update(0.001, q, q)[1][0]]
    for k in range(2, 40):
        side.take(packed_trajectory(resting(12, -1.0), JOINTS))
        sent.append(side.update(0.001 * k, q, q)[1][0])
    share = np.minimum(np.arange(39) / 20, 1.0)
    np.testing.assert_allclose(sent, 2.0 - 3.0 * share, atol=1e-12)
    for wrong in (np.nan, np.inf, 1e300):
        library.robot_side_activate(side.place, _array(np.full(12, wrong)))
        np.testing.assert_array_equal(side.update(0.05, q, v)[1], np.full(12, 1.0))
    side.lib.robot_side_stop(side.place)
    side.update(0.06, q, v)
    library.robot_side_activate(side.place, _array(acting))
    np.testing.assert_array_equal(side.update(0.061, q, v)[1], np.full(12, 1.0))


@pytest.mark.parametrize(("acting", "ramp_s"), [(-0.6, TIMEOUT_S), (0.2, 0.2)])
def test_a_load_is_taken_over_within_the_time_out(library, acting, ramp_s):
    """A robot that stands on another controller's torques in a walk cannot wait; one without a load is not struck."""
    q, wanted = np.zeros(12), 2.0
    side = Side(library, JOINTS, False, rows_of(JOINTS), ramp_s=0.2)
    for _ in range(2):  # also when it is activated once more
        library.robot_side_activate(side.place, _array(np.full(12, acting)))
        side.update(0.0, q, q)
        sent = []
        for k in range(250):
            side.take(packed_trajectory(resting(12, wanted), JOINTS))
            sent.append(side.update(0.001 * k, q, q)[1][0])
        share = np.minimum(0.001 * np.arange(1, 251) / ramp_s, 1.0)
        np.testing.assert_allclose(sent, acting + share * (wanted - acting), atol=1e-9)


class TakenOver(InProcessRun):
    """A walk through the compiled law, which another controller that holds the posture interrupts for a time."""

    def __init__(self, library, from_s, until_s):
        settings = controller_settings("quadruped", command_interface="robot_side_trajectory")
        super().__init__("quadruped", settings, mujoco_robot(settings, 1.0))
        damping = settings.spread("damping_nm_s_rad", self.robot.na)
        gains = {"p": self.local.position_gain, "d": self.local.velocity_gain}
        rows = rows_of(self.robot.joint_names, damping, self.controller.effort_limits, **gains)
        self.side = Side(library, self.robot.joint_names, False, rows, ramp_s=1.0)
        self.times, self.held, self.torques = (from_s, until_s), None, self.controller.effort_limits

    def given(self, believed, result):
        q, v, now_s = (
            self.robot.joints_of(believed.q),
            believed.v[self.robot.actuated],
            believed.time_s,
        )
        if now_s < self.times[0]:
            return result
        if now_s < self.times[1]:
            self.held = q if self.held is None else self.held
            self.torques = self.local.position_gain * (self.held - q) - self.local.velocity_gain * v
            return result._replace(torques=self.torques)
        if self.held is not None:
            self.held = None
            self.side.lib.robot_side_activate(self.side.place, _array(self.torques))
        numbers = packed_trajectory(self.ahead.command, self.robot.joint_names)
        numbers[SECONDS] += START_S
        assert self.side.take(numbers) == 0
        return result._replace(torques=self.side.update(now_s, q, v)[1])


def test_a_walk_that_another_controller_interrupts_goes_on(library):
    """With a ramp of start_ramp_s it fell: the plan walks on, and half of its torque does not carry."""
    record = TakenOver(library, 1.6, 2.6).record(4.0)
    assert record.fell_time_s is None
    height = record.q[:, 2]
    assert np.median(height[-300:]) == pytest.approx(np.median(height[1000:1500]), abs=0.01)


@pytest.mark.parametrize(
    ("spoil", "refusal"),
    [
        (lambda m: m[:-1], 1),
        (lambda m: m[:5], 1),
        (lambda m: np.r_[2.0, m[1:]], 2),
        (lambda m: np.r_[m[0], hash_of(JOINTS[::-1]), m[2:]], 3),
        (lambda m: np.r_[m[:2], 4.0, m[3:]], 4),
        (lambda m: np.r_[m[:5], 1e9, m[6:]], 5),
        (lambda m: np.r_[m[:-1], np.nan], 6),
        (lambda m: np.r_[m[:9], 0.0, m[10:]], 7),
        (lambda m: np.r_[m[:7], 65.0, m[8:]], 10),
    ],
)
def test_what_is_no_trajectory_is_refused_and_the_one_before_goes_on(library, spoil, refusal):
    side = Side(library, JOINTS, False, rows_of(JOINTS))
    good = packed_trajectory(resting(12, 3.0), JOINTS)
    side.take(good)
    side.update(0.0, np.zeros(12), np.zeros(12))
    bad = np.ascontiguousarray(spoil(good.copy()))
    assert side.take(bad) == refusal
    state, torques = side.update(0.001, np.zeros(12), np.zeros(12))
    assert state == FOLLOWING and np.allclose(torques, 3.0, atol=1e-12)
    if refusal != 5:
        with pytest.raises(StateError):
            unpacked_trajectory(bad, JOINTS) if refusal != 10 else packed_trajectory(
                EffortTrajectory(65, 12), JOINTS
            )


def test_numbers_give_back_the_trajectory():
    trajectory = some_trajectory(np.random.default_rng(2), 7, 12)
    trajectory.start_s = 12.25
    found = unpacked_trajectory(packed_trajectory(trajectory, JOINTS), JOINTS)
    assert found.start_s == 12.25
    np.testing.assert_array_equal(found.values, trajectory.values)
    np.testing.assert_array_equal(found.times_s, trajectory.times_s)


def test_a_state_that_is_not_finite_is_damped_as_far_as_it_is_known(library):
    v = np.r_[np.nan, 2.0, np.inf, np.ones(9)]
    side = Side(library, JOINTS, False, rows_of(JOINTS))
    side.take(packed_trajectory(resting(12, 3.0), JOINTS))
    _, torques = side.update(0.0, np.zeros(12), v)
    assert np.array_equal(torques, np.r_[0.0, -1.0, 0.0, np.full(9, -0.5)])


@pytest.mark.parametrize("bad", [np.nan, -1.0, 1e9])
def test_settings_that_are_none_are_refused(library, bad):
    assert not Side(library, JOINTS, False, rows_of(JOINTS, p=bad)).place.value


def test_damaged_messages_and_states_are_no_finding_of_the_sanitizers(tmp_path):
    """A million of them, another seed: by hand."""
    program = compiled(tmp_path, "fuzz.cpp", *SANITIZED)
    done = subprocess.run(
        [program, "10000", "1"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10000 messages" in done.stdout


def test_update_allocates_nothing(tmp_path):
    done = subprocess.run(
        [compiled(tmp_path, "speed.cpp"), "1000"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.count(" 0 allocations") == 2, done.stdout


def test_the_controller_around_it_between_a_stand_in_of_ros2_control_and_commands(tmp_path):
    """Commands, silence, zero on deactivation, stops, the base from topic and interfaces, bad parameters."""
    flags = [f"-I{PLUGIN / 'test' / 'stand_in'}", "-Wno-conversion"]
    program = compiled(tmp_path, "controller.cpp", *flags)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "all as it should be" in done.stdout, done.stdout + done.stderr
    told = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("WARN: damps", "WARN: follows"))
    ]
    words = ("follows commands", "no command came for timeout_s", "damps: stopped")
    assert len(told) == 3 and all(each in line for each, line in zip(words, told)), told
