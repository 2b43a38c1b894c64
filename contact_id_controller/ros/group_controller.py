"""Asks a group controller of ros2_control for the order of its joints.

Its commands carry numbers without names: a wrong order is not noticed until the robot moves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from contact_id_controller.exceptions import ConfigurationError

WAIT_S = 5.0
"""How long an answer is waited for; in a process just started, on a busy machine, discovery took up
to 2.4 s. A watchdog loses nothing by it: before discovery its torques reach no subscriber."""

ENFORCES_WAIT_S = 1.0
"""The same for `enforces_limits`, once the group controller has been found."""

_MANAGER, _ENFORCES = "controller_manager", "enforce_command_limits"

_POLL_S = 0.02


def check_joint_order(
    node: Node, group: str, joints: Sequence[str], *, by_name: bool = False
) -> bool:
    """Compare `joints` with the parameter `joints` of the group controller named `group`.

    by_name: it takes trajectories, in which joints have names: any order is right.

    Returns within `WAIT_S`; one line in the log of `node` has the outcome. A group controller
    that does not answer is a warning. May be called inside a callback of the node. Returns whether
    it answered.

    Raises:
        ConfigurationError: the group controller takes other joints, or in another order.
    """
    service = f"{group}/get_parameters"
    theirs = _ask(node, service, "joints", WAIT_S)
    if theirs is None or theirs.type != ParameterType.PARAMETER_STRING_ARRAY:
        node.get_logger().warning(
            f"service '{service}' did not answer with a parameter 'joints' within {WAIT_S:g} s: "
            "the order of the joints is not checked"
        )
        return False
    arranged = sorted if by_name else list
    if arranged(joints) != arranged(theirs.string_array_value):
        raise ConfigurationError(
            f"group controller '{group}' takes joints [{', '.join(theirs.string_array_value)}], but "
            f"parameter 'joints' is [{', '.join(joints)}]: "
            + ("" if by_name else "the command has no names, ")
            + "make them the same"
        )
    node.get_logger().info(f"group controller '{group}' takes the same joints")
    return True


def enforces_limits(node: Node, group: str) -> bool:
    """Whether the controller_manager of a group controller reports that it enforces command limits.

    One that does not answer within `ENFORCES_WAIT_S`, or knows no such parameter (Humble), does not.
    """
    manager = f"{group.rpartition('/')[0]}/{_MANAGER}"
    answer = _ask(node, f"{manager}/get_parameters", _ENFORCES, ENFORCES_WAIT_S)
    known = answer is not None and answer.type == ParameterType.PARAMETER_BOOL
    enforced = known and bool(answer.bool_value)
    node.get_logger().info(
        f"'{manager}' {'reports' if known else 'does not report'} {_ENFORCES}"
        + (f" {enforced}" if known else "")
    )
    return enforced


def _ask(node: Node, service: str, parameter: str, wait_s: float) -> ParameterValue | None:
    """A parameter behind a service; None without an answer."""
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
        end_s = time.monotonic() + wait_s
        while not client.service_is_ready():
            if time.monotonic() > end_s:
                return None
            time.sleep(_POLL_S)
        future = client.call_async(GetParameters.Request(names=[parameter]))
        executor.spin_until_future_complete(future, max(end_s - time.monotonic(), _POLL_S))
        if not future.done():
            return None
        values = future.result().values
    finally:
        executor.shutdown()
        helper.destroy_node()
    return values[0] if len(values) == 1 else None
