"""Numba kernels, the only ones in the package: arrays and scalars in, arrays out, no Python objects.

Kernels are serial and release the GIL; threads run them over batches. They never raise: the
caller has validated the input. Where their machine code is kept and comes from is told in cache.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

from likewise.kernels.cache import KernelCache
from likewise.kernels.cache import cache_directory as cache_directory
from likewise.kernels.cache import config as config
from likewise.kernels.cache import is_compiled as is_compiled

jit: Any = numba.njit


def before_first_compilation(call: Callable[[], None]) -> None:
    """Make this call when a kernel has to be compiled for the first time in this process, if that ever happens."""

    class Once(event.Listener):
        def on_start(self, happening: Any) -> None:
            if happening.data["dispatcher"].py_func.__module__.startswith(__name__):
                event.unregister("numba:compile", self)
                call()

        def on_end(self, happening: Any) -> None:
            pass

    event.register("numba:compile", Once())


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
