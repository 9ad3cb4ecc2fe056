"""`recommend`: collaborative filtering from purchases or ratings (MMDS §3.1.3)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.recommend.inverted_lists import SharedCounts
from likewise.apps.recommend.ratings import SIDES, Ratings, View, numbered_ratings
from likewise.apps.recommend.reading import OWNER, RatingsOptions
from likewise.apps.recommend.similarity_join import GROUPS_RULE, JoinSettings, gathered, similar_pairs
from likewise.apps.recommend.votes import Recommender, VoteSettings
from likewise.base import checks
from likewise.base.arrays import to_arrow
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.base.words import counted
from likewise.errors import InputError, ParameterError
from likewise.io.disk import with_spill
from likewise.io.publish import publish
from likewise.io.read.find import notes_on
from likewise.io.upload import to_store
from likewise.jobs.result import Result
from likewise.jobs.rows import Rows

BLOCK = 1 << 20
"""Pairs among which the most similar is looked for at a time."""
ONLY = (*SIDES, "recommendations")


@dataclass(repr=False, eq=False)
class Recommendations(Result):
    """The result of `recommend`: tables `.customers`, `.items`, `.recommendations`, `.stats`, and `.save(dir)`.

    customers, items: pairs of similar customers and of similar items (id_a, id_b, similarity, shared: the number of
    elements that both sets have). recommendations: user, item, score, because_of. A table left out by `only` is None.
    groups: with `groups`, the items of groups of two or more: id, cluster, size, keeper; otherwise None.
    """

    files: ClassVar[dict[str, str]] = {f"{name}.parquet": name for name in (*ONLY, "groups")}

    _pairs: dict[str, Rows]
    _users: Any
    recommendations: pa.Table | None
    groups: pa.Table | None
    stats: dict[str, Any]

    @cached_property
    def customers(self) -> Any | None:
        """The pairs of similar customers."""
        return self._pairs["customers"].table() if "customers" in self._pairs else None

    @cached_property
    def items(self) -> Any | None:
        """The pairs of similar items."""
        return self._pairs["items"].table() if "items" in self._pairs else None

    def for_user(self, user: Any) -> Any:
        """Return the recommendations for one customer, the best first."""
        name = str(user).strip()
        asked = None if self._users is None else self._users.cast(pa.string())
        if self.recommendations is None or not pc.any(pc.equal(asked, name)).as_py():
            raise InputError(f"there are no recommendations for {name!r}; pass users=[{user!r}] to recommend")
        return self.recommendations.filter(pc.equal(self.recommendations["user"].cast(pa.string()), name))

    @to_store("directory")
    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables as Parquet and run.json to a folder, all or nothing, and return the folder."""
        folder = Path(directory)
        pairs = {f"{side}.parquet": self._pairs[side].write if side in self._pairs else None for side in SIDES}
        others = {"recommendations.parquet": self.recommendations, "groups.parquet": self.groups}
        publish(folder, {**pairs, **others}, self.stats)
        return folder

    def _summary(self) -> str:
        counts = self.stats["counts"]
        found = {
            "similar_customers": ("pair of similar customers", "pairs of similar customers"),
            "similar_items": ("pair of similar items", "pairs of similar items"),
            "recommendations": ("recommendation", "recommendations"),
        }
        some = ", ".join(counted(counts[name], *nouns) for name, nouns in found.items() if name in counts)
        return f"{counted(counts['customers'], 'customer')}, {counted(counts['items'], 'item')}; {some}"


