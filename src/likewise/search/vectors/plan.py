"""Vectors to bits, and how many of them, in which groups and tables: the cheapest plan that keeps the requested recall.

The closer two vectors are, the more likely their bits agree, with a known probability: they agree in a group of g bits
with probability q. The number of the m groups in which they agree is binomial, and there is a table for every t of the
groups: they share a bucket if they agree in at least t groups. So a few bits make many tables.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.parallel import in_order
from likewise.base.random import uniform
from likewise.families.stripes import Stripes
from likewise.families.vectors import Hyperplanes
from likewise.kernels.vector_tables import pack_chosen, pack_parities, pack_signs
from likewise.search.vectors.spaces import ROWS, Angle, Bits, Euclid, Floats, Space

# Nanoseconds on one core, measured by benchmarks/vector_costs.py; only their ratios matter.
PRODUCT = 0.05
"""One multiplication and addition of a matrix product."""
PACK = 0.5
"""One bit."""
TABLE = 32.0
"""One vector in one table."""
COMPARE = 9.0
"""One pair that shares a bucket."""
LOOK = 4.5
"""One word of the bits of such a pair."""
GROUP = 2.5
"""One group of a pair, to see whether an earlier table had it."""
VERIFY = 290.0
"""One pair, by its vectors."""
COMPONENT = 4.7
"""One component of a verified pair."""
SCORE = 0.6
"""One pair of a block, beside the product."""
SUM = 0.12
"""One component of a pair of a block, where that is no matrix product."""
WORD = 0.25
"""One word of a pair of bits."""

SAMPLE = 1500
"""Vectors whose distances are measured: a million pairs."""
SAMPLE_COST = 1e8
"""Nanoseconds to spend on the sample where distances are slow to compute."""
BINS = 256
"""Bins of the histogram of distances."""
MOST_BITS = 4096
MOST_TABLES = 4000
"""Limits of a plan; beyond them comparing all pairs is cheaper."""
TOGETHER = (1, 2, 3)
"""Numbers of groups in the key of a table to choose from."""
LOOKED = (1, 2, 4, 8)
"""Numbers of words to choose from that are compared before a pair is verified."""

STRIPES = (1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)
"""Widths of stripes to choose from, as multiples of `within`."""
FINE = 500.0
"""Number of stripes up to which single precision determines the stripe of a point."""

Sieve = tuple[int, Floats]


class Sketcher(ABC):
    """Turns the vectors of a space into bits."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def over(self, space: Space) -> Sketcher:
        """Return the same sketcher for other vectors."""
        found = copy.copy(self)
        found.space = space
        return found

    @abstractmethod
    def agree(self, d: Floats) -> Floats:
        """Return the probability that vectors at distance d agree in a bit."""

    def group(self, d: Floats, agree: Floats, bits: int) -> Floats:
        """Return the probability that they agree in a group of bits, from the probability `agree` of one bit."""
        return np.asarray(agree**bits)

    @abstractmethod
    def fill(self, groups: int, bits: int, out: Hashes, threads: int) -> None:
        """Write 64-bit words for every vector; the groups are the first bits, one after the other."""

    def differ(self, d: float) -> float | None:
        """Return the probability that a bit differs at distance d; None if the input is bits, which are compared."""
        return 1 - float(self.agree(np.array([d]))[0])


