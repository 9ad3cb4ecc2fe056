"""The tables of a run whose rows with duplicates are on the driver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints, strings, to_arrow
from likewise.jobs.result import KINDS
from likewise.search.cluster import Removal, components
from likewise.search.estimate import standard_errors
from likewise.search.expand import listed_pairs
from likewise.search.matches import VerifiedPairs
from likewise.search.scored import Scores
from likewise.spark.corpus import Corpus
from likewise.spark.rowset import RowSet
from likewise.spark.run import ClusterRun
from likewise.spark.universe import Universe


def estimate_errors(matches: VerifiedPairs, left: Ints, right: Ints, similarity: Scores, slots: int) -> Scores:
    """Return the standard errors of estimates; 0 for equal sets."""
    return np.where(matches.same_sets(left, right), 0.0, standard_errors(similarity, slots))


class DriverTables:
    """Pairs, removed documents and clusters; rows of earlier runs come before those of this one."""

    as_text = False
    """Whether ids of several types were made text."""

    def __init__(
        self, run: ClusterRun, corpus: Corpus, universe: Universe, matches: VerifiedPairs, removal: Removal
    ) -> None:
        self.run = run
        self.corpus = corpus
        self.universe = universe
        self.removal = removal
        self._matches = matches
        log, rows = run.log, len(corpus) - corpus.earlier
        self._new = np.flatnonzero(universe.rows >= corpus.earlier)
        with log.stage("tables"):
            self._pairs = self._listed(matches)
            self._labels = components(matches.groups, matches.left, matches.right)
            self._sizes = np.bincount(self._labels[self._new], minlength=len(universe.rows))
            self._ids = self._named_rows()
        log.counts["pairs"] = len(self._pairs[0])
        log.counts["identical"] = int(removal.identical.sum())
        log.counts["near"] = int((~removal.identical).sum())
        log.counts["removed"] = len(removal.rows)
        log.counts["kept"] = rows - len(removal.rows)
        log.counts["clusters"] = int((self._sizes > 1).sum())
        log.details["largest_cluster"] = max(int(self._sizes.max(initial=0)), min(1, rows))
        if self._pairs[3]:
            log.details["abridged"] = self._pairs[3]

    def _listed(self, matches: VerifiedPairs) -> tuple[Ints, Ints, Scores, dict[str, int]]:
        """Return the pairs to list, and what is abridged."""
        return listed_pairs(matches, items=len(self.corpus))

    def _named_rows(self) -> Any:
        """Return the ids of the universe; None if they are row numbers."""
        column = self.run.request.id
        return None if column is None else self.corpus.column(self.universe.rows, column)

    def _name(self, places: Ints) -> Any:
        """Return the ids of rows of the universe."""
        if self._ids is None:
            return to_arrow(self.corpus.parts[-1].positions(self.universe.rows[places]))
        return self._ids.take(to_arrow(places))

    def _pair_table(self) -> pa.Table:
        left, right, similarity, _ = self._pairs
        scores = self._similarities(left, right, similarity)
        return pa.table({"id_a": self._name(left), "id_b": self._name(right), **scores})

    def _similarities(self, left: Ints, right: Ints, similarity: Scores) -> dict[str, Any]:
        """Return the column of similarities; of estimates, with their standard errors."""
        if not self.run.request.estimate:
            return {"similarity": to_arrow(similarity)}
        errors = estimate_errors(self._matches, left, right, similarity, self.run.log.details["estimate"]["slots"])
        return {"estimated_similarity": to_arrow(similarity), "standard_error": to_arrow(errors)}

    def _removed_table(self) -> pa.Table:
        removal = self.removal
        return pa.table(
            {
                "id": self._name(removal.rows),
                "kept_id": self._name(removal.keepers),
                **self._similarities(removal.rows, removal.keepers, removal.similarity),
                "kind": strings(list(KINDS)).take(to_arrow(removal.identical.astype(np.int64))),
            }
        )

    def pairs(self) -> pa.Table:
        """Return the pairs."""
        return self._pair_table()

    def removed(self) -> pa.Table:
        """Return the removed documents."""
        return self._removed_table()

    def clusters(self) -> pa.Table:
        """Return the clusters of all documents of this run that have a duplicate, with their rows, ascending."""
        places = self._new
        keepers = np.arange(len(self.universe.rows))
        keepers[self.removal.rows] = self.removal.keepers
        labels = self._labels[places]
        return pa.table(
            {
                "row": to_arrow(self.universe.rows[places] - self.corpus.earlier),
                "id": self._name(places),
                "cluster": self._name(labels),
                "size": to_arrow(self._sizes[labels]),
                "keeper": self._name(keepers[places]),
            }
        )

    def _own(self, places: Ints) -> RowSet:
        """Return rows of the universe as a set of rows of this run."""
        earlier = self.corpus.earlier
        return RowSet(len(self.corpus) - earlier, [self.universe.rows[places] - earlier])

    @property
    def gone(self) -> RowSet:
        """The rows that are removed."""
        return self._own(self.removal.rows)

    @property
    def present(self) -> RowSet:
        """The rows that `clusters` has."""
        return self._own(self._new)
