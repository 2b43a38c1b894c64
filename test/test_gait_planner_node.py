"""The gait planner's node, run as its own process and met over real topics."""

import signal
import time

import numpy as np
import pytest
from kinematic_walk import ROBOTS, KinematicWalk, planned_state
from paths import QUADRUPED_URDF
from waiting import until

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from rclpy.time import Time  # noqa: E402
from ros_peer import RosPeer  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from state_messages import odometry_and_joints  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory  # noqa: E402

from contact_id_controller.ros import conversions, gait_planner  # noqa: E402
from contact_id_controller.ros.gait_planner import GaitPlannerNode  # noqa: E402
from contact_id_controller.ros.packed import nanoseconds, stamp_ns  # noqa: E402
from contact_id_controller.ros.plan_messages import (  # noqa: E402
    base_message,
    joint_message,
    stance_message,
)
from contact_id_controller.settings.shared_rows import CONFIGURE_S  # noqa: E402

QUADRUPED = ROBOTS["quadruped"]
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
PERIOD_NS, PLAN_NS, LEAD_NS = 1_000_000, 50_000_000, 20_000_000
RADIUS_M = QUADRUPED.foot_radius_m


def parameters(**changes):
    values = {
        "urdf": str(QUADRUPED_URDF),
        "feet": list(QUADRUPED.feet),
        "posture": list(QUADRUPED.posture),
    }
    return {**values, **changes}