class Projected(Sketcher):
    """The side of each of many random hyperplanes on which a vector lies, or whether a stripe of a line is odd."""

    def __init__(self, space: Space, family: Hyperplanes | Stripes) -> None:
        super().__init__(space)
        self.family, self.wide = family, False
        if isinstance(family, Stripes):
            self.wide = family.unit == "L1" or space.largest * space.dimensions**0.5 > FINE * family.a

    def agree(self, d: Floats) -> Floats:
        """Return the collision probability of the family."""
        return np.asarray(self.family.collision(d))

    def fill(self, groups: int, bits: int, out: Hashes, threads: int) -> None:
        """Write the bits, by matrix products.

        All products have the same shape, so that rounding, and with it a bit, does not depend on where a vector is.
        """
        kind: Any = np.float64 if self.wide else np.float32
        count = 64 * out.shape[1]
        directions, added = self.family.directions(count, self.space.dimensions), np.zeros(count)
        if isinstance(self.family, Stripes):
            directions, added = directions / self.family.a, self.family.begins(count)
        pack = pack_parities if isinstance(self.family, Stripes) else pack_signs
        across, added = np.ascontiguousarray(directions.T, kind), added.astype(kind)

        def work(start: int) -> None:
            rows = self.space.part(slice(start, start + ROWS)).astype(kind, copy=False)
            count = len(rows)
            if count < ROWS:
                rows = np.concatenate([rows, np.zeros((ROWS - count, rows.shape[1]), kind)])
            lengths = (rows @ across)[:count]
            lengths += added
            pack(lengths, out[start : start + ROWS])

        for _ in in_order(work, range(0, len(self.space), ROWS), threads):
            pass


class SampledBits(Sketcher):
    """Some of the input bits, without repetition within a group, chosen at random."""

    def __init__(self, space: Bits, seed: int) -> None:
        super().__init__(space)
        self.seed = seed
        self._known: tuple[Floats | None, Floats] = None, np.zeros((0, 0))

    def agree(self, d: Floats) -> Floats:
        """Return 1 − d/n."""
        return np.asarray(1 - d / self.space.dimensions)

    def group(self, d: Floats, agree: Floats, bits: int) -> Floats:
        """Return the probability that none of `bits` different places, of all places, is one of d."""
        if self._known[0] is not d:
            width = self.space.dimensions
            left = np.arange(min(64, width))[:, None]
            free = np.maximum(width - d[None, :] - left, 0) / (width - left)
            self._known = d, np.cumprod(free, axis=0, dtype=np.float64)
        found: Floats = self._known[1][bits - 1]
        return found

    def differ(self, d: float) -> None:
        """Return None."""

    def fill(self, groups: int, bits: int, out: Hashes, threads: int) -> None:
        """Write the chosen bits."""
        order = np.argsort(uniform(self.seed, 6, groups, self.space.dimensions), axis=1, kind="stable")
        places = order[:, :bits].ravel().astype(np.int64)

        def work(start: int) -> None:
            pack_chosen(self.space.part(slice(start, start + ROWS)), places, out[start : start + ROWS])

        for _ in in_order(work, range(0, len(self.space), ROWS), threads):
            pass


def sketchers(space: Space, within: float, seed: int) -> list[Sketcher]:
    """Return the sketchers to choose from for pairs within a distance."""
    if isinstance(space, Angle):
        return [Projected(space, Hyperplanes(seed))]
    if isinstance(space, Bits):
        return [SampledBits(space, seed)]
    unit = "L2" if isinstance(space, Euclid) else "L1"
    return [Projected(space, Stripes(width * within, unit, seed)) for width in STRIPES] if within > 0 else []


@dataclass(frozen=True)
class Spread:
    """The distribution of distances in a collection: distances, and the number of pairs at about each."""

    distances: Floats
    pairs: Floats


@dataclass(frozen=True)
class Plan:
    """Groups of bits, and how many of them make the key of a table.

    Of a pair that shares a bucket, `looked` words are compared first; at most `most` of their bits may differ.
    """

    sketcher: Sketcher | None
    bits: int
    groups: int
    together: int
    words: int
    looked: int
    most: int
    recall: float
    nanoseconds: float

    @property
    def tables(self) -> list[tuple[int, ...]]:
        """The groups of every table."""
        return list(combinations(range(self.groups), self.together))

    @property
    def own(self) -> bool:
        """Whether the bits that are compared first are those of the vectors."""
        return self.sketcher is None or self.sketcher.differ(0) is None

    def shift(self, count: int) -> int:
        """Return by how much a key of one of so many vectors is shifted to the number of its bucket."""
        return 64 - max(1, (count - 1).bit_length())

    def cuts(self, width: int) -> tuple[Ints, Ints]:
        """Return where the groups begin, and how many bits they have."""
        if self.bits:
            return np.arange(self.groups) * self.bits, np.full(self.groups, self.bits)
        edges = np.arange(self.groups + 1) * width // self.groups
        return edges[:-1], np.diff(edges)

    def __str__(self) -> str:
        size = f"{self.groups} groups of {self.bits} bits" if self.bits else f"{self.groups} blocks of all bits"
        return f"{math.comb(self.groups, self.together)} tables: {self.together} of {size}"


