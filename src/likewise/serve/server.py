"""The process that serves: where it listens, and how it stops."""

from __future__ import annotations

import ipaddress
import logging
import math
import signal
import socket
import time
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from likewise.errors import OutputError, ParameterError
from likewise.serve.guard import Log

BACKLOG = 1024
CONNECTIONS = 512
"""Open connections; a system commonly allows a process 1,024 open files."""
ONCE = 1.0
"""Seconds in which a second interrupt is taken for the first: a terminal sends it to both processes of a command."""
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
    return bound


def is_loopback(bound: socket.socket) -> bool:
    """Return whether only programs of this machine can connect."""
    address = str(bound.getsockname()[0]).partition("%")[0]
    return ipaddress.ip_address(address).is_loopback


def url_of(bound: socket.socket) -> str:
    """Return the address of a listening socket as a URL."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class GracefulServer(uvicorn.Server):
    """A server that, told to stop, finishes the requests it has begun; a second interrupt ends it at once."""

    _asked = -math.inf

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


def serve_app(app: FastAPI, bound: socket.socket, timeout: float, log: Log | None) -> None:
    """Serve an application until the process is told to stop (SIGTERM, or SIGINT)."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="on",
        ws="none",
        limit_concurrency=CONNECTIONS,
        backlog=BACKLOG,
        timeout_graceful_shutdown=math.ceil(timeout) + AFTER,
    )
    logger = logging.getLogger("uvicorn")
    handler = LogHandler(log) if log is not None else logging.NullHandler()
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        GracefulServer(config).run(sockets=[bound])
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
        bound.close()


def check_open(bound: socket.socket, token: str | None) -> bool:
    """Return whether others can connect; raise if they can and there is no token."""
    public = not is_loopback(bound)
    if public and token is None:
        raise ParameterError(
            f"serve listens on {url_of(bound)} only with a token: other machines can connect. Give a file with one "
            "('token_file'), set LIKEWISE_TOKEN, or leave out 'host'."
        )
    return public
