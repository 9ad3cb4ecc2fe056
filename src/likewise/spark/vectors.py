"""`pairs` of vectors on Spark: by the tables of the local engine, or by comparing all pairs on the driver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likewise.base.arrays import Ints
from likewise.base.runlog import run_json
from likewise.errors import InputError
from likewise.jobs.pairs import PairsRequest
from likewise.jobs.result import Pairs
from likewise.jobs.rows import distances_table
from likewise.jobs.vectors import VectorSettings, aimed
from likewise.search.prepare import NO_ROWS
from likewise.search.scored import ScoredPairs, no_pairs
from likewise.search.vectors.pairs import (
    NOTHING,
    OVERRUN,
    PAIR_BYTES,
    TABLES_CHEAPER,
    VectorAim,
    planned,
    reason_for_all,
    taken,
)
from likewise.search.vectors.plan import Plan
from likewise.search.vectors.spaces import Space, empty_table
from likewise.search.vectors.tables import Overrun, PairLimit, all_pairs
from likewise.spark.copies import FirstRows, Repeated, RowLinks, find_copies
from likewise.spark.corpus import AT_ONCE, Corpus
from likewise.spark.direct import TEXT
from likewise.spark.run import ClusterRun, begun, check_ids
from likewise.spark.store import WORK
from likewise.spark.universe import Universe, listed, named
from likewise.spark.vector_input import VectorForm, deposit_vectors, open_vectors
from likewise.spark.vector_tables import VectorComparison, table_pairs
from likewise.spark.verify import verify

OWNER = "pairs"


def vector_pairs(request: PairsRequest) -> Pairs:
    """Do what was asked for on a cluster; the pairs come to the driver."""
    settings = request.vector_settings
    as_texts = replace(request, text=request.vector, vector="vector", measure="jaccard", within=None, beyond=None)
    with begun(as_texts, opening=open_vectors) as run:
        corpus, form = _read(run, settings)
        log = run.log
        aim = aimed(settings, run.resources, form.outline(1))
        search = VectorSearch(run, corpus, form, aim)
        universe, found = search.find()
        if settings.beyond is not None:
            far = found[2] > settings.beyond
            found = found[0][far], found[1][far], found[2][far]
        copies = corpus.sides is None and settings.beyond is None
        matches = universe.matches(universe.group(found[0]), universe.group(found[1]), found[2])
        left, right, distance = listed(corpus, universe, matches, settings.k, copies, log, distances=True)
        log.counts["pairs"] = len(left)
        names = named(corpus, universe, left, settings.id), named(corpus, universe, right, settings.id)
        log.details["spark"] = run.described()
        parameters = {**settings.to_dict(), "within": aim.within, "engine": "spark", **request.used}
        stats = run_json(OWNER, parameters, list(corpus.parts), log)
        run.checkpoints.finish(run.folder / WORK)
        return Pairs(distances_table(*names, distance), stats)


def _read(run: ClusterRun, settings: VectorSettings) -> tuple[Corpus, VectorForm]:
    """Write the vectors to the folder of the run, and number them."""
    with run.log.stage("read"):
        found = [
            deposit_vectors(one, run.options, settings.measure, run.checkpoints, "read-other" if number else "read")
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


@dataclass(frozen=True)
class VectorSearch:
    """A search for pairs of vectors on a cluster."""

    run: ClusterRun
    corpus: Corpus
    form: VectorForm
    aim: VectorAim

    def find(self) -> tuple[Universe, ScoredPairs]:
        """Return the rows that matter, and the pairs of rows within the distance, each the first of its copies."""
        corpus, log = self.corpus, self.run.log
        if len(corpus) >= 1 << 31:
            raise InputError(f"{len(corpus):,} vectors are more than one run can pair; split the input")
        with log.stage("identical"):
            copied = find_copies(corpus, self.run.checkpoints)
        first = FirstRows(copied.rows)
        log.counts.update({"items": len(corpus), "different": len(first)})
        log.method = taken(self.aim, "exact", NOTHING)
        here = int(first.place(np.array([corpus.split]))[0]) if corpus.split else 0
        found = no_pairs()
        one_sided = len(corpus.parts) == 2 and not 0 < here < len(first)
        if len(first) > 1 and not one_sided:
            found = self._found(copied, first, here)
        nothing = Repeated(NO_ROWS, NO_ROWS)
        return Universe.of(copied.repeated, nothing, NO_ROWS, found[0], found[1]), found

    def _found(self, copied: RowLinks, first: FirstRows, split: int) -> ScoredPairs:
        """Find the pairs of different vectors, by the method requested or predicted to be cheaper."""
        aim, log = self.aim, self.run.log
        outline = self.form.outline(len(first))

        def part(places: Ints) -> NDArray[Any]:
            return self._fetched(first[places]).part(slice(None))

        with threadpool_limits(1, "blas"):
            chosen, allowed = planned(outline, split, aim, log, part)
        why = reason_for_all(aim, len(first))
        limit = PairLimit(aim.memory // PAIR_BYTES, outline, aim.within)
        if chosen is not None:
            try:
                found = self._by_tables(chosen, copied, first, allowed)
                limit.take(len(found[0]))
                return found
            except Overrun:
                why = OVERRUN
        with log.stage("fetch"):
            space = self._every(first)
        with log.stage("compare") as tick, threadpool_limits(1, "blas"):
            every = all_pairs(space, aim.within, split, aim.threads, limit, aim.room, tick)
        log.method = taken(aim, "exact", why)
        log.counts["compared"] = every.compared
        return first[every.left], first[every.right], every.distance

    def _by_tables(self, plan: Plan, copied: RowLinks, first: FirstRows, allowed: float) -> ScoredPairs:
        """Search with tables on the cluster."""
        corpus, form, aim, log, kept = self.corpus, self.form, self.aim, self.run.log, self.run.checkpoints
        left, right, sharing = table_pairs(corpus, form, plan, len(first), copied.rows, allowed, kept, log)
        with log.stage("verify"):
            found = verify(corpus, left, right, VectorComparison(form, aim.within), kept)
        log.method = taken(aim, "lsh", TABLES_CHEAPER)
        log.details["tables"] = {"plan": str(plan), "recall": round(plan.recall, 6)}
        log.counts["compared"] = sharing
        return found

    def _fetched(self, rows: Ints) -> Space:
        """Bring some vectors to the driver."""
        return self.form.read(self.corpus.fetch(rows, [TEXT]).column(TEXT).combine_chunks())

    def _every(self, first: FirstRows) -> Space:
        """Bring all different vectors to the driver: in memory, or in a file if they need more than it may use."""
        form, step = self.form, max(1, AT_ONCE // self.form.bytes)
        table = empty_table((len(first), form.columns), form.type, *self.aim.room)
        for start in range(0, len(first), step):
            stop = min(start + step, len(first))
            table[start:stop] = self._fetched(first[np.arange(start, stop)]).table
        return form.space(table)
