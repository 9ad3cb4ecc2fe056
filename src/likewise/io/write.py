"""Results out: tables and manifests to files, all or nothing, the same bytes for the same table."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from likewise.errors import OutputError, ParameterError
from likewise.io.workspace import WORK, disk_error, sync, told

ROWS = 1 << 16
"""Rows in a row group or batch; fixed, so that the bytes do not depend on how a table is chunked."""

MANIFEST = "run.json"
OUTPUTS = ("removed.parquet", "pairs.parquet", "clusters.parquet", "aside.parquet", "report.html", "kept", "state")
"""What a run leaves in its folder, besides its manifest."""


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table as Parquet, CSV, JSON lines or Arrow, by the extension of the path.

    The file appears under its name only when it is complete. Equal tables give equal bytes.
    """
    path = Path(path)
    writer = _writer(path)
    with _created(path) as out:
        try:
            writer(_settled(table), out)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise OutputError(f"{path}: this table cannot be written as {path.suffix}: {error}") from error


def write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> None:
    """Write a Parquet file from batches of at most `ROWS` rows, each a row group: the bytes of `write_table`."""
    import pyarrow.parquet as pq

    with _created(path) as out, pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_json(value: object, path: str | os.PathLike[str]) -> None:
    """Write a value as readable JSON, all or nothing; numbers that are not finite become null."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    with _created(Path(path)) as out:
        out.write(text.encode() + b"\n")


def check_target(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise now what `write_table` would raise later: an unknown extension, a folder that is not there.

    A file that is an input must not be replaced, by whatever name it goes.
    """
    path = Path(path)
    _writer(path)
    if path.exists() and any(path.samefile(place) for place in inputs):
        raise OutputError(f"{path}: this run would replace its own input; choose another name")
    if path.is_dir():
        raise OutputError(f"{path}: this is a folder; name a file in it")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}; create it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"{path}: you may not write to the folder {path.parent}; choose another")


def check_directory(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise now what would be raised later, when the answer is to be put there; nothing is changed.

    A folder with other files and without a manifest will not be touched, nor one with an input in what would be
    replaced.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path}: this is a file; name a folder")
        if path.exists() and any(path.iterdir()) and not _is_ours(path):
            raise OutputError(
                f"{path}: the folder is not empty and was not made by likewise; choose another, or empty it"
            )
        replaced = [(path / name).resolve() for name in OUTPUTS if (path / name).exists()]
        for place in inputs if replaced else ():
            resolved = Path(place).resolve()
            if any(resolved.is_relative_to(output) for output in replaced):
                raise OutputError(f"{path}: this run would replace its own input {place}; choose another folder")
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    except OSError as error:
        raise OutputError(f"{path}: cannot be prepared: {error.strerror or error}; choose another folder") from error
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"{path}: you may not write to the folder {there}; choose another")


def check_answer(
    folder: str | os.PathLike[str], command: str, names: Iterable[str], inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Raise now what `write_answer` would raise later: other files there, another command's answer, an input."""
    folder = Path(folder)
    inputs = list(inputs)
    check_directory(folder, inputs)
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
        there = content.get("command") if isinstance(content, dict) else None
    except (OSError, ValueError):
        there = None
    if there not in (None, command):
        raise OutputError(f"{folder}: the answer of likewise {there} is there; choose another folder")
    replaced = [(folder / name).resolve() for name in names]
    for place in inputs:
        if Path(place).resolve() in replaced:
            raise OutputError(f"{folder}: this run would replace its own input {place}; choose another folder")


def write_answer(
    folder: str | os.PathLike[str],
    tables: Mapping[str, pa.Table | Callable[[Path], None] | None],
    stats: Mapping[str, Any],
) -> None:
    """Write the tables of a command's answer and its manifest, all or nothing; a table that is None is not there.

    A table that need not be in memory is given as the function that writes it. `stats["command"]` names the command. A
    folder without a manifest is not finished.
    """
    folder = Path(folder)
    check_answer(folder, stats["command"], tables)
    staged = folder / WORK
    with told(folder):
        if staged.exists():
            shutil.rmtree(staged)
        staged.mkdir(parents=True)
        for name, table in tables.items():
            if isinstance(table, pa.Table):
                write_table(table, staged / name)
            elif table is not None:
                table(staged / name)
        write_json(stats, staged / MANIFEST)
        (folder / MANIFEST).unlink(missing_ok=True)
        for name, table in tables.items():
            if table is None:
                (folder / name).unlink(missing_ok=True)
            else:
                os.replace(staged / name, folder / name)
        os.replace(staged / MANIFEST, folder / MANIFEST)
        sync(folder)
        staged.rmdir()


def _is_ours(folder: Path) -> bool:
    """Tell whether a folder was made by likewise: it has our manifest, or a run of ours has not finished there."""
    if (folder / WORK).is_dir():
        return True
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "likewise" in content


def publish(staged: Path, folder: Path) -> None:
    """Put a new answer in the place of an old one: out with the old files, in with the new, the manifest last.

    A folder without a manifest is therefore not finished, and the next run puts it right.
    """
    old = staged.with_name("old")
    with told(folder):
        if old.exists():
            shutil.rmtree(old)
        old.mkdir()
        for name in (MANIFEST, *OUTPUTS):
            if (folder / name).is_symlink() or (folder / name).exists():
                os.replace(folder / name, old / name)
        for name in (*OUTPUTS, MANIFEST):
            if (staged / name).exists():
                os.replace(staged / name, folder / name)
        sync(folder)
        shutil.rmtree(old)


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

    pyarrow.csv.write_csv(table, out)


def _jsonl(table: pa.Table, out: IO[bytes]) -> None:
    for start in range(0, table.num_rows, ROWS):
        for row in table.slice(start, ROWS).to_pylist():
            out.write(json.dumps(_finite(row), ensure_ascii=False, default=str).encode() + b"\n")


def _arrow(table: pa.Table, out: IO[bytes]) -> None:
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table, max_chunksize=ROWS)


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


@contextmanager
def _created(path: Path) -> Iterator[IO[bytes]]:
    """Open a file under a hidden name; it takes its own name when all is on the disk."""
    hidden = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(hidden, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(hidden, path)
    except FileNotFoundError as error:
        raise OutputError(f"{path}: there is no folder {path.parent}; create it first") from error
    except OSError as error:
        raise disk_error(path, error) from error
    finally:
        with suppress(OSError):
            hidden.unlink()
