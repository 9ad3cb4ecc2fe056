"""The files of the page. They are read once, and found by their names in a table: no path comes from a request."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
START = "index.html"
DOCS = "docs.html"


class PageFiles:
    """The static files, with a tag by which a browser knows whether it has them already."""

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
