"""ROS node between the controller and ros2_control, whose group controllers have no timeout.

Subscribes to `emergency_stop`, `commands_in`, `joint_states`, the controller's `heartbeat` and `transition_event`, and
calls its service `get_state`; publishes `commands`, `~/heartbeat` and `/diagnostics`; serves `~/emergency_stop` and
`~/reset`, no parameters. It imports neither pinocchio nor numba, and takes messages as bytes whose size is checked
first. Decisions are in `safety.command_watchdog`. A keeper process (`ros.keeper`) replaces the working process in a
moment when that is killed or hangs. When the keeper is killed the worker continues until that of another keeper is
ready (`ros.worker_lock`).
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State, TransitionEvent
from lifecycle_msgs.srv import GetState
from rcl_interfaces.srv import GetParameters
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.task import Future
from rclpy.type_support import check_for_type_support
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.lazy import loaded
from contact_id_controller.ros import output, scheduling
from contact_id_controller.ros.command_messages import messages_of
from contact_id_controller.ros.declared_parameters import NODE_OPTIONS, read_settings
from contact_id_controller.ros.diagnostics import diagnostic_array
from contact_id_controller.ros.direct_loop import (
    DirectLoop,
    age_s,
    hand_on_newest,
    take,
    take_newest,
)
from contact_id_controller.ros.emergency_latch import latch_of, release_call
from contact_id_controller.ros.executor import GuardedExecutor, incidents_of
from contact_id_controller.ros.group_controller import check_joint_order
from contact_id_controller.ros.heartbeat_topics import HeartbeatInput, HeartbeatTopic
from contact_id_controller.ros.keeper import Worker, keep
from contact_id_controller.ros.packed import (
    JOINT_STATE,
    MOST_CHARACTERS,
    PackedReader,
    read_message,
    read_true,
)
from contact_id_controller.ros.process import Interrupt, run_node
from contact_id_controller.ros.senders import (
    OtherSenders,
    Sources,
    full_name,
    identity_of,
    known_publishers_of,
    publishers_of,
)
from contact_id_controller.ros.stated_limits import StatedLimits
from contact_id_controller.ros.worker_lock import WorkerLock
from contact_id_controller.safety.command_watchdog import (
    CommandWatchdog,
    JointVelocities,
    WatchdogState,
)
from contact_id_controller.safety.commanders import Commanders, Sender
from contact_id_controller.safety.effort_rate import EffortRate
from contact_id_controller.safety.latch import EmergencyLatch
from contact_id_controller.settings import plausibility
from contact_id_controller.settings.command_interfaces import COMMAND, INTERFACES
from contact_id_controller.settings.command_watchdog import (
    DAMPING_PERIOD_S,
    CommandWatchdogSettings,
)

_DIAGNOSTICS_PERIOD_S = 1.0

_GET_STATE = "controller/get_state"
_ASK_PERIOD_S = 0.1
"""Time between two requests for the lifecycle state of a controller that appeared after the trip."""

_ANSWER_S = 5.0
"""Longest time to wait for an answer. A request while the service is being discovered may never be answered: so the
next one does not wait for it."""

_LOOK_PERIOD_S = 0.05
"""Time between two checks for other senders to the robot."""
_AFTER_ERROR_S = 0.002
"""Longest wait for messages after an error in `tick`."""

_LAST_WORDS, _LAST_WORD_S = 3, 0.01
"""How often zero is sent at the end, and the time between: unread messages are lost with the process."""

_ALONE_S = 5.0
"""A worker without a keeper ends after this long without joint states: the robot has stopped, too."""

_KNOWN_S = 3.0
"""Time after which the robot's side knows a publisher that knows it: discovery repeats its messages by then."""

_CLAIM_S = 1.0
"""Time between two attempts to take the worker lock."""

_PRESSED_S = 1.0
"""Largest age of an emergency stop message that a new worker still obeys."""

