"""Equal documents and equal sets: digests are shuffled, once for each task and digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow.compute as pc

from likewise.base.arrays import Hashes, Ints
from likewise.spark import steps
from likewise.spark.corpus import Corpus, among, numbered
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
    def of(cls, corpus: Corpus, step: str, make: Callable[[], Any], checkpoints: Checkpoints) -> RowLinks:
        """Do a step that finds links; bring them to the driver if the corpus is small enough for that."""
        if not corpus.large:
            found = collected(checkpoints.table(step, make))
            rows, first = found.get(LINK, nothing())
            here = Repeated.of(rows, first.view(np.int64))
            return cls(RowSet(len(corpus), [here.rows]), here, None, _empty(corpus, found))
        frame = checkpoints.frame(step, make)
        known = RowSet(len(corpus), parcel_rows(frame.where(f"{KIND} = {LINK}")))
        return cls(known, None, frame, _empty(corpus, collected(frame.where(f"{KIND} = {EMPTY}").toArrow())))


def _empty(corpus: Corpus, found: dict[int, tuple[Ints, Hashes]]) -> Ints:
    empty = found.get(EMPTY, nothing())[0]
    sides = [empty[empty < corpus.split], empty[empty >= corpus.split]]
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

    def make() -> Any:
        parts = partitions(corpus.session, len(corpus))
        sender = partial(
            _digested,
            numbering=corpus.shared_numbering,
            split=corpus.split,
            earlier=corpus.earlier,
            targets=addresses(parts),
        )
        return shuffled(corpus.facts.mapInArrow(sender, SCHEMA), parts).mapInArrow(_linked, SCHEMA)

    return RowLinks.of(corpus, "copies", make, checkpoints)


def _unpacked(rows: Ints, digests: Any) -> tuple[Ints, Hashes]:
    """Return the rows and the digests of a column whose values have one digest of 16 bytes or several: then those of
    rows that follow each other, of which `rows` has the first."""
    counts = np.asarray(pc.binary_length(digests), np.int64) // 16
    begins = np.cumsum(counts) - counts
    words: Hashes = np.frombuffer(b"".join(digests.to_pylist()), np.uint64).reshape(-1, 2)
    return np.repeat(rows - begins, counts) + np.arange(len(words)), words


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


def _linked(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the links of the rows that meet in a task, and those that were found before."""
    found = opened(batches)
    rows, words = found.get(ENTRY, nothing())
    first = steps.first_rows(rows, words.reshape(-1, 2)) if len(rows) else rows
    again = rows != first
    yield from parcel(0, LINK, rows[again], first[again].view(np.uint64))
    for kind in (LINK, EMPTY):
        yield from parcel(0, kind, *found.get(kind, nothing()))


def find_groups(corpus: Corpus, sketches: Any, checkpoints: Checkpoints) -> RowLinks:
    """Find the rows whose sets equal that of an earlier one, and the first rows that are empty, one a side."""

    def make() -> Any:
        parts = partitions(corpus.session, len(corpus))
        sender = partial(_units, split=corpus.split, targets=addresses(parts))
        return shuffled(sketches.select("rows", "units").mapInArrow(sender, SCHEMA), parts).mapInArrow(_linked, SCHEMA)

    return RowLinks.of(corpus, "groups", make, checkpoints)


def _units(batches: Iterator[Any], split: int, targets: Any) -> Iterator[Any]:
    """Send the fingerprints of the sets of a task."""
    ready()
    rows, units = [], []
    for batch in batches:
        for row, unit in zip(batch.column(0), batch.column(1), strict=True):
            rows.append(np.frombuffer(row.as_buffer(), np.int64))
            units.append(np.frombuffer(unit.as_buffer(), np.uint64).reshape(-1, 2))
    if not rows:
        return
    numbers, digests = np.concatenate(rows), np.concatenate(units)
    empty = numbers[~(digests != 0).any(axis=1)]
    for side in (empty[empty < split], empty[empty >= split]):
        if len(side):
            lowest = np.array([side.min()])
            yield from parcel(int(targets[0]), EMPTY, lowest, lowest.view(np.uint64))
    yield from sent_digests(numbers, digests, split, targets)
