"""Machine code of the kernels: what came with the wheel, what this machine compiled earlier, and how it is loaded.

There is one file for every kernel and list of argument types, written whole or not at all, and a folder of them for
every state of these sources. A wheel for a platform carries such a folder, compiled for a baseline processor; it is
used if Numba's version and the processor at hand allow. Whatever is missing there is compiled for this very processor
and kept in the user's cache.

Numba's own cache keeps two files for every function, checks the date of its source, and makes all of the compiler ready
before it loads anything, which takes longer than loading.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import pickle
import platform
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core import compiler, serialize
from numba.core.runtime.nrt import rtsys

config: Any = numba.config

NATIVE = "LIKEWISE_NATIVE"
"""Set in the environment, the kernels that came with the wheel are left aside, and compiled for this processor."""

SHIPPED = Path(__file__).parent / "compiled"
"""Where a wheel for a platform has its machine code, and in TARGET what it is for."""
TARGET = "target.json"
SUFFIX = ".code"
FORMAT = b"1"
"""To be counted up when files are written in another way."""
CHECK = 16
"""Bytes before the content of a file that tell whether it is whole."""

BASELINES = {
    ("linux", "x86_64"): "x86-64-v3", ("darwin", "x86_64"): "x86-64-v3", ("win32", "AMD64"): "x86-64-v3",
    ("linux", "aarch64"): "generic", ("darwin", "arm64"): "apple-m1",
}  # fmt: skip
"""The processor that wheels are compiled for, by system and architecture."""
NEEDED = {
    "x86-64-v3": (
        "avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3", "sse4.1",
        "sse4.2", "ssse3", "xsave",
    ),
}  # fmt: skip
"""What a machine must have to run code for such a processor; those not listed need nothing that could be missing."""


@functools.cache
def sources() -> str:
    """Return a digest of the kernels' sources: machine code is of one state of them, for kernels inline each other."""
    digest = hashlib.sha256(FORMAT)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        if source.name != Path(__file__).name:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """Return the folder for compiled kernels, created if necessary; None if no location is writable."""
    digest = hashlib.sha256(sources().encode())
    digest.update(f"{numba.__version__} {platform.machine()} {platform.python_version()}".encode())
    mode = "".join(str(int(flag)) for flag in (config.DISABLE_JIT, config.BOUNDSCHECK or 0))
    return user_folder(f"kernels/{digest.hexdigest()[:16]}-{mode}", os.environ.get("NUMBA_CACHE_DIR"))


def user_folder(name: str, chosen: str | None = None) -> Path | None:
    """Return a folder in the user's cache, or in `chosen`, created if necessary; None if no location is writable."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    user = getattr(os, "getuid", int)()
    roots = [Path(chosen)] if chosen else [Path(home), Path(tempfile.gettempdir()) / f"likewise-{user}"]
    for root in roots:
        folder = root / "likewise" / name
        with suppress(OSError):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not chosen and root is roots[-1] and root.stat().st_uid != user:
                continue  # where anyone may write, somebody else could have left code for us to run
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
    return None


@functools.cache
def shipped() -> tuple[Path, tuple[Any, ...]] | None:
    """Return the folder of machine code that came with the wheel and what it was compiled for, if it runs here."""
    try:
        target = json.loads((SHIPPED / TARGET).read_bytes())
    except (OSError, ValueError):
        return None
    if os.environ.get(NATIVE) or config.DISABLE_JIT or config.BOUNDSCHECK or config.OPT != 3:
        return None
    if target["for"] != made_for() or not _has(NEEDED.get(target["processor"][1], ())):
        return None
    return SHIPPED, tuple(target["processor"])


def made_for() -> list[str]:
    """Return what machine code of the wheel must have been made for and by, to be used here."""
    python = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    return [sources(), numba.__version__, python, sys.platform, platform.machine()]


def _has(features: tuple[str, ...]) -> bool:
    """Tell whether this processor has these features."""
    if not features:
        return True
    try:
        known = binding.get_host_cpu_features()
    except RuntimeError:
        return False
    return all(known.get(feature) for feature in features)


def is_compiled(*names: str) -> bool:
    """Tell whether there is machine code of each of these kernels ("module.function"), from the wheel or a run."""
    came, own = shipped(), cache_directory()
    folders = [*([came[0]] if came else []), *([own] if own else [])]
    return all(any(any(folder.glob(f"{name}-*{SUFFIX}")) for folder in folders) for name in names)


class KernelCache:
    """The machine code of one kernel; takes the place of Numba's own cache of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """The folder in which compiled code is kept, for Numba's statistics."""
        folder = cache_directory()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for these types of arguments, ready to be called; None if it has to be compiled."""
        came, own = shipped(), cache_directory()
        if came is not None:
            found = self._load(came[0] / self._file(sig, came[1]), target_context)
            if found is not None:
                return found
        if own is not None:
            found = self._load(own / self._file(sig, target_context.codegen().magic_tuple()), target_context)
            if found is not None:
                return found
        _leave_scipy_out()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; without a word if that is not possible, for the next run can compile it again."""
        folder = cache_directory()
        if folder is None or data.library.has_dynamic_globals:
            return
        content = serialize.dumps(_reduced(data))
        with suppress(OSError), tempfile.NamedTemporaryFile(dir=folder, prefix="new-", delete=False) as file:
            try:
                file.write(hashlib.blake2b(content, digest_size=CHECK).digest() + content)
                file.close()
                os.replace(file.name, folder / self._file(sig, data.codegen.magic_tuple()))
            except OSError:
                os.unlink(file.name)

    def enable(self) -> None:
        """Do nothing: the cache is in use."""

    disable = flush = enable

    def _file(self, sig: Any, processor: tuple[Any, ...]) -> str:
        types = hashlib.sha256(f"{sig} {processor}".encode()).hexdigest()[:16]
        return f"{self._name}-{types}{SUFFIX}"

    @staticmethod
    def _load(path: Path, target_context: Any) -> Any:
        """Return the code in a file; None if there is no such file, or if it is damaged."""
        try:
            content = path.read_bytes()
        except OSError:
            return None
        check, content = content[:CHECK], content[CHECK:]
        if check != hashlib.blake2b(content, digest_size=CHECK).digest():
            return None
        rtsys.initialize(target_context)
        (name, machine_code, bitcode, symbols), *others = pickle.loads(content)
        library = target_context.codegen().create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        library.codegen._engine._defined_symbols.update(symbols)
        library._get_module_for_linking = functools.cache(lambda: binding.parse_bitcode(bitcode))
        return _rebuilt(target_context, library, *others)


def _reduced(result: Any) -> tuple[Any, ...]:
    """Return what makes up a compiled kernel, without what only takes time to load.

    A function of Numba's that was inlined has an environment of its own, whose module is imported with it. Code without
    Python objects reads nothing but constants from there, and most have none. The symbols are listed so that the
    bitcode, which only a kernel that is compiled later needs, is not read for them.
    """
    (name, _, (machine_code, bitcode)), description, environment, signature, *_, environments = result._reduce()
    module = result.library._get_module_for_linking()
    symbols = [
        one.name for kind in (module.functions, module.global_variables) for one in kind if not one.is_declaration
    ]
    library = name, machine_code, bitcode, symbols
    return library, description, environment, signature, tuple(one for one in environments if one.consts)


def _rebuilt(
    target_context: Any, library: Any, description: Any, environment: Any, signature: Any, environments: Any
) -> Any:
    """Return a compiled kernel from its parts; the reverse of _reduced, after the library was loaded."""
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
