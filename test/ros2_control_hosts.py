"""Who plays ros2_control in a test: a stand-in of this project, or the real thing where there is one.

A real `ros2_control_node` is looked for in the environment variable CONTACT_ID_ROS2_CONTROL_NODE (its
path), on AMENT_PREFIX_PATH, beside `ros2` on PATH, and in /opt/ros/*. The robot is ros2_control's own
`mock_components/GenericSystem`. Nothing is installed, fetched or built for it.
"""

import atexit
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import rclpy
import yaml
from paths import ROOT
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool

VARIABLE = "CONTACT_ID_ROS2_CONTROL_NODE"
WITHIN = Path("lib", "controller_manager", "ros2_control_node")
PLUGINS_WITHIN = Path("share/ament_index/resource_index/controller_interface__pluginlib__plugin")
OURS, LINEAR_FEEDBACK = "contact_id_ros2_control", "linear_feedback_controller"
RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
PATIENCE_S = 300.0
"""Our controller may have to compile."""
UPDATE_RATE_HZ = 200
GAINS = {"p": 2.0, "d": 0.1}


def find_node(environment=os.environ, installed=Path("/opt/ros")):
    """Path of a real `ros2_control_node`, and why there is none."""
    named = environment.get(VARIABLE)
    if named:
        found = os.access(named, os.X_OK)
        return (Path(named), "") if found else (None, f"{VARIABLE}={named} is no executable")
    prefixes = [Path(part) for part in environment.get("AMENT_PREFIX_PATH", "").split(":") if part]
    ros2 = shutil.which("ros2", path=environment.get("PATH", ""))
    prefixes += [Path(ros2).parent.parent] if ros2 else []
    prefixes += sorted(installed.glob("*"))
    for prefix in prefixes:
        if os.access(prefix / WITHIN, os.X_OK):
            return prefix / WITHIN, ""
    return None, (
        f"no ros2_control_node: not in {VARIABLE}, on AMENT_PREFIX_PATH, beside ros2 on PATH, or in "
        f"{installed}"
    )


def why_no_plugin(environment=os.environ, package=OURS):
    """Why the plugins of a package cannot be loaded by the real host; empty: they can."""
    node, why_not = find_node(environment)
    if why_not:
        return why_not
    prefixes = [Path(part) for part in environment.get("AMENT_PREFIX_PATH", "").split(":") if part]
    prefixes.append(node.absolute().parents[2])
    if any((prefix / PLUGINS_WITHIN / package).exists() for prefix in prefixes):
        return ""
    return f"no {package} on AMENT_PREFIX_PATH or in {prefixes[-1]}"


def mocked(joints, position, velocity, sensor="", values=None):
    """The tag of ros2_control for `mock_components/GenericSystem`: joints, and values of a sensor."""

    def states(values):
        return "".join(
            f"<state_interface name='{name}'><param name='initial_value'>{value}</param>"
            "</state_interface>"
            for name, value in values.items()
        )

    interfaces = [
        f"<joint name='{name}' mimic='false'><command_interface name='effort'/>"
        + states({"position": q, "velocity": v, "effort": 0.0})
        + "</joint>"
        for name, q, v in zip(joints, position, velocity)
    ]
    if sensor:
        interfaces.append(f"<sensor name='{sensor}'>{states(values)}</sensor>")
    return (
        "<ros2_control name='mock' type='system'><hardware><plugin>"
        "mock_components/GenericSystem</plugin></hardware>"
        + "".join(interfaces)
        + "</ros2_control>"
    )


def urdf_of(joints, position, velocity, effort_nm=20.0, speed_rad_s=15.0):
    """A robot of joints side by side."""
    links = ["<link name='base'/>"]
    for name in joints:
        links.append(
            f"<link name='{name}_link'/><joint name='{name}' type='revolute'><parent link='base'/>"
            f"<child link='{name}_link'/><axis xyz='0 0 1'/><limit lower='-3' upper='3' "
            f"effort='{effort_nm}' velocity='{speed_rad_s}'/></joint>"
        )
    system = mocked(joints, position, velocity)
    return f"<robot name='mock'>{''.join(links)}{system}</robot>"


def parameters_of(joints):
    """The file of controller_manager and its controllers."""
    types = {
        "joint_state_broadcaster": "joint_state_broadcaster/JointStateBroadcaster",
        "effort_controller": "effort_controllers/JointGroupEffortController",
        "trajectory_controller": "joint_trajectory_controller/JointTrajectoryController",
    }
    manager = {"update_rate": UPDATE_RATE_HZ, "enforce_command_limits": True}
    manager |= {name: {"type": kind} for name, kind in types.items()}
    trajectories = {
        "joints": list(joints),
        "command_interfaces": ["effort"],
        "state_interfaces": ["position", "velocity"],
        "gains": {name: dict(GAINS) for name in joints},
    }
    sections = {
        "controller_manager": manager,
        "effort_controller": {"joints": list(joints), "interface_name": "effort"},
        "trajectory_controller": trajectories,
    }
    return {name: {"ros__parameters": body} for name, body in sections.items()}


