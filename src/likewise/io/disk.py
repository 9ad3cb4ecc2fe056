"""Files on disk: written atomically, synced, and with errors that say what to do."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.errors import OutputError
from likewise.kernels.cache import user_folder

P = ParamSpec("P")
T = TypeVar("T")

WORK, MANIFEST = ".likewise", "run.json"
"""The hidden folder in the folder of a result for what a run needs, and the file that is written last."""
BLOCK = 1 << 22
"""Bytes of an array that are written in one call."""
LARGE_FILE = 1 << 26
"""Bytes of a file whose removal takes a moment."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How a URL begins; a Path object has one slash fewer. A drive of Windows has one letter only."""


def is_url(path: object) -> bool:
    """Tell whether an object is a URL, and not the path of a folder with such a name.

    >>> is_url("s3://bucket/a.parquet"), is_url(Path("s3://bucket/a")), is_url("C:/data"), is_url("data/a:/b")
    (True, True, False, False)
    """
    written = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    return isinstance(written, str) and URL.match(written) is not None and not os.path.exists(written.partition("/")[0])


@contextmanager
def atomic(path: Path, compression: str | None = None, *, durable: bool = True, parents: bool = False) -> Iterator[Any]:
    """Open a file for writing under a hidden name; it gets its own name when it is complete, and not otherwise.

    With `durable` the content is synced to disk first. With `parents` missing folders are created.
    """
    hidden = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        with open(hidden, "wb") as out:
            with _compressed(out, compression) as packer:
                yield packer
            if durable:
                out.flush()
                os.fsync(out.fileno())
        os.replace(hidden, path)
    except FileNotFoundError as error:
        raise OutputError(f"{path}: there is no folder {path.parent}; create it first") from error
    except OSError as error:
        raise disk_error(path, error) from error
    finally:
        with suppress(OSError):
            hidden.unlink()


@contextmanager
def _compressed(out: IO[bytes], compression: str | None) -> Iterator[Any]:
    if compression == "gzip":
        with gzip.GzipFile("", "wb", 6, out, mtime=0) as packer:
            yield packer
    elif compression == "bz2":
        with bz2.BZ2File(out, "wb") as packed:
            yield packed
    elif compression == "xz":
        with lzma.LZMAFile(out, "wb") as packed_xz:
            yield packed_xz
    elif compression == "zstd":
        twin = os.fdopen(os.dup(out.fileno()), "wb")  # Arrow closes what it writes to
        with pa.CompressedOutputStream(pa.PythonFile(twin, mode="w"), "zstd") as stream:
            yield stream
    else:
        yield out


def sync(path: Path) -> None:
    """Sync a file or a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:  # not every file system can sync a folder
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
    finally:
        os.close(handle)


@contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Turn an OSError into an OutputError that names the place and says what to do."""
    try:
        yield
    except OSError as error:
        raise disk_error(place, error) from error


