"""Candidate pairs of a large corpus to verified pairs: tasks decide where documents meet, and no pair goes through the
driver.

Every document hears of its candidates. A pair goes to the place that is named after the lowest document of which its
first one has heard, or which it is. Documents that are all candidates of each other so meet in one place, each sent
there once; others may be sent to several. Of the documents of each place a sample comes to the driver. It tells how
many tasks there should be, and which places are crowded: their pairs are divided into blocks.

The documents then need to know where to go. If tasks read them from files, each place is told to the task that reads
the document. Otherwise documents and places are shuffled to meet, and documents travel twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.base.random import mix
from likewise.spark import exchange, travel
from likewise.spark.bands import PAIR
from likewise.spark.corpus import Corpus, file_keys, numbered
from likewise.spark.direct import PLACES, TEXT, FileSplit, split_documents
from likewise.spark.exchange import KIND, ROWS, SCHEMA, Outbox, addresses, collected, nothing, opened, parcel, shuffled
from likewise.spark.large_pairs import LargePairs
from likewise.spark.rowset import RowSet
from likewise.spark.steps import scattered
from likewise.spark.store import Checkpoints
from likewise.spark.travel import (
    Arrived,
    Journeys,
    PairComparison,
    SlotComparison,
    mean_size,
    tasks_for,
    with_documents,
    with_numbers,
)

ENTRY, MET, NODE, COUNT, SAMPLE, JOURNEY = range(30, 36)
"""Kinds of parcels: a document and a candidate of it; a pair, of which the second row is followed by the place; a
document with a candidate; how many pairs and documents there are; a hash of a document and its place, with the place,
of some of them; a document and the number of its task."""
RATE = 256
"""One in so many documents of places is in the sample."""
MOST = 2048
"""Documents of one side of a block, about, so that it has four million pairs; fewer if they are long, so that
a block has as many bytes as a task should get."""
LEAST = 16
"""Documents of one side of a block, at least, however long they are."""
SALT = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Meetings:
    """Which documents meet in which place, on the cluster; the number of pairs, and of documents.

    sample: the places of some of the documents of places, each as often as it has one.
    """

    frame: Any
    pairs: int
    documents: int
    sample: Hashes

    @property
    def met(self) -> Any:
        """The pairs."""
        return self.frame.where(f"{KIND} = {MET}")


@dataclass(frozen=True)
class CrowdedPlaces:
    """Places of too many documents for one task, ascending, and into how many blocks their documents are divided."""

    places: Hashes
    blocks: Hashes
    journeys: int

    @classmethod
    def of(cls, sample: Hashes, most: int) -> CrowdedPlaces:
        """Return those of more than about twice so many documents. journeys: how often documents travel in all."""
        places, counts = np.unique(sample, return_counts=True)
        documents = counts * RATE
        crowded = documents > 2 * most
        blocks = -(-documents[crowded] // most)
        journeys = int(documents.sum() + (documents[crowded] * (blocks - 1)).sum())
        return cls(places[crowded], blocks.astype(np.uint64), journeys)

    def divided(self, left: Ints, right: Ints, places: Hashes) -> Hashes:
        """Return words for the places of pairs: those of a crowded one have a word for each two blocks."""
        if not len(self.places):
            return places
        at = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        crowded = self.places[at] == places
        blocks = self.blocks[at]
        here, there = (mix(side.view(np.uint64)) % blocks for side in (left, right))
        return np.where(crowded, mix(places ^ SALT) + here * blocks + there, places)


def meet(corpus: Corpus, candidates: Any, checkpoints: Checkpoints) -> Meetings:
    """Give each candidate pair a place, and count it once."""

    def make() -> Any:
        entries = int(candidates.selectExpr(f"coalesce(sum(length({ROWS})), 0)").first()[0]) // 8
        parts = exchange.partitions(corpus.session, 2 * entries)
        sent = candidates.mapInArrow(partial(_introduced, targets=addresses(parts)), SCHEMA)
        return shuffled(sent, parts).mapInArrow(partial(_placed, rate=RATE), SCHEMA)

    frame = checkpoints.frame("meetings", make)
    found = collected(checkpoints.kinds("meetings", (COUNT, SAMPLE)))
    pairs, documents = found.get(COUNT, nothing())
    hashes, places = found.get(SAMPLE, nothing())
    _, first = np.unique(hashes, return_index=True)
    return Meetings(frame, int(pairs.sum()), int(documents.sum()), places[first])


def verify_met(
    corpus: Corpus, met: Meetings, comparison: PairComparison, checkpoints: Checkpoints, sketches: Any
) -> LargePairs:
    """Return the pairs that count, on the cluster; signatures are in the sketches."""

    def make() -> Any:
        size = mean_size(corpus, comparison)
        crowded = CrowdedPlaces.of(met.sample, max(LEAST, min(MOST, travel.PER_TASK // size)))
        targets = addresses(tasks_for(corpus, met.pairs, max(met.documents, crowded.journeys) * size))
        sending = partial(_sent_pairs, targets=targets, crowded=crowded)
        if isinstance(comparison, SlotComparison) or corpus.splits is None:
            documents = _through_homes(corpus, met, comparison, targets, crowded, sketches)
        else:
            documents = _from_files(corpus, corpus.splits, met, targets, crowded)
        whole = shuffled(documents.unionAll(met.met.mapInArrow(sending, travel.SCHEMA)), len(targets))
        return whole.mapInArrow(partial(travel.compared, task=corpus.broadcast(comparison)), SCHEMA)

    return LargePairs(checkpoints.frame("verify", make))


def _introduced(batches: Iterator[Any], targets: Any) -> Iterator[Any]:
    """Tell both documents of a pair of each other."""
    outbox = Outbox(targets, ENTRY)
    for batch in batches:
        left, right = opened([batch]).get(PAIR, nothing())
        for nodes, others in ((left.view(np.uint64), right), (right, left.view(np.uint64))):
            yield from outbox.add(scattered(nodes, len(targets)), nodes.view(np.int64), others)
    yield from outbox.sent()


def _placed(batches: Iterator[Any], rate: int) -> Iterator[Any]:
    """Yield the pairs of which a task has the first document, with their places."""
    nodes, others = opened(batches).get(ENTRY, nothing())
    if not len(nodes):
        return
    left, right, place, documents = placed(nodes, others.view(np.int64))
    yield from parcel(0, MET, left, np.stack([right.view(np.uint64), place], axis=1).ravel())
    yield from parcel(0, NODE, documents, documents.view(np.uint64))
    yield from parcel(0, COUNT, np.array([len(left)]), np.array([len(documents)], np.uint64))
    yield from parcel(0, SAMPLE, *sampled(np.concatenate([left, right]), np.concatenate([place, place]), rate))


def placed(nodes: Ints, others: Ints) -> tuple[Ints, Ints, Hashes, Ints]:
    """Return each pair once, with its place, in the task of its first document; and all documents here.

    nodes, others: documents and one candidate of each, in any order, several times or once.
    """
    order = np.lexsort((others, nodes))
    nodes, others = nodes[order], others[order]
    new = np.concatenate([[True], (nodes[1:] != nodes[:-1]) | (others[1:] != others[:-1])])
    nodes, others = nodes[new], others[new]
    first = np.flatnonzero(np.concatenate([[True], nodes[1:] != nodes[:-1]]))
    least = np.minimum(nodes[first], others[first]).view(np.uint64)
    up = others > nodes
    of = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(nodes))))[up]
    return nodes[up], others[up], least[of], nodes[first]


def sampled(rows: Ints, places: Hashes, rate: int) -> tuple[Ints, Hashes]:
    """Return hashes of documents and their places, of one in so many of them, once each, and the places."""
    hashes = mix(mix(rows.view(np.uint64) ^ SALT) + places)
    chosen = np.flatnonzero(hashes % np.uint64(rate) == 0)
    different, first = np.unique(hashes[chosen], return_index=True)
    return different.view(np.int64), places[chosen][first]


def _words(batch: Any, crowded: CrowdedPlaces) -> tuple[Ints, Ints, Hashes]:
    """Return pairs, and the words of the places where they meet."""
    left, words = opened([batch]).get(MET, nothing())
    right = words[0::2].view(np.int64)
    return left, right, crowded.divided(left, right, words[1::2])


def _sent_pairs(batches: Iterator[Any], targets: Any, crowded: CrowdedPlaces) -> Iterator[Any]:
    """Send pairs to their places."""
    outbox = Outbox(targets, MET)
    for batch in batches:
        left, right, words = _words(batch, crowded)
        for sent in outbox.add(scattered(words, len(targets)), left, right.view(np.uint64)):
            yield with_numbers(sent)
    for sent in outbox.sent():
        yield with_numbers(sent)


def _ends(batch: Any, parts: int, crowded: CrowdedPlaces) -> tuple[Ints, Ints]:
    """Return the documents of pairs, and the number of the task of each."""
    left, right, words = _words(batch, crowded)
    tasks = scattered(words, parts)
    return _different(np.concatenate([left, right]), np.concatenate([tasks, tasks]))


def _different(rows: Ints, tasks: Ints) -> tuple[Ints, Ints]:
    """Return journeys once each, sorted."""
    order = np.lexsort((tasks, rows))
    rows, tasks = rows[order], tasks[order]
    new = np.concatenate([[True], (rows[1:] != rows[:-1]) | (tasks[1:] != tasks[:-1])])[: len(rows)]
    return rows[new], tasks[new]


def _from_files(
    corpus: Corpus, splits: tuple[FileSplit, ...], met: Meetings, targets: Any, crowded: CrowdedPlaces
) -> Any:
    """Return documents on their way: each task reads those of its split that it is told of."""
    homes = addresses(len(splits))
    starts = np.array([(split.part << PLACES) + split.first for split in splits])
    numbering, known = corpus.shared_numbering, corpus.broadcast(splits)
    told = met.met.mapInArrow(
        partial(_told, numbering=numbering, starts=starts, homes=homes, parts=len(targets), crowded=crowded), SCHEMA
    )
    reading = partial(_read, numbering=numbering, splits=known, starts=starts, targets=targets)
    return shuffled(told, len(splits)).mapInArrow(reading, travel.SCHEMA)


def _told(
    batches: Iterator[Any], numbering: Any, starts: Ints, homes: Any, parts: int, crowded: CrowdedPlaces
) -> Iterator[Any]:
    """Tell the tasks that read documents where these go."""
    outbox = Outbox(homes, JOURNEY)
    for batch in batches:
        rows, tasks = _ends(batch, parts, crowded)
        split = np.searchsorted(starts, file_keys(numbering.value, rows), side="right") - 1
        yield from outbox.add(split, rows, tasks.astype(np.uint64))
    yield from outbox.sent()


def _read(batches: Iterator[Any], numbering: Any, splits: Any, starts: Ints, targets: Any) -> Iterator[Any]:
    """Read the documents of a split that are wanted somewhere, and send them there."""
    rows, words = opened(batches).get(JOURNEY, nothing())
    if not len(rows):
        return
    rows, tasks = _different(rows, words.astype(np.int64))
    plan = Journeys(rows, tasks, targets)
    wanted = np.unique(file_keys(numbering.value, rows))
    split = splits.value[int(np.searchsorted(starts, wanted[0], side="right")) - 1]
    for batch in split_documents(split, wanted):
        found, rest = numbered(batch, numbering.value)
        yield from plan.sent(found, rest.column(rest.schema.get_field_index(TEXT)))


@dataclass(frozen=True)
class Homeward:
    """Documents with a candidate on their way to the task that knows where they go; their numbers say which it is."""

    known: RowSet
    homes: Any

    def wanted(self, rows: Ints) -> NDArray[np.bool_]:
        """Tell which rows have a candidate."""
        return self.known.has(rows)

    def sent(self, rows: Ints, values: Any) -> Iterator[Any]:
        """Yield what travels of these rows."""
        chosen = np.flatnonzero(self.known.has(rows))
        if len(chosen):
            home = self.homes[_home(rows[chosen], self.homes)]
            yield from with_documents(home, rows[chosen], values.take(to_arrow(chosen)))


def _home(rows: Ints, homes: Any) -> Ints:
    return scattered(rows.view(np.uint64), len(homes))


def _through_homes(
    corpus: Corpus, met: Meetings, comparison: PairComparison, targets: Any, crowded: CrowdedPlaces, sketches: Any
) -> Any:
    """Return documents on their way, after they have met the places they go to."""
    nodes = met.frame.where(f"{KIND} = {NODE}")
    route = corpus.broadcast(Homeward(RowSet(len(corpus), exchange.parcel_rows(nodes)), targets))
    if isinstance(comparison, SlotComparison):
        sender = partial(travel.sent_slots, slots=comparison.slots, route=route)
        documents = sketches.select("rows", "units", "slots").mapInArrow(sender, travel.SCHEMA)
    else:
        sender = partial(travel.sent_texts, numbering=corpus.shared_numbering, route=route)
        documents = corpus.map_texts(sender, travel.SCHEMA)
    told = met.met.mapInArrow(partial(_called, homes=targets, crowded=crowded), travel.SCHEMA)
    return shuffled(documents.unionAll(told), len(targets)).mapInArrow(
        partial(_forwarded, targets=targets), travel.SCHEMA
    )


def _called(batches: Iterator[Any], homes: Any, crowded: CrowdedPlaces) -> Iterator[Any]:
    """Tell the homes of documents where these go."""
    outbox = Outbox(homes, JOURNEY)
    for batch in batches:
        rows, tasks = _ends(batch, len(homes), crowded)
        for sent in outbox.add(_home(rows, homes), rows, tasks.astype(np.uint64)):
            yield with_numbers(sent)
    for sent in outbox.sent():
        yield with_numbers(sent)


def _forwarded(batches: Iterator[Any], targets: Any) -> Iterator[Any]:
    """Send documents from their home to their tasks."""
    here = Arrived.of(batches)
    route = Journeys(*_different(here.left, here.right), targets)
    for rows, values in here.documents:
        yield from route.sent(rows, values)
