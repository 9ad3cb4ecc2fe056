"""What a job is asked for: one frozen object, checked in one place and passed to either engine; and how its inputs are
read, and which options have no effect on them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.runlog import Progress
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.read import ReadOptions, Source, open_source
from likewise.jobs.settings import DEFAULTS, Given, Resources, Settings
from likewise.shingle import Shingler, Tokens, Urls


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """What `dedup` and `pairs` are asked for alike: their parameters, under the same names and with the same defaults.

    `settings`, `resources` and `options` are the same as objects, checked when the request is made.
    """

    source: Any
    text: str = "text"
    id: str | None = None
    shingle: str | Shingler = "words:5"
    threshold: float = 0.8
    recall: float = 0.99
    method: str = "auto"
    estimate: bool = False
    threads: int | None = None
    seed: int = 1
    sketch: str = "fast"
    bands: int | None = None
    rows: int | None = None
    max_slots: int = DEFAULT_MAX_SLOTS
    ignore_common: float | None = None
    certify: int | None = None
    on_error: str = "stop"
    encoding_errors: str = "strict"
    lines: bool = False
    html: bool = False
    plain: bool = False
    hidden: bool = False
    memory: str | int | None = None
    spill: str | Path | None = None
    batch_rows: int | None = None
    progress: Progress | None = None
    master: str | None = None

    owner: ClassVar[str]
    """The function that the user called."""
    score: ClassVar[str | None] = None
    """The column to read by which documents are preferred."""

    def __post_init__(self) -> None:
        _ = self.options

    @cached_property
    def settings(self) -> Settings:
        """What is similar, and how it is found."""
        return Settings(self.owner, **{name: getattr(self, name) for name in DEFAULTS})

    @cached_property
    def resources(self) -> Resources:
        """What the run may use."""
        return Resources.of(self.owner, self.threads, self.memory, self.spill)

    @cached_property
    def options(self) -> ReadOptions:
        """How the input is read."""
        return reading(
            self.settings, self.resources, self.text, self.id, self.on_error, self.encoding_errors, self.lines,
            self.html, self.batch_rows, self.score, self.plain, self.hidden,
        )  # fmt: skip

    def reported(self, shingler: Shingler | None) -> dict[str, Any]:
        """Return the parameters that run.json has of every such job."""
        names = (
            "text", "id", "on_error", "encoding_errors", "lines", "sets", "html", "plain", "hidden",
        )  # fmt: skip
        return {**self.settings.to_dict(shingler), **{name: getattr(self.options, name) for name in names}}

    @property
    def used(self) -> dict[str, Any]:
        """What the run may use, for run.json."""
        return {"threads": self.resources.threads, "memory": self.resources.budget.total}


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
