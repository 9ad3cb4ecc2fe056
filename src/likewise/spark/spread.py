"""The answer of a large run: keepers and components in rounds, tables by joins. Nothing of it passes through the driver
but counts, and sets of rows with one bit for each row of the corpus."""

from __future__ import annotations

from functools import cached_property, reduce
from typing import Any

from likewise.base.runlog import RunLog
from likewise.jobs.result import KINDS
from likewise.search.cluster import NONE
from likewise.spark.against import SparkAgainst, printed
from likewise.spark.large_listing import LargeMatches, PairListing, certify, scores
from likewise.spark.members import A, B, from_parcels, named, row_set, to_parcels
from likewise.spark.rounds import CHOSEN, EDGE, Rounds
from likewise.spark.rowset import RowSet


class SpreadTables:
    """The tables of a large run."""

    as_text = False

    def __init__(
        self, matches: LargeMatches, id: str | None, log: RunLog, earlier: SparkAgainst | None = None
    ) -> None:  # fmt: skip
        self._matches, self._earlier = matches, earlier
        self._members = members = matches.members
        self._corpus, self._id, self._log = members.corpus, id, log
        self._checkpoints = members.checkpoints
        self._rounds = Rounds(self._corpus.session, self._checkpoints)
        self._names = self._ids()
        log.counts["different"] = matches.different - self._corpus.earlier - self._blank_copies()
        with log.stage("cluster"):
            self._rows = self._checkpoints.frame("rows", self._decide)
            if self._corpus.earlier:
                self._rows = self._checkpoints.frame("rows-2", self._with_digests)
            if not self._rounds.counts:
                self._rounds.recall()
        if len(matches.drawn):
            with log.stage("certify"):
                certify(matches, log, self._lost)
        with log.stage("tables"):
            self._listing = PairListing(matches, log)
            self._note()

    def _blank_copies(self) -> int:
        """Count the documents without a shingle that differ in their bytes, but for one: they are copies too."""
        empty = self._members.grouped.empty
        if not len(empty):
            return 0
        same = self._members.frame.where(f"leader = {int(empty[0])} and row = first and row >= {self._corpus.earlier}")
        return max(0, int(same.count()) - 1)

    def _lost(self, leaders: Any) -> Any:
        """Return those leaders whose group is removed."""
        gone = self._rows.where("row = leader").join(leaders, "leader").selectExpr("leader", "keeper")
        return gone.join(self._members.ranked.select("leader", "best"), "leader").where("keeper <> best")

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
            verdict = self._most_similar() if none else removed_groups(self._matches, self._rounds)
            labels = from_parcels(self._rounds.components(to_parcels(self._edges, EDGE), entries), EDGE)
            group = group.join(labels.toDF("leader", "label"), "leader", "left")
            group = group.join(verdict, "leader", "left")
            group = group.selectExpr(
                "leader", "coalesce(label, leader) as label", "size", "coalesce(keeper, best) as keeper",
                "coalesce(similarity, 1D) as similarity",
            )  # fmt: skip
        else:
            group = group.selectExpr("leader", "leader as label", "size", "best as keeper", "1D as similarity")
        counted = group
        if earlier := self._corpus.earlier:
            new = members.where(f"row >= {earlier}").groupBy("leader").agg(F.count("*").alias("size"))
            counted = group.drop("size").join(new, "leader")
        total = counted.groupBy("label").agg(F.sum("size").alias("total"))
        group = group.join(total, "label", "left").na.fill(0, "total")
        rows = self._with_twins(members.join(group, "leader")) if none else members.join(group, "leader")
        kept = members.selectExpr("row as keeper", "first as keeper_first", "leader as keeper_leader")
        empty = self._members.grouped.empty
        blank = f"(leader = keeper_leader and leader = {int(empty[0])})" if len(empty) else "false"
        return rows.join(kept, "keeper").selectExpr(
            "row", "leader", "label", "total", "keeper", "similarity", f"first = keeper_first or {blank} as identical",
            "leader = keeper_leader as same",
        )  # fmt: skip

    def _most_similar(self) -> Any:
        """Return (leader, keeper, similarity) of rows with a pair: the most similar, of several the first."""
        from pyspark.sql import functions as F

        both = self._edges.unionByName(self._edges.selectExpr(f"{B} as {A}", f"{A} as {B}", "similarity", "same"))
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

    def _with_digests(self) -> Any:
        """Return the rows with those marked as identical that are, byte for byte, what an earlier run kept."""
        corpus, rows = self._corpus, self._rows
        same = f"row >= {corpus.earlier} and keeper < {corpus.earlier} and similarity = 1D"
        asked = rows.where(same)
        both = row_set(asked.select("row").unionAll(asked.select("keeper")), len(corpus))
        assert self._earlier is not None
        digests = printed(corpus, both, self._earlier.mixed)
        one, other = digests.toDF("row", "one"), digests.toDF("keeper", "other")
        whole = rows.join(one, "row", "left").join(other, "keeper", "left")
        equal = f"identical or ({same} and coalesce(one = other, false)) as identical"
        return whole.selectExpr("row", "leader", "label", "total", "keeper", "similarity", equal, "same")

    def _note(self) -> None:
        """Log the counts."""
        from pyspark.sql import functions as F

        log, earlier = self._log, self._corpus.earlier
        items = log.counts["items"] = len(self._corpus) - earlier
        if self._earlier is not None:
            log.counts["earlier"] = self._earlier.total
        gone = (F.col("row") != F.col("keeper")) & (F.col("row") >= earlier)
        removed, same, clusters, largest = self._rows.agg(
            F.count_if(gone),
            F.count_if(gone & F.col("identical")),
            F.count_if((F.col("row") == F.col("label")) & (F.col("total") > 1)),
            F.max("total"),
        ).first()
        log.counts["identical"], log.counts["near"] = same, removed - same
        log.counts["removed"], log.counts["kept"] = removed, items - removed
        log.counts["clusters"] = clusters
        log.details["largest_cluster"] = max(int(largest or 0), min(1, items))
        log.details["rounds"] = dict(self._rounds.counts)

    def _of_new(self, frame: Any) -> Any:
        """Return those of a table of rows that are of this run, with their numbers there."""
        earlier = self._corpus.earlier
        return frame.where(f"row >= {earlier}").withColumn("row", frame["row"] - earlier) if earlier else frame

    def _set(self, frame: Any) -> RowSet:
        return row_set(self._of_new(frame.select("row")), len(self._corpus) - self._corpus.earlier)

    @cached_property
    def gone(self) -> RowSet:
        """The rows that are removed."""
        return self._set(self._rows.where("row <> keeper"))

    @cached_property
    def present(self) -> RowSet:
        """The rows that `clusters` has."""
        return self._set(self._members.frame) if self._earlier else self._members.rows

    def _ids(self) -> Any:
        """(row, value): the ids of the members, which three tables need, some for several columns; None for numbers."""
        if self._earlier is None:
            return self._members.ids(self._id)
        names, self.as_text = self._earlier.ids_of(self._members, self._id)
        return self._checkpoints.frame("names", lambda: names)

    def _origin(self, row: str, name: str) -> list[str]:
        """Return the column that says which earlier run has a document."""
        return [] if self._earlier is None else [f"{self._earlier.origin(row)} as {name}"]

    def pairs(self) -> Any:
        """Return the pairs."""
        return self._listing.table(self._names, self._names, *self._origin("left", "a_in"))

    def removed(self) -> Any:
        """Return the removed documents."""
        gone = self._rows.where(f"row <> keeper and row >= {self._corpus.earlier}").selectExpr(
            "row as place", "row", "keeper", "keeper as other", "similarity", "same",
            f"if(identical, '{KINDS[1]}', '{KINDS[0]}') as kind",
        )  # fmt: skip
        shown = named(gone, self._names, {"row": "id", "keeper": "kept_id"}).orderBy("place")
        return shown.selectExpr("id", "kept_id", *scores(self._log), "kind", *self._origin("other", "kept_in"))

    def clusters(self) -> Any:
        """Return the clusters of all documents of this run that have a duplicate, with their rows."""
        earlier = self._corpus.earlier
        chosen = self._rows.where(f"row >= {earlier}").selectExpr(
            f"row - {earlier} as place", "row", "label", "total as size", "keeper"
        )
        shown = named(chosen, self._names, {"row": "id", "label": "cluster", "keeper": "keeper_"})
        return shown.selectExpr("place as row", "id", "cluster", "size", "keeper_ as keeper")


def removed_groups(matches: LargeMatches, rounds: Rounds) -> Any:
    """Return (leader, keeper, similarity) of rows whose group is removed: of its neighbours, the first one kept."""
    from pyspark.sql import functions as F

    ranked, whole = matches.members.ranked, matches.pairs.edges

    def make() -> Any:
        left, right = ranked.selectExpr("leader as a", "rank as p"), ranked.selectExpr("leader as b", "rank as q")
        both = whole.join(left, A).join(right, B)
        return both.selectExpr("greatest(p, q) as a", "least(p, q) as b", "similarity")

    edges = matches.members.checkpoints.frame("edges", make)
    chosen = rounds.keepers(to_parcels(edges, EDGE), matches.pairs.count)
    kept = reduce(lambda one, other: one.unionAll(other), chosen)
    kept = from_parcels(kept, CHOSEN).select(A).distinct().toDF(B)
    first = edges.join(kept, B).groupBy(A).agg(F.min(F.struct(B, "similarity")).alias("first"))
    first = first.selectExpr("a as rank", "first.b as by", "first.similarity")
    keepers = ranked.selectExpr("rank as by", "best as keeper")
    return first.join(ranked.select("rank", "leader"), "rank").join(keepers, "by").drop("rank", "by")
