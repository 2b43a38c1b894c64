"""Our plugin, contact_id_ros2_control, in a real controller_manager: skipped where either is missing.

The robot is ros2_control's `mock_components/GenericSystem`, whose joints say the same state for ever.
"""

import time

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="needs ROS 2")

from ros2_control_hosts import RELIABLE, RealHost, why_no_plugin
from ros_bench import JOINTS, STANDING, VELOCITY, parameters
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from test_ros2_control_processes import PERIOD_S, SWAPPED, in_log, ours

from contact_id_controller import RobotModel
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.robot_side_message import packed_feedback, packed_trajectory
from contact_id_controller.plans.state_feedback import StateFeedback

pytestmark = pytest.mark.skipif(bool(why_no_plugin()), reason=why_no_plugin())

TIMEOUT_S = 0.25
DAMPING_NM_S_RAD = 0.5
DAMPING = -DAMPING_NM_S_RAD * VELOCITY
LIMIT_NM = 3.0
SOME = 0.1 * np.arange(1.0, 13.0)


class PluginHost(RealHost):
    """With our plugin; it keeps sending one command, and notes when the efforts of the joints changed."""

    inactive = ("robot_side",)

    def __init__(self, folder, listed=True, **changes):
        super().__init__(folder, JOINTS, STANDING, VELOCITY)
        content = yaml.safe_load(self.file.read_text())
        kind = {"type": "contact_id_ros2_control/RobotSideController"}
        content["controller_manager"]["ros__parameters"]["robot_side"] = kind
        values = {
            "joints": list(JOINTS),
            "position_gain": [2.0],
            "velocity_gain": [0.1],
            "damping_nm_s_rad": [DAMPING_NM_S_RAD],
            "effort_limits_nm": [LIMIT_NM],
            "timeout_s": TIMEOUT_S,
            "start_ramp_s": 0.0,
        }
        content["robot_side"] = {"ros__parameters": values | changes}
        if listed:
            # Else it depends on robot_side, which exports state interfaces.
            lists = {"joints": list(JOINTS), "interfaces": ["position", "velocity", "effort"]}
            content["joint_state_broadcaster"] = {"ros__parameters": lists}
        self.file.write_text(yaml.safe_dump(content))
        self.message, self.sent_s, self.changes = None, 0.0, []
        self.robot_side = self.node.create_publisher(
            Float64MultiArray, "/robot_side/commands", RELIABLE
        )
        self.every(PERIOD_S, self._send)

    def _send(self):
        if self.message is not None:
            self.robot_side.publish(Float64MultiArray(data=list(map(float, self.message))))
            self.sent_s = time.time()

    def _on_states(self, message):
        before = self.efforts
        super()._on_states(message)
        if not np.array_equal(before, self.efforts):
            stamp = message.header.stamp
            self.changes.append((stamp.sec + 1e-9 * stamp.nanosec, self.efforts))

    def damped_at(self):
        """When the joints were damped last, by the clock of ros2_control."""
        return next(at for at, efforts in reversed(self.changes) if np.allclose(efforts, DAMPING))


@pytest.fixture
def host_of(closing, tmp_path):
    def started(**changes):
        host = closing(PluginHost(tmp_path, **changes))
        host.start()
        host.activate("robot_side")
        return host

    return started


def trajectory(efforts, joints=JOINTS, session=7):
    """One that stands where the robot says it is, from its arrival on."""
    trajectory = EffortTrajectory(2, len(joints))
    trajectory.positions[:], trajectory.velocities[:] = STANDING, VELOCITY
    trajectory.accelerations[:], trajectory.efforts[:] = 0.0, efforts
    trajectory.positions[1] += VELOCITY * trajectory.times_s[1]
    return packed_trajectory(trajectory, joints, session)


def feedback(efforts, joints=JOINTS, session=7):
    """The same as torques with a gain around the state in which the robot says it is."""
    robot = RobotModel.from_urdf(parameters()["urdf"], floating_base=False, joints=list(joints))
    command = StateFeedback(robot)
    robot.put_joints(command.q, np.asarray(STANDING))
    command.v[robot.actuated], command.effort[:] = VELOCITY, efforts
    command.gain[:, robot.actuated] = 2.0 * np.eye(robot.na)
    return packed_feedback(command, robot, session)


