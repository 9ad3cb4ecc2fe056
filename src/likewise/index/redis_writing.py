"""One attempt to change a store on a Redis server: the lock, the values that are sent, the commit."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Any, Protocol
from uuid import uuid4

from likewise.errors import LikewiseError
from likewise.index.redis_server import (
    SHARED,
    RedisCatalogue,
    RedisKeys,
    RedisServer,
    StoredValues,
    as_bytes,
    as_words,
)

TOGETHER = 1 << 25
"""Bytes of values that are sent or asked for in one round trip."""
LONGEST_PAUSE = 0.1
"""Seconds between two looks at a lock that another writer has."""


class LatestCatalogue(Protocol):
    """What a store knows of its catalogue."""

    def current(self) -> RedisCatalogue:
        """Return the catalogue of the server."""

    def committed(self, catalogue: RedisCatalogue) -> None:
        """Take a catalogue that was committed for the current one."""


class RedisWriting:
    """One attempt to change a store: it has the lock, sends values, and commits.

    The lock is a key with its id, which expires unless it is renewed. It saves work and is not what changes rely on: a
    commit is made only if the lock still has the id, in one transaction with the check.
    """

    def __init__(self, server: RedisServer, keys: RedisKeys, latest: LatestCatalogue) -> None:
        self._server, self._keys, self._latest = server, keys, latest
        self.id = uuid4().hex
        self._lease = int(server.address.lease * 1000)
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
        self.base = self._latest.current()
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
        self._latest.committed(after)
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
