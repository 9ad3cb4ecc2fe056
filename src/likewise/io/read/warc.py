"""Web archives: WARC and WET files (ISO 28500). Every record that has text is a document; its id is its URL.

Documents are records of type response (HTML or text, with HTTP status 200), resource and conversion. Of HTML the text
is taken, as in `pages`. Other records (requests, metadata, redirects, images) are passed over.

Records are found by hand: warcio and FastWARC read a truncated gzip member, a truncated record and one that says to be
longer than the file as if they were whole, and a kept record is to be written again with exactly its bytes.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.extras import installed
from likewise.errors import FormatError, TextError
from likewise.io.read.base import Flags
from likewise.io.read.columns import CleanBatch, Trouble, Types, check_columns, utf8
from likewise.io.read.open import BOM, GROWTH, SMALL
from likewise.io.read.pages import decode_page, decode_text, page_text
from likewise.io.read.records import RecordBlock, RecordPart, Split
from likewise.io.read.tables import TableFiles

COLUMNS = ["text", "url", "date", "record"]
VERSION = re.compile(rb"WARC/[0-9]\.[0-9]+\r?\n")
NEXT = re.compile(rb"\nWARC/[0-9]\.[0-9]+\r?\n")
BLANK = re.compile(rb"\r?\n\r?\n")
LONGEST_HEAD = 1 << 20
"""Bytes in which the head of a record must end: those of real records have less than a thousand."""
PAGES = ("text/html", "application/xhtml+xml")
TEXTS = ("text/plain", "text/markdown")
DAMAGED = "the page is damaged: it cannot be decompressed"


@dataclass(frozen=True)
class Record:
    """One record: its named fields in lower case, and where its content starts and ends."""

    fields: dict[str, str]
    start: int
    end: int

    @property
    def kind(self) -> str:
        """The type of the record: response, conversion, warcinfo …"""
        return self.fields.get("warc-type", "").lower()


def read_fields(head: bytes) -> dict[str, str]:
    """Return the named fields of a record or of an HTTP response; the last of several with one name counts.

    >>> read_fields(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\n")
    {'content-type': 'text/html'}
    """
    lines = (line.partition(":") for line in head.decode("utf-8", "replace").splitlines()[1:])
    return {name.strip().lower(): value.strip() for name, colon, value in lines if colon}


class Warc(RecordPart):
    """One WARC or WET file; a row is a record that has text."""

    def peek(self) -> Types:
        """Check the columns and the beginning of the file."""
        check_columns(self.file.name, COLUMNS, self.options)
        first = next(self.blocks(1 << 16), None)
        if first is not None and not installed("html"):
            self.parse(first)  # says so now, if the first records are HTML
        return Types(None if self.options.id is None else pa.string(), dict.fromkeys(self.options.scores, pa.string()))

    def _records(self, data: bytes, last: bool) -> Iterator[tuple[int, int, Record]]:
        """Yield the start, the end and the content of each whole record."""
        place = 0
        while True:
            place += len(data[place : place + 8]) - len(data[place : place + 8].lstrip(b"\r\n"))
            rest = len(data) - place
            if rest == 0 or (rest < 12 and not last):
                return
            if not VERSION.match(data, place):
                raise FormatError(
                    f"{self.file.name}: a WARC record must begin at byte {place} of a block, and does not"
                )
            head = BLANK.search(data, place, place + LONGEST_HEAD)
            if head is None and (last or rest > LONGEST_HEAD):
                raise FormatError(
                    f"{self.file.name}: the header of a WARC record does not end; download the file again"
                )
            if head is None:
                return
            fields = read_fields(data[place : head.start()])
            if not fields.get("content-length", "").isdecimal():
                raise FormatError(f"{self.file.name}: a WARC record does not say its Content-Length")
            stop = head.end() + int(fields["content-length"])
            if stop + 4 > len(data) and not last:
                return
            if stop > len(data):
                raise FormatError(
                    f"{self.file.name}: the last WARC record is truncated; create or download the file again"
                )
            gap = data[stop : stop + 4]
            end = stop + (4 if gap == b"\r\n\r\n" else 2 if gap[:2] == b"\n\n" else 0)
            yield place, end, Record(fields, head.end(), stop)
            place = end

    def head_size(self, data: bytes) -> int:
        """Return the size of the record about the file itself, if it begins with one."""
        start = super().head_size(data)
        for first, end, record in self._records(data[start:], False):
            return start + end if first == 0 and record.kind == "warcinfo" else start
        return start

    def split(self, data: bytes, last: bool) -> Split:
        """Find the records that have text."""
        start = len(BOM) if data.startswith(BOM) else 0
        rows = []
        used = 0
        for first, end, record in self._records(data[start:] if start else data, last):
            used = end + start
            if _is_document(data, record, start):
                rows.append((first + start, used))
        if last and not data[used:].strip(b"\r\n"):
            used = len(data)
        places = np.array(rows, np.int64).reshape(-1, 2)
        return Split(places[:, 0].copy(), places[:, 1].copy(), used)

    def row_start(self, data: bytes) -> int | None:
        """Return where the first record starts in data from the middle of a file."""
        found = NEXT.search(data)
        return len(data) if found is None else found.start() + 1

    def read_block(self, block: RecordBlock) -> CleanBatch:
        """Read the records of a block; they say themselves which are HTML."""
        return self.parse(block)

    def parse(self, block: RecordBlock) -> CleanBatch:
        """Read the records of a block."""
        columns, trouble = self._columns(block)
        wanted = {"text": "text", "id": self.options.id, **self.options.scores}
        chosen = {role: columns[name] for role, name in wanted.items() if name is not None}
        return self.sifted(block, chosen, trouble)

    def _columns(self, block: RecordBlock) -> tuple[dict[str, pa.Array], dict[int, Trouble]]:
        """Return all columns of the records of a block, and those that cannot be used."""
        values: dict[str, list[str | None]] = {name: [] for name in COLUMNS}
        trouble: dict[int, Trouble] = {}
        for row, (start, end) in enumerate(zip(block.split.starts.tolist(), block.split.ends.tolist(), strict=True)):
            data = block.data[start:end]
            _, _, record = next(self._records(data, True))
            text = self._text(data, record)
            if isinstance(text, Trouble):
                trouble[row] = text
                text = None
            fields = record.fields
            url = fields.get("warc-target-uri", "").strip("<>")
            found = (text, url, fields.get("warc-date"), fields.get("warc-record-id", "").strip("<>"))
            for name, value in zip(COLUMNS, found, strict=True):
                values[name].append(value)
        large = len(block.data) * 4 > 1 << 31
        kinds = {"text": pa.large_string() if large else pa.string()}
        return {name: pa.array(values[name], kinds.get(name, pa.string())) for name in COLUMNS}, trouble

    def _text(self, data: bytes, record: Record) -> str | Trouble | None:
        content = data[record.start : record.end]
        kind = record.fields.get("content-type", "")
        if record.kind == "conversion":
            text, trouble = utf8(content, self.options)
            return text if trouble is None else trouble
        if record.kind == "response":
            head = BLANK.search(content)
            fields = read_fields(content[: head.start()] if head else content)
            payload = _payload(content[head.end() :] if head else b"", fields)
            if isinstance(payload, Trouble):
                return payload
            content, kind = payload, fields.get("content-type", "")
        _, found, charset = kind.lower().partition("charset=")
        decoded = decode_text(content, charset.strip(" \"';")) if found else decode_page(content)
        return page_text(decoded) if _mime(kind) in PAGES else decoded

    def table(self, keep: Flags) -> pa.Table:
        """Return text, URL, date and record id of the kept records."""
        return self.table_of(b"".join(self.kept_bytes(keep)))

    def table_of(self, data: bytes | bytearray) -> pa.Table:
        """Return records as a table."""
        data = bytes(data)
        columns, _ = self._columns(RecordBlock(data, 1, self.split(data, True)))
        return pa.table(columns)

    @property
    def packs_rows(self) -> bool:
        """True for gzip: each record is compressed by itself, as readers of WARC expect."""
        return self.file.compression == "gzip"

    def put(self, rows: bytes | memoryview, out: Any) -> None:
        """Write records."""
        if not self.packs_rows:
            out.write(rows)
            return
        data = bytes(rows)
        for start, end, _ in self._records(data, True):
            out.write(gzip.compress(data[start:end], 6, mtime=0))


class WebArchives(TableFiles):
    """WARC files whose ids are URLs because the user asked for no others: a URL that comes again gets a number."""

    def finish_ids(self, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return ids that are unique: http://a.org/, http://a.org/ (2), …"""
        if pc.count_distinct(ids).as_py() == len(ids):
            return ids
        seen: dict[str, int] = {}
        names = []
        for url in ids.to_pylist():
            seen[url] = seen.get(url, 0) + 1
            names.append(url if seen[url] == 1 else f"{url} ({seen[url]})")
        return pa.chunked_array([pa.array(names, pa.large_string())])


def _mime(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def _is_document(data: bytes, record: Record, shift: int) -> bool:
    """Return whether a record has text: by its type, and the status and the type of a response."""
    kind = _mime(record.fields.get("content-type", ""))
    if record.kind == "conversion":
        return kind in ("", "text/plain")
    if record.kind == "response":
        begin = record.start + shift
        head = BLANK.search(data, begin, min(record.end + shift, begin + LONGEST_HEAD))
        if head is None or data[begin : begin + 20].split()[1:2] != [b"200"]:
            return False
        kind = _mime(read_fields(data[begin : head.start()]).get("content-type", ""))
    return record.kind in ("response", "resource") and kind in (*PAGES, *TEXTS)


def _payload(content: bytes, fields: dict[str, str]) -> bytes | Trouble:
    """Return the content of an HTTP response without its encodings."""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        content = _unchunked(content)
    coding = fields.get("content-encoding", "").lower()
    if coding in ("", "identity") or (coding in ("gzip", "x-gzip") and not content.startswith(b"\x1f\x8b")):
        return content
    if coding not in ("gzip", "x-gzip", "deflate"):
        return Trouble(TextError, f"the page is compressed by {coding}, which cannot be read")
    most = max(SMALL, GROWTH * len(content))
    for wbits in (47, -15):
        try:
            unpacker = zlib.decompressobj(wbits)
            found = unpacker.decompress(content, most)
        except zlib.error:
            continue
        return Trouble(TextError, DAMAGED) if unpacker.unconsumed_tail else found
    return Trouble(TextError, DAMAGED)


def _unchunked(content: bytes) -> bytes:
    """Return the content of chunks; content that is not in chunks, as many archives store it, is returned as it is.

    >>> _unchunked(b"3\\r\\nabc\\r\\n2\\r\\nde\\r\\n0\\r\\n\\r\\n"), _unchunked(b"<p>")
    (b'abcde', b'<p>')
    """
    parts: list[bytes] = []
    place = 0
    while True:
        end = content.find(b"\n", place, place + 100)
        size = content[place:end].partition(b";")[0].strip() if end >= 0 else b""
        try:
            length = int(size, 16)
        except ValueError:
            return b"".join(parts) if parts else content
        if length == 0:
            return b"".join(parts)
        parts.append(content[end + 1 : end + 1 + length])
        place = end + 1 + length + 2
