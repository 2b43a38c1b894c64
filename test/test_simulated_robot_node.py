"""The simulated robot's node, run as its own process and met over real topics."""

import signal
import time

import numpy as np
import pytest
from node_process import PATIENCE_S, NodeProcess
from paths import QUADRUPED_URDF
from robots import JOINTS, LEGS, STANDING
from waiting import until

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import WrenchStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from contact_id_controller.exceptions import ContactIdError  # noqa: E402
from contact_id_controller.ros.simulated_robot import SimulatedRobot  # noqa: E402
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings  # noqa: E402
from contact_id_controller.settings.specification import table_of  # noqa: E402

NAME = "simulated_robot"
BEST_EFFORT = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


def parameters(**changes):
    values = {
        "urdf": str(QUADRUPED_URDF),
        "joints": JOINTS,
        "contact_frames": [f"{leg}_FOOT" for leg in LEGS],
        "contact_radii_m": 0.01,
        "initial_joint_positions": STANDING.tolist(),
        "mode": "lockstep",
        "duration_s": 0.5,
    }
    values.update(changes)
    return values


class Responder:
    """A tiny PD controller in the test's process that answers every joint state."""

    def __init__(self, context, qos=RELIABLE):
        self.node = rclpy.create_node("responder", context=context)
        self.states, self.odometry, self.clocks, self.reactions = [], [], [], []
        self.answer = self.pd
        self.commands = self.node.create_publisher(Float64MultiArray, "commands", qos)
        self.plans = self.node.create_publisher(JointTrajectory, "joint_trajectory", RELIABLE)
        listen = self.node.create_subscription
        listen(Clock, "/clock", lambda m: self.clocks.append(stamp_ns(m.clock)), BEST_EFFORT)
        listen(Odometry, "odometry", self.odometry.append, qos)
        listen(JointState, "joint_states", self.on_state, qos)
        listen(WrenchStamped, "ground_reaction/LF_FOOT", self.reactions.append, qos)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)

    def pd(self, message):
        error = STANDING - np.array(message.position)
        return (40.0 * error - 0.1 * np.array(message.velocity)).tolist()

    def on_state(self, message):
        self.states.append(message)
        command = self.answer(message)
        if command is not None:
            self.commands.publish(Float64MultiArray(data=command))

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()

    def spin_while(self, condition):
        assert until(
            lambda: not condition(), turn=lambda: self.executor.spin_once(timeout_sec=0.05)
        )

    def until_end_of(self, robot, exit_code=0):
        """Answer until the process has ended, and return its output."""
        self.spin_while(robot.is_running)
        code, output = robot.finish()
        assert code == exit_code, output
        return output


def run_columns(run):
    """Indices into a recorded q of the joints in command order (Pinocchio sorts legs by name)."""
    return [7 + sorted(JOINTS).index(name) for name in run["joint_names"]]


def stamp_ns(stamp):
    return stamp.sec * 10**9 + stamp.nanosec


@pytest.fixture(scope="module")
def standing(context, tmp_path_factory):
    """A run in lockstep in which the robot stands for half a second, seen from both sides."""
    folder = tmp_path_factory.mktemp("standing")
    robot = NodeProcess(NAME, folder, parameters(record_path=str(folder / "run.npz")))
    responder = Responder(context)
    output = responder.until_end_of(robot)
    responder.close()
    return np.load(folder / "run.npz"), responder, output


@pytest.fixture
def listen(context, closing):
    return lambda qos=RELIABLE: closing(Responder(context, qos))


@pytest.fixture
def start(node_of):
    return lambda **changes: node_of(NAME, parameters(**changes))


