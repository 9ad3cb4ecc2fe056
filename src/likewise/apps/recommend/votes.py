"""Recommendations: nearest neighbours vote for items, similar customers or the items similar to those one has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.recommend.inverted_lists import InvertedLists
from likewise.apps.recommend.ratings import SIDES, Ratings, View
from likewise.apps.recommend.reading import OWNER
from likewise.apps.recommend.similarity_join import limited_visits
from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.parallel import in_order
from likewise.base.runlog import RunLog, Tick
from likewise.kernels.sorting import radix_argsort
from likewise.search.exact.listing import BestPartners

COUNT, NEIGHBOURS = 10, 50
"""Defaults, chosen by the hit rate of held-out items in benchmarks/recommend.py."""
REASONS = 3
"""Neighbours that are named as reasons of a recommendation."""
LEAST = 1e-12
"""Least similarity of a neighbour: any that shares something, for the nearest are few enough."""
AT_ONCE = 1 << 14
"""Customers whose neighbours are held at a time."""
VOTES = 5e5
"""Votes that a thread counts at a time: 24 bytes each, and several times as much while they are sorted."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VoteSettings:
    """How to recommend: the number of items per customer, who votes, and the number of neighbours that vote."""

    count: int = COUNT
    by: str = "customers"
    neighbours: int = NEIGHBOURS
    union: str = "max"

    def __post_init__(self) -> None:
        checks.whole(OWNER, "count", self.count)
        checks.whole(OWNER, "neighbours", self.neighbours)
        checks.choice(OWNER, "by", self.by, SIDES)


class _Near(NamedTuple):
    """The nearest neighbours of customers or items, and where those of each begin."""

    rows: Ints
    similarity: Floats
    starts: Ints


