"""The controller as a ROS 2 lifecycle node: topics in, efforts out. It holds no mathematics.

States and plans come in on `odometry`, `joint_states`, `joint_trajectory`, `base_trajectory` and
`contact_schedule`; `commands`, `~/contact_forces` and `/diagnostics` go out.
"""

from __future__ import annotations

import functools
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_srvs.srv import SetBool

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError, ContactIdError, RecordError
from contact_id_controller.ros import scheduling
from contact_id_controller.ros.command_messages import message_class
from contact_id_controller.ros.control_loop import ControlLoop
from contact_id_controller.ros.control_topics import ControlTopics
from contact_id_controller.ros.declared_parameters import NODE_OPTIONS, ParameterTable
from contact_id_controller.ros.direct_loop import DirectLoop
from contact_id_controller.ros.emergency_latch import latch_of, release_call
from contact_id_controller.ros.executor import GuardedExecutor, incidents_of
from contact_id_controller.ros.group_controller import check_joint_order, enforces_limits
from contact_id_controller.ros.heartbeat_topics import HeartbeatTopic
from contact_id_controller.ros.process import Interrupt, run_node, serve_lifecycle
from contact_id_controller.settings.command_interfaces import ANY, MODEL
from contact_id_controller.settings.controller import TABLE, ControllerSettings

_WAIT_S = 0.005
"""Longest wait for a message while active."""

_IDLE_WAIT_S = 0.05
"""Longest wait otherwise, after which signals are checked."""

_TURN_INTERVAL_S = 0.05
"""Time between turns of the executor while states arrive: the period of the chores."""

_LOOK_INTERVAL_S = 0.004
"""Time between waits that include plans while states arrive: each subscription costs every wait."""

_PATIENCE_S = 5.0
"""Time between two log lines about what activation waits for."""

_LISTENER_S = 3.0
"""Longest time that autostart waits for a subscriber of the commands: discovery takes up to so long, and before it a
watchdog does not know that there is a new controller."""

_SUCCESS, _FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
_ERROR = TransitionCallbackReturn.ERROR


