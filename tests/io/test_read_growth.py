"""Compressed files that become much larger: read a little at a time, or refused with one line."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest

from likewise.errors import FormatError
from likewise.io import tables
from likewise.io.read import Files, ReadOptions, open_source
from likewise.io.read import open as opening
from likewise.io.read.find import find

MIB = 1 << 20
PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_little_is_decompressed_at_a_time(tmp_path: Path, ending: str) -> None:
    data = b"".join(bytes([i % 251]) * 3001 for i in range(1000)) + bytes(4 * MIB)
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(PACKERS[ending](data) * (1 if ending == ".zst" else 2))
    (file,) = find(Files([path]))
    with open(path, "rb") as raw:
        parts = list(opening.decompressed(raw, file))
    assert b"".join(parts) == data * (1 if ending == ".zst" else 2)
    assert max(map(len, parts)) <= MIB


@pytest.mark.each_value
@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.parquet", "a.arrow"])
def test_a_row_that_fills_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, name: str
) -> None:
    monkeypatch.setattr(opening, "SMALL", MIB)
    data = b'{"text": "' if name == "a.jsonl" else b"text\n" if name == "a.csv" else b""
    (tmp_path / f"{name}{ending}").write_bytes(PACKERS[ending](data + b"a" * (6 * MIB)))
    with pytest.raises(FormatError, match=rf"{name}{ending}: .* more than 200 times as large as the compressed file"):
        list(open_source(tmp_path / f"{name}{ending}").batches())
    if name == "a.csv":
        with pytest.raises(FormatError, match="200 times"):
            tables.read_tables(tmp_path / f"{name}{ending}", "link", "a", "records")


@pytest.mark.parametrize("line", [b"\n", b"\r\n", pytest.param(b" \n", marks=pytest.mark.soak), b"\t \r\n"])
def test_blank_lines_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    monkeypatch.setattr(opening, "SMALL", 9 * MIB)  # more than a block
    row = b'{"text": "a"}\n'
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(row + line * (10 * MIB // len(line)) + row))
    source = open_source(tmp_path / "a.jsonl.gz")
    assert [batch.column("text").to_pylist() for batch in source.batches()] == [["a"], ["a"]]


def test_empty_rows_of_csv_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "SMALL", 9 * MIB)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"text\na\n" + b"\n" * (10 * MIB) + b"b\n"))
    source = open_source(tmp_path / "a.csv.gz")
    assert [text for batch in source.batches() for text in batch.column("text").to_pylist()] == ["a", "b"]


def test_many_small_files_that_grow_come_in_batches(tmp_path: Path) -> None:
    for i in range(8):
        (tmp_path / f"{i}.txt.gz").write_bytes(gzip.compress(b"%d " % i * MIB))
    source = open_source(tmp_path, ReadOptions(batch_bytes=MIB))
    found = [batch.column("text").to_pylist() for batch in source.batches(2)]
    assert [len(texts) for texts in found] == [1] * 8
    assert [texts[0][:2] for texts in found] == [f"{i} " for i in range(8)]