class Peer(RosPeer):
    """Publishes states of a robot that follows the plans, and keeps the plans."""

    def __init__(self):
        super().__init__("peer")
        publish, listen = self.node.create_publisher, self.node.create_subscription
        self.odometry = publish(Odometry, "odometry", BEST_EFFORT)
        self.states = publish(JointState, "joint_states", BEST_EFFORT)
        self.velocity = publish(Twist, "cmd_vel", RELIABLE)
        self.gait = publish(String, "gait", RELIABLE)
        self.touch = publish(JointState, "contact_states", BEST_EFFORT)
        self.touching = {}
        self.joints, self.bases, self.contacts = [], [], []
        self.heard = [
            listen(kind, topic, plans.append, RELIABLE)
            for kind, topic, plans in (
                (JointTrajectory, "joint_trajectory", self.joints),
                (MultiDOFJointTrajectory, "base_trajectory", self.bases),
                (JointTrajectory, "contact_schedule", self.contacts),
            )
        ]
        self.walk = KinematicWalk(QUADRUPED)
        self.q, self.v = self.walk.q, self.walk.v
        self.stamp_ns, self.frame = 10_000_000_000, "odom"

    def publish(self, **changes):
        """One state at `stamp_ns`: odometry, then joints."""
        odometry, joints = odometry_and_joints(self.walk.model, self.q, self.v, self.stamp_ns)
        for name, value in changes.items():
            setattr(joints, name, value)
        odometry.header.frame_id = self.frame
        self.odometry.publish(odometry)
        if self.touching:
            touch = JointState(name=list(self.touching), position=list(self.touching.values()))
            touch.header.stamp = joints.header.stamp
            self.touch.publish(touch)
        self.states.publish(joints)

    def run(self, duration_s, slow=2.0, **changes):
        """Let time go by, `slow` times slower than real; the robot follows the plans."""
        for _ in range(round(duration_s * 1e9 / PERIOD_NS)):
            self.publish(**changes)
            self.spin(slow * PERIOD_NS * 1e-9)
            self.stamp_ns += PERIOD_NS
            self.follow()

    def follow(self):
        """Take the state that the last plan in force asks for."""
        now_s = self.stamp_ns * 1e-9
        begun = [
            k
            for k, message in enumerate(self.joints)
            if conversions.seconds(message.header.stamp) <= now_s and k < len(self.bases)
        ]
        if begun:
            k = begun[-1]
            joints = conversions.joint_trajectory(self.joints[k], allow_moving_end=True)
            base = conversions.base_trajectory(self.bases[k])
            self.q, self.v = planned_state(
                self.walk.model, joints.in_order(self.walk.model.joint_names), base, now_s
            )

    def meet(self):
        """Publish the same state, a little later each time, until there is a plan."""

        def turn():
            self.publish()
            self.spin(0.05)
            self.stamp_ns += 1000

        assert until(lambda: self.joints and self.bases and self.contacts, turn=turn), "no plan"
        # A leap, which the next state confirms.
        self.stamp_ns = (self.stamp_ns // PLAN_NS + 1) * PLAN_NS - PERIOD_NS
        self.publish()
        self.spin(0.05)
        self.stamp_ns += PERIOD_NS
        self.forget()

    def forget(self):
        for plans in (self.joints, self.bases, self.contacts):
            plans.clear()


@pytest.fixture
def peer(closing):
    return closing(Peer())


@pytest.fixture
def planner(node_of):
    return lambda **changes: node_of("gait_planner", parameters(**changes))


def stamps(messages):
    """Different stamps, in order: a plan may be repeated on a slow machine."""
    return sorted({nanoseconds(message.header.stamp) for message in messages})


def test_each_period_of_the_stamps_gets_one_plan_however_slow_the_clock_on_the_wall(peer, planner):
    process = planner(waypoints_m=[0.0, 0.0, 1.0, 0.0])
    peer.meet()
    begin_ns = peer.stamp_ns
    peer.run(0.8, slow=8.0)
    wanted = [begin_ns + k * PLAN_NS + LEAD_NS for k in range(16)]
    assert peer.until(
        lambda: all(
            stamps(plans)[-1:] == wanted[-1:] for plans in (peer.joints, peer.bases, peer.contacts)
        )
    )
    assert stamps(peer.joints) == wanted
    assert stamps(peer.bases) == stamps(peer.contacts) == wanted
    assert peer.q[0] > 0.03  # it walks
    plan = conversions.joint_trajectory(peer.joints[-1], allow_moving_end=True)
    schedule = conversions.contact_schedule(peer.contacts[-1])
    base = conversions.base_trajectory(peer.bases[-1])
    assert sorted(plan.names) == sorted(peer.walk.model.joint_names)
    assert schedule.frames == QUADRUPED.feet and not schedule.stance.all()
    assert np.array_equal(plan.times_s, base.times_s)
    assert np.array_equal(plan.times_s, schedule.times_s)
    assert base.linear_velocities[-1, 0] == pytest.approx(0.2, abs=0.02)
    process.send_signal(signal.SIGINT)
    code, output = process.finish()
    assert code == 0, output
    assert "Traceback" not in output


def test_a_walk_begins_by_standing_once_somebody_listens_to_its_joints(peer, planner):
    """A controller that discovery brought together with its planner .28 s late came into a stride, and fell."""
    peer.node.destroy_subscription(peer.heard[0])
    process = planner(waypoints_m=[0.0, 0.0, 1.0, 0.0])
    assert peer.until(lambda: peer.node.count_publishers("base_trajectory"))
    peer.run(2.0)
    assert process.is_running() and not peer.bases and not peer.contacts
    peer.node.create_subscription(JointTrajectory, "joint_trajectory", peer.joints.append, RELIABLE)
    while not (peer.joints and peer.bases and peer.contacts):
        peer.run(0.01)
    first = conversions.joint_trajectory(peer.joints[0], allow_moving_end=True)
    still = np.array(QUADRUPED.posture)
    np.testing.assert_allclose(first.positions[0], still, atol=1e-3)
    assert not np.abs(first.velocities[0]).max() > 1e-6
    process.send_signal(signal.SIGINT)
    _, output = process.finish()
    assert "no plan: no subscriber on /joint_trajectory yet" in output


def test_a_part_that_nobody_takes_is_waited_for_and_named_but_not_for_ever(
    peer, monkeypatch, capfd
):
    """A controller may take joints and contacts alone; one that compiles takes nothing for minutes, a viewer looks."""
    assert gait_planner.PART_S > CONFIGURE_S
    peer.node.destroy_subscription(peer.heard[1])
    monkeypatch.setattr(gait_planner, "PART_S", 1.5)
    given = [rclpy.parameter.Parameter(n, value=v) for n, v in parameters().items()]
    node = GaitPlannerNode(context=peer.node.context, parameter_overrides=given)
    assert peer.until(lambda: node._plans.is_followed)
    assert not node._is_heard()
    peer.node.destroy_subscription(peer.heard[0])
    listen = peer.node.create_subscription
    listen(JointTrajectory, "joint_trajectory", peer.joints.append, BEST_EFFORT)
    assert peer.until(
        lambda: not node._plans.is_followed and node._plans.unheard == ["/base_trajectory"]
    )
    end_s = time.monotonic() + 2.0
    while time.monotonic() < end_s:
        assert not node._is_heard(), "the one who followed has left, another only looks"
        peer.run(0.1)
    listen(JointTrajectory, "joint_trajectory", peer.joints.append, RELIABLE)
    assert peer.until(lambda: node._plans.is_followed)
    assert not node._is_heard()
    began_s = time.monotonic()
    assert peer.until(node._is_heard)
    assert time.monotonic() - began_s > 1.4
    said = capfd.readouterr().err
    assert "no plan: no subscriber on /base_trajectory yet" in said
    assert said.count("no subscriber on /base_trajectory: planning begins without it") == 1
    node.destroy_node()


def test_velocity_command_is_obeyed_until_it_is_too_old(peer, planner):
    planner()
    peer.meet()
    peer.run(0.2)
    assert peer.until(lambda: peer.contacts)
    assert conversions.contact_schedule(peer.contacts[-1]).stance.all()
    command = Twist()
    command.linear.y, command.angular.z = 0.1, 0.5
    peer.velocity.publish(command)
    peer.run(0.35)
    base = conversions.base_trajectory(peer.bases[-1])
    assert base.linear_velocities[-1, 1] == pytest.approx(0.1, abs=0.02)
    assert base.angular_velocities[-1, 2] == pytest.approx(0.5, abs=0.1)
    peer.run(0.7)
    base = conversions.base_trajectory(peer.bases[-1])
    assert np.abs(base.linear_velocities[-1]).max() < 0.02


def test_a_gait_is_taken_by_its_name(peer, planner):
    process = planner(step_in_place=True)
    peer.meet()
    peer.run(0.5)
    pairs = [peer_pairs(peer)]
    peer.gait.publish(String(data="pace"))
    peer.run(0.6)
    pairs.append(peer_pairs(peer))
    peer.gait.publish(String(data="gallop"))
    peer.run(0.2)
    assert pairs == [{(0, 3), (1, 2)}, {(0, 2), (1, 3)}]
    process.send_signal(signal.SIGINT)
    code, output = process.finish()
    assert code == 0 and "no gait 'gallop'" in output


def peer_pairs(peer):
    """Feet that swing at one time in the newest schedule."""
    stance = conversions.contact_schedule(peer.contacts[-1]).stance
    return {tuple(np.flatnonzero(~row).tolist()) for row in stance if not row.all()}


def test_a_foot_that_touches_nothing_is_led_down(peer, planner):
    planner(ground="felt")
    peer.touching = {"LF_FOOT": 0.0, "RF_FOOT": 1.0, "LH_FOOT": 1.0, "RH_FOOT": 1.0}
    peer.meet()
    peer.run(0.2)
    heights = peer.walk.feet(peer.q)[:, 2]
    assert heights[0] < RADIUS_M - 2e-3 and np.abs(heights[1:] - RADIUS_M).max() < 1e-3


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda names, values: {"position": [np.nan, *values[1:]]}, "is not finite"),
        (lambda names, values: {"name": ["wheel", *names[1:]]}, "joint state lacks"),
        (lambda names, values: {"velocity": values[1:]}, "12 positions and 11 velocities"),
    ],
)
def test_bad_states_make_no_plan_and_good_ones_make_the_next(peer, planner, spoil, words):
    process = planner()
    peer.meet()
    time.sleep(1.1)  # a line a second at most, and what the first states lacked may have been one
    begin_ns, names = peer.stamp_ns, peer.walk.model.joint_names
    peer.run(0.06, **spoil(names, peer.q[peer.walk.model.q_index].tolist()))
    bad_until_ns = peer.stamp_ns
    peer.run(0.06)
    assert peer.until(lambda: peer.joints and stamps(peer.joints)[-1] >= bad_until_ns)
    assert not any(begin_ns < s < bad_until_ns + LEAD_NS for s in stamps(peer.joints))
    process.send_signal(signal.SIGINT)
    code, output = process.finish()
    assert code == 0 and words in output


