"""Pairs of vectors on the cluster: bits in one map, buckets of all tables in one shuffle, candidates compared exactly.

The plan, the bits and the tables are those of the local engine. A vector goes to each task that has one of its buckets,
with all of its bits; so a task sees which pairs met in an earlier table, and each pair is sent once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from likewise.base.arrays import Hashes, Ints
from likewise.base.runlog import RunLog
from likewise.kernels.hashtable import TABLE_ODD
from likewise.kernels.vector_tables import meet, pairs_across, table_keys
from likewise.search.scored import ScoredPairs
from likewise.search.vectors.plan import COMPARE, COMPONENT, LOOK, VERIFY, Plan
from likewise.search.vectors.tables import PAIRS, PROBED, Overrun, kept
from likewise.spark import steps
from likewise.spark.corpus import Corpus, numbered
from likewise.spark.direct import TEXT
from likewise.spark.exchange import SCHEMA, Outbox, addresses, collected, nothing, opened, parcel, partitions, shuffled
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.store import Checkpoints
from likewise.spark.vector_input import VectorForm

BITS = "rows binary, words binary"
"""The bits of the vectors of a batch."""
ENTRY, SIGNATURE, PAIR, SHARING = range(4)
"""Kinds of parcels: a vector's bucket; its bits; pairs; how many pairs share a bucket of a table."""
TABLE = np.uint64(32)
"""The bits of a bucket's word that hold its number; those above hold its table."""


