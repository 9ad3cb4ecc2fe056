"""A glimpse of an input: stretches of its documents, spread over all of it, and from them how much there is in all."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.errors import InputError
from likewise.io.read.base import MIB, Source
from likewise.io.read.columns import Piece, clean
from likewise.io.read.find import Found
from likewise.io.read.look import (
    REWRITTEN,
    SLOW,
    Stretch,
    careful,
    encoded,
    footer_text,
    look,
    rewrite,
    row_groups,
    text_bytes,
)
from likewise.io.read.memory import InMemory
from likewise.io.read.open import BLOCK, copied, input_errors
from likewise.io.read.parquet import WRITTEN, Parquet
from likewise.io.read.plain import TextFiles
from likewise.io.read.records import Records
from likewise.io.read.tables import TableFiles

PLACES = 48
"""Stretches to look at."""

SIZE = 10 * MIB
"""Bytes to look at in all."""

REWRITES = 3

ALLOCATED = 4096
"""A file takes a multiple of this on disk."""


@dataclass(frozen=True)
class Glimpse:
    """What a glimpse tells: documents and bytes of text in all, and the seconds of one core that they take.

    `exact` says that the documents were counted and not estimated. `stored` is the size of the input on disk.
    `read` are the seconds for a byte of text, of which `drawn` are spent by the one thread that hands out the work.
    `rewrite` are the seconds for a document that is kept, `reread` those to read it again before, and `kept` the bytes
    it takes; `group` are the bytes that are written at once, `ahead` says that the next ones are read meanwhile, and
    `block` are the bytes that are parsed at once.
    """

    stretches: list[Stretch]
    documents: int
    exact: bool
    text: int
    stored: int
    files: int
    read: float
    drawn: float
    rewrite: float
    reread: float
    kept: float
    group: float = 0.0
    ahead: bool = False
    block: float = 0.0

    @property
    def seen(self) -> int:
        """The number of documents that were looked at."""
        return sum(len(stretch.text) for stretch in self.stretches)

    @property
    def named(self) -> bool:
        """True if documents have ids of their own, not row numbers."""
        return any(stretch.ids is not None for stretch in self.stretches)

    @property
    def broken(self) -> int:
        """The number of rows that were looked at and cannot be used."""
        return sum(stretch.rows for stretch in self.stretches) - self.seen


def glimpse(source: Source, size: int = SIZE, places: int = PLACES) -> Glimpse:
    """Look at about `size` bytes of an input, at so many places."""
    if isinstance(source, TableFiles):
        return _of_tables(source, size, places)
    if isinstance(source, TextFiles):
        return _of_text_files(source, size, places)
    if isinstance(source, InMemory):
        return _of_object(source, size, places)
    raise NotImplementedError(type(source).__name__)


def spread(sizes: Sequence[int], places: int) -> dict[int, list[float]]:
    """Put places at equal distances over things of these sizes: for each thing that is met, where in it (0 to 1).

    >>> spread([1, 4], 5)
    {0: [0.0], 1: [0.0, 0.25, 0.5, 0.75]}
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    found: dict[int, list[float]] = {}
    for place in range(places if total else 0):
        at = place * total / places
        thing = int(np.searchsorted(ends, at, side="right"))
        found.setdefault(thing, []).append(1 - (int(ends[thing]) - at) / sizes[thing])
    return found


def _glimpse(stretches: list[Stretch], documents: float, text: float | None, **more: Any) -> Glimpse:
    """Put together what was seen; text that is not known is that of the mean document."""
    stretches = [stretch for stretch in stretches if stretch.rows]
    seen, rows = sum(len(stretch.text) for stretch in stretches), sum(stretch.rows for stretch in stretches)
    size = sum(text_bytes(stretch.text) for stretch in stretches)
    usable = documents * (seen / rows if rows else 1.0)
    mean = size / max(1, seen)
    if text is None or seen >= usable or mean * usable > 2 * text:  # a footer counts repeated values once
        text = mean * usable
    return Glimpse(
        stretches=stretches,
        documents=round(usable),
        text=round(text),
        read=sum(stretch.seconds for stretch in stretches) / max(1, size),
        drawn=sum(stretch.drawn for stretch in stretches) / max(1, size),
        **more,
    )


