"""Connections, and how long each may take: clients that are slow on purpose must not keep others out.

A request has to arrive, be answered and be read within limits of time, from its first byte on. Where more connections
are open than allowed, one is closed for each that comes: of the client that has the most, the oldest that the service
is not working for. So there is always room for a client that asks and reads its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

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
