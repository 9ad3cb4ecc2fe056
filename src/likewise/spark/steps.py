"""What a task does with the arrays of its batches. Nothing here knows Spark: arrays in, arrays out, one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, TextChunk, Texts
from likewise.base.copies import labels
from likewise.base.random import mix
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.kernels.graph import components
from likewise.kernels.pairs import heavy_buckets, scan_band
from likewise.kernels.sorting import radix_argsort
from likewise.search.band_keys import HeldKeys
from likewise.search.estimate import banded
from likewise.search.items import TextItems
from likewise.search.matches import first_of_each
from likewise.search.recall.sample import Probe
from likewise.search.scored import ScoredPairs, packed, unpacked
from likewise.search.sketch import SketchPlan
from likewise.search.verify import compare
from likewise.shingle import Shingler
from likewise.spark.known_sets import MixedShingler

NOTHING = np.zeros(0, np.int64)
BAND = np.uint64(32)
"""The bits of a bucket's word that hold its key; those above hold its band."""


def string_array(texts: list[str]) -> Any:
    """Return documents as an Arrow array."""
    return pa.array(texts, pa.string())


def items_of(texts: Any, shingler: Shingler, common: Hashes | None) -> TextItems:
    """Return the documents of an Arrow array, or of several, as items."""
    arrays = texts if isinstance(texts, list) else [texts]
    return TextItems(Texts([TextChunk.from_arrow(array) for array in arrays]), shingler, None, common)


def sketched(
    items: TextItems, rows: Ints, minhash: MinHash, banding: Banding, probe: Probe | None
) -> tuple[Hashes, Any, Ints, Ints]:
    """Return the fingerprints and the band keys of documents, and (set of the sample, document) of its neighbours."""
    keys = HeldKeys(np.empty((len(rows), banding.b), np.uint32))
    own = None if probe is None else Probe(probe.sample)
    plan = SketchPlan(minhash, banding, keys, 1, probe=own)
    units = items.keys(rows, plan)
    if isinstance(items.shingler, MixedShingler):
        items.shingler.put_known(items, rows, plan, keys, units)
    sample, found = (NOTHING, NOTHING) if own is None else own.result()
    return units, keys.matrix, sample, found


def banded_keys(slots: Any, banding: Banding) -> Any:
    """Return the keys of the bands that belong to the keys of slots."""
    return banded(HeldKeys(slots), banding).matrix


def first_rows(rows: Ints, digests: Hashes) -> Ints:
    """Return for each row the lowest row with the same digest."""
    order = np.argsort(rows, kind="stable")
    of = labels(digests[order])
    first = np.empty(len(rows), np.int64)
    first[order] = rows[order][first_of_each(of)][of]
    return first


def bucket_words(keys: Any) -> Hashes:
    """Return the words of documents' buckets, band and key: those of the first document, then of the next."""
    bands = np.arange(keys.shape[1], dtype=np.uint64) << BAND
    words: Hashes = (keys.astype(np.uint64) + bands).ravel()
    return words


def scattered(words: Hashes, parts: int) -> Ints:
    """Return in which of so many parts each word is."""
    return (mix(words) % np.uint64(parts)).astype(np.int64)


def bucket_pairs(words: Hashes, rows: Ints, cap: int, low: int, high: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the pairs of rows that share a bucket of at most `cap`, each once; and of the rows of larger buckets, each
    beside the lowest row it is connected with through them.

    Pairs of two rows below `low`, or of two from `high` on, do not count.
    """
    if not len(rows):
        return NOTHING, NOTHING, NOTHING, NOTHING
    order = radix_argsort(rows.astype(np.uint64), max(1, int(rows.max()).bit_length()))
    words, rows = words[order], rows[order]
    new = np.concatenate([[True], rows[1:] != rows[:-1]])
    different, members = rows[new], np.cumsum(new, dtype=np.int32) - np.int32(1)
    order = radix_argsort(words, max(1, int(words.max()).bit_length()))
    words, members = words[order], members[order]
    buckets = np.cumsum(np.concatenate([[False], words[1:] != words[:-1]])).astype(np.uint32)
    low, high = np.searchsorted(different, [low, high]).tolist()
    nothing, no_keys, light = np.zeros(0, np.int32), np.zeros((0, 0), np.uint32), np.zeros((0, 0), np.bool_)
    count = scan_band(buckets, members, no_keys, light, 0, low, high, cap, False, nothing, nothing)
    left, right = np.empty(count, np.int32), np.empty(count, np.int32)
    scan_band(buckets, members, no_keys, light, 0, low, high, cap, True, left, right)
    a, b = unpacked(np.unique(packed(left, right)))
    count = heavy_buckets(buckets, members, cap, False, nothing, nothing)
    first, rest = np.empty(count, np.int32), np.empty(count, np.int32)
    if count:
        heavy_buckets(buckets, members, cap, True, first, rest)
    crowd = np.unique(rest)
    label = components(len(different), first.astype(np.int64), rest.astype(np.int64))[crowd]
    return different[a], different[b], different[crowd], different[label]


def compared(items: TextItems, left: Ints, right: Ints, threshold: float) -> ScoredPairs:
    """Return the pairs of these documents that reach the threshold; pairs are sorted."""
    return compare(items, np.arange(len(items)), left, right, threshold, 1, 1 << 60, Path)