def kill_all_of(process):
    """A process and all that it started, such as a watchdog's worker, which outlives its keeper."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@functools.cache
def bystander(domain):
    """A node that spins beside the tests of a domain until the process ends.

    It is not destroyed: rclpy 9.1 now and then dies of a segmentation fault there, and pytest with it.
    """
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("bystander", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()

    @atexit.register
    def end():
        executor.shutdown()
        thread.join(10.0)

    return node


class Host:
    """A process of ros2_control, started with some joints; what its motors get is listened to.

    Args:
        folder: for its files and logs.
        joints: in the order of the command.
        position, velocity: which the robot says for ever.  effort_nm: its limits.
        urdf: its description; without one joints stand side by side, in an order of its own.
    """

    def __init__(self, folder, joints, position, velocity, effort_nm=20.0, urdf=None):
        self.folder, self.joints = folder, list(joints)
        self.urdf = urdf or urdf_of(joints[::-1], position[::-1], velocity[::-1], effort_nm)
        (folder / "mock.urdf").write_text(self.urdf)
        self.file = folder / "ros2_control.yaml"
        self.file.write_text(yaml.safe_dump(parameters_of(joints)))
        self.efforts, self.heard = np.full(len(joints), np.nan), 0
        self.node = bystander(int(os.environ["ROS_DOMAIN_ID"]))
        self.states = self.node.create_subscription(JointState, "/joint_states", self._on_states, 1)
        self.commands = self.node.create_publisher(
            Float64MultiArray, "/effort_controller/commands", RELIABLE
        )
        self.description = self.node.create_publisher(String, "/robot_description", LATCHED)
        self.description.publish(String(data=self.urdf))
        self.processes, self.timers = [], []

    def _on_states(self, message):
        effort = dict(zip(message.name, message.effort))
        self.efforts = np.array([effort[name] for name in self.joints])
        self.heard += 1

    def run(self, name, command):
        """Start a process whose output goes to a file of this name."""
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = dict(os.environ, PYTHONPATH=path, ROS_LOG_DIR=str(self.folder))
        with open(self.folder / f"{name}.log", "ab") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def log(self):
        return "".join(file.read_text(errors="replace") for file in self.folder.glob("*.log"))

    @staticmethod
    def until(condition, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        while not condition() and time.monotonic() < end:
            time.sleep(0.002)
        return bool(condition())

    def hears(self, states=20):
        """Whether so many more states come."""
        last = self.heard + states
        return self.until(lambda: self.heard > last)

    def holds(self, efforts, patience_s=PATIENCE_S):
        return self.until(lambda: np.allclose(self.efforts, efforts), patience_s)

    def send(self, values):
        """A command, straight to the group controller."""
        assert self.until(self.commands.get_subscription_count), self.log()
        self.commands.publish(Float64MultiArray(data=[float(value) for value in values]))

    def every(self, period_s, call):
        """A timer that ends with the host: its node goes on, and would command the next test's robot."""
        self.timers.append(self.node.create_timer(period_s, call))

    def kill(self):
        """kill -9 of ros2_control."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def call(self, kind, service, request):
        client = self.node.create_client(kind, service)
        assert client.wait_for_service(PATIENCE_S), service
        future = client.call_async(request)
        assert self.until(future.done), service
        self.node.destroy_client(client)
        return future.result()

    def close(self):
        for timer in self.timers:
            self.node.destroy_timer(timer)
        for process in self.processes:
            kill_all_of(process)
            process.wait()
        self.node.destroy_subscription(self.states)
        self.node.destroy_publisher(self.commands)
        self.node.destroy_publisher(self.description)


class StandIn(Host):
    """`fake_ros2_control_node.py`."""

    def start(self):
        program = str(ROOT / "test" / "fake_ros2_control_node.py")
        urdf = str(self.folder / "mock.urdf")
        self.process = self.run("manager", [sys.executable, program, urdf, str(self.file)])
        assert self.hears(), self.log()
        assert self.until(self.commands.get_subscription_count)

    def activate(self, name):
        assert self.call(SetBool, f"/{name}/active", SetBool.Request(data=True)).success

    def deactivate(self, name):
        assert self.call(SetBool, f"/{name}/active", SetBool.Request(data=False)).success


class RealHost(Host):
    """`ros2_control_node`, with the spawner that lies beside it."""

    inactive = ("effort_controller", "trajectory_controller")

    def start(self):
        node, _ = find_node()
        # It takes the description from the topic, which `Host` publishes latched; the parameter is gone.
        command = [str(node), "--ros-args", "--params-file", str(self.file)]
        self.process = self.run("manager", command)
        self._spawn("joint_state_broadcaster")
        for name in self.inactive:
            self.spawn(name)
        assert self.hears(), self.log()

    def spawn(self, name):
        """Load and configure a controller."""
        self._spawn("--inactive", name)

    def spawn_active(self, *names):
        """Load, configure and activate controllers, all at once."""
        self._spawn("--activate-as-group", *names)

    def _spawn(self, *arguments):
        node, _ = find_node()
        spawner = [str(node.with_name("spawner")), "--param-file", str(self.file)]
        subprocess.run([*spawner, *arguments], check=True, timeout=120)

    def activate(self, name):
        assert self.switch([name], [])

    def deactivate(self, name):
        assert self.switch([], [name])

    def switch(self, on, off):
        """Activate some and deactivate others at once; whether all of it was done."""
        from controller_manager_msgs.srv import SwitchController

        request = SwitchController.Request(strictness=SwitchController.Request.STRICT)
        request.activate_controllers, request.deactivate_controllers = on, off
        return self.call(SwitchController, "/controller_manager/switch_controller", request).ok
