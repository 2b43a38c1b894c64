"""Controller and command watchdog in front of a process of ros2_control, and kill -9 in between.

Every test runs against the stand-in, and against a real `ros2_control_node` where there is one
(`ros2_control_hosts`).
"""

import os
import signal
import sys
import time

import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import CONFIG, ROOT

pytest.importorskip("rclpy", reason="needs ROS 2")

from nav_msgs.msg import Odometry
from ros2_control_hosts import (
    GAINS,
    OURS,
    PLUGINS_WITHIN,
    RELIABLE,
    UPDATE_RATE_HZ,
    VARIABLE,
    WITHIN,
    RealHost,
    StandIn,
    find_node,
    kill_all_of,
    why_no_plugin,
)
from ros_bench import JOINTS, STANDING, VELOCITY, joint_trajectory, odometry, parameters
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from contact_id_controller import RobotModel
from contact_id_controller.settings.command_interfaces import INTERFACES

PERIOD_S = 1.0 / UPDATE_RATE_HZ
TIMEOUT_S = 0.25
DAMPING_NM_S_RAD = 0.25
DAMPING = -DAMPING_NM_S_RAD * VELOCITY
SWAPPED = [JOINTS[1], JOINTS[0], *JOINTS[2:]]
SOME = 0.1 * np.arange(1.0, 13.0)


def _real():
    _, why_not = find_node()
    return pytest.param(
        RealHost, id="real", marks=pytest.mark.skipif(bool(why_not), reason=why_not)
    )


@pytest.fixture(params=[pytest.param(StandIn, id="stand-in"), _real()])
def host_of(request, closing, tmp_path):
    """Starts the host with velocities of its joints; the group controller is active."""

    def started(velocity=VELOCITY, controller="effort_controller", **robot):
        values = {"joints": JOINTS, "position": STANDING} | robot
        host = closing(request.param(tmp_path, velocity=velocity, **values))
        host.start()
        host.activate(controller)
        host.active = controller
        return host

    return started


@pytest.fixture
def host(host_of):
    return host_of()


CHOSEN = {
    "effort": {},
    "joint_trajectory": {
        "command_interface": "joint_trajectory",
        "group_controller": "/trajectory_controller",
    },
}
"""Parameters of both nodes that send through ros2_control's own controllers."""


RESTING = -GAINS["d"] * VELOCITY
"""Torques of the joint_trajectory_controller where a joint that moves on shall rest where it is."""


@pytest.fixture(params=CHOSEN)
def through(request, host_of):
    """A host, what its nodes are given, whether its joints are damped, and the torques without a controller."""
    chosen = CHOSEN[request.param]
    if not chosen:
        host = host_of()
        return host, chosen, lambda: np.allclose(host.efforts, DAMPING), np.zeros(12)
    host = host_of(controller=chosen["group_controller"].strip("/"))

    def is_damped():
        """By the gains at the robot's side and a torque that fades anew with each command."""
        share = host.efforts / RESTING
        return np.ptp(share) < 0.01 and 1.0 <= share[0] <= 1.0 + DAMPING_NM_S_RAD / GAINS["d"]

    return host, chosen, is_damped, RESTING


def ours(host, name, *arguments, **changes):
    """Start a node of ours with the parameters of these tests."""
    values = {
        "controller": parameters(
            floating_base=False,
            joints=list(JOINTS),
            period_s=PERIOD_S,
            ground_offset_m=-1.0,
            group_controller="/effort_controller",
            autostart=True,
            reliable_topics=False,
            stamp_reference="clock",
            damping_nm_s_rad=0.5,
            state_timeout_s=1.0,
            recovery_window_s=0.5,
        ),
        "command_watchdog": {
            "joints": list(JOINTS),
            "effort_limits_nm": 50.0,
            "damping_nm_s_rad": DAMPING_NM_S_RAD,
            "timeout_s": TIMEOUT_S,
            "state_timeout_s": 2.0,
            "group_controller": "/effort_controller",
        },
    }[name] | changes
    file = host.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({name: {"ros__parameters": values}}))
    module = f"contact_id_controller.ros.{name}"
    command = [sys.executable, "-m", module, "--ros-args", "--params-file", str(file), *arguments]
    return host.run(name, command)


def controller(host, **changes):
    remapped = ("-r", "commands:=commands_in", "-r", "joint_commands:=joint_commands_in")
    return ours(host, "controller", *remapped, **changes)


def watchdog(host, **changes):
    remapped = (
        *("-r", "commands:=/effort_controller/commands"),
        *("-r", "joint_commands:=/trajectory_controller/joint_trajectory"),
    )
    return ours(host, "command_watchdog", *remapped, **changes)