def test_lockstep_every_period_is_one_state_and_the_robot_stands(standing):
    run, responder, output = standing
    assert "ended by duration after 0.500 s, the robot on its feet 0.0" in output
    assert " m from its start: 500 periods" in output
    stamps = np.array([stamp_ns(state.header.stamp) for state in responder.states])
    held = stamps < 1_000_000
    assert held.any() and (np.diff(stamps) > 0).all()
    assert stamps[held].max() < 100_000  # a nanosecond each
    np.testing.assert_array_equal(stamps[~held], 1_000_000 * np.arange(1, 501))
    assert responder.states[-1].name == JOINTS

    assert run["time_s"].shape == (500,) and run["contact_forces"].shape == (500, 4, 3)
    np.testing.assert_allclose(run["time_s"], 1e-3 * np.arange(500), atol=1e-12)
    assert not run["fell"] and run["refused_commands"] == 0
    assert run["foot_names"].tolist() == [f"{leg}_FOOT" for leg in LEGS]
    normal = run["contact_forces"][300:].sum(axis=1)[:, 2]
    assert normal.mean() == pytest.approx(47.088, rel=0.01)


def test_lockstep_each_command_acts_on_the_period_after_the_state_it_answers(standing):
    run, responder, _ = standing
    assert run["joint_names"].tolist() == JOINTS
    states = {stamp_ns(state.header.stamp): state for state in responder.states}
    for row in range(1, 500):
        state = states[row * 1_000_000]
        np.testing.assert_allclose(run["torques"][row], responder.pd(state), atol=1e-12)
        np.testing.assert_array_equal(state.position, run["q"][row][run_columns(run)])
        np.testing.assert_array_equal(state.effort, run["torques"][row - 1])


def test_a_controller_that_reads_a_plan_meanwhile_answers_no_state_twice(listen, start, tmp_path):
    """Its answers to states of the held robot came late and moved the robot: G1 fell at once."""
    record = tmp_path / "run.npz"
    robot = start(record_path=str(record), duration_s=0.05, wait_for_plan_s=10.0)
    responder = listen(QoSProfile(depth=20, reliability=ReliabilityPolicy.RELIABLE))
    stamps = []

    def answer(message):
        stamps.append(stamp_ns(message.header.stamp))
        if len(stamps) == 5:
            plan = JointTrajectory(joint_names=JOINTS)
            plan.header.stamp.nanosec = 1
            responder.plans.publish(plan)
            time.sleep(0.3)
        return [*responder.pd(message)[:11], 1e-9 * stamps[-1]]  # tells which state it answers

    responder.answer = answer
    responder.until_end_of(robot)
    said = np.load(record)["torques"][:, 11]
    np.testing.assert_allclose(said[1:], 1e-3 * np.arange(1, 50), atol=1e-9)