def spread(
    space: Space, within: float, split: int, seed: int, part: Callable[[Ints], NDArray[Any]] | None = None
) -> Spread:
    """Measure distances on a sample of vectors, and scale the counts up. part: returns vectors that are elsewhere.

    Pairs that the sample was too small to show may lie anywhere between `within` and its closest pair: one more pair is
    spread over that range.
    """
    n = len(space)
    size = SAMPLE if space.products else min(SAMPLE, max(200, int(math.sqrt(SAMPLE_COST / cost_of_all(space, 1)))))
    chosen = np.sort(np.argsort(uniform(seed, 7, 1, n)[0], kind="stable")[:size])
    rows = (part or space.part)(chosen)
    scores = space.scores(rows, rows)
    above = np.triu(np.ones(scores.shape, bool), 1)
    if split:
        above &= (chosen < split)[:, None] != (chosen < split)[None, :]
    seen = space.unscored(scores[above])
    every = float(split * (n - split)) if split else n * (n - 1) / 2
    if not len(seen):
        return Spread(np.array([within]), np.array([every]))
    step = (max(float(seen.max()), within) or 1.0) / BINS
    pairs = np.bincount(np.minimum(seen / step, BINS - 1).astype(np.int64), minlength=BINS).astype(float)
    values = (np.arange(BINS, dtype=np.float64) + 0.5) * step
    unseen = (values > within) & (values < seen.min())
    pairs[unseen] += 1 / max(1, unseen.sum())
    return Spread(values, pairs * every / len(seen))


def cost_of_all(space: Space, pairs: float) -> float:
    """Return the cost of comparing this many pairs block by block, in nanoseconds on one core."""
    if space.products:
        return pairs * (PRODUCT * space.dimensions + SCORE)
    return pairs * (SCORE + (WORD * space.dimensions / 64 if isinstance(space, Bits) else SUM * space.dimensions))


def plan(space: Space, within: float, recall: float, known: Spread, seed: int, forced: bool = False) -> Plan | None:
    """Return the cheapest plan, or None if there is none or (unless `forced`) comparing all pairs is cheaper."""
    best: Plan | None = None
    least = math.inf if forced else cost_of_all(space, float(known.pairs.sum()))
    found = [one for way in sketchers(space, within, seed) for one in _plans(way, within, recall, known)]
    if isinstance(space, Bits):
        found += _blocks(space, within, known)
    for one in found:
        if one.nanoseconds < least:
            best, least = one, one.nanoseconds
    return best


