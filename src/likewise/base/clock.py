"""When the user began to wait: the seconds of a run count from there. Nothing heavy is imported here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_waiting: ContextVar[float | None] = ContextVar("waiting", default=None)
"""When the user began to wait, if that was before the function was called."""


@contextmanager
def waiting_since(moment: float) -> Iterator[None]:
    """Count the seconds of the runs within from this moment (of time.perf_counter) on."""
    token = _waiting.set(moment)
    try:
        yield
    finally:
        _waiting.reset(token)


def start_of_waiting() -> float:
    """Return when the user began to wait: now, unless that was said."""
    since = _waiting.get()
    return time.perf_counter() if since is None else since
