"""Counters of a service, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator

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
