"""Threads over batches: kernels release the GIL; results are returned in the order of the tasks."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(function: Callable[[T], R], tasks: Iterable[T], threads: int) -> Iterator[R]:
    """Yield function(task) for every task, in order."""
    if threads <= 1:
        return map(function, tasks)
    return run_ahead((partial(function, task) for task in tasks), threads)


def all_at_once(tasks: Iterable[Callable[[], T]], threads: int) -> list[T]:
    """Return the results of a few tasks of different sizes, in order; no task waits for an earlier one.

    >>> all_at_once([lambda: 1, lambda: 2, lambda: 3], threads=2)
    [1, 2, 3]
    """
    if threads <= 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(threads, thread_name_prefix="likewise") as pool:
        return list(pool.map(lambda task: task(), tasks))


def run_ahead(tasks: Iterator[Callable[[], T]], threads: int) -> Iterator[T]:
    """Yield the result of each task, in order, with at most `threads` + 1 of them in flight.

    One thread draws the tasks (which may itself be work: decompressing, decoding), `threads` others run them. An error
    is raised where its result would have been yielded, so the first error in input order wins.

    >>> list(run_ahead(iter([lambda: 1, lambda: 2, lambda: 3]), threads=2))
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

    def stop() -> None:
        stopped.set()
        slots.release()
        drawer.join()

    with ThreadPoolExecutor(threads, thread_name_prefix="likewise") as pool:
        drawer = threading.Thread(target=draw, name="likewise-draw", daemon=True)
        drawer.start()
        _running[drawer] = stop
        try:
            while (future := ready.get()) is not None:
                result = future.result()
                del future
                yield result
                del result
                slots.release()
        finally:
            stop()
            del _running[drawer]
            pool.shutdown(cancel_futures=True)


_running: dict[threading.Thread, Callable[[], None]] = {}
"""The threads that draw tasks, and how to stop them."""


@atexit.register
def _stop_all() -> None:
    """Stop the threads of iterators that an error has left behind: one that is inside a C++ library when the
    interpreter ends would abort the process.
    """
    for stop in list(_running.values()):
        stop()
