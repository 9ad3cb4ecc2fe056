"""The input of a run: a DataFrame or files, written once to the run's folder with the place of each row.

Rows are numbered as the local engine numbers them: files in the order given (folders and globs sorted), rows in their
order; the rows of a DataFrame by partition. The place of a row in its partition is noted as it passes; which row of the
whole that is follows from the sizes of the partitions, so no row moves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Ints, TextChunk, to_arrow
from likewise.base.copies import chunk_digests
from likewise.errors import ColumnError, InputError, MissingInput, ParameterError, TextError
from likewise.io.read import Aside, ReadOptions, open_source
from likewise.io.read.columns import NULL_ID, text_of
from likewise.io.read.find import Files, files_of, format_of, looks_like_files
from likewise.io.read.memory import InMemory
from likewise.spark.direct import PART, PLACE, PREFIX, SIZE, TEXT, DirectFiles
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.store import Checkpoints

TROUBLE, FILE, BLOCK, DIGEST = f"{PREFIX}trouble", f"{PREFIX}file", f"{PREFIX}block", f"{PREFIX}digest"
SIZES = f"{PREFIX}sizes"
"""The sizes of rows that follow each other, where the step that read them has one row for them."""
OTHER = 1 << 24
"""Added to the numbers of the partitions of a second collection, twice to those of a third."""
READERS = {"parquet": "parquet", "jsonl": "json"}
"""Formats of files that are read through Spark; a DataFrame may come from any other."""
BY_DRIVER = ("csv", "tsv", "arrow")
"""Formats of files on the driver's machine that the reader of the local engine reads, so that it is the same table."""
SPREAD = 4
"""Bytes of memory for each byte of such a file: as a table of Arrow, and once more on its way to Spark."""


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
    aside: tuple[Aside, ...] = ()
    broken: RowSet | None = None


def open_input(session: Any, source: Any, options: ReadOptions, memory: int = 1 << 60) -> SparkInput:
    """Return the input as a DataFrame; what the driver reads itself may need so much memory."""
    if type(source).__module__.startswith("pyspark."):
        found = SparkInput(source, "pyspark.DataFrame")
    elif (files := _files(source)) is not None:
        found = _read_files(session, files, options, memory)
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


def _read_files(session: Any, files: Files, options: ReadOptions, memory: int) -> SparkInput:
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
    whole = tuple(path if "://" in path else os.path.abspath(path) for path in given)
    if kind in BY_DRIVER and identity is not None:
        return _read_here(session, files, options, memory, SparkInput(None, given[0], (), identity, whole))
    if kind not in READERS:
        raise InputError(
            f"{given[0]}: the Spark engine reads files of Parquet and of JSON lines, of this machine also CSV, TSV and"
            f" Arrow, and this is {kind}; read it with Spark and pass the DataFrame"
        )
    try:
        frame = session.read.format(READERS[kind]).load(paths)
        seen = sorted(map(path_of, frame.inputFiles()))
    except Exception as error:
        raise MissingInput(f"{given[0]}: {str(error).splitlines()[0]}") from error
    if identity is None:
        listed = listed_files(session, paths)
        if missing := sorted(set(seen) - set(listed)):
            raise MissingInput(f"{missing[0]}: this file went away while the input was listed; run again")
        identity = {path: listed[path] for path in seen}
    elif missing := sorted(set(identity) - set(seen)):
        raise InputError(f"{missing[0]}: Spark does not read files whose names begin with _ or a dot; rename it")
    metadata = frame.selectExpr("*", f"_metadata.file_path as {FILE}", f"_metadata.file_block_start as {BLOCK}")
    return SparkInput(metadata, given[0], tuple(identity), identity, whole)


