"""Who may write to a Redis store: one at a time, until it is done or has died.

The lock is a key with the writer's token, which expires unless the writer renews it. It saves work and is not what
changes rely on: a commit is made only if the lock still has the token, in one transaction with the check.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from likewise.errors import LikewiseError
from likewise.index.redis_server import RedisServer

LONGEST_PAUSE = 0.1
"""Seconds between two looks at a lock that another writer has."""


class RedisLock:
    """The lock of one writer."""

    def __init__(self, server: RedisServer, key: str, token: str) -> None:
        self._server = server
        self._key = key
        self.token = token
        self._done = threading.Event()

    def acquire(self, before: str | None) -> None:
        """Wait for the lock and renew it from then on. before: an earlier token of this writer, which gives way."""
        pause = 0.002
        while not self._server.call(lambda client: self._taken(client, before)):
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_PAUSE)
        threading.Thread(target=self._renew, name="likewise-redis-lock", daemon=True).start()

    def _milliseconds(self) -> int:
        return int(self._server.address.lease * 1000)

    def _taken(self, client: Any, before: str | None) -> bool:
        if client.set(self._key, self.token, nx=True, px=self._milliseconds()):
            return True
        holder = client.get(self._key)
        if before is not None and holder == before.encode():
            client.set(self._key, self.token, px=self._milliseconds())
            return True
        return bool(holder == self.token.encode())

    def _renew(self) -> None:
        while not self._done.wait(self._server.address.lease / 3):
            try:
                client = self._server.client
                if client.get(self._key) != self.token.encode():
                    return
                client.pexpire(self._key, self._milliseconds())
            except (self._server.redis.RedisError, LikewiseError):
                continue  # the commit will find out

    def stop(self) -> None:
        """Renew it no longer."""
        self._done.set()

    def release(self) -> None:
        """Give the lock up, if it is still this writer's; if that fails, it expires."""
        self.stop()
        errors = self._server.redis.exceptions
        try:
            with self._server.client.pipeline() as pipe:
                pipe.watch(self._key)
                if pipe.get(self._key) == self.token.encode():
                    pipe.multi()
                    pipe.delete(self._key)
                    pipe.execute()
        except errors.RedisError:
            return
