"""The input of a run: a DataFrame or files, written once to the run's folder with the place of each row.

Rows are numbered as the local engine numbers them: files in the order given (folders and globs sorted), rows in their
order; the rows of a DataFrame by partition. The place of a row in its partition is noted as it passes; which row of the
whole that is follows from the sizes of the partitions, so no row moves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Ints, TextChunk, to_arrow
from likewise.errors import ColumnError, InputError, MissingInput, ParameterError, TextError
from likewise.io.read import Aside, ReadOptions, open_source
from likewise.io.read.columns import text_of
from likewise.io.read.find import Files, files_of, format_of, looks_like_files
from likewise.io.read.memory import InMemory
from likewise.spark import steps
from likewise.spark.node import ready
from likewise.spark.store import Checkpoints, HadoopFolder

PREFIX = "_likewise_"
PART, PLACE, SIZE, TROUBLE = f"{PREFIX}part", f"{PREFIX}place", f"{PREFIX}size", f"{PREFIX}trouble"
TEXT, FILE, BLOCK, DIGEST = f"{PREFIX}text", f"{PREFIX}file", f"{PREFIX}block", f"{PREFIX}digest"
OTHER = 1 << 24
"""Added to the numbers of the partitions of a second collection, twice to those of a third."""
READERS = {"parquet": "parquet", "jsonl": "json"}
"""Formats of files that are read through Spark; a DataFrame may come from any other."""


def quoted(name: str) -> str:
    """Return the name of a column as Spark takes it, with blanks and all."""
    return f"`{name}`"


@dataclass(frozen=True)
class SparkInput:
    """What is read: a DataFrame, the order of its files if it is made of any, and what identifies them."""

    frame: Any
    kind: str
    files: tuple[str, ...] = ()
    identity: dict[str, list[int]] | None = None
    given: tuple[str, ...] = ()


def open_input(session: Any, source: Any, options: ReadOptions) -> SparkInput:
    """Return the input as a DataFrame."""
    if type(source).__module__.startswith("pyspark."):
        found = SparkInput(source, "pyspark.DataFrame")
    elif (files := _files(source)) is not None:
        found = _read_files(session, files, options)
    else:
        opened = open_source(source, options)
        if not isinstance(opened, InMemory):
            raise ParameterError(f"{options.owner} on Spark reads files, Spark DataFrames and tables in memory")
        table = opened.kept(np.ones(opened.total_rows, bool))
        found = SparkInput(session.createDataFrame(table), opened.describe()[0]["object"])
    names = list(found.frame.columns)
    for name in options.columns:
        if name not in names:
            raise ColumnError.of(found.kind, name, names)
    taken = next((name for name in names if name.startswith(PREFIX) and name not in (FILE, BLOCK)), None)
    if taken is not None:
        raise ColumnError(f"{found.kind}: the column '{taken}' has a name that likewise uses itself; rename it")
    dotted = next((name for name in names if "." in name or "`" in name), None)
    if dotted is not None:
        raise ColumnError(
            f"{found.kind}: PySpark does not pass the column '{dotted}' to Python by that name; rename it"
        )
    return found


def _files(source: Any) -> Files | None:
    if isinstance(source, str) and "://" in source:
        return Files([source])
    strings = isinstance(source, list | tuple) and bool(source) and all(isinstance(one, str) for one in source)
    if strings and (all("://" in one for one in source) or looks_like_files(source)):
        return Files(source)
    return files_of(source)


def _read_files(session: Any, files: Files, options: ReadOptions) -> SparkInput:
    """Return the rows of files, each with its file and the part of it in which it was read."""
    given = [os.fspath(path) for path in files.paths]
    if any("://" in path for path in given):
        formats = {format_of(path)[0] for path in given}
        kind = formats.pop() if len(formats) == 1 else "text"
        kind = "parquet" if kind == "text" and all("." not in path.rsplit("/", 1)[-1] for path in given) else kind
        paths, identity = given, None
    else:
        found = files.find(options.plain, options.hidden).files
        kinds = {file.format for file in found}
        kind = kinds.pop() if len(kinds) == 1 else "several formats"
        paths = [os.path.abspath(file.path) for file in found]
        identity = {path: [os.stat(path).st_size, os.stat(path).st_mtime_ns] for path in paths}
    if kind not in READERS:
        raise InputError(
            f"{given[0]}: the Spark engine reads files of Parquet and of JSON lines, and this is {kind};"
            " read it with Spark and pass the DataFrame"
        )
    try:
        frame = session.read.format(READERS[kind]).load(paths)
    except Exception as error:
        raise MissingInput(f"{given[0]}: {str(error).splitlines()[0]}") from error
    seen = sorted(map(_path_of, frame.inputFiles()))
    if identity is None:
        places = {path: path if "://" in path else f"file://{path}" for path in seen}
        identity = {path: HadoopFolder(session, place).facts for path, place in places.items()}
    elif missing := sorted(set(identity) - set(seen)):
        raise InputError(f"{missing[0]}: Spark does not read files whose names begin with _ or a dot; rename it")
    metadata = frame.selectExpr("*", f"_metadata.file_path as {FILE}", f"_metadata.file_block_start as {BLOCK}")
    whole = tuple(path if "://" in path else os.path.abspath(path) for path in given)
    return SparkInput(metadata, given[0], tuple(identity), identity, whole)


def _path_of(uri: str) -> str:
    """Return a URI in one spelling: a local file as its path, any other with its scheme."""
    parsed = urlparse(uri)
    path = unquote(parsed.path)
    return path if parsed.scheme in ("", "file") else f"{parsed.scheme}://{parsed.netloc}{path}"


@dataclass(frozen=True)
class Numbering:
    """The row of each place of each partition; a partition with several files has several stretches."""

    rows: int
    bytes: int
    stretches: dict[int, tuple[Ints, Ints]]

    def number(self, parts: Ints, places: Ints) -> Ints:
        """Return the rows at these places."""
        out = np.empty(len(parts), np.int64)
        for part in np.unique(parts).tolist():
            starts, shifts = self.stretches[part]
            here = parts == part
            out[here] = places[here] + shifts[np.searchsorted(starts, places[here], side="right") - 1]
        return out

    def locate(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the partitions and the places of rows."""
        found = sorted(
            (int(start + shift), part, int(shift))
            for part, (starts, shifts) in self.stretches.items()
            for start, shift in zip(starts, shifts, strict=True)
        )
        first, parts, shifts = (np.array(column, np.int64) for column in zip(*found, strict=True))
        place = np.searchsorted(first, rows, side="right") - 1
        return parts[place], rows - shifts[place]

    def followed_by(self, other: Numbering, number: int) -> Numbering:
        """Return the numbering of these collections and of the next one, whose rows come after them."""
        moved = {
            part + number * OTHER: (starts, shifts + self.rows) for part, (starts, shifts) in other.stretches.items()
        }
        return Numbering(self.rows + other.rows, self.bytes + other.bytes, {**self.stretches, **moved})


