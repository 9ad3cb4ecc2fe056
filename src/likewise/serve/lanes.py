"""Threads that do the work of requests while the event loop stays free, with a bounded number of requests waiting."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from likewise.serve.refusal import Refusal, busy

R = TypeVar("R")
A_MOMENT, A_WHILE, FOR_NOW = 0.005, 0.05, 200
"""Seconds of work, and of waiting for disks and other processes, for which the event loop may wait for an answer; where
one took longer, so many requests go to threads."""
A_BEAT = 1.0
"""Seconds for which an answer about the health of the service holds."""


class Lane:
    """Some threads, and the requests that wait for one of them.

    noun: what waits, for messages. unfinished: what to say of a request that began and takes too long.
    """

    def __init__(self, noun: str, threads: int, waiting: int, timeout: float, unfinished: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"likewise-{noun}")
        self._noun = noun
        self._room = threads + waiting
        self._timeout = timeout
        self._unfinished = unfinished
        self._slow = 0
        self.inside = 0

    def check_room(self) -> None:
        """Raise if no more requests are taken now."""
        if self.inside >= self._room:
            raise busy(f"busy: {self.inside} {self._noun} requests are waiting or running; try again in a moment")

    async def run(self, work: Callable[..., R], *args: Any) -> R:
        """Do the work in a thread. A request that has not begun in time is withdrawn."""
        self.check_room()
        loop = asyncio.get_running_loop()
        self.inside += 1
        self._slow = max(0, self._slow - 1)
        future = self._pool.submit(work, *args)

        def left(_: Future[R]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._leave)

        future.add_done_callback(left)
        waiting = asyncio.wrap_future(future)
        waiting.add_done_callback(_retrieve)
        try:
            done, _ = await asyncio.wait([waiting], timeout=self._timeout)
        except asyncio.CancelledError:
            future.cancel()
            raise
        if done:
            return waiting.result()
        if future.cancel():
            raise busy(f"busy: no thread was free for this {self._noun} request; nothing was done, try again")
        raise Refusal(504, f"not finished within {self._timeout:g} s; {self._unfinished}")

    @property
    def quick(self) -> bool:
        """Whether short work had better be done at once: it was quick lately, and none is under way."""
        return not self._slow and not self.inside

    def run_here(self, work: Callable[..., R], *args: Any) -> R:
        """Do the work while the event loop waits: to pass it to a thread and back would take longer."""
        begun, spent = time.perf_counter(), time.thread_time()
        try:
            return work(*args)
        finally:
            if time.thread_time() - spent > A_MOMENT or time.perf_counter() - begun > A_WHILE:
                self._slow = FOR_NOW

    def _leave(self) -> None:
        self.inside -= 1

    def close(self) -> None:
        """Finish what has begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class Pulse:
    """Whether the index can be read: asked at most once a second, however many want to know."""

    def __init__(self, lane: Lane, ask: Callable[[], object]) -> None:
        self._lane, self._ask = lane, ask
        self._asked: asyncio.Task[object] | None = None
        self._when = -math.inf

    async def check(self) -> None:
        """Raise what asking raised."""
        loop = asyncio.get_running_loop()
        known = self._asked
        if known is None or (known.done() and (loop.time() - self._when > A_BEAT or known.get_loop() is not loop)):
            known = self._asked = loop.create_task(self._lane.run(self._ask))
            known.add_done_callback(_retrieve)
            self._when = loop.time()
        await asyncio.shield(known)


def _retrieve(waiting: asyncio.Future[Any]) -> None:
    """Look at the exception of work whose request is gone, so that asyncio does not report it as lost."""
    if not waiting.cancelled():
        waiting.exception()
