"""`Ratings`: customers and items by number, each pair once, and the sets that represent them (MMDS §3.1.3)."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.recommend.reading import OWNER, RatingRows, RatingsOptions, encoded, read_parts
from likewise.base import checks
from likewise.base.arrays import Ints, Sets, part_at, to_arrow
from likewise.base.words import counted
from likewise.errors import InputError, ParameterError
from likewise.io.read.base import Aside
from likewise.kernels.hashing import mix_all

VIEWS = ("bought", "liked", "liked-hated", "stars")
SIDES = ("customers", "items")
MOST_STARS = 100
"""Most copies of an item in a bag; the size of a set, and so the work, grows with the number of stars."""
STEPS = (1, 2, 4, 10, 20, 100)
"""Stars are counted in whole stars, or in halves, quarters, tenths … of them: the first that makes all whole."""
SCALES = ((0, 1), (1, 5), (0, 5), (1, 10), (0, 10), (0, 100))
"""Usual scales of ratings, by which "liked" does not depend on whether the lowest rating was ever given."""
UPPER, LOWER = 0.75, 0.25
"""Ratings in the upper quarter of the scale are liked, those in the lower quarter hated: 4 and 2 of 1 to 5 stars."""
SEED = np.uint64(0x7A57E5)
"""Seed with which elements are hashed to tokens; fixed, so that sets of different runs can be compared."""
CLOSE_NAMES = 100_000
"""Names among which those similar to an unknown one are looked for; more would take seconds."""


@dataclass(frozen=True)
class Ratings:
    """Purchases or ratings, each pair of a customer and an item once, sorted by customer and then by item.

    users, items: numbers into user_ids and item_ids, which are in the order of the input. values: the ratings, or None
    for purchases. times: how often each pair occurs in the input. columns: which columns were read. rows: the number
    of rows read. aside: the rows that were set aside. inputs: the files or objects that were read.
    """

    users: Ints
    items: Ints
    values: NDArray[np.float64] | None
    times: Ints
    user_ids: Any
    item_ids: Any
    columns: str = ""
    rows: int = 0
    aside: list[Aside] = field(default_factory=list, repr=False)
    inputs: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        customers, items = counted(len(self.user_ids), "customer"), counted(len(self.item_ids), "item")
        return f"<Ratings: {customers}, {items}, {counted(len(self.users), 'pair')}>"

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest rating."""
        values = self.values
        return (float(values.min()), float(values.max())) if values is not None and len(values) else (0.0, 0.0)

    def sets(
        self, of: str = "customers", view: str = "auto", like: float | None = None, hate: float | None = None
    ) -> Sets:
        """Return one set per customer (of items), or one set per item (of customers); see `recommend` for the views.

        The rows are those of user_ids or item_ids. Every function of likewise that accepts `Sets` accepts the result.
        """
        owner = "Ratings.sets"
        checks.choice(owner, "of", of, SIDES)
        return hashed(View.of(self, view, like, hate, owner).sets_of(self, of))

    def numbers_of(self, customers: Iterable[Any]) -> Ints:
        """Return the numbers of customers; an unknown one is an error that names similar ones."""
        ids = self.user_ids.to_pylist()
        number = {str(name): place for place, name in enumerate(ids)}
        found = []
        for customer in customers:
            if str(customer).strip() not in number:
                near = difflib.get_close_matches(str(customer), [str(name) for name in ids[:CLOSE_NAMES]], 3)
                some = ", ".join(near or [str(name) for name in ids[:3]]) + ("" if near or len(ids) <= 3 else " …")
                raise InputError(f"there is no customer {str(customer)!r} among {len(ids):,}; there is {some}")
            found.append(number[str(customer).strip()])
        return np.array(list(dict.fromkeys(found)), np.int64)

    def describe(self) -> list[dict[str, Any]]:
        """Return the files or objects that were read, for run.json."""
        return self.inputs or [{"object": "Ratings", "rows": self.rows or len(self.users)}]


def hashed(sets: Sets) -> Sets:
    """Return sets of whole numbers with their elements hashed to 64 bits, one to one."""
    values = np.empty(len(sets.values), np.uint64)
    mix_all(sets.values.view(np.uint64), SEED, values)
    return Sets(values, sets.offsets)


