"""The Fellegi–Sunter model: match weights of the agreement levels, learned from the data alone or from labelled pairs.

The weight of a level is the logarithm of its frequency among matches divided by its frequency among other pairs
(Fellegi and Sunter 1969). Which pairs match is not known, so matches and weights are estimated in turn (expectation
maximisation), starting from pairs of mutual nearest neighbours. Weights do not decrease as similarity increases. A
model may have learned something else than which pairs match: `doubts` says by which signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.agreement import ALL_TEXT, EQUAL, LEVELS, STEPS, Agreement, FieldAgreement, Halves, Some
from likewise.apps.link.fields import Floats
from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.kernels import linking as kernels

ROUNDS = 30
"""Rounds of EM at most: bounds the time if probabilities do not settle."""

STABLE = 1e-4
"""EM ends when no probability changes by this much."""

SAMPLE = 400_000
"""Pairs from which the weights are learned: bounds the time, and is enough for 26 levels per field."""

AT_ONCE = 1 << 17
"""Pairs that are scored at a time, of which each field and each kind of related pairs has numbers meanwhile."""

LIKELY, UNLIKELY = 0.9, 0.01
"""Initial probabilities of a match: of mutual nearest neighbours, and of other pairs."""

DAMPING = 0.75
"""Part of the weights that counts: fields depend on each other, and as independent evidence would count too much."""

DAMPING_ALL = 0.5
"""The same for all text, which repeats what the fields say."""

FREQUENCY = 0.5
"""Part of the rarity of identical values that counts: a rare surname says more, but misspellings are rare, too."""

ODD = 0.05
"""Part of the labels that are taken to be beyond explanation, such as matches of records that are damaged."""

HALVINGS = 40
"""Steps of the search for the log-odds with which there are so many matches."""

LOWEST_ABSENT = -1.0
"""The least weight of a value that is missing on one side and not found elsewhere: absence is weak evidence."""


@dataclass(frozen=True)
class MatchModel:
    """Match weights as natural logarithms, by field and level; `prior` is the log-odds of a match before comparing.

    `rarity` is the typical rarity of identical values of each field, `shares` the part of each field's weight that
    counts if it was learned from labels or from random pairs. `related` are log-odds, by fields: of pairs that agree in
    these fields by chance and in all others as matches do, against matches. The discs of a set are such pairs, and the
    people of a household.
    """

    weights: dict[str, Floats]
    rarity: dict[str, float]
    prior: float
    rounds: int
    shares: dict[str, float] = field(default_factory=dict)
    related: dict[tuple[str, ...], float] = field(default_factory=dict)

    def share(self, name: str) -> float:
        """Return the part of a field's weight that counts."""
        return self.shares.get(name, DAMPING_ALL if name == ALL_TEXT else DAMPING)

    def of(self, compared: FieldAgreement) -> Floats:
        """Return the weight of one field for each pair."""
        share, found = self.share(compared.name), np.empty(len(compared.level))
        usual, part = np.float32(self.rarity.get(compared.name, 0.0)), np.float32(share * FREQUENCY)
        worth = self.weights[compared.name] * share
        kernels.level_worth(compared.level, compared.rarity, worth, EQUAL, usual, part, found)
        return found

    def parts(self, compared: list[FieldAgreement]) -> dict[str, Floats]:
        """Return what each field adds to the log-odds of each pair; with the prior, these add up to the scores.

        That a pair may be related counts against a match, and is subtracted from the fields that can tell.
        """
        found = {one.name: self.of(one) for one in compared}
        if self.related:
            odds = self._related(compared, found, self.prior + np.sum(list(found.values()), axis=0))
            some = np.logaddexp.reduce(odds, axis=0)
            lost = np.logaddexp(0.0, some)
            for names, part in zip(self.related, np.exp(odds - np.maximum(some, np.finfo(float).min)), strict=True):
                for name in names:
                    found[name] = found[name] - part * lost / len(names)
        return found

    def _related(self, compared: list[FieldAgreement], weights: dict[str, Floats], total: Floats) -> Floats:
        """Return the log-odds of related pairs, against other pairs that are no matches, a row for each kind.

        Pairs without the fields that tell are not taken for related.
        """
        level = {one.name: one.level for one in compared}
        found = np.full((len(self.related), len(total)), -np.inf)
        for row, (names, more) in zip(found, self.related.items(), strict=True):
            known = np.logical_or.reduce([level[name] >= 0 for name in names])
            row[known] = (more + total - np.sum([weights[name] for name in names], axis=0))[known]
        return found

    def scores(self, compared: list[FieldAgreement]) -> Floats:
        """Return the log-odds that pairs match."""
        return self.judged(compared)[0]

    def judged(self, compared: list[FieldAgreement]) -> tuple[Floats, dict[tuple[str, ...], Floats]]:
        """Return the log-odds that pairs match, and the probabilities that they are related, by telling fields."""
        if not self.related:
            total = np.full(len(compared[0].level), self.prior)
            for one in compared:
                total += self.of(one)
            return total, {}
        weights = {one.name: self.of(one) for one in compared}
        total = self.prior + np.sum(list(weights.values()), axis=0)
        odds = self._related(compared, weights, total)
        others = np.logaddexp.reduce([np.zeros_like(total), *odds], axis=0)
        whole = np.logaddexp(others, total)
        return total - others, {names: np.exp(one - whole) for names, one in zip(self.related, odds, strict=True)}


