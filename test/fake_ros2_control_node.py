"""Stand-in for `ros2_control_node` with `mock_components/GenericSystem`: a process with its nodes.

    python fake_ros2_control_node.py URDF CONTROLLERS.yaml

Kept of the originals: the system says as effort what it was commanded, and leaves position and
velocity at their initial values; the joint_state_broadcaster publishes them in an order of its own,
stamped by the ROS clock, while the hardware component's time is steady; joints of a controller are its
parameter `joints`; `enforce_command_limits` is a parameter of the manager. A service of this stand-in
alone, `~/active` of each controller, takes the place of switch_controller.
"""

import contextlib
import sys
import time
import xml.etree.ElementTree as xml

import numpy as np
import rclpy
import yaml
from group_effort_controller import GroupEffortController
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from contact_id_controller.exceptions import StateError
from contact_id_controller.ros.effort_messages import EffortReader
from experiments.faults.simulated_effort_controller import UrdfLimits
from experiments.faults.simulated_trajectory_controller import (
    Replacement,
    SimulatedTrajectoryController,
)


class System:
    """What the URDF says: names, limits, and initial values of the tag ``<ros2_control>``."""

    def __init__(self, urdf):
        root = xml.fromstring(urdf)
        joints = root.find("ros2_control").findall("joint")
        self.names = [joint.get("name") for joint in joints]
        limits = {joint.get("name"): joint.find("limit") for joint in root.findall("joint")}

        def limit(attribute):
            return np.array([float(limits[name].get(attribute)) for name in self.names])

        def initial(interface):
            tags = [joint.find(f"state_interface[@name='{interface}']/param") for joint in joints]
            return np.array([float(tag.text) for tag in tags])

        self.limits = UrdfLimits(limit("lower"), limit("upper"), limit("velocity"), limit("effort"))
        self.position, self.velocity = initial("position"), initial("velocity")

    def take(self, values, joints):
        return values[[self.names.index(name) for name in joints]]


class TrajectoryController:
    """joint_trajectory_controller with command interface effort."""

    def __init__(self, parameters, limits, period_s):
        self.joints, self.active = parameters["joints"], False
        self.efforts = np.zeros(len(self.joints))
        gains = [parameters["gains"][name] for name in self.joints]
        self._replaces = parameters.get("allow_trajectory_replacement", True)
        self._commands = parameters["command_interfaces"]
        self._law = SimulatedTrajectoryController(
            *(np.array([gain[part] for gain in gains]) for part in "pd"),
            period_s,
            rule=Replacement.BY_STAMP,
        )
        self._reader, self._limits = EffortReader(self.joints), limits

    def node(self, name):
        node = Node(name)
        node.declare_parameter("joints", self.joints)
        node.declare_parameter("command_interfaces", self._commands)
        node.declare_parameter("allow_trajectory_replacement", self._replaces)
        self._node = node
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        node.create_subscription(JointTrajectory, "~/joint_trajectory", self.take, qos, raw=True)
        return node

    def activate(self):
        self._law.forget()
        self.active = True

    def deactivate(self):
        self.efforts[:], self.active = 0.0, False

    def take(self, message):
        with contextlib.suppress(StateError):
            self._law.take(self._reader.read(message))

    def update(self, position, velocity):
        if self.active:  # the parameter may change at any time
            replaces = self._node.get_parameter("allow_trajectory_replacement").value
            self._law.rule = Replacement.ON_ARRIVAL if replaces else Replacement.BY_STAMP
            torques = self._law.update(time.time(), position, velocity)
            self.efforts[:] = self._limits.enforced(torques, position, velocity)
            self._law.commanded[:] = self.efforts


def main(urdf_file, file):
    with open(urdf_file) as urdf, open(file) as content:
        system = System(urdf.read())
        parameters = {
            name: body["ros__parameters"] for name, body in yaml.safe_load(content).items()
        }
    rclpy.init()
    manager = Node("controller_manager")
    enforces = parameters["controller_manager"].get("enforce_command_limits", True)
    manager.declare_parameter("enforce_command_limits", enforces)

    def limits_of(joints):
        rows = [system.take(row, joints) for row in system.limits]
        return UrdfLimits(*rows if enforces else [np.full(len(joints), b) for b in _NONE])

    joints = parameters["effort_controller"]["joints"]
    controllers = {
        "effort_controller": GroupEffortController(joints, limits_of(joints)),
        "trajectory_controller": TrajectoryController(
            parameters["trajectory_controller"],
            limits_of(joints),
            1.0 / parameters["controller_manager"]["update_rate"],
        ),
    }
    nodes = [manager]
    for name, controller in controllers.items():
        nodes.append(controller.node(name))

        def switch(request, response, controller=controller):
            controller.activate() if request.data else controller.deactivate()
            response.success = True
            return response

        nodes[-1].create_service(SetBool, "~/active", switch)
    states = manager.create_publisher(JointState, "joint_states", 1)
    acting = np.zeros(len(system.names))

    def update():
        for controller in controllers.values():
            held = controller.active
            controller.update(
                system.take(system.position, controller.joints),
                system.take(system.velocity, controller.joints),
            )
            if held:
                for name, effort in zip(controller.joints, controller.efforts):
                    acting[system.names.index(name)] = effort
        message = JointState(
            name=system.names,
            position=system.position.tolist(),
            velocity=system.velocity.tolist(),
            effort=acting.tolist(),
        )
        message.header.stamp = manager.get_clock().now().to_msg()
        states.publish(message)

    def deactivated(controller, original):
        original()
        for name, effort in zip(controller.joints, controller.efforts):
            acting[system.names.index(name)] = effort

    for controller in controllers.values():
        controller.deactivate = lambda c=controller, o=controller.deactivate: deactivated(c, o)
    manager.create_timer(1.0 / parameters["controller_manager"]["update_rate"], update)
    executor = SingleThreadedExecutor()
    for node in nodes:
        executor.add_node(node)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        executor.spin()


_NONE = (-np.inf, np.inf, np.inf, np.inf)

if __name__ == "__main__":
    main(*sys.argv[1:3])
