"""The embedded store: LMDB in a folder, one writing process at a time beside many that read.

INDEX/1/data.mdb is the database. To give back space, everything that is needed is copied to INDEX/2 while the lock of
writers is held; then a mark in the old database says that it was replaced, and the old files are removed. A process
that has them open finds the mark in its next transaction, and opens the new ones. A copy that was not finished is not
marked, and is overwritten by the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from likewise.errors import DamagedError, LikewiseError, MissingInput, OutputError
from likewise.index.lmdb_database import (
    DATA,
    SEAL,
    LmdbDatabase,
    acquire,
    begun,
    lmdb_module,
    own_errors,
    raise_own,
    release,
)
from likewise.index.store import Snapshot, Transaction, Write

R = TypeVar("R")
GONE = ".gone"
"""The ending of the name of a folder that is being removed."""
REPLACED = b"replaced"
"""The name of the mark."""
ATTEMPTS = 64
"""How often a transaction is begun anew because the map has grown or the database was replaced: more is a fault."""


class LmdbSnapshot(Snapshot):
    """The values of a snapshot, as views of the memory map.

    A value stays where it is as long as nothing is committed: even a change of another value may move a small one.
    """

    lasting = False

    def __init__(self, transaction: Any, place: object) -> None:
        self._transaction = transaction
        self.place = place

    def get(self, name: str) -> memoryview | None:
        """Return a value, or None if there is none of this name."""
        value: memoryview | None = self._transaction.get(name.encode())
        if value is None or not len(value) or np.frombuffer(value, np.uint8).ctypes.data % 8 == 0:
            return value
        words = np.empty(-(-len(value) // 8), np.uint64)  # a small value lies between others of its page
        words.view(np.uint8)[: len(value)] = value
        return words.data.cast("B")[: len(value)]

    def get_range(self, name: str, begin: int, end: int) -> bytes | None:
        """Return some bytes of a value, or None if there is none of this name."""
        value = self._transaction.get(name.encode())
        return None if value is None else bytes(value[begin:end])

    def names(self) -> Iterator[str]:
        """Yield the names of all values, in order."""
        with self._transaction.cursor() as cursor:
            for key in cursor.iternext(keys=True, values=False):
                if bytes(key) not in (REPLACED, SEAL):
                    yield bytes(key).decode()


class LmdbTransaction(LmdbSnapshot):
    """A write transaction."""

    def put(self, name: str, value: Any) -> None:
        """Set a value."""
        self._transaction.put(name.encode(), value)

    def delete(self, name: str) -> None:
        """Remove a value."""
        self._transaction.delete(name.encode())


class LmdbReading:
    """A snapshot, for a `with` statement. (Generators in place of this class took longer than a query.)"""

    def __init__(self, store: LmdbStore) -> None:
        self._store = store

    def __enter__(self) -> Snapshot:
        store, lmdb = self._store, lmdb_module()
        for _ in range(ATTEMPTS):
            database, transaction = store.enter(), None
            again: Callable[[], None]
            try:
                transaction = begun(database)
                if transaction.get(REPLACED) is None:
                    self._end = transaction.abort, database.leave
                    return LmdbSnapshot(transaction, (database, database.epoch, transaction.id()))
                again = partial(store.move, database)
            except lmdb.MapResizedError:
                again = partial(database.resize, 0)
            except lmdb.Error as error:
                _end(transaction, database)
                raise_own(store.folder, error)
            except BaseException:
                _end(transaction, database)
                raise
            _end(transaction, database)
            again()
        raise LikewiseError(f"{store.folder}: the index is replaced faster than it can be read")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in self._end:
            end()
        if isinstance(error, Exception) and isinstance(error, lmdb_module().Error):
            raise_own(self._store.folder, error)


def _end(transaction: Any, database: LmdbDatabase) -> None:
    """End a transaction that may not have begun."""
    if transaction is not None:
        transaction.abort()
    database.leave()


class LmdbStore:
    """Values in a folder, by LMDB."""

    def __init__(self, folder: str | Path, create: bool = False) -> None:
        self.folder = Path(folder)
        self.where = str(folder)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._database: LmdbDatabase | None = None
        if create:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                if _numbers(self.folder):
                    raise OutputError(f"{self.folder}: there is an index already")
                if any(self.folder.iterdir()):
                    raise OutputError(f"{self.folder}: this folder is not empty; name a new one for the index")
                (self.folder / "1").mkdir()
            except OSError as error:
                raise OutputError(f"{self.folder}: cannot be made: {error.strerror or error}") from error
            self._database = acquire(self.folder / "1", True)
        else:
            self._find()

    @property
    def address(self) -> str:
        """The folder, whatever the current one."""
        return str(self.folder.absolute())

    def _find(self) -> LmdbDatabase:
        """Open the current database: the first that is there and was not replaced."""
        self.close()
        for _ in range(ATTEMPTS):
            numbers = _numbers(self.folder) or _numbers(self.folder)  # replaced while the folder was listed
            if not numbers:
                raise MissingInput(f"{self.folder}: there is no index in this folder; make one with index create")
            for number in numbers:
                try:
                    database = acquire(self.folder / str(number), False)
                except MissingInput:
                    break  # it is being removed: look again
                database.enter()
                try:
                    with own_errors(self.folder), begun(database) as transaction:
                        replaced = transaction.get(REPLACED) is not None
                except lmdb_module().MapResizedError:
                    replaced = None
                finally:
                    database.leave()
                if replaced is None:
                    database.resize(0)
                    release(database)
                    break
                if not replaced:
                    self._database = database
                    return database
                release(database)
                if number < numbers[-1]:
                    _remove(self.folder / str(number))  # whoever replaced it was killed before
        raise DamagedError(f"{self.folder}: every database in it was replaced, and the new one is missing")

    @property
    def _alone(self) -> threading.RLock:
        """The lock of this process: one that was inherited by a fork may be held by a thread that is not here."""
        if self._pid != os.getpid():
            self._lock, self._pid, self._database = threading.RLock(), os.getpid(), None
        return self._lock

    def enter(self) -> LmdbDatabase:
        """Return the open database: opened again if it was closed, or after a fork. Until its `leave` its map stays
        where it is."""
        with self._alone:
            database = self._database or self._find()
            database.enter()
            return database

    def read(self, fresh: bool = False) -> AbstractContextManager[Snapshot]:
        """Return a snapshot, for a `with` statement."""
        return LmdbReading(self)

    def move(self, old: LmdbDatabase) -> None:
        """Turn to the database that has replaced this one."""
        with self._alone:
            if self._database is old:
                self._find()

    def write(self, change: Callable[[Transaction], R]) -> R:
        """Make a change in one transaction."""
        return self._changed(lambda database, transaction: change(LmdbTransaction(transaction, None)))[1]

    def rewrite(self, change: Callable[[Snapshot, Write], R]) -> R:
        """Copy what is needed to a new database, and remove the old one."""

        def copied(database: LmdbDatabase, transaction: Any) -> R:
            new = database.folder.parent / str(int(database.folder.name) + 1)
            result = self._copied(LmdbSnapshot(transaction, None), new, change)
            transaction.put(REPLACED, new.name.encode())
            return result

        old, result = self._changed(copied)
        _remove(old.folder)
        self.move(old)
        return result

    def _changed(self, work: Callable[[LmdbDatabase, Any], R]) -> tuple[LmdbDatabase, R]:
        """Do something in a write transaction; where the map is too small for it, again in a larger one."""
        lmdb = lmdb_module()
        for _ in range(ATTEMPTS):
            database = self.enter()
            again: Callable[[], None] = partial(self.move, database)
            try:
                database.check_size()
                with own_errors(self.folder), database.env.begin(write=True, buffers=True) as transaction:
                    current = transaction.get(REPLACED) is None
                    if current:
                        result = work(database, transaction)
                        number = int(transaction.id())
                        transaction.put(SEAL, str(number).encode())
                if current:
                    database.note(number)
                    return database, result
            except lmdb.MapFullError:
                again = database.grow
            except lmdb.MapResizedError:
                again = partial(database.resize, 0)
            finally:
                database.leave()
            again()
        raise LikewiseError(f"{self.folder}: the index cannot be mapped")

    def _copied(self, old: Snapshot, new: Path, change: Callable[[Snapshot, Write], R]) -> R:
        """Fill a new database, durably; what is there was not finished, for writers wait for each other."""
        shutil.rmtree(new, ignore_errors=True)
        try:
            new.mkdir()
        except OSError as error:
            raise OutputError(f"{new}: cannot be made: {error.strerror or error}") from error
        try:
            made = LmdbStore.__new__(LmdbStore)
            made.folder, made.where, made._lock, made._pid = self.folder, self.where, threading.RLock(), os.getpid()
            made._database = acquire(new, True)
            try:
                result = change(old, made.write)
            finally:
                made.close()
            handle = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        return result

    def size(self) -> int:
        """Return the bytes of the folder on disk: a file may have holes."""
        total = 0
        for path in self.folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.stat().st_blocks * 512
        return total

    def destroy(self) -> None:
        """Remove the databases, and the folder if it holds nothing else."""
        self.close()
        for number in _numbers(self.folder):
            _remove(self.folder / str(number))
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def close(self) -> None:
        """Close the database."""
        with self._alone:
            if self._database is not None:
                release(self._database)
                self._database = None


def _numbers(folder: Path) -> list[int]:
    """Return the numbers of the databases of a folder, ascending."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    return sorted(int(one.name) for one in entries if one.name.isdecimal() and os.path.exists(f"{one.path}/{DATA}"))


def _remove(folder: Path) -> None:
    """Remove a database, and what is left of others: first its name.

    LMDB makes an empty database in a folder without one, even if it is only to open it: a process that opens this one
    just now must find the folder with its data, or none.
    """
    with contextlib.suppress(OSError):
        folder.rename(folder.with_name(f"{folder.name}{GONE}"))
    for one in folder.parent.glob(f"*{GONE}"):
        shutil.rmtree(one, ignore_errors=True)