@dataclass(frozen=True)
class Deposit:
    """The input as it lies in the folder of the run."""

    frame: Any
    numbering: Numbering
    columns: tuple[str, ...]
    kind: str
    files: tuple[str, ...]
    text: str
    short: int

    @property
    def aside(self) -> list[Aside]:
        """The rows that were set aside: none, a broken row is an error."""
        return []

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""
        if not self.files:
            return [{"object": self.kind, "rows": self.numbering.rows}]
        return [{"path": path} for path in self.files]


def deposit(
    given: SparkInput,
    options: ReadOptions,
    checkpoints: Checkpoints,
    step: str,
    short: int,
    layout: tuple[Ints, Ints] | None = None,
) -> Deposit:
    """Write the input to the folder of the run, unless it is there; number its rows; raise if one is broken.

    Documents of fewer than `short` bytes are counted. layout: places of the input at which rows begin that do not
    follow those before, and their numbers.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

    schema = given.frame.schema
    plain = isinstance(schema[options.text].dataType, StringType) and not options.html
    added = [StructField(PART, IntegerType()), StructField(PLACE, LongType()), StructField(SIZE, LongType())]
    added += [StructField(DIGEST, BinaryType()), StructField(TROUBLE, StringType())]
    if not plain:
        added.append(StructField(TEXT, StringType()))
    wide = StructType([*schema.fields, *added])
    frame = checkpoints.frame(
        step, lambda: given.frame.mapInArrow(partial(_placed, options=options, plain=plain), wide)
    )
    by = [PART, *([FILE, BLOCK] if given.files else [])]
    sizes = (
        frame.groupBy(*by)
        .agg(
            F.min(PLACE).alias("first"),
            F.count("*").alias("rows"),
            F.sum(SIZE).alias("bytes"),
            F.count(TROUBLE).alias("broken"),
            F.count_if(F.col(SIZE) < short).alias("short"),
        )
        .toArrow()
        .to_pydict()
    )
    numbering, names = _numbered(sizes, given.files, layout)
    columns = tuple(name for name in schema.names if not name.startswith(PREFIX))
    known = Deposit(
        frame, numbering, columns, given.kind, given.files, options.text if plain else TEXT, sum(sizes["short"])
    )
    if sum(sizes["broken"]):
        _raise_first(known, names)
    return known


def _placed(batches: Iterator[Any], options: ReadOptions, plain: bool) -> Iterator[Any]:
    """Note the partition and the place of every row, the size and the digest of its text, and what is wrong with it."""
    from pyspark import TaskContext

    ready()
    part, place = TaskContext.get().partitionId(), 0
    for batch in batches:
        rows = batch.num_rows
        texts, trouble = text_of(batch.column(batch.schema.get_field_index(options.text)), options, "the input")
        reasons = [trouble[row].reason if row in trouble else None for row in range(rows)] if trouble else [None] * rows
        if texts.null_count:
            texts = texts.fill_null("")
        sizes = pc.binary_length(texts).cast(pa.int64())
        digests = steps.full_digests(TextChunk.from_arrow(texts))
        columns = [
            *batch.columns,
            pa.array(np.full(rows, part, np.int32)),
            to_arrow(np.arange(place, place + rows)),
            sizes,
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(digests)]).cast(pa.binary()),
            pa.array(reasons, pa.string()),
        ]
        names = [*batch.schema.names, PART, PLACE, SIZE, DIGEST, TROUBLE]
        if not plain:
            columns, names = [*columns, texts.cast(pa.string())], [*names, TEXT]
        yield pa.RecordBatch.from_arrays(columns, names)
        place += rows


def _numbered(
    sizes: dict[str, list[Any]], files: tuple[str, ...], layout: tuple[Ints, Ints] | None = None
) -> tuple[Numbering, list[tuple[int, str]]]:
    """Return the numbering that follows from the stretches of the partitions; and where each file begins."""
    order = {path: place for place, path in enumerate(files)}
    count = len(sizes[PART])
    owners = [_path_of(uri) for uri in sizes[FILE]] if files else [""] * count
    unknown = next((owner for owner in owners if files and owner not in order), None)
    if unknown is not None:
        raise InputError(f"{unknown}: this file came in while the input was read; leave it alone and run again")
    keys = [
        (order.get(owners[i], 0), sizes[BLOCK][i] if files else 0, 0 if files else sizes[PART][i], sizes["first"][i])
        for i in range(count)
    ]
    found: dict[int, list[tuple[int, int]]] = {}
    begins: list[tuple[int, str]] = []
    row = 0
    for i in sorted(range(count), key=keys.__getitem__):
        first = sizes["first"][i]
        for place, number in _stretches(row, sizes["rows"][i], layout):
            begin = first + place - row
            found.setdefault(sizes[PART][i], []).append((begin, number - begin))
        if not begins or begins[-1][1] != owners[i]:
            begins.append((row, owners[i]))
        row += sizes["rows"][i]
    stretches = {part: np.array(sorted(places), np.int64) for part, places in found.items()}
    split = {part: (places[:, 0].copy(), places[:, 1].copy()) for part, places in stretches.items()}
    return Numbering(row, sum(sizes["bytes"]), split), begins


def _stretches(start: int, count: int, layout: tuple[Ints, Ints] | None) -> list[tuple[int, int]]:
    """Return the places from `start` on at which rows begin that do not follow those before, with their numbers."""
    if layout is None:
        return [(start, start)]
    begins, numbers = layout
    low = int(np.searchsorted(begins, start, side="right")) - 1
    high = int(np.searchsorted(begins, start + count))
    cuts = zip(begins[low + 1 : high].tolist(), numbers[low + 1 : high].tolist(), strict=True)
    return [(start, int(numbers[low] + start - begins[low])), *cuts]


def _raise_first(known: Deposit, begins: list[tuple[int, str]]) -> None:
    """Raise for the first broken row."""
    from pyspark.sql import functions as F

    broken = known.frame.where(F.col(TROUBLE).isNotNull()).select(PART, PLACE, TROUBLE).limit(1000).toArrow()
    parts, places = (np.asarray(broken.column(name), np.int64) for name in (PART, PLACE))
    rows = known.numbering.number(parts, places)
    first = int(np.argmin(rows))
    begin, file = max(pair for pair in begins if pair[0] <= rows[first])
    reason = broken.column(TROUBLE)[first].as_py()
    raise TextError(f"{file or known.kind}: row {rows[first] - begin}: {reason}; leave such rows out of the input")