def test_a_first_odometry_in_a_wrong_frame_does_not_keep_the_planner_from_planning(peer, planner):
    planner()
    peer.frame = "spoiled"
    peer.meet()
    peer.frame = "odom"
    peer.run(1.3)  # the odometry before has to be silent for a second
    begin_ns = peer.stamp_ns
    peer.run(0.1)
    assert peer.until(lambda: peer.joints and stamps(peer.joints)[-1] > begin_ns)


def test_planning_begins_anew_when_time_goes_back(peer, planner):
    planner()
    peer.meet()
    peer.run(0.1)
    peer.forget()
    peer.stamp_ns -= 5_000_000_000
    peer.run(0.1)
    assert peer.until(lambda: peer.joints and peer.contacts)
    assert stamps(peer.joints)[0] < peer.stamp_ns + LEAD_NS
    assert conversions.contact_schedule(peer.contacts[0]).stance.all()


class WithinReach:
    """The node in this process, on a walk whose states are handed to it: what one of them spoils is seen in its plans."""

    def __init__(self, context, **changes):
        given = [rclpy.parameter.Parameter(n, value=v) for n, v in parameters(**changes).items()]
        self.node = GaitPlannerNode(context=context, parameter_overrides=given)
        self.node._heard = True  # as if somebody listened to its plans
        self.node.planner.set_velocity((0.2, 0.0))
        self.made, self.taken_ns, self.stamp_ns = [], [], 10_000_000_000
        self.walk = KinematicWalk(QUADRUPED)
        self.q, self.v = self.walk.q, self.walk.v
        plan = self.node.planner.plan
        self.node.planner.plan = lambda *state: (self.made.append(plan(*state)), self.made[-1])[1]

    def state(
        self,
        step_ns=5_000_000,
        joints_ns=None,
        frames=("odom",),
        ahead_ns=0,
        away_m=0.0,
        away_rad=0.0,
    ):
        """One odometry of each of these frames, and joints; the robot is where the last plan in force says."""
        self.stamp_ns += step_ns
        now_s, model = self.stamp_ns * 1e-9, self.walk.model
        in_force = [plan for plan in self.made if plan.joints.start_s <= now_s]
        if in_force:
            plan = in_force[-1]
            self.q, self.v = planned_state(model, plan.joints, plan.base, now_s)
        q = self.q.copy()
        q[0] += away_m
        q[model.q_index] += away_rad
        odometry, joints = odometry_and_joints(model, q, self.v, self.stamp_ns)
        for frame in frames:
            odometry.header.frame_id = frame
            odometry.header.stamp = Time(nanoseconds=self.stamp_ns + ahead_ns).to_msg()
            self.node._keep_odometry(serialize_message(odometry))
        joints.header.stamp = Time(nanoseconds=joints_ns or self.stamp_ns).to_msg()
        self.node._on_state(serialize_message(joints))

    def go(self, duration_s, **changes):
        for _ in range(round(duration_s / 0.005)):
            self.state(**changes)

    @property
    def begun(self):
        """How often planning began anew since the first plans."""
        return sum(plan.restarted for plan in self.made[1:])


