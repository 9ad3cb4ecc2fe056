"""All similar pairs of one side, by counting, by the exact join or by hashing: whichever is asked for or cheaper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.apps.recommend.collecting import SEED, Side
from likewise.apps.recommend.counting import Found, Lists
from likewise.base.arrays import Ints, Sets
from likewise.base.memory import Budget
from likewise.base.runlog import RunLog
from likewise.errors import InputError, ParameterError
from likewise.families.minhash import MinHash
from likewise.families.tuning import Similarities, tune_for
from likewise.jobs.pairs import pairs
from likewise.kernels.hashing import mix_all
from likewise.search.prepare import LITTLE, choose
from likewise.search.sketch import agreement_counts

METHODS = ("auto", "count", "exact", "lsh")
UNIONS = ("max", "sum")
MEETING = 3e-9
"""Seconds of one core for two sets to meet in a list."""
LISTING = 7e-7
"""Seconds of one core in which `pairs` compares and lists a pair."""
PAIR_BYTES = 32
DOUBT = {"count": 1, "exact": 2, "lsh": 4}
"""So many times cheaper a method must be: meetings are known, other costs are guessed, and hashing may miss pairs."""
SAMPLE, SLOTS = 1000, 512
NEARLY = 1 - 1e-12


@dataclass(frozen=True)
class Aim:
    """Which pairs are wanted, and how they are to be found."""

    threshold: float
    union: str = "max"
    top: int | None = None
    method: str = "auto"
    recall: float = 0.99
    seed: int = 1
    threads: int = 1
    memory: str | int | None = None

    def __post_init__(self) -> None:
        most = 0.5 if self.union == "sum" else 1.0
        if self.union not in UNIONS:
            raise ParameterError.of("tastes", "union", "'max' or 'sum'", self.union)
        if isinstance(self.threshold, bool) or not 0 < self.threshold <= most:
            more = "; with the union 'sum', equal bags have 1/2" if self.union == "sum" else ""
            raise ParameterError.of("tastes", "threshold", f"above 0 and at most {most:g}{more}", self.threshold)
        if self.method not in METHODS:
            raise ParameterError.of("tastes", "method", "'auto', 'count', 'exact' or 'lsh'", self.method)
        if self.top is not None and (isinstance(self.top, bool) or not isinstance(self.top, int) or self.top < 1):
            raise ParameterError.of("tastes", "top", "a positive whole number", self.top)

    @property
    def summed(self) -> bool:
        """True if the union of two bags is their sum."""
        return self.union == "sum"

    @property
    def jaccard(self) -> float:
        """The threshold as Jaccard similarity: c / (a + b) is s when c / (a + b - c) is s / (1 - s)."""
        return min(1.0, self.threshold / (1 - self.threshold) * NEARLY) if self.summed else self.threshold


def similar(side: Side, aim: Aim, log: RunLog, name: str) -> tuple[Found, dict[str, Any]]:
    """Return the similar pairs of one side, and which method was taken and why."""
    lists = Lists(side)
    method = {"asked": aim.method, "taken": aim.method, "why": "it was asked for"}
    if aim.method == "auto":
        method = _chosen(side, lists, aim)
    if method["taken"] == "count":
        return _counted(lists, aim, log, name), method
    return _joined(side, aim, log, method)


def _chosen(side: Side, lists: Lists, aim: Aim) -> dict[str, Any]:
    """Predict what each method takes, from the lists and from a sample of the sets."""
    count = lists.meetings * MEETING
    if count <= LITTLE:
        return {"asked": "auto", "taken": "count", "why": f"predicted to take less than {LITTLE:g} s of one core"}
    chosen = np.sort(np.random.default_rng(aim.seed).permutation(np.flatnonzero(side.sizes))[:SAMPLE])
    sample = _sets(side).take(chosen)
    minhash, n = MinHash(aim.seed), len(lists)
    agreements = agreement_counts(sample, minhash, SLOTS, aim.threads)
    corpus = Similarities.sampled(agreements, len(sample), max(2, n), float(sample.sizes.mean()), aim.jaccard)
    tuning = tune_for(aim.jaccard, aim.recall, corpus)
    choice = choose(sample, n, aim.jaccard, tuning.banding, tuning.predicted_candidates)
    alike = sum(
        len(part[0]) for part in Lists(_taken(side, chosen)).pairs(aim.threshold, aim.summed, 1, lambda _: None)
    )
    listing = alike * (n / max(1, len(chosen))) ** 2 * LISTING
    seconds = {"count": count, "exact": choice.exact_seconds + listing, "lsh": choice.lsh_seconds + listing}
    told = {name: float(f"{value:.3g}") for name, value in seconds.items()}
    taken = min(told, key=lambda name: told[name] * DOUBT[name])
    others = ", ".join(f"{name} {value:g} s" for name, value in told.items() if name != taken)
    why = f"predicted to take {told[taken]:g} s of one core, {others}"
    return {"asked": "auto", "taken": taken, "why": why, "predicted_seconds": told}


def _taken(side: Side, rows: Ints) -> Side:
    part = Sets(side.elements, side.offsets).take(rows)
    return Side(part.offsets, part.values)


def _sets(side: Side) -> Sets:
    values = np.empty(len(side.elements), np.uint64)
    mix_all(side.elements.view(np.uint64), SEED, values)
    return Sets(values, side.offsets)


def _counted(lists: Lists, aim: Aim, log: RunLog, name: str) -> Found:
    with log.stage(name, len(lists)) as tick:
        if aim.top is not None:
            return lists.best(np.sort(lists.rows), aim.top, aim.threshold, aim.summed, aim.threads, tick)
        most = Budget.of("tastes", aim.memory).total // PAIR_BYTES
        found = lists.all_pairs(aim.threshold, aim.summed, aim.threads, tick, most)
    if found is None:
        raise InputError(
            f"more than {most:,} pairs of {name} are similar, too many to list them all; list the nearest of each with"
            " --top 10, or raise the threshold"
        )
    return found


def _joined(side: Side, aim: Aim, log: RunLog, method: dict[str, Any]) -> tuple[Found, dict[str, Any]]:
    """Find the pairs as `likewise.pairs` does, by the exact join or by hashing."""
    result = pairs(
        _sets(side), threshold=aim.jaccard, method=method["taken"], recall=aim.recall, seed=aim.seed, k=aim.top,
        threads=aim.threads, memory=aim.memory, progress=log.progress,
    )  # fmt: skip
    table, stats = result.table, result.stats
    for stage, seconds in stats["seconds"].items():
        log.seconds[stage] = log.seconds.get(stage, 0.0) + seconds
    for name in ("predicted_recall", "banding", "abridged"):
        if name in stats["details"]:
            method[name] = stats["details"][name]
    if stats["certificate"]:
        method["certificate"] = stats["certificate"]
    left, right = (table[name].to_numpy() for name in ("id_a", "id_b"))
    jaccard, sizes = table["similarity"].to_numpy(), side.sizes
    a, b = sizes[left], sizes[right]
    shared = np.rint(jaccard * (a + b) / (1 + jaccard)).astype(np.int64)
    full = np.flatnonzero(shared)  # two empty sets are alike to `pairs`; customers who have nothing are not
    found = Found(left[full], right[full], shared[full], sizes, aim.summed)
    kept = found.similarity >= aim.threshold
    return replace(found, left=found.left[kept], right=found.right[kept], shared=found.shared[kept]), method
