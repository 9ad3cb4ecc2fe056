"""Candidate pairs of a large corpus to verified pairs: tasks decide where documents meet, and no pair goes through the
driver.

Every document hears of its candidates. A pair goes to the place that is named after the lowest document of which its
first one has heard, or which it is. Documents that are all candidates of each other so meet in one place, each sent
there once; others may be sent to several. A document with very many candidates has several places, one for each block
of them.

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
from likewise.spark.comparison import PairComparison, SlotComparison
from likewise.spark.corpus import Corpus, file_keys, numbered
from likewise.spark.direct import PLACES, TEXT, FileSplit, split_documents
from likewise.spark.exchange import KIND, ROWS, SCHEMA, Outbox, addresses, collected, nothing, opened, parcel, shuffled
from likewise.spark.large_pairs import LargePairs
from likewise.spark.rowset import RowSet
from likewise.spark.steps import scattered
from likewise.spark.store import Checkpoints
from likewise.spark.travel import Arrived, Journeys, schema_of, tasks_for, with_documents, with_numbers

ENTRY, MET, NODE, COUNT, JOURNEY = range(30, 35)
"""Kinds of parcels: a document and a candidate of it; a pair, of which the second row is followed by the word of its
place; a document with a candidate; how many pairs and documents there are; a document and the number of its task."""
BLOCK = 2048
"""Candidates of a document for which there is one place; a place so has four million pairs at most, or few more."""


@dataclass(frozen=True)
class Meetings:
    """Which documents meet in which place, on the cluster; the number of pairs, and of documents."""

    frame: Any
    pairs: int
    documents: int

    @property
    def met(self) -> Any:
        """The pairs."""
        return self.frame.where(f"{KIND} = {MET}")


def meet(corpus: Corpus, candidates: Any, checkpoints: Checkpoints) -> Meetings:
    """Give each candidate pair a place, and count it once."""

    def make() -> Any:
        entries = int(candidates.selectExpr(f"coalesce(sum(length({ROWS})), 0)").first()[0]) // 8
        parts = exchange.partitions(corpus.session, 2 * entries)
        sent = candidates.mapInArrow(partial(_introduced, targets=addresses(parts)), SCHEMA)
        return shuffled(sent, parts).mapInArrow(_placed, SCHEMA)

    frame = checkpoints.frame("meetings", make)
    pairs, documents = collected(frame.where(f"{KIND} = {COUNT}").toArrow()).get(COUNT, nothing())
    return Meetings(frame, int(pairs.sum()), int(documents.sum()))


def verify_met(
    corpus: Corpus, met: Meetings, comparison: PairComparison, checkpoints: Checkpoints, sketches: Any
) -> LargePairs:
    """Return the pairs that count, on the cluster; signatures are in the sketches."""

    def make() -> Any:
        parts, schema = tasks_for(corpus, comparison, met.pairs, met.documents), schema_of(comparison)
        targets = addresses(parts)
        pairs = met.met.mapInArrow(partial(_sent_pairs, targets=targets, kind=comparison.kind), schema)
        if isinstance(comparison, SlotComparison) or corpus.splits is None:
            documents = _through_homes(corpus, met, comparison, targets, sketches)
        else:
            documents = _from_files(corpus, corpus.splits, met, targets, schema)
        whole = shuffled(documents.unionAll(pairs), parts)
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


def _placed(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the pairs of which a task has the first document, with their places."""
    nodes, others = opened(batches).get(ENTRY, nothing())
    if not len(nodes):
        return
    left, right, place, documents = placed(nodes, others.view(np.int64))
    yield from parcel(0, MET, left, np.stack([right.view(np.uint64), place], axis=1).ravel())
    yield from parcel(0, NODE, documents, documents.view(np.uint64))
    yield from parcel(0, COUNT, np.array([len(left)]), np.array([len(documents)], np.uint64))


def placed(nodes: Ints, others: Ints) -> tuple[Ints, Ints, Hashes, Ints]:
    """Return each pair once, by the task of its first document, with the word of its place; and all documents here.

    nodes, others: documents and one candidate of each, in any order, several times or once.
    """
    order = np.lexsort((others, nodes))
    nodes, others = nodes[order], others[order]
    new = np.concatenate([[True], (nodes[1:] != nodes[:-1]) | (others[1:] != others[:-1])])
    nodes, others = nodes[new], others[new]
    first = np.flatnonzero(np.concatenate([[True], nodes[1:] != nodes[:-1]]))
    degree = np.diff(np.append(first, len(nodes)))
    least = np.minimum(nodes[first], others[first]).view(np.uint64)
    blocks = np.left_shift(1, np.ceil(np.log2(np.maximum(1, degree / BLOCK))).astype(np.int64)).astype(np.uint64)
    up = others > nodes
    of = np.repeat(np.arange(len(first)), degree)[up]
    left, right, blocks = nodes[up], others[up], blocks[of]
    here, there = (mix(side.view(np.uint64)) % blocks for side in (left, right))
    place = np.where(blocks > 1, mix(least[of]) + here * blocks + there, least[of])
    return left, right, place, nodes[first]


