"""The door of the room: items in, verified pairs out, by locality-sensitive hashing or by an exact join."""

from __future__ import annotations

import time
from dataclasses import dataclass

from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.io.workspace import Workspace
from likewise.search import by_join, by_lsh
from likewise.search.items import Items
from likewise.search.matches import Sides, VerifiedPairs
from likewise.search.prepare import PreparedSearch, SearchSettings, prepare


@dataclass(frozen=True)
class Search(SearchSettings):
    """A search for similar pairs: by LSH or exact, as requested or as is predicted to be cheaper."""

    def find(
        self,
        items: Items,
        log: RunLog,
        space: Workspace | None = None,
        sides: Sides | None = None,
        ranks: Ints | None = None,
        prepared: PreparedSearch | None = None,
    ) -> VerifiedPairs:
        """Find the similar pairs, all of them or those that count for `sides`; continue an interrupted search.

        Where too many documents are alike for all pairs to be listed, each is paired with a few representatives.
        `ranks` gives the order in which documents are preferred as such, the lowest first; by default that of the rows.
        `prepared`: what `prepare` returned for these items, if it was called before.
        """
        space = space or Workspace.temporary()
        if space.has(by_join.STEP):
            return by_join.restored(space, log)
        if space.has(by_lsh.STEP):
            sketched = by_lsh.restored(self, space, log)
        else:
            begun = time.perf_counter()
            prepared = prepared or prepare(self, items, log, sides)
            if prepared.banding is None:
                return by_join.find(self, prepared, log, space, sides, ranks, begun)
            sketched = by_lsh.sketch(self, prepared, prepared.banding, log, space, sides, begun)
        return by_lsh.find(self, items, sketched, log, space, sides, ranks)
