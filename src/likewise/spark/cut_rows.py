"""Rows that are left of a corpus on a cluster, some of them without passages: where cuts meet documents, and kept/.

Cuts that the cluster has found go to the tasks that have the documents, a block of rows that follow each other each. If
tasks read the files, only the cuts travel; otherwise the documents travel too, once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints, to_arrow
from likewise.io.read.columns import choose
from likewise.io.read.cuts import TextCuts
from likewise.spark.corpus import Corpus, numbered
from likewise.spark.direct import PART, PLACE, PREFIX, DirectFiles, FileSplit, on_splits, read
from likewise.spark.exchange import (
    ROWS,
    SCHEMA,
    TARGET,
    WORDS,
    Outbox,
    addresses,
    nothing,
    opened,
    parcel,
    parcel_frame,
    shuffled,
)
from likewise.spark.folder import RunFolder
from likewise.spark.output import Sheet, file_name, finish, write_frame
from likewise.spark.rowset import RowSet
from likewise.spark.source import quoted
from likewise.spark.travel import PER_TASK

NO_SPANS = np.zeros((0, 3), np.int64)
SPLIT = 40
"""The kind of a parcel that names the split of a task."""
TO, NUMBER, HERE, THERE = (f"{PREFIX}{name}" for name in ("target", "row", "rows", "words"))
"""Columns of documents and parcels that travel together, beside those of the user."""

RowBatch = tuple[Ints, pa.Table, Ints]
"""The numbers of rows, their columns, and all entries of the block, in any order: the number of a row, some words."""
OnBlock = Callable[[int, Iterator[RowBatch]], Iterator[Any]]
"""What a task does with the batches of its block, which has a number."""


def meet_entries(
    corpus: Corpus, entries: Any, width: int, columns: list[str], function: OnBlock, schema: Any, direct: bool = True
) -> Any:
    """Return the frame of what a function yields for blocks of documents, in their order, that meet their entries.

    entries: parcels of rows, each with so many words. direct: tasks may read the files.
    """
    files = corpus.parts[0].direct if direct else None
    begins = block_begins(corpus, files)
    sending = partial(_sent_entries, begins=begins, targets=addresses(len(begins)), width=width)
    sent = entries.mapInArrow(sending, SCHEMA)
    if files is not None:
        targets = addresses(len(begins)).tolist()
        marks = [mark for number, target in enumerate(targets) for mark in _mark(target, number)]
        whole = shuffled(sent.unionAll(parcel_frame(corpus.session, marks)), len(begins))
        known = corpus.broadcast((files.splits, begins))
        return whole.mapInArrow(
            partial(_read_block, known=known, columns=columns, width=width, function=function), schema
        )
    return _travelling(
        corpus, sent, begins, columns, partial(_arrived, begins=begins, width=width, function=function), schema
    )


def block_begins(corpus: Corpus, files: DirectFiles | None) -> Ints:
    """Return the first row of each block: of a split, or of as many documents as one task should have."""
    if files is None:
        return np.arange(0, max(1, len(corpus)), max(1, PER_TASK * len(corpus) // max(1, corpus.numbering.bytes)))
    places = np.array([(split.part, split.first) for split in files.splits], np.int64)
    begins: Ints = corpus.numbering.number(places[:, 0], places[:, 1])
    return begins


def _mark(target: int, number: int) -> Iterator[Any]:
    return parcel(target, SPLIT, np.array([number]), np.zeros(1, np.uint64))


def _sent_entries(batches: Iterator[Any], begins: Ints, targets: Any, width: int) -> Iterator[Any]:
    """Send entries to the blocks of their rows."""
    outbox = Outbox(targets, 0, width)
    for batch in batches:
        for rows, words in opened([batch]).values():
            yield from outbox.add(np.searchsorted(begins, rows, side="right") - 1, rows, words)
    yield from outbox.sent()


def _entries(rows: Ints, words: Any, width: int) -> Ints:
    """Return entries as a table of numbers: of the row, and its words."""
    return np.column_stack([rows, words.view(np.int64).reshape(-1, width)])


def _read_block(batches: Iterator[Any], known: Any, columns: list[str], width: int, function: OnBlock) -> Iterator[Any]:
    """Read the split that a task is told of."""
    came = opened(batches)
    splits, begins = known.value
    number = int(came[SPLIT][0][0])
    entries = _entries(*came.get(0, nothing()), width)
    shift = int(begins[number]) - splits[number].first
    yield from function(number, _split_rows(splits[number], columns, entries, shift))


def _split_rows(split: FileSplit, columns: list[str], entries: Ints, shift: int) -> Iterator[RowBatch]:
    for places, batch in read(split, columns):
        yield places + shift, pa.Table.from_batches([batch]), entries


def _travelling(corpus: Corpus, sent: Any, begins: Ints, columns: list[str], arrived: Any, schema: Any) -> Any:
    """Send documents and entries to the tasks of their blocks."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

    frame = corpus.parts[0].frame.select(PART, PLACE, *map(quoted, columns))
    own = [StructField(one.name, one.dataType) for one in frame.schema.fields[2:]]
    wide = StructType(
        [StructField(TO, IntegerType()), StructField(NUMBER, LongType()), *own]
        + [StructField(name, BinaryType()) for name in (HERE, THERE)]
    )
    sending = partial(_sent_rows, numbering=corpus.shared_numbering, begins=begins, targets=addresses(len(begins)))
    empty = [F.lit(None).cast(one.dataType).alias(one.name) for one in wide.fields[1:-2]]
    parcels = sent.select(F.col(TARGET).alias(TO), *empty, F.col(ROWS).alias(HERE), F.col(WORDS).alias(THERE))
    whole = frame.mapInArrow(sending, wide).unionAll(parcels)
    return whole.repartition(len(begins), TO).mapInArrow(arrived, schema)


