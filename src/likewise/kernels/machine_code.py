"""Machine code made callable without the compiler, whose import takes longer than most commands.

Compiled kernels need three extension modules of Numba: they convert arguments, own the memory of arrays, and make
functions. These are loaded on their own here, and LLVM links the code to them. Arguments are told apart by the names
that Numba has for their types.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import pickle
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, PathFinder
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding

HELPERS, FUNCTIONS, RUNTIME = "numba._helperlib", "numba._dynfunc", "numba.core.runtime._nrt_python"
SERIALIZE = "numba.core.serialize"
CONTIGUOUS, FORTRAN, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
"""Flags of an array, as ndarray.flags.num has them."""
SIGNED, UNSIGNED = 1 << 63, 1 << 64
OPTIMISED = 3
TRIED = sys.platform.startswith("linux")
"""Whether code can be linked so on this system."""
ARRAYS = (np.ndarray, np.memmap)
"""Kinds of arrays that are the same to a kernel."""


class MachineCode(NamedTuple):
    """A kernel as LLVM compiled it.

    wrapper: the name of its function for Python. environments: the names of the variables that point to what is around
    a function, and the constants there. needs: the functions and variables of others that it calls and reads.
    """

    code: bytes
    wrapper: str
    environments: list[tuple[str, list[Any]]]
    needs: list[str]


def kind_of(value: Any) -> Any:
    """Return what tells a value from those of other types; made for speed, as every call asks for it."""
    cls = value.__class__
    if cls in ARRAYS:
        return value.dtype, value.ndim, value.flags.num & (CONTIGUOUS | FORTRAN | ALIGNED | WRITEABLE)
    if cls is int:
        return cls if -SIGNED <= value < SIGNED else (cls, value >= SIGNED, value >= UNSIGNED)
    return (cls, *map(kind_of, value)) if isinstance(value, tuple) else cls


def type_name(value: Any) -> str | None:
    """Return the name that Numba has for the type of a value; None for a type that only Numba itself can tell.

    >>> type_name((1, np.zeros(3), np.uint8(4), None))
    'Tuple(int64, array(float64, 1d, C), uint8, none)'
    """
    if isinstance(value, np.ndarray):
        return _array_name(value) if type(value) in ARRAYS else None
    if value is None:
        return "none"
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, np.generic):
        return _number_name(value.dtype)
    if isinstance(value, float):
        return "float64"
    if isinstance(value, int):
        return "int64" if -SIGNED <= value < SIGNED else "uint64" if 0 <= value < UNSIGNED else None
    return _tuple_name(value) if isinstance(value, tuple) else None


def _number_name(kind: np.dtype[Any]) -> str | None:
    return str(kind.name) if kind.kind in "iufb" and kind.isnative and kind.itemsize <= 8 else None


def _array_name(array: Any) -> str | None:
    number, flags = _number_name(array.dtype), array.flags
    if number is None or not flags.aligned:
        return None
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return f"{'' if flags.writeable else 'readonly '}array({number}, {array.ndim}d, {layout})"


def _tuple_name(value: tuple[Any, ...]) -> str | None:
    names = [type_name(one) for one in value]
    told = [name for name in names if name is not None]
    if len(told) < len(names):
        return None
    named = type(value).__name__ if type(value) is not tuple else ""
    if told and len(set(told)) == 1:
        return f"{named or 'UniTuple'}({told[0]} x {len(told)})"
    return f"{named or 'Tuple'}({', '.join(told)})"


@functools.cache
def processor() -> tuple[str, str, str]:
    """Return what Numba compiles for on this machine, unless it is told otherwise."""
    try:
        features = binding.get_host_cpu_features().flatten()
    except RuntimeError:
        features = ""
    return binding.get_process_triple(), binding.get_host_cpu_name(), features


def entry(name: str, found: MachineCode) -> Any:
    """Return a function of this name that Python can call; None where that was not tried, or something is missing."""
    if not TRIED or not found.wrapper:
        return None
    link = _linker()
    if any(not binding.address_of_symbol(needed) for needed in found.needs):
        return None
    link.add_object_file(binding.ObjectFileRef.from_data(found.code))
    link.finalize_object()
    functions, kept = sys.modules[FUNCTIONS], []
    for variable, constants in found.environments:
        surroundings = functions.Environment({"__name__": __name__})
        surroundings.consts[:] = constants
        kept.append(surroundings)
        ctypes.c_void_p.from_address(link.get_global_value_address(variable)).value = id(surroundings)
    address = link.get_function_address(found.wrapper)
    return functions.make_function(sys.modules[__name__], name, "", address, kept[0], tuple(kept))


@functools.cache
def _unpickled(address: int, size: int) -> Any:
    return pickle.loads(ctypes.string_at(address, size))


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def _unpickle(address: int, size: int, digest: int) -> Any:
    """Return a constant of compiled code, such as the class of arrays: Numba's own function for it imports Numba."""
    return _unpickled(address, size)


@functools.cache
def _linker() -> Any:
    """Return LLVM's linker, which knows by now what compiled kernels call."""
    helpers, functions, runtime = map(_extension, (HELPERS, FUNCTIONS, RUNTIME))
    runtime.memsys_use_cpython_allocator()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for module in (helpers, functions):
        for name, address in module.c_helpers.items():
            binding.add_symbol(f"numba_{name}", address)
    if SERIALIZE not in sys.modules:
        binding.add_symbol("numba_unpickle", ctypes.cast(_unpickle, ctypes.c_void_p).value)
    for name, address in runtime.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(opt=OPTIMISED, jit=True, codemodel="jitdefault")
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


def _extension(name: str) -> Any:
    """Import an extension module of Numba without the packages that it is in; Numba finds it when it is imported."""
    if name in sys.modules:
        return sys.modules[name]
    found = PathFinder.find_spec("numba")
    places = found.submodule_search_locations if found is not None else None
    if not places:
        raise ImportError(name)
    folder = Path(places[0], *name.split(".")[1:-1])
    spec = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