def scores_of(model: MatchModel, compared: Sequence[Agreement], threads: int = 1) -> Floats:
    """Return the log-odds that pairs match, however many they are: some are scored at a time."""
    whole = len(compared[0].level)
    found = np.empty(whole)

    def score(start: int) -> None:
        some = slice(start, start + AT_ONCE)
        found[some] = model.scores([one.part(some) for one in compared])

    for _ in in_order(score, range(0, whole, AT_ONCE), threads):
        pass
    return found


def rising(values: Floats, weights: NDArray[Any]) -> Floats:
    """Return the non-decreasing sequence nearest to the values: isotonic regression by pooling adjacent violators.

    >>> rising(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4)).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[list[float]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            last, before = pools.pop(), pools.pop()
            whole = last[1] + before[1]
            mean = (last[0] * last[1] + before[0] * before[1]) / whole
            pools.append([mean, whole, last[2] + before[2]])
    return np.repeat([pool[0] for pool in pools], [int(pool[2]) for pool in pools]).astype(np.float64)


def chance(scores: Floats) -> Floats:
    """Return the probabilities of log-odds."""
    found: Floats = np.clip(scores, -50, 50)
    np.exp(np.negative(found, out=found), out=found)
    found += 1
    return np.divide(1, found, out=found)


def shift_to(scores: Floats, matches: float) -> float:
    """Return what to add to log-odds so that their probabilities add up to a number of matches."""
    low, high = -50.0 - float(scores.max()), 50.0 - float(scores.min())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if float(chance(scores + middle).sum()) > matches else (middle, high)
    return (low + high) / 2


def nearest_first(alike: Halves, left: Ints, right: Ints, records: int) -> Floats:
    """Return the initial probabilities of EM: pairs that are mutual nearest neighbours, by how `alike` they are."""
    best = kernels.best_partners(left, right, alike, records)
    return np.where((alike >= best[left]) & (alike >= best[right]), LIKELY, UNLIKELY)


def counted(compared: list[FieldAgreement], matches: Floats) -> MatchModel:
    """Return the weights that follow from the probabilities that pairs match."""
    weights: dict[str, Floats] = {}
    typical: dict[str, float] = {}
    share = min(max(float(matches.mean()) if len(matches) else 0.5, 1e-6), 1 - 1e-6)
    for one in compared:
        known = one.level >= 0
        level = one.level[known]
        same = np.bincount(level, matches[known], LEVELS)
        other = np.bincount(level, 1 - matches[known], LEVELS)
        both = same + other
        base = both / max(1.0, both.sum())
        ratio = (same + base) / (same.sum() + 1) / np.maximum((other + base) / (other.sum() + 1), 1e-300)
        logs = np.log(np.maximum(ratio, 1e-12), where=both > 0, out=np.zeros(LEVELS))
        logs[: STEPS + 1] = rising(logs[: STEPS + 1], both[: STEPS + 1] + 1e-9)
        logs[STEPS + 1 :] = np.maximum(rising(logs[STEPS + 1 :], both[STEPS + 1 :] + 1e-9), LOWEST_ABSENT)
        weights[one.name] = logs
        equal = ~np.isnan(one.rarity)
        if equal.any():
            typical[one.name] = float(np.average(one.rarity[equal], weights=1 - matches[equal] + 1e-3))
    return MatchModel(weights, typical, float(np.log(share / (1 - share))), 0)


def shared_out(chances: Floats, left: Ints, right: Ints) -> Floats:
    """Return probabilities that add up to at most 1 for every record: it has at most one match in the other table.

    >>> shared_out(np.array([0.9, 0.9, 0.2]), np.array([0, 0, 1]), np.array([2, 3, 3])).round(2).tolist()
    [0.5, 0.5, 0.2]
    """
    for side in (left, right):
        chances = chances / np.maximum(1.0, np.bincount(side, chances))[side]
    return chances


def sample(size: int, seed: int) -> Some:
    """Return which of so many pairs are learned from: a random `SAMPLE`, or all."""
    return np.sort(np.random.default_rng(seed).choice(size, SAMPLE, replace=False)) if size > SAMPLE else slice(None)


def learn(
    pairs: Sequence[Agreement],
    start: Floats,
    never: NDArray[np.bool_],
    seed: int = 1,
    sides: tuple[Ints, Ints] | None = None,
) -> MatchModel:
    """Return the model that EM finds from the initial probabilities; pairs in `never` are no matches.

    `sides` are the records of the pairs if each record has at most one match. Of more than `SAMPLE` pairs, a random
    sample is used.
    """
    chosen = sample(len(start), seed)
    compared = [one.part(chosen) for one in pairs]
    start, never = start[chosen], never[chosen]
    sides = None if sides is None else (sides[0][chosen], sides[1][chosen])
    matches = np.where(never, 0.0, start)
    model = counted(compared, matches)
    rounds, moved = 0, 1.0
    while moved >= STABLE and rounds < ROUNDS:
        rounds += 1
        after = np.where(never, 0.0, chance(model.scores(compared)))
        if sides is not None:
            after = shared_out(after, *sides)
        moved = float(np.abs(after - matches).max(initial=0.0))
        matches = after
        model = counted(compared, matches)
    return MatchModel(model.weights, model.rarity, model.prior, rounds)


def train(
    compared: Sequence[Agreement],
    start: MatchModel,
    chosen: Ints,
    labels: NDArray[np.bool_],
    penalty: float = 1.0,
    added: Floats | None = None,
) -> MatchModel:
    """Return the model with the share of each field that fits labelled pairs best, by logistic regression.

    The weights of levels are those of `start`; shares are drawn towards 1 by the `penalty`. A label that contradicts
    everything else counts little (`ODD`). `added` is what the scores of the labelled pairs have beside the model.
    """
    more = np.zeros(len(chosen)) if added is None else added
    picked = [one.part(chosen) for one in compared]
    columns = np.stack([*start.parts(picked).values(), np.ones(len(chosen))], axis=1)
    pull = np.array([1.0] * len(picked) + [0.0])
    beta = np.append(np.ones(len(picked)), start.prior)
    strength = np.array([penalty] * len(picked) + [1e-6])
    for _ in range(100):
        expected = chance(columns @ beta + more)
        seen = ODD / 2 + (1 - ODD) * expected
        counts = (1 - ODD) * expected * (1 - expected) / (seen * (1 - seen))
        slope = columns.T @ (counts * (labels - seen)) - strength * (beta - np.append(pull[:-1], beta[-1]))
        curve = (columns * (counts * expected * (1 - expected))[:, None]).T @ columns + np.diag(strength + 1e-9)
        step = np.linalg.solve(curve, slope)
        beta = beta + np.clip(step, -2, 2)
        beta[:-1] = np.maximum(beta[:-1], 0.0)
        if np.abs(step).max() < 1e-8:
            break
    shares = {one.name: float(share) * start.share(one.name) for one, share in zip(picked, beta[:-1], strict=True)}
    return replace(start, prior=float(beta[-1]), shares=shares)


def weights_of(model: MatchModel, compared: Sequence[Agreement]) -> dict[str, tuple[float, float]]:
    """Return the weights of disagreement and of agreement of each field, in points: 10 · log10 of the odds."""
    found = {}
    for one in compared:
        logs = model.weights[one.name][: STEPS + 1] * model.share(one.name) * 10 / np.log(10)
        found[one.name] = (round(float(logs[0]), 1), round(float(logs[-1 if one.name != ALL_TEXT else -2]), 1))
    return found


OPEN = 5.0
"""Open triads per accepted pair from which on a model is not believed: identity is transitive. Where linkage works they
are about 1 or fewer, where it fails 15 and more."""

PATHS = 20_000
"""Triads that are looked at."""

WRONG = -0.25
"""Identical values of a field are evidence against a match from this weight on (natural logarithm), about a point, and
different values are evidence of one from its opposite."""

NOTHING = 0.25
"""Identical values of a field say nothing up to this weight."""


def misleading(model: MatchModel) -> list[str]:
    """Return the fields whose identical values would be evidence against a match."""
    return [name for name, logs in model.weights.items() if name != ALL_TEXT and logs[EQUAL] < WRONG]


def odd(model: MatchModel) -> list[str]:
    """Return the fields whose different values would be evidence of a match."""
    return [name for name, logs in model.weights.items() if name != ALL_TEXT and logs[0] > -WRONG]


def doubts(model: MatchModel, scores: Floats, left: Ints, right: Ints, records: int, seed: int = 1) -> str | None:
    """Return why the model cannot be believed, or None.

    left, right, scores: the pairs and their log-odds.
    """
    wrong = misleading(model)
    if wrong:
        return f"identical values of {', '.join(wrong)} would be evidence against a match"
    strange = odd(model)
    if strange:
        return f"different values of {', '.join(strange)} would be evidence of a match"
    idle = [name for name, logs in model.weights.items() if name != ALL_TEXT and logs[EQUAL] < NOTHING]
    if 2 * len(idle) > len(model.weights):
        return f"identical values of {', '.join(idle)} would be no evidence of a match"
    triads = open_triads(left, right, scores > 0, records, seed)
    return f"there are {triads:.0f} open triads (a is b, b is c, a is not c) for each match" if triads > OPEN else None


def open_triads(left: Ints, right: Ints, accepted: np.ndarray, records: int, seed: int = 1) -> float:
    """Return the number of paths of two accepted pairs whose ends were compared and rejected, per accepted pair.

    Pairs are sorted.

    >>> left, right = np.array([0, 0, 1]), np.array([1, 2, 2])
    >>> open_triads(left, right, np.array([True, False, True]), 3), open_triads(left, right, np.ones(3, bool), 3)
    (0.5, 0.0)
    """
    a, b = left[accepted], right[accepted]
    if not len(a):
        return 0.0
    ends, others = np.concatenate([a, b]), np.concatenate([b, a])
    others = others[np.argsort(ends, kind="stable")]
    degree = np.bincount(ends, minlength=records)
    starts = np.cumsum(degree) - degree
    paths = degree * (degree - 1) // 2
    whole = int(paths.sum())
    if not whole:
        return 0.0
    dice = np.random.default_rng(seed)
    picked = np.arange(whole) if whole <= PATHS else dice.integers(0, whole, PATHS)
    middle = np.searchsorted(np.cumsum(paths), picked, side="right")
    rank = picked - (np.cumsum(paths) - paths)[middle]
    # the rank-th pair (x, y), x < y, of the neighbours of the middle
    y = np.floor((1 + np.sqrt(1 + 8 * rank)) / 2).astype(np.int64)
    y -= y * (y - 1) // 2 > rank
    x = rank - y * (y - 1) // 2
    one, two = others[starts[middle] + x], others[starts[middle] + y]
    asked = np.minimum(one, two) * records + np.maximum(one, two)
    keys = left * records + right
    places = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    rejected = (keys[places] == asked) & ~accepted[places]
    return float(rejected.mean()) * whole / len(a)
