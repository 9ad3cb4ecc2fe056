"""`passages`: the passages that many suspects share with many sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.passages.documents import DocumentReader, open_both
from likewise.apps.passages.index import SourceBlock, make_blocks
from likewise.apps.passages.measure import Floats, SuspectShingles, portions
from likewise.apps.passages.result import Passages, make_tables
from likewise.apps.passages.search import PrintCounts, SharedPassages, SuspectBatch, place_sources, search_block
from likewise.apps.passages.settings import COMMON, GAP, LENGTH, MANY, OWNER, SHINGLE, PassageSettings
from likewise.base import checks
from likewise.base.arrays import Ints, TextChunk, to_arrow
from likewise.base.memory import MIB, Budget
from likewise.base.parallel import in_order
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.io.read import ReadOptions
from likewise.shingle import Shingler

SUSPECTS, SUSPECT_BYTES = 64, 64 << 10
"""Suspects per task, and about how much text: enough to amortize the overhead of a task, few enough to keep all threads
busy and to show how far the search is."""
BATCH = 4 * MIB
"""Bytes of text read at a time: splitting a batch into words briefly takes up to twelve times as much memory."""


def passages(
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
    many: int = MANY,
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
        checks.unused(OWNER, {"common": (common, COMMON)}, "when every pair is compared")
    count = checks.threads(OWNER, threads)
    budget = Budget.of(OWNER, memory)
    checks.choice(OWNER, "on_error", on_error, ("stop", "skip"))
    checks.choice(OWNER, "encoding_errors", encoding_errors, ("strict", "replace"))
    checks.whole(OWNER, "batch_rows", batch_rows)
    options = ReadOptions(
        text=text, id=id, on_error=on_error, encoding_errors=encoding_errors, lines=lines,
        plain=plain, hidden=hidden, batch_rows=batch_rows, batch_bytes=min(BATCH, budget.batch), row_bytes=budget.row,
        owner=OWNER,
    )  # fmt: skip
    log = RunLog.of(progress)
    readers = open_both(suspects, sources, options, source_text, source_id)
    parts, pairs, measured = _search(*readers, settings, budget.total // 2, count, log)
    names, other_names = (reader.names() for reader in readers)
    if not itself:
        parts = [_without_itself(part, names, other_names) for part in parts]
        differ = _differ(names, other_names, pairs)
        pairs, measured = pairs[differ], measured[differ]
    if not readers[1].rows:
        log.notes.append("There are no sources, so no text can have been copied from them.")
    with log.stage("tables"):
        found, documents = make_tables(parts, pairs, measured, names, other_names, settings.many)
    log.counts |= {"passages": len(found), "documents": len(documents)}
    log.counts["unlisted"] = sum(len(part.spans) for part in parts) - len(found)
    log.counts["suspects_with_passages"] = len(pc.unique(found["suspect"]))
    columns = {
        "text": text,
        "id": id,
        "source_text": text if source_text is None else source_text,
        "source_id": id if source_id is None else source_id,
    }
    more = {"on_error": on_error, "encoding_errors": encoding_errors, "lines": lines, "plain": plain, "hidden": hidden}
    more |= {"threads": count, "memory": budget.total}
    parameters = {**settings.to_dict(), "itself": itself, **columns, **more}
    stats = run_json(OWNER, parameters, [reader.source for reader in readers], log)
    return Passages(found, documents, stats)


def _search(
    suspects: DocumentReader,
    sources: DocumentReader,
    settings: PassageSettings,
    limit: int,
    threads: int,
    log: RunLog,
) -> tuple[list[SharedPassages], Ints, Floats]:
    """Search each block of sources; return the passages, and the pairs of documents with what was measured.

    For every block the suspects are read twice: to find passages, and to measure the pairs that have any.
    """
    parts: list[SharedPassages] = []
    used: list[PrintCounts] = []
    pairs, measured = [np.empty((0, 2), np.int64)], [np.empty((0, 3))]
    count = 0
    with log.stage("index", sources.source.total_rows or 0) as tick:
        blocks = make_blocks(sources.chunks(threads), settings, limit, threads, tick)
        block = next(blocks, None)
    if block is None:
        for _ in suspects.chunks(threads):
            pass
    while block is not None:
        count += 1
        with log.stage("passages", suspects.rows or suspects.source.total_rows or 0) as tick:
            found = []
            batches = _batches(suspects, threads, used)
            for part in in_order(partial(_found, block=block, settings=settings), batches, threads):
                found.append(part)
                tick(part.rows)
        if found:
            found = place_sources(found, block, threads)
        parts += found
        used = [part.used for part in found]
        some = np.concatenate([pairs[0], *(part.pairs for part in found)]) - np.array([0, block.first])
        total = suspects.rows * len(block) if settings.every else len(some)
        with log.stage("measure", total) as tick:
            for one, numbers in _measured(suspects, block, some, settings, threads):
                pairs.append(one + np.array([0, block.first]))
                measured.append(numbers)
                tick(len(one))
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


def _found(batch: SuspectBatch, block: SourceBlock, settings: PassageSettings) -> SharedPassages:
    return search_block(batch, block, settings)


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
            here = np.column_stack(
                [np.tile(np.arange(first, last), len(block)), np.repeat(np.arange(len(block)), len(chunk))]
            )
        else:
            here = pairs[np.searchsorted(pairs[:, 0], first) : np.searchsorted(pairs[:, 0], last)]
            here = here[np.argsort(here[:, 1], kind="stable")]
        if len(here):
            rows, left = np.unique(here[:, 0], return_inverse=True)
            shingles = SuspectShingles.of(chunk, rows - first, settings)
            right = np.ascontiguousarray(here[:, 1])

            def measure(
                some: slice, shingles: SuspectShingles = shingles, left: Ints = left, right: Ints = right
            ) -> Floats:
                return shingles.measure(block, left[some], right[some])

            parts = list(portions(block, right))
            for some, numbers in zip(parts, in_order(measure, parts, threads), strict=True):
                yield here[some], numbers
        first = last


def _batches(suspects: DocumentReader, threads: int, used: list[PrintCounts]) -> Iterator[SuspectBatch]:
    """Yield the suspects in small batches, the same ones on every pass."""
    first = number = 0
    for chunk in suspects.chunks(threads):
        start = 0
        while start < len(chunk):
            enough = np.searchsorted(chunk.offsets, chunk.offsets[start] + SUSPECT_BYTES, side="right") - 1
            stop = min(max(start + 1, int(enough)), start + SUSPECTS, len(chunk))
            yield SuspectBatch(
                first, TextChunk(chunk.data, chunk.offsets[start : stop + 1]), used[number] if used else None
            )
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
