"""WARC and WET files: records with text are documents, their URLs are ids, and kept records keep their bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import made_inputs
from likewise import dedup, plan
from likewise.errors import FormatError, TextError
from likewise.io.read import Files, ReadOptions, open_source

HTML = b"<html><head><title>A title</title></head><body><p>caf\xc3\xa9</p></body></html>"


def record(kind: str, url: str, content: bytes, mime: str = "application/http; msgtype=response") -> bytes:
    """One record as the standard writes it."""
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-01T00:00:00Z\r\n"
        f"WARC-Record-ID: <urn:uuid:{zlib.crc32(content + url.encode())}>\r\nContent-Type: {mime}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content + b"\r\n\r\n"


def response(url: str, body: bytes, mime: str = "text/html", status: int = 200, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: {mime}\r\n{more}\r\n"
    return record("response", url, head.encode() + body)


INFO = record("warcinfo", "", b"software: x\r\n", "application/warc-fields")
CHUNKS = b"5\r\n<p>ab\r\n3;x=y\r\nc d\r\n0\r\n\r\n"
RECORDS = [
    response("http://a/", HTML),
    record("request", "http://a/", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request"),
    response("http://b/", "<p>при".encode("koi8-r"), "text/html; charset=koi8-r"),
    response("http://c/", b"moved", status=301),
    response("http://d/", b"\x89PNG\0", "image/png"),
    response("http://e/", b"plain <b>text", "text/plain"),
    response("http://f/", CHUNKS, more="Transfer-Encoding: chunked\r\n"),
    response("http://g/", gzip.compress(b"<p>packed"), more="Content-Encoding: gzip\r\n"),
    record("conversion", "http://h/", "as\nWARC/1.0\r\ntext é".encode(), "text/plain"),
    record("resource", "http://i/", b"a file", "text/plain"),
    record("metadata", "http://i/", b"x: y", "application/warc-fields"),
    response("http://a/", HTML + b"again"),
]
TEXTS = {
    "http://a/": "A title\ncafé",
    "http://b/": "\nпри",
    "http://e/": "plain <b>text",
    "http://f/": "\nabc d",
    "http://g/": "\npacked",
    "http://h/": "as\nWARC/1.0\r\ntext é",
    "http://i/": "a file",
    "http://a/ (2)": "A title\ncafé\nagain",
}
DOCUMENTS = [0, 2, 5, 6, 7, 8, 9, 11]
"""The records that are documents."""


WHOLE = {".bz2": bz2.compress, ".xz": lzma.compress, ".zst": made_inputs.zstd}


def put(path: Path, records: list[bytes]) -> Path:
    each = path.suffix == ".gz"
    data = b"".join(gzip.compress(one) if each else one for one in records)
    path.write_bytes(WHOLE[path.suffix](data) if path.suffix in WHOLE else data)
    return path


def delivered(path: Path, **options: object) -> dict[str, str]:
    source = open_source(path, ReadOptions(**options))  # type: ignore[arg-type]
    batches = list(source.batches(2))
    ids = source.finish_ids(pa.chunked_array([batch.column("id") for batch in batches]))
    texts = [text for batch in batches for text in batch.column("text").to_pylist()]
    return dict(zip(ids.to_pylist(), texts, strict=True))


@pytest.mark.parametrize(
    "name", ["a.warc", "a.warc.gz", "a.wet", "a.warc.wet.gz", "a.warc.zst", "a.warc.xz", "a.wet.bz2"]
)
@pytest.mark.parametrize("head", [[], [INFO]])
def test_records_with_text_are_documents(tmp_path: Path, name: str, head: list[bytes]) -> None:
    found = delivered(put(tmp_path / name, [*head, *RECORDS]))
    assert {url: text.split() for url, text in found.items()} == {url: text.split() for url, text in TEXTS.items()}
    assert found["http://a/"].startswith("A title\n")
    assert list(found) == list(TEXTS)


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.warc.bz2"])
def test_kept_records_keep_their_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    put(path, [INFO, *RECORDS])
    source = open_source(path)
    for _ in source.batches():
        pass
    keep = np.array([i % 2 == 0 for i in range(len(TEXTS))])
    (written,) = source.write_kept(keep, tmp_path / "kept")
    data = written.read_bytes()
    data = gzip.decompress(data) if name.endswith("gz") else data
    data = bz2.decompress(data) if name.endswith("bz2") else data
    assert data == b"".join([INFO, *(RECORDS[place] for place, flag in zip(DOCUMENTS, keep, strict=True) if flag)])
    assert source.kept(keep).column_names == ["text", "url", "date", "record"]
    if name.endswith("gz"):  # each record by itself
        member = zlib.decompressobj(wbits=31)
        assert member.decompress(written.read_bytes()) == INFO


def test_other_columns_can_be_ids(tmp_path: Path) -> None:
    found = delivered(put(tmp_path / "a.warc", RECORDS), id="record")
    assert len(found) == len(TEXTS)
    assert all(name.startswith("urn:uuid:") for name in found)


def test_large_records_and_many(tmp_path: Path) -> None:
    texts = [f"document {i} " + "word " * (i % 7 * 40_000) for i in range(42)]
    records = [record("conversion", f"http://a/{i}", text.encode(), "text/plain") for i, text in enumerate(texts)]
    path = put(tmp_path / "a.wet.gz", records)
    assert list(delivered(path).values()) == texts
    records = [record("conversion", f"http://a/{i}", b"some words " * (i % 7), "text/plain") for i in range(300)]
    result = dedup(Files([put(tmp_path / "b.warc", records * 2)]), threshold=0.9)
    assert result.stats["counts"]["identical"] >= 300
    assert result.clusters["id"][300].as_py() == "http://a/0 (2)"
    assert plan(Files([tmp_path / "b.warc"])).documents == 600


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"hello", "must begin"),
        (RECORDS[0][:-30], "is truncated"),
        (b"WARC/1.0\r\nWARC-Type: conversion\r\n\r\nabc", "Content-Length"),
        (b"WARC/1.0\r\nWARC-Type: conversion\r\n", "does not end"),
        (RECORDS[0] + b"garbage that is no record", "must begin"),
    ],
)
def test_damaged_files_are_one_line(tmp_path: Path, data: bytes, match: str) -> None:
    (tmp_path / "a.warc").write_bytes(data)
    with pytest.raises(FormatError, match=rf"a\.warc: .*{match}"):
        list(open_source(tmp_path / "a.warc").batches())


def test_pages_that_cannot_be_read_are_set_aside(tmp_path: Path) -> None:
    damaged = response("http://x/", b"\x1f\x8bnot gzip", more="Content-Encoding: gzip\r\n")
    strange = response("http://y/", b"abc", more="Content-Encoding: br\r\n")
    bomb = response("http://z/", gzip.compress(b"\n" * (70 << 20), 1), more="Content-Encoding: gzip\r\n")
    path = put(tmp_path / "a.warc", [RECORDS[0], damaged, strange, bomb])
    with pytest.raises(TextError, match=r"a\.warc:\d+: the page is damaged"):
        list(open_source(path).batches())
    source = open_source(path, ReadOptions(on_error="skip"))
    assert sum(batch.num_rows for batch in source.batches()) == 1
    assert len(source.aside) == 3
