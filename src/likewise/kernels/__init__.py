"""Numba kernels, the only ones in the package: arrays and scalars in, arrays out, no Python objects.

Kernels are serial and release the GIL; threads run them over batches. They never raise: the
caller has validated the input. Their machine code is kept in files (cache.py) and made callable without Numba
(machine_code.py), which is imported when something has to be compiled (compiler.py).
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from likewise.kernels.cache import USUAL, Compilations, stored
from likewise.kernels.cache import cache_directory as cache_directory
from likewise.kernels.cache import config as config
from likewise.kernels.cache import is_compiled as is_compiled
from likewise.kernels.machine_code import MachineCode, entry, kind_of, processor, type_name


def watch_compilation(watcher: Callable[[int, bool], None]) -> None:
    """Call `watcher` whenever a kernel begins or ends to be compiled in this process, as long as its object lives.

    watcher: a method. It gets the number of kernels compiled so far, and whether one is being compiled now.
    """
    with Compilations.lock:
        alive = [known for known in Compilations.watchers if known() is not None]
        Compilations.watchers[:] = [*alive, weakref.WeakMethod(watcher)]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, without the GIL, and keep the machine code for the next process."""
    return _compiled(function)


def inner(function: Callable[..., Any]) -> Any:
    """Like `kernel`, for a function that only kernels call: Python cannot, and it compiles in half the time.

    It neither makes nor returns arrays. Those that it is given, or looks at parts of, are alive as long as it runs, and
    are not counted: that costs more than many a short loop.
    """
    return _compiled(function, no_cpython_wrapper=True, _nrt=False)


def making(function: Callable[..., Any]) -> Any:
    """Like `inner`, for a function that makes or returns arrays."""
    return _compiled(function, no_cpython_wrapper=True, _nrt=True)


def summing(function: Callable[..., Any]) -> Any:
    """Like `inner`, for a sum whose terms may be added in any order, and so by vector instructions."""
    return _compiled(function, no_cpython_wrapper=True, _nrt=False, fastmath={"reassoc", "contract"})


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    if USUAL:
        return Kernel(function, options)
    return _compiler().dispatcher(function, options)


def overload(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let the compiler put what the decorated function returns for the types of the arguments in the place of another.

    function: what the interpreter calls.
    """

    def note(chooser: Callable[..., Any]) -> Callable[..., Any]:
        _overloads.append((function, chooser))
        if f"{__name__}.compiler" in sys.modules:
            _compiler()
        return chooser

    return note


_overloads: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
"""Those that the compiler does not know yet."""


def _compiler() -> Any:
    """Return the compiler, told of all overloads."""
    from likewise.kernels import compiler

    while _overloads:
        compiler.replaced(*_overloads.pop())
    return compiler


class Instruction:
    """Something that only the compiler knows, by its name in instructions.py."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _numba_type_(self) -> Any:
        return _compiler().instruction(self._name)


class Kernel:
    """A function whose machine code is loaded when it is called, or compiled where there is none."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.name = function, function.__qualname__
        self.targetoptions = options
        self._entries: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function with arguments of these types."""
        return self.dispatcher(*args, **named) if named else self.entry(args)(*args)

    def entry(self, args: tuple[Any, ...]) -> Any:
        """Return the code for arguments of these types."""
        kinds = tuple(map(kind_of, args))
        found = self._entries.get(kinds)
        if found is None:
            with _loading:
                found = self._entries.get(kinds) or self._loaded(args)
                self._entries[kinds] = found
        return found

    def __reduce__(self) -> str:
        """Let other processes find it by its name."""
        return self.name

    def _loaded(self, args: tuple[Any, ...]) -> Any:
        """Return the code for these arguments, or, if there is none, what compiles it."""
        types = [type_name(value) for value in args]
        names = [name for name in types if name is not None]
        if len(names) == len(args):
            with suppress(Exception):  # another version of Numba, or a file that is damaged: it is compiled again
                for (code,) in stored(self.where, names, processor()):
                    found = entry(self.name, MachineCode(*code))
                    if found is not None:
                        return found
        return self.dispatcher

    @property
    def where(self) -> str:
        """The name of the module and the function."""
        return f"{self.__module__.rpartition('.')[2]}.{self.name}"

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's form of the function, which compiles it for types that are new."""
        with _loading:
            return _compiler().dispatcher(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        """What the compiler takes it for when another function calls it."""
        return _compiler().numba.typeof(self.dispatcher)


def entry_of(function: Any, *args: Any) -> Any:
    """Return what a kernel calls for these arguments, for many calls whose arguments all have the same types: to look
    at the types takes longer than a short kernel."""
    return function.entry(args) if isinstance(function, Kernel) else function


_loading = threading.RLock()
"""Held while code is loaded, which LLVM does not do in two threads at once."""
