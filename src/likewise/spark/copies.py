"""Equal documents and equal sets: their digests meet on the driver or, of a large corpus, are shuffled, once for each
task and digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.search.prepare import with_sides
from likewise.spark import steps
from likewise.spark.corpus import Corpus, among, numbered, unpacked
from likewise.spark.exchange import (
    KIND,
    SCHEMA,
    Outbox,
    addresses,
    collected,
    nothing,
    opened,
    parcel,
    parcel_rows,
    partitions,
    shuffled,
)
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.source import DIGEST
from likewise.spark.store import Checkpoints

ENTRY, LINK, EMPTY = 0, 1, 2
"""Kinds of parcels: a row and its digest; a row and the first row that equals it; a row without any shingle."""
LINKS = 1 << 16
"""RowLinks that go to one task together; those of a document with very many copies go to several."""
SIDE = np.uint64(0xC2B2AE3D27D4EB4F)
"""Makes the digests of a second collection differ from those of the first (as `prepare.with_sides`)."""


@dataclass(frozen=True)
class Repeated:
    """Rows that repeat an earlier one, ascending, and the first row that each of them repeats."""

    rows: Ints
    first: Ints

    @classmethod
    def of(cls, rows: Ints, first: Ints) -> Repeated:
        """Return links in order; the target of a link may itself be linked, to a row that is not."""
        order = np.argsort(rows, kind="stable")
        known = cls(rows[order], first[order])
        return cls(known.rows, known.resolved(known.first))

    def resolved(self, rows: Ints) -> Ints:
        """Return for each row the first one that it repeats, or itself."""
        out = rows.copy()
        here = among(rows, self.rows)
        out[here] = self.first[np.searchsorted(self.rows, rows[here])]
        return out


@dataclass(frozen=True)
class RowLinks:
    """The rows that repeat an earlier one: as a set; and beside the first row of each, either here or on the cluster.

    empty: the first rows without any shingle, one a side, where that is known.
    """

    rows: RowSet
    here: Repeated | None
    frame: Any
    empty: Ints

    @property
    def repeated(self) -> Repeated:
        """The links, brought to the driver."""
        if self.here is not None:
            return self.here
        rows, first = collected(self.frame.where(f"{KIND} = {LINK}").toArrow()).get(LINK, nothing())
        return Repeated.of(rows, first.view(np.int64))

    @classmethod
    def among(cls, corpus: Corpus, rows: Ints, digests: Hashes) -> RowLinks:
        """Link rows, which ascend, by their digests; those of sets without a shingle are 0."""
        empty = _lowest(corpus.split, rows[~(digests != 0).any(axis=1)])
        first = steps.first_rows(rows, with_sides(digests, rows, corpus.sides))
        again = rows != first
        here = Repeated(rows[again], first[again])
        return cls(RowSet(len(corpus), [here.rows]), here, None, empty)

    @classmethod
    def of(cls, corpus: Corpus, step: str, make: Callable[[], Any], checkpoints: Checkpoints) -> RowLinks:
        """Do a step that finds links, which remain on the cluster."""
        frame = checkpoints.frame(step, make)
        known = RowSet(len(corpus), parcel_rows(frame.where(f"{KIND} = {LINK}")))
        found = collected(frame.where(f"{KIND} = {EMPTY}").toArrow())
        return cls(known, None, frame, _lowest(corpus.split, found.get(EMPTY, nothing())[0]))


def _lowest(split: int, rows: Ints) -> Ints:
    """Return the lowest row of each side."""
    sides = rows[rows < split], rows[rows >= split]
    return np.array([side.min() for side in sides if len(side)], np.int64)


class FirstRows:
    """The rows that repeat no earlier one, as an array that is not made: its length, and its entries at some places."""

    def __init__(self, repeated: RowSet) -> None:
        self._repeated = repeated

    def __len__(self) -> int:
        return self._repeated.total - len(self._repeated)

    def __getitem__(self, places: Ints) -> Ints:
        return self._repeated.others(places)

    def place(self, rows: Ints) -> Ints:
        """Return the place of each of these rows."""
        return rows - self._repeated.before(rows)


def find_copies(corpus: Corpus, checkpoints: Checkpoints) -> RowLinks:
    """Find the rows that are byte for byte an earlier one."""
    if not corpus.large:
        return RowLinks.among(corpus, *_held_digests(corpus, checkpoints))

    def make() -> Any:
        parts = partitions(corpus.session, len(corpus))
        sender = partial(
            _digested,
            numbering=corpus.shared_numbering,
            split=corpus.split,
            earlier=corpus.earlier,
            targets=addresses(parts),
        )
        return shuffled(corpus.facts.mapInArrow(sender, SCHEMA), parts).mapInArrow(linked, SCHEMA)

    return RowLinks.of(corpus, "copies", make, checkpoints)


def _held_digests(corpus: Corpus, checkpoints: Checkpoints) -> tuple[Ints, Hashes]:
    """Bring the digests of new documents to the driver; rows ascend."""
    rows, digests = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.uint64)]
    for first, values in corpus.noted(DIGEST, checkpoints, corpus.earlier):
        numbers, words = _unpacked(first, values)
        rows.append(numbers)
        digests.append(words)
    numbers, found = np.concatenate(rows), np.concatenate(digests)
    order = np.argsort(numbers, kind="stable")
    return numbers[order], found[order]


def _unpacked(rows: Ints, digests: Any) -> tuple[Ints, Hashes]:
    """Return the rows and the digests of a column whose values have one digest of 16 bytes or several: then those of
    rows that follow each other, of which `rows` has the first."""
    numbers, words = unpacked(rows, digests, 16)
    return numbers, words.view(np.uint64).reshape(-1, 2)


def _digested(batches: Iterator[Any], numbering: Any, split: int, earlier: int, targets: Any) -> Iterator[Any]:
    """Send the digests of the documents of a task; those of earlier runs are no copies."""
    ready()
    rows: list[Ints] = []
    digests: list[Hashes] = []
    for batch in batches:
        first, rest = numbered(batch, numbering.value)
        numbers, words = _unpacked(first, rest.column(0))
        new = numbers >= earlier
        rows.append(numbers[new])
        digests.append(words[new])
    if sum(map(len, rows)):
        yield from sent_digests(np.concatenate(rows), np.concatenate(digests), split, targets)


def sent_digests(rows: Ints, digests: Hashes, split: int, targets: Any) -> Iterator[Any]:
    """Yield the parcels of a task: links for rows that repeat another one here, entries for all others."""
    if split:
        digests = digests.copy()
        digests[rows >= split] ^= SIDE
    first = steps.first_rows(rows, digests)
    again = rows != first
    if again.any():
        links, known = rows[again], first[again].view(np.uint64)
        for number, start in enumerate(range(0, len(links), LINKS)):
            target = int(targets[(int(rows[0]) + number) % len(targets)])
            yield from parcel(target, LINK, links[start : start + LINKS], known[start : start + LINKS])
    rows, digests = rows[~again], digests[~again]
    outbox = Outbox(targets, ENTRY, 2)
    yield from outbox.add(steps.scattered(digests[:, 0], len(targets)), rows, digests.ravel())
    yield from outbox.sent()


def linked(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the links of the rows that meet in a task, and those that were found before."""
    found = opened(batches)
    rows, words = found.get(ENTRY, nothing())
    first = steps.first_rows(rows, words.reshape(-1, 2)) if len(rows) else rows
    again = rows != first
    yield from parcel(0, LINK, rows[again], first[again].view(np.uint64))
    for kind in (LINK, EMPTY):
        yield from parcel(0, kind, *found.get(kind, nothing()))
