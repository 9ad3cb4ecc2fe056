"""Numba kernels, the only ones in the package: arrays and scalars in, arrays out, no Python objects.

Kernels are serial and release the GIL; threads run them over batches. They never raise: the
caller has validated the input. Where their machine code is kept and comes from is told in cache.py.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numba
from numba.core import event

from likewise.kernels.cache import KernelCache
from likewise.kernels.cache import cache_directory as cache_directory
from likewise.kernels.cache import config as config
from likewise.kernels.cache import is_compiled as is_compiled

jit: Any = numba.njit


def watch_compilation(watcher: Callable[[int, bool], None]) -> None:
    """Call `watcher` whenever a kernel begins or ends to be compiled in this process, as long as its object lives.

    watcher: a method. It gets the number of kernels compiled so far, and whether one is being compiled now.
    """
    with _Compilations.lock:
        if not _Compilations.watchers:
            event.register("numba:compile", _Compilations())
        alive = [known for known in _Compilations.watchers if known() is not None]
        _Compilations.watchers[:] = [*alive, weakref.WeakMethod(watcher)]


class _Compilations(event.Listener):
    """Counts the kernels that are compiled. Numba compiles one at a time, and within it those that it calls."""

    lock = threading.Lock()
    watchers: ClassVar[list[weakref.WeakMethod[Callable[[int, bool], None]]]] = []
    done = depth = 0

    def on_start(self, happening: Any) -> None:
        self._count(happening, 1, 0)

    def on_end(self, happening: Any) -> None:
        self._count(happening, -1, 1)

    def _count(self, happening: Any, deeper: int, more: int) -> None:
        if not happening.data["dispatcher"].py_func.__module__.startswith(__name__):
            return
        self.depth += deeper
        self.done += more
        for known in list(self.watchers):
            watcher = known()
            if watcher is not None:
                watcher(self.done, self.depth > 0)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, without the GIL, and keep the machine code for the next process."""
    return _compiled(function)


def inner(function: Callable[..., Any]) -> Any:
    """Like `kernel`, for a function that only kernels call: Python cannot, and it compiles in half the time."""
    return _compiled(function, no_cpython_wrapper=True)


def summing(function: Callable[..., Any]) -> Any:
    """Like `inner`, for a sum whose terms may be added in any order, and so by vector instructions."""
    return _compiled(function, no_cpython_wrapper=True, fastmath={"reassoc", "contract"})


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    dispatcher = jit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if not config.DISABLE_JIT:
        dispatcher._cache = KernelCache(function)
    return dispatcher
