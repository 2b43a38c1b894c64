"""Driving a robot: velocity commands from a page's stick and keys or from a joystick, on `cmd_vel`.

Whoever drives must go on saying so: a second of a phone's dead network must not walk a robot into a
wall. After `SILENCE_S` without a word the velocity is zero, and `cmd_vel_timeout_s` of the planner
counts besides, for the case that this process is gone.
"""

from __future__ import annotations

import ipaddress
import json
import math
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files

import numpy as np
from geometry_msgs.msg import Twist
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Joy
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from contact_id_controller.exceptions import RunError

SILENCE_S = 0.3
"""A page speaks ten times a second, a joystick more often."""

JOY_AXES = (1, 0, 3)
"""Forwards, left, turn left: two sticks, as the `joy` package numbers them."""

JOY_ENABLE = 4
"""Button of a joystick that must be held: the left one on top."""


class Drive:
    """Publishes `cmd_vel` while somebody drives, zero once when nobody does any more.

    Args:
        node: owner of the topics.
        speed_m_s, yaw_rate_rad_s: of a stick all the way out.
        clock: seconds that never jump.
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
        node.create_subscription(Joy, "joy", self._on_joy, 1)

    def want(self, stick) -> None:
        """Forwards, left and turn left, each -1 to 1; what is no three such numbers means stop."""
        try:
            wanted = np.array(stick, dtype=float)
        except (TypeError, ValueError):
            wanted = np.zeros(0)
        if wanted.shape != (3,) or not np.isfinite(wanted).all():
            wanted = np.zeros(3)
        self._wanted, self._said_s = np.clip(wanted, -1.0, 1.0), self._clock()

    def tick(self) -> None:
        """Say what is wanted now; call at 10 Hz or more."""
        silent = self._clock() - self._said_s > SILENCE_S
        wanted = np.zeros(3) if silent else self._wanted
        moving = bool(wanted.any())
        if moving or self._moving:
            message = Twist()
            velocity = (wanted * self._scale).tolist()
            message.linear.x, message.linear.y, message.angular.z = velocity
            self._publisher.publish(message)
        self._moving = moving

    def _on_joy(self, message: Joy) -> None:
        if len(message.buttons) <= JOY_ENABLE or len(message.axes) <= max(JOY_AXES):
            return
        if message.buttons[JOY_ENABLE]:
            self.want([message.axes[k] for k in JOY_AXES])
        elif self._moving:
            self.want(np.zeros(3))


class DrivePage:
    """The page with stick and keys, and the socket behind it, in threads of their own.

    Args:
        host, port: where it is.
        do: takes what a page says, a JSON object; called from any thread.

    Raises:
        RunError: the port is taken.
    """

    def __init__(self, host: str, port: int, do: Callable[[dict], None]) -> None:
        self._host, self._do = host, do
        self._pages: set[ServerConnection] = set()
        self._page = (files(__package__) / "pages" / "drive.html").read_bytes()
        try:
            self._server = serve(self._talk, host, port, process_request=self._answer)
        except OSError as error:
            raise RunError(f"no page at {host}:{port}: {error.strerror or error}") from error
        self.port: int = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def tell(self, line: str) -> None:
        """Show a line on every page."""
        for page in list(self._pages):
            try:
                page.send(line)
            except ConnectionClosed:
                self._pages.discard(page)

    def close(self) -> None:
        """End it."""
        self._server.shutdown()

    def _answer(self, _: ServerConnection, request: Request) -> Response | None:
        """The page, the socket (None), or why not: no other site's page may drive a robot."""
        host = request.headers.get("Host", "")
        origin = request.headers.get("Origin")
        if not self._is_ours(host) or (origin is not None and origin != f"http://{host}"):
            return _response(HTTPStatus.FORBIDDEN, b"a page of another site may not drive", "plain")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return None
        if request.path != "/":
            return _response(HTTPStatus.NOT_FOUND, b"not found", "plain")
        return _response(HTTPStatus.OK, self._page, "html")

    def _is_ours(self, host: str) -> bool:
        """An address, or the name that was chosen: names of others can be made to lead here."""
        name = host.rpartition(":")[0].strip("[]") or host
        if name in ("localhost", self._host):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _talk(self, page: ServerConnection) -> None:
        self._pages.add(page)
        try:
            for words in page:
                try:
                    said = json.loads(words)
                except ValueError:
                    continue
                if isinstance(said, dict):
                    self._do(said)
        finally:
            self._pages.discard(page)


def _response(status: HTTPStatus, body: bytes, kind: str) -> Response:
    headers = Headers()
    headers["Content-Type"] = f"text/{kind}; charset=utf-8"
    headers["Content-Length"] = str(len(body))
    headers["Cache-Control"] = "no-store"
    headers["X-Content-Type-Options"] = "nosniff"
    return Response(status.value, status.phrase, headers, body)