@pytest.fixture
def within_reach(peer, closing):
    def make(**changes):
        made = WithinReach(peer.node.context, **changes)
        return closing(made, made.node.destroy_node)

    return make


@pytest.mark.parametrize("frames", [("map", "odom"), ("odom", "map")])
def test_of_two_publishers_of_odometry_the_first_ones_frame_is_kept(within_reach, frames):
    there = within_reach()
    there.go(0.2)
    there.go(1.0, frames=frames)
    assert there.node._input.odometry.world_frame == "odom"
    assert len(there.made) >= 23 and not there.begun


def test_one_odometry_with_a_stamp_ahead_does_not_hide_those_after_it(within_reach):
    there = within_reach()
    there.go(0.5, step_ns=20_000_000)
    before = len(there.made)
    there.state(step_ns=20_000_000, ahead_ns=900_000_000)
    for _ in range(25):
        there.state(step_ns=20_000_000)
    assert len(there.made) - before >= 8 and not there.begun


def test_one_joint_state_with_a_stamp_ahead_begins_no_walk_anew(within_reach):
    there = within_reach()
    there.go(0.6)
    assert there.made[-1].walking
    for ahead_ns in (60_000_000, 500_000_000, 990_000_000):
        there.state(joints_ns=there.stamp_ns + ahead_ns)
        there.go(0.2)
    assert there.made[-1].walking and not there.begun
    assert there.made[-1].joints.start_s < 1e-9 * there.stamp_ns + 0.021


