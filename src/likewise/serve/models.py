"""The bodies of requests and answers, as the API documents and checks them.

Bodies that are too large are refused before they are read, and all are counted while they are.
"""

from __future__ import annotations

import asyncio
import re
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.types import Receive, Scope

from likewise.serve.refusal import CLOSE, Refusal, busy, header_of
from likewise.serve.settings import BODIES, LARGEST_BATCH, MOST_ANSWERS, ServiceSettings

LONGEST_ID = 4096
"""Bytes of an id: percent-encoded it must fit in the head of a request, of which a server takes 16 kB."""
BIG = 1 << 63

Token = str | Annotated[int, Field(ge=-BIG, lt=2 * BIG)] | float
ManyTokens = Annotated[list[Token], Field(fail_fast=True)]
Many = Field(max_length=LARGEST_BATCH, fail_fast=True)
"""One error in a list is enough: five million empty lists made as many errors, which took gigabytes."""
Items = Annotated[list[str], Many] | Annotated[list[ManyTokens], Many]
Int64 = Annotated[int, Field(ge=-BIG, lt=BIG)]
StringId = Annotated[str, Field(max_length=LONGEST_ID)]
SomeIds = Field(min_length=1, max_length=LARGEST_BATCH, fail_fast=True)
Ids = Annotated[list[Int64], SomeIds] | Annotated[list[StringId], SomeIds]


class RequestBody(BaseModel):
    """What all requests have in common: no value is converted to another type, no name is ignored."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class QueryBody(RequestBody):
    """A query: one document (`text`), or many items."""

    text: str | None = Field(None, description="One document.")
    items: Items | None = Field(
        None,
        description="Documents; for an index of sets lists of tokens, for one of vectors lists of numbers (0 and 1 for "
        "hamming). Instead of `text`.",
    )
    k: int = Field(10, ge=1, le=MOST_ANSWERS, description="Maximum number of answers to each item.")
    threshold: float | None = Field(
        None, gt=0, le=1, description="Minimum similarity of an answer; by default that of the index."
    )
    within: float | None = Field(
        None, ge=0, description="For vectors, the maximum distance of an answer; by default that of the index."
    )
    measure: Literal["jaccard", "containment"] | None = Field(
        None, description="For documents and sets; `containment`: the share of the item's shingles that an answer has."
    )


class AddBody(RequestBody):
    """Items to add, all or, if there is an error, none."""

    ids: Ids | None = Field(
        None, description="An id for each item, all strings or all integers; without ids, items are numbered."
    )
    items: Items = Field(
        description="Documents; for an index of sets lists of tokens, for one of vectors lists of numbers."
    )
    replace: bool = Field(False, description="Replace items with the same ids; without it, they are an error.")


class SimilarItem(BaseModel):
    """A similar item; vectors have a distance."""

    id: int | str
    similarity: float | None = None
    distance: float | None = None


class QueryAnswer(BaseModel):
    """For each item of the query its answers, the most similar first."""

    answers: list[list[SimilarItem]]


class Added(BaseModel):
    """How many items were added, and how many there are now."""

    added: int
    items: int


class Removed(BaseModel):
    """How many items were removed, and how many there are now."""

    removed: int
    items: int


class Item(BaseModel):
    """An item; `text` is null if the index does not keep documents, `vector` if it does not hold vectors of numbers."""

    id: int | str
    text: str | None
    vector: list[float] | None = None


class Health(BaseModel):
    """The service answers, and can read its index."""

    status: str


class Info(BaseModel):
    """The settings of the index and the limits of the service."""

    items: int
    kind: str
    ids: str | None
    measure: str
    shingle: str | None
    threshold: float | None
    within: float | None = None
    dimension: int | None = None
    recall: float
    containment: bool
    texts: bool
    writable: bool
    private: bool
    max_body: int
    max_batch: int


class ErrorAnswer(BaseModel):
    """Why a request is refused."""

    error: str


M = TypeVar("M", bound=RequestBody)
TOKEN = re.compile(rb'[\[{,]|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A bracket or a comma, which precede values, or a string or what is left of one: every quotation mark that is not in a
string begins a match, so that the time is linear."""
MARKS = (b"[", b"{", b",", b'"')