COMMANDS = {"robot_side_trajectory": trajectory, "robot_side_feedback": feedback}


@pytest.fixture(params=COMMANDS)
def interface(request):
    return request.param


@pytest.fixture
def command(interface):
    """Makes the commands of an interface."""
    return COMMANDS[interface]


def controller(host, interface, **changes):
    values = {"command_interface": interface, "group_controller": "/robot_side"}
    arguments = ("-r", f"{interface}:=/robot_side/commands")
    return ours(host, "controller", *arguments, **(values | changes))


def follows(host):
    """Its joints move on while a command is under way: not to the last digit."""
    return np.allclose(host.efforts, SOME, atol=0.05)


def is_controlled(host):
    return bool(np.abs(host.efforts).max() > 0.0 and not np.allclose(host.efforts, DAMPING))


def test_silence_is_damped_after_the_time_out_and_only_a_new_sender_is_followed(host_of, command):
    host = host_of()
    assert host.holds(DAMPING), host.log()
    host.message = command(SOME)
    assert host.until(lambda: follows(host)), host.log()
    host.message = None
    assert host.holds(DAMPING)
    # As long as the last command was under way, and a period until it can be seen.
    assert TIMEOUT_S - PERIOD_S < host.damped_at() - host.sent_s < TIMEOUT_S + 0.1
    host.message = command(SOME)
    assert host.hears(50) and np.allclose(host.efforts, DAMPING), "who stalled once may do so again"
    assert host.call(Trigger, "/robot_side/reset", Trigger.Request()).success
    assert host.until(lambda: follows(host))
    host.message = None
    assert host.holds(DAMPING)
    host.message = command(SOME, session=8)
    assert host.until(lambda: follows(host))


def test_a_stop_is_latched(host_of, command):
    host = host_of()
    host.message = command(SOME)
    assert host.until(lambda: is_controlled(host)), host.log()
    assert host.call(SetBool, "/robot_side/emergency_stop", SetBool.Request(data=True)).success
    assert host.holds(DAMPING)
    host.deactivate("robot_side")
    assert host.holds(np.zeros(12))
    host.activate("robot_side")
    assert host.holds(DAMPING)
    assert host.hears(50) and np.allclose(host.efforts, DAMPING), "commands still come"
    assert not host.call(Trigger, "/robot_side/reset", Trigger.Request()).success
    assert host.call(SetBool, "/robot_side/emergency_stop", SetBool.Request(data=False)).success
    assert host.until(lambda: is_controlled(host))


def test_it_leaves_zero_and_ramps_after_activation(host_of, command):
    ramp_s = 2.0
    host = host_of(start_ramp_s=ramp_s)
    host.message = command(SOME)
    assert host.until(lambda: follows(host)), host.log()
    host.deactivate("robot_side")
    assert host.holds(np.zeros(12))
    assert host.hears(50) and not host.efforts.any(), "commands still come"
    del host.changes[:]
    host.activate("robot_side")
    assert host.until(lambda: follows(host))
    times = np.array([at for at, _ in host.changes])
    last = np.array([efforts[-1] for _, efforts in host.changes])
    begin = np.flatnonzero(last <= DAMPING[-1] + 0.01)[-1]
    share = (last[begin:] - DAMPING[-1]) / (SOME[-1] - DAMPING[-1])
    wanted = np.minimum((times[begin:] - times[begin]) / ramp_s, 1.0)
    np.testing.assert_allclose(share, wanted, atol=0.1)


def test_a_damaged_command_is_refused_and_the_one_before_goes_on(host_of, command):
    host = host_of()
    host.message = command(SOME)
    assert host.until(lambda: is_controlled(host)), host.log()
    spoiled = {
        "its size is not that of its layout": command(2.0 * SOME)[:-1],
        "a number is not finite": command(np.full(12, np.nan)),
        "it is of other joints, or of another order": command(2.0 * SOME, SWAPPED),
    }
    for words, numbers in spoiled.items():
        # Told at most once a second.
        def refused(words=words, numbers=numbers):
            host.robot_side.publish(Float64MultiArray(data=list(map(float, numbers))))
            time.sleep(0.02)
            return words in host.log()

        assert host.until(refused), host.log()
        assert np.abs(host.efforts - SOME).max() < 0.1
    host.message = command(np.full(12, 30.0))
    assert host.holds(np.full(12, LIMIT_NM)), "it is still active, and keeps the limits"