def _sent_pairs(batches: Iterator[Any], targets: Any, kind: str) -> Iterator[Any]:
    """Send pairs to their places."""
    outbox = Outbox(targets, MET)
    for batch in batches:
        left, words = opened([batch]).get(MET, nothing())
        for sent in outbox.add(scattered(words[1::2], len(targets)), left, words[0::2]):
            yield with_numbers(sent, kind)
    for sent in outbox.sent():
        yield with_numbers(sent, kind)


def _ends(batch: Any, parts: int) -> tuple[Ints, Ints]:
    """Return the documents of pairs, and the number of the task of each."""
    left, words = opened([batch]).get(MET, nothing())
    tasks = scattered(words[1::2], parts)
    rows, tasks = np.concatenate([left, words[0::2].view(np.int64)]), np.concatenate([tasks, tasks])
    return _different(rows, tasks)


def _different(rows: Ints, tasks: Ints) -> tuple[Ints, Ints]:
    """Return journeys once each, sorted."""
    order = np.lexsort((tasks, rows))
    rows, tasks = rows[order], tasks[order]
    new = np.concatenate([[True], (rows[1:] != rows[:-1]) | (tasks[1:] != tasks[:-1])])[: len(rows)]
    return rows[new], tasks[new]


def _from_files(corpus: Corpus, splits: tuple[FileSplit, ...], met: Meetings, targets: Any, schema: str) -> Any:
    """Return documents on their way: each task reads those of its split that it is told of."""
    homes = addresses(len(splits))
    starts = np.array([(split.part << PLACES) + split.first for split in splits])
    numbering, known = corpus.shared_numbering, corpus.broadcast(splits)
    told = met.met.mapInArrow(
        partial(_told, numbering=numbering, starts=starts, homes=homes, parts=len(targets)), SCHEMA
    )
    reading = partial(_read, numbering=numbering, splits=known, starts=starts, targets=targets)
    return shuffled(told, len(splits)).mapInArrow(reading, schema)


def _told(batches: Iterator[Any], numbering: Any, starts: Ints, homes: Any, parts: int) -> Iterator[Any]:
    """Tell the tasks that read documents where these go."""
    outbox = Outbox(homes, JOURNEY)
    for batch in batches:
        rows, tasks = _ends(batch, parts)
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
            yield with_documents(home, rows[chosen], values.take(to_arrow(chosen)))


def _home(rows: Ints, homes: Any) -> Ints:
    return scattered(rows.view(np.uint64), len(homes))


def _through_homes(corpus: Corpus, met: Meetings, comparison: PairComparison, targets: Any, sketches: Any) -> Any:
    """Return documents on their way, after they have met the places they go to."""
    schema = schema_of(comparison)
    nodes = met.frame.where(f"{KIND} = {NODE}")
    route = corpus.broadcast(Homeward(RowSet(len(corpus), exchange.parcel_rows(nodes)), targets))
    if isinstance(comparison, SlotComparison):
        sender = partial(travel.sent_slots, slots=comparison.slots, route=route)
        documents = sketches.select("rows", "units", "keys").mapInArrow(sender, schema)
    else:
        sender = partial(travel.sent_texts, numbering=corpus.shared_numbering, route=route)
        documents = corpus.map_texts(sender, schema)
    told = met.met.mapInArrow(partial(_called, homes=targets, kind=comparison.kind), schema)
    return shuffled(documents.unionAll(told), len(targets)).mapInArrow(partial(_forwarded, targets=targets), schema)


def _called(batches: Iterator[Any], homes: Any, kind: str) -> Iterator[Any]:
    """Tell the homes of documents where these go."""
    outbox = Outbox(homes, JOURNEY)
    for batch in batches:
        rows, tasks = _ends(batch, len(homes))
        for sent in outbox.add(_home(rows, homes), rows, tasks.astype(np.uint64)):
            yield with_numbers(sent, kind)
    for sent in outbox.sent():
        yield with_numbers(sent, kind)


def _forwarded(batches: Iterator[Any], targets: Any) -> Iterator[Any]:
    """Send documents from their home to their tasks."""
    here = Arrived.of(batches)
    route = Journeys(*_different(here.left, here.right), targets)
    for rows, values in here.documents:
        yield from route.sent(rows, values)
