"""How good are linked records? Precision, recall and F1 of pairs, and the F1 that the best threshold would reach.

And how reliable are their probabilities? Of the pairs that were given one, by tenths, the mean and the part that match.

The best threshold is found from the scores of all candidates, with the truth in hand, which a user has not: what is
between it and the F1 of the run was lost by the decision, what is between it and 1 by candidates and scores. All
thresholds are tried, each with the kind of answer that the run gave ("rule"), and with every kind ("any rule"):

    pairs       every pair from the threshold on
    one to one  from the best pair down, pairs of records that have no partner yet
    left, right the best partner of each record of the first table, or of the second
    components  one table: all records that pairs from the threshold on connect, directly or not

Pairs of equal scores are in or out together; in "one to one", "left" and "right" chance decides between them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from record_sets import Pairs
from scores import components as connected
from truth import Integers

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Best:
    """The highest F1, the threshold that reaches it, and the rule."""

    f1: float
    threshold: float
    rule: str


@dataclass(frozen=True)
class Scored:
    """Candidates, highest score first: records by number, scores, and whether each is true.

    `entity` is the number of the true entity of each record (of one table), `total` the number of true pairs.
    """

    left: Integers
    right: Integers
    score: Floats
    true: Truths
    entity: Integers
    total: int
    two: bool


def quality(found: Pairs, truth: Pairs) -> tuple[float, float, float]:
    """Precision, recall, F1."""
    right = len(found & truth)
    precision, recall = right / max(1, len(found)), right / max(1, len(truth))
    return precision, recall, 2 * right / max(1, len(found) + len(truth))


def scored_pairs(candidates: pa.Table, matches: pa.Table, truth: pa.Table, two: bool, seed: int = 1) -> Scored:
    """Number the records; matches that are no candidates, such as copies of matched records, count as candidates."""
    tables = (truth, candidates, matches)
    keys, size = _keys(tables, two)
    pairs, place = np.unique(np.concatenate(keys[1:]), return_index=True)
    score = np.concatenate([table["score"].to_numpy() for table in tables[1:]]).astype(np.float64)[place]
    order = np.lexsort((np.random.default_rng(seed).permutation(len(pairs)), -score))
    true = np.unique(keys[0])
    entity = np.arange(0) if two else connected(true // size, true % size, size)
    pairs = pairs[order]
    return Scored(pairs // size, pairs % size, score[order], np.isin(pairs, true), entity, len(true), two)


def _keys(tables: Sequence[pa.Table], two: bool) -> tuple[list[Integers], int]:
    """Number the records; return the pairs of each table as first · records + second, and the number of records."""
    names = ("id_a", "id_b")
    columns = [[table[name].cast(pa.string()).combine_chunks() for table in tables] for name in names]
    if two:
        known = [pc.unique(pa.concat_arrays(some)) for some in columns]
    else:
        known = [pc.unique(pa.concat_arrays([*columns[0], *columns[1]]))] * 2
    numbers = [
        [pc.index_in(column, values).to_numpy(zero_copy_only=False).astype(np.int64) for column in some]
        for some, values in zip(columns, known, strict=True)
    ]
    size = max(map(len, known))
    keys = []
    for one, other in zip(*numbers, strict=True):
        first, second = (one, other) if two else (np.minimum(one, other), np.maximum(one, other))
        keys.append(first * size + second)
    return keys, size


@dataclass(frozen=True)
class Tenth:
    """Pairs with a probability of at least `low` and less than a tenth more: their mean, and the part that match.

    All pairs of the same two entities match, or none does, which is one observation. With c pairs of each two, the part
    that match varies as that of `independent` pairs, (sum of c)² / (sum of c²).
    """

    low: float
    pairs: int
    stated: float
    true: float
    independent: float

    @property
    def off(self) -> bool:
        """Whether the stated mean is wrong by more than PROMISED, and that is no chance (RARE)."""
        count = max(1, round(self.independent))
        if self.true > self.stated:
            return _as_many(count, round(self.true * count), min(1.0, self.stated + PROMISED)) < RARE
        return _as_many(count, round((1 - self.true) * count), min(1.0, 1 - self.stated + PROMISED)) < RARE


PROMISED = 0.1
"""What the mean of a tenth may be wrong by."""

RARE = 0.025
"""Probability of each end outside an interval that holds 95 %."""


def _as_many(count: int, least: int, part: float) -> float:
    """The probability that of so many independent pairs at least so many match, if this part do (binomial)."""
    if least <= 0 or part >= 1:
        return 1.0
    odds = math.log(part) - math.log1p(-part)
    first = math.lgamma(count + 1) + count * math.log1p(-part)
    logs = (first + k * odds - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(least, count + 1))
    return math.fsum(map(math.exp, logs))


ENOUGH = 20
"""Pairs of a tenth from which on it counts for the largest error."""


def reliability(scored: pa.Table, truth: pa.Table, two: bool) -> list[Tenth]:
    """The tenths of `match_probability` that have pairs; those of 1 are in the last one."""
    known = scored.filter(pc.is_valid(scored["match_probability"]))
    (true, pairs), size = _keys((truth, known), two)
    matches = np.isin(pairs, true)
    apart = size if two else 0
    entity = connected(true // size, true % size + apart, size + apart)
    ends = np.sort(np.stack([entity[pairs // size], entity[pairs % size + apart]]), axis=0)
    entities = ends[0] * len(entity) + ends[1]
    stated = known["match_probability"].to_numpy()
    place = np.minimum((stated * 10 + 1e-9).astype(np.int64), 9)
    found = ((tenth, place == tenth) for tenth in range(10))
    return [
        Tenth(
            tenth / 10, int(some.sum()), float(stated[some].mean()), float(matches[some].mean()),
            float(some.sum() ** 2 / (np.unique(entities[some], return_counts=True)[1].astype(float) ** 2).sum()),
        )
        for tenth, some in found
        if some.any()
    ]  # fmt: skip


def largest_error(tenths: Iterable[Tenth]) -> float | None:
    """How far the mean and the part that match are apart at most, where there are enough pairs."""
    return max((abs(one.stated - one.true) for one in tenths if one.pairs >= ENOUGH), default=None)


def best_threshold(scored: Scored, rule: str) -> tuple[Best, Best]:
    """The best threshold with the rule of a run, in likewise's words, and the best one with any rule."""
    ways = TWO if scored.two else ONE
    found = {name: way(scored) for name, way in ways.items()}
    alike = [one for name, one in found.items() if name in _like(rule, scored.two)]
    return max(alike, key=_reached), max(found.values(), key=_reached)


