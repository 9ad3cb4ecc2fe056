"""`decontaminate` on Spark: the index of the tests goes to every machine, and tasks search the documents they have.

The runs of words that documents share with items stay on the cluster, with how many documents of a task have each
window. Once the driver knows in how many documents windows are, tasks send it the runs that are not frequent phrases;
it judges them as the local engine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b, sha256
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.decontaminate.decontaminate import (
    BYTES_A_RUN,
    TOO_MUCH,
    ContaminationRules,
    DecontaminateRequest,
    judged,
    leftover,
    note_hits,
)
from likewise.apps.decontaminate.item_sets import OWNER, WindowIndex
from likewise.apps.decontaminate.result import Decontamination, ItemHits, hit_table, set_table
from likewise.apps.decontaminate.search import DOCUMENT, ITEM, search_chunk
from likewise.base.arrays import Ints, TextChunk, to_arrow
from likewise.base.runlog import RunLog
from likewise.base.words import size
from likewise.errors import InputError, ParameterError
from likewise.kernels.literal_runs import rarest_windows
from likewise.spark.corpus import Corpus, numbered
from likewise.spark.cut_rows import KeptRows, write_left
from likewise.spark.direct import TEXT
from likewise.spark.output import write_arrow
from likewise.spark.result import SparkResult, check_free
from likewise.spark.rowset import RowSet
from likewise.spark.run import begun, check_parameters

RUNS, PLACES, TEXTS, WINDOWS, COUNTS = "runs", "places", "texts", "windows", "counts"
FOUND = f"{RUNS} binary, {PLACES} binary, {TEXTS} array<binary>, {WINDOWS} binary, {COUNTS} binary"
"""Runs, where they are, and their texts; or windows, and how many documents of a task have each."""
HELD = 1 << 16
"""Runs that a task holds before it sends them."""


class SparkDecontamination(SparkResult):
    """The result of `decontaminate` on Spark: `.hits`, `.tests` and `.kept` are Spark DataFrames.

    Their columns are those of `Decontamination`. `.stats` is the content of run.json; `.aside` has the rows that were
    set aside under on_error="skip". `.save(directory)` writes everything.
    """

    files: ClassVar[dict[str, str]] = {**Decontamination.files, "kept": "kept"}
    outputs: ClassVar[tuple[str, ...]] = Decontamination.outputs
    commands: ClassVar[tuple[str, ...]] = (OWNER,)

    @cached_property
    def kept(self) -> Any:
        """The documents that are left."""
        if self.stats["parameters"]["action"] == "report":
            raise ParameterError("With action='report' all documents are left, and none is written: use the corpus.")
        return self._table("kept")

    @cached_property
    def hits(self) -> Any:
        """The passages of documents that count."""
        return self._table("hits.parquet")

    @cached_property
    def tests(self) -> Any:
        """The test sets."""
        return self._table("tests.parquet")

    def _written(self) -> list[str]:
        return [name for name in self.files if name != "kept" or self.stats["parameters"]["action"] != "report"]

    _summary = Decontamination._summary


def decontaminate(request: DecontaminateRequest) -> SparkDecontamination:
    """Do what was asked for on a cluster."""
    check_parameters(request)
    request.check_cuttable([])
    rules, log = request.rules, RunLog.of(request.progress)
    items, index = request.read_tests(log)
    content = blake2b(b"".join(sha256(text).digest() for text in items.texts)).hexdigest()
    with begun(request, [content], kind=SparkDecontamination, log=log) as run:
        check_free(run.folder, [str(one) for tests in items.sources for one in tests.files], SparkDecontamination)
        checkpoints = run.checkpoints
        corpus = run.corpus()
        part = corpus.parts[0]
        with log.stage("search"):
            searching = partial(
                _searched, numbering=corpus.shared_numbering, index=corpus.broadcast(index), rules=rules
            )
            runs = checkpoints.frame("runs", lambda: corpus.map_texts(searching, FOUND))
            _count(index, checkpoints.columns("runs", [WINDOWS, COUNTS]))
            limit = rules.limit(len(corpus))
            known = corpus.broadcast((index.offsets, index.counters, index.counts))
            choosing = partial(_rare, known=known, rules=rules, limit=limit)
            rare = runs.where(f"{RUNS} is not null").select(RUNS, PLACES, TEXTS).mapInArrow(choosing, FOUND)
            found = _gathered(checkpoints.table("hits", lambda: rare), request.resources.budget.total // 4)
        hits = judged(found, items, index, rules, len(corpus))
        with log.stage("tables"):
            sizes = np.diff(index.offsets)
            listed = hit_table(*_named(hits, items, sizes, corpus, request.id))
            per_set = set_table(hits, items, sizes)
        gone, cuts = leftover(hits, request.action)
        log.counts["documents"] = len(corpus)
        note_hits(log, hits, items, listed, per_set, len(corpus) - len(gone))
        writers = {
            "hits.parquet": lambda place: write_arrow(listed, place),
            "tests.parquet": lambda place: write_arrow(per_set, place),
        }
        if request.action != "report":
            kept = KeptRows(RowSet(len(corpus), [gone]), request.text, request.encoding_errors, part.columns, cuts)
            writers["kept"] = lambda place: write_left(corpus, kept, place)
        parameters = {**request.described(), "engine": "spark"}
        aside = [*part.aside, *items.aside]
        return run.publish(
            part, writers, lambda: run.stats(OWNER, parameters, [part, items]), SparkDecontamination, aside
        )


def _searched(batches: Iterator[Any], numbering: Any, index: Any, rules: ContaminationRules) -> Iterator[Any]:
    """Search the documents of a task; what it has counted itself leaves out runs that are frequent phrases."""
    own: WindowIndex = replace(index.value, counts=np.zeros_like(index.value.counts))
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chunk = TextChunk.from_arrow(rest.column(rest.schema.get_field_index(TEXT)))
        part = search_chunk(0, chunk, own, rules.most_common, rules.rare)
        np.add.at(own.counts, part.seen, 1)
        part.runs[:, DOCUMENT] = rows[part.runs[:, DOCUMENT]]
        for start in range(0, len(part.runs), HELD):
            some = slice(start, start + HELD)
            yield _batch(part.runs[some], part.places[some], part.texts[some], None, None)
    seen = np.flatnonzero(own.counts)
    if len(seen):
        yield _batch(None, None, None, seen, own.counts[seen].astype(np.int64))


def _batch(runs: Any, places: Any, texts: Any, windows: Any, counts: Any) -> pa.RecordBatch:
    """Return one row of what is found."""
    packed = [None if one is None else np.ascontiguousarray(one).tobytes() for one in (runs, places, windows, counts)]
    arrays = [pa.array([one], pa.binary()) for one in packed]
    arrays.insert(2, pa.array([texts], pa.list_(pa.binary())))
    return pa.RecordBatch.from_arrays(arrays, [RUNS, PLACES, TEXTS, WINDOWS, COUNTS])


def _opened(batch: Any, place: int) -> tuple[Ints, Ints, list[bytes]]:
    """Return the runs, their places and texts in a row of what is found."""
    runs, places, texts = (batch.column(number)[place] for number in range(3))
    arrays = (np.frombuffer(one.as_buffer(), np.int64).reshape(-1, 5).copy() for one in (runs, places))
    return *arrays, texts.as_py()


def _count(index: WindowIndex, table: pa.Table) -> None:
    """Add up in how many documents each window is."""
    for windows, counts in zip(table.column(WINDOWS).drop_null(), table.column(COUNTS).drop_null(), strict=True):
        seen, number = (np.frombuffer(one.as_buffer(), np.int64) for one in (windows, counts))
        index.counts[seen] += number.astype(np.int32)


def _rare(batches: Iterator[Any], known: Any, rules: ContaminationRules, limit: int) -> Iterator[Any]:
    """Yield the runs that have a window which is no frequent phrase."""
    offsets, counters, counts = known.value
    for batch in batches:
        for row in range(batch.num_rows):
            runs, places, texts = _opened(batch, row)
            least = np.empty(len(runs), np.int64)
            rarest_windows(runs, rules.length, offsets, counters, counts, least)
            short = np.diff(offsets)[runs[:, ITEM]] < rules.length
            chosen = np.flatnonzero(least <= np.where(short, rules.rare, limit))
            if len(chosen):
                yield _batch(runs[chosen], places[chosen], [texts[one] for one in chosen.tolist()], None, None)


def _gathered(table: pa.Table, most: int) -> ItemHits:
    """Return the runs that came to the driver, if they do not need more memory than this."""
    if table.nbytes + BYTES_A_RUN * sum(len(one) // 40 for one in table.column(RUNS).to_pylist()) > most:
        raise InputError(TOO_MUCH.format(size(most)))
    none = np.empty((0, 5), np.int64)
    parts = [
        (none, none, list[bytes]()),
        *(_opened(batch, row) for batch in table.to_batches() for row in range(batch.num_rows)),
    ]
    runs, places = (np.concatenate([part[side] for part in parts]) for side in range(2))
    return ItemHits(runs, places, [text for part in parts for text in part[2]])


def _named(hits: ItemHits, items: Any, sizes: Ints, corpus: Corpus, id: str | None) -> tuple[Any, ...]:
    """Return what `hit_table` takes: hits whose documents are numbered anew, and the names of these documents."""
    rows, place = np.unique(hits.runs[:, DOCUMENT], return_inverse=True)
    runs = hits.runs.copy()
    runs[:, DOCUMENT] = place
    names = to_arrow(corpus.parts[0].positions(rows)) if id is None else corpus.column(rows, id)
    return replace(hits, runs=runs), items, sizes, names
