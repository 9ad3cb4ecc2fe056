"""The process that serves: where it listens, and how it stops."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import math
import signal
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from likewise.errors import MissingInput, OutputError, ParameterError
from likewise.serve.connections import Connection, Gate
from likewise.serve.guard import Log

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
            raise ParameterError(f"{self.path} and {self.key} are no certificate and its key: {reason}") from error

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

    def __init__(self, config: uvicorn.Config, gate: Gate, log: Log | None) -> None:
        super().__init__(config)
        self._gate, self._log = gate, log

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        if self.config.is_ssl:  # uvicorn would wait a minute for every handshake
            setattr(loop, "create_server", partial(loop.create_server, ssl_handshake_timeout=HANDSHAKE))  # noqa: B010
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(BACKLOG)  # asyncio takes this number for that of connections to be accepted at once

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
) -> None:
    """Serve an application until the process is told to stop (SIGTERM, or SIGINT).

    connections: open at a time; each: of one client, a quarter of them if None.
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
        GracefulServer(config, gate, log).run(sockets=[bound])
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
