"""Fingerprints by which copies are known (E1): 128 bits, so that two different items agree with probability 2**-128."""

from __future__ import annotations

import numpy as np

from likewise.arrays import Hashes, Sets, TextChunk, Texts
from likewise.parallel import in_order


def text_digests(texts: Texts, threads: int) -> Hashes:
    """Fingerprint the bytes of every document with 128 bits."""
    parts = list(in_order(chunk_digests, texts.chunks, threads))
    return np.concatenate(parts) if parts else np.zeros((0, 2), np.uint64)


def chunk_digests(chunk: TextChunk) -> Hashes:
    """Fingerprint the bytes of every document of a chunk."""
    from likewise.kernels.hashing import digest_strings

    out = np.empty((len(chunk), 2), np.uint64)
    digest_strings(chunk.eights, chunk.data, chunk.offsets, out)
    return out


def set_digests(sets: Sets) -> Hashes:
    """Fingerprint every set with 128 bits, whatever the order of its elements; an empty one gets 0, 0."""
    from likewise.kernels.sets import digest_sets

    out = np.empty((len(sets), 2), np.uint64)
    digest_sets(sets.values, sets.offsets, out)
    out[sets.sizes == 0] = 0
    return out
