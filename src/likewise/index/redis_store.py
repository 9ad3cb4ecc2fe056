"""The shared store: values on a Redis server, one writing process at a time beside many that read.

A change writes its values under new keys, then replaces the catalogue, which lists them, in one transaction of the
server (WATCH, MULTI, EXEC). Values that are no longer listed stay for a while, for snapshots that began before, and
expire by themselves. What a writer that died has left behind is removed by the next one. No scripts are used.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

from likewise.errors import DamagedError, LikewiseError, MissingInput, OutputError
from likewise.index.redis_server import (
    SHARED,
    RedisAddress,
    RedisCatalogue,
    RedisKeys,
    RedisServer,
    StoredValues,
    Words,
    as_bytes,
    as_words,
)
from likewise.index.redis_writing import TOGETHER, RedisWriting
from likewise.index.store import Snapshot, Transaction, Write

R = TypeVar("R")
ATTEMPTS = 16
"""How often a change is made anew because the lock or the connection was lost: more is a fault."""


class RedisSnapshot(Snapshot):
    """The values of a state of a store; those that are not in this process yet are fetched when they are read."""

    lasting = True

    def __init__(self, store: RedisStore, catalogue: RedisCatalogue, fresh: bool = False) -> None:
        self._store = store
        self._fresh = fresh
        self._catalogue = catalogue
        self.values: StoredValues = catalogue.values
        self.place: object = catalogue.id

    def known(self, name: str) -> memoryview | None:
        """Return a value that is in this process already."""
        id, size = self.values.get(name, ("", 0))
        words = SHARED.get(id) if id and not self._fresh else None
        return None if words is None else as_bytes(words, size)

    def get(self, name: str) -> memoryview | None:
        """Return a value, or None if there is none of this name."""
        return self.get_many([name])[name]

    def get_many(self, names: Iterable[str]) -> dict[str, memoryview | None]:
        """Return values by name, in one round trip unless they are very large."""
        found: dict[str, memoryview | None] = {name: self.known(name) for name in names}
        wanted = {name: self.values[name] for name, value in found.items() if value is None and name in self.values}
        if wanted:
            fetched = self._store.fetch(list(wanted.values()), self._catalogue.part, not self._fresh)
            for name, (id, size) in wanted.items():
                if id in fetched:
                    found[name] = as_bytes(fetched[id], size)
            if len(fetched) < len(wanted):
                self._store.check_current(self._catalogue)
        return found

    def get_range(self, name: str, begin: int, end: int) -> bytes | None:
        """Return some bytes of a value, or None if there is none of this name, or not so many."""
        whole = self.known(name)
        if whole is not None or name not in self.values:
            return None if whole is None else bytes(whole[begin:end])
        found = self._store.fetch_range(*self.values[name], self._catalogue.part, begin, end)
        if len(found) < end - begin:
            self._store.check_current(self._catalogue)
            return None
        return found

    def names(self) -> Iterator[str]:
        """Yield the names of all values, in order."""
        yield from sorted(self.values)


class RedisTransaction(RedisSnapshot):
    """A change that is being made: its values are on the server, or on the way, but not in the catalogue yet."""

    def __init__(self, store: RedisStore, writing: RedisWriting, values: StoredValues) -> None:
        super().__init__(store, writing.base)
        self._writing = writing
        self.values = dict(values)

    def get_many(self, names: Iterable[str]) -> dict[str, memoryview | None]:
        """Return values by name."""
        self._writing.send()
        return super().get_many(names)

    def get_range(self, name: str, begin: int, end: int) -> bytes | None:
        """Return some bytes of a value."""
        self._writing.send()
        return super().get_range(name, begin, end)

    def put(self, name: str, value: Any) -> None:
        """Set a value."""
        self.values[name] = self._writing.add(value)

    def delete(self, name: str) -> None:
        """Remove a value."""
        self.values.pop(name, None)


class RedisStore:
    """Values on a Redis server."""

    def __init__(self, url: str, create: bool = False, owner: str = "Index") -> None:
        address = RedisAddress.of(owner, url)
        self.server = RedisServer(address)
        self.keys = RedisKeys(address.name)
        self.where = address.where
        self._lock = threading.RLock()
        self._latest: RedisCatalogue | None = None
        self._changing = False
        try:
            if create:
                self._create()
            else:
                self.current()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """The URL with all options and, if there is one, the password."""
        return self.server.address.whole

    def _create(self) -> None:
        """Make an empty store; one that is empty already is one whose creation was interrupted."""
        errors = self.server.redis.exceptions

        def work(client: Any) -> None:
            with client.pipeline() as pipe:
                pipe.watch(self.keys.version)
                data = pipe.get(self.keys.catalogue)
                if data is not None and RedisCatalogue.unpacked(data, self.where).values:
                    raise OutputError(f"{self.where}: there is an index already")
                if data is None:
                    pipe.multi()
                    empty = RedisCatalogue(uuid4().hex, {}, ())
                    pipe.set(self.keys.catalogue, empty.packed())
                    pipe.set(self.keys.version, empty.id)
                    with contextlib.suppress(errors.WatchError):  # another process makes it
                        pipe.execute()

        self.server.call(work)

    def current(self) -> RedisCatalogue:
        """Return the catalogue: one short round trip if it has not changed.

        If it had changed when it was last asked for, it is likely to do so again, and comes with the answer.
        """
        latest, keys = self._latest, self.keys
        asked = [("GET", keys.version), ("GET", keys.catalogue)]
        version, *more = self.server.answers(asked if self._changing else asked[:1])
        self._changing = latest is not None and version != latest.id.encode()
        if latest is not None and not self._changing:
            return latest
        (data,) = more or self.server.answers(asked[1:])
        if (version is None) != (data is None):
            raise DamagedError(
                f"{self.where}: one of the keys of this index is gone from the server; restore it, or make the index "
                "again"
            )
        if version is None or data is None:
            raise MissingInput(
                f"{self.where}: there is no index of this name on the server; make one with index create"
            )
        self._latest = latest = RedisCatalogue.unpacked(data, self.where)
        return latest

    def committed(self, catalogue: RedisCatalogue) -> None:
        """Remember a state that this process has made."""
        self._latest = catalogue

    def check_current(self, catalogue: RedisCatalogue) -> None:
        """Raise if a value is missing because the snapshot is older than the server keeps it."""
        if self.current().id != catalogue.id:
            raise LikewiseError(
                f"{self.where}: the index was changed more than {self.server.address.grace:g} seconds ago, and what it "
                "held before is gone; ask again, or make the grace in its URL longer"
            )

    def fetch(self, wanted: list[tuple[str, int]], part: int, keep: bool) -> dict[str, Words]:
        """Return values from the server by id; those that are not there, or not whole, are left out."""
        values: dict[str, Words] = {}
        keys: dict[tuple[str, int], list[str]] = {}
        for number, (id, size) in enumerate(wanted, 1):
            keys[id, size] = self.keys.parts(id, size, part)
            if number < len(wanted) and sum(size for _, size in keys) < TOGETHER:
                continue
            answers = iter(self.server.answers([("GET", key) for parts in keys.values() for key in parts]))
            for (value, length), parts in keys.items():
                whole = [data for data in (next(answers) for _ in parts) if data is not None]
                if len(whole) == len(parts) and sum(map(len, whole)) == length:
                    words = as_words(length, whole)
                    values[value] = SHARED.put(value, words) if keep else words
            keys = {}
        return values

    def fetch_range(self, id: str, size: int, part: int, begin: int, end: int) -> bytes:
        """Return some bytes of a value from the server; fewer of them if they are not there."""
        keys = list(enumerate(self.keys.parts(id, size, part)))[begin // part : -(-end // part)] if end > begin else []
        places = [(key, max(0, begin - number * part), min(part, end - number * part) - 1) for number, key in keys]
        return b"".join(self.server.answers([("GETRANGE", *place) for place in places]))

    @contextmanager
    def read(self, fresh: bool = False) -> Iterator[Snapshot]:
        """Yield a snapshot."""
        yield RedisSnapshot(self, self.current(), fresh)

    def write(self, change: Callable[[Transaction], R]) -> R:
        """Make a change and commit it."""

        def work(writing: RedisWriting) -> tuple[R, StoredValues]:
            transaction = RedisTransaction(self, writing, writing.base.values)
            return change(transaction), transaction.values

        return self._changed(work)

    def rewrite(self, change: Callable[[Snapshot, Write], R]) -> R:
        """Replace everything; the old values expire."""

        def work(writing: RedisWriting) -> tuple[R, StoredValues]:
            made: StoredValues = {}

            def write(part: Callable[[Transaction], Any]) -> Any:
                nonlocal made
                transaction = RedisTransaction(self, writing, made)
                result = part(transaction)
                made = transaction.values
                return result

            return change(RedisSnapshot(self, writing.base), write), made

        return self._changed(work)

    def _changed(self, work: Callable[[RedisWriting], tuple[R, StoredValues]]) -> R:
        """Make a change and commit it; again if the lock or the connection was lost and it is not there."""
        with self._lock:
            before: RedisWriting | None = None
            done: list[R] = []
            for _ in range(ATTEMPTS):
                writing = RedisWriting(self.server, self.keys, self)
                try:
                    writing.begin(before)
                    if before is not None and before.id in writing.base.recent:
                        writing.abandon()
                        return done[-1]
                    result, values = work(writing)
                    done.append(result)
                    if values == writing.base.values:
                        writing.abandon()
                        return result
                    if writing.commit(values):
                        return result
                except BaseException:
                    writing.abandon()
                    raise
                finally:
                    writing.stop()
                before = writing
            raise LikewiseError(
                f"{self.where}: the lock was lost {ATTEMPTS} times while a change was made; nothing was changed"
            )

    def size(self) -> int:
        """Return the bytes of all values on the server; those that will expire are not counted."""
        return sum(size for _, size in self.current().values.values())

    def destroy(self) -> None:
        """Remove all keys of the store."""

        def work(client: Any) -> None:
            client.unlink(self.keys.version, self.keys.catalogue)
            for key in client.scan_iter(match=f"{self.keys.prefix}*", count=1000):
                client.unlink(key)

        self.server.call(work)
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._latest = None
        self.server.close()