def test_sensors_speak_and_the_truth_has_names_of_its_own(listen, start, tmp_path):
    """`imu` and `wrench/<sensor>` beside noisy joint states; nothing at the names of the truth."""
    robot = start(
        record_path=str(tmp_path / "run.npz"),
        duration_s=0.3,
        sensors="good",
        mounted_sensors=["force_torque LF_KFE", "force_torque RF_FOOT"],
        ground_truth_topics="separate",
    )
    responder = listen()
    imu, truth, contacts, wrenches = [], [], [], []
    for kind, topic, heard in (
        (Imu, "imu", imu),
        (Odometry, "ground_truth/odometry", truth),
        (JointState, "ground_truth/contact_states", contacts),
        (WrenchStamped, "wrench/RF_FOOT", wrenches),
    ):
        responder.node.create_subscription(kind, topic, heard.append, RELIABLE)
    responder.until_end_of(robot)
    run = np.load(tmp_path / "run.npz")
    assert responder.odometry == [] and responder.reactions == []
    # Of 300; a listener that falls behind on a busy machine loses some.
    assert min(len(imu), len(truth), len(contacts), len(wrenches)) > 100
    position = truth[-1].pose.pose.position
    row = min(stamp_ns(truth[-1].header.stamp) // 1_000_000, 299)
    np.testing.assert_allclose([position.x, position.y, position.z], run["q"][row][:3], atol=1e-5)
    assert contacts[-1].name == [f"{leg}_FOOT" for leg in LEGS]
    assert list(contacts[-1].position) == [1.0] * 4
    message = imu[-1]
    assert message.header.frame_id == "base" and message.orientation_covariance[0] == -1.0
    felt = np.array(
        [
            [m.linear_acceleration.x, m.linear_acceleration.y, m.linear_acceleration.z]
            for m in imu[-100:]
        ]
    )
    assert np.abs(felt.mean(axis=0) - [0.0, 0.0, 9.81]).max() < 0.3
    assert 0.03 < felt.std() < 6.0 and felt[:, 1].std() > 0.03
    states = {stamp_ns(m.header.stamp): np.array(m.position) for m in responder.states}
    noise = [
        states[row * 1_000_000] - run["q"][row][run_columns(run)]
        for row in range(100, 300)
        if row * 1_000_000 in states
    ]
    assert np.std(noise) == pytest.approx(1e-4, rel=0.1)
    assert wrenches[-1].header.frame_id == "RF_FOOT"
    force = wrenches[-1].wrench.force
    assert np.linalg.norm([force.x, force.y, force.z]) == pytest.approx(47.088 / 4, rel=0.5)


def test_a_second_lockstep_run_is_the_same_run(standing, listen, start, tmp_path):
    robot = start(record_path=str(tmp_path / "again.npz"), duration_s=0.2)
    responder = listen()
    responder.until_end_of(robot)
    again = np.load(tmp_path / "again.npz")
    for column in ("q", "v", "torques", "contact_forces"):
        np.testing.assert_array_equal(again[column], standing[0][column][:200])


def test_odometry_clock_and_ground_reactions_tell_of_the_same_state(standing):
    run, responder, _ = standing
    stamps = {stamp_ns(state.header.stamp) for state in responder.states}
    assert len(responder.odometry) > 250  # of 500: a busy machine loses some, these are best effort
    for message in responder.odometry:
        stamp = stamp_ns(message.header.stamp)
        # Each state that was answered arrived; those of the robot held before may be lost, best effort as they are.
        assert stamp in stamps or stamp < 1_000_000
        assert (message.header.frame_id, message.child_frame_id) == ("world", "base")
        row = stamp // 1_000_000
        if row < 500:
            pose, twist = message.pose.pose, message.twist.twist
            position, turn = pose.position, pose.orientation
            np.testing.assert_array_equal(
                [position.x, position.y, position.z, turn.x, turn.y, turn.z, turn.w],
                run["q"][row][:7],
            )
            linear, angular = twist.linear, twist.angular
            np.testing.assert_array_equal(
                [linear.x, linear.y, linear.z, angular.x, angular.y, angular.z], run["v"][row][:6]
            )
    ticks = sorted({tick for tick in responder.clocks if tick >= 1_000_000})
    beats = [tick for tick in ticks if tick % 10_000_000 == 0]
    # Each 10 ms, and where a command is long in coming as it stands; not each period, which would be 500.
    assert len(beats) > 40 and len(ticks) - len(beats) <= len(beats)
    assert len(responder.reactions) > 250
    for message in responder.reactions[-50:]:
        row = stamp_ns(message.header.stamp) // 1_000_000
        force = message.wrench.force  # of the period that led to this state
        np.testing.assert_array_equal(
            [force.x, force.y, force.z], run["contact_forces"][row - 1][0]
        )


def test_the_robot_is_held_until_the_first_command(listen, start):
    robot = start(duration_s=0.02)
    responder = listen()
    responder.answer = lambda message: None
    responder.spin_while(lambda: len(responder.states) < 40)
    for state in responder.states:
        assert stamp_ns(state.header.stamp) < 1_000_000
        np.testing.assert_array_equal(state.position, STANDING)
    assert robot.is_running()
    responder.answer = responder.pd
    responder.until_end_of(robot)


def test_bad_commands_become_zero_are_counted_and_do_not_end_the_node(listen, start, tmp_path):
    record = tmp_path / "run.npz"
    robot = start(record_path=str(record), duration_s=0.05)
    responder = listen()
    bad = {10: [float("nan")] * 12, 20: [0.0] * 5, 30: []}

    def answer(message):
        row = stamp_ns(message.header.stamp) // 1_000_000
        return bad.get(row, responder.pd(message))

    responder.answer = answer
    assert "3 commands refused" in responder.until_end_of(robot)
    run = np.load(record)
    assert run["refused_commands"] == 3
    assert not run["torques"][[10, 20, 30]].any()
    assert run["torques"][[11, 21, 31]].any(axis=1).all()


def test_without_torque_the_robot_falls_and_the_node_ends_and_says_so(listen, start, tmp_path):
    record = tmp_path / "run.npz"
    robot = start(record_path=str(record), duration_s=5.0)
    responder = listen()
    responder.answer = lambda message: [0.0] * 12
    assert "the robot fell at" in responder.until_end_of(robot)
    run = np.load(record)
    assert run["fell"] and 0.05 < run["fell_time_s"] < 1.0
    assert run["ended_by"] == "fall"


def test_lockstep_ends_with_an_error_when_the_commands_stop(listen, start, tmp_path):
    record = tmp_path / "run.npz"
    robot = start(record_path=str(record))
    responder = listen()
    responder.answer = lambda message: (
        responder.pd(message) if stamp_ns(message.header.stamp) < 100_000_000 else None
    )
    output = responder.until_end_of(robot, exit_code=1)
    assert "no command for 10." in output and "at 0.100 s" in output
    assert len(np.load(record)["time_s"]) == 100


def test_lockstep_waits_for_plans_that_are_new_enough(listen, start):
    robot = start(wait_for_plan_s=0.03, duration_s=0.1)
    responder = listen()
    sent = []

    def plan_when_stuck():
        """A planner that is slow: it plans when nothing else happens."""
        newest = stamp_ns(responder.states[-1].header.stamp) if responder.states else 0
        responder.executor.spin_once(timeout_sec=0.1)
        if responder.states and stamp_ns(responder.states[-1].header.stamp) == newest:
            message = JointTrajectory()
            message.header.stamp.nanosec = newest
            responder.plans.publish(message)
            sent.append(newest)

    def is_held():
        return not responder.states or stamp_ns(responder.states[-1].header.stamp) < 1_000_000

    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        responder.executor.spin_once(timeout_sec=0.05)
    assert is_held()  # commands alone do not start it
    while is_held() and robot.is_running():
        message = JointTrajectory()
        message.header.stamp.nanosec = 1
        responder.plans.publish(message)
        for _ in range(20):
            responder.executor.spin_once(timeout_sec=0.02)
    while robot.is_running():
        plan_when_stuck()
    assert robot.finish()[0] == 0
    assert {30_000_000, 60_000_000} <= set(sent)


def test_real_time_keeps_the_last_command_and_ends_by_itself(listen, start, tmp_path):
    record = tmp_path / "run.npz"
    robot = start(mode="real_time", record_path=str(record), duration_s=0.5, stop_when_fallen=False)
    responder = listen(BEST_EFFORT)

    def answer(message):
        if stamp_ns(message.header.stamp) < 100_000_000:
            return [0.25] * 12
        return None

    responder.answer = answer
    output = responder.until_end_of(robot)
    run = np.load(record)
    assert len(run["time_s"]) == 500
    np.testing.assert_array_equal(run["torques"], 0.25)
    assert "late" in output and run["late_periods"] >= 0


def test_at_a_fifth_of_real_time_a_reset_puts_the_robot_back(listen, start):
    robot = start(mode="real_time", real_time_factor=0.2, duration_s=0.3, stop_when_fallen=False)
    responder = listen(BEST_EFFORT)
    fallen_ns, wall = 60_000_000, {}

    def answer(message):
        wall[stamp_ns(message.header.stamp)] = time.monotonic()
        return [1.0] * 12

    responder.answer = answer
    responder.spin_while(lambda: max(wall, default=0) < fallen_ns)
    assert not np.allclose(responder.states[-1].position, STANDING, atol=1e-2)
    first, last = min(wall), max(wall)
    assert wall[last] - wall[first] > 2.5e-9 * (last - first), "5, but messages may come late"
    client = responder.node.create_client(Trigger, "simulated_robot/reset")
    assert client.wait_for_service(PATIENCE_S)
    responder.answer = lambda message: None
    future = client.call_async(Trigger.Request())
    responder.spin_while(lambda: not future.done())
    assert future.result().success
    responder.spin_while(lambda: stamp_ns(responder.states[-1].header.stamp) >= fallen_ns)
    stamps = [stamp_ns(state.header.stamp) for state in responder.states]
    (again,) = np.flatnonzero(np.diff(stamps) <= 0) + 1
    first = responder.states[again]  # best effort: the very first ones may be lost
    assert np.allclose(first.position, STANDING, atol=1e-2), f"at {stamps[again]} ns"
    responder.answer = responder.pd
    assert "ended by duration after 0.300 s" in responder.until_end_of(robot)
    # What the process sent last may still be on its way when the process has ended.
    responder.spin_while(lambda: stamp_ns(responder.states[-1].header.stamp) < 290_000_000)
    assert np.allclose(responder.states[-1].position, STANDING, atol=0.1)


def test_a_fixed_base_publishes_no_odometry(listen, start):
    robot = start(floating_base=False, contact_frames=["LF_FOOT"], duration_s=0.05)
    responder = listen()
    responder.until_end_of(robot)
    assert len(responder.states) >= 50 and not responder.odometry


def test_an_interrupted_robot_still_writes_its_record(listen, start, tmp_path):
    record = tmp_path / "run.npz"
    robot = start(record_path=str(record), duration_s=0.0)
    responder = listen()
    responder.spin_while(
        lambda: not responder.states or stamp_ns(responder.states[-1].header.stamp) < 50_000_000
    )
    robot.send_signal(signal.SIGINT)
    assert "Traceback" not in responder.until_end_of(robot)
    run = np.load(record)
    assert len(run["time_s"]) >= 50 and run["ended_by"] == "shutdown"


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(urdf=""), "parameter 'urdf' is empty"),
        (dict(urdf="nowhere.urdf"), "'nowhere.urdf' not found"),
        (dict(joints=["TAIL"]), "'TAIL'"),
        (dict(contact_frames=["PAW"]), "'PAW'"),
        (dict(mode="fast"), "parameter 'mode' is 'fast'"),
        (dict(period_s=0.0), "parameter 'period_s' is 0"),
        (dict(friction_coefficient=-1), "parameter 'friction_coefficient' is -1"),
        (
            dict(initial_joint_positions=[0.1]),
            "'initial_joint_positions' has 1 values, must have 12",
        ),
        (dict(contact_radii_m=[0.01, 0.02]), "'contact_radii_m' has 2 values, must have 1 or 4"),
        (dict(record_path="/nowhere/run.npz"), "no such folder"),
        (dict(frcition_coefficient=0.6), "did you mean 'friction_coefficient'"),
    ],
)
def test_bad_parameters_are_refused_by_name(node_within, changes, message):
    with pytest.raises(ContactIdError, match=message):
        node_within(SimulatedRobot, **parameters(**changes))


def test_a_bad_parameter_ends_the_process_with_one_line(start):
    code, output = start(urdf="nowhere.urdf").finish()
    lines = [line for line in output.splitlines() if line.strip()]
    assert code == 1 and len(lines) == 1, output
    assert "'nowhere.urdf' not found" in lines[0]


def test_parameters_are_described_and_cannot_change(node_within):
    node = node_within(SimulatedRobot, **parameters())
    for spec in table_of(SimulatedRobotSettings):
        assert node.describe_parameter(spec.name).description.startswith(spec.description)
    result = node.set_parameters([Parameter("friction_coefficient", value=0.1)])[0]
    assert not result.successful