def is_controlled(host):
    """Neither zero nor anybody's damping."""
    efforts = host.efforts
    return bool(
        np.abs(efforts).max() > 0.0
        and not any(np.allclose(efforts, k * DAMPING, atol=1e-6) for k in (1, 2))
    )


def in_log(host, words, times=1):
    return host.until(lambda: host.log().count(words) >= times)


def test_commands_act_and_the_last_one_stays_for_ever(host):
    host.send(SOME)
    assert host.holds(SOME)
    assert host.hears(100) and np.allclose(host.efforts, SOME)


def test_deactivation_writes_zero_and_activation_waits_for_a_command(host):
    host.send(SOME)
    assert host.holds(SOME)
    host.deactivate("effort_controller")
    assert host.holds(np.zeros(12))
    host.send(2.0 * SOME)
    assert host.hears() and not host.efforts.any()
    host.activate("effort_controller")
    assert host.hears() and not host.efforts.any(), "a command of before is forgotten"
    host.send(SOME)
    assert host.holds(SOME)


def test_nan_is_dropped_and_an_empty_list_ignored(host):
    host.send(SOME)
    assert host.holds(SOME)
    host.send([np.nan, *SOME[1:]])
    host.send([])
    assert host.hears() and np.allclose(host.efforts, SOME)
    host.send(2.0 * SOME)
    assert host.holds(2.0 * SOME), "it is still active"


def test_one_command_of_the_wrong_length_deactivates_the_group_controller(host):
    host.send(SOME)
    assert host.holds(SOME)
    host.send(SOME[:-1])
    assert host.holds(np.zeros(12))
    host.send(SOME)
    assert host.hears() and not host.efforts.any(), "until somebody activates it"
    host.activate("effort_controller")
    host.send(SOME)
    assert host.holds(SOME)


def test_efforts_are_clipped_and_zero_beyond_the_speed_limit(host_of):
    """Limits of the robot's URDF: 20 N·m and 15 rad/s."""
    host = host_of(velocity=np.r_[16.0, -16.0, VELOCITY[2:]])
    host.send(np.full(12, 30.0))
    assert host.holds([0.0, 20.0, *np.full(10, 20.0)])
    host.send(np.full(12, -3.0))
    assert host.holds([-3.0, 0.0, *np.full(10, -3.0)])


def test_another_order_is_refused_by_both(host):
    wrong = watchdog(host, joints=SWAPPED)
    assert wrong.wait(120.0) == 1
    assert in_log(host, "make them the same")
    assert not host.efforts.any(), "nothing was commanded"
    assert controller(host, joints=SWAPPED).wait(300.0) == 1
    assert in_log(host, "make them the same", 2)


def test_kills_of_controller_watchdog_and_both_end_in_damping_and_new_ones_take_over(through):
    host, chosen, is_damped, ended = through
    guard = watchdog(host, **chosen)
    assert host.until(is_damped), host.log()
    first = controller(host, **chosen)
    assert host.until(lambda: is_controlled(host) and not is_damped()), host.log()
    assert in_log(host, "reports enforce_command_limits True")
    first.send_signal(signal.SIGKILL)
    assert host.until(is_damped), host.log()
    # Nobody resets: the new one is active before the watchdog can have seen its transition.
    second = controller(host, **chosen)
    assert host.until(lambda: is_controlled(host) and not is_damped()), host.log()
    # The watchdog's keeper: its worker goes on until that of another keeper takes over.
    guard.send_signal(signal.SIGKILL)
    assert in_log(host, "the keeper of this process was killed"), host.log()
    first_guard, guard = guard, watchdog(host, **chosen)
    assert in_log(host, "takes the same joints", 4), host.log()
    assert in_log(host, "takes over from one"), host.log()
    assert host.until(lambda: is_controlled(host) and not is_damped()), host.log()
    for process in (first_guard, guard, second):
        kill_all_of(process)
    assert host.hears(20)  # what was on its way
    held = host.efforts
    assert host.hears(100) and np.allclose(host.efforts, held, atol=1e-3), "nobody is left"
    guard = watchdog(host, **chosen)
    assert host.until(is_damped), host.log()
    third = controller(host, **chosen)
    assert host.until(lambda: is_controlled(host) and not is_damped()), host.log()
    assert third.poll() is None
    guard.send_signal(signal.SIGTERM)
    assert guard.wait(60.0) == 0
    assert host.holds(ended)
    assert "Traceback" not in host.log()


