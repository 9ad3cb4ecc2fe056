"""What happens to every request, whatever it asks: the host is checked, headers are set, and a line is logged."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.serve.metrics import Metrics
from likewise.serve.refusal import Refusal, error_body

Log = Callable[[dict[str, Any]], None]
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""No script, style, font or image of another origin, nothing inline, no frame around the page."""
OTHER = "other"
"""The route of requests for which there is none."""


class Guard:
    """Surrounds the application."""

    def __init__(self, app: ASGIApp, *, hosts: tuple[str, ...], metrics: Metrics, log: Log | None) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status, fault = 0, None

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            if self._hosts and (name := _host(scope)) not in self._hosts:
                error = Refusal(400, f"the host {name[:100]!r} is not a name of this service (option --allow-host)")
                await _answer(sending, error.status, error.body(), b"close")
            else:
                await self._app(scope, receive, sending)
        except Exception as error:  # an internal error: one request fails, the service continues
            fault = "".join(traceback.format_exception(error))
            if not status:
                await _answer(
                    sending, 500, error_body("internal error, please report; the log of the service has details")
                )
        finally:
            seconds = time.perf_counter() - begun
            route = getattr(scope.get("route"), "path_format", OTHER)
            self._metrics.record(scope["method"], route, status, seconds)
            if self._log is not None:
                entry = {
                    "event": "request",
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "seconds": round(seconds, 6),
                    "client": (scope.get("client") or (None,))[0],
                }
                self._log(entry if fault is None else {**entry, "fault": fault})


def _host(scope: Scope) -> str:
    """Return the name by which the service is addressed, without the port."""
    host = Headers(scope=scope).get("host", "").strip().lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


async def _answer(send: Send, status: int, body: bytes, connection: bytes | None = None) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if connection:
        headers.append((b"connection", connection))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def json_lines(stream: Any) -> Log:
    """Return a log that writes one line of JSON for each event."""

    def write(entry: dict[str, Any]) -> None:
        now = time.time()
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        stream.write(json.dumps({"time": when, **entry}) + "\n")
        stream.flush()

    return write
