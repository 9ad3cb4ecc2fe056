"""The second pass: where the repeated units are in the documents, their text, and what is left without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.passages.passages import DocumentReader
from likewise.apps.units.repeats import CUT_COLUMNS, RepeatedUnits
from likewise.base.arrays import Ints, TextChunk, strings, to_arrow
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.errors import InputError
from likewise.io.read.base import Flags
from likewise.io.read.cuts import TextCuts
from likewise.io.write import regrouped, write_batches
from likewise.kernels.line_units import DOCUMENTS, FIRST, LOW, WORDS, cut_units
from likewise.shingle import Words

CHANGED = "the corpus changed during the run; leave it alone and run again"
EMPTY, SHORT = "empty", "short"


@dataclass(frozen=True)
class Remains:
    """What is left of the documents: which are kept, and what is cut out of these; how much was cut.

    removed: the table of those that are not kept. documents: how many have been cut.
    """

    keep: Flags
    text_cuts: TextCuts
    removed: pa.Table
    units: int
    words: int
    documents: int


@dataclass(frozen=True)
class _ChunkCuts:
    """The cuts of some documents: rows of the table, the numbers of documents and of words, and the spans that go."""

    batch: pa.RecordBatch
    documents: Ints
    words: Ints
    spans: Ints


def write_cuts(
    reader: DocumentReader, repeats: RepeatedUnits, rules: Any, path: Path, threads: int, tick: Tick
) -> Remains:
    """Read the documents again, write the table of cuts to a file, and say what is left."""
    names = reader.names()
    spans, left = [np.empty((0, 3), np.int64)], repeats.words.copy()
    touched = np.zeros(len(left), bool)
    units = words = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal units, words
        for part in in_order(
            lambda task: _chunk_cuts(*task, rules, names), _aligned(reader, repeats, threads), threads
        ):
            np.subtract.at(left, part.documents, part.words)
            touched[part.documents] = True
            spans.append(part.spans)
            units += len(part.words)
            words += int(part.words.sum())
            tick(units)
            yield part.batch

    write_batches(regrouped(batches()), _schema(names.type), path, threads)
    keep = ~(touched & (left < rules.min_left))
    gone = np.flatnonzero(~keep)
    removed = pa.table(
        {
            "id": names.take(to_arrow(gone)),
            "why": strings([SHORT if left[row] else EMPTY for row in gone.tolist()]),
            "words_left": to_arrow(left[gone]),
        }
    )
    whole = np.concatenate(spans)
    text_cuts = TextCuts.in_order(whole[keep[whole[:, 0]]])
    return Remains(keep, text_cuts, removed, units, words, int(touched.sum()))


def _aligned(reader: DocumentReader, repeats: RepeatedUnits, threads: int) -> Iterator[tuple[int, TextChunk, Ints]]:
    """Yield the documents that have cuts with these, some at a time."""
    cuts, held, rows = repeats.in_order(threads), np.empty((0, CUT_COLUMNS), np.int64), 0
    for first, chunk in reader.numbered(threads):
        rows = first + len(chunk)
        while (not len(held) or held[-1, 0] < rows) and (more := next(cuts, None)) is not None:
            held = np.concatenate([held, more])
        stop = int(np.searchsorted(held[:, 0], rows))
        if stop:
            yield first, chunk, held[:stop]
        held = held[stop:]
    if rows != len(repeats.words):
        raise InputError(CHANGED)


def _schema(id_type: Any) -> pa.Schema:
    numbers = {name: pa.int64() for name in ("start", "end", "words")}
    return pa.schema(
        {"id": id_type, **numbers, "text": pa.large_string(), "repeated_id": id_type, "documents": pa.int64()}
    )


def _chunk_cuts(first: int, chunk: TextChunk, cuts: Ints, rules: Any, names: Any) -> _ChunkCuts:
    """Find the places of some cuts in their documents, of which the first has the number `first`."""
    here = cuts.copy()
    here[:, 0] -= first
    facts, texts, spans = placed_cuts(chunk, here, rules)
    numbers = (facts[:, 0], facts[:, 1], cuts[:, WORDS])
    columns = [names.take(to_arrow(cuts[:, 0])), *map(to_arrow, numbers), texts]
    columns += [names.take(to_arrow(cuts[:, FIRST])), to_arrow(cuts[:, DOCUMENTS])]
    batch = pa.RecordBatch.from_arrays(columns, schema=_schema(names.type))
    spans[:, 0] += first
    return _ChunkCuts(batch, cuts[:, 0], cuts[:, WORDS], spans)


def placed_cuts(chunk: TextChunk, cuts: Ints, rules: Any) -> tuple[Ints, Any, Ints]:
    """Return the first and the last character of each cut, its text, and the spans of bytes that go: their document,
    first and last byte. Documents are counted in the chunk."""
    lengths = (cuts[:, 1] & LOW) - (cuts[:, 1] >> 32)
    facts, spans = np.empty((len(cuts), 2), np.int64), np.empty((len(cuts), 3), np.int64)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    text = np.empty(int(offsets[-1]), np.uint8)
    how = Words(1).recipe().units
    count = cut_units(chunk.data, chunk.offsets, how, rules.paragraphs, cuts, facts, spans, text)
    if count < 0:
        raise InputError(CHANGED)
    texts = pa.Array.from_buffers(pa.large_string(), len(cuts), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return facts, texts, spans[:count]
