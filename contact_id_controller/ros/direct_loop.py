"""Serves a node's busiest subscriptions at 1 kHz, which rclpy's executors alone do not.

rclpy builds a wait set of all services, timers and events of a node, in Python, several times a
message: about half a millisecond of CPU a cycle on a small machine. Here only the given
subscriptions are waited on, and the executor gets a short turn every few milliseconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.executors import TimeoutException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.service import Service
from rclpy.subscription import Subscription

from contact_id_controller.ros.executor import GuardedExecutor

WHOLE_TURN_S = 0.5
"""Longest time between turns in which the executor itself looks at everything."""

AT_ONCE_S = 0.0003
"""A turn that has taken so long goes on after the next message: one that keeps the newest only loses what came before."""

KEPT_IN_LOCKSTEP = 1000
"""Messages that a sender keeps for whoever has not got them yet. Only who takes part is waited for in lockstep; a
recorder that gets no processor for some periods has as many states to catch up on."""

MOST_LISTS = 8
"""Whose handles are kept: more are not in use at once."""

PATIENT_SHARE, PATIENT_AT_ONCE_S = 0.25, 0.02
"""Of the time goes to patient subscriptions, at most, but for the parts of a plan that come together."""


def age_s(info: Mapping[str, Any]) -> float:
    """How long ago a message was sent, s, by the clocks of both machines; 0 where it is unknown."""
    sent_ns = info.get("source_timestamp", 0)
    return 1e-9 * (time.time_ns() - sent_ns) if sent_ns > 0 else 0.0


class Polled(CallbackGroup):
    """Of subscriptions that are looked at now and then: neither executor nor loop serves them."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


def take(subscription: Subscription) -> tuple[Any, Mapping[str, Any]] | None:
    """The next message that waits in a subscription, with the middleware's information on it; runs no callback.

    A raw subscription gives it serialised.
    """
    handle = subscription.handle
    with handle:
        return handle.take_message(subscription.msg_type, subscription.raw)


def take_newest(subscription: Subscription) -> Any:
    """The newest message that waits in a subscription of depth 1, or None; runs no callback."""
    taken = take(subscription)
    return None if taken is None else taken[0]


def take_waiting(subscription: Subscription) -> Sequence[Any]:
    """What waits in a subscription, the oldest first; runs no callback.

    No more than it keeps: in a flood there is always one more.
    """
    found: list[Any] = []
    handle, kind, raw = subscription.handle, subscription.msg_type, subscription.raw
    with handle:
        for _ in range(subscription.qos_profile.depth):
            taken = handle.take_message(kind, raw)
            if taken is None:
                break
            found.append(taken[0])
    return found


def hand_on_newest(subscription: Subscription) -> bool:
    """Run the callback of a subscription with the newest message that waits; whether there was one.

    A callback of two arguments gets the middleware's information on the message, as from rclpy.
    """
    handle = subscription.handle
    with handle:
        taken = handle.take_message(subscription.msg_type, subscription.raw)
    if taken is None:
        return False
    if subscription._callback_type is Subscription.CallbackType.WithMessageInfo:
        subscription.callback(*taken)
    else:
        subscription.callback(taken[0])
    return True


def _answer(service: Service) -> None:
    """Answer a request that waits, if there is one."""
    with service.handle:
        request, header = service.handle.service_take_request(service.srv_type.Request)
    if header is not None:
        service.send_response(service.callback(request, service.srv_type.Response()), header)


