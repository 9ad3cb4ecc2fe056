"""Do work ahead of the reader, on several threads, and hand the results out in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


def in_order(tasks: Iterator[Callable[[], T]], threads: int) -> Iterator[T]:
    """Yield the result of each task, in order, with at most `threads` + 1 of them under way.

    One thread draws the tasks (which may itself be work: decompressing, decoding), `threads` others run them.
    An error comes out where its result would have been, so the first error in input order wins.

    >>> list(in_order(iter([lambda: 1, lambda: 2, lambda: 3]), threads=2))
    [1, 2, 3]
    """
    if threads <= 1:
        for task in tasks:
            yield task()
        return

    slots = threading.Semaphore(threads + 1)
    ready: SimpleQueue[Future[T] | None] = SimpleQueue()
    stopped = threading.Event()

    def draw() -> None:
        try:
            while True:
                slots.acquire()
                if stopped.is_set():
                    break
                task = next(tasks, None)
                if task is None:
                    break
                ready.put(pool.submit(task))
        except BaseException as error:
            failed: Future[T] = Future()
            failed.set_exception(error)
            ready.put(failed)
        finally:
            close = getattr(tasks, "close", None)
            if close is not None:
                close()
            ready.put(None)

    with ThreadPoolExecutor(threads, thread_name_prefix="likewise-read") as pool:
        drawer = threading.Thread(target=draw, name="likewise-draw", daemon=True)
        drawer.start()
        try:
            while (future := ready.get()) is not None:
                result = future.result()
                del future
                yield result
                del result
                slots.release()
        finally:
            stopped.set()
            slots.release()
            drawer.join()
            pool.shutdown(cancel_futures=True)
