"""Every fault through both doors of the guard, the node's and the in-process one: one reaction.

The node's door gets real messages without topics, the other one arrays. A row plays a fault to a
door and states what must come of it; the doors must also agree with each other, period by period, in
state, torque and what they counted.
"""

import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from robots import JOINTS, QUADRUPED, QUADRUPED_FEET, STANDING
from waiting import until

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.parts import PlanParts
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.safety import plan_reader
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.guard_log import ERROR, OK
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.safety.latch import EmergencyLatch, state_folder
from contact_id_controller.safety.plan_reader import PlanReader
from contact_id_controller.safety.states import JointReading
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.solution import Solution

VELOCITY = 0.01 * np.arange(1, 13)
DAMPING = -0.5 * VELOCITY
BASE = np.r_[0.0, 0.0, 0.162, 0.0, 0.0, 0.0, 1.0, np.zeros(6)]
LIFTED = np.r_[0.0, 0.0, 1.162, BASE[3:]]
WEIGHT = np.tile([0.0, 0.0, 11.8], (4, 1))
PERIOD_S, BLEND_NM_S, START_S = 0.001, 100.0, 100.0
VALUES = {
    "urdf": QUADRUPED,
    "joints": JOINTS,
    "contact_frames": QUADRUPED_FEET,
    "contact_radii_m": [0.01],
    "damping_nm_s_rad": [0.5],
    "start_ramp_s": 0.0,
    "blend_rate_nm_s": [BLEND_NM_S],
    "state_timeout_s": 0.02,
    "recovery_window_s": 0.1,
    "failures_in_a_row": 3,
    "overruns_in_a_row": 3,
    "tilt_limit_rad": 0.5,
    "plan_jump_limit": 0.5,
    "emergency_stop_output": "zero",
    "stamp_reference": "stream",
}


class Door:
    """A door with a robot that stands before it; time goes on by a period with each state."""

    def __init__(self, **changes):
        # This robot never moves, whatever torque it gets, which an observer takes for a push.
        self.settings = ControllerSettings.from_mapping(
            {**VALUES, **changes}, disturbance_limit=0.0
        )
        self.time_s = START_S
        self.log, self.trace = [], []
        # Silence and overruns by a clock that only this test moves.
        self.steady_s = 0.0
        self._open()
        self.guard.clock = self._clock
        self.healthy_step = self.guard.controller.step

    def _clock(self):
        return self.steady_s

    @property
    def state(self):
        return self.guard.machine.state.value

    @property
    def refused(self):
        return self.guard.monitor.refusals

    def pass_time(self, duration_s):
        self.time_s += duration_s
        self.steady_s += duration_s

    def send(self, position=STANDING, velocity=VELOCITY, base=BASE, base_age_s=0.0, forces=None):
        """Send a state; the torques that answer it. base None: none comes with it."""
        self.pass_time(PERIOD_S)
        if base is not None:
            self.send_base(np.asarray(base, dtype=float), self.time_s - base_age_s)
        torques = self.send_joints(position, velocity, forces).copy()
        assert np.isfinite(torques).all()
        self.trace.append((self.state, torques))
        return torques

    def stand(self, count=3, **state):
        """Good states; the last torques."""
        for _ in range(count):
            torques = self.send(**state)
        return torques

    def fail(self, step):
        """Replace the controller's step; None: the healthy one again."""
        self.guard.controller.step = step or self.healthy_step


class NodeDoor(Door):
    """`ControlLoop` and real messages."""

    def _open(self):
        pytest.importorskip("rclpy", reason="the node's door needs ROS 2")
        import ros_bench

        from contact_id_controller.ros import plan_messages
        from contact_id_controller.ros.control_loop import ControlLoop

        self._bench, self._messages = ros_bench, plan_messages
        robot = RobotModel.from_urdf(QUADRUPED, True, JOINTS)
        latch = EmergencyLatch(state_folder(), "/robot/controller")
        self.loop = ControlLoop(Controller(robot, self.settings), self.log.append, latch)
        self.guard = self.loop.guard
        self.guard.clock = self._clock
        self._forces = None
        self.loop.contact_input = SimpleNamespace(pass_on=self._pass_on)
        if self.settings.measured:
            self._forces = WEIGHT
        self.send_base(BASE, self.time_s)
        self.loop.observe(ros_bench.joint_state(self.time_s), None)
        assert self.guard.start() == "" or latch.engaged

    def _pass_on(self, guard):
        if self._forces is not None:
            guard.take_contact_forces(self._forces, np.ones(4, dtype=bool))

    def send_base(self, base, time_s):
        message = self._bench.odometry(time_s, quaternion=base[3:7].tolist(), height_m=base[2])
        place, twist = message.pose.pose.position, message.twist.twist
        place.x, place.y = base[:2].tolist()
        twist.linear.x, twist.linear.y, twist.linear.z = base[7:10].tolist()
        twist.angular.x, twist.angular.y, twist.angular.z = base[10:].tolist()
        self.loop.take_odometry(message)

    def send_joints(self, position, velocity, forces):
        self._forces = forces
        arrival_s, names = self.steady_s, JOINTS[: len(position)]
        message = self._bench.joint_state(self.time_s, names, position, velocity)
        torques = self.loop.command(message, None)
        self.loop.finish(arrival_s)
        return torques

    def follow(self, plan):
        """Send a plan as its three messages, in the order of our planner."""
        for part, to_message, take in (
            (plan.contacts, self._messages.stance_message, self.loop.take_contact_schedule),
            (plan.base, self._messages.base_message, self.loop.take_base_trajectory),
            (plan.joints, self._messages.joint_message, self.loop.take_joint_trajectory),
        ):
            if part is not None:
                take(to_message(part, round((part.start_s or 0.0) * 1e9)))

    def emergency_stop(self, engage):
        if engage:
            self.guard.emergency_stop()
            self.loop.report()
        else:
            assert not self.guard.release_emergency_stop(True)

    def resume(self):
        return self.guard.resume() == ""


class ArrayDoor(Door):
    """`InProcessController` and arrays."""

    def _open(self):
        self.inner = InProcessController(self.settings, self.log.append, lambda: self.time_s)
        self.guard = self.inner.guard

    def send_base(self, base, time_s):
        self.inner.take_base(base, time_s)

    def send_joints(self, position, velocity, forces):
        if forces is not None:
            self.inner.take_contact_forces(forces)
        torques = self.inner.update(np.concatenate((position, velocity)))
        self.inner.post_update()
        return torques

    def follow(self, plan):
        for name in ("contacts", "base", "joints"):
            part = getattr(plan, name)
            if part is not None:
                what = {"joints": "joint_trajectory", "base": "base_trajectory"}
                self.inner.follow(
                    lambda part=part, name=name: Plan(**{name: part}),
                    what.get(name, "contact_schedule"),
                )

    def emergency_stop(self, engage):
        self.inner.emergency_stop(engage)
        self.inner.post_update()

    def resume(self):
        before = self.refused["resume"]
        self.inner.resume()
        refused = self.refused["resume"] > before
        del self.refused["resume"]  # the node answers its caller instead of counting
        return not refused