@dataclass(frozen=True)
class VectorComparison:
    """Vectors compared by their distance; `size` is that of a vector in bytes."""

    form: VectorForm
    within: float
    kind = "binary"

    @property
    def size(self) -> int:
        """The bytes of a vector."""
        return self.form.bytes

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs within the distance."""
        return kept(self.form.read(documents), self.within, left, right)


@dataclass(frozen=True)
class TableTask:
    """What tasks know of the tables: the plan, the form of vectors, how bucket numbers are cut from keys, and the rows
    that are copies; `own`: whether the bits that are compared first are those of the vectors."""

    plan: Plan
    form: VectorForm
    shift: int
    copies: RowSet
    split: int
    own: bool
    targets: Any = None
    tables: tuple[tuple[int, ...], ...] = ()

    @property
    def words(self) -> int:
        """The words of the bits from which keys are made."""
        return self.form.columns if self.plan.sketcher is None else self.plan.words

    @property
    def width(self) -> int:
        """The words that travel of a vector."""
        return self.words + (self.form.columns if self.own and self.plan.sketcher is not None else 0)

    @property
    def cuts(self) -> tuple[Ints, Ints]:
        """Where groups begin, and their bits."""
        return self.plan.cuts(self.form.width)

    def seen(self, bits: Hashes) -> Hashes:
        """Return the words that are compared before a pair is verified."""
        chosen = bits[:, self.width - self.form.columns :] if self.own else bits[:, : self.plan.looked]
        return np.ascontiguousarray(chosen)


def table_pairs(
    corpus: Corpus, form: VectorForm, plan: Plan, different: int, copies: RowSet, allowed: float,
    checkpoints: Checkpoints, log: RunLog,
) -> tuple[Ints, Ints, int]:  # fmt: skip
    """Return the pairs of rows that share a bucket and may be near enough, and how many share one.

    Raises Overrun if comparing them costs more than `allowed` nanoseconds, by the rule of the local engine.
    """
    own = plan.sketcher is None or plan.sketcher.differ(0) is None
    slim = replace(plan, sketcher=None if plan.sketcher is None else plan.sketcher.over(form.outline(0)))
    shift = 64 - max(1, (different - 1).bit_length())
    task = TableTask(slim, form, shift, copies, corpus.split, own)

    def sketch() -> Any:
        known = corpus.broadcast(task)
        return corpus.map_texts(partial(_bits, numbering=corpus.shared_numbering, known=known), BITS)

    with log.stage("sketch"):
        bits = checkpoints.frame("sketch", sketch)

    def met(tables: list[tuple[int, ...]], probe: bool) -> Any:
        parts = partitions(corpus.session, different * len(tables))
        known = corpus.broadcast(replace(task, targets=addresses(parts), tables=tuple(tables)))
        sent = bits.mapInArrow(partial(_entered, known=known, probe=probe), SCHEMA)
        return shuffled(sent, parts).mapInArrow(partial(_met, known=known, probe=probe), SCHEMA)

    each, verify = COMPARE + LOOK * plan.looked, VERIFY + COMPONENT * form.width
    tables = plan.tables
    with log.stage("candidates"):
        first = collected(checkpoints.table("buckets", lambda: met(tables[:PROBED], True))).get(SHARING, nothing())[1]
        if int(first.sum()) * each * len(tables) / min(PROBED, len(tables)) > allowed:
            raise Overrun
        found = collected(checkpoints.table("candidates", lambda: met(tables, False)))
    sharing = int(found.get(SHARING, nothing())[1].sum())
    left, right = found.get(PAIR, nothing())
    if sharing * each + len(left) * verify > allowed:
        raise Overrun
    order = np.lexsort((right, left))
    return left[order], right[order].view(np.int64), sharing


def _bits(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    """Turn the vectors of a task into bits."""
    ready()
    task: TableTask = known.value
    plan = task.plan
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chosen = np.flatnonzero(~task.copies.has(rows))
        if not len(chosen):
            continue
        space = task.form.read(rest.column(rest.schema.get_field_index(TEXT)).take(pa.array(chosen)))
        words = space.table
        if plan.sketcher is not None:
            words = np.empty((len(space), plan.words), np.uint64)
            with threadpool_limits(1, "blas"):
                plan.sketcher.over(space).fill(plan.groups, plan.bits, words, 1)
            if task.own:
                words = np.concatenate([words, space.table], axis=1)
        columns = [pa.array([np.ascontiguousarray(array).tobytes()], pa.binary()) for array in (rows[chosen], words)]
        yield pa.RecordBatch.from_arrays(columns, ["rows", "words"])


def _entered(batches: Iterator[Any], known: Any, probe: bool) -> Iterator[Any]:
    """Send the vectors of a task to their buckets, and their bits to each task that has one of these."""
    ready()
    task: TableTask = known.value
    parts, starts = len(task.targets), task.cuts
    entries, signatures = Outbox(task.targets, ENTRY), Outbox(task.targets, SIGNATURE, task.width)
    for batch in batches:
        for row, word in zip(batch.column(0), batch.column(1), strict=True):
            rows = np.frombuffer(row.as_buffer(), np.int64)
            bits = np.frombuffer(word.as_buffer(), np.uint64).reshape(len(rows), task.width).copy()
            keys, goes = np.empty(len(rows), np.uint64), np.zeros((len(rows), parts), bool)
            for number, groups in enumerate(task.tables):
                table_keys(bits, *starts, np.array(groups), keys)
                words = ((keys * TABLE_ODD) >> np.uint64(task.shift)) | (np.uint64(number) << TABLE)
                of = steps.scattered(words, parts)
                goes[np.arange(len(rows)), of] = True
                yield from entries.add(of, rows, words)
            if not probe:
                place, of = np.nonzero(goes)
                yield from signatures.add(of, rows[place], bits[place].ravel())
    yield from entries.sent()
    yield from signatures.sent()


def _met(batches: Iterator[Any], known: Any, probe: bool) -> Iterator[Any]:
    """Pair the vectors that meet in a task, in each table those that did not meet in an earlier one."""
    ready()
    task: TableTask = known.value
    found = opened(batches)
    rows, words = found.get(ENTRY, nothing())
    owners, flat = found.get(SIGNATURE, nothing())
    if not len(rows):
        return
    order = np.argsort(owners, kind="stable")
    different = np.unique(rows) if probe else owners[order]
    bits = flat.reshape(-1, task.width)[order]
    seen = task.seen(bits)
    members = np.searchsorted(different, rows).astype(np.int32)
    split = int(np.searchsorted(different, task.split)) if task.split else 0
    order = np.lexsort((members, words))
    members, words = members[order], words[order]
    tables = (words >> TABLE).astype(np.int64)
    for number in np.unique(tables).tolist() if split or not task.split else []:
        low, high = np.searchsorted(tables, [number, number + 1])
        here = members[low:high]
        ends = np.append(np.flatnonzero(np.diff(words[low:high])) + 1, [len(here), len(here)]).astype(np.int32)
        sizes = np.diff(ends[:-1], prepend=np.int32(0)).astype(np.int64)
        sharing = int(pairs_across(ends, here, split)) if split else int((sizes * (sizes - 1) // 2).sum())
        yield from parcel(0, SHARING, np.array([number]), np.array([sharing], np.uint64))
        if not probe and sharing:
            yield from _pairs(task, number, here, ends, int(sizes.max()), bits, seen, different, split)


def _pairs(
    task: TableTask, number: int, members: Any, ends: Any, largest: int, bits: Hashes, seen: Hashes, different: Ints,
    split: int,
) -> Iterator[Any]:  # fmt: skip
    """Yield the pairs of one table."""
    groups, cuts = np.array(task.tables[number]), task.cuts
    keys = np.empty(len(members), np.uint64)
    table_keys(np.ascontiguousarray(bits[members]), *cuts, groups, keys)
    room = max(PAIRS, largest)
    left, right = np.empty(room, np.int32), np.empty(room, np.int32)
    place = np.zeros(2, np.int64)
    while place[0] < len(ends) - 1:
        count = meet(ends, members, keys, place, bits, *cuts, groups, seen, task.plan.most, split, left, right)
        yield from parcel(0, PAIR, different[left[:count]], different[right[:count]].view(np.uint64))
