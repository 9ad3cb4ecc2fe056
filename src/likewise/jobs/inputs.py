"""The inputs of a job: how they are read, what is given, and which options have no effect on it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.io.read import ReadOptions, Source, open_source
from likewise.jobs.settings import Given, Resources, Settings
from likewise.shingle import Tokens, Urls


def reading(
    settings: Settings,
    resources: Resources,
    text: str,
    id: str | None,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    lines: bool = False,
    html: bool = False,
    batch_rows: int | None = None,
    score: str | None = None,
    plain: bool = False,
    hidden: bool = False,
) -> ReadOptions:
    """Return how the input is read: with a shingler of tokens or of URLs, lines of text files are rows; rows of tokens
    are sets."""
    owner = settings.owner
    rows: dict[str, Any] = {} if batch_rows is None else {"batch_rows": batch_rows}
    sets = isinstance(settings.shingler, Tokens)
    return ReadOptions(
        text=text,
        id=id,
        score=score,
        on_error=on_error,
        encoding_errors=encoding_errors,
        lines=checks.flag(owner, "lines", lines) or sets or isinstance(settings.shingler, Urls),
        sets=sets,
        html=checks.flag(owner, "html", html),
        plain=plain,
        hidden=hidden,
        batch_bytes=resources.budget.batch,
        row_bytes=resources.budget.row,
        owner=owner,
        **rows,
    )


def reading_given(settings: Settings, options: ReadOptions) -> Given:
    """Return what the user set about reading, with the defaults."""
    names = ("text", "on_error", "encoding_errors", "html", "plain", "hidden", "batch_rows")
    defaults = {field.name: field.default for field in fields(ReadOptions)}
    lines = options.lines and not isinstance(settings.shingler, Tokens | Urls)
    return {**{name: (getattr(options, name), defaults[name]) for name in names}, "lines": (lines, False)}


def opened(settings: Settings, options: ReadOptions, *sources: Any) -> list[Source | Sets]:
    """Open the collections of a run; options that none of them uses are an error."""
    found = [source if isinstance(source, Sets) else open_source(source, options) for source in sources]
    if all(isinstance(source, Sets) for source in found):
        given = {**settings.given("shingle"), **reading_given(settings, options), "id": (options.id, None)}
        checks.unused(settings.owner, given, "for Sets")
    elif not any(isinstance(source, Source) and source.files for source in found):
        given = {name: reading_given(settings, options)[name] for name in ("lines", "plain", "hidden")}
        checks.unused(settings.owner, given, "for objects in memory")
        if all(isinstance(source, list | tuple) and source and isinstance(source[0], str) for source in sources):
            checks.unused(settings.owner, {"text": (options.text, "text")}, "for a list of documents")
    else:
        formats = {entry.get("format") for source in found if isinstance(source, Source) for entry in source.describe()}
        if "text" not in formats:
            checks.unused(settings.owner, {"lines": reading_given(settings, options)["lines"]}, "for tables")
    return found
