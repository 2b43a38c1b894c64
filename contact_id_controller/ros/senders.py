"""Publishers of a topic: by discovery, and by the identity that each message carries.

Discovery alone does not tell who is alive: a killed process stays known for up to 20 s. Messages do; rclpy reports a
message's publisher from Kilted on, before it only discovery is available.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from contact_id_controller.ros.direct_loop import Polled

LOOK_PERIOD_S = 1.0
"""Time between two checks of discovery: 15 microseconds for a topic with one publisher, 0.15 ms for the names of
several."""

RECENT_S = 0.5
"""Time, s, after its last message for which a sender counts as sending."""

LISTEN_S = 0.1
"""Time, s, for which a newly found publisher is observed before commanding."""

_HEARD = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)


def identity_of(info: Mapping[str, Any]) -> bytes | None:
    """Identity of a message's publisher, from the information taken with it; None: unknown."""
    identity = info.get("publisher_gid")
    return None if identity is None else bytes(identity["data"])


_UNKNOWN = "/_NODE_NAME_UNKNOWN_"
"""ROS's name of a node that it does not know, or not yet."""


MOST_PUBLISHERS = 100
"""Largest number of publishers of a topic that is examined, in 3 ms: thousands would delay the loop."""


def publishers_of(node: Node, topic: str) -> dict[bytes, str] | None:
    """Known publishers of a topic: identity -> full name of the node.

    None if they are more than `MOST_PUBLISHERS`: they are not examined.
    """
    if node.count_publishers(topic) > MOST_PUBLISHERS:
        return None
    return {
        bytes(each.endpoint_gid): full_name(each.node_name, each.node_namespace)
        for each in node.get_publishers_info_by_topic(topic)
    }


def known_publishers_of(node: Node, topic: str) -> dict[bytes, str] | None:
    """As `publishers_of`, without those whose node discovery does not know yet."""
    found = publishers_of(node, topic)
    if found is None:
        return None
    return {identity: name for identity, name in found.items() if not name.endswith(_UNKNOWN)}


def full_name(name: str, namespace: str) -> str:
    """Full name of a node."""
    return f"{namespace.rstrip('/')}/{name}"


