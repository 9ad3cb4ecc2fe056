"""Tables and JSON to files: atomically, and the same bytes for the same table."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from likewise.errors import DamagedError, OutputError, ParameterError
from likewise.io.disk import atomic, is_url
from likewise.io.mirror import object_of
from likewise.io.seals import read_sealed, write_sealed
from likewise.io.upload import check_inputs, prepare

ROWS = 1 << 16
"""Rows in a row group or batch; fixed, so that the bytes do not depend on how a table is chunked."""


FORMULA, NUMBER = r"^[\x00-\x20]*[=+\-@]|^[\t\r\n]", r"^[+-]?[0-9][0-9.,]*$"
_spreadsheet: ContextVar[bool] = ContextVar("spreadsheet", default=False)


@contextmanager
def spreadsheet(safe: bool = True) -> Iterator[None]:
    """Write CSV for spreadsheets: what one would run as a formula gets an apostrophe, and stays text."""
    before = _spreadsheet.set(safe)
    try:
        yield
    finally:
        _spreadsheet.reset(before)


def without_formulas(column: pa.Array) -> pa.Array:
    """Return strings of which no spreadsheet runs one as a formula.

    >>> without_formulas(pa.array(["=1+1", "-5", "+1 800", "a=b"])).to_pylist()
    ["'=1+1", '-5', "'+1 800", 'a=b']
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    import pyarrow.compute as pc

    run = pc.and_not(pc.match_substring_regex(column, FORMULA), pc.match_substring_regex(column, NUMBER))
    return pc.if_else(run, pc.replace_substring_regex(column, r"\A", "'"), column)


def _for_csv(batch: Any) -> Any:
    """Return a table or a batch as it is written as CSV."""
    if not _spreadsheet.get():
        return batch
    return type(batch).from_arrays([without_formulas(column) for column in batch.columns], schema=batch.schema)


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table as Parquet, CSV, JSON lines or Arrow, by the extension of the path.

    The file appears under its name only when it is complete. Equal tables give equal bytes.
    """
    path = Path(path)
    writer = _writer(path)
    with atomic(path) as out:
        try:
            writer(_settled(table), out)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise OutputError(f"{path}: this table cannot be written as {path.suffix}: {error}") from error


def write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path, threads: int = 1) -> None:
    """Write a table that comes in batches of `ROWS` rows, the last one of fewer: the same bytes as `write_table`.

    As Parquet, `threads` batches are encoded at once.
    """
    kind = path.suffix.lower()
    with atomic(path) as out:
        if kind == ".parquet":
            from likewise.io.row_groups import EncodedRows, encode_rows, write_row_groups

            def encoded(batch: pa.RecordBatch) -> list[EncodedRows]:
                return [encode_rows(pa.Table.from_batches([batch]), schema, "zstd")]

            tasks = (partial(encoded, batch) for batch in batches)
            for _ in write_row_groups(tasks, out, schema, "zstd", threads):
                pass
        elif kind == ".csv":
            import pyarrow.csv

            with pyarrow.csv.CSVWriter(out, schema) as lines:
                for batch in batches:
                    lines.write_batch(_for_csv(batch))
        elif kind == ".jsonl":
            write_json_lines(batches, out)
        else:
            _arrow_batches(batches, schema, out)


def write_json_lines(batches: Iterable[pa.RecordBatch], out: IO[bytes]) -> None:
    """Write the rows of batches as JSON lines."""
    for batch in batches:
        _jsonl(pa.Table.from_batches([batch]), out)


def regrouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `ROWS` rows, the last one of fewer, as `write_batches` needs them."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS:
            whole = pa.Table.from_batches(held).combine_chunks().to_batches()[0]
            full = rows // ROWS * ROWS
            yield from (whole.slice(start, ROWS) for start in range(0, full, ROWS))
            held, rows = [whole.slice(full)], rows - full
    if rows:
        yield pa.Table.from_batches(held).combine_chunks().to_batches()[0]


def write_json(value: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write an object as indented JSON with its checksum, atomically; numbers that are not finite become null."""
    write_sealed(_finite(dict(value)), Path(path), indent=2)


def same_json(value: Mapping[str, Any], path: Path) -> bool:
    """Tell whether a file is the one that `write_json` wrote for this object."""
    try:
        return bool(read_sealed(path, "")[0] == json.loads(json.dumps(_finite(dict(value)), default=str)))
    except (OSError, DamagedError):
        return False


def check_target(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise now what `write_table` would raise later: an unknown extension, a folder that is not there.

    A file that is an input must not be replaced, under whatever name.
    """
    path = Path(path)
    if is_url(path):
        raise OutputError(f"{path}: results are written to this machine, not to a URL; copy them there")
    _writer(path)
    prepare(path)
    check_inputs(path, inputs := list(inputs))
    if path.exists() and any(path.samefile(place) for place in inputs if object_of(place) is None):
        raise OutputError(f"{path}: this run would replace its own input; choose another name")
    if path.is_dir():
        raise OutputError(f"{path}: this is a folder; name a file in it")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}; create it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"{path}: no permission to write to the folder {path.parent}; choose another")


def _writer(path: Path) -> Callable[[pa.Table, IO[bytes]], None]:
    writers: dict[str, Callable[[pa.Table, IO[bytes]], None]] = {
        ".parquet": _parquet,
        ".csv": _csv,
        ".jsonl": _jsonl,
        ".arrow": _arrow,
        ".feather": _arrow,
    }
    if path.suffix.lower() not in writers:
        raise ParameterError.of("write_table", "path", f"a file that ends in {', '.join(writers)}", str(path))
    return writers[path.suffix.lower()]


def _parquet(table: pa.Table, out: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, out, row_group_size=ROWS, compression="zstd")


def _csv(table: pa.Table, out: IO[bytes]) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(_for_csv(table), out)


def _jsonl(table: pa.Table, out: IO[bytes]) -> None:
    for start in range(0, table.num_rows, ROWS):
        for row in table.slice(start, ROWS).to_pylist():
            out.write(json.dumps(_finite(row), ensure_ascii=False, default=str).encode() + b"\n")


def _arrow(table: pa.Table, out: IO[bytes]) -> None:
    _arrow_batches(table.to_batches(max_chunksize=ROWS), table.schema, out)


def _arrow_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: IO[bytes]) -> None:
    """Write batches as Arrow; each is copied, because the bytes of a slice are padded and those of a copy are not."""
    with pa.ipc.new_file(out, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for batch in batches:
            columns = [pa.concat_arrays([column, column.slice(0, 0)]) for column in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _settled(table: pa.Table) -> pa.Table:
    """Return an equal table whose layout depends on its values only."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(place).cast(field.type.value_type).combine_chunks().dictionary_encode()
            table = table.set_column(place, field, column.cast(field.type))
    return table.combine_chunks()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