HANGS = 3.0
"""Number of time-outs without a turn of the loop after which the process counts as hanging."""

_RESERVE_LOOK_S = 0.2
"""Longest wait of a worker in reserve before it looks for signals."""

_NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
_COMMANDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Of the commands: with a shorter queue a fast second sender would push out those of the followed one."""
_BUTTON = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Of the emergency stop: a `false` must not push out the `true` before it."""

# Some middlewares give ros2_control reliable subscriptions, which best effort never reaches.
_RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


def watchdog_of(
    settings: CommandWatchdogSettings, latch: EmergencyLatch | None = None, follows: bool = False
) -> CommandWatchdog:
    """Make the watchdog of these settings.

    follows: it replaces another one, and so damps before the first command, too.

    Raises:
        ConfigurationError: lists of wrong length.
    """
    count, rates = len(settings.joints), "effort_rate_limits_nm_s"
    return CommandWatchdog(
        JointVelocities(settings.joints, settings.state_timeout_s, plausibility.SPEED_RAD_S),
        settings.spread("damping_nm_s_rad", count),
        settings.spread("effort_limits_nm", count),
        timeout_s=settings.timeout_s,
        period_s=DAMPING_PERIOD_S,
        damp_before_first_command=follows or settings.damp_before_first_command,
        rate=EffortRate(settings.spread(rates, count)) if getattr(settings, rates) else None,
        emergency_stop_output=settings.emergency_stop_output,
        latch=latch,
    )


