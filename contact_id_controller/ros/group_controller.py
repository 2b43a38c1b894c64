"""Compares the order of joints, and other parameters, with those of a group controller of ros2_control.

Its commands carry numbers without names: a wrong order is not noticed until the robot moves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.command_interfaces import ANY, Host, Required

WAIT_S = 5.0
"""Longest time to wait for an answer; in a process just started, on a busy machine, discovery took up to 2.4 s. A
watchdog loses nothing by it: before discovery its torques reach no subscriber."""

ENFORCES_WAIT_S = 1.0
"""The same for `enforces_limits`, once the group controller has been found."""

_MANAGER, _ENFORCES = "controller_manager", "enforce_command_limits"

_POLL_S = 0.02


def check_joint_order(
    node: Node, group: str, joints: Sequence[str], host: Host, *, exact: bool
) -> bool:
    """Compare `joints` with the parameter of the group controller named `group`; return whether it answered.

    Args:
        host: the kind of controller it must be: its other parameters with one right value are compared, too, if
            the group controller has them; one that may change while it runs is set.
        exact: whether the order counts.

    Returns within `WAIT_S`, with one line in the log of `node`. No answer is a warning. May be called inside a callback
    of the node.

    Raises:
        ConfigurationError: the group controller has other joints, another order, or another interpretation of
            commands.
    """
    service = f"{group}/get_parameters"
    (theirs,) = _ask(node, service, [host.joints], WAIT_S) or [None]
    if theirs is None or theirs.type != ParameterType.PARAMETER_STRING_ARRAY:
        node.get_logger().warning(
            f"service '{service}' did not answer with a parameter '{host.joints}' within {WAIT_S:g} s: "
            "the order of the joints is not checked"
        )
        return False
    arranged = list if exact else sorted
    if arranged(joints) != arranged(theirs.string_array_value):
        raise ConfigurationError(
            f"group controller '{group}' takes joints [{', '.join(theirs.string_array_value)}], but "
            f"parameter 'joints' is [{', '.join(joints)}]: "
            + ("" if host.order == ANY else "the order counts, ")
            + "make them the same"
        )
    required = [each.parameter for each in host.requires]
    answers = _ask(node, service, required, ENFORCES_WAIT_S) if required else None
    wrong = []
    for each, answer in zip(host.requires, answers or ()):
        found = parameter_value_to_python(answer)
        if found is not None and found != each.value:  # None: its version has no such parameter
            wrong.append((each, found))
    # Those that cannot be set come first: a refused group controller stays unchanged.
    for each, found in sorted(wrong, key=lambda pair: pair[0].live):
        _set_right(node, group, each, found)
    node.get_logger().info(f"group controller '{group}' takes the same joints")
    return True


def _set_right(node: Node, group: str, each: Required, found: Any) -> None:
    """Set a parameter of a group controller to its one right value.

    Raises:
        ConfigurationError: it cannot be set while the group controller runs, or setting it fails.
    """
    why = f": {each.why}" * bool(each.why)
    if each.live:
        value = Parameter(each.parameter, value=each.value).to_parameter_msg()
        request = SetParameters.Request(parameters=[value])
        answer = _call(node, SetParameters, f"{group}/set_parameters", request, ENFORCES_WAIT_S)
        if answer is not None and all(result.successful for result in answer.results):
            node.get_logger().warning(
                f"group controller '{group}' had {each.parameter} {found!r}, set to {each.value!r}"
                + why
            )
            return
    raise ConfigurationError(
        f"group controller '{group}' has {each.parameter} {found!r}, must be {each.value!r}" + why
    )


def enforces_limits(node: Node, group: str) -> bool:
    """Whether the controller_manager of a group controller reports that it enforces command limits.

    No answer within `ENFORCES_WAIT_S`, or no such parameter (Humble), counts as no.
    """
    manager = f"{group.rpartition('/')[0]}/{_MANAGER}"
    (answer,) = _ask(node, f"{manager}/get_parameters", [_ENFORCES], ENFORCES_WAIT_S) or [None]
    known = answer is not None and answer.type == ParameterType.PARAMETER_BOOL
    enforced = known and bool(answer.bool_value)
    node.get_logger().info(
        f"'{manager}' {'reports' if known else 'does not report'} {_ENFORCES}"
        + (f" {enforced}" if known else "")
    )
    return enforced


def _ask(
    node: Node, service: str, parameters: Sequence[str], wait_s: float
) -> list[ParameterValue] | None:
    """Values of parameters of a service's node; None without an answer for each."""
    request = GetParameters.Request(names=list(parameters))
    answer = _call(node, GetParameters, service, request, wait_s)
    values = [] if answer is None else list(answer.values)
    return values if len(values) == len(parameters) else None


def _call(node: Node, kind: type, service: str, request: Any, wait_s: float) -> Any:
    """Call a service; return its answer, or None if there is none within ``wait_s``."""
    # A node and executor of its own: those of `node` may be in a callback. Remappings on the command line
    # are for `node` alone.
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
        client = helper.create_client(kind, service)
        end_s = time.monotonic() + wait_s
        while not client.service_is_ready():
            if time.monotonic() > end_s:
                return None
            time.sleep(_POLL_S)
        future = client.call_async(request)
        executor.spin_until_future_complete(future, max(end_s - time.monotonic(), _POLL_S))
        return future.result() if future.done() else None
    finally:
        executor.shutdown()
        helper.destroy_node()