def test_after_a_restart_of_controller_manager_both_wait_for_resume_and_reset(through):
    host, chosen, is_damped, _ = through
    watchdog(host, timeout_s=1.0, **chosen)
    # It answers missing states each state_timeout_s: the watchdog, which trips on silence, would hear that.
    process = controller(host, start_ramp_s=0.5, state_timeout_s=10.0, **chosen)
    assert host.until(lambda: is_controlled(host) and not is_damped()), host.log()
    host.kill()
    assert in_log(host, "tripped, commands_stopped"), host.log()
    host.start()
    host.activate(host.active)
    assert in_log(host, "stopped: no good state"), host.log()
    # It damps until somebody wants both to go on.
    assert host.until(is_damped), host.log()
    for service in ("/controller/resume", "/command_watchdog/reset"):
        answers = []

        def granted(service=service, answers=answers):
            """Refused as long as discovery has not told of the new host's states."""
            if not answers or not answers[-1].success:
                answers.append(host.call(Trigger, service, Trigger.Request()))
            return answers[-1].success

        assert host.until(granted), answers[-1].message
    assert host.until(lambda: is_controlled(host) and not is_damped()), host.log()
    assert process.poll() is None and "Traceback" not in host.log()


def test_active_again_the_start_ramp_acts(host):
    """Deactivated and activated by somebody else, while controller and watchdog go on."""
    watchdog(host, timeout_s=10.0)  # no trip on a busy machine
    controller(host, start_ramp_s=4.0, state_timeout_s=10.0, recovery_window_s=60.0)
    assert in_log(host, "configured")
    gone, back, last = "measured efforts are no longer", "follow again: start ramp", []

    def settled():
        """Also where a machine that stood still for long was taken for a gap before."""
        last.append(host.efforts.copy())
        steady = len(last) > 400 and np.allclose(last[-1], last[-400], atol=1e-3)
        return steady and is_controlled(host) and host.log().count(gone) == host.log().count(back)

    assert host.until(settled), host.log()
    full, gaps = np.linalg.norm(host.efforts), host.log().count(gone)
    host.deactivate("effort_controller")
    assert in_log(host, gone, gaps + 1), host.log()
    host.activate("effort_controller")
    assert host.until(lambda: host.efforts.any())
    assert np.linalg.norm(host.efforts) < 0.5 * full, host.log()
    assert in_log(host, back, gaps + 1), host.log()
    assert host.until(lambda: np.linalg.norm(host.efforts) > 0.95 * full), host.log()


def test_odometry_of_a_steady_clock_is_told_from_late_odometry(host):
    """As a hardware component stamps it that takes the time of `read` for that of ROS."""
    publisher = host.node.create_publisher(Odometry, "/odometry", 1)
    clock = [time.monotonic]
    host.every(PERIOD_S, lambda: publisher.publish(odometry(clock[0]())))
    controller(
        host,
        floating_base=True,
        ground_offset_m=0.0,
        odometry_age_limit_s=1.0,
        odometry_jump_m=1.0,
        recovery_window_s=60.0,
    )
    assert in_log(host, "by another clock"), host.log()
    assert in_log(host, "waiting to activate: no good state"), host.log()
    assert host.hears() and not host.efforts.any()
    clock[0] = time.time
    assert in_log(host, "odometry is stamped") and host.until(
        lambda: host.node.count_publishers("/commands_in")
    )
    received = []
    host.node.create_subscription(Float64MultiArray, "/commands_in", received.append, RELIABLE)
    assert host.until(lambda: received, 60.0), host.log()


def test_trajectories_act_through_the_joint_trajectory_controller(host_of):
    """Feed-forward and feedback give our torque; a kill of the controller leaves damping."""
    host = host_of(velocity=np.zeros(12), controller="trajectory_controller")
    chosen = CHOSEN["joint_trajectory"]
    watchdog(host, **chosen, joints=SWAPPED)  # joints have names there
    process = controller(host, **chosen)
    assert host.until(lambda: is_controlled(host)), host.log()
    process.send_signal(signal.SIGKILL)
    # At rest where it is: the feed-forward fades, the feedback has nothing to do.
    assert host.holds(np.zeros(12)), host.log()
    host.deactivate("trajectory_controller")
    assert host.hears() and not host.efforts.any()
    assert GAINS["p"] > 0.0 and "Traceback" not in host.log()


def test_a_trajectory_of_other_joints_or_sizes_is_refused_and_the_one_before_goes_on(host_of):
    host = host_of(velocity=np.zeros(12), controller="trajectory_controller")
    publisher = host.node.create_publisher(
        JointTrajectory, "/trajectory_controller/joint_trajectory", RELIABLE
    )
    assert host.until(publisher.get_subscription_count)

    def send(efforts, joints=JOINTS, positions=STANDING):
        message = joint_trajectory(
            [0.0, 0.1], [positions, positions], joints, 0.0, np.zeros((2, 12))
        )
        for point in message.points:
            point.accelerations, point.effort = [0.0] * 12, list(map(float, efforts))
        publisher.publish(message)

    send(SOME)
    assert host.holds(SOME), host.log()
    for wrong in (
        {"joints": ["nobody", *JOINTS[1:]]},
        {"joints": JOINTS[:-1]},
        {"positions": STANDING[:-1]},
    ):
        send(2.0 * SOME, **wrong)
        assert host.hears(40) and np.allclose(host.efforts, SOME)
    order = [1, 0, *range(2, 12)]
    send(3.0 * SOME[order], SWAPPED, STANDING[order])
    assert host.holds(3.0 * SOME), "it is still active, and goes by the names"