@pytest.mark.parametrize("away", [{"away_m": 0.12}, {"away_rad": 1.6}])
def test_one_spoiled_state_begins_no_walk_anew(within_reach, away):
    there = within_reach()
    there.go(0.6)
    for _ in range(8):
        there.go(0.045)
        there.state(**away)  # from which a plan is due
    there.go(0.1)
    assert there.made[-1].walking and not there.begun
    assert len(there.made) >= 20


@pytest.mark.parametrize("away", [{"away_m": 0.4}, {"away_rad": 0.4}])
@pytest.mark.parametrize("back", [False, True])
def test_a_first_state_that_is_off_does_not_stay(within_reach, away, back):
    """Without a given posture that of the first state was kept for ever."""
    there = within_reach(posture=[])
    if back:
        there.go(0.1)
        there.made.clear()
        there.stamp_ns -= 5_000_000_000
        there.go(0.005)  # the state after it confirms that time went back
    there.state(**away)
    there.go(0.05)
    plan, still = there.made[0], np.array(QUADRUPED.posture)
    np.testing.assert_allclose(
        plan.joints.positions, np.tile(still, (len(plan.joints.times_s), 1)), atol=2e-3
    )
    assert np.abs(plan.base.positions[:, 0]).max() < 2e-3
    assert there.node.planner._posture == pytest.approx(still, abs=1e-6)


def test_a_walk_of_which_states_are_lost_is_planned_from_all_others(within_reach, monkeypatch):
    there, random, warned = within_reach(), np.random.default_rng(3), []
    monkeypatch.setattr(time, "monotonic", lambda: 1e-9 * there.stamp_ns)
    there.node._warn = warned.append
    there.node.planner.set_velocity((0.3, 0.1), 1.0)
    for _ in range(120):
        there.state(step_ns=int(random.integers(1_000_000, 48_000_000)))
    assert there.made[-1].walking and not there.begun and not warned


def test_a_touch_counts_once_two_messages_in_a_row_say_it(within_reach):
    there = within_reach()

    def felt(*touches):
        """What was felt since the last plan, by so many messages, each with one contact of the first foot."""
        for touch in touches:
            there.stamp_ns += PERIOD_NS
            message = JointState(name=list(QUADRUPED.feet), position=[float(touch), 1.0, 1.0, 0.0])
            message.header.stamp = Time(nanoseconds=there.stamp_ns).to_msg()
            there.node._keep_contacts(serialize_message(message))
        there.node._began[:] = False
        first, *others = there.node._contact(there.stamp_ns).tolist()
        assert others == [True, True, False]
        return first

    assert not felt(0, 0)
    assert not felt(0, 1, 0), "one alone"
    assert [felt(1), felt(1), felt(1)] == [False, True, True], "one message later"
    assert felt(1, 0, 1), "it bounces"
    assert not felt(1, 0, 0), "it has left"
    assert felt(1, 1, 0, 0), "it has landed since the last plan"
    assert not felt(0)
    assert felt(1, 1)
    there.stamp_ns += 200 * PERIOD_NS
    assert not felt(0), "the first after a silence counts at once"


def test_what_was_felt_before_a_silence_or_before_time_went_back_is_not_planned_with(within_reach):
    there = within_reach(ground="felt")
    there.go(0.6)
    node = there.node
    node._is_heard = lambda: False  # no plan, which would forget it, is made
    node._began = np.ones(4, dtype=bool)
    there.stamp_ns -= 5_000_000_000
    there.go(0.01)
    assert node._last_ns == there.stamp_ns and not node._began.any()

    node._began = np.ones(4, dtype=bool)
    there.stamp_ns += 200_000_000
    message = JointState(name=list(QUADRUPED.feet), position=np.ones(4))
    message.header.stamp = Time(nanoseconds=there.stamp_ns).to_msg()
    node._keep_contacts(serialize_message(message))
    node._contact(there.stamp_ns)
    assert not node._began.any()