@with_spill
def recommend(
    source: Any,
    users: Any = None,
    *,
    only: str | None = None,
    by: str = "customers",
    count: int = VoteSettings.count,
    neighbours: int = VoteSettings.neighbours,
    view: str = "auto",
    like: float | None = None,
    hate: float | None = None,
    union: str = "max",
    groups: float | Mapping[Any, Any] | None = None,
    threshold: float = JoinSettings.threshold,
    k: int | None = None,
    method: str = "auto",
    recall: float = JoinSettings.recall,
    seed: int = 1,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    baskets: bool = False,
    separator: str | None = None,
    header: bool | None = None,
    twice: str = "last",
    on_error: str = "stop",
    threads: int | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    progress: Progress | None = None,
) -> Recommendations:
    """Find similar customers and similar items, and recommend items to customers (collaborative filtering).

    source: files, folders, globs, tables, rows (customer, item[, rating]), mappings from customers to items or to
        ratings of items, or `Ratings`. user, item, rating, baskets, separator, header, twice, on_error: see
        `likewise.apps.recommend.read_ratings`.
    users: the customers to recommend to, an id or a list of ids. By default everyone.
    only: make just one of the three tables, "customers", "items" or "recommendations".

    Recommendations. by="customers": an item's score is the sum of the similarities of the `neighbours` nearest
        customers who have it (and liked it); because_of are the nearest of these. by="items": the score is the sum of
        the item's similarities to the customer's items, over the `neighbours` nearest of each; because_of are the
        items that contributed most. Each customer gets `count` items, none that they have already.
    view: what of a rating goes into the sets. "bought": the pair, whatever the rating; "liked": only pairs rated `like`
        or better; "liked-hated": two elements for each item, liked (`like` or better) and hated (`hate` or worse);
        "stars": an item with n stars n times, as a bag. "auto": bought without ratings, liked with them. By default
        `like` and `hate` are the upper and the lower quarter of the scale: 4 and 2 of 1 to 5 stars.
    union: of two bags, "max" of the counts (equal bags have similarity 1) or the "sum" (1/2), as in MMDS §3.1.3.
    groups: compare customers by groups of items instead of items, so that those who bought different items of the same
        groups are similar. A number: items at least this similar to the most popular item of a group are in it. Or a
        mapping from items to groups, such as genres. Items and votes for them remain items; `.groups` lists the groups.
    threshold: least similarity of a pair of customers or of items. k: only the k most similar of each, best first; a
        pair may then occur in both directions.
    method: "count" overlaps in inverted lists, "exact" join, or "lsh" with `recall`, as in `likewise.pairs`; "auto"
        chooses the one that is predicted to be cheapest. All but lsh find every pair. Where more than ten million pairs
        are similar, and more than a hundred for each customer or item, counting lists the hundred most similar of each,
        as with k=100, and a note says so.
    memory: limit for the pairs, such as "4GiB"; more are in files in the folder `spill`. It does not change the result.

    >>> found = recommend({"ann": ["tea", "milk"], "bob": ["milk", "tea", "rum"], "eve": ["rum"]}, threshold=0.5)
    >>> found.customers.to_pylist()
    [{'id_a': 'ann', 'id_b': 'bob', 'similarity': 0.6666666666666666, 'shared': 2}]
    >>> found.items.to_pydict()["id_b"]
    ['milk']
    >>> found.for_user("ann").to_pylist()
    [{'user': 'ann', 'item': 'rum', 'score': 0.6666666666666666, 'because_of': ['bob']}]
    """
    if only is not None:
        checks.choice(OWNER, "only", only, ONLY)
    join = JoinSettings(threshold, union, k, method, recall, seed, checks.threads(OWNER, threads), memory, spill)
    votes = VoteSettings(count, by, neighbours, union)
    reading = RatingsOptions(user, item, rating, baskets, separator, header, twice, on_error)
    if groups is not None and not isinstance(groups, Mapping):
        groups = checks.number(OWNER, "groups", groups, 0, 1, open_left=True, rule=GROUPS_RULE)
    _check_used(only, users, join, votes, groups)
    log = RunLog.of(progress)
    with log.stage("read"):
        if isinstance(source, Ratings):
            reading.without(*asdict(reading), why="for Ratings, which are read already")
        ratings = source if isinstance(source, Ratings) else numbered_ratings(source, reading)
        log.notes += notes_on(source)
    chosen = View.of(ratings, view, like, hate)
    asked = None if only in SIDES else _asked(ratings, users)
    counts = {"customers": len(ratings.user_ids), "items": len(ratings.item_ids), "ratings": len(ratings.users)}
    log.counts.update({"rows": ratings.rows, **counts, "repeated": max(0, ratings.rows - len(ratings.users))})
    log.details["columns"] = ratings.columns
    log.details["sets"] = chosen.describe(ratings)
    log.details["scale"] = None if ratings.values is None else list(ratings.scale)
    _note_rows(ratings, chosen, log, twice)
    grouped = gathered(ratings, chosen, groups, join, log)
    group = None if grouped is None else grouped.of
    pairs: dict[str, Rows] = {}
    for side, ids in (("customers", ratings.user_ids), ("items", ratings.item_ids)):
        if only in (None, side):
            sets = chosen.sets_of(ratings, side, group if side == "customers" else None)
            found, how = similar_pairs(sets, join, log, side)
            log.counts[f"similar_{side}"] = len(found)
            log.details.setdefault("methods", {})[side] = how
            log.details.setdefault("closest", {})[side] = _closest(found, ids)
            pairs[side] = _pair_rows(found, ids)
    _sum_up_methods(log)
    recommendations = None
    if asked is not None and users is not None:
        empty = asked[chosen.sets_of(ratings, "customers").sizes[asked] == 0]
        log.details["liked_nothing"] = ratings.user_ids.take(to_arrow(empty)).to_pylist()
    if asked is not None:
        recommender = Recommender(ratings, chosen, votes, join.threads, group)
        recommendations = recommender.recommend(asked, log)
        log.counts["recommendations"] = len(recommendations)
        if recommender.cut:
            log.details["limited"] = recommender.cut
            log.notes.append("for the recommendations, " + _limited(recommender.cut, by))
    asked_for = {name: value for name, value in asdict(join).items() if name != "spill"}
    parameters = {**asdict(reading), **chosen.to_dict(), "only": only, **asked_for, **asdict(votes)}
    parameters["users"] = None if users is None or asked is None else ratings.user_ids.take(asked).to_pylist()
    parameters["groups"] = "given" if isinstance(groups, Mapping) else groups
    stats = run_json(OWNER, parameters, [ratings], log)
    listed = None if grouped is None else grouped.table(ratings)
    who = None if asked is None else ratings.user_ids.take(asked)
    return Recommendations(pairs, who, recommendations, listed, stats)


