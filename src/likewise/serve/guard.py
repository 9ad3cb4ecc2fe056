"""What happens to every request, whatever it asks: the host is checked, headers are set, it is counted and logged."""

from __future__ import annotations

import json
import time
import traceback
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.errors import LikewiseError
from likewise.serve.refusal import CLOSE, Refusal, header_of, json_answer, refusal_of

Log = Callable[[dict[str, Any]], None]
Direct = Mapping[tuple[str, str], Callable[[Scope, Receive], Awaitable[bytes]]]
"""What is asked most, by method and path: on the way through FastAPI it would take a fifth longer."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""No script, style, font or image of another origin, nothing inline, no frame around the page."""
ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
NOT_KEPT = (b"cache-control", b"no-store")
ALL = [*ENCODED, NOT_KEPT]
OTHER = "other"
"""The route of requests for which there is none."""


class Guard:
    """Surrounds the application, and gives all refusals one shape. where: the index, which no answer names."""

    def __init__(
        self, app: ASGIApp, *, hosts: tuple[str, ...], metrics: Metrics, log: Log | None, where: str, direct: Direct
    ) -> None:
        self._app = app
        self._where = where
        self._direct = direct
        self._hosts = frozenset(hosts)
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status, route, fault = 0, "", None

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.get("headers", [])
                message["headers"] = [*given, *(ENCODED if NOT_KEPT[0] in dict(given) else ALL)]
            await send(message)

        try:
            if self._hosts and (name := _host(scope)) not in self._hosts:
                message = f"the host {name[:100]!r} is not a name of this service (option --allow-host)"
                raise Refusal(400, message, CLOSE)
            act = self._direct.get((scope["method"], scope["path"]))
            if act is None:
                await self._app(scope, receive, sending)
            else:
                route = scope["path"]
                await json_answer(await act(scope, receive))(scope, receive, sending)
        except Exception as error:
            refusal = refusal_of(error, self._where) if isinstance(error, LikewiseError) else error
            if status or not isinstance(refusal, Refusal):  # one request fails, the service continues
                fault = "".join(traceback.format_exception(error))
                refusal = Refusal(500, "internal error, please report; the log of the service has details")
            if not status:
                await refusal.answer()(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - begun
            route = route or getattr(scope.get("route"), "path_format", OTHER)
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
    host = header_of(scope, b"host").strip().lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def json_lines(stream: Any) -> Log:
    """Return a log that writes one line of JSON for each event."""

    def write(entry: dict[str, Any]) -> None:
        now = time.time()
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        stream.write(json.dumps({"time": when, **entry}) + "\n")
        stream.flush()

    return write


BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram, in seconds: a query takes about a millisecond, a large addition seconds."""
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Numbers of requests, by route and status, and how long they took. Only the event loop writes them."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._total: defaultdict[str, float] = defaultdict(float)
        self._faults = 0

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is one of those of the service, not what a client sent."""
        self._requests[method if method in METHODS else "other", route, status] += 1
        self._seconds[route][bisect_left(BOUNDS, seconds)] += 1
        self._total[route] += seconds
        self._faults += status >= 500

    def text(self, items: int, running: dict[str, int]) -> str:
        """Return all numbers; `running` has the requests that wait or run in each lane."""
        return "".join(f"{line}\n" for line in self._lines(items, running))

    def _lines(self, items: int, running: dict[str, int]) -> Iterator[str]:
        yield "# HELP likewise_items Items in the index."
        yield "# TYPE likewise_items gauge"
        yield f"likewise_items {items}"
        yield "# HELP likewise_requests_in_progress Requests that wait for a thread or run in one."
        yield "# TYPE likewise_requests_in_progress gauge"
        for lane, number in running.items():
            yield f'likewise_requests_in_progress{{lane="{lane}"}} {number}'
        yield "# HELP likewise_errors_total Requests answered with a status of 500 or more."
        yield "# TYPE likewise_errors_total counter"
        yield f"likewise_errors_total {self._faults}"
        yield "# HELP likewise_requests_total Requests."
        yield "# TYPE likewise_requests_total counter"
        for (method, route, status), number in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"likewise_requests_total{{{labels}}} {number}"
        yield "# HELP likewise_request_seconds Time from the head of a request to the end of its answer."
        yield "# TYPE likewise_request_seconds histogram"
        for route, counts in sorted(self._seconds.items()):
            below = 0
            for bound, number in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                below += number
                yield f'likewise_request_seconds_bucket{{route="{route}",le="{bound}"}} {below}'
            yield f'likewise_request_seconds_sum{{route="{route}"}} {self._total[route]:.6f}'
            yield f'likewise_request_seconds_count{{route="{route}"}} {below}'
