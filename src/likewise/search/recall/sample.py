"""The sample whose recall certifies a run: its documents are drawn, indexed, and shown every other document.

The index answers for each passing document which documents of the sample are similar to it, exactly and in one pass
over the collection (kernels/probe.py).
"""

from __future__ import annotations

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints, Sets
from likewise.base.parallel import in_order
from likewise.kernels.hashing import U0, U1
from likewise.kernels.hashtable import slots_of
from likewise.kernels.probe import Hits, SampleIndex, enter, meetings, probe_sets
from likewise.search.exact.bounds import least_fraction

MOST_ENTRIES = 50_000
"""Entries of the index of a default sample: it stays in a processor's cache, and passing documents lose little time."""
FEWEST, MOST, SHARE = 100, 20_000, 50
"""Limits of a default sample: at least 100 documents, at most 20,000, and at most one in 50 of a large collection."""
FEWEST_IN_CROWD = 20
"""Documents of a sample of a collection whose documents are all alike."""
MOST_HITS = 200_000
"""Neighbours of a default sample that are held in memory, about; of more, some are left out of account."""
MEETINGS = 0.1
"""Comparisons per passing document that a default sample may cost."""
STEPS = 2000
"""Entries of the index that a passing document may come across, about: some microseconds, as much as its sketch."""
SLACK = 8
"""A set of n elements is compared once it shares 1 + n/8 indexed ones: more entries, but far fewer comparisons."""
FEW, COMMON = 8, 16
"""Elements that more than eight sets of the sample and more than one in 16 have are not entered beyond what is needed:
each passing document would come across all these sets."""
LOOKED_AT = 500
"""Documents of the sample on which the number of comparisons is estimated."""
ROOM = 1 << 16
"""Hits for which a batch has room; a batch with more of them is handled in several calls."""
BATCH = 20_000
"""Sets that a thread shows to the sample in one call."""

_NO_BITS, _NO_ROWS = np.zeros(1, np.uint64), np.zeros(0, np.int32)
_NO_VALUES = np.zeros(0, np.uint64), np.zeros(1, np.int64)
NO_SAMPLE = SampleIndex(
    _NO_BITS, np.uint64(63), _NO_BITS, np.zeros(2, np.int64), _NO_ROWS, _NO_ROWS, *_NO_VALUES, 1.0, U0, U1
)
NO_HITS = Hits(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.float64))


def check_sample(owner: str, certify: object) -> int | None:
    """Return the size of the sample: None for the default, 0 for no certificate."""
    if certify is None:
        return None
    return checks.whole(owner, "certify", certify, 0, rule="a number of documents, or 0 for no certificate")


def sample_size(items: int, mean_size: float, threshold: float) -> int:
    """Return the number of documents to sample by default: as many as keep the index small enough to be fast.

    >>> sample_size(10**6, 100, 0.8), sample_size(10**6, 5000, 0.8), sample_size(50, 100, 0.8)
    (1492, 100, 50)
    """
    wanted = int(MOST_ENTRIES / (mean_size * (1 - threshold + 1 / SLACK) + 1))
    return min(items, max(FEWEST, min(MOST, wanted, items // SHARE)))


class Probe:
    """Collects the neighbours of a sample while documents pass, in any order and from several threads.

    one_in: only one in so many documents counts, by a hash of its number, where nearly all are neighbours.
    """

    def __init__(
        self, sample: SampleIndex, start: int = 0, found: list[tuple[Ints, Ints]] | None = None, one_in: int = 1
    ) -> None:
        self.sample = sample
        self.one_in = one_in
        self._start = start
        self._found: list[tuple[Ints, Ints]] = [] if found is None else found

    @property
    def sets(self) -> int:
        """The number of sets in the sample."""
        return len(self.sample.offsets) - 1

    def shifted(self, start: int) -> Probe:
        """Return a probe that adds to this one and numbers documents from `start`."""
        return Probe(self.sample, self._start + start, self._found, self.one_in)

    def index(self, first: int) -> SampleIndex:
        """Return the index for documents numbered from `first`."""
        return self.sample._replace(first=np.uint64(first + self._start), one_in=np.uint64(self.one_in))

    def room(self) -> Hits:
        """Return room for the hits of some documents."""
        size = 0 if self.sets == 0 else ROOM + self.sets
        return Hits(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.float64))

    def take(self, hits: Hits, count: int, first: int) -> None:
        """Add hits; their documents are numbered from `first`."""
        if count:
            documents = hits.document[:count] + (first + self._start)
            sample = hits.sample[:count].astype(np.int64)
            self._found.append((sample, documents))

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
    """Index the rarest elements of each set, enough of them that every similar set shares several."""
    values = np.ascontiguousarray(sets.values, np.uint64)
    sizes = sets.sizes
    if not len(values):
        return NO_SAMPLE
    owner = np.repeat(np.arange(len(sets)), sizes)
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    often = np.where(values == 0, len(values), counts[inverse])
    order = np.lexsort((values * np.uint64(0xD6E8FEB86659FD93), often, owner))
    rank = np.arange(len(values)) - np.repeat(sets.offsets[:-1], sizes)
    least = least_overlap(sizes, threshold)
    needs = np.minimum(1 + sizes // SLACK, least)
    beyond = rank - np.repeat(sizes - least, sizes)
    extra = (beyond > 0) & (beyond < np.repeat(needs, sizes)) & (often[order] <= max(FEW, len(sets) // COMMON))
    needs = np.minimum(needs, 1 + np.bincount(owner[extra], minlength=len(sets)))
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
    owners, needs = owner[entered][by_slot].astype(np.int32), needs.astype(np.int32)
    return SampleIndex(bits, down, entries, starts, owners, needs, values[order], sets.offsets, threshold, U0, U1)


def quick_sample(sets: Sets, threshold: float, items: int = 0) -> tuple[Probe, int]:
    """Index as many of these sets, from the first, as passing documents can be compared with quickly; return how many.

    Where all sets are alike, each of the `items` that pass is compared with many of the sample.
    """
    sample = make_sample(sets, threshold)
    looked = min(len(sets), LOOKED_AT)
    mean = meetings(sample, looked) / max(1, looked)
    lists = np.diff(sample.starts)
    steps = float((lists * (lists - 1)).sum()) / max(1, len(sets))
    many = max(mean / MEETINGS, steps / STEPS)
    if many <= 1:
        return Probe(sample), len(sets)
    fewer = min(len(sets), max(FEWEST_IN_CROWD, int(len(sets) / many)))
    expected = mean * fewer / len(sets) * items
    return Probe(make_sample(sets.take(np.arange(fewer)), threshold), one_in=max(1, round(expected / MOST_HITS))), fewer


def probe_all(sets: Sets, probe: Probe, threads: int) -> None:
    """Show sets to the sample."""

    def work(start: int) -> None:
        stop = min(start + BATCH, len(sets))
        while start < stop:
            hits = probe.room()
            done, count = probe_sets(sets.values, sets.offsets[start : stop + 1], probe.index(start), hits)
            probe.take(hits, count, start)
            start += done

    for _ in in_order(work, range(0, len(sets), BATCH), threads):
        pass
