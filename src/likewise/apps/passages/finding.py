"""`find`: the passages that many suspects share with many sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.passages.answer import Passages, make_tables
from likewise.apps.passages.indexing import Block, blocks
from likewise.apps.passages.searching import Batch, Counts, Part, search
from likewise.apps.passages.settings import COMMON, GAP, LENGTH, OWNER, SHINGLE, Settings
from likewise.base import checks
from likewise.base.arrays import TextChunk, to_arrow
from likewise.base.memory import MIB, Budget
from likewise.base.parallel import in_order
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import ColumnError
from likewise.io.ids import unique_ids
from likewise.io.read import ReadOptions, Source, open_source
from likewise.io.read.find import files_of
from likewise.io.read.find import find as find_files
from likewise.shingle import Shingler

SUSPECTS = 64
"""Suspects that one thread takes at a time."""
BATCH = 4 * MIB
"""Bytes of text read at a time: the words of a batch need up to twelve times as much for a moment."""


def find(
    suspects: Any,
    sources: Any,
    *,
    text: str = "text",
    id: str | None = None,
    source_text: str | None = None,
    source_id: str | None = None,
    length: int = LENGTH,
    gap: int = GAP,
    shingle: str | Shingler = SHINGLE,
    every: bool = False,
    itself: bool = True,
    common: int = COMMON,
    lines: bool = False,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    batch_rows: int = 10_000,
    progress: Progress | None = None,
) -> Passages:
    """Find the text that suspects have copied from sources, wherever it stands and in whatever order (A2).

    suspects, sources: files, folders, globs, lists of strings, tables; see `likewise.pairs`. Every run of at least
    `length` words that a suspect shares with a source is found (winnowing; Schleimer, Wilkerson and Aiken, 2003).
    Runs at most `gap` words apart in both documents are one passage: a word changed here and there does not break it.
    Passages put in another order are passages of their own.

    text, id: the columns of both, unless source_text and source_id name those of the sources. Text files and lists of
    strings have no columns; next to a table they are named by path and by number.

    every: measure all pairs of a suspect and a source, not only those with a passage. itself=False: a suspect is not
    compared with the source that has its id. common: of the sources that carry one and the same fingerprint, such as
    a licence, look at the first 1000 only; the answer says when that happened. shingle: what the containment of the
    documents is computed of. The sources are taken in blocks that fit in `memory`; the answer is the same.

    >>> source = "The cat that the dog had chased up the old oak tree would not come down again."
    >>> suspect = "They say: the cat that the dog had chased up an old oak tree would not come down."
    >>> found = find([suspect], [source])
    >>> found.passages.select(["suspect_start", "suspect_end", "source_start", "source_end", "equal"]).to_pylist()
    [{'suspect_start': 10, 'suspect_end': 80, 'source_start': 0, 'source_end': 71, 'equal': 15}]
    """
    settings = Settings(length, gap, shingle, common, every)
    count = checks.threads(OWNER, threads)
    budget = Budget.of(OWNER, memory)
    options = ReadOptions(
        text=text, id=id, on_error=on_error, encoding_errors=encoding_errors, lines=lines,
        batch_rows=batch_rows, batch_bytes=min(BATCH, budget.batch), owner=OWNER,
    )  # fmt: skip
    log = RunLog.of(progress)
    theirs = replace(
        options, text=text if source_text is None else source_text, id=id if source_id is None else source_id
    )
    readers = _readers(suspects, sources, options, theirs)
    parts = _parts(*readers, settings, budget.total // 2, count, log)
    names, other_names = (reader.names() for reader in readers)
    if not itself:
        parts = [_without_itself(part, names, other_names) for part in parts]
    if not readers[1].rows:
        log.notes.append("there are no sources, so nothing can have been copied from them")
    passages, documents = make_tables(parts, names, other_names)
    log.counts |= {"passages": len(passages), "documents": len(documents)}
    log.counts["suspects_with_passages"] = len(pc.unique(passages["suspect"]))
    columns = {"text": text, "id": id, "source_text": theirs.text, "source_id": theirs.id}
    parameters = {**settings.to_dict(), "itself": itself, **columns, "threads": count}
    stats = run_json(OWNER, parameters, [reader.source for reader in readers], log)
    return Passages(passages, documents, stats)


@dataclass
class Reader:
    """A source of documents that is read once or several times; its ids are kept, its text is not."""

    source: Source
    options: ReadOptions
    rows: int = 0
    bytes: int = 0
    ids: list[Any] = field(default_factory=list)

    def chunks(self, threads: int) -> Iterator[TextChunk]:
        """Yield the documents, and take note of their ids."""
        self.rows = self.bytes = 0
        self.ids.clear()
        for batch in self.source.batches(threads):
            if "id" in batch.schema.names:
                self.ids.append(batch.column("id"))
            self.rows += batch.num_rows
            chunk = TextChunk.from_arrow(batch.column("text"))
            self.bytes += int(chunk.offsets[-1] - chunk.offsets[0])
            yield chunk

    def names(self) -> Any:
        """Return the ids of all rows as an Arrow array."""
        if self.ids:
            ids = self.source.finish_ids(pa.chunked_array(self.ids))
            if pa.types.is_string(ids.type):
                ids = ids.cast(pa.large_string())
            if pa.types.is_dictionary(ids.type):
                ids = ids.cast(ids.type.value_type)
            whole = ids.combine_chunks()
            whole = whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
            return unique_ids(whole, self.options.id, self.source.locate)
        positions = self.source.positions()
        return to_arrow(np.arange(self.rows) if positions is None else positions)


def _readers(suspects: Any, sources: Any, options: ReadOptions, theirs: ReadOptions) -> tuple[Reader, Reader]:
    """Open both sides; one of them may be text without columns, the other has those that were asked for."""
    trouble: list[ColumnError] = []
    readers = []
    for source, asked in ((suspects, options), (sources, theirs)):
        try:
            readers.append(Reader(open_source(source, asked), asked))
        except ColumnError as error:
            bare = _without_columns(source, replace(asked, text="text", id=None))
            trouble.append(error)
            if bare is None or len(trouble) > 1:
                raise trouble[0] if bare is not None else error from None
            readers.append(bare)
    return readers[0], readers[1]


def _without_columns(source: Any, options: ReadOptions) -> Reader | None:
    """Open text files, or a list of strings; None: it is something else."""
    files = files_of(source)
    if files is not None and not any(file.is_table for file in find_files(files)):
        return Reader(open_source(files, options), options)
    if isinstance(source, list | tuple) and all(isinstance(entry, str) for entry in source):
        return Reader(open_source(source, options), options)
    return None


def _parts(suspects: Reader, sources: Reader, settings: Settings, limit: int, threads: int, log: RunLog) -> list[Part]:
    """Search each block of the sources; the suspects are read again for each."""
    parts: list[Part] = []
    used: list[Counts] = []
    count = 0
    with log.stage("index", sources.source.total_rows or 0) as tick:
        made = blocks(sources.chunks(threads), settings, limit, threads, tick)
        block = next(made, None)
    if block is None:
        for _ in suspects.chunks(threads):
            pass
    while block is not None:
        count += 1
        with log.stage("passages", suspects.source.total_rows or 0) as tick:
            found = _search(suspects, block, settings, threads, used, tick)
        parts += found
        used = [part.used for part in found]
        with log.stage("index", sources.source.total_rows or 0):
            del block
            block = next(made, None)
    log.counts |= {"suspects": suspects.rows, "sources": sources.rows, "bytes": suspects.bytes + sources.bytes}
    totals = sum((part.counts for part in parts), np.zeros(3, np.int64)).tolist()
    log.counts |= {"compared": totals[0], "blocks": count}
    if totals[1]:
        log.details["common"] = {"fingerprints": totals[1], "sources": settings.common}
    if totals[2]:
        log.details["repetitive"] = {"pairs": totals[2]}
    return parts


def _search(
    suspects: Reader, block: Block, settings: Settings, threads: int, used: list[Counts], tick: Any
) -> list[Part]:
    """Search one block for all suspects."""
    found = []
    for part in in_order(lambda task: search(task, block, settings), _tasks(suspects, threads, used), threads):
        found.append(part)
        tick(part.rows)
    return found


def _tasks(suspects: Reader, threads: int, used: list[Counts]) -> Iterator[Batch]:
    """Yield the suspects a few at a time, each time the same ones together."""
    first = number = 0
    for chunk in suspects.chunks(threads):
        for start in range(0, len(chunk), SUSPECTS):
            some = TextChunk(chunk.data, chunk.offsets[start : start + SUSPECTS + 1])
            yield Batch(first, some, used[number] if used else None)
            first += len(some)
            number += 1


def _without_itself(part: Part, names: Any, other_names: Any) -> Part:
    """Leave out the pairs of a suspect and a source with the same id."""
    keep, keep_pairs = (_differ(names, other_names, rows) for rows in (part.passages, part.pairs))
    texts, other_texts = (column.filter(pa.array(keep)) for column in (part.texts, part.other_texts))
    return Part(
        part.rows, part.passages[keep], texts, other_texts, part.pairs[keep_pairs], part.measured[keep_pairs],
        part.counts, part.used,
    )  # fmt: skip


def _differ(names: Any, other_names: Any, rows: Any) -> Any:
    left, right = (ids.take(to_arrow(rows[:, i])) for i, ids in enumerate((names, other_names)))
    if left.type != right.type:
        left, right = left.cast(pa.large_string()), right.cast(pa.large_string())
    return np.asarray(pc.not_equal(left, right))
