"""A Redis server: its URL, bounded retries, its errors made our own, and what it keeps of a store, here and there.

A URL may hold a password, which is never shown. All keys of a store begin with likewise:{NAME}: and, thanks to the
braces, belong to one slot.

- version: the id of the last change. It is all that a reader asks for as long as nothing changes.
- catalogue: names, ids and sizes of all values, and the ids of the last changes; JSON with a checksum.
- v:ID:PART: a part of a value. It is written once, and never changed, so that what is in this process stays right.
- pending: keys of parts that were written for a change that is not committed.
- lock: the token of the writer.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from likewise.base.extras import need
from likewise.errors import IncompatibleError, LikewiseError, OutputError, ParameterError
from likewise.index.store import pack, unpack

R = TypeVar("R")
Words = NDArray[np.uint64]
"""A value in memory that begins at an address divisible by eight."""
StoredValues = dict[str, tuple[str, int]]
"""Ids and sizes of values by name."""
SCHEMES = ("redis", "rediss", "unix")
PASSED_ON = {
    "db", "username", "password", "socket_timeout", "socket_connect_timeout", "ssl_ca_certs", "ssl_ca_path",
    "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_cert_reqs", "ssl_check_hostname",
}  # fmt: skip
"""Options of a URL that redis-py understands."""
EXAMPLE = "redis://host:6379/0?name=library"
LEASE = 10.0
"""Seconds after which a writer that has died no longer keeps others waiting; one that is alive renews its lock."""
GRACE = 600.0
"""Seconds for which a replaced value stays on the server, for snapshots that began before: the longest of a query."""
PATIENCE = 5.0
"""Seconds for which a server that was reached before is tried again: a restart takes about one."""
CONNECT_TIMEOUT, TIMEOUT = 5.0, 60.0
"""Seconds to wait for a connection and for an answer."""
NETWORK_OPTIONS: dict[str, Any] = {"socket_connect_timeout": CONNECT_TIMEOUT, "socket_keepalive": True}
FORMAT = 1
"""Version of how values are kept on the server; what the values are has a version of its own, in the header."""
PART = (1 << 23) - (1 << 12)
"""Bytes of a part: the server does nothing else while it copies one. With what it adds to it, a part takes 8 MiB; one
byte more would take 10."""
RECENT = 256
"""How many changes a catalogue remembers, for a writer whose connection was lost while it committed."""
ROOM = 1 << 29
"""Bytes of values that are kept though nobody uses them: between two additions, the tables that are merged next."""
PASSWORD_VARIABLE = "REDISCLI_AUTH"
"""The environment variable with the password if the URL has none, as for redis-cli."""


def is_url(path: object) -> bool:
    """Tell whether a place is a URL."""
    return isinstance(path, str) and re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", path) is not None


@dataclass(frozen=True)
class RedisAddress:
    """Where a server is, the name of an index on it, and its settings. where: the URL without password and options."""

    where: str
    name: str
    lease: float
    grace: float
    url: str = field(repr=False)
    password: str | None = field(repr=False)

    @classmethod
    def of(cls, owner: str, url: str) -> RedisAddress:
        """Parse a URL; no error shows what may be part of a password."""
        bad = ParameterError(
            f"The 'path' parameter of {owner} is not a URL such as {EXAMPLE}: scheme redis, rediss (TLS) or unix, "
            "[user:password@]host:port, the number of a database, ?name=INDEX. In a password, characters such as "
            "/ ? # @ : must be percent-encoded."
        )
        try:
            parts = urlsplit(url)
            port, host, user, password = parts.port, parts.hostname, parts.username, parts.password
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError:
            raise bad from None
        scheme = parts.scheme.lower()
        unix = scheme == "unix"
        given = "@" in parts.path + parts.query or parts.fragment
        if scheme not in SCHEMES or given or (unix and not parts.path.strip("/")) or not (unix or host):
            raise bad
        if not unix and not re.fullmatch(r"/?|/[0-9]+", parts.path):
            raise bad
        name, lease, grace = options.pop("name", "index"), options.pop("lease", LEASE), options.pop("grace", GRACE)
        if not re.fullmatch(r"[\w.-]{1,200}", name):
            raise ParameterError.of(owner, "name", "letters, digits, '.', '-' and '_' in the URL of an index", name)
        for option in options:
            if option not in PASSED_ON:
                known = ", ".join(["name", "lease", "grace", *sorted(PASSED_ON)])
                raise ParameterError(f"{owner}: the URL of an index has an option that is not one of {known}.")
        database = options.get("db") or (parts.path.strip("/") if not unix else "") or "0"
        if not re.fullmatch(r"[0-9]{1,9}", database):
            raise bad
        options["db"] = database
        user = unquote(user) if user else options.get("username")
        secret = unquote(password) if password else options.get("password")
        if secret is None:
            secret = os.environ.get(PASSWORD_VARIABLE) or None
            if secret is not None:
                options["password"] = secret
        shown_user = f"{quote(user)}@" if user else ""
        if unix:
            place = f"unix://{shown_user}{parts.path}?db={database}&name={name}"
        else:
            shown_host = f"[{host}]" if ":" in (host or "") else host
            place = f"{scheme}://{shown_user}{shown_host}:{port or 6379}/{database}?name={name}"
        whole = f"{scheme}://{parts.netloc}{parts.path}?{urlencode(options)}"
        return cls(place, name, _seconds(owner, "lease", lease), _seconds(owner, "grace", grace), whole, secret)

    @property
    def whole(self) -> str:
        """The URL by which another process finds the index, with a password that came from the environment."""
        return f"{self.url}&{urlencode({'name': self.name, 'lease': self.lease, 'grace': self.grace})}"


def _seconds(owner: str, name: str, value: str | float) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.05 <= seconds <= 1e6:
        raise ParameterError.of(owner, name, "seconds, 0.05 or more, in the URL of an index", value)
    return seconds


def redis_module() -> Any:
    """Import redis-py when it is needed."""
    need("an index on a Redis server", "redis")
    import redis

    return redis


class RedisServer:
    """A client of a server, for all threads; after a fork it makes new connections."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.where = address.where
        self.redis = redis_module()
        self._client: Any = None
        self._reached = False

    @property
    def client(self) -> Any:
        """The client, which connects when it is used."""
        client = self._client
        if client is None:
            redis = self.redis
            try:
                once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
                options = {} if self.address.url.startswith("unix:") else NETWORK_OPTIONS
                pool = redis.ConnectionPool.from_url(self.address.url, socket_timeout=TIMEOUT, retry=once, **options)
            except ValueError as error:
                raise ParameterError(
                    f"{self.where}: an option of this URL cannot be used: {self._hidden(error)}"
                ) from None
            client = self._client = redis.Redis(connection_pool=pool)
        return client

    def call(self, work: Callable[[Any], R]) -> R:
        """Return what `work` does with the client; while the server cannot be reached, try again for a while.

        The work may be done more than once. A server that was never reached is tried once, unless it says that it is
        being started.
        """
        errors, begun, pause = self.redis.exceptions, time.monotonic(), 0.02
        while True:
            try:
                result = work(self.client)
                self._reached = True
                return result
            except (errors.ConnectionError, errors.TimeoutError) as error:
                loading = isinstance(error, errors.BusyLoadingError)
                final = isinstance(error, errors.AuthenticationError) or not (self._reached or loading)
                if final or time.monotonic() - begun + pause > PATIENCE:
                    raise self.own_error(error) from error
            except errors.RedisError as error:
                raise self.own_error(error) from error
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def answers(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        """Return the answers of the server to several commands, in one round trip."""

        def work(client: Any) -> list[Any]:
            if len(commands) == 1:
                return [client.execute_command(*commands[0])]
            with client.pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return list(pipe.execute())

        return self.call(work) if commands else []

    def own_error(self, error: Exception) -> LikewiseError:
        """Return an error of redis-py as one of our own."""
        errors, text = self.redis.exceptions, self._hidden(error)
        if isinstance(error, errors.AuthenticationError):
            return LikewiseError(f"{self.where}: the server refuses this user or password: {text}")
        if isinstance(error, errors.BusyLoadingError):
            return LikewiseError(f"{self.where}: the server is still loading its data; try again later")
        if isinstance(error, errors.ConnectionError | errors.TimeoutError):
            return LikewiseError(f"{self.where}: the server cannot be reached: {text}")
        if isinstance(error, errors.ReadOnlyError):
            return OutputError(f"{self.where}: this server is a replica, which cannot be written to")
        if isinstance(error, errors.OutOfMemoryError) or "OOM " in text:
            return OutputError(f"{self.where}: the server has no memory left (maxmemory); nothing was changed")
        if "MISCONF" in text:
            return OutputError(f"{self.where}: the server cannot save to its disk, and takes no changes: {text}")
        if isinstance(error, errors.NoPermissionError):
            return OutputError(f"{self.where}: this user lacks the permission: {text}")
        return LikewiseError(f"{self.where}: {text}")

    def _hidden(self, error: Exception) -> str:
        text = " ".join(str(error).split()) or type(error).__name__
        secret = self.address.password
        return text.replace(secret, "***") if secret else text

    def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            client.connection_pool.disconnect()


class RedisKeys:
    """The keys of a store."""

    def __init__(self, name: str) -> None:
        self.prefix = f"likewise:{{{name}}}:"
        self.version, self.catalogue = f"{self.prefix}version", f"{self.prefix}catalogue"
        self.pending, self.lock = f"{self.prefix}pending", f"{self.prefix}lock"

    def parts(self, id: str, size: int, part: int) -> list[str]:
        """Return the keys of the parts of a value; an empty one has none."""
        return [f"{self.prefix}v:{id}:{number}" for number in range(-(-size // part))]


@dataclass(frozen=True)
class RedisCatalogue:
    """A state of a store. id: of the change that has made it. part: the bytes of a part."""

    id: str
    values: StoredValues
    recent: tuple[str, ...]
    part: int = PART

    def changed(self, id: str, values: StoredValues) -> RedisCatalogue:
        """Return the next state."""
        return RedisCatalogue(id, values, (*self.recent, id)[-RECENT:], self.part)

    def packed(self) -> bytes:
        """Return the catalogue as it is stored."""
        content: dict[str, Any] = {"format": FORMAT, "id": self.id, "part": self.part, "recent": self.recent}
        return pack({**content, "values": self.values})

    @classmethod
    def unpacked(cls, data: bytes, where: str) -> RedisCatalogue:
        """Return a catalogue that was stored."""
        content = unpack(data, f"{where}: the catalogue of the store")
        if content["format"] > FORMAT:
            raise IncompatibleError(
                f"{where}: values are stored in format {content['format']}, by a newer version of likewise; this one "
                f"knows formats up to {FORMAT}"
            )
        values = {name: (id, size) for name, (id, size) in content["values"].items()}
        return cls(content["id"], values, tuple(content["recent"]), content["part"])


def as_words(size: int, parts: list[Any]) -> Words:
    """Return parts of a value, one after the other, as words; its last word is filled up with zeros."""
    words: Words = np.zeros(-(-size // 8), np.uint64)
    place, target = 0, words.view(np.uint8)
    for part in parts:
        data = np.frombuffer(part, np.uint8)
        target[place : place + len(data)] = data
        place += len(data)
    words.flags.writeable = False
    return words


def as_bytes(words: Words, size: int) -> memoryview:
    """Return the bytes of a value, without copying them."""
    return words.data.cast("B")[:size] if size else memoryview(b"")


class ValueCache:
    """Values by key. One that is used by somebody is found as long as it is; the others leave, the oldest first."""

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self._alive: WeakValueDictionary[str, Words] = WeakValueDictionary()
        self._kept: OrderedDict[str, Words] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def get(self, key: str) -> Words | None:
        """Return a value, or None if it is not here."""
        with self._lock:
            words = self._alive.get(key)
            if words is not None:
                self._keep(key, words)
            return words

    def put(self, key: str, words: Words) -> Words:
        """Keep a value; return the one that is here under this key, so that there is only one in memory."""
        with self._lock:
            words = self._alive.setdefault(key, words)
            self._keep(key, words)
            return words

    def _keep(self, key: str, words: Words) -> None:
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        self._kept[key] = words
        self._bytes += words.nbytes
        while self._bytes > self.room:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.nbytes

    def forget(self, keys: list[str]) -> None:
        """Give up values that will not be asked for again."""
        with self._lock:
            for key in keys:
                words = self._kept.pop(key, None)
                self._bytes -= 0 if words is None else words.nbytes

    def clear(self) -> None:
        """Give up all values; those that are in use stay with who uses them, and are fetched again for others."""
        with self._lock:
            self._kept.clear()
            self._alive.clear()
            self._bytes = 0


SHARED = ValueCache()
"""The values of all remote stores of this process."""