def _of_tables(source: TableFiles, size: int, places: int) -> Glimpse:
    parts = source._usable
    groups = [row_groups(part) for part in parts]
    stretches: list[Stretch] = []
    rewrites: list[float] = []
    windows, started = 0.0, 0
    for number, shares in spread([part.file.bytes for part in parts], places).items():
        part = careful(parts[number])
        try:
            looked = list(look(part, shares, max(1, size // places // SLOW.get(part.file.compression or "", 1))))
        except InputError:
            if not source.options.skip:
                raise
            continue
        if groups[number] is None:
            windows += sum(stretch.stored for stretch in looked)
            started += sum(stretch.rows for stretch in looked)
        if len(rewrites) < REWRITES and any(stretch.rows for stretch in looked):
            rewrites.append(rewrite(part)[0])
        stretches.extend(looked)
    documents: float = sum(sum(rows) for rows in groups if rows is not None)
    uncounted = sum(part.file.bytes for part, rows in zip(parts, groups, strict=True) if rows is None)
    if windows:
        documents += started * max(1.0, uncounted / windows)
    stored = sum(part.file.bytes for part in parts)
    footers = [footer_text(part) for part in parts if isinstance(part, Parquet)]
    text = sum(footers) if len(footers) == len(parts) and not source.options.html else None
    seen = _glimpse(
        stretches,
        documents,
        text,
        exact=windows >= uncounted,
        stored=stored,
        files=len(parts),
        rewrite=median(rewrites) if rewrites else 0.0,
        reread=0.0,
        kept=stored / max(1.0, documents),
    )
    if all(isinstance(part, Records) for part in parts):
        return replace(seen, block=float(BLOCK))
    group = seen.text / max(1, sum(len(rows) for rows in groups if rows is not None))
    ahead = len(footers) == len(parts) and group < WRITTEN
    reread = seen.read * seen.text / max(1, seen.documents)
    return replace(seen, reread=reread, group=min(group, float(WRITTEN)), ahead=ahead)


def _of_text_files(source: TextFiles, size: int, places: int) -> Glimpse:
    files = source._files
    looking = TextFiles(files, replace(source.options, on_error="skip"))
    stretches: list[Stretch] = []
    taken = packed = unpacked = 0
    for first in spread([1] * len(files), places):
        group = _neighbours(files, max(first, taken), size // places)
        taken = max(first, taken) + len(group)
        begun = process_time()
        usable, batch, _ = looking._batch(group)
        seconds = process_time() - begun
        stretches.append(Stretch.of(Piece(batch, len(group)), sum(file.bytes for file in group), seconds))
        packed += sum(file.bytes for file in usable)
        unpacked += text_bytes(batch.column("text"))
    stored = sum(file.bytes for file in files)
    text = stored * unpacked / max(1, packed)
    return _glimpse(
        stretches,
        len(files),
        text,
        exact=True,
        stored=stored,
        files=len(files),
        rewrite=_copying([file for file in files[: 2 * places] if file.bytes < MIB]),
        reread=0.0,
        kept=sum(-(-file.bytes // ALLOCATED) for file in files) * ALLOCATED / len(files),
    )


def _neighbours(files: list[Found], first: int, size: int) -> list[Found]:
    """Return consecutive files from the first on, of so many bytes together."""
    group: list[Found] = []
    held = 0
    for file in files[first:]:
        if group and held + file.bytes > size:
            break
        group.append(file)
        held += file.bytes
    return group


def _copying(files: list[Found]) -> float:
    """Return the seconds it takes to copy a file."""
    with tempfile.TemporaryDirectory(prefix="likewise-") as place:
        begun = process_time()
        for number, file in enumerate(files):
            with input_errors(file):
                copied(file.path, Path(place) / f"{number}")
        return (process_time() - begun) / max(1, len(files))


def _of_object(source: InMemory, size: int, places: int) -> Glimpse:
    rows = source._rows
    options = replace(source.options, on_error="skip")
    needed = source._table.select(options.columns)
    mean = max(1, needed.nbytes // max(1, needed.num_rows))
    step = max(1, size // places // mean)
    stretches = []
    firsts = sorted({place * rows // places for place in range(places)}) if rows else []
    for first, after in zip(firsts, [*firsts[1:], rows], strict=False):
        begun = process_time()
        for batch in _some(needed, source._order, first, min(step, after - first)).to_batches():
            piece = clean(batch, source._kind, first, options, source._types)
            stretches.append(Stretch.of(piece, batch.num_rows * mean, process_time() - begun))
    table = _some(source._table, source._order, rows // 2, max(1, REWRITTEN // mean))
    rewriting, kept = encoded(table, "snappy") if table.num_rows else (0.0, 0.0)
    return _glimpse(stretches, rows, None, exact=True, stored=0, files=1, rewrite=rewriting, reread=0.0, kept=kept)


def _some(table: pa.Table, order: Any, first: int, rows: int) -> pa.Table:
    return (table.slice(first, rows) if order is None else table.take(order.slice(first, rows))).combine_chunks()
