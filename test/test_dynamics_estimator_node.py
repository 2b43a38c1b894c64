"""The dynamics estimator's node over real topics: what it publishes, refuses, and says of bad sensors."""

import functools
import gc
import time

import numpy as np
import pytest
from robots import SOLO12, SOLO_FEET, SOLO_POSTURE
from stand_in_tf import FakeNode, with_tf
from standing_sensors import StandingSensors
from waiting import until

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.lifecycle import TransitionCallbackReturn  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from rclpy.serialization import deserialize_message  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from contact_id_controller import RobotModel  # noqa: E402
from contact_id_controller.estimation.odometry_settings import BaseOdometrySettings  # noqa: E402
from contact_id_controller.estimation.pipeline import EstimationPipeline  # noqa: E402
from contact_id_controller.ros import dynamics_estimator, estimate_publisher  # noqa: E402
from contact_id_controller.ros.dynamics_estimator import DynamicsEstimatorNode  # noqa: E402
from contact_id_controller.ros.packed import stamp_ns  # noqa: E402
from contact_id_controller.ros.process import Interrupt  # noqa: E402
from contact_id_controller.ros.state_publisher import fill_wrench  # noqa: E402
from contact_id_controller.settings import dynamics_estimator as estimator_settings  # noqa: E402
from contact_id_controller.settings.dynamics_estimator import (  # noqa: E402
    DynamicsEstimatorSettings,
)

RADIUS_M, PERIOD_NS = 0.016, 1_000_000
SUCCESS = TransitionCallbackReturn.SUCCESS
QOS = QoSProfile(depth=100)


def parameters(**changes):
    values = {
        "urdf": SOLO12,
        "contact_frames": list(SOLO_FEET),
        "contact_radii_m": RADIUS_M,
        "mode": "lockstep",
    }
    return [Parameter(name, value=value) for name, value in {**values, **changes}.items()]


@pytest.fixture(autouse=True)
def soon_still(monkeypatch):
    """Its odometry begins after .05 s of standing instead of .25."""
    sooner = functools.partial(BaseOdometrySettings, still_time_s=0.05)
    monkeypatch.setattr(estimator_settings, "BaseOdometrySettings", sooner)


class Bench:
    """Node and peer, one message after the other; `close` ends both."""

    def __init__(self, **changes):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        names = {"context": self.context, "namespace": f"/estimator_{time.monotonic_ns()}"}
        self.node = DynamicsEstimatorNode(parameter_overrides=parameters(**changes), **names)
        self.peer = rclpy.create_node("peer", **names)
        publish, listen = self.peer.create_publisher, self.peer.create_subscription
        self._imu = publish(Imu, "imu", QOS)
        self._joints = publish(JointState, "joint_states", QOS)
        self.wrenches = {
            name: publish(WrenchStamped, f"wrench/{name}", QOS)
            for _, name, *_ in map(str.split, changes.get("mounted_sensors", ()))
        }
        self.heard = {}
        node = "dynamics_estimator"
        for kind, topic in (
            (Odometry, "odometry"),
            (JointState, "contact_states"),
            (WrenchStamped, f"ground_reaction/{SOLO_FEET[0]}"),
            (JointState, f"{node}/joint_states"),
            (JointTrajectory, f"{node}/accelerations"),
            (WrenchStamped, f"{node}/joint_wrench/FL_HAA"),
        ):
            self.heard[topic] = []
            listen(kind, topic, self.heard[topic].append, QOS)
        self.statuses = []
        listen(DiagnosticArray, "/diagnostics", self._on_diagnostics, QOS)
        self.executor = SingleThreadedExecutor(context=self.context)
        for each in (self.node, self.peer):
            self.executor.add_node(each)
        self.stamp_ns = 5_000_000_000
        robot = RobotModel.from_urdf(SOLO12)
        self.standing = StandingSensors(robot, SOLO_FEET, SOLO_POSTURE, RADIUS_M)

    def _on_diagnostics(self, message):
        self.statuses += [s for s in message.status if "dynamics and odometry" in s.name]

    def start(self):
        assert self.node.trigger_configure() == SUCCESS
        assert self.node.trigger_activate() == SUCCESS
        streams = (self._joints, self._imu, *self.wrenches.values())
        self.spin_until(lambda: all(each.get_subscription_count() for each in streams))

    def step(self, imu=True, silent=(), bad=(), imu_off_ns=0, off_ns=0, **changes):
        """One period: IMU, wrenches, joint states, and whatever follows from them."""
        values = self.standing.sample(**changes)
        self.stamp_ns += PERIOD_NS
        if imu:
            message = Imu()
            self._stamp(message, imu_off_ns)
            for name, source in (("angular_velocity", "gyro"), ("linear_acceleration", "accel")):
                vector = getattr(message, name)
                vector.x, vector.y, vector.z = map(float, values[source])
            self._imu.publish(message)
        for name, publisher in self.wrenches.items():
            if name not in silent:
                message = WrenchStamped()
                self._stamp(message)
                sizes = self.standing.wrenches[name] * (np.nan if name in bad else 1.0)
                fill_wrench(message, sizes)
                publisher.publish(message)
        names = self.standing.robot.joint_names
        message = JointState(name=list(names))
        self._stamp(message, off_ns)
        for name in ("position", "velocity", "effort"):
            setattr(message, name, list(map(float, values[name])))
        self._joints.publish(message)
        before = self.taken
        self.spin_until(lambda: self.taken > before)  # the joint state is used

    @property
    def taken(self):
        return self.node.steps + self.node.stamps["joint_states"].ignored

    def _stamp(self, message, off_ns=0):
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = divmod(max(self.stamp_ns + off_ns, 0), 1_000_000_000)

    def steps(self, count, **changes):
        for _ in range(count):
            self.step(**changes)
        for _ in range(50):
            self.executor.spin_once(timeout_sec=0.002)

    def spin_until(self, condition):
        assert until(condition, turn=lambda: self.executor.spin_once(timeout_sec=0.01))

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.peer.destroy_node()
        self.context.try_shutdown()


