"""What routes have in common: a header of a request, an answer in JSON, and one exception, and one shape of it, for all
that is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Scope

from likewise.errors import DamagedError, IncompatibleError, InputError, LikewiseError, OutputError, ParameterError

LONGEST = 500
"""Characters of a message."""
CLOSE = {"Connection": "close"}
"""The rest of a body that is refused is not read."""


class Refusal(Exception):
    """An answer with an error: its status, one line that says why, and headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})

    def answer(self) -> Response:
        """Return the answer."""
        return json_answer(error_body(str(self)), self.status, self.headers)


def json_answer(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that is JSON."""
    return Response(body, status, headers, "application/json")


def error_body(message: str) -> bytes:
    """Return an error as JSON.

    >>> error_body("no  such item")
    b'{"error": "no such item"}'
    """
    line = " ".join(message.split())
    line = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
    return json.dumps({"error": line}).encode()


def header_of(scope: Scope, name: bytes, default: str = "") -> str:
    """Return a header of a request, the first of this name."""
    for known, value in scope["headers"]:
        if known == name:
            return str(value, "latin-1")
    return default


def busy(message: str) -> Refusal:
    """Return the answer to a request that may be sent again in a moment."""
    return Refusal(503, message, {"Retry-After": "1"})


def refusal_of(error: LikewiseError, where: str) -> Refusal:
    """Return the answer to a request that the index does not take; folders of this machine are not named in it."""
    message = str(error).replace(where, "the index") if os.sep in where else str(error)
    if isinstance(error, ParameterError | InputError | IncompatibleError):
        return Refusal(422, message)
    if isinstance(error, OutputError):
        return Refusal(507, message)
    if isinstance(error, DamagedError):
        return Refusal(500, "the index is damaged; likewise index check says where")
    return busy(message)
