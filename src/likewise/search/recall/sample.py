"""A run measures its own recall (P3): a sample of documents, all their true neighbours, and how many were found.

The neighbours come from one pass over all documents (kernels/probe.py). Recall is Σ found / Σ true over the sampled
documents, each pair being counted from the end that was drawn. Pairs of one document are often found or lost together,
so the interval takes the variance between documents (Korn and Graubard's form of Clopper and Pearson's interval), and
counts no document for more than one observation.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.parallel import in_order
from likewise.errors import ParameterError
from likewise.kernels.hashtable import slots_of
from likewise.kernels.probe import Hits, SampleIndex, enter, meetings, probe_sets
from likewise.search.exact.bounds import least_fraction

MOST_ENTRIES = 50_000
FEWEST, MOST, SHARE = 100, 20_000, 50
FEWEST_IN_CROWD = 20
MEETINGS = 0.1
SLACK = 8
LOOKED_AT = 500
ROOM = 1 << 16
BATCH = 20_000
CONFIDENCE = 0.95

NO_SAMPLE = SampleIndex(
    np.zeros(1, np.uint64),
    np.uint64(63),
    np.zeros(1, np.uint64),
    np.zeros(2, np.int64),
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
    np.zeros(0, np.uint64),
    np.zeros(1, np.int64),
    1.0,
)
NO_HITS = Hits(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.float64))


@dataclass(frozen=True)
class Certificate:
    """The recall of a run as measured on a sample, with a 95 % interval; None if no similar pair was met.

    >>> print(Certificate(0.9962, 0.9931, 0.9983, 1000, 1204, 1199))
    certified recall 0.9962, 95 % interval 0.9931 to 0.9983, from 1,204 true pairs of 1,000 documents
    """

    recall: float | None
    low: float
    high: float
    documents: int
    true_pairs: int
    found_pairs: int

    def __str__(self) -> str:
        if self.recall is None:
            return f"no certificate: none of the {self.documents:,} documents of the sample is similar to another"
        return (
            f"certified recall {self.recall:.4f}, 95 % interval {self.low:.4f} to {self.high:.4f}, "
            f"from {self.true_pairs:,} true pairs of {self.documents:,} documents"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for run.json."""
        return asdict(self)


def check_sample(owner: str, certify: object) -> int | None:
    """Raise unless the size of the sample is None or a whole number from 0."""
    if certify is None:
        return None
    if isinstance(certify, bool) or not isinstance(certify, int) or certify < 0:
        raise ParameterError.of(owner, "certify", "a number of documents, or 0 for no certificate", certify)
    return certify


def sample_size(items: int, mean_size: float, threshold: float) -> int:
    """Return how many documents to sample by default: as many as keep the index small enough to be quick.

    >>> sample_size(10**6, 100, 0.8), sample_size(10**6, 5000, 0.8), sample_size(50, 100, 0.8)
    (1492, 100, 50)
    """
    wanted = int(MOST_ENTRIES / (mean_size * (1 - threshold + 1 / SLACK) + 1))
    return min(items, max(FEWEST, min(MOST, wanted, items // SHARE)))


class Probe:
    """Collects the neighbours of a sample while documents pass by, in any order and from several threads."""

    def __init__(self, sample: SampleIndex, start: int = 0, found: list[tuple[Ints, Ints]] | None = None) -> None:
        self.sample = sample
        self._start = start
        self._found: list[tuple[Ints, Ints]] = [] if found is None else found

    @property
    def sets(self) -> int:
        """The number of sets in the sample."""
        return len(self.sample.offsets) - 1

    def shifted(self, start: int) -> Probe:
        """Return a probe that numbers documents from `start` on and adds to this one."""
        return Probe(self.sample, self._start + start, self._found)

    def room(self) -> Hits:
        """Return room for the hits of some documents."""
        size = 0 if self.sets == 0 else ROOM + self.sets
        return Hits(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.float64))

    def take(self, hits: Hits, count: int, first: int) -> None:
        """Take over hits; their documents are numbered from `first`."""
        if count:
            documents = hits.document[:count] + (first + self._start)
            self._found.append((hits.sample[:count].astype(np.int64), documents))

    def result(self) -> tuple[Ints, Ints]:
        """Return (set of the sample, document) of every neighbour, sorted."""
        sample = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in self._found)])
        document = np.concatenate([np.zeros(0, np.int64), *(part[1] for part in self._found)])
        order = np.lexsort((document, sample))
        return sample[order], document[order]


def least_overlap(sizes: Ints, threshold: float) -> Ints:
    """Return the least number of elements that a set of each size shares with any similar set.

    >>> least_overlap(np.array([10, 11, 1]), 0.8).tolist()
    [8, 9, 1]
    """
    p, q = least_fraction(threshold)
    least: Ints = (p * sizes + q - 1) // q
    return least


