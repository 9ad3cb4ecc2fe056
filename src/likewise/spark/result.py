"""The result of `dedup` on Spark: tables as Spark DataFrames, in a folder as partitioned Parquet, run.json last."""

from __future__ import annotations

import atexit
import html
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise.base.words import counted
from likewise.errors import IncompatibleError, OutputError
from likewise.io.publish import MANIFEST
from likewise.io.read import Aside
from likewise.io.write import ROWS, write_batches, write_json
from likewise.jobs.explain.reasons import SetReason, VectorReason
from likewise.jobs.explain.run import explain_run
from likewise.jobs.result import TABLE_FILES, Dedup, Pairs, Result
from likewise.jobs.rows import Rows
from likewise.jobs.state import FOLDER
from likewise.spark.context import is_connect
from likewise.spark.folder import RunFolder, folder_at, located
from likewise.spark.output import write_frame
from likewise.spark.store import WORK

ANSWER = "answer"


class SparkResult(Result):
    """Tables of a run on Spark as Spark DataFrames: `.kept`, the documents that are left, and those of the job.

    `.stats` is the content of run.json; `.aside` has the rows that were set aside under on_error="skip": file, row
    and reason. `.save(directory)` writes everything.
    """

    files: ClassVar[dict[str, str]]
    outputs: ClassVar[tuple[str, ...]] = Dedup.outputs
    """Everything such a run can leave in its folder, besides run.json."""
    commands: ClassVar[tuple[str, ...]] = Dedup.commands
    """The commands whose results it replaces."""

    def __init__(self, folder: RunFolder, stats: dict[str, Any], aside: list[Aside]) -> None:
        self._folder = folder
        self.stats = stats
        self.aside = aside

    def _table(self, name: str) -> Any:
        return self._folder.session.read.parquet((self._folder / name).path)

    @cached_property
    def kept(self) -> Any:
        """The surviving rows with all their columns."""
        return self._table("kept")

    def _arrow_table(self, name: str) -> Any:
        return getattr(self, name).toArrow()

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables as partitioned Parquet and run.json to a folder, and return the folder: a URL as it is."""
        details = {name: value for name, value in self.stats["details"].items() if name != "state"}
        names = [*self._written(), *(["aside.parquet"] if self.aside else [])]
        writers = {name: partial(self._copy, name) for name in names}
        return save_frames(self._folder.session, directory, writers, {**self.stats, "details": details}, type(self))

    def _written(self) -> Iterable[str]:
        """Return the names of the tables that are written."""
        return self.files

    def _copy(self, name: str, place: RunFolder) -> None:
        write_frame(self._table(name), place)

    def _repr_html_(self) -> str:
        return f"<p><b>{type(self).__name__}</b>: {html.escape(self._summary())}</p>"


class SparkDedup(SparkResult):
    """The result of `dedup` on Spark: `.kept`, `.removed`, `.pairs` and `.clusters` are Spark DataFrames.

    `.stats` is the content of run.json; `.aside` has the rows that were set aside under on_error="skip": file, row
    and reason. `.save(directory)` writes everything.
    """

    files: ClassVar[dict[str, str]] = {**Dedup.files, "kept": "kept"}

    @cached_property
    def removed(self) -> Any:
        """Every removed document: id, kept_id (the document kept for it), similarity, kind (identical or near)."""
        return self._table("removed.parquet")

    @cached_property
    def pairs(self) -> Any:
        """Every pair found: id_a, id_b, similarity."""
        return self._table("pairs.parquet")

    @cached_property
    def clusters(self) -> Any:
        """Every document: id, cluster, size, keeper."""
        return self._table("clusters.parquet")

    def explain(self, id_a: Any, id_b: Any) -> SetReason | VectorReason:
        """Return why two documents are a pair or not: what they share, how similar they are, what became of them.

        The folder of the run and its input must be on this machine. `print` shows the explanation, `to_html` makes a
        page of it.
        """
        if self._folder.local is None:
            raise IncompatibleError(
                f"{self._folder.path}: this folder is not on this machine; copy it here, and its input"
            )
        return explain_run(self._folder.local, id_a, id_b)

    def _summary(self) -> str:
        counts = self.stats["counts"]
        return f"{counted(counts['items'], 'item')}, {counts['kept']:,} kept, {counts['removed']:,} removed"


class ClusterRows(Rows):
    """A table that the cluster has written, a folder of Parquet files; it is there as long as this process."""

    def __init__(self, frame: Any, length: int, spill: str | Path | None) -> None:
        scratch = Path(tempfile.mkdtemp(prefix="likewise-spark-", dir=spill)).absolute()
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        self.session = frame.sparkSession
        self.folder = scratch / "table"
        place = os.fspath(self.folder)
        write_frame(frame, folder_at(self.session, place if is_connect(self.session) else f"file://{place}"))
        self._length = length
        paths = self._paths()
        known = pq.read_schema(paths[0]) if paths else frame.limit(0).toArrow().schema
        self._schema = pa.schema([pa.field(one.name, one.type) for one in known])

    def _paths(self) -> list[Path]:
        """Return the files, in the order of the rows."""
        return sorted(self.folder.glob("*.parquet"))

    @property
    def frame(self) -> Any:
        """The rows as a Spark DataFrame."""
        place = os.fspath(self.folder)
        return self.session.read.parquet(place if is_connect(self.session) else f"file://{place}")

    @property
    def ordered(self) -> Any:
        """The same in the order of `table`; Spark reads files by their size."""
        places = {name: f"likewise_{name}" for name in ("file_name", "row_index")}
        known = self.frame.selectExpr("*", *(f"_metadata.{name} as {place}" for name, place in places.items()))
        return known.orderBy(*places.values()).drop(*places.values())

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._schema.names)

    def type_of(self, column: str) -> Any:
        """Return the type of a column."""
        return self._schema.field(column).type

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or some columns of them, in batches."""
        names = self.columns if columns is None else list(columns)
        schema = pa.schema([self._schema.field(name) for name in names])
        for path in self._paths():
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS, columns=names):
                    yield pa.RecordBatch.from_arrays([batch[name] for name in names], schema=schema)

    def take(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return a few rows by their numbers."""
        found, start = {}, 0
        for batch in self.batches():
            for row in rows[(rows >= start) & (rows < start + batch.num_rows)].tolist():
                found[row] = batch.slice(row - start, 1).to_pylist()[0]
            start += batch.num_rows
        return [found[row] for row in rows.tolist()]

    def table(self) -> pa.Table:
        """Return the whole table, brought to this process."""
        return pa.Table.from_batches(self.batches(), self._schema).combine_chunks()

    def write(self, path: Path, threads: int = 1) -> None:
        """Write the table as one file, in the format of the extension of the path."""
        write_batches(self.batches(), self._schema, path, threads)


class SparkPairs(Pairs):
    """The pairs of a large corpus, found on Spark: `.pairs` is a Spark DataFrame.

    `.table` has them as an Arrow table, which comes to this process when it is asked for. `.save(directory)` writes
    partitioned Parquet from the cluster; one file, such as pairs.parquet, is written by this process, some rows at a
    time.
    """

    outputs: ClassVar[tuple[str, ...]] = (*Pairs.files, "report.html")
    commands: ClassVar[tuple[str, ...]] = ("pairs",)
    _rows: ClusterRows

    @property
    def pairs(self) -> Any:
        """Every pair found: id_a, id_b, similarity."""
        return self._rows.frame

    def save(self, directory: str | os.PathLike[str], *, spreadsheet: bool = False) -> Path:
        """Write the pairs and run.json to a folder, from the cluster; or to a file of this ending, by this process."""
        if Path(directory).suffix.lower() in TABLE_FILES:
            return super().save(directory, spreadsheet=spreadsheet)
        writers = {name: partial(write_frame, self._rows.ordered) for name in self.files}
        return save_frames(self._rows.session, directory, writers, self.stats, type(self))


Saved = type[SparkResult] | type[SparkPairs]


def save_frames(
    session: Any,
    directory: str | os.PathLike[str],
    writers: Mapping[str, Callable[[RunFolder], None]],
    stats: dict[str, Any],
    kind: Saved,
) -> Path:
    """Write tables and run.json to a folder that the cluster reaches, and return the folder: a URL as it is."""
    path = os.fspath(directory)
    mounted = path if "://" in path or is_connect(session) else f"file://{os.path.abspath(path)}"
    target = folder_at(session, located(session, mounted))
    check_free(target, kind=kind)
    publish_frames(target, writers, lambda: stats, kind=kind)
    return cast(Path, path) if "://" in path else Path(path)


def check_free(folder: RunFolder, inputs: Iterable[str] = (), kind: Saved = SparkDedup) -> None:
    """Raise if a folder has something that a result of this kind must not replace; inputs are URIs or paths."""
    names = folder.names()
    root = folder.path.removeprefix("file://")
    for path in inputs:
        if any(path.startswith(f"{root}/{name}") for name in kind.outputs):
            raise OutputError(f"{folder.path}: this run would replace its own input {path}; choose another folder")
    if names and MANIFEST not in names and WORK not in names:
        raise OutputError(
            f"{folder.path}: the folder is not empty and was not made by likewise; choose another, or empty it"
        )
    text = (folder / MANIFEST).read() or ""
    if text and not any(f'"command": "{command}"' in text for command in kind.commands):
        raise OutputError(f"{folder.path}: the folder has the result of another command; choose another folder")


def publish_frames(
    folder: RunFolder,
    writers: Mapping[str, Callable[[RunFolder], None]],
    stats: Callable[[], dict[str, Any]],
    state: Callable[[RunFolder], None] | None = None,
    kind: Saved = SparkDedup,
) -> None:
    """Write Parquet datasets beside the result of an earlier run, and put them in its place.

    writers: for each name, what writes the dataset to a folder. state: writes what later runs need to a folder.
    run.json of the earlier run goes first and the new one comes last: a folder without it is unfinished.
    """
    staged = folder / WORK / ANSWER
    staged.remove()
    for name, write in writers.items():
        write(staged / name)
    if state is not None:
        state(staged / FOLDER)
    (folder / MANIFEST).remove()
    for name in kind.outputs:
        (folder / name).remove()
    for name in [*writers, *([] if state is None else [FOLDER])]:
        (staged / name).move(folder / name)
    staged.remove()
    with tempfile.TemporaryDirectory() as scratch:
        write_json(stats(), Path(scratch) / MANIFEST)
        (folder / MANIFEST).write((Path(scratch) / MANIFEST).read_text(encoding="utf-8"))