DOORS = {"node": NodeDoor, "in process": ArrayDoor}
ROWS = {}


def row(**changes):
    """A row of the matrix: a function that plays a fault to a door with changed settings."""

    def register(play):
        ROWS[play.__name__.removeprefix("_")] = (play, changes)
        return play

    return register


def blend_s(torques):
    """Time, s, that torques need to the damping at the stated rate."""
    return np.abs(torques - DAMPING).max() / BLEND_NM_S


def moves_to_damping_and_back(door, reason, good, **bad):
    """A bad state moves the torque at the stated rate, the next good one moves it back."""
    before = good
    for _ in range(3):
        torques = door.send(**bad)
        assert door.state == "interrupted" and door.guard.result is None
        assert np.abs(torques - before).max() <= BLEND_NM_S * PERIOD_S + 1e-9
        assert np.abs(torques - before).max() > 0.5 * BLEND_NM_S * PERIOD_S
        before = torques
    assert door.refused[reason] == 3
    assert sum(line.startswith(f"{reason}:") for line in door.log) == 1, "told once"
    door.stand(10)
    assert door.state == "holding"
    np.testing.assert_allclose(door.send(), good, atol=0.02)


def _bad(name, reason, **state):
    def play(door):
        moves_to_damping_and_back(door, reason, door.stand(), **state)

    play.__name__ = name
    return row()(play)


def _spoiled(values, k, value):
    spoiled = np.array(values, dtype=float)
    spoiled[k] = value
    return spoiled


_bad("position_not_finite", "joint_state_not_finite", position=_spoiled(STANDING, 3, math.nan))
_bad("velocity_not_finite", "joint_state_not_finite", velocity=_spoiled(VELOCITY, 3, -math.inf))
_bad("position_beyond_all_numbers", "joint_state_not_finite", position=_spoiled(STANDING, 3, 1e200))
_bad("base_not_finite", "odometry_not_finite", base=_spoiled(BASE, 2, math.nan))
_bad("base_turned_by_no_rotation", "odometry_quaternion", base=_spoiled(BASE, 6, 0.9))
_bad("joint_beyond_its_end", "joint_position_impossible", position=_spoiled(STANDING, 3, 100.0))
_bad("joint_faster_than_any", "joint_velocity_impossible", velocity=_spoiled(VELOCITY, 3, -1e30))
_bad("base_beyond_the_horizon", "odometry_position_impossible", base=_spoiled(BASE, 0, 1e30))
_bad("base_faster_than_any", "odometry_velocity_impossible", base=_spoiled(BASE, 8, -1e3))
_bad("base_turning_like_a_drill", "odometry_turning_impossible", base=_spoiled(BASE, 12, 1e3))
_bad("base_older_than_its_limit", "odometry_old", base_age_s=0.101)
_bad("base_from_the_future", "odometry_old", base_age_s=-0.0101)


@row()
def _joint_missing(door):
    good = door.stand()
    torques = door.send(STANDING[:11], VELOCITY[:11])
    assert door.state == "interrupted" and door.refused.total() == 1
    assert np.abs(torques - good).max() <= BLEND_NM_S * PERIOD_S + 1e-9
    door.refused.clear()  # what has no names cannot say that one is missing
    assert door.stand(5) is not None and door.state == "holding"


@row()
def _refusals_go_on(door):
    """A fault that lasts is told again every 10 s, with how many there were: no flood, no silence."""
    door.stand()
    for _ in range(50):
        door.send(position=_spoiled(STANDING, 3, math.nan))
        door.pass_time(0.5)
    lines = [line for line in door.log if line.startswith("joint_state_not_finite")]
    assert len(lines) == 3 and "RF_HAA" in lines[0]
    assert "(20 since the last line)" in lines[1] and "(20 since the last line)" in lines[2]


@row(overruns_in_a_row=0, state_timeout_s=0.05)
def _jitter_at_200_hz(door):
    """Odometry of the period before, and its stamp up to 4 ms off: the ordinary case at 200 Hz."""
    door.stand()
    for jitter_s in np.random.default_rng(3).uniform(-0.004, 0.004, 100):
        door.pass_time(0.004)
        door.send(base_age_s=0.005 + jitter_s)
        assert door.state == "holding"
    assert not door.refused


@row()
def _base_never_came(door):
    door.guard.checks.base_ns = None
    for _ in range(3):
        np.testing.assert_allclose(door.send(base=None), 0.0, atol=0.3)
    assert door.state == "interrupted" and door.refused == {"odometry_missing": 3}


@row()
def _base_jumps_and_comes_back(door):
    moves = door.stand()
    for _ in range(2):
        door.send(base=LIFTED)
        assert door.state == "interrupted"
    assert door.refused == {"odometry_jump": 2}
    door.stand(10)
    assert door.state == "holding"
    np.testing.assert_allclose(door.send(), moves, atol=0.02)


@row(overruns_in_a_row=0)
def _two_publishers_of_one_joint(door):
    """A joint that alternates by .5 rad: one of the two is refused, and no torque answers it."""
    door.stand(20)
    apart = _spoiled(STANDING, 4, STANDING[4] + 0.5)
    for _ in range(20):
        before = door.stand(1)
        assert door.state == "holding" and door.guard.result is not None
        after = door.send(position=apart)
        assert door.state == "interrupted"
        assert np.abs(after - before).max() <= BLEND_NM_S * PERIOD_S + 1e-9
    assert door.refused == {"joint_jump": 20}
    assert "'LF_HFE'" not in door.log[0] and "'RF_HFE'" in door.log[0]


@row()
def _joints_that_repeat_while_they_move(door):
    """A driver that repeats its last reading with new stamps: refused once the velocity should have led away."""
    moving = _spoiled(np.zeros(12), 4, 4.0)
    for k in range(20):
        door.send(_spoiled(STANDING, 4, STANDING[4] + 0.004 * k), moving)
    for _ in range(100):
        door.send(_spoiled(STANDING, 4, STANDING[4] + 0.076), moving)
    # .2 rad at 4 rad/s take 50 ms, and `state_timeout_s` 20 more.
    assert door.refused == {"joints_frozen": 50} and door.state == "interrupted"
    assert "repeat for 0.051 s" in door.log[0]
    door.stand()
    assert door.state == "holding"


