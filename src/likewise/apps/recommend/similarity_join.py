"""The similar pairs of customers or of items: by counting, by the exact join or by hashing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.apps.recommend.inverted_lists import InvertedLists, SharedCounts
from likewise.apps.recommend.ratings import OWNER, IntegerSets
from likewise.base import checks
from likewise.base.memory import Budget
from likewise.base.runlog import RunLog
from likewise.errors import InputError
from likewise.families.minhash import MinHash
from likewise.families.tuning import Similarities, tune_for
from likewise.jobs.pairs import pairs
from likewise.search.prepare import LITTLE, choose
from likewise.search.sketch import agreement_counts

METHODS = ("auto", "count", "exact", "lsh")
UNIONS = ("max", "sum")
THRESHOLD, RECALL = 0.2, 0.99
"""Defaults. Customers who share a fifth of their purchases are similar: hardly anybody shares nine tenths."""
MEETING = 3e-9
"""Seconds of one core for two sets to meet in an inverted list, for the prediction of costs."""
LISTING = 7e-7
"""Seconds of one core in which `pairs` compares and lists a pair, for the prediction of costs."""
PAIR_BYTES = 32
"""Bytes per pair that all pairs take while they are sorted."""
DOUBT = {"count": 1, "exact": 2, "lsh": 4}
"""How many times cheaper a method must be: meetings are known, other costs are estimates, and hashing misses pairs."""
SAMPLE, SLOTS = 1000, 512
"""Sets sampled, and the length of their signatures, to predict the cost of a join."""
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
        if self.method == "count" and self.k is not None:
            checks.unused(OWNER, {"memory": (self.memory, None)}, "with the method 'count' and k")
        Budget.of(OWNER, self.memory)

    @property
    def summed(self) -> bool:
        """True if the union of two bags is their sum."""
        return self.union == "sum"

    @property
    def jaccard(self) -> float:
        """The threshold as Jaccard similarity: c / (a + b) is s when c / (a + b - c) is s / (1 - s)."""
        return min(1.0, self.threshold / (1 - self.threshold) * NEARLY) if self.summed else self.threshold


def similar_pairs(
    sets: IntegerSets, settings: JoinSettings, log: RunLog, side: str
) -> tuple[SharedCounts, dict[str, Any]]:
    """Return the similar pairs of one side, customers or items; and the method, why, and what it reported."""
    lists = InvertedLists(sets)
    method = {"asked": settings.method, "taken": settings.method, "why": "it was asked for"}
    if settings.method == "auto":
        method = _chosen(sets, lists, settings)
    if method["taken"] == "count":
        return _counted(lists, settings, log, side), method
    return _joined(sets, settings, log, method)


def _chosen(sets: IntegerSets, lists: InvertedLists, settings: JoinSettings) -> dict[str, Any]:
    """Predict the cost of each method from the inverted lists and from a sample of the sets; choose the cheapest."""
    count = lists.meetings * MEETING
    if count <= LITTLE:
        return {"asked": "auto", "taken": "count", "why": f"predicted to take less than {LITTLE:g} s of one core"}
    rows = np.sort(np.random.default_rng(settings.seed).permutation(np.flatnonzero(sets.sizes))[:SAMPLE])
    sample = sets.hashed().take(rows)
    minhash, n = MinHash(settings.seed), len(lists)
    agreements = agreement_counts(sample, minhash, SLOTS, settings.threads)
    corpus = Similarities.sampled(agreements, len(sample), max(2, n), float(sample.sizes.mean()), settings.jaccard)
    tuning = tune_for(settings.jaccard, settings.recall, corpus)
    choice = choose(sample, n, settings.jaccard, tuning.banding, tuning.predicted_candidates)
    sampled = InvertedLists(sets.take(rows)).pairs(settings.threshold, settings.summed, 1, lambda _: None)
    listing = sum(len(part[0]) for part in sampled) * (n / max(1, len(rows))) ** 2 * LISTING
    seconds = {"count": count, "exact": choice.exact_seconds + listing, "lsh": choice.lsh_seconds + listing}
    predicted = {name: float(f"{value:.3g}") for name, value in seconds.items()}
    taken = min(predicted, key=lambda name: predicted[name] * DOUBT[name])
    others = ", ".join(f"{name} {value:g} s" for name, value in predicted.items() if name != taken)
    why = f"predicted to take {predicted[taken]:g} s of one core, {others}"
    return {"asked": "auto", "taken": taken, "why": why, "predicted_seconds": predicted}


def _counted(lists: InvertedLists, settings: JoinSettings, log: RunLog, side: str) -> SharedCounts:
    threshold, summed, threads = settings.threshold, settings.summed, settings.threads
    with log.stage(side, len(lists)) as tick:
        if settings.k is not None:
            return lists.best(np.sort(lists.rows), settings.k, threshold, summed, threads, tick)
        most = Budget.of(OWNER, settings.memory).total // PAIR_BYTES
        found = lists.all_pairs(threshold, summed, threads, tick, most)
    if found is None:
        raise InputError(
            f"more than {most:,} pairs of {side} are similar, too many to list in memory; list the most similar of each"
            " with k=10, raise the threshold, or list no pairs with only='recommendations'"
        )
    return found


def _joined(
    sets: IntegerSets, settings: JoinSettings, log: RunLog, method: dict[str, Any]
) -> tuple[SharedCounts, dict[str, Any]]:
    """Find the pairs with `likewise.pairs`, by the exact join or by hashing."""
    result = pairs(
        sets.hashed(), threshold=settings.jaccard, method=method["taken"], recall=settings.recall, seed=settings.seed,
        k=settings.k, threads=settings.threads, memory=settings.memory, progress=log.progress,
    )  # fmt: skip
    table, stats = result.table, result.stats
    for stage, seconds in stats["seconds"].items():
        log.seconds[stage] = log.seconds.get(stage, 0.0) + seconds
    for name in ("predicted_recall", "banding", "abridged", "crowds"):
        if name in stats["details"]:
            method[name] = stats["details"][name]
    if stats["certificate"]:
        method["certificate"] = stats["certificate"]
    left, right = (table[name].to_numpy() for name in ("id_a", "id_b"))
    jaccard, sizes = table["similarity"].to_numpy(), sets.sizes
    a, b = sizes[left], sizes[right]
    shared = np.rint(jaccard * (a + b) / (1 + jaccard)).astype(np.int64)
    full = np.flatnonzero(
        shared
    )  # `pairs` reports two empty sets as equal; two customers who have nothing are not similar
    found = SharedCounts(left[full], right[full], shared[full], sizes, settings.summed)
    kept = found.similarity >= settings.threshold
    return replace(found, left=found.left[kept], right=found.right[kept], shared=found.shared[kept]), method
