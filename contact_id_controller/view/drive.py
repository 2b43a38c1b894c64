"""Drives a robot: velocity commands from a page's stick and keys or from a joystick, on `cmd_vel`.

Commands must be repeated: a robot must not continue to walk when a phone loses its network. After `SILENCE_S` without
one the velocity is zero; the planner's timeout covers the end of this process.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Joy
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from contact_id_controller.exceptions import RunError, StateError
from contact_id_controller.ros.packed import read_message
from contact_id_controller.view.gate import READ_S, Gate, answer_with, is_websocket

SILENCE_S = 0.3
"""Timeout of a velocity command; a page sends ten per second, a joystick more."""

TELL_S = 0.05
"""Longest delay until a page shows a new line."""

MESSAGE_BYTES = 4096
"""Longest message of a page; those of ours have about a hundred bytes."""

JOY_AXES = (1, 0, 3)
"""Forwards, left, turn left: two sticks, as the `joy` package numbers them."""

JOY_ENABLE = 4
"""Button of a joystick that must be held: the left one on top."""


class Drive:
    """Publishes `cmd_vel` while a page or a joystick drives, and zero once when that ends.

    Args:
        node: owner of the topics.
        speed_m_s, yaw_rate_rad_s: at full deflection.
        clock: seconds of a steady clock.
    """

    def __init__(
        self,
        node: Node,
        speed_m_s: float,
        yaw_rate_rad_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scale = np.array([speed_m_s, speed_m_s, yaw_rate_rad_s])
        self._clock = clock
        self._wanted, self._said_s, self._moving = np.zeros(3), -math.inf, False
        reliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        self._publisher = node.create_publisher(Twist, "cmd_vel", reliable)
        node.create_subscription(Joy, "joy", self._on_joy, 1, raw=True)

    def want(self, stick: Sequence[float] | np.ndarray) -> None:
        """Set the stick: forwards, left and turn left, clipped to -1 to 1; what is not three finite numbers means stop."""
        try:
            wanted = np.array(stick, dtype=float)
        except (TypeError, ValueError):
            wanted = np.zeros(0)
        if wanted.shape != (3,) or not np.isfinite(wanted).all():
            wanted = np.zeros(3)
        self._wanted, self._said_s = np.clip(wanted, -1.0, 1.0), self._clock()

    def tick(self) -> None:
        """Publish the present velocity; call it at 10 Hz or more."""
        silent = self._clock() - self._said_s > SILENCE_S
        wanted = np.zeros(3) if silent else self._wanted
        moving = bool(wanted.any())
        if moving or self._moving:
            message = Twist()
            velocity = (wanted * self._scale).tolist()
            message.linear.x, message.linear.y, message.angular.z = velocity
            self._publisher.publish(message)
        self._moving = moving

    def _on_joy(self, data: bytes) -> None:
        """Drive by a joystick while its enable button is held; stop once when it is released."""
        try:
            message = read_message(Joy, data)
        except StateError:
            return
        if len(message.buttons) <= JOY_ENABLE or len(message.axes) <= max(JOY_AXES):
            return
        if message.buttons[JOY_ENABLE]:
            self.want([message.axes[k] for k in JOY_AXES])
        elif self._moving:
            self.want(np.zeros(3))


class DrivePage:
    """The page with stick and keys, and its websocket, in threads of their own.

    Args:
        gate: checks requests.
        host, port: address of the page.
        do: called with each JSON object that a page sends; from any thread.

    Raises:
        RunError: the port is taken.
    """

    def __init__(
        self, gate: Gate, host: str, port: int, do: Callable[[dict[str, Any]], None]
    ) -> None:
        self._gate, self._do = gate, do
        self._told = (0, "")
        self._page = (files(__package__) / "pages" / "drive.html").read_bytes()
        try:
            self._server = serve(
                self._talk,
                host,
                port,
                process_request=self._answer,
                max_size=MESSAGE_BYTES,
                compression=None,
            )
        except OSError as error:
            raise RunError(f"no page at {host}:{port}: {error.strerror or error}") from error
        self.port: int = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def tell(self, line: str) -> None:
        """Show a line on every page; a page that does not read delays nothing."""
        self._told = (self._told[0] + 1, line)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()

    def _answer(self, _: ServerConnection, request: Request) -> Response | None:
        """The page, None for its websocket, or a refusal."""
        if refusal := self._gate.refusal(request):
            return refusal
        if is_websocket(request):
            return None
        if request.path.partition("?")[0] != "/":
            return answer_with(HTTPStatus.NOT_FOUND, b"not found", "plain")
        return answer_with(HTTPStatus.OK, self._page, "html")

    def _talk(self, page: ServerConnection) -> None:
        """Serve one page: receive its messages, send it each new line."""
        shown = self._told
        with contextlib.suppress(ConnectionClosed):
            while True:
                with contextlib.suppress(TimeoutError):
                    self._take(page.recv(timeout=TELL_S))
                    time.sleep(READ_S)
                if self._told != shown:
                    shown = self._told
                    page.send(shown[1])

    def _take(self, words: str | bytes) -> None:
        try:
            request = json.loads(words)
        except (ValueError, RecursionError):
            return
        if isinstance(request, dict):
            self._do(request)
