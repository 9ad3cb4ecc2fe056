"""`recommend`: what people with your tastes bought, or what goes with what you bought (Section 3.1.3)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.recommend.collecting import Ratings, View, read
from likewise.apps.recommend.counting import Lists
from likewise.apps.recommend.joining import UNIONS
from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.runlog import Progress, RunLog
from likewise.errors import InputError, ParameterError
from likewise.kernels.pairs import radix_argsort

OWNER = "recommend"
WAYS = ("items", "customers")
REASONS = 3
LEAST = 1e-12
"""Any two that share something are neighbours: of the nearest, there are few enough."""
VOTES = 2e6
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """How to recommend: so many items, by neighbours of the customer's items or of the customer, so many of each."""

    count: int = 10
    by: str = "customers"
    neighbours: int = 50
    union: str = "max"

    def __post_init__(self) -> None:
        for name in ("count", "neighbours"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ParameterError.of(OWNER, name, "a positive whole number", value)
        if self.by not in WAYS:
            raise ParameterError.of(OWNER, "by", "'items' or 'customers'", self.by)
        if self.union not in UNIONS:
            raise ParameterError.of(OWNER, "union", "'max' or 'sum'", self.union)


class Recommender:
    """Ratings ready to recommend from."""

    def __init__(self, ratings: Ratings, view: View, way: Way, threads: int = 1) -> None:
        self.ratings, self.view, self.way, self.threads = ratings, view, way, threads
        self.offsets: Ints = np.searchsorted(ratings.users, np.arange(len(ratings.user_ids) + 1))
        self.wanted: Floats = view.wanted(ratings)

    @cached_property
    def _lists(self) -> Lists:
        return Lists(self.view.side(self.ratings, self.way.by))

    def recommend(self, users: Ints, log: RunLog) -> Any:
        """Return a table (user, item, score, because_of) for these customers, best first."""
        asked = np.unique(users)
        if self.way.by == "items":
            events = np.concatenate([np.arange(self.offsets[u], self.offsets[u + 1]) for u in users] or [users])
            asked = np.unique(self.ratings.items[events[self.wanted[events] > 0]])
        with log.stage("recommend", len(users)) as tick:
            near = self._lists.best(
                asked, self.way.neighbours, LEAST, self.way.union == "sum", self.threads, lambda _: None
            )
            starts: Ints = np.searchsorted(near.left, np.arange(len(self._names) + 1))
            right, similarity = near.right.astype(np.int64), near.similarity
            parts = []
            for first in range(0, len(users), self._block):
                some = users[first : first + self._block]
                parts.append((some, *self._chosen(*self._votes(some, right, similarity, starts))))
                tick(len(some))
        return pa.concat_tables([self._table(*part) for part in parts])

    @property
    def _names(self) -> Any:
        return self.ratings.item_ids if self.way.by == "items" else self.ratings.user_ids

    @property
    def _block(self) -> int:
        """How many customers are done at a time, so that there are some millions of votes."""
        mean = len(self.ratings.users) / max(1, len(self.ratings.user_ids))
        return int(max(1, min(4096, VOTES / self.way.neighbours / max(1.0, mean))))

    def _votes(self, users: Ints, near: Ints, similarity: Floats, starts: Ints) -> tuple[Ints, Floats, Ints]:
        """Return votes for new items, their weights and who cast them; an item of the i-th customer is i·n + item."""
        sizes = self.offsets[users + 1] - self.offsets[users]
        events = _ranges(self.offsets[users], sizes)
        owner = np.repeat(np.arange(len(users)), sizes)
        own = owner * len(self.ratings.item_ids) + self.ratings.items[events]
        if self.way.by == "items":
            liked = self.wanted[events] > 0
            owner, events = owner[liked], events[liked]
            voter = self.ratings.items[events]
            counts = starts[voter + 1] - starts[voter]
            places = _ranges(starts[voter], counts)
            items, weights = near[places], similarity[places] * np.repeat(self.wanted[events], counts)
        else:
            known = starts[users + 1] - starts[users]
            places = _ranges(starts[users], known)
            owner, voter = np.repeat(np.arange(len(users)), known), near[places]
            counts = self.offsets[voter + 1] - self.offsets[voter]
            events = _ranges(self.offsets[voter], counts)
            items, weights = self.ratings.items[events], np.repeat(similarity[places], counts) * self.wanted[events]
        keys = np.repeat(owner, counts) * len(self.ratings.item_ids) + items
        new = (weights > 0) & ~_among(keys, own)
        return keys[new], weights[new], np.repeat(voter, counts)[new]

    def _chosen(self, keys: Ints, weights: Floats, voters: Ints) -> tuple[Ints, Ints, Floats, Ints, Ints]:
        """Count the votes; return customers, items, scores, best first; and how many reasons each has, and these."""
        order = radix_argsort(keys.astype(np.uint64), int(keys.max(initial=1)).bit_length())
        keys, weights, voters = keys[order], weights[order], voters[order]
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        scores: Floats = np.add.reduceat(weights, begins) if len(begins) else np.zeros(0)
        owner, item = np.divmod(keys[begins], len(self.ratings.item_ids))
        best = np.lexsort((item, -scores, owner))
        place = np.arange(len(best)) - np.searchsorted(owner[best], owner[best])
        best = best[place < self.way.count]
        sizes = (np.append(begins[1:], len(keys)) - begins)[best]
        votes, choice = _ranges(begins[best], sizes), np.repeat(np.arange(len(best)), sizes)
        order = np.lexsort((voters[votes], -weights[votes], choice))
        rank = np.arange(len(votes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        reasons = voters[votes[order[rank < REASONS]]]
        return owner[best], item[best], scores[best], np.minimum(sizes, REASONS), reasons

    def _table(self, users: Ints, owner: Ints, items: Ints, scores: Floats, counts: Ints, reasons: Ints) -> Any:
        """Name everything."""
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        because = self._names.take(to_arrow(reasons))
        columns = {
            "user": self.ratings.user_ids.take(to_arrow(users[owner])),
            "item": self.ratings.item_ids.take(to_arrow(items)),
            "score": to_arrow(scores),
            "because_of": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), because),
        }
        return pa.table(columns)


def _among(keys: Ints, those: Ints) -> NDArray[np.bool_]:
    """Tell which keys are among those, which ascend."""
    if not len(those):
        return np.zeros(len(keys), bool)
    found: NDArray[np.bool_] = those[np.minimum(np.searchsorted(those, keys), len(those) - 1)] == keys
    return found


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers from each start on, so many of each.

    >>> _ranges(np.array([5, 9]), np.array([2, 1])).tolist()
    [5, 6, 9]
    """
    places: Ints = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    return places


def customer_numbers(ratings: Ratings, users: Iterable[Any]) -> Ints:
    """Return the numbers of customers; an unknown one is an error that names those that look like it."""
    ids = ratings.user_ids.to_pylist()
    number = {str(name): place for place, name in enumerate(ids)}
    found = []
    for user in users:
        if str(user).strip() not in number:
            near = difflib.get_close_matches(str(user), [str(name) for name in ids[:100_000]], 3)
            some = ", ".join(near or [str(name) for name in ids[:3]])
            raise InputError(
                f"there is no customer {str(user)!r} among {len(ids):,}; there is {some}{'' if near else ' …'}"
            )
        found.append(number[str(user).strip()])
    return np.array(list(dict.fromkeys(found)), np.int64)


def recommend(
    source: Any,
    users: Any = None,
    *,
    count: int = 10,
    by: str = "customers",
    neighbours: int = 50,
    view: str = "auto",
    like: float | None = None,
    hate: float | None = None,
    union: str = "max",
    threads: int | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> Any:
    """Return an Arrow table (user, item, score, because_of): what these customers might like and do not have.

    source: `Ratings`, or what `read` takes, with its other parameters. users: an id, a list of ids, or None for all.
    by="customers": people with your tastes bought. An item's score is the sum of the similarities of the `neighbours`
        nearest customers who have it (and liked it); because_of are the nearest of these.
    by="items": who bought what you bought also bought. The score is the sum of the item's similarities to the
        customer's items, over the `neighbours` nearest of each; because_of are the items that gave most.
    view, like, hate, union: see `tastes`. Ratings weigh by their stars in the view "stars".

    >>> recommend({"ann": ["tea", "milk"], "bob": ["tea", "milk", "rum"], "eve": ["rum"]}, "ann").to_pylist()
    [{'user': 'ann', 'item': 'rum', 'score': 0.6666666666666666, 'because_of': ['bob']}]
    """
    way = Way(count, by, neighbours, union)
    ratings = source if isinstance(source, Ratings) else read(source, **reading)
    chosen = View.of(ratings, view, like, hate)
    asked = np.arange(len(ratings.user_ids))
    if users is not None:
        listed = [users] if isinstance(users, str) or not isinstance(users, Iterable) else users
        asked = customer_numbers(ratings, listed)
    recommender = Recommender(ratings, chosen, way, checks.threads(OWNER, threads))
    return recommender.recommend(asked, RunLog.of(progress))
