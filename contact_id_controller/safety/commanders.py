"""Which node may command: one at a time. Without ROS; identities come from the middleware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Sender(NamedTuple):
    """Sender of a command: the publisher's identity, and its node's full name ("" while unknown)."""

    identity: bytes
    node: str


class Commanders:
    """Follows one sender of commands and refuses all others until `let_go`.

    After that the next allowed sender whose command is passed on is followed. By default every node is allowed, unless
    the
    controller that is watched has a publisher of commands: then only that controller. A sender without identity (the
    middleware reports none) is taken for the followed one.

    Args:
        allowed: full names of the nodes that may command; empty: the default.
        controller: full name of the controller that is watched.
        publishers: returns identity -> node of the present publishers, None if they are too many to look at (only
            those known before may command then); called only for a sender that is not followed.

    Attributes:
        followed: the followed sender; None: none.
    """

    def __init__(
        self,
        allowed: Sequence[str],
        controller: str,
        publishers: Callable[[], dict[bytes, str] | None],
    ) -> None:
        self._allowed, self._controller = frozenset(allowed), controller
        self._publishers = publishers
        self.followed: Sender | None = None
        self._known: dict[bytes, str] = {}
        self._asked_s = -1.0
        self._crowded = False

    def refusal(self, identity: bytes | None, now_s: float) -> str:
        """Why a command of this sender is refused; empty: it is not."""
        if identity is None or self._is_followed(identity):
            return ""
        if self.followed is not None:
            return "second_commander"
        node = self._node(identity, now_s)
        if self._allowed:
            return "" if node in self._allowed else "not_a_commander"
        if self._crowded and not node:
            return "not_a_commander"
        watched = self._controller in self._known.values()
        return "not_a_commander" if watched and node != self._controller else ""

    def follow(self, identity: bytes | None, now_s: float) -> bool:
        """Note that a command of this sender was passed on; return whether the followed sender changed."""
        if identity is None or self._is_followed(identity):
            return False
        self.followed = Sender(identity, self._node(identity, now_s))
        return True

    def known(self, now_s: float) -> Sender | None:
        """The followed sender, with its node's name as soon as discovery has it."""
        if self.followed is not None and not self.followed.node:
            identity = self.followed.identity
            self.followed = Sender(identity, self._node(identity, now_s))
        return self.followed

    def let_go(self) -> None:
        """Follow no sender: its commands have stopped."""
        self.followed = None

    def _is_followed(self, identity: bytes) -> bool:
        return self.followed is not None and self.followed.identity == identity

    def _node(self, identity: bytes, now_s: float) -> str:
        """Full name of a sender's node, "" if unknown; publishers are looked up at most once per `ASK_PERIOD_S`."""
        if now_s - self._asked_s >= ASK_PERIOD_S:
            found, self._asked_s = self._publishers(), now_s
            self._crowded = found is None
            if found is not None:
                self._known = found
        return self._known.get(identity, "")


ASK_PERIOD_S = 0.02
"""Least time between two look-ups; discovery has a name some milliseconds after the first message at the latest."""
