"""Text files: one document per file, or one per line."""

from __future__ import annotations

import tempfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.parallel import run_ahead
from likewise.errors import InputError, ParameterError, TextError
from likewise.io.disk import atomic
from likewise.io.read.base import Aside, FileSource, Flags, ReadOptions, Tick, check_flags, quiet
from likewise.io.read.columns import REPLACE, SKIP, CleanBatch, Trouble, Types, check_columns, cut, text_of
from likewise.io.read.cuts import TextCuts
from likewise.io.read.find import InputFile
from likewise.io.read.open import BOM, copied, input_errors, read_all
from likewise.io.read.pages import page_text
from likewise.io.read.records import RecordBlock, RecordPart, Split, line_split
from likewise.io.read.stretches import Stretch, spread

COLUMNS = ["path", "text"]
BINARY = "there are NUL bytes, it looks like a binary file"
TEXT = "plain=True reads it as text"
ASIDE = "on_error='skip' sets such files aside"


class Lines(RecordPart):
    """One text file with a document on each line; an empty line is an empty document."""

    def peek(self) -> Types:
        """Check that only the text is requested."""
        check_columns(self.file.name, ["text"], self.options)
        next(self.blocks(1 << 16), None)
        return Types()

    def split(self, data: bytes, last: bool) -> Split:
        """Split at line feeds."""
        return line_split(data, last)

    def parse(self, block: RecordBlock) -> CleanBatch:
        """Remove the line ends and pass the offsets of the lines to Arrow."""
        if not block.rows:
            return CleanBatch(None, 0)
        texts = self._texts(block.data, block)
        texts, trouble = text_of(texts, replace(self.options, html=False), self.file.name)
        if not self.options.plain and is_binary(block.data):
            for row in range(block.rows):
                if b"\0" in block.data[block.split.starts[row] : block.split.ends[row]]:
                    trouble[row] = Trouble(TextError, BINARY, f"{TEXT}, {SKIP}")
        return self.sifted(block, {"text": texts}, trouble)

    @staticmethod
    def _texts(data: bytes, block: RecordBlock) -> pa.Array:
        view = np.frombuffer(data, np.uint8)
        stops = block.content_ends()
        sizes = stops - block.split.starts
        wanted = np.ones(len(view) + 1, np.int8)
        for gap in (0, 1):  # at most a carriage return and a line feed
            wanted[stops[stops + gap < block.split.ends] + gap] = 0
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        small = len(view) < 1 << 31
        return pa.Array.from_buffers(
            pa.binary() if small else pa.large_binary(),
            block.rows,
            [None, pa.py_buffer(offsets.astype(np.int32 if small else np.int64)), pa.py_buffer(view[wanted[:-1] > 0])],
        )

    def cut_row(self, data: bytes, cut: Callable[[bytes], bytes]) -> bytes:
        """Return a line with its text cut."""
        text = data.removesuffix(b"\n").removesuffix(b"\r")
        return cut(text.decode(errors=self.options.encoding_errors).encode()) + data[len(text) :]

    def line_of(self, block: RecordBlock, row: int) -> int:
        """Return the line of a row: each has one."""
        return block.line + row

    def table(self, keep: Flags) -> pa.Table:
        """Return the kept lines without their line ends."""
        return self.table_of(b"".join(self.kept_bytes(keep)))

    def table_of(self, data: bytes | bytearray) -> pa.Table:
        """Return lines as a table of texts."""
        data = bytes(data)
        split = line_split(data, True)
        texts = self._texts(data, RecordBlock(data, 1, split)) if data else pa.array([], pa.binary())
        return pa.table({"text": text_of(texts, replace(self.options, html=False), self.file.name)[0]})


_TextBatch = tuple[list[InputFile], pa.RecordBatch, list[Aside]]
"""Files that can be used, their documents, and files that were set aside."""


