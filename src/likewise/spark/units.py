"""`dedup` of lines or paragraphs on Spark: units meet by the hash of their words; what is cut returns to the documents.

The units of all documents are shuffled by their keys, as the local engine groups them: a task counts those it gets, and
knows which are cut. The cuts are shuffled to the documents, where their places, texts and what is left are found. Only
counts, and one bit for each row that goes, reach the driver.
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
    chunk_units,
    counted_units,
    different_units,
    in_documents,
    repeated_in,
)
from likewise.apps.units.result import CUTS, DedupUnits
from likewise.base import checks
from likewise.base.arrays import Ints, TextChunk, to_arrow
from likewise.errors import InputError
from likewise.jobs.dedup import OWNER, DedupRequest
from likewise.kernels.line_units import DOCUMENT, DOCUMENTS, FIRST, KEY_A, PLACE, WORDS, WORDS_BITS
from likewise.spark.corpus import ROW, Corpus, numbered
from likewise.spark.cut_rows import (
    NO_SPANS,
    KeptRows,
    Leftover,
    RowBatch,
    as_batches,
    as_file,
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
"""Kinds of parcels: a unit, its document and words, with its key and place; a cut, its document, with the other columns
of cuts; how many units there were in a task, with how many different ones are cut."""
CUT_WORDS = 4
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
        sending = partial(_sent_units, numbering=corpus.shared_numbering, rules=self.rules, targets=addresses(parts))
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


def _sent_units(batches: Iterator[Any], numbering: Any, rules: UnitRules, targets: Any) -> Iterator[Any]:
    """Send the units of the documents of a task to where their keys meet."""
    outbox = Outbox(targets, UNIT, 3)
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        units = chunk_units(0, TextChunk.from_arrow(rest.column(rest.schema.get_field_index(TEXT))), rules)[0]
        numbers = units[:, DOCUMENT] >> np.uint64(WORDS_BITS)
        units[:, DOCUMENT] += (rows[numbers.astype(np.int64)].astype(np.uint64) - numbers) << np.uint64(WORDS_BITS)
        words = units[:, [KEY_A, KEY_A + 1, PLACE]].ravel()
        yield from outbox.add(scattered(units[:, KEY_A], len(targets)), units[:, DOCUMENT].view(np.int64), words)
    yield from outbox.sent()


def _repeated(batches: Iterator[Any], rules: UnitRules) -> Iterator[Any]:
    """Count the units that meet in a task; yield those that are cut."""
    documents, words = opened(batches).get(UNIT, nothing())
    if not len(documents):
        return
    order = np.argsort(documents.view(np.uint64), kind="stable")
    keys = words.reshape(-1, 3)[order]
    units = np.column_stack([keys[:, :2], documents.view(np.uint64)[order], keys[:, 2]])
    table = counted_units([units], len(units))
    cuts = repeated_in(units, table, rules)
    yield from parcel(0, CUT, cuts[:, 0], cuts[:, 1:].view(np.uint64).ravel())
    yield from parcel(0, COUNT, np.array([len(units)]), np.array([different_units(table, rules)], np.uint64))


@dataclass(frozen=True)
class _FoundCuts:
    """Cuts of some rows of a table, in the order of rows and of places; the documents that have any, and their places
    in the table."""

    cuts: Ints
    places: Ints
    chunk: TextChunk
    of: Ints

    @classmethod
    def of_batch(cls, batch: RowBatch, text: str) -> _FoundCuts:
        """Put the cuts of a batch in order."""
        rows, table, entries = batch
        cuts = in_documents([entries])
        places = np.unique(np.searchsorted(rows, cuts[:, 0]))
        texts = table.column(text).combine_chunks().take(to_arrow(places))
        of = np.searchsorted(rows[places], cuts[:, 0])
        return cls(cuts, places, TextChunk.from_arrow(texts.cast(pa.large_string())), of)

    def placed(self, rules: UnitRules) -> tuple[Ints, Any, Ints]:
        """Find their places, texts, and the spans that go, of documents of the chunk."""
        here = self.cuts.copy()
        here[:, 0] = self.of
        return placed_cuts(self.chunk, here, rules)


def _list_cuts(number: int, batches: Iterator[RowBatch], rules: UnitRules, text: str) -> Iterator[Any]:
    """List the cuts of the documents of a block."""
    for batch in batches:
        if not len(batch[2]):
            continue
        found = _FoundCuts.of_batch(batch, text)
        facts, texts, _ = found.placed(rules)
        left = chunk_units(0, found.chunk, rules)[1]
        np.subtract.at(left, found.of, found.cuts[:, WORDS])
        cuts = found.cuts
        numbers = [cuts[:, 0], facts[:, 0], facts[:, 1], *(cuts[:, one] for one in (WORDS, FIRST, DOCUMENTS))]
        columns = [*map(to_arrow, numbers), to_arrow(left[found.of]), texts.cast(pa.string())]
        yield pa.RecordBatch.from_arrays(columns, [*NUMBERS, "text"])


def _left(batches: Iterator[RowBatch], rules: UnitRules, text: str) -> Leftover:
    """Find the spans that are cut out of the documents of a block."""
    for rows, table, entries in batches:
        spans = NO_SPANS
        if len(entries):
            found = _FoundCuts.of_batch((rows, table, entries), text)
            spans = found.placed(rules)[2]
            spans[:, 0] = found.places[spans[:, 0]]
        yield rows, table, spans


def _yield_left(number: int, batches: Iterator[RowBatch], rules: UnitRules, text: str, kept: Any) -> Iterator[Any]:
    return as_batches(_left(batches, rules, text), kept)


def _write_left(
    number: int, batches: Iterator[RowBatch], rules: UnitRules, text: str, kept: Any, folder: str, schema: pa.Schema
) -> Iterator[Any]:
    return as_file(number, _left(batches, rules, text), kept, folder, schema)