class CommandWatchdogNode(Node):
    """The topics, services and timers of a `CommandWatchdog`.

    Args:
        name: of the node.
        checked: whether the order of the joints was already compared with the group controller's.
        reserve: only connect and wait; ``serve`` does the rest.
        options: of the node.

    Attributes:
        takes_over: whether a worker without a keeper is running, which this one replaces once it is prepared.
        hangs_s: a turn of the loop that takes longer counts as hanging.

    Raises:
        ConfigurationError: a bad parameter, or another order of the joints.
    """

    def __init__(
        self,
        name: str = "command_watchdog",
        *,
        checked: bool = False,
        reserve: bool = False,
        **options: Any,
    ) -> None:
        # No parameter services: a node without them cannot be kept busy by requests.
        overrides = [
            Parameter("start_type_description_service", value=False),
            *options.pop("parameter_overrides", ()),
        ]
        super().__init__(name, parameter_overrides=overrides, **NODE_OPTIONS, **options)
        self.incidents = incidents_of(self)
        try:
            settings = read_settings(self, CommandWatchdogSettings, served=False)
            latch = latch_of(self, settings.state_folder, settings.urdf)
            self.worker_lock = WorkerLock(latch.path.parent, self.get_fully_qualified_name())
            self.takes_over = not reserve and self.worker_lock.orphan() is not None
            self.watchdog = watchdog_of(settings, latch, follows=reserve or self.takes_over)
            self.hot_standby = settings.hot_standby
            self.hangs_s = HANGS * max(settings.timeout_s, DAMPING_PERIOD_S)
            self._stated = StatedLimits(settings.urdf, settings.joints) if settings.urdf else None
            self._unlimited = ""
            # Publishers and subscriptions are discovered while the request is under way.
            self._connect(settings)
            if settings.group_controller and not checked:
                host, group = settings.interface.taker, settings.group_controller
                exact = host.order == COMMAND  # that of a model is not known here
                check_joint_order(self, group, settings.joints, host, exact=exact)
        except ConfigurationError:
            self.destroy_node()
            raise
        self._alone_s: float | None = None
        self._known_s: float | None = None
        self._holds_lock, self._next_claim_s = False, 0.0
        if not (reserve or self.takes_over):
            self.serve()

    def _connect(self, settings: CommandWatchdogSettings) -> None:
        """Make subscriptions, publishers and the client of the controller's state."""
        self._joints, self._interface = settings.joints, settings.interface
        messages, topic = messages_of(self._interface), self._interface.topic
        self._forwarder = messages.forwarder(settings.joints)
        self._commands = self._sends(messages.kind, topic)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 1)
        self._counts = (0, 0, 0)
        self._state = WatchdogState.WAITING
        listen = self.create_subscription
        self._commands_in = listen(
            messages.kind, f"{topic}_in", self._on_command, _COMMANDS, raw=True
        )
        self._stops_in = listen(Bool, "emergency_stop", self._on_stop, _BUTTON, raw=True)
        self._states_in = listen(
            JointState, "joint_states", self._on_joint_states, _NEWEST, raw=True
        )
        self._transitions_in = listen(
            TransitionEvent, "controller/transition_event", self._on_transition, 10, raw=True
        )
        # To be served without delay, in order of importance.
        self.direct_subscriptions = [
            self._stops_in,
            self._commands_in,
            self._states_in,
            self._transitions_in,
        ]
        self.direct_services: list[Service] = []
        self._states = PackedReader(JOINT_STATE)
        self._names: tuple[str, ...] = ()
        self._heard = HeartbeatInput(self, "controller", self.incidents)
        self._heartbeat = HeartbeatTopic(self)
        self._controller_state = self.create_client(GetState, _GET_STATE)
        self._at_trip: set[bytes] | None = set()
        self._answers: dict[Future, float] = {}
        controller, _, _ = self.resolve_service_name(_GET_STATE).rpartition("/")
        self._controller = controller
        self._commanders = Commanders(settings.commanders, controller, self._publishers_in)
        self._logged_sender: Sender | None = None
        self._sources = Sources(self, ("joint_states",), settings.hot_standby)

    def _sends(self, kind: type, topic: str) -> Publisher:
        """Make the publisher to the robot, and watch for other senders there."""
        self._others = OtherSenders(self, topic, kind)
        publisher = self.create_publisher(kind, topic, _RELIABLE)
        self._others.know_own()
        return publisher

    def serve(self) -> None:
        """Start to work: make services and timers; commands received before are dropped, as they may be old."""
        for subscription in (self._commands_in, self._transitions_in):
            for _ in range(_COMMANDS.depth):
                self.incidents.guarded("message", take_newest, subscription)
        self.watchdog.velocities.attend(time.monotonic())
        self._hand_on(self._states_in)  # for its age
        self.watchdog.look_at_latch()
        for _ in range(_BUTTON.depth):
            if (pressed := take(self._stops_in)) is None:
                break
            if age_s(pressed[1]) < _PRESSED_S:
                self._on_stop(pressed[0])
        self._lower_limits_to_description()
        self.tick()  # the next lines take as long as several command periods
        self.direct_services = [
            self.create_service(SetBool, "~/emergency_stop", self._on_emergency_stop)
        ]
        self.tick()
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.tick()
        # Simulated time may stand still.
        timer = functools.partial(self.create_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))
        timer(_DIAGNOSTICS_PERIOD_S, self._publish_diagnostics)
        timer(_ASK_PERIOD_S, self._ask_for_activation)
        timer(_LOOK_PERIOD_S, self._look_at_others)

    def is_prepared(self) -> bool:
        """Whether a reserve could take over at once: its publisher is known at the robot's side.

        And the URDF's effort limits are known, and a message for a stop can be made.
        """
        self._lower_limits_to_description()
        self.listen_in()
        for _ in range(0 if self._forwarder.prepared else _COMMANDS.depth):
            self.incidents.guarded("message", self._keep_command)
        if self._known_s is None and self._robot_is_connected():
            self._known_s = time.monotonic()
        known = self._known_s is not None and time.monotonic() - self._known_s > _KNOWN_S
        return known and self._stated is None and self._forwarder.prepared

    def listen_in(self) -> None:
        """Take joint states to know their publisher."""
        self.watchdog.velocities.stand_by()
        self._hand_on(self._states_in)

    def _keep_command(self) -> None:
        """Keep a good command as the template of a stop."""
        data = take_newest(self._commands_in)
        if data is not None:
            self._forwarder.keep(data)

    def _robot_is_connected(self) -> bool:
        """Whether a subscriber of another node is connected to its commands."""
        own, topic = self.get_fully_qualified_name(), self._commands.topic_name
        listeners = [
            full_name(each.node_name, each.node_namespace)
            for each in self.get_subscriptions_info_by_topic(topic)
        ]
        # The worker of this node subscribes there too, to detect other senders.
        connected = self._commands.get_subscription_count() >= len(listeners)
        return connected and any(name != own for name in listeners)

    def take_over(self, interrupt: Interrupt) -> None:
        """Wait until this worker is prepared, then end the running one that has no keeper."""
        while self.worker_lock.orphan() is not None:
            if interrupt.requested or self.is_prepared():
                if self.worker_lock.take_over():
                    self.get_logger().info("takes over from one whose keeper was killed")
                    return
                self.get_logger().error("one whose keeper was killed is still at work")
            time.sleep(_RESERVE_LOOK_S)

    def claim(self, worker: Worker) -> None:
        """Try, at intervals, to take the worker lock: the process that has it goes on working when its keeper ends."""
        now_s = time.monotonic()
        if self._holds_lock or now_s < self._next_claim_s:
            return
        self._next_claim_s = now_s + _CLAIM_S
        self.worker_lock.take_over()
        self._holds_lock = self.worker_lock.claim(worker.keeper)
        if self._holds_lock:
            worker.outlive_keeper()

    def goes_on_alone(self) -> bool:
        """Whether to continue without a keeper: as long as joint states arrive."""
        now_s = time.monotonic()
        if self._alone_s is None:
            self._alone_s = now_s
            self.get_logger().error(
                "the keeper of this process was killed, no process takes over when this one is: start "
                f"{self.get_name()} again, which takes over; `kill {os.getpid()}` ends this one"
            )
        return now_s - max(self._alone_s, self.watchdog.velocities.arrival_s) < _ALONE_S

    def tick(self) -> float:
        """Send damping if it is due; return how long, s, to wait for messages before the next call."""
        if self.watchdog.wait_s(time.monotonic()) == 0.0:
            # A command that came while other callbacks ran is not late.
            for _ in range(_COMMANDS.depth):
                if not self._hand_on(self._commands_in):
                    break
        self._send(self.watchdog.tick(time.monotonic()))
        return self.watchdog.wait_s(time.monotonic())

    def _hand_on(self, subscription: Subscription) -> bool:
        """Run a subscription's callback with its next message, errors caught; return whether there was a message."""
        return self.incidents.guarded("message", hand_on_newest, subscription) is not False

    def beat(self) -> None:
        """Publish the state on `~/heartbeat`, if it is due."""
        self._heartbeat.beat(self.watchdog.state.value)

    def release(self) -> None:
        """Send zero torque at the end: damping would no longer be updated."""
        for _ in range(_LAST_WORDS):
            self._send(np.zeros(len(self.watchdog.velocities.position)))
            time.sleep(_LAST_WORD_S)

    def _send(self, torques: np.ndarray | None) -> None:
        if torques is not None:
            place = self.watchdog.velocities.position
            self._forwarder.stop(self._commands, torques, place)
        # Only now: a line in the log takes longer than the torques.
        if self.watchdog.state is not self._state:
            self._report_change()

    def _may_command(self, info: Mapping[str, Any], now_s: float) -> bool:
        refusal = self._commanders.refusal(identity_of(info), now_s)
        if refusal:
            self.watchdog.refuse_sender(refusal)
        return not refusal

    def _follow(self, info: Mapping[str, Any], now_s: float) -> None:
        """Note the sender of a forwarded command."""
        if self.watchdog.state is not WatchdogState.FORWARDING:
            return
        if self._commanders.follow(identity_of(info), now_s):
            self._log_followed(self._commanders.followed)

    def _log_followed(self, followed: Sender | None) -> None:
        """Log each newly followed sender, as soon as discovery has its name."""
        if followed is not None and followed.node and followed != self._logged_sender:
            self._logged_sender = followed
            self.get_logger().info(f"following the commands of {followed.node}")

    def _lower_limits_to_description(self) -> None:
        """Lower effort limits to the URDF's, once it has arrived; infinite limits without it trip."""
        try:
            ceiling = None if self._stated is None else self._stated.answer()
        except ConfigurationError as error:
            self._stated = None
            self.get_logger().error(str(error))
            names = ", ".join(self._joints[k] for k in self.watchdog.without_limit())
            if names:
                self._unlimited = (
                    f"effort_limits_nm is infinite for {names}, and the URDF that states the limits cannot "
                    "be read: set effort_limits_nm, or leave urdf empty"
                )
            return
        if ceiling is None:
            return
        self._stated = None
        for k in self.watchdog.lower_limits(ceiling):
            self.get_logger().warning(
                f"effort_limits_nm of joint '{self._joints[k]}' is lowered to the "
                f"{ceiling[k]:g} that the URDF states"
            )

    def destroy_node(self) -> None:
        """End pending requests, too."""
        stated = getattr(self, "_stated", None)
        if stated is not None:
            stated.end()
        super().destroy_node()

    def _look_at_others(self) -> None:
        """Trip if another node commands, too, or an effort limit is unknown; warn of several publishers of states."""
        self._lower_limits_to_description()
        now_s = time.monotonic()
        if names := self._others.look(now_s):
            detail = f"{names} sends on {self._others.topic}, too"
            self._send(self.watchdog.stop("second_commander", detail, now_s))
        if self._unlimited:
            self._send(self.watchdog.stop("no_limit", self._unlimited, now_s))
        for line in self._sources.look(now_s):
            self.get_logger().warning(line)

    def _on_command(self, message: bytes, info: Mapping[str, Any]) -> None:
        """Forward a command, its efforts within the limits."""
        now_s, efforts, fault = time.monotonic(), None, ""
        if not self._may_command(info, now_s):
            return
        try:
            efforts = self._forwarder.read(message)
        except StateError:
            fault = self._interface.unread
        answer = self.watchdog.take_command(efforts, now_s, fault, age_s(info))
        if answer is None or answer.ndim == 1:
            self._send(answer)
            return
        self._forwarder.forward(self._commands, answer)
        self._send(None)
        self._follow(info, now_s)

    def _on_joint_states(self, message: bytes, info: Mapping[str, Any]) -> None:
        """Keep measured joint velocities, for damping, with their age."""
        numbers: Any = self._states.arrays(message)
        if numbers is None:
            states: Any = self._states.message(message)
            self._names = tuple(states.name)
            numbers = states.position, states.velocity
        measured_s = time.monotonic() - max(age_s(info), 0.0)
        self.watchdog.velocities.take(
            self._names, numbers[1], measured_s, numbers[0], identity_of(info)
        )

    def _on_transition(self, message: bytes) -> None:
        goal = read_message(TransitionEvent, message, MOST_CHARACTERS).goal_state
        self.watchdog.controller_changed(goal.id == State.PRIMARY_STATE_ACTIVE)

    def _ask_for_activation(self) -> None:
        """Request the controller's lifecycle state after a trip: its transitions may have been before discovery.

        The controller makes its publisher in configure: if it is active and its publisher was not there at the trip,
        it was activated after the trip.
        """
        self._heard.look()
        if not self.watchdog.waits_for_activation or not self._has_new_publisher():
            return
        now_s = time.monotonic()
        for answer, asked_s in list(self._answers.items()):
            if now_s - asked_s > _ANSWER_S:
                self._forget(answer)
        if self._controller_state.service_is_ready():
            answer = self._controller_state.call_async(GetState.Request())
            self._answers[answer] = now_s
            answer.add_done_callback(functools.partial(self._on_answer, self.watchdog.trips))

    def _forget(self, answer: Future) -> None:
        if self._answers.pop(answer, None) is not None:
            self._controller_state.remove_pending_request(answer)

    def _on_answer(self, trips: int, answer: Future) -> None:
        """Take the controller's lifecycle state, requested after trip number ``trips``: an active one rearms."""
        if self._answers.pop(answer, None) is None:
            return
        active = answer.result().current_state.id == State.PRIMARY_STATE_ACTIVE
        # The request may be from before another trip.
        if active and trips == self.watchdog.trips:
            for other in list(self._answers):
                self._forget(other)
            self.watchdog.controller_changed(True)

    def _publishers_in(self) -> dict[bytes, str] | None:
        """Publishers of incoming commands: identity -> full name of the node; None: too many."""
        return known_publishers_of(self, self._commands_in.topic_name)

    def _has_new_publisher(self) -> bool:
        before, now = self._at_trip, self._publishers_in()
        if before is None or now is None:
            return False
        return any(
            node == self._controller and identity not in before for identity, node in now.items()
        )

    def _on_stop(self, message: bytes) -> None:
        """Engage the emergency stop if this message, or one behind it, is true; a message never releases it."""
        pressed = self._asks(message)
        for _ in range(_BUTTON.depth):
            if pressed or (waits := take_newest(self._stops_in)) is None:
                break
            pressed = self._asks(waits)
        if pressed:
            watchdog = self.watchdog
            if watchdog.state is not WatchdogState.EMERGENCY_STOP:
                self._send(watchdog.emergency_stop(time.monotonic()))
            failure = watchdog.keep()
            if failure:
                self.get_logger().error(failure)

    def _asks(self, message: bytes) -> bool:
        """Whether a message is true; a malformed one does not delay those behind it."""
        return bool(self.incidents.guarded("emergency_stop", read_true, message))

    def _on_emergency_stop(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        """Serve ~/emergency_stop: data true engages and stores it, false releases it into damping."""
        watchdog = self.watchdog
        if request.data:
            self._send(watchdog.emergency_stop(time.monotonic()))
            response.success = True
            response.message = watchdog.keep() or "emergency stop engaged"
            return response
        refusal = watchdog.release_emergency_stop()
        response.success = watchdog.state is not WatchdogState.EMERGENCY_STOP
        response.message = refusal or (
            "emergency stop released: damping until the controller is activated again"
        )
        self._send(watchdog.tick(time.monotonic()))
        return response

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        refusal = self.watchdog.reset(time.monotonic())
        response.success, response.message = refusal is None, refusal or "forwarding again"
        return response

    def _report_change(self) -> None:
        """Log the new state; at a trip remember the publishers, so that a replaced controller is recognised."""
        self._state = self.watchdog.state
        if self._state is WatchdogState.TRIPPED:
            # Also publishers whose name, or node, discovery does not know yet.
            there = publishers_of(self, self._commands_in.topic_name)
            self._at_trip = None if there is None else set(there)
            if self._at_trip is not None and self._commanders.followed is not None:
                self._at_trip.add(self._commanders.followed.identity)
            self._commanders.let_go()
            self._logged_sender = None
            self.get_logger().error(
                f"tripped, {self.watchdog.trip_reason}: {self.watchdog.trip_detail}; controller: "
                f"{self._heard.pulse.words()}; damping until it is activated again"
            )
        elif self._state is WatchdogState.EMERGENCY_STOP:
            self.get_logger().error(
                "emergency stop: nothing is forwarded until it is released: " + release_call(self)
            )
        else:
            self.get_logger().info("forwarding commands")

    def _publish_diagnostics(self) -> None:
        """Publish state and counters: ERROR while tripped or stopped, WARN where a command was refused or clipped."""
        watchdog = self.watchdog
        before, self._counts = (
            self._counts,
            (watchdog.clipped, watchdog.refused.total(), watchdog.trips),
        )
        level, summary = DiagnosticStatus.OK, watchdog.state.value
        if watchdog.state is WatchdogState.TRIPPED:
            level = DiagnosticStatus.ERROR
            summary = f"tripped, damping: {watchdog.trip_reason}"
        elif watchdog.state is WatchdogState.EMERGENCY_STOP:
            level = DiagnosticStatus.ERROR
        elif self._counts != before:
            level, summary = DiagnosticStatus.WARN, f"{summary}, some commands refused or clipped"
        followed = self._commanders.known(time.monotonic())
        self._log_followed(followed)
        errors = sorted(self.incidents.counts.items())
        figures = {
            **watchdog.figures(),
            "follows": followed.node if followed else "none",
            **self._sources.figures(),
            "controller": self._heard.pulse.words(),
            **{f"error {reason}": str(count) for reason, count in errors},
        }
        name = f"{self.get_name()}: effort commands"
        now = self.get_clock().now().to_msg()
        self._diagnostics.publish(diagnostic_array(now, name, level, summary, figures))


def _serve(node: CommandWatchdogNode, interrupt: Interrupt, worker: Worker) -> int:
    """Serve the node until it is interrupted: a reserve waits prepared until its keeper calls it, then takes over."""
    executor = GuardedExecutor(node, node.incidents)
    direct = DirectLoop(
        executor, lambda: node.direct_subscriptions, services=lambda: node.direct_services
    )

    def turn() -> None:
        wait_s = node.incidents.guarded("tick", node.tick)
        direct.spin_once(_AFTER_ERROR_S if wait_s is None else wait_s)
        node.incidents.guarded("heartbeat", node.beat)

    scheduling.settle(node.get_logger().warning)
    if worker.reserve:
        reported = False
        while not worker.is_called(_RESERVE_LOOK_S):
            if interrupt.requested:
                return 0
            if reported:
                node.listen_in()
            elif node.is_prepared():
                reported = True
                node.get_logger().info(f"process {os.getpid()} stands by")
        node.serve()
    elif node.takes_over:
        node.take_over(interrupt)
        node.serve()
    try:
        node.claim(worker)
        turn()
        worker.ready(node.hot_standby)
        while not interrupt.requested and (worker.has_keeper or node.goes_on_alone()):
            worker.beat(node.hangs_s)
            turn()
            node.claim(worker)
    finally:
        worker.beat(0.0)
        node.release()
    return 0


def _load() -> None:
    """Load message types, as rclpy does when a node is made: half of the time that a new worker needs."""
    for kind in (
        JointTrajectory,
        JointState,
        Float64MultiArray,
        Bool,
        DiagnosticArray,
        TransitionEvent,
        String,
    ):
        check_for_type_support(kind)
    for kind in (GetState, SetBool, Trigger, GetParameters):
        check_for_type_support(kind)
    for interface in INTERFACES.values():
        loaded(interface.messages)
    gc.collect()
    gc.freeze()  # workers share these pages with their keeper


def main(arguments: list[str] | None = None) -> int:
    """Run the node; 0 after an ordinary end, 1 after a bad parameter, which is printed."""
    # In the shared memory of Fast DDS a process that is killed in the wrong moment holds a lock,
    # for which others wait 1 s. Without effect where discovery is confined to this machine.
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    name = "command_watchdog"

    def work(worker: Worker) -> int:
        def make(_: object) -> CommandWatchdogNode:
            return CommandWatchdogNode(checked=worker.is_proven, reserve=worker.reserve)

        def serve(node: CommandWatchdogNode, interrupt: Interrupt) -> int:
            return _serve(node, interrupt, worker)

        return run_node(name, make, serve, arguments)

    _load()
    with output.never_waiting(name):
        return keep(name, work)


if __name__ == "__main__":
    sys.exit(main())
