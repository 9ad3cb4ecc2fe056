"""`read` and `Ratings`: customers and items by number, each pair once, and the sets that can be made of them (S8)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.recommend.reading import OWNER, TWICE, Options, Part, encoded, read_parts
from likewise.base.arrays import Ints, Sets, to_arrow
from likewise.errors import InputError, ParameterError
from likewise.io.read.base import Aside
from likewise.kernels.hashing import mix_all

VIEWS = ("bought", "liked", "liked-hated", "stars")
MOST_STARS = 100
STEPS = (1, 2, 4, 10, 20, 100)
"""Stars are counted in whole stars, or in halves, quarters, tenths … of them."""
SCALES = ((0, 1), (1, 5), (0, 5), (1, 10), (0, 10), (0, 100))
SEED = np.uint64(0x7A57E5)
SIDES = ("customers", "items")


@dataclass(frozen=True)
class Ratings:
    """Purchases or ratings, each pair of a customer and an item once, by customer and then by item.

    users, items: numbers into user_ids and item_ids, which are in the order of the input; values: the ratings, or None;
    times: how often the pair stood in the input.
    """

    users: Ints
    items: Ints
    values: NDArray[np.float64] | None
    times: Ints
    user_ids: Any
    item_ids: Any
    told: str = ""
    rows: int = 0
    aside: list[Aside] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        return f"<Ratings: {len(self.user_ids):,} customers, {len(self.item_ids):,} items, {len(self.users):,} pairs>"

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest rating."""
        values = self.values
        return (float(values.min()), float(values.max())) if values is not None and len(values) else (0.0, 0.0)

    def sets(
        self, of: str = "customers", view: str = "auto", like: float | None = None, hate: float | None = None
    ) -> Sets:
        """Return a set for every customer (of items) or for every item (of customers), as Section 3.1.3 has it.

        The rows are those of user_ids or item_ids, and the sets are for every function of likewise that takes `Sets`.
        """
        if of not in SIDES:
            raise ParameterError.of("Ratings.sets", "of", "'customers' or 'items'", of)
        side = View.of(self, view, like, hate).side(self, of)
        values = np.empty(len(side.elements), np.uint64)
        mix_all(side.elements.view(np.uint64), SEED, values)
        return Sets(values, side.offsets)


