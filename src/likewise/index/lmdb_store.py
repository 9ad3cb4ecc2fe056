"""The embedded store: LMDB in a folder, one writing process at a time beside many that read.

INDEX/1/data.mdb is the database. To give back space, everything that is needed is copied to INDEX/2 while the lock of
writers is held; then a mark in the old database says that it was replaced, and the old files are removed. A process
that has them open finds the mark in its next transaction, and opens the new ones. A copy that was not finished is not
marked, and is overwritten by the next one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from likewise.errors import DamagedError, LikewiseError, MissingInput, OutputError
from likewise.index.store import Snapshot, Transaction, Write

R = TypeVar("R")
DATA = "data.mdb"
REPLACED = b"replaced"
"""The name of the mark."""
FIRST_MAP = 1 << 26
"""Bytes of the memory map of a new database."""
STEP = 1 << 30
"""A map grows by its own size, but at most by this: it takes address space only."""
READERS = 1022
"""Snapshots at a time, in all processes; each takes 64 bytes of the lock file."""
ATTEMPTS = 64
"""How often a transaction is begun anew because the map has grown or the database was replaced: more is a fault."""


def _lmdb() -> Any:
    import lmdb

    return lmdb


class LmdbSnapshot:
    """The values of a snapshot, as views of the memory map."""

    def __init__(self, transaction: Any, place: object) -> None:
        self._transaction = transaction
        self.place = place

    def get(self, name: str) -> memoryview | None:
        """Return a value, or None if there is none of this name."""
        value: memoryview | None = self._transaction.get(name.encode())
        return value

    def names(self) -> Iterator[str]:
        """Yield the names of all values, in order."""
        with self._transaction.cursor() as cursor:
            for key in cursor.iternext(keys=True, values=False):
                if bytes(key) != REPLACED:
                    yield bytes(key).decode()


class LmdbTransaction(LmdbSnapshot):
    """A write transaction."""

    def put(self, name: str, value: Any) -> None:
        """Set a value."""
        self._transaction.put(name.encode(), value)

    def delete(self, name: str) -> None:
        """Remove a value."""
        self._transaction.delete(name.encode())


class _Database:
    """One open database of this process: LMDB must not open a file twice. It counts the stores that use it."""

    def __init__(self, folder: Path, key: str, create: bool) -> None:
        self.folder = folder
        self.key = key
        self.pid = os.getpid()
        self.users = 0
        self.epoch = 0
        self.closed = False
        self._entered = 0
        self._resizing = False
        self._free = threading.Condition()
        lmdb = _lmdb()
        size = (folder / DATA).stat().st_size if (folder / DATA).exists() else 0
        options = {"map_size": max(FIRST_MAP, size + size // 4), "max_readers": READERS, "create": create}
        with _errors(folder):
            try:
                self.env = lmdb.open(str(folder), mode=0o666, **options)
            except (lmdb.ReadonlyError, lmdb.Error) as error:
                if create or not _not_allowed(error) or not (folder / DATA).exists():
                    raise
                locked = os.access(folder / "lock.mdb", os.W_OK)
                self.env = lmdb.open(str(folder), readonly=True, lock=locked, **options)

    def enter(self) -> None:
        """Begin a transaction: until `leave`, the map stays where it is."""
        with self._free:
            while self._resizing:
                self._free.wait()
            self._entered += 1

    def leave(self) -> None:
        """End a transaction; the last one closes a database that nobody uses any more."""
        with self._free:
            self._entered -= 1
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
            self.env.close()
        _open.pop(self.key, None)


_open: dict[str, _Database] = {}
_opening = threading.RLock()


def _acquire(folder: Path, create: bool) -> _Database:
    """Return the open database of a folder."""
    with _opening:
        key = os.path.realpath(folder)
        known = _open.get(key)
        if known is not None and known.pid != os.getpid():  # inherited: LMDB forbids its use after a fork
            known.env.close()
            known = None
        if known is None:
            known = _open[key] = _Database(folder, key, create)
        known.users += 1
        return known


def _release(database: _Database) -> None:
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
def _errors(where: Path) -> Iterator[None]:
    """Turn errors of LMDB into our own."""
    lmdb = _lmdb()
    try:
        yield
    except (lmdb.MapFullError, lmdb.MapResizedError):
        raise
    except lmdb.ReadonlyError as error:
        raise OutputError(f"{where}: this index cannot be written to by this user") from error
    except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError) as error:
        raise DamagedError(f"{where / DATA} is damaged or is no database of likewise: {error}") from error
    except lmdb.VersionMismatchError as error:
        raise DamagedError(f"{where / DATA} was written by another version of LMDB: {error}") from error
    except lmdb.ReadersFullError as error:
        raise LikewiseError(f"{where}: {READERS:,} snapshots are open already; close some of them") from error
    except lmdb.Error as error:
        if os.strerror(errno.ENOSPC) in str(error) or os.strerror(errno.EDQUOT) in str(error):
            raise OutputError(f"{where}: the disk is full; nothing was changed: make room and try again") from error
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


class LmdbStore:
    """Values in a folder, by LMDB."""

    def __init__(self, folder: str | Path, create: bool = False) -> None:
        self.folder = Path(folder)
        self.where = str(folder)
        self._lock = threading.RLock()
        self._database: _Database | None = None
        if create:
            try:
                (self.folder / "1").mkdir(parents=True)
            except FileExistsError as error:
                raise OutputError(f"{self.folder}: there is an index already") from error
            except OSError as error:
                raise OutputError(f"{self.folder}: cannot be made: {error.strerror or error}") from error
            self._database = _acquire(self.folder / "1", True)
        else:
            self._find()

    def _find(self) -> _Database:
        """Open the current database: the first that is there and was not replaced."""
        self.close()
        for _ in range(ATTEMPTS):
            numbers = _numbers(self.folder)
            if not numbers:
                raise MissingInput(f"{self.folder}: there is no index in this folder; make one with index create")
            for number in numbers:
                try:
                    database = _acquire(self.folder / str(number), False)
                except MissingInput:
                    break  # it is being removed: look again
                try:
                    with _errors(self.folder), _transaction(database) as transaction:
                        replaced = transaction.get(REPLACED) is not None
                except _lmdb().MapResizedError:
                    database.resize(0)
                    _release(database)
                    break
                if not replaced:
                    self._database = database
                    return database
                _release(database)
                if number < numbers[-1]:
                    _remove(self.folder / str(number))  # whoever replaced it was killed before
        raise DamagedError(f"{self.folder}: every database in it was replaced, and the new one is missing")

    def _current(self) -> _Database:
        """Return the open database, for a transaction: opened again if it was closed, or after a fork."""
        with self._lock:
            database = self._database
            if database is None or database.pid != os.getpid():
                database = self._find()
            return database

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Yield a snapshot."""
        lmdb = _lmdb()
        for _ in range(ATTEMPTS):
            with self._lock:
                database = self._current()
                database.enter()
            resized = False
            try:
                with _errors(self.folder), ExitStack() as stack:
                    try:
                        transaction = stack.enter_context(_begun(database))
                    except lmdb.MapResizedError:
                        resized = True
                    else:
                        if transaction.get(REPLACED) is None:
                            yield LmdbSnapshot(transaction, (database, database.epoch))
                            return
            finally:
                database.leave()
            if resized:
                database.resize(0)
            else:
                self._moved(database)
        raise LikewiseError(f"{self.folder}: the index is replaced faster than it can be read")

    def _moved(self, old: _Database) -> None:
        """Turn to the database that has replaced this one."""
        with self._lock:
            if self._database is old:
                self._find()

    def write(self, change: Callable[[Transaction], R]) -> R:
        """Make a change in one transaction; where the map is too small for it, again in a larger one."""
        lmdb = _lmdb()
        for _ in range(ATTEMPTS):
            with self._lock:
                database = self._current()
                database.enter()
            try:
                with _errors(self.folder), database.env.begin(write=True, buffers=True) as transaction:
                    if transaction.get(REPLACED) is None:
                        return change(LmdbTransaction(transaction, None))
                size = None
            except lmdb.MapFullError:
                size = -1
            except lmdb.MapResizedError:
                size = 0
            finally:
                database.leave()
            self._again(database, size)
        raise LikewiseError(f"{self.folder}: the index cannot be mapped")

    def _again(self, database: _Database, size: int | None) -> None:
        """Prepare for another attempt: a larger map (-1), that of another process (0), or a new database (None)."""
        if size is None:
            self._moved(database)
        elif size:
            database.grow()
        else:
            database.resize(0)

    def rewrite(self, change: Callable[[Snapshot, Write], R]) -> R:
        """Copy what is needed to a new database, and remove the old one."""
        lmdb = _lmdb()
        for _ in range(ATTEMPTS):
            with self._lock:
                database = self._current()
                database.enter()
            new = database.folder.parent / str(int(database.folder.name) + 1)
            done: list[R] = []
            size: int | None = None
            try:
                with _errors(self.folder), database.env.begin(write=True, buffers=True) as transaction:
                    if transaction.get(REPLACED) is None:
                        done.append(self._copied(LmdbSnapshot(transaction, None), new, change))
                        transaction.put(REPLACED, new.name.encode())
            except lmdb.MapFullError:
                size = -1
            except lmdb.MapResizedError:
                size = 0
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)
                raise
            finally:
                database.leave()
            if size is None and done:
                _remove(database.folder)
                self._moved(database)
                return done[0]
            self._again(database, size)
        raise LikewiseError(f"{self.folder}: the index cannot be mapped")

    def _copied(self, old: Snapshot, new: Path, change: Callable[[Snapshot, Write], R]) -> R:
        """Fill a new database, durably."""
        shutil.rmtree(new, ignore_errors=True)
        try:
            new.mkdir()
        except OSError as error:
            raise OutputError(f"{new}: cannot be made: {error.strerror or error}") from error
        made = LmdbStore.__new__(LmdbStore)
        made.folder, made.where, made._lock = self.folder, self.where, threading.RLock()
        made._database = _acquire(new, True)
        try:
            result = change(old, made.write)
        finally:
            made.close()
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        return result

    def size(self) -> int:
        """Return the bytes of the folder on disk: a file may have holes."""
        total = 0
        for path in self.folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.stat().st_blocks * 512
        return total

    def clear_readers(self) -> int:
        """Forget the snapshots of processes that were killed, so that their pages can be used again."""
        with _errors(self.folder):
            return int(self._current().env.reader_check())

    def destroy(self) -> None:
        """Remove the databases, and the folder if it holds nothing else."""
        self.close()
        for number in _numbers(self.folder):
            _remove(self.folder / str(number))
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            if self._database is not None:
                _release(self._database)
                self._database = None


@contextmanager
def _begun(database: _Database) -> Iterator[Any]:
    """Yield a read transaction; snapshots of processes that were killed make room for it, if there is none."""
    lmdb = _lmdb()
    try:
        transaction = database.env.begin(buffers=True)
    except lmdb.ReadersFullError:
        if not database.env.reader_check():
            raise
        transaction = database.env.begin(buffers=True)
    try:
        yield transaction
    finally:
        transaction.abort()


@contextmanager
def _transaction(database: _Database) -> Iterator[Any]:
    """Yield a read transaction of a database that was just opened."""
    database.enter()
    try:
        with _begun(database) as transaction:
            yield transaction
    finally:
        database.leave()


def _numbers(folder: Path) -> list[int]:
    """Return the numbers of the databases of a folder, ascending."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    return sorted(int(one.name) for one in entries if one.name.isdecimal() and os.path.exists(f"{one.path}/{DATA}"))


def _remove(folder: Path) -> None:
    """Remove a database: its data first, without which it is none."""
    with contextlib.suppress(OSError):
        (folder / DATA).unlink()
    shutil.rmtree(folder, ignore_errors=True)
