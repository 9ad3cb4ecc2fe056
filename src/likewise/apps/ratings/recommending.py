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

from likewise.apps.ratings.collecting import Ratings, View, read
from likewise.apps.ratings.counting import Lists
from likewise.apps.ratings.joining import UNIONS
from likewise.arrays import Ints, to_arrow
from likewise.errors import InputError, ParameterError
from likewise.parallel import check_threads
from likewise.record import Observer, Record

OWNER = "recommend"
WAYS = ("items", "customers")
REASONS = 3
LEAST = 1e-12
"""Any two that share something are neighbours: of the nearest, there are few enough."""
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

    def recommend(self, users: Ints, record: Record) -> Any:
        """Return a table (user, item, score, because_of) for these customers, best first."""
        asked = np.unique(users)
        if self.way.by == "items":
            events = np.concatenate([np.arange(self.offsets[u], self.offsets[u + 1]) for u in users] or [users])
            asked = np.unique(self.ratings.items[events[self.wanted[events] > 0]])
        with record.stage("recommend", len(asked)) as tick:
            near = self._lists.best(asked, self.way.neighbours, LEAST, self.way.union == "sum", self.threads, tick)
            starts = (
                np.searchsorted(near.left, np.arange(self._owners + 1))
                if len(near)
                else np.zeros(self._owners + 1, int)
            )
            right, similarity = near.right.astype(np.int64), near.similarity
            parts = [self._for_one(int(user), right, similarity, starts) for user in users]
        counts = np.array([len(items) for items, _, _ in parts], np.int64)
        reasons = [reason for _, _, because in parts for reason in because]
        names = self.ratings.item_ids if self.way.by == "items" else self.ratings.user_ids
        flat = np.concatenate([np.zeros(0, np.int64), *reasons])
        offsets = np.concatenate([[0], np.cumsum([len(reason) for reason in reasons])]).astype(np.int32)
        items = np.concatenate([np.zeros(0, np.int64), *(items for items, _, _ in parts)])
        return pa.table(
            {
                "user": self.ratings.user_ids.take(to_arrow(np.repeat(users, counts))),
                "item": self.ratings.item_ids.take(to_arrow(items)),
                "score": to_arrow(np.concatenate([np.zeros(0), *(scores for _, scores, _ in parts)])),
                "because_of": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names.take(to_arrow(flat))),
            }
        )

    @property
    def _owners(self) -> int:
        return len(self.ratings.item_ids if self.way.by == "items" else self.ratings.user_ids)

    def _for_one(self, user: int, near: Ints, similarity: Floats, starts: Ints) -> tuple[Ints, Floats, list[Ints]]:
        """Return the best items, their scores, and for each what speaks for it most."""
        begin, end = self.offsets[user], self.offsets[user + 1]
        own = self.ratings.items[begin:end]
        if self.way.by == "items":
            liked = own[self.wanted[begin:end] > 0]
            counts = starts[liked + 1] - starts[liked]
            places = _ranges(starts[liked], counts)
            items, votes = near[places], similarity[places]
            votes = votes * np.repeat(self.wanted[begin:end][self.wanted[begin:end] > 0], counts)
            because = np.repeat(liked, counts)
        else:
            those = slice(starts[user], starts[user + 1])
            others = near[those]
            counts = self.offsets[others + 1] - self.offsets[others]
            events = _ranges(self.offsets[others], counts)
            items = self.ratings.items[events]
            votes = np.repeat(similarity[those], counts) * self.wanted[events]
            because = np.repeat(others, counts)
        new = ~np.isin(items, own) & (votes > 0)
        items, votes, because = items[new], votes[new], because[new]
        different, place = np.unique(items, return_inverse=True)
        scores: Floats = np.bincount(place, weights=votes, minlength=len(different)).astype(np.float64)
        best = np.lexsort((different, -scores))[: self.way.count]
        reasons = []
        for one in best:
            voters = np.flatnonzero(place == one)
            reasons.append(because[voters[np.lexsort((because[voters], -votes[voters]))][:REASONS]])
        return different[best], scores[best], reasons


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
    progress: Observer | None = None,
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
    recommender = Recommender(ratings, chosen, way, check_threads(OWNER, threads))
    return recommender.recommend(asked, Record(progress) if progress else Record())
