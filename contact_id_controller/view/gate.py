"""Access control of pages that move a robot: only requests with the link of this start, from the page's own site.

Three checks on every request, of pages and of websockets alike. `Host` is an address or the configured name: a foreign
name can be made to resolve to this machine (DNS rebinding). `Origin`, which browsers add and no script can change, is
the page's own. The token of this start is in the query: programs other than browsers send no origin. Without the token
nothing is shown either.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import io
import ipaddress
import secrets
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlencode

import viser
import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from contact_id_controller.exceptions import RunError

TOKEN_BYTES = 24
MESSAGE_BYTES = 1 << 20
"""Longest message of a page to viser; cameras and sliders take some hundred bytes."""

READ_S = 0.01
"""Least time between two messages of a page: further ones wait in its own connection and delay no other."""

PROBE_S = 10.0
"""Timeout of the test requests to this process' own page."""

_EVERYWHERE = ("", "0.0.0.0", "::")
_WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}",
}
"""Headers as viser's own client sends them."""


class Gate:
    """Checks requests; each object has a token of its own.

    Args:
        host: address or name on which the pages listen.
    """

    def __init__(self, host: str) -> None:
        self._host = host.lower()
        self.token = secrets.token_urlsafe(TOKEN_BYTES)

    def link(self, port: int) -> str:
        """Link of a page, with the token; if it listens on all addresses, as this machine opens it."""
        name = "127.0.0.1" if self._host in _EVERYWHERE else self._host
        return f"http://{_in_url(name)}:{port}/?token={self.token}"

    def refusal(self, request: Request) -> Response | None:
        """The response to a request that is refused; None: it is allowed."""
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return forbidden(
                "use the address of this machine, or the host that the viewer was given"
            )
        origins = request.headers.get_all("Origin")
        if origins and origins != [f"http://{hosts[0]}"]:
            return forbidden("requests of a page of another site are refused")
        tokens = query_of(request).get("token", [])
        given = "".join(tokens).encode(errors="replace")
        if not secrets.compare_digest(given, self.token.encode()):
            return forbidden("open the link with the token that the viewer printed at its start")
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether a request's Host header names this page: localhost, the configured host, or a bare address."""
        bracketed, _, rest = host.rpartition("]")
        name, colon, port = rest.partition(":")
        name = f"{bracketed[1:]}{name}".lower() if bracketed.startswith("[") else name.lower()
        if colon and not port.isdecimal():
            return False
        if name == "localhost" or (name and name == self._host):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class _Paced(ServerConnection):
    """A connection that is read at most every `READ_S`."""

    _next_s = 0.0

    async def recv(self, decode: bool | None = None) -> Any:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, self._next_s - clock()))
        words = await super().recv(decode)
        self._next_s = clock() + READ_S
        return words


def gated_viser(gate: Gate, host: str, port: int) -> viser.ViserServer:
    """Start viser's server, page and websocket, behind a gate; it does not start without.

    viser has no hook for that, so `process_request` of the `websockets` server that it makes is wrapped. As another
    version of viser may not call it, three unauthorised requests are tried before anything is shown: unless each is
    answered by 403 there is no server.

    Raises:
        RunError: the port is taken, or this viser lets unauthorised requests in.
    """
    _look_for(host, port)
    serve = websockets.asyncio.server.serve
    websockets.asyncio.server.serve = _guarded(gate, serve)  # type: ignore[misc, assignment]
    try:
        # viser prints a link without the token.
        with contextlib.redirect_stdout(io.StringIO()):
            server = viser.ViserServer(host=host, port=port, label="contact_id", verbose=False)
    finally:
        websockets.asyncio.server.serve = serve  # type: ignore[misc]
    found = server.get_port()
    try:
        wrong = "" if port in (0, found) else f"port {port} was taken meanwhile"
        wrong = wrong or _let_in(gate, host, found)
    except OSError as error:
        wrong = str(error)
    if wrong:
        server.stop()
        raise RunError(f"no page with viser {viser.__version__} at {host}:{port}: {wrong}")
    return server


