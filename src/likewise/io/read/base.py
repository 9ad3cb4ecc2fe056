"""The interface of all sources of documents: options in, batches of text out, and the rows that were kept.

A *source* delivers record batches with the columns `text` and, when there are any, `id` and `score` (`score 2` …).
A *delivered* row is passed on to the rest of likewise; a row that was set aside is not delivered and never kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Texts
from likewise.base.memory import A_ROW
from likewise.errors import InputError, ParameterError
from likewise.io.read.find import InputFile
from likewise.io.seals import identity

if TYPE_CHECKING:
    from likewise.io.read.cuts import TextCuts

MIB = 1 << 20

KEPT_ROWS = 1 << 10
"""Documents of which those that are kept are returned at once, where each of them is a file."""

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]
Tick = Callable[[int], None]


@dataclass(frozen=True)
class ReadOptions:
    """How to read: which columns, what to do with broken rows, how large a batch and a row may be.

    score: a column, or several. group: a column, that of the ids: documents of a group are joined, and of its scores
    the highest counts, or the lowest where `lowest` has a flag. html: None takes text files for pages by their names.
    plain: every file is text, whatever its name and its bytes. hidden: files and folders are read whose names begin
    with a dot. `owner` is the function the user called, for error messages. spool: where streams are kept; None for the
    folder of temporary files.
    """

    text: str = "text"
    id: str | None = None
    score: str | tuple[str, ...] | None = None
    on_error: str = "stop"
    encoding_errors: str = "strict"
    lines: bool = False
    sets: bool = False
    html: bool | None = False
    plain: bool = False
    hidden: bool = False
    group: str | None = None
    lowest: tuple[bool, ...] = ()
    batch_rows: int = 10_000
    batch_bytes: int = 16 * MIB
    row_bytes: int = 1 << 62
    owner: str = "open_source"
    spool: Path | None = None

    def __post_init__(self) -> None:
        checks.choice(self.owner, "on_error", self.on_error, ("stop", "skip"))
        checks.choice(self.owner, "encoding_errors", self.encoding_errors, ("strict", "replace"))
        checks.column(self.owner, "text", self.text)
        if self.id is not None:
            checks.column(self.owner, "id", self.id)
        if self.group is not None:
            checks.column(self.owner, "group", self.group)
        for name in ("lines", "sets", "plain", "hidden"):
            checks.flag(self.owner, name, getattr(self, name))
        if self.html is not None:
            checks.flag(self.owner, "html", self.html)
        if self.html and self.plain:
            raise ParameterError(f"The 'html' and 'plain' parameters of {self.owner} exclude each other.")
        for name in ("batch_rows", "batch_bytes", "row_bytes"):
            checks.whole(self.owner, name, getattr(self, name))

    @property
    def skip(self) -> bool:
        """True if broken rows are set aside instead of stopping the run."""
        return self.on_error == "skip"

    def together(self, threads: int, size: int) -> int:
        """Return how many threads may each have so many bytes in memory; the longest row has its part of all of it."""
        return max(1, min(threads, A_ROW * self.row_bytes // max(1, size)))

    @property
    def columns(self) -> list[str]:
        """The requested columns, each once: text, id, scores."""
        names = [self.text, self.id, *self.scores.values()]
        return list(dict.fromkeys(name for name in names if name is not None))

    @cached_property
    def scores(self) -> dict[str, str]:
        """The columns with scores, by the names that they have in batches: score, score 2, score 3.

        >>> ReadOptions(score=("stars", "date")).scores
        {'score': 'stars', 'score 2': 'date'}
        """
        names = [] if self.score is None else [self.score] if isinstance(self.score, str) else self.score
        return {f"score {place}" if place > 1 else "score": name for place, name in enumerate(names, 1)}


@dataclass(frozen=True)
class Aside:
    """Something that was set aside: a row (or line) of a file, or with row -1 the whole file or the rest of it.

    For users, in run.json and in aside.parquet, the row is null then.
    """

    file: str
    row: int
    reason: str


def quiet(done: int) -> None:
    """Ignore progress."""


class Source(ABC):
    """Documents from files or from memory.

    `aside` is filled while reading and starts empty with each reading. `ids` says where the ids come from: a column,
    the path of a text file, or the row number (then the batches have no `id` column).
    """

    aside: list[Aside]
    ids: Literal["row", "column", "path"]
    notes: Sequence[str] = ()
    """Sentences for the user about what was found, such as files that were passed over."""

    @abstractmethod
    def batches(self, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield the delivered rows in input order."""

    @abstractmethod
    def kept(self, keep: Flags) -> pa.Table:
        """Return all original columns of the delivered rows whose flag is set."""

    def kept_batches(self, keep: Flags) -> Iterator[pa.RecordBatch]:
        """Yield what `kept` returns, some rows at a time, all batches of the same types."""
        for start in range(0, len(keep), KEPT_ROWS):
            some = np.zeros(len(keep), bool)
            some[start : start + KEPT_ROWS] = keep[start : start + KEPT_ROWS]
            if some.any():
                yield from self.kept(some).to_batches()

    @abstractmethod
    def write_kept(self, keep: Flags, directory: Path, threads: int = 1, tick: Tick = quiet) -> list[Path]:
        """Write the delivered rows whose flag is set, in the format and order of the input; `tick` counts rows done."""

    @abstractmethod
    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""

    @property
    def seekable(self) -> bool:
        """Whether some texts can be read without most of the others."""
        return False

    def some_texts(self, keep: Flags) -> Iterator[Any]:
        """Yield the texts of the kept rows, if the source is seekable."""
        raise NotImplementedError

    @property
    def total_rows(self) -> int | None:
        """The number of rows of the input, if known before reading."""
        return None

    @property
    def total_bytes(self) -> int | None:
        """Size of the input on disk; None for objects in memory."""
        return None

    @property
    def files(self) -> list[Path]:
        """The files that are read; none for objects in memory."""
        return []

    @property
    def in_memory(self) -> bool:
        """Whether the whole input is in memory anyway."""
        return not self.files

    @property
    def given(self) -> list[str]:
        """The paths, folders and globs that the user gave; none for objects in memory."""
        return []

    def cut_texts(self, cuts: TextCuts | None) -> None:
        """From now on, return and write kept rows without these passages of their texts; raise where that cannot be.

        Rows are numbered as they were delivered. Call it after reading.
        """
        if cuts is not None:
            raise ParameterError(f"Nothing can be cut out of {self.describe()[0].get('object', 'this input')}.")

    def hold_texts(self, texts: Texts | None) -> None:
        """From now on, take the texts of kept rows from these, as they were delivered, where that saves reading them.

        Call it after reading; with None, texts are read again.
        """
        return

    def pages(self, rows: int) -> Flags:
        """Return which of the delivered rows were read as HTML pages. Call it after reading."""
        return np.zeros(rows, bool)

    def identity(self, content: bool = True) -> dict[str, list[int]] | None:
        """Return size, modification time and checksum of a sample of each file; None for objects in memory."""
        return identity(self.files, content) if self.files else None

    def state(self) -> dict[str, Any]:
        """Return, as JSON, what another process needs to continue without reading the input again."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that another process had after reading the same input."""
        return

    def positions(self) -> NDArray[np.int64] | None:
        """Return the row numbers of the delivered rows in the whole input; None if no row was set aside.

        Call it after reading. Rows of a file that could not be read at all do not count.
        """
        return None

    def locate(self, row: int) -> tuple[str, int]:
        """Return the file or object that has a delivered row, and the row's number there. Call it after reading."""
        positions = self.positions()
        return self.describe()[0].get("object", "the input"), row if positions is None else int(positions[row])

    def finish_ids(self, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """Give the ids of the whole input their final type.

        CSV and JSON lines do not declare types, so their ids are delivered as strings. When every id of the
        whole input is an integer they become int64 here. Call it once, with all ids that were delivered.
        """
        return ids

    def finish_scores(self, scores: pa.ChunkedArray, role: str = "score") -> pa.ChunkedArray:
        """Give the undeclared scores of a role their final type: int64 or float64 if all are numbers, else strings."""
        return scores


class FileSource(Source):
    """Documents from files."""

    inputs: list[InputFile]
    """The files that are read, with their sizes."""

    @property
    def total_bytes(self) -> int | None:
        """Size of the files on disk."""
        return sum(file.bytes for file in self.inputs)

    @property
    def given(self) -> list[str]:
        """The paths, folders and globs that the user gave."""
        return list(dict.fromkeys(file.given for file in self.inputs))

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return [file.path for file in self.inputs]

    def identity(self, content: bool = True) -> dict[str, list[int]] | None:
        """Return size, modification time and checksum of a sample of each file; None if one was a stream."""
        return None if any(file.piped for file in self.inputs) else super().identity(content)


def check_flags(keep: Flags, rows: int, where: str) -> None:
    """Raise unless there is one flag for each delivered row."""
    if len(keep) != rows:
        raise InputError(
            f"{where}: {rows} rows were delivered but {len(keep)} flags were given;"
            " the input changed while likewise was running; run again"
        )
