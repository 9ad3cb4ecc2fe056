"""What a run works on: everything of the input that is compared, named and kept by, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.arrays import Ints, Sets, TextChunk, Texts, to_arrow
from likewise.errors import InputError, ParameterError
from likewise.items import Items, SetItems, TextItems
from likewise.matching import Record
from likewise.read import Aside, ReadOptions, Source, open_source
from likewise.shingle import Shingler, Words, parse_shingler

BYTES_A_WORD = 6


@dataclass
class Collection:
    """What was read: the items, their ids (None: row numbers), the scores a keep policy needs, and the source."""

    items: Items
    ids: Any | None
    scores: Any | None
    source: Source | None
    shingler: Shingler | None

    @property
    def aside(self) -> list[Aside]:
        """The rows that were set aside as broken."""
        return self.source.aside if self.source else []

    def describe(self) -> list[dict[str, Any]]:
        """Say what was read, for run.json."""
        return self.source.describe() if self.source else [{"object": "Sets", "rows": len(self.items)}]

    def name(self, rows: Ints) -> Any:
        """Return the ids of these rows as an Arrow array."""
        numbers = to_arrow(rows)
        return numbers if self.ids is None else self.ids.take(numbers)


def collect(source: Any, options: ReadOptions, shingle: str | Shingler, record: Record, threads: int) -> Collection:
    """Read everything that is compared: the text, the ids, the scores — no other column."""
    if isinstance(source, Sets):
        if options.id is not None or options.score is not None:
            raise ParameterError("Sets have no columns: 'id' and 'keep=max:COLUMN' need a table")
        return Collection(SetItems(source), None, None, None, None)
    opened = open_source(source, options)
    chunks, ids, scores = [], [], []
    with record.stage("read", 0) as tick:
        for batch in opened.batches(threads):
            chunks.append(TextChunk.from_arrow(batch.column("text")))
            if "id" in batch.schema.names:
                ids.append(batch.column("id"))
            if "score" in batch.schema.names:
                scores.append(batch.column("score"))
            tick(batch.num_rows)
    texts = Texts(chunks)
    record.counts["bytes"] = record.counts.get("bytes", 0) + sum(
        int(chunk.offsets[-1] - chunk.offsets[0]) for chunk in texts.chunks
    )
    lengths = np.concatenate([np.diff(chunk.offsets) for chunk in texts.chunks]) if texts.chunks else None
    shingler = parse_shingler(shingle, lengths)
    if isinstance(shingler, Words) and lengths is not None and np.median(lengths) < BYTES_A_WORD * shingler.k:
        record.notes["hint"] = (
            f"half of the documents are shorter than about {shingler.k} words, and then a single shingle; "
            "--shingle chars compares short texts better"
        )
    known = opened.finish_ids(pa.chunked_array(ids)) if ids else None
    if known is not None:
        known = _one_array(known)
        _check_unique(known, options.id)
    elif (positions := opened.positions()) is not None:
        known = to_arrow(positions)
    return Collection(
        TextItems(texts, shingler),
        known,
        _one_array(opened.finish_scores(pa.chunked_array(scores))) if scores else None,
        opened,
        shingler,
    )


def _one_array(chunked: Any) -> Any:
    """Join the chunks of a column; long strings get 64-bit offsets so that any amount fits."""
    if pa.types.is_string(chunked.type) and chunked.nbytes > 1 << 30:
        chunked = chunked.cast(pa.large_string())
    array = chunked.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def _check_unique(ids: Any, column: str | None) -> None:
    """Raise if two rows have the same id: no answer could name them."""
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    where = f"of column '{column or 'path'}'"
    if pa.types.is_floating(ids.type) and pc.any(pc.is_nan(ids)).as_py():
        row = int(np.argmax(np.asarray(pc.is_nan(ids))))
        raise InputError(f"the id {where} in row {row} (counted from 0) is not a number (NaN); choose another column")
    counts = pc.value_counts(ids)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0]
    rows = np.flatnonzero(np.asarray(pc.equal(ids, twice)))
    raise InputError(
        f"id {twice.as_py()!r} {where} stands in rows {rows[0]} and {rows[1]} (counted from 0); "
        "ids must be unique: choose another column, or leave the id out to use row numbers"
    )


def joined(a: Items, b: Items) -> Items:
    """Put two collections end to end."""
    if isinstance(a, TextItems) and isinstance(b, TextItems):
        return TextItems(Texts([*a.texts.chunks, *b.texts.chunks]), a.shingler)
    if isinstance(a, SetItems) and isinstance(b, SetItems):
        offsets = np.concatenate([a.all.offsets, b.all.offsets[1:] + a.all.offsets[-1]])
        return SetItems(Sets(np.concatenate([a.all.values, b.all.values]), offsets))
    raise ParameterError("pairs cannot compare documents with Sets: give two of the same kind")
