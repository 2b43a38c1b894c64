"""The order of a controller's actions, from its bag: states observed or stepped, and events.

In lockstep each state is answered by one command. In real time some are not: the controller takes the newest.
`~/events` records between which states plans were taken, parameters changed and so on; a bag without it is ordered by
the times of its messages, with a remark.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from std_msgs.msg import String

from contact_id_controller.exceptions import RecordError, StateError
from contact_id_controller.logs.bag_files import STATES
from contact_id_controller.ros.packed import read_message, stamp_ns
from contact_id_controller.ros.plan_bytes import MOST_BYTES
from contact_id_controller.view.bag import Bag, Message
from contact_id_controller.view.topics import EVENTS, PLANS

OBSERVE, STEP, EVENT = "observe", "step", "event"
STARTED, PLAN, STOPPED = "started", "plan", "stopped"
SENDING = (STOPPED, "silence", "odometry_missing", "emergency_stop")
"""Events that send a command; the emergency stop only while the controller is active."""


@dataclasses.dataclass(frozen=True)
class Action:
    """One action of the controller.

    Attributes:
        kind: `OBSERVE` or `STEP` a state, or `EVENT`.
        state: index of the state.
        event: the JSON object of the event.
        command: index of the command that it sent; None: none, or not recorded.
    """

    kind: str
    state: int = -1
    event: dict[str, Any] = dataclasses.field(default_factory=dict)
    command: int | None = None


@dataclasses.dataclass(frozen=True)
class Timeline:
    """The actions in order, and what is uncertain about them, one line each."""

    actions: list[Action]
    remarks: list[str]


def events_of(bag: Bag) -> list[dict[str, Any]]:
    """The events of `~/events` in order.

    Raises:
        RecordError: a message of the topic is no event.
    """
    events = []
    for message in bag[EVENTS]:
        try:
            event = json.loads(read_message(String, message.data, MOST_BYTES).data)
            events.append(
                (int(event["number"]), int(event["after_ns"]), str(event["event"]), event)
            )
        except (ValueError, KeyError, TypeError, StateError) as error:
            raise RecordError(
                f"a message of {EVENTS} in {str(bag.path)!r} is none: {error}"
            ) from error
    events.sort(key=lambda entry: entry[0])
    # Number 0 may come several times, if the controller was configured again.
    return [event for *_, event in events]


def steady_stamps(messages: Sequence[Message]) -> np.ndarray:
    """Stamps (n,), ns; where one alone is ahead of the next it counts as the one before."""
    stamps = np.array([stamp_ns(message.data) for message in messages], dtype=np.int64)
    alone = (stamps[1:-1] > stamps[2:]) & (stamps[2:] >= stamps[:-2])
    return np.concatenate([stamps[:1], np.where(alone, stamps[:-2], stamps[1:-1]), stamps[1:][-1:]])


def timeline_of(bag: Bag, commands: Sequence[Message], lockstep: bool, period_ns: int) -> Timeline:
    """Order the messages of a bag.

    Args:
        commands: recorded commands.  lockstep: mode of the run.  period_ns: control period.

    Raises:
        RecordError: there is neither a command nor the event of a start.
    """
    states = bag[STATES]
    stamps = np.array([stamp_ns(message.data) for message in states])
    events, remarks = events_of(bag), []
    if not any(event["event"] == STARTED for event in events):
        if not commands:
            raise RecordError(
                f"the bag {str(bag.path)!r} has neither commands nor {EVENTS}: nothing was sent"
            )
        what = "no message of ~/events" if not events else "no event of the start"
        remarks.append(
            f"{what}: when the controller was activated and took plans is inferred from the times of "
            "messages; torques can differ where the true order was another one"
        )
        events = _by_times(bag, commands, stamps, lockstep)
    elif events[0]["number"] > 0:
        remarks.append(f"the bag begins after {events[0]['number']} events of the controller")
    if lockstep:
        return _in_lockstep(states, stamps, events, commands, remarks)
    return _in_real_time(states, stamps, events, commands, period_ns, remarks)


def _by_times(bag: Any, commands: Any, stamps: Any, lockstep: bool) -> list[dict[str, Any]]:
    """Start and plans as events, by the times at which messages were sent."""
    sent = np.array([message.time_ns for message in bag[STATES]])

    def after(time_ns: int) -> int:
        number = int(np.searchsorted(sent, time_ns, side="right")) - 1
        return int(stamps[number]) if number >= 0 else 0

    stops = int((np.array([message.time_ns for message in commands]) > sent[-1]).sum()) > 1
    begun = max(0, int(np.searchsorted(sent, commands[0].time_ns)) - 1)
    if lockstep:
        # Every state since the start is answered: counting is more reliable than the times of a busy node.
        begun = max(0, min(begun, len(sent) - (len(commands) - stops)))
    else:
        begun = max(0, begun - 1)  # the state that is answered first comes after the start
    found = [(0, {"event": STARTED, "after_ns": int(stamps[begun])})]
    for topic in PLANS:
        for message in bag[topic]:
            place = after(message.time_ns)
            if place >= stamps[begun]:
                facts = {"topic": topic, "stamp_ns": stamp_ns(message.data)}
                found.append((message.time_ns, {"event": PLAN, "after_ns": place, **facts}))
    if stops:
        found.append((commands[-1].time_ns, {"event": STOPPED, "after_ns": int(stamps[-1])}))
    found.sort(key=lambda entry: entry[0])
    return [event for _, event in found]


class _Cursor:
    """Returns events in the order of states, and tracks whether the controller is active."""

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        self._events, self._next = list(events), 0
        self.active = False

    def until(self, stamp: int, of: int | None = None) -> Iterator[Any]:
        """Events that followed states up to this stamp, or a state of the stamp ``of``."""
        while self._next < len(self._events):
            event = self._events[self._next]
            if event["after_ns"] > stamp and event["after_ns"] != of:
                return
            self._next += 1
            if event["event"] == STARTED:
                self.active = True
            elif event["event"] == STOPPED:
                self.active = False
            yield event


def sends(event: dict[str, Any]) -> bool:
    """Whether an event sends a command."""
    return event.get("event") in SENDING and event.get("active", True)


def _in_lockstep(
    states: Any, stamps: Any, events: Any, commands: Any, remarks: list[str]
) -> Timeline:
    """Timeline in lockstep: every state since the start is answered, also the one before it, which waited."""
    actions = _lockstep_actions(states, stamps, events)
    sending = [k for k, action in enumerate(actions) if action.kind == STEP or sends(action.event)]
    if len(sending) == len(commands):
        numbers: dict[int, Any] = dict(zip(sending, range(len(commands))))
    else:
        missing = len(sending) - len(commands)
        remarks.append(
            f"{missing} of {len(sending)} commands are not in the bag"
            if missing > 0
            else f"the bag has {-missing} commands more than answers to its states"
        )
        # By their times: a state is sent after the answer to the one before.
        answers, _ = _answered(states, commands)
        numbers = {k: answers.get(actions[k].state) for k in sending if actions[k].kind == STEP}
    return Timeline(
        [
            dataclasses.replace(action, command=numbers.get(k)) if k in numbers else action
            for k, action in enumerate(actions)
        ],
        remarks,
    )


def _lockstep_actions(states: Any, stamps: Any, events: Any) -> list[Action]:
    """The actions, without the indices of commands."""
    cursor = _Cursor(events)
    actions = [Action(EVENT, event=event) for event in cursor.until(0)]
    steady = steady_stamps(states).tolist()
    for number in range(len(states)):
        actions.append(Action(STEP if cursor.active else OBSERVE, number))
        for event in cursor.until(steady[number], int(stamps[number])):
            actions.append(Action(EVENT, event=event))
            if event["event"] == STARTED:
                actions.append(Action(STEP, number))
    return actions


def _in_real_time(
    states: Any, stamps: Any, events: Any, commands: Any, period_ns: int, remarks: list[str]
) -> Timeline:
    """Timeline in real time: a command answers the newest unanswered state that was sent before it."""
    cursor, actions = _Cursor(events), []
    answers, odd = _answered(states, commands)
    skipped = 0
    actions += [Action(EVENT, event=event) for event in cursor.until(0)]
    steady = steady_stamps(states).tolist()
    for number in range(len(states)):
        if not cursor.active:
            actions.append(Action(OBSERVE, number))
        elif number in answers:
            actions.append(Action(STEP, number, command=answers[number]))
        else:
            skipped += 1
            continue
        found = cursor.until(steady[number], int(stamps[number]))
        actions += [Action(EVENT, event=event) for event in found]
    if skipped:
        remarks.append(f"{skipped} of {len(states)} states were not answered and are left out")
    if odd:
        remarks.append(f"{odd} commands belong to no state of the bag")
    return Timeline(actions, remarks)


def _answered(states: Sequence[Message], commands: Sequence[Message]) -> tuple[dict[int, int], int]:
    """State -> command, by the times of sending; and the number of commands without a state."""
    sent = np.array([message.time_ns for message in states])
    last = np.searchsorted(sent, [message.time_ns for message in commands]) - 1
    answers: dict[int, int] = {}
    before, odd = -1, 0
    for k, newest in enumerate(last.tolist()):
        # Two commands after one state: the first answered the state before.
        shared = k + 1 < len(last) and last[k + 1] == newest
        number = newest - 1 if shared and newest - 1 > before else newest
        if number <= before:
            odd += 1
            continue
        answers[number], before = k, number
    return answers, odd