class DirectLoop:
    """Waits for some subscriptions directly and lets an executor do the rest of the node.

    Everything runs in the thread that calls `spin_once`, so callbacks never overlap. The node needs
    nothing for it: under a plain executor the same callbacks run, only later. Errors of callbacks, and
    of the taking of what is for them, go to the executor's incidents, and no further.

    Args:
        executor: holds the node; gets a turn every `turn_interval_s`, and when nothing arrives.
        subscriptions: returns the subscriptions to serve now (it may return none), in order of
            importance: the same list as long as they are the same. So do the others.
        patient: returns subscriptions of which one, in turn, is served after a wait: a state
            that comes amid the parts of a plan is not held back by all of them. In a flood they get
            ``PATIENT_SHARE`` of the time.
        services: returns the services to wait for, too, such as an emergency stop, answered before all
            else; all others wait for a turn.
        polled: returns subscriptions that callbacks take from themselves: what waits there asks for no turn.
        turn_interval_s, turn_s: time between turns, and how long a turn goes on while callbacks are
            ready; one without any costs a tenth of a millisecond. While messages come it is taken in parts
            of ``AT_ONCE_S``, or of one callback.
        look_interval_s: while the subscriptions keep the loop busy, so rarely patient ones are waited
            for, too: each more costs every wait.
        between: called after each turn.
        looked: called after each wait, before the messages it found are handed on.
    """

    def __init__(
        self,
        executor: GuardedExecutor,
        subscriptions: Callable[[], Sequence[Subscription]],
        patient: Callable[[], Sequence[Subscription]] | None = None,
        services: Callable[[], Sequence[Service]] | None = None,
        polled: Callable[[], Sequence[Subscription]] = lambda: (),
        turn_interval_s: float = 0.02,
        turn_s: float = 0.002,
        look_interval_s: float = 0.0,
        between: Callable[[], None] = lambda: None,
        looked: Callable[[], None] | None = None,
    ) -> None:
        self._executor = executor
        self._guarded, self._caught = executor.incidents.guarded, executor.incidents.caught
        self._subscriptions, self._patient = subscriptions, patient
        self._services, self._polled = services, polled
        self._turn_interval_s = turn_interval_s
        self._turn_s, self._between, self._looked = turn_s, between, looked
        self._look_interval_s = look_interval_s
        self._next_turn_s = self._whole_turn_s = self._next_look_s = self._rested_s = 0.0
        self._next_patient = 0
        self._parts: Iterator[bool] | None = None  # of a turn that has begun
        self._wait_sets: dict[tuple[int, int], rclpy_implementation.WaitSet] = {}  # by sizes
        self._both: tuple[Sequence[Subscription], ...] = [], [], []
        self._known: dict[int, tuple[Any, ...]] = {}  # by identity of lists

    def spin_once(self, timeout_s: float) -> None:
        """Wait for messages up to `timeout_s`, run their callbacks, and give turns when due."""
        subscriptions = self._subscriptions()
        if not subscriptions:
            self._run_one(timeout_s)
            self._between()
            return
        patient = self._patient() if self._patient is not None else ()
        services = self._services() if self._services is not None else ()
        now_s, looks, waited = time.monotonic(), False, subscriptions
        if patient and now_s >= self._next_look_s and now_s >= self._rested_s - PATIENT_AT_ONCE_S:
            looks, waited = True, self._with_patient(subscriptions, patient)
        ready = self._wait(waited, services, timeout_s)
        if self._looked is not None:
            self._looked()
        for pointer, service in self._known_of(services)[2] if services else ():
            if pointer in ready:
                self._guarded(service.srv_type.__name__, _answer, service)
        busy = more = False
        for pointer, each in self._known_of(subscriptions)[2]:
            if pointer in ready:
                busy |= self._hand_on(each)
        if looks:
            begun_s = time.thread_time()
            more = self._take_one(patient, ready)
            if more:
                took_s = time.thread_time() - begun_s
                self._rested_s = max(self._rested_s, now_s) + took_s / PATIENT_SHARE
        now_s = time.monotonic()
        if looks or not busy:
            self._next_look_s = now_s + self._look_interval_s if busy and not more else 0.0
        if not ready or now_s >= self._next_turn_s:
            self._turn([*subscriptions, *patient, *self._polled()], busy)

    def _with_patient(
        self, subscriptions: Sequence[Subscription], patient: Sequence[Subscription]
    ) -> Sequence[Subscription]:
        """Both, in one list that stays the same as long as they do."""
        first, second, both = self._both
        if first is not subscriptions or second is not patient:
            both = [*subscriptions, *patient]
            self._both = subscriptions, patient, both
        return both

    def _take_one(self, patient: Sequence[Subscription], ready: Sequence[int]) -> bool:
        """Hand on the newest message of one that waits, in turn; whether there was one."""
        for step in range(len(patient)):
            place = (self._next_patient + step) % len(patient)
            if patient[place].handle.pointer in ready and self._hand_on(patient[place]):
                self._next_patient = place + 1
                return True
        return False

    def _hand_on(self, subscription: Subscription) -> bool:
        try:
            return hand_on_newest(subscription)
        except Exception as error:
            self._caught(subscription.msg_type.__name__, error)
            return False

    def _wait(
        self, subscriptions: Sequence[Subscription], services: Sequence[Service], timeout_s: float
    ) -> list[int]:
        """Handles of those where something waits, as soon as there is one."""
        size = len(subscriptions), len(services)
        wait_set = self._wait_sets.get(size)
        if wait_set is None:
            handle = self._executor.context.handle
            wait_set = rclpy_implementation.WaitSet(size[0], 0, 0, 0, size[1], 0, handle)
            self._wait_sets[size] = wait_set
        wait_set.clear_entities()
        for handle in self._known_of(subscriptions)[1]:
            wait_set.add_subscription(handle)
        if services:
            for handle in self._known_of(services)[1]:
                wait_set.add_service(handle)
        wait_set.wait(int(timeout_s * 1e9))
        ready: list[int] = wait_set.get_ready_entities("subscription")
        return [*ready, *wait_set.get_ready_entities("service")] if services else ready

    def _known_of(self, entities: Sequence[Any]) -> tuple[Any, ...]:
        """A list, handles of its entities, and each with what a wait names it by; kept, as asking takes as long as waiting."""
        known = self._known.get(id(entities))
        if known is None:
            if len(self._known) > MOST_LISTS:
                self._known.clear()
            handles = [each.handle for each in entities]
            named = [(handle.pointer, each) for handle, each in zip(handles, entities)]
            known = self._known[id(entities)] = entities, handles, named
        return known

    def _turn(self, served: Sequence[Subscription], busy: bool) -> None:
        """Begin a turn, or go on with it; while messages come (``busy``), with as much as may be done at once."""
        begun_s, parts, self._parts = time.monotonic(), self._parts, None
        parts = self._parts_of_turn(served) if parts is None else parts
        for long_one_next in parts:
            if busy and (long_one_next or time.monotonic() - begun_s >= AT_ONCE_S):
                self._parts, self._next_turn_s = parts, -math.inf  # after the next message
                return
        self._next_turn_s = time.monotonic() + self._turn_interval_s

    def _parts_of_turn(self, served: Sequence[Subscription]) -> Iterator[bool]:
        """Serve what is due, one after the other: by the executor, up to `turn_s`, only where nothing else can, and at times.

        Yields whether what follows takes long.
        """
        for _ in self._executor.run_timers():
            yield False
        end_s = time.monotonic() + self._turn_s
        waiting, others = self._executor.asked_for(served)
        while waiting:  # one of each, again and again: a queue may hold several
            waiting = [each for each in waiting if self._hand_on(each)]
            if time.monotonic() >= end_s:
                break
        if others or time.monotonic() >= self._whole_turn_s:
            yield True
            end_s = time.monotonic() + self._turn_s
            self._whole_turn_s = time.monotonic() + WHOLE_TURN_S
            while self._run_one(0.0) and time.monotonic() < end_s:
                pass
        yield False
        self._between()

    def _run_one(self, timeout_s: float) -> bool:
        """Run one callback of the executor; whether one was ready in time."""
        try:
            handler, _, _ = self._executor.wait_for_ready_callbacks(timeout_sec=timeout_s)
        except TimeoutException:
            return False
        handler()
        self._guarded("callback", handler.result)
        return True
