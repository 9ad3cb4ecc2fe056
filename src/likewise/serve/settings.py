"""What a service allows: who may do what, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from likewise.base import checks
from likewise.base.memory import parse_size
from likewise.errors import ParameterError
from likewise.serve.tokens import check_token

OWNER = "serve"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names by which a service on loopback is addressed. Others are refused: a web site could make its own name resolve to
127.0.0.1, and its scripts could then read the index through the browser of a user (DNS rebinding)."""
BODIES = 16
"""Bodies of the largest size that are held in memory at a time; more bytes than that are refused."""
LARGEST_BODY = 1 << 30
BYTES_A_VALUE, FEWEST_VALUES = 32, 1 << 16
"""A body may have one JSON value for so many of the bytes allowed: a value takes up to 200 bytes when it is parsed, and
may be written in two. Small limits of bodies do not count."""
LONGEST_TIMEOUT = 3600.0
LARGEST_BATCH = 100_000
"""Larger batches are for `likewise index`."""
MOST_ANSWERS = 100_000
"""Answers to all items of one request together: about five megabytes of JSON."""


@dataclass(frozen=True)
class ServiceSettings:
    """The limits of a service, and who may use it.

    token: the secret that writes need, with `private` also reads; None: nobody may write. token_file: a file with
    several, each to read or to write, which is read again when it has changed. hosts: the names by which the service
    may be addressed, in lower case and without a port; empty for any. max_body: bytes of a request. max_batch: items of
    a request. timeout: seconds in which a body must arrive, again in which the request must be answered, and again in
    which the answer must be read. max_waiting: requests that wait for a thread; another one is refused. max_writes:
    changes that wait for the one in progress. threads: queries that run at a time; None: as many as there are cores.
    """

    token: str | None = None
    private: bool = False
    hosts: tuple[str, ...] = LOOPBACK
    max_body: int | str = 16 << 20
    max_batch: int = 1000
    timeout: float = 30.0
    max_waiting: int = 64
    max_writes: int = 8
    threads: int | None = None
    token_file: Path | None = None

    def __post_init__(self) -> None:
        size = self.max_body if isinstance(self.max_body, int) else parse_size(OWNER, "max_body", self.max_body)
        object.__setattr__(self, "max_body", checks.whole(OWNER, "max_body", size, 1, LARGEST_BODY))
        checks.whole(OWNER, "max_batch", self.max_batch, 1, LARGEST_BATCH)
        checks.number(OWNER, "timeout", self.timeout, 0, LONGEST_TIMEOUT, open_left=True)
        checks.whole(OWNER, "max_waiting", self.max_waiting, 0)
        checks.whole(OWNER, "max_writes", self.max_writes, 0)
        object.__setattr__(self, "threads", checks.threads(OWNER, self.threads))
        object.__setattr__(self, "hosts", tuple(host.lower() for host in self.hosts))
        if self.token is not None:
            check_token(self.token)
        elif self.private and self.token_file is None:
            raise ParameterError("The 'private' parameter of serve needs a token, which requests are to carry.")

    @property
    def body_limit(self) -> int:
        """Bytes of the largest body."""
        return int(self.max_body)

    @property
    def values_limit(self) -> int:
        """JSON values of the largest body."""
        return max(FEWEST_VALUES, self.body_limit // BYTES_A_VALUE)

    @property
    def workers(self) -> int:
        """Queries that run at a time."""
        return self.threads or 1
