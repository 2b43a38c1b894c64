"""Asks a group controller of ros2_control for the order of its joints.

Its commands carry numbers without names: a wrong order is not noticed until the robot moves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from contact_id_controller.exceptions import ConfigurationError

WAIT_S = 5.0
"""How long an answer is waited for; in a process just started, on a busy machine, discovery took up
to 2.4 s. A watchdog loses nothing by it: before discovery its torques reach nobody."""

_POLL_S = 0.02


def check_joint_order(node: Node, group: str, joints: Sequence[str]) -> None:
    """Compare `joints` with the parameter `joints` of the group controller named `group`.

    Returns within `WAIT_S`; one line in the log of `node` says how it came out. A group controller
    that does not answer is a warning. May be called inside a callback of the node.

    Raises:
        ConfigurationError: the group controller takes other joints, or in another order.
    """
    service = f"{group}/get_parameters"
    theirs = _ask(node, service)
    if theirs is None:
        node.get_logger().warning(
            f"service '{service}' did not answer with a parameter 'joints' within {WAIT_S:g} s: "
            "the order of the joints is not checked"
        )
    elif list(joints) != theirs:
        raise ConfigurationError(
            f"group controller '{group}' takes joints [{', '.join(theirs)}], but parameter "
            f"'joints' is [{', '.join(joints)}]: the command has no names, make them the same"
        )
    else:
        node.get_logger().info(f"group controller '{group}' takes the same joints")


def _ask(node: Node, service: str) -> list[str] | None:
    """The parameter `joints` behind a service; None without an answer."""
    # A node and executor of its own: those of `node` may be in the middle of a callback. Names on
    # the command line are meant for `node` alone.
    helper = Node(
        f"{node.get_name()}_asks",
        context=node.context,
        namespace=node.get_namespace(),
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
    )
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(helper)
    try:
        client = helper.create_client(GetParameters, service)
        end_s = time.monotonic() + WAIT_S
        while not client.service_is_ready():
            if time.monotonic() > end_s:
                return None
            time.sleep(_POLL_S)
        future = client.call_async(GetParameters.Request(names=["joints"]))
        executor.spin_until_future_complete(future, max(end_s - time.monotonic(), _POLL_S))
        if not future.done():
            return None
        values = future.result().values
    finally:
        executor.shutdown()
        helper.destroy_node()
    if len(values) != 1 or values[0].type != ParameterType.PARAMETER_STRING_ARRAY:
        return None
    return list(values[0].string_array_value)