@dataclass(frozen=True)
class Side:
    """Sets of whole numbers from 0 on: set i is elements[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    elements: Ints

    @property
    def sizes(self) -> Ints:
        """The number of elements of each set."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class View:
    """How ratings become sets: everything bought; only what was liked; liked and hated as two elements; stars as a bag.

    steps: into how many parts a star is divided, so that all ratings are whole.
    """

    name: str
    like: float = math.inf
    hate: float = -math.inf
    steps: int = 1

    @classmethod
    def of(cls, ratings: Ratings, name: str = "auto", like: float | None = None, hate: float | None = None) -> View:
        """Check what was asked for; the upper quarter of the scale is liked, the lower one hated, unless told."""
        if name == "auto":
            name = "bought" if ratings.values is None else "liked"
        if name not in VIEWS:
            raise ParameterError.of(OWNER, "view", f"auto, {', '.join(VIEWS)}", name)
        for title, value, views in (("like", like, VIEWS[1:3]), ("hate", hate, VIEWS[2:3])):
            if value is not None and name not in views:
                raise ParameterError(
                    f"The '{title}' parameter of tastes goes with the view {' or '.join(views)}, not {name}."
                )
            if value is not None and (isinstance(value, bool) or not np.isfinite(value)):
                raise ParameterError.of(OWNER, title, "a number", value)
        if name == "bought":
            return cls(name)
        if name == "stars":
            return cls(name, steps=_steps(ratings))
        if ratings.values is None:
            raise InputError(
                f"the view '{name}' needs ratings, and there are none ({ratings.told}); name a column with --rating"
            )
        low, high = usual_scale(*ratings.scale)
        like = low + 0.75 * (high - low) if like is None else float(like)
        if name == "liked":
            return cls(name, like)
        hate = min(low + 0.25 * (high - low), float(np.nextafter(like, -np.inf))) if hate is None else float(hate)
        if hate >= like:
            raise ParameterError(
                f"The 'hate' parameter of tastes must be below 'like', {like:g}. Got {hate:g} instead."
            )
        return cls(name, like, hate)

    def side(self, ratings: Ratings, of: str) -> Side:
        """Return the sets of customers or of items."""
        owners, others = (ratings.users, ratings.items) if of == "customers" else (ratings.items, ratings.users)
        count = len(ratings.user_ids) if of == "customers" else len(ratings.item_ids)
        if self.name == "liked":
            kept = self.wanted(ratings) > 0
            owners, others = owners[kept], others[kept]
        elif self.name == "liked-hated" and ratings.values is not None:
            kept = (ratings.values >= self.like) | (ratings.values <= self.hate)
            hated = (ratings.values[kept] <= self.hate).astype(np.int64)
            owners, others = owners[kept], 2 * others[kept] + hated
        elif self.name == "stars":
            stars = self.stars(ratings)
            most = max(1, int(stars.max(initial=0)))
            owners, others = np.repeat(owners, stars), np.repeat(others * most, stars)
            others += np.arange(len(others)) - np.repeat(np.cumsum(stars) - stars, stars)
        order = np.argsort(owners, kind="stable") if of == "items" else slice(None)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))]).astype(np.int64)
        return Side(offsets, np.ascontiguousarray(others[order], np.int64))

    def stars(self, ratings: Ratings) -> Ints:
        """Return how often an item is in a customer's bag: its stars, or how often it was bought."""
        if ratings.values is None:
            return ratings.times
        return np.rint(ratings.values * self.steps).astype(np.int64)

    def wanted(self, ratings: Ratings) -> NDArray[np.float64]:
        """Return how much each customer wants each of their items, from 0 to 1: what counts in a recommendation."""
        if self.name == "bought" or ratings.values is None:
            return np.ones(len(ratings.users))
        if self.name == "stars":
            return ratings.values / max(ratings.scale[1], 1e-300)
        return (ratings.values >= self.like).astype(np.float64)

    def describe(self, ratings: Ratings) -> str:
        """Say in words what the sets are made of."""
        if self.name == "bought":
            return "bought: every pair counts" + (", whatever its rating" if ratings.values is not None else "")
        if self.name == "stars":
            if ratings.values is None:
                return "stars: an item is in the bag as often as it was bought"
            part = "" if self.steps == 1 else f", in parts of 1/{self.steps}"
            return f"stars: an item with n stars is in the bag n times{part}"
        liked = int((self.wanted(ratings) > 0).sum())
        told = f"liked: ratings of {self.like:g} and more ({liked:,} of {len(ratings.users):,})"
        if self.name == "liked-hated" and ratings.values is not None:
            told += f"; hated: {self.hate:g} and less ({int((ratings.values <= self.hate).sum()):,})"
        return told

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        bounds = {"like": self.like, "hate": self.hate}
        told = {name: value if math.isfinite(value) else None for name, value in bounds.items()}
        return {"view": self.name, **told, "steps": self.steps}


def usual_scale(lowest: float, highest: float) -> tuple[float, float]:
    """Return the scale that ratings from the lowest to the highest are on, a usual one if they reach its upper part.

    >>> usual_scale(2, 5), usual_scale(0.5, 5), usual_scale(0, 8), usual_scale(-1, 1), usual_scale(1, 3)
    ((1, 5), (0, 5), (0, 10), (-1, 1), (1, 3))
    """
    for low, high in SCALES:
        if low <= lowest and 0.6 * high < highest <= high:
            return low, high
    return lowest, highest


