"""The topics and timers of the controller node, which exist from configure to cleanup."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

from contact_id_controller.ros.command_messages import messages_of
from contact_id_controller.ros.contact_input import ContactInput
from contact_id_controller.ros.control_loop import ControlLoop
from contact_id_controller.ros.diagnostics import diagnostic_array
from contact_id_controller.ros.direct_loop import KEPT_IN_LOCKSTEP, take_waiting
from contact_id_controller.ros.heartbeat_topics import HeartbeatInput
from contact_id_controller.ros.journal import Journal
from contact_id_controller.ros.markers import ARROW_M_PER_WEIGHT, contact_markers
from contact_id_controller.ros.packed import STAMPED, stamp_ns
from contact_id_controller.ros.senders import OtherSenders, Sources
from contact_id_controller.safety.command_watchdog import WatchdogState
from contact_id_controller.safety.incidents import Incidents
from contact_id_controller.safety.machine import SafetyState
from contact_id_controller.safety.states import Refusal
from contact_id_controller.settings.shared_rows import STOP

_CHORES_PERIOD_S = 0.05
_DIAGNOSTICS_PERIOD_S = 1.0
_ARRIVAL = Duration(seconds=0.1)
"""Longest wait at the end for the last command to arrive."""

AGAIN_S = 0.002
"""Wall time that a state in lockstep waits for its odometry after the one before had none: an estimator that is lost
publishes none, and each period of the simulation would take `state_timeout_s`."""

_LOCKSTEP_DEPTH = 10
"""Messages kept when none may be lost."""


class ControlTopics:
    """Subscriptions, publishers and timers of a `ControlLoop`.

    Nothing is commanded before `start` and after `stop`. Between them each state is answered by one command, and in
    real time, without a good state, the safe output is published each `state_timeout_s`.

    Parameters
    ----------
    node
        Owner of the topics.
    loop
        Computes torques from messages.
    incidents
        Errors outside of the guard, for the diagnostics.
    chore
        Called 20 times a second, outside of the step.
    """

    def __init__(
        self,
        node: Node,
        loop: ControlLoop,
        incidents: Incidents,
        chore: Any = lambda: None,
    ) -> None:
        self._node, self._loop, self._chore = node, loop, chore
        self._incidents = incidents
        self._command_watchdog = HeartbeatInput(node, "command_watchdog", incidents)
        settings, self._robot = loop.controller.settings, loop.controller.robot
        self.active = False
        self._waiting: bytes | None = None
        self._given_up = False  # the odometry, until one comes
        self._last = b""
        self._journal = Journal(node)
        clock = settings.stamp_reference == "clock" and not loop.guard.lockstep
        # Without the Time that `now` makes of it: 0.6 us instead of 2.9.
        self._get_now = node.get_clock().handle.get_now if clock else None
        simulated = node.get_clock().ros_time_is_active
        loop.guard.checks.clock_lags = clock and simulated
        loop.guard.good.simulated_time = simulated and not loop.guard.lockstep
        stream = self._stream_qos(settings.reliable_topics)
        self._subscribe(stream)
        self._contact_input = None
        if kind := loop.controller.measured:
            self._contact_input = ContactInput(node, stream, kind, settings.foot_frames)
            loop.contact_input = self._contact_input
        self.direct_services = [node.create_service(Trigger, "~/resume", self._on_resume)]
        # Some middlewares give ros2_control reliable subscriptions; best effort never reaches them.
        depth = KEPT_IN_LOCKSTEP if loop.guard.lockstep else stream.depth
        reliable = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        self._markers = node.create_publisher(MarkerArray, "~/contact_forces", 1)
        self._diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", 1)
        interface, ahead = settings.interface, loop.guard.ahead
        messages, self._bridges = messages_of(interface), interface.bridges
        self._command = messages.writer(self._robot, None if ahead is None else ahead.command)
        self._commands = self._sends(messages.kind, interface.topic, reliable)
        # Simulated time may stand still; these must not.
        timer = partial(node.create_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))
        # Not restarted by each state: when it fires it compares the time of the last good one.
        self._watchdog = timer(settings.state_timeout_s, self._on_silence)
        self._watchdog.cancel()
        self._timers = [
            self._watchdog,
            timer(_CHORES_PERIOD_S, partial(loop.guard.guarded, "chores", self._do_chores)),
            timer(
                _DIAGNOSTICS_PERIOD_S,
                partial(loop.guard.guarded, "diagnostics", self._publish_diagnostics),
            ),
        ]

    def _sends(self, kind: type, topic: str, qos: QoSProfile) -> Publisher:
        """Make the publisher of commands, and watch for other senders there."""
        allowed = self._loop.controller.settings.commanders
        self._others = OtherSenders(self._node, topic, kind, allowed)
        publisher = self._node.create_publisher(kind, topic, qos)
        self._others.know_own()
        inputs = dict.fromkeys((self._odometry, *self._served, *self._deferred))
        self._sources = Sources(self._node, [each.topic_name for each in inputs])
        return publisher

    def _second_commander(self) -> str:
        """Why another sender of commands forbids to command; empty: none, or it is only counted (second_commander)."""
        names = self._others.look(time.monotonic())
        if not names:
            return ""
        detail = f"{names} sends on {self._others.topic}, too"
        self._loop.guard.refuse(Refusal("second_commander", detail))
        return detail if self._loop.controller.settings.second_commander == STOP else ""

    def _look_at_others(self) -> None:
        """Stop if another node commands, too; warn of inputs with several publishers."""
        detail, machine = self._second_commander(), self._loop.guard.machine
        if detail and self.active and not machine.latched:
            machine.stop(detail)
            self._note("second_commander", detail=detail)
        for line in self._sources.look(time.monotonic()):
            self._node.get_logger().warning(line)

    def _stream_qos(self, reliable_topics: bool) -> QoSProfile:
        lockstep = self._loop.guard.lockstep
        reliable = lockstep or reliable_topics
        return QoSProfile(
            depth=_LOCKSTEP_DEPTH if lockstep else 1,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        )

    def _subscribe(self, stream: QoSProfile) -> None:
        """Subscribe to odometry, joint states and plans.

        In real time states are served first, or commands are late; the step takes the odometry itself, and plans
        (``_deferred``) are served between states. In lockstep the sender waits, so all are served as they come:
        odometry before its state, plans at once.
        """
        plan = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        subscribe = self._node.create_subscription
        # Where executors serve in order of creation, odometry comes before its joint state.
        self._odometry = subscribe(Odometry, "odometry", self._on_odometry, stream, raw=True)
        self._states = subscribe(
            JointState, "joint_states", self._on_joint_states, stream, raw=True
        )
        plans = [
            subscribe(kind, topic, partial(self._on_plan, topic, take), plan, raw=True)
            for kind, topic, take in (
                (JointTrajectory, "joint_trajectory", self._loop.take_joint_trajectory),
                (MultiDOFJointTrajectory, "base_trajectory", self._loop.take_base_trajectory),
                (JointTrajectory, "contact_schedule", self._loop.take_contact_schedule),
                (Float64MultiArray, "task_goals", self._loop.take_task_goals),
            )
        ]
        joints, base, contacts, goals = plans
        # A planner publishes on all topics of one of these lists (planner_required).
        self._planners = [[joints, base, contacts], [goals, contacts]]
        if not self._robot.floating_base:
            self._planners = [[joints, contacts]]
        lockstep = self._loop.guard.lockstep
        self._served = [self._odometry, *plans, self._states] if lockstep else [self._states]
        self._deferred: list[Subscription] = [] if lockstep else plans

    @property
    def subscriptions(self) -> tuple[list[Subscription], ...]:
        """Subscriptions to serve without delay; to serve one at a time between states; that a step takes from."""
        contact = self._contact_input
        polled = [self._odometry, *(() if contact is None else contact.subscriptions)]
        return self._served, self._deferred, polled

    @property
    def is_heard(self) -> bool:
        """Whether the commands have a known subscriber."""
        return self._commands.get_subscription_count() > 0

    def not_ready(self) -> str:
        """Why it cannot start now; empty: it can."""
        return self._loop.guard.not_ready() or self._not_watched() or self._not_planned()

    @property
    def watchdog_stops(self) -> bool:
        """Whether the emergency stop of the command watchdog is engaged."""
        pulse = self._command_watchdog.pulse
        return not pulse.is_lost and pulse.state == WatchdogState.EMERGENCY_STOP.value

    def _not_watched(self) -> str:
        """Why the command watchdog forbids to command: emergency stop engaged, or required and lost; else empty."""
        pulse = self._command_watchdog.pulse
        if self.watchdog_stops:
            return "the emergency stop of the command watchdog is engaged"
        if self._loop.controller.settings.watchdog_required and pulse.is_lost:
            return f"watchdog_required is set, and the command watchdog: {pulse.words()}"
        return ""

    def _not_planned(self) -> str:
        """Which topics of a required planner have no publisher; empty: a planner is there, or not required."""
        if not self._loop.controller.settings.planner_required:
            return ""
        missing = [
            ", ".join(each.topic_name for each in plans if not each.get_publisher_count())
            for plans in self._planners
        ]
        if not all(missing):
            return ""
        return f"planner_required is set, and there is no publisher on {', nor on '.join(missing)}"

    def _look_at_watchdog(self) -> None:
        """Stop if the command watchdog is required and lost, or its emergency stop engaged."""
        self._command_watchdog.look()
        machine = self._loop.guard.machine
        if self.active and not machine.latched and (reason := self._not_watched()):
            machine.stop(reason)
            self._note("watchdog", reason=reason)

    def start(self) -> str:
        """Command from the next state on; return why not, or an empty string."""
        self._others.listen_first()
        refusal = (
            self._second_commander()
            or self._not_watched()
            or self._not_planned()
            or self._loop.guard.start()
        )
        if refusal:
            return refusal
        self.active, self._given_up = True, False
        self._note("started", lockstep=self._loop.guard.lockstep)
        self._watch()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._on_joint_states(waiting)
        return ""

    def stop(self) -> None:
        """Publish the safe output, and stop commanding."""
        self._waiting = None
        if self.active:
            self.active = False
            self._watchdog.cancel()
            self._publish(self._loop.guard.stop())
            self._note("stopped")
            self._journal.tell()

    def destroy(self) -> None:
        """Destroy all topics and timers, after the last command was acknowledged."""
        # A lost message is sent again until it is acknowledged, but not without its publisher.
        self._incidents.guarded("last command", self._commands.wait_for_all_acked, _ARRIVAL)
        for subscription in {*self._served, *self._deferred, self._odometry}:
            self._node.destroy_subscription(subscription)
        for publisher in (self._commands, self._markers, self._diagnostics):
            self._node.destroy_publisher(publisher)
        self._others.destroy()
        self._journal.destroy()
        self._command_watchdog.destroy()
        for timer in self._timers:
            self._node.destroy_timer(timer)
        for service in self.direct_services:
            self._node.destroy_service(service)
        if self._contact_input is not None:
            self._contact_input.destroy()

    def _watch(self, within_s: float = math.inf) -> None:
        """Set the timer that checks for missing states, to ``within_s``, at most `state_timeout_s`.

        The limit also holds for a slow simulation: by then its pace may have changed.
        """
        most_s = self._loop.guard.good.timeout_s
        self._watchdog.timer_period_ns = round(1e9 * min(max(within_s, 0.0), most_s))
        self._watchdog.reset()

    def _on_joint_states(self, message: bytes) -> None:
        """Run one control period: step, publish the command, then do what can wait."""
        arrival_s = time.perf_counter()
        loop, guard = self._loop, self._loop.guard
        if not self.active:
            self._observe(message)
            return
        message = self._take_newest(message)
        if guard.lockstep and self._waits_for_odometry(message):
            return
        self._last = message
        now_ns = None if self._get_now is None else self._get_now().nanoseconds
        self._publish(loop.command(message, now_ns))
        loop.finish(arrival_s)
        if (
            guard.machine.latched
        ):  # each state is answered by the safe output, so the timer restarts
            self._watch()

    def _observe(self, message: bytes) -> None:
        """Check a state while inactive: activation requires a recent good one."""
        for odometry in take_waiting(self._odometry):
            self._loop.take_odometry(odometry)
        self._last = message
        now_ns = None if self._get_now is None else self._get_now().nanoseconds
        self._loop.observe(message, now_ns)
        # A simulation in lockstep waits for the answer to this one until we are active.
        self._waiting = message if self._loop.guard.lockstep else None

    def _take_newest(self, message: bytes) -> bytes:
        """Take the odometry that arrived with a state, without a turn of the executor.

        Returns the state that belongs to it: a newer one, if one has arrived.
        """
        loop, checks = self._loop, self._loop.guard.checks
        if loop.guard.lockstep:
            for odometry in take_waiting(self._odometry):
                loop.take_odometry(odometry)
        # Without a lock of the handle, .5 us: both subscriptions end together, in this thread.
        elif (taken := self._odometry.handle.take_message(Odometry, True)) is not None:
            newest = taken[0]
            loop.take_odometry(newest)
            if newest[:STAMPED] == message[:STAMPED]:
                return message
        if loop.guard.lockstep or checks.base_ns is None or checks.base_ns <= stamp_ns(message):
            return message
        for newer in take_waiting(self._states):
            message = newer
            if checks.base_ns <= stamp_ns(message):
                break
        return message

    def _waits_for_odometry(self, message: bytes) -> bool:
        """Whether a state in lockstep has to wait for its odometry, which the timer ends."""
        base_ns = self._loop.guard.checks.base_ns
        if not self._robot.floating_base or (base_ns is not None and base_ns >= stamp_ns(message)):
            self._given_up = False
            return False
        self._waiting = message
        self._watch(AGAIN_S if self._given_up else math.inf)
        return True

    def _on_odometry(self, message: bytes) -> None:
        self._loop.take_odometry(message)
        self._given_up = False
        if self.active and self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._on_joint_states(waiting)

    def _on_plan(self, topic: str, take: Callable[[Any, Any], Any], message: bytes) -> None:
        if self.active:
            take(message, partial(self._note, "plan", topic=topic, stamp_ns=stamp_ns(message)))

    def _on_silence(self) -> None:
        """Publish the safe output after `state_timeout_s` without a good state."""
        guard = self._loop.guard
        if not guard.lockstep:
            silent_in_s = guard.silent_in_s()
            if silent_in_s >= 0.0:
                self._watch(silent_in_s)
                return
            self._watch()
            self._publish(guard.silence())
            self._note("silence")
        elif self._waiting is not None:
            self._waiting, self._given_up = None, True
            refusal = Refusal("odometry_missing", "no odometry of the time of the state")
            self._publish(guard.silence(refusal))
            self._note("odometry_missing")
        self._loop.report()
        # Else the simulation takes its time: no command is due.

    def on_emergency_stop(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        """Serve `~/emergency_stop`: torques are published first."""
        guard = self._loop.guard
        response.success = True
        if request.data:
            torques = guard.emergency_stop()
            self._note("emergency_stop", active=self.active)
            if self.active:
                self._publish(torques)
            response.message = "emergency stop engaged"
        elif refusal := guard.release_emergency_stop(self.active):
            response.success = guard.machine.state is not SafetyState.EMERGENCY_STOP
            response.message = refusal
        else:
            self._note("released", active=self.active)
            response.message = guard.machine.reason or "emergency stop released"
        self._loop.report()
        return response

    def _on_resume(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        refusal = self._second_commander() or self._not_watched() or self._loop.guard.resume()
        if not refusal:
            self._note("resumed")
        self._loop.report()
        response.success, response.message = not refusal, refusal or "holding the present posture"
        return response

    def _publish(self, torques: np.ndarray) -> None:
        command = self._loop.guard.command if self._bridges else torques
        if command is not None:
            self._command.fill(command)
            self._command.publish(self._commands)

    def note_settings(self, changed: dict[str, Any]) -> None:
        """Note changed settings, name -> value, that are used from the next state on."""
        self._note("settings", values=changed)
        guard = self._loop.guard
        if self.active and not guard.lockstep:
            # The remaining time: repeated changes must not put off the timeout.
            self._watch(guard.silent_in_s())

    def _note(self, event: str, **facts: Any) -> None:
        self._journal.note(event, stamp_ns(self._last), **facts)

    def _do_chores(self) -> None:
        """Do what can wait: check other senders and the watchdog, log, record, publish markers.

        Each by itself: an error in one must not keep the others from being done, again and again.
        """
        chores: list[tuple[str, Callable[[], Any]]] = [
            ("settings", self._chore),
            ("others", self._look_at_others),
            ("watchdog", self._look_at_watchdog),
            ("events", self._journal.tell),
            ("log", self._loop.report),
        ]
        if self._loop.recorder is not None:
            chores.append(("record", self._loop.recorder.prepare))
        if self.active and self._loop.result is not None:
            if self._markers.get_subscription_count():
                chores.append(("markers", self._publish_markers))
        for what, chore in chores:
            self._loop.guard.guarded(what, chore)

    def _publish_markers(self) -> None:
        """Publish contact forces and friction cones of the last period, world frame."""
        loop, feet, result = self._loop, self._loop.controller.feet, self._loop.result
        assert result is not None
        self._markers.publish(
            contact_markers(
                self._node.get_clock().now().to_msg(),
                loop.input.odometry.world_frame,
                feet.points,
                feet.normals,
                loop.controller.settings.spread("friction_coefficient", len(feet)),
                result.forces,
                result.contact,
                ARROW_M_PER_WEIGHT / self._robot.weight,
            )
        )

    def _errors(self) -> dict[str, str]:
        counts = self._incidents.counts
        return {f"error {reason}": str(count) for reason, count in sorted(counts.items())}

    def _publish_diagnostics(self) -> None:
        """Publish the guard's summary, solve times and counters on /diagnostics."""
        guard = self._loop.guard
        level, summary = guard.summary()
        self._diagnostics.publish(
            diagnostic_array(
                self._node.get_clock().now().to_msg(),
                f"{self._node.get_name()}: contact inverse dynamics",
                bytes([level]),
                summary,
                {
                    **guard.figures(),
                    **self._sources.figures(),
                    "command watchdog": self._command_watchdog.pulse.words(),
                    **self._errors(),
                },
            )
        )
