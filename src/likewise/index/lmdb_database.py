"""An open LMDB database: opened once in a process, its map made larger, its errors made our own."""

from __future__ import annotations

import errno
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from likewise.errors import DamagedError, LikewiseError, MissingInput, OutputError
from likewise.index.lmdb_tree import check_metas, check_pages

DATA, LAST = "data.mdb", "last.txt"
SEAL = b"transaction"
"""The name of the value that says in which transaction it was written; LAST is a file that says it beside the database.
Where one of the meta pages is damaged in its number of the transaction, LMDB would take the state before the last for
the last: either this value or the file says that it is not."""
FIRST_MAP = 1 << 26
"""Bytes of the memory map of a new database."""
STEP = 1 << 30
"""A map grows by its own size, but at most by this: it takes address space only."""
PATIENCE = 5.0
"""Seconds that a fork waits for transactions of other threads; a large addition may take longer."""
OFTEN = 100
"""How often a state is looked for that two others have not replaced before it was checked."""
READERS = 1022
"""Snapshots at a time, in all processes; each takes 64 bytes of the lock file."""


@cache
def lmdb_module() -> Any:
    """Import LMDB when it is needed."""
    import lmdb

    return lmdb


class LmdbDatabase:
    """One open database of this process: LMDB must not open a file twice. It counts the stores that use it."""

    def __init__(self, folder: Path, key: str, create: bool) -> None:
        self.folder = folder
        self.key = key
        self.pid = os.getpid()
        self.users = 0
        self.epoch = 0
        self.closed = False
        self._entered = 0
        self._forking = False
        self._resizing = False
        self._free = threading.Condition()
        lmdb = lmdb_module()
        size = (folder / DATA).stat().st_size if (folder / DATA).exists() else 0
        options = {"map_size": max(FIRST_MAP, size + size // 4), "max_readers": READERS, "create": create}
        if size:
            check_metas(folder / DATA)
        with own_errors(folder):
            try:
                self.env = lmdb.open(str(folder), mode=0o666, **options)
            except (lmdb.ReadonlyError, lmdb.Error) as error:
                if create or not _not_allowed(error) or not (folder / DATA).exists():
                    raise
                locked = os.access(folder / "lock.mdb", os.W_OK)
                self.env = lmdb.open(str(folder), readonly=True, lock=locked, **options)
            self._path = folder / DATA
            try:
                self._handle = os.open(self._path, os.O_RDONLY)
                self._size = os.lseek(self._handle, 0, os.SEEK_END)
            except OSError as error:
                self.env.close()
                raise LikewiseError(f"{self._path}: {error.strerror or error}") from error
            if size:
                self._check()

    def _check(self) -> None:
        """Raise DamagedError if LMDB would follow damaged pages."""
        for _ in range(OFTEN):
            last = self._last()
            try:
                with begun(self) as transaction:
                    if check_pages(self.folder / DATA, transaction.id()):
                        self._check_last(last, transaction.id(), transaction.get(SEAL))
                        return
            except lmdb_module().MapResizedError:
                self.env.set_mapsize(0)
            except BaseException:
                self.shut()
                raise

    def _last(self) -> int:
        """Return the number that was noted beside the database; 0 if there is none that can be read."""
        with suppress(OSError, ValueError):
            text, _, checksum = (self.folder / LAST).read_bytes().partition(b" ")
            return int(text) if zlib.crc32(text) == int(checksum) else 0
        return 0

    def _check_last(self, last: int, number: int, seal: memoryview | None) -> None:
        """Raise DamagedError if this transaction is before the last one. last: noted before this one began."""
        if number < last or (seal is not None and seal != str(number).encode()):
            raise DamagedError(
                f"{self.folder / DATA} is damaged or older than the last change of the index; restore a copy of the "
                f"index without {LAST}, or make it again from its items"
            )

    def note(self, number: int) -> None:
        """Note the last transaction beside the database."""
        text = str(number).encode()
        with suppress(OSError):
            handle = os.open(self.folder / LAST, os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                os.pwrite(handle, text + b" %010d\n" % zlib.crc32(text), 0)
            finally:
                os.close(handle)

    def check_size(self) -> None:
        """Raise DamagedError if the file has become shorter than what LMDB reads: to read on would end the process."""
        before, now = self._size, os.lseek(self._handle, 0, os.SEEK_END)  # a tenth of the time of os.stat
        if now < before:
            raise DamagedError(
                f"{self._path} was truncated: it has {now:,} bytes, and had {before:,}; restore a copy of the index, "
                "or make it again from its items"
            )
        self._size = now

    def enter(self) -> None:
        """Begin a transaction: until `leave`, the map stays where it is."""
        with self._free:
            while self._resizing or self._forking:
                self._free.wait()
            self._entered += 1

    def leave(self) -> None:
        """End a transaction; the last one closes a database that nobody uses any more."""
        with self._free:
            self._entered -= 1
            if self._resizing or self._forking:
                self._free.notify_all()
        if self.users == 0:
            with _opening:
                if self.users == 0:
                    self.close()

    def resize(self, size: int) -> None:
        """Make the map larger, or as large as the database is if 0; it waits for the transactions of this process."""
        with self._free:
            if self._resizing:  # another thread does it
                self._free.wait()
                return
            self._resizing = True
            try:
                while self._entered:
                    self._free.wait()
                if not self.closed:
                    self.env.set_mapsize(size)
                    self.epoch += 1
            finally:
                self._resizing = False
                self._free.notify_all()

    @property
    def busy(self) -> bool:
        """Whether a transaction is open."""
        return self._entered > 0

    def pause(self) -> None:
        """Wait, before a fork, until no transaction is open, but not for long; none begins until `resume`."""
        with self._free:
            self._forking = True
            self._free.wait_for(lambda: not self._entered, PATIENCE)

    def resume(self) -> None:
        """Let transactions begin."""
        with self._free:
            self._forking = False
            self._free.notify_all()

    def grow(self) -> None:
        """Make the map larger."""
        size = self.env.info()["map_size"]
        self.resize(size + min(size, STEP))

    def close(self) -> None:
        """Close the database, unless a transaction is open."""
        with self._free:
            if self.closed or self._entered:
                return
            self.closed = True
            self.shut()
        _open.pop(self.key, None)

    def shut(self) -> None:
        """Close the files, whoever uses them."""
        self.env.close()
        os.close(self._handle)


_open: dict[str, LmdbDatabase] = {}
_opening = threading.RLock()
_inherited: dict[str, LmdbDatabase] = {}
"""Databases that were open when this process was forked: LMDB forbids their use, and they must be closed before they
are opened anew."""


def _before_fork() -> None:
    """Let the transactions of other threads end: LMDB cannot close a database in the child while one is open."""
    _opening.acquire()
    for database in _open.values():
        database.pause()


def _after_fork_here() -> None:
    """Let them go on."""
    for database in _open.values():
        database.resume()
    _opening.release()


def _after_fork_in_child() -> None:
    """Forget the locks, which other threads may hold: nobody would ever release them here."""
    global _opening
    _opening = threading.RLock()
    _inherited.update(_open)
    _open.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_here, after_in_child=_after_fork_in_child)


def acquire(folder: Path, create: bool) -> LmdbDatabase:
    """Return the open database of a folder."""
    with _opening:
        key = os.path.realpath(folder)
        if key in _inherited:
            if _inherited[key].busy:
                raise LikewiseError(
                    f"{folder.parent}: another thread was using this index when this process was forked, and it "
                    "cannot be opened here; start processes with spawn, or while nothing is written"
                )
            _inherited.pop(key).shut()
        known = _open.get(key)
        if known is None:
            known = _open[key] = LmdbDatabase(folder, key, create)
        known.users += 1
        return known


def release(database: LmdbDatabase) -> None:
    """Close a database that nobody uses any more."""
    with _opening:
        database.users -= 1
        if database.users == 0 and database.pid == os.getpid():
            database.close()


def _not_allowed(error: Exception) -> bool:
    """Tell whether LMDB says that a file must not be written."""
    text = str(error)
    return any(os.strerror(code) in text for code in (errno.EACCES, errno.EROFS, errno.EPERM))


@contextmanager
def own_errors(where: Path) -> Iterator[None]:
    """Turn errors of LMDB into our own."""
    try:
        yield
    except lmdb_module().Error as error:
        raise_own(where, error)


def raise_own(where: Path, error: Exception) -> NoReturn:
    """Raise our own error for one of LMDB; those that are answered by a larger map stay as they are."""
    lmdb = lmdb_module()
    if isinstance(error, (lmdb.MapFullError, lmdb.MapResizedError)):
        raise error
    if isinstance(error, lmdb.ReadonlyError):
        raise OutputError(f"{where}: this index cannot be written to by this user") from error
    if isinstance(error, (lmdb.InvalidError, lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError)):
        raise DamagedError(f"{where / DATA} is damaged or not a database of likewise: {error}") from error
    if isinstance(error, lmdb.VersionMismatchError):
        raise DamagedError(f"{where / DATA} was written by another version of LMDB: {error}") from error
    if isinstance(error, lmdb.ReadersFullError):
        raise LikewiseError(f"{where}: {READERS:,} snapshots are open already; close some of them") from error
    if os.strerror(errno.ENOSPC) in str(error) or os.strerror(errno.EDQUOT) in str(error):
        raise OutputError(f"{where}: the disk is full; nothing was changed: free some space and try again") from error
    if any(os.strerror(code) in str(error) for code in (errno.EFBIG, errno.EIO)):  # LMDB's word for a short write
        raise OutputError(
            f"{where}: not all could be written, and nothing was changed: the disk is full or fails, or a file may "
            "not become so large"
        ) from error
    if _not_allowed(error):
        raise OutputError(f"{where}: this index cannot be written to: {error}") from error
    if os.strerror(errno.ENOENT) in str(error):
        raise MissingInput(f"{where}: there is no index in this folder") from error
    raise LikewiseError(f"{where}: {error}") from error


def begun(database: LmdbDatabase) -> Any:
    """Begin a read transaction; snapshots of processes that were killed make room for it, if there is none."""
    database.check_size()
    try:
        return database.env.begin(buffers=True)
    except lmdb_module().ReadersFullError:
        if not database.env.reader_check():
            raise
        return database.env.begin(buffers=True)
