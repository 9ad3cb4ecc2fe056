"""The process that serves: where it listens, how long connections may take, and how it stops.

Clients that are slow on purpose must not keep others out: a request has to arrive, be answered and be read within
limits of time, from its first byte on. Where more connections are open than allowed, one is closed for each that comes:
of the client that has the most, the oldest that the service is not working for. So there is always room for a client
that asks and reads its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import math
import signal
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from likewise.errors import MissingInput, OutputError, ParameterError
from likewise.serve.guard import Log
from likewise.serve.models import HERE

BACKLOG = 4096
"""Connections that the system keeps until they are accepted."""
AT_ONCE = 64
"""Connections that are accepted before requests are answered again."""
SPARE_FILES = 256
"""Open files of a process that are not connections."""
SWEEP, TOLD = 2, 10
"""Ticks of the server, of a tenth of a second, after which late connections are looked for, and told of."""
UNREAD = 1 << 18
"""Bytes of an answer that the system holds for a client that does not read; it would be megabytes."""
GARBAGE = (10_000, 10, 100)
"""Thresholds of the collector of garbage: to look through all that thousands of connections hold takes a quarter of a
second, in which nobody is answered."""
SWITCH = 0.0005
"""Seconds for which a thread that works on an answer holds up the loop that accepts and reads, at most."""
HANDSHAKE = 10.0
"""Seconds in which the encryption of a connection must be agreed on."""
ONCE = 2.5
"""Seconds in which a second interrupt is taken for the first: a terminal sends it to both processes of a command, and
on a busy machine one of them may take its time to pass it on."""
AFTER = 2
"""Seconds that requests have to be answered after the time limit of a request, when the service is told to stop."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0: one that is free."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        bound = socket.create_server(address, family=family, backlog=BACKLOG)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot listen on {host}, port {port}: {reason}") from error
    # Connections inherit it. asyncio does not set it for such a socket; an answer, sent in two parts, took 40 ms more.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD)
    return bound


def is_loopback(bound: socket.socket) -> bool:
    """Return whether only programs of this machine can connect."""
    address = str(bound.getsockname()[0]).partition("%")[0]
    return ipaddress.ip_address(address).is_loopback


def url_of(bound: socket.socket, tls: bool = False) -> str:
    """Return the address of a listening socket as a URL."""
    host, port = bound.getsockname()[:2]
    return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}/"


@dataclass(frozen=True)
class TlsFiles:
    """The files with the certificate of a service and its key, for HTTPS."""

    path: Path
    key: Path

    def __post_init__(self) -> None:
        for path in (self.path, self.key):
            try:
                path.read_bytes()
            except OSError as error:
                raise MissingInput(f"{path}: cannot be read: {error.strerror or error}") from error
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.path, self.key, self._no_password)
        except (ssl.SSLError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise ParameterError(f"{self.path} and {self.key} are not a certificate and its key: {reason}") from error

    def _no_password(self) -> str:
        raise ValueError("the key is encrypted; give one that is not")


def room_for(connections: int) -> int:
    """Return how many connections this process may have open, at most; it is allowed more open files if need be."""
    try:
        import resource
    except ImportError:  # Windows
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, min(connections, soft - SPARE_FILES))
    return connections


