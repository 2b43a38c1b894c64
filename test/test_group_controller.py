"""The order of joints is compared with that of the group controller before anything is commanded.

The stand-in for ros2_control has a context and a thread of its own, as it has a process of its own.
"""

import dataclasses
import threading
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import contextlib

import rclpy
from group_effort_controller import GroupEffortController
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from ros_bench import JOINTS

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.ros import group_controller
from contact_id_controller.ros.command_watchdog import CommandWatchdogNode
from contact_id_controller.ros.group_controller import check_joint_order
from contact_id_controller.settings.command_interfaces import INTERFACES

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
SWAPPED = [JOINTS[1], JOINTS[0], *JOINTS[2:]]
NAME = "/ros2_control/effort_controller"


@pytest.fixture
def group_of(closing):
    """Starts stand-ins for the group controller; ends them."""

    def make(joints):
        context = rclpy.Context()
        rclpy.init(context=context)
        group = GroupEffortController(joints)
        group.activate()
        node = group.node("effort_controller", namespace="ros2_control", context=context)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        thread = threading.Thread(target=_spin, args=(executor,), daemon=True)
        thread.start()

        def end():
            executor.shutdown()
            thread.join(10.0)
            node.destroy_node()
            rclpy.shutdown(context=context)

        return closing(group, end)

    return make


def _spin(executor):
    with contextlib.suppress(ExternalShutdownException):
        executor.spin()


@pytest.fixture
def bench_of(bench_of):
    """Benches whose controller asks the group controller."""
    return partial(bench_of, group_controller=NAME)


def configure_by_service(bench):
    """Whether configure succeeds when a lifecycle manager asks for it, inside the executor."""
    change = bench.peer.create_client(ChangeState, "controller/change_state")
    assert bench.until(change.service_is_ready)
    request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
    future = change.call_async(request)
    assert bench.until(future.done)
    return future.result().success


def state(bench):
    ask = bench.peer.create_client(GetState, "controller/get_state")
    assert bench.until(ask.service_is_ready)
    future = ask.call_async(GetState.Request())
    assert bench.until(future.done)
    return future.result().current_state.id


def test_the_same_order_is_one_line_and_the_torques_arrive(group_of, bench_of, capfd):
    group = group_of(JOINTS)
    # Best-effort states do not make commands best effort: ros2_control may subscribe reliably.
    bench = bench_of(reliable_topics=False)
    assert configure_by_service(bench)
    assert f"group controller '{NAME}' takes the same joints" in capfd.readouterr().err
    assert bench.until(bench.knows_the_node), "a reliable subscription is not reached"
    assert bench.activate() == SUCCESS
    answer = None
    for number in range(50):
        answer = bench.answer(1.0 + number, patience_s=0.2)
        if answer is not None:
            break
    assert answer is not None, "a reliable subscription gets no command"
    assert group.update() and group.errors == 0


@pytest.mark.parametrize("theirs", [SWAPPED, JOINTS[:-1]], ids=["swapped", "one less"])
@pytest.mark.parametrize("by_service", [False, True], ids=["by itself", "by service"])
def test_another_order_refuses_configure_with_both_in_one_line(
    group_of, bench_of, capfd, theirs, by_service
):
    group_of(theirs)
    bench = bench_of()
    capfd.readouterr()
    if by_service:
        assert not configure_by_service(bench)
    else:
        assert bench.node.trigger_configure() == FAILURE
    errors = [line for line in capfd.readouterr().err.splitlines() if "ERROR" in line]
    assert len(errors) == 1, errors
    for words in (NAME, f"[{', '.join(theirs)}]", f"[{', '.join(JOINTS)}]"):
        assert words in errors[0]
    assert bench.node.loop is None and state(bench) == State.PRIMARY_STATE_UNCONFIGURED
    # The mistake can be mended without a restart.
    assert bench.node.set_parameters([Parameter("group_controller", value="")])[0].successful
    assert bench.node.trigger_configure() == SUCCESS


def test_a_group_controller_that_is_absent_or_has_no_joints_is_a_warning(
    group_of, bench_of, capfd, monkeypatch
):
    monkeypatch.setattr(group_controller, "WAIT_S", 0.3)
    bench = bench_of()
    assert bench.node.trigger_configure() == SUCCESS
    assert "not checked" in capfd.readouterr().err
    assert bench.node.trigger_cleanup() == SUCCESS
    monkeypatch.undo()
    group_of([])
    assert bench.node.trigger_configure() == SUCCESS
    assert "not checked" in capfd.readouterr().err


def test_the_watchdog_makes_the_same_check(group_of, bench_of, capfd):
    group_of(JOINTS)
    context = bench_of().context

    def watchdog(joints):
        values = {"joints": joints, "effort_limits_nm": 1.0, "group_controller": NAME}
        return CommandWatchdogNode(
            context=context,
            parameter_overrides=[Parameter(name, value=value) for name, value in values.items()],
        )

    with pytest.raises(ConfigurationError, match="make them the same"):
        watchdog(SWAPPED)
    watchdog(JOINTS).destroy_node()
    assert "takes the same joints" in capfd.readouterr().err


@pytest.mark.parametrize("settable", [True, False])
def test_a_joint_trajectory_controller_that_replaces_trajectories_is_set_right_or_refused(
    bench_of, capfd, settable
):
    """As ros2_controllers 6.8 does by default; where the parameter is unknown nothing is said of it."""
    bench = bench_of()
    host, name = INTERFACES["joint_trajectory"].host, "allow_trajectory_replacement"
    node = rclpy.create_node(
        "trajectory_controller", context=bench.context, allow_undeclared_parameters=True
    )
    node.declare_parameter("joints", SWAPPED)
    node.declare_parameter("command_interfaces", ["effort"])
    node.declare_parameter(name, True)

    def answer(parameters):
        return SetParametersResult(successful=settable)

    node.add_on_set_parameters_callback(answer)
    executor = SingleThreadedExecutor(context=bench.context)
    executor.add_node(node)
    thread = threading.Thread(target=_spin, args=(executor,), daemon=True)
    thread.start()
    try:
        check = partial(
            check_joint_order,
            bench.peer,
            node.get_fully_qualified_name(),
            JOINTS,
            host,
            exact=False,
        )
        if settable:
            assert check() and node.get_parameter(name).value is False
            assert "replacement True, set to False: else a" in capfd.readouterr().err
            node.undeclare_parameter(name)
            assert check() and "set to" not in capfd.readouterr().err
        else:
            with pytest.raises(ConfigurationError, match="replacement True, must be False: else a"):
                check()
        node.remove_on_set_parameters_callback(answer)
        node.set_parameters([Parameter("command_interfaces", value=["position"])])
        if not node.has_parameter(name):
            node.declare_parameter(name, True)
        for requires in (host.requires, host.requires[::-1]):
            other = check.func, *check.args[:-1], dataclasses.replace(host, requires=requires)
            with pytest.raises(ConfigurationError, match="command_interfaces .*'position'.* must"):
                partial(*other, exact=False)()
            assert node.get_parameter(name).value is True  # refused, it is left as it was
    finally:
        executor.shutdown()
        thread.join(10.0)
        node.destroy_node()


def test_the_stand_in_takes_commands_in_its_own_order(group_of):
    group = group_of(SWAPPED)
    group.command(np.arange(12.0))
    assert group.update()
    assert group.effort(JOINTS[0]) == 1.0 and group.effort(JOINTS[1]) == 0.0
