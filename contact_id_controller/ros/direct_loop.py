"""Serves a node's busiest subscriptions at 1 kHz, which rclpy's executors alone do not.

rclpy builds a wait set of all services, timers and events of a node, in Python, several times per message: about half a
millisecond of CPU per cycle on a small machine. Here only the given subscriptions are waited for, and the executor gets
a short turn every few milliseconds.
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
"""Longest time between turns in which the executor itself runs, with all entities."""

AT_ONCE_S = 0.0003
"""A turn is interrupted after this long until the next message: a queue of depth 1 would lose messages meanwhile."""

KEPT_IN_LOCKSTEP = 1000
"""Queue length of publishers in lockstep, which wait for no subscribers but the participants: a recorder without a
processor for some periods has as many states to catch up on."""

MOST_LISTS = 8
"""Number of entity lists whose handles are cached."""

PATIENT_SHARE, PATIENT_AT_ONCE_S = 0.25, 0.02
"""Largest share of the time for patient subscriptions, and time beyond it for parts of a plan that arrive together."""


_WITH_INFO = Subscription.CallbackType.WithMessageInfo


def age_s(info: Mapping[str, Any]) -> float:
    """Time since a message was sent, s, by the clocks of both machines; 0 where it is unknown."""
    sent_ns = info.get("source_timestamp", 0)
    return 1e-9 * (time.time_ns() - sent_ns) if sent_ns > 0 else 0.0


class Polled(CallbackGroup):
    """Callback group of subscriptions that callbacks poll: neither executor nor loop serves them."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


def take(subscription: Subscription) -> tuple[Any, Mapping[str, Any]] | None:
    """Take the next message of a subscription and the middleware's information on it, without its callback; None: none.

    A raw subscription returns it serialised.
    """
    handle = subscription.handle
    with handle:
        return handle.take_message(subscription.msg_type, subscription.raw)


def take_newest(subscription: Subscription) -> Any:
    """The newest message in a subscription of depth 1, without its callback; None: none waits."""
    taken = take(subscription)
    return None if taken is None else taken[0]