@pytest.fixture
def bench(closing):
    return lambda **changes: closing(Bench(**changes))


def test_a_standing_robot_knows_its_pose_contacts_and_forces(bench):
    run = bench(joint_wrenches=["FL_HAA"])
    run.start()
    run.steps(120)
    heard, standing = run.heard, run.standing
    odometry = heard["odometry"][-1]
    assert odometry.header.frame_id == "odom" and odometry.child_frame_id == "base"
    stamp = odometry.header.stamp
    assert stamp.sec * 1_000_000_000 + stamp.nanosec == run.stamp_ns
    assert len(heard["odometry"]) < 120, "nothing is said before it has begun"
    turn = odometry.pose.pose.orientation
    assert abs(turn.w) > 0.9999 and abs(odometry.twist.twist.linear.x) < 0.01
    assert np.isfinite(odometry.pose.covariance).all() and odometry.pose.covariance[0] > 0.0
    contacts = heard["contact_states"][-1]
    assert contacts.name == list(SOLO_FEET) and list(contacts.position) == [1.0] * 4
    force = heard[f"ground_reaction/{SOLO_FEET[0]}"][-1]
    assert force.header.frame_id == "odom"
    assert force.wrench.force.z == pytest.approx(standing.forces[0], rel=0.1)
    efforts = heard["dynamics_estimator/joint_states"][-1]
    by_name = dict(zip(efforts.name, efforts.effort))
    told = [by_name[name] for name in standing.robot.joint_names]
    np.testing.assert_allclose(told, standing.effort, atol=0.05)
    assert len(heard["dynamics_estimator/accelerations"][-1].points[0].accelerations) == 12
    # What passes the hip downwards is the foot's share of the base.
    wrench = heard["dynamics_estimator/joint_wrench/FL_HAA"][-1].wrench
    share = 9.81 * standing.robot.model.inertias[1].mass / 4.0
    assert wrench.force.z == pytest.approx(-share, rel=0.1)
    run.statuses.clear()
    run.spin_until(lambda: run.statuses)
    status = run.statuses[-1]
    assert status.level == DiagnosticStatus.OK
    figures = {pair.key: pair.value for pair in status.values}
    assert figures["odometry"] == "running" and figures["contact"] == ", ".join(SOLO_FEET)
    assert float(figures["rank"]) > 0 and "residual of joint_effort" in figures


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gyro": np.full(3, np.nan)}, "IMU is silent"),
        ({"effort": np.array([np.nan, *np.zeros(11)])}, "effort is missing of FL_HAA"),
        ({"gyro": np.array([40.0, 0.0, 0.0])}, "IMU is saturated"),
    ],
    ids=["silent", "no effort", "saturated"],
)
def test_a_bad_sensor_is_named_within_50_ms(bench, changes, words):
    run = bench()
    run.start()
    run.steps(150)
    assert all(words not in status.message for status in run.statuses)
    run.steps(50, **changes)
    assert any(words in status.message for status in run.statuses)
    assert run.statuses[-1].level != DiagnosticStatus.OK
    for odometry in run.heard["odometry"]:
        place = odometry.pose.pose.position
        assert np.isfinite([place.x, place.y, place.z, *odometry.pose.covariance]).all()


