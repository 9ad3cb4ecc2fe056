"""What a service allows: how much, and who may do what by tokens, which can be changed while the service runs."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.base import checks
from likewise.base.memory import parse_size
from likewise.errors import LikewiseError, MissingInput, ParameterError, TextError

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
            raise ParameterError("The 'private' parameter of serve needs a token, which requests must carry.")

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


TOKEN = "LIKEWISE_TOKEN"
"""The environment variable with the token."""
SHORTEST_TOKEN = 16
"""Characters of a token: with fewer, it could be guessed by trying."""
READ, WRITE = "read", "write"
LOOK_AGAIN = 1.0
"""Seconds after which a file with tokens is looked at again."""
Roles = dict[bytes, str]
"""What the bearer of a token may do, by its digest: write, which includes to read, or only read."""


def check_token(token: str) -> str:
    """Return a token that can be sent in a header and cannot be guessed."""
    if len(token) < SHORTEST_TOKEN or not all("!" <= char <= "~" for char in token):
        raise ParameterError(
            f"The token of serve must have at least {SHORTEST_TOKEN} characters, printable ASCII without blanks "
            "(for example the output of: openssl rand -hex 32)."
        )
    return token


def digest(token: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def read_tokens(path: Path) -> Roles:
    """Return the tokens of a file: one in each line, after 'read' or 'write', by itself for both."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise TextError(f"{path}: not valid UTF-8: {error}") from error
    except OSError as error:
        raise MissingInput(f"{path}: cannot be read: {error.strerror or error}") from error
    roles: Roles = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        role = words.pop(0) if len(words) == 2 else WRITE
        if role not in (READ, WRITE) or len(words) != 1:
            raise ParameterError(f"{path}:{number}: a line is a token, or one after 'read' or 'write'.")
        try:
            roles[digest(check_token(words[0]))] = role
        except ParameterError as error:
            raise ParameterError(f"{path}:{number}: {error}") from error
    if not roles:
        raise ParameterError(f"{path}: there is no token in this file.")
    return roles


class TokenRoles:
    """The tokens of a service; those of a file are read again when it has changed.

    log: told when they were, or why the new ones are not used: then those before them stay.
    """

    def __init__(
        self, token: str | None, path: Path | None, log: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self._path, self.log = path, log
        self._looked, self._state = time.monotonic(), self._seen()
        self._roles = read_tokens(path) if path is not None else {digest(token): WRITE} if token else {}

    def _seen(self) -> tuple[int, ...]:
        """Return what tells one state of the file from another."""
        try:
            found = os.stat(self._path) if self._path is not None else None
        except OSError:
            return ()
        return () if found is None else (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def _current(self) -> Roles:
        now = time.monotonic()
        if self._path is not None and now - self._looked >= LOOK_AGAIN:
            self._looked = now
            state = self._seen()
            if state != self._state:
                self._state = state
                entry: dict[str, Any] = {"event": "tokens", "file": str(self._path)}
                try:
                    self._roles = read_tokens(self._path)
                    entry["tokens"] = len(self._roles)
                except LikewiseError as error:
                    entry["error"] = f"{error} The tokens before it are still used."
                if self.log is not None:
                    self.log(entry)
        return self._roles

    @property
    def any(self) -> bool:
        """Whether there are tokens."""
        return bool(self._current())

    @property
    def writable(self) -> bool:
        """Whether anybody may write."""
        return WRITE in self._current().values()

    def role(self, given: str) -> str | None:
        """Return what the bearer of a token may do; the time this takes tells nothing about the tokens."""
        mine, found = digest(given), None
        for known, role in self._current().items():
            if hmac.compare_digest(mine, known):
                found = role
        return found if given else None


def token_of_environment() -> str | None:
    """Return the token of the environment; None if there is none."""
    return check_token(os.environ[TOKEN]) if os.environ.get(TOKEN) else None