def test_a_touch_in_a_swing_is_planned_with_before_the_period_is_over(within_reach):
    there = within_reach(ground="felt")
    there.go(0.6)
    node, planner, sent = there.node, there.node.planner, []
    node._publish = lambda plan, start_ns: sent.append(start_ns)

    def lands():
        """A foot past the middle of its swing, long before the next plan is due."""
        now_s = 1e-9 * there.stamp_ns - planner._epoch_s
        swings = [path.active(now_s) for path in planner._footsteps.paths]
        late = [not s.standing and s.middle_s + 0.005 < now_s < s.end_s - 0.02 for s in swings]
        waits = node._look_ns - 5_000_000 <= there.stamp_ns < node._due_ns - 11_000_000
        return waits and any(late) and [s.standing or here for s, here in zip(swings, late)]

    for _ in range(2000):
        if touches := lands():
            break
        there.state(step_ns=1_000_000)
    made, due_ns = len(there.made), node._due_ns
    message = JointState(name=list(QUADRUPED.feet), position=np.array(touches, dtype=float))
    message.header.stamp = Time(nanoseconds=there.stamp_ns).to_msg()
    node._keep_contacts(serialize_message(message))
    there.state()
    assert there.stamp_ns < due_ns and len(there.made) == made + 1
    assert there.made[-1].contacts.stance[0].tolist() == touches
    assert sent[-1] == there.stamp_ns + 10_000_000


def test_what_was_planned_before_time_went_back_is_not_sent_again(within_reach):
    there = within_reach()
    there.go(0.2)
    node = there.node
    assert node._plans.has_sent
    node._is_heard = lambda: False  # none is made meanwhile
    there.made.clear()
    there.stamp_ns -= 5_000_000_000
    there.go(0.01)
    assert node._last_ns == there.stamp_ns and not node._plans.has_sent


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"urdf": ""}, "'urdf' is empty"),
        ({"urdf": "nowhere.urdf"}, "'nowhere.urdf' not found"),
        ({"feet": ["paw", "RF_FOOT", "LH_FOOT", "RH_FOOT"]}, "'paw' does not exist"),
        ({"joints": ["wheel"]}, "'wheel' is not"),
        ({"gait_period_s": -1.0}, "'gait_period_s' is -1, must be within"),
        ({"gait_perod_s": 0.3}, "unknown parameter 'gait_perod_s', did you mean 'gait_period_s'"),
    ],
)
def test_bad_parameters_refuse_to_start_with_one_line(planner, changes, words):
    code, output = planner(**changes).finish()
    lines = [line for line in output.splitlines() if line.startswith("gait_planner:")]
    assert code == 1 and len(lines) == 1 and words in lines[0], output
    assert "Traceback" not in output


def test_plans_survive_the_way_through_messages():
    walk = KinematicWalk(QUADRUPED)
    walk.planner.set_velocity((0.2, 0.0), 0.3)
    plan = walk.walk(0.6)[-1]
    stamp_ns = round(plan.joints.start_s * 1e9)
    joints = conversions.joint_trajectory(joint_message(plan.joints, stamp_ns), True)
    base = conversions.base_trajectory(base_message(plan.base, stamp_ns))
    contacts = conversions.contact_schedule(stance_message(plan.contacts, stamp_ns))
    for t in plan.joints.start_s + np.array([0.01, 0.1234, 0.25]):
        for got, wanted in zip(joints.sample(t), plan.joints.sample(t)):
            assert got == pytest.approx(wanted, abs=1e-4)
        for got, wanted in zip(base.sample(t), plan.base.sample(t)):
            assert got == pytest.approx(wanted, abs=1e-4)
        assert (contacts.sample(t) == plan.contacts.sample(t)).all()


@pytest.mark.parametrize("sec, nanosec", [(0, 1), (1_700_000_000, 999_999_999), (-1, 5)])
def test_stamp_is_read_from_a_packed_message(sec, nanosec):
    message = JointState(name=["a"])
    message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
    assert stamp_ns(serialize_message(message)) == sec * 1_000_000_000 + nanosec