def check_values(body: bytes, most: int) -> None:
    """Raise Refusal if a body has more than `most` JSON values: each takes memory, however short it is written.

    A list, an object, and a string with its comma count as one, and a number as half of one. What is within strings is
    looked at only if there is much of it.

    >>> check_values(b'["a, b, c", [1, 2]]', 4)
    >>> check_values(b"[[],[],[],[],[]]", 4)
    Traceback (most recent call last):
    likewise.serve.refusal.Refusal: the body has more than 4 values; send fewer items at a time
    """
    if len(body) <= 2 * most or sum(map(body.count, MARKS)) <= 2 * most:
        return
    if next(islice(TOKEN.finditer(body), 2 * most, None), None) is not None:
        raise Refusal(413, f"the body has more than {most:,} values; send fewer items at a time")


def parsed(model: type[M], body: bytes, most: int) -> M:
    """Return the body of a request, of at most so many values; raise Refusal if it is no JSON or not as expected."""
    check_values(body, most)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        first = found[0]
        if first["type"] == "json_invalid":
            raise Refusal(400, f"the body is not valid JSON: {first['msg'].removeprefix('Invalid JSON: ')}") from error
        raise Refusal(422, f"{_place(first['loc'])}: {first['msg']}") from error
    except RecursionError as error:
        raise Refusal(400, "the body is not valid JSON: nested too deeply") from error


def _place(loc: tuple[Any, ...]) -> str:
    """Name the value that is wrong: items.3, without the names of the types that were tried."""
    return ".".join(str(part) for part in loc if isinstance(part, int) or str(part).isidentifier()) or "the body"


def schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the description of a request's body for OpenAPI."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": model.model_json_schema()}}}}


HERE = "likewise.here"
"""The extension of ASGI by which the server says that the whole body has arrived with the head: it needs no limit of
time, which takes as long as a third of a query."""


class Bodies:
    """Reads bodies, of which only so many bytes are in memory at a time."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._limit = settings.body_limit
        self._total = BODIES * self._limit
        self._timeout = settings.timeout
        self._held = 0

    async def take(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request; it counts until it is given back."""
        self._check_head(scope)
        if HERE in scope.get("extensions", ()):
            return await self._joined(receive)
        try:
            async with asyncio.timeout(self._timeout):
                return await self._joined(receive)
        except TimeoutError as error:
            raise Refusal(408, f"the body did not arrive within {self._timeout:g} s", CLOSE) from error

    async def _joined(self, receive: Receive) -> bytes:
        """Return the parts of a body as one."""
        size, parts, more = 0, list[bytes](), True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "the connection was closed before the body had arrived", CLOSE)
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                self._held += len(part)
                if size > self._limit:
                    raise self._too_large()
                if self._held > self._total:
                    error = busy("busy: too many large requests at a time; try again in a moment")
                    error.headers.update(CLOSE)
                    raise error
                parts.append(part)
            return b"".join(parts)
        except BaseException:
            self._held -= size
            raise

    def give_back(self, body: bytes) -> None:
        """Forget a body, whose request is answered."""
        self._held -= len(body)

    def _check_head(self, scope: Scope) -> None:
        """Raise if the head of a request says that its body cannot be taken."""
        kind = header_of(scope, b"content-type").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, "the body must be JSON, with the header Content-Type: application/json", CLOSE)
        if header_of(scope, b"content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "compressed bodies are not accepted", CLOSE)
        length = header_of(scope, b"content-length")
        if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > self._limit):
            raise self._too_large()

    def _too_large(self) -> Refusal:
        return Refusal(413, f"the body is larger than {self._limit:,} bytes", CLOSE)