def disk_error(place: Path, error: OSError) -> OutputError:
    """Return the OutputError for an OSError: why the place cannot be written, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(
            f"{place}: the disk is full; the steps that are done are kept: free some space, or name another "
            f"disk with --spill, and run the same command again"
        )
    return OutputError(f"{place}: cannot be written: {error.strerror or error}")


def write_array(out: IO[bytes], array: NDArray[Any]) -> None:
    """Write the numbers of an array. (ndarray.tofile does not report why it failed, and sometimes not that it did.)"""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    for start in range(0, len(data), BLOCK):
        out.write(data[start : start + BLOCK])


_places: set[Path] = set()


unfinished: set[Path] = set()
"""Workspaces of runs that can be resumed: what these have fetched stays while they are not finished."""
_lasting: set[Path] = set()


def register(place: Path, owner: object, lasting: bool = False) -> None:
    """Remove a file or folder when its owner goes, or with `remove_temporary`.

    What is `lasting` stays for the next process if a run that can be resumed ends unfinished.
    """
    _places.add(place)
    if lasting:
        _lasting.add(place)
    weakref.finalize(owner, _forget, place)


def temporary_file(owner: object) -> tuple[int, Path]:
    """Open a new temporary file, which is removed with its owner; return its descriptor and its path."""
    handle, name = tempfile.mkstemp(prefix="likewise-")
    register(Path(name), owner)
    return handle, Path(name)


HIDDEN = (".arrow", ".stdin")
"""Endings of temporary files that hold what can be read only once."""
_held: dict[Path, int] = {}


def hidden_file(folder: Path | None, ending: str) -> Path:
    """Create a file in a folder, or among temporary files, for what can be read only once.

    It is locked while this process lives; those of processes that were killed are removed from the folder.
    """
    place, start = folder or Path(tempfile.gettempdir()), ".likewise-" if folder else "likewise-"
    with disk_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        for path in place.glob(f"{start}*"):
            if path.suffix in HIDDEN and (lock := locked(path, create=False)) is not None:
                path.unlink(missing_ok=True)
                os.close(lock)
        for _ in range(3):  # another process may take it for a dead one before it is locked; some disks have no locks
            handle, name = tempfile.mkstemp(ending, start, place)
            os.close(handle)
            lock = locked(Path(name), create=False)
            if lock is not None:
                _held[Path(name)] = lock
                break
    return Path(name)


def remove_temporary() -> None:
    """Remove all temporary files and folders of this process, which is about to end."""
    for place in list(_places):
        _forget(place)


def remove(path: Path) -> None:
    """Remove a file, or a folder with everything in it; nothing happens if a file is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def freed_later(folder: Path) -> Iterator[None]:
    """Remove this folder inside: its large files lose their names there, and their room is freed beside what follows.

    The system needs half a second for a gigabyte, when nobody has the file open any more.
    """
    held: list[int] = []
    for path in folder.rglob("*") if os.name == "posix" else ():
        with suppress(OSError):
            if path.stat().st_size > LARGE_FILE and path.is_file():
                held.append(os.open(path, os.O_RDONLY))
    try:
        yield
    finally:
        if held:
            threading.Thread(target=_close, args=(held,), name="likewise-free").start()


def _close(held: list[int]) -> None:
    for file in held:
        os.close(file)


def _forget(place: Path) -> None:
    if place in _lasting and unfinished:
        return
    drop(place)
    _places.discard(place)
    _lasting.discard(place)


def drop(place: Path) -> None:
    """Remove a temporary file or folder, if that is possible."""
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        with suppress(OSError):
            place.unlink(missing_ok=True)
    if place in _held:
        os.close(_held.pop(place))


_spill: ContextVar[Path | None] = ContextVar("spill", default=None)


def keep_in(folder: str | os.PathLike[str] | None) -> None:
    """Say where remote objects and results for stores are kept on this machine; by default in the user's cache."""
    _spill.set(None if folder is None else Path(folder).absolute())


@contextmanager
def kept_in(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Let them be kept in a folder, if one is named, until this is over."""
    before = _spill.get()
    keep_in(before if folder is None else folder)
    try:
        yield
    finally:
        keep_in(before)


def with_spill(function: Callable[P, T]) -> Callable[P, T]:
    """Let what a function fetches be kept in the folder of its parameter `spill`."""

    @wraps(function)
    def kept(*args: P.args, **kwargs: P.kwargs) -> T:
        spill = kwargs.get("spill")
        with kept_in(spill if isinstance(spill, str | os.PathLike) else None):  # the function refuses all else
            return function(*args, **kwargs)

    return kept


def spill_folder() -> Path | None:
    """Return the folder that the user chose for them, if any."""
    return _spill.get()


def large_folder(name: str) -> Path:
    """Return the folder of this name for what is fetched, or on its way to a store; it need not be there."""
    chosen = spill_folder()
    return cache_folder() / name if chosen is None else chosen / f"likewise-{name.replace('/', '-')}"


def cache_folder() -> Path:
    """Return the user's folder for what can be fetched or made again, which is there."""
    folder = user_folder("")
    if folder is None:
        raise OutputError("there is no folder for files that are fetched; set XDG_CACHE_HOME to one")
    return folder


class _Process:
    """What lives as long as this process."""


this_process = _Process()


def locked(place: Path, create: bool = True) -> int | None:
    """Take a lock, which the system releases with this process; None if another one has it, or there are no locks.

    It is held by the number that is returned until that is closed. Without `create`, the file must be there.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        handle = os.open(place, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
    except OSError:
        if create:
            raise
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.exists(place) and os.path.samestat(os.fstat(handle), os.stat(place)):
            return handle  # and no other process has removed it in between
    except OSError:
        pass
    os.close(handle)
    return None
