"""The shared store: values on a Redis server, one writing process at a time beside many that read.

A change writes its values under new keys, then replaces the catalogue, which lists them, in one transaction of the
server (WATCH, MULTI, EXEC). Values that are no longer listed stay for a while, for snapshots that began before, and
expire by themselves. What a writer that died has left behind is removed by the next one. No scripts are used.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
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
from likewise.index.store import Snapshot, Transaction, Write

R = TypeVar("R")
TOGETHER = 1 << 25
"""Bytes of values that are sent or asked for in one round trip."""
ATTEMPTS = 16
"""How often a change is made anew because the lock or the connection was lost: more is a fault."""
LONGEST_PAUSE = 0.1
"""Seconds between two looks at a lock that another writer has."""


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


class RedisWriting:
    """One attempt to change a store: it has the lock, sends values, and commits.

    The lock is a key with its id, which expires unless it is renewed. It saves work and is not what changes rely on: a
    commit is made only if the lock still has the id, in one transaction with the check.
    """

    def __init__(self, store: RedisStore) -> None:
        self._server, self._keys = store.server, store.keys
        self._store = store
        self.id = uuid4().hex
        self._lease = int(store.server.address.lease * 1000)
        self._done = threading.Event()
        self._renewal = threading.Thread(target=self._renew, name="likewise-redis-lock", daemon=True)
        self._sent: list[str] = []
        self._waiting: dict[str, bytes | memoryview] = {}
        self._bytes = self._count = 0

    def begin(self, before: RedisWriting | None) -> None:
        """Wait for the lock, read the catalogue, and remove what others have left unfinished.

        before: an attempt that may have been committed; its lock is taken over, so that it is not from here on.
        """
        pause = 0.002
        try:
            while not self._server.call(lambda client: self._locked(client, before)):
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, LONGEST_PAUSE)
        except LikewiseError as error:
            if before is None:
                raise
            raise LikewiseError(f"{error}; this was in a commit: the change is made wholly or not at all") from error
        self._renewal.start()
        self.base = self._store.current()
        left = self._server.call(lambda client: client.smembers(self._keys.pending))
        if left:
            self._server.call(lambda client: self._forget(client, list(left)))

    def _locked(self, client: Any, before: RedisWriting | None) -> bool:
        """Take the lock, if it is free or that of the attempt before."""
        if client.set(self._keys.lock, self.id, nx=True, px=self._lease):
            return True
        holder = client.get(self._keys.lock)
        if before is not None and holder == before.id.encode():
            client.set(self._keys.lock, self.id, px=self._lease)
            return True
        return bool(holder == self.id.encode())

    def _renew(self) -> None:
        while not self._done.wait(self._server.address.lease / 3):
            try:
                client = self._server.client
                if client.get(self._keys.lock) != self.id.encode():
                    return
                client.pexpire(self._keys.lock, self._lease)
            except (self._server.redis.RedisError, LikewiseError):
                continue  # the commit will find out

    def _forget(self, client: Any, keys: list[Any]) -> None:
        with client.pipeline(transaction=False) as pipe:
            pipe.unlink(*keys)
            pipe.srem(self._keys.pending, *keys)
            pipe.execute()

    def add(self, value: Any) -> tuple[str, int]:
        """Take a value, to be sent with others; return its id and its size."""
        data = memoryview(value)
        size = data.nbytes
        id = f"{self.id}.{self._count}"
        self._count += 1
        words = SHARED.put(id, as_words(size, [data.cast("B")] if size else []))
        whole = as_bytes(words, size)
        part = self.base.part
        for number, key in enumerate(self._keys.parts(id, size, part)):
            self._waiting[key] = whole[number * part : (number + 1) * part]
            self._bytes += len(self._waiting[key])
            if self._bytes >= TOGETHER:
                self.send()
        return id, size

    def send(self) -> None:
        """Send the values that wait."""
        waiting = self._waiting
        if not waiting:
            return

        def work(client: Any) -> None:
            with client.pipeline(transaction=False) as pipe:
                pipe.sadd(self._keys.pending, *waiting)
                for key, data in waiting.items():
                    pipe.set(key, bytes(data))
                pipe.execute()

        self._sent += waiting
        self._server.call(work)
        self._waiting, self._bytes = {}, 0

    def commit(self, values: StoredValues) -> bool:
        """Replace the catalogue; return False if that failed, or may have.

        It fails if the lock was lost, or if values are not there: a server that was restarted may have lost some.
        """
        self.send()
        base, keys, errors = self.base, self._keys, self._server.redis.exceptions
        after = base.changed(self.id, values)
        now = {key for id, size in values.values() for key in keys.parts(id, size, base.part)}
        old = [key for id, size in base.values.values() for key in keys.parts(id, size, base.part) if key not in now]
        new = [key for key in self._sent if key in now]
        unused = [key for key in self._sent if key not in now]
        grace = int(self._server.address.grace * 1000)
        try:
            with self._server.client.pipeline() as pipe:
                pipe.watch(keys.lock, keys.version)
                if pipe.get(keys.lock) != self.id.encode() or pipe.get(keys.version) != base.id.encode():
                    return False
                if new and pipe.exists(*new) != len(new):
                    return False
                pipe.multi()
                pipe.set(keys.catalogue, after.packed())
                pipe.set(keys.version, after.id)
                pipe.delete(keys.lock)
                if self._sent:
                    pipe.srem(keys.pending, *self._sent)
                if unused:
                    pipe.unlink(*unused)
                for key in old:
                    pipe.pexpire(key, grace)
                pipe.execute()
        except (errors.WatchError, errors.ConnectionError, errors.TimeoutError):
            return False
        except errors.RedisError as error:
            raise self._server.own_error(error) from error
        self._store.committed(after)
        return True

    def stop(self) -> None:
        """End an attempt that has committed, or that another one follows: the lock is renewed no longer.

        The thread is waited for: its connection must not be closed while it reads an answer.
        """
        self._done.set()
        if self._renewal.is_alive():
            self._renewal.join()

    def abandon(self) -> None:
        """Give up: remove what was sent, if the server can be reached, and the lock, which expires else."""
        self.stop()
        SHARED.forget([f"{self.id}.{number}" for number in range(self._count)])
        if self._sent:
            with contextlib.suppress(self._server.redis.RedisError, LikewiseError):
                self._forget(self._server.client, self._sent)
        with contextlib.suppress(self._server.redis.RedisError), self._server.client.pipeline() as pipe:
            pipe.watch(self._keys.lock)
            if pipe.get(self._keys.lock) == self.id.encode():
                pipe.multi()
                pipe.delete(self._keys.lock)
                pipe.execute()


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
                writing = RedisWriting(self)
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