class TextFiles(FileSource):
    """Text files, each of them one document; the id is the path."""

    def __init__(self, files: list[InputFile], options: ReadOptions) -> None:
        check_columns(files[0].given, COLUMNS, options)
        self.ids = "path" if options.id is None else "column"
        self.aside = []
        self.options = options
        self.inputs = files
        self._delivered: list[InputFile] | None = None
        self._cuts: dict[int, Callable[[bytes], bytes]] = {}

    def _groups(self) -> Iterator[list[InputFile]]:
        """Yield files that make about one batch."""
        group: list[InputFile] = []
        size = 0
        for file in self.inputs:
            if group and (len(group) >= self.options.batch_rows or size + file.bytes > self.options.batch_bytes):
                yield group
                group, size = [], 0
            group.append(file)
            size += file.bytes
        if group:
            yield group

    def _read(self, files: list[InputFile]) -> Iterator[tuple[list[InputFile], list[bytes | str], list[Aside]]]:
        """Yield the files that can be used, their documents, and why the others cannot; about a batch at a time."""
        usable, texts, aside = [], [], []
        size = 0
        for file in files:
            found: bytes | str | Trouble = b""
            try:
                found = self._text(file)
                if isinstance(found, Trouble):
                    raise found.error(file.name)
            except InputError as error:
                if not self.options.skip or len(self.inputs) == 1:
                    raise
                reason = found.reason if isinstance(found, Trouble) else str(error).removeprefix(f"{file.name}: ")
                aside.append(Aside(file.name, -1, reason))
                continue
            texts.append(found)
            usable.append(file)
            size += len(found)
            if size > self.options.batch_bytes:
                yield usable, texts, aside
                usable, texts, aside, size = [], [], [], 0
        yield usable, texts, aside

    def is_page(self, file: InputFile) -> bool:
        """Return whether a file is read as HTML: because that was said, or by its name."""
        html = self.options.html
        return file.is_page and not self.options.plain if html is None else html

    def _text(self, file: InputFile) -> bytes | str | Trouble:
        """Return the text of a file; of a byte order mark nothing is left."""
        data = read_all(file, self.options.row_bytes)
        page = self.is_page(file)
        skip = f", {ASIDE}" if not self.options.skip else ""
        marked = page and data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        if not (self.options.plain or marked) and is_binary(data):
            return Trouble(TextError, BINARY, f"{TEXT}{skip}")
        if page:
            with input_errors(file):
                return page_text(data)
        data = data.removeprefix(BOM)
        if data.isascii():
            return data
        try:
            data.decode()
        except UnicodeDecodeError as error:
            if self.options.encoding_errors == "replace":
                return data.decode(errors="replace")
            return Trouble(TextError, f"not valid UTF-8 at byte {error.start}", f"{REPLACE}{skip}")
        return data

    def _batches_of(self, files: list[InputFile]) -> Iterable[_TextBatch]:
        """Read some files: at once, or one batch after the other if compressed ones may become large."""
        batches = map(self._batch, self._read(files))
        return batches if any(file.compression for file in files) else list(batches)

    def _batch(self, read: tuple[list[InputFile], list[bytes | str], list[Aside]]) -> _TextBatch:
        usable, texts, aside = read
        columns = {"text": _strings(texts)}
        paths = pa.array([file.name for file in usable], pa.string())
        for role, name in (("id", self.options.id or "path"), *self.options.scores.items()):
            columns[role] = paths if name == "path" else columns["text"]
        return usable, pa.RecordBatch.from_arrays(list(columns.values()), list(columns)), aside

    def batches(self, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield the documents in the order of their files."""
        self.aside = []
        self._delivered = None
        delivered: list[InputFile] = []
        tasks = (partial(self._batches_of, group) for group in self._groups())
        for batches in run_ahead(tasks, threads):
            for usable, batch, aside in batches:
                delivered.extend(usable)
                self.aside.extend(aside)
                yield from cut(batch, self.options)
        self._delivered = delivered

    def pages(self, rows: int) -> Flags:
        """Return which of the delivered files were read as HTML."""
        return np.array([self.is_page(file) for file in self._delivered or []], bool)

    def look(self, places: int, size: int) -> Iterator[Stretch]:
        """Read some neighbouring files at each of `places` places, `size` bytes in all; broken ones are no error."""
        lenient = TextFiles(self.inputs, replace(self.options, on_error="skip"))
        taken = 0
        for first in spread([1] * len(self.inputs), places):
            group = _neighbours(self.inputs, max(first, taken), size // places)
            taken = max(first, taken) + len(group)
            begun = process_time()
            for usable, batch, aside in lenient._batches_of(group):
                seconds = process_time() - begun
                stored = sum(file.bytes for file in usable)
                yield Stretch.of(CleanBatch(batch, len(usable) + len(aside)), stored, seconds)
                begun = process_time()

    def copy_cost(self, files: int, limit: int) -> float:
        """Return the seconds it takes to copy one of the first `files` files, those below `limit` bytes."""
        small = [file for file in self.inputs[:files] if file.bytes < limit]
        with tempfile.TemporaryDirectory(prefix="likewise-") as place:
            begun = process_time()
            for number, file in enumerate(small):
                with input_errors(file):
                    copied(file, Path(place) / f"{number}")
            return (process_time() - begun) / max(1, len(small))

    def state(self) -> dict[str, Any]:
        """Return which files were delivered, and what was set aside."""
        places = {id(file): place for place, file in enumerate(self.inputs)}
        return {
            "delivered": [places[id(file)] for file in self._delivered or []],
            "aside": [vars(entry) for entry in self.aside],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that another process had after reading the same files."""
        self._delivered = [self.inputs[place] for place in state["delivered"]]
        self.aside = [Aside(**entry) for entry in state["aside"]]

    def locate(self, row: int) -> tuple[str, int]:
        """Return the name of the file that is a delivered document; it has one row."""
        return (self.inputs if self._delivered is None else self._delivered)[row].name, 0

    def _kept(self, keep: Flags) -> list[InputFile]:
        if self._delivered is None:
            for _ in self.batches():
                pass
        delivered = self._delivered or []
        check_flags(keep, len(delivered), "the text files")
        return [file for file, flag in zip(delivered, keep.tolist(), strict=True) if flag]

    def cut_texts(self, cuts: TextCuts | None) -> None:
        """Leave these passages out of the texts that are returned and written from now on."""
        self._cuts = {}
        if cuts is not None:
            for place, row in enumerate(cuts.rows.tolist()):
                file = (self._delivered or [])[row]
                if self.is_page(file):
                    raise ParameterError(f"{file.name}: nothing can be cut out of HTML pages")
                self._cuts[id(file)] = partial(cuts.cut, place)

    def kept(self, keep: Flags) -> pa.Table:
        """Return path and text of the kept documents."""
        files = self._kept(keep)
        paths = pa.array([file.name for file in files], pa.string())
        texts = [self._still(self._cut_text, file) for file in files]
        return pa.table({"path": paths, "text": _strings(texts)})

    def _cut_text(self, file: InputFile) -> bytes | str:
        text = self._known_text(file)
        cut = self._cuts.get(id(file))
        return text if cut is None else cut(text if isinstance(text, bytes) else text.encode())

    def _write(self, target: Path, file: InputFile) -> None:
        """Copy a file, or write it again, with its byte order mark, if something of it is cut."""
        if id(file) not in self._cuts:
            copied(file, target)
            return
        with atomic(target, file.compression, parents=True) as out:
            out.write(BOM if read_all(file, self.options.row_bytes).startswith(BOM) else b"")
            out.write(self._cut_text(file))

    def _known_text(self, file: InputFile) -> bytes | str:
        found = self._text(file)
        if isinstance(found, Trouble):
            raise found.error(file.name)
        return found

    @property
    def total_rows(self) -> int:
        """The number of files."""
        return len(self.inputs)

    def write_kept(self, keep: Flags, directory: Path, threads: int = 1, tick: Tick = quiet) -> list[Path]:
        """Copy the files of the kept documents, each to its relative path."""
        written = []
        for file in self._kept(keep):
            target = Path(directory) / file.relative
            self._still(partial(self._write, target), file)
            written.append(target)
            tick(1)
        return written

    @staticmethod
    def _still(use: Callable[[InputFile], Any], file: InputFile) -> Any:
        """Use a file again that was there when it was read."""
        try:
            with input_errors(file):
                return use(file)
        except InputError as error:
            raise InputError(
                f"{file.name}: the file changed while likewise was running ({error}); run again"
            ) from error

    def describe(self) -> list[dict[str, Any]]:
        """Return, for each path, folder or glob given, the number and size of its files."""
        given: dict[str, dict[str, Any]] = {}
        for file in self.inputs:
            entry = given.setdefault(file.given, {"file": file.given, "format": "text", "files": 0, "bytes": 0})
            entry["files"] += 1
            entry["bytes"] += file.bytes
        return list(given.values())


def _neighbours(files: list[InputFile], first: int, size: int) -> list[InputFile]:
    """Return consecutive files from the first on, of `size` bytes together, at least one."""
    group: list[InputFile] = []
    held = 0
    for file in files[first:]:
        if group and held + file.bytes > size:
            break
        group.append(file)
        held += file.bytes
    return group


def _strings(texts: Iterable[bytes | str]) -> pa.Array:
    """Return documents, already known to be UTF-8, as one array of strings."""
    raw = [text if isinstance(text, bytes) else text.encode() for text in texts]
    offsets = np.concatenate(([0], np.cumsum([len(text) for text in raw], dtype=np.int64)))
    small = offsets[-1] < 1 << 31
    return pa.Array.from_buffers(
        pa.string() if small else pa.large_string(),
        len(raw),
        [
            None,
            pa.py_buffer(offsets.astype(np.int32 if small else np.int64)),
            pa.py_buffer(raw[0] if len(raw) == 1 else b"".join(raw)),
        ],
    )


MOST_NULS = 1 / 1000
"""Fraction of NUL bytes above which a file is binary: programs have a tenth, compressed data 1 in 256, and damaged text
a few."""

MAGIC = (
    b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm",
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"OggS", b"ID3",
    b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf",
    b"%PDF-", b"\xd0\xcf\x11\xe0", b"SQLite format 3\0", b"PAR1", b"ARROW1", b"\x93NUMPY",
)  # fmt: skip
"""How programs, images, sounds, archives, PDF and data files begin."""


def is_binary(data: bytes) -> bool:
    """Return whether bytes are those of a binary file: NUL bytes, and many of them or the beginning of a known format.

    >>> is_binary(b"a\\0b"), is_binary(b"word " * 20_000 + b"\\0"), is_binary(b"GIF8 is how images begin")
    (True, False, False)
    """
    if b"\0" not in data:
        return False
    return data.startswith(MAGIC) or data.count(b"\0") > MOST_NULS * len(data)
