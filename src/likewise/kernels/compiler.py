"""The kernels' side of Numba: how it compiles them, and how it takes up what was compiled before.

It is imported when a kernel has to be compiled, or when Numba has settings with which kernels cannot be loaded without
it. Numba's own cache keeps two files for every function, checks the date of its source, and makes all of the compiler
ready before it loads anything.
"""

from __future__ import annotations

import functools
import importlib.util
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import binding
from numba.core import compiler, event, serialize, types
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.extending import overload

from likewise.kernels import instructions
from likewise.kernels.cache import Compilations, config, store, stored
from likewise.kernels.machine_code import MachineCode

jit: Any = numba.njit


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return Numba's own form of a kernel: it compiles on its first call with arguments of other types."""
    made = jit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if not config.DISABLE_JIT:
        made._cache = KernelCache(function, counting=options.get("_nrt", True))
    return made


def replaced(function: Callable[..., Any], chooser: Callable[..., Any]) -> None:
    """Let the compiler put what `chooser` returns for the types of the arguments in the place of a function."""
    overload(function, inline="always")(chooser)


def instruction(name: str) -> Any:
    """Return the type that the compiler has for one of the instructions."""
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(getattr(instructions, name))


class _Listener(event.Listener):
    """Counts the kernels that are compiled."""

    def on_start(self, happening: Any) -> None:
        self._count(happening, 1, 0)

    def on_end(self, happening: Any) -> None:
        self._count(happening, -1, 1)

    @staticmethod
    def _count(happening: Any, deeper: int, more: int) -> None:
        if happening.data["dispatcher"].py_func.__module__.startswith(__package__ or ""):
            Compilations.count(deeper, more)


event.register("numba:compile", _Listener())


class KernelCache:
    """The machine code of one kernel; takes the place of Numba's own cache of a function."""

    def __init__(self, function: Callable[..., Any], counting: bool) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self._counting = counting

    @property
    def cache_path(self) -> str | None:
        """The folder in which compiled code is kept, for Numba's statistics: not known here."""
        return None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for these types of arguments, ready to be called; None if it has to be compiled."""
        own = target_context.codegen().magic_tuple()
        for code, others in stored(self._name, [kind.name for kind in sig], own, parts=2):
            return _rebuilt(target_context, code, *pickle.loads(others))
        _leave_scipy_out()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled. Arrays that nobody counts must not leave a function: they would be freed too soon."""
        if not self._counting and _has_arrays(data.signature.return_type):
            raise TypeError(f"{self._name} returns an array and is therefore not `inner`, but `making`")
        if not data.library.has_dynamic_globals:
            parts = [pickle.dumps(part) for part in _reduced(data)]
            store(self._name, [kind.name for kind in sig], data.codegen.magic_tuple(), parts)

    def enable(self) -> None:
        """Do nothing: the cache is in use."""

    disable = flush = enable


def _has_arrays(kind: Any) -> bool:
    return isinstance(kind, types.Array) or any(_has_arrays(one) for one in getattr(kind, "types", ()))


def _reduced(result: Any) -> tuple[Any, Any]:
    """Return what makes up a compiled kernel: what is needed to call it, and what only the compiler needs.

    A function of Numba's that was inlined has an environment of its own, whose module is imported with it. Code without
    Python objects reads nothing but constants from there, and most have none. The symbols are listed so that the
    bitcode, which only a kernel that is compiled later needs, is not read for them.
    """
    (name, _, (machine_code, bitcode)), description, environment, signature, *_, environments = result._reduce()
    module = result.library._get_module_for_linking()
    known = [one for kind in (module.functions, module.global_variables) for one in kind]
    symbols = [one.name for one in known if not one.is_declaration]
    needs = [one.name for one in known if one.is_declaration and not one.name.startswith("llvm.")]
    environments = tuple(one for one in environments if one.consts)
    wrapper = description.llvm_cpython_wrapper_name
    constants = [(description.env_name, list(environment.consts))]
    constants += [(one.env_name, list(one.consts)) for one in environments if one.env_name != description.env_name]
    plain = all(isinstance(one, np.dtype) for _, several in constants for one in several)
    code = MachineCode(machine_code, wrapper if plain and wrapper in symbols else "", constants if plain else [], needs)
    others = serialize.dumps((name, bitcode, symbols, description, environment, signature, environments))
    return tuple(code), others


def _rebuilt(
    target_context: Any, code: Any, name: str, bitcode: bytes, symbols: list[str], description: Any, environment: Any,
    signature: Any, environments: Any,
) -> Any:  # fmt: skip
    """Return a compiled kernel from its parts; the reverse of _reduced."""
    rtsys.initialize(target_context)
    library = target_context.codegen().create_library(name)
    library.enable_object_caching()
    library._set_compiled_object(MachineCode(*code).code)
    library._finalize_final_module()
    library.codegen._engine._defined_symbols.update(symbols)
    library._get_module_for_linking = functools.cache(lambda: binding.parse_bitcode(bitcode))
    entry = target_context.get_executable(library, description, environment)
    for one in environments:
        library.codegen.set_env(one.env_name, one)
    return compiler.compile_result(
        typing_context=target_context.typing_context, target_context=target_context, entry_point=entry,
        type_annotation="", library=library, objectmode=False, lifted=(), fndesc=description, environment=environment,
        signature=signature, reload_init=[], referenced_envs=environments,
    )  # fmt: skip


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
