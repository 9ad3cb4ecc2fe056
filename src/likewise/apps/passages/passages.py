"""`passages`: the passages that many suspects share with many sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.passages.index import OWNER, Floats, PassageSettings, SourceBlock, SuspectShingles, make_blocks
from likewise.apps.passages.search import SharedPassages, SuspectBatch, listed_spans, place_sources, search_block
from likewise.base import checks
from likewise.base.arrays import Ints, TextChunk, Texts, to_arrow
from likewise.base.memory import MIB
from likewise.base.parallel import in_order
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.base.words import counted
from likewise.errors import ColumnError
from likewise.io.ids import unique_ids
from likewise.io.read import ReadOptions, Source, open_source
from likewise.io.read.find import files_of
from likewise.io.streams import spooled
from likewise.jobs.result import Result
from likewise.jobs.settings import Resources
from likewise.shingle import Shingler

SUSPECTS, SUSPECT_BYTES = 64, 64 << 10
"""Suspects per task, and about how much text: enough to amortize the overhead of a task, few enough to keep all threads
busy and to show how far the search is."""
BATCH = 4 * MIB
"""Bytes of text read at a time: splitting a batch into words briefly takes up to twelve times as much memory."""
PLACES = ("suspect_start", "suspect_end", "source_start", "source_end")
MEASURES = ("containment", "source_containment", "jaccard")


@dataclass(repr=False, eq=False)
class Passages(Result):
    """The result of `passages`: tables `.passages` and `.documents`, `.stats`, and `.save(dir)`.

    passages: suspect, source; suspect_start, suspect_end, source_start, source_end, in characters (code points) of the
    original text, the end exclusive; length, the number of words in the suspect; equal, the number of these words that
    also occur in the source; sources, the number of sources that have this passage of the suspect, of which all are
    listed, or if they are many the best; suspect_text, source_text.
    documents: suspect, source; containment, the fraction of the suspect contained in the source; source_containment,
    the fraction of the source contained in the suspect; jaccard; passages, their number; copied, the number of
    characters of the suspect they cover.
    """

    files: ClassVar[dict[str, str]] = {"passages.parquet": "passages", "documents.parquet": "documents"}

    passages: pa.Table
    documents: pa.Table
    stats: dict[str, Any]

    def _summary(self) -> str:
        counts = self.stats["counts"]
        suspects, sources = counted(counts["suspects"], "suspect"), counted(counts["sources"], "source")
        having = f"{counts['suspects_with_passages']:,} of {suspects}"
        return f"{counted(len(self.passages), 'passage')} in {having}, from {sources}"


def passages(
    suspects: Any,
    sources: Any,
    *,
    text: str = "text",
    id: str | None = None,
    source_text: str | None = None,
    source_id: str | None = None,
    length: int = PassageSettings.length,
    gap: int = PassageSettings.gap,
    shingle: str | Shingler = PassageSettings.shingle,
    every: bool = False,
    itself: bool = True,
    common: int = PassageSettings.common,
    many: int = PassageSettings.many,
    lines: bool = False,
    plain: bool = False,
    hidden: bool = False,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    batch_rows: int = 10_000,
    progress: Progress | None = None,
) -> Passages:
    """Find text that suspects have copied from sources, wherever it occurs and in whatever order.

    suspects, sources: files, folders, globs, lists of strings, tables; see `likewise.pairs`. Every run of at least
    `length` words that a suspect shares with a source is found (winnowing; Schleimer, Wilkerson and Aiken, 2003).
    Runs at most `gap` words apart in both documents form one passage, so a changed word does not split it. Passages
    copied in a different order are reported separately.

    text, id: columns of both collections, unless source_text and source_id name those of the sources. Text files and
    lists of strings have no columns; used together with a table, their ids are paths and row numbers.

    every: measure all pairs of a suspect and a source, not only those that share a passage. itself: False excludes the
    source with the same id as the suspect. common: of the sources that share a fingerprint, such as that of a licence,
    examine only the first `common`; the result says when this limit was reached. many: text in more sources than this
    is listed once, with its best source and their number (`sources`), not once for each source. shingle: the shingles
    from which containment and Jaccard similarity are computed. Sources are processed in blocks that fit in `memory`,
    which does not change the result.

    >>> source = "The cat that the dog had chased up the old oak tree would not come down again."
    >>> suspect = "They say: the cat that the dog had chased up an old oak tree would not come down."
    >>> found = passages([suspect], [source])
    >>> found.passages.select(["suspect_start", "suspect_end", "source_start", "source_end", "equal"]).to_pylist()
    [{'suspect_start': 10, 'suspect_end': 80, 'source_start': 0, 'source_end': 71, 'equal': 15}]
    """
    settings = PassageSettings(length, gap, shingle, common, every, many)
    checks.flag(OWNER, "itself", itself)
    if every:
        checks.unused(OWNER, {"common": (common, PassageSettings.common)}, "when every pair is compared")
    resources = Resources.of(OWNER, threads, memory)
    budget = resources.budget
    reading: dict[str, Any] = {"on_error": on_error, "encoding_errors": encoding_errors}
    reading |= {"lines": lines, "plain": plain, "hidden": hidden}
    sizes: dict[str, Any] = {"batch_bytes": min(BATCH, budget.batch), "row_bytes": budget.row}
    options = ReadOptions(text, id, batch_rows=batch_rows, owner=OWNER, **reading, **sizes)
    log = RunLog.of(progress)
    there: dict[str, Any] = {"text": text if source_text is None else source_text}
    there["id"] = id if source_id is None else source_id
    ours = (source_text is not None and text != "text") or (source_id is not None and id is not None)
    theirs = source_text is not None or source_id is not None
    readers = _open_both((suspects, options, ours), (sources, replace(options, **there), theirs))
    parts, pairs, measured = _search(readers[0], readers[1], settings, resources, log)
    names, other_names = (reader.names() for reader in readers)
    if not itself:
        parts = [_without_itself(part, names, other_names) for part in parts]
        differ = _differ(names, other_names, pairs)
        pairs, measured = pairs[differ], measured[differ]
    if not readers[1].rows:
        log.notes.append("There are no sources, so no text can have been copied from them.")
    with log.stage("tables"):
        listed = _passage_table(parts, names, other_names, settings.many)
        documents = _document_table(parts, pairs, measured, names, other_names)
    log.counts |= {"passages": len(listed), "documents": len(documents)}
    log.counts["unlisted"] = sum(len(part.spans) for part in parts) - len(listed)
    log.counts["suspects_with_passages"] = len(pc.unique(listed["suspect"]))
    columns = {"text": text, "id": id, "source_text": there["text"], "source_id": there["id"]}
    parameters = {**settings.to_dict(), "itself": itself, **columns, **reading, **resources.used}
    return Passages(listed, documents, run_json(OWNER, parameters, [reader.source for reader in readers], log))


def _search(
    suspects: DocumentReader, sources: DocumentReader, settings: PassageSettings, resources: Resources, log: RunLog
) -> tuple[list[SharedPassages], Ints, Floats]:
    """Search each block of sources; return the passages, and the pairs of documents with what was measured.

    For every block the suspects are read twice: to find passages, and to measure the pairs that have any.
    """
    parts: list[SharedPassages] = []
    used: list[NDArray[np.int32]] = []
    pairs, measured = [np.empty((0, 2), np.int64)], [np.empty((0, 3))]
    count, threads = 0, resources.threads
    with log.stage("index", sources.source.total_rows or 0) as tick:
        blocks = make_blocks(sources.chunks(threads), settings, resources.budget.total // 2, threads, tick)
        block = next(blocks, None)
    if block is None:
        for _ in suspects.chunks(threads):
            pass
    while block is not None:
        count += 1
        with log.stage("passages", suspects.rows or suspects.source.total_rows or 0) as tick:
            shared = []
            batches = _batches(suspects, threads, used)
            for part in in_order(partial(search_block, block=block, settings=settings), batches, threads):
                shared.append(part)
                tick(part.rows)
        if shared:
            shared = place_sources(shared, block, threads)
        parts += shared
        used = [part.used for part in shared]
        some = np.concatenate([pairs[0], *(part.pairs for part in shared)]) - np.array([0, block.first])
        total = suspects.rows * len(block) if settings.every else len(some)
        with log.stage("measure", total) as tick:
            for both, numbers in _measured(suspects, block, some, settings, threads):
                pairs.append(both + np.array([0, block.first]))
                measured.append(numbers)
                tick(len(both))
        with log.stage("index", sources.source.total_rows or 0):
            del block
            block = next(blocks, None)
    log.counts |= {"suspects": suspects.rows, "sources": sources.rows, "bytes": suspects.bytes + sources.bytes}
    compared, common, repetitive = sum((part.counts for part in parts), np.zeros(3, np.int64)).tolist()
    log.counts |= {"compared": compared, "blocks": count}
    if common:
        log.details["common"] = {"fingerprints": common, "sources": settings.common}
        log.notes.append(
            f"{common:,} fingerprint{'s' * (common > 1)} occur{'s' * (common == 1)} in more than {settings.common:,} "
            "sources: text without any other fingerprint is reported for the first of these sources only. "
            "A larger 'common' examines more."
        )
    if repetitive:
        log.details["repetitive"] = {"pairs": repetitive}
        log.notes.append(
            f"{repetitive:,} pair{'s' * (repetitive > 1)} of documents repeat{'s' * (repetitive == 1)} the same words "
            "very often: each part of the suspect is reported with one place in the source, not with all of them."
        )
    return parts, np.concatenate(pairs), np.concatenate(measured)


def _measured(
    suspects: DocumentReader, block: SourceBlock, pairs: Ints, settings: PassageSettings, threads: int
) -> Iterator[tuple[Ints, Floats]]:
    """Yield the pairs of suspects and sources of this block, and their measures, a portion at a time."""
    if not len(pairs) and not settings.every:
        return
    order = np.argsort(pairs[:, 0], kind="stable")
    pairs = pairs[order]
    first = 0
    for chunk in suspects.chunks(threads):
        last = first + len(chunk)
        if settings.every:
            sources = np.repeat(np.arange(len(block)), len(chunk))
            here = np.column_stack([np.tile(np.arange(first, last), len(block)), sources])
        else:
            here = pairs[np.searchsorted(pairs[:, 0], first) : np.searchsorted(pairs[:, 0], last)]
            here = here[np.argsort(here[:, 1], kind="stable")]
        if len(here):
            rows, left = np.unique(here[:, 0], return_inverse=True)
            shingles = SuspectShingles.of(chunk, rows - first, settings)
            right = np.ascontiguousarray(here[:, 1])
            parts = list(block.portions(right))

            def measure(some: slice, of: SuspectShingles = shingles, left: Ints = left, right: Ints = right) -> Floats:
                return of.measure(block, left[some], right[some])

            for some, numbers in zip(parts, in_order(measure, parts, threads), strict=True):
                yield here[some], numbers
        first = last


def _batches(suspects: DocumentReader, threads: int, used: list[NDArray[np.int32]]) -> Iterator[SuspectBatch]:
    """Yield the suspects in small batches, the same ones on every pass."""
    first = number = 0
    for chunk in suspects.chunks(threads):
        start = 0
        while start < len(chunk):
            enough = np.searchsorted(chunk.offsets, chunk.offsets[start] + SUSPECT_BYTES, side="right") - 1
            stop = min(max(start + 1, int(enough)), start + SUSPECTS, len(chunk))
            some = TextChunk(chunk.data, chunk.offsets[start : stop + 1])
            yield SuspectBatch(first, some, used[number] if used else None)
            first += stop - start
            start = stop
            number += 1


def _without_itself(part: SharedPassages, names: Any, other_names: Any) -> SharedPassages:
    """Drop the pairs of a suspect and a source with the same id."""
    keep, keep_pairs = (_differ(names, other_names, rows) for rows in (part.spans, part.pairs))
    shown = keep[part.kept]
    texts, other_texts = (column.filter(pa.array(shown)) for column in (part.texts, part.other_texts))
    return replace(
        part, spans=part.spans[keep], kept=part.kept[keep], places=part.places[shown], texts=texts,
        other_places=part.other_places[shown], other_texts=other_texts, pairs=part.pairs[keep_pairs],
        totals=part.totals[keep_pairs],
    )  # fmt: skip


def _differ(names: Any, other_names: Any, rows: Any) -> Any:
    left, right = (ids.take(to_arrow(rows[:, i].astype(np.int64))) for i, ids in enumerate((names, other_names)))
    if left.type != right.type:
        left, right = left.cast(pa.large_string()), right.cast(pa.large_string())
    return np.asarray(pc.not_equal(left, right))


@dataclass
class DocumentReader:
    """A collection of documents that is read once or several times; its ids are kept, its text up to `limit` bytes.

    texts: the documents, if all of them are kept.
    """

    source: Source
    options: ReadOptions
    limit: int = 0
    rows: int = 0
    bytes: int = 0
    ids: list[Any] = field(default_factory=list)
    texts: Texts | None = None

    def chunks(self, threads: int) -> Iterator[TextChunk]:
        """Yield the documents and record their ids."""
        if self.texts is not None:
            yield from (chunk.load() for chunk in self.texts.chunks)
            return
        held: list[TextChunk] = []
        self.rows = self.bytes = 0
        self.ids.clear()
        for batch in self.source.batches(threads):
            if "id" in batch.schema.names:
                self.ids.append(batch.column("id"))
            self.rows += batch.num_rows
            chunk = TextChunk.from_arrow(batch.column("text"))
            self.bytes += int(chunk.offsets[-1] - chunk.offsets[0])
            if self.bytes <= self.limit:
                held.append(chunk)
            else:
                held.clear()
            yield chunk
        if held:
            self.texts = Texts(held)

    def numbered(self, threads: int) -> Iterator[tuple[int, TextChunk]]:
        """Yield the documents, each chunk with the number of its first."""
        first = 0
        for chunk in self.chunks(threads):
            yield first, chunk
            first += len(chunk)

    def names(self) -> Any:
        """Return the ids of all rows as an Arrow array."""
        if self.ids:
            ids = self.source.finish_ids(pa.chunked_array(self.ids))
            if pa.types.is_string(ids.type):
                ids = ids.cast(pa.large_string())
            whole = ids.combine_chunks()
            whole = whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
            return unique_ids(whole, self.options.id, self.source.locate)
        positions = self.source.positions()
        return to_arrow(np.arange(self.rows) if positions is None else positions)


def _open_both(*collections: tuple[Any, ReadOptions, bool]) -> list[DocumentReader]:
    """Open both collections, each with its options and whether it must have the requested columns.

    That is so for the one to which the names of columns are given alone. Otherwise one of the two may be text without
    columns if the other has them.
    """
    first_error: ColumnError | None = None
    readers = []
    for given, options, needed in collections:
        source = spooled(given, options.text, options.spool) or files_of(given) or given
        try:
            readers.append(DocumentReader(open_source(source, options), options))
        except ColumnError as error:
            bare = None if needed else _without_columns(source, replace(options, text="text", id=None))
            if bare is None:
                raise
            if first_error is not None:
                raise first_error from None
            first_error = error
            readers.append(bare)
    return readers


def _without_columns(source: Any, options: ReadOptions) -> DocumentReader | None:
    """Open text files or a list of strings; return None for anything else."""
    files = files_of(source)
    if files is not None and not any(file.is_table for file in files.find(options.plain, options.hidden).files):
        return DocumentReader(open_source(files, options), options)
    if isinstance(source, list | tuple) and all(isinstance(entry, str) for entry in source):
        return DocumentReader(open_source(source, options), options)
    return None


def _passage_table(parts: list[SharedPassages], names: Any, other_names: Any, many: int) -> pa.Table:
    """Merge the partial results, ordered by suspect, source and position; leave out what many sources have."""
    spans = np.concatenate([np.empty((0, 5), np.int32), *(part.spans for part in parts)])
    kept = np.concatenate([np.empty(0, bool), *(part.kept for part in parts)])
    order = np.lexsort((-spans[:, 3], spans[:, 2], spans[:, 1], spans[:, 0]))
    holders, chosen = listed_spans(spans[order], many)
    rows = order[chosen]
    at = (np.cumsum(kept) - 1)[rows]
    here, there = (np.concatenate([np.empty((0, 2), np.int64), *several]) for several in (
        (part.places for part in parts), (part.other_places for part in parts)
    ))  # fmt: skip
    places = np.column_stack([here[at], there[at]])
    again = np.lexsort((places[:, 2], places[:, 0], spans[rows, 1], spans[rows, 0]))
    found, places, at, sources = spans[rows[again]].astype(np.int64), places[again], at[again], holders[chosen][again]
    named = {"suspect": names.take(to_arrow(found[:, 0])), "source": other_names.take(to_arrow(found[:, 1]))}
    numbers = {name: to_arrow(places[:, i]) for i, name in enumerate(PLACES)}
    numbers |= {"length": to_arrow(found[:, 3] - found[:, 2]), "equal": to_arrow(found[:, 4])}
    numbers["sources"] = to_arrow(sources)
    nothing, order = pa.array([], pa.large_string()), to_arrow(at)
    texts = {"suspect_text": pa.concat_arrays([nothing, *(part.texts for part in parts)]).take(order)}
    texts["source_text"] = pa.concat_arrays([nothing, *(part.other_texts for part in parts)]).take(order)
    return pa.table({**named, **numbers, **texts})


def _document_table(
    parts: list[SharedPassages], pairs: Ints, measured: Floats, names: Any, other_names: Any
) -> pa.Table:
    """Return the table of pairs: what was measured, and how much they share."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, measured = pairs[order], measured[order]
    named = {"suspect": names.take(to_arrow(pairs[:, 0])), "source": other_names.take(to_arrow(pairs[:, 1]))}
    columns = {name: to_arrow(measured[:, i]) for i, name in enumerate(MEASURES)}
    width = len(other_names) + 1
    sharing = np.concatenate([np.empty((0, 2), np.int64), *(part.pairs for part in parts)])
    at = np.searchsorted(pairs[:, 0] * width + pairs[:, 1], sharing[:, 0] * width + sharing[:, 1])
    totals = np.zeros((len(pairs), 2), np.int64)
    totals[at] = np.concatenate([np.empty((0, 2), np.int64), *(part.totals for part in parts)])
    return pa.table({**named, **columns, "passages": to_arrow(totals[:, 0]), "copied": to_arrow(totals[:, 1])})
