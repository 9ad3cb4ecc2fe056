"""The search on a cluster: what each step of the plan does with documents that the driver does not hold.

The digests, band keys and pairs of a small corpus come to the driver (`GatheredExecutor`), which decides faster than
a cluster does in rounds; those of a large one remain on the cluster (`SpreadExecutor`). Documents never come to the
driver but for samples, crowds, and an exact join, which is chosen only where they are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.runlog import RunLog, Tick
from likewise.families.banding import Banding
from likewise.io.workspace import Workspace
from likewise.search import by_join
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import few_candidates, wanted_pairs
from likewise.search.cluster import Keep
from likewise.search.common_shingles import value_table
from likewise.search.crowds.gather import Gathering
from likewise.search.exact.bounds import Bounds
from likewise.search.items import TextItems
from likewise.search.local import Search
from likewise.search.matches import Drawn, VerifiedPairs, add_empty_pair, best_ranks
from likewise.search.plan import ChosenSearch, affordable
from likewise.search.prepare import NO_ROWS, NOTHING, crowded_search
from likewise.search.recall.certificate import Certificate, certified, expected_recall
from likewise.search.scored import ScoredPairs, no_pairs
from likewise.search.verify import compare
from likewise.shingle import Shingler
from likewise.spark.bands import BandCandidates, candidates
from likewise.spark.contained import ContainedSearch, narrowed
from likewise.spark.copies import FirstRows, Repeated, RowLinks, find_copies
from likewise.spark.corpus import Corpus, SampledItems
from likewise.spark.large_listing import LargeMatches
from likewise.spark.large_pairs import SAME, LargePairs, pairs_of_step
from likewise.spark.meetings import Meetings, meet, verify_met
from likewise.spark.members import LargeMembers
from likewise.spark.rowset import RowSet
from likewise.spark.sketch import SketchRecipe, find_common, find_groups, held, neighbours, sketch
from likewise.spark.store import Checkpoints, check_room
from likewise.spark.travel import PairComparison, SlotComparison, TextComparison
from likewise.spark.universe import Universe
from likewise.spark.verify import verify

Ranks = Callable[[Ints], Ints]
"""Returns the order in which some rows, ascending, are preferred: 0 for the most preferred."""
Found = tuple[Universe, VerifiedPairs] | LargeMatches
"""The rows that matter, and the pairs of their groups; of a large corpus, where they are."""


class ClusterExecutor:
    """A corpus on a cluster, and what the steps of a search have found in it. Checkpoints keep every step by itself."""

    counts_tasks = True
    tuning: ChosenSearch
    _copied: RowLinks
    _grouped: RowLinks
    _recipe: SketchRecipe
    _sketches: Any
    _paired: BandCandidates
    _neighbours = NO_ROWS, NO_ROWS

    def __init__(
        self, corpus: Corpus, settings: Search, shingler: Shingler, ranks: Ranks, checkpoints: Checkpoints,
        folder: Path, log: RunLog, policy: Keep | None = None,
    ) -> None:  # fmt: skip
        self.corpus, self.settings, self.log, self.sides = corpus, settings, log, corpus.sides
        self.items = SampledItems(corpus, checkpoints, shingler)
        self.built: dict[str, Any] = {"bands": 0, "rows": 0, "common": []}
        """The banding, 0 of an exact search, and the shingles left out: what later runs must share."""
        self.shingler, self._ranks, self._checkpoints, self._folder = shingler, ranks, checkpoints, folder
        self._policy = policy or Keep()

    def resume(self, step: str) -> bool:
        """Take up nothing here: checkpoints do."""
        return False

    def keep(self, step: str) -> None:
        """Keep nothing here: checkpoints do."""

    def identical(self) -> None:
        """Find copies by their digests."""
        self._copied = find_copies(self.corpus, self._checkpoints)
        self.first = FirstRows(self._copied.rows)

    def find_common(self, fraction: float) -> Hashes:
        """Count the shingles that a sample makes suspect."""
        seed, copies, threads = self.settings.minhash.seed, self._copied.rows, self.settings.threads
        kept, log = self._checkpoints, self.log
        return find_common(self.corpus, self.shingler, self.first, copies, fraction, seed, kept, log, threads)

    def leave_out(self, common: Hashes) -> None:
        """Tell all that make sets to leave these out."""
        self.built["common"] = common.tolist()
        self._common = value_table(common) if len(common) else None
        self.items = SampledItems(self.corpus, self._checkpoints, self.shingler, self._common)

    def sketch(self, tuning: ChosenSearch, tick: Tick) -> None:
        """Sketch the documents where they are, and link those of equal sets."""
        corpus, kept = self.corpus, self._checkpoints
        assert tuning.banding is not None
        assert tuning.written is not None
        self.built.update(bands=tuning.banding.b, rows=tuning.banding.r)
        self.tuning = tuning
        self._recipe = SketchRecipe(
            self.shingler, self._common, self.settings.minhash, tuning.banding, tuning.written, tuning.probe,
            corpus.earlier, self.settings.estimate,
        )  # fmt: skip
        self._sketches = sketch(corpus, self._recipe, self.first, self._copied.rows, kept)
        if len(tuning.drawn):
            self._neighbours = neighbours(kept)
        self._grouped = find_groups(corpus, self._sketches, kept)

    @property
    def groups(self) -> int:
        """The number of different documents, without those whose set an earlier one has."""
        return len(self.first) - len(self._grouped.rows)

    def pair(self, tick: Tick) -> int:
        """Let buckets meet."""
        most, bands = partial(affordable, log=self.log), self._recipe.banding.b
        self._paired = candidates(
            self.corpus, self._sketches, self._grouped.rows, bands, most, self._checkpoints
        )  # fmt: skip
        return len(self._paired.left)

    @property
    def crowded(self) -> int:
        """The number of documents, if there are crowds."""
        return len(self.first) if self._paired.crowds else 0

    @property
    def _comparison(self) -> PairComparison:
        """How documents are compared: by their sets or, as estimates, by their signatures."""
        if self.settings.estimate:
            return SlotComparison(self._recipe.written.b, self.settings.threshold)
        return TextComparison(self.shingler, self._common, self.settings.threshold)

    def _compared(self, left: Ints, right: Ints, step: str) -> ScoredPairs:
        """Return the pairs of rows that reach the threshold."""
        return verify(self.corpus, left, right, self._comparison, self._checkpoints, self._sketches, step)

    def _crowds(self, universe: Universe, pairs: ScoredPairs, ranks: Ints) -> tuple[ScoredPairs, Ints, dict[str, Any]]:
        """Compare the documents of crowds on the driver, as the local engine does; also return, for each group of the
        universe, the crowd it is in whose pairs are not all listed, or -1 (nothing if there is none)."""
        settings, filled = self.settings, universe.filled
        number = np.full(len(universe.groups), -1)
        number[filled] = np.arange(len(filled))
        crowds = [number[universe.group(crowd)] for crowd in self._paired.crowds]
        members = np.unique(np.concatenate(crowds))
        first = universe.rows[universe.groups.first]
        rows = np.full(len(filled), -1)
        rows[members] = np.arange(len(members))
        gathering = Gathering(
            self.documents(first[filled[members]]), rows, crowds, ranks[filled],
            wanted_pairs(first[filled], self.sides), settings.threshold, settings.minhash.seed, settings.threads,
            settings.budget, lambda: self._folder,
        )  # fmt: skip
        (left, right, similarity), notes, abridged = gathering.pairs((number[pairs[0]], number[pairs[1]], pairs[2]))
        if settings.estimate:
            rows = first[filled]
            left, right, similarity = self._compared(rows[left], rows[right], "verify-2")
            left, right = (number[universe.group(side)] for side in (left, right))
        crowd_of = NO_ROWS
        if not notes["complete"]:
            crowd_of = np.full(len(universe.groups), -1)
            crowd_of[filled] = abridged
        return (filled[left], filled[right], similarity), crowd_of, notes

    def documents(self, rows: Ints) -> TextItems:
        """Bring documents to the driver."""
        settings = self.settings
        items = self.corpus.documents(rows, self.shingler, settings.budget, self._folder, settings.threads)
        return items if self._common is None else items.ignoring(self._common)

    def _joined_rows(self) -> Ints:
        """Return the different documents that may have a pair: by containment, without those that cannot."""
        settings = self.settings
        if settings.measure != "containment":
            return self.first[np.arange(len(self.first))]
        bounds = Bounds(settings.measure, settings.threshold)
        search = ContainedSearch(self.shingler, self._common, self._copied.rows, bounds)
        with self.log.stage("narrow"):
            return narrowed(self.corpus, search, self.first, self.documents, self._checkpoints)

    def join(self) -> tuple[Universe, VerifiedPairs]:
        """Join the different documents on the driver."""
        settings, copied = self.settings, self._copied.repeated
        rows = self._joined_rows()
        with self.log.stage("fetch"):
            items = self.documents(rows)
        ranks = None
        if settings.measure == "jaccard":
            involved = np.unique(np.concatenate([copied.rows, rows]))
            order = self._ranks(involved)
            ranks = order[np.searchsorted(involved, rows)]
            np.minimum.at(ranks, np.searchsorted(rows, copied.first), order[np.searchsorted(involved, copied.rows)])
        everyone = np.arange(len(rows))
        sides = self.sides and replace(self.sides, split=int(np.searchsorted(rows, self.sides.split)))
        jaccard = settings.method == "exact" and settings.measure == "jaccard"
        crowded = jaccard and crowded_search(settings, items, everyone)
        given = by_join.DifferentItems(items, everyone, everyone, NOTHING, crowded)
        matches = by_join.find(settings, given, self.log, Workspace.temporary(self._folder), sides, ranks, 0.0)
        self.log.counts["groups"] += len(self.first) - len(rows)
        groups = matches.groups
        repeats = np.flatnonzero(groups.first[groups.of] != everyone)
        grouped = Repeated(rows[repeats], rows[groups.first[groups.of[repeats]]])
        leaders = rows[groups.first]
        left, right = leaders[matches.left], leaders[matches.right]
        universe = Universe.of(copied, grouped, leaders[matches.empty], left, right)
        found = universe.matches(universe.group(left), universe.group(right), matches.similarity)
        return universe, replace(found, directed=matches.directed)


class GatheredExecutor(ClusterExecutor):
    """A search whose candidates and pairs come to the driver."""

    _crowd_of = NO_ROWS

    def identical(self) -> None:
        """Find copies; say so if the rows alone take more memory than the driver may use."""
        if (note := self.settings.budget.too_many(len(self.corpus))) is not None:
            self.log.notes.append(note)
        super().identical()

    def pair(self, tick: Tick) -> int:
        """Let buckets meet: on the driver, if it has the memory for their keys and pairs."""
        settings, bands = self.settings, self._recipe.banding.b
        if 4 * bands * self.groups > settings.budget.keys:
            return super().pair(tick)
        skipped = RowSet(len(self.corpus), [self._grouped.repeated.rows, self._grouped.empty])
        rows, keys = held(self._checkpoints, "keys", np.uint32, bands, skipped)
        wanted, most = wanted_pairs(rows, self.sides), affordable(len(rows), self.log)
        found = few_candidates(HeldKeys(keys), settings.threads, wanted, tick, 4 * settings.budget.pairs, most)
        if found is None:
            return super().pair(tick)
        left, right = map(np.concatenate, zip((NO_ROWS, NO_ROWS), *found.portions(), strict=True))
        self._paired = BandCandidates(rows[left], rows[right], [rows[crowd] for crowd in found.crowds], len(rows))
        return len(left)

    def _compared(self, left: Ints, right: Ints, step: str) -> ScoredPairs:
        """Return the pairs of rows that reach the threshold: of documents that the driver reads, compared here."""
        settings = self.settings
        if settings.estimate or not self.corpus.read_here or not len(left):
            return super()._compared(left, right, step)
        rows = np.unique(np.concatenate([left, right]))
        a, b, similarity = compare(
            self.documents(rows), np.arange(len(rows)), np.searchsorted(rows, left), np.searchsorted(rows, right),
            settings.threshold, settings.threads, settings.budget.sets, lambda: self._folder,
        )  # fmt: skip
        return rows[a], rows[b], similarity

    def verify(self, tick: Tick) -> int:
        """Send documents to the tasks that compare them; then number the rows that matter."""
        paired, drawn = self._paired, self.tuning.drawn
        left, right, similarity = self._compared(paired.left, paired.right, "verify")
        self._universe = universe = Universe.of(
            self._copied.repeated, self._grouped.repeated, self._grouped.empty, left, right, drawn,
            self._neighbours[1], *paired.crowds,
        )  # fmt: skip
        self._group_ranks = best_ranks(universe.groups, self._ranks(universe.rows))
        self._pairs: ScoredPairs = universe.group(left), universe.group(right), similarity
        return len(paired.left)

    def gather(self, tick: Tick) -> dict[str, Any]:
        """Compare the documents of crowds on the driver."""
        self._pairs, self._crowd_of, notes = self._crowds(self._universe, self._pairs, self._group_ranks)
        return notes

    def complete(self) -> int:
        """Turn pairs of groups into what the local engine has."""
        universe = self._universe
        if self.corpus.split:
            self._pairs = add_empty_pair(universe.groups, universe.filled, *self._pairs)
        left, right, score = self._pairs
        same: NDArray[np.bool_] = score == SAME
        self._pairs = left, right, np.where(same, 1.0, score)
        sample, rows = self._neighbours
        drawn = Drawn(universe.place(self.tuning.drawn), sample, universe.copies[universe.place(rows)])
        self._matches = universe.matches(*self._pairs, drawn=drawn, twins=same)
        return len(left)

    def expected_recall(self, banding: Banding) -> float | None:
        """Return the recall that the similarities imply."""
        return expected_recall(banding, self._pairs[2])

    def certify(self) -> Certificate | None:
        """Look the neighbours of the sample up among the pairs."""
        corpus, sides = self.corpus, self._universe.sides(self.sides)
        items = len(corpus) - corpus.earlier + (sides.split if sides and corpus.earlier else 0)
        assert self._matches.sketched is not None
        return certified(self._matches.sketched, self._pairs, self._crowd_of, self._group_ranks, sides, items)

    def answer(self) -> tuple[Universe, VerifiedPairs]:
        """Return the rows that matter, and the pairs of their groups."""
        return self._universe, self._matches


class SpreadExecutor(ClusterExecutor):
    """A search whose candidates and pairs stay on the cluster.

    If there are crowds, these are compared on the driver, each document by the first of its group; who leads a crowd
    depends on pairs outside it, so that all pairs come to the driver then.
    """

    _met: Meetings | None = None
    _members: LargeMembers
    _crowd_nodes = NO_ROWS, NO_ROWS

    def pair(self, tick: Tick) -> int:
        """Let buckets meet, and give each pair a place where its documents meet."""
        super().pair(tick)
        if self._paired.frame is not None:
            self._met = meet(self.corpus, self._paired.frame, self._checkpoints)
        return 0

    def verify(self, tick: Tick) -> int:
        """Send documents to their places."""
        if self._met is None:
            self._listed = LargePairs.of(self.corpus.session, no_pairs())
            return 0
        self._listed = verify_met(self.corpus, self._met, self._comparison, self._checkpoints, self._sketches)
        return self._met.pairs

    def gather(self, tick: Tick) -> dict[str, Any]:
        """Compare the documents of crowds on the driver."""
        corpus, kept = self.corpus, self._checkpoints
        check_room("verify", kept.folder / "verify", kept.limit)
        left, right, similarity = pairs_of_step(kept, "verify")
        nothing = Repeated(NO_ROWS, NO_ROWS)
        empty = self._grouped.empty if corpus.split else NO_ROWS
        universe = Universe.of(nothing, nothing, empty, left, right, *self._paired.crowds)
        rows = universe.rows
        self._members = LargeMembers.holding(corpus, self._policy, self._copied, self._grouped, rows, kept)
        pairs = universe.group(left), universe.group(right), similarity
        (a, b, score), crowd_of, notes = self._crowds(universe, pairs, self._members.ranks(rows))
        self._listed = LargePairs.of(corpus.session, (rows[a], rows[b], score))
        if len(crowd_of):
            self._crowd_nodes = rows, crowd_of
        return notes

    def complete(self) -> int:
        """Find the documents that have a pair; two empty ones, one of each collection, are one."""
        if self.corpus.split and len(self._grouped.empty) == 2:
            self._listed = self._listed.with_pair(*self._grouped.empty.tolist())
        if not self._paired.crowds:
            self._members = LargeMembers(
                self.corpus, self._policy, self._copied, self._grouped, self._listed.rows, self._checkpoints
            )
        return self._listed.count

    def expected_recall(self, banding: Banding) -> float | None:
        """Return the recall that the similarities imply."""
        return self._listed.expected_recall(banding)

    def certify(self) -> None:
        """Wait: the keepers of crowds are known when the tables are made (see spread.py)."""

    def answer(self) -> LargeMatches:
        """Return where the pairs are."""
        return LargeMatches(
            self._members, self._listed, len(self.first), self.tuning.drawn, *self._neighbours, self._crowd_nodes
        )
