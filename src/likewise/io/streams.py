"""Streams: what yields rows or batches once. They are kept in a temporary Arrow file, from which they are read as often
as it takes, so that a stream may be much larger than the memory."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from inspect import GEN_CLOSED, getgeneratorstate
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.checks import is_spark_frame
from likewise.errors import FormatError, LikewiseError, ParameterError, TextError
from likewise.io.disk import disk_errors, drop, hidden_file, register
from likewise.io.objects import TableView, kind_of, view_of

ROWS, BYTES = 1 << 13, 1 << 23
"""Rows and bytes of a batch in the file: each batch is decompressed as a whole, and small ones cost time."""
READ_AHEAD = 2
"""Batches that a reader of datasets may hold; its own default of 16, of 131,072 rows each, takes gigabytes."""
SPLIT = "split"
"""The column that says from which split of several datasets a row is."""
NO_STREAMS = str | bytes | bytearray | Mapping | set | frozenset | list | tuple | np.ndarray | pa.Scalar


class Spool:
    """A stream that was read, in a temporary file that goes with this object: what it was, its rows and its schema."""

    def __init__(self, kind: str, path: Path, rows: int, schema: pa.Schema) -> None:
        self.kind = kind
        self.path = path
        self.rows = rows
        self.schema = schema
        register(path, self)

    def table(self) -> pa.Table:
        """Return the rows as a table that is mapped from the file, and stays readable when the file is gone."""
        batches = pa.ipc.open_stream(pa.memory_map(str(self.path)))
        return pa.Table.from_batches(batches, self.schema)


def table_of(
    source: Any,
    owner: str,
    parameter: str,
    *,
    column: str | None = None,
    index: bool = False,
    or_else: str = "",
    folder: Path | None = None,
) -> pa.Table:
    """Return an object as an Arrow table; a stream is written to a file, in `folder`, and mapped to memory from there.

    A column on its own (an Arrow array, a Series, a stream of texts or of vectors) becomes a table with the one column
    `column`; without that name it is refused. `index` keeps the index of a pandas DataFrame as a column unless it only
    numbers the rows. `or_else` names what the caller accepts besides tables, for the error message.
    """
    spool = spooled(source, column, folder, compressed=False)
    if spool is not None:
        return spool.table()
    table, order = view_of(source, owner, parameter, column=column, index=index, or_else=or_else)
    return table if order is None else table.take(order)


def spool_folder(spill: str | os.PathLike[str] | None, out: str | os.PathLike[str] | None = None) -> Path | None:
    """Return where streams are kept: in `spill`, else beside the result, on its disk; None for temporary files."""
    if spill is not None:
        return Path(spill)
    beside = None if out is None else Path(out).absolute().parent
    return beside if beside is not None and os.access(beside, os.W_OK | os.X_OK) else None


def spooled(source: Any, column: str | None, folder: Path | None = None, compressed: bool = True) -> Spool | None:
    """Read a stream to its end, and return the file that has it; None for an object that is no stream.

    column: what a stream of texts or of vectors, which has no columns, is called. Errors of the stream pass through,
    with a note on the row; the file is then gone.
    """
    if isinstance(source, Spool):
        return source
    stream = _stream(source)
    if stream is None:
        return None
    if isinstance(source, Generator) and getgeneratorstate(source) == GEN_CLOSED:
        raise ParameterError(f"This {kind_of(source)} has been read already, and yields nothing more. Make a new one.")
    rows = _Rows(kind_of(source), column)
    with _SpoolFile(rows, folder, "lz4" if compressed else None) as file:
        for batch in _small(_noted(rows.batches(stream), rows)):
            file.write(batch)
        return file.finished(column)


def _stream(source: Any) -> Iterable[Any] | None:
    """Return what yields the rows or batches of a stream; None for any other object."""
    package = type(source).__module__.partition(".")[0]
    stream: Iterable[Any] | None = None
    if is_spark_frame(source):
        return None  # it would all come here
    if isinstance(source, pa.RecordBatchReader):
        stream = source
    elif package == "pyarrow":
        if hasattr(source, "scanner"):  # a Dataset
            source = source.scanner(batch_size=ROWS, batch_readahead=READ_AHEAD, fragment_readahead=1)
        if hasattr(source, "dataset_schema"):  # a Scanner
            stream = source.to_reader()
    elif package == "polars":
        stream = source.collect_batches(chunk_size=ROWS) if hasattr(source, "collect_batches") else None
    elif package == "datasets":
        stream = _of_datasets(source)
    elif package == "pandas":
        stream = source if isinstance(source, Iterator) else None
    elif hasattr(source, "to_arrow_reader"):  # a relation of DuckDB
        stream = source.to_arrow_reader(ROWS)
    elif hasattr(source, "fetch_record_batch"):  # one of an earlier version
        stream = source.fetch_record_batch(ROWS)
    elif hasattr(source, "__arrow_c_stream__") and not hasattr(source, "to_arrow"):
        with suppress(pa.ArrowInvalid):  # a column
            stream = pa.RecordBatchReader.from_stream(source)
    elif isinstance(source, Iterable) and not isinstance(source, NO_STREAMS):
        others = ("to_arrow", "__arrow_c_array__", "__dataframe__")
        stream = None if any(hasattr(source, name) for name in others) else source
    return stream


def _of_datasets(source: Any) -> Iterable[Any] | None:
    """Return the batches of an IterableDataset; of several datasets, with a column that has the name of the split."""
    if not isinstance(source, Mapping):
        return None if hasattr(source, "_indices") or not hasattr(source, "iter") else _of_dataset(source)
    return chain.from_iterable(_of_split(name, dataset) for name, dataset in source.items())


def _of_dataset(dataset: Any) -> Iterable[Any]:
    if dataset.features is None:  # rows whose types nobody declared
        plain: Iterable[Any] = dataset.with_format(None)
        return plain
    batches: Iterable[Any] = dataset.with_format("arrow").iter(batch_size=ROWS)
    return batches


def _of_split(name: str, dataset: Any) -> Iterator[Any]:
    for batch in _of_dataset(dataset):
        if isinstance(batch, dict):
            yield {**batch, SPLIT: name} if SPLIT not in batch else batch
        elif SPLIT in batch.column_names:
            yield batch
        else:
            yield batch.append_column(SPLIT, pa.array([name] * batch.num_rows, pa.string()))


def _noted(batches: Iterator[pa.RecordBatch], rows: _Rows) -> Iterator[pa.RecordBatch]:
    """Pass batches on; an error of Arrow names the stream, and one of the user's code passes with a note."""
    files = rows.kind.startswith("pyarrow.") and rows.kind != "pyarrow.RecordBatchReader"  # and no code of the user's
    broken = (pa.ArrowException, OSError) if files else (pa.ArrowException,)
    try:
        yield from batches
    except LikewiseError:
        raise
    except broken as error:
        words = " ".join(str(error).split())
        raise FormatError(f"{rows.kind}: the stream cannot be read after row {rows.count}: {words}") from error
    except Exception as error:
        error.add_note(f"likewise had read {rows.count:,} rows of this {rows.kind}")
        raise


