"""The application: routes, and who may use them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

from likewise.index import Index
from likewise.serve.guard import CONTENT_TYPE, Guard, Log, Metrics
from likewise.serve.lanes import Lane, Pulse
from likewise.serve.models import (
    AddBody,
    Added,
    Bodies,
    ErrorAnswer,
    Health,
    Info,
    Item,
    QueryAnswer,
    QueryBody,
    Removed,
    schema,
)
from likewise.serve.refusal import CLOSE, Refusal, error_body, header_of, json_answer
from likewise.serve.service import Service
from likewise.serve.settings import READ, WRITE, ServiceSettings, TokenRoles

ITEMS = "/items/"
SHORT = 1 << 15
"""Bytes of a query that may be answered without a thread of its own."""
DESCRIPTION = """Query an index for items similar to new ones; add and remove items.

Every error is JSON: {"error": "one line that says why"}. A service that is busy answers 503 with Retry-After."""
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
START = "index.html"
DOCS = "docs.html"
SCHEME = "token"
"""The name under which OpenAPI describes the token."""


def make_app(
    index: Index, settings: ServiceSettings | None = None, *, log: Log | None = None, tokens: TokenRoles | None = None
) -> FastAPI:
    """Return an ASGI application that serves an open index.

    The index stays open when the application ends. log: called with a dict for every request. tokens: those of the
    settings, if they were read before.
    """
    settings = settings or ServiceSettings()
    tokens = tokens or TokenRoles(settings.token, settings.token_file)
    tokens.log = log
    service, bodies, metrics, pages = Service(index, settings, tokens), Bodies(settings), Metrics(), PageFiles()
    lanes = {
        "query": Lane("query", settings.workers, settings.max_waiting, settings.timeout, "ask for less at a time"),
        "write": Lane("write", 1, settings.max_writes, settings.timeout, "the change may still be made"),
        "health": Lane("health", 1, 0, settings.timeout, "the index is busy"),
        "status": Lane("status", 1, settings.max_waiting, settings.timeout, "the index is busy"),
    }

    pulse = Pulse(lanes["health"], service.count)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for lane in lanes.values():
            lane.close()

    app = FastAPI(
        title="likewise",
        version=version("likewise"),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    _answer_errors(app)

    # Called by the routes, not dependencies of FastAPI, which take as long as a query.
    def check_reader(scope: Scope) -> None:
        if settings.private:
            _check_token(tokens, scope, READ)

    def check_writer(scope: Scope) -> None:
        if not tokens.writable:
            raise Refusal(403, "this service is read-only: it has no token that may write", CLOSE)
        _check_token(tokens, scope, WRITE)

    needs_token: dict[str, Any] = {"security": [{SCHEME: []}]}
    if_private = needs_token if settings.private else {}

    async def with_body(way: str, scope: Scope, receive: Receive, act: Callable[[bytes], bytes]) -> bytes:
        """Answer a request by its body, which is read only if there is room in its lane."""
        lane = lanes[way]
        lane.check_room()
        body = await bodies.take(scope, receive)
        try:
            if way == "query" and len(body) <= SHORT and lane.quick:
                return lane.run_here(act, body)
            return await lane.run(act, body)
        finally:
            bodies.give_back(body)

    async def ask(scope: Scope, receive: Receive) -> bytes:
        check_reader(scope)
        return await with_body("query", scope, receive, service.query)

    @app.post(
        "/query",
        response_model=QueryAnswer,
        openapi_extra={**schema(QueryBody), **if_private},
        responses=_errors(400, 401, 408, 413, 415, 422, 503, 504),
    )
    async def query(request: Request) -> Response:
        """Return the items of the index that are similar to these, for each the most similar first."""
        return json_answer(await ask(request.scope, request.receive))

    @app.post(
        "/items",
        response_model=Added,
        openapi_extra={**schema(AddBody), **needs_token},
        responses=_errors(400, 401, 403, 408, 409, 413, 415, 422, 503, 504, 507),
    )
    async def add(request: Request) -> Response:
        """Add items. They are on disk, and found by queries, when the answer arrives."""
        check_writer(request.scope)
        return json_answer(await with_body("write", request.scope, request.receive, service.add))

    @app.get(
        "/items/{id:path}",
        response_model=Item,
        openapi_extra=if_private,
        responses=_errors(400, 401, 404, 503, 504),
    )
    async def item(request: Request, id: str) -> Response:
        """Return an item as it was added."""
        check_reader(request.scope)
        return json_answer(await lanes["query"].run(service.get, _id(request)))

    @app.delete(
        "/items/{id:path}",
        response_model=Removed,
        openapi_extra=needs_token,
        responses=_errors(400, 401, 403, 404, 503, 504, 507),
    )
    async def remove(request: Request, id: str) -> Response:
        """Remove an item."""
        check_writer(request.scope)
        return json_answer(await lanes["write"].run(service.remove, _id(request)))

    @app.get("/info", response_model=Info, openapi_extra=if_private, responses=_errors(401, 503, 504))
    async def info(request: Request) -> Response:
        """Return the settings of the index and the limits of the service."""
        check_reader(request.scope)
        return json_answer(await lanes["status"].run(service.info))

    @app.get("/health", response_model=Health, responses=_errors(500, 503, 504))
    async def health() -> Response:
        """Return whether the service can read its index; needs no token."""
        await pulse.check()
        return json_answer(b'{"status": "ok"}')

    @app.get(
        "/metrics",
        response_class=Response,
        openapi_extra=if_private,
        responses=_errors(401, 503, 504),
    )
    async def prometheus(request: Request) -> Response:
        """Return counters in the text format of Prometheus."""
        check_reader(request.scope)
        items = await lanes["status"].run(service.count)
        text = metrics.text(items, {name: lane.inside for name, lane in lanes.items()})
        return Response(text, media_type=CONTENT_TYPE)

    def page(request: Request, name: str) -> Response:
        found = pages.answer(name, request)
        if found is None:
            raise Refusal(404, "there is no such page")
        return found

    @app.get("/example", include_in_schema=False)
    async def example(request: Request) -> Response:
        check_reader(request.scope)
        return json_answer(await lanes["query"].run(service.example))

    @app.get("/", include_in_schema=False)
    async def start(request: Request) -> Response:
        return page(request, START)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return page(request, DOCS)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(request: Request, name: str) -> Response:
        return page(request, name)

    direct = {("POST", "/query"): ask}
    app.add_middleware(Guard, hosts=settings.hosts, metrics=metrics, log=log, where=index.where, direct=direct)
    described = app.openapi()
    bearer = {"type": "http", "scheme": "bearer", "description": "A token of the service."}
    described["components"]["securitySchemes"] = {SCHEME: bearer}
    return app


def _id(request: Request) -> str:
    """Return the id of an item from the path as it was sent, in which what is no UTF-8 has not been replaced."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    try:
        return unquote_to_bytes(raw.partition(b"?")[0].partition(ITEMS.encode())[2]).decode()
    except UnicodeDecodeError as error:
        raise Refusal(400, "the id is not valid UTF-8") from error