def _check_used(only: str | None, users: Any, join: JoinSettings, votes: VoteSettings, groups: Any) -> None:
    """Raise if a parameter was given that is about a table which is not made."""
    if only == "items" or (only == "recommendations" and votes.by == "items"):
        checks.unused(OWNER, {"groups": (groups is not None, False)}, "where no customers are compared")
    if only == "recommendations":
        names = ("threshold", "k", "method", "recall", "seed", "memory", "spill")
        given = {name: (getattr(join, name), getattr(JoinSettings, name)) for name in names}
        checks.unused(OWNER, given, "with only='recommendations'")
    elif only is not None:
        given = {name: (getattr(votes, name), getattr(VoteSettings, name)) for name in ("by", "count", "neighbours")}
        checks.unused(OWNER, {"users": (users is not None, False), **given}, f"with only='{only}'")


def _asked(ratings: Ratings, users: Any) -> Any:
    """Return the numbers of the customers to recommend to."""
    if users is None:
        return np.arange(len(ratings.user_ids))
    if isinstance(users, str) or not isinstance(users, Iterable):
        return ratings.numbers_of([users])
    found = checks.listed(OWNER, "users", users, "one customer, or a list of one or more")
    if not found:
        raise ParameterError.of(OWNER, "users", "one customer, or a list of one or more", users)
    return ratings.numbers_of(found)


def _note_rows(ratings: Ratings, view: View, log: RunLog, twice: str) -> None:
    """Note repeated rows, and a single customer."""
    repeated = log.counts["repeated"]
    if repeated:
        rule = f"the {twice} rating counts"
        if ratings.values is None:
            rule = "all of them count" if view.name == "stars" else "each pair counts once"
        log.notes.append(f"{repeated:,} of {ratings.rows:,} rows repeat a customer and an item: {rule}")
    if len(ratings.user_ids) == 1:
        log.notes.append("there is only one customer; similarity needs two")


def _sum_up_methods(log: RunLog) -> None:
    """Set the method of the run, "mixed" if that of customers and items differs, and note what is abridged."""
    methods: dict[str, dict[str, Any]] = log.details.get("methods", {})
    if not methods:
        return
    first = next(iter(methods.values()))
    log.method = {name: first[name] for name in ("asked", "taken", "why")}
    if any(how["taken"] != first["taken"] for how in methods.values()):
        log.method["taken"] = "mixed"
        log.method["why"] = "; ".join(f"{side}: {how['taken']}, {how['why']}" for side, how in methods.items())
    certificates = [how["certificate"] for how in methods.values() if "certificate" in how]
    if len(certificates) == 1:
        log.certificate = certificates[0]
    for side, how in methods.items():
        abridged = how.get("abridged", {})
        if "items" in abridged:
            log.notes.append(f"{abridged['items']:,} {side} with equal sets are paired with the first one only")
        if "more_than" in abridged:
            log.notes.append(
                f"more than {abridged['more_than']:,} pairs of {side} are similar; the {abridged['k']} most similar of"
                " each are listed, best first (a higher threshold lists all pairs)"
            )
        if "cut" in abridged:
            log.notes.append(_limited(abridged["cut"], side))


def _limited(cut: int, side: str) -> str:
    """Say that the most similar of some customers or items were sought among a part of the others."""
    return f"the most similar of {cut:,} {side} were sought among those that share one of their rarer elements"


def _closest(found: SharedCounts, ids: Any) -> dict[str, Any] | None:
    """Return the most similar pair; of several, the one that shares most."""
    best, most = -1, (0.0, 0)
    for start in range(0, len(found), BLOCK):
        similarity = found.part(slice(start, start + BLOCK))
        shared = np.where(similarity < similarity.max(), 0, found.shared[start : start + BLOCK])
        place = int(np.argmax(shared))
        if (float(similarity[place]), int(shared[place])) > most:
            best, most = start + place, (float(similarity[place]), int(shared[place]))
    if best < 0:
        return None
    pair = ids[int(found.left[best])].as_py(), ids[int(found.right[best])].as_py()
    return {"id_a": pair[0], "id_b": pair[1], "similarity": most[0], "shared": most[1]}


def _pair_rows(found: SharedCounts, ids: Any) -> Rows:
    """Return the table of pairs with their ids, made in batches."""
    columns: dict[str, Callable[[slice], Any]] = {
        "id_a": lambda part: ids.take(to_arrow(found.left[part].astype(np.int64))),
        "id_b": lambda part: ids.take(to_arrow(found.right[part].astype(np.int64))),
        "similarity": lambda part: to_arrow(found.part(part)),
        "shared": lambda part: to_arrow(found.shared[part].astype(np.int64)),
    }
    return Rows(len(found), columns)