class _Rows:
    """The rows of a stream, gathered in batches: texts, dicts, vectors, or batches of any kind.

    count: the rows that came so far.
    """

    def __init__(self, kind: str, column: str | None) -> None:
        self.kind = kind
        self.count = 0
        self._column = column
        self._held: list[Any] = []
        self._size = 0
        self._expected: type | None = None

    def batches(self, stream: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Yield what a stream yields, as batches."""
        for item in stream:
            if isinstance(item, pa.RecordBatch | pa.Table):
                yield from self._passed(item)
            elif item is None or isinstance(item, str | Mapping) or _is_vector(item):
                yield from self._add(item)
            elif isinstance(item, list | tuple):  # some rows at a time
                for row in item:
                    yield from self._add(row)
            else:
                yield from self._passed(self._converted(item))
        yield from self._flushed()

    def _passed(self, batch: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
        if self._held:
            raise self._strange(batch)
        yield from batch.to_batches() if isinstance(batch, pa.Table) else [batch]
        self.count += batch.num_rows

    def _converted(self, item: Any) -> pa.Table:
        """Return a batch of another library as a table."""
        if isinstance(item, bytes | bytearray | int | float | bool | set | frozenset):
            raise self._strange(item)
        inner = _stream(item)
        if isinstance(inner, pa.RecordBatchReader):
            return inner.read_all()
        view: TableView = view_of(item, self.kind, "rows", or_else="texts, dicts, batches")
        return view.table if view.order is None else view.table.take(view.order)

    def _add(self, row: Any) -> Iterator[pa.RecordBatch]:
        shape = str if row is None or isinstance(row, str) else dict if isinstance(row, Mapping) else list
        if shape is list and not _is_vector(row):
            raise self._strange(row)
        if self._expected is None:
            self._expected = shape
            if shape is str:
                self.kind = f"{self.kind} of str"
            if shape is not dict and self._column is None:
                raise FormatError(f"{self.kind}: rows without columns cannot be used here; yield dicts")
        if shape is not self._expected:
            raise self._strange(row)
        self._held.append(row)
        self.count += 1
        self._size += _size_of(row)
        if len(self._held) >= ROWS or self._size >= BYTES:
            yield from self._flushed()

    def _strange(self, item: Any) -> LikewiseError:
        names: dict[type, str] = {str: "a string", dict: "a dict", list: "a vector"}
        if self._expected is None:
            return TextError(
                f"{self.kind}: row {self.count}: {kind_of(item)} is not a string, a dict or a batch; convert it first"
            )
        expected = names[self._expected] + ("" if self._expected is str else ", as the rows before it are")
        return TextError(f"{self.kind}: row {self.count}: {kind_of(item)} is not {expected}; convert it first")

    def _flushed(self) -> Iterator[pa.RecordBatch]:
        held, first = self._held, self.count - len(self._held)
        self._held, self._size = [], 0
        if not held:
            return
        if self._expected is dict:
            names = dict.fromkeys(name for row in held for name in row)
            columns = {name: self._array([row.get(name) for row in held], str(name), first) for name in names}
            yield pa.record_batch({str(name): column for name, column in columns.items()})
        elif self._expected is list:
            yield pa.record_batch({self._column: self._array(held, str(self._column), first)})
        else:
            yield pa.record_batch({self._column: _texts(held)})

    def _array(self, values: list[Any], name: str, first: int) -> pa.Array:
        """Return values as an array; raise an error that names the first row that does not fit those before it."""
        try:
            return pa.array(values)
        except (pa.ArrowException, UnicodeEncodeError, ValueError, TypeError, OverflowError) as error:
            fits, fails = 0, len(values)  # so many of the first values fit, and so many do not
            while fails - fits > 1:
                middle = (fits + fails) // 2
                try:
                    pa.array(values[:middle])
                    fits = middle
                except (pa.ArrowException, UnicodeEncodeError, ValueError, TypeError, OverflowError):
                    fails = middle
            value, before = values[fits], pa.array(values[:fits]).type
            than = f"and {before} in the rows before" if fits and before != pa.null() else "which Arrow cannot hold"
            raise FormatError(
                f"{self.kind}: row {first + fits}: the column '{name}' is {kind_of(value)} there, {than}; convert it"
            ) from error


def _is_vector(row: Any) -> bool:
    """Tell whether a row is a list or an array of numbers."""
    if isinstance(row, np.ndarray):
        return row.ndim == 1 and row.dtype.kind in "fiub"
    return isinstance(row, list | tuple) and bool(row) and isinstance(row[0], int | float | np.number)


def _size_of(row: Any) -> int:
    values = row.values() if isinstance(row, Mapping) else [row]
    return sum(len(value) if isinstance(value, str | bytes | list | np.ndarray) else 8 for value in values)


def _texts(values: list[str | None]) -> pa.Array:
    try:
        return pa.array(values, pa.large_string())
    except UnicodeEncodeError:  # kept as bytes that are not UTF-8, to be reported with its row
        encoded = [None if value is None else value.encode("utf-8", "surrogatepass") for value in values]
        return pa.array(encoded, pa.large_binary())


def _small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of neither too many bytes nor too few; those of other types are not joined."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        step = max(1, min(ROWS, batch.num_rows * BYTES // max(1, batch.nbytes)))
        if held and (rows + batch.num_rows > step or not batch.schema.equals(held[0].schema)):
            yield _joined(held)
            held, rows, size = [], 0, 0
        if batch.num_rows > step:
            yield from (batch.slice(start, step) for start in range(0, batch.num_rows, step))
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size >= BYTES:
            yield _joined(held)
            held, rows, size = [], 0, 0
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole[0] if whole else batches[0]


class _SpoolFile:
    """Writes batches to a temporary file; if their types widen, to another one, and in the end all to a last one."""

    def __init__(self, rows: _Rows, folder: Path | None, codec: str | None) -> None:
        self._stream = rows
        self._folder = folder
        self._options = pa.ipc.IpcWriteOptions(compression=codec)
        self._paths: list[Path] = []
        self._schema: pa.Schema | None = None
        self._writer: Any = None
        self._rows = 0

    def __enter__(self) -> _SpoolFile:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._close()
        finally:
            for path in self._paths:  # but for the one that was finished
                drop(path)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        if self._schema is None:
            self._begin(batch.schema)
        elif not batch.schema.equals(self._schema):
            schema = self._widened(batch)
            if not schema.equals(self._schema):
                self._begin(schema)
            batch = self._fitted(batch)
        if batch.num_rows:
            with disk_errors(self._paths[-1]):
                self._writer.write_batch(batch)
        self._rows += batch.num_rows

    def finished(self, column: str | None) -> Spool:
        """Return the file, with all batches of the last schema; a stream that yielded nothing has a column of texts."""
        if self._schema is None:
            self._begin(pa.schema([] if column is None else [(column, pa.large_string())]))
        self._close()
        if len(self._paths) > 1:
            parts = list(self._paths)
            self._begin(self._schema)
            for path in parts:
                with pa.OSFile(str(path)) as file:
                    for batch in pa.ipc.open_stream(file):
                        with disk_errors(self._paths[-1]):
                            self._writer.write_batch(self._fitted(batch))
                drop(path)
            self._close()
        return Spool(self._stream.kind, self._paths.pop(), self._rows, self._schema)

    def _begin(self, schema: pa.Schema) -> None:
        self._close()
        self._paths.append(hidden_file(self._folder, ".arrow"))
        self._schema = schema
        self._file = pa.OSFile(str(self._paths[-1]), "wb")
        self._writer = pa.ipc.new_stream(self._file, schema, options=self._options)

    def _close(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            with disk_errors(self._paths[-1]):
                writer.close()
                self._file.close()

    def _widened(self, batch: pa.RecordBatch) -> pa.Schema:
        """Return the types that hold both this batch and those before it."""
        assert self._schema is not None
        try:
            return pa.unify_schemas([self._schema, batch.schema], promote_options="permissive")
        except pa.ArrowException as error:
            for field in batch.schema:
                known = self._schema.field(field.name).type if field.name in self._schema.names else field.type
                try:
                    pa.unify_schemas(
                        [pa.schema([(field.name, known)]), pa.schema([field])], promote_options="permissive"
                    )
                except pa.ArrowException:
                    there = pc.index(pc.is_valid(batch.column(field.name)), True).as_py()
                    raise FormatError(
                        f"{self._stream.kind}: row {self._rows + max(0, there)}: the column '{field.name}' is "
                        f"{field.type} there, and {known} in the rows before; convert it"
                    ) from error
            raise

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the columns and types of the file; a column that it does not have is null."""
        assert self._schema is not None
        columns = []
        for field in self._schema:
            if field.name in batch.schema.names:
                try:
                    columns.append(batch.column(field.name).cast(field.type))
                except pa.ArrowException as error:
                    raise FormatError(
                        f"{self._stream.kind}: up to row {self._stream.count}: the column '{field.name}' cannot be "
                        f"{field.type}: {error}; convert it"
                    ) from error
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