def _sent_rows(batches: Iterator[Any], numbering: Any, begins: Ints, targets: Any) -> Iterator[Any]:
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        target = pa.array(targets[np.searchsorted(begins, rows, side="right") - 1])
        none = pa.nulls(len(rows), pa.binary())
        names = [TO, NUMBER, *rest.schema.names, HERE, THERE]
        yield pa.RecordBatch.from_arrays([target, to_arrow(rows), *rest.columns, none, none], names)


def _arrived(batches: Iterator[Any], begins: Ints, width: int, function: OnBlock) -> Iterator[Any]:
    """Put the documents that came to a task in order."""
    table = pa.Table.from_batches(held) if (held := list(batches)) else None
    if table is None:
        return
    came = [np.zeros((0, 1 + width), np.int64)]
    for here, there in zip(table.column(HERE).drop_null(), table.column(THERE).drop_null(), strict=True):
        rows, words = np.frombuffer(here.as_buffer(), np.int64), np.frombuffer(there.as_buffer(), np.uint64)
        came.append(_entries(rows, words, width))
    entries = np.concatenate(came)
    documents = table.drop_columns([TO, HERE, THERE]).filter(table.column(NUMBER).is_valid())
    if len(documents):
        rows = np.asarray(documents.column(NUMBER), np.int64)
        order = np.argsort(rows)
        number = int(np.searchsorted(begins, rows[0], side="right")) - 1
        yield from function(
            number, iter([(rows[order], documents.drop_columns([NUMBER]).take(to_arrow(order)), entries)])
        )


@dataclass(frozen=True)
class KeptRows:
    """What becomes of rows: those that go; the column that texts are cut in, and what is done with invalid UTF-8.

    columns: those of the user. cuts: those of all rows, where the driver knows them.
    """

    gone: RowSet
    column: str
    errors: str
    columns: tuple[str, ...]
    cuts: TextCuts | None = None

    def spans(self, rows: Ints) -> Ints:
        """Return the spans that the driver knows of these rows: the place of each among them, and its bytes."""
        if self.cuts is None or not len(self.cuts):
            return NO_SPANS
        at = np.minimum(np.searchsorted(self.cuts.rows, rows), len(self.cuts) - 1)
        places = np.flatnonzero(self.cuts.rows[at] == rows)
        low, high = self.cuts.offsets[at[places]], self.cuts.offsets[at[places] + 1]
        return np.concatenate(
            [NO_SPANS]
            + [
                np.column_stack([np.full(stop - start, place), self.cuts.spans[start:stop]])
                for place, start, stop in zip(places.tolist(), low.tolist(), high.tolist(), strict=True)
            ]
        )

    def left(self, rows: Ints, table: pa.Table, spans: Ints) -> pa.Table:
        """Return what is left of rows; spans: the place of a row in the table, and its bytes that go, in order."""
        cut = TextCuts.in_order(spans).cut_table(table, self.column, self.errors) if len(spans) else table
        return choose(cut.select(list(self.columns)), ~self.gone.has(rows))


Leftover = Iterator[tuple[Ints, pa.Table, Ints]]
"""Rows with the spans that are cut out of their texts."""


def as_batches(parts: Leftover, kept: Any) -> Iterator[Any]:
    """Yield the rows that are left."""
    for rows, table, spans in parts:
        yield from kept.value.left(rows, table, spans).to_batches()


def as_file(number: int, parts: Leftover, kept: Any, folder: str, schema: pa.Schema) -> Iterator[Any]:
    """Write the rows that are left of a split to a file; yield nothing."""
    from pyspark import TaskContext

    how: KeptRows = kept.value
    with Sheet(folder, file_name(f"{number:06d}"), schema, [how.column], TaskContext.get().taskAttemptId()) as sheet:
        for rows, table, spans in parts:
            sheet.add(how.left(rows, table, spans).cast(schema))
    yield from ()


def write_left(corpus: Corpus, kept: KeptRows, place: RunFolder) -> None:
    """Write the rows that are left, where they are: tasks that read files write files, too, where they can."""
    part, shared = corpus.parts[0], corpus.broadcast(kept)
    if part.direct is not None and place.local is not None:
        writing = partial(
            _write_split, kept=shared, numbering=corpus.shared_numbering, folder=place.local, schema=part.direct.schema
        )
        write_files(on_splits(corpus.session, part.direct.splits, writing, SCHEMA), place)
        return
    frame = part.frame.select(PART, PLACE, *map(quoted, part.columns))
    schema = part.frame.select(*map(quoted, part.columns)).schema
    left = frame.mapInArrow(partial(_left_of_batches, kept=shared, numbering=corpus.shared_numbering), schema)
    write_frame(left, place)


def write_files(frame: Any, place: RunFolder) -> None:
    """Let the tasks of a frame write the files of a dataset."""
    assert place.local is not None
    os.makedirs(place.local)
    frame.toArrow()
    finish(place)


def _write_split(
    number: int, split: FileSplit, kept: Any, numbering: Any, folder: str, schema: pa.Schema
) -> Iterator[Any]:
    shift = int(numbering.value.number(np.array([split.part]), np.array([split.first]))[0]) - split.first
    entries = np.zeros((0, 1), np.int64)
    parts = (
        (rows, table, kept.value.spans(rows)) for rows, table, _ in _split_rows(split, schema.names, entries, shift)
    )
    return as_file(number, parts, kept, folder, schema)


def _left_of_batches(batches: Iterator[Any], kept: Any, numbering: Any) -> Iterator[Any]:
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield from as_batches(iter([(rows, pa.Table.from_batches([rest]), kept.value.spans(rows))]), kept)
