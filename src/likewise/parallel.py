"""Threads over batches: kernels release the GIL, results come back in the order of the tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from likewise.errors import ParameterError

T = TypeVar("T")
R = TypeVar("R")


def check_threads(owner: str, threads: object) -> int:
    """Return the number of threads: what the user said, or the number of cores this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ParameterError.of(owner, "threads", "a positive whole number", threads)
    return threads


def in_order(function: Callable[[T], R], tasks: Iterable[T], threads: int) -> Iterator[R]:
    """Yield function(task) for every task, in order, at most two tasks a thread being under way or waiting."""
    if threads == 1:
        yield from map(function, tasks)
        return
    source = iter(tasks)
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(function, task) for task in islice(source, 2 * threads)]
        try:
            while waiting:
                result = waiting.pop(0).result()
                waiting.extend(pool.submit(function, task) for task in islice(source, 1))
                yield result
        finally:
            for future in waiting:
                future.cancel()
