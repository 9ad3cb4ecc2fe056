"""The table of the pairs of a large corpus, made by joins on the cluster: what `search.expand` does on one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.search.expand import largest_cap, most_listed
from likewise.search.matches import Drawn
from likewise.search.prepare import NO_ROWS
from likewise.search.recall.certificate import certified
from likewise.spark.copies import Repeated
from likewise.spark.corpus import among
from likewise.spark.large_pairs import LargePairs
from likewise.spark.members import A, B, LargeMembers, named
from likewise.spark.universe import Universe


@dataclass(frozen=True)
class LargeMatches:
    """What a search of a large corpus returns: pairs of rows, each the first of those with an equal set.

    different: the rows that are no copy of an earlier one. drawn, sample, found: the sample of the certificate, and
    (place in the sample, row) of its true neighbours. crowds: nodes, and the crowd of each whose pairs are not all
    listed.
    """

    members: LargeMembers
    pairs: LargePairs
    different: int
    drawn: Ints
    sample: Ints
    found: Ints
    crowds: tuple[Ints, Ints]


class PairListing:
    """Pairs of rows: all of them or, with k, the most similar of each row.

    Copies are pairs of each other within one collection, unless only pairs below a similarity are asked for. Those of
    two documents of earlier runs are left out.
    """

    def __init__(self, matches: LargeMatches, log: RunLog, k: int | None = None, below: float | None = None) -> None:
        self._members = members = matches.members
        self._corpus, self._log, self._k = members.corpus, log, k
        self._copies = not self._corpus.across or (self._corpus.sides is None and below is None)
        self._edges = matches.pairs.edges if below is None else matches.pairs.edges.where(f"similarity < {below!r}")
        self._size = members.ranked.select("leader", "size")
        self._cap = self._largest_listed() if k is None else 0
        self.frame = members.checkpoints.frame("listed", self._all if k is None else self._nearest)
        log.counts["pairs"] = self.frame.count()

    def _largest_listed(self) -> int:
        """Return the size up to which groups are listed in full, by the rule of the local engine."""
        sizes = self._members.ranked.groupBy("size").count().toArrow()
        level, number = (np.asarray(sizes.column(place), np.int64) for place in (0, 1))
        one, other = self._size.toDF(A, "m"), self._size.toDF(B, "n")
        both = self._edges.join(one, A).join(other, B).groupBy("m", "n").count().toArrow()
        m, n, pairs = (np.asarray(both.column(place), np.int64) for place in range(3))

        def total(cap: int) -> float:
            def listed(one: Ints) -> NDArray[np.float64]:
                return np.where(one > cap, 1, one).astype(float)

            own = listed(level)
            within = float((own * (own - 1) / 2 * number).sum()) if self._copies else 0.0
            return float((listed(m) * listed(n) * pairs).sum()) + within

        cap = largest_cap(np.sort(level), total, most_listed(len(self._corpus)))
        big = level > cap
        if big.any():
            items = int((level * number)[big].sum())
            self._log.details["abridged"] = {"groups": int(number[big].sum()), "items": items}
        return cap

    def _all(self) -> Any:
        """Return all pairs: a, b, similarity, and whether their sets are the same."""
        cap, size = self._cap, self._size
        whole = self._members.frame.select("row", "leader").join(size, "leader")
        shown = whole.where(f"size <= {cap} or row = leader").select("row", "leader", "size")
        left, right = shown.selectExpr("leader as a", "row as p"), shown.selectExpr("leader as b", "row as q")
        pair = ["least(p, q) as a", "greatest(p, q) as b", "similarity", "same"]
        listed = self._edges.join(left, A).join(right, B).selectExpr(*pair)
        others = whole.where(f"size > {cap} and row <> leader")
        if self._copies:
            copies = shown.where(f"size > 1 and size <= {cap}")
            one, other = copies.selectExpr("leader", "row as a"), copies.selectExpr("leader", "row as b")
            within = one.join(other, "leader").where("a < b").selectExpr("a", "b", "1D as similarity", "true as same")
            stars = others.selectExpr("leader as a", "row as b", "1D as similarity", "true as same")
            listed = listed.unionAll(within).unionAll(stars)
        elif "abridged" in self._log.details:
            best = _best(self._partners(), A, "similarity desc, b", 1)
            best = best.selectExpr("a as leader", "b as q", "similarity", "same")
            listed = listed.unionAll(others.withColumnRenamed("row", "p").join(best, "leader").selectExpr(*pair))
        return listed.where(f"b >= {self._corpus.earlier}") if self._corpus.earlier else listed

    def _partners(self) -> Any:
        """Return the pairs from both ends."""
        return self._edges.unionByName(self._edges.selectExpr("b as a", "a as b", "similarity", "same"))

    def _nearest(self) -> Any:
        """Return the most similar rows of each row, or of each of the first collection; ties by row."""
        k, members = int(self._k or 0), self._members.frame.select("row", "leader")
        near = self._edges if self._corpus.split else self._partners()
        first = _best(members, "leader", "row", k + 1)
        others = near.join(first.selectExpr("leader as b", "row as other"), B)
        others = others.selectExpr("a as leader", "other", "similarity", "same")
        if self._copies:
            several = first.join(self._size.where("size > 1"), "leader")
            own = several.selectExpr("leader", "row as other", "1D as similarity", "true as same")
            others = others.unionAll(own)
        order = "similarity desc, other"
        others = _best(others, "leader", order, k + 1).join(members, "leader").where("row <> other")
        return _best(others, "row", order, k).selectExpr("row as a", "other as b", "similarity", "same")

    def table(self, first: Any, second: Any, *more: str) -> Any:
        """Return the pairs with the ids of their rows, (row, value) of either side, in the order of the local engine.

        first, second: None if ids are the numbers of rows. more: further columns, made of `left` and `right`, the rows.
        """
        shown = self.frame.selectExpr("a as left", "b as right", A, B, "similarity", "same")
        shown = named(named(shown, first, {A: "id_a"}), second, {B: "id_b"})
        from pyspark.sql import functions as F

        closest = [] if self._k is None else [F.desc("similarity")]
        return shown.orderBy("left", *closest, "right").selectExpr("id_a", "id_b", *scores(self._log), *more)


def _best(frame: Any, by: str, order: str, k: int) -> Any:
    """Return the first rows in an order, of each value of a column."""
    place = "_place"
    ranked = frame.selectExpr("*", f"row_number() over (partition by {by} order by {order}) as {place}")
    return ranked.where(f"{place} <= {k}").drop(place)


def scores(log: RunLog) -> list[str]:
    """Return the column of similarities; of estimates, with their standard errors (as `standard_errors`)."""
    if "estimate" not in log.details:
        return ["similarity"]
    slots = log.details["estimate"]["slots"]
    p = f"((similarity * {slots} + 1) / {slots + 2})"
    error = f"if(same, 0D, sqrt({p} * (1 - {p}) / {slots})) as standard_error"
    return ["similarity as estimated_similarity", error]


def certify(matches: LargeMatches, log: RunLog, lost: Callable[[Any], Any]) -> None:
    """Compare the pairs found with the true neighbours of the sample: only its groups come to the driver.

    lost: returns those leaders, of a table of some, whose group is removed; asked only if some crowds are not listed.
    """
    members, corpus = matches.members, matches.members.corpus
    rows, first, leader = members.of(np.unique(np.concatenate([matches.drawn, matches.found])))
    copy, follows = rows != first, (rows == first) & (rows != leader)
    copied, grouped = Repeated.of(rows[copy], first[copy]), Repeated.of(rows[follows], leader[follows])
    universe = Universe.of(copied, grouped, NO_ROWS, matches.drawn, matches.found)
    leaders = universe.rows[universe.groups.first]
    left, right, similarity = matches.pairs.among(leaders)
    pairs = universe.group(left), universe.group(right), similarity
    nodes, crowd = matches.crowds
    crowd_of = NO_ROWS
    kept = np.ones(len(leaders), bool)
    if len(nodes):
        crowd_of = np.full(len(leaders), -1)
        here = among(leaders, nodes)
        crowd_of[here] = crowd[np.searchsorted(nodes, leaders[here])]
        gone = np.asarray(lost(members.arrow(leader=leaders)).select("leader").toArrow().column(0), np.int64)
        kept[np.searchsorted(leaders, np.sort(gone))] = False
    seen = Drawn(universe.place(matches.drawn), matches.sample, universe.copies[universe.place(matches.found)])
    sketched = universe.matches(*pairs, drawn=seen).sketched
    assert sketched is not None
    order, sides = np.arange(len(leaders)), universe.sides(corpus.sides)
    items = len(corpus) - corpus.earlier + (sides.split if sides and corpus.earlier else 0)
    log.certificate = certified(sketched, pairs, crowd_of, order, sides, items, kept).to_dict()
