"""A glimpse of an input: stretches of its documents, spread over all of it, and from them how much there is in all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from likewise.errors import InputError
from likewise.io.read.base import MIB, Source
from likewise.io.read.memory import InMemory
from likewise.io.read.open import BLOCK
from likewise.io.read.parquet import WRITTEN
from likewise.io.read.plain import TextFiles
from likewise.io.read.records import RecordPart
from likewise.io.read.stretches import SLOW, Stretch, spread
from likewise.io.read.tables import TableFiles

PLACES = 48
"""Stretches to look at: more cost seeks, fewer miss what differs between the parts of an input."""

SIZE = 10 * MIB
"""Bytes to look at in all: a fraction of a second."""

REWRITES = 3
"""Files whose rows are written again to measure the time; the median counts."""

ALLOCATED = 4096
"""File systems allocate multiples of this for a file."""


@dataclass(frozen=True)
class Glimpse:
    """What a glimpse shows: documents and bytes of text in all, and the seconds of one core that they take.

    `exact` says that the documents were counted, not estimated. `stored` is the size of the input on disk. `read` are
    the seconds per byte of text, of which `drawn` are spent by the one thread that hands out the work. `rewrite` are
    the seconds per kept document, `reread` those to read it again before, and `kept` the bytes it takes; `group` are
    the bytes that are written at once, `apart` says that threads do so with several of one file, and `block` are the
    bytes that are parsed at once.
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
    apart: bool = False
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
    """Look at about `size` bytes of an input, spread over `places` places."""
    if isinstance(source, TableFiles):
        return _of_tables(source, size, places)
    if isinstance(source, TextFiles):
        return _of_text_files(source, size, places)
    if isinstance(source, InMemory):
        return _of_object(source, size, places)
    raise NotImplementedError(type(source).__name__)


def _glimpse(stretches: Iterable[Stretch], documents: float, text: float | None, **more: Any) -> Glimpse:
    """Put together what was seen; text whose size is not known is that of the mean document."""
    stretches = [stretch for stretch in stretches if stretch.rows]
    seen, rows = sum(len(stretch.text) for stretch in stretches), sum(stretch.rows for stretch in stretches)
    size = sum(stretch.text_bytes for stretch in stretches)
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
    parts = source.usable
    groups = [part.row_groups() for part in parts]
    stretches: list[Stretch] = []
    rewrites: list[float] = []
    windows, started = 0.0, 0
    for number, shares in spread([part.file.bytes for part in parts], places).items():
        part = parts[number].lenient()
        try:
            looked = list(part.look(shares, max(1, size // places // SLOW.get(part.file.compression or "", 1))))
        except InputError:
            if not source.options.skip:
                raise
            continue
        if groups[number] is None:
            windows += sum(stretch.stored for stretch in looked)
            started += sum(stretch.rows for stretch in looked)
        if len(rewrites) < REWRITES and any(stretch.rows for stretch in looked):
            rewrites.append(part.rewrite_cost()[0])
        stretches.extend(looked)
    documents: float = sum(sum(rows) for rows in groups if rows is not None)
    uncounted = sum(part.file.bytes for part, rows in zip(parts, groups, strict=True) if rows is None)
    if windows:
        documents += started * max(1.0, uncounted / windows)
    stored = sum(part.file.bytes for part in parts)
    declared = [known for part in parts if (known := part.text_size()) is not None]
    text = sum(declared) if len(declared) == len(parts) and not source.options.html else None
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
    if all(isinstance(part, RecordPart) for part in parts):
        return replace(seen, block=float(BLOCK))
    group = seen.text / max(1, sum(len(rows) for rows in groups if rows is not None))
    reread = seen.read * seen.text / max(1, seen.documents)
    return replace(seen, reread=reread, group=min(group, float(WRITTEN)), apart=len(declared) == len(parts))


def _of_text_files(source: TextFiles, size: int, places: int) -> Glimpse:
    stretches = list(source.look(places, size))
    sizes = [file.bytes for file in source.inputs]
    stored = sum(sizes)
    text = stored * sum(one.text_bytes for one in stretches) / max(1.0, sum(one.stored for one in stretches))
    return _glimpse(
        stretches,
        len(sizes),
        text,
        exact=True,
        stored=stored,
        files=len(sizes),
        rewrite=source.copy_cost(2 * places, MIB),
        reread=0.0,
        kept=sum(-(-size // ALLOCATED) for size in sizes) * ALLOCATED / len(sizes),
    )


def _of_object(source: InMemory, size: int, places: int) -> Glimpse:
    rewriting, kept = source.rewrite_cost()
    return _glimpse(
        source.look(places, size),
        source.total_rows,
        None,
        exact=True,
        stored=0,
        files=1,
        rewrite=rewriting,
        reread=0.0,
        kept=kept,
    )
