"""The naive truth about reading: write rows in every format, and read them back, in the most obvious way."""

import bz2
import csv
import gzip
import io
import json
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

COMPRESSIONS = {"": None, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": None}


def compress(data: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as out:
            out.write(data)
        return sink.getvalue().to_pybytes()
    pack = COMPRESSIONS[suffix]
    return pack(data) if pack else data


def decompress(data: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        return pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    return {"": bytes, ".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}[suffix](data)


def table_of(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def to_bytes(rows: list[dict], suffix: str) -> bytes:
    """Return rows in the format that a file name suffix tells."""
    sink = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(table_of(rows), sink, row_group_size=7, compression="zstd")
    elif suffix == ".feather":
        pyarrow.feather.write_feather(table_of(rows), sink, chunksize=7)
    elif suffix == ".arrow":
        with pa.ipc.new_file(sink, table_of(rows).schema) as writer:
            writer.write_table(table_of(rows), max_chunksize=7)
    elif suffix == ".ipc":
        with pa.ipc.new_stream(sink, table_of(rows).schema) as writer:
            writer.write_table(table_of(rows), max_chunksize=7)
    elif suffix == ".jsonl":
        return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    elif suffix in (".csv", ".tsv"):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)
        return text.getvalue().encode()
    return sink.getvalue()


def from_bytes(data: bytes, suffix: str) -> list[dict]:
    """Return the rows of a file; CSV gives strings."""
    if suffix == ".parquet":
        return pq.read_table(io.BytesIO(data)).to_pylist()
    if suffix in (".feather", ".arrow"):
        return pa.ipc.open_file(io.BytesIO(data)).read_all().to_pylist()
    if suffix == ".ipc":
        return pa.ipc.open_stream(io.BytesIO(data)).read_all().to_pylist()
    if suffix == ".jsonl":
        return [json.loads(line) for line in data.decode().split("\n") if line.strip()]
    delimiter = "\t" if suffix == ".tsv" else ","
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


def write(path: Path, rows: list[dict]) -> Path:
    """Write rows as the name of the path says."""
    suffixes = path.suffixes
    packed = suffixes[-1] if suffixes[-1] in COMPRESSIONS else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compress(to_bytes(rows, suffixes[-2] if packed else suffixes[-1]), packed))
    return path


def read(path: Path) -> list[dict]:
    """Read rows as the name of the path says."""
    suffixes = path.suffixes
    packed = suffixes[-1] if suffixes[-1] in COMPRESSIONS else ""
    return from_bytes(decompress(path.read_bytes(), packed), suffixes[-2] if packed else suffixes[-1])
