"""Items to band keys: the signature is made, cut into bands, hashed, and forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likewise.base.arrays import Chunk, Hashes, Ints, Sets, TextChunk, Texts
from likewise.base.parallel import in_order
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.kernels import sketch
from likewise.kernels.documents import key_documents
from likewise.search.band_keys import Keys
from likewise.search.recall.sample import NO_HITS, NO_SAMPLE, Probe

SET_BATCH = 20_000


def key_texts(
    texts: Texts,
    rows: Ints,
    recipe: Any,
    prepare: Callable[[TextChunk], TextChunk],
    minhash: MinHash,
    banding: Banding,
    threads: int,
    out: Keys,
    tick: Callable[[int], None],
    probe: Probe | None = None,
) -> Hashes:
    """Write the band keys of these documents; return the fingerprints of their units (0, 0 for an empty document).

    `recipe` and `prepare` come from a shingler; text goes to keys in one kernel, and no set is kept. A probe is shown
    every document.
    """
    digests = np.empty((len(rows), 2), np.uint64)
    seeds = minhash.seeds(banding.slots)

    def work(task: tuple[Chunk, Ints, slice]) -> int:
        stored, local, place = task
        chunk = prepare(stored.load())
        keys, done = out.room(place), 0
        hits = probe.room() if probe else NO_HITS
        while done < len(local):
            more, count = key_documents(
                chunk.data,
                chunk.offsets,
                local[done:],
                recipe,
                minhash.code,
                seeds,
                banding.r,
                keys[done:],
                digests[place][done:],
                probe.sample if probe else NO_SAMPLE,
                hits,
            )
            if probe:
                probe.take(hits, count, place.start + done)
            done += more
        out.put(place, keys)
        return len(local)

    for done in in_order(work, texts.split(rows), threads):
        tick(done)
    return digests


def key_sets(
    sets: Sets, minhash: MinHash, banding: Banding, threads: int, out: Keys, tick: Callable[[int], None]
) -> None:
    """Write the band keys of every set."""
    seeds = minhash.seeds(banding.slots)

    def work(start: int) -> int:
        part = slice(start, min(start + SET_BATCH, len(sets)))
        offsets = sets.offsets[part.start : part.stop + 1]
        keys = out.room(part)
        sketch.key_sets(sets.values, offsets, minhash.code, seeds, banding.r, keys)
        out.put(part, keys)
        return len(offsets) - 1

    for done in in_order(work, range(0, len(sets), SET_BATCH), threads):
        tick(done)


def agreement_counts(sets: Sets, minhash: MinHash, slots: int, threads: int) -> Ints:
    """Return how many pairs of these sets agree in 0, 1, … slots of their signatures: what tuning needs to know."""
    signatures = minhash.signatures(sets, slots).astype(np.uint16)

    def count(first: int) -> Ints:
        counts = np.zeros(slots + 1, np.int64)
        sketch.agreements(signatures, first, threads, counts)
        return counts

    total: Ints = np.sum(list(in_order(count, range(threads), threads)), axis=0)
    return total