@pytest.mark.parametrize("interface", CHOSEN)
def test_an_arm_by_its_own_file_gets_the_torques_that_hold_it(host_of, interface):
    file = yaml.safe_load((CONFIG / "arms" / "panda.yaml").read_text())
    group = CHOSEN[interface].get("group_controller", "/effort_controller")
    values = file["controller"]["ros__parameters"] | CHOSEN[interface] | {"group_controller": group}
    position = file["simulated_robot"]["ros__parameters"]["initial_joint_positions"]
    robot = RobotModel.from_urdf(values["urdf"], floating_base=False, joints=values["joints"])
    world = {"joints": values["joints"], "position": position, "effort_nm": 100.0}
    host = host_of(np.zeros(robot.na), group.strip("/"), **world)
    row = INTERFACES[interface]
    remapped = ("-r", f"{row.topic}:={row.taker.topic_of(group)}")
    process = ours(host, "controller", *remapped, **values)
    held = pin.computeGeneralizedGravity(
        robot.model, robot.data, robot.configuration(None, position)
    )
    expected = held[robot.actuated]
    assert np.abs(expected).max() > 10.0
    assert host.until(lambda: np.allclose(host.efforts, expected, atol=1e-3)), host.log()
    assert process.poll() is None and "Traceback" not in host.log()


AS_5_16 = """#!{python}
import sys
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
assert not any("robot_description" in word for word in sys.argv), "no parameter any more"
rclpy.init()
node, came = rclpy.create_node("controller_manager"), []
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
node.create_subscription(String, "robot_description", came.append, latched)
states = node.create_publisher(JointState, "joint_states", 1)
while rclpy.ok():
    rclpy.spin_once(node, timeout_sec=0.01)
    if came:
        names = [name for name in {joints} if f"name='{{name}}'" in came[0].data]
        states.publish(JointState(name=names, effort=[0.0] * len(names)))
"""
"""What controller_manager 5.16 does until the description comes, and with what states begin."""


def test_the_real_host_gets_the_description_by_the_topic(tmp_path, monkeypatch):
    node, spawner = tmp_path / "ros2_control_node", tmp_path / "spawner"
    node.write_text(AS_5_16.format(python=sys.executable, joints=list(JOINTS)))
    spawner.write_text("#!/bin/sh\n")
    for file in (node, spawner):
        file.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(node))
    host = RealHost(tmp_path, JOINTS, STANDING, VELOCITY)
    try:
        host.start()
        assert host.efforts.shape == (12,) and "Traceback" not in host.log()
    finally:
        host.close()


def test_a_real_one_is_found_where_it_is_installed_or_named(tmp_path):
    assert find_node({}, tmp_path)[0] is None and VARIABLE in find_node({}, tmp_path)[1]
    node = tmp_path / "kilted" / WITHIN
    node.parent.mkdir(parents=True)
    node.write_text("")
    assert find_node({}, tmp_path)[0] is None, "it cannot be run"
    node.chmod(0o755)
    assert find_node({}, tmp_path) == (node, "")
    assert find_node({"AMENT_PREFIX_PATH": f"/a:{tmp_path / 'kilted'}"}, tmp_path / "no")[0] == node
    ros2 = tmp_path / "kilted" / "bin" / "ros2"
    ros2.parent.mkdir()
    ros2.write_text("")
    ros2.chmod(0o755)
    assert find_node({"PATH": str(ros2.parent)}, tmp_path / "no")[0] == node
    assert find_node({VARIABLE: str(node)}, tmp_path / "no")[0] == node
    assert "no contact_id_ros2_control" in why_no_plugin({VARIABLE: str(node)})
    plugin = tmp_path / "kilted" / PLUGINS_WITHIN / OURS
    plugin.parent.mkdir(parents=True)
    plugin.write_text("")
    assert why_no_plugin({VARIABLE: str(node)}) == ""
    named, why_not = find_node({VARIABLE: str(tmp_path / "absent")}, tmp_path)
    assert named is None and "is no executable" in why_not
    assert os.access(ROOT / "test" / "fake_ros2_control_node.py", os.R_OK)