def _plans(way: Sketcher, within: float, recall: float, known: Spread) -> list[Plan]:
    """Return plans of equal groups, one for every number of bits in a group and of groups in a table."""
    found = []
    n = len(way.space)
    differ = way.differ(within)
    loss = (1 - recall) / 10 if differ is not None else 0.0
    sieves: dict[int, Sieve] = {}
    here, single = np.array([within]), way.agree(known.distances)
    alone = way.agree(here)
    for together in TOGETHER:
        for bits in range(1, min(way.space.dimensions if isinstance(way, SampledBits) else 64, 64 // together) + 1):
            q = float(way.group(here, alone, bits)[0])
            groups = _fewest(q, together, recall + loss, MOST_BITS // bits)
            if groups is None or math.comb(groups, together) > MOST_TABLES:
                break
            words = -(-groups * bits // 64)
            alike = way.group(known.distances, single, bits)
            meet = math.comb(groups, together) * alike**together
            met = float(known.pairs @ meet)
            hashing = PACK + (PRODUCT * way.space.dimensions if differ is not None else 0)
            tables = n * (64 * words * hashing + math.comb(groups, together) * TABLE)
            reached = 1 - _fewer(q, together, groups) - loss
            for looked in LOOKED if differ is not None else (-(-way.space.dimensions // 64),):
                if looked > words and differ is not None:
                    break
                if looked not in sieves:
                    sieves[looked] = _sieve(looked, within, differ, loss, known.distances, single)
                most, passing = sieves[looked]
                passed, verified = known.pairs @ (meet * passing), known.pairs @ (np.minimum(meet, 1) * passing)
                work = (COMPARE + LOOK * looked) * met + GROUP * groups / 2 * float(passed)
                work += (VERIFY + COMPONENT * way.space.dimensions) * float(verified)
                found.append(Plan(way, bits, groups, together, words, looked, most, reached, tables + work))
    return found


def _blocks(space: Bits, within: float, known: Spread) -> list[Plan]:
    """Return plans that miss nothing: of d + t blocks, d differing bits leave at least t unchanged."""
    found = []
    for together in TOGETHER:
        groups = int(within) + together
        tables = math.comb(groups, together)
        if tables > MOST_TABLES or groups > space.dimensions or together * -(-space.dimensions // groups) > 64:
            continue
        bits = together * space.dimensions // groups
        meet = SampledBits(space, 0).group(known.distances, known.distances, bits) * tables
        looked = -(-space.dimensions // 64)
        cost = len(space) * tables * TABLE + (COMPARE + LOOK * looked) * float(known.pairs @ meet)
        found.append(Plan(None, 0, groups, together, 0, looked, int(within), 1.0, cost))
    return found


def _fewest(q: float, together: int, recall: float, most: int) -> int | None:
    """Return the least number of groups of which at least `together` agree with probability `recall`, up to `most`."""
    if most < together or 1 - _fewer(q, together, most) < recall:
        return None
    low, high = together, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if 1 - _fewer(q, together, middle) >= recall else (middle + 1, high)
    return low


def _fewer(q: float, together: int, groups: int) -> float:
    """Return the probability that fewer than `together` of the groups agree."""
    return sum(math.comb(groups, i) * q**i * (1 - q) ** (groups - i) for i in range(together))


def _most_differing(bits: int, p: float, loss: float) -> int:
    """Return the least number that a binomial number of bits exceeds with probability at most `loss`."""
    left, most = _tail(bits, p), 0
    while left[most] > loss:
        most += 1
    return most


def _tail(bits: int, p: float) -> Floats:
    """Return the probabilities that a binomial number exceeds 0, 1, …, bits."""
    if not 0 < p < 1:
        return np.where(np.arange(bits + 1) < (bits if p >= 1 else 0), 1.0, 0.0)
    k = np.arange(bits + 1)
    logs = np.cumsum(np.log(np.concatenate([[1.0], (bits - k[:-1]) / (k[:-1] + 1)])))
    mass = np.exp(logs + k * math.log(p) + (bits - k) * math.log1p(-p))
    return np.concatenate([np.cumsum(mass[::-1])[::-1][1:], [0.0]])


def _sieve(looked: int, within: float, differ: float | None, loss: float, distances: Floats, agree: Floats) -> Sieve:
    """Return how many bits of `looked` words may differ, and the approximate probability of that at these distances."""
    if differ is None:
        return int(within), (distances <= within).astype(float)
    bits = 64 * looked
    most = _most_differing(bits, differ, loss)
    p = 1 - agree
    away = (most + 0.5 - p * bits) / np.sqrt(np.maximum(p * (1 - p) * bits, 1e-9))
    return most, 1 / (1 + np.exp(np.clip(-1.702 * away, -700, 700)))