@dataclass(frozen=True)
class View:
    """How ratings become sets: everything bought; only what was liked; liked and hated as two elements; stars as a bag.

    steps: the number of parts of a star that are counted, so that all ratings are whole numbers.
    """

    name: str
    like: float = math.inf
    hate: float = -math.inf
    steps: int = 1

    @classmethod
    def of(cls, ratings: Ratings, name: str, like: float | None, hate: float | None, owner: str = OWNER) -> View:
        """Check the parameters and choose those that were not given."""
        checks.choice(owner, "view", name, ("auto", *VIEWS))
        if name == "auto":
            name = "bought" if ratings.values is None else "liked"
        bounds = {"like": (like, VIEWS[1:3]), "hate": (hate, VIEWS[2:3])}
        for title, (value, views) in bounds.items():
            if value is not None:
                if name not in views:
                    checks.unused(owner, {title: (value, None)}, f"with the view '{name}'")
                checks.number(owner, title, value)
        if name == "bought":
            return cls(name)
        if name == "stars":
            return cls(name, steps=_steps(ratings))
        if ratings.values is None:
            missing = f"the view '{name}' needs ratings, and there are none ({ratings.columns})"
            raise InputError(f"{missing}; name a column with rating='COLUMN'")
        low, high = usual_scale(*ratings.scale)
        like = low + UPPER * (high - low) if like is None else float(like)
        if name == "liked":
            return cls(name, like)
        hate = min(low + LOWER * (high - low), float(np.nextafter(like, -np.inf))) if hate is None else float(hate)
        if hate >= like:
            raise ParameterError.of(owner, "hate", f"below 'like', {like:g}", hate)
        return cls(name, like, hate)

    def sets_of(self, ratings: Ratings, of: str, group: Ints | None = None) -> Sets:
        """Return the sets of the customers or of the items, as whole numbers; of groups of items, if these are given.

        The number of times that a group is in a bag is the sum of those of its items.
        """
        owners, others = (ratings.users, ratings.items) if of == "customers" else (ratings.items, ratings.users)
        if group is not None:
            others = group[others]
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
            if group is not None:
                owners, others, stars = _summed(owners, others, stars)
            most = max(1, int(stars.max(initial=0)))
            owners, others = np.repeat(owners, stars), np.repeat(others * most, stars)
            others += np.arange(len(others)) - np.repeat(np.cumsum(stars) - stars, stars)
        if group is not None and self.name != "stars":
            owners, others, _ = _summed(owners, others, np.ones_like(owners))
        order = np.argsort(owners, kind="stable") if of == "items" else slice(None)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))]).astype(np.int64)
        return Sets(np.ascontiguousarray(others[order], np.int64), offsets)

    def stars(self, ratings: Ratings) -> Ints:
        """Return how often each item is in the customer's bag: its stars, or how often it was bought."""
        if ratings.values is None:
            return ratings.times
        return np.rint(ratings.values * self.steps).astype(np.int64)

    def wanted(self, ratings: Ratings) -> NDArray[np.float64]:
        """Return the weight of each pair in a recommendation, from 0 to 1: how much the customer likes the item."""
        if self.name == "bought" or ratings.values is None:
            return np.ones(len(ratings.users))
        if self.name == "stars":
            return ratings.values / max(ratings.scale[1], 1e-300)
        return (ratings.values >= self.like).astype(np.float64)

    def describe(self, ratings: Ratings) -> str:
        """Return a sentence on what the sets are made of."""
        if self.name == "bought":
            return "bought: every pair counts" + (", whatever its rating" if ratings.values is not None else "")
        if self.name == "stars":
            if ratings.values is None:
                return "stars: an item is in the bag as often as it was bought"
            part = "" if self.steps == 1 else f", in parts of 1/{self.steps}"
            return f"stars: an item with n stars is in the bag n times{part}"
        liked = int((self.wanted(ratings) > 0).sum())
        text = f"liked: ratings of {self.like:g} and more ({liked:,} of {len(ratings.users):,})"
        if self.name == "liked-hated" and ratings.values is not None:
            text += f"; hated: {self.hate:g} and less ({int((ratings.values <= self.hate).sum()):,})"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        bounds = {"like": self.like, "hate": self.hate}
        finite = {name: value if math.isfinite(value) else None for name, value in bounds.items()}
        return {"view": self.name, **finite, "steps": self.steps}