def _guarded(gate: Gate, serve: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `serve` of websockets so that its server checks requests by the gate first."""

    def guarded(handler: Any, *place: Any, process_request: Any = None, **options: Any) -> Any:
        def answer(connection: Any, request: Request) -> Response | None:
            if refusal := gate.refusal(request):
                return refusal
            if not is_websocket(request) and (moved := _to_websocket(gate, request)):
                return moved
            response = process_request(connection, request)
            if response is not None:
                response.headers["Referrer-Policy"] = "no-referrer"
            return response

        options.update(max_size=MESSAGE_BYTES, create_connection=_Paced)
        return serve(handler, *place, process_request=answer, **options)

    return guarded


def _to_websocket(gate: Gate, request: Request) -> Response | None:
    """Redirect the page to itself with the address of its websocket; None if that is in the query already.

    viser's client has a parameter for it; without it the client would leave the token out.
    """
    here = f"ws://{request.headers['Host']}/?token={gate.token}"
    if query_of(request).get("websocket") == [here]:
        return None
    response = answer_with(HTTPStatus.FOUND, b"", "plain")
    response.headers["Location"] = f"/?{urlencode({'token': gate.token, 'websocket': here})}"
    return response


def _let_in(gate: Gate, host: str, port: int) -> str:
    """Test requests: which of them was let in wrongly, or refused wrongly; empty: none."""
    address = gate.link(port).removeprefix("http://").partition("/")[0]
    good, stranger = f"/?token={gate.token}", "stranger.example"
    requests = (
        ("a request without the token", 403, "/", {"Host": address}),
        ("a page of another site", 403, good, {"Host": address, "Origin": f"http://{stranger}"}),
        ("another name of this machine", 403, good, {"Host": stranger}),
        ("the one with the link", 101, good, {"Host": address, "Origin": f"http://{address}"}),
    )
    place = "127.0.0.1" if host in ("", "0.0.0.0") else "::1" if host == "::" else host
    for who, code, path, headers in requests:
        connection = http.client.HTTPConnection(place, port, timeout=PROBE_S)
        try:
            connection.request("GET", path, headers={**headers, **_WEBSOCKET})
            status = connection.getresponse().status
        except http.client.HTTPException as error:
            return f"{who}: {error!r}"
        finally:
            connection.close()
        if status != code:
            return f"{who} gets {status}, must get {code}: install another version of viser"
    return ""


def _look_for(host: str, port: int) -> None:
    """Raise RunError if the port is not free: viser would take another port, or try without end."""
    kind, flags, free = socket.SOCK_STREAM, socket.AI_PASSIVE, 0
    try:
        for family, _, _, _, address in socket.getaddrinfo(
            host or None, port, type=kind, flags=flags
        ):
            try:
                socket.create_server(address, family=family).close()
                free += 1
            except OSError as error:
                # A name may also resolve to addresses that this machine does not have.
                if free or error.errno != errno.EADDRNOTAVAIL:
                    raise
                missing = error
        if not free:
            raise missing
    except OSError as error:
        raise RunError(f"no page at {host}:{port}: {error.strerror or error}") from error


def is_websocket(request: Request) -> bool:
    """Whether a request asks for a websocket instead of a page."""
    return request.headers.get("Upgrade", "").lower() == "websocket"


def query_of(request: Request) -> dict[str, list[str]]:
    """The query of a request's path: name -> values."""
    return parse_qs(request.path.partition("?")[2], errors="replace")


def forbidden(line: str) -> Response:
    """A response that refuses a request."""
    return answer_with(HTTPStatus.FORBIDDEN, f"{line}\n".encode(), "plain")


def answer_with(status: HTTPStatus, body: bytes, kind: str) -> Response:
    """A response that is neither cached nor reported to other sites."""
    headers = Headers()
    headers["Content-Type"] = f"text/{kind}; charset=utf-8"
    headers["Content-Length"] = str(len(body))
    headers["Cache-Control"] = "no-store"
    headers["Referrer-Policy"] = "no-referrer"
    headers["X-Content-Type-Options"] = "nosniff"
    return Response(status.value, status.phrase, headers, body)


def _in_url(name: str) -> str:
    return f"[{name}]" if ":" in name else name
