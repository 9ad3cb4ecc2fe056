"""Numba kernels, the only ones in the package: arrays and scalars in, arrays out, no Python objects.

Kernels are serial and release the GIL; threads run them over batches. They never raise: the
caller has validated the input. Compiled code is cached in a folder named after a hash of these files, so that a
change in one kernel recompiles the kernels that inlined it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

config: Any = numba.config
jit: Any = numba.njit


def _leave_scipy_out() -> None:
    """Load Numba's array functions without SciPy, whose import takes a third of a command's start and no kernel needs.

    Numba imports its linear algebra only to learn whether it is there; that it is installed is told without.
    Functions of others that use it import it when they are compiled.
    """
    if "numba.np.arraymath" in sys.modules or "scipy.linalg" in sys.modules:
        return
    linalg: Any = importlib.import_module("numba.np.linalg")
    check = getattr(linalg, "ensure_blas", None)
    if check is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        arraymath: Any = importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = check
    arraymath.ensure_blas = check
    arraymath._HAVE_BLAS = importlib.util.find_spec("scipy") is not None


_leave_scipy_out()


@functools.cache
def cache_directory() -> Path | None:
    """Return the folder for compiled kernels, created if necessary; None if no location is writable."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    digest.update(f"{numba.__version__} {platform.machine()} {platform.python_version()}".encode())
    mode = "".join(str(int(flag)) for flag in (config.DISABLE_JIT, config.BOUNDSCHECK or 0))
    name = f"{digest.hexdigest()[:16]}-{mode}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    user = getattr(os, "getuid", int)()
    roots = [Path(chosen)] if chosen else [Path(home), Path(tempfile.gettempdir()) / f"likewise-{user}"]
    for root in roots:
        folder = root / "likewise" / "kernels" / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


def is_compiled(*names: str) -> bool:
    """Tell whether machine code of each of these kernels ("module.function") was kept by an earlier run."""
    folder = cache_directory()
    return folder is not None and all(any(folder.glob(f"*/{name}-*.nbi")) for name in names)


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
    folder = cache_directory()
    before = config.CACHE_DIR
    try:
        if folder is not None:
            config.CACHE_DIR = str(folder)
        return jit(nogil=True, cache=folder is not None, no_cfunc_wrapper=True, **options)(function)
    finally:
        config.CACHE_DIR = before
