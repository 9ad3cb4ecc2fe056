"""The answer of a large run: keepers and components in rounds, tables by joins. Nothing of it passes through the driver
but counts, and sets of rows with one bit for each row of the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.jobs.result import KINDS
from likewise.search.cluster import NONE
from likewise.search.expand import largest_cap, most_listed
from likewise.search.matches import Drawn
from likewise.search.prepare import NO_ROWS
from likewise.search.recall.certificate import certified
from likewise.spark.copies import Repeated
from likewise.spark.corpus import among
from likewise.spark.large_pairs import LargePairs
from likewise.spark.members import A, B, LargeMembers, from_parcels, named, row_set, to_parcels
from likewise.spark.rounds import CHOSEN, EDGE, Rounds
from likewise.spark.rowset import RowSet
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


class SpreadTables:
    """The tables of a large run."""

    as_text = False

    def __init__(self, matches: LargeMatches, id: str | None, log: RunLog) -> None:
        self._matches = matches
        self._members = members = matches.members
        self._corpus, self._id, self._log = members.corpus, id, log
        self._checkpoints = members.checkpoints
        self._rounds = Rounds(self._corpus.session, self._checkpoints)
        log.counts["different"] = matches.different - self._blank_copies()
        with log.stage("cluster"):
            self._rows = self._checkpoints.frame("rows", self._decide)
            if not self._rounds.counts:
                self._rounds.recall()
        if len(matches.drawn):
            with log.stage("certify"):
                self._certify()
        with log.stage("tables"):
            self._cap = self._largest_listed()
            self._pairs = self._checkpoints.frame("listed", self._listed)
            self._note()

    def _blank_copies(self) -> int:
        """Count the documents without a shingle that differ in their bytes, but for one: they are copies too."""
        empty = self._members.grouped.empty
        if not len(empty):
            return 0
        same = self._members.frame.where(f"leader = {int(empty[0])} and row = first")
        return max(0, int(same.count()) - 1)

    @cached_property
    def _edges(self) -> Any:
        """The pairs: a and b, similarity."""
        return self._matches.pairs.edges

    def _decide(self) -> Any:
        """Return for every member its cluster, the size of that, its keeper and their similarity."""
        from pyspark.sql import functions as F

        members, ranked, entries = self._members.frame, self._members.ranked, self._matches.pairs.count
        group, none = ranked.selectExpr("leader", "best", "size"), self._members.policy.rule == NONE
        if entries:
            verdict = self._most_similar() if none else self._verdict(entries)
            labels = from_parcels(self._rounds.components(to_parcels(self._edges, EDGE), entries), EDGE)
            group = group.join(labels.toDF("leader", "label"), "leader", "left")
            group = group.join(verdict, "leader", "left")
            group = group.selectExpr(
                "leader", "coalesce(label, leader) as label", "size", "coalesce(keeper, best) as keeper",
                "coalesce(similarity, 1D) as similarity",
            )  # fmt: skip
        else:
            group = group.selectExpr("leader", "leader as label", "size", "best as keeper", "1D as similarity")
        total = group.groupBy("label").agg(F.sum("size").alias("total"))
        group = group.join(total, "label")
        rows = self._with_twins(members.join(group, "leader")) if none else members.join(group, "leader")
        kept = members.selectExpr("row as keeper", "first as keeper_first", "leader as keeper_leader")
        empty = self._members.grouped.empty
        blank = f"(leader = keeper_leader and leader = {int(empty[0])})" if len(empty) else "false"
        return rows.join(kept, "keeper").selectExpr(
            "row", "leader", "label", "total", "keeper", "similarity", f"first = keeper_first or {blank} as identical",
            "leader = keeper_leader as same",
        )  # fmt: skip

    def _verdict(self, entries: int) -> Any:
        """Return (leader, keeper, similarity) of rows whose group is removed: of its neighbours, the first one kept."""
        from pyspark.sql import functions as F

        ranked = self._members.ranked

        def make() -> Any:
            left, right = ranked.selectExpr("leader as a", "rank as p"), ranked.selectExpr("leader as b", "rank as q")
            both = self._edges.join(left, A).join(right, B)
            return both.selectExpr("greatest(p, q) as a", "least(p, q) as b", "similarity")

        edges = self._checkpoints.frame("edges", make)
        chosen = self._rounds.keepers(to_parcels(edges, EDGE), entries)
        kept = reduce(lambda one, other: one.unionAll(other), chosen)
        kept = from_parcels(kept, CHOSEN).select(A).distinct().toDF(B)
        first = edges.join(kept, B).groupBy(A).agg(F.min(F.struct(B, "similarity")).alias("first"))
        first = first.selectExpr("a as rank", "first.b as by", "first.similarity")
        keepers = ranked.selectExpr("rank as by", "best as keeper")
        return first.join(ranked.select("rank", "leader"), "rank").join(keepers, "by").drop("rank", "by")

    def _most_similar(self) -> Any:
        """Return (leader, keeper, similarity) of rows with a pair: the most similar, of several the first."""
        from pyspark.sql import functions as F

        both = self._edges.unionByName(self._edges.selectExpr(f"{B} as {A}", f"{A} as {B}", "similarity"))
        most = F.max(F.struct("similarity", (-F.col(B)).alias("first"))).alias("most")
        found = both.groupBy(A).agg(most)
        return found.selectExpr(f"{A} as leader", "-most.first as keeper", "most.similarity as similarity")

    def _with_twins(self, rows: Any) -> Any:
        """Return the rows with, in place of the similar row of their group, the first other one that has the same bytes
        or, without any, the same set."""
        from pyspark.sql import functions as F

        members = self._members.frame
        for label in ("leader", "first"):
            second = members.where(f"row <> {label}").groupBy(label).agg(F.min("row").alias("second"))
            rows = rows.join(second, label, "left").withColumn("twin", F.expr(f"if(row = {label}, second, {label})"))
            rows = rows.withColumn("keeper", F.expr("coalesce(twin, keeper)"))
            rows = rows.withColumn("similarity", F.expr("if(twin is null, similarity, 1D)")).drop("second", "twin")
        return rows

    def _largest_listed(self) -> int:
        """Return the size up to which groups are listed in full, by the rule of the local engine."""
        sizes = self._members.ranked.groupBy("size").count().toArrow()
        level, number = (np.asarray(sizes.column(place), np.int64) for place in (0, 1))
        size = self._members.ranked.select("leader", "size")
        both = self._edges.join(size.toDF(A, "m"), A).join(size.toDF(B, "n"), B).groupBy("m", "n").count().toArrow()
        m, n, pairs = (np.asarray(both.column(place), np.int64) for place in range(3))

        def total(cap: int) -> float:
            def listed(one: Ints) -> NDArray[np.float64]:
                return np.where(one > cap, 1, one).astype(float)

            own = listed(level)
            return float((listed(m) * listed(n) * pairs).sum()) + float((own * (own - 1) / 2 * number).sum())

        cap = largest_cap(np.sort(level), total, most_listed(len(self._corpus)))
        big = level > cap
        if big.any():
            items = int((level * number)[big].sum())
            self._log.details["abridged"] = {"groups": int(number[big].sum()), "items": items}
        return cap

    def _listed(self) -> Any:
        """Return the pairs of rows: a, b, similarity, and whether their sets are the same."""
        size = self._members.ranked.select("leader", "size")
        whole = self._members.frame.select("row", "leader").join(size, "leader")
        shown = whole.where(f"size <= {self._cap} or row = leader").select("row", "leader", "size")
        left, right = shown.selectExpr("leader as a", "row as p"), shown.selectExpr("leader as b", "row as q")
        across = self._edges.join(left, A).join(right, B)
        across = across.selectExpr("least(p, q) as a", "greatest(p, q) as b", "similarity", "false as same")
        copies = shown.where(f"size > 1 and size <= {self._cap}")
        one, other = copies.selectExpr("leader", "row as a"), copies.selectExpr("leader", "row as b")
        within = one.join(other, "leader").where("a < b").selectExpr("a", "b", "1D as similarity", "true as same")
        stars = whole.where(f"size > {self._cap} and row <> leader")
        stars = stars.selectExpr("leader as a", "row as b", "1D as similarity", "true as same")
        return across.unionAll(within).unionAll(stars)

    def _note(self) -> None:
        """Log the counts."""
        from pyspark.sql import functions as F

        log, items = self._log, len(self._corpus)
        gone = F.col("row") != F.col("keeper")
        removed, same, clusters, largest = self._rows.agg(
            F.count_if(gone),
            F.count_if(gone & F.col("identical")),
            F.count_if((F.col("row") == F.col("label")) & (F.col("total") > 1)),
            F.max("total"),
        ).first()
        log.counts["pairs"] = self._pairs.count()
        log.counts["identical"], log.counts["near"] = same, removed - same
        log.counts["removed"], log.counts["kept"] = removed, items - removed
        log.counts["clusters"] = clusters
        log.details["largest_cluster"] = max(int(largest or 0), min(1, items))
        log.details["rounds"] = dict(self._rounds.counts)

    @cached_property
    def gone(self) -> RowSet:
        """The rows that are removed."""
        return row_set(self._rows.where("row <> keeper").select("row"), len(self._corpus))

    @property
    def present(self) -> RowSet:
        """The rows that `clusters` has."""
        return self._members.rows

    @cached_property
    def _names(self) -> Any | None:
        """(row, value): the ids of the members, which three tables need, some for several columns; None for numbers."""
        id = self._id
        if id is not None:
            return self._checkpoints.frame("names", lambda: self._members.values(id))
        return None if self._corpus.parts[0].broken is None else self._members.positions()

    def _named(self, frame: Any, columns: dict[str, str]) -> Any:
        """Return a table with the ids of rows, under new names, in place of their numbers."""
        return named(frame, self._names, columns)

    def pairs(self) -> Any:
        """Return the pairs."""
        both = self._pairs.selectExpr("a as left", "b as right", A, B, "similarity", "same")
        named = self._named(both, {A: "id_a", B: "id_b"}).orderBy("left", "right")
        return named.selectExpr("id_a", "id_b", *self._scores())

    def _scores(self) -> list[str]:
        """Return the column of similarities; of estimates, with their standard errors (as `standard_errors`)."""
        if "estimate" not in self._log.details:
            return ["similarity"]
        slots = self._log.details["estimate"]["slots"]
        p = f"((similarity * {slots} + 1) / {slots + 2})"
        error = f"if(same, 0D, sqrt({p} * (1 - {p}) / {slots})) as standard_error"
        return ["similarity as estimated_similarity", error]

    def removed(self) -> Any:
        """Return the removed documents."""
        gone = self._rows.where("row <> keeper").selectExpr(
            "row as place", "row", "keeper", "similarity", "same", f"if(identical, '{KINDS[1]}', '{KINDS[0]}') as kind"
        )
        named = self._named(gone, {"row": "id", "keeper": "kept_id"}).orderBy("place")
        return named.selectExpr("id", "kept_id", *self._scores(), "kind")

    def clusters(self) -> Any:
        """Return the clusters of all documents that have a duplicate, with their rows."""
        chosen = self._rows.selectExpr("row as place", "row", "label", "total as size", "keeper")
        named = self._named(chosen, {"row": "id", "label": "cluster", "keeper": "keeper_"})
        return named.selectExpr("place as row", "id", "cluster", "size", "keeper_ as keeper")

    def _certify(self) -> None:
        """Compare the pairs found with the true neighbours of the sample: only its groups come to the driver."""
        matches, members = self._matches, self._members
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
            gone = self._rows.where("row = leader").join(members.arrow(leader=leaders), "leader")
            gone = gone.selectExpr("leader", "keeper").join(members.ranked.select("leader", "best"), "leader")
            lost = np.asarray(gone.where("keeper <> best").select("leader").toArrow().column(0), np.int64)
            kept[np.searchsorted(leaders, np.sort(lost))] = False
        seen = Drawn(universe.place(matches.drawn), matches.sample, universe.copies[universe.place(matches.found)])
        sketched = universe.matches(*pairs, drawn=seen).sketched
        assert sketched is not None
        order = np.arange(len(leaders))
        self._log.certificate = certified(sketched, pairs, crowd_of, order, None, len(self._corpus), kept).to_dict()
