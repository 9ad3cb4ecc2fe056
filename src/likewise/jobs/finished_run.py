"""A finished run in its folder: run.json, its tables, and its inputs, if they are what they were."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise.base.arrays import strings, to_arrow
from likewise.base.extras import installed
from likewise.base.runlog import SCHEMA
from likewise.errors import DamagedError, IncompatibleError, InputError, MissingInput, ParameterError
from likewise.io import stdin
from likewise.io.disk import is_url
from likewise.io.publish import MANIFEST
from likewise.io.read import Files, ReadOptions
from likewise.io.remote import look_up, scheme_of
from likewise.io.seals import changed_files, identity
from likewise.io.stores import PACKAGES
from likewise.io.upload import fetched_folder

KEYS = ("command", "parameters", "inputs", "counts", "method", "certificate", "details", "notes", "set_aside",
        "seconds", "total_seconds", "peak_memory_bytes")  # fmt: skip
"""What the page is made from; every run.json has them."""
OPTIONS = ("text", "id", "on_error", "encoding_errors", "lines", "sets", "html", "plain", "hidden", "group")
"""Parameters of run.json that say how the inputs were read."""


def engine_of_run(directory: str | Path) -> str:
    """Return where a run was made; a folder neither here nor in a store that is known can only be read by Spark."""
    remote = isinstance(directory, str) and "://" in directory
    if remote and (scheme_of(str(directory)) not in PACKAGES or not installed("remote")):
        return "spark"
    try:
        run = json.loads((fetched_folder(directory) / MANIFEST).read_text(encoding="utf-8"))
        return "spark" if run["parameters"]["engine"] == "spark" else "local"
    except (OSError, ValueError, KeyError, TypeError):
        return "local"


def numbers(values: pa.Array) -> NDArray[Any]:
    """Return numbers or flags as NumPy, nulls as 0. (np.asarray() would import pandas first, if it is installed.)

    >>> numbers(pa.array([1, None, 3])), numbers(pa.array([True, False])[1:])
    (array([1, 0, 3]), array([False]))
    """
    flags = pa.types.is_boolean(values.type)
    whole = values.cast(pa.uint8()) if flags else values
    whole = whole.fill_null(0) if whole.null_count else whole
    kind = np.dtype(whole.type.to_pandas_dtype())
    made = np.frombuffer(whole.buffers()[1] or b"", kind)[whole.offset : whole.offset + len(whole)]
    return made.astype(bool) if flags else made


def arrow_ids(ids: list[Any], kind: pa.DataType) -> pa.Array:
    """Return ids as an Arrow array of a type, where possible without importing pandas."""
    if None in ids:
        return pa.array(ids, kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return strings(ids).cast(kind)
    if pa.types.is_signed_integer(kind):
        return to_arrow(np.array(ids, np.int64)).cast(kind)
    return pa.array(ids, kind)


@dataclass(frozen=True)
class StoredTable:
    """A table of a run: a Parquet file, or a folder of them, read a part at a time."""

    paths: tuple[Path, ...]

    @classmethod
    def at(cls, path: Path) -> StoredTable | None:
        """Return the table at a path; None if the run has none there."""
        if path.is_dir():
            return cls(tuple(sorted(path.rglob("*.parquet"))))
        return cls((path,)) if path.is_file() else None

    @cached_property
    def files(self) -> list[pq.ParquetFile]:
        """The open files."""
        try:
            return [pq.ParquetFile(path) for path in self.paths]
        except (pa.ArrowException, OSError) as error:
            raise DamagedError(f"{self.paths[0]}: cannot be read ({error}); run the command again") from error

    @cached_property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.metadata.num_rows for file in self.files)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.files[0].schema_arrow.names) if self.files else []

    def type_of(self, column: str) -> Any:
        """Return the type of a column."""
        return self.files[0].schema_arrow.field(column).type

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield these columns, a batch of rows at a time."""
        for file in self.files:
            yield from file.iter_batches(batch_size=1 << 16, columns=list(columns))

    def take(self, rows: NDArray[np.int64], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the rows with these numbers, which must ascend; only the row groups that have them are read."""
        found: list[dict[str, Any]] = []
        start = 0
        for file in self.files:
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                here = rows[(rows >= start) & (rows < start + size)] - start
                if len(here):
                    table = file.read_row_group(group, columns=None if columns is None else list(columns))
                    found += table.take(to_arrow(here)).to_pylist()
                start += size
        return found

    def head(self, count: int, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the first rows."""
        return self.take(np.arange(min(count, self.rows)), columns)


@dataclass(frozen=True)
class FinishedRun:
    """A folder with a run.json, and what that says."""

    folder: Path
    stats: dict[str, Any]
    ended: int | None = None
    """When the run ended, in nanoseconds, if its run.json is not yet in the folder."""

    @classmethod
    def load(cls, folder: str | os.PathLike[str], owner: str) -> FinishedRun:
        """Read run.json; raise if there is none, or if this version of likewise did not write it."""
        if not isinstance(folder, str | os.PathLike):
            raise ParameterError.of(owner, "run", "the folder of a finished run", folder)
        path = fetched_folder(folder)
        try:
            stats = json.loads((path / MANIFEST).read_bytes())
        except NotADirectoryError as error:
            raise MissingInput(
                f"{path}: this is a file; name the folder of a run, which has its tables and {MANIFEST}"
            ) from error
        except FileNotFoundError as error:
            if not path.exists():
                raise MissingInput(f"{path}: there is no such folder") from error
            unfinished = ", and the run there has not finished" if (path / ".likewise").is_dir() else ""
            raise MissingInput(
                f"{path}: there is no finished run in this folder (no {MANIFEST}){unfinished}"
            ) from error
        except (OSError, ValueError) as error:
            raise DamagedError(f"{path / MANIFEST}: cannot be read ({error}); run the command again") from error
        if not isinstance(stats, dict) or "likewise" not in stats:
            raise DamagedError(f"{path / MANIFEST} is a file of another program; name the folder of a run of likewise")
        if stats.get("schema") != SCHEMA:
            raise IncompatibleError(f"{path}: the run was made by another version of likewise; run it again")
        lost = next((key for key in KEYS if key not in stats), None)
        if lost is not None:
            raise DamagedError(f"{path / MANIFEST}: the key {lost!r} is missing; run the command again")
        return cls(path, stats)

    def must_be(self, command: str) -> None:
        """Raise if another command made it."""
        if self.command != command:
            raise IncompatibleError(
                f"{self.folder}: this is the result of likewise {self.command}; name one of likewise {command}"
            )

    @property
    def command(self) -> str:
        """The command that made it."""
        return str(self.stats["command"])

    @property
    def counts(self) -> dict[str, int]:
        """The counts of run.json."""
        counts: dict[str, int] = self.stats["counts"]
        return counts

    @property
    def details(self) -> dict[str, Any]:
        """The details of run.json."""
        details: dict[str, Any] = self.stats["details"]
        return details

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of run.json."""
        parameters: dict[str, Any] = self.stats["parameters"]
        return parameters

    @property
    def on_spark(self) -> bool:
        """True if the run was made on Spark, whose tables are not in the order of the input."""
        return self.parameters.get("engine") == "spark"

    def table(self, name: str) -> StoredTable | None:
        """Return one of its tables; None if it has no such table, or none of its rows."""
        return StoredTable.at(self.folder / f"{name}.parquet")

    @cached_property
    def finished_at(self) -> int:
        """When run.json was written, in nanoseconds: inputs that are younger have changed since."""
        return (self.folder / MANIFEST).stat().st_mtime_ns if self.ended is None else self.ended

    @cached_property
    def state(self) -> dict[str, Any]:
        """What the run noted about its inputs for later runs, if it did."""
        try:
            state = json.loads((self.folder / "state" / "state.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}


class InputsGone(InputError):
    """The inputs of a finished run cannot be read again; says why, without a full stop."""


def input_files(run: FinishedRun) -> list[list[str]]:
    """Return the files, folders and globs of each collection; raise if there are none, or if they have changed since.

    Of more text files than run.json lists, those it lists.
    """
    if run.state.get("given"):
        given = [local_path(path) for path in run.state["given"]]
        if not all_texts(run):
            plain, hidden = (bool(run.parameters.get(name)) for name in ("plain", "hidden"))
            now = identity([file.path for file in Files(given).find(plain, hidden).files], content=False)
            before = {name: [*facts[:2], 0] for name, facts in run.state["inputs"].items()}
            for change in changed_files(before, now):
                raise InputsGone(change)
        return [given]
    collections: dict[int, list[str]] = {}
    for entry in run.stats["inputs"]:
        if "object" in entry:
            raise InputsGone("the documents were given in memory, not as files")
        if entry.get("file") == stdin.NAME:
            raise InputsGone("the documents came by standard input")
        if "file" in entry or "path" in entry:
            path = local_path(entry.get("file") or entry["path"])
            _check_entry(run, path, entry)
            collections.setdefault(entry.get("collection", 1), []).append(path)
        elif not all_texts(run):
            raise InputsGone("the run has too many input files to find its documents again without its state")
    if not collections:
        raise InputsGone("the run does not say where its documents come from")
    return [collections[one] for one in sorted(collections)]


def local_path(path: Any) -> str:
    """Return a path of this machine, which Spark may have as a URI.

    >>> local_path("file:///data/a.csv"), local_path("file:/data/a.csv"), local_path("a.csv")
    ('/data/a.csv', '/data/a.csv', 'a.csv')
    """
    found = str(path)
    if found.startswith("file:/"):
        return "/" + found.removeprefix("file:").lstrip("/")
    if "://" in found and scheme_of(found) not in PACKAGES:
        raise InputsGone("the inputs are not files of this machine")
    return found


def reading_of_run(run: FinishedRun, owner: str, **others: Any) -> ReadOptions:
    """Return how the inputs of a run were read."""
    given = {name: run.parameters[name] for name in OPTIONS if run.parameters.get(name) is not None}
    if run.command == "articles" and run.parameters.get("html") is None:
        given["html"] = None
    return ReadOptions(**given, owner=owner, **others)


def all_texts(run: FinishedRun) -> bool:
    """Return whether every input is a text file, whose id is its path."""
    entries = [entry for entry in run.stats["inputs"] if "file" in entry]
    plain = bool(entries) and all(entry.get("format") == "text" for entry in entries)
    return plain and run.parameters.get("id") is None and not run.parameters.get("lines")


def unchanged(run: FinishedRun, path: str) -> bool:
    """Return whether a file is there and what it was in the run."""
    try:
        about = os.stat(path)
    except OSError:
        return False
    known = run.state.get("inputs", {}).get(os.path.abspath(path))
    if known is not None:
        return bool([about.st_size, about.st_mtime_ns] == known[:2])
    return about.st_mtime_ns <= run.finished_at


def _check_entry(run: FinishedRun, name: str, entry: dict[str, Any]) -> None:
    """Raise if a file is gone, or was written after the run."""
    path = Path(name)
    if is_url(name):
        known = None if any(sign in name for sign in "*[") else look_up(name)
        if known is not None and entry.get("bytes") not in (None, known.size):
            raise InputsGone(f"{name} has changed since the run")
        return
    try:
        about = path.stat()
    except OSError as error:
        if any(sign in name for sign in "*?["):
            return
        raise InputsGone(
            f"{name} is missing; run this in the folder in which the command ran, or where the inputs are"
        ) from error
    whole = path.is_file() and isinstance(entry.get("bytes"), int)
    if path.is_file() and (about.st_mtime_ns > run.finished_at or (whole and about.st_size != entry["bytes"])):
        raise InputsGone(f"{name} has changed since the run")