class GracefulServer(uvicorn.Server):
    """A server that, told to stop, finishes the requests it has begun; a second interrupt ends it at once."""

    _asked = -math.inf

    def __init__(self, config: uvicorn.Config, gate: Gate, log: Log | None, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._gate, self._log, self._tell = gate, log, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        if self.config.is_ssl:  # uvicorn would wait a minute for every handshake
            setattr(loop, "create_server", partial(loop.create_server, ssl_handshake_timeout=HANDSHAKE))  # noqa: B010
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(BACKLOG)  # asyncio takes this number for that of connections to be accepted at once
        self._tell()

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections."""
        if counter % SWEEP == 0:
            self._gate.sweep(asyncio.get_running_loop().time())
        told = self._gate.told() if counter % TOLD == 0 else None
        if told is not None and self._log is not None:
            self._log({"event": "connections", **told})
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop. The signal is not raised again afterwards: the process ends with code 0."""
        now = time.monotonic()
        if self.should_exit and sig == signal.SIGINT and now - self._asked > ONCE:
            self.force_exit = True
        if not self.should_exit:
            self._asked = now
        self.should_exit = True


class LogHandler(logging.Handler):
    """Passes on what uvicorn has to say."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._write = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        entry: dict[str, Any] = {"event": "server", "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            entry["fault"] = logging.Formatter().formatException(record.exc_info)
        self._write(entry)


def serve_app(
    app: FastAPI,
    bound: socket.socket,
    timeout: float,
    log: Log | None,
    connections: int = 4096,
    each: int | None = None,
    certificate: TlsFiles | None = None,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve an application until the process is told to stop (SIGTERM, or SIGINT).

    connections: open at a time; each: of one client, a quarter of them if None. started: called when requests are
    answered, and signals are heeded.
    """
    connections = room_for(connections)
    gate = Gate(connections, each or max(1, connections // 4), timeout)
    config = uvicorn.Config(
        app,
        http=cast(Any, partial(Connection, gate=gate)),
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="on",
        ws="none",
        backlog=AT_ONCE,
        timeout_graceful_shutdown=math.ceil(timeout) + AFTER,
        ssl_certfile=certificate.path if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    logger = logging.getLogger("uvicorn")
    handler = LogHandler(log) if log is not None else logging.NullHandler()
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH)
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    try:
        GracefulServer(config, gate, log, started).run(sockets=[bound])
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        logger.removeHandler(handler)
        logger.propagate = propagate
        bound.close()


def check_open(bound: socket.socket, token: bool) -> bool:
    """Return whether others can connect; raise if they can and there is no token."""
    public = not is_loopback(bound)
    if public and not token:
        raise ParameterError(
            f"serve listens on {url_of(bound)} only with a token: other machines can connect. Give a file with one "
            "('token_file'), set LIKEWISE_TOKEN, or leave out 'host'."
        )
    return public


HEAD = 10.0
"""Seconds, at most, in which the head of a request must arrive."""
PHASES = 3
"""Parts of a request that have a time limit each: it arrives, is answered, and the answer is read."""


class Connection(H11Protocol):
    """A connection that knows since when its client has been waited for, and its gate."""

    def __init__(self, *args: Any, gate: Gate, **more: Any) -> None:
        super().__init__(*args, **more)
        self.gate = gate
        self.since: float | None = None
        """When the head or the rest of a request was first waited for; None between two requests."""
        self.unread: float | None = None
        """When the rest of an answer that was given was seen not to be read; None if all is read."""

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client else ""

    @property
    def between(self) -> bool:
        """Whether no request has arrived that is not answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def waits(self) -> bool:
        """Whether the client is waited for, not the service."""
        return self.between or self.cycle.more_body or self.cycle.response_started

    def drop(self) -> None:
        """Close at once, and leave nothing of it: the system would remember it for a minute, and its client's port."""
        found = self.transport.get_extra_info("socket")
        if found is not None:
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self.gate.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self.gate.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrived; the first byte of a request begins its time."""
        if self.since is None:
            self.since = self.loop.time()
        super().data_received(data)

    def handle_events(self) -> None:
        """Begin what has arrived as a whole; a head that has is followed by the time for the rest."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self.since = self.loop.time()
            self.scope["extensions"] = {} if self.cycle.more_body else {HERE: {}}

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.since = None
        super().on_response_complete()


@dataclass
class Gate:
    """The open connections, by the address of the client.

    most: connections at a time; each: of one client, but for those of this machine, which may be a proxy. seconds: for
    each part of a request.
    """

    most: int
    each: int
    seconds: float
    open: dict[str, dict[Connection, None]] = field(default_factory=dict)
    count: int = 0
    shed: int = 0
    late: int = 0

    def admit(self, one: Connection) -> None:
        """Take a connection, and close another if there are too many."""
        mine = self.open.setdefault(one.address, {})
        mine[one] = None
        self.count += 1
        if len(mine) > self.each and not _is_local(one.address):
            self._close(mine, one)
        elif self.count > self.most:
            self._close(max(self.open.values(), key=len), one)

    def _close(self, some: dict[Connection, None], new: Connection) -> None:
        """Close the oldest of some connections that waits for its client; the new one if all are being answered."""
        self.shed += 1
        victim = next((one for one in some if one is not new and one.waits), new)
        self.leave(victim)
        victim.drop()

    def leave(self, one: Connection) -> None:
        """Forget a connection."""
        mine = self.open.get(one.address, {})
        if one in mine:
            del mine[one]
            self.count -= 1
            if not mine:
                del self.open[one.address]

    def sweep(self, now: float) -> None:
        """Close connections whose time is over."""
        head = min(HEAD, self.seconds)
        for one in [one for some in self.open.values() for one in some]:
            if one.between and (one.transport.is_closing() or one.transport.get_write_buffer_size()):
                one.unread = now if one.unread is None else one.unread
                over = now - one.unread > self.seconds
            else:
                one.unread = None
                limit = head if one.between else head + PHASES * self.seconds
                over = one.since is not None and now - one.since > limit
            if over:
                self.late += 1
                self.leave(one)
                one.drop()

    def told(self) -> dict[str, int] | None:
        """Return how many connections were closed since the last time, and how many are open; None if none was."""
        if not self.shed and not self.late:
            return None
        counts = {"shed": self.shed, "late": self.late, "open": self.count}
        self.shed = self.late = 0
        return counts


def _is_local(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return True
