"""Fingerprints by which copies are known (E1): 128 bits, so that two different items agree with probability 2**-128."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from likewise.arrays import Chunk, Hashes, Sets, TextChunk, Texts
from likewise.kernels.hashing import digest_samples, digest_strings
from likewise.kernels.pairs import radix_sort32
from likewise.kernels.sets import digest_sets
from likewise.parallel import in_order


def text_digests(texts: Texts, threads: int) -> Hashes:
    """Fingerprint every document with 128 bits: equal documents agree, different ones do not.

    Length and a few bytes are looked at first, and the whole document only where they agree with those of another.
    """
    samples = texts.samples
    if samples is None:
        samples = _concatenate(list(in_order(lambda chunk: chunk_samples(chunk.load()), texts.chunks, threads)), (0,))
    order, short = radix_sort32(samples.astype(np.uint32))
    same = short[1:] == short[:-1]
    suspect = np.zeros(len(samples), bool)
    suspect[order[1:][same]] = True
    suspect[order[:-1][same]] = True
    digests = np.stack([samples, ~samples], axis=1)

    def digest(part: tuple[Chunk, slice]) -> None:
        stored, place = part
        rows = np.flatnonzero(suspect[place])
        if len(rows):
            chunk = stored.load()
            digest_strings(chunk.eights, chunk.data, chunk.offsets, rows, digests[place])

    places = [slice(int(low), int(high)) for low, high in pairwise(texts.starts)]
    for _ in in_order(digest, zip(texts.chunks, places, strict=True), threads):
        pass
    return digests


def chunk_samples(chunk: TextChunk) -> Hashes:
    """Fingerprint the length and a few bytes of every document of a chunk."""
    out = np.empty(len(chunk), np.uint64)
    digest_samples(chunk.data, chunk.offsets, out)
    return out


def _concatenate(parts: list[Hashes], shape: tuple[int, ...]) -> Hashes:
    return np.concatenate(parts) if parts else np.zeros(shape, np.uint64)


def set_digests(sets: Sets) -> Hashes:
    """Fingerprint every set with 128 bits, whatever the order of its elements; an empty one gets 0, 0."""
    out = np.empty((len(sets), 2), np.uint64)
    digest_sets(sets.values, sets.offsets, out)
    out[sets.sizes == 0] = 0
    return out