@pytest.mark.parametrize("name", ["effort", "velocity", "gyro", "accel"])
def test_numbers_beyond_belief_leave_nothing_behind(bench, name):
    """In a low-pass 1e200 is what counts for a minute; who stood still was not seen to."""
    run = bench()
    run.start()
    run.steps(150)
    run.steps(3, **{name: np.full(3 if name in ("gyro", "accel") else 12, 1e200)})
    run.heard[f"ground_reaction/{SOLO_FEET[0]}"].clear()
    run.steps(400)
    assert run.node.pipeline.estimate.ready and not run.node.pipeline.estimate.faults
    force = run.heard[f"ground_reaction/{SOLO_FEET[0]}"][-1].wrench.force
    assert force.z == pytest.approx(run.standing.forces[0], rel=0.1)


SENSORS = ["FL_FOOT", "FR_KFE"]
MOUNTED = [f"force_torque {name}" for name in SENSORS]


@pytest.mark.parametrize("how", ["silent", "bad"])
@pytest.mark.parametrize("mode", ["lockstep", "real_time"])
def test_a_wrench_that_is_silent_or_no_number_is_named_and_done_without(bench, how, mode):
    """In lockstep too: joint states wait for it once, and then no more until it speaks again."""
    run = bench(mounted_sensors=MOUNTED, mode=mode, reliable_topics=True)
    run.start()
    run.steps(150)
    assert all("wrench" not in status.message for status in run.statuses)
    run.heard[f"ground_reaction/{SOLO_FEET[0]}"].clear()
    run.steps(50, **{how: ["FR_KFE"]})
    assert any("reading is missing of wrench/FR_KFE" in status.message for status in run.statuses)
    force = run.heard[f"ground_reaction/{SOLO_FEET[0]}"][-1].wrench.force
    assert force.z == pytest.approx(run.standing.forces[0], rel=0.1)
    run.steps(50)
    assert run.node.pipeline.estimate.faults == ()


def test_a_wrench_that_never_comes_does_not_hold_the_robot(bench):
    run = bench(mounted_sensors=MOUNTED)
    run.start()
    run.steps(100, silent=SENSORS)
    assert run.node.pipeline.estimate.ready and run.heard["odometry"]
    assert run.node.pipeline.estimate.faults == (
        "reading is missing of wrench/FL_FOOT, wrench/FR_KFE",
    )


def test_joints_without_imu_are_named(bench):
    """In real time nobody waits for the IMU."""
    run = bench(mode="real_time", reliable_topics=True)
    run.start()
    run.steps(150)
    assert run.heard["odometry"]
    run.steps(50, imu=False)
    assert any("IMU is silent" in status.message for status in run.statuses)


def test_time_that_goes_back_begins_anew(bench):
    run = bench()
    run.start()
    run.steps(100)
    assert run.node.pipeline.estimate.ready
    run.stamp_ns = 1_000_000_000
    for _ in range(3):
        run.step()
    assert not run.node.pipeline.estimate.ready
    run.steps(100)
    assert run.node.pipeline.estimate.ready


FAR_NS, ZERO_NS = 3600 * 10**9, -(10**12)


@pytest.mark.parametrize("mode", ["real_time", "lockstep"])
@pytest.mark.parametrize(
    "spoiled",
    [{"imu_off_ns": ZERO_NS}, {"imu_off_ns": FAR_NS}, {"off_ns": ZERO_NS}, {"off_ns": FAR_NS}],
    ids=["imu 0", "imu ahead", "joints 0", "joints ahead"],
)
def test_one_bad_stamp_is_ignored_and_counted(bench, spoiled, mode):
    """The robot moves: nothing that begins anew with standing still would be there again."""
    run = bench(mode=mode, reliable_topics=True)
    run.start()
    run.steps(100)
    moves = {"velocity": np.full(12, 0.5)}
    run.steps(5, **moves)
    heard = len(run.heard["odometry"])
    run.step(**spoiled, **moves)
    run.steps(30, **moves)
    assert len(run.heard["odometry"]) >= heard + 30
    assert run.node.pipeline.estimate.ready and run.node.pipeline.base.restarts == 0
    name = "imu" if "imu_off_ns" in spoiled else "joint_states"
    assert {key: each.ignored for key, each in run.node.stamps.items() if each.ignored} == {name: 1}
    run.statuses.clear()
    run.spin_until(lambda: run.statuses)
    figures = {pair.key: pair.value for pair in run.statuses[-1].values}
    assert figures[f"ignored stamps of {name}"] == "1"


def test_a_clock_that_was_set_is_followed(bench):
    run = bench(mode="real_time", reliable_topics=True)
    run.start()
    run.steps(100)
    run.stamp_ns += FAR_NS
    run.steps(100)
    assert run.node.pipeline.estimate.ready
    assert stamp_ns(run.heard["odometry"][-1]) == run.stamp_ns
    assert run.node.stamps["imu"].ignored == run.node.stamps["joint_states"].ignored == 2