def _summed(owners: Ints, others: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return each pair once, sorted, with the sum of its counts."""
    size = int(others.max(initial=0)) + 1
    keys, where = np.unique(owners * size + others, return_inverse=True)
    return keys // size, keys % size, np.bincount(where, counts, len(keys)).astype(np.int64)


def usual_scale(lowest: float, highest: float) -> tuple[float, float]:
    """Return the scale of ratings from the lowest to the highest: a usual one if they reach its upper part.

    >>> usual_scale(2, 5), usual_scale(0.5, 5), usual_scale(0, 8), usual_scale(-1, 1), usual_scale(1, 3)
    ((1, 5), (0, 5), (0, 10), (-1, 1), (1, 3))
    """
    for low, high in SCALES:
        if low <= lowest and 0.6 * high < highest <= high:
            return low, high
    return lowest, highest


def _steps(ratings: Ratings) -> int:
    """Return the number of parts of a star that make all ratings whole numbers."""
    if ratings.values is None:
        return 1
    low, high = ratings.scale
    if low < 0:
        raise InputError(f"the view 'stars' counts stars, and there is a rating of {low:g}; use the view liked-hated")
    for steps in STEPS:
        scaled = ratings.values * steps
        if np.abs(scaled - np.rint(scaled)).max(initial=0.0) < 1e-6 and scaled.max(initial=0.0) <= MOST_STARS:
            return steps
    raise InputError(
        f"the view 'stars' counts stars, and ratings from {low:g} to {high:g} are not whole numbers of at most"
        f" {MOST_STARS} stars or parts of stars; use the view liked or liked-hated"
    )


def read_ratings(
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

    source: files, folders, globs (CSV, TSV, Parquet, JSON lines, Arrow; MovieLens' u.data and ratings.dat; one basket
        per line); a table of pandas, polars or pyarrow; rows (customer, item[, rating]); a mapping from customers to
        items, or to mappings from items to ratings.
    user, item, rating: the columns. By default they are guessed by name (userId, movie_id, stars …). A file without
        header has the customer first, the item second and the rating third, and its columns are "1", "2", "3" ….
    baskets: text files have one basket per line; by default this is guessed from the first lines.
    separator, header: between fields or items; whether the first line names the columns. Both are guessed by default.
    twice: which rating counts if a customer rated an item more than once: the "last" or the "first" of the input; or
        "error".
    on_error: "stop" at a row without customer, item or number, or "skip" it (counted and listed in `.aside`).

    >>> read_ratings({"ann": {"Dune": 5, "Emma": 1}, "bob": {"Dune": 4}})
    <Ratings: 2 customers, 2 items, 3 pairs>
    """
    return numbered_ratings(source, RatingsOptions(user, item, rating, baskets, separator, header, twice, on_error))


def numbered_ratings(source: Any, options: RatingsOptions) -> Ratings:
    """Read everything and number customers and items; of several rows of one customer and item one counts."""
    twice = options.twice
    parts = read_parts(source, options)
    aside = [entry for part in parts for entry in part.aside]
    if not any(len(part.items) for part in parts):
        raise InputError(f"{parts[0].name}: there are no purchases or ratings in it ({parts[0].columns})")
    items, item_ids = encoded([part.items for part in parts])
    if parts[0].users is None:
        begins = np.cumsum([0, *(part.customers for part in parts)])
        users = np.concatenate([part.rows + begin for part, begin in zip(parts, begins, strict=False)])
        user_ids = to_arrow(np.arange(begins[-1]))
    else:
        users, user_ids = encoded([part.users for part in parts])
    if parts[0].ratings is None and twice == "first":
        options.without("twice", why="without ratings")
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
            f" {_where(parts, int(first))}; twice='last' or 'first' chooses one"
        )
    chosen = order[ends if twice == "last" else ends - times + 1]
    return Ratings(
        users[chosen], items[chosen], None if values is None else values[chosen], times.astype(np.int64), user_ids,
        item_ids, parts[0].columns, len(key), aside, [part.input for part in parts],
    )  # fmt: skip


def _where(parts: list[RatingRows], place: int) -> str:
    """Return the file and the row of a purchase."""
    number, inside = part_at([len(part.items) for part in parts], place)
    return f"{parts[number].name}: row {parts[number].row(inside)}"