class OtherSenders:
    """Detects other senders on a topic on which a node publishes.

    It subscribes to the topic only while another node has a publisher there. Make it before the node's own publisher,
    and call `know_own` after. If the publishers are more than `MOST_PUBLISHERS`, every sender counts as another one,
    except this node and those that were known before to be allowed.

    Args:
        node: publishes on the topic.  topic, kind: name and type of message.
        allowed: full names of nodes that may send, too.
    """

    def __init__(self, node: Node, topic: str, kind: type, allowed: Sequence[str] = ()) -> None:
        self._node, self._kind = node, kind
        self.topic = node.resolve_topic_name(topic)
        self._allowed = frozenset(allowed)
        self._before = frozenset(publishers_of(node, self.topic) or ())
        self._own: frozenset[bytes] = frozenset()
        self._suspects: dict[bytes, str] = {}  # identity -> name of a node that may not send
        self._trusted: frozenset[bytes] = frozenset()
        self._crowd = 0  # publishers, where they are too many to list
        self._heard: Any = None  # subscription, while there are suspects
        self._polled = Polled()
        self._next_look_s = self._since_s = 0.0  # _since_s: it listens from then on
        self._last: dict[str, float] = {}  # name -> when it sent last, s

    def know_own(self) -> None:
        """Find the node's own publisher, just made: the one that was not there before."""
        mine = full_name(self._node.get_name(), self._node.get_namespace())
        found = publishers_of(self._node, self.topic) or {}
        self._own = frozenset(
            each for each, name in found.items() if name == mine and each not in self._before
        )

    def look(self, now_s: float) -> str:
        """Names of others that have sent in the last `RECENT_S`; empty: none."""
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + LOOK_PERIOD_S
            self._find()
        if self._heard is not None:
            self._listen(now_s)
        return ", ".join(
            sorted(name for name, last_s in self._last.items() if now_s - last_s < RECENT_S)
        )

    def listen_first(self) -> None:
        """Listen for `LISTEN_S` before a first command, if another node has a publisher not yet observed that long."""
        self.look(time.monotonic())
        while self._heard is not None and time.monotonic() - self._since_s < LISTEN_S:
            time.sleep(0.01)

    def destroy(self) -> None:
        """Destroy the subscription."""
        self._suspects, self._crowd = {}, 0
        self._attend()

    def _find(self) -> None:
        """Sort the topic's publishers into own, trusted and suspect; too many to list are a crowd."""
        if not self._own:
            self.know_own()
        others: dict[bytes, str] | None = {}
        count = self._node.count_publishers(self.topic)
        if count > 1 and (self._own or count > MOST_PUBLISHERS):
            others = publishers_of(self._node, self.topic)
        self._crowd = count if others is None else 0
        if others is not None:
            self._trusted = frozenset(each for each in others if others[each] in self._allowed)
            self._suspects = {
                identity: name
                for identity, name in others.items()
                if identity not in self._own and identity not in self._trusted
            }
        self._attend()

    def _attend(self) -> None:
        """Subscribe to the topic while there are suspects, to see whether they send."""
        attends = bool(self._suspects or self._crowd)
        if attends and self._heard is None:
            self._heard = self._node.create_subscription(
                self._kind,
                self.topic,
                lambda _: None,
                _HEARD,
                callback_group=self._polled,
                raw=True,
            )
            self._since_s = time.monotonic()
        elif not attends and self._heard is not None:
            self._node.destroy_subscription(self._heard)
            self._heard = None
            self._last.clear()

    def _listen(self, now_s: float) -> None:
        """Take the messages that have arrived; note when a suspect sent last, s."""
        for _ in range(_HEARD.depth):
            with self._heard.handle:
                taken = self._heard.handle.take_message(self._kind, True)
            if taken is None:
                return
            identity = identity_of(taken[1]) or b""
            name = self._suspects.get(identity)
            if name is None and self._crowd and identity not in self._own | self._trusted:
                name = "one of very many publishers"
            if name is not None:
                self._last[name] = now_s


class Sources:
    """Checks that each input of a node has one publisher, and the node a unique name.

    Args:
        node: has the inputs.  topics: their names.
        in_reserve: whether a second node of its name may stand by.
    """

    def __init__(self, node: Node, topics: Sequence[str], in_reserve: bool = False) -> None:
        self._node, self._in_reserve = node, in_reserve
        self._topics = [node.resolve_topic_name(topic) for topic in topics]
        self._next_look_s = 0.0
        self._namesakes = 0
        self.several: dict[str, str] = {}
        """Topic -> names of its publishers, if there are several."""

    def look(self, now_s: float) -> list[str]:
        """Lines for the log about new findings, at most once in `LOOK_PERIOD_S`."""
        if now_s < self._next_look_s:
            return []
        self._next_look_s = now_s + LOOK_PERIOD_S
        node, before = self._node, self.several
        self.several = {
            topic: self._names(topic) for topic in self._topics if node.count_publishers(topic) > 1
        }
        lines = [
            f"{topic} has several publishers: {names}"
            for topic, names in self.several.items()
            if before.get(topic) != names
        ]
        if self._in_reserve:
            return lines
        mine = node.get_name(), node.get_namespace()
        namesakes = node.get_node_names_and_namespaces().count(mine)
        if namesakes > max(self._namesakes, 1):
            lines.append(
                f"{namesakes} nodes are named {full_name(*mine)}, or were until 20 s ago: any of them "
                "may answer its services"
            )
        self._namesakes = namesakes
        return lines

    def _names(self, topic: str) -> str:
        found = publishers_of(self._node, topic)
        return (
            f"more than {MOST_PUBLISHERS}" if found is None else ", ".join(sorted(found.values()))
        )

    def figures(self) -> dict[str, str]:
        """Names and values for the diagnostics: only inputs with several publishers, and nodes of the same name."""
        figures = {f"publishers of {topic}": names for topic, names in self.several.items()}
        if self._namesakes > 1:
            figures["nodes of this name"] = str(self._namesakes)
        return figures
