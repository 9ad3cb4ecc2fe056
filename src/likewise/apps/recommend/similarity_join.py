"""The similar pairs of customers or of items, by counting, by the exact join or by hashing; and groups of items.

Customers who bought different items of the same groups are similar, too (MMDS §3.1.3): two readers of science fiction
may have few books in common. If books that the same customers read form a group, both have bought within the same
groups. Groups are found by the similarity of items, or given, such as genres.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.clusters import best_of_each, cluster_columns, keepers
from likewise.apps.recommend.inverted_lists import MANY, InvertedLists, SharedCounts
from likewise.apps.recommend.ratings import Ratings, View, hashed
from likewise.apps.recommend.reading import OWNER
from likewise.base import checks
from likewise.base.arrays import Ints, Sets, to_arrow
from likewise.base.memory import Budget
from likewise.base.runlog import RunLog
from likewise.errors import InputError, ParameterError
from likewise.families.minhash import MinHash
from likewise.families.tuning import Similarities, tune_for
from likewise.jobs.pairs import PairsRequest, pairs
from likewise.search.prepare import LITTLE, choose
from likewise.search.sketch import agreement_counts, sample_signatures

METHODS = ("auto", "count", "exact", "lsh")
UNIONS = ("max", "sum")
THRESHOLD, RECALL = 0.2, 0.99
"""Defaults. Customers who share a fifth of their purchases are similar: hardly anybody shares nine tenths."""
MEETING = 3e-9
"""Seconds of one core for two sets to meet in an inverted list, for the prediction of costs."""
LISTING = 7e-7
"""Seconds of one core in which `pairs` compares and lists a pair, for the prediction of costs."""
LISTED, LISTED_EACH = 10_000_000, 100
"""Pairs that are always listed in full: ten million, or a hundred for each customer or item. Of more, nobody reads all,
and their number grows with the square of the input: the LISTED_EACH most similar of each are listed instead."""
VISITS, LEAST_VISITS = 1 << 34, 1 << 15
"""Places of inverted lists visited in all, some 50 seconds of one core, and at least for each set, if so many pairs are
similar: then the most similar of a set are sought among those that share one of its rarer elements."""
SHARES = 4
"""A quarter of the memory is for the pairs of one side; what is more is in files."""
DOUBT = {"count": 1, "exact": 2, "lsh": 4}
"""How many times cheaper a method must be: meetings are known, other costs are estimates, and hashing misses pairs."""
SAMPLE, SLOTS = 1000, 512
"""Sets sampled, and the length of their signatures, to predict the cost of a join."""
GROUPS_RULE = "the least similarity of the items of a group, in (0, 1], or a mapping from items to groups"
NEARLY = 1 - 1e-12
"""Lowers a converted threshold by more than its rounding error; the exact threshold is applied afterwards."""


@dataclass(frozen=True)
class JoinSettings:
    """Which pairs to find, and how."""

    threshold: float = THRESHOLD
    union: str = "max"
    k: int | None = None
    method: str = "auto"
    recall: float = RECALL
    seed: int = 1
    threads: int = 1
    memory: str | int | None = None
    spill: str | Path | None = None

    def __post_init__(self) -> None:
        checks.choice(OWNER, "union", self.union, UNIONS)
        checks.choice(OWNER, "method", self.method, METHODS)
        most = 0.5 if self.summed else 1.0
        more = "; with the union 'sum', equal bags have similarity 1/2" if self.summed else ""
        rule = f"above 0 and at most {most:g}{more}"
        checks.number(OWNER, "threshold", self.threshold, 0, most, open_left=True, rule=rule)
        checks.recall(OWNER, self.recall)
        checks.seed(OWNER, self.seed)
        if self.k is not None:
            checks.whole(OWNER, "k", self.k)
        if self.method in ("count", "exact"):
            given = {"recall": (self.recall, RECALL), "seed": (self.seed, 1)}
            checks.unused(OWNER, given, f"with the method '{self.method}'")
        Budget.of(OWNER, self.memory)

    @property
    def summed(self) -> bool:
        """True if the union of two bags is their sum."""
        return self.union == "sum"

    @property
    def room(self) -> int:
        """Bytes of pairs of one side that stay in memory."""
        return Budget.of(OWNER, self.memory).total // SHARES

    @property
    def jaccard(self) -> float:
        """The threshold as Jaccard similarity: c / (a + b) is s when c / (a + b - c) is s / (1 - s)."""
        return min(1.0, self.threshold / (1 - self.threshold) * NEARLY) if self.summed else self.threshold


def similar_pairs(sets: Sets, settings: JoinSettings, log: RunLog, side: str) -> tuple[SharedCounts, dict[str, Any]]:
    """Return the similar pairs of one side, customers or items; and the method, why, and what it reported."""
    lists = InvertedLists(sets, settings.room, None if settings.spill is None else Path(settings.spill))
    method = {"asked": settings.method, "taken": settings.method, "why": "it was asked for"}
    if settings.method == "auto":
        method = _chosen(sets, lists, settings)
    if method["taken"] == "count":
        return _counted(lists, settings, log, side, method), method
    return _joined(sets, settings, log, method)


def _chosen(sets: Sets, lists: InvertedLists, settings: JoinSettings) -> dict[str, Any]:
    """Predict the cost of each method from the inverted lists and from a sample of the sets; choose the cheapest."""
    count = lists.meetings * MEETING
    if count <= LITTLE:
        return {"asked": "auto", "taken": "count", "why": f"predicted to take less than {LITTLE:g} s of one core"}
    rows = np.sort(np.random.default_rng(settings.seed).permutation(np.flatnonzero(sets.sizes))[:SAMPLE])
    sample = hashed(sets).take(rows)
    minhash, n = MinHash(settings.seed), len(lists)
    agreements = agreement_counts(sample_signatures(sample, minhash, SLOTS), settings.threads)
    corpus = Similarities.sampled(agreements, len(sample), max(2, n), float(sample.sizes.mean()), settings.jaccard)
    tuning = tune_for(settings.jaccard, settings.recall, corpus)
    choice = choose(sample, n, tuning)
    sampled = InvertedLists(sets.take(rows)).pairs(settings.threshold, settings.summed, 1, lambda _: None)
    similar = sum(len(part[0]) for part in sampled) * (n / max(1, len(rows))) ** 2
    if settings.k is None and similar > most_listed(n):
        why = f"some {similar:.2g} pairs are similar, too many to list, and counting finds the most similar of each"
        return {"asked": "auto", "taken": "count", "why": why}
    listing = similar * LISTING
    seconds = {"count": count, "exact": choice.exact_seconds + listing, "lsh": choice.lsh_seconds + listing}
    predicted = {name: float(f"{value:.3g}") for name, value in seconds.items()}
    taken = min(predicted, key=lambda name: predicted[name] * DOUBT[name])
    others = ", ".join(f"{name} {value:g} s" for name, value in predicted.items() if name != taken)
    why = f"predicted to take {predicted[taken]:g} s of one core, {others}"
    return {"asked": "auto", "taken": taken, "why": why, "predicted_seconds": predicted}


def _counted(
    lists: InvertedLists, settings: JoinSettings, log: RunLog, side: str, method: dict[str, Any]
) -> SharedCounts:
    """Count what sets share: all pairs, or the k most similar of each; if all pairs are too many, a hundred of each."""
    threshold, summed, threads = settings.threshold, settings.summed, settings.threads
    k, visits = settings.k, MANY
    if k is None:
        with log.stage(side, len(lists)) as tick:
            most = most_listed(len(lists))
            found = lists.all_pairs(threshold, summed, threads, tick, most)
        if found is not None:
            return found
        k, visits = LISTED_EACH, limited_visits(len(lists))
        method["abridged"] = {"more_than": most, "k": k}
    with log.stage(side, len(lists)) as tick:
        found = lists.best(np.sort(lists.rows), k, threshold, summed, threads, tick, visits)
    if lists.cut:
        method["abridged"]["cut"] = lists.cut
    return found


def most_listed(sets: int) -> int:
    """Return the number of pairs of so many sets beyond which only the most similar of each are listed."""
    return max(LISTED, LISTED_EACH * sets)


def limited_visits(sets: int) -> int:
    """Return how many places of inverted lists are visited for each of so many sets, where the work must not grow."""
    return max(LEAST_VISITS, VISITS // max(1, sets))


def _joined(
    sets: Sets, settings: JoinSettings, log: RunLog, method: dict[str, Any]
) -> tuple[SharedCounts, dict[str, Any]]:
    """Find the pairs with `likewise.pairs`, by the exact join or by hashing."""
    request = PairsRequest(
        source=hashed(sets), threshold=settings.jaccard, method=method["taken"], recall=settings.recall,
        seed=settings.seed, k=settings.k, threads=settings.threads, memory=settings.memory, spill=settings.spill,
        progress=log.progress,
    )  # fmt: skip
    result = pairs(request)
    table, stats = result.table, result.stats
    log.add_stages(stats["seconds"])
    for name in ("predicted_recall", "banding", "abridged", "crowds"):
        if name in stats["details"]:
            method[name] = stats["details"][name]
    if stats["certificate"]:
        method["certificate"] = stats["certificate"]
    left, right = (table[name].to_numpy() for name in ("id_a", "id_b"))
    jaccard, sizes = table["similarity"].to_numpy(), sets.sizes
    a, b = sizes[left], sizes[right]
    shared = np.rint(jaccard * (a + b) / (1 + jaccard)).astype(np.int64)
    full = shared > 0  # `pairs` reports two empty sets as equal; two customers who have nothing are not similar
    found = SharedCounts(left[full], right[full], shared[full], sizes, settings.summed)
    kept = found.similarity >= settings.threshold
    return replace(found, left=found.left[kept], right=found.right[kept], shared=found.shared[kept]), method


@dataclass(frozen=True)
class ItemGroups:
    """The group of every item, as the number of the item that stands for it, and the names of groups that are given."""

    of: Ints
    names: list[str] | None = None

    @classmethod
    def found(cls, ratings: Ratings, view: View, threshold: float, join: JoinSettings, log: RunLog) -> ItemGroups:
        """Put similar items in one group: each is itself similar to the one that stands for the group.

        Items are taken in the order of the number of their customers, the first of them in case of a tie; each that
        is not in a group yet makes one of itself and of the items similar to it that are in none.
        """
        if join.summed:
            rule = f"{GROUPS_RULE}; with union='sum', at most 0.5"
            checks.number(OWNER, "groups", threshold, 0, 0.5, open_left=True, rule=rule)
        sets = view.sets_of(ratings, "items")
        settings = replace(join, threshold=threshold, k=None)
        pairs, _ = similar_pairs(sets, settings, log, "groups")
        left, right = (np.ascontiguousarray(side, np.int64) for side in (pairs.left, pairs.right))
        return cls(keepers(np.argsort(-sets.sizes, kind="stable"), left, right)[0])

    @classmethod
    def given(cls, ratings: Ratings, groups: Mapping[Any, Any]) -> ItemGroups:
        """Put items in the groups that a mapping names; an item that is not in it is a group of its own."""
        items = [str(name) for name in ratings.item_ids.to_pylist()]
        named = {str(item).strip(): group for item, group in groups.items()}
        known = [_group(named.get(item)) for item in items]
        if not any(group is not None for group in known):
            raise InputError(f"'groups' names none of the {len(items):,} items, such as {', '.join(items[:3])}")
        first: dict[str, int] = {}
        of = np.arange(len(items))
        for number, group in enumerate(known):
            if group is not None:
                of[number] = first.setdefault(group, number)
        return cls(of, [item if group is None else group for item, group in zip(items, known, strict=True)])

    def __len__(self) -> int:
        return len(np.unique(self.of))

    def table(self, ratings: Ratings) -> Any:
        """Return the items of groups of two or more: id, cluster, size, keeper.

        The keeper is the item to which the others are similar; of given groups, the one with the most customers.
        """
        keeper = self.of
        if self.names is not None:
            buyers = np.bincount(ratings.items, minlength=len(self.of))
            keeper = best_of_each(np.argsort(-buyers, kind="stable"), self.of)
        rows = np.flatnonzero(np.bincount(self.of, minlength=len(self.of))[self.of] > 1)
        rows = rows[np.argsort(self.of[rows], kind="stable")]
        columns = cluster_columns(lambda some: ratings.item_ids.take(to_arrow(some)), rows, self.of, keeper)
        if self.names is not None:
            columns["cluster"] = pa.array([self.names[row] for row in rows.tolist()], pa.string())
        return pa.table(columns)


def gathered(ratings: Ratings, view: View, groups: Any, join: JoinSettings, log: RunLog) -> ItemGroups | None:
    """Return the groups of items that are asked for, and count them."""
    if groups is None:
        return None
    if not isinstance(groups, Mapping):
        made = ItemGroups.found(ratings, view, groups, join, log)
    elif not groups:
        raise ParameterError.of(OWNER, "groups", GROUPS_RULE, groups)
    else:
        made = ItemGroups.given(ratings, groups)
    log.counts["item_groups"] = len(made)
    log.details["sets"] += f"; customers by {len(made):,} groups of {len(made.of):,} items"
    return made


def _group(group: Any) -> str | None:
    """Return the name of a group; None and NaN, as tables have them for missing values, are none."""
    if group is None or group != group:
        return None
    if not isinstance(group, str | int | float | np.generic):
        raise ParameterError.of(OWNER, "groups", "a mapping from each item to the name of one group", group)
    return str(group)
