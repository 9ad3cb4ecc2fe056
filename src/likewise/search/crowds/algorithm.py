"""Near-linear work on crowds: documents that share a template, so many that their pairs cannot be written out.

Call a shingle heavy if many documents have it. Let A have a heavy shingles, let |A| be its size and
τ = θ / (1 + θ). J(A, B) ≥ θ says |A ∩ B| ≥ τ(|A| + |B|), and at most min(a, b) ≤ (a + b) / 2 of that is heavy. So the
two share at least lack(A) + lack(B) shingles that are not heavy, where lack(A) = τ|A| − a/2. That leaves two cases.

1. lack(A) + lack(B) > 0: they share a shingle that few documents have. An inverted index finds every such pair;
   documents that lack much need not be entered under all their shingles (a prefix is enough).
2. Otherwise their heavy shingles alone may suffice. If nothing else is shared, these have Jaccard similarity ≥ θ, and
   minhashing them with bands finds the pair. Where a bucket has too many such pairs to write out, its documents are a
   throng: each is compared with the few leaders of the throng only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, map_words
from likewise.base.parallel import in_order
from likewise.families.minhash import seed_sequence
from likewise.families.tuning import LEAST_BANDS, LEAST_RECALL, fewest_bands
from likewise.kernels import crowds as kernels
from likewise.kernels.hashtable import TABLE_ODD
from likewise.kernels.sorting import DIGIT, RADIX, radix_argsort, sort_words, split_words
from likewise.search.exact.bounds import least_fraction
from likewise.search.scored import unpacked
from likewise.search.verify import similarities

Similarity = NDArray[np.float64]

LEAST_BUDGET = 2_000_000
BUDGET_PER_SET = 50
"""Comparisons that are always affordable: two million, or fifty per set."""
SAMPLE = 4096
"""Sets on which the work of an inverted index is estimated."""
LIGHTEST = 16
"""A shingle of at most this many documents is always light."""
MOST_BANDS = 16
MOST_ROWS = 8
"""Limits of the banding of heavy shingles: beyond them sketching costs more than the candidates it saves."""
THRONG = 32
"""A bucket with more pairs per document than this is a throng."""
LIST = 512
"""Leaders of a throng that are kept at most."""
CHECKS = 2048
"""Leaders that a document is compared with at most."""
VAIN_CHECKS = 256
"""Unsuccessful comparisons with leaders allowed per document on average, so that hopeless throngs cost little."""
MAP = 2
"""Bitmaps of heavy shingles are twice as large as those of whole sets: eight bits per shingle."""
COMMON = 20
"""Shared shingles of a crowd that are reported."""
BATCH = 1 << 14
"""Sets or pairs that a thread handles in one call."""
SEED_LIGHT = 0x7E51D0A1
SEED_HEAVY = 0x4EA7B0D5


@dataclass(frozen=True)
class Crowd:
    """The verified pairs of a crowd, left < right, sorted; its leaders; and the shingles that its sets share.

    leaders: the sets not similar to any earlier leader, that is, what remains when keepers are chosen from these pairs
    in the order of the sets. complete: False if there were too many pairs to list; then every set that is not a leader
    is paired with a leader, but not with all sets similar to it. common: the shingles of more than half of the sets,
    the most frequent first; carried: the number of sets that have each.
    """

    left: Ints
    right: Ints
    similarity: Similarity
    leaders: NDArray[np.bool_]
    complete: bool
    common: Hashes
    carried: Ints


def crowd_pairs(
    sets: Sets, threshold: float, recall: float, seed: int, threads: int = 1, budget: int | None = None
) -> Crowd:
    """Find the similar pairs of sets that have much in common, given in the order in which they should be kept.

    `budget` is the number of comparisons that are affordable in any case, by default fifty per set: if there are fewer
    pairs, all are compared. Otherwise a pair that shares a light shingle is certain to be found, and any other with
    probability `recall` or, where the crowd is not complete, through a leader.

    >>> crowd = crowd_pairs(Sets.from_lists([range(10), range(1, 10), range(2, 12)]), 0.8, 0.95, seed=1)
    >>> crowd.left.tolist(), crowd.right.tolist(), crowd.similarity.tolist(), crowd.leaders.tolist()
    ([0], [1], [0.9], [True, False, True])
    >>> len(crowd.common), crowd.carried[:3].tolist(), crowd.complete
    (9, [3, 3, 3], True)
    """
    threshold, recall = checks.threshold("crowd_pairs", threshold), checks.recall("crowd_pairs", recall)
    sets = Sets(np.ascontiguousarray(sets.values, np.uint64), sets.offsets)
    n = len(sets)
    if budget is None:
        budget = max(LEAST_BUDGET, BUDGET_PER_SET * n)
    search = _CrowdSearch(sets, threshold, recall, seed, threads, budget)
    if n * (n - 1) // 2 <= budget:
        left, right = (side.astype(np.int64) for side in np.triu_indices(n, 1))
        throngs = _Throngs(np.full(n, -1), np.zeros((0, 0), np.int32))
    else:
        words, throngs = search.heavy_pairs()
        words = search.distinct([search.light_pairs(), words])
        left, right = unpacked(words)
    similarity = similarities(left, right, sets, threshold, threads)
    found = similarity >= 0
    left, right, similarity = left[found], right[found], similarity[found]
    left, right, similarity, leaders = search.follow(left, right, similarity, throngs)
    common, carried = search.common()
    return Crowd(left, right, similarity, leaders, not throngs, common, carried)


@dataclass(frozen=True)
class _Throngs:
    """Buckets with too many pairs: the throng of row i in band j is of[place[i], j]; -1 means none."""

    place: Ints
    of: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.of.max(initial=-1)) + 1


@dataclass(frozen=True)
class _CrowdSearch:
    """The search for similar pairs in one crowd."""

    sets: Sets
    threshold: float
    recall: float
    seed: int
    threads: int
    budget: int

    def batches(self, n: int) -> list[slice]:
        """Cut n into batches that do not depend on the number of threads."""
        return [slice(start, min(start + BATCH, n)) for start in range(0, n, BATCH)]

    @cached_property
    def sizes(self) -> Ints:
        """The number of shingles of every set."""
        return self.sets.sizes

    def offsets(self, part: slice) -> Ints:
        """Return the offsets of a batch of sets."""
        return self.sets.offsets[part.start : part.stop + 1]

    def run(self, work: Any, tasks: Any) -> list[Any]:
        """Run tasks on all threads."""
        return list(in_order(work, tasks, self.threads))

    @cached_property
    def down(self) -> np.uint64:
        """The shift from a hash to its counter: at least a million counters, then one for four to eight values."""
        return np.uint64(64 - min(24, max(20, len(self.sets.values).bit_length() - 3)))

    @cached_property
    def counts(self) -> NDArray[np.uint32]:
        """An upper bound on the number of sets that have a shingle, by its hash."""
        size = 1 << (64 - int(self.down))
        values = self.sets.values[: self.sets.offsets[-1]]
        parts = np.linspace(0, len(values), self.threads + 1).astype(np.int64)

        def count(part: int) -> NDArray[np.uint32]:
            counts = np.zeros(size, np.uint32)
            kernels.count_values(values[parts[part] : parts[part + 1]], self.down, counts)
            return counts

        total: NDArray[np.uint32] = np.add.reduce(self.run(count, range(self.threads)))
        return total

    def sample(self, size: int) -> Sets:
        """Choose sets by the seed."""
        rows = np.arange(len(self.sets), dtype=np.uint64)
        mixed = (rows + np.uint64(1) + seed_sequence(self.seed, 1)[0]) * TABLE_ODD
        return self.sets.take(np.sort(np.argsort(mixed, kind="stable")[:size]))

    def counted(self, values: NDArray[Any]) -> Ints:
        """Return the counters of values."""
        out = np.empty(len(values), np.int64)
        kernels.value_counts(values, self.down, self.counts, out)
        return out

    @cached_property
    def most(self) -> int:
        """The count up to which a shingle is light: the highest for which comparing all sets that share it is cheap."""
        n = len(self.sets)
        sample = self.sample(SAMPLE)
        counted = np.sort(self.counted(sample.values))
        other = np.median(self.counts[:: max(1, len(self.counts) // 10007)])  # other shingles with the same counter
        work = np.cumsum(np.maximum(0, counted - 1 - other) / 2) * (n / max(1, len(sample)))
        most = LIGHTEST
        while most < n // 8 and work[: np.searchsorted(counted, 2 * most, side="right")].max(initial=0) <= self.budget:
            most *= 2
        return int(most + 2 * other)

    @cached_property
    def marks(self) -> tuple[NDArray[np.bool_], Ints]:
        """Which of the values are heavy, and the number of them in every set."""
        sets = self.sets
        marks, sizes = np.zeros(len(sets.values), bool), np.empty(len(sets), np.int64)

        def mark(part: slice) -> None:
            kernels.mark_heavy(sets.values, self.offsets(part), self.down, self.counts, self.most, marks, sizes[part])

        self.run(mark, self.batches(len(sets)))
        return marks, sizes

    @property
    def heavy(self) -> Ints:
        """The number of heavy shingles of every set."""
        return self.marks[1]

    @cached_property
    def lack(self) -> Similarity:
        """lack(A) of every set A: the light shingles that it must contribute to the overlap with a similar set."""
        return self.threshold / (1 + self.threshold) * self.sizes - self.heavy / 2

    def light_pairs(self) -> Hashes:
        """Return the pairs of case 1, as words: they share a light shingle."""
        light = self.sizes - self.heavy
        least = np.ceil(self.lack + self.lack.min(initial=np.inf) - kernels.SLACK).astype(np.int64)
        lengths = np.maximum(0, light - np.maximum(1, least) + 1)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        words = np.empty(starts[-1], np.uint64)
        seed = seed_sequence(self.seed ^ SEED_LIGHT, 1)[0]

        def write(part: slice) -> None:
            out = words[starts[part.start] : starts[part.stop]]
            kernels.light_words(
                self.sets.values, self.offsets(part), self.marks[0], seed, part.start, lengths[part], out
            )

        self.run(write, self.batches(len(self.sets)))
        grouped = np.empty_like(words)
        cuts = np.empty(RADIX + 1, np.int64)
        split_words(words, grouped, cuts)
        nothing = np.zeros(0, np.uint64)

        def pairs(digit: int) -> Hashes:
            part = sort_words(grouped[cuts[digit] : cuts[digit + 1]], 32, 64 - DIGIT)
            count = kernels.run_pairs(part, self.sizes, self.threshold, False, nothing)
            out = np.empty(count, np.uint64)
            kernels.run_pairs(part, self.sizes, self.threshold, True, out)
            return out

        return self.distinct(self.run(pairs, range(RADIX)))

    def distinct(self, parts: list[Hashes]) -> Hashes:
        """Return the different pairs, sorted."""
        bits = max(1, len(self.sets).bit_length())
        words = sort_words(sort_words(np.concatenate(parts), 0, bits), 32, 32 + bits)
        different: Hashes = words[: kernels.distinct_words(words)]
        return different

    def heavy_pairs(self) -> tuple[Hashes, _Throngs]:
        """Return the pairs of case 2, as words, and the throngs."""
        alone = (self.heavy == 0) & (self.sizes > 0)
        rows = np.flatnonzero((self.lack + self.lack.min(initial=np.inf) <= kernels.SLACK) & ~alone)
        rows = rows[np.argsort(self.lack[rows], kind="stable")]
        b, r = self.banding()
        keys = np.empty((len(rows), b), np.uint32)
        seeds = seed_sequence(self.seed ^ SEED_HEAVY, 2 * b * r)

        def sketch(part: slice) -> None:
            kernels.heavy_keys(self.sets.values, self.sets.offsets, self.marks[0], rows[part], seeds, r, keys[part])

        def arranged(band: int) -> Ints:
            order: Ints = radix_argsort(keys[:, band].astype(np.uint64), 32)
            return order

        self.run(sketch, self.batches(len(rows)))
        lack = self.lack[rows]
        throngs = np.full(keys.shape, -1, np.int32)
        parts, number = [np.zeros(0, np.uint64)], 0
        for band, order in enumerate(in_order(arranged, range(b), self.threads)):
            count, after = kernels.bucket_pairs(keys, band, order, lack, THRONG, throngs, number, parts[0])
            if count:
                words = np.empty(count, np.uint64)
                kernels.bucket_pairs(keys, band, order, lack, THRONG, throngs, number, words)
                parts += self.in_reach(words, rows)
            number = after
        place = np.full(len(self.sets), -1)
        place[rows] = np.where((throngs >= 0).any(axis=1), np.arange(len(rows)), -1)
        return np.concatenate(parts), _Throngs(place, throngs)

    def in_reach(self, words: Hashes, rows: Ints) -> list[Hashes]:
        """Return the pairs that may share enough heavy shingles; the words hold places in `rows`."""
        sizes, heavy, maps = self.sizes, self.heavy, self.maps

        def choose(part: slice) -> Hashes:
            count = kernels.pairs_in_reach(words[part], rows, sizes, heavy, maps, *least_fraction(self.threshold))
            return words[part][:count]

        return self.run(choose, self.batches(len(words)))

    def banding(self) -> tuple[int, int]:
        """Return bands and rows for heavy shingles: as many rows as MOST_BANDS bands allow."""
        best = (0, 0)
        for r in range(1, MOST_ROWS + 1):
            b = max(LEAST_BANDS, fewest_bands(self.threshold, max(self.recall, LEAST_RECALL), r))
            if r == 1 or b <= MOST_BANDS:
                best = (b, r)
        return best

    def follow(
        self, left: Ints, right: Ints, similarity: Similarity, throngs: _Throngs
    ) -> tuple[Ints, Ints, Similarity, NDArray[np.bool_]]:
        """Add the pairs of documents in throngs with their leaders; return all pairs, sorted, and the leaders."""
        n = len(self.sets)
        leaders = np.zeros(n, bool)
        sizes = np.minimum(np.bincount(throngs.of[throngs.of >= 0]), LIST)
        lists = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        maps = self.maps if throngs else np.zeros((0, 1), np.uint64)
        by_right = radix_argsort(right.astype(np.uint64), max(1, n.bit_length()))
        most = (1 + kernels.DEPUTIES) * int((throngs.place >= 0).sum())
        out_left, out_right, out = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        written = kernels.lead(
            left[by_right],
            right[by_right],
            self.sets.values,
            self.sets.offsets,
            maps,
            self.heavy if throngs else np.zeros(0, np.int64),
            self.lack if throngs else np.zeros(0),
            throngs.place,
            throngs.of,
            lists,
            CHECKS,
            VAIN_CHECKS,
            *least_fraction(self.threshold),
            leaders,
            out_left,
            out_right,
            out,
        )
        if written == 0:
            return left, right, similarity, leaders
        left = np.concatenate([left, out_left[:written]])
        right = np.concatenate([right, out_right[:written]])
        similarity = np.concatenate([similarity, out[:written]])
        bits = max(1, n.bit_length())
        order = radix_argsort((left.astype(np.uint64) << np.uint64(bits)) | right.astype(np.uint64), 2 * bits)
        left, right, similarity = left[order], right[order], similarity[order]
        new = np.concatenate([[True], (left[1:] != left[:-1]) | (right[1:] != right[:-1])])
        return left[new], right[new], similarity[new], leaders

    @cached_property
    def maps(self) -> Hashes:
        """A bitmap of the heavy shingles of every set."""
        sets = self.sets
        maps = np.empty((len(sets), map_words(MAP * float(self.heavy.mean()))), np.uint64)
        self.run(
            lambda part: kernels.heavy_maps(sets.values, self.offsets(part), self.marks[0], maps[part]),
            self.batches(len(sets)),
        )
        return maps

    def common(self) -> tuple[Hashes, Ints]:
        """Return the shingles that more than half of the sets have, and the number of sets that have each."""
        half = len(self.sets) / 2
        wanted = np.unique(self.sample(64).values)
        bound = self.counted(wanted)
        wanted = wanted[np.lexsort((wanted, -bound))[: 3 * COMMON]]
        wanted = wanted[self.counted(wanted) > half]
        values = self.sets.values[: self.sets.offsets[-1]]

        def count(part: int) -> Ints:
            carried = np.zeros(len(wanted), np.int64)
            cut = slice(part * len(values) // self.threads, (part + 1) * len(values) // self.threads)
            kernels.exact_counts(values[cut], wanted, carried)
            return carried

        carried: Ints = np.sum(self.run(count, range(self.threads)), axis=0)
        order = np.lexsort((wanted, -carried))
        order = order[carried[order] > half][:COMMON]
        return wanted[order].astype(np.uint64), carried[order]
