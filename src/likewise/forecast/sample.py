"""What a sample of an input tells about all of it: sizes, how similar the documents are, and how many are duplicates.

The sample is made of stretches of consecutive documents. A document and its copy far away are both in the sample with
the probability that any two are; a document and its copy next to it, whenever one of them is. So pairs within
a stretch and pairs across stretches are counted apart, and scaled up each in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.arrays import Ints, TextChunk, Texts
from likewise.candidates import candidates
from likewise.cluster import components
from likewise.compare import compare
from likewise.families.banding import Banding
from likewise.families.tuning import Similarities, tune_for
from likewise.groups import Groups, labels
from likewise.identical import chunk_samples
from likewise.items import TextItems
from likewise.keys import HeldKeys
from likewise.matching import SAMPLE, SAMPLE_SLOTS, Search, lowest
from likewise.read import ReadOptions, Source
from likewise.read.glimpse import Glimpse, glimpse
from likewise.shingle import Shingler, parse_shingler
from likewise.sketch import agreement_counts
from likewise.spill import CODEC

MOST_PAIRS = 300_000
"""Candidates of the sample that are verified; of more, as many are taken from all over."""


@dataclass(frozen=True)
class Packing:
    """What it takes to keep text on disk: its share of the size, and seconds of one core for a byte, in and out."""

    share: float
    pack: float
    unpack: float


@dataclass(frozen=True)
class Trial:
    """What a run over the sample tells about one over everything.

    different: the share of the documents that are no copy of an earlier one; kept: of those that no kept one is similar
    to. candidates, pairs: so many there will be. sketch, shingle: seconds of one core for a byte.
    """

    banding: Banding
    different: float
    kept: float
    candidates: float
    pairs: float
    sketch: float
    shingle: float
    tune: float


@dataclass(frozen=True)
class Sample:
    """Documents of an input, and what they are a sample of.

    `stretch` is the number of the stretch each stands in.
    """

    seen: Glimpse
    items: TextItems
    stretch: Ints

    @classmethod
    def of(cls, source: Source, options: ReadOptions, shingle: str | Shingler = "words:5") -> Sample:
        """Look at an input, here and there."""
        seen = glimpse(source)
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
    def text_bytes(self) -> int:
        """The bytes of text of the whole input."""
        return self.seen.text

    @property
    def shingler(self) -> Shingler:
        """What makes sets of the documents."""
        return self.items.shingler

    @property
    def share(self) -> float:
        """The share of all documents that is in the sample."""
        return min(1.0, len(self.items) / max(1, self.documents))

    @cached_property
    def mean_set(self) -> float:
        """The mean number of different shingles of a document that has any."""
        rows = np.sort(lowest(1, len(self.items), SAMPLE))
        sizes = self.items.sets(rows, 1).sizes
        return float(sizes[sizes > 0].mean()) if (sizes > 0).any() else 0.0

    @cached_property
    def id_bytes(self) -> float:
        """The bytes that an id takes."""
        known = [one.ids for one in self.seen.stretches if one.ids is not None and len(one.ids)]
        if not known:
            return 8.0
        return sum(array.nbytes for array in known) / sum(len(array) for array in known)

    @cached_property
    def packing(self) -> Packing:
        """Pack the text of the sample as a run does that has too little memory."""
        parts = [chunk.load() for chunk in self.items.texts.chunks]
        raw = b"".join(part.data[part.offsets[0] : part.offsets[-1]].tobytes() for part in parts)
        if not raw:
            return Packing(1.0, 0.0, 0.0)
        codec = pa.Codec(CODEC)
        begun = process_time()
        packed = codec.compress(raw)
        between = process_time()
        codec.decompress(packed, len(raw))
        ended = process_time()
        return Packing(packed.size / len(raw), (between - begun) / len(raw), (ended - between) / len(raw))

    def trial(self, search: Search) -> Trial:
        """Do on the sample, with one thread, what the run will do on everything."""
        if not len(self.items):
            return Trial(search.banding or Banding(1, 1), 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        copies = labels(self.items.digests(1))
        first = np.flatnonzero(np.diff(np.maximum.accumulate(copies), prepend=-1))
        different = 1 - self.duplicates(copies)
        begun = process_time()
        rows = first[np.sort(lowest(search.minhash.seed, len(first), SAMPLE))]
        sets = self.items.sets(rows, 1)
        shingling = process_time() - begun
        banding = search.banding or self._tuned(search, rows, different)
        tuning = process_time() - begun
        size = max(1, int(self.items.sizes[rows].sum()))
        keys = HeldKeys(np.empty((len(first), banding.b), np.uint32))
        begun = process_time()
        units = self.items.keys(first, search.minhash, banding, 1, keys, lambda done: None)
        sketching = (process_time() - begun) / max(1, int(self.items.sizes[first].sum()))
        del sets
        filled = np.flatnonzero((units != 0).any(axis=1))
        left, right = self._candidates(keys.chosen(filled))
        met = self._scaled(first[filled], left, right)
        share = min(1.0, MOST_PAIRS / max(1, len(left)))
        some = np.arange(len(left))[:: max(1, round(1 / share))]
        a, b, _ = compare(self.items, first[filled], left[some], right[some], search.threshold, 1, 1 << 60, _nowhere)
        found = self._scaled(first[filled], a, b) / max(share, 1e-9)
        groups = Groups.by_label(labels(units)[copies])
        of = np.searchsorted(groups.first, first[filled])
        clusters = components(groups, *_grouped(groups, first[filled], a, b)) if len(of) else copies
        kept = 1 - self.duplicates(clusters)
        return Trial(banding, different, min(kept, different), met, found, sketching, shingling / size, tuning)

    def _candidates(self, keys: HeldKeys) -> tuple[Ints, Ints]:
        """Pair the buckets of the sample."""
        if keys.items < 2:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        portions = list(candidates(keys, 1).portions())
        return portions[0] if portions else (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def _scaled(self, rows: Ints, left: Ints, right: Ints) -> float:
        """Return how many pairs of all documents there are, for these of the sample."""
        near = int((self.stretch[rows[left]] == self.stretch[rows[right]]).sum())
        return near / self.share + (len(left) - near) / self.share**2

    def duplicates(self, label: NDArray[Any]) -> float:
        """Return the share of all documents that have the label of an earlier one; `label` is that of the sample.

        First those within a stretch. Of what is left, let a share p stand in groups of g documents, far apart. With a
        share f of all documents in the sample, one of them meets f(g - 1) others there on average, and none with
        probability (1 - f)^(g - 1). The two are seen, for all documents, and give p and g.
        """
        n = len(label)
        pairs = np.unique(np.stack([self.stretch, label], axis=1), axis=0)
        apart = len(pairs)
        _, times = np.unique(pairs[:, 1], return_counts=True)
        meetings = float((times * (times - 1)).sum()) / apart
        met = float(times[times > 1].sum()) / apart
        far = 0.0
        if meetings:
            f = self.share
            size = _group_size(met / meetings, f, max(2, self.documents))
            share = min(1.0, meetings / (f * (size - 1)))
            far = share * (1 - 1 / size)
        return 1 - apart / n * (1 - far)

    def _tuned(self, search: Search, rows: Ints, different: float) -> Banding:
        """Choose the banding as the run will, for as many documents as there are."""
        stretch = self.stretch[rows]
        sets = self.items.sets(rows, 1)
        full = sets.sizes > 0
        sets, stretch = sets.take(np.flatnonzero(full)), stretch[full]
        items = max(2, round(self.documents * different))
        counts = agreement_counts(sets, search.minhash, SAMPLE_SLOTS, 1)
        if self.share < 1:
            counts = self._far(search, sets, stretch, counts)
        mean = float(sets.sizes.mean()) if len(sets) else 1.0
        sample = round((1 + (1 + 8 * float(counts.sum())) ** 0.5) / 2)
        corpus = Similarities.sampled(counts, sample, items, mean, search.threshold)
        return tune_for(search.threshold, search.recall, corpus, search.max_slots).banding

    def _far(self, search: Search, sets: Any, stretch: Ints, counts: Ints) -> Ints:
        """Leave out the pairs within a stretch: among all documents, nearly all pairs are far apart."""
        far = counts.copy()
        for number in np.unique(stretch):
            near = np.flatnonzero(stretch == number)
            if len(near) > 1:
                far -= agreement_counts(sets.take(near), search.minhash, SAMPLE_SLOTS, 1)
        return far if far.sum() else counts


def _nowhere() -> Any:
    raise AssertionError("the sample fits in memory")


def _group_size(ratio: float, f: float, most: int) -> float:
    """Solve (1 - (1 - f)^(g - 1)) / (f (g - 1)) = ratio for g, from 2 to `most`: it falls from 1 as g grows."""
    low, high = 2.0, float(most)
    for _ in range(60):
        g = (low * high) ** 0.5
        if (1 - (1 - f) ** (g - 1)) / (f * (g - 1)) > ratio:
            low = g
        else:
            high = g
    return low


def _grouped(groups: Groups, rows: Ints, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Turn pairs of rows into pairs of the groups they are in."""
    return groups.of[rows[left]], groups.of[rows[right]]