@row()
def _joints_that_repeat_while_they_move_fast(door):
    """Three of the same reading do not confirm each other, though by their velocity they would be far."""
    fast = _spoiled(np.zeros(12), 4, 24.0)
    for k in range(5):
        door.send(_spoiled(STANDING, 4, STANDING[4] - 0.12 + 0.024 * k), fast)
    for _ in range(100):
        door.send(_spoiled(STANDING, 4, STANDING[4] - 0.024), fast)
    assert set(door.refused) == {"joints_frozen"} and door.refused["joints_frozen"] > 85


@row()
def _joints_that_repeat_at_rest(door):
    """Coarse encoders at rest, one velocity a little off: no evidence of anything."""
    for _ in range(1500):
        door.send(STANDING, _spoiled(np.zeros(12), 4, 0.1))
    assert door.state == "holding" and not door.refused


@row()
def _joint_that_is_elsewhere_now(door):
    """An encoder with a new zero: taken at the third state, with its posture held."""
    follow_goal(door, STANDING + 0.1)
    door.stand()
    apart = _spoiled(STANDING, 3, STANDING[3] + 0.5)
    for _ in range(2):
        door.send(position=apart)
        assert door.state == "interrupted"
    door.send(position=apart)
    assert door.state == "holding" and door.refused == {"joint_jump": 2}
    np.testing.assert_allclose(door.guard.result.reference.position, apart)


@row()
def _joint_moves_fast_and_states_are_lost(door):
    """A motion at the joint's limit, 20 states lost on the way, is none of these."""
    door.stand()
    speed, position = 15.0, STANDING.copy()
    for lost in (0, 0, 0, 5, 0, 14, 0):
        door.pass_time(lost * PERIOD_S)
        position[3] += speed * (lost + 1) * PERIOD_S
        door.send(position, _spoiled(np.zeros(12), 3, speed))
        assert door.state == "holding"
    assert not door.refused


@row()
def _base_stays_at_another_place(door):
    follow_goal(door, STANDING + 0.1)
    door.stand()
    assert door.state == "following"
    for _ in range(2):
        door.send(base=LIFTED)
    door.send(base=LIFTED)
    assert door.state == "holding", "plans dropped"
    np.testing.assert_allclose(door.guard.result.reference.position, STANDING)


@row(tilt_limit_rad=0.3)
def _first_state_was_tilted(door):
    """Tilt is measured from what the robot's attitude is, not from one wrong state after the start."""
    door.guard.stop()
    door.guard.checks.reset()
    assert not door.guard.start(state_is_known=False)
    half = 0.2
    door.send(base=[*BASE[:3], math.sin(half), 0.0, 0.0, math.cos(half), *BASE[7:]])
    for _ in range(5):
        door.send()
    assert door.state == "holding" and door.refused == {"odometry_jump": 2}
    assert door.guard.controller.tilt(door.guard.controller.period.q) < 1e-6


@row(tilt_limit_rad=0.3)
def _nap_right_after_the_start(door):
    """Tilt is measured from the attitude of the start, however long the process slept since."""
    door.stand()
    door.pass_time(2.0)
    door.guard.good.listening.slept_s += 2.0
    half = 0.2
    tilted = [*BASE[:3], math.sin(half), 0.0, 0.0, math.cos(half), *BASE[7:]]
    for _ in range(3):
        door.send(base=tilted)
    assert door.state == "stopped"


@row()
def _new_place_is_held_though_the_first_try_failed(door):
    door.stand()
    hold = door.guard.controller.hold_here
    door.guard.controller.hold_here = lambda *_: 1 / 0
    for _ in range(3):
        door.send(base=LIFTED)
    assert door.refused == {"odometry_jump": 2, "step_ZeroDivisionError": 1}
    held = []
    door.guard.controller.hold_here = lambda state, *keep: (
        held.append(state.q[2]),
        hold(state, *keep),
    )
    door.send(base=LIFTED)
    assert held == [LIFTED[2]] and door.state == "holding"


@row(blend_rate_nm_s=[1.0])
def _no_good_state_for_the_timeout(door):
    """A slow blend must not carry the last torque on: then the safe output comes at once."""
    good = door.stand()
    assert np.abs(good - DAMPING).max() > 0.3
    bad = {"position": _spoiled(STANDING, 3, math.nan)}
    # The velocity of the last good state is known as long.
    torques = [door.send(**bad) for _ in range(25)]
    assert np.abs(torques[18] - good).max() <= 20 * PERIOD_S * 1.0
    assert not torques[-1].any()
    assert door.state == "interrupted"
    door.stand()
    assert door.state == "holding"


@row(blend_rate_nm_s=[1.0])
def _base_is_bad_for_the_timeout(door):
    """The joints' velocities are known as ever: they are damped, at once when the time is out."""
    good = door.stand()
    torques = [door.send(base=_spoiled(BASE, 2, math.nan)) for _ in range(25)]
    assert np.abs(torques[18] - good).max() <= 20 * PERIOD_S * 1.0
    np.testing.assert_allclose(torques[-1], DAMPING)
    assert np.abs(good - DAMPING).max() > 0.3


@row()
def _gap_longer_than_the_recovery_window(door):
    door.stand()
    door.pass_time(0.11)
    np.testing.assert_allclose(door.send(), DAMPING)
    assert door.state == "stopped" and "no good state for 0.111" in door.guard.machine.reason
    assert any(line.startswith("stopped: no good state") for line in door.log)
    np.testing.assert_allclose(door.stand(), DAMPING)
    assert door.resume() and not door.resume()
    door.stand()
    assert door.state == "holding" and door.log[-1] == "commanding again"


def nap(door, duration_s):
    """The door's process is stopped for so long: it looked before, and looks again."""
    door.guard.look()
    door.pass_time(duration_s)
    door.guard.look()


@row()
def _nap_of_our_own(door):
    """Nothing came because nobody looked: neither silence nor a gap, and no jump of the torque."""
    good = door.stand()
    for duration_s in (0.03, 0.09, 0.109):
        nap(door, duration_s)
        assert door.guard.silent_in_s() >= 0.0
        np.testing.assert_allclose(door.stand(), good, atol=0.05)
        assert door.state == "holding" and door.guard.result is not None
    assert not door.refused.total()


@row()
def _long_nap_of_our_own(door):
    """After more than recovery_window_s the plan is old: the posture found is held."""
    door.stand()
    door.follow(plan_of(door, STANDING + 0.1, begin_s=0.0))
    door.stand(20)
    assert door.state == "following"
    nap(door, 0.5)
    door.send(STANDING + 0.05)
    assert door.state == "holding" and door.guard.result is not None
    np.testing.assert_allclose(door.guard.result.reference.position, STANDING + 0.05)