@pytest.mark.parametrize("listed", [True, False])
def test_another_controller_takes_over_and_back_in_one_switch(host_of, command, listed):
    """Where the joint_state_broadcaster takes all interfaces, ours too, controller_manager refuses."""
    host = host_of(listed=listed)
    host.message = command(SOME)
    assert host.until(lambda: is_controlled(host)), host.log()
    host.spawn("effort_controller")
    over = host.switch(["effort_controller"], ["robot_side"])
    assert over is listed, host.log()
    if listed:
        host.send(2.0 * SOME)
        assert host.holds(2.0 * SOME)
        assert host.switch(["robot_side"], ["effort_controller"])
        assert host.until(lambda: follows(host))


def test_after_a_switch_the_ramp_begins_at_the_efforts_of_the_controller_before(host_of, command):
    """That one leaves zero, on which a robot that stands would fall. A load is taken over within timeout_s."""
    host = host_of(effort_state_interfaces=True, start_ramp_s=1.0, timeout_s=1.0)
    host.message = command(SOME)
    assert host.until(lambda: follows(host)), host.log()
    host.spawn("effort_controller")
    assert host.switch(["effort_controller"], ["robot_side"])
    host.send(2.0 * SOME)
    assert host.holds(2.0 * SOME)
    del host.changes[:]
    asked_s = time.time()
    assert host.switch(["robot_side"], ["effort_controller"])
    assert host.until(lambda: follows(host))
    times, seen = map(np.array, zip(*host.changes))
    times, seen = (
        times[not seen[0].any() :],
        seen[not seen[0].any() :],
    )  # zero for one period, maybe
    assert len(seen) > 20 and (seen > SOME - 0.06).all(), "it never falls below what is commanded"
    # A node that is kept waiting misses states: the ramp's line is judged, not the first one that came.
    held = 2.0 * SOME + DAMPING
    share = (held - seen)[:, -1] / (held - SOME)[-1]
    began_s = np.median((times - share)[(share > 0.1) & (share < 0.9)])
    assert asked_s - PERIOD_S < began_s < times[0] + PERIOD_S
    np.testing.assert_allclose(share, np.minimum(times - began_s, 1.0), atol=0.1)


def test_kill_of_the_controller_is_damped_and_its_successor_followed(host_of, interface):
    host = host_of()
    assert controller(host, interface, joints=SWAPPED).wait(300.0) == 1
    assert in_log(host, "make them the same"), host.log()
    for _ in range(2):
        process = controller(host, interface)
        assert host.until(lambda: is_controlled(host)), host.log()
        process.kill()
        killed_s = time.time()
        assert host.holds(DAMPING), host.log()
        assert host.damped_at() - killed_s < TIMEOUT_S + 0.1
    assert "Traceback" not in host.log()


def test_after_a_restart_of_controller_manager_it_waits_and_the_controller_for_resume(
    host_of, interface
):
    host = host_of()
    process = controller(host, interface)
    assert host.until(lambda: is_controlled(host)), host.log()
    host.kill()
    assert in_log(host, "no good state"), host.log()
    host.start()
    host.activate("robot_side")

    def is_damped():
        """By the plugin, or by the commands of a stopped controller and the gains beside its trajectories."""
        return bool((np.abs(host.efforts / DAMPING - 1.0) < 0.5).all())

    assert host.until(is_damped), host.log()
    assert host.hears(100) and is_damped(), "nobody has resumed"
    answers = []

    def resumed():
        """Refused as long as discovery has not told of the new host's states."""
        if not answers or not answers[-1].success:
            answers.append(host.call(Trigger, "/controller/resume", Trigger.Request()))
        return answers[-1].success

    assert in_log(host, "stopped: no good state") and host.until(resumed), host.log()
    assert host.until(lambda: not is_damped()) and is_controlled(host), host.log()
    assert process.poll() is None and "Traceback" not in host.log()
