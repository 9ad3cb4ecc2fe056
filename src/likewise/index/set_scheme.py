"""An index of documents or sets: items to sets and band keys, keys to candidates, candidates to verified answers."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts, check_sets, concatenate
from likewise.base.copies import set_digests
from likewise.base.parallel import in_order
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import DEFAULT_MAX_SLOTS, tune
from likewise.index import scheme as limits
from likewise.index.chunk import ChunkData, make_chunk
from likewise.index.scheme import IndexQuestion, IndexScheme, ItemBatch, check_count
from likewise.index.segment import SetSegment, first_equal, grouped, new_rows, shingle_table
from likewise.index.set_answers import answers_of, best_first, in_room, tables_of
from likewise.index.store import FORMAT, Manifest
from likewise.index.view import IndexView, SegmentView
from likewise.kernels import entry_of
from likewise.kernels.lookup import IndexAim, IndexHits, IndexQueries, sort_sets
from likewise.kernels.one_query import answer_document
from likewise.kernels.overlap import CONTAINMENT, JACCARD
from likewise.kernels.sketch import key_sets
from likewise.kernels.sorting import radix_sort32
from likewise.search.common_shingles import value_table
from likewise.search.exact.bounds import least_fraction
from likewise.search.scored import ScoredPairs
from likewise.shingle import Shingler, parse_shingler, shingler_of

DEFAULT_ITEMS = 1_000_000
"""The number of items for which bands and rows are chosen, if the user does not say."""
TEXTS = 1 << 8
"""Documents that a thread shingles in one call."""
SETS = 1 << 9
"""Sets that a thread sketches in one call."""
MEASURES = ("jaccard", "containment")
_fraction = cache(least_fraction)


@lru_cache(maxsize=16)
def _sure(b: int, r: int, recall: float) -> NDArray[np.float64]:
    """Return `MinHashScheme.sure` of b bands of r rows: most indexes of a program have the same."""
    grid = np.linspace(0, 1, 1001)
    sure, below = np.full(b + 1, 2.0), np.zeros(len(grid))
    with np.errstate(divide="ignore", invalid="ignore"):
        shared, missed = np.log(grid**r), np.log1p(-(grid**r))
        for c in range(b):
            ways = math.lgamma(b + 1) - math.lgamma(c + 1) - math.lgamma(b - c + 1)
            log = (c * shared if c else 0.0) + (b - c) * missed
            below += np.nan_to_num(np.exp(ways + log))
            enough = np.flatnonzero(below <= 1 - recall)
            if len(enough):
                sure[c] = grid[enough[0]]
    return sure


@dataclass(frozen=True)
class MinHashScheme(IndexScheme):
    """The settings of an index of documents or sets, and what it does with them."""

    shingler: Shingler | None
    threshold: float
    recall: float
    minhash: MinHash
    banding: Banding
    containment: bool = False
    texts: bool = False
    common: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    measured = "similarity"

    @classmethod
    def of(
        cls,
        owner: str,
        shingle: str | Shingler | None,
        threshold: float,
        recall: float,
        seed: int,
        sketch: str,
        bands: int | None,
        rows: int | None,
        max_slots: int,
        items: int,
        containment: bool,
        texts: bool | None,
    ) -> MinHashScheme:
        """Check what the user gave, and choose bands and rows."""
        shingler = None if shingle is None else parse_shingler(shingle, owner=owner)
        if shingler is not None and not shingler.restorable:
            raise ParameterError(
                f"The 'shingle' parameter of {owner} cannot be a rule that is a Python function: an index is opened "
                "by other processes, which do not have it."
            )
        threshold, recall = checks.threshold(owner, threshold), checks.recall(owner, recall)
        minhash = MinHash(checks.seed(owner, seed), checks.choice(owner, "sketch", sketch, ("fast", "classic")))
        if (bands is None) != (rows is None):
            raise ParameterError(f"The 'bands' and 'rows' parameters of {owner} go together: give both or neither.")
        if bands is not None and rows is not None:
            given = {"max_slots": (max_slots, DEFAULT_MAX_SLOTS), "items": (items, DEFAULT_ITEMS)}
            checks.unused(owner, given, "with 'bands' and 'rows'")
            banding = Banding(bands, rows)
        else:
            checks.whole(owner, "items", items)
            checks.whole(owner, "max_slots", max_slots)
            banding = tune(threshold, recall, items=items, max_slots=max_slots)
        if texts is None:
            texts = shingler is not None
        elif checks.flag(owner, "texts", texts) and shingler is None:
            raise ParameterError(f"The 'texts' parameter of {owner} has no effect for sets. Leave it out.")
        return cls(shingler, threshold, recall, minhash, banding, checks.flag(owner, "containment", containment), texts)

    @property
    def kind(self) -> str:
        """What the index holds, in a word or two."""
        return "sets" if self.shingler is None else str(self.shingler)

    @property
    def aim(self) -> str:
        """What a query finds, for a person."""
        return f"jaccard ≥ {self.threshold}"

    def header(self) -> dict[str, Any]:
        """Return all that a later process needs to know."""
        return {
            "format": FORMAT,
            "likewise": version("likewise"),
            "items": "sets" if self.shingler is None else "text",
            "measure": "jaccard",
            "family": "MinHash",
            "sketch": self.minhash.method,
            "seed": self.minhash.seed,
            "bands": self.banding.b,
            "rows": self.banding.r,
            "threshold": self.threshold,
            "recall": self.recall,
            "containment": self.containment,
            "texts": self.texts,
            "shingling": None if self.shingler is None else self.shingler.to_dict(),
            "common": len(self.common),
            "common_checksum": zlib.crc32(self.common.tobytes()),
        }

    @classmethod
    def restored(cls, header: Mapping[str, Any], common: Hashes, where: str) -> MinHashScheme:
        """Return the scheme of a header."""
        if header["family"] != "MinHash":
            raise IncompatibleError(f"{where}: this version of likewise does not know indexes of {header['family']}")
        return cls(
            None if header["shingling"] is None else shingler_of(header["shingling"]),
            header["threshold"],
            header["recall"],
            MinHash(header["seed"], header["sketch"]),
            Banding(header["bands"], header["rows"]),
            header["containment"],
            header["texts"],
            common,
        )

    def check_same(self, where: str, given: Mapping[str, Any], owner: str) -> None:
        """Raise if a setting that the user expects is another one here."""
        if given["shingle"] is not None:
            asked = parse_shingler(given["shingle"], owner=owner)
            if self.shingler is None:
                raise IncompatibleError(f"{where} was made for sets, not for documents with shingle {asked}")
            before, now = self.shingler.to_dict(), asked.to_dict()
            if asked != self.shingler:
                name = next(key for key in {**before, **now} if before.get(key) != now.get(key))
                raise IncompatibleError(f"{where} was made with {name} {before.get(name)!r}, not {now.get(name)!r}")
        super().check_same(where, {**given, "shingle": None}, owner)

    @cached_property
    def seeds(self) -> Hashes:
        """The seeds of the signatures."""
        return self.minhash.seeds(self.banding.slots)

    @cached_property
    def left_out(self) -> Hashes | None:
        """The table of the shingles that are left out."""
        return value_table(self.common) if len(self.common) else None

    @cached_property
    def sure(self) -> NDArray[np.float64]:
        """For every number of bands c, the similarity from which a set shares c bands or fewer with a query only with
        probability 1 − recall: with that many candidates and better answers already, the others are passed over."""
        return _sure(self.banding.b, self.banding.r, self.recall)

    def documents(self, items: Any, owner: str) -> Texts | None:
        """Return items as documents; None if this is an index of sets."""
        if self.shingler is None:
            return None
        if isinstance(items, Sets):
            raise ParameterError(f"{owner}: this index was made for documents, not for Sets")
        if isinstance(items, pa.ChunkedArray) and not items.num_chunks:
            items = pa.array([], pa.large_string())
        try:
            return Texts([TextChunk.of_text(items)]) if isinstance(items, str) else Texts.of(items)
        except ParameterError as error:
            raise ParameterError(f"{owner}: {error}") from error

    def sets(self, items: Any, owner: str, threads: int) -> Sets:
        """Return the sets of items, the elements of each in ascending order."""
        texts = self.documents(items, owner)
        if texts is None:
            return _given_sets(items, owner, threads)
        return concatenate([self.chunk_sets(chunk.load(), threads) for chunk in texts.chunks])

    def chunk_sets(self, chunk: TextChunk, threads: int) -> Sets:
        """Return the sets of the documents of a chunk."""
        shingler = self.shingler
        assert shingler is not None
        tasks = [slice(at, min(at + TEXTS, len(chunk))) for at in range(0, len(chunk), TEXTS)]

        if len(tasks) < 2:
            threads = 1  # a thread takes longer to start than a few documents to shingle

        def work(rows: slice) -> Sets:
            offsets = chunk.offsets[rows.start : rows.stop + 1]
            part = TextChunk(chunk.data[offsets[0] : offsets[-1]], offsets - offsets[0])
            sets = shingler.chunk_sets(part, np.arange(len(part)), self.left_out)
            sort_sets(sets.values, sets.offsets)
            return sets

        return concatenate(list(in_order(work, tasks, threads)))

    def keys(self, sets: Sets, threads: int) -> NDArray[np.uint32]:
        """Return the band keys of sets, one row per set."""
        out = np.empty((len(sets), self.banding.b), np.uint32)

        def work(start: int) -> None:
            part = slice(start, min(start + SETS, len(sets)))
            offsets = sets.offsets[part.start : part.stop + 1]
            key_sets(sets.values, offsets, self.minhash.code, self.seeds, self.banding.r, out[part])

        for _ in in_order(work, range(0, len(sets), SETS), threads if len(sets) > SETS else 1):
            pass
        return out

    def batches(self, ids: Any, items: Any, manifest: Manifest, threads: int, owner: str) -> Iterator[ItemBatch]:
        """Check new items, and yield them in parts that fit in one transaction each."""
        documents = self.documents(items, owner)
        whole = None if documents is None else _one_chunk(documents)
        sets = concatenate([]) if whole is not None else _given_sets(items, owner, threads)
        offsets = sets.offsets * 8 if whole is None else whole.offsets
        count, start = len(offsets) - 1, 0
        check_count(ids, count, owner)
        while start < count:
            stop = int(np.searchsorted(offsets, offsets[start] + limits.BATCH_BYTES, side="right")) - 1
            stop = min(count, max(start + 1, stop), start + limits.BATCH_ROWS)
            texts = None
            if whole is not None:
                texts = TextChunk(whole.data, whole.offsets[start : stop + 1])
                some = self.chunk_sets(texts, threads)
            else:
                some = sets.take(np.arange(start, stop))
            make = partial(self._segment, some, texts if self.texts else None, threads)
            yield ItemBatch(stop - start, None if ids is None else ids.slice(start, stop - start), make)
            start = stop

    def _segment(self, sets: Sets, texts: TextChunk | None, threads: int, ids: Any) -> SetSegment:
        """Return the segment of new items."""
        digests = set_digests(sets)
        first = first_equal(digests)
        mine = first == np.arange(len(first))
        units = np.flatnonzero(mine)
        grouping = None
        if len(units) < len(sets):
            grouping = grouped((np.cumsum(mine) - 1)[first], len(units))
            sets, digests = sets.take(units), digests[units]
        keys = self.keys(sets, threads)

        def ordered(band: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
            order, column = radix_sort32(np.ascontiguousarray(keys[:, band]))
            return column, order.astype(np.uint32)

        columns = list(in_order(ordered, range(keys.shape[1]), threads))
        tables: dict[str, Any] = {"bands": tuple(map(np.stack, zip(*columns, strict=True)))}
        if self.containment:
            tables["shingles"] = shingle_table(sets)
        rows = new_rows(ids, make_chunk(sets, ids, texts))
        return SetSegment(units=len(sets), digests=digests, grouping=grouping, **tables, **rows)

    def salvaged(self, chunk: ChunkData, rows: Ints, sets: Callable[[], Sets], threads: int) -> SetSegment:
        """Return a new segment of some rows of an undamaged chunk."""
        texts = chunk.some_texts(rows) if "texts" in chunk.arrays else None
        return self._segment(sets(), texts, threads, chunk.ids(rows))

    def stored(self, segment: SegmentView, threads: int) -> SetSegment:
        """Return a stored segment for merging."""
        rows, array, entry = segment.row_fields(), segment.array, segment.entry
        bands = tuple(array(name).reshape(self.banding.b, -1) for name in ("keys", "sets"))
        shingles = tuple(array(name).reshape(1, -1) for name in ("shingles", "owners"))
        tables: dict[str, Any] = {"bands": bands, "shingles": shingles, "grouping": segment.grouping()}
        return SetSegment(units=entry.units, digests=array("digests").reshape(-1, 2), **tables, **rows)

    def question(
        self, owner: str, where: str, best: int, threshold: float | None, measure: str | None, within: float | None
    ) -> IndexQuestion:
        """Check what is asked for."""
        checks.unused(owner, {"within": (within, None)}, "for documents and sets: give 'threshold'")
        measure = checks.choice(owner, "measure", measure or "jaccard", MEASURES)
        least = self.threshold if threshold is None else checks.threshold(owner, threshold)
        if measure == "containment" and not self.containment:
            raise ParameterError(
                f"The 'measure' parameter of {owner} cannot be 'containment': {where} was not made for it, which is an "
                "option of create."
            )
        if measure == "jaccard" and least < self.threshold:
            rule = f"at least {self.threshold:g}, that of the index: below it, items would be missed"
            raise ParameterError.of(owner, "threshold", rule, threshold)
        return IndexQuestion(measure, least, best)

    def answers(
        self, view: IndexView, items: Any, question: IndexQuestion, ids: Any, owner: str, threads: int
    ) -> ScoredPairs:
        """Return the answers: the number of the query, the row of the index and the similarity, the best first."""
        if ids is None and self.shingler is not None and not self.shingler.by_sets:
            text = items[0] if isinstance(items, list) and len(items) == 1 else items
            if isinstance(text, str):
                return self._similar_to(view, text, question, owner)
        sets = self.sets(items, owner, threads)
        check_count(ids, len(sets), owner)
        return self.similar(view, sets, question, threads)

    def _aim(self, view: IndexView, question: IndexQuestion) -> IndexAim:
        """Return what a kernel looks for."""
        measure = JACCARD if question.measure == "jaccard" else CONTAINMENT
        best = min(question.best, max(1, view.manifest.live))
        return IndexAim(measure, *_fraction(question.limit), best, self.sure)

    def _similar_to(self, view: IndexView, text: str, question: IndexQuestion, owner: str) -> ScoredPairs:
        """Answer one document, in one call of a kernel."""
        shingler = self.shingler
        assert shingler is not None
        try:
            chunk = shingler.prepare(TextChunk.of_text(text))
        except ParameterError as error:
            raise ParameterError(f"{owner}: {error}") from error
        query = view.prepared(question, lambda: self._one_document(view, question, shingler))
        return best_first(in_room(lambda hits, _: query.ask(chunk.data, hits), 0, 1, query.aim))

    def _one_document(self, view: IndexView, question: IndexQuestion, shingler: Shingler) -> _OneDocument:
        """Return what all queries of one document have in common; a shingler of an index has one recipe for all."""
        aim, recipe = self._aim(view, question), shingler.recipe()
        if self.left_out is not None:
            recipe = recipe._replace(common=self.left_out)
        bands, rows = self.banding.b if aim.measure == JACCARD else 0, self.banding.r
        return _OneDocument(aim, (recipe, self.minhash.code, self.seeds, rows, bands, view.laid_out(tables_of), aim))

    def similar(self, view: IndexView, sets: Sets, question: IndexQuestion, threads: int) -> ScoredPairs:
        """Answer queries that are sets, the elements of each in ascending order."""
        aim = self._aim(view, question)
        keys = self.keys(sets, threads) if aim.measure == JACCARD else np.zeros((len(sets), 0), np.uint32)
        return answers_of(IndexQueries(sets.values, sets.offsets, keys), view.laid_out(tables_of), aim, threads)

    def items(self, view: IndexView, rows: Ints) -> list[str]:
        """Return documents as they were added."""
        return [chunk.text(row) for chunk, row in map(view.chunk_at, rows.tolist())]


class _OneDocument:
    """What queries of one document have in common, with the machine code for their types."""

    def __init__(self, aim: IndexAim, shared: tuple[Any, ...]) -> None:
        self.aim, self._shared = aim, shared
        self._entry: Any = None

    def ask(self, data: Any, hits: IndexHits) -> Any:
        """Ask for the answers to a document; return what lookup.answer does."""
        if self._entry is None:
            self._entry = entry_of(answer_document, data, *self._shared, hits)
        return self._entry(data, *self._shared, hits)


def _given_sets(items: Any, owner: str, threads: int) -> Sets:
    """Return the user's own sets, in ascending order."""
    if isinstance(items, Sets):
        check_sets(owner, "items", items)
        values = np.array(items.values).astype(np.uint64)
        if values is items.values:
            values = values.copy()
        sets = Sets(values, np.asarray(items.offsets, np.int64))
    elif isinstance(items, str) or (isinstance(items, list | tuple) and items and isinstance(items[0], str)):
        raise ParameterError(f"{owner}: this index was made for sets, not for documents; give lists of tokens or Sets")
    else:
        made = Sets.from_lists(items, threads=threads)
        sets = Sets(np.array(made.values), made.offsets)
    sort_sets(sets.values, sets.offsets)
    if len(sets.values) > 1:
        same = sets.values[1:] == sets.values[:-1]
        same[sets.offsets[1:-1][(sets.offsets[1:-1] > 0) & (sets.offsets[1:-1] < len(sets.values))] - 1] = False
        if same.any():
            row = int(np.searchsorted(sets.offsets, int(np.argmax(same)), side="right")) - 1
            raise InputError(f"{owner}: set {row} has an element twice; the elements of a set are different")
    return sets


def _one_chunk(texts: Texts) -> TextChunk:
    """Return documents as one chunk."""
    chunks = [chunk.load() for chunk in texts.chunks]
    if not chunks:
        return TextChunk.empty()
    if len(chunks) == 1:
        return chunks[0]
    parts = [chunk.data[chunk.offsets[0] : chunk.offsets[-1]] for chunk in chunks]
    sizes = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    return TextChunk(np.concatenate(parts), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