@pytest.mark.parametrize("mode", ["real_time", "lockstep"])
def test_in_real_time_joint_states_alone_are_waited_for(bench, mode):
    """Each topic more costs every wait; a schedule begins later than the next look for one."""
    node = bench(mode=mode).node
    assert node.trigger_configure() == SUCCESS
    lists = node.direct_subscriptions, node.patient_subscriptions, node.polled_subscriptions
    waited, looked_for, taken = ([each.topic_name.rpartition("/")[2] for each in k] for k in lists)
    if mode == "real_time":
        assert (waited, looked_for, taken) == (["joint_states"], ["contact_schedule"], ["imu"])
    else:
        assert sorted(waited) == ["contact_schedule", "imu", "joint_states"]
        assert looked_for == taken == []
    assert node.trigger_cleanup() == SUCCESS
    assert (
        node.direct_subscriptions == node.patient_subscriptions == node.polled_subscriptions == []
    )


def test_a_bad_configuration_is_refused_in_one_line(bench):
    for changes in (
        {"contact_frames": ["NO_FOOT"]},
        {"joint_wrenches": ["nobody"]},
        {"mounted_sensors": ["force_torque nobody"]},
        {"mounted_sensors": ["force_torque FL_KFE axes=FL_FOOT"]},
        {"mounted_sensors": ["force_torque FL_KFE direction=upwards"]},
    ):
        assert bench(**changes).node.trigger_configure() == TransitionCallbackReturn.FAILURE


def test_cleanup_lets_go_and_configure_works_again(bench):
    run = bench()
    run.start()
    run.steps(80)
    assert run.node.trigger_deactivate() == SUCCESS
    assert run.node.trigger_cleanup() == SUCCESS
    assert run.node.pipeline is None and run.node.direct_subscriptions == []
    run.heard["odometry"].clear()
    run.start()
    run.steps(80)
    assert run.heard["odometry"]


def test_the_pose_goes_to_tf_where_its_messages_exist(monkeypatch):
    module = with_tf(estimate_publisher, monkeypatch)
    robot, node = RobotModel.from_urdf(SOLO12), FakeNode()
    pipeline = EstimationPipeline(robot, SOLO_FEET, RADIUS_M)
    pipeline.start(position=[1.0, 2.0, 0.3], yaw=0.5)
    names = {"urdf": SOLO12, "contact_frames": list(SOLO_FEET), "contact_radii_m": RADIUS_M}
    settings = DynamicsEstimatorSettings.from_mapping(names)
    publisher = module.EstimatePublisher(node, pipeline, settings)
    standing = StandingSensors(robot, SOLO_FEET, SOLO_POSTURE, RADIUS_M)
    for k in range(400):
        publisher.publish(PERIOD_NS * k, pipeline.step(1e-3 * k, **standing.sample()))
    poses, transforms = node.published["odometry"], node.published["/tf"]
    assert len(poses) > 100, "not before the odometry has begun"
    assert len(poses) / 20 <= len(transforms) <= len(poses) / 20 + 1, "20 ms apart"
    by_stamp = {stamp_ns(data): deserialize_message(data, Odometry) for data in poses}
    (found,) = transforms[-1].transforms
    pose = by_stamp[stamp_ns(found)].pose.pose
    assert (found.header.frame_id, found.child_frame_id) == ("odom", "base")
    count = len(transforms)
    publisher.publish(0, pipeline.estimate)
    assert len(transforms) == count + 1, "time has begun anew"
    place = found.transform.translation
    assert (place.x, place.y, place.z) == (pose.position.x, pose.position.y, pose.position.z)
    assert found.transform.rotation == pose.orientation and abs(place.y - 2.0) < 0.05
    silent = DynamicsEstimatorSettings.from_mapping({**names, "publish_tf": False})
    node.published.clear()
    module.EstimatePublisher(node, pipeline, silent)
    assert "odometry" in node.published and "/tf" not in node.published


def test_the_process_settles_garbage_and_memory_as_the_controller_does(bench, monkeypatch):
    """It is in the loop as well: a search for garbage, or a low priority, is an odometry that is late."""
    run, done, turns = bench(autostart=True), [], []
    monkeypatch.setattr(
        dynamics_estimator.scheduling, "settle", lambda warn: done.append("settled")
    )
    monkeypatch.setattr(
        dynamics_estimator, "serve_lifecycle", lambda node, interrupt, turn: turns.append(turn) or 0
    )
    executor = dynamics_estimator.GuardedExecutor
    monkeypatch.setattr(
        dynamics_estimator, "GuardedExecutor", lambda node: executor(node, context=run.context)
    )
    try:
        assert dynamics_estimator._serve(run.node, Interrupt()) == 0
        (turn,) = turns
        turn()
        assert done == ["settled"] and not gc.isenabled()
    finally:
        gc.enable()
