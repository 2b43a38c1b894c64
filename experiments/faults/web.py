"""Faults of web clients: pages of other sites at every port of the live view."""

from __future__ import annotations

import http.client
import re
import threading

from experiments.faults.inputs import emergency_stop
from experiments.faults.nodes import viewer_line
from experiments.faults.row import WALKS_AGAIN, Fault, Observed, when_asked
from experiments.faults.world import FaultWorld

VIEWER, LOOPBACK = "viewer", "127.0.0.1"
ROUNDS = 50
PATIENCE_S = 60.0

_WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
_LINK = re.compile(rf"http://{re.escape(LOOPBACK)}:(\d+)(/\?token=\S+)")


def foreign_web_client(world: FaultWorld) -> Observed:
    """Knocks at both ports, for pages and websockets, while an emergency stop is requested."""
    printed = world.beside(VIEWER, viewer_line(world.file))
    doors = [(int(number), path) for number, path in _LINK.findall(printed)]
    answers: list[int] = []
    knocking = threading.Thread(target=_knock_at_all, args=(doors, answers), daemon=True)
    try:
        world.begin()
        knocking.start()
        world.need(lambda: len(answers) > len(doors), "answers of the viewer")
        observed = emergency_stop(world)
        world.need(lambda: not knocking.is_alive(), "the last answer of the viewer", PATIENCE_S)
    finally:
        world.nodes[VIEWER].end()
    refused, due = answers.count(http.HTTPStatus.FORBIDDEN), ROUNDS * len(_strangers(doors))
    ended = observed.ended if due and refused == due else f"{len(answers) - refused} let in"
    return Observed(observed.reaction_s, ended, f"{refused} of {due} refused, resumed on request")


def _strangers(doors: list[tuple[int, str]]) -> list[tuple[int, str, dict[str, str]]]:
    """Port, path and headers of each: another site, another name, no token, a wrong one."""
    found = []
    for port, link in doors:
        here, foreign = f"{LOOPBACK}:{port}", f"stranger.example:{port}"
        for kind in ({}, _WEBSOCKET):
            found += [
                (port, link, {**kind, "Host": here, "Origin": f"http://{foreign}"}),
                (port, link, {**kind, "Host": foreign, "Origin": f"http://{foreign}"}),
                (port, "/", {**kind, "Host": here, "Origin": f"http://{here}"}),
                (port, f"{link}a", {**kind, "Host": here}),
            ]
    return found


def _knock_at_all(doors: list[tuple[int, str]], answers: list[int]) -> None:
    for _ in range(ROUNDS):
        for port, path, headers in _strangers(doors):
            connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE_S)
            connection.request("GET", path, headers=headers)
            answers.append(connection.getresponse().status)
            connection.close()


FAULTS = (
    Fault(
        "emergency stop while a foreign web client knocks at the viewer",
        "each is answered 403; zero torque until it is released",
        when_asked,
        WALKS_AGAIN,
        foreign_web_client,
    ),
)