def _check_token(tokens: TokenRoles, scope: Scope, needed: str) -> None:
    """Raise unless the request carries a token that allows it."""
    scheme, _, given = header_of(scope, b"authorization").partition(" ")
    role = tokens.role(given.strip()) if scheme.lower() == "bearer" else None
    if role is None:
        message = "this needs a token of the service, in the header Authorization: Bearer TOKEN"
        raise Refusal(401, message, {"WWW-Authenticate": "Bearer", **CLOSE})
    if role != needed == WRITE:
        raise Refusal(403, "this token may read but not write", CLOSE)


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorAnswer} for status in statuses}


def _answer_errors(app: FastAPI) -> None:
    """Give the errors of FastAPI the shape of refusals."""

    @app.exception_handler(HTTPException)
    async def not_found(_: Request, error: HTTPException) -> Response:
        return json_answer(error_body(str(error.detail).lower()), error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def not_valid(_: Request, error: RequestValidationError) -> Response:
        return json_answer(error_body("the request is not valid"), 422)


class PageFiles:
    """The static files, with a tag by which a browser knows whether it has them: read once, found by their names."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}
        for file in files("likewise.serve").joinpath("static").iterdir():
            kind = TYPES.get(file.name.rpartition(".")[2])
            if kind is not None:
                data = file.read_bytes()
                self._files[file.name] = data, kind, f'"{hashlib.sha256(data).hexdigest()[:32]}"'

    def answer(self, name: str, request: Request) -> Response | None:
        """Return a file, or None if there is none of this name."""
        found = self._files.get(name)
        if found is None:
            return None
        data, kind, tag = found
        headers = {"Cache-Control": "no-cache", "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=kind, headers=headers)
