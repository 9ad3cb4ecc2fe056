"""`pairs` of vectors on Spark: by the tables of the local engine, or by comparing all pairs on the driver.

The plan, the bits and the tables are those of the local engine: bits in one map, buckets of all tables in one shuffle,
candidates compared exactly. A vector goes to each task with one of its buckets, with all of its bits; so a task sees
which pairs met in an earlier table, and each pair is sent once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likewise.base.arrays import Hashes, Ints
from likewise.base.runlog import run_json
from likewise.errors import InputError
from likewise.jobs.pairs import PairsRequest
from likewise.jobs.result import Pairs
from likewise.jobs.rows import distances_table
from likewise.jobs.vectors import VectorSettings, aimed
from likewise.kernels.hashtable import TABLE_ODD
from likewise.kernels.vector_tables import pairs_across, table_keys
from likewise.search.prepare import NO_ROWS
from likewise.search.scored import ScoredPairs, no_pairs
from likewise.search.vectors.pairs import (
    NOTHING,
    PROBED,
    Overrun,
    PairLimit,
    VectorAim,
    check_number,
    costs,
    found_pairs,
    kept,
    meetings,
)
from likewise.search.vectors.plan import Plan
from likewise.search.vectors.spaces import Space, empty_table
from likewise.spark import steps
from likewise.spark.copies import FirstRows, Repeated, RowLinks, find_copies
from likewise.spark.corpus import AT_ONCE, Corpus, numbered
from likewise.spark.direct import TEXT
from likewise.spark.exchange import SCHEMA, Outbox, addresses, collected, nothing, opened, parcel, partitions, shuffled
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.run import ClusterRun, begun, check_ids
from likewise.spark.store import WORK
from likewise.spark.universe import Universe, listed, named
from likewise.spark.vector_input import VectorForm, check_sources, deposit_vectors, open_vectors
from likewise.spark.verify import verify

OWNER = "pairs"
BITS = "rows binary, words binary"
"""The bits of the vectors of a batch."""
ENTRY, SIGNATURE, PAIR, SHARING = range(4)
"""Kinds of parcels: a vector's bucket; its bits; pairs; how many pairs share a bucket of a table."""
TABLE = np.uint64(32)
"""The bits of a bucket's word that hold its number; those above hold its table."""


def vector_pairs(request: PairsRequest) -> Pairs:
    """Do what was asked for on a cluster; the pairs come to the driver."""
    settings = request.vector_settings
    check_sources(request.sources, request.owner)
    with begun(replace(request, text=request.vector), opening=open_vectors) as run:
        corpus, form = read_on_cluster(run, settings)
        log = run.log
        aim = aimed(settings, request.resources, form.outline(1))
        universe, found = found_on_cluster(run, corpus, form, aim)
        if settings.beyond is not None:
            far = found[2] > settings.beyond
            found = found[0][far], found[1][far], found[2][far]
        copies = corpus.sides is None and settings.beyond is None
        matches = universe.matches(universe.group(found[0]), universe.group(found[1]), found[2])
        left, right, distance = listed(corpus, universe, matches, settings.k, copies, log, distances=True)
        log.counts["pairs"] = len(left)
        names = named(corpus, universe, left, settings.id), named(corpus, universe, right, settings.id)
        log.details["spark"] = run.described()
        parameters = {**settings.to_dict(), "within": aim.within, "engine": "spark", **request.resources.used}
        stats = run_json(OWNER, parameters, list(corpus.parts), log)
        run.checkpoints.finish(run.folder / WORK)
        return Pairs(distances_table(*names, distance), stats)


def read_on_cluster(run: ClusterRun, settings: VectorSettings, whole: bool = False) -> tuple[Corpus, VectorForm]:
    """Write the vectors to the folder of the run, and number them. whole: with all columns of their rows."""
    options, kept = run.request.options, run.checkpoints
    with run.log.stage("read"):
        found = [
            deposit_vectors(one, options, settings.measure, kept, "read-other" if number else "read", whole)
            for number, one in enumerate(run.inputs)
        ]
        if settings.id is not None:
            for part, _ in found:
                check_ids(part, settings.id)
    forms = [form for _, form in found if form is not None]
    widths = {form.width for form in forms}
    if len(widths) > 1:
        raise InputError(f"the two collections have vectors of {min(widths)} and of {max(widths)} components")
    if len({form.type for form in forms}) > 1:
        raise InputError("the two collections have numbers of different types: convert one of them")
    form = forms[0] if forms else VectorForm(settings.measure, "u8" if settings.measure == "hamming" else "f4", 1, 1)
    extremes = min((one.smallest for one in forms), default=1.0), max((one.largest for one in forms), default=1.0)
    form = VectorForm(form.measure, form.type, form.columns, form.width, *extremes)
    return Corpus(run.session, tuple(part for part, _ in found)), form


