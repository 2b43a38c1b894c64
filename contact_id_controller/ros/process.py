"""Common to all executables: how a process starts, is interrupted, and ends.

A signal must never raise in Python: an exception in the middle of a conversion between Python and C++ appears as
another error, or not at all. So every signal that would end the process sets a flag, which the main loops check every
few milliseconds, and rclpy installs no handlers, which would close the context before the last messages are sent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from contact_id_controller.exceptions import ConfigurationError, ContactIdError
from contact_id_controller.ros import loopback, output, scheduling, security
from contact_id_controller.ros.signals import ENDING, keep_running


class Interrupt:
    """Whether this process was interrupted since `listen`."""

    def __init__(self) -> None:
        self.requested = False
        self._node: Any = None

    def listen(self) -> Interrupt:
        """Handle all signals that would end the process from now on, see `signals.ENDING`.

        Also if the parent had them ignored, except SIGHUP, as with ``nohup``.
        """
        for number in ENDING:
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._request)
        keep_running()
        return self

    @contextlib.contextmanager
    def leaving_at_once(self, node: Node) -> Iterator[None]:
        """While inside, a signal ends the process at once with code 0, after destroying `node`.

        For long work without ROS calls, mainly compiling, in a node that has not commanded anything. Compiling is
        logged.
        """
        # Imported here: a watchdog compiles nothing.
        from contact_id_controller.kernels.compile_progress import Compiling

        self._node = node
        try:
            if self.requested:
                self._leave()
            with Compiling(node.get_logger().info):
                yield
        finally:
            self._node = None

    def _request(self, number: int, frame: Any) -> None:
        self.requested = True
        if self._node is not None:
            self._leave()

    def _leave(self) -> None:
        # Otherwise other nodes would see this one for another 20 s.
        self._node.destroy_node()
        rclpy.try_shutdown()
        output.finish()
        os._exit(0)


def run_node(
    name: str,
    make: Callable[[Interrupt], Node],
    serve: Callable[[Node, Interrupt], int],
    arguments: list[str] | None = None,
) -> int:
    """Run a node's process; return its exit code.

    Args:
        name: begins the line that is printed after a ContactIdError, or a parameter that ROS refuses: code 1.
        make: makes the node.
        serve: runs it until it has ended or `Interrupt.requested` is set; returns the exit code.
        arguments: command line, None for that of the process; may begin with ``--rt-priority`` and
            ``--cpus`` (`scheduling`).
    """
    with output.never_waiting(name):
        return _run_node(name, make, serve, arguments)


def run_by_itself(name: str, kind: Callable[..., Any], arguments: list[str] | None = None) -> int:
    """Run the process of a node of class ``kind`` whose ``run`` is its main loop; return its exit code."""

    def serve(node: Any, interrupt: Interrupt) -> int:
        node.run()
        return 0

    return run_node(name, lambda interrupt: kind(interrupt=interrupt), serve, arguments)


def _run_node(
    name: str,
    make: Callable[[Interrupt], Node],
    serve: Callable[[Node, Interrupt], int],
    arguments: list[str] | None,
) -> int:
    """Start ROS, make and serve the node, shut down; print one line and return 1 after an error."""
    interrupt = Interrupt().listen()
    try:
        words = sys.argv[1:] if arguments is None else arguments
        scheduled, words = scheduling.from_command_line(words)
    except ContactIdError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    scheduling.take(scheduled)
    loopback.confine()
    loopback.send_again_soon()
    node = None
    try:
        with security.explained(name):
            _start_ros(name, words)
            node = make(interrupt)
        return serve(node, interrupt)
    except (ContactIdError, ParameterException) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()


def _start_ros(name: str, words: list[str]) -> None:
    """Start ROS with a node's command line; raises ConfigurationError where ROS cannot read it."""
    # ROS would write its log file in the loop; `output` keeps one.
    added = ["--ros-args", "--disable-external-lib-logs"]
    try:
        rclpy.init(args=[name, *words, *added], signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # all errors of rcl
        if security.is_asked_for():
            raise
        why = str(error).splitlines()[0].removeprefix("failed to initialize rcl: ")
        raise ConfigurationError(why.split(", at /")[0]) from error


def serve_lifecycle(node: LifecycleNode, interrupt: Interrupt, turn: Callable[[], None]) -> int:
    """Call ``turn`` until the node is shut down, by a signal or a lifecycle manager; return its exit code.

    The node is shut down also when a turn raises, as motors would hold the last torque.
    """
    try:
        while not (interrupt.requested or node.finalized):
            turn()
    finally:
        if not node.finalized:
            node.trigger_shutdown()
    return 0