@row()
def _nap_in_which_the_world_waited(door):
    """A simulation that waits for us, or runs slower than real time, loses nothing by our sleep."""
    door.stand()
    door.follow(plan_of(door, STANDING + 0.1, begin_s=0.0))
    door.stand(20)
    for _ in range(3):
        door.guard.look()
        door.steady_s += 0.5
        door.guard.look()
        door.stand(1)
        assert door.state == "following"


@row()
def _silence_while_it_listens(door):
    """After a nap silence begins anew: it needs as long as ever."""
    door.stand()
    nap(door, 5.0)
    heard = [door.guard.silent_in_s() < 0.0]
    for _ in range(6):
        door.pass_time(0.005)
        heard.append(door.guard.silent_in_s() < 0.0)
    assert heard == [False] * 3 + [True] * 4  # 10 ms of the nap count, and it takes 20 ms


@row()
def _steps_that_lose_states(door):
    door.stand()
    for _ in range(3):
        assert door.state == "holding"
        door.pass_time(PERIOD_S)
        door.send()
    assert door.state == "stopped" and "overruns_in_a_row" in door.guard.machine.reason


@row(start_ramp_s=0.1)
def _resume_holds_the_next_posture_with_the_start_ramp(door):
    door.stand(150)
    door.pass_time(0.11)
    door.send()
    assert door.state == "stopped" and door.resume()
    moved = STANDING + 0.05
    torques = [door.send(moved, np.zeros(12)) for _ in range(110)]
    np.testing.assert_allclose(door.guard.result.reference.position, moved)
    full = door.guard.result.torques
    np.testing.assert_allclose(torques[-1], full)
    # Half of the way from the safe output of the stop after half of the ramp.
    np.testing.assert_allclose(torques[49], 0.5 * (DAMPING + full), atol=0.02)


@row(overruns_in_a_row=0)
def _steps_that_lose_states_for_ever(door):
    door.stand()
    for _ in range(250):
        door.pass_time(PERIOD_S)
        door.send()
    assert door.state == "holding"
    assert sum(line.startswith("late: the last 100 states") for line in door.log) == 1


@row()
def _gap_of_bad_states(door):
    door.stand()
    for _ in range(101):
        door.send(position=_spoiled(STANDING, 0, math.nan))
    assert door.state == "interrupted"
    assert not door.resume()
    door.send()
    assert door.state == "stopped"


def plan_of(door, goal=None, feet=QUADRUPED_FEET, begin_s=0.01, last_s=1.0, names=JOINTS, **joints):
    """A plan of all three parts, which lifts LF and sinks."""
    times, start_s = np.array([0.0, last_s]), round(door.time_s + begin_s, 3)
    goal = STANDING if goal is None else goal
    base, still = np.tile(BASE[:7], (2, 1)), np.zeros((2, 3))
    return Plan(
        JointTrajectory(names, times, np.array([goal, goal]), start_s=start_s, **joints),
        BaseTrajectory(times, base[:, :3], base[:, 3:], still, still, start_s),
        ContactSchedule(feet, times, [[0, 1, 1, 1]] * 2, start_s),
    )


def follow_goal(door, goal):
    door.stand(1)
    door.follow(Plan(JointTrajectory(JOINTS, [0.0, 1.0], np.array([STANDING, goal]))))


@row()
def _a_plan_before_the_first_state(door):
    door.follow(plan_of(door))
    assert door.refused == dict.fromkeys(
        ("joint_trajectory", "base_trajectory", "contact_schedule"), 1
    )
    door.stand()
    assert door.state == "holding"


@row()
def _a_plan_of_three_parts(door):
    door.stand()
    door.follow(plan_of(door))
    door.stand(15)
    assert door.state == "following" and not door.refused
    assert door.guard.result.contact.tolist() == [False, True, True, True]


@row()
def _base_and_schedule_of_joints_that_are_refused(door):
    """Far away, a foreign joint, an end in the past, a foot that is none: nothing of it is taken."""
    follow_goal(door, STANDING)
    before = door.stand()
    far = _spoiled(STANDING, 4, STANDING[4] + 2.0)
    foreign = ["TAIL", *JOINTS[1:]]
    for bad in (
        plan_of(door, goal=far),
        plan_of(door, names=foreign),
        plan_of(door, feet=[*QUADRUPED_FEET[:3], "TAIL"]),
    ):
        refused = door.refused["joint_trajectory"]
        door.follow(bad)
        assert door.refused["joint_trajectory"] == refused + 1
    door.stand(20)
    assert door.state == "following" and door.guard.result.contact.all()
    np.testing.assert_allclose(door.send(), before, atol=0.02)


@row()
def _schedule_that_comes_after_its_joints_were_refused(door):
    follow_goal(door, STANDING)
    door.stand()
    bad = plan_of(door, goal=STANDING + 2.0)
    door.follow(Plan(joints=bad.joints))
    door.follow(Plan(contacts=bad.contacts))
    door.stand(20)
    assert door.guard.result.contact.all()
    assert door.refused["joint_trajectory"] == door.refused["plan"] == 1


@row()
def _schedule_alone(door):
    door.stand()
    door.follow(Plan(contacts=plan_of(door).contacts))
    door.stand(45)
    assert door.guard.result.contact.all(), "its joints may come"
    door.stand(15)
    assert door.guard.result.contact.tolist() == [False, True, True, True] and not door.refused


@row(allow_moving_trajectory_end=True)
def _plan_lost_on_the_way(door):
    door.stand()
    fast = {"velocities": np.full((2, 12), 0.1), "allow_moving_end": True}
    door.follow(plan_of(door, begin_s=0.0, last_s=0.01, **fast))
    door.stand(5)
    assert door.state == "following"
    door.stand(20)
    assert door.state == "holding" and door.guard.result.contact.all()


def _refused_and_followed_on(door, bad, reason):
    """Bad plans, each refused; the robot goes on as before, with all feet on the ground."""
    follow_goal(door, STANDING)
    before = door.stand(20)
    for count, plan in enumerate(bad, 1):
        door.follow(plan)
        door.stand(60)  # a part waits so long for its joints
        assert door.refused[reason] == count, door.log[-1]
    assert door.refused.total() == len(bad)
    assert door.state == "following" and door.guard.result.contact.all()
    np.testing.assert_allclose(door.send(), before, atol=0.02)


def joints_through(*goals, times=(0.0, 1.0), **rates):
    return Plan(JointTrajectory(JOINTS, times, np.array(goals), **rates))


def _impossible_joints(name, *make):
    def play(door):
        _refused_and_followed_on(door, [plan() for plan in make], "joint_trajectory")

    play.__name__ = name
    return row()(play)


