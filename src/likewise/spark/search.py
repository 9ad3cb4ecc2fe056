"""The search on a cluster: documents in, verified pairs of groups out, the same as those of the local engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.runlog import RunLog
from likewise.families.banding import Banding
from likewise.io.workspace import Workspace
from likewise.search import by_join
from likewise.search.candidates import most_candidates, wanted_pairs
from likewise.search.cluster import Keep
from likewise.search.common_shingles import value_table
from likewise.search.crowds.gather import Gathering
from likewise.search.estimate import acceptance, described, signature_slots
from likewise.search.expand import most_listed
from likewise.search.items import TextItems
from likewise.search.matches import Drawn, VerifiedPairs, add_empty_pair, best_ranks
from likewise.search.prepare import NO_ROWS, PreparedSearch, crowded_search, no_probe, tune_search
from likewise.search.recall.certificate import certified, expected_recall
from likewise.search.scored import ScoredPairs, no_pairs
from likewise.search.search import Search
from likewise.shingle import Shingler
from likewise.spark.bands import BandCandidates, candidates
from likewise.spark.common_shingles import find_common
from likewise.spark.comparison import SAME, PairComparison, SlotComparison, TextComparison
from likewise.spark.copies import FirstRows, Repeated, RowLinks, find_copies, find_groups
from likewise.spark.corpus import Corpus, SampledItems
from likewise.spark.large_pairs import LargePairs, pairs_of_step
from likewise.spark.meetings import meet, verify_met
from likewise.spark.members import LargeMembers
from likewise.spark.sketch import SketchRecipe, neighbours, sketch
from likewise.spark.spread import LargeMatches
from likewise.spark.store import Checkpoints, check_room
from likewise.spark.universe import Universe
from likewise.spark.verify import verify

Ranks = Callable[[Ints], Ints]
"""Returns the order in which some rows, ascending, are preferred: 0 for the most preferred."""


@dataclass(frozen=True)
class ClusterSearch:
    """A search over a corpus on a cluster."""

    corpus: Corpus
    settings: Search
    shingler: Shingler
    ranks: Ranks
    checkpoints: Checkpoints
    folder: Path
    log: RunLog
    policy: Keep = field(default_factory=Keep)
    _built: dict[str, Any] = field(default_factory=dict)

    def find(self) -> tuple[Universe, VerifiedPairs] | LargeMatches:
        """Return the rows that matter, and the pairs of their groups; of a large corpus, where they are."""
        log, corpus = self.log, self.corpus
        with log.stage("identical"):
            copied = find_copies(corpus, self.checkpoints)
        first = FirstRows(copied.rows)
        log.counts["items"] = len(corpus)
        log.counts["different"] = len(first)
        common = self._common(first, copied)
        items = SampledItems(corpus, self.shingler, common)
        with log.stage("tune"):
            if self.settings.method == "exact":
                log.method = {"asked": "exact", "taken": "exact", "why": "requested"}
                rows, banding, probe = NO_ROWS, None, no_probe(self.settings)
            else:
                rows, banding, probe = tune_search(self.settings, items, first, log, corpus.sides)
        if banding is None:
            return self._exact(copied.repeated, first, common)
        settings, written = self.settings, banding
        if settings.estimate:
            written = Banding(signature_slots(banding, settings.banding is not None, settings.max_slots), 1)
        recipe = SketchRecipe(self.shingler, common, settings.minhash, banding, written, probe, corpus.earlier)
        return self._hashed(copied, first, recipe, rows)

    def _hashed(
        self, copied: RowLinks, first: FirstRows, recipe: SketchRecipe, drawn: Ints
    ) -> tuple[Universe, VerifiedPairs] | LargeMatches:
        """Search by locality-sensitive hashing."""
        log, corpus, settings, kept = self.log, self.corpus, self.settings, self.checkpoints
        self._built.update(bands=recipe.banding.b, rows=recipe.banding.r)
        with log.stage("sketch"):
            sketches = sketch(corpus, recipe, first, copied.rows, kept)
            sample, found = neighbours(kept) if len(drawn) else (NO_ROWS, NO_ROWS)
            grouped = find_groups(corpus, sketches, kept)
        with log.stage("candidates"):
            slots = recipe.written.b if settings.estimate else 0
            paired = candidates(corpus, sketches, grouped.rows, recipe.banding, slots, self._most, kept)
        log.counts["groups"] = len(first) - len(grouped.rows)
        if corpus.large:
            listed, members, crowds = self._large(copied, grouped, recipe, sketches, paired)
            return LargeMatches(members, listed, len(first), drawn, sample, found, crowds)
        log.counts["candidates"] = len(paired.left)
        with log.stage("verify"):
            verified = self._compared(recipe, sketches, paired.left, paired.right)
        empty = grouped.empty
        universe = Universe.of(copied.repeated, grouped.repeated, empty, *verified[:2], drawn, found, *paired.crowds)
        ranks = best_ranks(universe.groups, self.ranks(universe.rows))
        pairs = universe.group(verified[0]), universe.group(verified[1]), verified[2]
        crowd_of = NO_ROWS
        if paired.crowds:
            with log.stage("crowds"):
                pairs, crowd_of = self._crowded(universe, paired, pairs, ranks, recipe, sketches)
        if corpus.split:
            pairs = add_empty_pair(universe.groups, universe.filled, *pairs)
        log.counts["verified"] = len(pairs[0])
        self._note_recall(recipe, lambda: expected_recall(recipe.banding, pairs[2]))
        pairs, twins = _told_apart(pairs)
        seen = Drawn(universe.place(drawn), sample, universe.copies[universe.place(found)])
        matches = universe.matches(*pairs, drawn=seen, twins=twins)
        if len(drawn) and matches.sketched is not None:
            with log.stage("certify"):
                sides = universe.sides(corpus.sides)
                items = len(corpus) - corpus.earlier + (sides.split if sides and corpus.earlier else 0)
                certificate = certified(matches.sketched, pairs, crowd_of, ranks, sides, items)
            log.certificate = certificate.to_dict()
        return universe, matches

    def _large(
        self, copied: RowLinks, grouped: RowLinks, recipe: SketchRecipe, sketches: Any, paired: BandCandidates
    ) -> tuple[LargePairs, LargeMembers, tuple[Ints, Ints]]:
        """Return the pairs of a large corpus, which stay on the cluster, and the documents that have one.

        If it has crowds, these are compared on the driver, each document by the first of its group; who leads a crowd
        depends on pairs outside it, so that all pairs come to the driver then.
        """
        log, corpus, kept, crowds = self.log, self.corpus, self.checkpoints, (NO_ROWS, NO_ROWS)
        pairs = LargePairs.of(corpus.session, no_pairs())
        log.counts["candidates"] = 0
        if paired.frame is not None:
            with log.stage("candidates"):
                met = meet(corpus, paired.frame, kept)
            log.counts["candidates"] = met.pairs
            with log.stage("verify"):
                pairs = verify_met(corpus, met, self._comparison(recipe), kept, sketches)
        if not paired.crowds:
            members = LargeMembers(corpus, self.policy, copied, grouped, pairs.rows, kept)
        else:
            check_room("verify", kept.folder / "verify", kept.limit)
            with log.stage("crowds"):
                verified, nothing = pairs_of_step(kept, "verify"), Repeated(NO_ROWS, NO_ROWS)
                universe = Universe.of(nothing, nothing, NO_ROWS, *verified[:2], *paired.crowds)
                members = LargeMembers.holding(corpus, self.policy, copied, grouped, universe.rows, kept)
                known = universe.group(verified[0]), universe.group(verified[1]), verified[2]
                ranks = members.ranks(universe.rows)
                known, crowd_of = self._crowded(universe, paired, known, ranks, recipe, sketches)
                pairs = LargePairs.of(corpus.session, (universe.rows[known[0]], universe.rows[known[1]], known[2]))
                if len(crowd_of):
                    crowds = universe.rows, crowd_of
        log.counts["verified"] = pairs.count
        self._note_recall(recipe, lambda: pairs.expected_recall(recipe.banding))
        return pairs, members, crowds

    def _most(self, items: int) -> int:
        """Return the candidate pairs that are affordable: as few as can be listed, where more are predicted."""
        most = most_listed(items)
        return most if self.log.details.get("tuning", {}).get("predicted_pairs", 0) > most else most_candidates(items)

    def _comparison(self, recipe: SketchRecipe) -> PairComparison:
        """Return how documents are compared: by their sets or, as estimates, by their signatures."""
        if self.settings.estimate:
            return SlotComparison(recipe.written.b, self.settings.threshold)
        return TextComparison(self.shingler, recipe.common, self.settings.threshold)

    def _compared(
        self, recipe: SketchRecipe, sketches: Any, left: Ints, right: Ints, step: str = "verify"
    ) -> ScoredPairs:
        """Return the pairs of rows that reach the threshold."""
        return verify(self.corpus, left, right, self._comparison(recipe), self.checkpoints, sketches, step)

    def _note_recall(self, recipe: SketchRecipe, expected: Callable[[], float | None]) -> None:
        details, banding, threshold = self.log.details, recipe.banding, self.settings.threshold
        details["banding"] = {"bands": banding.b, "rows": banding.r, "slots": banding.slots}
        details["predicted_recall"] = banding.probability(threshold)
        if self.settings.estimate:
            details["estimate"] = described(threshold, recipe.written.b)
            details["predicted_recall"] *= acceptance(threshold, recipe.written.b)
        else:
            details["expected_recall"] = expected()

    def _crowded(
        self, universe: Universe, paired: BandCandidates, pairs: ScoredPairs, ranks: Ints, recipe: SketchRecipe,
        sketches: Any,
    ) -> tuple[ScoredPairs, Ints]:  # fmt: skip
        """Compare the documents of crowds on the driver, as the local engine does."""
        settings, filled = self.settings, universe.filled
        number = np.full(len(universe.groups), -1)
        number[filled] = np.arange(len(filled))
        crowds = [number[universe.group(crowd)] for crowd in paired.crowds]
        members = np.unique(np.concatenate(crowds))
        first = universe.rows[universe.groups.first]
        items = self._documents(first[filled[members]], recipe.common)
        rows = np.full(len(filled), -1)
        rows[members] = np.arange(len(members))
        gathering = Gathering(
            items,
            rows,
            crowds,
            ranks[filled],
            wanted_pairs(first[filled], self.corpus.sides),
            settings.threshold,
            settings.minhash.seed,
            settings.threads,
            settings.budget,
            lambda: self.folder,
        )
        known = number[pairs[0]], number[pairs[1]], pairs[2]
        (left, right, similarity), notes, abridged = gathering.pairs(known)
        if settings.estimate:
            rows = first[filled]
            left, right, similarity = self._compared(recipe, sketches, rows[left], rows[right], "verify-2")
            left, right = (number[universe.group(side)] for side in (left, right))
        self.log.details["crowds"] = notes
        crowd_of = NO_ROWS
        if not notes["complete"]:
            crowd_of = np.full(len(universe.groups), -1)
            crowd_of[filled] = abridged
        return (filled[left], filled[right], similarity), crowd_of

    def _common(self, first: FirstRows, copied: RowLinks) -> Hashes | None:
        """Return a table of the shingles to leave out; None if there is none."""
        settings, fraction = self.settings, self.settings.ignore_common
        if fraction is None:
            known = NO_ROWS if settings.common is None else settings.common
            self._built["common"] = known.tolist()
            return value_table(settings.common) if settings.common is not None and len(known) else None
        with self.log.stage("common"):
            seed = settings.minhash.seed
            found = find_common(
                self.corpus, self.shingler, first, copied.rows, fraction, seed, self.checkpoints, self.log
            )
        self._built["common"] = found.tolist()
        return value_table(found) if len(found) else None

    def built_with(self) -> dict[str, Any]:
        """Return the banding, 0 of an exact search, and the shingles left out: what later runs must share."""
        return {"bands": 0, "rows": 0, **self._built}

    def _documents(self, rows: Ints, common: Hashes | None) -> TextItems:
        """Bring documents to the driver."""
        items = self.corpus.documents(rows, self.shingler, self.settings.budget, self.folder)
        return items if common is None else items.ignoring(common)

    def _exact(self, copied: Repeated, first: FirstRows, common: Hashes | None) -> tuple[Universe, VerifiedPairs]:
        """Join the different documents on the driver: an exact search is chosen only where they are few."""
        log, corpus, settings = self.log, self.corpus, self.settings
        rows = first[np.arange(len(first))]
        with log.stage("fetch"):
            items = self._documents(rows, common)
        involved = np.unique(np.concatenate([copied.rows, rows]))
        order = self.ranks(involved)
        ranks = order[np.searchsorted(involved, rows)]
        if len(copied.rows):
            np.minimum.at(ranks, np.searchsorted(rows, copied.first), order[np.searchsorted(involved, copied.rows)])
        everyone = np.arange(len(rows))
        sides = None if corpus.sides is None else replace(corpus.sides, split=int(np.searchsorted(rows, corpus.split)))
        crowded = settings.method == "exact" and crowded_search(settings, items, everyone)
        prepared = PreparedSearch(
            items, everyone, everyone, np.zeros(0, np.uint64), NO_ROWS, None, no_probe(settings), crowded
        )
        matches = by_join.find(settings, prepared, log, Workspace.temporary(self.folder), sides, ranks, 0.0)
        groups = matches.groups
        repeats = np.flatnonzero(groups.first[groups.of] != everyone)
        grouped = Repeated(rows[repeats], rows[groups.first[groups.of[repeats]]])
        leaders = rows[groups.first]
        empty = leaders[matches.empty]
        left, right = leaders[matches.left], leaders[matches.right]
        universe = Universe.of(copied, grouped, empty, left, right)
        return universe, universe.matches(universe.group(left), universe.group(right), matches.similarity)


def _told_apart(pairs: ScoredPairs) -> tuple[ScoredPairs, NDArray[np.bool_]]:
    """Return the pairs with their similarities, and which of them have equal sets."""
    left, right, score = pairs
    return (left, right, np.where(score == SAME, 1.0, score)), score == SAME
