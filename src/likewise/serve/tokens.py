"""Who may read and who may write: tokens, which can be changed while the service runs."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from likewise.errors import LikewiseError, MissingInput, ParameterError, TextError

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
        self._path, self._log = path, log
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
                if self._log is not None:
                    self._log(entry)
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
