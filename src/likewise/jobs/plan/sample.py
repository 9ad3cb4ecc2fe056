"""What a sample of an input says about all of it: sizes, how similar the documents are, and how many are duplicates.

The sample consists of stretches of consecutive documents. A document and its copy far away are both in the sample with
the probability that any two are; a document and its copy next to it, whenever one of them is. Therefore pairs within
a stretch and pairs across stretches are counted separately, and scaled up differently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import process_time
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Ints, TextChunk, Texts
from likewise.base.copies import Groups, chunk_digests, chunk_samples, labels
from likewise.families.banding import Banding
from likewise.families.tuning import SampleBuckets, Similarities, Tuning, fits
from likewise.io.read import Source
from likewise.io.read.glimpse import SIZE, Glimpse, glimpse
from likewise.io.spill import CODECS
from likewise.kernels.graph import keepers
from likewise.kernels.sketch import agreements
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import Wanted, candidates, most_candidates
from likewise.search.cluster import components
from likewise.search.crowds.gather import Gathering
from likewise.search.expand import most_listed
from likewise.search.items import Items, TextItems
from likewise.search.local import Search
from likewise.search.matches import first_of_each
from likewise.search.prepare import (
    CERTAIN,
    SAMPLE,
    Choice,
    choose,
    lowest,
    similar_pairs,
    tuned,
    unreachable,
)
from likewise.search.recall.sample import sample_size
from likewise.search.scored import ScoredPairs, no_pairs
from likewise.search.sketch import SketchPlan, agreement_counts, sample_signatures
from likewise.search.verify import compare
from likewise.shingle import Shingler, parse_shingler

Floats = NDArray[np.float64]
Done = TypeVar("Done")

MOST_PAIRS = 300_000
"""Candidates of the sample that are verified, at most: enough for a share that is exact to a fraction of a percent."""
SHINGLED = 2 << 20
"""Bytes of text that are shingled to measure how long it takes: some tens of milliseconds."""
FEW = 8
"""Documents of a first crowd, whose time does not count: kernels are loaded."""

_loaded: set[tuple[str, str]] = set()
"""What was timed in this process, and for which shingler: its kernels are loaded."""


@dataclass(frozen=True)
class Packing:
    """The cost of text on disk: its compressed share of the size, and seconds of one core per byte, in and out."""

    share: float
    pack: float
    unpack: float


@dataclass(frozen=True)
class CrowdTrial:
    """What crowds will cost: those of the sample are compared as a run compares its own, and the seconds are taken.

    share: of the different documents, those in crowds; members: their number in the sample. For each of these:
    seconds of one core, pairs listed, and the share that is kept.
    """

    share: float = 0.0
    members: int = 0
    seconds: float = 0.0
    pairs: float = 0.0
    kept: float = 1.0

    @classmethod
    def of(cls, items: Items, rows: Ints, crowds: list[Ints], known: ScoredPairs, search: Search) -> CrowdTrial:
        """Compare the crowds of a sample: numbers in `rows`, as are those of the known pairs."""
        if not crowds:
            return cls()
        ranks, wanted, seed = np.arange(len(rows)), Wanted(0, len(rows)), search.minhash.seed
        whole = Gathering(items, rows, crowds, ranks, wanted, search.threshold, seed, threads=1)
        replace(whole, crowds=[crowds[0][:FEW]]).pairs(no_pairs())
        begun = process_time()
        (left, right, _), _, _ = whole.pairs(known)
        seconds = process_time() - begun
        members = np.sort(np.concatenate(crowds))
        kept = keepers(np.arange(len(rows)), left, right) < 0
        n = len(members)
        return cls(n / len(rows), n, seconds / n, (len(left) - len(known[0])) / n, float(kept[members].mean()))


@dataclass(frozen=True)
class Trial:
    """What a run over the sample says about one over everything.

    method: the one the run will take, "exact" or "lsh", and `why`; choice: the predicted costs of both, None if the
    banding was given. different: the share of the documents that are not copies of an earlier one; kept: the share that
    is similar to no kept one. candidates, pairs: their expected numbers, crowds apart; involved: the share of the
    different documents that are in a candidate pair. sketch, shingle: seconds of one core per byte; tune: for the whole
    run.
    """

    method: str
    why: str
    choice: Choice | None

    banding: Banding
    different: float
    kept: float
    candidates: float
    involved: float
    pairs: float
    sketch: float
    shingle: float
    tune: float
    crowds: CrowdTrial = field(default_factory=CrowdTrial)


@dataclass(frozen=True)
class InputSample:
    """Documents of an input, and what they are a sample of; `stretch` is the number of the stretch of each."""

    seen: Glimpse
    items: TextItems
    stretch: Ints

    @classmethod
    def of(cls, source: Source, shingle: str | Shingler = "words:5", size: int = SIZE) -> InputSample:
        """Look at about `size` bytes of an input, here and there."""
        seen = glimpse(source, size)
        chunks = [TextChunk.from_arrow(one.text) for one in seen.stretches]
        samples = np.concatenate([np.zeros(0, np.uint64), *(chunk_samples(chunk) for chunk in chunks)])
        lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(chunk.offsets) for chunk in chunks)])
        stretch = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])
        return cls(seen, TextItems(Texts(chunks, samples), parse_shingler(shingle, lengths), lengths), stretch)

    @property
    def documents(self) -> int:
        """The documents of the whole input."""
        return self.seen.documents

    @property
    def shingler(self) -> Shingler:
        """The shingler of the documents."""
        return self.items.shingler

    @property
    def share(self) -> float:
        """The share of all documents that are in the sample."""
        return min(1.0, len(self.items) / max(1, self.documents))

    @cached_property
    def mean_set(self) -> float:
        """The mean number of different shingles of a document that has any."""
        rows = np.sort(lowest(1, len(self.items), SAMPLE))
        sizes = self.items.sets(rows, 1).sizes
        return float(sizes[sizes > 0].mean()) if (sizes > 0).any() else 0.0

    @cached_property
    def id_bytes(self) -> float:
        """The mean size of an id in bytes."""
        known = [one.ids for one in self.seen.stretches if one.ids is not None and len(one.ids)]
        if not known:
            return 8.0
        return float(sum(array.nbytes for array in known) / sum(len(array) for array in known))

    @cached_property
    def packing(self) -> Packing:
        """Compress the text of the sample, and fingerprint it, as a run with too little memory does."""
        parts = [chunk.load() for chunk in self.items.texts.chunks]
        raw = b"".join(part.data[part.offsets[0] : part.offsets[-1]].tobytes() for part in parts)
        if not raw:
            return Packing(1.0, 0.0, 0.0)
        codec = pa.Codec(CODECS[0])
        begun = process_time()
        packed = codec.compress(raw)
        for part in parts:
            chunk_digests(part)
        between = process_time()
        codec.decompress(packed, len(raw))
        ended = process_time()
        return Packing(packed.size / len(raw), (between - begun) / len(raw), (ended - between) / len(raw))

    def trial(self, search: Search) -> Trial:
        """Do to the sample what the run will do to everything."""
        if not len(self.items):
            method = "lsh" if search.banding or search.method == "lsh" else "exact"
            usual = search.banding or Banding(1, 1)
            return Trial(method, "there are no documents", None, usual, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        copies = labels(self.items.digests(1))
        first = first_of_each(copies)
        different = 1 - self.duplicates(copies)
        rows = first[np.sort(lowest(search.minhash.seed, len(first), SAMPLE))]
        choice: Choice | None = None
        if search.banding:
            banding, tuning = search.banding, 0.0
        else:
            (banding, choice), tuning = self._timed("tune", partial(self._tuned, search, rows, different))
        method, why = _method(search, choice)
        keys = HeldKeys(np.empty((len(first), banding.b), np.uint32))
        units, taken = self._timed("sketch", lambda: self.items.keys(first, SketchPlan(search.minhash, banding, keys)))
        sketching = taken / max(1, int(self.items.sizes[first].sum()))
        filled = np.flatnonzero((units != 0).any(axis=1))
        rows = first[filled]
        left, right, crowds = self._candidates(keys.chosen(filled), choice, different, method)
        share = min(1.0, MOST_PAIRS / max(1, len(left)))
        some = slice(None, None, max(1, round(1 / share)))
        a, b, similarity = compare(
            self.items, rows, left[some], right[some], search.threshold, search.threads, 1 << 60, _nowhere
        )
        groups = Groups.by_label(labels(units)[copies])
        crowd = CrowdTrial.of(self.items, rows, crowds, (a, b, similarity), search)
        inside = np.zeros(len(rows), bool)
        inside[np.concatenate([np.zeros(0, np.int64), *crowds])] = True
        outside = ~(inside[a] & inside[b])
        clusters = components(groups, groups.of[rows[a[outside]]], groups.of[rows[b[outside]]])
        kept = min(different, 1 - self.duplicates(clusters)) - different * crowd.share * (1 - crowd.kept)
        return Trial(
            method=method,
            why=why,
            choice=choice,
            banding=banding,
            different=different,
            kept=max(kept, 1 / max(1, self.documents)),
            candidates=self._scaled(rows, left, right),
            involved=self._involved(rows, left, right),
            pairs=self._scaled(rows, a, b) / share,
            sketch=sketching,
            shingle=self._shingling(first),
            tune=tuning,
            crowds=crowd,
        )

    def _timed(self, what: str, work: Callable[[], Done]) -> tuple[Done, float]:
        """Return what some work returns, and its CPU seconds; it is done before, so that kernels are loaded."""
        if (what, self.shingler.name) not in _loaded:
            work()
            _loaded.add((what, self.shingler.name))
        begun = process_time()
        return work(), process_time() - begun

    def certified(self, search: Search) -> int:
        """Return the number of documents whose neighbours are sought exactly, to measure the recall."""
        if search.certify is not None:
            return min(self.documents, search.certify)
        return sample_size(self.documents, max(1.0, self.mean_set), search.threshold)

    def _shingling(self, rows: Ints) -> float:
        """Return the seconds it takes to make sets of a byte of text."""
        some = rows[: int(np.searchsorted(np.cumsum(self.items.sizes[rows]), SHINGLED)) + 1]
        _, taken = self._timed("sets", lambda: self.items.sets(some, 1))
        return taken / max(1, int(self.items.sizes[some].sum()))

    def _candidates(
        self, keys: HeldKeys, choice: Choice | None, different: float, method: str
    ) -> tuple[Ints, Ints, list[Ints]]:
        """Pair the buckets of the sample, and return those too large for it: of all documents they have so many that
        a run does not write out their pairs."""
        nothing = np.zeros(0, np.int64)
        if keys.items < 2:
            return nothing, nothing, []
        items = round(self.documents * different)
        listed, similar = most_listed(items), 0.0 if choice is None else choice.similar
        if method == "exact" and similar > CERTAIN * listed:
            return nothing, nothing, [np.arange(keys.items)]
        most = listed if similar > listed else most_candidates(items)
        found = candidates(keys, 1, most=round(most * self.share**2))
        portions = list(found.portions())
        return *(portions[0] if portions else (nothing, nothing)), [] if method == "exact" else found.crowds

    def _scaled(self, rows: Ints, left: Ints, right: Ints) -> float:
        """Return how many pairs of all documents there are, for these of the sample."""
        near = int((self.stretch[rows[left]] == self.stretch[rows[right]]).sum())
        return near / self.share + (len(left) - near) / self.share**2

    def _involved(self, rows: Ints, left: Ints, right: Ints) -> float:
        """Return the share of these documents that would be in a pair if all the others were there too.

        It lies between two bounds: all documents with partners have equally many, or each has one.
        """
        apart = self.stretch[rows[left]] != self.stretch[rows[right]]
        n = max(1, len(rows))
        near = len(np.unique(np.concatenate([left[~apart], right[~apart]]))) / n
        partners = np.bincount(np.concatenate([left[apart], right[apart]]), minlength=n)
        mean = float(partners.sum()) / n
        fewest, _ = _spread_out(mean, float((partners > 0).sum()) / n, self.share, self.documents)
        most = min(1.0, mean / self.share)
        return float(1 - (1 - near) * (1 - (fewest * most) ** 0.5))

    def duplicates(self, label: NDArray[Any]) -> float:
        """Return the share of all documents that have the label of an earlier one; `label` is that of the sample.

        First those within a stretch; then, of the rest, those with a duplicate far away. Of these the estimate is
        lowered by one standard deviation: the few that the sample shows may be due to chance.
        """
        if self.share == 1:
            return 1 - len(np.unique(label)) / len(label)
        most = int(label.max()) + 1
        pairs = np.unique(self.stretch * most + label)
        _, times = np.unique(pairs % most, return_counts=True)
        partners = float((times * (times - 1)).sum()) / len(pairs)
        paired = float(times[times > 1].sum()) / len(pairs)
        share, each = _spread_out(partners, paired, self.share, self.documents)
        met = partners * len(pairs) / 2
        share *= 1 - met**-0.5 if met > 1 else 0.0
        return 1 - len(pairs) / len(label) * (1 - share * each / (1 + each))

    def _tuned(self, search: Search, rows: Ints, different: float) -> tuple[Banding, Choice]:
        """Choose the banding as the run will for all documents, and predict what either method costs."""
        sets = self.items.sets(rows, 1)
        full = np.flatnonzero(sets.sizes > 0)
        sets, stretch = sets.take(full), self.stretch[rows[full]]
        signatures = sample_signatures(sets, search.minhash)
        counts = agreement_counts(signatures, search.threads).astype(float)
        pairs = len(sets) * (len(sets) - 1) / 2
        if self.share < 1:
            counts, pairs = self._weighted(signatures, stretch, counts)
        mean = float(sets.sizes.mean()) if len(sets) else 1.0
        sample = round((1 + (1 + 8 * pairs) ** 0.5) / 2)
        items = max(2, round(self.documents * different))
        similar = similar_pairs(counts, sample, items, search.threshold)
        if search.method == "auto" and not fits(search.threshold, search.recall, search.max_slots):
            banding = Banding(search.max_slots, 1)
            corpus = Similarities.sampled(counts, sample, items, mean, search.threshold)
            false = corpus.candidates(banding, search.threshold)
            tuning = Tuning(banding, search.threshold, search.recall, 0.0, false)
            return banding, replace(choose(sets, items, tuning, similar), exact=True)
        buckets = SampleBuckets(signatures, stretch if self.share < 1 else None)
        tuning = tuned(search, counts, sample, items, mean, buckets)
        return tuning.banding, choose(sets, items, tuning, similar)

    def _weighted(self, signatures: NDArray[np.uint16], stretch: Ints, counts: Floats) -> tuple[Floats, float]:
        """Give the pairs within a stretch the weight they have among all pairs, which is less than in the sample.

        Returns the counts, and the number of pairs across stretches among them.
        """
        near = np.zeros(signatures.shape[1] + 1, np.int64)
        for number in np.unique(stretch):
            agreements(signatures[stretch == number], 0, 1, near)
        far = len(signatures) * (len(signatures) - 1) / 2 - near.sum()
        if far <= 0 or not near.any():
            return counts, max(1.0, float(counts.sum()))
        lengths = np.bincount(self.stretch).astype(float)
        all_near = (lengths * (lengths - 1) / 2).sum() / self.share
        all_far = self.documents * (self.documents - 1) / 2
        return counts - near + near * (all_near / near.sum()) / (all_far / far), float(far)


def _method(search: Search, choice: Choice | None) -> tuple[str, str]:
    """Return the method that the run will take, and why."""
    if choice is None:
        return "lsh", "bands and rows were given"
    if search.method != "auto":
        return search.method, "requested"
    if not fits(search.threshold, search.recall, search.max_slots):
        return "exact", unreachable(search)
    chosen = choice.to_dict()
    return chosen["taken"], chosen["why"]


def _nowhere() -> Any:
    raise AssertionError("the sample fits in memory")


def _spread_out(partners: float, paired: float, f: float, most: int) -> tuple[float, float]:
    """Return which share of all documents have partners, and how many each, from what a sample shows.

    `f` is the share that is in the sample, `partners` the mean number that a document has there, `paired` the share
    of documents that have any there. If a share p of all documents have g partners each, these are p·f·g and
    p (1 - (1 - f)^g). Their ratio falls as g grows, and so gives g.

    >>> _spread_out(0.0, 0.0, 0.5, 100)
    (0.0, 1.0)
    >>> p, g = _spread_out(0.2 * 0.5 * 3, 0.2 * (1 - 0.5**3), 0.5, 100)
    >>> round(p, 6), round(g, 6)
    (0.2, 3.0)
    """
    if not partners:
        return 0.0, 1.0
    low, high = 1.0, max(2.0, float(most))
    for _ in range(60):
        g = (low * high) ** 0.5
        if (1 - (1 - f) ** g) / (f * g) > paired / partners:
            low = g
        else:
            high = g
    return min(1.0, partners / (f * low)), low
