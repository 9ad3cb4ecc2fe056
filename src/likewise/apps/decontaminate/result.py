"""The result of `decontaminate`: its tables, the documents that are left, and the folder they are saved to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.cut_documents import CutDocuments
from likewise.apps.decontaminate.item_sets import OWNER, SHORTEST, ItemSets
from likewise.apps.decontaminate.search import DOCUMENT, END_CHARACTER, FIRST_CHARACTER, ITEM, WORDS
from likewise.base.arrays import Ints, strings, to_arrow
from likewise.base.words import counted
from likewise.io.publish import Output
from likewise.io.read.base import Flags

REASONS = ("whole", "most", "long", "short")


@dataclass(frozen=True)
class ItemHits:
    """Runs of words that documents share with items; `search` names the columns of `runs` and `places`.

    documents: how many documents have the rarest window of each run. shares: how much of the item the document has.
    why: a number of `REASONS`. limit: more documents make a phrase frequent. frequent: which items only share those.
    """

    runs: Ints
    places: Ints
    texts: list[bytes]
    documents: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    shares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    why: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    limit: int = 0
    frequent: Flags = field(default_factory=lambda: np.zeros(0, bool))

    def __len__(self) -> int:
        return len(self.runs)

    def some(self, which: NDArray[Any]) -> ItemHits:
        """Return those that flags choose, or those with these numbers, in this order."""
        rows = np.flatnonzero(which) if which.dtype == bool else which
        chosen = {name: getattr(self, name) for name in ("runs", "places", "documents", "shares", "why")}
        taken = {name: values[rows] for name, values in chosen.items() if len(values)}
        return replace(self, texts=[self.texts[row] for row in rows.tolist()], **taken)


class Decontamination(CutDocuments):
    """The result of `decontaminate`: the tables `.hits` and `.tests`, the rows `.kept`, `.stats` and `.save(dir)`.

    hits, a row for each passage of a document and each test set that has the item: test_set; item, its id; column;
    id, of the document; start, end, in characters of the document, the end exclusive; words, how many the passage has;
    item_words, how many the item has; share, how much of the item all rare runs in this document cover; documents, how
    many documents have the rarest window of the passage; items, how many items of the test set have the same words;
    text, of the passage; item_text; why the hit counts: "whole", all words of the item in a row; "most", at least the
    share asked for; "long", 25 words in a row; "short", a whole item of fewer words than `length` that is rare.
    tests, a row for each test set: test_set, items, items_hit, share of the items, items_frequent (found as frequent
    phrases only, which do not count), items_too_short (not looked for), documents with hits.
    """

    owner: ClassVar[str] = OWNER
    files: ClassVar[dict[str, str]] = {"hits.parquet": "hits", "tests.parquet": "tests"}
    outputs: ClassVar[tuple[str, ...]] = (*files, "aside.parquet", "kept")

    def __init__(self, hits: pa.Table, tests: pa.Table, writes: bool, *rest: Any) -> None:
        super().__init__(*rest)
        self.hits = hits
        self.tests = tests
        self._writes = writes

    def _summary(self) -> str:
        counts = self.stats["counts"]
        hit = f"{counts['items_hit']:,} of {counted(counts['items'], 'item')}"
        return f"{hit} in {counts['documents_hit']:,} of {counted(counts['documents'], 'document')}"

    def _tables(self) -> dict[str, Output]:
        return {**super()._tables(), "kept": self._write_kept if self._writes else None}


def hit_table(hits: ItemHits, items: ItemSets, sizes: Ints, names: Any) -> pa.Table:
    """Return the table of hits: each of them for every test set that has the item, with the first one there."""
    owners = Owners.of(items)
    repeats = owners.starts[hits.runs[:, ITEM] + 1] - owners.starts[hits.runs[:, ITEM]]
    rows = np.repeat(np.arange(len(hits)), repeats)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    owner = owners.starts[hits.runs[rows, ITEM]] + nth
    first = owners.firsts[owner].tolist()
    texts, item_texts = _strings(hits.texts), _strings([items.texts[one] for one in hits.runs[rows, ITEM].tolist()])
    return pa.table(
        {
            "test_set": strings([items.names[items.sets[one]] for one in first]),
            "item": strings([items.ids[one] for one in first]),
            "column": strings([items.columns[one] for one in first]),
            "id": names.take(to_arrow(hits.runs[rows, DOCUMENT])),
            "start": to_arrow(hits.places[rows, FIRST_CHARACTER]),
            "end": to_arrow(hits.places[rows, END_CHARACTER]),
            "words": to_arrow(hits.runs[rows, WORDS]),
            "item_words": to_arrow(sizes[hits.runs[rows, ITEM]]),
            "share": to_arrow(hits.shares[rows]),
            "documents": to_arrow(hits.documents[rows]),
            "items": to_arrow(owners.counts[owner]),
            "why": strings([REASONS[one] for one in hits.why[rows].tolist()]),
            "text": texts.take(to_arrow(rows)),
            "item_text": item_texts,
        }
    )


def _strings(texts: list[bytes]) -> Any:
    return pa.array(texts, pa.large_binary()).view(pa.large_string())


def set_table(hits: ItemHits, items: ItemSets, sizes: Ints) -> pa.Table:
    """Return the table of test sets: how many items each has, how many of them are in documents, and in how many."""
    count = len(items.names)
    sets, texts = np.array(items.sets, np.int64), np.array(items.text_of, np.int64)
    hit = np.zeros(len(sizes), bool)
    hit[hits.runs[:, ITEM]] = True
    numbers = np.bincount(sets, minlength=count)
    items_hit = np.bincount(sets[hit[texts]], minlength=count)
    documents = [0] * count
    for number in range(count):
        here = np.zeros(len(sizes), bool)
        here[texts[sets == number]] = True
        documents[number] = len(np.unique(hits.runs[here[hits.runs[:, ITEM]], DOCUMENT]))
    return pa.table(
        {
            "test_set": strings(items.names),
            "items": to_arrow(numbers),
            "items_hit": to_arrow(items_hit),
            "share": to_arrow(items_hit / np.maximum(numbers, 1)),
            "items_frequent": to_arrow(np.bincount(sets[hits.frequent[texts]], minlength=count)),
            "items_too_short": to_arrow(np.bincount(sets[sizes[texts] < SHORTEST], minlength=count)),
            "documents": to_arrow(np.array(documents, np.int64)),
        }
    )


@dataclass(frozen=True)
class Owners:
    """The test sets that have each text: from starts[text] on, the first of its items there and how many there are."""

    starts: Ints
    firsts: Ints
    counts: Ints

    @classmethod
    def of(cls, items: ItemSets) -> Owners:
        """Find them."""
        keys = np.array(items.text_of, np.int64) * len(items.names) + np.array(items.sets, np.int64)
        pairs, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
        starts = np.searchsorted(pairs // max(1, len(items.names)), np.arange(len(items.texts) + 1))
        return cls(starts, firsts, counts)