def _reported(transition: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wrap a transition so that its errors are logged: rclpy goes to error processing without a log line."""

    @functools.wraps(transition)
    def reporting(node: LifecycleNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().error(f"{transition.__name__} failed: {traceback.format_exc()}")
            return _ERROR

    return reporting


class ControllerNode(LifecycleNode):
    """The lifecycle node: configure loads, compiles and allocates; activate starts commanding.

    Leaving the active state in any way publishes the safe output once; while active without states it is published each
    `state_timeout_s`. Between cleanup and configure the node holds no resources.

    Attributes:
        loop: runs the controller; None unless configured.
        direct_subscriptions, patient_subscriptions, polled_subscriptions: see `ControlTopics.subscriptions`; empty
        unless
            configured.  direct_services: to serve without delay: emergency stop and resume.
    """

    def __init__(
        self, name: str = "controller", interrupt: Interrupt | None = None, **options: Any
    ) -> None:
        super().__init__(name, **NODE_OPTIONS, **options)
        self.incidents = incidents_of(self)
        self._interrupt = interrupt or Interrupt()
        self.loop: ControlLoop | None = None
        self.finalized = False
        self._parameter_table = ParameterTable(
            self,
            TABLE,
            locked=lambda: self.loop is not None,
            check_live=self._check_live,
            incidents=self.incidents,
        )
        given = (self.get_parameter(name).value for name in ("state_folder", "urdf"))
        self.latch = latch_of(self, *(text if isinstance(text, str) else "" for text in given))
        if self.latch.engaged:
            self.get_logger().warning(
                f"the emergency stop is engaged since before this start: {release_call(self)} "
                f"releases it ({', '.join(map(repr, self.latch.files))})"
            )
        self._stop_service = self.create_service(
            SetBool, "~/emergency_stop", self._on_emergency_stop
        )
        self._heartbeat = HeartbeatTopic(self)
        self._take_topics(None)

    @property
    def active(self) -> bool:
        """Whether commands are published."""
        return self._topics is not None and self._topics.active

    @property
    def not_ready(self) -> str:
        """Why it cannot be activated now; empty: it can."""
        return "it is not configured" if self._topics is None else self._topics.not_ready()

    @property
    def is_emergency_stopped(self) -> bool:
        """Whether an emergency stop is engaged, its own or that of the command watchdog."""
        watched = self._topics is not None and self._topics.watchdog_stops
        return self.latch.engaged or watched

    def beat(self) -> None:
        """Publish the state on `~/heartbeat`, if it is due."""
        state = "not configured" if self.loop is None else self.loop.safety.state.value
        self._heartbeat.beat(state)

    @property
    def is_heard(self) -> bool:
        """Whether its commands have a known subscriber."""
        return self._topics is not None and self._topics.is_heard

    def look(self) -> None:
        """Note that messages can be received now; see `Guard.look`."""
        if self.loop is not None:
            guard = self.loop.guard
            guard.good.listening.look(guard.clock())

    @property
    def starts_by_itself(self) -> bool:
        """Parameter `autostart`."""
        return self.get_parameter("autostart").value is True

    # Transitions

    @_reported
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot, compile, allocate; a bad configuration fails with one line in the log."""
        try:
            settings = ControllerSettings.from_mapping(self._parameter_table.values())
            message_class(settings.interface)  # refused here where it is not installed
            with self._interrupt.leaving_at_once(self):
                robot = settings.robot()
                controller = Controller(robot, settings)
                loop = ControlLoop(controller, self.get_logger().warning, self.latch)
                loop.warm_up()
            group = settings.group_controller
            host = settings.interface.taker if group else None
            joints = robot.joint_names
            if host is not None and host.order == MODEL:
                joints = [joints[place] for place in robot.model_order]
            if host and check_joint_order(self, group, joints, host, exact=host.order != ANY):
                loop.guard.host_enforces = enforces_limits(self, group)
        except ContactIdError as error:
            self.get_logger().error(f"not configured: {error}")
            return _FAILURE
        self._take_topics(ControlTopics(self, loop, self.incidents, chore=self._apply_changes))
        self.loop = loop
        self._parameter_table.changed = False
        self.get_logger().info(
            f"configured: {robot.na} joints, {len(settings.foot_frames)} feet, "
            f"{settings.friction}/{settings.solver}, {settings.mode}"
        )
        return super().on_configure(state)

    @_reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start commanding: hold the posture of the first state until a plan arrives.

        Refused without a recent good state, or while the emergency stop is engaged.
        """
        self._apply_changes()  # limits set a moment ago hold from the first torque on
        _, topics = self._configured()
        refusal = topics.start()
        if refusal:
            self.get_logger().error(f"not activated: {refusal}")
            return _FAILURE
        return super().on_activate(state)

    @_reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop commanding, with the safe output as the last command."""
        self._stop()
        return super().on_deactivate(state)

    @_reported
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything that configure made."""
        self._release()
        return super().on_cleanup(state)

    @_reported
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop from any state."""
        self._stop()
        self._release()
        self.finalized = True
        return super().on_shutdown(state)

    @_reported
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """After a failed transition: publish the safe output, release everything, back to unconfigured."""
        self._stop()
        self._release()
        return _SUCCESS

    def _configured(self) -> tuple[ControlLoop, ControlTopics]:
        """What a configured node has; only such a node is activated, and has live parameters."""
        assert self.loop is not None and self._topics is not None
        return self.loop, self._topics

    def _stop(self) -> None:
        """Stop commanding and save the recording; nothing while inactive."""
        if not self.active:
            return
        loop, topics = self._configured()
        topics.stop()
        try:
            loop.save()
        except RecordError as error:
            self.get_logger().error(str(error))

    def _release(self) -> None:
        topics, self.loop = self._topics, None
        self._take_topics(None)
        if topics is not None:
            topics.destroy()

    def _take_topics(self, topics: ControlTopics | None) -> None:
        """Serve these topics from now on; None: none but the emergency stop."""
        self._topics = topics
        lists = ([], [], []) if topics is None else topics.subscriptions
        self.direct_subscriptions, self.patient_subscriptions, self.polled_subscriptions = lists
        self.direct_services = [
            self._stop_service,
            *([] if topics is None else topics.direct_services),
        ]

    def _on_emergency_stop(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        """Serve `~/emergency_stop`; before configure, when nothing is commanded, the stop is only stored."""
        if self._topics is not None:
            return self._topics.on_emergency_stop(request, response)
        response.success = True
        if request.data:
            self.latch.engage()
            failure = self.latch.keep()
            response.message = failure or "emergency stop engaged"
        elif self.latch.engaged:
            try:
                self.latch.release()
                response.message = "emergency stop released"
            except ContactIdError as error:
                response.success, response.message = False, str(error)
        else:
            response.message = "the emergency stop was not engaged"
        self.get_logger().warning(response.message)
        return response

    # Parameters that may change at any time

    def _check_live(self, values: dict[str, Any]) -> None:
        loop, _ = self._configured()
        settings = loop.controller.settings.changed(values)
        try:
            loop.check(settings)
        except ContactIdError as error:
            raise ConfigurationError(str(error)) from error

    def _apply_changes(self) -> None:
        """Apply parameters that were set since the last period, all at once, between two periods."""
        if self._parameter_table.changed:
            self._parameter_table.changed = False
            loop, topics = self._configured()
            before = vars(loop.controller.settings)
            settings = loop.controller.settings.changed(self._parameter_table.current())
            loop.apply(settings)
            topics.note_settings(
                {name: value for name, value in vars(settings).items() if value != before[name]}
            )


class _Autostart:
    """Activates a configured node as soon as the robot's state is known."""

    def __init__(self, node: ControllerNode) -> None:
        self._node = node
        self._wanted = node.starts_by_itself
        self._next_line_s = time.monotonic() + _PATIENCE_S
        self._ready_s: float | None = None

    def __call__(self) -> None:
        """Activate once everything required has arrived; until then log every few seconds what is missing."""
        if not self._wanted or self._node.loop is None:
            return
        if self._node.is_emergency_stopped:
            self._wanted = False
            self._node.get_logger().warning("emergency stop: activate by hand after its release")
            return
        if self._node.active:  # activated by a call meanwhile
            self._wanted = False
            return
        reason = self._node.not_ready
        if not reason:
            now_s = time.monotonic()
            self._ready_s = now_s if self._ready_s is None else self._ready_s
            if self._node.is_heard or now_s - self._ready_s > _LISTENER_S:
                self._wanted = self._node.trigger_activate() != _SUCCESS
        elif time.monotonic() > self._next_line_s:
            self._next_line_s = time.monotonic() + _PATIENCE_S
            self._node.get_logger().info(f"waiting to activate: {reason}")


def _serve(node: ControllerNode, interrupt: Interrupt) -> int:
    """Serve the node until it is shut down, here or by a lifecycle manager."""
    if node.starts_by_itself and node.trigger_configure() != _SUCCESS:
        return 1
    executor = GuardedExecutor(node, node.incidents)
    autostart = _Autostart(node)
    collect_garbage = scheduling.GarbageBreak(
        lambda: node.loop is not None, lambda: node.active, node.get_logger().warning
    )

    def between() -> None:
        collect_garbage()
        node.incidents.guarded("autostart", autostart)
        node.incidents.guarded("heartbeat", node.beat)

    direct = DirectLoop(
        executor,
        lambda: node.direct_subscriptions,
        lambda: node.patient_subscriptions,
        lambda: node.direct_services,
        lambda: node.polled_subscriptions,
        turn_interval_s=_TURN_INTERVAL_S,
        look_interval_s=_LOOK_INTERVAL_S,
        between=between,
        looked=node.look,
    )

    return serve_lifecycle(
        node, interrupt, lambda: direct.spin_once(_WAIT_S if node.active else _IDLE_WAIT_S)
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the node; 0 after an ordinary end, 1 when it was to start by itself and could not."""
    return run_node(
        "controller", lambda interrupt: ControllerNode(interrupt=interrupt), _serve, arguments
    )


if __name__ == "__main__":
    sys.exit(main())
