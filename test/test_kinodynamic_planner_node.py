"""The kinodynamic planner's node, run as its own process and met over real topics."""

import math
import threading

import numpy as np
import pinocchio as pin
import pytest
from node_process import PATIENCE_S, NodeProcess
from paths import CONFIG
from test_motion_planner import settings_of
from waiting import until

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Duration  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import PoseStamped, Transform  # noqa: E402
from nav_msgs.msg import Odometry, Path  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from ros_peer import RosPeer  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from state_messages import odometry_and_joints  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import (  # noqa: E402
    JointTrajectory,
    MultiDOFJointTrajectory,
    MultiDOFJointTrajectoryPoint,
)
from visualization_msgs.msg import MarkerArray  # noqa: E402

from contact_id_controller.planning.kinodynamic.footstep_file import soles_of, standing_posture  # noqa: E402
from contact_id_controller.planning.kinodynamic.motion_planner import LEAD_TIME_S  # noqa: E402
from contact_id_controller.ros import conversions  # noqa: E402
from contact_id_controller.ros.kinodynamic_planner import KinodynamicPlannerNode  # noqa: E402
from contact_id_controller.ros.packed import stamp_ns  # noqa: E402
from contact_id_controller.settings.parameter_file import ParameterFile  # noqa: E402

BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NAME = "kinodynamic_planner"
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
STRIDE_M = 0.08


