"""The bodies of requests: refused before they are read if they are too large, and counted while they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from likewise.serve.refusal import Refusal, busy
from likewise.serve.settings import BODIES, ServiceSettings

CLOSE = {"Connection": "close"}
"""The rest of a body that is refused is not read."""


class Bodies:
    """Reads bodies, of which only so many bytes are in memory at a time."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._limit = settings.body_limit
        self._total = BODIES * self._limit
        self._timeout = settings.timeout
        self._held = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body of a request; it counts until the request is answered."""
        size = 0
        try:
            parts: list[bytes] = []
            async for part in self._parts(request):
                size += len(part)
                self._held += len(part)
                if size > self._limit:
                    raise self._too_large()
                if self._held > self._total:
                    error = busy("busy: too many large requests at a time; try again in a moment")
                    error.headers.update(CLOSE)
                    raise error
                parts.append(part)
            yield b"".join(parts)
        finally:
            self._held -= size

    async def _parts(self, request: Request) -> AsyncIterator[bytes]:
        """Yield a body as it arrives."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, "the body must be JSON, with the header Content-Type: application/json", CLOSE)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "compressed bodies are not accepted", CLOSE)
        length = request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > self._limit):
            raise self._too_large()
        stream = request.stream()
        end = asyncio.get_running_loop().time() + self._timeout
        try:
            while True:
                async with asyncio.timeout_at(end):
                    part = await anext(stream, None)
                if part is None:
                    return
                yield part
        except TimeoutError as error:
            raise Refusal(408, f"the body did not arrive within {self._timeout:g} s", CLOSE) from error
        except ClientDisconnect as error:
            raise Refusal(400, "the connection was closed before the body had arrived", CLOSE) from error

    def _too_large(self) -> Refusal:
        return Refusal(413, f"the body is larger than {self._limit:,} bytes", CLOSE)
