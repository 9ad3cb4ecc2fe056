"""Files of machine code of the kernels: what came with the wheel, and what this machine compiled earlier.

There is one file for every kernel and list of argument types, written whole or not at all, and a folder of them for
every state of these sources. A wheel for a platform carries such a folder, compiled for a baseline processor; it is
used if Numba's version and the processor at hand allow. Whatever is missing there is compiled for this very processor
and kept in the user's cache.

A file has two parts: the code that machine_code.py makes callable, and what only the compiler needs, when another
kernel that calls this one is compiled. Nothing here imports Numba.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pickle
import platform
import struct
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from llvmlite import binding

HARMLESS = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER")
"""Settings of Numba that change nothing about the code that it makes."""


def _settings() -> Any:
    """Return the settings of Numba, which is imported only if somebody has changed or imported it."""
    changed = any(name.startswith("NUMBA_") and name not in HARMLESS for name in os.environ)
    if changed or "numba" in sys.modules or os.path.exists(".numba_config.yaml"):
        import numba

        return numba.config
    return SimpleNamespace(DISABLE_JIT=0, BOUNDSCHECK=None, OPT=3)


config: Any = _settings()
USUAL = not config.DISABLE_JIT and not config.BOUNDSCHECK
"""Whether kernels are compiled in the usual way, so that their code can be loaded without the compiler."""

NATIVE = "LIKEWISE_NATIVE"
"""Set in the environment, the kernels that came with the wheel are left aside, and compiled for this processor."""

SHIPPED = Path(__file__).parent / "compiled"
"""Where a wheel for a platform has its machine code, and in TARGET what it is for."""
TARGET = "target.json"
SUFFIX = ".code"
FORMAT = b"2"
"""To be counted up when files are written in another way."""
CHECK, LENGTH = 16, "<Q"
"""Before each part of a file: the bytes that tell whether it is whole, and its length."""
NOT_COMPILED = ("cache.py", "machine_code.py")
"""Sources here of which no machine code is made."""

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
        if source.name not in NOT_COMPILED:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _numba_version() -> str:
    return version("numba")


@functools.cache
def cache_directory() -> Path | None:
    """Return the folder for compiled kernels, created if necessary; None if no location is writable."""
    digest = hashlib.sha256(sources().encode())
    digest.update(f"{_numba_version()} {platform.machine()} {platform.python_version()}".encode())
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
    return [sources(), _numba_version(), python, sys.platform, platform.machine()]


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


def code_file(name: str, types: Iterable[str], processor: tuple[Any, ...]) -> str:
    """Return the name of the file of a kernel ("module.function") for these types of arguments."""
    told = hashlib.sha256(f"{', '.join(types)} {list(processor)}".encode()).hexdigest()[:16]
    return f"{name}-{told}{SUFFIX}"


def stored(name: str, types: Iterable[str], own_processor: tuple[Any, ...], parts: int = 1) -> Iterator[list[Any]]:
    """Yield what is kept of a kernel, its first parts, from the wheel and then from the cache of this machine."""
    came, own = shipped(), cache_directory()
    types = list(types)
    for folder, target in ([came] if came else []) + ([(own, own_processor)] if own else []):
        with suppress(OSError, EOFError, struct.error), open(folder / code_file(name, types, target), "rb") as file:
            found = [_read_part(file) for _ in range(parts)]
            if None not in found:
                yield [pickle.loads(part) for part in found if part is not None]


def _read_part(file: Any) -> bytes | None:
    """Read the next part of a file; None if it is damaged."""
    check = file.read(CHECK)
    (length,) = struct.unpack(LENGTH, file.read(struct.calcsize(LENGTH)))
    if length > os.fstat(file.fileno()).st_size:
        return None
    part: bytes = file.read(length)
    return part if check == hashlib.blake2b(part, digest_size=CHECK).digest() else None


def store(name: str, types: Iterable[str], processor: tuple[Any, ...], parts: Iterable[bytes]) -> None:
    """Keep a kernel; without a word if that is not possible, for the next run can compile it again."""
    folder = cache_directory()
    if folder is None:
        return
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=folder, prefix="new-", delete=False) as file:
        try:
            for part in parts:
                file.write(hashlib.blake2b(part, digest_size=CHECK).digest() + struct.pack(LENGTH, len(part)) + part)
            file.close()
            os.replace(file.name, folder / code_file(name, types, processor))
        except OSError:
            os.unlink(file.name)


class Compilations:
    """The kernels that are compiled. Numba compiles one at a time, and within it those that it calls."""

    lock = threading.Lock()
    watchers: ClassVar[list[weakref.WeakMethod[Callable[[int, bool], None]]]] = []
    done = depth = 0

    @classmethod
    def count(cls, deeper: int, more: int) -> None:
        """Count one that begins (one deeper), or one that is done."""
        cls.depth += deeper
        cls.done += more
        for known in list(cls.watchers):
            watcher = known()
            if watcher is not None:
                watcher(cls.done, cls.depth > 0)
