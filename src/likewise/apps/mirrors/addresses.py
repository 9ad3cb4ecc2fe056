"""URLs in canonical form, numbered, and read from files and objects; the spellings of a page's URL have one number."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Bytes, Hashes, Ints, TextChunk, to_arrow
from likewise.base.runlog import Tick
from likewise.errors import FormatError, InputError
from likewise.io.read import Aside, Files, ReadOptions, Source, open_source
from likewise.io.read.find import files_of
from likewise.kernels.urls import BLANK, HARD, PLAIN, canonize, host_spans, number_strings, rebuild

OWNER = "mirrors"
SKIP = "correct it, or use on_error='skip' to set such rows aside"
PORTS = {"http": "80", "https": "443", "ftp": "21"}
SCHEME = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//")
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
ESCAPE = re.compile("%(?:([0-9A-Fa-f]{2}))?")
UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
KEPT = "!$&'()*+,;=:@/?[]%~"
BLANKS = "".join(map(chr, range(33)))


class BadUrl(ValueError):
    """A URL that does not name a page of a host; the message says why."""


def canonical(text: str) -> str:
    """Return a URL in canonical form; raise BadUrl if it does not name a page.

    Scheme and host are in lower case and internationalized host names in ASCII (xn--…). The user, the default port of
    the scheme and the fragment are dropped. The path is at least /, with `.` and `..` resolved, and percent-encoded
    where necessary, in capitals. The default scheme is http.

    >>> canonical("HTTP://Me@WWW.Example.ORG:80/a/../b?q#top"), canonical("bücher.example/é")
    ('http://www.example.org/b?q', 'http://xn--bcher-kva.example/%C3%A9')
    """
    text = text.strip(BLANKS)
    if any(char.isspace() or ord(char) < 32 or ord(char) == 127 for char in text):
        raise BadUrl("there is a blank within the URL")
    text = text.partition("#")[0]
    found = SCHEME.match(text)
    scheme = (found[1] or "http").lower() if found else "http"
    rest = text[found.end() :] if found else text
    cut = min((place for place in map(rest.find, "/?\\") if place >= 0), default=len(rest))
    host, port = _authority(rest[:cut], bool(found))
    if port and port != PORTS.get(scheme):
        host = f"{host}:{port}"
    path, mark, query = rest[cut:].replace("\\", "/").partition("?")
    return f"{scheme}://{host}{_resolved(_escaped(path))}{mark}{_escaped(query)}"


def _authority(text: str, named: bool) -> tuple[str, str]:
    """Return host and port, validated. Without a scheme a host needs a dot, so that file names are rejected."""
    user, at, text = text.rpartition("@")
    if at and not named:
        raise BadUrl(f"it has no host: '{user}@{text}' is not a page")
    if text.startswith("["):
        inside, closed, after = text[1:].partition("]")
        try:
            host = f"[{ipaddress.IPv6Address(inside)}]"
        except ValueError:
            raise BadUrl(f"'[{inside}]' is not an IPv6 address") from None
        if not closed or (after and not after.startswith(":")):
            raise BadUrl(f"'{text}' is not a host")
        return host, _port(after[1:])
    name, colon, port = text.partition(":")
    if not name:
        raise BadUrl("it has no host")
    if not named and ("." not in name.strip(".") or (colon and not port.isdecimal())):
        raise BadUrl("it has no host; a URL begins with http:// or with a host name")
    host = name.removesuffix(".").lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise BadUrl(f"'{name}' is not a host name") from None
    labels = host.split(".")
    if len(host) > 253 or not all(map(LABEL.fullmatch, labels)):
        raise BadUrl(f"'{name}' is not a host name")
    if labels[-1].isdecimal():
        try:
            host = str(ipaddress.IPv4Address(host))
        except ValueError:
            raise BadUrl(f"'{name}' is neither a host name nor an IPv4 address") from None
    return host, _port(port)


def _port(port: str) -> str:
    if port and not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise BadUrl(f"'{port}' is not a port")
    return str(int(port)) if port else ""


def _escaped(text: str) -> str:
    """Percent-encode the characters that require it, and decode the others."""
    return ESCAPE.sub(_escape, quote(text, safe=KEPT))


def _escape(found: re.Match[str]) -> str:
    if found[1] is None:
        return "%25"
    char = chr(int(found[1], 16))
    return char if char in UNRESERVED else found[0].upper()


def _resolved(path: str) -> str:
    """Return a path without `.` and `..`."""
    if "/." not in path:
        return path or "/"
    kept: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


@dataclass
class NumberedStrings:
    """Distinct strings, numbered in the order in which they were first added."""

    data: Bytes = field(default_factory=lambda: np.empty(1 << 12, np.uint8))
    offsets: Ints = field(default_factory=lambda: np.zeros(257, np.int64))
    hashes: Hashes = field(default_factory=lambda: np.empty(256, np.uint64))
    table: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1 << 10, np.int32))
    count: int = 0

    def __len__(self) -> int:
        return self.count

    def number(self, data: Bytes, starts: Ints, stops: Ints) -> Ints:
        """Return the numbers of the strings data[start:stop], adding those that are new."""
        numbers = np.empty(len(starts), np.int64)
        self._make_room(self.count + len(starts), int((stops - starts).sum()))
        if 2 * (self.count + len(starts)) > len(self.table):
            bits = int(3 * (self.count + len(starts))).bit_length()
            self.table = np.zeros(1 << bits, np.int32)
            rebuild(self.hashes, self.count, self.table)
        held = (self.data, self.offsets, self.hashes, self.table)
        self.count = number_strings(data, starts, stops, *held, self.count, numbers)
        return numbers

    def _make_room(self, count: int, more: int) -> None:
        if count > len(self.hashes):
            self.hashes = _grown(self.hashes, count)
            self.offsets = _grown(self.offsets, count + 1)
        if self.offsets[self.count] + more > len(self.data):
            self.data = _grown(self.data, int(self.offsets[self.count]) + more)

    def chunk(self) -> TextChunk:
        """Return all strings, without copying."""
        return TextChunk(self.data, self.offsets[: self.count + 1])

    def take(self, numbers: Ints) -> pa.Array:
        """Return some of the strings as an Arrow column."""
        ends = self.offsets[: self.count + 1]
        sizes = ends[numbers + 1] - ends[numbers]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        index = np.repeat(ends[numbers] - offsets[:-1], sizes) + np.arange(offsets[-1])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data[index])]
        return pa.Array.from_buffers(pa.large_string(), len(numbers), buffers)

    def text(self, number: int) -> str:
        """Return one string."""
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes().decode()


def _grown(array: NDArray[Any], least: int) -> NDArray[Any]:
    grown = np.empty(max(least, len(array) * 3 // 2), array.dtype)
    grown[: len(array)] = array
    return grown


@dataclass
class Pages:
    """Pages and their hosts, both numbered; a page is identified by its canonical URL.

    >>> pages = Pages()
    >>> numbers, bad = pages.add(pa.array(["http://a.org/x", "A.org:80/x#y", "nothing", "b.org"]))
    >>> numbers.tolist(), bad
    ([0, 0, -1, 1], {2: 'it has no host; a URL begins with http:// or with a host name'})
    """

    urls: NumberedStrings = field(default_factory=NumberedStrings)
    hosts: NumberedStrings = field(default_factory=NumberedStrings)
    _host: Ints = field(default_factory=lambda: np.empty(256, np.int64))
    _path: Ints = field(default_factory=lambda: np.empty(256, np.int64))

    def __len__(self) -> int:
        return len(self.urls)

    @property
    def host(self) -> Ints:
        """The number of the host of each page."""
        return self._host[: len(self)]

    @property
    def path(self) -> Ints:
        """The position in `urls.data` at which the path of each page begins."""
        return self._path[: len(self)]

    def add(self, column: pa.Array) -> tuple[Ints, dict[int, str]]:
        """Return the numbers of the URLs in a column, -1 if invalid, -2 if blank, and why each one is invalid."""
        chunk = TextChunk.from_arrow(column)
        room = int(chunk.offsets[-1] - chunk.offsets[0]) + 8 * len(chunk)
        out, offsets = np.empty(room, np.uint8), np.empty(len(chunk) + 1, np.int64)
        kinds = np.empty(len(chunk), np.uint8)
        canonize(chunk.data, chunk.offsets, out, offsets, kinds)
        starts, stops, bad = offsets[:-1], offsets[1:], {}
        hard = np.flatnonzero(kinds == HARD)
        if len(hard):
            starts, stops, written = starts.copy(), stops.copy(), []
            at = int(offsets[-1])
            for row in hard.tolist():
                try:
                    made = canonical(chunk.text(row)).encode()
                except BadUrl as error:
                    bad[row] = str(error)
                    continue
                kinds[row], starts[row], stops[row] = PLAIN, at, at + len(made)
                at += len(made)
                written.append(made)
            out = np.concatenate([out[: offsets[-1]], np.frombuffer(b"".join(written), np.uint8)])
        good = np.flatnonzero(kinds == PLAIN)
        before = len(self)
        numbers = np.where(kinds == BLANK, -2, -1).astype(np.int64)
        numbers[good] = self.urls.number(out, starts[good], stops[good])
        if len(self) > before:
            if len(self) > len(self._host):
                self._host, self._path = (_grown(array, len(self)) for array in (self._host, self._path))
            spans = np.empty(len(self) - before, np.int64)
            host_spans(self.urls.data, self.urls.offsets[before : len(self) + 1], spans, self._path[before : len(self)])
            self._host[before : len(self)] = self.hosts.number(self.urls.data, spans, self._path[before : len(self)])
        return numbers, bad

    def by_host(self, pages: Ints) -> tuple[Ints, Ints]:
        """Return these pages ordered by host, and the offsets of the hosts (one more than there are hosts)."""
        hosts = self.host[pages]
        counts = np.bincount(hosts, minlength=len(self.hosts))
        return pages[np.argsort(hosts, kind="stable")], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@dataclass
class UrlReader:
    """Reads URLs, numbers their pages, and records what was set aside.

    rows: rows read, without blank lines. named: whether a column was read, not just text files or lists.
    """

    pages: Pages
    options: ReadOptions
    threads: int
    aside: list[Aside] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: int = 0
    blank: int = 0
    named: bool = False

    def beside(self) -> UrlReader:
        """Return a reader of something else that numbers the same pages and counts its own rows."""
        return UrlReader(self.pages, self.options, self.threads, self.aside, self.inputs)

    def urls(self, source: Any, column: str, tick: Tick) -> Iterator[Ints]:
        """Yield the page numbers of a list of URLs, in input order."""
        for name, opened in self._opened(source, column, None):
            for row, batch in self._batches(opened, tick):
                numbers, bad = self.pages.add(batch.column("text"))
                self._refuse(name, opened, row, bad, batch.column("text"))
                self.blank += int((numbers == -2).sum())
                self.rows += int((numbers > -2).sum())
                yield numbers[numbers >= 0]

    def rows_of(self, source: Any, column: str, tick: Tick) -> Ints:
        """Return the page number of every row of a table with a column of URLs, -1 for a row that was set aside."""
        parts = [np.zeros(0, np.int64)]
        for name, opened in self._opened(source, column, column):
            batches = self._batches(opened, tick)
            numbers = [self._numbers(name, opened, row, batch.column("id")) for row, batch in batches]
            delivered = np.concatenate([np.zeros(0, np.int64), *numbers])
            self.rows += len(delivered)
            positions = opened.positions()
            taken = opened.state().get("taken")  # what is set aside may be many rows: a damaged row group
            rows = opened.total_rows if taken is None else sum(one["rows"] for one in taken)
            whole = np.full(len(delivered) if rows is None else rows, -1, np.int64)
            whole[np.arange(len(delivered)) if positions is None else positions] = delivered
            parts.append(whole)
        return np.concatenate(parts)

    def texts(self, source: Any, column: str, text: str, tick: Tick) -> Iterator[tuple[Ints, Any]]:
        """Yield page numbers and the texts of these pages."""
        for name, opened in self._opened(source, text, column):
            for row, batch in self._batches(opened, tick):
                numbers = self._numbers(name, opened, row, batch.column("id"))
                good = np.flatnonzero(numbers >= 0)
                yield numbers[good], batch.column("text").take(to_arrow(good))

    def links(self, source: Any, here: str, there: str, tick: Tick) -> Iterator[tuple[Ints, Ints]]:
        """Yield the page numbers of the sources and of the targets of links."""
        for name, opened in self._opened(source, here, there):
            for row, batch in self._batches(opened, tick):
                left, right = (self._numbers(name, opened, row, batch.column(end)) for end in ("text", "id"))
                self.rows += batch.num_rows
                good = (left >= 0) & (right >= 0)
                yield left[good], right[good]

    def _numbers(self, name: str | None, opened: Source, row: int, column: Any) -> Ints:
        """Return the page numbers of the URLs in a column, -1 for those that are set aside; blank ones are invalid."""
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            column = column.cast(pa.large_string())
        numbers, bad = self.pages.add(column)
        bad |= {int(i): "it is blank" for i in np.flatnonzero(numbers == -2)}
        self._refuse(name, opened, row, bad, column)
        return np.maximum(numbers, -1)

    def _opened(self, source: Any, text: str, id: str | None) -> Iterator[tuple[str | None, Source]]:
        """Open files one by one, so that an error can name file and row; or open an object."""
        files = files_of(source)
        if files is None:
            if isinstance(source, list | tuple) and all(isinstance(one, str) for one in source):
                source = pa.array(source, pa.large_string())
            bare = isinstance(source, pa.Array | pa.ChunkedArray)
            self.named |= not bare
            yield from self._noted(None, source, replace(self.options, text="text" if bare else text, id=id))
            return
        found = files.find()
        self.notes += [found.plain_note] if found.plain_note else []
        for file in found.files:
            if id is not None and not file.is_table:
                columns = f"'{text}' and '{id}'" if text != id else f"'{text}'"
                raise InputError(f"{file.name}: a table with columns {columns} is needed, such as CSV, TSV or Parquet")
            self.named |= file.is_table
            options = replace(self.options, text=text if file.is_table else "text", id=id)
            name = file.name if file.is_table else f"{file.name}\n"
            yield from self._noted(name, Files([file.path]), options)

    def _noted(self, name: str | None, source: Any, options: ReadOptions) -> Iterator[tuple[str | None, Source]]:
        opened = open_source(source, options)
        yield name, opened
        self.aside += opened.aside
        self.inputs += opened.describe()

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""
        return self.inputs

    def _batches(self, opened: Source, tick: Tick) -> Iterator[tuple[int, Any]]:
        row = 0
        for batch in opened.batches(self.threads):
            yield row, batch
            row += batch.num_rows
            tick(batch.num_rows)

    def _refuse(self, name: str | None, opened: Source, first: int, bad: dict[int, str], column: Any) -> None:
        """Raise for the first invalid URL, or set all of them aside."""
        broken = len(opened.aside)
        for i, reason in sorted(bad.items()):
            row = first + i + broken  # earlier rows that could not be read at all
            shown = str(column[i].as_py())
            shown = shown if len(shown) <= 80 else f"{shown[:77]}…"
            lines = name is not None and name.endswith("\n")
            place = row + 1 if lines else row
            if not self.options.skip:
                where = f"row {row}" if name is None else f"{name[:-1]}:{place}" if lines else f"{name}: row {row}"
                raise FormatError(f"{where}: '{shown}' is not the URL of a page: {reason}; {SKIP}")
            self.aside.append(Aside((name or "rows").rstrip("\n"), place, f"'{shown}': {reason}"))