def found_on_cluster(run: ClusterRun, corpus: Corpus, form: VectorForm, aim: VectorAim) -> tuple[Universe, ScoredPairs]:
    """Return the rows that matter, and the pairs of rows within the distance, each the first of its copies."""
    log = run.log
    check_number(len(corpus))
    with log.stage("identical"):
        copied = find_copies(corpus, run.checkpoints)
    first = FirstRows(copied.rows)
    log.counts.update({"items": len(corpus), "different": len(first)})
    log.method = aim.taken("exact", NOTHING)
    here = int(first.place(np.array([corpus.split]))[0]) if corpus.split else 0
    left, right, distance = no_pairs()
    one_sided = len(corpus.parts) == 2 and not 0 < here < len(first)
    if len(first) > 1 and not one_sided:
        with threadpool_limits(1, "blas"):
            distant = VectorsOnCluster(run, corpus, form, aim, copied, first)
            left, right, distance = found_pairs(form.outline(len(first)), here, aim, log, distant)
        left, right = first[left], first[right]
    nowhere = Repeated(NO_ROWS, NO_ROWS)
    return Universe.of(copied.repeated, nowhere, NO_ROWS, left, right), (left, right, distance)


@dataclass(frozen=True)
class VectorsOnCluster:
    """Different vectors, numbered from the first on, for a search that runs on the driver."""

    run: ClusterRun
    corpus: Corpus
    form: VectorForm
    aim: VectorAim
    copied: RowLinks
    first: FirstRows

    def part(self, rows: Ints) -> NDArray[Any]:
        """Bring some vectors to the driver."""
        return self._fetched(rows).part(slice(None))

    def _fetched(self, rows: Ints) -> Space:
        return self.form.read(self.corpus.fetch(self.first[rows], [TEXT]).column(TEXT).combine_chunks())

    def every(self) -> Space:
        """Bring all vectors to the driver: in memory, or in a file if they need more than it may use."""
        form, step, count = self.form, max(1, AT_ONCE // self.form.bytes), len(self.first)
        table = empty_table((count, form.columns), form.type, *self.aim.room)
        for start in range(0, count, step):
            stop = min(start + step, count)
            table[start:stop] = self._fetched(np.arange(start, stop)).table
        return form.space(table)

    def by_tables(self, plan: Plan, allowed: float) -> tuple[ScoredPairs, int]:
        """Find the pairs that share a bucket, and how many do, with tables on the cluster."""
        left, right, sharing = self._candidates(plan, allowed)
        with self.run.log.stage("verify"):
            comparison = VectorComparison(self.form, self.aim.within)
            left, right, distance = verify(self.corpus, left, right, comparison, self.run.checkpoints)
        PairLimit(self.form.outline(1), self.aim).take(len(left))
        return (self.first.place(left), self.first.place(right), distance), sharing

    def _candidates(self, plan: Plan, allowed: float) -> tuple[Ints, Ints, int]:
        """Return the pairs of rows that share a bucket and may be near enough, and how many share one.

        Raises Overrun if comparing them costs more than `allowed` nanoseconds, by the rule of the local engine.
        """
        corpus, form, count = self.corpus, self.form, len(self.first)
        log, checkpoints = self.run.log, self.run.checkpoints
        slim = replace(plan, sketcher=None if plan.sketcher is None else plan.sketcher.over(form.outline(0)))
        task = TableTask(slim, form, plan.shift(count), self.copied.rows, corpus.split, plan.own)

        def sketch() -> Any:
            known = corpus.broadcast(task)
            return corpus.map_texts(partial(_bits, numbering=corpus.shared_numbering, known=known), BITS)

        with log.stage("sketch"):
            bits = checkpoints.frame("sketch", sketch)

        def met(tables: list[tuple[int, ...]], probe: bool) -> Any:
            parts = partitions(corpus.session, count * len(tables))
            known = corpus.broadcast(replace(task, targets=addresses(parts), tables=tuple(tables)))
            sent = bits.mapInArrow(partial(_entered, known=known, probe=probe), SCHEMA)
            return shuffled(sent, parts).mapInArrow(partial(_met, known=known, probe=probe), SCHEMA)

        each, verifying = costs(plan, form.width)
        tables = plan.tables
        with log.stage("candidates"):
            probed = collected(checkpoints.table("buckets", lambda: met(tables[:PROBED], True)))
            first = int(probed.get(SHARING, nothing())[1].sum())
            if first * each * len(tables) / min(PROBED, len(tables)) > allowed:
                raise Overrun
            found = collected(checkpoints.table("candidates", lambda: met(tables, False)))
        sharing = int(found.get(SHARING, nothing())[1].sum())
        left, right = found.get(PAIR, nothing())
        if sharing * each + len(left) * verifying > allowed:
            raise Overrun
        order = np.lexsort((right, left))
        return left[order], right[order].view(np.int64), sharing


@dataclass(frozen=True)
class VectorComparison:
    """Vectors compared by their distance; `size` is that of a vector in bytes."""

    form: VectorForm
    within: float
    kind = pa.large_binary()

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
            groups, keys = np.array(task.tables[number]), np.empty(len(here), np.uint64)
            table_keys(np.ascontiguousarray(bits[here]), *task.cuts, groups, keys)
            known_bits = bits, *task.cuts, groups, seen, task.plan.most, split
            for left, right in meetings(ends, here, keys, known_bits, int(sizes.max())):
                yield from parcel(0, PAIR, different[left], different[right].view(np.uint64))
