"""Controller and command watchdog as they are launched for ros2_control, and kill -9 in between.

The stand-in for the group controller, and a robot that stands still, are in this process.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import yaml
from paths import ROOT

pytest.importorskip("rclpy", reason="needs ROS 2")

import contextlib

import rclpy
from group_effort_controller import GroupEffortController
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import qos_profile_system_default
from ros_bench import JOINTS, STANDING, VELOCITY, joint_state, parameters
from sensor_msgs.msg import JointState

PATIENCE_S = 300.0
"""The controller may have to compile."""
PERIOD_S = 0.01
TIMEOUT_S = 0.25
DAMPING_NM_S_RAD = 0.25
DAMPING = -DAMPING_NM_S_RAD * VELOCITY
VALUES = {
    "controller": parameters(
        floating_base=False,
        joints=list(JOINTS),
        period_s=PERIOD_S,
        ground_offset_m=-1.0,
        group_controller="/effort_controller",
        autostart=True,
        reliable_topics=False,
        damping_nm_s_rad=0.5,
        state_timeout_s=1.0,
    ),
    "command_watchdog": {
        "joints": list(JOINTS),
        "effort_limits_nm": 50.0,
        "damping_nm_s_rad": DAMPING_NM_S_RAD,
        "timeout_s": TIMEOUT_S,
        "state_timeout_s": 2.0,
        "group_controller": "/effort_controller",
    },
}


class Machine:
    """What stays when controllers are killed."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "robot.yaml"
        self.file.write_text(
            yaml.safe_dump({name: {"ros__parameters": values} for name, values in VALUES.items()})
        )
        self.processes = []
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.group = GroupEffortController(JOINTS)
        self.group.activate()
        self.node = self.group.node("effort_controller", context=self.context)
        self.states = self.node.create_publisher(
            JointState, "joint_states", qos_profile_system_default
        )
        self.timer = self.node.create_timer(PERIOD_S, self._update)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.thread = threading.Thread(target=self._spin, daemon=True)
        self.thread.start()

    def _spin(self):
        with contextlib.suppress(ExternalShutdownException):
            self.executor.spin()

    def _update(self):
        self.group.update()
        # ros2_control does not keep an order.
        self.states.publish(joint_state(time.time(), JOINTS[::-1], STANDING[::-1], VELOCITY[::-1]))

    def run(self, name, *arguments):
        environment = dict(
            os.environ,
            PYTHONPATH=str(ROOT),
            ROS_LOG_DIR=str(self.folder),
        )
        with open(self.folder / f"{name}.log", "ab") as output:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    f"contact_id_controller.ros.{name}",
                    "--ros-args",
                    "--params-file",
                    str(self.file),
                    *arguments,
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        self.processes.append(process)
        return process

    def controller(self):
        return self.run("controller", "-r", "commands:=commands_in")

    def log(self):
        names = ("command_watchdog", "controller")
        files = [self.folder / f"{name}.log" for name in names]
        return "".join(file.read_text() for file in files if file.exists())

    @staticmethod
    def until(condition):
        end = time.monotonic() + PATIENCE_S
        while not condition() and time.monotonic() < end:
            time.sleep(0.002)
        return condition()

    def damps(self):
        return np.allclose(self.group.efforts, DAMPING)

    def is_controlled(self):
        """Neither zero nor anybody's damping."""
        efforts = self.group.efforts
        return bool(
            np.abs(efforts).max() > 0.0
            and not any(np.allclose(efforts, k * DAMPING, atol=1e-6) for k in (1, 2))
        )

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.executor.shutdown()
        self.thread.join(10.0)
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    machine.close()


def test_a_killed_controller_is_damped_and_a_new_one_takes_over_by_itself(machine):
    watchdog = machine.run("command_watchdog", "-r", "commands:=/effort_controller/commands")
    assert machine.until(machine.damps), machine.log()
    first = machine.controller()
    assert machine.until(machine.is_controlled), machine.log()
    first.send_signal(signal.SIGKILL)
    assert machine.until(machine.damps), machine.log()
    # Nobody resets: the new one is active before the watchdog can have seen its transition.
    second = machine.controller()
    assert machine.until(machine.is_controlled), machine.log()
    assert second.poll() is None and machine.group.errors == machine.group.dropped == 0
    watchdog.send_signal(signal.SIGTERM)
    assert watchdog.wait(PATIENCE_S) == 0
    assert machine.until(lambda: not machine.group.efforts.any())
    text = machine.log()
    assert text.count("takes the same joints") == 3 and "Traceback" not in text