def _fast_and_back(speed, time_s):
    """A joint that has a speed in the middle of a cubic, and the same posture at its ends."""
    rates = np.zeros((3, 12))
    rates[1, 3] = speed
    posture = [STANDING] * 3
    return lambda: joints_through(*posture, times=(0.0, time_s, 2 * time_s), velocities=rates)


_impossible_joints(
    "joints_beyond_their_ends",
    *(
        (lambda far=far: joints_through(STANDING, _spoiled(STANDING, 3, far), times=(0.0, 1e4)))
        for far in (1e300, -1e100, 13.0, 6.39, -6.39)
    ),
)
_impossible_joints(
    "joints_faster_than_the_robot",
    lambda: joints_through(_spoiled(STANDING, 3, STANDING[3] + 0.3), STANDING, times=(1e-9, 1.0)),
    lambda: joints_through(STANDING, _spoiled(STANDING, 3, STANDING[3] + 0.3), times=(0.0, 1e-9)),
    _fast_and_back(151.0, 0.1),
    _fast_and_back(1e300, 0.5),
)
_impossible_joints(
    "joints_that_a_plan_accelerates_beyond_all_measure",
    _fast_and_back(10.0, 1e-4),
    lambda: joints_through(
        STANDING,
        STANDING,
        velocities=np.zeros((2, 12)),
        accelerations=np.tile(_spoiled(np.zeros(12), 3, 1e6), (2, 1)),
    ),
)


def base_plan(*places, times=(0.0, 1.0), start_s=None, spin=0.0, turned=0.0):
    """A base through heights above its own, turned about z at the end."""
    position = np.tile(BASE[:3], (len(times), 1))
    position[:, 0] = places
    attitude = np.tile(BASE[3:7], (len(times), 1))
    attitude[-1] = [0.0, 0.0, math.sin(turned / 2), math.cos(turned / 2)]
    still, spins = np.zeros_like(position), np.zeros_like(position)
    spins[:, 2] = spin
    return Plan(base=BaseTrajectory(times, position, attitude, still, spins, start_s))


@row()
def _base_plans_that_no_base_can_follow(door):
    """Far away, at once or later, too fast, turning like a drill: none is followed."""
    hour = 3600.0
    bad = [
        base_plan(1000.0, 1000.0),
        base_plan(1e200, 1e200),
        base_plan(1000.0, 1000.0, times=(hour, hour + 1.0)),
        base_plan(0.0, 1000.0),
        base_plan(0.0, 1e200),
        base_plan(0.0, 0.01, times=(0.0, 1e-4)),
        base_plan(0.0, 0.0, spin=1e3),
        base_plan(0.0, 0.0, turned=3.0, times=(0.0, 1e-3)),
        base_plan(0.0, 0.1, times=(0.0, 0.01)),
    ]
    _refused_and_followed_on(door, bad, "base_trajectory")


@row()
def _base_plans_that_lead_away_one_after_the_other(door):
    """Each begins near the one before, and was followed: 990 m in 2 s."""
    door.stand()
    for place, refused in ((0.45, 0), (0.9, 1), (1.35, 2), (0.4, 2), (-0.45, 2)):
        door.follow(base_plan(place, place))
        door.stand(2)
        assert door.refused["base_trajectory"] == refused
    assert "base would jump by 0.9 m" in door.log[0]


@row()
def _base_and_schedule_of_another_time(door):
    """A schedule of long ago must not lift the feet, nor a base of long ago pull the robot."""
    door.stand()
    bad = []
    for since_s in (50.0, 0.51):
        past = round(door.time_s - 1.0 - since_s, 3)
        lifted = ContactSchedule(QUADRUPED_FEET, [0.0, 1.0], [[0, 0, 0, 0]] * 2, past)
        bad += [Plan(contacts=lifted), base_plan(0.0, 0.0, start_s=past)]
    _refused_and_followed_on(door, bad, "plan")


@row()
def _schedule_an_hour_ahead(door):
    """What begins later is not followed now, with its joints or alone."""
    door.stand()
    ahead = plan_of(door, begin_s=3600.0)
    door.follow(Plan(contacts=ahead.contacts))
    door.stand(60)
    assert door.guard.result.contact.all()
    door.follow(ahead)
    door.stand(60)
    assert door.guard.result.contact.all() and not door.refused


@row()
def _parts_of_a_start_that_has_passed_wait_for_their_joints(door):
    """Our planner sends its joints last: late or not, the parts share their fate."""
    follow_goal(door, STANDING)
    door.stand(20)
    door.follow(plan_of(door, goal=STANDING + 2.0, begin_s=-0.005))
    door.stand(1)
    assert door.refused["joint_trajectory"] == 1 and door.guard.result.contact.all()
    door.stand(60)
    assert door.guard.result.contact.all()
    door.follow(plan_of(door, begin_s=-0.005))
    door.stand(1)
    assert door.guard.result.contact.tolist() == [False, True, True, True]


def _failing(name, step, counted):
    def play(door):
        good = door.stand()
        door.fail(step(door))
        door.send()
        assert door.state == "interrupted" if counted else "holding"
        door.fail(None)
        door.stand(5)
        assert door.state == "holding", "by itself"
        door.fail(step(door))
        for _ in range(3):
            door.send()
        assert door.state == "stopped" and "3 failures in a row" in door.guard.machine.reason
        np.testing.assert_allclose(door.send(), DAMPING)
        assert door.refused == ({counted: 4} if counted else {})
        door.fail(None)
        assert door.resume()
        door.stand(10)
        np.testing.assert_allclose(door.send(), good, atol=0.02)

    play.__name__ = name
    return row()(play)


def _returns(**fields):
    return lambda door: lambda state: door.healthy_step(state)._replace(**fields)


_failing("an_error_in_the_step", lambda door: lambda state: 1 / 0, "step_ZeroDivisionError")
_failing("torque_not_finite", _returns(torques=np.full(12, math.nan)), "torque_not_finite")
_failing("torque_beyond_all_numbers", _returns(torques=np.full(12, 1e200)), "torque_not_finite")
_failing("solver_not_converged", _returns(status="not_converged"), "")


def _gives_way(speed_m_s):
    """Contacts give way by a speed, in each step."""

    def step(door):
        def stepped(state):
            result = door.healthy_step(state)
            found = result.solution
            solution = Solution(
                found.problem,
                "relaxed",
                found.torques,
                found.impulses,
                found.velocity,
                joint_velocity_change=found.joint_velocity_change,
                attainable=found.attainable + speed_m_s,
            )
            return result._replace(status="relaxed", solution=solution)

        return stepped

    return step


_failing("contacts_that_give_way_by_much", _gives_way(0.1), "")