class Recommender:
    """Ratings, prepared to make recommendations from them."""

    def __init__(
        self, ratings: Ratings, view: View, settings: VoteSettings, threads: int = 1, group: Ints | None = None
    ) -> None:
        self.ratings, self.view, self.settings, self.threads = ratings, view, settings, threads
        self.group = group if settings.by == "customers" else None
        self.offsets: Ints = np.searchsorted(ratings.users, np.arange(len(ratings.user_ids) + 1))
        self.wanted: Floats = view.wanted(ratings)

    @cached_property
    def _lists(self) -> InvertedLists:
        return InvertedLists(self.view.sets_of(self.ratings, self.settings.by, self.group))

    def recommend(self, users: Ints, log: RunLog) -> Any:
        """Return a table (user, item, score, because_of) for these customers, best items first."""
        if self.settings.by == "items":
            events = np.concatenate([np.arange(self.offsets[u], self.offsets[u + 1]) for u in users] or [users])
            asked = np.unique(self.ratings.items[events[self.wanted[events] > 0]])
            with log.stage("recommend", len(asked) + len(users)) as tick:
                return self._counted(users, self._near(asked, tick), tick)
        parts = []
        with log.stage("recommend", len(users)) as tick:
            for first in range(0, len(users), AT_ONCE):
                some = users[first : first + AT_ONCE]
                parts.append(self._counted(some, self._near(np.unique(some), lambda done: None), tick))
        return pa.concat_tables(parts)

    def _near(self, rows: Ints, tick: Tick) -> _Near:
        """Return the nearest neighbours of these customers or items."""
        visits = limited_visits(len(self._lists))
        k, summed = self.settings.neighbours, self.settings.union == "sum"
        near = self._lists.best(rows, k, LEAST, summed, self.threads, tick, visits)
        starts: Ints = np.searchsorted(near.left, np.arange(len(self._names) + 1))
        return _Near(near.right.astype(np.int64), near.similarity, starts)

    def _counted(self, users: Ints, near: _Near, tick: Tick) -> Any:
        """Count the votes of the neighbours, some customers at a time."""

        def work(some: Ints) -> Any:
            return self._table(some, *self._chosen(*self._votes(some, near)))

        parts = []
        blocks = [users[first : first + self._block] for first in range(0, len(users), self._block)]
        for some, part in zip(blocks, in_order(work, blocks, self.threads), strict=True):
            parts.append(part)
            tick(len(some))
        return pa.concat_tables(parts)

    @property
    def cut(self) -> int:
        """The number of customers or items whose neighbours were sought among a part of the others."""
        return self._lists.cut

    @property
    def _names(self) -> Any:
        return self.ratings.item_ids if self.settings.by == "items" else self.ratings.user_ids

    @property
    def _block(self) -> int:
        """The number of customers whose votes are counted at a time."""
        mean = len(self.ratings.users) / max(1, len(self.ratings.user_ids))
        return int(max(1, min(4096, VOTES / self.settings.neighbours / max(1.0, mean))))

    def _votes(self, users: Ints, near: _Near) -> tuple[Ints, Floats, Ints]:
        """Return votes for new items, their weights and voters; item j of customer i is i·n + j."""
        sizes = self.offsets[users + 1] - self.offsets[users]
        events = _ranges(self.offsets[users], sizes)
        owner = np.repeat(np.arange(len(users)), sizes)
        own = owner * len(self.ratings.item_ids) + self.ratings.items[events]
        if self.settings.by == "items":
            liked = self.wanted[events] > 0
            owner, events = owner[liked], events[liked]
            voter = self.ratings.items[events]
            counts = near.starts[voter + 1] - near.starts[voter]
            places = _ranges(near.starts[voter], counts)
            items, weights = near.rows[places], near.similarity[places] * np.repeat(self.wanted[events], counts)
        else:
            known = near.starts[users + 1] - near.starts[users]
            places = _ranges(near.starts[users], known)
            owner, voter = np.repeat(np.arange(len(users)), known), near.rows[places]
            counts = self.offsets[voter + 1] - self.offsets[voter]
            events = _ranges(self.offsets[voter], counts)
            items = self.ratings.items[events]
            weights = np.repeat(near.similarity[places], counts) * self.wanted[events]
        keys = np.repeat(owner, counts) * len(self.ratings.item_ids) + items
        new = (weights > 0) & ~_among(keys, own)
        return keys[new], weights[new], np.repeat(voter, counts)[new]

    def _chosen(self, keys: Ints, weights: Floats, voters: Ints) -> tuple[Ints, Ints, Floats, Ints, Ints]:
        """Count the votes; return customers, items and scores, best first, the number of reasons of each, and these."""
        order = radix_argsort(keys.astype(np.uint64), int(keys.max(initial=1)).bit_length())
        keys, weights, voters = keys[order], weights[order], voters[order]
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        scores: Floats = np.add.reduceat(weights, begins) if len(begins) else np.zeros(0)
        owner, item = np.divmod(keys[begins], len(self.ratings.item_ids))
        best = _best(owner, scores, self.settings.count)
        sizes = (np.append(begins[1:], len(keys)) - begins)[best]
        votes, choice = _ranges(begins[best], sizes), np.repeat(np.arange(len(best)), sizes)
        order = np.lexsort((voters[votes], -weights[votes], choice))
        rank = np.arange(len(votes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        reasons = voters[votes[order[rank < REASONS]]]
        return owner[best], item[best], scores[best], np.minimum(sizes, REASONS), reasons

    def _table(self, users: Ints, owner: Ints, items: Ints, scores: Floats, counts: Ints, reasons: Ints) -> Any:
        """Return the table, with ids in place of numbers."""
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        because = self._names.take(to_arrow(reasons))
        names = {"user": self.ratings.user_ids.take(to_arrow(users[owner]))}
        names["item"] = self.ratings.item_ids.take(to_arrow(items))
        reasons_of = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), because)
        return pa.table({**names, "score": to_arrow(scores), "because_of": reasons_of})


def _best(owner: Ints, scores: Floats, count: int) -> Ints:
    """Return the places of the `count` best scores of each owner, best first, ties in their order; owners ascend.

    >>> _best(np.array([0, 0, 0, 2]), np.array([0.5, 0.7, 0.7, 0.1]), 2).tolist()
    [1, 2, 3]
    """
    counts = np.bincount(owner)
    heaps = BestPartners(len(counts), min(count, int(counts.max(initial=1))))
    heaps.offer(owner, np.arange(len(owner)), scores)
    rows, places, values = heaps.pairs()
    best: Ints = places[np.lexsort((places, -values, rows))]
    return best


def _among(keys: Ints, those: Ints) -> NDArray[np.bool_]:
    """Return True for each key that is among `those`, which are sorted."""
    if not len(those):
        return np.zeros(len(keys), bool)
    found: NDArray[np.bool_] = those[np.minimum(np.searchsorted(those, keys), len(those) - 1)] == keys
    return found


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the consecutive numbers from each start on, as many as each count says.

    >>> _ranges(np.array([5, 9]), np.array([2, 1])).tolist()
    [5, 6, 9]
    """
    places: Ints = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    return places