def listed_files(session: Any, paths: list[str]) -> dict[str, list[int]]:
    """Return the size of each file, and the time of its last change in milliseconds.

    Spark lists folders and globs, and its tasks ask for what is known of a file; no file is opened.
    """
    known = session.read.format("binaryFile").load(paths)
    changed = "unix_millis(modificationTime) as changed"
    found = known.selectExpr("path", "length", changed).toArrow()
    columns = (found.column(name).to_pylist() for name in ("path", "length", "changed"))
    return {path_of(path): [size, time] for path, size, time in zip(*columns, strict=True)}


def _read_here(session: Any, files: Files, options: ReadOptions, memory: int, about: SparkInput) -> SparkInput:
    """Read files with the reader of the local engine, and give their rows to Spark.

    CSV declares no types: ids get those that the local engine gives them.
    """
    needed = SPREAD * sum(size for size, _ in (about.identity or {}).values())
    if needed > memory:
        raise InputError(
            f"{about.kind}: the driver reads such files itself and would need about {needed / 1e9:,.1f} GB, and may use"
            f" {memory / 1e9:,.1f} GB; give it more with 'memory', or read them with Spark and pass the DataFrame"
        )
    source = open_source(files, options)
    count, ids = 0, []
    for batch in source.batches():
        count += batch.num_rows
        if options.id is not None:
            ids.append(batch.column("id"))
    table = source.kept(np.ones(count, bool))
    if ids:
        place = table.schema.get_field_index(options.id)
        table = table.set_column(place, options.id, source.finish_ids(pa.chunked_array(ids)))
    positions = source.positions()
    broken = None
    if positions is not None and len(positions):
        total = int(positions[-1]) + 1
        broken = RowSet(total, [np.setdiff1d(np.arange(total), positions)])
    return replace(about, frame=session.createDataFrame(table), aside=tuple(source.aside), broken=broken)


def path_of(uri: str) -> str:
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

    def without(self, broken: Ints) -> Numbering:
        """Return the numbering of the other rows; those given ascend. Rows after a broken one begin a new stretch."""
        firsts = [starts + shifts for starts, shifts in self.stretches.values()]
        begins = np.unique(np.concatenate([*firsts, broken + 1]))
        begins = np.setdiff1d(begins[begins < self.rows], broken)
        parts, places = self.locate(begins)
        shifts = begins - np.searchsorted(broken, begins) - places
        found = {}
        for part in np.unique(parts).tolist():
            here = np.flatnonzero(parts == part)
            here = here[np.argsort(places[here])]
            found[part] = places[here], shifts[here]
        return Numbering(self.rows - len(broken), self.bytes, found)

    def followed_by(self, other: Numbering, number: int) -> Numbering:
        """Return the numbering of these collections and of the next one, whose rows come after them."""
        moved = {
            part + number * OTHER: (starts, shifts + self.rows) for part, (starts, shifts) in other.stretches.items()
        }
        return Numbering(self.rows + other.rows, self.bytes + other.bytes, {**self.stretches, **moved})


