"""Recomputes the torques of a recorded run, through the node's message handling and guard.

The messages of the bag go to `ros.control_loop.ControlLoop` as serialised bytes, as in the node, in the order of
`view.timeline`. With the settings of the run the torques are those that were sent, bit for bit on the same kind of
processor; with others they are what these would have commanded for the same states.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.following import Outcome
from contact_id_controller.exceptions import StateError, choices
from contact_id_controller.logs.bag_files import ODOMETRY, STATES
from contact_id_controller.ros.command_messages import messages_of
from contact_id_controller.ros.contact_input import ContactInput
from contact_id_controller.ros.control_loop import ControlLoop
from contact_id_controller.ros.conversions import OdometryReader
from contact_id_controller.ros.packed import read_message, stamp_ns
from contact_id_controller.safety import states
from contact_id_controller.safety.odometry_jump import BASE_SIZE
from contact_id_controller.safety.states import Refusal
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.view.bag import Bag, Message
from contact_id_controller.view.timeline import (
    EVENT,
    OBSERVE,
    PLAN,
    STARTED,
    STEP,
    STOPPED,
    Action,
    steady_stamps,
    timeline_of,
)
from contact_id_controller.view.topics import PLANS, contact_topics, sent_as

NANO = 1_000_000_000
LOOK_S = 0.005
"""Longest time between two looks of the node at its timeouts, s: its longest wait for a message."""

UNSENT = "safe output"
"""Status of a row in which the safe output was commanded."""


@dataclasses.dataclass(frozen=True)
class Replayed:
    """The n recomputed steps of a replay, m joints, f contacts.

    Attributes:
        time_s: (n,) stamps of the states.  period_s: of the controller.
        joint_names, contact_names: m, f names.
        sent: (n, m) N·m, as recorded; NaN where there is no command.
        torques: (n, m) N·m, recomputed.
        commanded: (n,) bool, by the controller, not the safe output; the rows below are 0 elsewhere.
        forces: (n, f, 3) N, world frame, predicted.  contact: (n, f) bool.  saturated: (n, m) bool.
        reference_position, reference_velocity, velocity: (n, m); the last one as received.
        status: (n,) text.  solve_time_s, step_time_s (of the replay), power_loss_w: (n,).
        q, v: (n, nq), (n, nv): the states in Pinocchio's convention.
        followed: whether the robot did what was planned.  refusals: reason -> count.
        logged: time_s and text of what the node would have logged.
        remarks: what is missing in the bag or uncertain, one line each.
    """

    time_s: np.ndarray
    period_s: float
    joint_names: tuple[str, ...]
    contact_names: tuple[str, ...]
    sent: np.ndarray
    torques: np.ndarray
    commanded: np.ndarray
    forces: np.ndarray
    contact: np.ndarray
    saturated: np.ndarray
    reference_position: np.ndarray
    reference_velocity: np.ndarray
    velocity: np.ndarray
    status: np.ndarray
    solve_time_s: np.ndarray
    step_time_s: np.ndarray
    power_loss_w: np.ndarray
    q: np.ndarray
    v: np.ndarray
    refusals: Counter[str]
    followed: Outcome
    logged: list[tuple[float, str]]
    remarks: list[str]

    @property
    def compared(self) -> np.ndarray:
        """(n,) bool: whether a command was recorded."""
        return ~np.isnan(self.sent).any(axis=1)

    @property
    def exact(self) -> np.ndarray:
        """(n,) bool: whether the recomputed torques equal those sent, bit for bit."""
        return (self.sent.view(np.uint64) == self.torques.view(np.uint64)).all(axis=1)

    @property
    def largest_difference_nm(self) -> float:
        """Largest difference of torques sent and recomputed, N·m; 0 where nothing was sent."""
        return float(np.abs(self.sent - self.torques)[self.compared].max(initial=0.0))


OTHER_CLOCK_NS = 3600 * NANO
"""Difference of most stamps from the times of the bag from which on they are of a simulated clock."""


def queue_of(messages: Sequence[Message]) -> deque[tuple[int, bytes]]:
    """Stamps, by which they wait for a state, ns, and bytes of messages."""
    return deque(zip(steady_stamps(messages).tolist(), [each.data for each in messages]))


class _RecordedContact(ContactInput):
    """Measured contact from a bag: messages stamped up to a state are available when it is stepped."""

    def __init__(self, bag: Bag, kind: str, frames: Sequence[str], topics: Sequence[str]) -> None:
        super().__init__(_NoNode(), None, kind, frames)
        self._queues = [queue_of(bag[topic]) for topic in topics]
        self.until_ns = 0

    def _newest(self, k: int) -> bytes | None:
        queue, data = self._queues[k], None
        while queue and queue[0][0] <= self.until_ns:
            data = queue.popleft()[1]
        return data


class _NoNode:
    """A node without topics."""

    def create_subscription(self, *_: Any, **__: Any) -> None:
        """Subscribe to nothing."""


class Replay:
    """One pass of a bag through a controller.

    Args:
        bag: the recorded messages.
        recorded: settings of the run.
        settings: those to compute with; None: the recorded ones.

    Raises:
        ContactIdError: settings that do not fit the robot, or a command interface that cannot be replayed.
    """

    def __init__(
        self, bag: Bag, recorded: ControllerSettings, settings: ControllerSettings | None = None
    ) -> None:
        self._bag, self._recorded = bag, recorded
        settings = dataclasses.replace(settings or recorded, record_path="")
        self._kept = {  # changed settings stay so through recorded changes of parameters
            name: value
            for name, value in vars(settings).items()
            if value != getattr(recorded, name)
        }
        self.robot = settings.robot()
        self._logged: list[tuple[float, str]] = []
        self._clock_s = bag[STATES][0].time_ns / NANO
        self.loop = ControlLoop(Controller(self.robot, settings), self._log)
        self.loop.guard.plans.reads_at_once = True
        self.loop.guard.clock = lambda: self._clock_s
        self.loop.warm_up()
        self._commands = bag[sent_as(recorded)[0]]
        self._contact = self._contact_of(settings)
        self._stamps = steady_stamps(bag[STATES])
        times = np.array([message.time_ns for message in bag[STATES]])
        self._simulated = bool(np.median(np.abs(times - self._stamps)) > OTHER_CLOCK_NS)
        guard = self.loop.guard
        guard.checks.clock_lags = guard.good.simulated_time = self._simulated and not guard.lockstep
        self._odometry = queue_of(bag[ODOMETRY])
        self._plans = {topic: deque(bag[topic]) for topic in PLANS}
        self._base, self._pose = OdometryReader(), np.zeros(BASE_SIZE)
        self._rows: list[dict[str, Any]] = []
        self._missing, self._state = 0, -1

    def _contact_of(self, settings: ControllerSettings) -> _RecordedContact | None:
        """Replace the contact sensors by the bag's messages; None where these settings use none."""
        sensed = self.loop.controller.sensed
        topics = contact_topics(settings, sensed)
        if not topics:
            return None
        kind = self.loop.controller.measured
        contact = _RecordedContact(self._bag, kind, settings.foot_frames, list(topics))
        self.loop.contact_input = contact
        return contact

    def run(self, progress: Callable[[float], None] = lambda share: None) -> Replayed:
        """Replay from the first message to the last.

        Args:
            progress: called at intervals with the share that is done.
        """
        lockstep = self.loop.guard.lockstep
        period_ns = round(self._recorded.period_s * NANO)
        timeline = timeline_of(self._bag, self._commands, lockstep, period_ns)
        sent = self._sent()
        for k, action in enumerate(timeline.actions):
            if k % 200 == 0:
                progress(k / len(timeline.actions))
            self._carry_out(action, sent)
        return self._result([*self._remarks(), *timeline.remarks])

    def _carry_out(self, action: Action, sent: np.ndarray) -> None:
        """Carry out one action of the timeline: observe a state, step, or an event.

        Args:
            sent: (commands, na) N·m, as recorded, for comparison.
        """
        loop, messages = self.loop, self._bag[STATES]
        if action.kind != EVENT:
            self._state = action.state
        if action.kind == OBSERVE:
            message = messages[action.state]
            self._advance_to(message)
            loop.observe(message.data, self._now_ns(message))
        elif action.kind == STEP:
            message = messages[action.state]
            self._advance_to(message)
            of_its_own = loop.guard.checks.base_ns == stamp_ns(message.data)
            self._missing += self.robot.floating_base and not of_its_own
            torques = loop.command(message.data, self._now_ns(message))
            self._keep(message, torques, action.command, sent)
            loop.finish(self._clock_s)
        else:
            self._repeat_event(action.event)
        loop.report()

    def _advance_to(self, message: Message) -> None:
        """Advance to the present state: the guard's clock to its arrival; contact and odometry to its stamp."""
        guard, now_s = self.loop.guard, message.time_ns / NANO
        while (
            self._clock_s < now_s
        ):  # timeouts are looked at as often as by the node, with or without states
            self._clock_s = min(self._clock_s + LOOK_S, now_s)
            guard.look()
        stamp = int(self._stamps[self._state])
        if self._contact is not None:
            self._contact.until_ns = stamp
        while self._odometry and self._odometry[0][0] <= stamp:
            last = self._odometry.popleft()[1]
            self.loop.take_odometry(last)
            self._pose = self._base.read(last)[0]

    def _now_ns(self, message: Message) -> int | None:
        """The time, ns, of the clock with which the node compares stamps; None: it does not.

        The bag's own times are those of the wall clock; a simulated clock is taken to show the stamp.
        """
        settings = self.loop.controller.settings
        if settings.stamp_reference != "clock" or self.loop.guard.lockstep:
            return None
        return stamp_ns(message.data) if self._simulated else message.time_ns

    def _repeat_event(self, event: dict[str, Any]) -> None:
        """Repeat a recorded event on the guard: start, plan, stop, timeout, emergency stop, settings."""
        loop, guard, kind = self.loop, self.loop.guard, event["event"]
        if kind == STARTED:
            refusal = guard.start()
            if refusal:
                self._log(f"not activated: {refusal}")
        elif kind == PLAN:
            self._take_plan(event)
        elif kind == STOPPED:
            guard.stop()
        elif kind == "silence":
            guard.silence()
        elif kind == "odometry_missing":
            guard.silence(Refusal("odometry_missing", "no odometry of the time of the state"))
        elif kind == "emergency_stop":
            guard.emergency_stop()
        elif kind == "released":
            guard.machine.release_emergency_stop(bool(event.get("active")))
        elif kind == "watchdog":
            guard.machine.stop(str(event.get("reason")))
        elif kind == "resumed":
            guard.resume()
        elif kind == "second_commander":
            guard.machine.stop(event["detail"])
        elif kind == "settings":
            values = {**event["values"], **self._kept}
            values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
            loop.apply(dataclasses.replace(loop.controller.settings, **values))

    def _take_plan(self, event: dict[str, Any]) -> None:
        """Give the plan of an event to the controller: the last message with its stamp that could have arrived."""
        topic = event["topic"]
        queue = self._plans.get(topic, deque())
        fitting = [k for k, each in enumerate(queue) if stamp_ns(each.data) == event["stamp_ns"]]
        if not fitting:
            self._log(f"a plan of {topic} that was taken is not in the bag")
            return
        # Of several with this stamp the controller took the newest one sent before the next state.
        following = self._bag[STATES][self._state + 1 : self._state + 2]
        known = [k for k in fitting if not following or queue[k].time_ns < following[0].time_ns]
        for _ in range((known or fitting[:1])[-1]):
            queue.popleft()
        data = queue.popleft().data
        getattr(self.loop, f"take_{topic}")(data)

    def _sent(self) -> np.ndarray:
        """Torques (c, m), N·m, of the recorded commands, the first point of trajectories; NaN: unreadable."""
        rows = np.full((len(self._commands), self.robot.na), np.nan)
        reader = messages_of(self._recorded.interface).forwarder(self.robot.joint_names)
        for row, message in zip(rows, self._commands):
            try:
                first = reader.read(message.data)[0]
                if len(first) != len(row):
                    raise StateError(f"a command has {len(first)} efforts, must have {len(row)}")
                row[:] = first
            except StateError as error:
                self._log(f"a command cannot be read: {error}")
        return rows

    def _keep(self, message: Any, torques: np.ndarray, command: Any, sent: np.ndarray) -> None:
        """Add a row: torques recomputed and sent, forces, contacts, reference and state of this step."""
        loop, result = self.loop, self.loop.result
        robot, joints = self.robot, self.loop.input.joints
        q, v = robot.neutral(), np.zeros(robot.nv)
        if robot.floating_base:
            q[:7], v[:6] = self._pose[:7], self._pose[7:]
        robot.put_joints(q, joints.position)
        v[robot.actuated] = joints.velocity
        count, na = len(loop.controller.feet), robot.na
        row = {
            "time_s": stamp_ns(message.data) * states.NANO,
            "sent": np.full(na, np.nan) if command is None else sent[command],
            "torques": torques.copy(),
            "commanded": result is not None,
            "forces": np.zeros((count, 3)),
            "contact": np.zeros(count, dtype=bool),
            "saturated": np.zeros(na, dtype=bool),
            "reference_position": joints.position.copy(),
            "reference_velocity": np.zeros(na),
            "status": UNSENT,
            "velocity": joints.velocity.copy(),
            "solve_time_s": 0.0,
            "step_time_s": 0.0,
            "power_loss_w": np.nan,
            "q": q,
            "v": v,
        }
        if result is not None:
            row |= {
                "forces": result.forces.copy(),
                "contact": result.contact.copy(),
                "saturated": result.saturated.copy(),
                "reference_position": result.reference.position.copy(),
                "reference_velocity": result.reference.velocity.copy(),
                "status": result.status,
                "solve_time_s": result.solve_time_s,
                "step_time_s": result.step_time_s,
                "power_loss_w": result.power_loss_w,
            }
        self._rows.append(row)

    def _log(self, line: str) -> None:
        time_s = self.loop.guard.time_s if hasattr(self, "loop") else None
        self._logged.append((time_s or 0.0, line))

    def _remarks(self) -> list[str]:
        """What the bag lacks, one line each."""
        bag, remarks = self._bag, []
        if not bag.finished:
            remarks.append("the bag was not closed: its last messages may be lost")
        stamps = np.array([stamp_ns(message.data) for message in bag[STATES]])
        steps = np.diff(stamps) / NANO
        period_s = self._recorded.period_s
        gaps = steps > 1.5 * period_s
        if gaps.any():
            widest = int(np.argmax(steps))
            lost = int(np.rint(steps[gaps] / period_s - 1).sum())
            remarks.append(
                f"{int(gaps.sum())} gaps in {STATES}, {lost} states missing; the longest is "
                f"{steps[widest]:.3f} s, after {stamps[widest] / NANO:.3f} s"
            )
        if (steps <= 0.0).any():
            remarks.append(f"{int((steps <= 0.0).sum())} stamps of {STATES} do not increase")
        if self.robot.floating_base and not bag[ODOMETRY]:
            remarks.append(f"no message of {ODOMETRY}, and the base floats: every state is refused")
        elif self._missing:
            remarks.append(f"{self._missing} states have no {ODOMETRY} of their own")
        remarks += self._joint_order(bag[STATES][0].data)
        return remarks

    def _joint_order(self, data: bytes) -> list[str]:
        """A remark if the recorded joints lack one of the robot's, or have another order."""
        names = read_message(JointState, data).name
        missing = [name for name in self.robot.joint_names if name not in names]
        if missing:
            return [f"{STATES} lacks {choices(missing)}: every state is refused"]
        if [name for name in names if name in self.robot.joint_names] == self.robot.joint_names:
            return []
        return [f"{STATES} names the joints in another order than the controller: taken by name"]

    def _result(self, remarks: list[str]) -> Replayed:
        """The rows as columns, with what was logged; StateError if no state was stepped."""
        rows = self._rows
        if not rows:
            raise StateError("no state of the bag was answered")
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return Replayed(
            **columns,
            period_s=self._recorded.period_s,
            joint_names=tuple(self.robot.joint_names),
            contact_names=tuple(self.loop.controller.contact_names),
            refusals=Counter(self.loop.monitor.refusals),
            followed=self.loop.guard.following.outcome,
            logged=self._logged,
            remarks=remarks,
        )