def _steps(ratings: Ratings) -> int:
    """Return into how many parts a star must be divided for all ratings to be whole."""
    if ratings.values is None:
        return 1
    low, high = ratings.scale
    if low < 0:
        raise InputError(f"stars are counted, and there is a rating of {low:g}; take the view liked-hated")
    for steps in STEPS:
        scaled = ratings.values * steps
        if np.abs(scaled - np.rint(scaled)).max(initial=0.0) < 1e-6 and scaled.max(initial=0.0) <= MOST_STARS:
            return steps
    raise InputError(
        f"stars are counted, and ratings from {low:g} to {high:g} are not whole numbers of at most {MOST_STARS} stars"
        " or parts of stars; take the view liked or liked-hated"
    )


def read(
    source: Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    baskets: bool = False,
    separator: str | None = None,
    header: bool | None = None,
    twice: str = "last",
    on_error: str = "stop",
) -> Ratings:
    """Read purchases or ratings.

    source: files, folders, globs (CSV, TSV, Parquet, JSON lines, Arrow; MovieLens' u.data and ratings.dat; one basket a
        line); a table of pandas, polars or pyarrow; rows (customer, item[, rating]); a mapping from customers to
        items, or to mappings from items to ratings.
    user, item, rating: the columns. By default they are guessed by name (userId, movie_id, stars …); a file without
        names has the customer first, the item second, the rating third, and its columns are "1", "2", "3" ….
    baskets: text files hold one basket a line; by default it shows from the first lines.
    separator, header: what stands between fields or items; whether the first line names columns. They are guessed, too.
    twice: which rating counts when a customer has rated an item twice, "last" or "first" of the input; or "error".
    on_error: "stop" at a row without customer, item or number, or "skip" it (counted and listed in `.aside`).

    >>> read({"ann": {"Dune": 5, "Emma": 1}, "bob": {"Dune": 4}})
    <Ratings: 2 customers, 2 items, 3 pairs>
    """
    if twice not in TWICE:
        raise ParameterError.of(OWNER, "twice", "'last', 'first' or 'error'", twice)
    parts = read_parts(source, Options(user, item, rating, baskets, separator, header, on_error))
    aside = [entry for part in parts for entry in part.aside]
    if not any(len(part.items) for part in parts):
        raise InputError(f"{parts[0].name}: there are no purchases or ratings in it ({parts[0].told})")
    items, item_ids = encoded([part.items for part in parts])
    if parts[0].users is None:
        begins = np.cumsum([0, *(part.customers for part in parts)])
        users = np.concatenate([part.rows + begin for part, begin in zip(parts, begins, strict=False)])
        user_ids = to_arrow(np.arange(begins[-1]))
    else:
        users, user_ids = encoded([part.users for part in parts])
    values = None if parts[0].ratings is None else np.concatenate([part.ratings for part in parts])
    key = users * len(item_ids) + items
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(key[order]) != 0, True))
    times = np.diff(ends, prepend=-1)
    if twice == "error" and len(ends) < len(key):
        place = int(np.flatnonzero(times > 1)[0])
        first, second = order[ends[place] - times[place] + 1], order[ends[place] - times[place] + 2]
        whom, what = user_ids[int(users[first])].as_py(), item_ids[int(items[first])].as_py()
        raise InputError(
            f"{_where(parts, int(second))}: the customer {whom!r} has the item {what!r} twice, first in"
            f" {_where(parts, int(first))}; --twice last or first chooses one"
        )
    chosen = order[ends if twice == "last" else ends - times + 1]
    return Ratings(
        users[chosen], items[chosen], None if values is None else values[chosen], times.astype(np.int64), user_ids,
        item_ids, parts[0].told, len(key), aside,
    )  # fmt: skip


def _where(parts: list[Part], place: int) -> str:
    """Say in which row of which file a purchase stands."""
    for part in parts:
        if place < len(part.items):
            return f"{part.name}: row {part.row(place)}"
        place -= len(part.items)
    raise IndexError(place)
