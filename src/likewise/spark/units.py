"""`dedup` of lines or paragraphs on Spark: units meet by the hash of their words; what is cut returns to the documents.

A task counts the units of its documents, and what it counted is shuffled by their keys and added up, so that a line
that all documents have is a number from each task. Which are cut is told to the blocks of documents that have them,
where units are hashed again, and their places, texts and what is left are found. Only counts, and one bit for each row
that goes, reach the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.cut_documents import check_cuttable
from likewise.apps.units.cuts import EMPTY, SHORT, placed_cuts
from likewise.apps.units.dedup_units import NO_EFFECT, NOTHING_TO_CUT, READING, UnitRules
from likewise.apps.units.repeats import (
    BYTES_A_UNIT,
    MOST_DOCUMENTS,
    UNIT_COLUMNS,
    chunk_units,
    counted_units,
    in_documents,
    repeated_in,
)
from likewise.apps.units.result import CUTS, DedupUnits
from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, TextChunk, to_arrow
from likewise.errors import InputError
from likewise.jobs.dedup import OWNER, DedupRequest
from likewise.kernels.line_units import DOCUMENT, DOCUMENTS, FIRST, WORDS, WORDS_BITS, UnitTable
from likewise.spark.corpus import ROW, Corpus, numbered
from likewise.spark.cut_rows import (
    KeptRows,
    Leftover,
    RowBatch,
    as_batches,
    as_file,
    block_begins,
    meet_entries,
    write_files,
)
from likewise.spark.direct import TEXT
from likewise.spark.exchange import (
    KIND,
    SCHEMA,
    Outbox,
    addresses,
    collected,
    nothing,
    opened,
    parcel,
    partitions,
    shuffled,
)
from likewise.spark.folder import RunFolder
from likewise.spark.members import named, positions_of, row_set, values_of
from likewise.spark.output import write_frame
from likewise.spark.result import SparkResult
from likewise.spark.run import ClusterRun, begun
from likewise.spark.source import quoted
from likewise.spark.steps import scattered

UNIT, CUT, COUNT = range(41, 44)
"""Kinds of parcels: a unit of a task, the first document, with its key and how many documents have it; a unit that is
cut, a document of a task that has it, with its key, the first document of all and how many have it; how many units
there were in a task, with how many different ones are cut."""
UNIT_WORDS, CUT_WORDS = 3, 4
LEFT = "words_left"
NUMBERS = (ROW, "start", "end", "words", "first", "documents", LEFT)
LISTED = ", ".join([*(f"{name} bigint" for name in NUMBERS), "text string"])
"""Columns of a cut, and the words that are left of its document."""


class SparkDedupUnits(SparkResult):
    """The result of `dedup` of lines or paragraphs on Spark: `.cuts`, `.removed` and `.kept` are Spark DataFrames.

    Their columns are those of `DedupUnits`. `.stats` is the content of run.json; `.aside` has the rows that were set
    aside under on_error="skip". `.save(directory)` writes everything.
    """

    files: ClassVar[dict[str, str]] = {**DedupUnits.files, "kept": "kept"}

    @cached_property
    def cuts(self) -> Any:
        """The lines or paragraphs that are cut."""
        return self._table(CUTS)

    @cached_property
    def removed(self) -> Any:
        """The documents of which too little is left."""
        return self._table("removed.parquet")

    _summary = DedupUnits._summary


def dedup_units(request: DedupRequest, rules: UnitRules) -> SparkDedupUnits:
    """Cut the units that documents repeat on a cluster."""
    checks.unused(OWNER, request.given(*(name for name in NO_EFFECT if name != "fresh")), "with 'unit'")
    check_cuttable([], request.html, NOTHING_TO_CUT)
    with begun(request, [asdict(rules)], request.fresh, kind=SparkDedupUnits) as run:
        corpus = run.corpus()
        if len(corpus) > MOST_DOCUMENTS:
            raise InputError(f"there are more than {MOST_DOCUMENTS:,} documents; divide the corpus")
        return _UnitRun(run, corpus, rules).done()


@dataclass(frozen=True)
class _UnitRun:
    """One run, and what its steps find."""

    run: ClusterRun
    corpus: Corpus
    rules: UnitRules

    def done(self) -> SparkDedupUnits:
        """Count the units, find the places of those that are cut, and write what is left."""
        run, log, part = self.run, self.run.log, self.corpus.parts[0]
        with log.stage("count"):
            repeats = run.checkpoints.frame("units", self._repeats)
            units, different = collected(run.checkpoints.kinds("units", (COUNT,))).get(COUNT, nothing())
        with log.stage("cut"):
            cuts = run.checkpoints.frame("cuts", lambda: self._listed(repeats))
            number, words, touched, removed = cuts.selectExpr(
                "count(*)", "coalesce(sum(words), 0)", f"count(distinct {ROW})",
                f"count(distinct if({self._short}, {ROW}, null))",
            ).first()  # fmt: skip
            gone = row_set(cuts.where(self._short).select(ROW), len(self.corpus))
        documents = len(self.corpus)
        log.counts |= {"documents": documents, "units": int(units.sum()), "repeated": int(different.sum())}
        log.counts |= {"cuts": number, "words_cut": words, "documents_cut": touched}
        log.counts |= {"kept": documents - removed, "removed": removed}
        reading = {name: getattr(run.request, name) for name in READING}
        parameters = {**asdict(self.rules), **reading, "engine": "spark", **run.request.resources.used}
        writers = {
            "removed.parquet": lambda place: write_frame(self._removed(cuts), place),
            CUTS: lambda place: write_frame(self._cuts(cuts), place),
            "kept": lambda place: self._write_kept(repeats, gone, place),
        }
        return run.publish(part, writers, lambda: run.stats(OWNER, parameters, [part]), SparkDedupUnits, part.aside)

    @property
    def _short(self) -> str:
        """The condition for cuts of documents of which too little is left."""
        return f"{LEFT} < {self.rules.min_left}"

    def _repeats(self) -> Any:
        """Let units meet by their keys."""
        corpus = self.corpus
        parts = partitions(corpus.session, corpus.numbering.bytes // BYTES_A_UNIT)
        begins = np.union1d(block_begins(corpus, corpus.parts[0].direct), block_begins(corpus, None))
        shared = {"numbering": corpus.shared_numbering, "begins": begins, "rules": self.rules}
        sending = partial(_sent_units, **shared, targets=addresses(parts))
        return shuffled(corpus.map_texts(sending, SCHEMA), parts).mapInArrow(
            partial(_repeated, rules=self.rules), SCHEMA
        )

    def _listed(self, repeats: Any) -> Any:
        """Find the cuts in their documents."""
        part = self.corpus.parts[0]
        function = partial(_list_cuts, rules=self.rules, text=part.text)
        return self._met(repeats, [part.text], function, LISTED)

    def _met(self, repeats: Any, columns: list[str], function: Any, schema: Any, direct: bool = True) -> Any:
        cuts = repeats.where(f"{KIND} = {CUT}")
        return meet_entries(self.corpus, cuts, CUT_WORDS, columns, function, schema, direct)

    @cached_property
    def _ids(self) -> Any:
        """The ids of documents with a cut, and of those whose units they repeat; None for row numbers."""
        corpus, column, checkpoints = self.corpus, self.run.request.id, self.run.checkpoints
        if column is None and corpus.parts[0].broken is None:
            return None
        cuts = checkpoints.known("cuts")
        rows = cuts.select(ROW).unionAll(cuts.select("first")).distinct()
        if column is None:
            return positions_of(corpus, rows)
        return checkpoints.frame("names", lambda: values_of(corpus, row_set(rows, len(corpus)), column))

    def _cuts(self, cuts: Any) -> Any:
        """Return the table of cuts, in the order of documents and of places in them."""
        frame = named(cuts.withColumn("place", cuts[ROW]), self._ids, {ROW: "id", "first": "repeated_id"})
        columns = "id", "start", "end", "words", "text", "repeated_id", "documents"
        return frame.orderBy("place", "start").select(*columns)

    def _removed(self, cuts: Any) -> Any:
        """Return the table of the documents of which too little is left."""
        gone = cuts.where(self._short).selectExpr(ROW, f"{ROW} as place", LEFT).distinct()
        why = f"if({LEFT} = 0, '{EMPTY}', '{SHORT}') as why"
        return named(gone, self._ids, {ROW: "id"}).orderBy("place").selectExpr("id", why, LEFT)

    def _write_kept(self, repeats: Any, gone: Any, place: RunFolder) -> None:
        """Write what is left of the documents: tasks that read files write files, too, where they can."""
        part, request = self.corpus.parts[0], self.run.request
        kept = self.corpus.broadcast(KeptRows(gone, request.text, request.encoding_errors, part.columns))
        given: dict[str, Any] = {"rules": self.rules, "text": part.text, "kept": kept}
        if part.direct is not None and place.local is not None:
            function = partial(_write_left, **given, folder=place.local, schema=part.direct.schema)
            write_files(self._met(repeats, list(part.columns), function, SCHEMA), place)
            return
        columns = list(dict.fromkeys([*part.columns, part.text]))
        schema = part.frame.select(*map(quoted, part.columns)).schema
        write_frame(self._met(repeats, columns, partial(_yield_left, **given), schema, direct=False), place)


def _sent_units(batches: Iterator[Any], numbering: Any, begins: Ints, rules: UnitRules, targets: Any) -> Iterator[Any]:
    """Send what the units of a task were counted to where their keys meet, block by block of documents."""
    outbox, total = Outbox(targets, UNIT, UNIT_WORDS), 0
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        order = np.argsort(rows, kind="stable")
        texts = rest.column(rest.schema.get_field_index(TEXT)).take(to_arrow(order))
        units = _units(rows[order], TextChunk.from_arrow(texts), rules)[0]
        total += len(units)
        blocks = np.searchsorted(begins, (units[:, DOCUMENT] >> np.uint64(WORDS_BITS)).view(np.int64), side="right")
        for some in np.split(units, np.flatnonzero(np.diff(blocks)) + 1):
            table = counted_units([some], len(some))
            keys, facts = table.keys, table.facts
            words = np.column_stack([keys, facts[:, 2].view(np.uint64)])
            yield from outbox.add(scattered(keys[:, 0], len(targets)), facts[:, 0], words)
    yield from outbox.sent()
    yield from parcel(int(targets[0]), COUNT, np.array([total]), np.zeros(1, np.uint64))


def _units(rows: Ints, chunk: TextChunk, rules: UnitRules) -> tuple[Hashes, Ints]:
    """Return the units of documents by the numbers of these, and how many words each document has."""
    units, words = chunk_units(0, chunk, rules)
    numbers = units[:, DOCUMENT] >> np.uint64(WORDS_BITS)
    units[:, DOCUMENT] += (rows[numbers.view(np.int64)].view(np.uint64) - numbers) << np.uint64(WORDS_BITS)
    return units, words


def _repeated(batches: Iterator[Any], rules: UnitRules) -> Iterator[Any]:
    """Add up what was counted of the units that meet in a task; tell those who have them which are cut."""
    came = opened(batches)
    rows, words = came.get(UNIT, nothing())
    units, different = int(came.get(COUNT, nothing())[0].sum()), 0
    if len(rows):
        entries = words.reshape(-1, UNIT_WORDS)
        order = np.lexsort((rows, entries[:, 1], entries[:, 0]))
        rows, entries = rows[order], entries[order]
        starts = np.flatnonzero(np.append(True, (entries[1:, :2] != entries[:-1, :2]).any(axis=1)))
        documents = np.add.reduceat(entries[:, 2].view(np.int64), starts)
        cut, sizes = documents > rules.more_than, np.diff(np.append(starts, len(rows)))
        told, different = np.repeat(cut, sizes), int(cut.sum())
        facts = np.column_stack([np.repeat(rows[starts], sizes), np.repeat(documents, sizes)])[told].view(np.uint64)
        yield from parcel(0, CUT, rows[told], np.column_stack([entries[told, :2], facts]).ravel())
    yield from parcel(0, COUNT, np.array([units]), np.array([different], np.uint64))


def _told(entries: Ints) -> UnitTable:
    """Return the table of the units that a block was told of."""
    units = np.zeros((len(entries), UNIT_COLUMNS), np.uint64)
    units[:, :2] = entries[:, 1:3].view(np.uint64)
    units[:, DOCUMENT] = np.arange(len(entries), dtype=np.uint64) << np.uint64(WORDS_BITS)
    table = counted_units([units], len(units))
    of = entries[table.facts[:, 0]]
    table.facts[:, 0], table.facts[:, 2] = of[:, 3], of[:, 4]
    return table


@dataclass(frozen=True)
class _FoundCuts:
    """Cuts of some rows of a table, in the order of rows and of places; the documents that have any, and their places
    in the table; how many words each has."""

    cuts: Ints
    places: Ints
    chunk: TextChunk
    of: Ints
    words: Ints

    @classmethod
    def of_batches(
        cls, batches: Iterator[RowBatch], rules: UnitRules, text: str
    ) -> Iterator[tuple[Ints, pa.Table, _FoundCuts]]:
        """Find the cuts of the rows of a block, and put them in order."""
        told = None
        for rows, table, entries in batches:
            told = told or _told(entries)
            texts = table.column(text).combine_chunks().cast(pa.large_string())
            units, words = _units(rows, TextChunk.from_arrow(texts), rules)
            cuts = in_documents([repeated_in(units, told, rules)])
            places = np.unique(np.searchsorted(rows, cuts[:, 0]))
            chunk = TextChunk.from_arrow(texts.take(to_arrow(places)))
            yield rows, table, cls(cuts, places, chunk, np.searchsorted(rows[places], cuts[:, 0]), words[places])

    def placed(self, rules: UnitRules) -> tuple[Ints, Any, Ints]:
        """Find their places, texts, and the spans that go, of documents of the chunk."""
        here = self.cuts.copy()
        here[:, 0] = self.of
        return placed_cuts(self.chunk, here, rules)


def _list_cuts(number: int, batches: Iterator[RowBatch], rules: UnitRules, text: str) -> Iterator[Any]:
    """List the cuts of the documents of a block."""
    for _, _, found in _FoundCuts.of_batches(batches, rules, text):
        facts, texts, _ = found.placed(rules)
        left, cuts = found.words, found.cuts
        np.subtract.at(left, found.of, cuts[:, WORDS])
        numbers = [cuts[:, 0], facts[:, 0], facts[:, 1], *(cuts[:, one] for one in (WORDS, FIRST, DOCUMENTS))]
        columns = [*map(to_arrow, numbers), to_arrow(left[found.of]), texts.cast(pa.string())]
        yield pa.RecordBatch.from_arrays(columns, [*NUMBERS, "text"])


def _left(batches: Iterator[RowBatch], rules: UnitRules, text: str) -> Leftover:
    """Find the spans that are cut out of the documents of a block."""
    for rows, table, found in _FoundCuts.of_batches(batches, rules, text):
        spans = found.placed(rules)[2]
        spans[:, 0] = found.places[spans[:, 0]]
        yield rows, table, spans


def _yield_left(number: int, batches: Iterator[RowBatch], rules: UnitRules, text: str, kept: Any) -> Iterator[Any]:
    return as_batches(_left(batches, rules, text), kept)


def _write_left(
    number: int, batches: Iterator[RowBatch], rules: UnitRules, text: str, kept: Any, folder: str, schema: pa.Schema
) -> Iterator[Any]:
    return as_file(number, _left(batches, rules, text), kept, folder, schema)