def make_sample(sets: Sets, threshold: float) -> SampleIndex:
    """Index the rarest elements of each set: as many as any similar set must have several of."""
    values = np.ascontiguousarray(sets.values, np.uint64)
    sizes = sets.sizes
    if not len(values):
        return NO_SAMPLE
    owner = np.repeat(np.arange(len(sets)), sizes)
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.lexsort((values * np.uint64(0xD6E8FEB86659FD93), counts[inverse], values == 0, owner))
    rank = np.arange(len(values)) - np.repeat(sets.offsets[:-1], sizes)
    least = least_overlap(sizes, threshold)
    needs = np.minimum(1 + sizes // SLACK, least)
    entered = order[rank < np.repeat(sizes - least + needs, sizes)]
    size = 1 << max(4, (2 * len(entered)).bit_length())
    words = max(2, size // 8)
    down = np.uint64(64 - (words.bit_length() - 1))
    entries, bits = np.zeros(size, np.uint64), np.zeros(words, np.uint64)
    enter(values[entered], entries, bits, down)
    slots = np.empty(len(entered), np.int64)
    slots_of(entries, values[entered], slots)
    by_slot = np.argsort(slots, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(slots, minlength=size))]).astype(np.int64)
    owners = owner[entered][by_slot].astype(np.int32)
    return SampleIndex(bits, down, entries, starts, owners, needs.astype(np.int32), values, sets.offsets, threshold)


def quick_sample(sets: Sets, threshold: float) -> tuple[SampleIndex, int]:
    """Index as many of these sets, from the first on, as can be met quickly; return how many that are.

    Where all sets are alike each document meets many of the sample, and each meeting is a comparison.
    """
    sample = make_sample(sets, threshold)
    looked = min(len(sets), LOOKED_AT)
    mean = meetings(sample, looked) / max(1, looked)
    if mean <= MEETINGS:
        return sample, len(sets)
    fewer = min(len(sets), max(FEWEST_IN_CROWD, int(len(sets) * MEETINGS / mean)))
    return make_sample(sets.take(np.arange(fewer)), threshold), fewer


def probe_all(sets: Sets, probe: Probe, threads: int) -> None:
    """Let sets pass by the sample."""

    def work(start: int) -> None:
        stop = min(start + BATCH, len(sets))
        while start < stop:
            hits = probe.room()
            done, count = probe_sets(sets.values, sets.offsets[start : stop + 1], probe.sample, hits)
            probe.take(hits, count, start)
            start += done

    for _ in in_order(work, range(0, len(sets), BATCH), threads):
        pass


def estimate(true: Ints, found: Ints, items: int) -> Certificate:
    """Return the recall and its interval from the true and found neighbours of each sampled document."""
    documents, pairs, hits = len(true), int(true.sum()), int(found.sum())
    if pairs == 0:
        return Certificate(None, 0.0, 1.0, documents, 0, 0)
    recall = hits / pairs
    if documents >= items:
        return Certificate(recall, recall, recall, documents, pairs, hits)
    having = int((true > 0).sum())
    size = float(having)
    rest = found - recall * true
    if having > 1:
        variance = having / (having - 1) * float((rest**2).sum()) / pairs**2
        if variance > 0:
            size = min(size, recall * (1 - recall) / variance)
    size = max(1.0, size / (1 - documents / items))
    low, high = binomial_interval(recall * size, size)
    return Certificate(recall, low, high, documents, pairs, hits)


def binomial_interval(successes: float, trials: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for a proportion; the numbers need not be whole.

    >>> [round(x, 4) for x in binomial_interval(10, 10)]
    [0.6915, 1.0]
    """
    tail = (1 - CONFIDENCE) / 2
    failures = trials - successes
    low = 0.0 if successes <= 0 else beta_quantile(tail, successes, failures + 1)
    high = 1.0 if failures <= 1e-9 else beta_quantile(1 - tail, successes + 1, failures)
    return low, high


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return x with I_x(a, b) = p, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if beta_cdf(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - front * _fraction(1 - x, b, a) / b
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, 100_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + numerator * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + numerator / c
            c = c if abs(c) > tiny else tiny
            total *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return total


def neighbour_counts(
    drawn: Ints, of: Ints, sizes: Ints, sample: Ints, other: Ints, found: NDArray[np.bool_], with_copies: bool
) -> tuple[Ints, Ints]:
    """Return the true and the found neighbours of each sampled document, counted in documents.

    drawn: the row of each sampled document. of, sizes: group of a row, documents of a group. sample, other, found: the
    neighbouring groups of each, other than its own, and whether the run has that pair. Copies of a document are
    always found; with_copies: they count.
    """
    own = sizes[of[drawn]] - 1 if with_copies else np.zeros(len(drawn), np.int64)
    true, hit = own.copy(), own.copy()
    np.add.at(true, sample, sizes[other])
    np.add.at(hit, sample[found], sizes[other[found]])
    return true, hit


def pairs_known(left: Ints, right: Ints, a: Ints, b: Ints, n: int) -> NDArray[np.bool_]:
    """Tell which of the pairs (a, b) are among the sorted pairs (left, right)."""
    known: Hashes = left.astype(np.uint64) * np.uint64(n) + right.astype(np.uint64)
    low, high = np.minimum(a, b).astype(np.uint64), np.maximum(a, b).astype(np.uint64)
    asked = low * np.uint64(n) + high
    place = np.searchsorted(known, asked)
    place[place == len(known)] = 0
    return known[place] == asked if len(known) else np.zeros(len(asked), bool)