@dataclass(frozen=True)
class Deposit:
    """The input as it lies in the folder of the run; or where it came from, then `noted` has the digests.

    direct: the files, if tasks can read them without Spark. step: that with the digests; None if no row can be a copy.
    """

    frame: Any
    numbering: Numbering
    columns: tuple[str, ...]
    kind: str
    files: tuple[str, ...]
    text: str
    short: int
    aside: list[Aside]
    broken: RowSet | None
    noted: Any = None
    direct: DirectFiles | None = None
    step: str | None = None

    @property
    def facts(self) -> Any:
        """Where the digests are: beside the rows, unless these were left where they are."""
        return self.frame if self.noted is None else self.noted

    def positions(self, rows: Ints) -> Ints:
        """Return the numbers of rows in the input, those set aside counted: the ids of rows that have no other."""
        return rows if self.broken is None else self.broken.others(rows)

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
    few = F.count_if((F.col(SIZE) < short) & F.col(TROUBLE).isNull()).alias("short")
    sizes, numbering, names = number_rows(frame, given, [few], layout)
    columns = tuple(name for name in schema.names if not name.startswith(PREFIX))
    text, aside = options.text if plain else TEXT, list(given.aside)
    known = Deposit(
        frame, numbering, columns, given.kind, tuple(given.identity or ()), text, sum(sizes["short"]), aside,
        given.broken, step=step,
    )  # fmt: skip
    if not sum(sizes["broken"]):
        return known
    if not options.skip:
        raise_first(known, names)
    broken = frame.where(F.col(TROUBLE).isNotNull()).select(PART, PLACE, TROUBLE).toArrow()
    parts, places = (np.asarray(broken.column(name), np.int64) for name in (PART, PLACE))
    rows = numbering.number(parts, places)
    order = np.argsort(rows)
    begins, files = np.array([row for row, _ in names]), [file or known.kind for _, file in names]
    owner = np.searchsorted(begins, rows[order], side="right") - 1
    reasons = broken.column(TROUBLE).take(to_arrow(order)).to_pylist()
    within = (rows[order] - begins[owner]).tolist()
    aside += [Aside(files[own], row, reason) for own, row, reason in zip(owner, within, reasons, strict=True)]
    left = numbering.without(rows[order])
    return replace(
        known, frame=frame.where(F.col(TROUBLE).isNull()), numbering=left, broken=RowSet(numbering.rows, [rows])
    )


def number_rows(
    frame: Any, given: SparkInput, more: list[Any], layout: tuple[Ints, Ints] | None = None
) -> tuple[dict[str, list[Any]], Numbering, list[tuple[int, str]]]:
    """Number the rows of an input that was placed; also return what was added up, and where each file begins."""
    from pyspark.sql import functions as F

    by = [PART, *([FILE, BLOCK] if given.files else [])]
    sums = [F.min(PLACE).alias("first"), F.count("*").alias("rows"), F.sum(SIZE).alias("bytes")]
    sizes = frame.groupBy(*by).agg(*sums, F.count(TROUBLE).alias("broken"), *more).toArrow().to_pydict()
    return sizes, *_numbered(sizes, given.files, layout)


def _placed(batches: Iterator[Any], options: ReadOptions, plain: bool) -> Iterator[Any]:
    """Note the partition and the place of every row, the size and the digest of its text, and what is wrong with it."""
    from pyspark import TaskContext

    ready()
    part, place = TaskContext.get().partitionId(), 0
    for batch in batches:
        rows = batch.num_rows
        texts, trouble = text_of(batch.column(batch.schema.get_field_index(options.text)), options, "the input")
        reasons = [trouble[row].reason if row in trouble else None for row in range(rows)] if trouble else [None] * rows
        if options.skip and options.id is not None:
            ids = batch.column(batch.schema.get_field_index(options.id)).is_null().to_pylist()
            reasons = [reason or (NULL_ID if null else None) for reason, null in zip(reasons, ids, strict=True)]
        if texts.null_count:
            texts = texts.fill_null("")
        sizes = pc.binary_length(texts).cast(pa.int64())
        digests = chunk_digests(TextChunk.from_arrow(texts))
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
    owners = [path_of(uri) for uri in sizes[FILE]] if files else [""] * count
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


def raise_first(
    known: Deposit,
    begins: list[tuple[int, str]],
    kind: type[InputError] = TextError,
    advice: str = "; leave such rows out of the input",
) -> None:
    """Raise for the first broken row."""
    from pyspark.sql import functions as F

    broken = known.frame.where(F.col(TROUBLE).isNotNull()).select(PART, PLACE, TROUBLE).limit(1000).toArrow()
    parts, places = (np.asarray(broken.column(name), np.int64) for name in (PART, PLACE))
    rows = known.numbering.number(parts, places)
    first = int(np.argmin(rows))
    begin, file = max(pair for pair in begins if pair[0] <= rows[first])
    reason = broken.column(TROUBLE)[first].as_py()
    raise kind(f"{file or known.kind}: row {rows[first] - begin}: {reason}{advice}")