@row()
def _contacts_that_give_way_by_little(door):
    """As in a walk: no reason to let a robot fall, and diagnostics name it."""
    good = door.stand()
    door.fail(_gives_way(0.04)(door))
    door.guard.summary()
    for _ in range(100):
        np.testing.assert_allclose(door.send(), good, atol=0.02)
    assert door.state == "holding" and not door.refused
    level, words = door.guard.summary()
    assert level == 1 and words == (
        "commanding; plan or contacts given up in part in 100 of 100 steps; contacts give way by up to "
        "0.04 m/s"
    )
    door.fail(None)
    door.stand(10)
    assert door.guard.summary() == (0, "commanding")


@row()
def _steps_longer_than_a_period(door):
    def slow(state):
        door.steady_s += 1.1 * PERIOD_S
        return door.healthy_step(state)

    door.stand()
    door.fail(slow)
    door.stand(10)
    # Counted by the clock; no state was lost, as where a simulation is slower than real time.
    assert door.state == "holding" and door.guard.monitor.deadline_misses == 10


@row()
def _tilt(door):
    door.stand()
    for angle in np.linspace(0.0, 0.6, 40):
        turn = np.r_[BASE[:3], math.sin(angle / 2), 0.0, 0.0, math.cos(angle / 2), BASE[7:]]
        door.send(base=turn)
    assert door.state == "stopped" and "tilted by 0.5" in door.guard.machine.reason
    np.testing.assert_allclose(door.send(base=turn), DAMPING)
    assert door.resume()
    door.send(base=turn)
    assert door.state == "stopped", "its attitude of now is not the upright one"


@row()
def _emergency_stop(door):
    good = door.stand()
    door.emergency_stop(True)
    assert not door.send().any() and door.state == "emergency_stop"
    assert not door.resume()
    door.emergency_stop(False)
    np.testing.assert_allclose(door.send(), DAMPING)
    assert door.state == "stopped"
    assert door.resume()
    door.stand(10)
    np.testing.assert_allclose(door.send(), good, atol=0.02)


@row(contact_sources=["force", "schedule"])
def _contact_by_measured_forces(door):
    plain = door.stand(10, forces=WEIGHT)
    door.trace.clear()  # the node had measured before it was activated
    assert door.state == "holding" and door.guard.result.contact.all()
    assert door.guard.result.forces[:, 2].sum() == pytest.approx(47.1, rel=0.2)
    one_off = WEIGHT * np.array([[1], [0], [1], [1]])
    door.stand(8, forces=one_off)
    assert door.guard.result.contact.tolist() == [True, False, True, True]
    nan = WEIGHT * np.array([[1], [math.nan], [1], [1]])
    door.stand(8, forces=nan)
    assert door.guard.result.contact.tolist() == [True, False, True, True]
    door.stand(8, forces=WEIGHT)
    np.testing.assert_allclose(door.stand(5, forces=WEIGHT), plain, atol=0.05)


@row(contact_sources=["force", "schedule"])
def _contact_is_measured_no_more(door):
    """Nothing is known of any foot for 50 ms: the safe output, not the torque of a robot that flies."""
    door.stand(10, forces=WEIGHT)
    door.trace.clear()
    door.stand(49)
    assert door.guard.result.contact.all()
    door.stand(2)
    assert door.state == "interrupted" and door.guard.result is None
    assert door.refused["contact_not_measured"] == 1
    door.stand(10, forces=WEIGHT)
    assert door.state == "holding" and door.guard.result.contact.all()


@row()
def _plans_that_are_none(door):
    door.stand()
    door.guard.guarded("joint_trajectory", lambda: door.guard.follow(None))
    assert door.refused == {"joint_trajectory": 1}
    assert door.stand() is not None and door.state == "holding"


@pytest.fixture(scope="module", autouse=True)
def compiled_once():
    """Kernels are compiled once a process, not once a row."""
    ArrayDoor()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Guard, "warm_up", lambda guard: None)
        yield


@pytest.fixture(scope="module")
def played():
    """Traces of rows that were played, by row and door."""
    return {}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ROWS)
def test_reaction(name, door, played):
    play, changes = ROWS[name]
    made = DOORS[door](**changes)
    play(made)
    played[name, door] = made.trace, dict(made.refused), made.guard.figures()["steps"]


@pytest.mark.parametrize("name", ROWS)
def test_both_doors_react_alike(name, played):
    if (name, "node") not in played:
        pytest.skip("the node's door was not played")
    (node, node_refused, node_steps), (arrays, refused, steps) = (
        played[name, door] for door in DOORS
    )
    assert [state for state, _ in node] == [state for state, _ in arrays]
    np.testing.assert_allclose([t for _, t in node], [t for _, t in arrays], atol=1e-6)
    assert (node_refused, node_steps) == (refused, steps)


def long_plan(door, count=400, position=STANDING):
    """Joints that stand, from the next period on, as many points as take longer to read than a step."""
    times_s = np.linspace(0.0, 4.0, count)
    return Plan(
        joints=JointTrajectory(
            JOINTS, times_s, np.tile(position, (count, 1)), start_s=door.time_s + 0.2
        )
    )


@pytest.mark.parametrize("door", DOORS)
def test_a_long_plan_is_read_beside_the_steps_and_then_followed(door):
    door = DOORS[door]()
    door.stand()
    plan, going_on = long_plan(door), threading.Event()

    def slow():
        assert threading.current_thread() is not threading.main_thread()
        assert going_on.wait(30.0)
        return plan

    taken = []
    door.guard.read("joint_trajectory", slow, long=True, taken=lambda: taken.append(door.time_s))
    door.stand(20)
    assert door.state == "holding" and not taken, "steps go on meanwhile"
    short = Plan(contacts=ContactSchedule(QUADRUPED_FEET, [0.0], np.ones((1, 4))))
    door.guard.read("contact_schedule", lambda: short)
    going_on.set()
    assert until(lambda: len(door.guard.plans.reader.done) == 2)
    door.stand(3)
    assert len(taken) == 1 and door.state == "following" and not door.refused
    assert door.guard.controller.plans_at(door.time_s + 1.0)[2] is not None, (
        "what came behind it, too"
    )


def test_a_clock_that_is_set_forward_is_no_gap():
    """States came each period all the same; the plans' times are of another clock, and are dropped."""
    door = ArrayDoor(recovery_window_s=0.1)
    guard, offset_s = door.guard, 0.0

    def send(count):
        for _ in range(count):
            door.pass_time(PERIOD_S)
            now_ns = round((door.time_s + offset_s) * 1e9)
            guard.take_base(BASE, now_ns)
            guard.step(JointReading(now_ns, STANDING, VELOCITY), now_ns)

    send(5)
    follow_goal(door, STANDING + 0.1)
    send(5)
    assert door.state == "following"
    offset_s = 0.5
    send(5)
    assert door.state == "holding" and not door.refused
    door.pass_time(0.5)
    send(1)
    assert door.state == "stopped"