class Process(NodeProcess):
    """The node in its process; its output is read while it runs."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.lines = []
        threading.Thread(target=lambda: self.lines.extend(self.stdout), daemon=True).start()

    def finish(self):
        """Exit code and what was printed until it was asked to end."""
        self.terminate()
        return self.wait(PATIENCE_S), "".join(self.lines)


class Peer(RosPeer):
    """A robot that stands, or is exactly where the plans want it."""

    def __init__(self):
        super().__init__("peer")
        publish, listen = self.node.create_publisher, self.node.create_subscription
        self.odometry = publish(Odometry, "odometry", BEST_EFFORT)
        self.states = publish(JointState, "joint_states", BEST_EFFORT)
        self.steps = publish(MultiDOFJointTrajectory, "footsteps", RELIABLE)
        self.goal = publish(PoseStamped, "goal_pose", RELIABLE)
        self.joints, self.bases, self.contacts = {}, {}, {}
        self.words, self.shown = [], {}
        for kind, topic, kept in (
            (JointTrajectory, "joint_trajectory", self.joints),
            (MultiDOFJointTrajectory, "base_trajectory", self.bases),
            (JointTrajectory, "contact_schedule", self.contacts),
        ):
            # A plan that has not begun may come twice.
            listen(kind, topic, lambda m, k=kept: k.update({1e-9 * stamp_ns(m): m}), RELIABLE)
        for kind, topic in (
            (MarkerArray, "footholds"),
            (MarkerArray, "planned_forces"),
            (Path, "com"),
        ):
            keep = lambda message, topic=topic: self.shown.update({topic: message})  # noqa: E731
            listen(kind, f"/{NAME}/{topic}", keep, LATCHED)
        listen(DiagnosticArray, "/diagnostics", self._hear, 10)
        self.services = {
            name: self.node.create_client(Trigger, f"{NAME}/{name}") for name in ("plan", "execute")
        }
        settings = settings_of("solo12")
        self.robot = settings.robot()
        self.q, self.stance = standing_posture(self.robot, soles_of(settings), settings)
        self.v = np.zeros(self.robot.nv)
        self.time_s = 20.0

    def _hear(self, message):
        self.words += [status.message for status in message.status if status.name == NAME]

    def publish(self):
        """One state, where the newest plan in force has the robot."""
        self._follow()
        stamp_ns = round(self.time_s * 1e9)
        odometry, joints = odometry_and_joints(self.robot, self.q, self.v, stamp_ns)
        self.odometry.publish(odometry)
        self.states.publish(joints)

    def _follow(self):
        begun = [start_s for start_s in self.joints if start_s <= self.time_s]
        if not begun or max(begun) not in self.bases:
            return
        joints = conversions.joint_trajectory(self.joints[max(begun)])
        base = conversions.base_trajectory(self.bases[max(begun)]).sample(self.time_s)
        motion = joints.in_order(self.robot.joint_names).sample(self.time_s)
        self.q[:3], self.q[3:7] = base.position, base.quaternion_xyzw
        self.q[self.robot.q_index], self.v[self.robot.actuated] = motion.position, motion.velocity
        turn = pin.Quaternion(self.q[3:7]).matrix()
        self.v[:3], self.v[3:6] = turn.T @ base.linear_velocity, turn.T @ base.angular_velocity

    def run(self, duration_s, slow=1.0):
        """Let time go by, 5 ms a state."""
        for _ in range(round(duration_s / 0.005)):
            self.publish()
            self.spin(0.005 * slow)
            self.time_s += 0.005

    def wait_for(self, is_there, what="it"):
        def turn():
            self.publish()
            self.spin(0.02)

        assert until(is_there, turn=turn), f"{what} did not come; last words: {self.words[-1:]}"

    def call(self, name):
        client = self.services[name]
        self.wait_for(client.service_is_ready, name)
        answer = client.call_async(Trigger.Request())
        self.wait_for(answer.done, name)
        return answer.result().success, answer.result().message

    def send_steps(self, *rows):
        """Rows: foot, place of the ground (3,), landing s."""
        message = MultiDOFJointTrajectory(joint_names=[foot for foot, _, _ in rows])
        for _, (x, y, z), land_s in rows:
            pose = Transform()
            pose.translation.x, pose.translation.y, pose.translation.z = map(float, (x, y, z))
            pose.rotation.w = 1.0
            since = Duration(sec=int(land_s), nanosec=round(land_s % 1.0 * 1e9))
            message.points.append(
                MultiDOFJointTrajectoryPoint(transforms=[pose], time_from_start=since)
            )
        self.wait_for(lambda: self.steps.get_subscription_count() > 0)
        self.steps.publish(message)

    def send_goal(self, x, y, heading):
        pose = PoseStamped()
        pose.pose.position.x, pose.pose.position.y = float(x), float(y)
        pose.pose.orientation.z = math.sin(0.5 * heading)
        pose.pose.orientation.w = math.cos(0.5 * heading)
        self.wait_for(lambda: self.goal.get_subscription_count() > 0)
        self.goal.publish(pose)

    def ground_below(self, foot):
        place = next(each.position for each in self.stance if each.foot == foot)
        return place - [0.0, 0.0, 0.016]

    def feet_at_the_end(self, start_s):
        joints = conversions.joint_trajectory(self.joints[start_s])
        base = conversions.base_trajectory(self.bases[start_s])
        q = self.robot.configuration(
            [*base.positions[-1], *base.quaternions_xyzw[-1]],
            joints.in_order(self.robot.joint_names).positions[-1],
        )
        data = self.robot.data
        pin.framesForwardKinematics(self.robot.model, data, q)
        return {foot: data.oMf[self.robot.frame_id(foot)].translation.copy() for foot in FEET}


@pytest.fixture
def peer(closing):
    return closing(Peer())


@pytest.fixture
def node(node_of):
    """Starts the node with what config/plans/solo12.yaml says of it, but for changes."""
    section = ParameterFile(CONFIG / "plans/solo12.yaml").section(NAME)
    values = {**section, "footsteps": "", "stride_m": STRIDE_M}
    return lambda **changes: node_of(NAME, {**values, **changes}, Process)


def test_what_is_to_be_executed_at_once_waits_for_a_good_state(peer):
    section = ParameterFile(CONFIG / "plans/solo12.yaml").section(NAME)
    values = {**section, "footsteps": "", "goal": [0.1, 0.0, 0.0], "execute_at_once": True}
    given = [rclpy.parameter.Parameter(n, value=v) for n, v in values.items()]
    node, made = KinodynamicPlannerNode(context=peer.node.context, parameter_overrides=given), []
    node._plan_and_send = lambda: (made.append(True), (True, "sent"))[1]
    good = odometry_and_joints(peer.robot, peer.q, peer.v, 20_000_000_000)
    spoiled = []
    for wrong in (math.nan, 1e5):
        odometry, joints = odometry_and_joints(peer.robot, peer.q, peer.v, 20_000_000_000)
        odometry.pose.pose.position.x = wrong
        spoiled.append((odometry, joints))

    def look(state):
        node._keep_odometry(serialize_message(state[0]))
        node._on_state(serialize_message(state[1]))
        node._look()
        return len(made)

    assert [look(state) for state in (*spoiled, good, good)] == [0, 0, 1, 1]
    look(spoiled[0])
    node._on_goal(serialize_message(PoseStamped()))
    assert [look(state) for state in (*spoiled, good, good)] == [1, 1, 2, 2]
    look(spoiled[0])
    node._on_goal(serialize_message(PoseStamped()))
    node._due_until_s = 0.0  # nobody expects that it moves any more
    assert [look(state) for state in (*spoiled, good, good)] == [2, 2, 2, 2]
    node.destroy_node()


def test_a_plan_is_looked_at_before_it_moves(peer, node):
    process = node()
    assert peer.call("plan") == (
        False,
        "nothing to plan: no footsteps or goal_pose received, and parameters goal and footsteps are empty",
    )
    assert peer.call("execute") == (False, "no plan to execute: call ~/plan first")
    ahead = peer.ground_below("FL_FOOT") + [0.06, 0.0, 0.02]
    peer.send_steps(("FL_FOOT", ahead, 0.8))
    peer.run(0.2)
    good, words = peer.call("plan")
    assert good and words.startswith("planned 1.2"), words
    peer.wait_for(lambda: len(peer.shown) == 3, "the pictures")
    assert not peer.joints
    holds, forces = peer.shown["footholds"].markers, peer.shown["planned_forces"].markers
    assert len(holds) == 1 + 5 and len(forces) > 6  # the first one of each clears the last plan
    assert holds[1].header.frame_id == "odom"
    good, words = peer.call("execute")
    assert good and words.startswith("sent: 1.2"), words
    peer.wait_for(lambda: peer.joints and peer.bases and peer.contacts, "the plan")
    (start_s,) = peer.joints
    assert set(peer.bases) == set(peer.contacts) == {start_s}
    assert start_s == pytest.approx(peer.time_s + LEAD_TIME_S, abs=0.02)
    first = peer.joints[start_s].points[0]
    np.testing.assert_allclose(first.positions, peer.q[peer.robot.q_index], atol=1e-9)
    end = peer.feet_at_the_end(start_s)
    np.testing.assert_allclose(end["FL_FOOT"], ahead + [0, 0, 0.016], atol=1e-6)
    schedule = peer.contacts[start_s]
    assert schedule.joint_names == list(FEET)
    loads = np.array([point.effort for point in schedule.points])
    stance = np.array([point.positions for point in schedule.points])
    assert (stance[1] == [0, 1, 1, 1]).all() and (np.abs(loads[stance == 0]) < 1e-9).all()
    np.testing.assert_allclose(loads.sum(axis=1), peer.robot.weight, rtol=0.1)
    assert peer.call("execute") == (False, "no plan to execute: call ~/plan first")
    code, output = process.finish()
    assert code == 0 and "Traceback" not in output, output


def test_a_goal_is_walked_to_and_replaced_on_the_way_without_a_jump(peer, node):
    node(execute_at_once=True)
    peer.wait_for(lambda: "no joint state" not in peer.call("plan")[1], "a state")
    peer.send_goal(0.3, 0.0, 0.0)
    peer.wait_for(lambda: peer.joints and peer.bases and peer.contacts, "the plan")
    (first_s,) = peer.joints
    peer.run(first_s - peer.time_s + 1.0)
    peer.send_goal(0.3, 0.1, 0.4)
    both = lambda: min(len(peer.contacts), len(peer.joints)) >= 2  # noqa: E731
    assert until(both, turn=lambda: peer.run(0.05, slow=4.0)), peer.words
    second_s = max(peer.joints)
    before, after = (conversions.joint_trajectory(peer.joints[s]) for s in (first_s, second_s))
    duration_s = before.times_s[-1]
    assert first_s + 1.0 + LEAD_TIME_S <= second_s < first_s + duration_s
    for wanted, value in zip(before.sample(second_s), after.sample(second_s)[:2]):
        np.testing.assert_allclose(value, wanted, atol=1e-6)
    bases = [
        conversions.base_trajectory(peer.bases[s]).sample(second_s) for s in (first_s, second_s)
    ]
    for wanted, value in zip(bases[0][:4], bases[1][:4]):
        np.testing.assert_allclose(value, wanted, atol=1e-6)
    stance = [np.array([p.positions for p in peer.contacts[s].points]) for s in (first_s, second_s)]
    assert (stance[0] == 0).any() and (stance[1] == 0).any()
    middle = np.mean(list(peer.feet_at_the_end(second_s).values()), axis=0)
    np.testing.assert_allclose(middle[:2], [0.3, 0.1], atol=3e-3)


def test_what_cannot_be_done_is_said_in_one_line(peer, node):
    process = node()
    there = peer.ground_below("FL_FOOT")

    def said(words):
        peer.wait_for(lambda: any(words in each for each in peer.words), words)

    peer.publish()
    peer.send_steps(("LEFT", there, 0.0))
    said("footstep 1: foot 'LEFT' does not exist; there are 'FL_FOOT'")
    peer.send_steps(("FL_FOOT", there + [math.nan, 0, 0], 0.0))
    said("footstep 1: position of a foothold of 'FL_FOOT' must be (3,) finite numbers")
    peer.send_goal(math.inf, 0.0, 0.0)
    said("goal_pose: place (inf, 0.0) is not finite")
    peer.send_steps(("FL_FOOT", there + [1.0, 0, 0], 0.0))
    peer.run(0.2)
    good, words = peer.call("plan")
    assert not good and words.startswith("no plan: phase ") and "foot FL_FOOT" in words, words
    peer.v[0] = 0.3
    peer.run(0.1)  # the state comes before the request
    good, words = peer.call("plan")
    assert not good and "the robot moves with 0.3 m/s" in words, words
    code, output = process.finish()
    assert code == 0 and "Traceback" not in output, output


def test_a_plan_whose_time_has_passed_is_not_sent(peer, node):
    node()
    peer.publish()
    peer.send_goal(0.2, 0.0, 0.0)
    peer.run(0.2)
    assert peer.call("plan")[0] and peer.call("execute")[0]
    peer.wait_for(lambda: peer.joints and peer.bases, "the plan")
    (first_s,) = peer.joints
    peer.run(first_s - peer.time_s + 0.6)
    good, words = peer.call("plan")
    assert good and " from " in words, words
    peer.run(2.0, slow=0.5)
    good, words = peer.call("execute")
    assert not good and "the plan was to begin at" in words, words
    assert len(peer.joints) == 1


def test_a_state_after_seconds_without_one_is_planned_from(peer, node):
    """As after a plan that took seconds to make on a full machine."""
    node()
    peer.send_goal(0.1, 0.0, 0.0)
    peer.run(0.2)
    peer.wait_for(peer.services["plan"].service_is_ready, "plan")
    peer.spin(1.3)
    peer.time_s += 1.3
    peer.publish()
    peer.spin(0.2)
    answer = peer.services["plan"].call_async(Trigger.Request())
    assert peer.until(answer.done)
    assert answer.result().success, answer.result().message


def test_a_robot_that_was_carried_away_is_not_sent_a_plan_from_elsewhere(peer, node):
    node()
    peer.publish()
    peer.send_goal(0.1, 0.0, 0.0)
    peer.run(0.2)
    assert peer.call("plan")[0]
    peer.q[0] += 0.2
    peer.publish()
    good, words = peer.call("execute")
    assert not good and "m from where the plan begins" in words, words
    assert peer.call("plan")[0] and peer.call("execute")[0]
