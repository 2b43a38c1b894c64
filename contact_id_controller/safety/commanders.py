"""Who may command: one at a time. Knows no ROS; identities come from the middleware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Sender(NamedTuple):
    """Who sent a command: the publisher's identity, and its node's full name ("" while unknown)."""

    identity: bytes
    node: str


class Commanders:
    """Follows one sender of commands, and refuses all others until it is let go.

    Then whoever may is followed from the first command of his on that is passed on. By default that is
    anybody; but where the controller that is watched has a publisher of commands, it is that controller.

    A sender without identity (a middleware that does not tell) is taken for the one that is followed.

    Args:
        allowed: full names of the nodes that may command; empty: the rule above.
        controller: full name of the controller that is watched.
        publishers: who could send at present, None: too many to look at; called only for a sender that is
            not followed. Of many those that were known before may command, and no other.

    Attributes:
        followed: the one; None: none.
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
        """Why a command of this sender is not looked at; empty when it is."""
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
        """A command of this sender was passed on; whether it is another one than before."""
        if identity is None or self._is_followed(identity):
            return False
        self.followed = Sender(identity, self._node(identity, now_s))
        return True

    def known(self, now_s: float) -> Sender | None:
        """The one that is followed, by name as soon as that is known."""
        if self.followed is not None and not self.followed.node:
            identity = self.followed.identity
            self.followed = Sender(identity, self._node(identity, now_s))
        return self.followed

    def let_go(self) -> None:
        """Follow no sender: the commands have stopped."""
        self.followed = None

    def _is_followed(self, identity: bytes) -> bool:
        return self.followed is not None and self.followed.identity == identity

    def _node(self, identity: bytes, now_s: float) -> str:
        """Full name of a sender's node, looked up at most each `ASK_PERIOD_S`: it may send at any rate."""
        if now_s - self._asked_s >= ASK_PERIOD_S:
            found, self._asked_s = self._publishers(), now_s
            self._crowded = found is None
            if found is not None:
                self._known = found
        return self._known.get(identity, "")


ASK_PERIOD_S = 0.02
"""A name is known by discovery some milliseconds after the first message at the latest."""