@pytest.mark.parametrize(("forward_s", "then"), [(0.5, "holding"), (1.5, "stopped")])
def test_the_clock_in_process_is_set_forward_by_up_to_a_second_and_no_gap(forward_s, then):
    """It stamps the states itself; more may be a computer that was suspended, whose steady clock stood."""
    door = ArrayDoor(recovery_window_s=0.1)
    door.stand()
    door.time_s += forward_s
    door.stand()
    assert door.state == then and not door.refused


@pytest.mark.parametrize("ahead_s", [0.05, 0.3, 3.0, 7200.0])
@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("copies", [0, 1])
def test_one_stamp_far_ahead_is_refused_and_the_next_states_are_not(ahead_s, simulated, copies):
    """By stamps alone, or by simulated time, which says nothing of stamps ahead of it. A copy confirms nothing."""
    door = NodeDoor()
    door.guard.checks.clock_lags = simulated
    command = door.loop.command

    def by_the_simulation(message, now_ns):
        return command(message, round(1e9 * door.steady_s) + round(1e9 * (START_S - 0.01)))

    if simulated:
        door.loop.command = by_the_simulation
    good = door.stand(5)
    for _ in range(2):  # another one long after it confirms nothing
        door.time_s += ahead_s
        door.send()
        for _ in range(copies):
            door.send_joints(STANDING, VELOCITY, None)
        door.time_s -= ahead_s
        assert door.state == "interrupted"
        np.testing.assert_allclose(door.stand(20), good, atol=0.02)
        assert door.state == "holding"
    assert door.refused == {"stamp_jump": 2 + 2 * copies}


@pytest.mark.parametrize("wrong_s", [50.0, -50.0, 0.5 - START_S])
def test_the_first_stamp_after_a_start_is_of_the_time_before_it_or_confirmed(wrong_s):
    door = NodeDoor()
    door.time_s += wrong_s
    door.send()
    door.time_s -= wrong_s
    door.stand(5)
    assert door.state == "holding" and door.refused == {"stamp_jump": 1}
    door = NodeDoor(recovery_window_s=60.0)
    door.time_s += wrong_s
    door.stand(5)
    assert door.state == "holding" and door.refused == {"stamp_jump": 1}


def test_two_stamps_ahead_that_agree_are_a_gap():
    door = NodeDoor()
    door.stand()
    door.time_s += 3600.0
    door.send()
    assert door.state == "interrupted"
    door.send()
    assert door.state == "stopped" and "no good state for 36" in door.guard.machine.reason


@pytest.mark.parametrize("wrong_s", [0.6, 0.9, 1.5])
def test_after_a_gap_one_stamp_is_no_less_wrong(wrong_s):
    door = NodeDoor(recovery_window_s=60.0)
    door.stand()
    door.time_s += 0.9
    door.stand()
    assert door.state == "holding" and door.refused == {"stamp_jump": 1}
    door.time_s += wrong_s
    door.send()
    door.time_s -= wrong_s
    door.stand()
    assert door.state == "holding" and door.refused == {"stamp_jump": 2}


@pytest.mark.parametrize("mode", ["real_time", "lockstep"])
def test_states_that_are_rare_or_come_after_a_pause_are_not_ahead(mode):
    door = NodeDoor(mode=mode, overruns_in_a_row=0, state_timeout_s=0.5, recovery_window_s=0.6)
    door.stand()
    for _ in range(5):
        door.pass_time(0.1)
        door.send()
    assert door.state == "holding" and not door.refused
    for _ in range(6):  # faster than any clock: one is refused
        door.time_s += 0.25
        door.send()
    assert door.state == "holding" and door.refused == {"stamp_jump": 1}


@pytest.mark.parametrize("nothing", [Plan(), None, 5])
def test_what_is_no_plan_is_refused_in_one_line(nothing):
    door = ArrayDoor()
    door.stand()
    door.inner.follow(lambda: nothing)
    door.stand()
    assert door.refused == {"plan": 1} and door.state == "holding"
    assert len(door.log) == 1 and "is no plan with joints, base, contacts or goals" in door.log[0]
    assert "\n" not in door.log[0]


def test_a_thread_that_does_not_start_is_tried_again_for_the_next_plan(monkeypatch):
    reader = PlanReader()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError))
        with pytest.raises(RuntimeError):
            reader.read("joint_trajectory", Plan, lambda: None)
    assert not reader.is_busy
    reader.read("joint_trajectory", Plan, lambda: None)
    assert until(lambda: reader.done)


def test_in_a_flood_of_long_plans_their_reading_rests(monkeypatch):
    """The newest of those that came meanwhile is read then."""
    now_s, rests_s, read = [100.0], [], []
    reader, taking_s = PlanReader(), 0.02

    def rest(duration_s):
        rests_s.append(duration_s)
        now_s[0] += duration_s

    def plan(number):
        read.append(number)
        now_s[0] += taking_s
        if number < 8:
            for more in (number + 1, number + 2):
                reader.read("joint_trajectory", lambda: plan(more), lambda: None)
        return Plan()

    clocks = dict.fromkeys(("monotonic", "thread_time"), lambda: now_s[0])
    monkeypatch.setattr(plan_reader, "time", SimpleNamespace(sleep=rest, **clocks))
    reader.read("joint_trajectory", lambda: plan(0), lambda: None)
    assert until(lambda: not reader._thread)
    assert read == [0, 2, 4, 6, 8]
    assert sum(rests_s) >= 0.999 * 4 * taking_s * (1.0 / plan_reader.SHARE - 1.0)


@pytest.mark.parametrize("door", DOORS)
def test_a_long_plan_that_is_refused_changes_nothing(door):
    door = DOORS[door]()
    door.stand()
    beyond = long_plan(door, position=STANDING + 100.0)
    door.guard.read("joint_trajectory", lambda: beyond, long=True)

    def unreadable():
        raise TrajectoryError("points of the plan have different lengths")

    door.guard.read("base_trajectory", unreadable, long=True)
    assert until(lambda: len(door.guard.plans.reader.done) == 2)
    door.stand(5)
    assert door.refused == {"joint_trajectory": 1, "base_trajectory": 1}
    assert door.state == "holding"


@pytest.mark.parametrize("door", DOORS)
def test_a_plan_of_before_a_start_is_not_followed_after_it(door):
    door = DOORS[door]()
    door.stand()
    plan = long_plan(door)
    door.guard.read("joint_trajectory", lambda: plan, long=True)
    assert until(lambda: door.guard.plans.reader.done)
    door.emergency_stop(True)
    door.stand()
    door.emergency_stop(False)
    assert door.resume()
    door.stand(5)
    assert door.state == "holding"


