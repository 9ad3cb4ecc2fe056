"""What a job is asked for: one frozen object, checked in one place and passed to either engine; and how its inputs are
read, and which options have no effect on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.runlog import Progress, RunLog
from likewise.errors import ParameterError
from likewise.io.read import Files, ReadOptions, Source, open_source
from likewise.io.streams import spool_folder
from likewise.jobs.settings import Given, Resources, Settings
from likewise.search.local import Search
from likewise.shingle import Shingler, Tokens, Urls


@dataclass(frozen=True, kw_only=True)
class SearchRequest(Settings):
    """What `dedup` and `pairs` are asked for alike: their parameters, under the same names and with the same defaults.

    `resources` and `options` are some of them as objects, checked when the request is made.
    """

    source: Any
    measure: str = "jaccard"
    text: str = "text"
    id: str | None = None
    threads: int | None = None
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

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.options

    @property
    def sources(self) -> list[Any]:
        """The collections."""
        return [self.source]

    @property
    def shared(self) -> tuple[str, str | Path | None]:
        """The parameter that names a folder which all machines of a cluster reach, and that folder."""
        return "spill", self.spill

    @property
    def spool(self) -> Path | None:
        """The folder in which streams are kept."""
        return spool_folder(self.spill)

    @property
    def only_local(self) -> Given:
        """What only the local engine has, with the defaults."""
        return self.given("lines", "plain", "hidden", "batch_rows")

    @property
    def score(self) -> tuple[str, ...]:
        """The columns to read by which documents are preferred."""
        return ()

    @property
    def exact(self) -> bool:
        """Whether nothing but an exact search can answer: there is no hash family for other measures of sets."""
        return self.measure != "jaccard"

    def search(self, resources: Resources) -> Search:
        """Return the search these settings describe."""
        found = super().search(resources)
        return replace(found, measure=self.measure, method="exact") if self.exact else found

    def note_method(self, log: RunLog) -> None:
        """Say why the search was exact, if the user has not asked for it."""
        if self.measure != "jaccard" and self.method == "auto":
            log.method = {"asked": "auto", "taken": "exact", "why": f"{self.measure} has no hash family"}

    @cached_property
    def resources(self) -> Resources:
        """What the run may use."""
        return Resources.of(self.owner, self.threads, self.memory, self.spill)

    @cached_property
    def options(self) -> ReadOptions:
        """How the input is read: with a shingler of tokens or of URLs, lines of text files are rows; rows of tokens are
        sets."""
        owner, shingler, budget = self.owner, self.shingler, self.resources.budget
        rows: dict[str, Any] = {} if self.batch_rows is None else {"batch_rows": self.batch_rows}
        return ReadOptions(
            text=self.text,
            id=self.id,
            score=self.score,
            on_error=self.on_error,
            encoding_errors=self.encoding_errors,
            lines=checks.flag(owner, "lines", self.lines) or isinstance(shingler, Tokens | Urls),
            sets=isinstance(shingler, Tokens),
            html=checks.flag(owner, "html", self.html),
            plain=self.plain,
            hidden=self.hidden,
            batch_bytes=budget.batch,
            row_bytes=budget.row,
            owner=owner,
            spool=self.spool,
            **rows,
        )

    @property
    def reading(self) -> Given:
        """What the user set about reading, with the defaults."""
        lines = self.lines and not isinstance(self.shingler, Tokens | Urls)
        names = ("text", "on_error", "encoding_errors", "html", "plain", "hidden", "batch_rows")
        return {**self.given(*names), "lines": (lines, False)}

    def opened(self) -> list[Source | Sets]:
        """Open the collections; options that none of them uses are an error."""
        found = [one if isinstance(one, Sets) else open_source(one, self.options) for one in self.sources]
        if all(isinstance(one, Sets) for one in found):
            checks.unused(self.owner, {**self.given("shingle"), **self.reading, **self.given("id")}, "for Sets")
        elif not any(isinstance(one, Source) and one.files for one in found):
            given = {name: self.reading[name] for name in ("lines", "plain", "hidden")}
            checks.unused(self.owner, given, "for objects in memory")
            if all(isinstance(one, list | tuple) and one and isinstance(one[0], str) for one in self.sources):
                checks.unused(self.owner, self.given("text"), "for a list of documents")
        else:
            formats = {entry.get("format") for one in found if isinstance(one, Source) for entry in one.describe()}
            if "text" not in formats:
                checks.unused(self.owner, {"lines": self.reading["lines"]}, "for tables")
        return found

    def reported(self, shingler: Shingler | None) -> dict[str, Any]:
        """Return the parameters that run.json has of every such job."""
        names = (
            "text", "id", "on_error", "encoding_errors", "lines", "sets", "html", "plain", "hidden",
        )  # fmt: skip
        return {**self.to_dict(shingler), **{name: getattr(self.options, name) for name in names}}


def check_distance(source: Any) -> None:
    """Raise if vectors are given without a measure of distance."""
    paths = source.paths if isinstance(source, Files) else [source]
    arrays = (str(path).lower().endswith(".npy") for path in paths if isinstance(path, str | Path))
    if isinstance(source, np.ndarray) or any(arrays):
        raise ParameterError("Vectors are compared by a distance: use measure='angle' and within=15, for example.")


@dataclass(frozen=True, kw_only=True)
class FolderRequest(SearchRequest):
    """What a job is asked for whose result is a folder."""

    out: str | Path | None = None

    @property
    def shared(self) -> tuple[str, str | Path | None]:
        """The folder of the result."""
        return "out", self.out

    @property
    def spool(self) -> Path | None:
        """The folder in which streams are kept: on the disk of the result."""
        return spool_folder(self.spill, self.out)