def _reached(one: Best) -> float:
    return one.f1


def _like(rule: str, two: bool) -> tuple[str, ...]:
    """The rules here that answer as the rule of a run does; clusters are compared with pairs and components."""
    if not two:
        return tuple(ONE)
    if "one to one" in rule:
        return ("one to one",)
    if "one partner" in rule:
        return ("left",) if "first table" in rule else ("right",)
    return ("pairs",) if "every pair" in rule else tuple(TWO)


def _best(scored: Scored, taken: Integers, rule: str) -> Best:
    """The best threshold if pairs are taken at these places, in order."""
    right = np.cumsum(scored.true[taken])
    f1 = 2 * right / (np.arange(1, len(taken) + 1) + scored.total)
    return _highest(f1, scored.score[taken], rule)


def _highest(f1: Floats, score: Floats, rule: str) -> Best:
    if not len(f1):
        return Best(0.0, 0.0, rule)
    last = np.append(score[1:] != score[:-1], True)
    place = int(np.argmax(np.where(last, f1, -1.0)))
    return Best(float(f1[place]), float(score[place]), rule)


def pairs(scored: Scored) -> Best:
    """Every pair."""
    return _best(scored, np.arange(len(scored.left)), "pairs")


def best_left(scored: Scored) -> Best:
    """The best partner of each record of the first table."""
    return _best(scored, np.sort(np.unique(scored.left, return_index=True)[1]), "left")


def best_right(scored: Scored) -> Best:
    """The best partner of each record of the second table."""
    return _best(scored, np.sort(np.unique(scored.right, return_index=True)[1]), "right")


def one_to_one(scored: Scored) -> Best:
    """From the best pair down, those of records without a partner."""
    return _best(scored, np.fromiter(_greedy(scored), np.int64), "one to one")


def _greedy(scored: Scored) -> Iterator[int]:
    lefts: set[int] = set()
    rights: set[int] = set()
    for place, (one, other) in enumerate(zip(scored.left.tolist(), scored.right.tolist(), strict=True)):
        if one not in lefts and other not in rights:
            lefts.add(one)
            rights.add(other)
            yield place


def components(scored: Scored) -> Best:
    """All pairs of connected records; it ends when more would be wrong than the best answer so far can bear."""
    parent = list(range(len(scored.entity)))
    entity = scored.entity.tolist()
    held: dict[int, Counter[int]] = {}
    found = right = 0
    best = 0.0
    f1: list[float] = []
    last = np.append(scored.score[1:] != scored.score[:-1], True).tolist()
    for one, other, end in zip(scored.left.tolist(), scored.right.tolist(), last, strict=True):
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        while parent[other] != other:
            parent[other] = other = parent[parent[other]]
        if one != other:
            first, second = (held.pop(root, Counter({entity[root]: 1})) for root in (one, other))
            if len(first) < len(second):
                first, second = second, first
            found += first.total() * second.total()
            right += sum(count * first[what] for what, count in second.items())
            first.update(second)
            held[one] = first
            parent[other] = one
        f1.append(2 * right / (found + scored.total))
        if end:
            best = max(best, f1[-1])
            if 2 * scored.total / (found + scored.total) < best:
                break
    return _highest(np.array(f1), scored.score[: len(f1)], "components")


ONE: dict[str, Callable[[Scored], Best]] = {"pairs": pairs, "components": components}
TWO: dict[str, Callable[[Scored], Best]] = {
    "pairs": pairs, "one to one": one_to_one, "left": best_left, "right": best_right,
}  # fmt: skip