@pytest.mark.parametrize("door", DOORS)
def test_an_emergency_stop_outlives_the_process_until_it_is_released(door):
    """What comes after `kill -9` finds the file; only the release removes it."""
    name = door
    door = DOORS[name]()
    door.stand()
    door.emergency_stop(True)
    assert not door.stand().any()
    again = DOORS[name]()
    assert again.state == "emergency_stop" and not again.stand().any()
    assert not again.resume()
    again.emergency_stop(False)
    assert again.state == "stopped"
    assert again.resume()
    assert again.stand().any()
    assert DOORS[name]().state != "emergency_stop"


def test_an_in_process_clock_that_is_set_back_drops_plans_and_holds():
    door = ArrayDoor()
    follow_goal(door, STANDING + 0.5)
    door.stand(3)
    assert door.state == "following"
    door.time_s -= 0.5 * PERIOD_S  # a hair: still the same time
    door.stand(1)
    assert door.state == "following"
    door.time_s -= 50.0
    last = door.trace[-1][1]
    torques = door.send()
    assert door.state == "holding" and not door.refused
    np.testing.assert_allclose(door.guard.result.reference.position, STANDING)
    assert np.abs(torques - last).max() <= BLEND_NM_S * PERIOD_S + 0.05


def test_stamps_that_go_back_are_bad_states_then_missing_ones_until_a_new_start():
    door = NodeDoor()
    good = door.stand()
    door.time_s = 1.0
    bad = [door.send() for _ in range(25)]
    assert door.state == "interrupted" and door.refused["out_of_order"] == 25
    assert np.abs(bad[0] - good).max() <= BLEND_NM_S * PERIOD_S + 1e-9
    assert door.guard.silent_in_s() < 0.0 and not bad[-1].any(), (
        "no velocity is known so long after"
    )
    door.guard.stop()
    door.send_base(BASE, door.time_s)
    door.loop.observe(door._bench.joint_state(door.time_s), None)
    assert door.guard.start() == ""
    door.stand()
    assert door.state == "holding"


def test_in_lockstep_neither_silence_nor_late_states_stop_anything():
    door = NodeDoor(mode="lockstep")
    good = door.stand()

    def slow(state):
        door.steady_s += 10.0
        return door.healthy_step(state)

    door.fail(slow)
    for _ in range(5):
        np.testing.assert_allclose(door.send(), good, atol=0.05)
        door.pass_time(5 * PERIOD_S)
        door.steady_s += 10.0
    assert door.state == "holding" and not door.refused


def test_of_the_plans_that_wait_to_be_read_the_newest_of_each_kind_is():
    reader, begun, going_on = PlanReader(), threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert going_on.wait(30.0)
        return "first"

    reader.read("joints", slow, lambda: None)
    assert begun.wait(30.0)
    for what, plan in (("joints", "old"), ("base", "base"), ("joints", "new")):
        reader.read(what, lambda plan=plan: plan, lambda: None)
    going_on.set()
    assert until(lambda: len(reader.done) == 3)
    assert [read.plan for read in reader.done] == ["first", "base", "new"]


def test_a_plan_of_more_than_30_kb_is_a_long_one():
    pytest.importorskip("rclpy", reason="plans as bytes need ROS 2")
    from contact_id_controller.ros.plan_bytes import is_long

    assert [is_long(bytes(size)) for size in (30_000, 30_001)] == [False, True]


# Parts of a plan


def parts(start_s=None):
    still = np.zeros((1, 3))
    return (
        Plan(JointTrajectory(["a"], [1.0], [[0.0]], start_s=start_s)),
        Plan(base=BaseTrajectory([1.0], still, [[0, 0, 0, 1]], still, still, start_s)),
        Plan(contacts=ContactSchedule(["f"], [1.0], [[1]], start_s)),
    )


def test_parts_with_the_same_start_are_one_plan_in_any_order():
    joints, base, contacts = parts(5.0)
    joiner = PlanParts()
    assert joiner.join(base, 4.0) is None and joiner.join(contacts, 4.0) is None
    whole = joiner.join(joints, 4.0)
    assert (whole.joints, whole.base, whole.contacts) == (
        joints.joints,
        base.base,
        contacts.contacts,
    )
    joiner.note_outcome(whole, refused=False)
    assert joiner.join(base, 4.0) is base, "after its joints: at once"
    assert not joiner.waiting


def test_parts_without_start_or_with_another_one_go_alone():
    joiner = PlanParts()
    for part in parts():
        assert joiner.join(part, 4.0).parts == part.parts
    _, base, _ = parts(5.0)
    joiner.join(base, 4.0)
    joiner.join(parts(6.0)[2], 4.0)
    assert joiner.join(parts(7.0)[0], 4.0).base is None
    assert joiner.due(4.9) == [] and joiner.due(5.0) == [base]
    assert list(joiner.waiting) == ["contacts"]
    joiner.clear()
    assert joiner.due(9.0) == []


@pytest.mark.parametrize("door", DOORS)
def test_a_robot_that_sinks_is_reported_and_torques_stay_the_controllers(door):
    """Knees bend slowly away from the posture that is held, as of a robot whose feet slide apart."""
    door = DOORS[door]()
    door.stand(3)
    bent, rate = np.tile([0.0, 0.0, 1.0], 4) * np.sign(STANDING), 2.0
    for k in range(200):
        door.send(STANDING + rate * PERIOD_S * k * bent, rate * bent)
    sunk = STANDING + rate * PERIOD_S * 200 * bent
    door.stand(400, position=sunk, velocity=0.0 * VELOCITY)
    assert door.state == "not_following" and door.guard.result is not None
    level, words = door.guard.summary()
    assert level == ERROR and words.startswith("not following: ")
    assert door.guard.figures()["not following"] in words and "KFE" in words
    assert [line for line in door.log if "not following: " in line]
    for k in range(200):
        door.send(sunk - rate * PERIOD_S * k * bent, -rate * bent)
    door.stand(500, velocity=0.0 * VELOCITY)
    assert door.state == "holding" and door.log[-1] == "following again"
    assert door.guard.summary() == (OK, "commanding")


def test_a_part_of_refused_joints_is_refused_unless_they_come_again():
    joints, base, contacts = parts(5.0)
    joiner = PlanParts()
    joiner.note_outcome(joiner.join(joints, 4.0), refused=True)
    assert joiner.join(base, 4.0) is None and joiner.join(contacts, 4.0) is None
    for part in joiner.due(5.0):
        with pytest.raises(TrajectoryError, match="begins at 5.000000 s, were refused"):
            joiner.join(part, 5.0)
    assert joiner.join(base, 4.0) is None
    again = joiner.join(joints, 4.0)
    assert again.base is base.base
