"""The emergency stop of a node that survives its process, and how it is released."""

from __future__ import annotations

from rclpy.node import Node

from contact_id_controller.safety.latch import EmergencyLatch, robot_name, state_folder


def latch_of(node: Node, folder: str, urdf: str) -> EmergencyLatch:
    """The latch of a node: of its domain, name and robot, and separate for simulated time.

    Args:
        folder, urdf: its parameters ``state_folder`` and ``urdf``.
    """
    return EmergencyLatch(
        state_folder(folder),
        node.get_fully_qualified_name(),
        robot_name(urdf),
        simulated=node.get_parameter("use_sim_time").value is True,
    )


def release_call(node: Node) -> str:
    """The command line that releases the emergency stop of a running node."""
    service = f"{node.get_fully_qualified_name()}/emergency_stop"
    return f'ros2 service call {service} std_srvs/srv/SetBool "{{data: false}}"'