def take_waiting(subscription: Subscription) -> Sequence[Any]:
    """The messages that wait in a subscription, oldest first, without its callback.

    At most its queue length: in a flood there is always one more.
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
    """Run a subscription's callback with the next message; return whether there was one.

    A callback of two arguments also gets the middleware's information on the message, as in rclpy.
    """
    handle = subscription.handle
    with handle:
        taken = handle.take_message(subscription.msg_type, subscription.raw)
    if taken is None:
        return False
    if subscription._callback_type is _WITH_INFO:
        subscription.callback(*taken)
    else:
        subscription.callback(taken[0])
    return True


def _answer(service: Service) -> None:
    """Serve a waiting request of a service, if there is one."""
    with service.handle:
        request, header = service.handle.service_take_request(service.srv_type.Request)
    if header is not None:
        service.send_response(service.callback(request, service.srv_type.Response()), header)


class DirectLoop:
    """Waits for some subscriptions directly, and lets an executor do the rest of the node.

    Everything runs in the thread that calls `spin_once`, so callbacks never overlap. The node needs no changes: under
    a plain executor the same callbacks run, only later. Errors in taking messages and in callbacks are caught and
    counted by the executor's incidents.

    Args:
        executor: holds the node; gets a turn every `turn_interval_s`, and when nothing arrives.
        subscriptions: returns the subscriptions to serve now (it may return none), in order of
            importance: the same list object as long as they do not change. So do the others.
        patient: returns subscriptions of which one, in turn, is served after a wait, so that the parts of a plan
            do not delay a state together. In a flood they get ``PATIENT_SHARE`` of the time.
        services: returns services to wait for, too, such as an emergency stop, served first;
            all others wait for a turn.
        polled: returns subscriptions that callbacks poll: messages there cause no turn.
        turn_interval_s, turn_s: time between turns, and how long a turn lasts while callbacks are
            ready; a turn without any costs 0.1 ms. While messages arrive it is taken in parts
            of ``AT_ONCE_S``, or of one callback.
        look_interval_s: time between waits that include patient subscriptions, while the others keep the
            loop busy: each more costs every wait.
        between: called after each turn.
        looked: called after each wait, before callbacks run.
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
        """Wait for messages up to `timeout_s`, run their callbacks, and a turn when it is due."""
        subscriptions = self._subscriptions()
        if not subscriptions:
            self._run_one(timeout_s)
            self._between()
            return
        patient = self._patient() if self._patient is not None else ()
        services = self._services() if self._services is not None else ()
        known, asked = self._known_of(subscriptions), self._known_of(services)
        now_s, looks, waited = time.monotonic(), False, known
        if patient and now_s >= self._next_look_s and now_s >= self._rested_s - PATIENT_AT_ONCE_S:
            looks, waited = True, self._known_of(self._with_patient(subscriptions, patient))
        ready = self._wait(waited[1], asked[1], timeout_s)
        if self._looked is not None:
            self._looked()
        for pointer, service in asked[2]:
            if pointer in ready:
                self._guarded(service.srv_type.__name__, _answer, service)
        busy = more = False
        for pointer, each in known[2]:
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
        """Both in one list, the same object as long as they do not change."""
        first, second, both = self._both
        if first is not subscriptions or second is not patient:
            both = [*subscriptions, *patient]
            self._both = subscriptions, patient, both
        return both

    def _take_one(self, patient: Sequence[Subscription], ready: Sequence[int]) -> bool:
        """Serve the next patient subscription, in turn, that has a message; return whether there was one."""
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
        self, subscriptions: Sequence[Any], services: Sequence[Any], timeout_s: float
    ) -> list[int]:
        """Wait until one of these handles is ready, or for ``timeout_s``; return the pointers of ready ones."""
        size = len(subscriptions), len(services)
        wait_set = self._wait_sets.get(size)
        if wait_set is None:
            handle = self._executor.context.handle
            wait_set = rclpy_implementation.WaitSet(size[0], 0, 0, 0, size[1], 0, handle)
            self._wait_sets[size] = wait_set
        wait_set.clear_entities()
        for handle in subscriptions:
            wait_set.add_subscription(handle)
        for handle in services:
            wait_set.add_service(handle)
        wait_set.wait(int(timeout_s * 1e9))
        ready: list[int] = wait_set.get_ready_entities("subscription")
        return [*ready, *wait_set.get_ready_entities("service")] if services else ready

    def _known_of(self, entities: Sequence[Any]) -> tuple[Any, ...]:
        """The list, its entities' handles, and (pointer, entity) of each; cached: making it takes as long as a wait."""
        known = self._known.get(id(entities))
        if known is None:
            if len(self._known) > MOST_LISTS:
                self._known.clear()
            handles = [each.handle for each in entities]
            named = [(handle.pointer, each) for handle, each in zip(handles, entities)]
            known = self._known[id(entities)] = entities, handles, named
        return known

    def _turn(self, served: Sequence[Subscription], busy: bool) -> None:
        """Start or continue a turn; while messages arrive (``busy``) only for AT_ONCE_S."""
        begun_s, parts, self._parts = time.monotonic(), self._parts, None
        parts = self._parts_of_turn(served) if parts is None else parts
        for long_one_next in parts:
            if busy and (long_one_next or time.monotonic() - begun_s >= AT_ONCE_S):
                self._parts, self._next_turn_s = parts, -math.inf  # after the next message
                return
        self._next_turn_s = time.monotonic() + self._turn_interval_s

    def _parts_of_turn(self, served: Sequence[Subscription]) -> Iterator[bool]:
        """Run timers and callbacks that are due, one at a time; the executor itself, up to `turn_s`, only if needed.

        Yields after each whether the next part takes long.
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
        """Run one callback of the executor; return whether one was ready in time."""
        try:
            handler, _, _ = self._executor.wait_for_ready_callbacks(timeout_sec=timeout_s)
        except TimeoutException:
            return False
        handler()
        self._guarded("callback", handler.result)
        return True
